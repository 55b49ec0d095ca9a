"""torchbuild.lock: the hash that each helper's file had when it was first downloaded (TOML both ways)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.values import Malformed, parse_toml, toml_value

LOCK_FILE: Final = "torchbuild.lock"
HEAD: Final = """\
# Written by torchbuild_tasks: the helpers that were downloaded here, each with the hash that
# its file had the first time. Commit this file; a download with another hash is refused.
# To take a new file on purpose, remove its entry and fetch again.
"""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_ENTRY: Final = re.compile(r"\s*\[\[\s*helper\s*\]\]")


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One file: the artifact's id, sha256 in lower-case hexadecimal, bytes, where it came from."""

    id: str
    sha256: str
    size: int
    url: str


def read_pins(text: str) -> Mapping[str, Pin]:
    """Return the pins of a lock file by artifact id.

    Raises:
        UsageError: it is no such file; the text names the line.
    """
    try:
        data = parse_toml(text)
    except Malformed as error:
        _refuse(str(error))
    entries = data.pop("helper", [])
    if data or not isinstance(entries, list):
        _refuse(f"it has more than [[helper]] entries: {next(iter(data), 'helper')}")
    pins: dict[str, Pin] = {}
    for number, entry in enumerate(entries):
        if problem := _problem(entry, pins):
            _refuse(f"{problem} (the entry {_place_of(text, number)})")
        pins[entry["id"]] = Pin(**entry)
    return pins


def _problem(entry: Any, known: Mapping[str, Pin]) -> str:
    """Return what is wrong with an entry; "" when nothing is."""
    if not isinstance(entry, dict):
        return "an entry is not a table"
    for name in Pin.__struct_fields__:
        if type(entry.get(name)) is not (int if name == "size" else str):
            return f"{name} is missing or of the wrong type"
    if unknown := set(entry) - set(Pin.__struct_fields__):
        return f"unknown key {min(unknown)}"
    if not _SHA256.fullmatch(entry["sha256"]):
        return "sha256 is not 64 hexadecimal digits in lower case"
    if entry["size"] < 0:
        return "size is negative"
    return f"{entry['id']} is there twice" if entry["id"] in known else ""


def _place_of(text: str, number: int) -> str:
    lines = [at for at, line in enumerate(text.splitlines(), 1) if _ENTRY.match(line)]
    return f"at line {lines[number]}" if number < len(lines) else f"number {number + 1}"


def _refuse(problem: str) -> NoReturn:
    raise UsageError(
        f"{LOCK_FILE} cannot be read: {problem}.",
        next_step="Fix that line, or take the file as it was committed. An entry that is removed is "
        "written again at the next fetch, with the hash that its file has then.",
    )


def write_pins(pins: Mapping[str, Pin]) -> str:
    """Return the text of a lock file, the same for the same pins."""
    return HEAD + "".join(_entry(pins[key]) for key in sorted(pins))


def _entry(pin: Pin) -> str:
    lines = (f"{name} = {toml_value(value)}\n" for name, value in msgspec.structs.asdict(pin).items())
    return "\n[[helper]]\n" + "".join(lines)

"""Find and read torchbuild.toml, with the line of every key.

`plan/settings.py` judges whether a key is known and its value fits.
"""

from __future__ import annotations

import dataclasses
import errno
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.options import BuildRequest, choices_of
from torchbuild_tasks.system.reading import read_text
from torchbuild_tasks.values import LONGEST_TOML, Malformed, parse_toml

NAME: Final = "torchbuild.toml"

_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*\[(\[)?\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
# What to do with a file that could be read and was not taken, by `errno`.
_MENDS: Final[Mapping[int, str]] = {
    errno.EILSEQ: 'Save it as UTF-8, which an editor offers under "Save as".',
    errno.EFBIG: "No settings are that long: move it away.",
}


class SettingsFile(msgspec.Struct, frozen=True, kw_only=True):
    """A settings file; `lines` has the line (from 1) of every dotted key of `data`.

    An entry of a list of tables is counted from 0: `failure.0.match`. A key inside an
    inline table has the line of that table.
    """

    path: str
    data: Mapping[str, object]
    lines: Mapping[str, int]


def find_settings(explicit: str | None, source: str) -> SettingsFile | None:
    """Return the named file, else torchbuild.toml of the current folder, else the checkout's.

    Raises:
        UsageError: the file that was named does not exist, or the one found cannot be read.
    """
    if explicit is not None:
        path = Path(explicit).expanduser()
        if not path.exists():
            fields = dataclasses.fields(BuildRequest)
            types = next(choices_of(each) for each in fields if each.name == "build_type")
            step = f"Name an existing file with --config, or leave it out to use ./{NAME}."
            if explicit in types:  # CMake's --config
                step = f"For a build type write: --build-type {explicit}"
            what = f"The settings file {explicit} does not exist."
            raise UsageError(what, looked=(str(path.absolute()),), next_step=step)
        return read_settings(path)
    for folder in (Path(), Path(source).expanduser()):
        if (folder / NAME).exists():  # a folder or a pipe of that name is an error, not an absent file
            return read_settings(folder / NAME)
    return None


def user_settings_path() -> Path:
    """Return the path of the user's settings for all checkouts, which need not exist.

    XDG_CONFIG_HOME or ~/.config on Linux, %LOCALAPPDATA% on Windows (platformdirs).
    """
    from platformdirs import user_config_path

    return user_config_path("torchbuild-tasks", appauthor=False) / NAME


def find_user_settings() -> SettingsFile | None:
    """Return the user's settings for all checkouts; None if there are none.

    Raises:
        UsageError: the file cannot be read.
    """
    path = user_settings_path()
    try:
        there = path.exists()
    except OSError:  # another user's home
        return None
    return read_settings(path) if there else None


def read_settings(path: Path) -> SettingsFile:
    """Read a settings file.

    Raises:
        UsageError: it cannot be opened, is not UTF-8, or is not TOML; names file, line and key.
    """
    path = path.absolute()
    try:
        text = read_text(path, most=LONGEST_TOML)
    except OSError as error:
        fix = _MENDS.get(error.errno or 0, "Let your user read it, or move it away.")
        raise UsageError(f"{path} cannot be read: {error.strerror}", next_step=fix) from None
    try:
        data = parse_toml(text)
    except Malformed as error:
        raise _broken(path, text, str(error)) from None
    return SettingsFile(path=str(path), data=data, lines=_lines(text, data))


def _broken(path: Path, text: str, message: str) -> UsageError:
    """Return the decoder's error with the line and key; its message ends with the line."""
    lines = text.splitlines() or [""]
    place = re.search(r" \(at line (\d+), column \d+\)$", message)
    if not place and not message.endswith("(at end of document)"):
        return UsageError(f"{path}: {message}")
    number = int(place[1]) if place else len(lines)
    line = lines[min(number, len(lines)) - 1]
    key = _KEY.match(line)
    where = f"{path}, line {number}" + (f", key {key[1]}" if key else "")
    if re.match(r"Cannot (?:overwrite|declare)|Duplicate", message):
        return UsageError(
            f"{where}: it is there twice", looked=(line.strip()[:200],), next_step="Drop one of the two."
        )
    from torchbuild_tasks.text.letters import plain_word, say_odd_letters

    odd = say_odd_letters(line)
    advice = 'Text needs quotes, true and false do not: preset = "dev", cuda = true.'
    if "\\" in line and re.search(r"hex value|escape|unescaped", message, re.IGNORECASE):
        advice = "In double quotes a backslash begins an escape: write / or \\\\ for it, or single quotes: "
        advice += line.strip().replace('"', "'")
    return UsageError(
        f"{where}: {re.sub(r' [(]at [^()]*[)]$', '', message)}{f'; {odd}' if odd else ''}",
        looked=(line.strip()[:200],) if line.strip() else (),
        next_step=f"Write it as: {plain_word(line)}" if odd else advice,
    )


def _lines(text: str, data: Mapping[str, object]) -> dict[str, int]:
    """Return the line of each key of `data`; a key without a line of its own gets its table's."""
    keys = list(_keys("", data))
    seen = _find_key_lines(text, frozenset(keys))
    lines: dict[str, int] = {}
    for key in keys:
        lines[key] = seen.get(key) or lines.get(key.rpartition(".")[0], 1)
    return lines


def _keys(above: str, value: object) -> Iterator[str]:
    """Yield every dotted key, tables before their keys."""
    items: list[tuple[str, object]] = list(value.items()) if isinstance(value, dict) else []
    if isinstance(value, list):
        items = [(str(number), item) for number, item in enumerate(value) if isinstance(item, dict)]
    for name, item in items:
        yield f"{above}{name}"
        yield from _keys(f"{above}{name}.", item)


def _find_key_lines(text: str, keys: frozenset[str]) -> dict[str, int]:
    """Return the first line of every key in `keys`, recognised by patterns."""
    seen: dict[str, int] = {}
    counts: dict[str, int] = {}
    table: tuple[str, ...] = ()
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        if quote:
            quote = "" if line.count(quote) % 2 else quote
            continue
        if header := _HEADER.match(line):
            path = _resolve_header(_parts(header[2]), counts, listed=header[1] is not None)
            # The last line of a list of lists looks like a header, too.
            if ".".join(path) in keys:
                table = path
                _note(seen, table, number)
        elif key := _KEY.match(line):
            _note(seen, (*table, *_parts(key[1])), number)
        quote = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
    return seen


def _resolve_header(parts: tuple[str, ...], counts: dict[str, int], *, listed: bool) -> tuple[str, ...]:
    """Return a header's path including indexes of list entries; `[[x]]` (listed) begins a new entry."""
    path: tuple[str, ...] = ()
    for number, part in enumerate(parts, 1):
        path = (*path, part)
        name = ".".join(path)
        if listed and number == len(parts):
            counts[name] = counts.get(name, -1) + 1
        if name in counts:
            path = (*path, str(counts[name]))
    return path


def _note(seen: dict[str, int], path: tuple[str, ...], number: int) -> None:
    """Record the first line of a key and of the keys above it."""
    for length in range(1, len(path) + 1):
        seen.setdefault(".".join(path[:length]), number)


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))

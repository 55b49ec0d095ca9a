"""Hold the rows of data/*.toml against the package index, and bring them up to date: `nox -s update_rows`.

Without arguments it prints a line for each row that is missing (+) or says something else (~); --write
edits the files, whose comments and formatting stay. What no index knows stays for a person: a new row
takes it from the row before, and its `source` says UNCONFIRMED. A new source is a function and its line
in SOURCES.
"""

from __future__ import annotations

import email
import functools
import io
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

DATA: Final = Path(__file__).resolve().parents[1] / "torchbuild_tasks/data"
PYPI: Final = "https://pypi.org/simple"
ACCEPT: Final = "application/vnd.pypi.simple.v1+json, */*;q=0.1"  # PEP 691
SMALL: Final = 16_000_000  # bytes of a wheel that is worth downloading for its METADATA
PLATFORMS: Final = ("x86_64", "aarch64", "win_amd64")  # what the tags of NVIDIA's wheels end in, in our order
Row = Mapping[str, Any]
Edit = Callable[[str], str]
Fetch = Callable[[str], bytes | None]  # what is at a URL, None where there is nothing


class Wheel(NamedTuple):
    """A wheel of the index: platform, minors of its CPythons (cp311: 11), and its file as PEP 691 has it."""

    version: Version
    tag: str
    minors: tuple[int, ...]
    file: Row


class Change(NamedTuple):
    """A line to print, and what makes it so in the file's text; None where only a person can."""

    line: str
    edit: Edit | None = None


class Index:
    """A package index: the wheels of a project (PEP 691), and what a release requires."""

    def __init__(self, fetch: Fetch, url: str = PYPI) -> None:
        self.fetch, self.url = fetch, url.rstrip("/")
        self.wheels = functools.cache(self._wheels)

    def _wheels(self, project: str) -> tuple[Wheel, ...]:
        page = f"{self.url}/{project}/"
        text = self.fetch(page)
        if text is None or not text.startswith(b"{"):
            raise SystemExit(f"{page} is not there, or answers no JSON (PEP 691)")
        files = (file | {"url": urljoin(page, file["url"])} for file in json.loads(text)["files"])
        return tuple(wheel for file in files if not file.get("yanked") and (wheel := _wheel(file)))

    def newest(self, project: str) -> dict[tuple[int, ...], Version]:
        """Return the last final release of each series, ascending."""
        versions = {wheel.version for wheel in self.wheels(project) if not wheel.version.is_prerelease}
        return {version.release[:2]: version for version in sorted(versions)}

    def of(self, project: str, fits: str) -> list[Wheel]:
        """Return the wheels that a specifier admits."""
        wanted = SpecifierSet(fits)
        return [wheel for wheel in self.wheels(project) if wheel.version in wanted]

    def requires(self, project: str, version: Version) -> dict[str, str] | None:
        """Return what its wheel for Linux asks of other projects; None where the index does not tell."""
        wheels = sorted(self.of(project, f"=={version}"), key=lambda wheel: "manylinux" not in wheel.tag)
        file = wheels[0].file
        text = self.fetch(f"{file['url']}.metadata")  # PEP 658, which not every mirror has
        if text is None and (file.get("size") or SMALL) < SMALL and (wheel := self.fetch(file["url"])):
            with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
                name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
                text = archive.read(name)
        if text is None:
            return None
        lines = email.message_from_bytes(text).get_all("Requires-Dist", [])
        return {each.name: str(each.specifier) for each in map(Requirement, lines)}


def _wheel(file: Row) -> Wheel | None:
    try:
        _, version, _, tags = parse_wheel_filename(file["filename"])
    except InvalidWheelFilename:
        return None
    found = {match[1] for tag in tags if (match := re.fullmatch(r"cp3(\d+)", tag.interpreter))}
    tag = file["filename"].removesuffix(".whl").rpartition("-")[2].rpartition(".")[2]
    return Wheel(version, tag, tuple(map(int, found)), file)


# ---------------------------------------------------------------- the text of a table


def blocks(text: str, table: str) -> list[re.Match[str]]:
    """Find the rows of a table in their order: from [[table]] to the blank line before what comes next."""
    return list(re.finditer(rf"^\[\[{table}\]\]\n(?:(?!\[).*\n)*?(?=\n\[|\n#|\Z)", text, re.MULTILINE))


def set_keys(table: str, number: int, values: Row) -> Edit:
    """Return an edit that sets keys of the row of that number, each in its line."""

    def edit(text: str) -> str:
        block = blocks(text, table)[number]
        lines = block[0].splitlines(keepends=True)
        for key, line in zip(values, _lines(values), strict=True):
            at = next((at for at, old in enumerate(lines) if old.startswith(f"{key} = ")), len(lines))
            lines[at : at + 1] = [line]
        return text[: block.start()] + "".join(lines) + text[block.end() :]

    return edit


def add_row(table: str, after: int, row: str) -> Edit:
    """Return an edit that puts a row behind the one of that number, a blank line between them."""

    def edit(text: str) -> str:
        end = blocks(text, table)[after].end()
        return f"{text[:end]}\n[[{table}]]\n{row}{text[end:]}"

    return edit


def _lines(row: Row) -> list[str]:
    """Write keys as the files have them: JSON's text, lists and numbers are TOML's, too."""
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in row.items()]


# ---------------------------------------------------------------- the sources, one a table


def torch_rows(index: Index, data: Row) -> Iterator[Change]:
    """Hold each series' last release against the index, and the Pythons and the triton of the newest."""
    rows = data["torch"]
    known = {Version(row["version"]).release: number for number, row in enumerate(rows)}
    for series, newest in index.newest("torch").items():
        if series < max(known) and series not in known:
            continue  # older than every row
        found: dict[str, Any] = {"latest": str(newest)}
        if series >= max(known):
            found |= _of_release(index, newest)
        if series in known:
            number = known[series]
            found = {key: value for key, value in found.items() if not _same(rows[number].get(key), value)}
            for key, value in found.items():
                line = f"~ [[torch]] {rows[number]['version']}: {key} = {rows[number].get(key)} -> {value}"
                yield Change(line, set_keys("torch", number, {key: value}))
            continue
        first = index.of("torch", f"=={series[0]}.{series[1]}.0")
        found["version"] = f"{series[0]}.{series[1]}"
        found["released"] = min(
            (wheel.file.get("upload-time", "")[:10] for wheel in first), default="UNCONFIRMED"
        )
        unknown = sorted(set(rows[-1]) - {*found, "source", "note"})
        found["source"] = f"the index; UNCONFIRMED, as for {rows[-1]['version']}: {', '.join(unknown)}"
        row = {key: found.get(key, value) for key, value in rows[-1].items() if key != "note"}
        yield Change(f"+ [[torch]] {newest}", add_row("torch", len(rows) - 1, "".join(_lines(row))))


def _of_release(index: Index, version: Version) -> Row:
    """Return what wheels tell of a release of torch."""
    wheels = index.of("torch", f"=={version}")
    highest = max((minor for wheel in wheels for minor in wheel.minors), default=None)
    lowest = (wheels[0].file.get("requires-python") or "").removesuffix(".0")
    found = {"python": f"{lowest},<3.{highest + 1}"} if highest and lowest.startswith(">=") else {}
    triton = (index.requires("torch", version) or {}).get("triton")
    return found | ({"triton": triton} if triton else {})


def _same(old: str | None, new: str) -> bool:
    """Tell whether two values say the same; specifiers may be spelt otherwise."""
    return old == new or (bool(old) and new[0] in "<>=~!" and SpecifierSet(str(old)) == SpecifierSet(new))


def companion_rows(index: Index, data: Row) -> Iterator[Change]:
    """Name the releases after each companion's newest row, each for the torch that its wheel pins."""
    rows = data["companion_release"]
    for project in (row["name"] for row in data["companion"] if not row.get("extension")):
        numbers = [number for number, row in enumerate(rows) if row["name"] == project]
        latest = max(Version(rows[number]["version"]) for number in numbers)
        for version in (each for each in index.newest(project).values() if each > latest):
            wheel = (index.requires(project, version) or {}).get("torch", "")
            one = re.fullmatch(r"==(\d+)\.(\d+)\.\d+", wheel)
            torch = f">={one[1]}.{one[2]}.0a0,<{one[1]}.{int(one[2]) + 1}.0a0" if one else wheel
            doubt = "" if one else "; torch UNCONFIRMED"
            row = {"name": project, "version": str(version), "torch": torch or rows[numbers[-1]]["torch"]}
            row |= {"wheel": wheel} if wheel else {}
            row["source"] = f"METADATA of the wheel of {version}{doubt}"
            line = f"+ [[companion_release]] {project} {version} for torch {row['torch']}{doubt}"
            yield Change(line, add_row("companion_release", numbers[-1], "".join(_lines(row))))


def toolkit_rows(index: Index, data: Row) -> Iterator[Change]:
    """Hold the parts' hashes against the index, and the releases against those of cuda-toolkit."""
    kinds = {(kind["cuda"], kind["name"]): kind for kind in data["part_kind"] if "project" in kind}
    for row in data["toolkit"]:
        for part in row["parts"]:
            if kind := kinds.get((row["cuda"].partition(".")[0], part["name"])):
                hashes = {
                    each.file["hashes"]["sha256"]
                    for each in index.of(kind["project"], f"=={part['version']}")
                }
                for file in (file for file in part["files"] if file["sha256"] not in hashes):
                    name = f"{row['cuda']}: {kind['project']} {part['version']} {file['tag']}"
                    yield Change(
                        f"~ [[toolkit]] {name}: the index has no file of this hash; look at it first"
                    )
    number = max(at for at, row in enumerate(data["toolkit"]) if row["cuda"].count(".") == 2)
    last = Version(data["toolkit"][number]["cuda"])
    for version in (each for each in index.newest("cuda-toolkit").values() if each > last):
        pins = index.requires("cuda-toolkit", version) or {}
        parts = [
            _part(index, name, kind["project"], pins[kind["project"]])
            for (major, name), kind in kinds.items()
            if major == str(version.major) and kind["project"] in pins
        ]
        text = f'cuda = "{version}"\nsource = "cuda-toolkit {version}"\nparts = [\n{"".join(parts)}]\n'
        edit = add_row("toolkit", number, text) if parts else None
        yield Change(
            f"+ [[toolkit]] {version}{'' if parts else ' (the index does not tell its parts)'}", edit
        )


def _part(index: Index, name: str, project: str, fits: str) -> str:
    """Write a part of a toolkit: the newest version that fits, with its file for each platform."""
    newest = max(wheel.version for wheel in index.of(project, fits))
    wheels = [wheel for wheel in index.of(project, f"=={newest}") if wheel.tag.endswith(PLATFORMS)]
    wheels.sort(key=lambda wheel: [wheel.tag.endswith(end) for end in PLATFORMS], reverse=True)
    lines = "".join(
        f'        {{ tag = "{wheel.tag}", sha256 = "{wheel.file["hashes"]["sha256"]}"'
        f"{f', size = {size}' if (size := wheel.file.get('size')) else ''} }},\n"
        for wheel in wheels
    )
    return f'    {{ name = "{name}", version = "{newest}", files = [\n{lines}    ] }},\n'


def cuda_rows(index: Index, data: Row) -> Iterator[Change]:
    """Name the CUDA series without a row: what they compile for stands in their headers, on no index."""
    newest = max(Version(row["version"]).release for row in data["cuda"])
    for series in (series for series in index.newest("cuda-toolkit") if series > newest):
        yield Change(f"+ [[cuda]] {series[0]}.{series[1]} (from its headers, by hand)")


def gate_rows(index: Index, data: Row) -> Iterator[Change]:
    """Name the releases that a gate leaves out and the index does not have."""
    for row in data["gate"]:
        for gone in (each for each in SpecifierSet(row["fits"]) if each.operator == "!="):
            if not index.of(row["name"], f"=={gone.version}.*"):
                yield Change(f"~ [[gate]] {row['name']}: the index has no {gone.version} to leave out")


SOURCES: Final[Mapping[str, Callable[[Index, Row], Iterable[Change]]]] = {
    "torch.toml": torch_rows,
    "companions.toml": companion_rows,
    "toolkits.toml": toolkit_rows,
    "cuda.toml": cuda_rows,
    "gates.toml": gate_rows,
}


# ---------------------------------------------------------------- the command


def update(folder: Path, index: Index, *, write: bool) -> list[str]:
    """Return what the rows of a folder lack or say differently, a line each; with `write` also edit them."""
    lines = []
    for name, source in SOURCES.items():
        text = before = (folder / name).read_bytes().decode()
        changes = list(source(index, tomllib.loads(text)))
        lines += [f"{name}: {change.line}" for change in changes]
        for change in reversed(changes):  # from the end, so that the numbers of the rows before it stay
            text = change.edit(text) if change.edit else text
        tomllib.loads(text)
        if write and text != before:
            (folder / name).write_bytes(text.encode())
    return lines


def pip_settings() -> dict[str, str]:
    """Return what pip's settings say (index-url, cert, …), the environment's over the files'."""
    argv = (sys.executable, "-m", "pip", "config", "list")
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^(\S+)\.([\w-]+)='(.*)'$", said, re.MULTILINE)
    return {key: value for _, key, value in sorted(found, key=lambda each: each[0] == ":env:")}


def fetch_with(settings: Row) -> Fetch:
    """Return the one function that asks the network."""
    import requests

    def fetch(url: str) -> bytes | None:
        answer = requests.get(url, headers={"Accept": ACCEPT}, timeout=60, verify=settings.get("cert", True))
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        return answer.content

    return fetch


def main(words: Sequence[str]) -> None:
    """Print what the rows lack or say differently; --write edits them."""
    if set(words) - {"--write"}:
        raise SystemExit(f"update_rows takes --write, or nothing; not {' '.join(words)}")
    settings = pip_settings()
    index = Index(fetch_with(settings), settings.get("index-url", PYPI))
    lines = update(DATA, index, write=bool(words))
    print("\n".join(lines) or "every row says what the index says")
    if lines and words:
        print("written; read the diff, fix what is UNCONFIRMED, then: nox -s tests")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Write data/packages_of.tsv again: which package of Debian brings a header, a library, a program ...

    apt-get install apt-file dpkg-dev      # and `deb-src` lines, for Sources
    apt-get update
    python bin/read_packages.py

A package counts where enough others are built with it (Build-Depends in Sources). A name that two of these
have is left out, and so is a header that is called otherwise than its package: `utils.h` may be anybody's.
"""

from __future__ import annotations

import collections
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).parents[1] / "torchbuild_tasks/data/packages_of.tsv"
LISTS: Final = Path(sys.argv[1] if len(sys.argv) > 1 else "/var/lib/apt/lists")
LEAST: Final = 10  # source packages that are built with it
MANY: Final = 40  # programs of one package, which is then no tool of a build
SHORTEST: Final = 3
FEW: Final = 8  # headers of a folder that is itself in the include path
HEAD: Final = """\
# Which package of Debian brings what: its name, then its .pc files, headers (a folder ends with /),
# libraries, packages of CMake and programs, with tabs between these and blanks within.
# Written by bin/read_packages.py from {release}.
"""
_TRIPLET: Final = r"(?:x86_64-linux-gnu/)?"
PATTERNS: Final = {
    "pc": re.compile(rf"usr/(?:lib/{_TRIPLET}|share/)pkgconfig/(\S+)\.pc"),
    "header": re.compile(rf"usr/include/{_TRIPLET}(?!python|c\+\+/|linux/|asm)(\S+)"),
    "library": re.compile(rf"usr/lib/{_TRIPLET}lib([\w+.-]+)\.(?:so|a)"),
    "cmake": re.compile(r"usr/(?:lib|share)/\S*/(?:([\w+.-]+)Config|([\w+.-]+)-config)\.cmake"),
    "program": re.compile(r"usr/s?bin/([\w+.-]+)"),
}
COLUMNS: Final = tuple(PATTERNS)


def read_lists(ending: str) -> Iterator[str]:
    """Yield the lines of apt's lists of this kind, whichever way they are packed."""
    for path in sorted(LISTS.glob(f"*{ending}*")):
        if path.is_file():
            command = ("/usr/lib/apt/apt-helper", "cat-file", str(path))
            yield from subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def count_builds(lines: Iterable[str]) -> collections.Counter[str]:
    """Return how many source packages are built with each package."""
    counted: collections.Counter[str] = collections.Counter()
    for line in lines:
        if line.startswith(("Build-Depends:", "Build-Depends-Arch:")):
            names = {
                re.split(r"[ (:\[<|]", each.strip(), maxsplit=1)[0]
                for each in line.partition(":")[2].split(",")
            }
            counted.update(names - {""})
    return counted


def read_names(lines: Iterable[str]) -> dict[str, dict[str, set[str]]]:
    """Return the packages that have each name, by what it is: pc, header, library, cmake, program."""
    found: dict[str, dict[str, set[str]]] = {kind: collections.defaultdict(set) for kind in COLUMNS}
    folders: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for line in lines:
        path, _, where = line.rstrip().rpartition(" ")
        packages = {each.rpartition("/")[2] for each in where.split(",")}
        matches = ((kind, pattern.fullmatch(path.strip())) for kind, pattern in PATTERNS.items())
        kind, match = next((each for each in matches if each[1]), ("", None))
        if match is None:
            continue
        name = match[1] or match[match.lastindex or 1]
        folder, _, rest = name.partition("/") if kind == "header" else (name, "", "")
        found[kind][f"{folder}/" if rest else folder] |= packages
        if "/" in rest:
            found[kind][rest[: rest.index("/") + 1]] |= packages
        elif rest:
            for package in packages:
                folders[folder, package].add(rest)
    for (_, package), names in folders.items():
        for name in names:
            if len(names) <= FEW or name in found["header"]:
                found["header"][name].add(package)
    return found


def is_named_alike(header: str, names: Iterable[str]) -> bool:
    """Say whether a header is called as its package: `core/` and `utils.h` may be anybody's."""
    name = header.rstrip("/")
    stem = plain((name.rpartition(".")[0] or name).removeprefix("lib"))
    cores = [plain(re.sub(r"^lib|-?dev$|[\d.]+$", "", name)) for name in names]
    alike = (core.startswith(stem) or (len(core) >= SHORTEST and stem.startswith(core)) for core in cores)
    return len(stem) >= SHORTEST and any(alike)


def plain(name: str) -> str:
    """Return the letters of a name."""
    return re.sub(r"[^a-z]", "", name.lower())


def main() -> None:
    """Write the table."""
    builds = count_builds(read_lists("_Sources"))
    found = read_names(read_lists("Contents-"))
    wanted = {name for name, count in builds.items() if count >= LEAST}
    rows: dict[str, dict[str, list[str]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for kind, names in found.items():
        for name, packages in sorted(names.items()):
            if len(known := packages & wanted) == 1:
                rows[next(iter(known))][kind].append(name)
    for package, row in rows.items():
        called = (package, *row["pc"], *row["library"])
        row["header"] = [name for name in row["header"] if is_named_alike(name, called)]
        row["program"] = row["program"] if len(row["program"]) <= MANY else []
    lines = [
        "\t".join((package, *(" ".join(row[kind]) for kind in COLUMNS))).rstrip("\t")
        for package, row in sorted(rows.items())
        if any(row.values())
    ]
    DATA.write_text(HEAD.format(release="Debian 12") + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()

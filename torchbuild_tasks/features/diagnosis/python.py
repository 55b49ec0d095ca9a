"""Read off an error of Python or a solver which Python it needs, and what was offered and wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchbuild_tasks.catalog.match import parse_version
from torchbuild_tasks.features.diagnosis.audience import Audience

# How a bound of a version gets into the environment that a build runs in.
_BOUND: Final = {
    "pip": "give this build, which pip does in an environment of its own, a bound: write the line that"
    " follows into a file, and name that in PIP_CONSTRAINT (from pip 25.3 on in PIP_BUILD_CONSTRAINT)",
    "uv": "give this build, which uv does in an environment of its own, a bound: write the line that"
    " follows into a file, and name that in UV_BUILD_CONSTRAINT",
    "": "install it within this bound into the Python that builds (pip and uv then with"
    " --no-build-isolation)",
}
# What a build uses, by its own words in a message or its folder in a traceback, and the bound before it took
# out what older scripts ask for. Sources: notes on migration to Cython 3.0 and NumPy 2.0; setuptools 81
# takes pkg_resources out.
_BUILT_WITH: Final = (
    ("Cython", re.compile(r"(?i)cython"), "cython<3"),
    ("setuptools", re.compile(r"\b_?(?:setuptools|distutils|pkg_resources)\b"), "setuptools<81"),
    ("NumPy", re.compile(r"\bnumpy\b"), "numpy<2"),
)
_IN_PACKAGE: Final = re.compile(
    r'File "(?:[^"\n]{0,300}(?:-packages|python3\.\d{1,2})[/\\](\w+)|[^"\n]{1,300}").*'
)
# Source lines that only a newer Python reads, the newest first, and the release that they came with.
_SYNTAX: Final = (
    ("3.12", re.compile(r"^\s*(?:def|class) \w+\[|^\s*type \w+(?:\[.*\])? = ")),
    ("3.11", re.compile(r"^\s*except\s?\*")),
    ("3.10", re.compile(r"^\s*(?:match|case) \S.*:\s*(?:#.*)?$")),
    ("3.8", re.compile(r":=|^\s*def \w+\([^)]*, /[,)]")),
    ("3.7", re.compile(r"from __future__ import annotations")),
    (
        "3.6",
        re.compile(
            r"(?<!\w)[fF]['\"]|\d_\d{3}|^\s*(?!(?:else|try|finally)\b)[\w.]+: [\w.\[\], |]+(?: = .*)?$"
        ),
    ),
    ("3.5", re.compile(r"^\s*async (?:def|for|with) |\bawait \w|[\[{]\s*\*{1,2}\w+|\w @ \w")),
    (
        "3",
        re.compile(
            r"^\s*def \w+\([^)]*\w\s*: ?\w|^\s*def .*\) ->|^\s*def \w+\((?:[^)]*, )?\*, |\bnonlocal \w"
            r"|^\s*class \w+\(.*\bmetaclass=|^\s*raise .+ from |\byield from "
            r"|\bprint\(.*\b(?:end|file|sep|flush)="
        ),
    ),
)
# Source lines that only Python 2 reads.
_OF_TWO: Final = re.compile(
    r"^\s*(?:print|exec)\s+(?!\()[\w\"'%]|^\s*print\s*>>|^\s*(?:except|raise) [\w.]+, ?\S|\b0[0-7]{2,}\b"
    r"|(?<!\w)[uU][rR]['\"]|<>|`\w"
)
# A name that became a word of the language with 3.7.
_OLD_NAME: Final = re.compile(r"\basync\b(?!\s+(?:def|for|with)\b)")
_SYNTAX_ERROR: Final = re.compile(
    r"SyntaxError: (?!.*(?:parenthes|unterminated|never closed|unmatched|EOF|indent))"
)
_SOURCE_LINE: Final = re.compile(r'File "([^"\n]{1,300})", line \d+\n(.*)')
_OFFERED: Final = re.compile(r"\(from versions: ([^)]{1,4000})\)")
_OTHER_PYTHON: Final = re.compile(r"(\S{1,40}) Requires-Python ([^;\n]{1,60})")
_ASKED: Final = re.compile(r"requirement [\w.-]{1,60}(?:\[[^\]]{0,60}\])?([=<>!~][^\s;()]{1,60})")
_FEW: Final = 5
_PYTHON_PATH: Final = re.compile(r"python3\.(\d{1,2})\b|[\\/]Python3(\d{1,2})[\\/]|cpython-3(\d{1,2})\b")
# What pip tells, one below the other.
_DEMAND: Final = re.compile(
    r"(?:requires|has requirement) ([\w.-]{1,60}?)(?:\[[^]]{1,60}\])?([<>=!~][^\s;]{1,80}?)"
    r"(?:; [^,]{1,80})?,? but you(?:'ll)? have "
)
_WANTS: Final = re.compile(
    r"^\s*((?:The user requested|(?!and |[Bb]ecause )\S{1,80} \S{1,40} depends on) .{1,120})$"
    # uv and Poetry tell it in sentences.
    r"|\b(?:[Bb]ecause|[Aa]nd(?: because)?)\s+((?:all versions of |every version of |your )?[\w.\[\]-]{1,60}"
    r"(?:[=<>!~]\S{1,60}| \([^)]{1,60}\))? (?:depends on|requires)\s+(?![└├│])"
    r"(?:[\w.-]{1,60} \([^)]{1,60}\)|[\w.\[\]-]{1,60}\{[^}]{1,200}\}\S{0,60}[^\s,]|\S{1,80}[^\s,]))",
    re.MULTILINE,
)
# A line of the tree that libmamba draws: how deep it is, and what it tells of a package.
_BRANCH: Final = re.compile(r"^([│ ]*)[├└]─ (.{1,300})$", re.MULTILINE)
_GIVEN: Final = re.compile(r"(.+?)(?: \[[^\]]*\])? is requested(?: and can be installed)?\b")
_ASKS: Final = re.compile(
    r"(.+?) ?,? (?:would require|which requires|is (?:not installable|un\w+) because it requires)$"
)
_CLASHES: Final = re.compile(r"(.+?) ?, which (?:conflicts with|does not exist|cannot be installed)")
_BRANCH_WIDTH: Final = 3  # columns


def read_python(audience: Audience, kind: str) -> Mapping[str, str]:
    """Return what the log shows of the environment that Python builds in, and of the Python itself."""
    text = audience.text
    line = _source_line(text) if kind == "python-syntax" else ""
    minors = [int(minor) for found in _PYTHON_PATH.findall(text) for minor in found if minor]
    since = next((since for since, form in _SYNTAX if form.search(line)), "")
    older = not minors or int(since.partition(".")[2] or 0) > max(minors)
    return {
        "isolated": audience.isolated,
        "bound": _BOUND[audience.isolated],
        "syntax since": since if older else "",
        "for python three": since if since == "3" and older else "",
        "for python two": line.strip() if not since and _OF_TWO.search(line) else "",
        "old name": "async" if _OLD_NAME.search(line) else "",
        **_offered(f"{text}\n{audience.of_pip}"),
    }


def find_culprit(line: str, text: str) -> Mapping[str, str]:
    """Return which of the packages that build does not fit the script that uses it, and a bound for it.

    Only the message, or the last frame of its traceback, shows that: all that a build is given is new.

    Args:
        line: the message.
        text: the lines of the error.
    """
    frames = _IN_PACKAGE.findall(text)
    shown = (line, frames[-1] if frames else "")
    met = ((name, bound) for place in shown for name, own, bound in _BUILT_WITH if own.search(place))
    name, bound = next(met, ("", ""))
    return {"culprit": name, "culprit bound": bound}


def _source_line(text: str) -> str:
    """Return the source line that Python cannot read; "" where it is another fault than its syntax."""
    lines = _SOURCE_LINE.findall(text)
    return lines[-1][1] if lines and _SYNTAX_ERROR.search(text) else ""


def _is_asked(version: str, text: str) -> bool:
    """Return whether pip was asked for this version; it lists all that are for another Python."""
    asked = _ASKED.search(text)
    parsed = parse_version(version)
    try:
        return bool(asked and parsed and SpecifierSet(asked[1]).contains(parsed, prereleases=True))
    except InvalidSpecifier:
        return False


def _offered(text: str) -> Mapping[str, str]:
    """Return the versions that pip found, and the Python that it left others out for."""
    found = _OFFERED.search(text)
    versions = [each.strip() for each in found[1].split(",")] if found else []
    versions = [] if versions in ([], ["none"]) else versions
    few = ", ".join(versions) if len(versions) <= _FEW else f"{versions[0]} to {versions[-1]}"
    others = [each for each in _OTHER_PYTHON.findall(text) if _is_asked(each[0], text)]
    return {
        "offered": few,
        "none offered": "none" if found and found[1].strip() == "none" else "",
        "other python": f"{others[-1][0]} wants Python {others[-1][1].strip()}" if others else "",
        "old metadata": "pip<24.1" if re.search(r"invalid metadata|use pip<24\.1", text) else "",
    }


def join_demands(text: str) -> Mapping[str, str]:
    """Return what packages together ask of the first that pip left in another version, if that differs."""
    found = _DEMAND.findall(text)
    bounds = tuple(dict.fromkeys(bound for package, bound in found if package == found[0][0]))
    joined = f"{found[0][0]}{','.join(bounds)}" if len(bounds) > 1 else ""
    clash = sum(bound.startswith("==") and "*" not in bound for bound in bounds) > 1
    return {"demands": "" if clash else joined, "demands clash": joined if clash else ""}


def list_wants(text: str) -> Sequence[str]:
    """Return who wants what, in the words of the solver, each once; of a tree only what clashes."""
    told = (found[1] or found[2] for found in _WANTS.finditer(text))
    return tuple(dict.fromkeys((*told, *_read_tree(text))))


def _read_tree(text: str) -> Iterator[str]:
    """Yield what is asked for, and which packages want something else."""
    above: dict[int, str] = {}
    wanted: dict[str, dict[str, None]] = {}
    for branch in _BRANCH.finditer(text):
        column = len(branch[1])
        said = branch[2].strip()
        if asks := _ASKS.match(said):
            above[column] = _package(asks[1])
        elif given := _GIVEN.match(said):
            yield f"{_package(given[1])} is asked for"
        elif (clashes := _CLASHES.match(said)) and column - _BRANCH_WIDTH in above:
            wanted.setdefault(above[column - _BRANCH_WIDTH], {})[_package(clashes[1])] = None
    yield from (f"{name} wants {' or '.join(wants)}" for name, wants in wanted.items())


def _package(text: str) -> str:
    """Return a package and its version, without the build that conda names behind it."""
    return " ".join(text.rstrip(" ,").split()[:2])

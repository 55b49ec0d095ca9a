"""Word a fix for who reads it: what the log allows of it, in its system's words, behind what was done.

What is typed on Linux works on no other system, and advice that was tried is no way out by itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from torchbuild_tasks.catalog.diagnosis import PremiseRow, SystemWordRow
from torchbuild_tasks.catalog.match import parse_version
from torchbuild_tasks.features.diagnosis.audience import Audience
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.text.words import with_and

_SENTENCE: Final = re.compile(r"(?<=[.;]) ")
# An option, a setting and a bound, as fixes have them. What only asks a program for something is no way out.
_OPTION: Final = re.compile(r"(?<![\w-])--(?!version\b|help\b|verbose\b|info\b|format\b)[a-z][\w-]{4,40}")
_SETTING: Final = re.compile(r"(?<![\w=-])(?:-D)?([A-Z][A-Z0-9_]{3,40})=([^\s,;()']{1,80}\w)")
_BOUND: Final = re.compile(r"(?<![\w'])'([A-Za-z][\w.-]{0,60})((?:[<>=!~]=?[\w.*]{1,20},?){1,4})'")
_LEAST: Final = re.compile(
    r"\b(CUDA|Python|torch|PyTorch|CMake|NumPy|Triton) (\d{1,3}\.\d{1,3})"
    r"(?= or newer\b|(?<=CUDA \d\d\.\d) on\b)"
)
_BY_SYSTEM: Final = re.compile(
    r"\b(?:apt|apt-get|dnf|zypper|apk|pacman) (?:install|add|-S) ([\w.+-]+(?: [a-z][\w.+-]+)*)"
)

# A package that is to be installed as it is found, of any version.
_INSTALLS: Final = re.compile(r"\bpip install ([A-Za-z][\w.-]{0,60}\w)(?=[\s,;:)]|\.(?:\s|$)|$)")

# What is installed by hand, which the build of a package does not see.
_BY_HAND: Final = re.compile(r"\b(?:pip|apt|dnf|conda|zypper|brew) install\b|\buv (?:pip|venv)\b|-m venv\b")
# What cmd.exe takes for a letter, and < > | within it for its own signs.
_SCRIPT: Final = re.compile(r"(?<= -c )'([^'\n]{1,300})'")
_QUOTED_BOUND: Final = re.compile(r"(?<![\w'])'([\w.\[\],-]{1,80}[<>=!~][^'\n]{1,80})'(?![\w'])")
# What the words of two systems become in those of one.
_TWICE: Final = re.compile(r"(?<![\w$%])([A-Z][A-Z_]{2,40})(?:(?:,| or| and|, or|, and) \1(?![\w=]))+")
# What Visual Studio's generator passes over. Source: CMake's manual (CMAKE_BUILD_TYPE,
# CMAKE_GENERATOR_TOOLSET, CMAKE_<LANG>_COMPILER_LAUNCHER, CMAKE_CUDA_HOST_COMPILER).
_BUILD_TYPE: Final = re.compile(r"(?<![\w-])(?:-D ?)?CMAKE_BUILD_TYPE(?::\w{1,12})?=(\w+)")
_COMPILER: Final = re.compile(
    r"(?<![\w/.{-])(?:-D ?)?(?:CC|CXX|CUDACXX|CUDAHOSTCXX|CMAKE_\w{1,6}_COMPILER(?:_LAUNCHER)?"
    r"|CMAKE_CUDA_HOST_COMPILER)(?![\w.])"
)
# What PyPI and torch's index have for servers, and not for the GPU of a Jetson.
_FOR_SERVERS: Final = re.compile(r"download\.pytorch\.org/whl|\bnvidia-\w{3,12}-cu1\d")
_OF_JETPACK: Final = (
    "This is a Jetson: up to JetPack 6 the wheels of PyPI and of torch's index are not for its GPU, but"
    " NVIDIA's for this very JetPack are, whose CUDA and cuDNN are JetPack's own."
)
_NO_NINJA: Final = (
    "Visual Studio's generator builds in this log, which passes over variables of compilers and launchers:"
    " for these configure anew with -G Ninja in the x64 Native Tools prompt; its own are chosen by -T"
    " (-T version=14.38, -T cuda=12.4)."
)


def list_done(fix: str, audience: Audience) -> Iterator[str]:
    """Yield what the log shows as done of a fix: what was given, and what is here already."""
    words = audience.given
    given = [each for each in _OPTION.findall(fix) if each in words]
    given += [f"{name}={value}" for name, value in _SETTING.findall(fix) if f"{name}={value}" in words]
    given += [f"{name}{bound}" for name, bound in _BOUND.findall(fix) if f"{name}{bound}" in words]
    if given:
        yield f"This log shows {with_and(given)} in a command already, and that alone was not enough."
    bounds = () if audience.isolated else _BOUND.findall(fix)
    here = [each for name, bound in bounds if (each := _is_here(name, bound, audience.versions))]
    if here:
        yield f"This log shows {with_and(here)}, which such a bound allows already."
    names = () if audience.isolated else dict.fromkeys(_INSTALLS.findall(fix))
    for name in names:
        if version := audience.versions.get(canonicalize_name(name), ""):
            yield (
                f"This log shows {name} {version} as installed: where it is not found all the same, another"
                " Python runs than the one that has it (python -m pip --version names pip's)."
            )
    for name, least in _least(fix).items():
        found = parse_version(_version_of(name, audience))
        if found and found >= least:
            yield f"The {name} of this log is {found} already."
    had = [each for each in " ".join(_BY_SYSTEM.findall(fix)).split() if each in audience.installed]
    if had:
        yield f"This log shows {with_and(had)} as installed."


def _least(fix: str) -> Mapping[str, Version]:
    """Return what a fix asks for as the least, the newest of each name."""
    found: dict[str, Version] = {}
    for name, text in _LEAST.findall(fix):
        if version := parse_version(text):
            found[name] = max(version, found.get(name, version))
    return found


def _version_of(name: str, audience: Audience) -> str:
    if name == "CUDA":
        return audience.cuda
    if name == "Python":
        return audience.python.rstrip("t")
    package = "torch" if name == "PyTorch" else canonicalize_name(name)
    return audience.versions.get(package, "")


def add_done(fix: str, audience: Audience, recipe: str = "") -> str:
    """Return a fix behind what the log shows as done of it, and where a package's recipe takes it.

    Args:
        fix: a sentence, or several.
        audience: what the log shows.
        recipe: where the recipe of this build names what it needs; "" for no recipe.
    """
    by_hand = recipe and _BY_HAND.search(fix) and "its recipe names" not in fix
    named = (
        f"A package is built in an environment of its own, so what is to be installed is named in {recipe}."
    )
    if audience.msbuild:
        fix = _BUILD_TYPE.sub(r"cmake --build BUILD --config \1", fix)
    other = audience.msbuild and _COMPILER.search(fix) and not re.search(r"--config\b|\bunset\b", fix)
    jetson = "jetson" in audience.said and "JetPack" not in fix and _FOR_SERVERS.search(fix)
    before = (
        *((_OF_JETPACK,) if jetson else ()),
        *list_done(fix, audience),
        *((named,) if by_hand else ()),
    )
    return " ".join((*before, fix, *((_NO_NINJA,) if other else ()))) if fix else ""


def _is_here(name: str, bound: str, versions: Mapping[str, str]) -> str:
    """Return the name with its version, where the version that the log shows is within the bound."""
    version = parse_version(versions.get(canonicalize_name(name), ""))
    try:
        within = version is not None and SpecifierSet(bound.rstrip(",")).contains(version, prereleases=True)
    except InvalidSpecifier:
        return ""
    return f"{name} {version}" if within else ""


def entitle(fix: str, machine: Machine, known: Mapping[str, str]) -> str:
    """Return a fix without what the log speaks against, and with what holds in its place.

    Args:
        fix: of a row, a kind or a look-up.
        machine: of the log, whose catalog has the rows.
        known: what was read off the error, by its names in sentences.
    """
    for row in machine.catalog.premise:
        if _compiled(row.typed).search(fix) and any(_is_so(name, machine, known) for name in row.against):
            fix = _apply(row, fix, machine, known)
    return fix


def _is_so(name: str, machine: Machine, known: Mapping[str, str]) -> bool:
    return bool(known.get(name) or machine.value(name))


def _apply(row: PremiseRow, fix: str, machine: Machine, known: Mapping[str, str]) -> str:
    if row.also:
        return f"{fix} {machine.fill((row.also,), (), known)}"
    if not row.instead:
        return _compiled(row.typed).sub("", fix)
    kept = [part for part in _SENTENCE.split(fix) if not _compiled(row.typed).search(part)]
    return " ".join(filter(None, (" ".join(kept), machine.fill((row.instead,), (), known))))


def translate(system: str, text: str, rows: Sequence[SystemWordRow]) -> str:
    """Return the text of a fix as it is typed on this system.

    Args:
        system: linux, windows or mac; "" where it is not known, which changes nothing.
        text: of a fix.
        rows: of data/system_words.toml.
    """
    for row in rows:
        other = {"windows": row.windows, "mac": row.mac}.get(system, "")
        if other:
            text = _compiled(row.unix).sub(other, text)
    if system in ("windows", "mac"):
        text = _TWICE.sub(r"\1", text)
    if system != "windows":
        return text
    text = _SCRIPT.sub(_quoted, text)
    return _QUOTED_BOUND.sub(r'"\1"', text)


def _quoted(script: re.Match[str]) -> str:
    inner = script[1].replace('"', "'")
    return f'"{inner}"'


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)

"""Decide what is installed into the Python of a build: which packages, by which command, and from where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    NormalizedName,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from torchbuild_tasks.catalog.match import admits, parse_requirement, series
from torchbuild_tasks.model import Command, Finding, Python
from torchbuild_tasks.plan.index import has_folder, no_index, unset, uv_of
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide
from torchbuild_tasks.text.words import first_few

EXTRA: Final = "PYTORCH_EXTRA_INSTALL_REQUIREMENTS"
_WINDOWS_MACHINES: Final = {"x86_64": "AMD64", "aarch64": "ARM64"}  # platform.machine() there

_BUILDERS = ("pip", "setuptools", "wheel", "cmake", "ninja")


def list_requirements(
    question: Question, installed: Python | None = None, also: tuple[str, ...] = (), *, ours: bool = True
) -> tuple[str, ...]:
    """Return all that the build and its companions need in the target Python (PEP 508).

    Also what the built torch asks for: the build itself installs none of it. In an environment of `ours`
    also what the checkout asks its builders to have, for tests and wheels.

    The rows' pins are added to what the checkout requires, so that both apply. CMake and Ninja are programs:
    one that fits may come from the environment's own packages, which stand first on PATH, or from the
    machine; else from PyPI. Companions get one that fits torch, too: torchaudio asks for any
    CMake, and torch 2.6 does not configure with the newest.
    """
    wheel = question.era == "scikit-build-core" and question.value("mode", "develop") == "wheel"
    texts = [*question.row.requires, *(["build"] if wheel else [])]
    programs = {"cmake": SpecifierSet(question.row.cmake), "ninja": SpecifierSet()}
    for name in programs:
        programs[name] &= gate(question, name)
    tree, left_out = question.facts.tree, {row.name for row in question.catalog.left_out}
    named_by_tree = {requirement.name for text in tree.requires if (requirement := parse_requirement(text))}
    for text in (*tree.requires, *run_time(question), *(tree.asks if ours else ())):
        requirement = parse_requirement(text)
        if requirement and requirement.name in programs:
            programs[requirement.name] &= requirement.specifier
        elif not requirement or canonicalize_name(requirement.name) not in left_out:
            texts.append(text)
    for text in also:
        requirement = parse_requirement(text)
        if requirement and requirement.name in programs:
            programs[requirement.name] &= requirement.specifier
        else:
            texts.append(text)
    have = _packages(installed)
    for name, specifier in programs.items():
        # `python -m build --no-isolation` insists on the packages that the tree names.
        insisted = wheel and name in named_by_tree
        if insisted or name in have or not _on_machine(question, name, str(specifier)):
            texts.append(f"{name}{specifier}")
    return tuple(dict.fromkeys(texts))


def run_time(question: Question) -> tuple[str, ...]:
    """Return what the built torch asks for (PEP 508), with what a variable of PyTorch's own adds."""
    more = decide(question, EXTRA)
    added = (text.strip() for text in (more.value if more else "").split("|"))
    return (*(question.facts.tree.depends or ()), *filter(None, added))


def gate(question: Question, name: str) -> SpecifierSet:
    """Return the releases of a build tool that build torch on this system, by the rows."""
    rows = [row for row in question.catalog.gate if row.name == name]
    fits = [row.fits for row in rows if row.os in ("", question.facts.host.os)]
    return SpecifierSet(",".join(fits))


def parse_if_named(text: str, name: str) -> Requirement | None:
    """Return the requirement (PEP 508) where it is one of this package."""
    found = parse_requirement(text)
    return found if found and canonicalize_name(found.name) == name else None


def _packages(python: Python | None) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in python.packages.items()} if python else {}


def _on_machine(question: Question, name: str, specifier: str) -> bool:
    tool = question.facts.tool(name)
    if tool is None or tool.by_any_python:  # the environment's own python, which has no such package
        return False
    return admits(specifier, tool.version) is True


def missing_requirements(
    question: Question,
    installed: Python | None,
    base: Python,
    also: tuple[str, ...] = (),
    *,
    ours: bool = True,
) -> tuple[str, ...]:
    """Return what `required` and `also` name and the environment lacks (a new venv lacks all of it).

    Every requirement of a missing package is returned: pip gets these alone, and must respect all of them.
    With --from-wheel torch needs nothing to be built, and of `required` only its bounds for `also` count;
    torch_python, compiled against the wheel's libraries, needs all of it.
    """
    have = _packages(installed)
    markers = _markers(question, base)
    wanted: list[tuple[str, str]] = []
    lacked = set()
    needed = list_requirements(question, installed, also, ours=ours)
    if question.request.from_wheel and not question.request.mixed:
        names = {canonicalize_name(each.name) for text in also if (each := parse_requirement(text))}
        needed = tuple(text for text in needed if any(parse_if_named(text, name) for name in names))
    for text in needed:
        requirement = parse_requirement(text)
        if requirement is None or _built_in(question, requirement.name, base):
            continue
        if requirement.marker and not requirement.marker.evaluate(markers):
            continue
        name = canonicalize_name(requirement.name)
        wanted.append((name, text))
        if (version := have.get(name)) is None or not admits(str(requirement.specifier), version):
            lacked.add(name)
    # PyTorch's own build is started by pip, which a venv of uv's has not.
    pip = ("pip",) if installed and "pip" not in have and uv_of(question) else ()
    return tuple(dict.fromkeys((*(text for name, text in wanted if name in lacked), *pip)))


def replaced(python: Python, missing: tuple[str, ...]) -> tuple[str, ...]:
    """Return the installed packages whose major version does not fit, each with what is wanted.

    Build tools (setuptools) are left out: nothing that runs there depends on them.
    """
    have = {name: version for name, version in _packages(python).items() if name not in _BUILDERS}
    wanted = [each for text in missing if (each := parse_requirement(text))]
    return tuple(
        f"{each.name} {have[canonicalize_name(each.name)]} (wanted: {each.specifier})"
        for each in wanted
        if (version := have.get(canonicalize_name(each.name)))
        and not admits(str(each.specifier), f"{version.partition('.')[0]}.0")
    )


def _built_in(question: Question, name: str, python: Python) -> bool:
    return any(
        row.name == canonicalize_name(name) and admits(row.python, python.version)
        for row in question.catalog.backport
    )


def _markers(question: Question, python: Python) -> dict[str, str]:
    """Return PEP 508's markers of the machine that is planned for, which may be another one."""
    host = question.facts.host
    windows = host.os == "windows"
    markers = {
        "os_name": "nt" if windows else "posix",
        "platform_machine": _WINDOWS_MACHINES.get(host.arch, host.arch) if windows else host.arch,
        "platform_system": "Windows" if windows else "Linux",
        "sys_platform": "win32" if windows else "linux",
    }
    if python.version:
        markers |= {"python_full_version": python.version, "python_version": series(python.version)}
    return markers


def install_command(question: Question, target: str, missing: tuple[str, ...]) -> Command | None:
    """Return the command that brings in what is missing; None when nothing is."""
    if not missing:
        return None
    argv = (*installer(question, target), *wheel_options(question), *missing)
    return Command(
        argv=argv, cwd=question.facts.tree.root, because="what the build imports and is not installed"
    )


def installer(question: Question, target: str) -> tuple[str, ...]:
    """Return the beginning of a command line that installs: uv, which takes a tenth of the time, else pip."""
    if uv := uv_of(question):
        return (uv, "pip", "install", "--python", target)
    return (target, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")


def wheel_options(question: Question) -> tuple[str, ...]:
    """Return the options that name other places of packages than the index; pip and uv read the same ones."""
    wheels = question.value("wheels", "")
    only = ("--no-index",) if question.given("offline") else ()
    return (*only, *(("--find-links", wheels) if wheels else ()))


def check_offline(question: Question, missing: tuple[str, ...], python: Python) -> tuple[Finding, ...]:
    """Report all that is missing where nothing may be downloaded; of a folder, what it lacks for a Python."""
    wheels, brought = question.value("wheels", ""), question.facts.brought
    off = None if question.given("offline") else no_index(question)
    if not missing or not (question.given("offline") or off) or (wheels and brought is None):
        return ()
    if off and has_folder(question):
        return ()
    lacks = "the build needs in its Python"
    then = "use --wheels wheels here"
    others: tuple[str, ...] = ()
    if wheels and brought:
        from torchbuild_tasks.plan.wheel_tags import takes

        usable = tuple(name for name in brought.wheels if takes(name, python, question.facts.host))
        missing = missing_from_files(usable, missing)
        others = tuple(name for name in brought.wheels if name not in usable and _is_one_of(name, missing))
        lacks = f"{wheels} lacks what {lacks}"
        then = "put the files into that folder"
    if not missing:
        return ()
    missing = one_each(missing)
    first = f"{off.name}={off.value} ({off.because}), so no index is asked" if off else "--offline"
    text = f"{first}, and {lacks}: {', '.join(missing)}"
    where = f"Where there is a network, with Python {series(python.version)} on such a system"
    if others:
        text += f" ({first_few(others)}: for another Python or system)"
    fix = f"{where}: {question.line('pip', 'download', '--dest', 'wheels', *missing)}; then {then}"
    if off is None:
        return (Finding.error("requirements", text, fix),)
    say = unset(question, off.name).rstrip(".")
    fix = f"{say}, if an index can be asked. {fix}"
    if off.name == "UV_OFFLINE":  # what its cache holds, which is not looked at, it takes
        return (Finding.warn("requirements", f"{text}, unless uv's cache has it", fix),)
    return (Finding.error("requirements", text, fix),)


def missing_from_files(names: Iterable[str], requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements (PEP 508) for which no file has the name and a version that fits."""
    there = [found for name in names if (found := _distribution(name))]
    missing = []
    for text in requirements:
        if (wanted := parse_requirement(text)) is None:
            continue
        name = canonicalize_name(wanted.name)
        if not any(name == own and wanted.specifier.contains(v, prereleases=True) for own, v in there):
            missing.append(text)
    return tuple(dict.fromkeys(missing))


def one_each(texts: Iterable[str]) -> tuple[str, ...]:
    """Return requirements (PEP 508) that count on a machine, one for each package, without their markers."""
    joined: dict[str, Requirement] = {}
    others = []
    for text in texts:
        if (each := parse_requirement(text)) is None or each.url:
            others.append(text)
            continue
        one = joined.setdefault(canonicalize_name(each.name), Requirement(each.name))
        one.extras |= each.extras
        one.specifier &= each.specifier
    return (*map(str, joined.values()), *others)


def _is_one_of(name: str, requirements: tuple[str, ...]) -> bool:
    """Say whether a file is one that is wanted, by name and version."""
    return len(missing_from_files((name,), requirements)) < len(requirements)


def _distribution(name: str) -> tuple[NormalizedName, Version] | None:
    try:
        return parse_wheel_filename(name)[:2]
    except InvalidWheelFilename:
        pass
    try:
        return parse_sdist_filename(name)
    except InvalidSdistFilename:
        return None

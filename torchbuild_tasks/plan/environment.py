"""Which requirements a folder of wheels cannot satisfy, told by the names of its files alone."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
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

from torchbuild_tasks.catalog.match import admits, entry_row, series
from torchbuild_tasks.model import Choice, Command, Environment, Finding, Python
from torchbuild_tasks.plan.packages import install_line
from torchbuild_tasks.plan.question import Question


def required(question: Question, installed: Python | None = None, *, ours: bool = True) -> tuple[str, ...]:
    """Return everything the build needs in the target Python, as PEP 508 texts.

    In an environment of `ours` also what the checkout asks its builders to have, for tests and wheels.

    The rows' pins stand beside what the checkout says, so that both hold. CMake and Ninja are programs:
    one that fits may come from the environment's own packages, which stand first on PATH, or from the
    machine; else from PyPI.
    """
    wheel = question.era == "scikit-build-core" and question.value("mode", "develop") == "wheel"
    texts = [*question.row.requires, *(["build"] if wheel else [])]
    programs = {"cmake": SpecifierSet(question.row.cmake), "ninja": SpecifierSet()}
    for name in programs:
        programs[name] &= gate(question, name)
    tree, left_out = question.facts.tree, {row.name for row in question.catalog.left_out}
    named_by_tree = {requirement.name for text in tree.requires if (requirement := _parsed(text))}
    for text in (*tree.requires, *(tree.asks if ours else ())):
        requirement = _parsed(text)
        if requirement and requirement.name in programs:
            programs[requirement.name] &= requirement.specifier
        elif not requirement or canonicalize_name(requirement.name) not in left_out:
            texts.append(text)
    have = _packages(installed)
    for name, specifier in programs.items():
        # `python -m build --no-isolation` insists on the packages that the tree names.
        insisted = wheel and name in named_by_tree
        if insisted or name in have or not _on_machine(question, name, str(specifier)):
            texts.append(f"{name}{specifier}")
    return tuple(dict.fromkeys(texts))


def gate(question: Question, name: str) -> SpecifierSet:
    """Return the releases of a build tool that build torch on this system, as far as rows speak of it."""
    rows = [row for row in question.catalog.gate if row.name == name]
    fits = [row.fits for row in rows if row.os in ("", question.facts.host.os)]
    return SpecifierSet(",".join(fits))


def _parsed(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _packages(python: Python | None) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in python.packages.items()} if python else {}


def _on_machine(question: Question, name: str, specifier: str) -> bool:
    return any(
        tool.name == name and tool.path and admits(specifier, tool.version) for tool in question.facts.tools
    )


def missing_requirements(
    question: Question,
    installed: Python | None,
    base: Python,
    also: tuple[str, ...] = (),
    *,
    ours: bool = True,
) -> tuple[str, ...]:
    """Return what `required` and `also` name and the environment lacks (a new venv lacks all of it)."""
    have = _packages(installed)
    markers = _markers(question, base)
    missing = []
    for text in (*required(question, installed, ours=ours), *also):
        requirement = _parsed(text)
        if requirement is None or _built_in(question, requirement.name, base):
            continue
        if requirement.marker and not requirement.marker.evaluate(markers):
            continue
        version = have.get(canonicalize_name(requirement.name))
        if version is None or not admits(str(requirement.specifier), version):
            missing.append(text)
    return tuple(missing)


def _built_in(question: Question, name: str, python: Python) -> bool:
    return any(
        row.name == canonicalize_name(name) and admits(row.python, python.version)
        for row in question.catalog.backport
    )


def _markers(question: Question, python: Python) -> dict[str, str]:
    """PEP 508's markers of the machine that is planned for, not of the one that plans."""
    host = question.facts.host
    windows = host.os == "windows"
    markers = {
        "os_name": "nt" if windows else "posix",
        "platform_machine": host.arch,
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
    argv = (*_installer(question, target), *wheel_options(question), *missing)
    return Command(
        argv=argv, cwd=question.facts.tree.root, because="what the build imports and does not find"
    )


def _installer(question: Question, target: str) -> tuple[str, ...]:
    """uv where there is one, which takes a tenth of the time, else the pip of the environment."""
    uv = next((tool.path for tool in question.facts.tools if tool.name == "uv" and tool.path), None)
    if uv:
        return (uv, "pip", "install", "--python", target)
    return (target, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")


def wheel_options(question: Question) -> tuple[str, ...]:
    """Return where packages come from beside the index, or instead of it; pip and uv read the same words."""
    wheels = question.value("wheels", "")
    only = ("--no-index",) if question.given("offline") else ()
    return (*only, *(("--find-links", wheels) if wheels else ()))


def check_offline(question: Question, missing: tuple[str, ...]) -> tuple[Finding, ...]:
    """Report all that is missing where nothing may be downloaded and no folder is named."""
    if not missing or not question.given("offline") or question.value("wheels", ""):
        return ()
    text = f"--offline, and the build needs in its Python: {', '.join(missing)}"
    command = f"pip download --dest wheels {' '.join(map(repr, missing))}"
    fix = f"Where there is a network: {command}; then say --wheels wheels here"
    return (Finding(id="requirements", status="error", text=text, fix=fix),)


# ---------------- which Python gets torch, and what has to be installed into it before the build


class ChosenPython(msgspec.Struct, frozen=True, kw_only=True):
    """The interpreter that was chosen, the environment on top of it, and the reasons.

    `target` is the one that gets torch: the chosen one itself, or that of our venv once it is there.
    """

    python: Python | None
    target: Python | None
    environment: Environment
    choice: Choice
    missing: tuple[str, ...] = ()


def fits(question: Question, python: Python) -> bool | None:
    """Say whether this torch can be built for this interpreter; None when its version is unknown."""
    if python.problem or (python.implementation and python.implementation.lower() != "cpython"):
        return False
    return admits(question.row.python, python.version)


def choose_python(question: Question, also: tuple[str, ...] = ()) -> ChosenPython:
    """Take the first interpreter that fits, in the order in which they were found.

    `also` are requirements (PEP 508) beside those of the build itself.
    """
    found = _asked_for(question)
    python = next((p for p in found if fits(question, p)), None)
    python = python or next((p for p in found if not p.problem), None) or (found[0] if found else None)
    if python is None:
        nothing = Choice(name="python", value="", because="no interpreter was found")
        return ChosenPython(python=None, target=None, environment=Environment(python=""), choice=nothing)
    given = question.given("python")
    asked = f"{given[2]}; " if given else ""
    because = f"{asked}{python.found_via}, Python {python.version}"
    target = _target(question, python)
    if target != python.executable:
        because = f"a venv of its own on {python.executable} ({because})"
    installed = next((p for p in question.facts.pythons if p.executable == target), None)
    foreign = target == python.executable and not python.managed
    missing = missing_requirements(question, installed, python, also, ours=not foreign)
    environment = Environment(
        python=target,
        version=python.version,
        create=None if installed else _create(question, python, target),
        remove=_remove(question, installed),
        install=install_command(question, target, missing),
        install_options=wheel_options(question),
        foreign=foreign,
    )
    choice = Choice(name="python", value=target, because=because, source=given[1] if given else "default")
    return ChosenPython(
        python=python, target=installed, environment=environment, choice=choice, missing=missing
    )


def _asked_for(question: Question) -> tuple[Python, ...]:
    """Return the interpreters that --python means; a dump of another machine holds all that were found."""
    given = question.given("python")
    if not given:
        return question.facts.pythons
    meant = tuple(p for p in question.facts.pythons if _is_meant(str(given[0]), p))
    # On this machine only what was asked for was looked at, perhaps under another name.
    return meant if meant or question.request.facts else question.facts.pythons


def _is_meant(wanted: str, python: Python) -> bool:
    if wanted.replace(".", "").isdecimal():
        return f"{python.version}.".startswith(f"{wanted}.")
    return wanted in (python.executable, python.prefix)


def _target(question: Question, python: Python) -> str:
    """Return the interpreter that gets torch: an environment as it is, but a named build has its own."""
    shared = question.settings.build is not None and question.given("python") is None and not python.managed
    if python.version is None or (python.environment in ("venv", "conda") and not shared):
        return python.executable
    folder = f"venv-{series(python.version)}"
    if question.facts.host.os == "windows":
        return question.join(".torchbuild", folder, "Scripts", "python.exe")
    return question.join(".torchbuild", folder, "bin", "python")


def _create(question: Question, python: Python, target: str) -> Command:
    folder = target.rsplit(question.separator, 2)[0]
    argv = (python.executable, "-m", "venv", folder)
    return Command(
        argv=argv, cwd=question.facts.tree.root, because="the machine's own Python is left as it is"
    )


def _remove(question: Question, installed: Python | None) -> Command | None:
    """setup.py develop leaves an installed torch where it is, and that one is imported first."""
    root = question.facts.tree.root
    entry = entry_row(question.catalog, question.era, question.value("mode", "develop"), question.version)
    if "develop" not in entry.argv:
        return None
    if installed is None or "torch" not in installed.packages:
        return None
    previous = question.facts.tree.previous
    era = previous.inputs.get("era", question.era) if previous else question.era
    # What scikit-build-core leaves for imports goes to this checkout too, and stands before setup.py's.
    if installed.torch_from == root and era == question.era:
        return None
    argv = (installed.executable, "-m", "pip", "uninstall", "--yes", "torch")
    origin = installed.torch_from or "a package"
    because = (
        f"torch {installed.packages['torch']} ({origin}) is installed there and would be imported instead"
    )
    return Command(argv=argv, cwd=root, because=because)


def check_python(question: Question, chosen: ChosenPython) -> tuple[Finding, ...]:
    """Check that the chosen interpreter can get this torch."""
    python = chosen.python
    if python is None:
        fix = "Install Python, or name one: --python PATH"
        return (Finding(id="python", status="error", text="no Python interpreter was found", fix=fix),)
    if python.problem:
        text = f"{python.executable} ({python.found_via}) cannot be used: {python.problem}"
        return (
            Finding(id="python", status="error", text=text, fix="Name a working one with --python PATH."),
        )
    return (
        *_check_version(question, python),
        *_check_parts(question, python, chosen),
        *check_offline(question, chosen.missing),
    )


def _check_version(question: Question, python: Python) -> tuple[Finding, ...]:
    findings = []
    name = f"{python.implementation or 'Python'} {python.version} ({python.executable})"
    if python.bits == 32:
        text = f"{name} is a 32-bit interpreter; PyTorch builds for 64-bit only"
        findings.append(
            Finding(id="python-bits", status="error", text=text, fix="Name a 64-bit one: --python PATH")
        )
    wanted = f"torch {question.row.version} builds for Python {question.row.python}"
    fit = fits(question, python)
    if fit is None:
        text = f"{python.executable} does not say its version; {wanted}"
        findings.append(Finding(id="python", status="unknown", text=text))
    elif not fit:
        others = [p for p in question.facts.pythons if fits(question, p)]
        fix = f"Use {others[0].executable}" if others else "Install a fitting one and name it: --python PATH"
        findings.append(Finding(id="python", status="error", text=f"{name} does not fit: {wanted}", fix=fix))
    else:
        findings.append(Finding(id="python", status="ok", text=f"{name}: {wanted}"))
    return tuple(findings)


def _check_parts(question: Question, python: Python, chosen: ChosenPython) -> tuple[Finding, ...]:
    findings = []
    minor = series(python.version)
    if python.headers is False and not question.facts.tree.sample:
        text = f"{python.executable} has no headers: {python.include}/Python.h does not exist"
        findings.append(
            Finding(id="python-headers", status="error", text=text, fix=_install_part(question, minor, "dev"))
        )
    creates = chosen.environment.create is not None
    if creates and python.venv is False:
        text = f"{python.executable} cannot make a venv: its venv or ensurepip module is missing"
        findings.append(
            Finding(id="python-venv", status="error", text=text, fix=_install_part(question, minor, "venv"))
        )
    if not creates and "pip" not in python.packages:
        text = f"{python.executable} has no pip"
        findings.append(
            Finding(id="python-pip", status="error", text=text, fix=f"{python.executable} -m ensurepip")
        )
    return tuple(findings)


def _install_part(question: Question, minor: str, part: str) -> str:
    """Debian has the headers and venv apart, others the headers; the installers for Windows have both."""
    if question.facts.host.os == "windows":
        return (
            f"Install Python {minor} from python.org (or conda), which has them, and name it: --python PATH"
        )
    package = f"python {'headers' if part == 'dev' else part}-{minor}"
    line = install_line(question.facts, question.catalog, package)
    return line or f"Install what this distribution calls python{minor}-{part}."


# ----------------


def lacking(names: Iterable[str], requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements (PEP 508) for which no file has the name and a version that fits.

    Whether a wheel is for this Python and system is left to the installer, which says so.
    """
    there = [found for name in names if (found := _distribution(name))]
    missing = []
    for text in requirements:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue
        name = canonicalize_name(wanted.name)
        if not any(name == own and wanted.specifier.contains(v, prereleases=True) for own, v in there):
            missing.append(text)
    return tuple(missing)


def _distribution(name: str) -> tuple[NormalizedName, Version] | None:
    try:
        return parse_wheel_filename(name)[:2]
    except InvalidWheelFilename:
        pass
    try:
        return parse_sdist_filename(name)
    except InvalidSdistFilename:
        return None

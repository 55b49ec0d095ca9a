"""Choose the Python that gets torch, its environment, and the commands that make that one fit for a build."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from torchbuild_tasks.catalog.match import admits, entry_row, series
from torchbuild_tasks.model import Choice, Command, Environment, Finding, Python
from torchbuild_tasks.plan.index import check_settings, uv_of
from torchbuild_tasks.plan.machine_tools import better, check_better, check_own
from torchbuild_tasks.plan.packages import install_line, with_conda
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.requirements import (
    check_offline,
    install_command,
    installer,
    missing_requirements,
    replaced,
    wheel_options,
)
from torchbuild_tasks.text.paths import names_same
from torchbuild_tasks.text.words import as_program, as_word
from torchbuild_tasks.values import replace


class ChosenPython(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen interpreter, the environment made from it, and the reasons.

    `target` is the one that gets torch: the chosen one itself, or that of our venv once it is there.
    """

    python: Python | None
    target: Python | None
    environment: Environment
    choice: Choice
    missing: tuple[str, ...] = ()
    better: tuple[str, ...] = ()


ASCII_LOCALES = ("C", "POSIX")
STORE = "\\WindowsApps\\"
_BEFORE_UV = "<3.8"  # its list begins there (`uv python list --all-versions` of 0.13.9)
_NEWEST = 30  # minor versions of Python 3 that are tried against a row
OWN_VENV = (
    "To leave it alone, name a Python that is in no environment, and the checkout gets a venv of its own: "
    "--python PATH"
)


def is_own(question: Question) -> bool:
    """Say whether the environment that gets torch is the tool's own, not one of the user's."""
    python = first_python(question)
    return python is not None and (_target(question, python) != python.executable or python.managed is True)


def target_machine(question: Question) -> str:
    """Return the processor that torch is built for: its Python's, which Windows on Arm may emulate."""
    python = first_python(question)
    return python.machine if python and python.machine else question.facts.host.arch


def brought_cmake(question: Question) -> str | None:
    """Return the version of the CMake in the environment that gets torch; None where it is not there."""
    python = first_python(question)
    target = question.facts.python_at(_target(question, python)) if python else None
    return target.packages.get("cmake") if target else None


def first_python(question: Question) -> Python | None:
    """Return the first interpreter that fits, else the first that runs, else the first at all."""
    found = _find_asked(question)
    answers = [(fits(question, p), p) for p in found]
    ranked = [p for answer in (True, None) for fit, p in answers if fit is answer]
    return next((p for p in (*ranked, *found) if not p.problem), found[0] if found else None)


def fits(question: Question, python: Python) -> bool | None:
    """Say whether this torch can be built for this interpreter; None where no row knows, or its version."""
    if python.problem or _is_other(python) or _is_of_gcc(question, python):
        return False
    row = question.row
    fit = admits(row.python, python.version)
    if fit and python.free_threaded:
        return True if row.free_threaded and admits(row.free_threaded, python.version) else None
    if fit is False and row.python_tried and admits(row.python_tried, python.version):
        return None
    return fit if fit or question.has_row else None


def _is_other(python: Python) -> bool:
    """Say whether it is PyPy or another one that is not CPython."""
    return (python.implementation or "CPython").lower() != "cpython"


def _is_of_gcc(question: Question, python: Python) -> bool:
    """Say whether it is MSYS2's or another that GCC made for Windows; MSVC's say cp312-win_amd64.

    Theirs is cpython-312, or names mingw (msys2-contrib/cpython-mingw issue 119).
    """
    abi = python.abi or ""
    theirs = re.fullmatch(r"cpython-\d+d?t?", abi) or "mingw" in abi
    return question.facts.host.os == "windows" and bool(theirs)


def newest_python(question: Question) -> str:
    """Return the newest series that this torch builds for, and that upstream does not call experimental."""
    row = question.row
    specs = f"{row.python},{row.python_advised}".strip(",")
    known = (f"3.{minor}" for minor in reversed(range(_NEWEST + 1)))
    return next((each for each in known if admits(specs, f"{each}.99")), "3")


def choose_python(question: Question, also: tuple[str, ...] = ()) -> ChosenPython:
    """Take the first interpreter that fits, in the order in which they were found.

    `also` are requirements (PEP 508) on top of those of the build itself.
    """
    python = first_python(question)
    if python is None:
        nothing = Choice(name="python", value="", because="no interpreter was found")
        return ChosenPython(python=None, target=None, environment=Environment(python=""), choice=nothing)
    given = question.given("python")
    asked = f"{given[2]}; " if given else ""
    because = f"{asked}{python.found_via}"
    because += "" if python.problem else f", Python {named_version(python)}"
    target = _target(question, python)
    if target != python.executable:
        because = f"a venv of its own, made with {python.executable} ({because})"
    installed = question.facts.python_at(target)
    foreign = target == python.executable and not python.managed
    missing = missing_requirements(question, installed, python, also, ours=not foreign)
    more = () if foreign else better(question, installed, python)
    brought = install_command(question, target, more)
    environment = Environment(
        python=target,
        version=python.version,
        create=None if installed else _create(question, python, target),
        remove=_remove(question, installed),
        install=install_command(question, target, missing),
        installer=installer(question, target),
        install_options=wheel_options(question),
        better=replace(brought, because=", ".join(more)) if brought else None,
        foreign=foreign,
    )
    choice = Choice(name="python", value=target, because=because, source=given[1] if given else "default")
    return ChosenPython(
        python=python,
        target=installed,
        environment=environment,
        choice=choice,
        missing=missing,
        better=more,
    )


def _find_asked(question: Question) -> tuple[Python, ...]:
    """Return the interpreters that --python means; a dump of another machine holds all that were found."""
    given = question.given("python")
    if not given:
        return question.facts.pythons
    matching = tuple(p for p in question.facts.pythons if _matches(str(given[0]), p))
    if str(given[0])[:1].isdecimal():  # 3.13 means the usual one where both are here
        matching = tuple(sorted(matching, key=lambda p: p.free_threaded))
    # On this machine only what was asked for was looked at, perhaps under another name.
    return matching if matching or question.request.facts else question.facts.pythons


def _matches(wanted: str, python: Python) -> bool:
    """Say whether a version, a path of any spelling or a name on PATH (python3.11) means this interpreter."""
    if number := re.fullmatch(r"(?:python)?(\d+(?:\.\d+)*)(t?)(?:\.exe)?", wanted):
        threaded = bool(number[2]) <= python.free_threaded  # 3.13 alone may be of either kind
        return threaded and f"{python.version}.".startswith(f"{number[1]}.")
    return any(names_same(wanted, path) for path in (python.executable, python.prefix))


def named_version(python: Python) -> str:
    """Return the version as people say it: 3.13.1t is the free-threaded one."""
    return f"{python.version}t, free-threaded" if python.free_threaded else str(python.version)


def _target(question: Question, python: Python) -> str:
    """Return the interpreter that gets torch: an environment as it is.

    But a named build has its own, and so has a build for whose Python nothing was found but this tool's own.
    """
    shared = question.settings.build is not None or python.tool
    shared = shared and question.given("python") is None and not python.managed
    if python.version is None or (python.environment in ("venv", "conda") and not shared):
        return python.executable
    # Two ABIs in one folder would be one venv.
    folder = f"venv-{series(python.version)}{'t' if python.free_threaded else ''}"
    if question.facts.host.os == "windows":
        return question.join(".torchbuild", folder, "Scripts", "python.exe")
    return question.join(".torchbuild", folder, "bin", "python")


def _create(question: Question, python: Python, target: str) -> Command:
    folder = target.rsplit(question.separator, 2)[0]
    argv: tuple[str, ...] = (python.executable, "-m", "venv", folder)
    if uv := uv_of(question):  # with pip, by which PyTorch's own build is started
        argv = (uv, "venv", "--seed", "--no-project", "--python", python.executable, folder)
    return Command(
        argv=argv, cwd=question.facts.tree.root, because="the machine's own Python is left as it is"
    )


def _remove(question: Question, installed: Python | None) -> Command | None:
    """Remove an installed torch, which setup.py develop leaves where it is and which is imported first."""
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


def _is_venv(chosen: ChosenPython) -> bool:
    python = chosen.target or chosen.python
    return not chosen.environment.foreign or (python is not None and python.environment == "venv")


def check_python(question: Question, chosen: ChosenPython) -> tuple[Finding, ...]:
    """Check that the chosen interpreter can get this torch."""
    python, asked = chosen.python, question.value("python", "")
    if "," in asked and (python is None or python.problem or python.executable != asked):
        return (_of_several(question, asked),)
    asked = re.sub(r"^python(?=\d)", "", asked)  # a series by the name of its program
    if python is None:
        wanted = asked if asked[:1].isdecimal() else newest_python(question)
        text, fix = "no Python interpreter was found", _how_to_get(question, wanted)
        if _is_unfit(question, asked):
            text = f"no Python {asked} was found, and torch {question.row.version} builds for Python "
            text += question.row.python
            fitting = next((p for p in question.facts.pythons if fits(question, p)), None)
            fix = _how_to_get(question, newest_python(question))
            fix = f"Use {fitting.executable}: --python {as_word(fitting.executable)}" if fitting else fix
        elif others := [p for p in question.facts.pythons if not p.problem]:
            here = ", ".join(f"{named_version(p)} ({p.executable})" for p in others)
            named = f"Python {asked}" if asked[:1].isdecimal() or not asked else asked
            text = f"no {named} was found; there is {here}"
            fix = f"Name one of these: --python PATH. Or {fix}"
        return (Finding.error("python", text, fix),)
    if python.problem:
        text = f"{python.executable} ({python.found_via}) cannot be used: {python.problem}"
        fix = "Name a working one with --python PATH"
        if re.fullmatch(r"3\.\d+t?", asked):
            wanted = newest_python(question) if _is_unfit(question, asked) else asked
            fix += f". Or {_how_to_get(question, wanted)}"
        return (Finding.error("python", text, fix),)
    return (
        *_check_installer(question),
        *_check_version(question, python),
        *_check_characters(question, python),
        *_check_parts(question, python, chosen),
        *_check_foreign(question, chosen),
        *_check_strange(question, chosen),
        *check_offline(question, chosen.missing, python),
        *check_settings(question, chosen.missing, in_venv=_is_venv(chosen)),
        *check_better(question, chosen.target or python, foreign=chosen.environment.foreign),
        *check_own(question, chosen.missing),
    )


def _of_several(question: Question, asked: str) -> Finding:
    """Refuse a list of Pythons where one is planned; `build` takes the list apart before it plans."""
    one = f"--python {asked.partition(',')[0].strip()}"
    if question.value("mode", "develop") == "wheel":
        text = f"--python {asked} names several, and this is for one; `plan` and `build` take the list"
        return Finding.error("python", text, f"Name one: {one}")
    text = f"--python {asked} names several, and only --mode wheel builds for each of them"
    return Finding.error("python", text, f"Name one: {one}; `build --mode wheel` takes the list.")


def _is_unfit(question: Question, asked: str) -> bool:
    """Say whether a series that was asked for (3.9) is one that this torch is not built for."""
    series_asked = re.fullmatch(r"\d+\.\d+", asked)
    specs = (question.row.python, question.row.python_tried)
    fit = [admits(spec, f"{asked}.99") for spec in specs if spec]
    return bool(series_asked) and question.has_row and not any(fit)


def _check_installer(question: Question) -> tuple[Finding, ...]:
    if question.value("installer", "auto") != "uv" or uv_of(question):
        return ()
    tool = next((tool for tool in question.facts.tools if tool.name == "uv"), None)
    looked = f" (looked in {', '.join(tool.looked)})" if tool and tool.looked else ""
    text = f"--installer uv, and there is no uv{looked}"
    fix = "Put it on PATH, for example by: pip install uv; or use --installer pip."
    return (Finding.error("installer", text, fix),)


def _check_version(question: Question, python: Python) -> Iterator[Finding]:
    name = f"{python.implementation or 'Python'} {named_version(python)} ({python.executable})"
    if python.bits == 32 and not any(
        row.bits == 32 and row.arch == question.facts.host.arch for row in question.catalog.platform
    ):
        text = f"{name} is a 32-bit interpreter; PyTorch builds for 64-bit only"
        yield Finding.error("python-bits", text, "Name a 64-bit one: --python PATH")
    yield from _check_kind(question, python)
    wanted = f"torch {question.row.version} builds for Python {question.row.python}"
    fit = fits(question, python)
    if fit is None:
        text = f"{name}: {_why_unknown(question, python)}; {wanted}"
        yield Finding.unknown("python", text)
    elif not fit:
        others = [p for p in question.facts.pythons if fits(question, p)]
        fix = _how_to_get(question, newest_python(question))
        fix = f"Use {others[0].executable}: --python {as_word(others[0].executable)}" if others else fix
        wanted = wanted.replace("Python", "CPython") if _is_other(python) else wanted
        if admits("<3", python.version):  # the release notes of torch 1.4: the last with Python 2
            wanted = "torch is built for Python 3 here; upstream's last for Python 2.7 is 1.4"
        if _is_of_gcc(question, python):
            wanted = "GCC made it (MSYS2), and what MSVC compiles does not link with its libraries"
        yield Finding.error("python", f"{name} does not fit: {wanted}", fix)
    else:
        if python.free_threaded:
            wanted += ", and upstream calls free-threaded Pythons experimental (RELEASE.md of 2.6 to 2.14)"
        yield Finding.ok("python", f"{name}: {wanted}")


def _check_characters(question: Question, python: Python) -> Iterator[Finding]:
    """Refuse a checkout that Python cannot start with: it reads .pth files in ASCII where LC_ALL says so.

    Python takes UTF-8 for LANG=C and LC_CTYPE=C, not for LC_ALL=C (PEP 538); from 3.13 on .pth files are
    UTF-8 (docs.python.org/3/library/site.html). Tried in both eras: 3.11 fails after the compile, not 3.13.
    """
    host, root = question.facts.host, question.facts.tree.root
    develop = question.value("mode", "develop") == "develop"
    if host.lc_all not in ASCII_LOCALES or root.isascii() or not develop:
        return
    if admits(">=3.13", python.version):
        return
    text = f"LC_ALL is {host.lc_all}, and {root} is not ASCII: Python {python.version} cannot start any more "
    text += "once this checkout is installed in it"
    fix = "Unset LC_ALL, or export LC_ALL=C.UTF-8, here and wherever this torch is used; "
    fix += "or make a wheel: --mode wheel"
    yield Finding.error("python-locale", text, fix)


def _how_to_get(question: Question, wanted: str) -> str:
    """Say how to get a Python: a distribution has one or two, uv all newer ones, found by their version."""
    if admits(_BEFORE_UV, wanted.rstrip("t")):
        line = question.line("conda", "create", "-n", f"py{wanted}", "-c", "conda-forge", f"python={wanted}")
        return f"{with_conda(question.facts, line)}, and name the one in it: --python PATH"
    uv = uv_of(question)
    line = question.line(uv or "uv", "python", "install", wanted)
    return f"{'' if uv else 'pip install uv, then '}{line}, and name it: --python {wanted}"


def _check_kind(question: Question, python: Python) -> Iterator[Finding]:
    """Report an interpreter for another processor, and the one of Microsoft's Store."""
    host, machine = question.facts.host, python.machine
    if machine and machine != host.arch:
        text = f"{python.executable} is for {machine}, and this machine is {host.arch}"
        fix = f"Name one for {host.arch}: --python PATH"
        if host.os == "windows":
            text += ", which emulates it: the torch for it is one for x86_64, slow to build and to run"
        else:  # crossenv makes such a Python: cross builds for riscv64 on x86_64 (pytorch 180975)
            text += ", whose own compilers make nothing that it could load"
            fix += f", unless this is a cross build for {machine}"
        yield Finding.warn("python", text, fix)
    asked = question.row.python_linux if host.os == "linux" and fits(question, python) else ""
    if asked and not admits(asked, python.version):
        text = f"{python.executable} is {python.version}, and the README of torch {question.row.version} "
        text += f"asks for {asked} on Linux"
        fix = f"If the build fails: {_how_to_get(question, newest_python(question))}"
        yield Finding.warn("python", text, fix)
    if any(STORE in (place or "") for place in (python.executable, python.prefix)):
        text = f"{python.executable} is the Python of Microsoft's Store: what it writes below AppData "
        text += "goes to a copy of its own, behind a path so long that files of torch do not fit"
        fix = "Install Python from python.org, and name it: --python PATH"
        yield Finding.warn("python", text, fix)


def _why_unknown(question: Question, python: Python) -> str:
    """Say why it is unknown whether this torch builds for an interpreter."""
    if not python.version:
        return "it does not say its version"
    if not question.has_row:
        return f"nothing is known of torch {question.read_version or question.facts.tree.version}"
    if python.free_threaded:
        return f"upstream has no wheel of torch {question.row.version} for a {series(python.version)}t"
    return "this torch's sources take it and upstream has no wheel for it, so it may work"


def _check_parts(question: Question, python: Python, chosen: ChosenPython) -> Iterator[Finding]:
    minor = series(python.version)
    if python.headers is False and not question.facts.tree.sample:
        text = f"{python.executable} has no headers: {python.include}/Python.h does not exist"
        yield Finding.error("python-headers", text, _install_part(question, minor, "dev"))
    creates = chosen.environment.create is not None
    if creates and python.venv is False and not uv_of(question):  # uv does without that module
        text = f"{python.executable} cannot make a venv: its venv or ensurepip module is missing"
        yield Finding.error("python-venv", text, _install_part(question, minor, "venv"))
    builds = chosen.target or python  # the one that made our venv, such as a uv tool's, may have no pip
    if not creates and "pip" not in builds.packages and not uv_of(question):  # which installs it, then
        text = f"{builds.executable} has no pip"
        yield Finding.error("python-pip", text, f"{as_program(builds.executable)} -m ensurepip")


def _check_foreign(question: Question, chosen: ChosenPython) -> tuple[Finding, ...]:
    """Report that a build will ask before it changes the user's environment; without a terminal it stops."""
    environment, origin = chosen.environment, chosen.target.torch_from if chosen.target else None
    if environment.remove and origin not in (None, question.facts.tree.root):
        text = f"{environment.python} has the torch of another checkout, {origin}, and this build replaces it"
        return (Finding.warn("python-foreign", text, f"{OWN_VENV}."),)
    if environment.foreign and chosen.target and (others := replaced(chosen.target, chosen.missing)):
        text = (
            f"{environment.python} has {', '.join(others)}: this build needs others, and replaces them there"
        )
        return (Finding.warn("python-foreign", text, f"{OWN_VENV}."),)
    if not environment.foreign or not (environment.install or environment.remove) or question.request.yes:
        return ()
    text = (
        f"{environment.python} is your own environment, and this build installs into it; `build` asks first. "
        f"{OWN_VENV}"
    )
    return (Finding.ok("python-foreign", text),)


def _check_strange(question: Question, chosen: ChosenPython) -> Iterator[Finding]:
    """Say that what stands in the place of our venv is moved, and a new one made."""
    create = chosen.environment.create
    if create is None or create.argv[-1] not in question.facts.strange_venvs:
        return
    text = f"{create.argv[-1]} is there, and no record of this user says that torchbuild made it "
    text += "(as under another HOME or TORCHBUILD_STATE): the build moves it aside and makes a new one"
    line = question.line("torchbuild", "trust", question.facts.tree.root)
    yield Finding.warn("python-venv", text, f"If you know where it is from, keep it: {line}")


def _install_part(question: Question, minor: str, part: str) -> str:
    """Return how to install headers or venv: separate packages on Linux, part of Windows' installers."""
    if question.facts.host.os == "windows":
        return (
            f"Install Python {minor} from python.org (or conda), which has them, and name it: --python PATH"
        )
    package = f"python {'headers' if part == 'dev' else part}-{minor}"
    line = install_line(question.facts, question.catalog, package)
    return line or f"Install what this distribution calls python{minor}-{part}."

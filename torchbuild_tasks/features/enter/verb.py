"""`run`, `shell` and `python`: a program in the environment of the last build."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

import msgspec

from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.context import read_named_build
from torchbuild_tasks.errors import NotBuilt, Untrusted, UsageError
from torchbuild_tasks.facts.trust import is_own_env_file
from torchbuild_tasks.features.builds.choose import ACTIVE, UV
from torchbuild_tasks.features.builds.named_build import last_build
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system import venv
from torchbuild_tasks.system.attached import attach
from torchbuild_tasks.system.shell import activate
from torchbuild_tasks.verbs import Outcome

_SHELLS: Final = ("pwsh.exe", "powershell.exe", "cmd.exe")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnterRequest(BuildRequest):
    """The words of `run` and `python`."""

    trailing = True


def run(request: EnterRequest, report: Reporter) -> Outcome:
    """Run a command in the environment of the build: run -- COMMAND."""
    if not request.words:
        raise UsageError("run needs a command", next_step="Write: run -- COMMAND, such as: run -- ninja")
    _, environ = enter(request)
    return start(request, request.words, environ)


def shell(request: BuildRequest, report: Reporter) -> Outcome:
    """Start a shell in the environment of the build; exit leaves it."""
    entered, environ = enter(request)
    argv = shell_of(os.environ, _parents() if os.name == "nt" else (), windows=os.name == "nt")
    report.note(f"{argv[0]} in the environment of {entered.env_file.parent}; exit leaves it")
    return start(request, argv, environ)


def python(request: EnterRequest, report: Reporter) -> Outcome:
    """Run the Python that has the built torch, in the environment of the build."""
    entered, environ = enter(request)
    if not entered.python or not Path(entered.python).exists():
        raise NotBuilt(
            f"No build of {entered.env_file.parent} says which Python has its torch.",
            looked=(f"recorded: {entered.python}",) if entered.python else (),
            next_step="Build it: torchbuild build",
        )
    in_source = request.words[:1] in ((), ("-c",), ("-m",)) and Path("torch/__init__.py").is_file()
    if entered.mode == "wheel" and in_source:  # Python imports from the current folder first
        report.note(
            "`import torch` takes the folder torch that is here, not the wheel: go elsewhere, or say -P"
        )
    return start(request, (entered.python, *request.words), environ)


def enter(request: BuildRequest) -> tuple[Entered, dict[str, str]]:
    """Return the build of the request's checkout, and its environment."""
    about = read_named_build(request)
    name = about.place.build.name if about.place else ""
    entered_in = os.environ.get(ACTIVE)
    if entered_in and entered_in != name:
        raise UsageError(
            f"This shell is in the build {entered_in}; its variables would also apply here.",
            next_step="Leave it first, or use another shell.",
        )
    entered = look_at_build(about.place.folder if about.place else about.main, name)
    folder = venv.folder_of(entered.python) if entered.python else Path()
    own = str(folder) if (folder / "pyvenv.cfg").is_file() and entered.python else ""
    environ = activate(entered.env_file, environ=os.environ)
    environ = with_python(environ, entered.python, own, os.pathsep)
    if own and (folder / venv.CONSTRAINTS).is_file() and " " not in own:
        environ.setdefault(UV, str(folder / venv.CONSTRAINTS))
    return entered, {**environ, **({ACTIVE: name} if name else {})}


def start(request: BuildRequest, argv: Sequence[str], environ: dict[str, str]) -> Outcome:
    """Run a program attached to our terminal; return its exit code."""
    code = attach(argv, env=environ, to_stderr=request.json)
    return Outcome({"exit_code": code}, exit_code=code)


def _parents() -> tuple[str, ...]:
    """Return the names of our parent processes, the nearest first, as far as they can be read."""
    import psutil

    names: list[str] = []
    with contextlib.suppress(psutil.Error, OSError):
        names.extend(each.name() for each in psutil.Process().parents())
    return tuple(names)


def with_python(environ: Mapping[str, str], python: str, venv: str, separator: str) -> dict[str, str]:
    """Return the environment with the build's Python as `python`.

    Args:
        environ: the environment of the env file.
        python: the interpreter that has torch; "" where no build is recorded.
        venv: its virtual environment, "" where it is in none.
        separator: between folders of PATH.
    """
    changed = dict(environ)
    if python:
        name = next((each for each in changed if each.upper() == "PATH"), "PATH")
        folders = [str(PurePath(python).parent), *filter(None, [changed.get(name, "")])]
        changed[name] = separator.join(folders)
        changed.pop("PYTHONHOME", None)
        changed.pop("VIRTUAL_ENV", None)
    if venv:
        changed["VIRTUAL_ENV"] = venv
    return changed


def shell_of(environ: Mapping[str, str], parents: Sequence[str], *, windows: bool) -> tuple[str, ...]:
    """Return the command of an interactive shell: the one that started us, else the user's.

    Args:
        parents: returns the names of our parent processes, the nearest first; called on Windows only.
    """
    if not windows:
        return (environ.get("SHELL") or "/bin/sh",)
    shell = next((name for name in parents if name.lower() in _SHELLS), "")
    if shell and shell.lower() != "cmd.exe":
        return (shell, "-NoLogo")
    return (environ.get("COMSPEC") or "cmd.exe",)


class Entered(msgspec.Struct, frozen=True, kw_only=True):
    """The env file of a checkout, the Python that got torch, and the mode; "" without a build."""

    env_file: Path
    python: str
    mode: str = ""


def look_at_build(root: Path, name: str) -> Entered:
    """Return the last build of a checkout: its env file, Python and mode.

    Args:
        name: its named build, "" for none.

    Raises:
        NotBuilt: there is no env file yet.
        Untrusted: the env file is not as torchbuild wrote it here.
    """
    path = root / ("env_set.bat" if os.name == "nt" else "env_set.sh")
    again = "torchbuild env" + (f" --name {name}" if name else "") + ", or: torchbuild build"
    if not path.is_file():
        raise NotBuilt(f"Nothing was built here yet: there is no {path}.", next_step=f"{again} writes it.")
    if not is_own_env_file(path):
        raise Untrusted(
            f"{path} is not as torchbuild wrote it on this machine, and a shell would run it.",
            looked=("It came with the checkout, was changed, or is of an earlier torchbuild.",),
            next_step=f"Move it away; then {again} writes it. Put your own settings into torchbuild.toml.",
        )
    last = last_build(root)
    return Entered(env_file=path, python=last.python if last else "", mode=last.mode if last else "")

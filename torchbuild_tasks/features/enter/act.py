"""Prepare the environment of the last build for a program, and find the user's shell."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

import msgspec

from torchbuild_tasks.errors import EnvFileError, Untrusted
from torchbuild_tasks.facts.trust import is_own_env_file
from torchbuild_tasks.features.builds.named_build import last_build

_SHELLS: Final = ("pwsh.exe", "powershell.exe", "cmd.exe")


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
        EnvFileError: there is no env file yet.
        Untrusted: the env file is not as torchbuild wrote it here.
    """
    path = root / ("env_set.bat" if os.name == "nt" else "env_set.sh")
    again = "torchbuild env" + (f" --name {name}" if name else "") + ", or: torchbuild build"
    if not path.is_file():
        raise EnvFileError(
            f"Nothing was built here yet: there is no {path}.", next_step=f"{again} writes it."
        )
    if not is_own_env_file(path):
        raise Untrusted(
            f"{path} is not as torchbuild wrote it on this machine, and a shell would run it.",
            looked=("It came with the checkout, was changed, or is of an earlier torchbuild.",),
            next_step=f"Move it away; then {again} writes it. Put your own settings into torchbuild.toml.",
        )
    last = last_build(root)
    return Entered(env_file=path, python=last.python if last else "", mode=last.mode if last else "")

"""Find, read and check the env-file templates; the user's own copy wins.

In a template `@{name}` is a field. Every other @ is text (cmd's `@echo off`); `@@` is one @ before a
literal `{`.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.options import SHELLS
from torchbuild_tasks.system.reading import read_text

FIELDS: Final = frozenset({"writer", "checkout", "ops"})


class _Text(string.Template):
    """`string.Template` with @, in braces only; the base class compiles `pattern`."""

    delimiter = "@"
    pattern = r"@(?:(?P<escaped>@)|\{(?P<braced>[A-Za-z_]+)\}|(?P<named>(?!))|(?P<invalid>(?=\{)))"  # type: ignore[assignment]


def fill(text: str, fields: Mapping[str, str]) -> str:
    """Fill the fields into a template; their values are not expanded again.

    Raises:
        EnvFileError: the text names a field that there is not.
    """
    try:
        return _Text(text).substitute(fields)
    except KeyError as error:
        raise _unknown("the template", str(error.args[0])) from None
    except ValueError as error:
        raise EnvFileError(f"An env template has @{{ without a name and }}: {error}") from None


def load_templates(cwd: Path | None = None) -> dict[str, str]:
    """Return the template of every shell: from ./env_templates, else the one in the package.

    Without `cwd` only ours are looked at.

    Raises:
        EnvFileError: a template is missing, cannot be read, or names an unknown field.
    """
    return {shell: _load(shell, cwd) for shell in SHELLS}


def _load(shell: str, cwd: Path | None) -> str:
    name = f"env_set.{shell}.in"
    package = Path(__file__).resolve().parents[1]
    # Inside the package in a wheel, beside it in a checkout that is installed editable.
    folders = [package, package.parent]
    looked = [folder / "env_templates" / name for folder in ([cwd] if cwd else []) + folders]
    path = next((path for path in looked if path.is_file()), None)
    if path is None:
        raise EnvFileError(
            f"The env template {name} is missing.",
            looked=tuple(map(str, looked)),
            next_step="Install torchbuild-tasks again.",
        )
    try:
        text = read_text(path).replace("\r\n", "\n").replace("\r", "\n")  # line ends of Windows' editors
    except OSError as error:
        raise EnvFileError(
            f"The env template {path} cannot be read: {error}", next_step="Make it readable, as UTF-8."
        ) from error
    _check(path, text)
    return text


def _check(path: Path, text: str) -> None:
    template = _Text(text)
    if not template.is_valid():
        raise EnvFileError(
            f"The env template {path} has an @{{ that no name and }} follow.",
            next_step="Write @@{ where the file needs a literal @{.",
        )
    names = template.get_identifiers()
    if unknown := [name for name in names if name not in FIELDS]:
        raise _unknown(str(path), unknown[0])
    if "ops" not in names:
        raise EnvFileError(
            f"The env template {path} has no @{{ops}}, so its file would set nothing.",
            next_step="Put @{ops} on a line of its own, where the variables are to be set.",
        )


def _unknown(where: str, name: str) -> EnvFileError:
    return EnvFileError(
        f"Unknown name @{{{name}}} in {where}.",
        looked=tuple(f"@{{{field}}}" for field in sorted(FIELDS)),
        next_step="Use one of the names above; write @@{ where the file needs a literal @{.",
    )

"""Report a Python module that is not installed: a checkout was updated and not installed again."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import torchbuild_tasks
from torchbuild_tasks.errors import RequirementsError

_PACKAGE = "torchbuild-tasks"


@contextlib.contextmanager
def explain_missing() -> Iterator[None]:
    """End the process with a paragraph where the body needs a module that is not installed.

    Printed here: what prints other errors needs such modules itself.

    Raises:
        SystemExit: with the exit code of such errors.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if not name or name == torchbuild_tasks.__name__ or name in sys.stdlib_module_names:
            raise
        _show(f"{_PACKAGE} needs the module {name}, which is not installed for {sys.executable}.")
        raise SystemExit(RequirementsError.exit_code) from None


def _show(what: str) -> None:
    """Print the error as others are printed: a paragraph, or with --json an object."""
    next_step = f"Install what it needs: {_install_command()}"
    if "--json" not in sys.argv:
        sys.stderr.write(f"\nerror: {what}\n{next_step}\n")
        return
    import json

    error = {"error": RequirementsError.__name__, "exit_code": RequirementsError.exit_code, "what": what}
    rest: dict[str, object] = {"looked": [], "next_step": next_step, "findings": [], "diagnoses": []}
    sys.stdout.write(json.dumps(error | rest) + "\n")


def _install_command() -> str:
    """Return the command that installs all dependencies of this copy of the package."""
    from torchbuild_tasks.system.own import install_line

    checkout = Path(torchbuild_tasks.__file__).parents[1]
    what = ("-e", str(checkout)) if (checkout / "pyproject.toml").is_file() else (_PACKAGE,)
    return install_line(*what)

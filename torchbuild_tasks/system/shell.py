"""Source an env file once, in its own shell, and return the resulting environment.

So the build runs in exactly the environment that a user gets by sourcing the file. `shell_sh.py` and
`shell_cmd.py` call the shells.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.system.left_running import VARIABLE
from torchbuild_tasks.system.process import Captured

if sys.platform == "win32":
    from torchbuild_tasks.system import shell_cmd as shell
else:
    from torchbuild_tasks.system import shell_sh as shell

_SECONDS: Final = 60.0


def activate(path: Path, *, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment after `path` was sourced in `environ`.

    Raises:
        EnvFileError: the file does not load; `looked` has the shell's messages.
    """
    captured = shell.load(path, environ, _SECONDS)
    if captured.timed_out:
        raise _shell_failure(path, captured, f"did not load within {_SECONDS:.0f} seconds")
    if captured.rc != 0:
        raise _shell_failure(path, captured, f"did not load in {shell.NAME} (exit status {captured.rc})")
    try:
        after = shell.read(captured.stdout)
    except (ValueError, TypeError):
        raise _shell_failure(
            path, captured, f"ended {shell.NAME} before its environment could be read"
        ) from None
    after.pop(VARIABLE, None)  # added to the shell as a program of this run
    return shell.without_traces(after, environ)


def _shell_failure(path: Path, captured: Captured, how: str) -> EnvFileError:
    return EnvFileError(
        f"The env file {path} {how}.",
        looked=tuple(shell.text(captured.stderr).splitlines()[-20:]),
        next_step=f"Source it by hand to see more ({shell.by_hand(path)}); `env` writes it again.",
    )

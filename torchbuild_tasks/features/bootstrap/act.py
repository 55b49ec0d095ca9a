"""The package manager, run for `bootstrap --yes`."""

from __future__ import annotations

from torchbuild_tasks.build.work import Reporter, run_shown
from torchbuild_tasks.errors import RequirementsError
from torchbuild_tasks.features.bootstrap.choose import Bootstrap


def install(plan: Bootstrap, report: Reporter) -> None:
    """Run its commands, one after the other.

    Raises:
        RequirementsError: one ended with an error; the message has the last lines that it printed.
    """
    for command in plan.commands:
        rc, lines = run_shown(command, report)
        if rc != 0:
            raise RequirementsError(
                f"{' '.join(command.argv)} ended with exit code {rc}.",
                looked=lines,
                next_step="Run it in a shell of your own (with sudo, if it asks for a password).",
            )

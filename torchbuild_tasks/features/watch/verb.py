"""`build --watch`: one build after another, each shown, until Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable

from torchbuild_tasks import flow
from torchbuild_tasks.build.outputs import listed
from torchbuild_tasks.errors import BuildFailed, Interrupted, TorchbuildError, UsageError, VerifyFailed
from torchbuild_tasks.fronts.output import error_text
from torchbuild_tasks.fronts.reporter import ConsoleReporter
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.values import replace


def watch(
    request: BuildRequest, report: ConsoleReporter, build: Callable[[BuildRequest, ConsoleReporter], int]
) -> int:
    """Build now and after every save.

    What is wrong from the start ends it; a failed build is shown, and the next save waited for.

    Returns:
        0 when Ctrl-C ended the waiting.
    """
    for name in ("json", "dry_run"):
        if getattr(request, name):
            raise UsageError(f"--watch builds again and again; {flag_name(name)} shows one thing and ends")
    watched = flow.watch(request)
    _once(request, report, build, first=True)
    again = replace(request, clean=False)
    while True:
        report.note("Waiting for a save; Ctrl-C ends this.")
        try:
            saved = watched.wait()
        except Interrupted:
            return 0
        report.stage(f"saved: {listed(saved)}")
        _once(again, report, build)


def _once(
    request: BuildRequest,
    report: ConsoleReporter,
    build: Callable[[BuildRequest, ConsoleReporter], int],
    *,
    first: bool = False,
) -> None:
    try:
        build(request, report)
    except Interrupted:
        raise
    except TorchbuildError as error:
        if first and not isinstance(error, BuildFailed | VerifyFailed):
            raise
        report.note("Not built:")
        sys.stderr.write(error_text(error))

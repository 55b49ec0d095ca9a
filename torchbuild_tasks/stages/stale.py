"""The stage that removes what earlier builds made or installed and this one does not.

After `git switch` a library of the other version would stay in torch/lib and be found, by the loader or by
extensions that are compiled against it; generated code of it would stay among the sources. Ninja's log and
CMake's lists say what that is. It goes only if our own record says that a build made it and left it so:
what one version generates may be a source of the next.
"""

from __future__ import annotations

import re
from typing import Final

from torchbuild_tasks.core.outputs import recordable
from torchbuild_tasks.effects import installed, made
from torchbuild_tasks.stages.work import Work
from torchbuild_tasks.system import process

SHOWN: Final = 5


def remove_stale(work: Work) -> Work:
    """Remove the files that an earlier build is recorded to have made and this one did not."""
    if work.request.target or work.plan.mode != "develop":
        return work
    previous = work.facts.tree.previous
    if work.up_to_date and previous is not None and previous.result == "ok":
        return work  # nothing was installed since this was last looked at
    if listed := (*installed.left_out(work.root, work.build_dir), *_dead(work)):
        outputs = recordable(work.catalog, work.plan.era)
        removal = made.plan_stale(work.root, work.build_dir, outputs, listed)
        removed = made.remove(removal)
        if removal.files:
            names = _some(removal.files)
            work.report.note(f"removed {removed.count} files of earlier builds that this one lacks: {names}")
        for path, reason in (*removal.kept, *removed.failed):
            work.report.note(f"kept, though this build lacks it: {path} ({reason})")
        if removed.failed:
            return work  # the next build tries again
    installed.settle(work.root, work.build_dir)
    return work


def _dead(work: Work) -> tuple[str, ...]:
    """What stands in Ninja's log and is in its graph no longer, relative to the checkout.

    Asked where more than an edit of sources came before: Ninja reads its whole graph for it. Ninja before
    1.10 cannot say it.
    """
    if work.went_round and not work.plan.freshness.changes:
        return ()
    argv = ("ninja", "-C", str(work.build_dir), "-n", "-t", "cleandead")
    said = process.capture(argv, env=work.environ, cwd=work.root)
    found = re.findall(r"^Remove (.+?)\r?$", said.stdout.decode(errors="surrogateescape"), re.MULTILINE)
    return tuple(installed.in_checkout(work.root, (str(work.build_dir / path) for path in found)))


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN]) + (" ..." if len(names) > SHOWN else "")

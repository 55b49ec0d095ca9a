"""The words and flags of `bisect`."""

from __future__ import annotations

import dataclasses

from torchbuild_tasks.options import BuildRequest, own_flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class BisectRequest(BuildRequest):
    """The request of `bisect`."""

    trailing = True

    good: tuple[str, ...] = own_flag(
        "a commit, tag or branch where the command still succeeds; may be repeated", metavar="REF", default=()
    )
    bad: str | None = own_flag("a commit, tag or branch where it fails", metavar="REF")
    skip: tuple[str, ...] = own_flag(
        "skip this commit, or this range A..B; may be repeated", metavar="REF", default=()
    )
    no_build: bool = own_flag("build nothing: the command judges the files of each commit", default=False)
    resume: bool = own_flag("continue the unfinished bisect of this checkout", default=False)
    reset: bool = own_flag("give up: remove the bisect's worktree and its state", default=False)

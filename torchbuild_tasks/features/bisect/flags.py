"""The words and flags of `bisect`."""

from __future__ import annotations

import dataclasses

from torchbuild_tasks.options import BuildRequest, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class BisectRequest(BuildRequest):
    """The request of `bisect`."""

    trailing = True

    good: tuple[str, ...] = flag(
        "a commit, tag or branch where the command still succeeds; may be repeated",
        metavar="REF",
        default=(),
        in_file=False,
    )
    bad: str | None = flag("a commit, tag or branch where it fails", metavar="REF", in_file=False)
    skip: tuple[str, ...] = flag(
        "skip this commit, or this range A..B; may be repeated",
        metavar="REF",
        default=(),
        in_file=False,
    )
    no_build: bool = flag(
        "build nothing: the command judges the files of each commit",
        default=False,
        in_file=False,
    )
    resume: bool = flag(
        "continue the unfinished bisect of this checkout",
        default=False,
        in_file=False,
    )
    reset: bool = flag(
        "give up: remove the bisect's worktree and its state",
        default=False,
        in_file=False,
    )

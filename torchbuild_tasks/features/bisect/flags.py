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
    bad: str | None = flag("one where it fails", metavar="REF", in_file=False)
    skip: tuple[str, ...] = flag(
        "leave this commit, or this range A..B, out; may be repeated",
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
        "go on with the bisect that is under way in this checkout",
        default=False,
        in_file=False,
    )
    reset: bool = flag(
        "give the bisect up: remove its worktree and what is remembered of it",
        default=False,
        in_file=False,
    )

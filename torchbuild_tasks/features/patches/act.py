"""The stages that try the patches first of all and apply them before the build, and taking them back."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.build.work import Reporter, Work
from torchbuild_tasks.features.patches import apply as patches
from torchbuild_tasks.model import BuildPlan


def try_patches(work: Work) -> Work:
    """Apply all of them in memory, so that one which does not fit ends the build before it began."""
    fit(work.plan)
    return work


def fit(plan: BuildPlan) -> None:
    """Make sure that every patch of the plan fits, and that none which it does without is in the way.

    Nothing is known of a source that is still to be got.

    Raises:
        PatchRefused: one does not.
    """
    if (Path(plan.source) / "version.txt").is_file():
        patches.bring(Path(plan.source), plan.patches, dry_run=True)


def apply_patches(work: Work) -> Work:
    """Take back what an earlier plan wanted and this one does not, and apply what it wants."""
    planned, say = work.plan.patches, work.report.note
    outcome = patches.bring(work.root, planned)
    because = {patch.id: patch.because for patch in planned}
    for id in outcome.undone:
        again = " in its older form" if id in because else ", this plan has no use for it"
        say(f"source patch {id}: taken back{again}")
    for id in outcome.applied:
        say(f"source patched ({id}): {because[id]}")
    for id in outcome.there:
        say(f"source patch {id}: the source has that change already, so it is left out")
    for id, where in outcome.moved.items():
        say(f"source patch {id}: found on other lines: {'; '.join(where)}")
    return work


def undo_patches(root: Path, report: Reporter, dry_run: bool) -> tuple[str, ...]:
    """Take back every patch that is recorded in a checkout, or only say which; their ids.

    Raises:
        PatchRefused: the same lines have been changed since; no file was changed.
    """
    ids = patches.bring(root, (), dry_run=dry_run).undone
    for id in ids:
        report.note(f"source patch {id}: {'would be taken back' if dry_run else 'taken back'}")
    return ids

"""The stage that changes the source as the plan says, and what `clean --patches` takes back."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.effects import patches
from torchbuild_tasks.stages.work import Reporter, Work


def apply_patches(work: Work) -> Work:
    """Take back what an earlier plan wanted and this one does not, then apply what it wants."""
    planned = work.plan.patches
    if going := patches.stale(work.root, planned):
        _say_undone(work.report, patches.undo(work.root, going), "taken back, this plan has no use for it")
    because = {patch.id: patch.because for patch in planned}
    for id in patches.apply(work.root, planned):
        work.report.note(f"source patched ({id}): {because[id]}")
    return work


def undo_patches(root: Path, report: Reporter, dry_run: bool) -> tuple[str, ...]:
    """Take back every patch that is recorded in a checkout, or only say which; their ids.

    Raises:
        PatchRefused: somebody has changed the same lines since; no file was changed.
    """
    ids = patches.undo(root, dry_run=dry_run)
    _say_undone(report, ids, "would be taken back" if dry_run else "taken back")
    return ids


def _say_undone(report: Reporter, ids: tuple[str, ...], what: str) -> None:
    for id in ids:
        report.note(f"source patch {id}: {what}")

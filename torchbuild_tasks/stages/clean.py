"""Removes what a build made: what `clean` does, after it was listed and agreed to."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.core.cleaning import uninstall_command
from torchbuild_tasks.core.outputs import recordable
from torchbuild_tasks.effects import made
from torchbuild_tasks.effects.ledger import LOG, LOGS
from torchbuild_tasks.errors import CleanRefused
from torchbuild_tasks.model import Command, Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.stages.patches import undo_patches
from torchbuild_tasks.stages.work import Reporter
from torchbuild_tasks.system import files, process
from torchbuild_tasks.system.log import last_write


def remove_build(request: BuildRequest, facts: Facts, catalog: Catalog, report: Reporter) -> made.Removal:
    """List what the build made, ask, uninstall torch and remove the files.

    Returns:
        What was removed; with --dry-run, what would be.

    Raises:
        CleanRefused: the user did not agree, or something cannot be removed.
    """
    tree, root = facts.tree, Path(facts.tree.root)
    outputs = recordable(catalog, tree.era or "setuptools")
    log_time = last_write(root / files.STATE_DIR / LOGS, LOG)
    removal = made.plan_removal(root, Path(tree.build_dir or root / "build"), outputs, log_time=log_time)
    uninstall = uninstall_command(facts)
    report.removal(removal, uninstall)
    if request.dry_run or not (removal.files or uninstall):
        return removal
    if not (request.yes or report.confirm("Remove these?")):
        raise CleanRefused("Nothing was removed.", next_step="Say --yes to remove what is listed.")
    if uninstall:
        _run(uninstall)
    removed = made.remove(removal)
    if removed.failed:
        raise CleanRefused(
            f"{len(removed.failed)} files could not be removed.",
            looked=tuple(f"{path}: {reason}" for path, reason in removed.failed[:20]),
        )
    return removal


def remove_patches(root: Path, report: Reporter, dry_run: bool) -> made.Removal:
    """Undo the source patches that builds applied; no file is removed."""
    undo_patches(root, report, dry_run)
    return made.Removal(root=str(root), files=(), folders=(), kept=(), planned=0)


def _run(command: Command) -> None:
    done = process.capture(command.argv, cwd=command.cwd)
    if done.rc != 0:
        raise CleanRefused(
            f"{' '.join(command.argv)} ended with exit code {done.rc}; no file was removed.",
            looked=tuple(done.stderr.decode(errors="replace").splitlines()[-5:]),
        )

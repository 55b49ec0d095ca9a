"""Remove what builds wrote: all of it for the verb `clean`, and what is stale as a stage of each build.

After `git switch` a library of the other version would stay in torch/lib and be found, by the loader or by
extensions that are compiled against it; generated code of it would stay among the sources. Ninja's log and
CMake's lists name such files. One goes only if our own record shows that a build wrote it and left it so:
what one version generates may be a source of the next.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from torchbuild_tasks.build import ownership
from torchbuild_tasks.build.install import leftovers
from torchbuild_tasks.build.ledger import last_log_time
from torchbuild_tasks.build.named_files import find_copies
from torchbuild_tasks.build.outputs import find_emptied_folders, recordable_outputs
from torchbuild_tasks.build.work import Reporter, Work
from torchbuild_tasks.errors import BuildFailed, CleanRefused
from torchbuild_tasks.model import Command, Facts
from torchbuild_tasks.model.record import Removal
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system import files, process
from torchbuild_tasks.system.remove import is_link, remove_tree, stamp
from torchbuild_tasks.text.words import counted, first_few
from torchbuild_tasks.values import replace

SHOWN: Final = 5


def remove_build(question: Question, report: Reporter) -> Removal:
    """List what the build made, ask, uninstall torch and remove the files.

    Returns:
        What was removed; with --dry-run, what would be.

    Raises:
        CleanRefused: the user did not agree, or something cannot be removed.
    """
    request = question.request
    root = Path(question.facts.tree.root)
    outputs = recordable_outputs(question.catalog, question.era)
    removal = ownership.plan_removal(root, Path(question.build_dir), outputs, log_time=last_log_time(root))
    removal = replace(removal, uninstall=uninstall_command(question.facts))
    if request.dry_run:
        return removal
    report.removal(removal)
    if not (removal.files or removal.uninstall):
        return removal
    if not (request.yes or report.confirm("Remove these?")):
        raise CleanRefused("Nothing was removed.", next_step="Add --yes to remove what is listed.")
    if removal.uninstall:
        _run(removal.uninstall)
    removed = ownership.remove(removal)
    if removed.failed:
        raise CleanRefused(
            f"{counted(len(removed.failed), 'file')} could not be removed; all others are gone.",
            looked=tuple(f"{path}: {reason}" for path, reason in removed.failed[:20]),
            next_step="Run the same command again once that is mended: it removes the rest.",
        )
    return removal


def remove_patches(root: Path, report: Reporter, dry_run: bool) -> Removal:
    """Undo the source patches that builds applied; no file is removed."""
    from torchbuild_tasks.features.patches.act import undo_patches

    ids = undo_patches(root, report, dry_run)
    return Removal(root=str(root), files=(), folders=(), kept=(), planned=0, patches=ids)


def uninstall_command(facts: Facts) -> Command | None:
    """Return the pip command that uninstalls this checkout's editable install; None if there is none."""
    for python in facts.pythons:
        if python.torch_from and python.torch_from.rstrip("/") == facts.tree.root.rstrip("/"):
            argv = (python.executable, "-m", "pip", "uninstall", "--yes", "torch")
            because = f"the editable install of torch in {python.prefix}"
            # Not in the checkout: `-m` imports from the current folder first.
            return Command(argv=argv, cwd=str(Path(python.executable).parent), because=because)
    return None


def _run(command: Command) -> None:
    captured = process.capture(command.argv, cwd=command.cwd)
    if captured.rc != 0:
        from torchbuild_tasks.text.show import shell_text

        raise CleanRefused(
            f"{shell_text(command.argv)} ended with exit code {captured.rc}; no file was removed.",
            looked=tuple(captured.error_text.splitlines()[-5:]),
        )


def remove_stale(work: Work) -> Work:
    """Remove the files that an earlier build is recorded to have made and this one did not."""
    if work.request.target or work.plan.mode != "develop":
        return work
    previous = work.facts.tree.previous
    if work.up_to_date and previous is not None and previous.result == "ok":
        return work  # nothing was installed since the last check
    if stale := (*leftovers.find_left_out(work.root, work.build_dir), *_list_dead_outputs(work)):
        outputs = recordable_outputs(work.catalog, work.plan.era)
        removal = ownership.plan_stale(work.root, work.build_dir, outputs, stale)
        removed = ownership.remove(removal)
        if removal.files:
            names = first_few(removal.files, SHOWN)
            work.report.note(f"removed {removed.count} files of earlier builds that this one lacks: {names}")
        for path, reason in (*removal.kept, *removed.failed):
            work.report.note(f"kept, though this build lacks it: {path} ({reason})")
        if removed.failed:
            return work  # the next build tries again
    leftovers.forget_left_out(work.root, work.build_dir)
    return work


def set_cmake_cache_aside(work: Work) -> None:
    """Set CMake's cache aside, so that the front end configures anew.

    Raises:
        BuildFailed: it cannot be moved.
    """
    work.ledger.open()  # before the first change, so that what is set aside counts as ours
    cache = work.build_dir / "CMakeCache.txt"
    aside = cache.with_suffix(".txt.old")
    if cache.exists():
        with files.translate_errors(BuildFailed, aside):
            files.replace(cache, aside)


def set_foreign_files_aside(work: Work) -> None:
    """Move files that no build wrote out of the folders that the front end empties at each install.

    scikit-build-core empties a folder that has its tag file, including files that the user put there. It
    fails at every install if the tag is missing, as after an incomplete clean or a kill between two files.

    Raises:
        BuildFailed: a file cannot be moved.
    """
    inside = ownership.within(work.root, work.build_dir)
    for name, tag in find_emptied_folders(work.catalog) if inside else ():
        folder = work.build_dir / name
        if is_link(folder) or not folder.is_dir():
            continue
        foreign = _list_foreign_files(work, folder, {folder / tag, folder / ".gitignore"})
        with files.translate_errors(BuildFailed, folder):
            if foreign:
                aside = free_name(folder)
                for path in foreign:
                    target = aside / path.relative_to(folder)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    files.replace(path, target)
                names = first_few([path.relative_to(folder).as_posix() for path in foreign], SHOWN)
                work.report.note(
                    f"{folder} is emptied at each install; "
                    f"files that no build made were moved to {aside}: {names}"
                )
            if not (folder / tag).exists():  # only installed files are left in it
                remove_tree(folder)


def _list_foreign_files(work: Work, folder: Path, tags: Collection[Path]) -> list[Path]:
    """Return the files of a folder that no build wrote, or that were changed since a build wrote them."""
    recorded = ownership.owned(work.root).paths
    paths = (path for path in folder.rglob("*") if path not in tags and (is_link(path) or not path.is_dir()))
    here = {path.relative_to(work.root).as_posix(): path for path in paths}
    other = {name for name, path in here.items() if recorded.get(name, ())[:2] != stamp(path.lstat())[:2]}
    return [here[name] for name in sorted(other - find_copies(work.root, work.build_dir, other))]


def free_name(folder: Path) -> Path:
    """Return the first free name such as `editable.kept-1` next to a folder."""
    numbers = itertools.count(1)
    names = (folder.with_name(f"{folder.name}.kept-{number}") for number in numbers)
    return next(path for path in names if not os.path.lexists(path))


def _list_dead_outputs(work: Work) -> tuple[str, ...]:
    """Return the outputs in Ninja's log that its graph no longer builds, relative to the checkout.

    Skipped after a mere edit of sources, because Ninja reads its whole graph for it. Ninja before 1.10 has
    no such tool.
    """
    if work.front_end_skipped and not work.plan.freshness.changes:
        return ()
    argv = (*work.ninja, "-n", "-t", "cleandead")
    captured = process.capture(argv, env=work.environ, cwd=work.root)
    outputs = re.findall(r"^Remove (.+?)\r?$", captured.stdout.decode(errors="surrogateescape"), re.MULTILINE)
    return tuple(leftovers.in_checkout(work.root, (str(work.build_dir / path) for path in outputs)))

"""Create checkouts without git: unpack a release archive, and add missing submodules."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.source import PinRow
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.source import places
from torchbuild_tasks.features.source.get import Task, git_dir, git_failure
from torchbuild_tasks.plan.submodules import find_pins
from torchbuild_tasks.system import files, lock
from torchbuild_tasks.system.archive.unpack import unpack
from torchbuild_tasks.system.git.fetch import WantedCommit, bring
from torchbuild_tasks.system.mark import read_marker
from torchbuild_tasks.system.reading import read_text
from torchbuild_tasks.system.remove import discard, unfinished_folder

ARCHIVES: Final[Mapping[str, str]] = {
    ".tar.gz": "tar.gz",
    ".tgz": "tar.gz",
    ".tar.xz": "tar.xz",
    ".tar.bz2": "tar.bz2",
    ".zip": "zip",
}


def unpack_archive(task: Task, word: str, folder: Path | None) -> Path:
    """Unpack a release archive as a checkout: in `folder`, or in the store.

    Raises:
        SourceError: there is no such file, it holds no PyTorch or no submodules, or the place is taken.
        ArchiveRefused: it is broken, or has members that must not be unpacked.
        TreeBusy: another command works on it.
    """
    archive = Path(word).expanduser().absolute()
    end = next(end for end in ARCHIVES if word.lower().endswith(end))
    if not archive.is_file():
        raise SourceError(
            f"There is no archive {archive}.",
            next_step="Download the one called pytorch-vX.Y.Z.tar.gz from "
            "https://github.com/pytorch/pytorch/releases and name the file.",
        )
    name = archive.name.lower().removesuffix(end)
    target = folder or task.store / places.SOURCES / name
    if not places.is_free(target):
        raise SourceError(f"{target} is there already.", next_step="Name another folder: --source PATH")
    task.report.stage(f"unpack {archive.name} into {target}")
    growing = places.make_temporary_checkout(target)
    with contextlib.ExitStack() as after, lock.hold(growing, "source get"):
        after.callback(places.remove_temporary_checkout, growing)
        outer = after.enter_context(unfinished_folder(growing / "unpacked", SourceError)) / "files"
        # An archive repacked by a distribution lacks targets of its links.
        unpack(archive, ARCHIVES[end], outer, tell=task.report.transfer, name=archive.name, dangling=True)
        tree = _tree(outer, archive)
        places.write_note(tree, places.Note(url=str(archive), word=word))
        places.publish(tree, target)
    return target


def _tree(outer: Path, archive: Path) -> Path:
    """Return the one folder in an archive if it is a PyTorch with its submodules."""
    inner = [path for path in outer.iterdir() if path.is_dir()]
    marker = read_marker(outer)
    links = marker.links if marker else ()
    wrong = ""
    if len(inner) != 1 or not (inner[0] / "version.txt").is_file():
        wrong = "holds no PyTorch"
    elif (inner[0] / ".gitmodules").is_file() and not _has_submodules(inner[0]):
        wrong = "holds no submodules, as archives that GitHub makes of a tag do"
    elif leaving := [link for link in links if not _stays(outer / link, inner[0])]:
        wrong = f"holds a link that leaves its folder: {leaving[0]}"
    if wrong:
        raise SourceError(
            f"{archive} {wrong}.",
            next_step="Take the release's own archive, pytorch-vX.Y.Z.tar.gz, or: source get vX.Y.Z",
        )
    return inner[0]


def _stays(link: Path, tree: Path) -> bool:
    """Say whether a link stays inside of the tree, which becomes the checkout."""
    return link.resolve().is_relative_to(tree.resolve()) or not link.is_relative_to(tree)


def _has_submodules(tree: Path) -> bool:
    folders = [path for path in (tree / "third_party").glob("*") if path.is_dir()]
    return any(any(folder.iterdir()) for folder in folders)


# ---------------- submodules of a release without git, each at the commit of its row


_DEPTH: Final = 3  # three levels of submodules
_PIN_REF: Final = "refs/torchbuild/pin"


def fill_submodules(task: Task, root: Path) -> Path:
    """Add the submodules that the plan needs and the folder lacks.

    Raises:
        SourceError: this is no PyTorch; or no row has the commit of a folder; or one is not available. What
            was brought stays.
        TreeBusy: another command works on it.
    """
    version = None
    with contextlib.suppress(OSError):
        version = read_text(root / "version.txt").strip()
    if version is None:
        git_dir(task.git(root))  # reports that this is no checkout
    lacking = task.lacking(root)
    if not lacking.missing:
        task.report.note(
            "It has every submodule that this build needs; without git its torch stays as it is."
        )
        return root
    pins = find_pins(load_catalog(), version)
    with lock.hold(root, "source update"):
        for _ in range(_DEPTH):
            if unknown := [path for path in lacking.missing if path not in pins]:
                raise SourceError(
                    f"{root} is not a git checkout, and it is not known which commits torch {version} has of "
                    f"{len(unknown)} folders.",
                    looked=tuple(unknown),
                    next_step=lacking.fix,
                )
            _bring_all(task, root, [pins[path] for path in lacking.missing])
            lacking = task.lacking(root)
            if not lacking.missing:
                break
    return root


def _bring_all(task: Task, root: Path, pins: Sequence[PinRow]) -> None:
    failed: dict[str, SourceError] = {}
    for pin in pins:
        try:
            _bring(task, root, pin)
        except SourceError as error:
            failed[pin.path] = error
    if failed:
        first = next(iter(failed.values()))
        raise SourceError(
            f"{len(failed)} of {len(pins)} folders could not be fetched: {', '.join(failed)}.",
            looked=first.looked,
            next_step=first.next_step,
        )


def _bring(task: Task, root: Path, pin: PinRow) -> None:
    """Add one submodule, completely or not at all."""
    target = root / pin.path
    with unfinished_folder(target, SourceError) as part:
        git = task.git(part)
        git.run("init", "--quiet")
        if task.facts.windows:
            git.run("config", "--local", "core.longpaths", "true")
        wish = WantedCommit(url=pin.url, what=pin.commit, into=_PIN_REF, commit=pin.commit)
        outcome = bring(git, wish, task.access(root), target.name)
        if outcome.rc != 0:
            raise git_failure(f"{pin.path} could not be fetched.", outcome, pin.url)
        git.run("checkout", "--quiet", "--detach", pin.commit)
        discard(part / ".git")
        with files.translate_errors(SourceError, target):
            if target.is_dir():
                target.rmdir()  # it is empty
            files.replace(part, target)

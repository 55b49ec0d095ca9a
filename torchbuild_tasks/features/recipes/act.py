"""Build a helper from source, pack it like upstream's archives, and write its row.

All files are in a folder of the store that is named after the inputs, so that the same command resumes a
killed run. The source is a copy, complete or absent; the archive is moved to its place last.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from torchbuild_tasks.errors import BuildFailed, SourceError, UsageError
from torchbuild_tasks.facts.cuda.toolkit_folder import library_version, list_folders
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.features.companions.act import clone_source, stamp_files
from torchbuild_tasks.features.helpers import store
from torchbuild_tasks.features.helpers.act import fetch
from torchbuild_tasks.features.helpers.store import BUILDING, BUILT
from torchbuild_tasks.features.patches.act import bring
from torchbuild_tasks.features.recipes.choose import (
    Order,
    archive_name,
    build_argv,
    choose_recipe,
    choose_source_patches,
    configure_argv,
    make_note,
    row_text,
)
from torchbuild_tasks.model.cuda import NOTE, BuiltFor
from torchbuild_tasks.plan.env_files import encode
from torchbuild_tasks.system import files, lock, process, shell
from torchbuild_tasks.system.archive.unpack import pack
from torchbuild_tasks.system.log import Log, open_log
from torchbuild_tasks.system.mark import read_marker
from torchbuild_tasks.system.reading import hash_file, read_text
from torchbuild_tasks.system.remove import discard, unfinished_folder
from torchbuild_tasks.values import dumps

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Fetching, Reporter
    from torchbuild_tasks.catalog import Catalog, RecipeRow
    from torchbuild_tasks.model import BuildPlan, Patch

_LINES: Final = 30


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The archive, and its row."""

    archive: str
    row: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One build: the order, its source and recipe, its folder, the folder for the archive."""

    order: Order
    source: Path
    recipe: RecipeRow
    patches: tuple[Patch, ...]
    note: BuiltFor
    folder: Path
    archive: Path

    @property
    def tree(self) -> Path:
        """The copy of the source, generated and patched."""
        return self.folder / "source"

    @property
    def build(self) -> Path:
        """The build tree."""
        return self.folder / "build"

    @property
    def row_file(self) -> Path:
        """The file with the row of the archive."""
        return self.archive.with_name(f"{self.archive.name}.toml")


def prepare(order: Order, catalog: Catalog, fetching: Fetching, out: str | None, report: Reporter) -> Job:
    """Fetch the source, and return the job for it; the source is not changed.

    Raises:
        DownloadFailed, HashRefused, ArchiveRefused, SourceError: the source is not available.
        UsageError: it is none, or no recipe is for it.
        Untrusted: another user can change files in the store.
    """
    store.refuse_foreign(fetching.store, ())
    source, what = _get_source(order, fetching, report)
    name = order.row.name
    recipe = choose_recipe(catalog, name, read_text(source / "CMakeLists.txt"), str(source))
    probe = Probe(environ={})
    version, _ = library_version(probe, list_folders(probe, [str(source / "include")], []), name)
    version = version or order.row.version
    patches = choose_source_patches(catalog, order, version)
    inputs = (what, order.cuda, *order.arch_words, order.configuration, order.system, *recipe.options)
    text = "\n".join((*inputs, *(patch.diff for patch in patches)))
    key = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:12]
    folder = fetching.store / BUILDING / f"{name}-{key}"
    place = Path(out).expanduser().absolute() if out else fetching.store / BUILT / f"{name}-{key}"
    return Job(
        order=order,
        source=source,
        recipe=recipe,
        patches=patches,
        note=make_note(order, version, key),
        folder=folder,
        archive=place / archive_name(order, version),
    )


def name_missing(order: Order, fetching: Fetching) -> str:
    """Return the address of a source that must be fetched; empty if it is here."""
    if order.path:
        return ""
    if order.url:
        return "" if _clone_folder(order, fetching).is_dir() else f"{order.url} at {order.ref}"
    artifact = order.artifact
    assert artifact is not None  # there is neither a folder nor an address
    marker = read_marker(store.folder_of(fetching.store, artifact.stored_as))
    return "" if marker and marker.finished else artifact.urls[0]


def _clone_folder(order: Order, fetching: Fetching) -> Path:
    key = hashlib.sha256(f"{order.url}@{order.ref}".encode()).hexdigest()[:12]
    return fetching.store / BUILDING / f"{order.row.name}-{key}-git"


def _get_source(order: Order, fetching: Fetching, report: Reporter) -> tuple[Path, str]:
    """Return the folder of the source, and its fingerprint."""
    row = order.row
    if order.path:
        folder = Path(order.path).expanduser().absolute()
        if not (folder / "CMakeLists.txt").is_file():
            raise UsageError(
                f"{folder} is no source of {row.name}: it has no CMakeLists.txt.",
                next_step=f"Name its folder: torchbuild helpers build {row.name}=PATH",
            )
        return folder, f"{folder} {stamp_files(folder)}"
    if order.url:
        from torchbuild_tasks.system.git.run import Git
        from torchbuild_tasks.system.git.transfer import git_settings

        folder = _clone_folder(order, fetching)
        with files.translate_errors(SourceError, folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
        git = Git(folder=folder, config=git_settings(fetching.git_mirrors))
        ways = f"Name a folder that has it: torchbuild helpers build {row.name}=PATH, or {row.name}=URL@REF"
        clone_source(git, order.url, order.ref, offline=fetching.net.offline, say=report.note, ways=ways)
        files.state_dir(folder)  # by which `helpers prune` recognises it
        return folder, f"{order.url}@{order.ref} {git.run('rev-parse', 'HEAD')}"
    artifact = order.artifact
    assert artifact is not None  # there is neither a folder nor an address
    folder = fetch((artifact,), fetching, report)[artifact.id]
    inner = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    return next((path for path in inner if (path / "CMakeLists.txt").is_file()), folder), row.sha256


def build(job: Job, plan: BuildPlan | None, report: Reporter) -> Built:
    """Build and pack, unless the archive exists.

    `plan` is torch's, in whose environment it is built; None: in ours.

    Raises:
        BuildFailed: a command of it failed.
        PatchRefused: a change does not fit the source.
        TreeBusy: another run builds the same.
    """
    if ready := _find_built(job):
        report.note(f"{job.archive} exists already, built for exactly this")
        return ready
    with files.translate_errors(SourceError, job.folder):
        job.folder.mkdir(parents=True, exist_ok=True)
    place = job.folder.parent.parent
    with (
        store.hold(place, {job.folder.name}, report.note),
        lock.hold(job.folder, "helpers build", report.note),
    ):
        if ready := _find_built(job):  # by the run that this one waited for
            return ready
        environ = _environment(job, plan)
        with open_log(job.folder, "build") as log:
            _compile(job, _Runner(job, environ, log, report), report)
        report.stage(f"pack {job.archive.name}")
        built = _pack(job)
    discard(job.folder)
    if job.order.url:
        discard(job.source)
    return built


def _compile(job: Job, runner: _Runner, report: Reporter) -> None:
    """Compile the library; Ninja continues an earlier run."""
    _copy_source(job, runner, report)
    for id in bring(job.tree, job.patches).applied:
        because = next(patch.because for patch in job.patches if patch.id == id)
        report.note(f"source patched ({id}): {because}")
    report.stage(f"configure {job.note.helper} {job.note.version}")
    runner.run(configure_argv(job.order, job.recipe, str(job.tree), str(job.build)))
    report.stage(f"compile {job.note.helper}, {job.order.jobs} at once")
    runner.run(build_argv(job.order, job.recipe, str(job.build)))


def _find_built(job: Job) -> Built | None:
    """Return an earlier run's archive of the same inputs, if its hash is unchanged."""
    try:
        row = read_text(job.row_file)
        same = f'helpers build, {job.note.key}"' in row and f'"{hash_file(job.archive)}"' in row
    except OSError:
        return None
    return Built(archive=str(job.archive), row=row) if same else None


def _environment(job: Job, plan: BuildPlan | None) -> Mapping[str, str]:
    """Return the environment of torch's build: its toolkit, its host compiler, on Windows its toolset."""
    if plan is None:
        return os.environ
    own = plan.env_files[0]
    path = job.folder / Path(own.path).name
    files.write_atomic(path, encode(own.shell, own.text), error=SourceError, private=True)
    return shell.activate(path, environ=os.environ)


class _Runner:
    """Runs the commands of one build with their output in its log."""

    def __init__(self, job: Job, environ: Mapping[str, str], log: Log, report: Reporter) -> None:
        self._name = job.note.helper
        self._environ = environ
        self._log = log
        self._report = report

    def run(self, argv: tuple[str, ...], cwd: Path | None = None) -> None:
        self._report.command(argv)
        rc = process.stream(argv, env=self._environ, cwd=cwd, log=self._log, on_block=self._report.block)
        if rc == 0:
            return
        last = read_text(self._log.path).splitlines()[-_LINES:]
        raise BuildFailed(
            f"{self._name} could not be built: {' '.join(argv)} ended with exit code {rc}.",
            looked=tuple(last),
            next_step=f"The whole log: {self._log.path} (torchbuild diagnose reads it)\n"
            "When that is fixed, the same command continues where it stopped.",
        )


def _copy_source(job: Job, runner: _Runner, report: Reporter) -> None:
    """Copy the source and generate all precisions; the copy is renamed when it is complete."""
    if job.tree.is_dir():
        return
    recipe = job.recipe
    ignored = shutil.ignore_patterns(".git", "build", files.STATE_DIR)
    with unfinished_folder(job.tree, SourceError) as part, files.translate_errors(SourceError, part):
        shutil.copytree(job.source, part, ignore=ignored, symlinks=True, dirs_exist_ok=True)
        if recipe.generated and not (part / recipe.generated).is_file():
            report.stage(f"generate the precisions of {job.note.helper}")
            for name, text in recipe.settings.items():
                if not (part / name).exists():
                    (part / name).write_text(text, "utf-8")
            runner.run((*recipe.generate, "-j", job.order.jobs), part)
        files.replace(part, job.tree)


def _pack(job: Job) -> Built:
    """Pack the built library in the layout of upstream's archives, and write its row."""
    package = job.folder / "package"
    discard(package)
    with files.translate_errors(SourceError, package):
        for folder in ("include", "lib", "info/licenses", "info/recipe"):
            (package / folder).mkdir(parents=True, exist_ok=True)
        for headers in (job.tree / "include", job.build / "include"):
            for header in sorted(headers.glob("*.h")):
                shutil.copyfile(header, package / "include" / header.name)
        for path in job.order.row.holds:
            if path.startswith("lib/") and (job.build / path).is_file():
                shutil.copyfile(job.build / path, package / path)
        if (job.tree / "COPYRIGHT").is_file():
            shutil.copyfile(job.tree / "COPYRIGHT", package / "info/licenses/COPYRIGHT")
        for patch in job.patches:
            (package / "info/recipe" / f"{patch.id}.diff").write_text(patch.diff, "utf-8")
        options = "\n".join(configure_argv(job.order, job.recipe, ".", "build"))
        (package / "info/recipe/configure.txt").write_text(options + "\n", "utf-8")
        package.joinpath(*NOTE).write_bytes(dumps(job.note).encode())
    if lacking := [path for path in job.order.row.holds if not (package / path).is_file()]:
        raise BuildFailed(f"The build succeeded but made no {', '.join(lacking)}.", looked=(str(job.build),))
    pack(package, job.archive, job.order.row.unpack)
    size = job.archive.stat().st_size
    row = row_text(job.order, job.note, job.archive.as_uri(), hash_file(job.archive), size)
    files.write_atomic(job.row_file, row.encode(), error=SourceError)
    return Built(archive=str(job.archive), row=row)

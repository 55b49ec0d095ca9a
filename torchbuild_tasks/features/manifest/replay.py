"""Plan a recorded build again: read its manifest, compare the plan with it, write its diffs."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.errors import ManifestError, NotBuilt
from torchbuild_tasks.facts.trust import is_trusted_manifest
from torchbuild_tasks.features.builds.named_build import Named, place_of
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.manifest.act import plan_manifest
from torchbuild_tasks.features.manifest.choose import HIDDEN, not_carried, withhold
from torchbuild_tasks.features.manifest.compare import (
    KNOWN_BEFORE,
    Difference,
    Place,
    diff_name,
    differences,
    not_compared,
    with_remedies,
)
from torchbuild_tasks.features.manifest.read import read_manifest
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.model.record import MANIFEST_FILE, Manifest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system import files
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.text.redaction import is_secret
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.values import replace


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded build planned again: the plan, the remaining differences, flags that could not be repeated.

    `not_compared` may differ as well: it is not recorded there, or not known here.
    """

    plan: BuildPlan
    differences: tuple[Difference, ...]
    not_carried: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    written: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Return each difference as one line, for the log of a build."""
        lines = tuple(f"{x.group}: {x.name}: {x.there} there, {x.here} here" for x in self.differences)
        return (*lines, *(f"not compared: {each}" for each in self.not_compared))


def load(name: str) -> Manifest:
    """Read the manifest in a file.

    Raises:
        ManifestError: there is none, it cannot be read, or it is a folder.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        inside = (path / MANIFEST_FILE, path / "build" / MANIFEST_FILE)
        file = next((each for each in inside if each.is_file()), None)
        raise ManifestError(
            f"{path} is a folder, not a manifest.",
            looked=tuple(map(str, inside)),
            next_step=f"Name the file: {file}" if file else "A build writes one into its build tree.",
        )
    try:
        data = read_bytes(path)
    except OSError as error:
        why = "there is no such file" if error.errno == errno.ENOENT else error.strerror
        raise ManifestError(
            f"{path} cannot be read: {why}.",
            next_step=f"Every build writes {MANIFEST_FILE} into its build tree.",
        ) from None
    return read_manifest(data, str(path))


def load_named(word: str, about: Named) -> Manifest:
    """Read the last manifest of the named build, else the one in the file of this name.

    Raises:
        ManifestError: as `load`.
        NotBuilt: the build was not built yet.
    """
    build = about.settings.builds.get(word)
    if build is None or Path(word).expanduser().exists():
        return load(word)
    path = place_of(about.settings, build, about.main).folder / "build" / MANIFEST_FILE
    if not path.is_file():
        raise NotBuilt(
            f"{word} was not built yet: there is no {path}.",
            next_step=f"Build it: torchbuild build --name {word}",
        )
    return load(str(path))


def believe(manifest: Manifest, name: str, catalog: Catalog) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest, reduced unless it was written here or is trusted.

    Returns:
        The manifest, and a line on what does not count.
    """
    place = os.path.realpath(Path(name).expanduser())
    if is_trusted_manifest(place):
        return manifest, ()
    clean, out = withhold(manifest, catalog)
    if not os.path.normcase(place).startswith(os.path.normcase(f"{os.path.realpath(manifest.root)}{os.sep}")):
        clean = replace(clean, root="")  # the user did not name its folders
    command = f"torchbuild trust {as_word(place)}"
    note = f"{', '.join(out)} (the manifest is not trusted; if you believe it: {command})"
    return clean, (note,) if out else ()


def source_of(manifest: Manifest, named: str | None) -> str:
    """Return the checkout for a replay: the named one, else the recorded one if it exists, else `.`."""
    return named or (manifest.root if manifest.root and Path(manifest.root).is_dir() else ".")


@contextlib.contextmanager
def use_recorded_variables(manifest: Manifest, catalog: Catalog) -> Iterator[None]:
    """Replace the build variables by the recorded ones during the body; keep credentials."""
    patterns = tuple(row.name for row in catalog.variable)
    now = {
        name: value
        for name, value in os.environ.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns) and not is_secret(name)
    }
    then = {name: value for name, value in manifest.facts.environ.items() if HIDDEN not in value}
    for name in now:
        del os.environ[name]
    os.environ.update(then)
    try:
        yield
    finally:
        for name in then:
            os.environ.pop(name, None)
        os.environ.update(now)


def compare_plan(
    manifest: Manifest,
    path: str,
    question: Question,
    plan: BuildPlan,
    tool: str,
    written: tuple[str, ...],
    withheld: tuple[str, ...],
) -> Replay:
    """Compare the plan made here by `tool` with the manifest."""
    planned = plan_manifest(question, plan, tool)
    differing = differences(manifest, planned, KNOWN_BEFORE)
    machine = Machine(question.facts, plan, question.catalog, built=False)
    place = Place(
        root=plan.source,
        python=plan.environment.python,
        manifest=path,
        install=lambda package: machine.value(f"package:{package}"),
        windows=question.facts.host.os == "windows",
    )
    return Replay(
        plan=plan,
        differences=with_remedies(differing, manifest, place),
        not_carried=(*not_carried(manifest), *withheld),
        not_compared=not_compared(manifest, planned, KNOWN_BEFORE),
        written=written,
    )


def write_diffs(manifest: Manifest, folder: Path) -> tuple[str, ...]:
    """Write the complete diffs of torch and its submodules as files for `git apply`.

    Raises:
        ManifestError: a file cannot be written.
    """
    written = []
    for repository in manifest.repositories:
        data = repository.diff.encode("utf-8", "surrogateescape")
        if not data or hashlib.sha256(data).hexdigest() != repository.diff_sha256:
            continue
        path = folder / diff_name(repository.path)
        with files.translate_errors(ManifestError, path):
            folder.mkdir(parents=True, exist_ok=True)
        files.write_atomic(path, data, error=ManifestError, private=True)
        written.append(str(path))
    return tuple(written)

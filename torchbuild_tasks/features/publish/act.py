"""Publish packages to a folder or an index; existing files are never replaced."""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.facts.wheel import BROKEN, read_metadata
from torchbuild_tasks.features.publish.choose import (
    CONDA,
    LOGIN,
    File,
    Step,
    index_address,
    project_of,
    project_page,
    read_page,
    root_page,
    unread_advice,
)
from torchbuild_tasks.system import files, lock, process
from torchbuild_tasks.system.archive.readers import TAR_BROKEN, names_of_tar_gz
from torchbuild_tasks.system.reading import hash_file
from torchbuild_tasks.system.stall import Pace, Stalled
from torchbuild_tasks.text.words import in_short

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

_ENDS: Final = (".whl", ".tar.gz", CONDA)
_PART: Final = ".part"
_PAGE: Final = "index.html"
_SECONDS: Final = (15.0, 60.0)  # to connect, and without a byte
_SUBDIR: Final = re.compile(r"noarch|[a-z]+-[a-z0-9_]+")
_MOST_MEMBERS: Final = 200_000
_TYPES: Final = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"


def look_at_file(path: Path) -> File:
    """Return the facts of a package.

    Raises:
        PackageRefused: it is not a package, or is damaged.
    """
    metadata = b""
    try:
        project, version = _subdir_of(path) if path.suffix == CONDA else project_of(path.name)
        if path.suffix == CONDA:
            pass  # a channel's metadata is read from the file there
        elif path.suffix == ".whl":
            with zipfile.ZipFile(path) as archive:
                metadata = read_metadata(archive)
        else:
            first = itertools.islice(names_of_tar_gz(path), _MOST_MEMBERS)
            if not any(name.endswith("/PKG-INFO") for name in first):
                raise ValueError("it has no PKG-INFO")
        digest = hash_file(path)
    except (*BROKEN, *TAR_BROKEN) as error:
        raise PackageRefused(
            f"{path} is not a complete package: {in_short(error)}.",
            next_step="Make it again: torchbuild package",
        ) from None
    return File(
        name=path.name,
        project=project,
        version=version,
        sha256=digest,
        size=path.stat().st_size,
        metadata=metadata,
    )


def _subdir_of(path: Path) -> tuple[str, str]:
    """Return the channel's folder of a conda package ("linux-64"), and its version."""
    need("rattler", "A channel is written with py-rattler", "conda")
    from rattler import IndexJson
    from rattler.exceptions import ExtractError, IoError

    try:
        about = IndexJson.from_package_archive(path)
    except (ExtractError, IoError) as error:
        raise zipfile.BadZipFile(str(error)) from None
    if not _SUBDIR.fullmatch(str(about.subdir)):  # it becomes a folder of the channel
        raise ValueError(f"it is for {str(about.subdir)[:80]!r}, which is no platform")
    return str(about.subdir), str(about.version)


def need(module: str, what: str, extra: str) -> None:
    """Raise if a module of an extra is missing.

    Raises:
        PackageRefused: this Python does not have it.
    """
    if importlib.util.find_spec(module) is None:
        from torchbuild_tasks.system.own import extra_line

        raise PackageRefused(
            f"{what}, which this Python does not have. Nothing was sent.",
            looked=(f"Python: {sys.executable}",),
            next_step=f"Install it: {extra_line(extra)}",
        )


# ---------------- a folder


def files_in(folder: Path, project: str) -> tuple[File, ...]:
    """Return the packages of a project in a folder index."""
    place = folder / project
    paths = sorted(place.iterdir()) if place.is_dir() else []
    return tuple(look_at_file(path) for path in paths if path.name.endswith(_ENDS))


def publish_to_folder(folder: Path, steps: Sequence[tuple[Path, Step]], report: Reporter) -> None:
    """Copy packages into a folder index, then write its pages.

    Raises:
        PackageRefused: it cannot be written.
        TreeBusy: another run publishes there.
    """
    with files.translate_errors(PackageRefused, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with lock.hold(folder, "publish"):
            for path, step in steps:
                place = folder / step.file.project / step.file.name
                if step.what == "send":
                    report.stage(f"copy {step.file.name}")
                    _copy(path, place, step.file)
            named = [step.file for _, step in steps]
            if any(each.is_conda for each in named):
                report.stage("write the channel")
                _index_channel(folder)
            for project in sorted({each.project for each in named if not each.is_conda}):
                present = files_in(folder, project)
                for each in present:
                    if each.metadata:
                        _write(folder / project / f"{each.name}.metadata", each.metadata)
                _write(folder / project / _PAGE, project_page(project, present).encode())
            if projects := [path.parent.name for path in folder.glob(f"*/{_PAGE}")]:
                _write(folder / _PAGE, root_page(projects).encode())


def _index_channel(folder: Path) -> None:
    """Write repodata.json of each folder of a channel, which must include noarch."""
    import asyncio

    from rattler.index import index_fs

    (folder / "noarch").mkdir(exist_ok=True)
    asyncio.run(index_fs(folder, write_shards=False))


def _copy(source: Path, place: Path, file: File) -> None:
    """Copy a file atomically: under a temporary name, check it, then move it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():  # since it was looked at
        raise PackageRefused(f"{place} exists by now, and nothing is overwritten.")
    part = place.with_name(place.name + _PART)
    try:
        with source.open("rb") as original, files.create(part) as copy:
            shutil.copyfileobj(original, copy, 1 << 20)
    except OSError:
        part.unlink(missing_ok=True)  # it would fill what is full
        raise
    if hash_file(part) != file.sha256:
        part.unlink()
        raise PackageRefused(f"{source} changed while it was copied. It was not published.")
    part.chmod(0o644)
    files.replace(part, place)


def _write(path: Path, data: bytes) -> None:
    if files.write_changed(path, data, error=PackageRefused):
        path.chmod(0o644)


# ---------------- an index


def files_at(url: str, index: str, projects: Sequence[str]) -> dict[str, str]:
    """Return the files of projects in an index, with their hashes.

    Args:
        url: where packages are sent; the login of the environment is for its host alone.
        index: where they are read; "" for the place that goes with `url`.

    Raises:
        PackageRefused: the index does not say, so nothing keeps what is there from being overwritten.
    """
    import requests

    from torchbuild_tasks.system.net.client import Net, redact

    base = (index or index_address(url)).rstrip("/")
    user = os.environ.get("TWINE_USERNAME")
    login = (user, os.environ.get("TWINE_PASSWORD", "")) if user and not index else None
    hashes: dict[str, str] = {}
    with Net().session() as session:
        for project in projects:
            page = f"{base}/{project}/"
            try:
                answer = session.get(page, timeout=_SECONDS, auth=login, headers={"Accept": _TYPES})
                if answer.status_code != 404:
                    answer.raise_for_status()
                    hashes |= read_page(answer.text)
            except (requests.RequestException, ValueError, KeyError) as error:
                answered = getattr(error, "response", None)
                raise PackageRefused(
                    f"{redact(page)} does not say which files are there already. Nothing was sent.",
                    looked=(str(error),),
                    next_step=unread_advice(
                        lost=isinstance(error, requests.ConnectionError | requests.Timeout),
                        status=0 if answered is None else answered.status_code,
                    ),
                ) from None
    return hashes


def publish_to_index(url: str, path: Path, report: Reporter) -> None:
    """Upload one package with twine; its login is from the environment or the keyring.

    Raises:
        PackageRefused: twine is missing, or the index refuses the file.
    """
    need("twine", "An index is sent to with twine", "publish")
    report.stage(f"send {path.name}")
    flags = ("--non-interactive", "--disable-progress-bar", "--config-file", os.devnull)
    tail = process.Tail()
    try:
        code = process.stream(
            (sys.executable, "-P", "-m", "twine", "upload", *flags, "--repository-url", url, str(path)),
            env=None,
            cwd=None,
            on_block=tail,
            on_idle=Pace().look,
        )
    except Stalled as stalled:
        tail(str(stalled).encode())
        code = process.TIMED_OUT
    if code:
        raise PackageRefused(
            f"{path.name} was not accepted. What was sent before it stays; the same command continues here.",
            looked=tail.lines[-6:],
            next_step=LOGIN,
        )

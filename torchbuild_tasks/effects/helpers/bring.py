"""Brings archives into the store: what is at hand, and for the rest several downloads at once."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.effects.helpers import store
from torchbuild_tasks.effects.helpers.at_hand import Brought, Wanted, at_hand, file_name, place_for, shelve
from torchbuild_tasks.errors import DownloadFailed, HashRefused
from torchbuild_tasks.system.files import told_as
from torchbuild_tasks.system.mark import Origin
from torchbuild_tasks.system.net import download, pip
from torchbuild_tasks.system.net.client import Net, shown
from torchbuild_tasks.system.net.transfer import Remote, Tell
from torchbuild_tasks.system.remove import discard

AT_ONCE: Final = 4


class _Way(msgspec.Struct, frozen=True, kw_only=True):
    """How downloads of one run come into the store."""

    folder: Path
    net: Net
    tell: Tell
    settings: pip.PipSettings


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """One download and where it grows: the same place for the next run, which goes on with it."""

    wanted: Wanted
    remote: Remote
    target: Path


def bring(
    missing: Sequence[Wanted], folder: Path, *, net: Net, tell: Tell, note: Callable[[str], None]
) -> list[Brought]:
    """All archives, in their order; the artifacts are held against other runs (`store.held`).

    Raises:
        DownloadFailed: one cannot be had; without network, all those are named.
        HashRefused: one is not what it must be.
    """
    brought: dict[str, Brought] = {}
    for one in missing:
        if here := at_hand(folder, one, note):
            brought[one.artifact.id] = here
    rest = [one for one in missing if one.artifact.id not in brought]
    wheels = any(one.artifact.project for one in rest)
    settings = pip.read_settings(os.environ) if wheels else pip.PipSettings()
    way = _Way(folder=folder, net=net, tell=tell, settings=settings)
    fetched = _each(rest, way) if net.offline else _download(rest, way)
    brought |= {one.wanted.artifact.id: one for one in fetched}
    return [brought[one.artifact.id] for one in missing]


def _download(rest: Sequence[Wanted], way: _Way) -> list[Brought]:
    jobs = [_job(one, way) for one in rest if not one.artifact.project]
    try:
        hashes = download.fetch_all(
            [(job.remote, job.target) for job in jobs], way.net, way.tell, at_once=AT_ONCE
        )
    except HashRefused as error:
        raise _with_sources(error, rest) from error
    brought = [_arrived(job, sha256, way.folder) for job, sha256 in zip(jobs, hashes, strict=True)]
    return [*brought, *(_wheel(one, way) for one in rest if one.artifact.project)]


def _with_sources(error: HashRefused, rest: Sequence[Wanted]) -> HashRefused:
    """Add who asks for which hash: there the user changes it, when the new file is the right one."""
    said = [f"{one.sha256} is asked for by {one.said_by}" for one in rest if one.sha256]
    return HashRefused(error.what, looked=(*error.looked, *said), next_step=error.next_step)


def _job(one: Wanted, way: _Way) -> _Job:
    artifact = one.artifact
    remote = Remote(name=file_name(artifact), urls=artifact.urls, sha256=one.sha256, size=artifact.size)
    key = hashlib.sha256(f"{shown(remote.urls[0])}\n{artifact.id}".encode()).hexdigest()
    target = way.folder / store.PARTIAL / key / remote.name
    with told_as(DownloadFailed, target):
        target.parent.mkdir(parents=True, exist_ok=True)
    return _Job(wanted=one, remote=remote, target=target)


def _wheel(one: Wanted, way: _Way) -> Brought:
    """Have pip bring a wheel, in a folder that holds nothing of a killed run."""
    artifact = one.artifact
    key = hashlib.sha256(artifact.id.encode()).hexdigest()
    scratch = way.folder / store.PARTIAL / key
    discard(scratch)
    with told_as(DownloadFailed, scratch):
        scratch.mkdir(parents=True)
    wanted = pip.WheelWanted(
        project=artifact.project,
        version=artifact.version,
        tag=artifact.tag,
        sha256=one.sha256,
        said_by=one.said_by,
        size=artifact.size,
    )
    try:
        path, sha256 = pip.download_wheel(wanted, scratch, way.settings, way.net, way.tell)
        origin = Origin(id=artifact.id, sha256=sha256, url=path.name, size=path.stat().st_size)
        return shelve(way.folder, one, path, origin)
    finally:
        discard(scratch)


def _arrived(job: _Job, sha256: str, folder: Path) -> Brought:
    with told_as(DownloadFailed, job.target):
        size = job.target.stat().st_size
    url = shown(job.remote.urls[0])
    origin = Origin(id=job.wanted.artifact.id, sha256=sha256, url=url, size=size)
    brought = shelve(folder, job.wanted, job.target, origin)
    with contextlib.suppress(OSError):
        job.target.parent.rmdir()
    return brought


# ---------------------------------------------------------------- without network


def _each(rest: Sequence[Wanted], way: _Way) -> list[Brought]:
    """What a mirror or an index on this machine has, one after the other, to name all that is missing."""
    brought: list[Brought] = []
    missing: list[str] = []
    for one in rest:
        try:
            brought += _download([one], way)
        except DownloadFailed as error:
            missing += [*_lines(one, way.folder), *_why(one, error, way.net)]
    if missing:
        count = len(rest) - len(brought)
        raise DownloadFailed(
            f"With --offline nothing is downloaded, and {count} file{'s' * (count > 1)} would have to be.",
            looked=tuple(missing),
            next_step="Download them on another machine, put each where its line `to` says, and run the same "
            "command again; or set TORCHBUILD_MIRROR to a folder (file:///...) that has them.",
        )
    return brought


def _lines(one: Wanted, folder: Path) -> list[str]:
    artifact = one.artifact
    size = f", {artifact.size} bytes" if artifact.size else ""
    places = [f"from {shown(url)}" for url in artifact.urls]
    if artifact.project:
        for_tag = f" for {artifact.tag}" if artifact.tag else ""
        places = [f"from pip's index: the wheel of {artifact.project} {artifact.version}{for_tag}"]
    hashed = f"sha256 {one.sha256}" if one.sha256 else "sha256 not known yet"
    return [
        f"{artifact.id}{size}",
        *(f"  {line}" for line in (*places, hashed)),
        f"  to {place_for(folder, one)}",
    ]


def _why(one: Wanted, error: DownloadFailed, net: Net) -> list[str]:
    """What went wrong with an address on this machine."""
    local = any(net.address(url).startswith("file:") for url in one.artifact.urls)
    return [f"  {line}" for line in error.looked or (error.what,)] if local else []

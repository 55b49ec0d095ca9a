"""Resolve a word to a ref, and estimate space and path lengths of a checkout, before any fetch.

Measured on the sources of 1.13.1 (Debian's archive): 35,970 files, 656 MiB as they lie on ext4, 236 MiB as a
pack, longest path 175 characters. All history was 3.8 GiB in a mirror of 2026. Later releases are larger, so
these are the least.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog.match import parse_version
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.text.words import nearest

_COMMIT: Final = re.compile(r"[0-9a-f]{7,40}|[0-9a-f]{64}")
_RELEASE: Final = re.compile(r"v\d+(\.\d+)+")
_SERIES: Final = re.compile(r"v?\d+\.\d+")
_NEAREST: Final = 4


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """A ref of a repository: its full name ("" for a bare commit), its commit, and a short name."""

    ref: str
    commit: str
    name: str

    @property
    def branch(self) -> bool:
        """Say whether it is a branch, which can move."""
        return self.ref.startswith("refs/heads/")


def parse_listing(text: str) -> dict[str, str]:
    """Return the commit of each full ref in the output of `git ls-remote`; tags are dereferenced."""
    refs: dict[str, str] = {}
    for line in text.splitlines():
        commit, tab, ref = line.partition("\t")
        if tab and ref.startswith(("refs/heads/", "refs/tags/")):
            refs[ref.removesuffix("^{}")] = commit  # the line of the commit comes after the tag's own
    return refs


def find(word: str, refs: Mapping[str, str], url: str) -> Revision:
    """Return the ref for `word` among those of a repository.

    Raises:
        SourceError: nothing; the nearest tags are named.
    """
    releases = sorted((tag for tag in _tags(refs) if _RELEASE.fullmatch(tag)), key=Version)
    if word == "latest" and releases:
        return _read_source(f"refs/tags/{releases[-1]}", refs)
    for ref in (f"refs/tags/{word}", f"refs/tags/v{word}", f"refs/heads/{word}", f"refs/{word}", word):
        if ref in refs:
            return _read_source(ref, refs)
    if _SERIES.fullmatch(word):
        series = word.removeprefix("v")
        if within := [tag for tag in releases if tag.startswith(f"v{series}.")]:
            return _read_source(f"refs/tags/{within[-1]}", refs)
    if _COMMIT.fullmatch(word):
        return _commit(word, refs, url)
    raise SourceError(
        f"{url} has no tag, branch or commit '{word}'. Nothing was fetched.",
        looked=_near(word, refs),
        next_step="Name one that is there; `versions` lists the releases.",
    )


def _read_source(ref: str, refs: Mapping[str, str]) -> Revision:
    return Revision(ref=ref, commit=refs[ref], name=ref.split("/", 2)[2])


def _commit(word: str, refs: Mapping[str, str], url: str) -> Revision:
    """Return a commit: a full id, or a short one of a branch's or tag's commit."""
    if len(word) >= 40:
        return Revision(ref="", commit=word, name=word[:12])
    matches = sorted({commit for commit in refs.values() if commit.startswith(word)})
    if len(matches) == 1:
        return Revision(ref="", commit=matches[0], name=matches[0][:12])
    raise SourceError(
        f"{url} accepts only whole commits of 40 digits, and {word!r} has {len(word)}.",
        next_step="Write the whole commit: git rev-parse, or its page on GitHub, shows it.",
    )


def _tags(refs: Mapping[str, str]) -> list[str]:
    return [ref.removeprefix("refs/tags/") for ref in refs if ref.startswith("refs/tags/")]


def _near(word: str, refs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nearest tags, by version or by spelling."""
    tags = _tags(refs)
    wanted = parse_version(word)
    if wanted is not None:
        dated = sorted((version, tag) for tag in tags if (version := parse_version(tag)))
        after = next((i for i, (version, _) in enumerate(dated) if version > wanted), len(dated))
        near = [tag for _, tag in dated[max(0, after - _NEAREST // 2) : after + _NEAREST // 2]]
    else:
        names = [*tags, *(ref.removeprefix("refs/heads/") for ref in refs if ref.startswith("refs/heads/"))]
        near = [name for name in [nearest(word, names)] if name]
    return (f"nearest: {', '.join(near)}",) if near else ()


# ---------------- space and path lengths of a checkout


MIB: Final = 1 << 20
FILES: Final = 656 * MIB
PACKS: Final = 236 * MIB
HISTORY: Final = 3874 * MIB
LONGEST_PATH: Final = 175
_LIMIT_WINDOWS: Final = 259
_PYTORCH: Final = re.compile(r"[/:]pytorch/pytorch(\.git)?/?$")


def least_room(url: str, *, full: bool, mirrored: bool) -> int | None:
    """Return the minimal bytes of a new checkout; None for a repository that is not PyTorch's.

    Args:
        full: with all history.
        mirrored: what is fetched goes into the mirror store, too.
    """
    if not _PYTORCH.search(url):
        return None
    packs = HISTORY if full else PACKS
    return FILES + packs * (2 if mirrored else 1)


def check_room(need: int | None, free: int | None, folder: str) -> str:
    """Return a sentence about the space; empty if the need is unknown.

    Raises:
        SourceError: there is less than the least.
    """
    if need is None:
        return ""
    if free is None:
        return f"at least {need // MIB} MiB are needed; how much is free in {folder} is not known"
    if free < need:
        raise SourceError(
            f"{free // MIB} MiB are free for {folder}, and it takes at least {need // MIB} MiB. "
            "Nothing was fetched.",
            next_step="Free some space, or name a folder on another disk: --source PATH; TORCHBUILD_CACHE "
            "moves the store.",
        )
    return f"at least {need // MIB} MiB are needed, {free // MIB} MiB are free"


def long_path(folder: str) -> str:
    """Return a warning about a too long folder for Windows without long paths; else ""."""
    longest = len(folder) + 1 + LONGEST_PATH
    if longest <= _LIMIT_WINDOWS:
        return ""
    return (
        f"paths below {folder} get {longest} characters and more, and programs take {_LIMIT_WINDOWS} here "
        "(LongPathsEnabled is off): git can write them, a build cannot read them. Use a short folder: "
        "--source C:\\pt"
    )

"""The torch that is asked for: what its word means, and whether the checkout is that torch.

A word is 2.9, 2.9.1, v2.9.1, latest, main, a commit, a branch or a tag of git. Each names a ref of git
and the row that a build of it is planned by until its checkout says more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import parse_version, torch_row
from torchbuild_tasks.catalog.rows import TorchRow
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Finding, Source, Status
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.words import as_word, nearest

LATEST: Final = "latest"
MAIN: Final = "main"
_COMMIT: Final = re.compile(r"[0-9a-f]{7,40}")
_BUILT: Final = re.compile(r"git(?P<commit>[0-9a-f]{7,40})")  # the local part of 2.15.0a0+git1a2b3c4
_REF: Final = re.compile(r"(?!-)(?!.*(\.\.|//|@\{))[^\s~^:?*\[\\]+/[^\s~^:?*\[\\]*[^\s~^:?*\[\\/.]")


class TorchRef(msgspec.Struct, frozen=True, kw_only=True):
    """One torch: `ref` is what git fetches, `row` the row for plans before its checkout exists.

    `version` is the release of a tag ("2.9.1"), else "". The kind is `series` where the word leaves the
    last number open, so that any release of it will do.
    """

    word: str
    kind: Literal["release", "series", "branch", "commit", "ref"]
    ref: str
    row: TorchRow
    version: str = ""


def read_word(word: str, catalog: Catalog, source: str = "--torch") -> TorchRef:
    """Read the word by which the user names a torch; `source` is where it was given, for the error.

    Raises:
        UsageError: it is not a torch that is known, and no commit, branch or tag; names the nearest.
    """
    text = word.strip()
    newest = max(catalog.torch, key=lambda row: Version(row.version))
    if text.casefold() == LATEST:
        return _release(word, newest, newest.latest)
    if text.casefold() == MAIN:
        return TorchRef(word=word, kind="branch", ref=MAIN, row=newest)
    if "/" in text and _REF.fullmatch(text):
        version = parse_version(text.rpartition("/")[2])
        return TorchRef(word=word, kind="ref", ref=text, row=torch_row(catalog, version)[0])
    if _COMMIT.fullmatch(text):
        return TorchRef(word=word, kind="commit", ref=text, row=newest)
    version = parse_version(text)
    if version is None:
        raise _unknown(word, source, _near_words(text, catalog))
    return _of_version(word, source, version, catalog)


def _of_version(word: str, source: str, version: Version, catalog: Catalog) -> TorchRef:
    row, known = torch_row(catalog, version)
    if built := _BUILT.fullmatch(version.local or ""):
        return TorchRef(word=word, kind="commit", ref=built["commit"], row=row)
    plain = str(version) == version.base_version and len(version.release) in (2, 3)
    if not (known and plain):
        raise _unknown(word, source, _near_versions(version, catalog))
    if len(version.release) == 2:
        return TorchRef(word=word, kind="series", ref=f"v{row.latest}", row=row, version=row.latest)
    if version > Version(row.latest):
        raise _unknown(word, source, _near_versions(version, catalog))
    return _release(word, row, str(version))


def _release(word: str, row: TorchRow, version: str) -> TorchRef:
    return TorchRef(word=word, kind="release", ref=f"v{version}", row=row, version=version)


def releases(catalog: Catalog) -> tuple[Version, ...]:
    """Return every release that the table knows, ascending: a series has all from .0 to its latest."""
    latest = sorted(Version(row.latest) for row in catalog.torch)
    return tuple(
        Version(f"{last.major}.{last.minor}.{micro}") for last in latest for micro in range(last.micro + 1)
    )


def _near_versions(version: Version, catalog: Catalog) -> tuple[str, ...]:
    """Return the releases nearest to an unknown version; its own where only a suffix was added."""
    known = releases(catalog)
    wanted = Version(version.base_version)
    if wanted in known:
        own = str(known[known.index(wanted)])  # 2 is 2.0.0
        return (own, MAIN) if version.is_prerelease else (own,)
    before = [each for each in known if each < wanted]
    after = [each for each in known if each > wanted]
    return tuple(str(each) for each in (*before[-1:], *after[:1]))


def _near_words(text: str, catalog: Catalog) -> tuple[str, ...]:
    known = (LATEST, MAIN, *(str(version) for version in releases(catalog)))
    return tuple(filter(None, [nearest(text, known)]))


def _unknown(word: str, source: str, near: Iterable[str]) -> UsageError:
    names = " and ".join(near)
    hint = f"; the nearest: {names}" if names else ""
    return UsageError(
        f"{source} '{word}': no such torch is known{hint}",
        next_step="`versions` lists the known ones. Another tag or branch is named as git names it "
        "(tags/v9.9.0, release/9.9), a commit by 7 of its digits or more.",
    )


# ---------------- the torch of a build, and the checkout compared with it


class WantedTorch(msgspec.Struct, frozen=True, kw_only=True):
    """The torch to build, with the reason and the layer that decided it."""

    ref: TorchRef
    because: str
    source: Source = "default"


def wanted_torch(question: Question) -> WantedTorch | None:
    """Return what --torch says; without it the newest that fits this machine, None when none does.

    Raises:
        UsageError: --torch, or torch in torchbuild.toml, names no torch that is known.
    """
    if given := question.given("torch"):
        word, source, because = given
        place = "--torch" if source == "flag" else because
        return WantedTorch(ref=read_word(word, question.catalog, place), because=because, source=source)
    from torchbuild_tasks.plan.versions import newest_fit  # only where no torch is named and none lies here

    row = newest_fit(question.catalog, question.facts)
    if row is None:
        return None
    return WantedTorch(ref=_release(row.latest, row, row.latest), because="the newest that fits this machine")


def is_stored(question: Question) -> bool:
    """Say whether the checkout is one that was got into the store because of --torch."""
    store = question.facts.store
    within = f"{store.folder}{question.separator}sources{question.separator}" if store else ""
    return bool(within and question.given("torch") and question.facts.tree.root.startswith(within))


def check_torch(question: Question) -> tuple[Finding, ...]:
    """Check that the checkout is the torch that was asked for, if one was, and that --url does something."""
    wanted = wanted_torch(question) if question.given("torch") else None
    if wanted is None:
        return _check_url(question)
    status, text = _compare(question, wanted.ref)
    fix = _next_steps(question, wanted) if status != "ok" else ""
    told = Finding(id="torch", status=status, text=text, fix=fix)
    return (told, *(_check_url(question) if status != "error" else ()))


def _check_url(question: Question) -> tuple[Finding, ...]:
    """Report an address where the checkout is here, and not one that it brought to the store."""
    given = question.given("url")
    if not given or given[1] != "flag" or not question.facts.tree.version or is_stored(question):
        return ()
    text = f"--url {given[0]} has an effect only where a checkout is fetched, and this one is here"
    return (Finding.warn("flags", text, "Drop it."),)


def _next_steps(question: Question, wanted: WantedTorch) -> str:
    tree, ref = question.facts.tree, wanted.ref.ref
    url = f" {question.line('--url', str(question.request.url))}" if question.request.url else ""
    ways = [f"Get that one: torchbuild source get {wanted.ref.word}{url}"]
    if tree.git:
        move = f"torchbuild source update {ref} --source {as_word(tree.root)}"
        ways.append(f"Or move this one and its submodules there: {move}")
    if wanted.source == "flag":
        ways.append("Or leave --torch out, to build what is here")
    return ". ".join(ways)


def _compare(question: Question, ref: TorchRef) -> tuple[Status, str]:
    tree = question.facts.tree
    is_here = f"{tree.root} is torch {tree.version}"
    if ref.kind == "commit":
        return _compare_commit(question, ref)
    if ref.kind == "ref":
        text = f"whether {tree.root} is {ref.ref} is not known; its version.txt says {tree.version}"
        return "unknown", text
    version = question.read_version
    if version is None:
        return "unknown", f"{is_here}, which cannot be compared with {ref.ref}"
    if ref.kind == "branch":
        newest = Version(ref.row.version).release
        ahead = version.is_prerelease and version.release[:2] >= newest
        fits = f"{is_here}, as far as version.txt tells a tree of {ref.ref}"
        return ("ok", fits) if ahead else ("error", f"{is_here}, and --torch asks for {ref.ref}")
    return _compare_release(question, ref, version)


def _compare_commit(question: Question, ref: TorchRef) -> tuple[Status, str]:
    tree = question.facts.tree
    if tree.commit is None:
        return "unknown", f"{tree.root} does not say its commit, and --torch asks for {ref.ref}"
    if tree.commit.startswith(ref.ref):
        return "ok", f"{tree.root} is at commit {tree.commit}"
    return "error", f"{tree.root} is at commit {tree.commit[:10]}, and --torch asks for {ref.ref}"


def _compare_release(question: Question, ref: TorchRef, version: Version) -> tuple[Status, str]:
    """Compare with a release; a branch keeps 2.9.0a0 in version.txt, so only tags tell releases apart."""
    tree = question.facts.tree
    name = ref.row.version if ref.kind == "series" else ref.version
    is_here, asks = f"{tree.root} is torch {version}", f"and --torch asks for {name}"
    if version.release[:2] != Version(ref.version).release[:2]:
        return "error", f"{is_here}, {asks}"
    if ref.kind == "series":
        return "ok", f"{is_here}, of series {name}"
    if ref.ref in (tree.tags or ()):
        return "ok", f"{is_here}, tag {ref.ref}"
    others = [tag for tag in tree.tags or () if parse_version(tag)]
    if others:
        return "error", f"{tree.root} is tag {others[0]}, {asks}"
    if not version.is_prerelease:
        exact = version.base_version == ref.version
        return ("ok", is_here) if exact else ("error", f"{is_here}, {asks}")
    return "unknown", f"{is_here}, {asks}; its commit has no tag that would tell"

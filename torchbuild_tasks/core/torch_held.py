"""The torch that --torch names, held against what the checkout is."""

from __future__ import annotations

import msgspec
from packaging.version import Version

from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.rows import parse_version
from torchbuild_tasks.core.table import newest_fit
from torchbuild_tasks.core.torch_ref import TorchRef, read_word, release_of
from torchbuild_tasks.model import Finding, Source, Status


class WantedTorch(msgspec.Struct, frozen=True, kw_only=True):
    """The torch to build, with the reason and the layer that decided it."""

    ref: TorchRef
    because: str
    source: Source = "default"


def wanted_torch(question: Question) -> WantedTorch | None:
    """What --torch says; without it the newest that fits this machine, None when none does.

    Raises:
        UsageError: --torch, or torch in torchbuild.toml, names no torch that is known.
    """
    if given := question.given("torch"):
        word, source, because = given
        said = "--torch" if source == "flag" else because
        return WantedTorch(ref=read_word(word, question.catalog, said), because=because, source=source)
    row = newest_fit(question.catalog, question.facts)
    if row is None:
        return None
    return WantedTorch(ref=release_of(row), because="the newest that fits this machine")


def check_torch(question: Question) -> tuple[Finding, ...]:
    """Whether the checkout is the torch that was asked for; nothing where nobody asked."""
    wanted = wanted_torch(question) if question.given("torch") else None
    if wanted is None:
        return ()
    status, text = _held(question, wanted.ref)
    fix = _ways_out(question, wanted) if status != "ok" else ""
    return (Finding(id="torch", status=status, text=text, fix=fix),)


def _ways_out(question: Question, wanted: WantedTorch) -> str:
    tree, ref = question.facts.tree, wanted.ref.ref
    ways = [f"Get that one: source get {wanted.ref.word}"]
    if tree.git:
        ways.append(f"Or move this one and its submodules there: source update {ref} --source {tree.root}")
    if wanted.source == "flag":
        ways.append("Or leave --torch out, to build what is here")
    return ". ".join(ways)


def _held(question: Question, ref: TorchRef) -> tuple[Status, str]:
    tree = question.facts.tree
    is_here = f"{tree.root} is torch {tree.version}"
    if ref.kind == "commit":
        return _commit(question, ref)
    if ref.kind == "ref":
        text = f"whether {tree.root} is {ref.ref} is not known; its version.txt says {tree.version}"
        return "unknown", text
    version = question.version
    if version is None:
        return "unknown", f"{is_here}, which cannot be compared with {ref.ref}"
    if ref.kind == "branch":
        newest = Version(ref.row.version).release
        ahead = version.is_prerelease and version.release[:2] >= newest
        fits = f"{is_here}, as far as version.txt tells a tree of {ref.ref}"
        return ("ok", fits) if ahead else ("error", f"{is_here}, and --torch asks for {ref.ref}")
    return _release(question, ref, version)


def _commit(question: Question, ref: TorchRef) -> tuple[Status, str]:
    tree = question.facts.tree
    if tree.commit is None:
        return "unknown", f"{tree.root} does not say its commit, and --torch asks for {ref.ref}"
    if tree.commit.startswith(ref.ref):
        return "ok", f"{tree.root} is at commit {tree.commit}"
    return "error", f"{tree.root} is at commit {tree.commit[:10]}, and --torch asks for {ref.ref}"


def _release(question: Question, ref: TorchRef, version: Version) -> tuple[Status, str]:
    """A release branch keeps 2.9.0a0 in version.txt to the end; only a tag tells its releases apart."""
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

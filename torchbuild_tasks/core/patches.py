"""Which changes to the source a build needs, and why; the diffs are in the rows."""

from __future__ import annotations

from torchbuild_tasks.catalog import PatchRow
from torchbuild_tasks.core.cuda.wanted import is_cuda
from torchbuild_tasks.core.jetson import board
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.rows import admits
from torchbuild_tasks.model import Finding, Patch, Tool

LAUNCH_BOUNDS = "launch-bounds"


def choose_patches(question: Question) -> tuple[Patch, ...]:
    """The patches of this build, in the order in which they are applied."""
    if question.version is None or question.facts.tree.sample or question.given("no_patches"):
        return ()
    return tuple(
        Patch(id=row.id, diff=row.text, because=_because(question, row))
        for row in question.catalog.patch
        if _applies(question, row)
    )


def check_patches(question: Question) -> tuple[Finding, ...]:
    """What will be changed in the source, and whether git, which does it, is there."""
    chosen = choose_patches(question)
    findings = tuple(
        Finding(id="patch", status="ok", text=f"the source is patched ({patch.id}): {patch.because}")
        for patch in chosen
    )
    git = next((tool for tool in question.facts.tools if tool.name == "git"), Tool(name="git"))
    if not chosen or git.path:
        return findings
    text = "git is not here, and the source has to be patched with it"
    return (*findings, Finding(id="patch", status="error", text=text, fix="sudo apt-get install git"))


def _applies(question: Question, row: PatchRow) -> bool:
    host = question.facts.host
    here = row.os in ("", host.os) and row.arch in ("", host.arch)
    return here and bool(admits(row.torch, question.version)) and _needs(question, row.needs)


def _needs(question: Question, needs: str) -> bool:
    """Whether the machine is one that the row means."""
    if needs == LAUNCH_BOUNDS:
        known = board(question)
        return known is not None and known.launch_bounds and is_cuda(question)
    return not needs


def _because(question: Question, row: PatchRow) -> str:
    known = board(question) if row.needs else None
    return f"{known.name}: {row.because}" if known else row.because

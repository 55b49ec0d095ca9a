"""Choose the patches of a build, with reasons: those of rows, and the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.model import Finding, Patch, Tool
from torchbuild_tasks.plan.packages import how_to_install
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import is_cuda
from torchbuild_tasks.text.words import first_few

PATCH_RECORD: Final = "patches.json"  # in the tool's folder of a checkout: the record of applied patches


def choose_patches(question: Question) -> tuple[Patch, ...]:
    """Return the patches of this build in the order of application: ours, then the user's by name."""
    if question.given("no_patches"):
        return ()
    own = (
        Patch(id=patch.name, diff=patch.text, because=f"your own, {patch.path}", path=patch.path)
        for patch in question.facts.patches
    )
    return (*_of_rows(question), *own)


def _of_rows(question: Question) -> Iterator[Patch]:
    host = question.facts.host
    if question.read_version is None or question.facts.tree.sample:
        return
    for row in question.catalog.patch:
        here = row.os in ("", host.os) and row.arch in ("", host.arch) and not row.of
        if not here or not admits(row.torch, question.version):
            continue
        if not row.needs:
            yield Patch(id=row.id, diff=row.text, because=row.because)
        elif is_cuda(question):
            from torchbuild_tasks.plan.jetson import board  # for rows that are about boards

            known = board(question)
            if known and known.launch_bounds:
                yield Patch(id=row.id, diff=row.text, because=f"{known.name}: {row.because}")


def check_patches(question: Question) -> tuple[Finding, ...]:
    """Return findings about the patches: those to apply, unusable ones, a missing git."""
    chosen = choose_patches(question)
    if not chosen:
        return ()
    findings = (*_fine(chosen), *_broken(question))
    git = next((tool for tool in question.facts.tools if tool.name == "git"), Tool(name="git"))
    if git.path:
        return findings
    text = "git is not installed, and the source has to be patched with it"
    fix = how_to_install(question.facts, question.catalog, "git")
    return (*findings, Finding.error("patch", text, fix))


def _fine(chosen: tuple[Patch, ...]) -> Iterator[Finding]:
    from torchbuild_tasks.text.diffs import problem, sections  # most builds have no patches

    for patch in chosen:
        if problem(patch.diff):  # that has a finding of its own
            continue
        files = [section.path for section in sections(patch.diff)]
        text = f"the source is patched ({patch.id}): {patch.because}: {first_few(files, 3)}"
        yield Finding.ok("patch", text)


def _broken(question: Question) -> Iterator[Finding]:
    """Yield findings about the user's unusable patches, and about equal names."""
    from torchbuild_tasks.text.diffs import problem

    paths: dict[str, str] = {}
    fix = "Fix it, move it away, or use --no-patches."
    for patch in question.facts.patches:
        if reason := patch.problem or problem(patch.text):
            yield Finding.error("patch", f"{patch.path} {reason}", fix)
        elif patch.name in paths:
            text = f"{patch.path} has the name of {paths[patch.name]}, and a record needs one name for each"
            yield Finding.error("patch", text, "Give one of them another name.")
        paths[patch.name] = patch.path

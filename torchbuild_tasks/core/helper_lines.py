"""What the `helpers` verb shows and what a plan says of its helpers."""

from __future__ import annotations

import msgspec

from torchbuild_tasks.core.helpers import (
    NONE,
    Helper,
    Helpers,
    asked_names,
    is_called,
    machine_rows,
    make_helper,
)
from torchbuild_tasks.model import Artifact, Finding
from torchbuild_tasks.plan.artifacts import is_unpacked, unpacked_folder
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.words import did_you_mean


class HelperLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `helpers list`: what it is, whether this build wants it, whether it is there."""

    id: str
    because: str
    folder: str
    wanted: bool
    here: bool
    size: int | None = None
    sha256: str | None = None


class HelperReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a `helpers` verb found or did.

    `findings` come of verify; `removed` of prune, `removable` of prune --dry-run (paths).
    """

    action: str
    lines: tuple[HelperLine, ...]
    findings: tuple[Finding, ...] = ()
    removable: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def helper_lines(question: Question, helpers: Helpers) -> tuple[HelperLine, ...]:
    """Every helper that this machine could get; those that the plan wants are marked."""
    wanted = {helper.artifact.id for helper in helpers.chosen}
    known = (make_helper(question, row).artifact for row in machine_rows(question))
    return tuple(_line(question, artifact, artifact.id in wanted) for artifact in known)


def part_lines(question: Question, parts: tuple[Artifact, ...]) -> tuple[HelperLine, ...]:
    """The parts of the CUDA toolkit that is asked for, all of them wanted."""
    return tuple(_line(question, part, True) for part in parts)


def _line(question: Question, artifact: Artifact, wanted: bool) -> HelperLine:
    return HelperLine(
        id=artifact.id,
        because=artifact.because,
        folder=unpacked_folder(question, artifact.id),
        wanted=wanted,
        here=is_unpacked(question, artifact.id),
        size=artifact.size,
        sha256=artifact.sha256,
    )


def check_helpers(question: Question, helpers: Helpers) -> tuple[Finding, ...]:
    """Names that are no helper's, unpinned ones where hashes are required, and what is still to come."""
    names = sorted({row.name for row in machine_rows(question)})
    findings = [
        Finding(
            id="helper",
            status="error",
            text=f"there is no helper {name} for {question.facts.host.os} {question.facts.host.arch}"
            f"{did_you_mean(name, (*names, NONE))}",
            fix=f"Choose from: {', '.join(names) or 'none'}.",
        )
        for name in asked_names(question)
        if name != NONE and not any(is_called(row, name) for row in machine_rows(question))
    ]
    if question.given("require_hashes"):
        findings += [_unpinned(helper) for helper in helpers.chosen if not helper.artifact.sha256]
    findings += [_blank(helper) for helper in helpers.chosen if _is_broken_by_blank(helper)]
    coming = [helper for helper in helpers.chosen if not helper.here]
    if coming:
        named = ", ".join(helper.artifact.id for helper in coming)
        text = f"to be downloaded: {named}{_size(coming)}"
        findings.append(Finding(id="helper", status="ok", text=text))
    return tuple(findings)


def _unpinned(helper: Helper) -> Finding:
    text = f"{helper.artifact.id} has no known hash, and --require-hashes asks for one"
    fix = "Fetch it once without that flag, look at torchbuild.lock, and commit it."
    return Finding(id="helper", status="error", text=text, fix=fix)


def _is_broken_by_blank(helper: Helper) -> bool:
    return " " in helper.folder and "CMAKE_INCLUDE_PATH" in helper.row.prepend


def _blank(helper: Helper) -> Finding:
    """FindOpenMP.cmake passes the folder on as -I without quotes (1.13.1)."""
    text = f"{helper.folder} has a blank in it, with which PyTorch's FindOpenMP does not find Intel's OpenMP"
    fix = "Set TORCHBUILD_CACHE to a folder without blanks, such as C:\\torchbuild."
    return Finding(id="helper-blank", status="warn", text=text, fix=fix)


def _size(helpers: list[Helper]) -> str:
    sizes = [helper.artifact.size for helper in helpers]
    known = sum(size for size in sizes if size)
    return f" ({known / 1e6:.0f} MB{' and more' if None in sizes else ''})" if known else ""

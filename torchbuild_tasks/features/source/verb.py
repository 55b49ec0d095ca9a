"""`source`: get, update, look at, fix or mirror a checkout of PyTorch."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

from torchbuild_tasks.model.source import Checkout, ModuleState, SourceReport
from torchbuild_tasks.text.show import columns
from torchbuild_tasks.text.words import first_few

_SHOWN = 12


def source_text(report: SourceReport, *, dry_run: bool) -> str:
    """Return the report of an action as text."""
    if report.action == "reset":
        return _reset(report, dry_run)
    if report.action == "mirror":
        return _mirrors(report)
    if report.action in ("get", "update"):
        return "".join(map(_describe_checkout, report.checkouts))
    text = "".join(map(_checkout, report.checkouts))
    text += "".join(
        f"{path}: unfinished; `source get` with the same words goes on\n" for path in report.unfinished
    )
    return (text or "No checkout here, and none in the store: source get WORD\n") + _mirrors(report)


def _describe_checkout(one: Checkout) -> str:
    at = one.at or (one.commit or "")[:10]
    return f"{one.path}: PyTorch {one.version or 'of unknown version'}{f' ({at})' if at else ''}\n"


def _checkout(one: Checkout) -> str:
    history = " (without its history)" if one.shallow else ""
    rows = [
        ("checkout", one.path),
        ("kind", f"{one.kind}{history}"),
        ("version", one.version or "-"),
        ("from", one.url or "-"),
        ("commit", f"{one.commit or '-'}{f'  {one.at}' if one.at else ''}"),
    ]
    text = columns(rows, "")
    if one.cut_off:
        text += "A command on it was cut off: source update finishes it.\n"
    text += "".join(f"Objects that it borrows are gone: {folder}\n" for folder in one.lost)
    text += "".join(f"Note: {note}\n" for note in one.notes)
    if one.changed:
        text += f"changed files ({len(one.changed)}): {first_few(one.changed, _SHOWN)}\n"
    return text + _modules(one.modules, one.fix) + "\n"


def _modules(modules: tuple[ModuleState, ...], fix: str) -> str:
    if not modules:
        return ""
    counts = {state: sum(each.state == state for each in modules) for state in _STATES}
    summary = ", ".join(f"{count} {_STATES[state]}" for state, count in counts.items() if count)
    text = f"submodules: {summary}\n"
    for each in modules:
        if each.state == "missing":
            text += f"  {each.path}: missing\n"
        elif each.state == "elsewhere":
            text += f"  {each.path}: at {(each.there or '')[:10]}, wanted is {each.wanted[:10]}\n"
        elif each.state == "changed":
            text += f"  {each.path}: {first_few(each.changed, _SHOWN)}\n"
    if fix:
        text += f"-> {fix}\n"
    elif counts["missing"] or counts["elsewhere"]:
        text += "source update completes them.\n"
    return text


_STATES = {
    "ok": "as wanted",
    "missing": "missing",
    "unneeded": "not there and not needed by the plan",
    "elsewhere": "at another commit",
    "changed": "with changes",
}


def _mirrors(report: SourceReport) -> str:
    return columns([("mirror of", "in"), *report.mirrors], "") if report.mirrors else ""


def _reset(report: SourceReport, dry_run: bool) -> str:
    removed = first_few(report.removed, _SHOWN) or "nothing"
    text = f"{'would be fetched again' if dry_run else 'fetched again'}: {removed}\n"
    for path, files in report.kept:
        text += f"kept, because it has changes: {path}: {first_few(files, _SHOWN)}\n"
    if report.kept:
        text += "--yes throws such changes away.\n"
    return text


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceRequest(BuildRequest):
    """The words of `source`."""

    actions = {
        "get": "get a new checkout",
        "update": "move a checkout, or only complete its submodules",
        "status": "show what it is, and what is missing or changed",
        "reset": "with --third-party: get every submodule again",
        "mirror": "fill the mirror store, for use without a network",
    }
    optional = {"get": "ref", "update": "ref", "mirror": "ref"}


def run(request: SourceRequest, report: Reporter) -> Outcome:
    """Get, update, look at, fix or mirror a checkout of PyTorch."""
    result = run_action(request, report)
    return Outcome(result, source_text(result, dry_run=request.dry_run))


def _refuse_file(request: SourceRequest) -> None:
    """Refuse a file that is no archive, which would be taken for a name in a repository.

    Raises:
        UsageError: it is one.
    """
    from torchbuild_tasks.features.source.archive import ARCHIVES

    word = request.ref if request.action == "get" else None
    if word and not word.lower().endswith(tuple(ARCHIVES)) and Path(word).expanduser().is_file():
        raise UsageError(
            f"{word} is a file, and no archive of a release: {', '.join(ARCHIVES)}.",
            next_step="Name the archive, or a version: torchbuild source get 2.9.1",
        )


def run_action(request: SourceRequest, report: Reporter) -> SourceReport:
    """Run the requested action."""
    from torchbuild_tasks.checkout import named_checkout, source_task
    from torchbuild_tasks.context import look
    from torchbuild_tasks.features.source.act import run_source
    from torchbuild_tasks.system.signals import interruptible

    _refuse_file(request)
    question = look(request)
    with interruptible():
        return run_source(source_task(question, report), named_checkout(question))

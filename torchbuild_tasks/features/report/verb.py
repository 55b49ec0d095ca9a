"""`report`: write the last build's timeline, slowest files and critical path as one page.

Ninja's log is all that is needed. The manifest adds the stages, the history what changed, Ninja itself
which step needs which; the page names what is missing. `--trace` also writes a timeline for Perfetto.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.build.history import NINJA_LOG, ninja_graph, read_ninja_log, recall
from torchbuild_tasks.build.ledger import last_manifest
from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.context import look, require_checkout
from torchbuild_tasks.errors import ManifestError, NotBuilt, UsageError
from torchbuild_tasks.facts.tree import look_at_version
from torchbuild_tasks.features.manifest.read import read_manifest
from torchbuild_tasks.features.report.page import Page, Report, render
from torchbuild_tasks.model import Facts, Running
from torchbuild_tasks.model.history import History
from torchbuild_tasks.model.record import Manifest
from torchbuild_tasks.ninja.log import NinjaLog, Step, last_run, steps_within
from torchbuild_tasks.ninja.step_times import (
    builds_before,
    compiler_of,
    differences,
    find_removed_outputs,
    hits,
)
from torchbuild_tasks.ninja.timeline import critical_path, lanes, trace_events
from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.system.files import STATE_DIR, state_dir, translate_errors, write_atomic
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.text.visible import visible_json
from torchbuild_tasks.values import replace
from torchbuild_tasks.verbs import Outcome

PAGE: Final = "report.html"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportRequest(BuildRequest):
    """The flags of `report`."""

    trace: str | None = own_flag("also write the timeline as a trace for Perfetto or Chrome", metavar="FILE")


def run(request: ReportRequest, report: Reporter) -> Outcome:
    """Write the report of the last build: one HTML page, with --trace also a timeline for Perfetto."""
    written = write_report(request)
    for note in written.notes:
        report.note(note)
    trace = written.trace and str(written.trace)
    return Outcome(
        {"page": str(written.page), "trace": trace, "steps": written.steps},
        "".join(f"wrote {path}\n" for path in (written.page, written.trace) if path),
    )


def write_report(request: ReportRequest) -> ReportFiles:
    """Write the page, and the trace if requested."""
    question = look(request)
    root = require_checkout(question)
    out = Path(request.out).expanduser() if request.out else None
    trace = Path(request.trace).expanduser() if request.trace else None
    return make_report(root, Path(question.build_dir), out, trace, question.facts.tree.running)


class ReportFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The written files, the number of steps in them, and the notes of the page."""

    page: Path
    trace: Path | None
    steps: int
    notes: tuple[str, ...] = ()


def make_report(
    root: Path,
    build_dir: Path,
    out: Path | None,
    trace: Path | None,
    running: Running | None = None,
) -> ReportFiles:
    """Write the report of the last build in `build_dir`.

    Args:
        out: the page; None for `.torchbuild/report.html` in the checkout.
        trace: where to write Chrome's trace JSON; None for not at all.
        running: a command that works on the checkout now.

    Raises:
        NotBuilt: there is no log of Ninja, or no step in it.
        UsageError: it cannot be read, or a file cannot be written.
    """
    log = read_ninja_log(build_dir)
    manifest, notes = _manifest(last_manifest(build_dir))
    if manifest and manifest.result == "running":
        manifest = replace(manifest, result="still running" if running else "cut off")
    notes += [running.said] if running else []
    steps, run_notes = _steps(log, manifest, build_dir)
    graph = ninja_graph(build_dir)
    notes += run_notes + _damage(log, build_dir)
    history = _history(root, manifest)
    started = manifest.started if manifest else ""
    report = Report(
        torch=(manifest and manifest.decided.get("torch"))
        or look_at_version(os.path.realpath(root))
        or "of unknown version",
        result=manifest.result if manifest else "",
        when=started.replace("T", " ").replace("+00:00", " UTC"),
        machine=_machine(manifest.facts) if manifest else "",
        source=str(root),
        log=str(build_dir / NINJA_LOG),
        timeline=lanes(steps),
        chain=critical_path(steps, graph),
        stages=[(each.stage, each.seconds, each.result) for each in manifest.stages] if manifest else [],
        caches=manifest.caches if manifest else (),
        hits=len(hits(history, steps)),
        peaks=manifest.peaks if manifest else (),
        differences=differences(history, steps),
        gone=find_removed_outputs(history, graph),
        builds=builds_before(history, started),
        notes=tuple(notes),
    )
    page = out or state_dir(root) / PAGE
    _write(page, render(load_page(), report))
    if trace is not None:
        stages = [(name, seconds) for name, seconds, _ in report.stages]
        title = f"torch {report.torch}, {report.when}"
        _write(trace, visible_json(json.dumps(trace_events(report.timeline, title, stages))))
    return ReportFiles(page=page, trace=trace, steps=len(steps), notes=tuple(notes))


def _steps(log: NinjaLog, manifest: Manifest | None, build_dir: Path) -> tuple[tuple[Step, ...], list[str]]:
    """Return the steps of the recorded build, else of Ninja's last run that built something.

    Raises:
        NotBuilt: the log has no steps.
        UsageError: none of its lines can be read.
    """
    started = _moment(manifest.started) if manifest else None
    finished = _moment(manifest.finished) if manifest else None
    if started is not None:
        recorded = steps_within(log, started, finished or datetime.now(UTC).timestamp())
        if recorded:
            return recorded, []
    last = last_run(log)
    if last is None:
        kind = UsageError if log.unreadable else NotBuilt
        raise kind(
            f"{build_dir / NINJA_LOG} has no steps: nothing was built here yet, or it is damaged.",
            looked=(f"lines that could not be read: {log.unreadable}",),
            next_step="Build first: torchbuild build",
        )
    when = "" if last.began is None else f" of {datetime.fromtimestamp(last.began, UTC):%Y-%m-%d %H:%M UTC}"
    reason = "The recorded build ran no step of Ninja. " if started is not None else ""
    return last.steps, [f"{reason}Shown is Ninja's last run{when}."] if reason or when else []


def _damage(log: NinjaLog, build_dir: Path) -> list[str]:
    if not log.unreadable:
        return []
    lines = "One line" if log.unreadable == 1 else f"{log.unreadable} lines"
    return [f"{lines} of {build_dir / NINJA_LOG} could not be read: it was cut off or damaged there."]


def _manifest(path: Path) -> tuple[Manifest | None, list[str]]:
    """Return the manifest of the last build; None, with a note, if it cannot be read."""
    try:
        return read_manifest(read_bytes(path), str(path)), []
    except FileNotFoundError:
        return None, [f"There is no manifest of this build ({path}): the stages are not known."]
    except (OSError, ManifestError) as problem:
        return None, [f"The manifest cannot be read: {problem}"]


def _history(root: Path, manifest: Manifest | None) -> History:
    folder = manifest.store if manifest else ""
    store = Path(folder) if folder else root / STATE_DIR / "store"
    return recall(store, root, compiler_of(manifest.decided if manifest else {}))


def _machine(facts: Facts) -> str:
    total = facts.memory.total
    parts = (
        facts.host.distribution or facts.host.os,
        f"{facts.cpu.cores} cores",
        f"{total / GIB:.0f} GiB" if total else "",
    )
    return ", ".join(part for part in parts if part)


def _moment(value: str | None) -> float | None:
    try:
        return datetime.fromisoformat(value).timestamp() if value else None
    except ValueError:
        return None


def load_page() -> Page:
    """Read the page's template, its style and its script from the package."""
    folder = importlib.resources.files("torchbuild_tasks.data") / "report"
    html, style, script = (
        folder.joinpath(f"page.{kind}").read_text("utf-8").rstrip() for kind in ("html", "css", "js")
    )
    return Page(html=html, style=style, script=script)


def _write(path: Path, text: str) -> None:
    with translate_errors(UsageError, path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode("utf-8", "backslashreplace"), error=UsageError, private=True)

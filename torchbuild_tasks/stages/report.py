"""Makes the report of the last build: one HTML page, and the same as a trace for Perfetto.

Ninja's log is all that is needed. The record adds the stages, the history what changed, Ninja itself
which step needs which; what is missing is said on the page.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from torchbuild_tasks import codec
from torchbuild_tasks.catalog import GIB, Catalog
from torchbuild_tasks.core.ninja_graph import Graph
from torchbuild_tasks.core.ninja_log import NinjaLog, Step, last_run, within
from torchbuild_tasks.core.report_page import Page, Report, render
from torchbuild_tasks.core.step_history import builds_before, compiler_of, differences, gone, hits
from torchbuild_tasks.core.timeline import critical_path, lanes, trace_events
from torchbuild_tasks.effects.files import STATE_DIR, state_dir, told_as, write_atomic
from torchbuild_tasks.effects.history import NINJA_LOG
from torchbuild_tasks.effects.ledger import RECORD_FILE
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import CacheReport
from torchbuild_tasks.model.history import History, Peak
from torchbuild_tasks.stages.history import ninja_graph, read_ninja_log, recall

PAGE: Final = "report.html"
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ReportFiles:
    """What was written, and what a reader should know: the notes that stand on the page too."""

    page: Path
    trace: Path | None
    steps: int
    notes: tuple[str, ...] = ()


def make_report(
    root: Path, build_dir: Path, catalog: Catalog, out: Path | None, trace: Path | None
) -> ReportFiles:
    """Write the report of the last build in `build_dir`.

    Args:
        root: the checkout.
        build_dir: its build tree.
        catalog: the rows; for the names of what is measured.
        out: the page; None for `.torchbuild/report.html` in the checkout.
        trace: where to write Chrome's trace JSON; None for not at all.

    Raises:
        UsageError: there is no log of Ninja that can be read, or a file cannot be written.
    """
    log = read_ninja_log(build_dir)
    record, notes = _record(build_dir / RECORD_FILE)
    steps, run_notes = _steps(log, record, build_dir)
    graph = ninja_graph(build_dir)
    notes += run_notes + _readable(log, build_dir)
    history = _history(root, record)
    report = _report(root, build_dir, record, steps, graph, history, notes)
    page = out or state_dir(root) / PAGE
    _write(page, render(load_page(), report))
    if trace is not None:
        stages = [(name, seconds) for name, seconds, _ in report.stages]
        title = f"torch {report.torch}, {report.when}"
        _write(trace, json.dumps(trace_events(report.placed, title, stages)))
    return ReportFiles(page=page, trace=trace, steps=len(steps), notes=tuple(notes))


def _report(
    root: Path,
    build_dir: Path,
    record: Mapping[str, Any],
    steps: Sequence[Step],
    graph: Graph | None,
    history: History,
    notes: Sequence[str],
) -> Report:
    return Report(
        torch=_chosen(record, "torch") or _version(root),
        result=str(record.get("result") or ""),
        when=str(record.get("started") or "").replace("T", " ").replace("+00:00", " UTC"),
        machine=_machine(_mapping(record.get("facts"))),
        source=str(root),
        log=str(build_dir / NINJA_LOG),
        placed=lanes(steps),
        chain=critical_path(steps, graph),
        stages=_stages(record),
        caches=_values(CacheReport, record.get("caches")),
        hits=len(hits(history, steps)),
        peaks=_values(Peak, record.get("peaks")),
        differences=differences(history, steps),
        gone=gone(history, graph),
        builds=builds_before(history, str(record.get("started") or "")),
        notes=tuple(notes),
    )


def _steps(log: NinjaLog, record: Mapping[str, Any], build_dir: Path) -> tuple[tuple[Step, ...], list[str]]:
    """The steps of the recorded build, or else of Ninja's last run that made something.

    Raises:
        UsageError: the log has no steps.
    """
    started = _moment(record.get("started"))
    finished = _moment(record.get("finished"))
    if started is not None:
        recorded = within(log, started, finished or datetime.now(UTC).timestamp())
        if recorded:
            return recorded, []
    last = last_run(log)
    if last is None:
        raise UsageError(
            f"{build_dir / NINJA_LOG} has no steps: nothing was built here yet, or it is damaged.",
            looked=(f"lines that could not be read: {log.unreadable}",),
            next_step="Build first: torchbuild build",
        )
    when = "" if last.began is None else f" of {datetime.fromtimestamp(last.began, UTC):%Y-%m-%d %H:%M UTC}"
    said = "The recorded build ran no step of Ninja. " if started is not None else ""
    return last.steps, [f"{said}Shown is Ninja's last run{when}."] if started is not None or when else []


def _readable(log: NinjaLog, build_dir: Path) -> list[str]:
    if not log.unreadable:
        return []
    lines = "One line" if log.unreadable == 1 else f"{log.unreadable} lines"
    return [f"{lines} of {build_dir / NINJA_LOG} could not be read: it was cut off or damaged there."]


def _record(path: Path) -> tuple[Mapping[str, Any], list[str]]:
    """The record as it stands, also one of another version; empty with a note when there is none."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, [f"There is no record of this build ({path}): the stages are not known."]
    except (OSError, ValueError) as problem:
        return {}, [f"The record cannot be read: {path}: {problem}"]
    return _mapping(found), []


def _history(root: Path, record: Mapping[str, Any]) -> History:
    folder = _mapping(_mapping(record.get("facts")).get("store")).get("folder")
    store = Path(folder) if isinstance(folder, str) else root / STATE_DIR / "store"
    return recall(store, root, compiler_of(dict(_pairs(record.get("choices"), "name", "value"))))


def _stages(record: Mapping[str, Any]) -> list[tuple[str, float, str]]:
    found = record.get("stages")
    stages = [_mapping(each) for each in found] if isinstance(found, list) else []
    return [
        (str(each["stage"]), float(each["seconds"]), str(each.get("result", "")))
        for each in stages
        if "stage" in each and isinstance(each.get("seconds"), (int, float))
    ]


def _values(kind: type[T], rows: object) -> tuple[T, ...]:
    """The rows of a record as values of ours; those of a record of another version are left out."""
    found = []
    for row in rows if isinstance(rows, list) else ():
        with contextlib.suppress(UsageError):
            found.append(codec.decode(kind, row))
    return tuple(found)


def _machine(facts: Mapping[str, Any]) -> str:
    host = _mapping(facts.get("host"))
    cores = _mapping(facts.get("cpu")).get("cores")
    total = _mapping(facts.get("memory")).get("total")
    parts = [
        str(host.get("distribution") or host.get("os") or ""),
        f"{cores} cores" if cores else "",
        f"{total / GIB:.0f} GiB" if isinstance(total, int) else "",
    ]
    return ", ".join(part for part in parts if part)


def _chosen(record: Mapping[str, Any], name: str) -> str:
    return dict(_pairs(record.get("choices"), "name", "value")).get(name, "")


def _version(root: Path) -> str:
    """What the checkout says of itself, where no record says what was built."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (root / "version.txt").read_text("utf-8").strip()[:40] or "of unknown version"
    return "of unknown version"


def _pairs(rows: object, key: str, value: str) -> list[tuple[str, str]]:
    found = [_mapping(row) for row in rows] if isinstance(rows, list) else []
    return [(str(row.get(key, "")), str(row.get(value, ""))) for row in found]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _moment(value: object) -> float | None:
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except ValueError:
        return None


def load_page() -> Page:
    """The page's template, its style and its script, from the package."""
    folder = importlib.resources.files("torchbuild_tasks.data") / "report"
    html, style, script = (
        folder.joinpath(f"page.{kind}").read_text("utf-8").rstrip() for kind in ("html", "css", "js")
    )
    return Page(html=html, style=style, script=script)


def _write(path: Path, text: str) -> None:
    with told_as(UsageError, path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode("utf-8", "backslashreplace"), error=UsageError)

"""What was measured as tables of docs/speed.md: one for each topic, between two comments that name it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import Figure

_SIGNS = (("<= ", "≤ "), (">= ", "≥ "), (" - ", " – "))
_UNITS = {"x": "×"}


def machine() -> str:
    """What this was measured on, in one line."""
    model = _first(r"model name\s*: (.+)", "/proc/cpuinfo")
    total = _first(r"MemTotal:\s*(\d+)", "/proc/meminfo")
    system = _first(r'PRETTY_NAME="(.+)"', "/etc/os-release") or platform.platform()
    compiler = _said(("g++", "-dumpfullversion"))
    parts = (
        f"{datetime.now(UTC):%Y-%m-%d}",
        f"{os.cpu_count()} cores{f' ({model})' if model else ''}",
        f"{int(total) >> 20} GiB" if total else "",
        system,
        f"Python {platform.python_version()}",
        f"GCC {compiler}" if compiler else "",
    )
    return ", ".join(filter(None, parts))


def load() -> float:
    """How many processes wanted a core in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def table(figures: Sequence[Figure], where: str) -> str:
    """One topic: its figures, and under them what they were measured on."""
    rows = [f"| {figure.title} | {_spelled(figure)} | {_goal(figure)} |" for figure in figures]
    head = ("| what | minimum – median – maximum | goal |", "| --- | --- | --- |")
    return "\n".join((*head, *rows, "", where))


def put(text: str, topic: str, lines: str) -> str:
    """The page with another table for a topic; at its end where the page has no place for it."""
    begin, end = f"<!-- bench {topic} -->", "<!-- bench end -->"
    place = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    block = f"{begin}\n{lines}\n{end}"
    if place.search(text):
        return place.sub(lambda _: block, text)
    return f"{text.rstrip()}\n\n## {topic}\n\n`nox -s bench -- {topic}`\n\n{block}\n"


def _spelled(figure: Figure) -> str:
    text = str(figure).removesuffix(figure.unit)
    return f"{text.replace(' - ', ' – ')}{_UNITS.get(figure.unit, figure.unit)}"


def _goal(figure: Figure) -> str:
    if figure.goal.startswith("none"):
        return ""
    goal = figure.goal
    for ascii_sign, sign in _SIGNS:
        goal = goal.replace(ascii_sign, sign)
    return f"**{goal}, not met**" if figure.met is False else goal


def _first(pattern: str, file: str) -> str:
    try:
        found = re.search(pattern, Path(file).read_text("utf-8", "replace"))
    except OSError:
        return ""
    return found[1].strip() if found else ""


def _said(argv: Sequence[str]) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""

"""Where every library of a torch comes from, found without loading any of it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.core.closure.judge import close
from torchbuild_tasks.core.closure.words import looked
from torchbuild_tasks.effects.closure.shelf import Files
from torchbuild_tasks.model.closure import Closure, Loader
from torchbuild_tasks.system.process import Captured, capture, ending, tail
from torchbuild_tasks.verify.closure_probe import MARK

PROBE: Final = Path(__file__).with_name("closure_probe.py")
_LIMIT: Final = 60.0  # seconds; a Python that starts at all has answered in one


def find_closure(python: str, environ: Mapping[str, str]) -> Closure:
    """Follow every library that `import torch` of this Python loads, in this environment."""
    if not python:
        return Closure(python=python, problem="no Python was found")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torchbuild-closure-", ignore_cleanup_errors=True) as empty:
        captured = capture([python, "-I", str(PROBE)], env=environ, cwd=empty, timeout=_LIMIT)
    said = _said(captured)
    if problem := str(said.get("problem", "")):
        return Closure(python=python, problem=problem, seconds=round(time.monotonic() - began, 3))
    libraries, breaks = close(_loader(said, environ), Files(), load_catalog().library)
    seconds = round(time.monotonic() - began, 3)
    return Closure(python=python, libraries=libraries, breaks=breaks, seconds=seconds)


def reason(python: str, environ: Mapping[str, str], said: str) -> str:
    """Why `import torch` failed, where its libraries tell; else what Python `said`."""
    closure = find_closure(python, environ)
    if not closure.breaks:
        return said
    first, more = closure.breaks[0], len(closure.breaks) - 1
    told = [first.text if first.status == "error" else f"It may be this: {first.text}"]
    told += [f"  needed by: {' > '.join(first.chain)}"] if first.chain else []
    told += [f"  looked in: {looked(first)}"] if first.looked else []
    told += [f"  {first.fix}"] if first.fix else []
    told += [f"  {more} more: torchbuild verify --closure"] if more else []
    return "\n".join([*told, f"  Python says: {said}"])


def _said(captured: Captured) -> Mapping[str, Any]:
    """What the probe said of its process; a `problem` where it said nothing."""
    for line in captured.stdout.decode(errors="replace").splitlines():
        if MARK in line:
            said: dict[str, Any] = json.loads(line.partition(MARK)[2])
            return said
    return {"problem": f"{ending(captured)} before it said anything{tail(captured.stderr)}"}


def _loader(said: Mapping[str, Any], environ: Mapping[str, str]) -> Loader:
    if said["windows"]:
        from torchbuild_tasks.effects.closure import loader_windows

        return loader_windows.loader_of(said, environ)
    from torchbuild_tasks.effects.closure import loader_linux

    return loader_linux.loader_of(said, environ)

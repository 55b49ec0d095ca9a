"""What an existing build tree remembers: CMake's cache, and the manifest of our last build."""

from __future__ import annotations

import json
from collections.abc import Mapping

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import CMakeCache, Previous
from torchbuild_tasks.model.record import MANIFEST_FILE, RECORD_FILE

INSTALL = "torchbuild-install.json"
# In the order of trust: what PyTorch's own build passes in comes first.
PYTHON_KEYS = ("PYTHON_EXECUTABLE", "Python_EXECUTABLE", "Python3_EXECUTABLE")


def look_at_cache(probe: Probe, build_dir: str | None) -> CMakeCache | None:
    """The entries of CMakeCache.txt that tell whether the tree still fits; None without the file.

    Paths are as CMake writes them: with / on Windows, too.
    """
    text = probe.read(probe.join(build_dir, "CMakeCache.txt")) if build_dir else None
    if text is None:
        return None
    entries = _entries(text)
    return CMakeCache(
        home=entries.get("CMAKE_HOME_DIRECTORY"),
        generator=entries.get("CMAKE_GENERATOR"),
        build_type=entries.get("CMAKE_BUILD_TYPE"),
        python=next((entries[key] for key in PYTHON_KEYS if key in entries), None),
        compiler=entries.get("CMAKE_CXX_COMPILER"),
        prefix=entries.get("CMAKE_INSTALL_PREFIX"),
    )


def _entries(text: str) -> dict[str, str]:
    """KEY:TYPE=VALUE lines that have a value; CMake writes X-NOTFOUND for what it did not find."""
    entries = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        key, colon, _ = name.partition(":")
        if equals and colon and not key.startswith(("#", "//")) and value and not value.endswith("NOTFOUND"):
            entries[key] = value
    return entries


def look_at_manifest(probe: Probe, build_dir: str | None) -> Previous | None:
    """The last build as its manifest tells it; None when there is none or it is broken.

    The record of 0.1.0 counts until a newer build replaces it; the manifest beside that one has no inputs.
    """
    if not build_dir:
        return None
    record = probe.read(probe.join(build_dir, RECORD_FILE))
    text = probe.read(probe.join(build_dir, MANIFEST_FILE)) if record is None else record
    try:
        data = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("result"), str):
        return None
    inputs = data.get("inputs", {})
    finished = data.get("finished")
    if not isinstance(inputs, dict) or not all(isinstance(value, str) for value in inputs.values()):
        return None
    return Previous(
        result=data["result"],
        inputs=inputs,
        finished=finished if isinstance(finished, str) else None,
        verified=_verified(data.get("verify")),
        left_out=_left_out(data.get("verify")),
    )


def look_at_install(probe: Probe, build_dir: str | None) -> Mapping[str, str] | None:
    """The inputs of the last editable install that this tool finished; None when there is none."""
    text = probe.read(probe.join(build_dir, INSTALL)) if build_dir else None
    try:
        inputs = json.loads(text or "")["inputs"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    good = isinstance(inputs, dict) and all(isinstance(value, str) for value in inputs.values())
    return inputs if good else None


def _verified(report: object) -> bool:
    """Whether a verification was made and no check of it failed."""
    checks = report.get("checks") if isinstance(report, dict) else None
    if not isinstance(checks, list) or not all(isinstance(check, dict) for check in checks):
        return False
    return all(check.get("outcome") != "failed" for check in checks)


def _left_out(report: object) -> tuple[str, ...]:
    """The checks that the verification left out, to be quick."""
    names = report.get("left_out") if isinstance(report, dict) else None
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()

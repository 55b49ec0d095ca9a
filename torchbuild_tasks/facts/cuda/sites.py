"""Where the found interpreters keep what pip installs: NVIDIA's wheels among it."""

from __future__ import annotations

from collections.abc import Sequence

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.python_places import is_free_threaded
from torchbuild_tasks.model import Python


def site_folders(probe: Probe, pythons: Sequence[Python]) -> tuple[str, ...]:
    """The site-packages of each interpreter, each once."""
    folders = [folder for python in pythons for folder in _of_one(probe, python)]
    return tuple(dict.fromkeys(folders))


def _of_one(probe: Probe, python: Python) -> tuple[str, ...]:
    if python.prefix is None or python.version is None:
        return ()
    if probe.windows:
        return (probe.join(python.prefix, "Lib/site-packages"),)
    series = ".".join(python.version.split(".")[:2]) + ("t" if is_free_threaded(python.abi) else "")
    # Fedora's Python puts into lib64 what holds binaries.
    return tuple(
        probe.join(python.prefix, lib, f"python{series}", "site-packages") for lib in ("lib", "lib64")
    )

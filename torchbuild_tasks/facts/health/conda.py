"""What a conda environment brings along that a build may take by accident."""

from __future__ import annotations

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Facts


def conda_linkers(probe: Probe, facts: Facts) -> tuple[str, ...]:
    """The ld of each conda environment with a Python; that Python's own link commands name its folder."""
    prefixes = [python.prefix for python in facts.pythons if python.environment == "conda" and python.prefix]
    if active := probe.variable("CONDA_PREFIX"):
        prefixes.append(active)
    programs = (probe.join(prefix, "compiler_compat", "ld") for prefix in dict.fromkeys(prefixes))
    return tuple(program for program in programs if probe.is_file(program))

"""Everything about CUDA on the machine: toolkits, libraries beside them, GPUs and their driver."""

from __future__ import annotations

from collections.abc import Sequence

from torchbuild_tasks.facts.cuda.gpus import Gpus, look_for_gpus
from torchbuild_tasks.facts.cuda.libraries import look_for_libraries
from torchbuild_tasks.facts.cuda.toolkits import look_for_toolkits
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Cuda, Python


def look_at_cuda(
    probe: Probe,
    *,
    asked: str | None,
    store: str | None,
    pythons: Sequence[Python] = (),
    gpus: Gpus | None = None,
) -> Cuda:
    """Look; without any of it, an empty value says where was looked.

    Args:
        probe: the machine.
        asked: what the user wants as toolkit; a folder is looked at first.
        store: the folder with toolkits that this tool put together.
        pythons: interpreters, in whose packages NVIDIA's wheels may lie.
        gpus: what was seen of GPUs, when that was looked at before.
    """
    gpus = gpus or look_for_gpus(probe)
    toolkits, looked = look_for_toolkits(probe, asked, store, pythons)
    return Cuda(
        toolkits=toolkits,
        looked=looked,
        libraries=look_for_libraries(probe, pythons),
        gpus=gpus.seen,
        driver=gpus.driver,
        tegra=gpus.tegra,
        wsl=gpus.wsl,
        visible=probe.names.lookup(probe.environ, "CUDA_VISIBLE_DEVICES"),
        probes=gpus.probes,
    )

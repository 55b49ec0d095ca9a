"""CUDA for a person: toolkits, libraries, GPUs and the driver, a line each, with who said so."""

from __future__ import annotations

from collections.abc import Iterator

from torchbuild_tasks.model import Cuda, Driver, GpuSeen, Toolkit

GIB = 1 << 30


def cuda_rows(cuda: Cuda, verbose: bool) -> Iterator[tuple[str, str]]:
    """Name and text of each line; with `verbose` also where toolkits were looked for."""
    for toolkit in cuda.toolkits:
        yield "CUDA toolkit", _toolkit(toolkit)
    if not cuda.toolkits:
        yield "CUDA toolkit", "not found" + (f" in {', '.join(cuda.looked)}" if verbose else "")
    for library in cuda.libraries:
        where = library.include or library.library
        yield library.name, f"{library.version or 'version unknown'}  {where} ({library.found_via})"
    if cuda.tegra:
        l4t = f", L4T {cuda.tegra.l4t}" if cuda.tegra.l4t else ""
        yield "board", f"{cuda.tegra.model}{l4t}"
    for gpu in cuda.gpus:
        yield "GPU", _gpu(gpu)
    if cuda.driver:
        yield "NVIDIA driver", _driver(cuda.driver)
    if cuda.visible is not None:
        yield "CUDA_VISIBLE_DEVICES", cuda.visible or "(empty: hides every GPU)"
    if verbose or cuda.gpus:
        for probe, said in cuda.probes.items():
            yield f"probe {probe}", said


def _toolkit(toolkit: Toolkit) -> str:
    said = f"{toolkit.version or 'version unknown'}  {toolkit.path} ({toolkit.found_via})"
    if toolkit.problem:
        return f"{said}: {toolkit.problem}"
    lacks = [name for name, there in (("nvcc", toolkit.nvcc), ("headers", toolkit.headers)) if not there]
    lacks += ["libraries"] if not toolkit.libraries else []
    has = [
        f"{name} {version}" for name, version in (("cuDNN", toolkit.cudnn), ("NCCL", toolkit.nccl)) if version
    ]
    said += f", without {' and '.join(lacks)}" if lacks else ""
    return said + (f", with {' and '.join(has)}" if has else "")


def _gpu(gpu: GpuSeen) -> str:
    parts = [gpu.name or gpu.chip or gpu.pci_id or "unnamed"]
    if gpu.capability:
        parts.append(f"compute capability {gpu.capability}")
    if gpu.memory:
        parts.append(f"{gpu.memory / GIB:.0f} GiB")
    parts += ["split by MIG"] if gpu.mig else []
    at = f" at {gpu.bus}" if gpu.bus else ""
    return f"{', '.join(parts)}{at} ({gpu.probe})"


def _driver(driver: Driver) -> str:
    said = f"{driver.version or 'version unknown'} ({driver.found_via})"
    if driver.cuda:
        said += f", runs CUDA up to {driver.cuda}"
    if driver.module and driver.library and driver.module != driver.library:
        said += f", kernel module {driver.module}, library {driver.library}"
    return said + (f": {driver.problem}" if driver.problem else "")

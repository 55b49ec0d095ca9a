"""nvidia-smi, asked when NVML itself said nothing: the one source within WSL2, and of old drivers."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence

from torchbuild_tasks.facts.answers import Output
from torchbuild_tasks.facts.cuda.nvml import Answer, bus_of, count
from torchbuild_tasks.facts.parallel import each
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import GpuSeen

SMI_TIMEOUT = 5.0
ELSEWHERE = ("/usr/lib/wsl/lib/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi")
FIELDS = ("name", "uuid", "pci.bus_id", "pci.device_id", "memory.total", "driver_version")
NEWER = ("compute_cap", "mig.mode.current")  # drivers before 495 and 450 do not know these

_CUDA = re.compile(r"CUDA Version:\s*(\d+\.\d+)")
_PCI = re.compile(r"0x([0-9a-f]{4})10de", re.IGNORECASE)
_CAPABILITY = re.compile(r"\d+\.\d+")


def ask_smi(probe: Probe) -> Answer:
    """Ask the nvidia-smi on PATH, else in the folders where some systems hide it."""
    program = _program(probe)
    if program is None:
        return Answer(said="nvidia-smi was not found")
    argvs = (_query(program, FIELDS + NEWER), _query(program, FIELDS), (program,))
    full, old, table = each(lambda argv: probe.run(argv, timeout=SMI_TIMEOUT), argvs)
    version = _CUDA.search(table.stdout) if table else None
    for output, fields in ((full, FIELDS + NEWER), (old, FIELDS)):
        rows = _rows(output, fields)
        if rows:
            gpus = tuple(_smi_gpu(row) for row in rows)
            driver = rows[0]["driver_version"]
            cuda = version[1] if version else None
            return Answer(said=count(len(gpus)), gpus=gpus, driver=driver, cuda=cuda)
    return _failed(old)


def _program(probe: Probe) -> str | None:
    others: tuple[str, ...] = ELSEWHERE
    if probe.windows:
        programs = probe.variable("ProgramFiles") or "C:\\Program Files"
        system = probe.variable("SystemRoot") or "C:\\Windows"
        others = (
            probe.join(system, "System32/nvidia-smi.exe"),
            probe.join(programs, "NVIDIA Corporation/NVSMI/nvidia-smi.exe"),
        )
    found = (probe.program_at(path) for path in others)
    return probe.which("nvidia-smi") or next(filter(None, found), None)


def _query(program: str, fields: Sequence[str]) -> tuple[str, ...]:
    return (program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")


def _rows(output: Output | None, fields: Sequence[str]) -> list[dict[str, str]]:
    """One row for each GPU; empty when it failed or did not know a field."""
    if output is None or output.rc != 0:
        return []
    lines = csv.reader(output.stdout.splitlines(), skipinitialspace=True)
    return [
        dict(zip(fields, map(str.strip, line), strict=True)) for line in lines if len(line) == len(fields)
    ]


def _smi_gpu(row: Mapping[str, str]) -> GpuSeen:
    pci = _PCI.fullmatch(row["pci.device_id"])
    capability = row.get("compute_cap", "")
    memory = row["memory.total"]
    return GpuSeen(
        probe="nvidia-smi",
        bus=bus_of(row["pci.bus_id"]),
        pci_id=f"10de:{pci[1].lower()}" if pci else None,
        name=row["name"] or None,
        capability=capability if _CAPABILITY.fullmatch(capability) else None,
        memory=int(memory) << 20 if memory.isdecimal() and memory.isascii() else None,  # MiB
        uuid=row["uuid"] if row["uuid"].startswith("GPU-") else None,
        mig=row.get("mig.mode.current") == "Enabled",
    )


def _failed(output: Output | None) -> Answer:
    if output is None:
        said = f"no answer within {SMI_TIMEOUT:g} s"
        return Answer(said=said, problem=f"nvidia-smi gave {said}", hung=True)
    line = next(iter((output.stdout.strip() or output.stderr.strip()).splitlines()), "without a word")
    if output.rc == 0 or line == "No devices were found":
        return Answer(said=count(0))
    return Answer(said=f"ended with {output.rc}: {line[:200]}", problem=line[:200])

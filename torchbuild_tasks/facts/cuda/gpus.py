"""Find the GPUs and their driver by independent probes: NVML, nvidia-smi, files, the PCI bus."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.cuda.pci import look_at_pci
from torchbuild_tasks.facts.probe import Output, Probe, map_parallel, multiarch_triplet, program_files
from torchbuild_tasks.model import Driver, GpuSeen, Tegra
from torchbuild_tasks.model.cuda import pci_address
from torchbuild_tasks.values import from_json, parse_json

WSL = "/usr/lib/wsl"


class Gpus(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs that each probe saw, the driver, and how each probe ended."""

    seen: tuple[GpuSeen, ...] = ()
    driver: Driver | None = None
    tegra: Tegra | None = None
    wsl: bool = False
    probes: dict[str, str] = msgspec.field(default_factory=dict)


def look_for_gpus(probe: Probe) -> Gpus:
    """Query the driver, and read files meanwhile; run nvidia-smi only if NVML found nothing."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=1) as pool:
        answers = pool.submit(_ask_driver, probe)
        kernel = look_at_kernel(probe)
        on_bus = look_at_pci(probe)
        tegra = None if probe.windows else look_at_tegra(probe)
        nvml, smi = answers.result()
    board = (GpuSeen(probe="device tree", name=tegra.model),) if tegra and tegra.model else ()
    probes = {"nvml": nvml.summary}
    if smi is not None:
        probes["nvidia-smi"] = smi.summary
    if not probe.windows:
        probes["proc"] = count_words(len(kernel.gpus))
        probes["device tree"] = tegra.model or "hidden" if tegra else "no Jetson board"
    probes["pci"] = count_words(len(on_bus))
    release = (probe.uname().release or "").lower()
    return Gpus(
        seen=(*nvml.gpus, *(smi.gpus if smi else ()), *kernel.gpus, *on_bus, *board),
        driver=_driver(nvml, smi, kernel),
        tegra=tegra,
        wsl=not probe.windows and ("microsoft" in release or probe.is_dir(WSL)),
        probes=probes,
    )


def _ask_driver(probe: Probe) -> tuple[Answer, Answer | None]:
    """Query NVML, then nvidia-smi unless NVML hung: it uses NVML as well."""
    first = ask_nvml(probe)
    return first, None if first.gpus or first.hung else ask_smi(probe)


def _driver(nvml: Answer, smi: Answer | None, kernel: Kernel) -> Driver | None:
    """Return the driver by the best source of its version; None without one."""
    sources = (
        (nvml.driver, "nvml"),
        (smi.driver if smi else None, "nvidia-smi"),
        (kernel.module, kernel.module_via),
        (kernel.library, "the name of its library"),
    )
    version, found_via = next((source for source in sources if source[0]), (None, ""))
    problem = nvml.problem or (smi.problem if smi else None)
    if version is None and problem is None:
        return None
    return Driver(
        version=version,
        found_via=found_via,
        module=kernel.module,
        library=kernel.library,
        cuda=nvml.cuda or (smi.cuda if smi else None),
        problem=problem,
    )


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a probe of the driver; `summary` is for a person.

    `problem` is an error of the driver itself, rather than that there is none; `hung` is true
    when it gave no answer.
    """

    summary: str
    gpus: tuple[GpuSeen, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    problem: str | None = None
    hung: bool = False


def count_words(number: int) -> str:
    """Return "no GPU", "1 GPU" or "2 GPUs"."""
    return "no GPU" if number == 0 else f"{number} GPU{'s' if number > 1 else ''}"


# ---------------- NVML, in a process of its own

NVML_SCRIPT: Final = Path(__file__).with_name("nvml_probe.py")
NVML_TIMEOUT: Final = 5.0
NVML_LIBRARY_NOT_FOUND: Final = 12  # NVML_ERROR_LIBRARY_NOT_FOUND of nvml.h


def ask_nvml(probe: Probe) -> Answer:
    """Query NVML in a process of its own, since it can hang or crash, for at most `NVML_TIMEOUT` seconds."""
    folder = _pynvml_folder()
    if folder is None:
        return Answer(summary="the package nvidia-ml-py is not installed")
    # Without -S Python would import site, which takes longer than NVML.
    output = probe.run((sys.executable, "-I", "-S", "-B", str(NVML_SCRIPT), folder), timeout=NVML_TIMEOUT)
    if output is None:
        summary = f"no answer within {NVML_TIMEOUT:g} s"
        return Answer(summary=summary, problem=f"NVML gave {summary}", hung=True)
    try:
        report = from_json(_Report, parse_json(output.stdout.strip().rpartition("\n")[2]))
    except (ValueError, UsageError):
        summary = f"ended with {output.rc}: {output.reason}"
        return Answer(summary=summary, problem=f"NVML {summary}")
    return _read_nvml(report, probe.windows)


def _pynvml_folder() -> str | None:
    """Return the folder of pynvml without importing it; it was a package once."""
    spec = find_spec("pynvml")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent
    return str(path.parent if spec.submodule_search_locations else path)


class _Device(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    uuid: str | None = None
    bus: str | None = None
    pci: int | None = None
    capability: tuple[int, int] | None = None
    memory: int | None = None
    mig: bool = False


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """What nvml_probe.py prints."""

    error: str = ""
    code: int = 0
    driver: str | None = None
    cuda: int | None = None
    devices: tuple[_Device, ...] = ()
    errors: tuple[str, ...] = ()


def _read_nvml(report: _Report, windows: bool) -> Answer:
    if report.code == NVML_LIBRARY_NOT_FOUND:
        return Answer(summary=f"{'nvml.dll' if windows else 'libnvidia-ml.so.1'} was not found")
    if report.error:
        return Answer(summary=report.error, problem=report.error)
    summary = count_words(len(report.devices))
    faults = "; ".join(report.errors)
    return Answer(
        summary=f"{summary}; {faults}" if faults else summary,
        gpus=tuple(map(_nvml_gpu, report.devices)),
        driver=report.driver,
        cuda=f"{report.cuda // 1000}.{report.cuda % 1000 // 10}" if report.cuda else None,
        problem=faults or None,
    )


def _nvml_gpu(device: _Device) -> GpuSeen:
    return GpuSeen(
        probe="nvml",
        bus=pci_address(device.bus),
        # NVML's number holds the device in its upper half, the vendor in the lower.
        pci_id=f"{device.pci & 0xFFFF:04x}:{device.pci >> 16:04x}" if device.pci else None,
        name=device.name,
        capability=".".join(map(str, device.capability)) if device.capability else None,
        memory=device.memory,
        uuid=device.uuid,
        mig=device.mig,
    )


# ---------------- nvidia-smi, if NVML had no answer: the only source in WSL2, and for old drivers

SMI_TIMEOUT = 5.0
SMI_PLACES = ("/usr/lib/wsl/lib/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi")
SMI_FIELDS = ("name", "uuid", "pci.bus_id", "pci.device_id", "memory.total", "driver_version")
SMI_NEWER_FIELDS = ("compute_cap", "mig.mode.current")  # drivers before 495 and 450 do not know these
_SMI_CUDA = re.compile(r"CUDA Version:\s*(\d+\.\d+)")
_SMI_PCI = re.compile(r"0x([0-9a-f]{4})10de", re.IGNORECASE)
_CAPABILITY = re.compile(r"\d+\.\d+")


def ask_smi(probe: Probe) -> Answer:
    """Run the nvidia-smi on PATH, else the one in the folders of some systems off PATH."""
    program = _find_smi(probe)
    if program is None:
        return Answer(summary="nvidia-smi was not found")
    queries = (SMI_FIELDS + SMI_NEWER_FIELDS, SMI_FIELDS)
    argvs = (*(_smi_command(program, fields) for fields in queries), (program,))
    *answers, table = map_parallel(lambda argv: probe.run(argv, timeout=SMI_TIMEOUT), argvs)
    version = _SMI_CUDA.search(table.stdout) if table else None
    for output, fields in zip(answers, queries, strict=True):
        if rows := _smi_rows(output, fields):
            gpus = tuple(_smi_gpu(row) for row in rows)
            driver = rows[0]["driver_version"]
            cuda = version[1] if version else None
            return Answer(summary=count_words(len(gpus)), gpus=gpus, driver=driver, cuda=cuda)
    return _smi_failure(answers[-1])


def _find_smi(probe: Probe) -> str | None:
    others: tuple[str, ...] = SMI_PLACES
    if probe.windows:
        system = probe.variable("SystemRoot") or "C:\\Windows"
        others = (
            probe.join(system, "System32/nvidia-smi.exe"),
            probe.join(program_files(probe), "NVIDIA Corporation/NVSMI/nvidia-smi.exe"),
        )
    paths = (probe.program_at(path) for path in others)
    return probe.which("nvidia-smi") or next(filter(None, paths), None)


def _smi_command(program: str, fields: Sequence[str]) -> tuple[str, ...]:
    return (program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")


def _smi_rows(output: Output | None, fields: Sequence[str]) -> list[dict[str, str]]:
    """Return one row for each GPU; empty if it failed or a field is unknown."""
    if output is None or output.rc != 0:
        return []
    lines = csv.reader(output.stdout.splitlines(), skipinitialspace=True)
    return [
        dict(zip(fields, map(str.strip, line), strict=True)) for line in lines if len(line) == len(fields)
    ]


def _smi_gpu(row: Mapping[str, str]) -> GpuSeen:
    pci = _SMI_PCI.fullmatch(row["pci.device_id"])
    capability = row.get("compute_cap", "")
    memory = row["memory.total"]
    return GpuSeen(
        probe="nvidia-smi",
        bus=pci_address(row["pci.bus_id"]),
        pci_id=f"10de:{pci[1].lower()}" if pci else None,
        name=row["name"] or None,
        capability=capability if _CAPABILITY.fullmatch(capability) else None,
        memory=int(memory) << 20 if memory.isdecimal() and memory.isascii() else None,  # MiB
        uuid=row["uuid"] if row["uuid"].startswith("GPU-") else None,
        mig=row.get("mig.mode.current") == "Enabled",
    )


def _smi_failure(output: Output | None) -> Answer:
    if output is None:
        summary = f"no answer within {SMI_TIMEOUT:g} s"
        return Answer(summary=summary, problem=f"nvidia-smi gave {summary}", hung=True)
    if output.rc == 0 or output.reason == "No devices were found":
        return Answer(summary=count_words(0))
    return Answer(summary=f"ended with {output.rc}: {output.reason}", problem=output.reason)


# ---------------- files: the loaded kernel module, and the version of the driver's libraries

PROC_GPUS = "/proc/driver/nvidia/gpus"
DRIVER_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
# Containers, WSL and NixOS have the driver's libraries in folders that only the loader's configuration names.
DRIVER_FOLDERS = ("/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64", "/run/opengl-driver/lib")
LD_CONF = "/etc/ld.so.conf.d"
_NVRM = re.compile(r"^NVRM version:.*?\s(\d{3}\.\d+(?:\.\d+)?)\s", re.MULTILINE)
_DRIVER_VERSION = re.compile(r"\d{3}\.\d+(?:\.\d+)?")
# libcuda.so.1.1 of a Jetson and the one of WSL carry no version of a driver.
_LIBRARY_FILE = re.compile(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$")
_PROC_FIELD = re.compile(r"^([\w ]+?)\s*:\s*(.*?)\s*$", re.MULTILINE)
_DLL_VERSION = re.compile(r"\d+\.\d+\.\d*?(\d)\.(\d{2})(\d{2})")


class Kernel(NamedTuple):
    """The module's version and the file that has it; the libraries' version; the module's GPUs."""

    module: str | None = None
    module_via: str = ""
    library: str | None = None
    gpus: tuple[GpuSeen, ...] = ()


def look_at_kernel(probe: Probe) -> Kernel:
    """Look at the driver's files without calling it."""
    if probe.windows:
        return Kernel(library=_windows_version(probe))
    module, via = _kernel_module(probe)
    gpus = tuple(_kernel_gpu(probe, name) for name in probe.children(PROC_GPUS))
    return Kernel(module, via, _library_version(probe), gpus)


def _kernel_module(probe: Probe) -> tuple[str | None, str]:
    version = (probe.read("/sys/module/nvidia/version") or "").strip()
    if _DRIVER_VERSION.fullmatch(version):
        return version, "/sys/module/nvidia/version"
    match = _NVRM.search(probe.read("/proc/driver/nvidia/version") or "")
    return (match[1], "/proc/driver/nvidia/version") if match else (None, "")


def _library_version(probe: Probe) -> str | None:
    """Return the version in the target's name of a link: libcuda.so.1 is libcuda.so.535.104.05."""
    for folder in _loader_folders(probe):
        for name in DRIVER_LIBRARIES:
            path = probe.join(folder, name)
            match = _LIBRARY_FILE.search(probe.realpath(path)) if probe.exists(path) else None
            if match:
                return match[1]
    return None


def _loader_folders(probe: Probe) -> list[str]:
    """Return the loader's search folders: LD_LIBRARY_PATH, its configuration, the default ones."""
    folders = probe.names.split_path(probe.variable("LD_LIBRARY_PATH"))
    for file in probe.children(LD_CONF):
        lines = (probe.read(probe.join(LD_CONF, file)) or "").splitlines()
        folders += [line.strip() for line in lines if line.startswith("/")]
    arch = multiarch_triplet(probe)
    folders += [f"/usr/lib/{arch}", f"/usr/lib/{arch}/nvidia/current", *DRIVER_FOLDERS]
    return list(dict.fromkeys(folders))


def _kernel_gpu(probe: Probe, name: str) -> GpuSeen:
    fields = dict(_PROC_FIELD.findall(probe.read(probe.join(PROC_GPUS, name, "information")) or ""))
    uuid = fields.get("GPU UUID", "")
    return GpuSeen(
        probe="proc",
        bus=pci_address(fields.get("Bus Location")) or pci_address(name),
        name=fields.get("Model") or None,
        # It consists of question marks until a process has used the GPU.
        uuid=uuid if uuid and "?" not in uuid else None,
    )


def _windows_version(probe: Probe) -> str | None:
    """Return 537.13 for a nvcuda.dll of 31.0.15.3713: the driver's version is in the last five digits."""
    system = probe.variable("SystemRoot") or "C:\\Windows"
    version = probe.file_version(probe.join(system, "System32/nvcuda.dll")) or ""
    match = _DLL_VERSION.fullmatch(version)
    return f"{match[1]}{match[2]}.{match[3]}" if match else None


# ---------------- Jetson boards: the device tree and NVIDIA's release file

DEVICE_TREES = ("/proc/device-tree", "/sys/firmware/devicetree/base")
TEGRA_RELEASE = "/etc/nv_tegra_release"
_TEGRA_RELEASE = re.compile(r"#\s*R(\d+)\s*\(release\),\s*REVISION:\s*(\d+(?:\.\d+)*)")


def look_at_tegra(probe: Probe) -> Tegra | None:
    """Return the board; None on any other machine.

    In a container the device tree may be hidden: then `model` is empty and only the release is known.
    """
    tree = next(
        (tree for tree in DEVICE_TREES if probe.exists(probe.join(tree, "compatible"))), DEVICE_TREES[0]
    )
    compatible = _device_tree_texts(probe, probe.join(tree, "compatible"))
    match = _TEGRA_RELEASE.search(probe.read(TEGRA_RELEASE) or "")
    l4t = f"{match[1]}.{match[2]}" if match else None
    if l4t is None and not any(name.startswith("nvidia,tegra") for name in compatible):
        return None
    return Tegra(
        model=" ".join(_device_tree_texts(probe, probe.join(tree, "model"))), compatible=compatible, l4t=l4t
    )


def _device_tree_texts(probe: Probe, path: str) -> tuple[str, ...]:
    """Return the texts of a property, each of which ends with a null byte."""
    return tuple(word.strip() for word in (probe.read(path) or "").split("\0") if word.strip())

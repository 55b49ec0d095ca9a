"""A typical Windows 11: Visual Studio 2022 with two toolsets, Visual Studio 2019, the py launcher,
CUDA 12.9 and a GPU that it supports.

The facts that `gather` finds there are in tests/snapshots/windows-11.json.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.facts.cuda.canned import answers, device, nvml, toolkit
from tests.facts.fakes import FakeProbe, windows_machine
from torchbuild_tasks.facts.cuda.toolkit_folder import LINKED, PARTS
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.system.windows_memory import MemoryStatus
from torchbuild_tasks.values import replace

VS_2022 = "C:\\Program Files\\Microsoft Visual Studio\\2022\\Community"
VS_2019 = "C:\\Program Files (x86)\\Microsoft Visual Studio\\2019\\BuildTools"
VSWHERE = "C:\\Program Files (x86)\\Microsoft Visual Studio\\Installer\\vswhere.exe"
KITS = "C:\\Program Files (x86)\\Windows Kits\\10\\"
HOME = "C:\\Users\\Ada Lovelace"
PYTHON = f"{HOME}\\AppData\\Local\\Programs\\Python\\Python312"
STORE = f"{HOME}\\AppData\\Local\\Microsoft\\WindowsApps"
CACHE = f"{HOME}\\AppData\\Local\\torchbuild-tasks\\Cache"
ROOT = f"{HOME}\\src\\pytorch"
CUDA = "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.9"
GIT = "C:\\Program Files\\Git\\cmd\\git.exe"
COMMIT = "0fabc3ba44823f257e70ce397d989c8de5e362c1"
CMAKE = "Common7\\IDE\\CommonExtensions\\Microsoft\\CMake"
TOOLSETS = {"14.44.35207": VS_2022, "14.38.33130": VS_2022, "14.29.30133": VS_2019}
# What nvcc 12.9 lists.
ARCHS = "".join(
    f"compute_{arch}\n"
    for arch in (50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121)
)
VCVARSALL = "VC\\Auxiliary\\Build\\vcvarsall.bat"

# The form of vswhere 3.1's answer, with the keys that matter and one of those that do not.
ANSWER = json.dumps(
    [
        {
            "instanceId": "1a2b3c4d",
            "installationPath": VS_2022,
            "installationVersion": "17.14.36414.22",
            "productId": "Microsoft.VisualStudio.Product.Community",
            "catalog": {"productDisplayVersion": "17.14.13", "productLineVersion": "2022"},
        },
        {
            "instanceId": "5e6f7a8b",
            "installationPath": VS_2019,
            "installationVersion": "16.11.35913.81",
            "productId": "Microsoft.VisualStudio.Product.BuildTools",
            "catalog": {"productDisplayVersion": "16.11.35", "productLineVersion": "2019"},
        },
    ]
)

REGISTRY: dict[str, dict[str, str | int]] = {
    "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion": {
        "ProductName": "Windows 10 Pro",
        "DisplayVersion": "24H2",
        "CurrentBuildNumber": "26100",
        "UBR": 4349,
    },
    "HKLM\\SYSTEM\\CurrentControlSet\\Control\\FileSystem": {"LongPathsEnabled": 0},
    "HKLM\\SOFTWARE\\Microsoft\\Windows Kits\\Installed Roots": {"KitsRoot10": KITS},
    "HKLM\\SYSTEM\\CurrentControlSet\\Enum\\PCI\\VEN_10DE&DEV_2684&SUBSYS_88E51043&REV_A1\\4&1A2B3C&0&0008": {
        "DeviceDesc": "@oem4.inf,%nvidia_dev.2684%;NVIDIA GeForce RTX 4090",
        "ClassGUID": "{4d36e968-e325-11ce-bfc1-08002be10318}",
        "LocationInformation": "@System32\\drivers\\pci.sys,#65536;PCI bus %1, device %2;(1,0,0)",
        "Service": "nvlddmkm",
    },
}


def cl(version: str) -> str:
    """The 64-bit compiler of one of the toolsets."""
    return f"{TOOLSETS[version]}\\VC\\Tools\\MSVC\\{version}\\bin\\Hostx64\\x64\\cl.exe"


def windows_11(root: Path, **environ: str) -> FakeProbe:
    """The machine, with its files in `root`; keywords are further variables."""
    door = windows_machine(
        root,
        files={**_checkout(), **_visual_studio(), **_cuda(), f"{STORE}\\python.exe": ""},
        programs={
            VSWHERE: ANSWER,
            **{cl(version): None for version in TOOLSETS},
            f"{VS_2022}\\{CMAKE}\\CMake\\bin\\cmake.exe": "cmake version 3.31.6-msvc6\r\n",
            f"{VS_2022}\\{CMAKE}\\Ninja\\ninja.exe": "1.12.1\r\n",
            f"{CUDA}\\bin\\nvcc.exe": None,
            GIT: "git version 2.50.1.windows.1\r\n",
            "C:\\Windows\\py.exe": None,
            f"{PYTHON}\\python.exe": _report(),
        },
        environ={
            "Path": f"C:\\Windows\\system32;C:\\Windows;C:\\Program Files\\Git\\cmd;{STORE}",
            "DISTUTILS_USE_SDK": "1",
            "CUDA_PATH": CUDA,
            "PROMPT": "$P$G",
            **environ,
        },
        registry=REGISTRY,
        versions={
            cl("14.44.35207"): "19.44.35211.0",
            cl("14.38.33130"): "19.38.33133.0",
            cl("14.29.30133"): "19.29.30154.0",
        },
    )
    ask = f"{GIT} --no-optional-locks -C {ROOT}"
    door.outputs[f"{ask} rev-parse --show-toplevel HEAD"] = Output(
        0, f"{ROOT.replace(chr(92), '/')}\n{COMMIT}\n"
    )
    door.outputs[f"{ask} status --porcelain --untracked-files=no --ignore-submodules=all"] = Output(0, "")
    door.outputs[f"{GIT} -C {ROOT} config --type=bool --get core.longpaths"] = Output(1, "")
    door.outputs["C:\\Windows\\py.exe -0p"] = Output(0, f" -V:3.12 *        {PYTHON}\\python.exe\r\n")
    answers(door, f"{CUDA}\\bin\\nvcc.exe", "12.9", "12.9.86", ARCHS)
    card = device(name="NVIDIA GeForce RTX 4090", pci=0x268410DE, capability=[8, 9], memory=25757220864)
    nvml(door, card, driver="576.02", cuda=12090)
    return _sized(door)


def _sized(door: FakeProbe) -> FakeProbe:

    return replace(
        door,
        many=16,
        allowed=16,
        usage=(1022202216448, 225485783040),
        memory=MemoryStatus(34359738368, 20401094656, 39728447488, 22548578304),
        cache=CACHE,
    )


def _visual_studio() -> dict[str, str]:
    files = {f"{studio}\\{VCVARSALL}": "" for studio in (VS_2022, VS_2019)}
    for version in ("10.0.26100.0", "10.0.22621.0"):
        files[f"{KITS}Include\\{version}\\um\\windows.h"] = ""
    files[f"{KITS}Include\\10.0.19041.0\\ucrt\\stdio.h"] = ""  # a part of an SDK is none
    return files


def _cuda() -> dict[str, str]:
    """A toolkit with what torch links with, and CUPTI."""
    parts = {name: PARTS[name] for name in (*LINKED, "cupti")}
    headers = {f"{CUDA}\\include\\{header}": "" for _, header in parts.values()}
    libraries = {f"{CUDA}\\lib\\x64\\{library}.lib": "" for library, _ in parts.values()}
    return {**toolkit(CUDA, "12.9.1"), **headers, **libraries}


def _checkout() -> dict[str, str]:
    """Checked out with core.autocrlf, as git for Windows does by default."""
    files = {
        "version.txt": "2.9.0a0\r\n",
        "CMakeLists.txt": "project(Torch)\r\n",
        "torch\\__init__.py": "import os\r\n",
        "c10\\": "",
        "setup.py": "setup()\r\n",
        "pyproject.toml": '[build-system]\r\nrequires = []\r\nbuild-backend = "setuptools.build_meta"\r\n',
        ".gitmodules": '[submodule "fmt"]\r\n\tpath = third_party/fmt\r\n',
        "third_party\\fmt\\README": "",
        ".git\\HEAD": "ref: refs/heads/main\n",
    }
    return {f"{ROOT}\\{name}": text for name, text in files.items()}


def _report() -> str:
    return json.dumps(
        {
            "executable": f"{PYTHON}\\python.exe",
            "version": "3.12.10",
            "implementation": "CPython",
            "abi": "cp312-win_amd64",
            "bits": 64,
            "environment": "base",
            "externally_managed": False,
            "prefix": PYTHON,
            "scripts": f"{PYTHON}\\Scripts",
            "include": f"{PYTHON}\\Include",
            "headers": True,
            "venv": True,
            "debug_library": False,
            "packages": {"pip": "25.0.1"},
            "torch_from": None,
        }
    )

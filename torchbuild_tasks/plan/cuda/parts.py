"""Check that the toolkit has the libraries that torch is built with, not only what compiles a kernel.

What a package of nvcc alone brings (cuda-nvcc of NVIDIA's repositories or conda's) compiles a first program,
and CMake stops at what is not there, or switches it off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from packaging.version import Version

from torchbuild_tasks.model import Finding, Toolkit
from torchbuild_tasks.plan.cuda.toolkit import series_of
from torchbuild_tasks.plan.cuda.values import ADVISED, ARCHIVE, ChosenToolkit
from torchbuild_tasks.plan.dependent import State, truth
from torchbuild_tasks.plan.packages import installer, system_manager
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide
from torchbuild_tasks.text.paths import file_name, path_key, plain_path
from torchbuild_tasks.text.words import as_word

PARTS_ID: Final = "cuda-parts"
WHEELS: Final = "NVIDIA's wheels"  # as the facts call the way to a toolkit of pip's
_ELSEWHERE: Final = ("CMAKE_PREFIX_PATH", "CMAKE_LIBRARY_PATH", "CUDAToolkit_ROOT")
# Of NVIDIA's repositories for apt, and for dnf and zypper (developer.download.nvidia.com/compute/cuda/repos).
# UNCONFIRMED: none of them was installed.
_PACKAGES: Final = {
    "nvcc": {"apt": "cuda-nvcc", "": "cuda-nvcc"},
    "runtime": {"apt": "cuda-cudart-dev", "": "cuda-cudart-devel"},
    "libraries": {"apt": "cuda-libraries-dev", "": "cuda-libraries-devel"},
    "cupti": {"apt": "cuda-cupti-dev", "": "cuda-cupti"},
}
_OF_RPM: Final = ("dnf", "yum", "zypper")
# What a system's own package manager puts all of CUDA into: Debian's and Ubuntu's, Arch's.
_OF_SYSTEM: Final = {("apt", "/usr"): "nvidia-cuda-toolkit", ("pacman", "/opt/cuda"): "cuda"}
# As NVIDIA's installer for Windows lists them (CUDA Installation Guide for Microsoft Windows: subpackages).
_ON_WINDOWS: Final = {
    "nvcc": "nvcc",
    "runtime": "cudart",
    "libraries": "the libraries under Development and Runtime",
    "cupti": "cupti",
}


def check_parts(question: Question, chosen: ChosenToolkit) -> Iterator[Finding]:
    """Report what torch links with, and the profiler asks for, that the chosen toolkit does not hold."""
    toolkit = chosen.toolkit
    if toolkit is None or question.facts.tree.sample or question.request.from_wheel:
        return  # what is compiled against a wheel is linked with the wheel's libraries
    if toolkit.lacks:
        text = f"{toolkit.path} lacks what torch links with (header or library): {', '.join(toolkit.lacks)}"
        named = [name for name in _ELSEWHERE if (choice := decide(question, name)) and choice.value]
        install = _or(_install(question, toolkit, "libraries"))
        if named:
            text += f"; they may be in the folders of {', '.join(named)}, which were not looked into"
            yield Finding.warn(PARTS_ID, text, f"{ADVISED}{install}")
        else:
            yield Finding.error(PARTS_ID, f"{text}; CMake stops there", f"{ADVISED}{install}")
    if toolkit.parts and "cupti" not in toolkit.parts and _profiles(question):
        text = f'{toolkit.path} has no CUPTI: CMake builds Kineto for the CPU alone ("Could not find CUPTI '
        text += 'library"), and torch.profiler shows nothing of the GPU'
        install = _install(question, toolkit, "cupti")
        fix = f"Do without it: --set USE_KINETO=0{f'; or {install}' if install else ''}."
        yield Finding.warn(PARTS_ID, text, fix)


def or_complete(question: Question, chosen: ChosenToolkit) -> str:
    """Return how to complete the toolkit that was meant, behind another way; "" for one whose nvcc fails."""
    toolkit = next((each for each in chosen.broken if not (each.problem or each.managed)), None)
    if toolkit is None:
        return ""
    parts = [] if toolkit.nvcc else ["nvcc"]
    parts += [] if toolkit.headers and toolkit.libraries else ["runtime"]
    parts += ["libraries"] if toolkit.lacks and not question.facts.tree.sample else []
    return _or(_install(question, toolkit, *parts))


def _or(install: str) -> str:
    return f" Or {install}." if install else ""


def _profiles(question: Question) -> bool:
    """Say whether Kineto will be built, and with CUPTI."""
    kineto = decide(question, "USE_KINETO")
    without = decide(question, "LIBKINETO_NOCUPTI")
    state = State(question, {"USE_KINETO": kineto.value} if kineto else {})
    return bool(state.of("USE_KINETO")) and not (without and truth(without.value))


def _install(question: Question, toolkit: Toolkit, *parts: str) -> str:
    """Return how to install parts into the folder of a toolkit, by what has made that folder.

    "" for what pip has installed: its libraries have no names to link with, and are put together instead.
    """
    series = series_of(toolkit.version)
    if toolkit.found_via == WHEELS:
        return ""
    if prefix := _conda_prefix(question, toolkit):
        return _of_conda(question, prefix, series, parts)
    if question.facts.host.os == "windows":
        names = ", ".join(_ON_WINDOWS[part] for part in parts)
        return (
            f"run the installer of CUDA {series or 'its release'} again ({ARCHIVE}; Custom), and add {names}"
        )
    if line := _of_packages(question, toolkit, series, parts):
        return line
    runfile = f"{ARCHIVE}, its runfile with --toolkit --toolkitpath={as_word(toolkit.path)}"
    return f"install all of CUDA {series or ''} into {file_name(toolkit.path)} ({runfile})".replace("  ", " ")


def _conda_prefix(question: Question, toolkit: Toolkit) -> str:
    """Return the conda environment that a toolkit is in; "" for another one."""
    known = [python.prefix for python in question.facts.pythons if python.environment == "conda"]
    folders = {path_key(path): path for path in (toolkit.path, *toolkit.aliases)}
    for prefix in filter(None, known):
        if folders.keys() & {path_key(prefix), path_key(f"{prefix}{question.separator}Library")}:
            return prefix
    return re.sub(r"[\\/]Library$", "", toolkit.path) if toolkit.found_via == "CONDA_PREFIX" else ""


def _of_conda(question: Question, prefix: str, series: Version | None, parts: tuple[str, ...]) -> str:
    """Return the command for conda-forge, which has CUDA from 12.0 on; before, NVIDIA's channel has it."""
    names = [_PACKAGES[part]["apt"] for part in parts]
    if series and series >= Version("12.0"):
        where = ["-c", "conda-forge", *names, f"cuda-version={series}"]
    else:
        where = ["-c", f"nvidia/label/cuda-{series}.0" if series else "nvidia", *names]
    return f"install what is missing: {question.line('conda', 'install', '-p', prefix, *where)}"


def _of_packages(question: Question, toolkit: Toolkit, series: Version | None, parts: tuple[str, ...]) -> str:
    """Return the command for the packages of NVIDIA or of the system whose folder this is; "" for another."""
    facts, path = question.facts, plain_path(toolkit.path)
    manager = system_manager(facts, question.catalog)
    line = installer(facts, question.catalog)
    if not line:
        return ""
    if own := _OF_SYSTEM.get((manager, path)):
        return f"install the rest of it: {line.format(package=own)}"
    names = [_PACKAGES[part].get("" if manager in _OF_RPM else manager) for part in parts]
    if not (all(names) and series and path == f"/usr/local/cuda-{series}"):
        return ""
    packages = " ".join(f"{name}-{series.major}-{series.minor}" for name in names)
    return f"install what is missing from NVIDIA's repository: {line.format(package=packages)}"

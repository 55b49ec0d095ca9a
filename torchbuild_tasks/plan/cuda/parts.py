"""Check that the toolkit has the libraries that torch is built with, not only what compiles a kernel.

What a package of nvcc alone brings (cuda-nvcc of NVIDIA's repositories or conda's) compiles a first program,
and CMake stops at what is not there, or switches it off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchbuild_tasks.model import Finding, Toolkit
from torchbuild_tasks.plan.cuda.toolkit import series_of
from torchbuild_tasks.plan.cuda.values import ADVISED, ChosenToolkit
from torchbuild_tasks.plan.dependent import State, truth
from torchbuild_tasks.plan.packages import installer, system_manager
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide
from torchbuild_tasks.text.paths import file_name, plain_path

PARTS_ID: Final = "cuda-parts"
_ELSEWHERE: Final = ("CMAKE_PREFIX_PATH", "CMAKE_LIBRARY_PATH", "CUDAToolkit_ROOT")
# Of NVIDIA's repositories for apt, and for dnf and zypper (developer.download.nvidia.com/compute/cuda/repos);
# conda's are of its channel nvidia. UNCONFIRMED: none of them was installed.
_PACKAGES: Final = {
    "nvcc": {"apt": "cuda-nvcc", "": "cuda-nvcc", "conda": "cuda-nvcc"},
    "runtime": {"apt": "cuda-cudart-dev", "": "cuda-cudart-devel", "conda": "cuda-cudart-dev"},
    "libraries": {"apt": "cuda-libraries-dev", "": "cuda-libraries-devel", "conda": "cuda-libraries-dev"},
    "cupti": {"apt": "cuda-cupti-dev", "": "cuda-cupti", "conda": "cuda-cupti"},
}
_OF_RPM: Final = ("dnf", "yum", "zypper")


def check_parts(question: Question, chosen: ChosenToolkit) -> Iterator[Finding]:
    """Report what torch links with, and the profiler asks for, that the chosen toolkit does not hold."""
    toolkit = chosen.toolkit
    if toolkit is None or question.facts.tree.sample or question.request.from_wheel:
        return  # what is compiled against a wheel is linked with the wheel's libraries
    if toolkit.lacks:
        text = f"{toolkit.path} lacks what torch links with (header or library): {', '.join(toolkit.lacks)}"
        named = [name for name in _ELSEWHERE if (choice := decide(question, name)) and choice.value]
        install = _install(question, toolkit, "libraries")
        if named:
            text += f"; they may be in the folders of {', '.join(named)}, which were not looked into"
            yield Finding.warn(PARTS_ID, text, f"{ADVISED} Or {install}.")
        else:
            yield Finding.error(PARTS_ID, f"{text}; CMake stops there", f"{ADVISED} Or {install}.")
    if toolkit.parts and "cupti" not in toolkit.parts and _profiles(question):
        text = f'{toolkit.path} has no CUPTI: CMake builds Kineto for the CPU alone ("Could not find CUPTI '
        text += 'library"), and torch.profiler shows nothing of the GPU'
        fix = f"Do without it: --set USE_KINETO=0; or {_install(question, toolkit, 'cupti')}."
        yield Finding.warn(PARTS_ID, text, fix)


def or_complete(question: Question, chosen: ChosenToolkit) -> str:
    """Return how to complete the toolkit that was meant, behind another way; "" for one whose nvcc fails."""
    toolkit = next((each for each in chosen.broken if not (each.problem or each.managed)), None)
    if toolkit is None:
        return ""
    parts = [] if toolkit.nvcc else ["nvcc"]
    parts += [] if toolkit.headers and toolkit.libraries else ["runtime"]
    parts += ["libraries"] if toolkit.lacks and not question.facts.tree.sample else []
    return f" Or {_install(question, toolkit, *parts)}."


def _profiles(question: Question) -> bool:
    """Say whether Kineto will be built, and with CUPTI."""
    kineto = decide(question, "USE_KINETO")
    without = decide(question, "LIBKINETO_NOCUPTI")
    state = State(question, {"USE_KINETO": kineto.value} if kineto else {})
    return bool(state.of("USE_KINETO")) and not (without and truth(without.value))


def _install(question: Question, toolkit: Toolkit, *parts: str) -> str:
    """Return how to install parts beside a toolkit, where what has put it there is known by its folder."""
    facts, series = question.facts, series_of(toolkit.version)
    if series and toolkit.found_via == "CONDA_PREFIX":
        packages = " ".join(f"{_PACKAGES[part]['conda']}={series}" for part in parts)
        return f"install what is missing into that environment: conda install -c nvidia {packages}"
    if facts.host.os == "windows":
        again = f"start NVIDIA's installer of CUDA {series or toolkit.version} again"
        return f"{again}, and choose all of its Development and Runtime parts under Custom"
    manager = system_manager(facts, question.catalog)
    names = [_PACKAGES[part].get("" if manager in _OF_RPM else manager) for part in parts]
    if not (all(names) and series and plain_path(toolkit.path) == f"/usr/local/cuda-{series}"):
        return f"install the rest of {file_name(toolkit.path)} the way that it was installed"
    packages = " ".join(f"{name}-{series.major}-{series.minor}" for name in names)
    line = installer(facts, question.catalog).format(package=packages)
    return f"install what is missing from NVIDIA's repository: {line}"

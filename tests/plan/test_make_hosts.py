"""Unusual machines, each with the verdict by the sources of its rows, written before the plan ran."""

from __future__ import annotations

import re
from typing import Any

import pytest
from packaging.version import Version

from tests.support.cuda import cuda_facts, driver, gpu, toolkit
from tests.support.for_each import each_case
from tests.support.jetsons import orin_nano, thor, xavier_nx
from tests.support.machines import (
    ask,
    found,
    linux_facts,
    modern_tree,
    plan_of,
    plan_of_question,
    python,
    tool,
    tree,
)
from tests.support.windows import toolset, windows, windows_facts, windows_python
from torchbuild_tasks.catalog import GIB, load_catalog
from torchbuild_tasks.catalog.match import admits, applies
from torchbuild_tasks.catalog.rows import TorchRow
from torchbuild_tasks.model import (
    Cpu,
    Cuda,
    Facts,
    Health,
    Host,
    Library,
    Memory,
    Room,
    Tool,
    Tree,
)
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace


def of(version: str) -> Tree:
    return (modern_tree if version >= "2.13" else tree)(version=version)


def on(distribution: str, libc: str, arch: str = "x86_64") -> Host:
    return Host(os="linux", arch=arch, distribution=distribution, libc=libc)


def gxx(version: str) -> tuple[Tool, ...]:
    return tool("g++", version), tool("gcc", version)


def near(facts: Facts, version: str) -> Facts:
    """The same board with another checkout, and the Python of its system."""
    return replace(facts, tree=of(version))


NVCC_PLUS = Tool(name="c++", path="/opt/nvidia/bin/nvc++", version="24.9", found_via="environment CXX")
CONDA = "/opt/conda/envs/t"
CONDA_CXX = Tool(
    name="g++", path=f"{CONDA}/bin/x86_64-conda-linux-gnu-c++", version="13.3.0", found_via="environment CXX"
)
CONDA_PYTHON = python(executable=f"{CONDA}/bin/python", prefix=CONDA, environment="conda")
WIN_ARM = Host(os="windows", arch="aarch64", distribution="Windows 11")
WIN_ARM_PYTHON = windows_python(version="3.12.10", abi="cp312-win_arm64")
STORE = windows_python(
    executable=r"C:\Users\Ada\AppData\Local\Microsoft\WindowsApps\python.exe", environment="base"
)
BLANK = windows_python(include=r"C:\Program Files\Python311\Include")
PYPY = python(version="3.11.7", implementation="GraalVM")
OTHERS = python(packages={**python().packages, "torch": "2.5.0a0"}, torch_from="/home/ada/pytorch")
BIONIC = Host(os="linux", arch="aarch64", distribution="Android 14", libc="bionic")
TMP = Health(rooms=(Room(purpose="tmp", path="/tmp", free=GIB // 5),))
T_315 = python(version="3.15.0", abi="cpython-315t-x86_64-linux-gnu")
NIX = on("NixOS 25.11 (Xantusia)", "glibc 2.40")
WSL = Host(
    os="linux", arch="x86_64", distribution="Ubuntu 24.04.3 LTS", libc="glibc 2.39", kernel="6.6-microsoft"
)
ARCH, ALPINE = on("Arch Linux", "glibc 2.43"), on("Alpine Linux v3.22", "musl 1.2.5")
FOCAL, RHEL8 = on("Ubuntu 20.04.6 LTS", "glibc 2.31"), on("Red Hat Enterprise Linux 8.10", "glibc 2.28")
ARM_PYTHON = python(abi="cpython-311-aarch64-linux-gnu")
NOBLE = on("Ubuntu 24.04.2 LTS", "glibc 2.39", "aarch64")
TWO = (gpu("6.1", uuid="GPU-a", bus="0000:01:00.0"), gpu("12.0", uuid="GPU-b", bus="0000:02:00.0"))
PLAIN: dict[str, tuple[Facts, str, str]] = {
    "Arch, GCC 16": (linux_facts(host=ARCH, compilers=gxx("16.1.0"), tree=of("2.14.0a0")), "ok warn", ""),
    "20.04, C++17": (linux_facts(host=FOCAL, compilers=gxx("9.4.0"), tree=of("2.8.0a0")), "ok warn", ""),
    "20.04, C++20": (linux_facts(host=FOCAL, compilers=gxx("9.4.0"), tree=of("2.14.0a0")), "refuse", "GCC"),
    "RHEL 8, GCC 8": (linux_facts(host=RHEL8, compilers=gxx("8.5.0"), tree=of("2.8.0a0")), "refuse", "dnf"),
    "musl": (linux_facts(host=ALPINE, compilers=gxx("14.2.0")), "ok warn", ""),
    "3.8, 2.14": (linux_facts(pythons=(python(version="3.8.20"),), tree=of("2.14.0a0")), "refuse", "3.8"),
    "3.8, 2.4": (linux_facts(pythons=(python(version="3.8.20"),), tree=of("2.4.1")), "ok warn", ""),
    "3.14, 2.6": (linux_facts(pythons=(python(version="3.14.2"),), tree=of("2.6.0")), "refuse", "3.14"),
    "GCC 4.9, 1.6": (linux_facts(compilers=gxx("4.9.4"), tree=of("1.6.0")), "refuse", "GCC"),
    "a container of 2 GiB": (
        linux_facts(memory=Memory(total=2 * GIB, available=3 * GIB // 2), cpu=Cpu(cores=16)),
        "warn refuse",
        "memory",
    ),
    "3.15t, 2.15": (linux_facts(pythons=(T_315,), tree=of("2.15.0")), "ok", ""),
    "3.15t, 2.12": (linux_facts(pythons=(T_315,), tree=of("2.12.1")), "refuse", "3.15"),
    "CentOS 7": (
        linux_facts(host=on("CentOS Linux 7", "glibc 2.17"), compilers=gxx("4.8.5")),
        "refuse",
        "yum",
    ),
    "NixOS without a compiler": (linux_facts(host=NIX, compilers=()), "refuse", "nix-shell -p gcc"),
    "nvc++ is no GCC": (linux_facts(compilers=(NVCC_PLUS,), environ={"CXX": "nvc++"}), "ok", ""),
    "conda's compilers": (
        linux_facts(compilers=(CONDA_CXX,), pythons=(CONDA_PYTHON,), environ={"CXX": str(CONDA_CXX.path)}),
        "ok warn",
        "",
    ),
    "not CPython": (linux_facts(pythons=(PYPY,)), "refuse", "builds for CPython"),
    "the torch of another checkout": (linux_facts(pythons=(OTHERS,)), "warn", "/home/ada/pytorch"),
    "numpy 2 in a venv of the user's": (
        linux_facts(tree=of("2.1.2"), pythons=(python(packages={**python().packages, "numpy": "2.1.3"}),)),
        "warn",
        "numpy 2.1.3",
    ),
    "setuptools of no package": (linux_facts(tree=of("1.13.1")), "ok", ""),
    "a disk of Windows in WSL": (
        linux_facts(host=replace(WSL, libc="glibc 2.35"), tree=tree(root="/mnt/c/src/pytorch")),
        "warn",
        "~/pytorch",
    ),
    "a disk called so elsewhere": (linux_facts(tree=tree(root="/mnt/c/src/pytorch")), "ok", ""),
    "OneDrive": (
        windows_facts(tree=tree(root=r"C:\Users\Ada\OneDrive\pytorch")),
        "warn",
        r"'C:\\Users\\Ada\\OneDrive\\pytorch' has .*pause",
    ),
    "NO_CUDA, 1.0": (
        linux_facts(environ={"NO_CUDA": "1"}, tree=of("1.0.1"), pythons=(python(version="3.6.9"),)),
        "ok warn",
        "",
    ),
    "Termux": (linux_facts(host=BIONIC, pythons=(ARM_PYTHON,)), "warn", "Android"),
    "3.8.0, 2.0": (
        linux_facts(tree=of("2.0.1"), pythons=(python(version="3.8.0"),)),
        "warn",
        "asks for >=3.8.1",
    ),
    "3.8.0, 2.0, Windows": (
        windows_facts(tree=of("2.0.1"), pythons=(windows_python(version="3.8.0"),)),
        "ok warn",
        "",
    ),
    "a Python for x86_64 on Arm": (linux_facts(host=NOBLE), "warn", "is for x86_64.*Name one for aarch64"),
    "the same on Windows": (windows_facts(host=WIN_ARM), "warn", "emulates"),
    "its own on Windows": (windows_facts(host=WIN_ARM, pythons=(WIN_ARM_PYTHON,)), "ok", ""),
    "Python of the Store": (windows_facts(pythons=(STORE,)), "warn", "python\\.org"),
    "no C compiler": (linux_facts(compilers=(gxx("12.2.0")[0], Tool(name="cc"))), "refuse", "no C compiler"),
    "-march of another processor": (
        linux_facts(host=NOBLE, pythons=(ARM_PYTHON,), environ={"CXXFLAGS": "-O2 -march=x86-64-v3"}),
        "warn",
        "-mcpu=native",
    ),
    "CC of one family, CXX of the other": (
        linux_facts(
            compilers=(*gxx("12.2.0"), tool("clang++", "15.0.7"), tool("clang", "15.0.7")),
            environ={"CC": "clang", "CXX": "g++"},
        ),
        "warn",
        "CC=clang is clang.*Drop CC",
    ),
    "a Python behind a blank": (windows_facts(pythons=(BLANK,)), "ok", ""),
    "USE_FBGEMM on Arm": (
        linux_facts(host=NOBLE, pythons=(ARM_PYTHON,), tree=of("2.10.0"), environ={"USE_FBGEMM": "1"}),
        "warn",
        "CPU_INTEL.*AVX-512",
    ),
    "USE_FBGEMM on Arm, from 2.11 on": (
        linux_facts(host=NOBLE, pythons=(ARM_PYTHON,), tree=of("2.11.0"), environ={"USE_FBGEMM": "1"}),
        "ok",
        "",
    ),
    "-march of this one": (linux_facts(environ={"CXXFLAGS": "-march=x86-64-v3"}), "ok", ""),
    "a generator of Windows": (
        linux_facts(environ={"CMAKE_GENERATOR": "Visual Studio 17 2022"}),
        "refuse",
        "CMAKE_GENERATOR",
    ),
    "DEBUG beside another type": (
        linux_facts(environ={"DEBUG": "1", "CMAKE_BUILD_TYPE": "Release"}),
        "warn",
        "DEBUG=1.*Release counts",
    ),
    "DEBUG beside the same": (linux_facts(environ={"DEBUG": "1", "CMAKE_BUILD_TYPE": "debug"}), "ok", ""),
    "a blank in the path": (linux_facts(tree=tree(root="/src/my code")), "ok", ""),
    "a share": (windows_facts(tree=tree(root=r"\\nas\code")), "refuse", "net use"),
    "Windows, VS 2022": (windows_facts(), "ok warn", ""),
    "Windows, VS 2026": (windows_facts(windows=windows(toolset("14.50.35717"))), "ok warn", ""),
    "Windows, VS 2017": (windows_facts(windows=windows(toolset("14.16.27023"))), "warn", "2019 and 2022"),
    "Windows, VS 2017, 2.13": (
        windows_facts(windows=windows(toolset("14.16.27023")), tree=modern_tree(version="2.13.0")),
        "refuse",
        "19.20",
    ),
}


def cudnn(version: str) -> Library:
    return Library(
        name="cudnn", version=version, include="/usr/include", library="/usr/lib", found_via="system"
    )


K80, OLD = gpu("3.7", name="Tesla K80"), driver("470.256.02")
# toolkit, GPUs, torch, what else; the verdict; words of what is told.
ON_ARM = {"host": NOBLE, "compilers": gxx("13.3.0"), "pythons": (ARM_PYTHON,)}
GPUS: list[tuple[str, tuple[Any, ...], str, dict[str, Any], str, str]] = [
    ("13.0", (gpu("12.0"),), "2.14.0a0", {"host": on("Ubuntu 26.04", "glibc 2.43")}, "refuse", "rsqrt.*13.2"),
    ("13.0", (gpu("8.9"),), "2.14.0a0", {"host": ARCH, "compilers": gxx("16.1.0")}, "refuse", "(?i)gcc"),
    ("12.4", (gpu("8.0"),), "2.6.0", {"host": RHEL8, "compilers": gxx("12.2.1")}, "ok warn", ""),
    ("12.4", (gpu("8.0"),), "2.6.0", {"host": on("Debian 13", "glibc 2.41")}, "refuse warn", "glibc"),
    ("12.8", (gpu("8.0"),), "2.8.0a0", {"host": ALPINE, "compilers": gxx("14.2.0")}, "refuse", "musl"),
    ("11.8", (K80,), "2.0.1", {"driver": OLD, "compilers": gxx("9.4.0")}, "ok warn", ""),
    ("12.4", (K80,), "2.6.0", {"driver": OLD}, "refuse", "3\\.7"),
    ("13.0", (gpu("7.0"),), "2.15.0a0", {}, "refuse", "7\\.0"),
    ("12.8", (gpu("7.0"),), "2.15.0a0", {}, "ok warn", ""),
    ("12.4", (gpu("6.0"),), "2.14.0a0", {}, "refuse", "12\\.6"),
    ("12.4", (gpu("12.0"),), "2.7.0", {}, "warn refuse", "12\\.0"),
    ("12.8", (gpu("10.0"),), "2.7.0", {}, "ok warn", ""),
    ("12.8", (gpu("10.3"),), "2.9.0", {}, "ok warn", ""),
    ("12.8", TWO, "2.8.0a0", {}, "ok warn", ""),
    ("13.0", TWO, "2.9.0", {}, "warn refuse", "6\\.1"),
    ("13.0", (gpu("8.6"),), "2.9.0", {"driver": driver("525.147.05")}, "warn refuse", "driver"),
    ("12.8", (gpu("8.6"),), "2.8.0a0", {"driver": driver("535.183.01")}, "ok warn", ""),
    (
        "13.0",
        (gpu("10.0"),),
        "2.14.0a0",
        ON_ARM,
        "ok warn",
        "",
    ),
    (
        "13.0",
        (gpu("12.1"),),
        "2.9.0",
        ON_ARM,
        "ok warn",
        "",
    ),
    ("12.8", (gpu("8.9"),), "2.8.0", {"host": WSL, "wsl": True, "driver": driver("576.02")}, "ok warn", ""),
    (
        "13.0",
        (gpu("8.9"),),
        "2.9.0",
        {"host": WSL, "wsl": True, "driver": driver("537.13")},
        "warn",
        "in Windows",
    ),
    ("11.8", (gpu("7.5"),), "1.0.1", {}, "refuse", ""),
    ("13.0", (gpu("8.6"),), "2.1.2", {}, "refuse", "13\\.0"),
    ("12.8", (gpu("12.0"),), "2.8.0", {"driver": driver("550.144.03")}, "warn", "does not know it"),
    (
        "12.4",
        (gpu("8.9"),),
        "2.6.0",
        {"driver": driver("525.60.13"), "libraries": (cudnn("9.1.0"),)},
        "ok",
        "",
    ),
    (
        "12.4",
        (gpu("7.0"),),
        "2.8.0",
        {"libraries": (cudnn("9.12.0"),)},
        "warn",
        "no code for GPU of 7.0.*<9.11",
    ),
    ("12.4", (gpu("7.0"),), "2.6.0", {"libraries": (cudnn("9.10.2"),)}, "ok", ""),
    (
        "13.0",
        (gpu("8.9"),),
        "2.9.1",
        {"libraries": (cudnn("8.9.7"),)},
        "warn",
        "CUDA >=11,<13.*built without it.*>=9.12 .for CUDA 13.0",
    ),
    ("12.8", (gpu("6.1"),), "2.8.0", {"driver": driver("590.48.01")}, "warn", "branch 580"),
    (
        "11.8",
        (K80,),
        "2.0.1",
        {"driver": driver("550.54.14"), "compilers": gxx("9.4.0")},
        "warn",
        "branch 470",
    ),
    ("11.5", (gpu("8.6"),), "2.0.1", {"compilers": gxx("11.4.0")}, "refuse", "GCC up to 11.2.0"),
    (
        "11.6",
        (gpu("8.6"),),
        "1.12.1",
        {"compilers": gxx("11.2.1")},
        "refuse",
        "takes GCC up to 11.2.0 .*(g..-10|gcc-c..-10|gcc_10|=10)",
    ),  # pytorch 71518
    (
        "11.5",
        (gpu("8.6"),),
        "2.0.1",
        {"compilers": gxx("11.2.0")},
        "warn",
        "^(?!.*11.2.0)",
    ),  # easybuild-easyconfigs 17272
    ("11.4", (gpu("8.6"),), "2.0.1", {"compilers": gxx("11.2.0")}, "refuse", "GCC up to 10"),
    ("11.4", (gpu("8.6"),), "1.9.1", {"compilers": gxx("9.3.0")}, "refuse warn", "math_gpu.cu"),  # 68577
    (
        "12.8",
        (gpu("10.0"),),
        "2.6.0",
        {"libraries": (cudnn("9.10.2"),)},
        "warn",
        "No CUDA toolkit puts this right",
    ),
    ("12.6", (gpu("8.0"),), "2.5.1", {"libraries": (cudnn("9.1.0"),)}, "ok", ""),
    ("12.8", (), "2.8.0", {"environ": {"TORCH_CUDA_ARCH_LIST": "Rubin"}}, "refuse", "for 10.7 \\(Rubin\\)"),
    ("12.8", (gpu("8.9"),), "2.8.0", {"environ": {"CUDAARCHS": "89"}}, "warn", "TORCH_CUDA_ARCH_LIST"),
]


def judge(facts: Facts, verdict: str, words: str, **flags: Any) -> None:
    plan = plan_of(facts, **flags)
    bad = [each for each in plan.findings if each.status in ("error", "warn")]
    assert plan.verdict in verdict.split(), bad
    assert re.search(words, " ".join(f"{each.text} {each.fix}" for each in bad)), bad


@each_case("name", PLAIN)
def test_a_machine_without_cuda(name: str) -> None:
    facts, verdict, words = PLAIN[name]
    judge(facts, verdict, words)


@each_case(("cuda", "gpus", "torch", "own", "verdict", "words"), GPUS)
def test_a_machine_with_gpus(
    cuda: str, gpus: tuple[Any, ...], torch: str, own: dict[str, Any], verdict: str, words: str
) -> None:
    judge(cuda_facts(toolkit(cuda), gpus=gpus, tree=of(torch), **own), verdict, words, cuda=True)


@pytest.mark.parametrize(
    ("preset", "code", "words"),
    [
        ("old-gpu", "9.0", "FlashAttention's kernels, which 9.0"),
        ("old-gpu", "7.0", ""),
        ("jetson", "9.0", "none: NCCL"),
    ],
)
def test_a_preset_for_another_machine(preset: str, code: str, words: str) -> None:
    facts = cuda_facts(toolkit("12.6", cudnn="9.5"), gpus=(gpu(code),), tree=of("2.8.0"))
    judge(facts, "warn" if words else "ok", words, cuda=True, preset=preset)


@pytest.mark.parametrize(("code", "verdict"), [("7.5", "warn"), ("8.0", "ok")])
def test_kernels_that_are_asked_for_and_run_nowhere(code: str, verdict: str) -> None:
    facts = cuda_facts(toolkit("12.6", cudnn="9.5"), gpus=(gpu(code),), tree=of("2.8.0"))
    words = "FlashAttention's kernels run on GPUs from 8.0 on" if verdict == "warn" else ""
    judge(facts, verdict, words, cuda=True, set=("USE_FLASH_ATTENTION=1",))


def test_torchvision_takes_no_blank_in_the_folder_of_headers() -> None:
    judge(windows_facts(pythons=(BLANK,)), "warn", "blank", with_=("torchvision",))


def test_an_nvcc_of_another_release_than_the_rest() -> None:
    facts = cuda_facts(
        toolkit("12.6", cudnn="9.5", nvcc_version="11.5.119"), gpus=(gpu("8.9"),), tree=of("2.8.0")
    )
    judge(facts, "warn", "nvcc is of CUDA 11.5", cuda=True)


def test_the_driver_of_wsl_is_that_of_windows() -> None:
    plan = plan_of(cuda_facts(toolkit("12.8"), host=WSL, wsl=True), cuda=True, arch="8.9")
    (finding,) = [each for each in plan.findings if each.id == "driver"]
    assert (finding.status, "in Windows" in finding.fix) == ("unknown", True)


def test_what_nvidia_has_made_does_not_start_on_nixos() -> None:
    facts = cuda_facts(gpus=(gpu("8.6"),), host=NIX, compilers=gxx("14.3.0"), tree=of("2.9.0"))
    judge(facts, "warn", "nix-ld", cuda=True, cuda_toolkit="pypi:13.0")


@pytest.mark.parametrize(
    ("facts", "verdict", "words"),
    [
        (near(orin_nano(), "2.8.0"), "ok warn", ""),
        (near(thor(), "2.9.0"), "ok warn", ""),
        (near(xavier_nx(), "2.1.2"), "ok", ""),  # NVIDIA built 2.1 with it
        (near(xavier_nx(), "2.3.1"), "warn", "11.4 is here: take torch 2.1"),
        (near(xavier_nx(), "2.9.0"), "refuse", "CUDA 12.0"),
    ],
)
def test_a_board_has_the_cuda_of_its_jetpack(facts: Facts, verdict: str, words: str) -> None:
    judge(facts, verdict, words, cuda=True)


@pytest.mark.parametrize("cuda", ["12.8", "13.0"])
def test_visual_studio_2026_needs_a_cuda_that_takes_it(cuda: str) -> None:
    root = rf"C:\CUDA\v{cuda}"
    here = toolkit(cuda, path=root, nvcc=rf"{root}\bin\nvcc.exe")
    facts = windows_facts(
        cuda=Cuda(toolkits=(here,), gpus=(gpu("8.6"),), driver=driver("581.10")),
        windows=windows(toolset("14.50.35717")),
    )
    judge(replace(facts, tree=replace(facts.tree, version="2.9.0")), "refuse", "13\\.2", cuda=True)


@pytest.mark.parametrize(
    ("environ", "verdict", "words"),
    [
        ({"TORCH_CUDA_ARCH_LIST": "All"}, "ok warn", ""),
        ({"NVCC_APPEND_FLAGS": "-ccbin /usr/bin/g++-15"}, "refuse", "-ccbin in NVCC_APPEND_FLAGS"),
        ({"CUDAFLAGS": "-O2 --compiler-bindir=g++-15"}, "refuse", "-ccbin in CUDAFLAGS"),
        ({"NVCC_PREPEND_FLAGS": "-ccbin /usr/bin/g++-15"}, "ok", ""),
    ],
)
def test_nvccs_flags_in_the_environment(environ: dict[str, str], verdict: str, words: str) -> None:
    both = (*gxx("13.3.0"), tool("g++", "15.1.0", "/usr/bin/g++-15"))
    facts = cuda_facts(toolkit("12.8", cudnn="9.5"), gpus=(gpu("8.9"),), compilers=both, environ=environ)
    judge(facts, verdict, words, cuda=True)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("MAX_JOBS=-1", "MAX_JOBS"),
        ("USE_CUDA=maybe", "switch"),
        ("CMAKE_BUILD_TYPE=Foo", "Release"),
        ("CMAKE_CUDA_ARCHITECTURES=8.6", "TORCH_CUDA_ARCH_LIST"),
        ("TORCH_CUDA_ARCH_LIST=8.6;sm_90", "write 9.0"),
        ("TORCH_CUDA_ARCH_LIST=8,6", "write 8.6"),
        ("TORCH_CUDA_ARCH_LIST=-8.6", "is not an architecture"),
    ],
)
def test_values_that_cannot_be(word: str, why: str) -> None:
    judge(cuda_facts(toolkit("12.8"), gpus=(gpu("8.6"),)), "refuse", why, cuda=True, set=(word,))


@each_case(
    ("words", "verdict", "why"),
    [
        ("CXXFLAGS=-std=c++14", "warn", "C\\+\\+17"),
        ("CXXFLAGS=-std=c++17", "ok", ""),
        ("CXXFLAGS=-O2 -D_GLIBCXX_USE_CXX11_ABI=0", "warn", "ABI"),
        ("_GLIBCXX_USE_CXX11_ABI=0", "warn", "ABI from before GCC 5"),
        ("_GLIBCXX_USE_CXX11_ABI=1", "ok", ""),
        ("USE_ASAN=1", "warn", "LD_PRELOAD"),
        ("CFLAGS=-g -fsanitize=address,undefined", "warn", "LD_PRELOAD"),
        ("CFLAGS=-fsanitize=undefined", "ok", ""),
        ("BUILD_LITE_INTERPRETER=1", "warn", "for phones"),
        ("USE_LLVM=1", "warn", "the folder of an LLVM"),
        ("USE_LLVM=/usr/lib/llvm-18", "ok", ""),
        ("CFLAGS=-ffast-math", "warn", "NaN"),
        ("LDFLAGS=-Wl,-z,relro", "ok", ""),
        ("LDFLAGS=-Wl,--no-undefined", "warn", "interpreter"),
        ("CMAKE_CXX_COMPILER_LAUNCHER=sccache", "refuse", "not installed"),
        ("CMAKE_CXX_COMPILER=/usr/bin/g++-9", "refuse", "set CXX"),
        ("CMAKE_GENERATOR=Ninja Multi-Config", "refuse", "Ninja"),
        ("USE_UCC=1", "refuse", "USE_SYSTEM_UCC=1"),
        ("USE_UCC=1 USE_SYSTEM_UCC=1", "warn", "UCC_HOME"),
        ("USE_MPI=1", "warn", "MPI_HOME"),
        ("USE_MPI=1 MPI_HOME=/opt/mpi", "ok", ""),
        ("BUILD_SPLIT_CUDA=1", "warn", "read by nothing"),
        ("USE_UCC=1 USE_SYSTEM_UCC=1 UCC_HOME=/opt/ucc", "ok", ""),
    ],
)
def test_other_variables_than_switches(words: str, verdict: str, why: str) -> None:
    judge(linux_facts(), verdict, why, set=tuple(re.split(r" (?=[A-Z]+_)", words)))


@pytest.mark.parametrize(
    ("words", "verdict"), [((), "refuse"), (("USE_NCCL=0",), "ok warn"), (("USE_SYSTEM_NCCL=1",), "ok warn")]
)
def test_nccls_makefile_takes_no_blank(words: tuple[str, ...], verdict: str) -> None:
    kit = toolkit("12.8", cudnn="9.5", nccl="2.27.3")
    facts = cuda_facts(kit, gpus=(gpu("8.9"),), tree=tree(root="/src/my code"))
    judge(facts, verdict, "makefile" if verdict == "refuse" else "", cuda=True, set=words)


@pytest.mark.parametrize(
    ("name", "verdict", "part"),
    [
        ("USE_CUSPARSELT", "warn", "cusparselt"),
        ("USE_CUDSS", "warn", "cudss"),
        ("USE_MAGMA", "warn", "magma"),
        ("USE_SYSTEM_NCCL", "refuse", "nccl"),
        ("USE_CUFILE", "refuse", "cufile"),
        ("USE_SYSTEM_NVTX", "refuse", "nvtx3"),
    ],
)
def test_a_library_that_is_asked_for_and_is_not_here(name: str, verdict: str, part: str) -> None:
    """CMake turns the switch off, or it stops."""
    facts = cuda_facts(toolkit("12.8", cudnn="9.5"), gpus=(gpu("8.9"),))
    judge(facts, verdict, f"{name}=1.*was not found.*the toolkit", cuda=True, set=(f"{name}=1",))
    library = Library(name=part, include="/opt/include", library="/opt/lib", found_via="system")
    seen = cuda_facts(toolkit("12.8", cudnn="9.5"), gpus=(gpu("8.9"),), libraries=(library,))
    held = cuda_facts(toolkit("12.8", cudnn="9.5", parts={part: "/x"}), gpus=(gpu("8.9"),))
    for here in (seen, held):
        judge(here, "ok", "", cuda=True, set=(f"{name}=1",))


def test_room_for_temporary_files_on_another_machine() -> None:
    question = ask(linux_facts(health=TMP))
    question = Question(BuildRequest(facts="machine.json"), question.facts, CATALOG, question.settings)
    (told,) = [each for each in plan_of_question(question).findings if each.status == "warn"]
    assert (told.id, "TMPDIR" in told.fix) == ("disk", True)


def test_the_loader_looks_in_another_toolkit_first() -> None:
    two = toolkit("12.8", cudnn="9.5"), toolkit("12.4")
    for entry, verdict in (("/usr/local/cuda-12.4/lib64", "warn"), ("/usr/local/cuda-12.8/lib64", "ok")):
        facts = cuda_facts(*two, gpus=(gpu("8.9"),), environ={"LD_LIBRARY_PATH": f"/opt:{entry}"})
        judge(facts, verdict, "", cuda=True, cuda_toolkit="12.8")


def test_an_old_search_path_chooses_no_toolkit() -> None:
    """As a line of a shell's profile is older than the toolkit; it is told, with how it goes."""
    two = toolkit("11.8", gcc=11), toolkit("12.4")
    environ = {"LD_LIBRARY_PATH": "/usr/local/cuda-11.8/lib64"}
    facts = cuda_facts(*two, gpus=(gpu("8.6"),), environ=environ, tree=tree(version="2.6.0"))
    plan = plan_of(facts, cuda=True)
    assert plan.decided["CUDA toolkit"] == "/usr/local/cuda-12.4"
    finding = found(plan.findings, "library-path")
    assert (finding.status, "--cuda-toolkit /usr/local/cuda-11.8" in finding.fix) == ("warn", True)
    headers = replace(
        facts, environ={}, cuda=replace(facts.cuda, paths={"CPATH": "/usr/local/cuda-11.8/include"})
    )
    assert "CPATH leads to CUDA 11.8" in found(plan_of(headers, cuda=True).findings, "library-path").text


CATALOG = load_catalog()
CUDNNS = [f"{major}.{minor}.1" for major, last in ((7, 6), (8, 9), (9, 20)) for minor in range(last + 1)]


def fits(row: TorchRow, cuda: str, code: str) -> str:
    """The newest cuDNN for all three, "" where upstream has none of them together."""
    version = Version(row.latest)
    known = [each for each in CATALOG.arch if each.capability == code and not each.renamed]
    if any(not applies(spec, version) for each in known for spec in (each.build, each.torch)):
        return ""
    wanted = [each for each in CATALOG.cuda_torch if applies(each.torch, version) and each.os != "windows"]
    if not all(admits(each.cuda, cuda) for each in wanted):
        return ""
    for cudnn in reversed(CUDNNS):
        made = next((each for each in CATALOG.cudnn if admits(each.cudnn, cudnn)), None)
        old = made and made.oldest and Version(code) < Version(made.oldest)
        taken = all(admits(each.cudnn, cudnn) for each in wanted if each.cudnn)
        if made and not old and taken and admits(made.cuda, cuda):
            return cudnn
    return ""


@each_case("row", CATALOG.torch, ids=lambda row: str(row.version))
def test_what_upstream_builds_with_has_no_warning(row: TorchRow) -> None:
    """Every toolkit of a torch, with the oldest and the newest GPU that it compiles for."""
    year, month, _ = map(int, row.released.split("-"))
    planned = 0
    for cuda in CATALOG.cuda:
        plain = [
            a
            for a in cuda.archs
            if a not in cuda.deprecated and a in "5.2 6.0 6.1 7.0 7.5 8.0 8.6 9.0 10.0 12.0"
        ]
        codes = [code for code in plain if fits(row, cuda.version, code)]
        for code in {*codes[:1], *codes[-1:]}:
            major = min(cuda.gcc - bool(cuda.gcc_works), int(year + month / 12 - 2010.3))
            facts = cuda_facts(
                toolkit(cuda.version, archs=cuda.archs, gcc=cuda.gcc, clang=cuda.clang),
                gpus=(gpu(code),),
                driver=driver(cuda.driver_linux or "620.1"),
                libraries=(cudnn(fits(row, cuda.version, code)),),
                host=FOCAL,
                compilers=gxx(f"{major}.5.0"),
                pythons=[python(version=f"3.{n}.9") for n in range(5, 16) if admits(row.python, f"3.{n}.9")][
                    -1:
                ],
                tree=of(row.latest),
            )
            judge(facts, "ok", "", cuda=True)
            planned += 1
    assert planned


@pytest.mark.parametrize("words", [("USE_CUDNN=1",), ("CUDNN_ROOT=/usr",)])
def test_a_cudnn_that_is_asked_for_and_does_not_fit(words: tuple[str, ...]) -> None:
    facts = cuda_facts(toolkit("12.4"), gpus=(gpu("8.0"),), libraries=(cudnn("9.1.0"),), tree=of("2.1.2"))
    judge(facts, "refuse", "made for cuDNN >=8,<9", cuda=True, set=words)
    unasked = plan_of(facts, cuda=True)
    assert {op.name: op.value for op in unasked.env}["USE_CUDNN"] == "0"

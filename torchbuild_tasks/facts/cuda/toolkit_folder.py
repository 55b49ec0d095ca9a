"""Read a folder that may be a CUDA toolkit: its files, its nvcc, the versions and limits in its headers."""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from torchbuild_tasks.facts.probe import Output, Probe, map_parallel, multiarch_triplet
from torchbuild_tasks.model import Toolkit
from torchbuild_tasks.values import as_table

# Part -> its library (None: headers only) and its header.
PARTS: dict[str, tuple[str | None, str]] = {
    "cublas": ("cublas", "cublas_v2.h"),
    "cusparse": ("cusparse", "cusparse.h"),
    "cusolver": ("cusolver", "cusolverDn.h"),
    "cufft": ("cufft", "cufft.h"),
    "curand": ("curand", "curand.h"),
    "cupti": ("cupti", "cupti.h"),
    "nvrtc": ("nvrtc", "nvrtc.h"),
    "nvtx3": (None, "nvtx3/nvToolsExt.h"),
    "cudnn": ("cudnn", "cudnn.h"),
    "nccl": ("nccl", "nccl.h"),
    "cusparselt": ("cusparseLt", "cusparseLt.h"),
    "cufile": ("cufile", "cufile.h"),
    "nvjitlink": ("nvJitLink", "nvJitLink.h"),
}
# What torch links with in all releases: cmake/public/cuda.cmake and caffe2/CMakeLists.txt of 1.1 to 2.15.
LINKED = ("cublas", "cusparse", "cusolver", "cufft", "curand", "nvrtc")
# Functions that glibc declares, too, since 2.41 and 2.42. CUDA 13 declares them with
# __NV_IEC_60559_FUNCS_EXCEPTION_SPECIFIER, a corrected older toolkit with noexcept or throw().
MATH = ("cospi", "rsqrt")
_DECLARED = r"^extern[^;\n]*\b{}\(double [^)]*\)\s*(?:noexcept|throw|_\w+)"
_TEXT = re.compile(r"CUDA Version (\d+(?:\.\d+)+)")
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")


def is_toolkit(probe: Probe, root: str) -> bool:
    """Say whether there is an nvcc, or the header of the CUDA runtime."""
    has_nvcc = probe.program_at(probe.join(root, "bin/nvcc")) is not None
    return has_nvcc or find_header(probe, toolkit_folders(probe, root), "cuda_runtime.h") is not None


def read_toolkit(
    probe: Probe,
    root: str,
    found_via: str,
    *,
    aliases: tuple[str, ...] = (),
    managed: bool = False,
    version: str | None = None,
) -> Toolkit:
    """Return all facts of the toolkit at `root`.

    Args:
        root: the folder, without links.
        found_via: what led to it.
        aliases: what else it is called.
        managed: whether it was put together by this tool.
        version: what to believe when no file of the folder has a version.
    """
    named: dict[str, Any] = {"path": root, "found_via": found_via, "aliases": aliases, "managed": managed}
    if not probe.is_dir(root):
        problem = "it is a file, not the folder of a toolkit" if probe.exists(root) else "it does not exist"
        return Toolkit(**named, problem=problem)
    folders = toolkit_folders(probe, root)
    program = probe.program_at(probe.join(root, "bin/nvcc"))
    answer = ask_nvcc(probe, program) if program else NvccAnswer()
    host_config = find_header(probe, folders, "crt/host_config.h", "host_config.h")
    runtime = find_header(probe, folders, "cuda_runtime.h")
    limits = host_limits(probe.read(host_config) or "" if host_config else "")
    known, via = _version(probe, root, folders, answer.release)
    return Toolkit(
        **named,
        version=known or version,
        version_via=via or ("the mark of this tool" if version else None),
        nvcc=program,
        nvcc_version=answer.version or answer.release,
        headers=bool(runtime and host_config),
        libraries=runtime_folder(folders),
        archs=answer.archs,
        **limits._asdict(),
        cudnn=library_version(probe, folders, "cudnn")[0],
        nccl=library_version(probe, folders, "nccl")[0],
        cuobjdump=_cuobjdump(probe, root),
        parts=_parts(probe, folders),
        lacks=() if managed else _lacks(probe, root, folders),
        problem=answer.problem or _problem(probe, root, program, runtime),
        noexcept=_noexcept(probe, folders),
    )


def _noexcept(probe: Probe, folders: Folders) -> tuple[str, ...]:
    """Return the functions of `MATH` that the toolkit declares as glibc does."""
    header = find_header(probe, folders, "crt/math_functions.h")
    text = probe.read(header) or "" if header else ""
    return tuple(name for name in MATH if re.search(_DECLARED.format(name), text, re.MULTILINE))


def _problem(probe: Probe, root: str, program: str | None, runtime: str | None) -> str | None:
    """Return what is wrong with a folder whose nvcc, if it has one, works."""
    if program:
        return None
    nvcc = probe.join(root, "bin/nvcc")
    if probe.exists(nvcc):
        return f"{nvcc} is not a program that this user may start"
    return None if runtime else "holds neither bin/nvcc nor the CUDA headers"


def _version(probe: Probe, root: str, folders: Folders, release: str | None) -> tuple[str | None, str | None]:
    """Return the toolkit's version and its source."""
    if version := _version_in_json(probe, root):
        return version, "version.json"
    if match := _TEXT.search(probe.read(probe.join(root, "version.txt")) or ""):
        return match[1], "version.txt"
    if release:
        return release, "nvcc"
    header = find_header(probe, folders, "cuda.h")
    number = defined_number(probe.read(header) or "", "CUDA_VERSION") if header else None
    return (f"{number // 1000}.{number % 1000 // 10}", "cuda.h") if number else (None, None)


def _version_in_json(probe: Probe, root: str) -> str | None:
    """Return cuda.version of a version.json; None for one that is broken."""
    version = as_table(probe.table(probe.join(root, "version.json")).get("cuda")).get("version")
    return version if isinstance(version, str) and _NUMBERS.fullmatch(version) else None


def _cuobjdump(probe: Probe, root: str) -> str | None:
    program = probe.program_at(probe.join(root, "bin/cuobjdump"))
    return program or (probe.program_at("/usr/bin/cuobjdump") if root in DEBIAN else None)


def _parts(probe: Probe, folders: Folders) -> dict[str, str]:
    """Return the existing parts: the library's file, else the header."""
    parts = {}
    for part, (library, header) in PARTS.items():
        path = find_library(probe, folders, library) if library else None
        if path := path or find_header(probe, folders, header):
            parts[part] = path
    return parts


def _lacks(probe: Probe, root: str, folders: Folders) -> tuple[str, ...]:
    """Return the parts of `LINKED` without a header or a file to link, here or where CMake looks besides.

    Those are the system's folders, where CUDA 10.1 and 10.2 put cuBLAS, and math_libs of NVIDIA's HPC SDK.
    """
    if not _unlinkable(probe, folders):
        return ()
    beside = probe.names.normal(probe.join(root, "../../math_libs"))
    system = () if probe.windows else ("/usr/local", "/usr")
    tops = (beside, probe.join(beside, probe.names.base(root)), *system)
    includes = [*folders.includes, *(probe.join(top, "include") for top in tops)]
    names = ("lib64", "lib", f"lib/{multiarch_triplet(probe)}")
    others = list_folders(probe, includes, [probe.join(top, name) for top in tops for name in names])
    return _unlinkable(probe, Folders(tuple(includes), {**folders.libraries, **others.libraries}))


def _unlinkable(probe: Probe, folders: Folders) -> tuple[str, ...]:
    files = frozenset(itertools.chain.from_iterable(folders.libraries.values()))
    forms = ("lib{}.so", "{}.lib", "lib{}_static.a")
    return tuple(
        name
        for name in LINKED
        if not any(form.format(name) in files for form in forms)
        or find_header(probe, folders, PARTS[name][1]) is None
    )


# ---------------- the folders with headers and libraries

# Below the root. The layouts of releases and systems differ only in lib and lib64.
INCLUDES = ("include", "extras/CUPTI/include")
LIBRARIES = ("lib64", "lib", "lib/x64", "extras/CUPTI/lib64")
# A cross-compiling toolkit has other targets, too.
TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("aarch64-linux", "sbsa-linux")}
# Debian's and Ubuntu's package nvidia-cuda-toolkit: programs here, the rest in the system's folders.
DEBIAN = ("/usr/lib/nvidia-cuda-toolkit", "/usr/lib/cuda")
CUDART = ("libcudart.so", "cudart.lib")


class Folders(msgspec.Struct, frozen=True):
    """Folders with headers, and the names of the files in each folder with libraries."""

    includes: tuple[str, ...]
    libraries: Mapping[str, frozenset[str]]


def toolkit_folders(probe: Probe, root: str) -> Folders:
    """Return the folders of the toolkit at `root`, best first; they need not exist."""
    targets = [f"targets/{name}" for name in TARGETS.get(probe.uname().machine or "", ())]
    includes = [probe.join(root, part) for part in (*INCLUDES, *(f"{t}/include" for t in targets))]
    libraries = [probe.join(root, part) for part in (*LIBRARIES, *(f"{t}/lib" for t in targets))]
    if root in DEBIAN:
        includes.append("/usr/include")
        libraries += [f"/usr/lib/{multiarch_triplet(probe)}"]
    return list_folders(probe, includes, libraries)


def list_folders(probe: Probe, includes: list[str], libraries: list[str]) -> Folders:
    """List the files of these folders."""
    return Folders(tuple(includes), {folder: frozenset(probe.children(folder)) for folder in libraries})


def find_header(probe: Probe, folders: Folders, *names: str) -> str | None:
    """Return the first of these headers that exists."""
    paths = (probe.join(folder, name) for name in names for folder in folders.includes)
    return next((path for path in paths if probe.is_file(path)), None)


def find_library(probe: Probe, folders: Folders, name: str) -> str | None:
    """Return the file of a library: the one to link, else the runtime one, else a static one."""
    for form in ("lib{}.so", "{}.lib", "lib{}.so.*", "lib{}_static.a", "lib{}.a"):
        for folder, names in folders.libraries.items():
            if found := [file for file in names if fnmatch.fnmatchcase(file, form.format(name))]:
                return probe.join(folder, min(found))
    return None


def runtime_folder(folders: Folders) -> str | None:
    """Return the folder with the linkable CUDA runtime; NVIDIA's wheels have only the runtime file."""
    return next((f for f, names in folders.libraries.items() if any(n in names for n in CUDART)), None)


# ---------------- nvcc: its version, its architectures, and its toolkit

NVCC_TIMEOUT = 10.0
NVCC_PROFILE = "nvcc.profile"
_RELEASE = re.compile(r"release (\d+\.\d+)(?:, V(\d+(?:\.\d+)+))?")
_ARCH = re.compile(r"\bcompute_(\d+)(\d)[a-z]?\b")
# As CMake's FindCUDAToolkit does; TOP is missing if the distribution changed nvcc.profile.
_TOP = re.compile(r"^#\$ TOP=(.+?)\s*$", re.MULTILINE)
_HERE = re.compile(r"^#\$ _HERE_=(.+?)\s*$", re.MULTILINE)


class NvccAnswer(NamedTuple):
    """The release ("13.0"), the compiler's version ("13.0.88"), capabilities ("8.6"); or the problem."""

    release: str | None = None
    version: str | None = None
    archs: tuple[str, ...] = ()
    problem: str | None = None


def ask_nvcc(probe: Probe, nvcc: str) -> NvccAnswer:
    """Query nvcc's version and architectures; an nvcc before 11.0 cannot list them."""
    commands = ((nvcc, "--version"), (nvcc, "--list-gpu-arch"))
    version, archs = map_parallel(lambda argv: probe.run(argv, timeout=NVCC_TIMEOUT), commands)
    match = _RELEASE.search(version.stdout) if version and version.rc == 0 else None
    if match is None:
        return NvccAnswer(problem=_nvcc_problem(nvcc, version))
    return NvccAnswer(match[1], match[2], capabilities(archs.stdout) if archs and archs.rc == 0 else ())


def capabilities(text: str) -> tuple[str, ...]:
    """Return compute capabilities in ascending order, each once: 9.0 for compute_90 and compute_90a."""
    numbers = {(int(major), int(minor)) for major, minor in _ARCH.findall(text)}
    return tuple(f"{major}.{minor}" for major, minor in sorted(numbers))


def root_of_nvcc(probe: Probe, nvcc: str) -> str:
    """Return the toolkit of an nvcc on PATH, which may be a link, or a script that starts the real one."""
    real = probe.realpath(nvcc)
    folder = probe.names.parent(real)
    if probe.names.stem(real) == "nvcc" and probe.is_file(probe.join(folder, NVCC_PROFILE)):
        return probe.names.parent(folder)
    output = probe.run((nvcc, "-v", "__torchbuild__"), timeout=NVCC_TIMEOUT)
    text = output.stderr + output.stdout if output else ""
    if match := _TOP.search(text):
        return probe.absolute(match[1])
    if match := _HERE.search(text):
        return probe.names.parent(probe.absolute(match[1]))
    return probe.names.parent(folder)


def _nvcc_problem(nvcc: str, output: Output | None) -> str:
    command = f"{nvcc} --version"
    if output is None:
        return f"{command} did not start, or gave no answer within {NVCC_TIMEOUT:g} s"
    how = "says no version" if output.rc == 0 else f"ended with {output.rc}"
    return f"{command} {how}: {output.reason}"


# ---------------- versions in the headers of CUDA's libraries

# The headers that hold the version, newest layout first, and its numbers.
_DEFINES = {
    "cudnn": (
        ("cudnn_version.h", "cudnn_version_v8.h", "cudnn.h"),
        ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"),
    ),
    "nccl": (("nccl.h",), ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")),
    "magma": (
        ("magma_types.h",),
        ("MAGMA_VERSION_MAJOR", "MAGMA_VERSION_MINOR", "MAGMA_VERSION_MICRO"),
    ),
    "cusparselt": (
        ("cusparseLt.h",),
        ("CUSPARSELT_VER_MAJOR", "CUSPARSELT_VER_MINOR", "CUSPARSELT_VER_PATCH"),
    ),
    "cudss": (("cudss.h",), ("CUDSS_VERSION_MAJOR", "CUDSS_VERSION_MINOR", "CUDSS_VERSION_PATCH")),
}


def defined_number(text: str, name: str) -> int | None:
    """Return the number of `#define name` in a header."""
    match = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else None


def library_version(probe: Probe, folders: Folders, library: str) -> tuple[str | None, str | None]:
    """Return the version of a library and its header; (None, None) when there is no such header.

    A header without the numbers (cudnn.h of cuDNN 8) gives its own path only.
    """
    headers, names = _DEFINES[library]
    seen = None
    for header in headers:
        if path := find_header(probe, folders, header):
            seen = seen or path
            numbers = [defined_number(probe.read(path) or "", name) for name in names]
            if None not in numbers:
                return ".".join(map(str, numbers)), path
    return None, seen


# ---------------- the supported host compilers, from the header by which nvcc refuses others

# Read in crt/host_config.h of CUDA 11.7 to 13.5:
#     #if __GNUC__ > 15
#     #if defined(__clang__) && !defined(__ibmxl_vrm__) ...
#     #if (__clang_major__ >= 21) || (__clang_major__ < 3) || ...
#     #if _MSC_VER < 1920 || _MSC_VER >= 1950
_GCC = re.compile(r"^#\s*if\s+\(?\s*__GNUC__\s*(>=?)\s*(\d+)", re.MULTILINE)
# Only under this condition: special clangs (Horizon's, Grace's) have other limits.
_CLANG = re.compile(
    r"^#\s*if\s+defined\(__clang__\)[^\n]*\s+#\s*if\s+\(*\s*__clang_major__\s*(>=?)\s*(\d+)", re.MULTILINE
)
_MSC = re.compile(r"^#\s*if\s+\(?\s*_MSC_VER\s*<\s*(\d+)\s*\|\|\s*_MSC_VER\s*>=\s*(\d+)", re.MULTILINE)


class Limits(NamedTuple):
    """The newest gcc and clang majors taken, and _MSC_VER: the first, and the first no more."""

    gcc: int | None = None
    clang: int | None = None
    msc: tuple[int, int] | None = None


def host_limits(text: str) -> Limits:
    """Return the limits of a crt/host_config.h; None for those that it does not hold."""
    msc = _MSC.search(text)
    return Limits(
        gcc=_newest_taken(_GCC.search(text)),
        clang=_newest_taken(_CLANG.search(text)),
        msc=(int(msc[1]), int(msc[2])) if msc else None,
    )


def _newest_taken(refused: re.Match[str] | None) -> int | None:
    """Return the newest version that passes a test such as `> 15` or `>= 21`."""
    if refused is None:
        return None
    return int(refused[2]) - (1 if refused[1] == ">=" else 0)

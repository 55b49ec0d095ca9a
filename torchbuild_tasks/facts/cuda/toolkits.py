"""Where CUDA toolkits are looked for, and in which order; each folder is read once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from torchbuild_tasks.facts.answers import Output
from torchbuild_tasks.facts.probe import Probe, each
from torchbuild_tasks.facts.python import is_free_threaded
from torchbuild_tasks.model import Python, Toolkit

# Below the root. CUDA 13 for Windows and older ones for Linux differ in lib and lib64 only.
INCLUDES = ("include", "extras/CUPTI/include")
LIBRARIES = ("lib64", "lib", "lib/x64", "extras/CUPTI/lib64")
# A toolkit that can compile for other machines has those targets, too.
TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("aarch64-linux", "sbsa-linux")}
# Debian's and Ubuntu's package nvidia-cuda-toolkit: programs here, the rest where the system has it.
DEBIAN = ("/usr/lib/nvidia-cuda-toolkit", "/usr/lib/cuda")
CUDART = ("libcudart.so", "cudart.lib")


class Folders(msgspec.Struct, frozen=True):
    """Folders with headers, and the names of the files in each folder with libraries."""

    includes: tuple[str, ...]
    libraries: Mapping[str, frozenset[str]]


def folders_of(probe: Probe, root: str) -> Folders:
    """The folders of the toolkit at `root`, best first; they need not exist."""
    targets = [f"targets/{name}" for name in TARGETS.get(probe.uname().machine or "", ())]
    includes = [probe.join(root, part) for part in (*INCLUDES, *(f"{t}/include" for t in targets))]
    libraries = [probe.join(root, part) for part in (*LIBRARIES, *(f"{t}/lib" for t in targets))]
    if root in DEBIAN:
        includes.append("/usr/include")
        libraries += [f"/usr/lib/{multiarch(probe)}"]
    return listed(probe, includes, libraries)


def listed(probe: Probe, includes: list[str], libraries: list[str]) -> Folders:
    """The same for folders that are known."""
    return Folders(tuple(includes), {folder: frozenset(probe.children(folder)) for folder in libraries})


def multiarch(probe: Probe) -> str:
    """What Debian calls the folder for libraries of this machine: x86_64-linux-gnu."""
    return f"{probe.uname().machine or 'x86_64'}-linux-gnu"


def find_header(probe: Probe, folders: Folders, *names: str) -> str | None:
    """The first of these headers that is there."""
    paths = (probe.join(folder, name) for name in names for folder in folders.includes)
    return next((path for path in paths if probe.is_file(path)), None)


def find_library(probe: Probe, folders: Folders, name: str) -> str | None:
    """The file of a library: the one to link, else one that programs load, else a static one."""
    return next(_files_of(probe, folders, name), None)


def _files_of(probe: Probe, folders: Folders, name: str) -> Iterator[str]:
    for wanted in (f"lib{name}.so", f"{name}.lib"):
        yield from (
            probe.join(folder, wanted) for folder, names in folders.libraries.items() if wanted in names
        )
    for folder, names in folders.libraries.items():
        loaded = sorted(file for file in names if file.startswith(f"lib{name}.so."))
        yield from (probe.join(folder, file) for file in loaded)
    for static in (f"lib{name}_static.a", f"lib{name}.a"):
        yield from (
            probe.join(folder, static) for folder, names in folders.libraries.items() if static in names
        )


def runtime_folder(folders: Folders) -> str | None:
    """The folder with the CUDA runtime to link; a wheel of NVIDIA's has only the one that programs load."""
    return next((f for f, names in folders.libraries.items() if any(n in names for n in CUDART)), None)


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
}


def define_in(text: str, name: str) -> int | None:
    """The number that a header defines `name` as."""
    match = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else None


def version_from(probe: Probe, folders: Folders, library: str) -> tuple[str | None, str | None]:
    """The version of a library and the header that says so; (None, None) when there is no such header.

    A header without the numbers (cudnn.h of cuDNN 8) gives its own path only.
    """
    headers, names = _DEFINES[library]
    seen = None
    for header in headers:
        if path := find_header(probe, folders, header):
            seen = seen or path
            numbers = [define_in(probe.read(path) or "", name) for name in names]
            if None not in numbers:
                return ".".join(map(str, numbers)), path
    return None, seen


# ----------------
# which host compilers an nvcc takes, read out of the header with which it refuses the others


# Seen in the headers of CUDA 11.7 to 13.5:
#     #if __GNUC__ > 15
#     #if defined(__clang__) && !defined(__ibmxl_vrm__) ...
#     #if (__clang_major__ >= 21) || (__clang_major__ < 3) || ...
#     #if _MSC_VER < 1920 || _MSC_VER >= 1950
_GCC = re.compile(r"^#\s*if\s+\(?\s*__GNUC__\s*(>=?)\s*(\d+)", re.MULTILINE)
# Only under this condition: special clangs (Horizon's, Grace's) have limits of their own.
_CLANG = re.compile(
    r"^#\s*if\s+defined\(__clang__\)[^\n]*\s+#\s*if\s+\(*\s*__clang_major__\s*(>=?)\s*(\d+)", re.MULTILINE
)
_MSC = re.compile(r"^#\s*if\s+\(?\s*_MSC_VER\s*<\s*(\d+)\s*\|\|\s*_MSC_VER\s*>=\s*(\d+)", re.MULTILINE)


class Limits(NamedTuple):
    """The newest gcc and clang majors taken, and _MSC_VER: the first, and the first no more."""

    gcc: int | None = None
    clang: int | None = None
    msc: tuple[int, int] | None = None


def limits_in(text: str) -> Limits:
    """The limits of a crt/host_config.h; None for those that it does not hold."""
    msc = _MSC.search(text)
    return Limits(
        gcc=_newest(_GCC.search(text)),
        clang=_newest(_CLANG.search(text)),
        msc=(int(msc[1]), int(msc[2])) if msc else None,
    )


def _newest(refused: re.Match[str] | None) -> int | None:
    """The newest version that passes a test such as `> 15` or `>= 21`."""
    if refused is None:
        return None
    return int(refused[2]) - (1 if refused[1] == ">=" else 0)


# ---------------- what an nvcc says of itself: its version, what it compiles for, and where its toolkit is


TIMEOUT = 10.0
PROFILE = "nvcc.profile"

_RELEASE = re.compile(r"release (\d+\.\d+)(?:, V(\d+(?:\.\d+)+))?")
_ARCH = re.compile(r"\bcompute_(\d+)(\d)[a-z]?\b")
# CMake's FindCUDAToolkit asks in the same way; TOP is missing where the distribution changed the profile.
_TOP = re.compile(r"^#\$ TOP=(.+?)\s*$", re.MULTILINE)
_HERE = re.compile(r"^#\$ _HERE_=(.+?)\s*$", re.MULTILINE)


class Said(NamedTuple):
    """The release ("13.0"), the compiler's version ("13.0.88"), capabilities ("8.6"); or what is wrong."""

    release: str | None = None
    version: str | None = None
    archs: tuple[str, ...] = ()
    problem: str | None = None


def ask(probe: Probe, nvcc: str) -> Said:
    """Ask for its version and its architectures; an nvcc before 11.0 cannot list them."""
    commands = ((nvcc, "--version"), (nvcc, "--list-gpu-arch"))
    version, archs = each(lambda argv: probe.run(argv, timeout=TIMEOUT), commands)
    match = _RELEASE.search(version.stdout) if version and version.rc == 0 else None
    if match is None:
        return Said(problem=_nvcc_problem(nvcc, version))
    return Said(match[1], match[2], capabilities(archs.stdout) if archs and archs.rc == 0 else ())


def capabilities(text: str) -> tuple[str, ...]:
    """Compute capabilities in ascending order, each once: 9.0 for compute_90 and compute_90a."""
    found = {(int(major), int(minor)) for major, minor in _ARCH.findall(text)}
    return tuple(f"{major}.{minor}" for major, minor in sorted(found))


def root_of(probe: Probe, nvcc: str) -> str:
    """The toolkit of an nvcc on PATH, which may be a link, or a script that starts the real one."""
    real = probe.realpath(nvcc)
    folder = probe.names.parent(real)
    if probe.names.stem(real) == "nvcc" and probe.is_file(probe.join(folder, PROFILE)):
        return probe.names.parent(folder)
    output = probe.run((nvcc, "-v", "__torchbuild__"), timeout=TIMEOUT)
    text = output.stderr + output.stdout if output else ""
    if match := _TOP.search(text):
        return probe.absolute(match[1])
    if match := _HERE.search(text):
        return probe.names.parent(probe.absolute(match[1]))
    return probe.names.parent(folder)


def _nvcc_problem(nvcc: str, output: Output | None) -> str:
    asked = f"{nvcc} --version"
    if output is None:
        return f"{asked} did not start, or gave no answer within {TIMEOUT:g} s"
    said = (output.stderr.strip() or output.stdout.strip()).splitlines()
    line = said[0].strip()[:100] if said else "without a word"
    if output.rc == 0:
        return f"{asked} says no version: {line}"
    return f"{asked} ended with {output.rc}: {line}"


# ---------------- reading one folder that may be a CUDA toolkit


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

_TEXT = re.compile(r"CUDA Version (\d+(?:\.\d+)+)")
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")


def looks_like_one(probe: Probe, root: str) -> bool:
    """Whether there is an nvcc, or the header of the CUDA runtime."""
    nvcc_there = probe.program_at(probe.join(root, "bin/nvcc")) is not None
    return nvcc_there or find_header(probe, folders_of(probe, root), "cuda_runtime.h") is not None


def read_toolkit(
    probe: Probe,
    root: str,
    found_via: str,
    *,
    aliases: tuple[str, ...] = (),
    managed: bool = False,
    version: str | None = None,
) -> Toolkit:
    """Everything about the toolkit at `root`.

    Args:
        probe: the machine.
        root: the folder, without links.
        found_via: what led to it.
        aliases: what else it is called.
        managed: whether it was put together by this tool.
        version: what to believe when nothing in the folder says a version.
    """
    named: dict[str, Any] = {"path": root, "found_via": found_via, "aliases": aliases, "managed": managed}
    if not probe.is_dir(root):
        problem = "it is a file, not the folder of a toolkit" if probe.exists(root) else "it does not exist"
        return Toolkit(**named, problem=problem)
    folders = folders_of(probe, root)
    program = probe.program_at(probe.join(root, "bin/nvcc"))
    said = ask(probe, program) if program else Said()
    host_config = find_header(probe, folders, "crt/host_config.h", "host_config.h")
    runtime = find_header(probe, folders, "cuda_runtime.h")
    limits = limits_in(probe.read(host_config) or "" if host_config else "")
    known, via = _version(probe, root, folders, said.release)
    return Toolkit(
        **named,
        version=known or version,
        version_via=via or ("the mark of this tool" if version else None),
        nvcc=program,
        nvcc_version=said.version or said.release,
        headers=bool(runtime and host_config),
        libraries=runtime_folder(folders),
        archs=said.archs,
        gcc=limits.gcc,
        clang=limits.clang,
        msc=limits.msc,
        cudnn=version_from(probe, folders, "cudnn")[0],
        nccl=version_from(probe, folders, "nccl")[0],
        cuobjdump=_cuobjdump(probe, root),
        parts=_parts(probe, folders),
        problem=said.problem or _problem(probe, root, program, runtime),
    )


def _problem(probe: Probe, root: str, program: str | None, runtime: str | None) -> str | None:
    """What is wrong with a folder whose nvcc (if any) answers; one without nvcc is no fault by itself."""
    if program:
        return None
    there = probe.join(root, "bin/nvcc")
    if probe.exists(there):
        return f"{there} is not a program that this user may start"
    return None if runtime else "holds neither bin/nvcc nor the CUDA headers"


def _version(probe: Probe, root: str, folders: Folders, release: str | None) -> tuple[str | None, str | None]:
    """The toolkit's version and what said it."""
    if version := _version_in_json(probe.read(probe.join(root, "version.json"))):
        return version, "version.json"
    if match := _TEXT.search(probe.read(probe.join(root, "version.txt")) or ""):
        return match[1], "version.txt"
    if release:
        return release, "nvcc"
    header = find_header(probe, folders, "cuda.h")
    number = define_in(probe.read(header) or "", "CUDA_VERSION") if header else None
    return (f"{number // 1000}.{number % 1000 // 10}", "cuda.h") if number else (None, None)


def _version_in_json(text: str | None) -> str | None:
    """cuda.version of a version.json; None for one that is broken."""
    try:
        version = json.loads(text or "")["cuda"]["version"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return version if isinstance(version, str) and _NUMBERS.fullmatch(version) else None


def _cuobjdump(probe: Probe, root: str) -> str | None:
    found = probe.program_at(probe.join(root, "bin/cuobjdump"))
    return found or (probe.program_at("/usr/bin/cuobjdump") if root in DEBIAN else None)


def _parts(probe: Probe, folders: Folders) -> dict[str, str]:
    """The parts that are there: the file of the library, else the header."""
    found = {}
    for part, (library, header) in PARTS.items():
        path = find_library(probe, folders, library) if library else None
        if path := path or find_header(probe, folders, header):
            found[part] = path
    return found


# ---------------- where the found interpreters keep what pip installs: NVIDIA's wheels among it


def site_folders(probe: Probe, pythons: Sequence[Python]) -> tuple[str, ...]:
    """The site-packages of each interpreter, each once."""
    folders = [folder for python in pythons for folder in _of_one(probe, python)]
    return tuple(dict.fromkeys(folders))


def _of_one(probe: Probe, python: Python) -> tuple[str, ...]:
    if python.prefix is None or python.version is None:
        return ()
    if probe.windows:
        return (probe.join(python.prefix, "Lib/site-packages"),)
    series = ".".join(python.version.split(".")[:2]) + ("t" if is_free_threaded(python.abi) else "")
    # Fedora's Python puts into lib64 what holds binaries.
    return tuple(
        probe.join(python.prefix, lib, f"python{series}", "site-packages") for lib in ("lib", "lib64")
    )


# ----------------


ASKED = "--cuda-toolkit"
VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR")
SHELF = "toolkits"
MARKER = ".torchbuild-toolkit.json"
PROGRAM_FILES = "NVIDIA GPU Computing Toolkit/CUDA"

_ASKED_OTHERWISE = re.compile(r"pypi:.*|\d+(\.\d+)*")
_NUMBERED_VARIABLE = re.compile(r"CUDA_PATH_V\d+_\d+", re.IGNORECASE)
_UNIX = re.compile(r"cuda(-\d+(\.\d+)?)?")
_WINDOWS = re.compile(r"v\d+\.\d+", re.IGNORECASE)
_WHEELS = re.compile(r"cu\d+")


class Place(NamedTuple):
    """A folder that may be a toolkit, as it is written where it was found.

    One that somebody `named` is reported even when it is none.
    """

    path: str
    found_via: str
    named: bool = False
    managed: bool = False
    version: str | None = None


class Group(NamedTuple):
    """One place that was looked at, in words, and the folders found there."""

    looked: str
    places: tuple[Place, ...] = ()


def look_for_toolkits(
    probe: Probe, asked: str | None, store: str | None, pythons: Sequence[Python]
) -> tuple[tuple[Toolkit, ...], tuple[str, ...]]:
    """Every toolkit once, in the order in which they would be taken, and where was looked."""
    groups = list(_groups(probe, asked, store, pythons))
    places = [place for group in groups for place in group.places]
    found = each(lambda item: _read(probe, item[0], item[1]), _distinct(probe, places).items())
    return found, tuple(dict.fromkeys(group.looked for group in groups))


def _distinct(probe: Probe, places: Iterable[Place]) -> dict[str, list[Place]]:
    """The places by the folder that they mean, without links; what is no toolkit is left out."""
    first: dict[str, str] = {}
    found: dict[str, list[Place]] = {}
    for place in places:
        root = probe.realpath(probe.absolute(place.path))
        if place.named or looks_like_one(probe, root):
            root = first.setdefault(probe.names.key(root), root)
            found.setdefault(root, []).append(place)
    return found


def _read(probe: Probe, root: str, places: list[Place]) -> Toolkit:
    names = [name for place in places for name in (place.path, probe.absolute(place.path))]
    return read_toolkit(
        probe,
        root,
        places[0].found_via,
        aliases=tuple(name for name in dict.fromkeys(names) if name != root),
        managed=any(place.managed for place in places),
        version=next((place.version for place in places if place.version), None),
    )


def _groups(probe: Probe, asked: str | None, store: str | None, pythons: Sequence[Python]) -> Iterator[Group]:
    if asked and not _ASKED_OTHERWISE.fullmatch(asked):
        yield Group(f"{ASKED} {asked}", (Place(asked, ASKED, named=True),))
    for name in (*VARIABLES, *_numbered(probe)):
        value = probe.variable(name)
        places = (Place(value, name, named=True),) if value else ()
        yield Group(f"environment {name}" + (f" ({value})" if value else " (not set)"), places)
    roots = each(lambda path: root_of(probe, path), probe.which_all("nvcc"))
    yield Group("nvcc in the folders of PATH", tuple(Place(root, "PATH") for root in roots))
    yield _program_files(probe) if probe.windows else _usual(probe)
    if prefix := probe.variable("CONDA_PREFIX"):
        root = probe.join(prefix, "Library") if probe.windows else prefix
        yield Group(root, (Place(root, "CONDA_PREFIX"),))
    for folder in site_folders(probe, pythons):
        wheels = probe.join(folder, "nvidia")
        yield Group(probe.join(wheels, "cu*"), _below(probe, wheels, _WHEELS, "NVIDIA's wheels"))
    if store:
        yield _managed(probe, probe.join(store, SHELF))


def _numbered(probe: Probe) -> list[str]:
    """CUDA_PATH_V12_4 and the like, the newest first; the installer on Windows sets them."""
    return sorted(filter(_NUMBERED_VARIABLE.fullmatch, probe.environ), key=_numbers, reverse=True)


def _usual(probe: Probe) -> Group:
    """Where NVIDIA's installers put it: /usr/local/cuda is the one in use, the others by number."""
    usual = _below(probe, "/usr/local", _UNIX, "known folder")
    arch_linux = Place("/opt/cuda", "known folder")
    return Group("/usr/local/cuda*, /opt/cuda", (*usual, arch_linux))


def _program_files(probe: Probe) -> Group:
    programs = probe.variable("ProgramW6432") or probe.variable("ProgramFiles") or "C:\\Program Files"
    folder = probe.join(programs, PROGRAM_FILES)
    return Group(probe.join(folder, "v*"), _below(probe, folder, _WINDOWS, "Program Files"))


def _below(probe: Probe, folder: str, name: re.Pattern[str], found_via: str) -> tuple[Place, ...]:
    """The folders of that name, first one without a number, then the newest."""
    names = sorted(filter(name.fullmatch, probe.children(folder)), key=_numbers, reverse=True)
    names.sort(key=lambda one: bool(_numbers(one)))
    return tuple(Place(probe.join(folder, one), found_via) for one in names)


def _numbers(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]


def _managed(probe: Probe, shelf: str) -> Group:
    """Those that this tool put together, when they are complete."""
    places = []
    for name in probe.children(shelf):
        folder = probe.join(shelf, name)
        mark = _mark(probe.read(probe.join(folder, MARKER)))
        if mark.get("id") == name and mark.get("finished"):
            version = mark.get("version")
            known = version if isinstance(version, str) else None
            places.append(Place(folder, "managed", named=True, managed=True, version=known))
    return Group(shelf, tuple(places))


def _mark(text: str | None) -> dict[str, Any]:
    try:
        data = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}

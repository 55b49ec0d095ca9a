"""Report the properties of a torch and run its checks, in the Python that has it.

    PYTHON -I torch_probe.py [--limit SECONDS] [CHECK ...]     in an empty folder

It stands alone: torch, the standard library and the files of checks next to it, nothing
else of this package, and only what Python 3.7 has, since an old torch needs an old
Python. A line that holds MARK carries one JSON object after it: `{"begin": CHECK}`, then
`{"check": CHECK, "outcome": ..., "detail": ..., "values": {...}, "seconds": ...}`, and at
last `{"end": true}`, or `{"again": true}` where a fresh process should go on. Torch may
print what it likes between them, and a crash costs only the check that was running.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import re
import sys
import sysconfig
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Answer = tuple[str, dict[str, str]]

MARK = "@torchbuild-probe "
LIMIT = 180.0
FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as tracebacks spell it

CPU_CHECKS = (
    *("import", "config"),  # the properties of torch: in this file
    *("matmul", "threads", "autograd", "linalg", "conv", "save_load", "numpy"),
    *("libraries", "rpath", "cpp_extension", "cmake_consumer"),
)
OF_COMPILERS = ("cpp_extension", "cmake_consumer")  # which would outlive this process; the caller ends them
# If one of these fails or crashes, no other CUDA check is run.
GATES = ("cuda_available", "cuda_devices", "cuda_driver", "cuda_op")
CUDA_CHECKS = (
    *("cuda_available", "cuda_arch_list", "cuda_devices", "cuda_driver", "cuda_op", "cuda_kernels"),
    "cuda_exceptions",
    *("cuda_matmul", "cuda_conv", "cudnn", "cublas", "cuda_linalg", "cuda_amp"),
    *("cuda_pinned", "cuda_streams", "cuda_oom", "cuda_peer", "nccl"),
)
COMPANION_CHECKS = (  # of companions
    *("torchvision", "torchvision_cuda", "torchaudio"),
    *("torch_scatter", "flash_attn", "xformers", "vllm"),
)
CHECKS = CPU_CHECKS + CUDA_CHECKS + COMPANION_CHECKS
FILES = ("torch_checks", "cuda_checks", "cuda_math", "companion_checks")  # of checks

# Seconds that a check may take where that is less than LIMIT. The first call starts the driver:
# some seconds for each GPU where nothing keeps it awake.
LIMITS = {"cuda_available": 60.0, "cuda_devices": 60.0, "cuda_driver": 20.0, "cuda_op": 20.0}

CONFIG_LINES = (
    ("compiler", r"((?:GCC|MSVC) .+)"),
    ("compiler", r"(clang .+)"),  # clang calls itself GCC 4.2 in the line before
    ("cxx_standard", r"C\+\+ Version: (\d+)"),
    ("mkl", r"Intel.* Math Kernel Library Version (\d[\d.]*)"),
    ("onednn", r".*(?:MKL-DNN|oneDNN) v(\S+)"),
    ("openmp", r"OpenMP (?:\d+ \(a\.k\.a\. OpenMP )?([\d.]+)"),
    ("cpu_capability", r"CPU capability usage: (.+)"),
    ("cuda_runtime", r"CUDA Runtime (\S+)"),
    ("gencode", r"NVCC architecture flags: (.+)"),
    ("cudnn", r"CuDNN (\S+)"),
    ("magma", r"Magma (\S+)"),
)
PARALLEL_LINES = (
    ("threads", r"at::get_num_threads\(\) : (\d+)"),
    ("hardware_threads", r"std::thread::hardware_concurrency\(\) : (\d+)"),
    ("parallel_backend", r"ATen parallel backend: (.+)"),
)
RUNTIMES = (  # by the name of the file, in small letters
    ("libstdcxx", r"libstdc\+\+"),
    ("msvcp", r"msvcp\d+\.dll"),
    ("openmp_runtime", r"(lib(gomp|iomp5|omp)\b|libiomp5md\.dll|libomp140|vcomp\d+\.dll)"),
)


# ---------------------------------------------------------------- properties of torch


def check_import(torch: Any) -> Answer:
    values = {"file": os.path.realpath(torch.__file__), "version": str(torch.__version__)}
    for key in ("git_version", "debug", "cuda"):
        if hasattr(torch.version, key):
            values[key] = str(getattr(torch.version, key))
    extension = getattr(getattr(torch, "_C", None), "__file__", None)
    if extension:
        values["extension"] = os.path.realpath(extension)
    values.update(python=sys.version.split()[0], **distribution(), **runtimes(), **led_by(torch.__file__))
    return f"torch {values['version']} from {values['file']}", values


def led_by(file: str) -> dict[str, str]:
    """Return the .pth file that adds a package's folder to sys.path, if there is one."""
    entry = os.path.normcase(Path(file).parent.parent)
    for folder in filter(os.path.isdir, sys.path):
        for path in sorted(Path(folder).glob("*.pth")):
            with contextlib.suppress(OSError):
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                if entry in (os.path.normcase(Path(line)) for line in lines):
                    return {"led_by": str(path)}
    return {}


def distribution() -> dict[str, str]:
    """Return the version in the distribution's metadata, by which pip decides whether to replace torch."""
    try:
        return {"distribution": importlib.import_module("importlib.metadata").version("torch")}
    except ImportError:  # no such module before Python 3.8, or no such distribution
        return {}


def runtimes() -> dict[str, str]:
    """Return the C++ and OpenMP runtimes of this process."""
    files = sorted(mapped_libraries() | loaded_dlls())
    texts = {
        key: ", ".join(f for f in files if re.match(name, Path(f).name.lower())) for key, name in RUNTIMES
    }
    return {key: text for key, text in texts.items() if text}


def mapped_libraries() -> set[str]:
    """Return the shared libraries that Linux shows in this process."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return {line.split(None, 5)[5].strip() for line in maps.splitlines() if ".so" in line}


def loaded_dlls() -> set[str]:
    """Return the DLLs that Windows shows in this process, at most 4096."""
    if sys.platform != "win32":
        return set()
    kernel32 = ctypes.WinDLL("kernel32")
    needed = ctypes.c_ulong()
    kernel32.GetCurrentProcess.restype = ctypes.c_void_p
    process = ctypes.c_void_p(kernel32.GetCurrentProcess())
    modules = (ctypes.c_void_p * 4096)()
    size = ctypes.c_ulong(ctypes.sizeof(modules))
    if not kernel32.K32EnumProcessModules(process, modules, size, ctypes.byref(needed)):
        return set()
    name = ctypes.create_unicode_buffer(32768)
    files = set()
    for module in modules[: needed.value // ctypes.sizeof(ctypes.c_void_p)]:
        kernel32.GetModuleFileNameW(ctypes.c_void_p(module), name, len(name))
        files.add(name.value)
    return files


def check_libraries(torch: Any) -> Answer:
    """Report the libraries that this process has loaded with torch; `judge` checks their folders."""
    files = sorted({os.path.realpath(file) for file in mapped_libraries() | loaded_dlls()})
    if not files:
        raise import_sibling("torch_checks").NotPossible("this system does not show what a process loads")
    prefixes = {os.path.realpath(each) for each in (sys.prefix, sys.base_prefix)}
    values = {"loaded": "\n".join(files), "prefixes": "\n".join(sorted(prefixes))}
    return f"{len(files)} libraries are loaded", {**values, **package_folders(torch)}


def check_rpath(torch: Any) -> Answer:
    """Report the libraries of the package, whose RPATHs the session reads."""
    if sys.platform == "win32":
        raise import_sibling("torch_checks").NotPossible("a DLL has no RPATH")
    folders = package_folders(torch)
    files = {str(file) for each in folders["package"].split("\n") for file in Path(each).glob("lib/*.so*")}
    files |= {os.path.realpath(torch._C.__file__)} if hasattr(torch._C, "__file__") else set()
    return f"{len(files)} libraries", {"files": "\n".join(sorted(files)), **folders}


def package_folders(torch: Any) -> dict[str, str]:
    """Return the folders of torch's Python files and of its compiled part; an editable install has two."""
    files = [torch.__file__, getattr(torch._C, "__file__", None) or torch.__file__]
    return {"package": "\n".join(sorted({str(Path(os.path.realpath(file)).parent) for file in files}))}


def check_config(torch: Any) -> Answer:
    values = parse_config(torch.__config__.show())
    values.update(parse_lines(torch.__config__.parallel_info(), PARALLEL_LINES, ""))
    if hasattr(torch, "compiled_with_cxx11_abi"):
        values["cxx11_abi"] = str(torch.compiled_with_cxx11_abi())
    if "compiler" not in values:
        raise ValueError("torch.__config__.show() names no compiler")
    return ", ".join(values[key] for key in ("compiler", "BUILD_TYPE") if key in values), values


def parse_config(text: str) -> dict[str, str]:
    """Turn `torch.__config__.show()` into names and texts.

    LAPACK and NNPACK are mentioned only when they are on. The build settings are one
    line of `NAME=value, NAME=value, `, where a value may hold commas of its own.
    """
    values = parse_lines(text, CONFIG_LINES, "  - ")
    for name in ("LAPACK", "NNPACK"):
        values[name.lower()] = "ON" if f"  - {name} is enabled" in text else "OFF"
    line = parse_lines(text, (("settings", r"Build settings: (.*)"),), "  - ").get("settings", "")
    for setting in re.split(r",\s+(?=[A-Z][A-Z0-9_]*=)", line.rstrip(", ")):
        name, equals, value = setting.partition("=")
        if equals:
            values[name] = value.strip()
    return values


def parse_lines(text: str, lines: Iterable[tuple[str, str]], start: str) -> dict[str, str]:
    matches = ((key, re.search(rf"^{start}\s*{pattern}", text, re.MULTILINE)) for key, pattern in lines)
    return {key: match.group(1).strip() for key, match in matches if match}


# ---------------------------------------------------------------- running the checks


def main(arguments: list[str]) -> None:
    faulthandler.enable()
    if sys.platform == "win32":
        # Report a missing DLL or a crash as text, not in a dialog that waits for a click:
        # SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SEM_NOOPENFILEERRORBOX.
        ctypes.WinDLL("kernel32").SetErrorMode(0x8003)
    limit = float(arguments[arguments.index("--limit") + 1]) if "--limit" in arguments else LIMIT
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    files = [import_sibling(name) for name in FILES]
    own = {"import": check_import, "config": check_config, "libraries": check_libraries, "rpath": check_rpath}
    checks = [name for name in CHECKS if name in arguments] or CPU_CHECKS + CUDA_CHECKS
    for name in ["import", *(name for name in checks if name != "import")]:
        emit(begin=name)
        if name not in OF_COMPILERS:
            faulthandler.dump_traceback_later(min(limit, LIMITS.get(name, limit)), exit=True)
        result = ask(own.get(name) or find_check(files, name), files[0])
        faulthandler.cancel_dump_traceback_later()
        emit(check=name, **result)
        if result["outcome"] == "failed" and name in CUDA_CHECKS:
            emit(again=True)  # its error may repeat in every later call of this process
            return
        if name == "import" and result["outcome"] != "passed":
            break
    emit(end=True)


def find_check(files: list[Any], name: str) -> Callable[[Any], Answer]:
    """Return the function of a check, from the file that defines it."""
    home = next(file for file in files if hasattr(file, "check_" + name))
    check: Callable[[Any], Answer] = getattr(home, "check_" + name)
    return check


def import_sibling(name: str) -> Any:
    """Import a file next to this one without adding its folder to sys.path or writing bytecode."""
    written = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path.append(FOLDER)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(FOLDER)
        sys.dont_write_bytecode = written


def ask(check: Callable[[Any], Answer], computing: Any) -> dict[str, Any]:
    start = time.time()
    values: dict[str, str] = {}
    try:
        detail, values = check(importlib.import_module("torch"))
        outcome = "passed"
    except computing.NotPossible as error:
        outcome = "not possible"
        detail = str(error.args[0])
        values = dict(*error.args[1:])
    except computing.Wrong as error:
        outcome = "failed"
        detail = str(error.args[0])
        values = dict(*error.args[1:])
    except Exception as error:
        outcome = "failed"
        detail = describe_error(error)
    return {"outcome": outcome, "detail": detail, "values": values, "seconds": round(time.time() - start, 3)}


def describe_error(error: Exception) -> str:
    """Return the error's message, shortened in the middle, and where it was raised."""
    words = f"{type(error).__name__}: {error}"
    if len(words) > 2000:
        words = f"{words[:500]}\n...\n{words[-1500:]}"
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((FOLDER, "<"))
    ]
    return "\n".join([words, *(f"  at {f.filename}:{f.lineno} in {f.name}" for f in frames[-3:])])


def emit(**event: Any) -> None:
    print(MARK + json.dumps(event), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

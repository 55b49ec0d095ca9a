"""Complete a toolkit on Linux: links, x bits of programs, stub libraries of the driver.

With the stubs a machine without a driver can link. NVIDIA's archives bring them, its wheels do
not. They are built of the functions that the headers declare; each returns the error that
NVIDIA's own stubs return.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import replace

_SHARED: Final = re.compile(r"(lib.+\.so)((?:\.\d+)+)")
_LIBRARIES: Final = ("lib", "nvvm/lib64")
_PROGRAMS: Final = ("bin", "nvvm/bin")


def complete(folder: Path, note: Callable[[str], None]) -> None:
    """Create `lib64`, the linker's names (`libX.so`) and stubs, and make programs executable.

    Raises:
        OSError: something cannot be written.
    """
    if (folder / "lib").is_dir() and not (folder / "lib64").exists():
        (folder / "lib64").symlink_to("lib", target_is_directory=True)
    for name in _LIBRARIES:
        _name_plainly(folder / name)
    for name in _PROGRAMS:
        _make_executable(folder / name)
    add_stubs(folder, note)


def _name_plainly(folder: Path) -> None:
    """Link `libX.so` to `libX.so.13`; of several, to the one with the shortest version."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir(), key=lambda path: (path.name.count("."), path.name)):
        match = _SHARED.fullmatch(path.name)
        if match and not (plain := folder / match[1]).exists():
            plain.symlink_to(path.name)


def _make_executable(folder: Path) -> None:
    """Set the x bits of programs, which have no suffix, unlike `nvcc.profile` next to them."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.suffix or path.is_symlink() or not path.is_file():
            continue
        mode = path.stat().st_mode
        if mode & 0o111 == 0:
            # Copy it: it is hard-linked with the store's file, which must not change.
            copy = path.with_name(f"{path.name}.copy")
            shutil.copyfile(path, copy)
            copy.chmod((mode & 0o777) | ((mode & 0o444) >> 2))
            copy.replace(path)


# ---------------- stub libraries of the driver

COMPILERS: Final = ("cc", "gcc", "clang")
_SECONDS: Final = 60.0


class Stub(msgspec.Struct, frozen=True, kw_only=True):
    """One library: its header, the names of its functions, and the error that they return.

    `macros` are defined in one more reading of the header: older and per-thread names of
    functions are declared only then.
    """

    library: str
    header: str
    functions: str
    error: int
    macros: tuple[tuple[str, ...], ...] = ((),)


STUBS: Final = (
    Stub(
        library="cuda",
        header="cuda.h",
        functions=r"\b(cu[A-Z]\w*)\s*\(",
        error=34,  # CUDA_ERROR_STUB_LIBRARY
        macros=((), ("__CUDA_API_VERSION_INTERNAL",)),
    ),
    Stub(library="nvidia-ml", header="nvml.h", functions=r"\b(nvml[A-Z]\w*)\s*\(", error=12),
)


def add_stubs(folder: Path, note: Callable[[str], None], compilers: tuple[str, ...] = COMPILERS) -> None:
    """Create `lib/stubs/lib*.so` for each header without a stub.

    Without a C compiler there is none, and what is linked with the driver needs the driver.

    Raises:
        OSError: a file cannot be written.
    """
    missing = [stub for stub in STUBS if _is_missing(folder, stub)]
    if not missing:
        return
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if compiler is None:
        note(f"no C compiler ({', '.join(compilers)}) is on PATH: no stub libraries of the driver are made")
        return
    (folder / "lib" / "stubs").mkdir(parents=True, exist_ok=True)
    for stub in missing:
        _make(folder, stub, compiler, note)


def _place(folder: Path, stub: Stub) -> Path:
    return folder / "lib" / "stubs" / f"lib{stub.library}.so"


def _is_missing(folder: Path, stub: Stub) -> bool:
    return (folder / "include" / stub.header).is_file() and not _place(folder, stub).exists()


def _make(folder: Path, stub: Stub, compiler: str, note: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "stub.c")
        built = Path(scratch, "stub.so")
        functions = sorted(_functions(folder, stub, compiler, source))
        text = "".join(f"int {name}(void) {{ return {stub.error}; }}\n" for name in functions)
        source.write_text(text, "utf-8")
        soname = f"-Wl,-soname,lib{stub.library}.so.1"
        flags = ("-shared", "-fPIC", "-fno-builtin", "-nostdlib", soname)
        captured = process.capture((compiler, *flags, "-o", str(built), str(source)), timeout=_SECONDS)
        if not functions or captured.rc != 0:
            errors = captured.error_text[-200:]
            note(f"no stub of lib{stub.library}.so can be made of {stub.header} with {compiler}: {errors}")
            return
        # It may be on another file system, from which a rename fails.
        partial = _place(folder, stub).with_suffix(".partial")
        shutil.copyfile(built, partial)
        partial.chmod(0o755)
        replace(partial, _place(folder, stub))


def _functions(folder: Path, stub: Stub, compiler: str, source: Path) -> set[str]:
    """Return the names that the preprocessed header declares: macros give many of them a suffix (`_v2`)."""
    functions: set[str] = set()
    for macros in stub.macros:
        defines = "".join(f"#define {name}\n" for name in macros)
        source.write_text(f"{defines}#include <{stub.header}>\n", "utf-8")
        command = (compiler, "-E", "-P", f"-I{folder / 'include'}", str(source))
        captured = process.capture(command, timeout=_SECONDS)
        functions.update(re.findall(stub.functions, captured.answer))
    return functions

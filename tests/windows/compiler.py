"""Adds a C and C++ compiler that runs on Windows and makes Windows programs: C:\\cc\\clang.exe, clang++.exe.

It is the clang and the lld inside zig (zig's own driver, `zig cc`, does not run under wine 8 or 10)
with Debian's mingw-w64 headers, C runtime and libstdc++. Its programs have MinGW's ABI: nothing here
says anything about cl.exe, link.exe or their flags.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

from tests.windows import relay
from tests.windows.python import HERE, fetched
from tests.windows.wine import Bench, BenchError

SHIM = HERE / "shim.c"
LINKER = HERE / "lld.py"

ZIG = r"C:\zig\ziglang\zig.exe"

SYSROOT = {  # what of the Linux machine appears below C:\mingw
    "lib/gcc/x86_64-w64-mingw32": Path("/usr/lib/gcc/x86_64-w64-mingw32"),
    "x86_64-w64-mingw32": Path("/usr/x86_64-w64-mingw32"),
}

CLANG = (
    "--target=x86_64-w64-windows-gnu",
    "--sysroot=C:/mingw",
    "-resource-dir",
    "C:/zig/ziglang/lib",
    "--ld-path=C:/cc/ld.lld.exe",
    "-static",  # the runtimes go into each program, so that none depends on a DLL of C:\mingw
    "-Wno-unused-command-line-argument",
)

COMMANDS = {  # the programs of C:\cc, and what each runs
    "clang": (ZIG, "clang", "--driver-mode=gcc", *CLANG),
    "clang++": (ZIG, "clang", "--driver-mode=g++", *CLANG),
    "ld.lld": (r"C:\Python311\python.exe", r"C:\cc\lld.py", ZIG),
    "llvm-ar": (ZIG, "ar"),
    "llvm-ranlib": (ZIG, "ranlib"),
    "llvm-rc": (ZIG, "rc"),
}

# Exceptions and the library have to work; 42 tells this program's end from any other.
TRIAL = """\
#include <vector>
int main() { std::vector<int> v(3); try { v.at(9); } catch (...) { return 42; } return 1; }
"""


def inputs() -> str:
    """What the compiler is made from, besides what is pinned."""
    texts = [SHIM.read_text(encoding="utf-8"), LINKER.read_text(encoding="utf-8")]
    return "\n".join([*texts, *(str(command) for command in COMMANDS.items())])


def make_compiler(bench: Bench) -> None:
    """Lay out C:\\zig, C:\\mingw and C:\\cc, and compile and run a program."""
    zig, folder = bench.drive / "zig", bench.drive / "cc"
    shutil.rmtree(zig, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    wheel_only = ("--only-binary", ":all:", "--platform", "win_amd64")
    with fetched("ziglang", *wheel_only) as wheel, zipfile.ZipFile(wheel) as archive:
        archive.extractall(zig)
    link_sysroot(bench)
    folder.mkdir()
    make_programs(folder)
    try_compiler(bench, folder)


def link_sysroot(bench: Bench) -> None:
    """Show the Linux machine's mingw-w64 below C:\\mingw; wine follows links of Linux."""
    for name, target in SYSROOT.items():
        link = bench.drive / "mingw" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target, target_is_directory=True)


def make_programs(folder: Path) -> None:
    """Write each program of C:\\cc: the shim under its name, and the words that it runs."""
    shim = folder / "clang.exe"
    compile_shim = ["x86_64-w64-mingw32-gcc-win32", "-O2", "-s", "-static", str(SHIM), "-o", str(shim)]
    subprocess.run(compile_shim, check=True)
    for name, words in COMMANDS.items():
        if name != "clang":
            shutil.copyfile(shim, folder / f"{name}.exe")
        (folder / f"{name}.shim").write_text("".join(f"{word}\n" for word in words), encoding="ascii")
    shutil.copyfile(LINKER, folder / LINKER.name)


def try_compiler(bench: Bench, folder: Path) -> None:
    """Compile and run one program; a compiler that cannot do that is none."""
    source = folder / "trial.cpp"
    source.write_text(TRIAL, encoding="ascii")
    if relay.run(bench, [r"C:\cc\clang++.exe", r"C:\cc\trial.cpp", "-o", r"C:\cc\trial.exe"]) != 0:
        raise BenchError("the compiler does not work under wine (see above)")
    code = relay.run(bench, [r"C:\cc\trial.exe"])
    if code != 42:
        raise BenchError(f"the program that the compiler made ended with {code}, not 42")
    for file in folder.glob("trial.*"):
        file.unlink()

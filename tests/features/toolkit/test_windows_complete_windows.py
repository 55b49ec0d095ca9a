"""Import libraries are generated from the exports of a DLL, and only where one is missing."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import has, needs
from torchbuild_tasks.features.toolkit.windows import complete, import_library
from torchbuild_tasks.system.pe import Export, read_exports

WINDOWS_C = "clang" if sys.platform == "win32" else "x86_64-w64-mingw32-gcc"
needs_windows_c = needs(has(WINDOWS_C), "C compiler for Windows")


def dll(*names: str, data: tuple[str, ...] = ()) -> bytes:
    """The smallest DLL that exports these: a section of code, and one of tables and data."""
    every = sorted((*names, *data))
    at = 0x2000  # of the second section
    tables = 40 + 4 * len(every) + 4 * len(every) + 2 * len(every)
    pointers, text = [], b""
    for name in every:
        pointers.append(at + tables + len(text))
        text += name.encode() + b"\0"
    addresses = [0x1000 if name in names else at + tables for name in every]
    directory = struct.pack(
        "<20xIIIII", len(every), len(every), at + 40, at + 40 + 4 * len(every), at + 40 + 8 * len(every)
    )
    body = directory + struct.pack(f"<{2 * len(every)}I", *addresses, *pointers)
    body += struct.pack(f"<{len(every)}H", *range(len(every))) + text
    optional = struct.pack("<H110xII", 0x20B, at, len(body)).ljust(240, b"\0")
    sections = b""
    for section, size, address, offset, flags in (
        (b".text", 16, 0x1000, 0x400, 0x60000020),
        (b".rdata", len(body), at, 0x600, 0x40000040),
    ):
        sections += struct.pack("<8sIIII12xI", section, size, address, size, offset, flags)
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    head += struct.pack("<4sHH12xHH", b"PE\0\0", 0x8664, 2, len(optional), 0x2000) + optional + sections
    return head.ljust(0x600, b"\0") + body


def lay(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def quiet(text: str) -> None:
    raise AssertionError(text)


def test_exports_are_read_with_their_kind_and_place(tmp_path: Path) -> None:
    path = lay(tmp_path, "x.dll", dll("cublasCreate_v2", "a", data=("table",)))
    assert read_exports(path) == (
        Export("a", 0, True),
        Export("cublasCreate_v2", 1, True),
        Export("table", 2, False),
    )


def test_a_file_that_is_no_dll_is_refused(tmp_path: Path) -> None:
    good = dll("f")
    for bad in (b"", b"MZ", b"x" * 5000, good.replace(b"\x64\x86", b"\x4c\x01"), good[:0x620]):
        with pytest.raises(ValueError, match=r"no DLL|cut short|address"):
            read_exports(lay(tmp_path, "x.dll", bad))


def test_hostile_bytes_end_in_a_refusal_too(tmp_path: Path) -> None:
    """Bytes changed at random never end in anything but exports or a ValueError."""
    chance, good, refused = random.Random(4), dll("f", "g"), 0
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(8):
            bad[chance.choice((chance.randrange(0x40, 0x1A0), chance.randrange(0x600, len(bad))))] = (
                chance.randrange(256)
            )
        try:
            read_exports(lay(tmp_path, "x.dll", bytes(bad)))
        except ValueError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bin/cublas64_12.dll", "cublas"),
        ("bin/x86_64/cublasLt64_13.dll", "cublasLt"),
        ("bin/x86_64/cupti64_2025.3.1.dll", "cupti"),
        ("bin/nvrtc64_120_0.dll", "nvrtc"),
        ("bin/cudnn64_9.dll", "cudnn"),
        ("bin/cudnn_adv64_9.dll", "cudnn_adv"),
        ("bin/nvperf_host.dll", "nvperf_host"),
        ("bin/curand64_10.dll", "curand"),
        ("bin/x86_64/nvJitLink_130_0.dll", "nvJitLink"),
    ],
)
def test_a_library_has_the_name_that_is_linked_with(path: str, name: str, tmp_path: Path) -> None:
    lay(tmp_path, path, dll("f"))
    complete(tmp_path, quiet)
    assert [one.name for one in (tmp_path / "lib/x64").iterdir()] == [f"{name}.lib"]


def test_a_library_that_a_part_brought_stays(tmp_path: Path) -> None:
    lay(tmp_path, "bin/cudart64_13.dll", dll("f"))
    mine = lay(tmp_path, "lib/x64/cudart.lib", b"of NVIDIA")
    lay(tmp_path, "bin/nvrtc64_130_0.alt.dll", dll("f"))  # linked with as nvrtc.lib, or by nobody
    lay(tmp_path, "bin/without.dll", dll())
    complete(tmp_path, quiet)
    assert mine.read_bytes() == b"of NVIDIA"
    assert len(list((tmp_path / "lib/x64").iterdir())) == 1


def test_a_broken_dll_is_reported_and_no_hindrance(tmp_path: Path) -> None:
    said: list[str] = []
    lay(tmp_path, "bin/a64_1.dll", b"MZ")
    lay(tmp_path, "bin/b64_1.dll", dll("f"))
    complete(tmp_path, said.append)
    assert [one.name for one in (tmp_path / "lib/x64").iterdir()] == ["b.lib"]
    assert said == ["no a.lib can be made for a64_1.dll: a64_1.dll is cut short"]


@pytest.mark.integration
@needs_windows_c
@pytest.mark.parametrize("name", ["short64_1.dll", "a_name_longer_than_sixteen64_1.dll"])
def test_a_program_links_with_it_and_runs(name: str, tmp_path: Path) -> None:
    """The import library of a DLL is deleted; a program links with the generated one."""
    lay(
        tmp_path,
        "a.c",
        b"__declspec(dllexport) int table = 40;\n__declspec(dllexport) int two(void) { return 2; }\n",
    )
    text = (
        b"__declspec(dllimport) extern int table;\nint two(void);\nint main(void) { return table + two(); }\n"
    )
    lay(tmp_path, "main.c", text)
    (tmp_path / "bin").mkdir()

    def compiled(*words: str) -> None:
        subprocess.run([WINDOWS_C, *words], cwd=tmp_path, check=True)

    compiled("-shared", "-o", f"bin/{name}", "a.c")
    complete(tmp_path, quiet)
    (library,) = (tmp_path / "lib/x64").iterdir()
    compiled("main.c", str(library), "-o", "bin/main.exe")
    shutil.rmtree(tmp_path / "lib")
    if sys.platform == "win32":
        assert subprocess.run([str(tmp_path / "bin/main.exe")], check=False).returncode == 42
    elif has("x86_64-w64-mingw32-objdump"):
        shown = subprocess.run(
            ["x86_64-w64-mingw32-objdump", "-p", "bin/main.exe"],
            cwd=tmp_path,
            capture_output=True,
            check=True,
        ).stdout.decode()
        imports = shown[shown.index(f"DLL Name: {name}") :].split("\n\n")[0]
        assert " two" in imports
        assert " table" in imports


def test_data_and_functions_are_found_differently() -> None:
    library = import_library("a64_1.dll", (Export("function", 0, True), Export("data", 1, False)))
    symbols = library[: library.index(b"`\n", 70)]
    for name, there in ((b"\0function\0", True), (b"\0__imp_data\0", True), (b"\0data\0", False)):
        assert (name in symbols) is there

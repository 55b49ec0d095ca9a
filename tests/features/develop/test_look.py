"""The debuggers and sources that are found, on a machine made of files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.facts.fakes import machine, windows_machine
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.features.develop.choose import Debugging
from torchbuild_tasks.features.develop.look import SCOPE, look_at_debugging


def elf(*sections: bytes) -> bytes:
    """A library with sections of these names, as a linker lays it out: head, names, table."""
    names = b"\0" + b"".join(name + b"\0" for name in (*sections, b".shstrtab"))
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", head, 0x28, 64 + len(names))
    struct.pack_into("<HHH", head, 0x3A, 64, len(sections) + 2, len(sections) + 1)
    places = [names.index(b"\0" + name + b"\0") + 1 for name in (*sections, b".shstrtab")]
    kinds = [*(1 for _ in sections), 3]  # SHT_PROGBITS, SHT_STRTAB
    rows = (
        (place, kind, 0, 0, 64, len(names), 0, 0, 1, 0) for place, kind in zip(places, kinds, strict=True)
    )
    return bytes(head) + names + bytes(64) + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)


def look(probe: Probe, *packages: str) -> Debugging:
    return look_at_debugging("/src/pt", "/src/pt/build", "/venv/bin/python", packages, probe)


def put(folder: Path, name: str, data: bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


@pytest.mark.parametrize(("said", "scope"), [("1\n", 1), ("3", 3), ("", None), ("?", None)])
def test_the_scope_of_ptrace(tmp_path: Path, said: str, scope: int | None) -> None:
    assert look(machine(tmp_path, files={SCOPE: said})).ptrace_scope == scope
    assert look(machine(tmp_path / "none")).ptrace_scope is None


def test_debug_information_is_read_from_the_library_itself(tmp_path: Path) -> None:
    probe = machine(tmp_path, files={"/src/pt/.gdbinit": "source x", "/src/pt/torch/lib/libc10.so": "no ELF"})
    put(tmp_path, "src/pt/torch/lib/libtorch_cpu.so", elf(b".text", b".debug_info"))
    put(tmp_path, "src/pt/torch/lib/libtorch_python.so", elf(b".text", b".debug_info_of_somebody"))
    seen = look(probe, "numpy", "debugpy")
    assert [(Path(path).name, has) for path, has in seen.debug_info] == [
        ("libc10.so", None),
        ("libtorch_cpu.so", True),
        ("libtorch_python.so", False),
    ]
    assert seen.debugpy
    assert seen.gdbinit == "/src/pt/.gdbinit"
    assert seen.commands is None


@pytest.mark.parametrize("cut", [3, 20, 63, 64, 100])
def test_a_library_that_is_cut_short_is_not_known(tmp_path: Path, cut: int) -> None:
    put(tmp_path, "src/pt/torch/lib/libc10.so", elf(b".debug_info")[:cut])
    ((_, has),) = look(machine(tmp_path)).debug_info
    assert has in (None, False)


def test_the_newer_eras_libraries_lie_in_the_build_tree(tmp_path: Path) -> None:
    put(tmp_path, "src/pt/torch/lib/libshm/x.cpp", b"")
    put(tmp_path, "src/pt/build/editable/torch/lib/libc10.so", elf(b".debug_info"))
    put(tmp_path, "src/pt/build/compile_commands.json", b"[]")
    seen = look(machine(tmp_path))
    assert seen.debug_info == (("/src/pt/build/editable/torch/lib/libc10.so", True),)
    assert seen.commands == "/src/pt/build/compile_commands.json"
    assert not seen.configured


def test_cmakes_cache_says_that_it_has_run(tmp_path: Path) -> None:
    put(tmp_path, "src/pt/build/CMakeCache.txt", b"")
    seen = look(machine(tmp_path))
    assert (seen.commands, seen.configured) == (None, True)


def test_on_windows_the_symbols_lie_next_to_the_library(tmp_path: Path) -> None:
    names = ("c10.dll", "c10.pdb", "torch_cpu.dll")
    files = {f"C:\\pt\\torch\\lib\\{name}": "" for name in names}
    probe = windows_machine(tmp_path, files=files)
    seen = look_at_debugging("C:\\pt", "C:\\pt\\build", "C:\\venv\\Scripts\\python.exe", (), probe)
    assert [has for _, has in seen.debug_info] == [True, False]
    assert (seen.ptrace_scope, seen.gdb) == (None, None)

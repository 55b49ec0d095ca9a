"""Look at the requirements of a debugger: the program, the right to attach, debug information."""

from __future__ import annotations

import struct

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.features.develop.choose import Debugging

SCOPE = "/proc/sys/kernel/yama/ptrace_scope"  # Documentation/admin-guide/LSM/Yama.rst of Linux
LIBRARIES = ("c10", "torch_cpu", "torch_python", "torch_cuda")


def look_at_debugging(
    root: str, build_dir: str, python: str, packages: tuple[str, ...], probe: Probe
) -> Debugging:
    """Look at a checkout, its build tree, and the Python that has its torch with these packages."""
    scope = probe.read(SCOPE) if not probe.windows else None
    gdbinit = probe.join(root, ".gdbinit")
    commands = probe.join(build_dir, "compile_commands.json")
    return Debugging(
        environment=python,
        python=probe.realpath(python) if python else "",
        gdb=probe.which("gdb"),
        debugpy="debugpy" in packages,
        ptrace_scope=int(scope) if scope and scope.strip().isdecimal() else None,
        debug_info=tuple((path, _has_debug_info(probe, path)) for path in _libraries(probe, root, build_dir)),
        gdbinit=gdbinit if probe.is_file(gdbinit) else None,
        commands=commands if probe.is_file(commands) else None,
        configured=probe.is_file(probe.join(build_dir, "CMakeCache.txt")),
    )


def _libraries(probe: Probe, root: str, build_dir: str) -> list[str]:
    """Return the libraries that Python loads: in the checkout, or in the newer era's editable install."""
    pattern = "{}.dll" if probe.windows else "lib{}.so"
    folders = (probe.join(build_dir, "editable/torch/lib"), probe.join(root, "torch/lib"))
    folder = next((each for each in folders if probe.is_dir(each)), folders[-1])
    paths = (probe.join(folder, pattern.format(name)) for name in LIBRARIES)
    return [path for path in paths if probe.is_file(path)]


def _has_debug_info(probe: Probe, path: str) -> bool | None:
    """Say whether a library has .debug_info (ELF) or a .pdb next to it; None for other files.

    Offsets are those of Elf64_Ehdr and Elf64_Shdr in elf(5).
    """
    if probe.windows:
        return probe.is_file(f"{path.removesuffix('.dll')}.pdb")
    try:
        with probe.at(path).open("rb") as file:
            head = file.read(64)
            if head[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian, as every machine torch is built on
                return None
            table, size, count, names = _table(head)
            file.seek(table)
            sections = file.read(size * count)
            offset, length = struct.unpack_from("<QQ", sections, names * size + 24)
            file.seek(offset)
            return b"\0.debug_info\0" in file.read(length)
    except (OSError, struct.error):
        return None


def _table(head: bytes) -> tuple[int, int, int, int]:
    """Return e_shoff, e_shentsize, e_shnum and e_shstrndx of an ELF header."""
    (table,) = struct.unpack_from("<Q", head, 0x28)
    size, count, names = struct.unpack_from("<HHH", head, 0x3A)
    return table, size, count, names

"""Look at the requirements of a debugger: the program, the right to attach, debug information."""

from __future__ import annotations

from elftools.elf.elffile import ELFFile

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.features.develop.choose import Debugging
from torchbuild_tasks.system.elf import BROKEN

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
    """Say whether a library has .debug_info (ELF) or a .pdb next to it; None for other files."""
    if probe.windows:
        return probe.is_file(f"{path.removesuffix('.dll')}.pdb")
    try:
        with probe.at(path).open("rb") as file:
            return ELFFile(file).get_section_by_name(".debug_info") is not None
    except (OSError, *BROKEN):
        return None

"""Decide VS Code's entries, obstacles to debugging, and the commands of upstream's tests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from torchbuild_tasks.model import Finding
from torchbuild_tasks.text.words import as_word


class Debugging(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The facts on which attaching a debugger to the built torch depends.

    `python` is the interpreter of `environment` without links, `gdb` the debugger's path, `install_gdb` how
    one gets it. `ptrace_scope` is
    Yama's (None where there is no Yama). `debug_info` lists torch's built libraries, each with whether it has
    any (None: unknown). `gdbinit` is that of the checkout, `commands` the build's compile_commands.json;
    `configured` says whether CMake has run, which writes that file.
    """

    environment: str
    python: str
    gdb: str | None = None
    install_gdb: str = "Install the package gdb."
    debugpy: bool = False
    ptrace_scope: int | None = None
    debug_info: tuple[tuple[str, bool | None], ...] = ()
    gdbinit: str | None = None
    commands: str | None = None
    configured: bool = False


# ---------------- VS Code and a debugger

OURS: Final = "torchbuild: "
PYTHON = f"{OURS}Python file"
NATIVE = f"{OURS}attach to C++"
BOTH = f"{OURS}Python file and C++"
PORT: Final = 5678  # debugpy's own
LAUNCH: Final = {"version": "0.2.0", "configurations": [], "compounds": []}
TASKS: Final = {"version": "2.0.0", "tasks": []}
Lists = Mapping[str, tuple[str, list[dict[str, Any]]]]


def launch_lists(debugging: Debugging, root: str, windows: bool) -> Lists:
    """Return the lists of launch.json, by name: the key that names an entry, and our entries."""
    native = _cppvsdbg() if windows else _cppdbg(debugging, root)
    run = {
        "name": PYTHON,
        "type": "debugpy",
        "request": "launch",
        "program": "${file}",
        "python": debugging.environment,
        "cwd": "${fileDirname}",
        "console": "integratedTerminal",
        "justMyCode": False,
    }
    attach = {
        "name": f"{OURS}attach to Python",
        "type": "debugpy",
        "request": "attach",
        "connect": {"host": "127.0.0.1", "port": PORT},
        "justMyCode": False,
    }
    both = {"name": BOTH, "configurations": [PYTHON, NATIVE], "stopAll": True}
    return {"configurations": ("name", [run, attach, native]), "compounds": ("name", [both])}


def _cppdbg(debugging: Debugging, root: str) -> dict[str, Any]:
    commands = [("-enable-pretty-printing", "pretty printers of the C++ library")]
    if debugging.gdbinit:
        extension = f"{root}/tools/gdb/pytorch-gdb.py"
        commands.append((f'-interpreter-exec console "source {extension}"', "torch-tensor-repr and others"))
    return {
        "name": NATIVE,
        "type": "cppdbg",
        "request": "attach",
        "program": debugging.python,
        "processId": "${command:pickProcess}",
        "MIMode": "gdb",
        "miDebuggerPath": debugging.gdb or "gdb",
        "setupCommands": [
            {"text": text, "description": description, "ignoreFailures": True}
            for text, description in commands
        ],
    }


def _cppvsdbg() -> dict[str, Any]:
    return {
        "name": NATIVE,
        "type": "cppvsdbg",
        "request": "attach",
        "processId": "${command:pickProcess}",
        "symbolSearchPath": "${workspaceFolder}\\torch\\lib;${workspaceFolder}\\build\\editable\\torch\\lib",
    }


def task_lists(argv: tuple[str, ...], windows: bool) -> Lists:
    """Return the list of tasks.json: build, and test the open file. `argv` starts this tool."""
    program, *words = argv
    matcher = "$msCompile" if windows else "$gcc"

    def task(name: str, verb: str, *more: str) -> dict[str, Any]:
        return {
            "label": OURS + name,
            "type": "process",
            "command": program,
            "args": [*words, verb, "--source", "${workspaceFolder}", *more],
            "problemMatcher": [matcher] if verb == "build" else [],
            "group": verb,
        }

    own = [task("build", "build"), task("test this file", "test", "--only", "${fileBasename}")]
    return {"tasks": ("label", own)}


def findings(debugging: Debugging, windows: bool) -> tuple[Finding, ...]:
    """Return findings that would prevent a debugger from attaching, or from showing source lines."""
    checks = (_symbols(debugging),) if windows else (_gdb(debugging), _scope(debugging), _symbols(debugging))
    return (*(each for check in checks for each in check), *_debugpy(debugging))


def _gdb(debugging: Debugging) -> Iterator[Finding]:
    if debugging.gdb:
        yield Finding.ok("gdb", f"gdb is {debugging.gdb}")
    else:
        text = "gdb is not installed, and attaching to C++ needs it"
        yield Finding.warn("gdb", text, debugging.install_gdb)
    if debugging.gdbinit:
        text = f"PyTorch's commands for gdb are in {debugging.gdbinit}, which gdb reads only if ~/.gdbinit "
        text += f"has the line: add-auto-load-safe-path {debugging.gdbinit}"
        yield Finding.ok("gdbinit", text)


_SCOPES: Final = {
    1: ("a debugger may attach only to programs that it has started itself", "echo 0 | sudo tee {0}"),
    2: ("only root may attach to a process", "Run the debugger as root, or: echo 0 | sudo tee {0}"),
    3: (
        "nobody may attach to a process until the machine is started again",
        "Set kernel.yama.ptrace_scope = 0 in /etc/sysctl.d and reboot",
    ),
}


def _scope(debugging: Debugging) -> Iterator[Finding]:
    scope = debugging.ptrace_scope or 0
    if scope not in _SCOPES:
        yield Finding.ok("ptrace", "a debugger may attach to your processes")
        return
    text, fix = _SCOPES[scope]
    fix = fix.format("/proc/sys/kernel/yama/ptrace_scope")
    yield Finding.warn("ptrace", f"ptrace_scope is {scope}: {text}", fix)


def _symbols(debugging: Debugging) -> Iterator[Finding]:
    if not debugging.debug_info:
        text = "no library of torch is built here yet"
        yield Finding.unknown("debug-info", text, "torchbuild build --preset debug")
        return
    lacking = [path for path, has in debugging.debug_info if has is False]
    if lacking:
        text = f"without debug information: {', '.join(lacking)}; a breakpoint in their lines is never hit"
        fix = "torchbuild build --build-type RelWithDebInfo, or --build-type Debug to see every variable"
        yield Finding.warn("debug-info", text, fix)
    elif all(has for _, has in debugging.debug_info):
        yield Finding.ok("debug-info", "the built libraries have debug information")
    else:
        text = "whether the built libraries have debug information is not known"
        yield Finding.unknown("debug-info", text)


def _debugpy(debugging: Debugging) -> Iterator[Finding]:
    if debugging.debugpy:
        return
    text = f"VS Code brings a debugpy of its own; attaching to port {PORT} needs one in the build's Python: "
    text += f"{as_word(debugging.environment)} -m pip install debugpy"
    yield Finding.ok("debugpy", text)


# ---------------- upstream's tests and benchmarks

# The working folders, relative to the checkout: in the checkout itself Python would import the source's
# torch/.
TESTS: Final = "test"
BENCHMARKS: Final = "benchmarks/operator_benchmark"


def argv_of_tests(python: str, only: str | None, words: Iterable[str]) -> tuple[str, ...]:
    """Return the command for all tests by run_test.py, or for one file; its path is relative to TESTS."""
    name = (only or "run_test.py").replace("\\", "/").removeprefix("test/")
    return (python, name if name.endswith(".py") else f"{name}.py", *words)


def argv_of_benchmarks(python: str, only: str | None, words: Iterable[str]) -> tuple[str, ...]:
    """Return the command for all operators, or one: `add` is the module pt.add_test."""
    name = (only or "").replace("\\", "/").removesuffix(".py").rpartition("/")[2].removesuffix("_test")
    return (python, "-m", f"pt.{name}_test" if name else "benchmark_all_test", *words)


def nodes(hardware: str) -> dict[int, frozenset[int]]:
    """Return the cores of each NUMA node, from the output of `numactl --hardware`."""
    matches = re.findall(r"^node (\d+) cpus:([ \d]*)$", hardware, re.MULTILINE)
    return {int(node): frozenset(map(int, cores.split())) for node, cores in matches}


def pin_to_node(numactl: str, hardware: str, allowed: Collection[int]) -> tuple[str, ...]:
    """Return the prefix that binds a command and its memory to one node; empty without NUMA.

    The node is the one with most of the cores that this process may use: what crosses to another node's
    memory is slower, and two runs on different nodes cannot be compared.
    """
    usable = {node: len(cores.intersection(allowed)) for node, cores in nodes(hardware).items()}
    node = max(usable, key=lambda each: (usable[each], -each), default=None)
    if node is None or not usable[node]:
        return ()
    return (numactl, f"--cpunodebind={node}", f"--membind={node}")


def without(pythonpath: str, separator: str, root: str) -> str:
    """Return PYTHONPATH without the checkout, whose torch/ would be imported instead of the built one."""
    entries = [each for each in pythonpath.split(separator) if each.rstrip("/\\") != root.rstrip("/\\")]
    return separator.join(entries)

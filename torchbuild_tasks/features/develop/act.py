"""Write VS Code's settings for a checkout, and run upstream's own tests and benchmarks with its torch."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from torchbuild_tasks.errors import UsageError, VerifyFailed
from torchbuild_tasks.features.develop.choose import (
    BENCHMARKS,
    LAUNCH,
    TASKS,
    TESTS,
    Debugging,
    Lists,
    argv_of_benchmarks,
    argv_of_tests,
    findings,
    launch_lists,
    pin_to_node,
    task_lists,
    without,
)
from torchbuild_tasks.features.develop.jsonc import NotEditable, with_entries
from torchbuild_tasks.model import Finding
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import STATE_DIR, state_dir, translate_errors, write_atomic
from torchbuild_tasks.system.reading import hash_file, read_bytes
from torchbuild_tasks.text.words import did_you_mean, first_few

COMMANDS: Final = "compile_commands.json"
COPIED: Final = "compile_commands.sha256"


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """One file of VS Code. `problem` is why it was not changed; then `entries` are for pasting."""

    path: str
    problem: str = ""
    entries: Mapping[str, Any] | None = None


class DebugConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `debug-config`: the files, a sentence about compile_commands.json, and findings."""

    files: tuple[Written, ...]
    commands: str
    findings: tuple[Finding, ...]


def write_debug_config(root: Path, debugging: Debugging, *, dry_run: bool) -> DebugConfig:
    """Add our entries to .vscode/launch.json and tasks.json, link compile_commands.json, and check.

    Raises:
        UsageError: something cannot be written.
    """
    windows = sys.platform == "win32"
    folder = root / ".vscode"
    tool = (sys.executable, "-P", "-m", "torchbuild_tasks.fronts.console")
    launch = launch_lists(debugging, root.as_posix(), windows)
    files = (
        _write_entries(folder / "launch.json", LAUNCH, launch, dry_run),
        _write_entries(folder / "tasks.json", TASKS, task_lists(tool, windows), dry_run),
    )
    commands = _link_commands(root, debugging, dry_run)
    return DebugConfig(files=files, commands=commands, findings=findings(debugging, windows))


def _write_entries(path: Path, empty: Mapping[str, Any], lists: Lists, dry_run: bool) -> Written:
    place = path.resolve()  # keep a link to a file of the checkout
    if not place.is_relative_to(path.parents[1].resolve()):  # it may have come with the checkout
        return Written(path=str(path), problem=f"it leads to {place}", entries=_plain(lists))
    try:
        before = read_bytes(path)
        text = before.decode("utf-8")
    except FileNotFoundError:
        before = b""
        text = json.dumps(empty, indent=4) + "\n"
    except (OSError, UnicodeDecodeError) as error:
        return Written(path=str(path), problem=f"it cannot be read: {error}", entries=_plain(lists))
    try:
        after = with_entries(text, lists).encode()
    except NotEditable as error:
        return Written(path=str(path), problem=str(error), entries=_plain(lists))
    if after != before and not dry_run:
        with translate_errors(UsageError, path):
            path.parent.mkdir(exist_ok=True)
        write_atomic(place, after, error=UsageError)
    return Written(path=str(path))


def _plain(lists: Lists) -> dict[str, Any]:
    return {name: entries for name, (_, entries) in lists.items()}


def _link_commands(root: Path, debugging: Debugging, dry_run: bool) -> str:
    """Link the build's compile_commands.json where clangd searches it; keep the user's own file."""
    place = root / COMMANDS
    source = debugging.commands
    if source is None and not debugging.configured:  # PyTorch's own CMakeLists.txt asks for the file
        return f"{COMMANDS}: CMake writes it, which has not run here yet; run this again after a build"
    if source is None:
        return f"{COMMANDS}: the build tree has none; build with --set CMAKE_EXPORT_COMPILE_COMMANDS=ON"
    if Path(source) == place:
        return f"{place} is there"
    if os.path.lexists(place) and not _is_ours(root, place, Path(source)):
        return f"{place} is not ours and is kept; clangd reads it"
    if dry_run:
        return f"{place} would lead to {source}"
    with translate_errors(UsageError, place):
        if sys.platform == "win32":  # on Windows a link needs a privilege that few users have
            shutil.copyfile(source, place)
            write_atomic(state_dir(root) / COPIED, hash_file(place).encode(), error=UsageError)
            return f"{place} is a copy of {source}; run this again after a build"
        if not place.is_symlink():
            place.symlink_to(os.path.relpath(source, root))
    return f"{place} leads to {source}"


def _is_ours(root: Path, place: Path, source: Path) -> bool:
    """Say whether this is a link to that file, or an unchanged copy of ours."""
    if place.is_symlink():
        return place.resolve() == source.resolve()
    note = root / STATE_DIR / COPIED
    if not note.is_file() or not place.is_file():
        return False
    return hash_file(place) == note.read_text("utf-8").strip()


# ---------------- upstream's tests and benchmarks


Say = Callable[[str], None]
_IMPORTED = "import torch; print(torch.__version__, torch.__file__)"


def run_tests(
    root: Path, python: str, only: str | None, words: tuple[str, ...], out: process.Sink, say: Say
) -> int:
    """Run test/run_test.py, or one test file; the exit code is that of Python.

    Raises:
        UsageError: the checkout has no such file.
        VerifyFailed: torch cannot be imported there.
    """
    argv = argv_of_tests(python, only, words)
    _require(root / TESTS / argv[1], root / TESTS, "test_*.py")
    return _run(root, root / TESTS, argv, out, say)


def run_benchmarks(
    root: Path, python: str, only: str | None, words: tuple[str, ...], out: process.Sink, say: Say
) -> int:
    """Run the operator benchmarks, all or one operator's; the exit code is that of Python.

    Raises:
        UsageError: the checkout has no such benchmark.
        VerifyFailed: torch cannot be imported there.
    """
    argv = argv_of_benchmarks(python, only, words)
    folder = root / BENCHMARKS
    _require(folder / f"{argv[2].replace('.', '/')}.py", folder / "pt", "*_test.py")
    return _run(root, folder, argv, out, say)


def _require(file: Path, folder: Path, pattern: str) -> None:
    if file.is_file():
        return
    near = sorted(path.name for path in folder.glob(pattern))
    other = (
        "Name one that is there with --only."
        if near
        else "A complete checkout has them: torchbuild source get"
    )
    raise UsageError(
        f"There is no {file}{did_you_mean(file.name, near) or '.'}",
        looked=(f"in {folder}: {first_few(near, 12)}",) if near else (),
        next_step=other,
    )


def _run(root: Path, folder: Path, argv: tuple[str, ...], out: process.Sink, say: Say) -> int:
    environ = {**os.environ}
    if "PYTHONPATH" in environ:
        environ["PYTHONPATH"] = without(environ["PYTHONPATH"], os.pathsep, str(root))
    say(f"torch {_torch(argv[0], folder, environ)}")
    command = (*_pin(environ, say), *argv)
    say(f"in {folder}: {' '.join(command)}")
    return process.stream(command, env=environ, cwd=folder, log=out, on_block=lambda block: None)


def _torch(python: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Return version and file of the torch that a program in this folder imports."""
    captured = process.capture((python, "-c", _IMPORTED), env=environ, cwd=folder, timeout=300)
    if captured.rc == 0:
        return captured.text.strip()
    raise VerifyFailed(
        f"{python} cannot import torch in {folder}.",
        looked=tuple(captured.error_text.splitlines()[-8:]),
        next_step="Build it first, or name the Python that has it: --python PATH. `verify` says more.",
    )


def _pin(environ: Mapping[str, str], say: Say) -> tuple[str, ...]:
    """Return the numactl command, if it is installed and permitted: containers may forbid it."""
    numactl = shutil.which("numactl")
    if not numactl or not hasattr(os, "sched_getaffinity"):
        return ()
    hardware = process.capture((numactl, "--hardware"), env=environ, timeout=30).stdout
    pin = pin_to_node(numactl, hardware.decode(errors="replace"), os.sched_getaffinity(0))
    if not pin:
        return ()
    tried = process.capture((*pin, "true"), env=environ, timeout=30)
    if tried.rc == 0:
        return pin
    reason = tried.error_text.splitlines()
    say(f"Not pinned: {reason[0] if reason else f'numactl ended with exit code {tried.rc}'}")
    return ()

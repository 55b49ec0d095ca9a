"""What `test` and `bench` do: upstream's own tests and benchmarks, run by the Python that got torch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from torchbuild_tasks.core.upstream import (
    BENCHMARKS,
    TESTS,
    argv_of_benchmarks,
    argv_of_tests,
    pinned,
    without,
)
from torchbuild_tasks.errors import UsageError, VerifyFailed
from torchbuild_tasks.system import process
from torchbuild_tasks.text.words import did_you_mean

Say = Callable[[str], None]
_WHICH = "import torch; print(torch.__version__, torch.__file__)"


def run_tests(
    root: Path, python: str, only: str | None, words: tuple[str, ...], out: process.Sink, say: Say
) -> int:
    """Run test/run_test.py, or one test file; the exit code is that of Python.

    Raises:
        UsageError: the checkout has no such file.
        VerifyFailed: torch cannot be imported there.
    """
    argv = argv_of_tests(python, only, words)
    _be_there(root / TESTS / argv[1], root / TESTS, "test_*.py")
    return _run(root, root / TESTS, argv, out, say)


def run_benchmarks(
    root: Path, python: str, only: str | None, words: tuple[str, ...], out: process.Sink, say: Say
) -> int:
    """Run the operator benchmarks, all or one operator's; the exit code is that of Python.

    Raises:
        UsageError: the checkout has no such benchmark.
        VerifyFailed: torch cannot be imported there.
    """
    argv, folder = argv_of_benchmarks(python, only, words), root / BENCHMARKS
    _be_there(folder / f"{argv[2].replace('.', '/')}.py", folder / "pt", "*_test.py")
    return _run(root, folder, argv, out, say)


def _be_there(file: Path, folder: Path, pattern: str) -> None:
    if file.is_file():
        return
    near = sorted(path.name for path in folder.glob(pattern))
    raise UsageError(
        f"There is no {file}{did_you_mean(file.name, near) or '.'}",
        looked=(f"in {folder}: {', '.join(near[:12])}" + (" ..." if len(near) > 12 else ""),) if near else (),
        next_step="Name one with --only, or leave it out for all of them.",
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
    """Which torch a program in this folder imports: version and file."""
    done = process.capture((python, "-c", _WHICH), env=environ, cwd=folder, timeout=300)
    if done.rc == 0:
        return done.stdout.decode(errors="replace").strip()
    raise VerifyFailed(
        f"{python} cannot import torch in {folder}.",
        looked=tuple(done.stderr.decode(errors="replace").splitlines()[-8:]),
        next_step="Build it first, or name the Python that has it: --python PATH. `verify` says more.",
    )


def _pin(environ: Mapping[str, str], say: Say) -> tuple[str, ...]:
    """numactl's words, if it is here and may do that here: a container may forbid it."""
    numactl = shutil.which("numactl")
    if not numactl or not hasattr(os, "sched_getaffinity"):
        return ()
    hardware = process.capture((numactl, "--hardware"), env=environ, timeout=30).stdout
    pin = pinned(numactl, hardware.decode(errors="replace"), os.sched_getaffinity(0))
    if not pin:
        return ()
    tried = process.capture((*pin, "true"), env=environ, timeout=30)
    if tried.rc == 0:
        return pin
    reason = tried.stderr.decode(errors="replace").strip().splitlines()
    say(f"Not pinned: {reason[0] if reason else f'numactl ended with exit code {tried.rc}'}")
    return ()

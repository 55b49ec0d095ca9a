"""Ask Ninja whether it would do anything before the verb `build` itself is imported.

`ninja -n` reads the whole graph (0.2 s of PyTorch 2.6.0's) and starts nothing. Meanwhile this process imports
modules and looks at the machine, on one core. `take_answer` returns what it said, unless anything that counts
is other than the plan has it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.build_program import program_of_tree
from torchbuild_tasks.build.install.snapshot import stamps
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system import lock, process, venv
from torchbuild_tasks.system.files import STATE_DIR
from torchbuild_tasks.system.process_tree import end_tree

DRY: Final = ("-d", "explain", "-n")  # says why on stderr, too
_READS: Final = ("build.ninja", ".ninja_log", ".ninja_deps", "CMakeCache.txt")


class _Asking(threading.Thread):
    """One dry run of Ninja under way."""

    def __init__(self, ninja: str, build_dir: Path) -> None:
        super().__init__(name="ninja -n", daemon=True)
        self.ninja = ninja
        self.build_dir = build_dir
        self.read = _stamps(build_dir)
        self.said: process.Captured | None = None
        self._pid: int | None = None
        self._has_pid = threading.Event()
        self.start()

    def run(self) -> None:
        argv = (self.ninja, "-C", str(self.build_dir), *DRY)
        try:
            self.said = process.capture(argv, cwd=self.build_dir.parent, on_start=self._note)
        finally:
            self._has_pid.set()

    def stop(self) -> None:
        """End it if it is still at work."""
        self._has_pid.wait()
        if self._pid is not None and self.is_alive():
            end_tree(self._pid, 0)
        self.join()

    def _note(self, pid: int) -> None:
        self._pid = pid
        self._has_pid.set()


_asking: list[_Asking] = []  # at most one


@contextlib.contextmanager
def ask_early(request: BuildRequest) -> Iterator[None]:
    """Ask about the checkout of a request until `take_answer`, or until this context is left."""
    with contextlib.suppress(OSError, ValueError):  # a folder that cannot be looked into is told of later
        build_dir = Path(os.path.realpath(request.source or ".")) / "build"
        if not _needs_more(request) and (ninja := _find_ninja(build_dir)):
            _asking.append(_Asking(ninja, build_dir))
    try:
        yield
    finally:
        stop_asking()


def stop_asking() -> None:
    """End it, because what it reads is about to change."""
    while _asking:
        _asking.pop().stop()


def take_answer(argv: Sequence[str], build_dir: Path, env: Mapping[str, str]) -> process.Captured | None:
    """Return what the Ninja of this command line has said, once; None where it was not asked or has failed.

    It was asked before the lock was held, so what it has read must not have changed since.
    """
    if not _asking:
        return None
    asking = _asking.pop()
    asking.join()
    said = asking.said
    same = _same_file(shutil.which(argv[0], path=process.search_path(env)), asking.ninja)
    if said is None or said.rc != 0 or not same or asking.build_dir != build_dir:
        return None
    return said if asking.read == _stamps(build_dir) else None


def _needs_more(request: BuildRequest) -> bool:
    """Say whether more is asked for than one build of what the last one in this folder had."""
    return bool(
        request.dry_run
        or request.clean
        or request.target
        or request.watch  # it begins to look for changes later than this would ask
        or request.name
        or request.from_wheel
        or request.facts
        or request.mode == "wheel"
    )


def _find_ninja(build_dir: Path) -> str:
    """Return the Ninja that CMake has found for a build tree, if it is one of the user's or ours; else "".

    The tree may be somebody else's, and this is asked before the user is. A Ninja of another version would
    remove the log of the tree's, even with `-n` (BuildLog::Load of 1.13.2), and beside one that is at work
    it would read half of what that writes.
    """
    if not (build_dir / "build.ninja").exists() or (build_dir.parent / STATE_DIR / lock.NOTE).exists():
        return ""
    ninja = program_of_tree(build_dir, "ninja")
    if not ninja:
        return ""
    own = (shutil.which("ninja"), shutil.which("ninja", path=str(Path(sys.executable).parent)))
    return ninja if venv.is_ours(ninja) or any(_same_file(each, ninja) for each in own) else ""


def _same_file(one: str | None, other: str) -> bool:
    try:
        return one is not None and Path(one).samefile(other)
    except OSError:
        return False


def _stamps(build_dir: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of each file that Ninja reads itself."""
    return stamps(str(build_dir / name) for name in _READS)

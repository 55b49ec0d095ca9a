"""A short history of the sample in which something breaks, for bisects.

0  setuptools era, sound
1  an edit
2  a submodule moves on
3  does not compile
4  does not compile either
5  era change: setup.py is gone, scikit-build-core would build it, but it does not compile
6  compiles again
7  THE REGRESSION: matmul is off by one
8  an edit
9  an edit

The first that git tries is one of those in the middle.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.sample import SAMPLE, commit, materialise, run_git

REGRESSION, BROKEN = 7, (3, 4, 5)
# Ends with 1 where the regression is; needs the built torch, and looks at nothing else.
COMMAND = """
import sys, torch
a = torch.tensor([[1, 2], [3, 4]])
sys.exit((a @ a).tolist() != [[7, 10], [15, 22]])
"""

_BROKEN = "\nthis is not C++;\n"
_MATMUL, _ADD = "aten/src/ATen/matmul.cpp", "aten/src/ATen/add.cpp"
_SUB = "third_party/tinyfmt"


def make_history(dest: Path) -> list[str]:
    """Make dest a repository at the last commit of the history; its commits, the oldest first."""
    materialise(dest, era="setuptools", git=True)
    add = dest / _ADD
    commits = [commit(dest, None)]
    _append(add, "\n// an edit\n")
    commits.append(commit(dest, "add: a comment"))
    _append(dest / _SUB / "include/tinyfmt/tinyfmt.h", "\n// moved on\n")
    commit(dest / _SUB, "moved on")
    commits.append(commit(dest, "tinyfmt moves on"))
    sound = add.read_text("utf-8")
    _append(add, _BROKEN)
    commits.append(commit(dest, "add: begin to rewrite it"))
    _append(add, "// more of it\n")
    commits.append(commit(dest, "add: go on rewriting it"))
    _change_era(dest)
    commits.append(commit(dest, "Build with scikit-build-core"))
    add.write_text(sound, "utf-8", newline="\n")
    commits.append(commit(dest, "add: give the rewriting up"))
    matmul = dest / _MATMUL
    text = matmul.read_text("utf-8")
    matmul.write_text(_with_regression(text), "utf-8", newline="\n")
    commits.append(commit(dest, "matmul: make it faster\n\nIt was slow."))
    for number in (1, 2):
        _append(add, f"// later {number}\n")
        commits.append(commit(dest, f"add: later {number}"))
    return commits


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)


def _change_era(dest: Path) -> None:
    for path in (SAMPLE / "eras/setuptools").iterdir():
        own = SAMPLE / path.name
        shutil.copyfile(own, dest / path.name) if own.exists() else (dest / path.name).unlink()
    run_git(dest, "add", "--all")


def _with_regression(text: str) -> str:
    changed = text.replace("+=", "+= 1 +", 1)
    assert changed != text
    return changed

"""What --with builds beside the sample's torch, by the real command line: built, kept, refused, failed.

The source is a stand-in with torchvision's contract: a setup.py that imports torch and reads
PYTORCH_VERSION. The sample cannot show its operators; tests/verify has them, and real ones are tried by hand.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git, needs_linux_compiler
from tests.support.driver import Run, torchbuild
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs_linux_compiler, needs_git]

SETUP = """\
import os
from setuptools import setup
import torch
assert "Tensor" in dir(torch), "the checkout's folder torch was imported, not what was built"
wanted = os.environ["PYTORCH_VERSION"]
assert wanted == torch.__version__, (wanted, torch.__version__)
assert os.environ["FORCE_CUDA"] == "0"
setup(name="torchvision", version="0.29.0", packages=["torchvision"], install_requires=["torch==" + wanted])
"""


class Beside:
    """The sample, the Python that gets its torch, and the source of the stand-in, a repository with a tag."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.python, self.source = python, folder / "vision"
        self.tree = materialise(folder / "minitorch", era="scikit-build-core")
        (self.source / "torchvision").mkdir(parents=True)
        self.write("setup.py", SETUP)
        self.write("version.txt", "0.29.0a0\n")
        self.write("torchvision/__init__.py", "import torch\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "x")
        self.git("tag", "v0.29.0")

    def write(self, name: str, text: str) -> None:
        (self.source / name).write_text(text, "utf-8")

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", str(self.source), *words], check=True, capture_output=True)

    def build(self, word: str, *words: str) -> Run:
        flags = ("--source", self.tree, "--python", self.python, "--yes", "--with", word)
        return torchbuild("build", *flags, *words)

    def built_for(self) -> str:
        """What the installed stand-in asks for, as pip sees it."""
        code = "import importlib.metadata as m; print(m.requires('torchvision'), m.version('torch'))"
        argv = [str(self.python), "-I", "-c", code]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory, target: Path) -> Iterator[Beside]:
    yield Beside(tmp_path_factory.mktemp("beside"), target)
    gone = [str(target), "-m", "pip", "uninstall", "-q", "-y", "torch", "torchvision"]
    subprocess.run(gone, check=True)


def test_a_clone_is_built_against_the_torch_just_built_and_asks_for_no_other(beside: Beside) -> None:
    done = beside.build(f"torchvision={beside.source.as_uri()}")
    assert done.code == 0, done.out + done.err
    assert "torchvision 0.29.0 is built against torch 2.14.0a0" in done.err
    assert "0 failed" in done.out and "torchvision" in done.out
    requires, version = beside.built_for().rsplit(" ", 1)
    assert version in requires and version.startswith("2.14.0a0")
    assert (beside.tree / ".torchbuild/companions/torchvision-v0.29.0/setup.py").exists()


def test_what_is_there_for_this_torch_is_not_built_again(beside: Beside) -> None:
    done = beside.build(f"torchvision={beside.source.as_uri()}")
    assert done.code == 0, done.out + done.err
    assert "built for this torch and verified before" in done.err


def test_a_folder_of_the_users_is_built_where_it_is_and_its_failure_is_told(beside: Beside) -> None:
    beside.write("setup.py", SETUP + "raise SystemExit('fatal error: png.h: No such file or directory')\n")
    done = beside.build(f"torchvision={beside.source}")
    assert done.code == 6, done.out + done.err
    assert "fatal error: png.h" in done.err
    record = json.loads((beside.tree / "build/torchbuild-manifest.json").read_text("utf-8"))
    assert record["verify"] is not None  # torch itself stays built and verified
    beside.write("setup.py", SETUP)
    done = beside.build(f"torchvision={beside.source}")
    assert done.code == 0, done.out + done.err


def test_a_ref_that_is_missing_costs_no_build(beside: Beside) -> None:
    done = beside.build(f"torchvision={beside.source.as_uri()}@v9", "--clean")
    assert done.code == 16, done.out + done.err
    assert "v9" in done.err and "== compile" not in done.err
    assert (beside.tree / "build/CMakeCache.txt").exists()

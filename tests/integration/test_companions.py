"""Companions of the sample's torch, by the real command line: built, kept, refused, failed.

The source is a stand-in with torchvision's contract: a setup.py that imports torch and reads
PYTORCH_VERSION. The sample cannot show its operators; tests/verify has them, and real ones are tried by hand.
"""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import needs, needs_git, needs_linux_compiler
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


class World:
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
def world(tmp_path_factory: pytest.TempPathFactory, target: Path) -> Iterator[World]:
    yield World(tmp_path_factory.mktemp("world"), target)
    gone = [str(target), "-m", "pip", "uninstall", "-q", "-y", "torch", "torchvision", "own-ext"]
    subprocess.run(gone, check=True)


@pytest.mark.slow
def test_a_clone_is_built_against_the_torch_just_built_and_asks_for_no_other(world: World) -> None:
    done = world.build(f"torchvision={world.source.as_uri()}")
    assert done.code == 0, done.out + done.err
    assert "torchvision 0.29.0 is built against torch 2.14.0a0" in done.err
    assert "0 failed" in done.out and "torchvision" in done.out
    requires, version = world.built_for().rsplit(" ", 1)
    assert version in requires and version.startswith("2.14.0a0")
    assert (world.tree / ".torchbuild/companions/torchvision-v0.29.0/setup.py").exists()


@pytest.mark.slow
def test_what_is_there_for_this_torch_is_not_built_again(world: World) -> None:
    done = world.build(f"torchvision={world.source.as_uri()}")
    assert done.code == 0, done.out + done.err
    assert "built for this torch and verified before" in done.err


@pytest.mark.slow
def test_a_folder_of_the_users_is_built_where_it_is_and_its_failure_is_reported(world: World) -> None:
    world.write("setup.py", SETUP + "raise SystemExit('fatal error: png.h: No such file or directory')\n")
    done = world.build(f"torchvision={world.source}")
    assert done.code == 6, done.out + done.err
    assert "fatal error: png.h" in done.err
    record = json.loads((world.tree / "build/torchbuild-manifest.json").read_text("utf-8"))
    assert record["verify"] is not None  # torch itself stays built and verified
    world.write("setup.py", SETUP)
    done = world.build(f"torchvision={world.source}")
    assert done.code == 0, done.out + done.err


EXTENSION = """\
from setuptools import Extension, setup
import torch
setup(name="own-ext", version=VERSION, packages=["own_ext"], install_requires=ASKS,
      ext_modules=[Extension("own_ext._C", ["own.c"])])
"""
OWN = """\
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""


@needs((Path(sysconfig.get_path("include")) / "Python.h").is_file(), "Python.h")
def test_an_extension_is_tried_and_installed_and_what_wants_another_torch_replaces_nothing(
    world: World, tmp_path: Path
) -> None:
    source = tmp_path / "own-ext"
    (source / "own_ext").mkdir(parents=True)
    (source / "own.c").write_text(OWN, "utf-8")
    (source / "own_ext/__init__.py").write_text("from . import _C\n", "utf-8")
    flags = ("--source", world.tree, "--python", world.python, "--yes", "--with-extension", source)

    def build(version: str, asks: str) -> Run:
        text = EXTENSION.replace("VERSION", repr(version)).replace("ASKS", asks)
        (source / "setup.py").write_text(text, "utf-8")
        return torchbuild("build", *flags)

    def version() -> str:
        code = "import importlib.metadata as m, torch, own_ext._C; print(m.version('own-ext'))"
        argv = [str(world.python), "-I", "-c", code]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()

    done = build("1.0", "[]")
    assert done.code == 0, done.out + done.err
    assert "own-ext 1.0 is installed; its wheel" in done.err
    assert version() == "1.0"
    done = build("2.0", "['torch==2.9.0']")
    assert done.code == 5, done.out + done.err
    assert "own-ext 2.0 asks for torch==2.9.0, and this torch is 2.14.0a0" in done.err
    assert version() == "1.0"


def test_a_ref_that_is_missing_costs_no_build(world: World) -> None:
    cache = world.tree / "build/CMakeCache.txt"
    before = cache.exists()
    done = world.build(f"torchvision={world.source.as_uri()}@v9", "--clean")
    assert done.code == 16, done.out + done.err
    assert "v9" in done.err and "== compile" not in done.err
    assert cache.exists() is before

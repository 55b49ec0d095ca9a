"""`git switch` between versions in one checkout: rebuilds, removals, and questions."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs_git, needs_linux_compiler
from tests.support.driver import Run, make_venv, torchbuild
from tests.support.sample import SAMPLE, materialise

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_linux_compiler, needs_git]

OLD, NEAR, NEXT = "2.8.0a0", "2.8.1a0", "2.15.0a0"
# What the older version has and the nearer one has not: a library, its header, a generated source.
OLD_ONLY = """
set(OLD_CPP "${CMAKE_CURRENT_SOURCE_DIR}/csrc/generated/old.cpp")
add_custom_command(OUTPUT "${OLD_CPP}"
  COMMAND "${CMAKE_COMMAND}" -E echo "namespace torch_old {}" > "${OLD_CPP}"
  VERBATIM)
add_library(torch_old SHARED "${OLD_CPP}")
torch_install_library(torch_old)
install(FILES csrc/Ops.h DESTINATION include/torch RENAME old.h)
"""


class Checkout:
    """A repository of the sample with a branch for each version, as git switches between them."""

    def __init__(self, tree: Path, python: Path) -> None:
        self.tree, self.python = tree, python

    def git(self, *words: str) -> None:
        argv = ["git", "-c", "user.name=a", "-c", "user.email=a@example.invalid", *words]
        subprocess.run(argv, cwd=self.tree, check=True, capture_output=True)

    def commit(self, branch: str, version: str) -> None:
        (self.tree / "version.txt").write_text(f"{version}\n", "utf-8")
        self.git("switch", "-q", "-c", branch)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", branch)

    def __call__(self, verb: str, *words: str) -> Run:
        return torchbuild(verb, "--source", self.tree, "--python", self.python, *words)

    def plan(self, *words: str) -> Any:
        return self("plan", "--json", *words).json["freshness"]

    def objects(self) -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in (self.tree / "build").rglob("*.o")}

    def compiled(self, before: dict[str, int]) -> set[str]:
        return {Path(path).name for path, time in self.objects().items() if before.get(path) != time}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, target: Path) -> Iterator[Checkout]:
    """Built at the oldest version; branches old, near and next (of the other era)."""
    tree = materialise(
        tmp_path_factory.mktemp("switch") / "minitorch", era="setuptools", git=True, version=OLD
    )
    checkout = Checkout(tree, target)
    lists = tree / "torch/CMakeLists.txt"
    before = lists.read_text("utf-8")
    lists.write_text(before + OLD_ONLY, "utf-8")
    (tree / ".gitignore").write_text(
        (tree / ".gitignore").read_text("utf-8") + "torch/csrc/generated\n", "utf-8"
    )
    checkout.commit("old", OLD)
    lists.write_text(before, "utf-8")
    with (tree / "aten/src/ATen/mul.cpp").open("a", encoding="utf-8") as file:
        file.write("\nint near_version() { return 1; }\n")
    checkout.commit("near", NEAR)
    (tree / "setup.py").unlink()
    (tree / "requirements.txt").unlink()
    shutil.copyfile(SAMPLE / "pyproject.toml", tree / "pyproject.toml")
    checkout.commit("next", NEXT)
    checkout.git("switch", "-q", "old")
    done = checkout("build", "--yes")
    assert done.code == 0, done.err
    yield checkout
    subprocess.run([str(target), "-m", "pip", "uninstall", "-q", "-y", "torch"], check=True)


def test_a_near_version_compiles_what_changed_and_loses_what_it_has_not(checkout: Checkout) -> None:
    tree, before = checkout.tree, checkout.objects()
    old = [
        tree / "torch/lib/libtorch_old.so",
        tree / "torch/include/torch/old.h",
        tree / "torch/csrc/generated/old.cpp",
    ]
    assert all(path.exists() for path in old)
    mine = tree / "torch/lib/libmine.so"
    mine.write_bytes(b"mine")
    checkout.git("switch", "-q", "near")
    plan = checkout.plan()
    assert plan["needs"] == "reconfigure"
    assert {"version", "commit"} <= {change["name"] for change in plan["changes"]}
    done = checkout("build")
    assert done.code == 0, done.err
    compiled = checkout.compiled(before)
    assert "mul.cpp.o" in compiled
    assert compiled <= {"mul.cpp.o", "Version.cpp.o", "Config.cpp.o", "stub.o"}, compiled
    assert not any(path.exists() for path in old)
    assert "torch/lib/libtorch_old.so" in done.err
    assert mine.read_bytes() == b"mine"
    again = checkout("build")
    assert "Up to date" in again.err
    assert "removed" not in again.err


PATCH = """\
--- a/aten/src/ATen/mul.cpp
+++ b/aten/src/ATen/mul.cpp
@@ -1,2 +1,3 @@
{first}
+extern int patched_mul; int patched_mul = 1;
{second}
"""


def test_the_older_version_comes_back_with_a_patch_of_ones_own(checkout: Checkout) -> None:
    tree, before = checkout.tree, checkout.objects()
    source = tree / "aten/src/ATen/mul.cpp"
    first, second = (f" {line}" for line in source.read_text("utf-8").splitlines()[:2])
    (tree / "patches").mkdir()
    patch = tree / "patches/0001-mul.patch"
    patch.write_text(PATCH.format(first=first, second=f"{second}?"), "utf-8")
    checkout.git("switch", "-q", "old")
    unfit = checkout("build", "--dry-run")
    assert unfit.code == 14
    assert "0001-mul.patch does not fit" in unfit.err
    patch.write_text(PATCH.format(first=first, second=second), "utf-8")
    done = checkout("build")
    assert done.code == 0, done.err
    assert "source patched (0001-mul.patch)" in done.err
    assert b"patched_mul" in (tree / "torch/lib/libtorch_cpu.so").read_bytes()
    assert {"mul.cpp.o", "old.cpp.o"} <= checkout.compiled(before)
    assert len(checkout.compiled(before)) <= 5
    assert (tree / "torch/lib/libtorch_old.so").exists()


def test_git_keeps_a_patched_file_and_the_patch_goes_on_request(checkout: Checkout) -> None:
    """Both versions have that file, each its own: git refuses, nothing is lost."""
    with pytest.raises(subprocess.CalledProcessError) as refused:
        checkout.git("switch", "near")
    assert b"mul.cpp" in refused.value.stderr
    assert "patched_mul" in (checkout.tree / "aten/src/ATen/mul.cpp").read_text("utf-8")
    assert checkout("clean", "--patches").code == 0
    shutil.rmtree(checkout.tree / "patches")
    checkout.git("switch", "-q", "near")
    checkout.git("switch", "-q", "old")


def test_what_else_changes_is_named_with_its_reason(checkout: Checkout, tmp_path: Path) -> None:
    """Another Python, another compiler under the same path, a moved checkout: a clean each."""
    make_venv(tmp_path / "other")
    other = torchbuild("plan", "--json", "--source", checkout.tree, "--python", tmp_path / "other/bin/python")
    assert other.json["freshness"]["needs"] == "clean"
    assert "another Python" in other.json["freshness"]["because"]
    record = checkout.tree / "build/torchbuild-manifest.json"
    said = record.read_text("utf-8")
    found = re.search(r'"compiler": "(\S+ )(\S+)"', said)
    assert found
    record.write_text(said.replace(found[0], f'"compiler": "{found[1]}9.9.9"'), "utf-8")
    compiler = checkout.plan()
    record.write_text(said, "utf-8")
    assert compiler["needs"] == "clean"
    assert "objects of two compilers do not mix" in compiler["because"]
    assert compiler["changes"][0]["after"] == found[1] + found[2]
    moved = tmp_path / "moved"
    shutil.copytree(checkout.tree, moved, symlinks=True)
    there = torchbuild("plan", "--json", "--source", moved, "--python", checkout.python)
    assert there.json["freshness"]["needs"] == "clean"
    assert str(checkout.tree) in there.json["freshness"]["because"]


def test_a_switch_to_the_other_era_asks_and_leaves_nothing_of_the_first(checkout: Checkout) -> None:
    tree = checkout.tree
    libraries = [path for path in (tree / "torch/lib").glob("*.so") if path.name != "libmine.so"]
    assert libraries
    checkout.git("switch", "-q", "next")
    plan = checkout.plan()
    assert plan["needs"] == "clean"
    assert "era" in plan["because"]
    assert "lay out the build tree differently" in plan["because"]
    refused = checkout("build")
    assert refused.code == 9
    assert all(path.exists() for path in libraries)
    done = checkout("build", "--yes")
    assert done.code == 0, done.err
    assert not any(path.exists() for path in libraries)
    assert (tree / "torch/lib/libmine.so").exists()
    assert not list(tree.glob("torch/_C*.so"))
    assert (tree / "build/editable/torch/lib/libtorch_cpu.so").exists()

from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import link, machine
from tests.support.capabilities import needs_symlinks
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.facts.submodules import (
    empty_submodules,
    find_checked_folders,
    look_at_submodules,
    submodule_paths,
)

ROOT = "/src"


def modules(*paths: str) -> str:
    return "".join(
        f'[submodule "{p}"]\n    ignore = dirty\n\tpath = {p}\n\turl = https://x/{p}.git\n' for p in paths
    )


def empty(root: Path, files: dict[str, str]) -> tuple[str, ...]:
    return empty_submodules(
        machine(root, files={f"{ROOT}/{name}": text for name, text in files.items()}), ROOT
    )


def test_missing_empty_and_half_made_folders_hold_nothing(tmp_path: Path) -> None:
    files = {
        ".gitmodules": modules("third_party/sleef", "third_party/a", "third_party/fmt", "third_party/gone"),
        "third_party/fmt/CMakeLists.txt": "",
        "third_party/sleef/": "",
        "third_party/a/.git": "gitdir: ../../.git/modules/a",
        "third_party/not_a_module/": "",
    }
    assert empty(tmp_path, files) == ("third_party/a", "third_party/gone", "third_party/sleef")


def test_submodules_of_submodules_are_looked_at(tmp_path: Path) -> None:
    files = {
        ".gitmodules": modules("third_party/onnx", "third_party/empty"),
        "third_party/onnx/.gitmodules": modules("third_party/pybind11", "deep/er"),
        "third_party/onnx/deep/er/.gitmodules": modules("x"),
        "third_party/onnx/third_party/pybind11/": "",
    }
    assert empty(tmp_path, files) == (
        "third_party/empty",
        "third_party/onnx/deep/er/x",
        "third_party/onnx/third_party/pybind11",
    )


def test_modules_outside_third_party_count_too(tmp_path: Path) -> None:
    files = {".gitmodules": modules("android/libs/fbjni"), "third_party/": ""}
    assert empty(tmp_path, files) == ("android/libs/fbjni",)


def test_without_gitmodules_the_folders_speak_for_themselves(tmp_path: Path) -> None:
    files = {
        "third_party/zlib/": "",
        "third_party/fmt/x.h": "",
        "third_party/README.md": "",
        "third_party/abc/": "",
    }
    assert empty(tmp_path, files) == ("third_party/abc", "third_party/zlib")
    assert empty(tmp_path / "other", {"version.txt": ""}) == ()


def test_paths_are_read_as_git_writes_them(tmp_path: Path) -> None:
    text = (
        '[submodule "a"]\npath=plain\n\tPATH = "quo ted"\n path = dir/\n path = ../up\n path =\n url = path\n'
    )
    door = machine(tmp_path, files={f"{ROOT}/.gitmodules": text})
    assert submodule_paths(door, ROOT) == ("plain", "quo ted", "dir")
    assert submodule_paths(door, "/none") == ()


@needs_symlinks
def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    door = machine(tmp_path, files={f"{ROOT}/third_party/a/.gitmodules": modules("b"), f"{ROOT}/x": ""})
    (tmp_path / "src/.gitmodules").write_text(modules("third_party/a"), "utf-8")
    link(tmp_path, f"{ROOT}/third_party/a/b", ".")
    assert empty_submodules(door, ROOT) == ()


# ---------------- what setup.py looks into itself: its three forms, as 1.4, 2.6 and 2.9 have them

NAMED = """
third_party_path = os.path.join(cwd, "third_party")

def build_deps():
    def check_file(f):
        sys.exit(not os.path.exists(f))
    check_file(os.path.join(third_party_path, "gloo", "CMakeLists.txt"))
    check_file(os.path.join(third_party_path, 'tbb', 'Makefile'))
    check_file(os.path.join(third_party_path, 'fbgemm', 'third_party',
                            'asmjit', 'CMakeLists.txt'))
    check_file(os.path.join(lib_path, "nanopb", "CMakeLists.txt"))
"""
LISTED = """
def get_submodule_folders():
    modules = os.path.join(cwd, ".gitmodules")
    default = [os.path.join(third_party_path, name) for name in ["gloo", "onnx"]]
    if not os.path.exists(modules):
        return default
    with open(modules) as f:
        return [os.path.join(cwd, line.split("=", 1)[1].strip()) for line in f]

def check_submodules():
    def check_for_files(folder, files):
        return any(os.path.exists(os.path.join(folder, f)) for f in files)
    for folder in get_submodule_folders():
        check_for_files(folder, ["CMakeLists.txt", "LICENSE"])
    check_for_files(os.path.join(third_party_path, "fbgemm", "third_party", "asmjit"), ["CMakeLists.txt"])
"""
PATHS = LISTED.replace("os.path.join(third_party_path, name)", "THIRD_PARTY_DIR / name").replace(
    'os.path.join(third_party_path, "fbgemm", "third_party", "asmjit")',
    'THIRD_PARTY_DIR / "fbgemm" / "third_party" / "asmjit"',
)
ASMJIT = "third_party/fbgemm/third_party/asmjit"


def checked(root: Path, setup: str, **files: str) -> tuple[str, ...] | None:
    every = {f"{ROOT}/setup.py": setup, **{f"{ROOT}/.{name}": text for name, text in files.items()}}
    return find_checked_folders(machine(root, files=every), ROOT)


def test_a_setup_py_that_names_each_file(tmp_path: Path) -> None:
    wanted = (ASMJIT, "third_party/gloo", "third_party/tbb")
    assert checked(tmp_path, NAMED) == wanted
    assert checked(tmp_path / "git", NAMED, gitmodules=modules("third_party/fmt")) == wanted


@pytest.mark.parametrize("setup", [LISTED, PATHS])
def test_a_setup_py_that_goes_through_gitmodules(tmp_path: Path, setup: str) -> None:
    assert checked(tmp_path, setup) == (ASMJIT, "third_party/gloo", "third_party/onnx")
    named = modules("third_party/nccl/nccl", "android/libs/fbjni")
    assert checked(tmp_path / "git", setup, gitmodules=named) == (
        "android/libs/fbjni",
        ASMJIT,
        "third_party/nccl/nccl",
    )


@pytest.mark.parametrize("setup", ["from setuptools import setup", "print 'Python 2'", "\0", "(" * 5000])
def test_a_setup_py_that_does_not_tell(tmp_path: Path, setup: str) -> None:
    assert checked(tmp_path, setup) is None
    assert find_checked_folders(machine(tmp_path / "no"), ROOT) is None


def test_a_tree_without_gitmodules_is_checked_by_the_folders_of_rows(tmp_path: Path) -> None:
    files = {f"{ROOT}/third_party/fmt/x.h": "", f"{ROOT}/setup.py": LISTED}
    seen = look_at_submodules(
        machine(tmp_path, files=files), ROOT, ("third_party/fmt", "third_party/gone"), git=False
    )
    assert seen.empty == (ASMJIT, "third_party/gloo", "third_party/onnx")
    assert (seen.absent, seen.linkless) == (("third_party/gone",), ())


def test_where_git_names_its_own_rows_add_nothing(tmp_path: Path) -> None:
    files = {f"{ROOT}/.gitmodules": modules("third_party/a"), f"{ROOT}/third_party/a/x": ""}
    seen = look_at_submodules(machine(tmp_path, files=files), ROOT, ("third_party/gone",), git=False)
    assert (seen.empty, seen.absent) == ((), ())


def test_what_git_has_no_submodule_for_is_distinguished(tmp_path: Path) -> None:
    files = {f"{ROOT}/.gitmodules": modules("third_party/a", "third_party/b")}
    staged = f"160000 {'0' * 40} 0\tthird_party/a\x00100644 {'0' * 40} 0\tsetup.py\x00"
    door = machine(tmp_path, files=files, programs={"/usr/bin/git": Output(0, staged)})
    seen = look_at_submodules(door, ROOT, (), git=True)
    assert (seen.empty, seen.linkless) == (("third_party/a", "third_party/b"), ("third_party/b",))
    assert look_at_submodules(door, ROOT, (), git=False).linkless == ()


@pytest.mark.parametrize(
    ("staged", "left"), [("", ()), (f"160000 {'a' * 40} 0\tthird-party/googletest\0", None)]
)
def test_what_a_submodule_has_removed_is_no_folder_of_its_own(
    tmp_path: Path, staged: str, left: tuple[str, ...] | None
) -> None:
    """gloo's .gitmodules still names a folder that gloo's git has no more: nothing can bring it."""
    path = "third_party/gloo/third-party/googletest"
    files = {
        f"{ROOT}/.gitmodules": modules("third_party/gloo"),
        f"{ROOT}/third_party/gloo/.git": "gitdir: elsewhere",
        f"{ROOT}/third_party/gloo/.gitmodules": modules("third-party/googletest"),
    }
    door = machine(tmp_path, files=files, programs={"/usr/bin/git": Output(0, staged)})
    assert look_at_submodules(door, ROOT, (), git=False).empty == ((path,) if left is None else left)


def test_a_folder_with_a_readme_alone_is_torn(tmp_path: Path) -> None:
    named = ("third_party/onnx", "third_party/gloo", ASMJIT)
    files = {f"{ROOT}/setup.py": LISTED, f"{ROOT}/third_party/onnx/README": ""}
    files |= {f"{ROOT}/{path}/CMakeLists.txt": "" for path in named[1:]}
    seen = look_at_submodules(machine(tmp_path, files=files), ROOT, (), git=False)
    assert (seen.torn, seen.empty) == (("third_party/onnx",), ())

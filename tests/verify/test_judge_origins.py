"""Where libraries come from: the package, the toolkit, the Python, the system; never a build tree."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.verify.judge import Seen, expand, misplaced, stray_folders
from torchbuild_tasks.verify.session import _read_rpaths, _trace

PACKAGE = ("/venv/lib/python3.11/site-packages/torch",)
OWN = f"{PACKAGE[0]}/lib/libc10.so"
CUDA = "/usr/local/cuda-13.0"


@each_case(
    ("file", "says"),
    [
        (OWN, ""),
        ("/src/build/lib/libc10.so", "torch's own libraries"),
        ("/other/site-packages/torch/lib/libtorch_cpu.so", "torch's own libraries"),
        (f"{CUDA}/targets/x86_64-linux/lib/libcudart.so.13", ""),
        ("/usr/local/cuda-12.1/lib64/libcudart.so.12", "not of the CUDA that was planned"),
        ("/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9", ""),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", ""),
        ("/src/other/build/libhelper.so", "in a build tree"),
        ("/opt/mkl/libmkl_rt.so.2", ""),
    ],
)
def test_what_is_wrong_with_a_loaded_library(file: str, says: str) -> None:
    built = {"/src/other/build/libhelper.so"}
    wrong, elsewhere = misplaced([file], PACKAGE, ("/venv", CUDA), built)
    assert (says in wrong[0]) if says else not wrong
    assert elsewhere == [each for each in [file] if each.startswith(("/opt", "/usr/local/cuda-12"))]


@each_case(
    ("rpath", "bad"),
    [
        ("$ORIGIN", False),
        ("${ORIGIN}/../../nvidia/cublas/lib", False),
        (f"{CUDA}/lib64", False),
        ("/src/pytorch/build/lib", True),
        ("/elsewhere/build/lib", True),
        ("build/aten", True),
        ("$ORIGIN/../../../../../../src/pytorch/build/lib", True),
    ],
)
def test_an_rpath_into_a_build_tree(rpath: str, bad: bool) -> None:
    found = list(stray_folders({OWN: (rpath,)}, PACKAGE, "/src/pytorch", {"/elsewhere/build/lib"}))
    assert bool(found) is bad
    assert all(repr(rpath) in text for text in found)


def test_a_package_in_the_checkout_is_no_build_tree() -> None:
    rpaths = {"/src/pytorch/torch/lib/libc10.so": ("$ORIGIN",)}
    assert not list(stray_folders(rpaths, ("/src/pytorch/torch",), "/src/pytorch", ()))


def test_what_an_entry_means() -> None:
    assert expand("$ORIGIN/../x", "/a/b/c.so") == "/a/x"
    assert expand("relative", "/a/b/c.so") == "relative"


@pytest.mark.skipif(sys.platform != "linux", reason="libraries by their POSIX paths")
def test_a_build_tree_is_known_by_its_cache(tmp_path: Path) -> None:
    library = tmp_path / "build/lib/libhelper.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    answer = Seen(
        outcome="passed",
        detail="1 library",
        values={"loaded": str(library), "package": PACKAGE[0], "prefixes": ""},
    )
    assert _trace(answer, ["/src"]).outcome == "passed"
    (tmp_path / "build/CMakeCache.txt").touch()
    assert _trace(answer, ["/src"]).outcome == "failed"
    files = Seen(outcome="passed", values={"files": str(library), "package": PACKAGE[0]})
    assert _read_rpaths(files, []).detail == "1 libraries, none looks in a build tree"


@pytest.mark.skipif(sys.platform != "linux", reason="libraries by their POSIX paths")
def test_a_toolkit_may_hold_its_libraries_as_links(tmp_path: Path) -> None:
    """The process reports the targets of the links: files of wheels, or of a package manager."""
    library, toolkit = tmp_path / "nvidia/cublas/lib/libcublas.so.12", tmp_path / "cuda/lib64"
    for folder in (library.parent, toolkit):
        folder.mkdir(parents=True)
    library.write_bytes(b"")
    values = {"loaded": str(library), "package": PACKAGE[0], "prefixes": ""}
    answer = Seen(outcome="passed", detail="1 library", values=values)
    assert _trace(answer, ["/src", str(toolkit.parent)]).outcome == "failed"
    (toolkit / "libcublas.so").symlink_to(library)
    assert _trace(answer, ["/src", str(toolkit.parent)]).outcome == "passed"
    (tmp_path / "nvidia/CMakeCache.txt").touch()
    assert "in a build tree" in _trace(answer, ["/src", str(toolkit.parent)]).detail

"""Problems of a CUDA build are reported at once: exit code 3, a fix, and no file written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capabilities import needs_linux_compiler
from tests.support.driver import Run, torchbuild
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs_linux_compiler]

HOST_CONFIG = "#if __GNUC__ > {gcc}\n#error -- unsupported GNU version!\n#endif\n"


def pretend(root: Path, version: str = "12.4", *, gcc: int = 13, script: str = "") -> Path:
    """A toolkit whose nvcc is a script: what a real one says, or what a broken one does."""
    for folder in ("bin", "include/crt", "lib64"):
        (root / folder).mkdir(parents=True)
    (root / "include/cuda_runtime.h").touch()
    (root / "include/crt/host_config.h").write_text(HOST_CONFIG.format(gcc=gcc), "utf-8")
    (root / "lib64/libcudart.so").touch()
    answer = f"echo 'Cuda compilation tools, release {version}, V{version}.131'"
    nvcc = root / "bin/nvcc"
    nvcc.write_text(f"#!/bin/sh\n{script or answer}\n", "utf-8")
    nvcc.chmod(0o755)
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return materialise(tmp_path / "minitorch", era="setuptools")


def refused(tree: Path, *words: str | Path, environ: dict[str, str] | None = None) -> Run:
    """Run a build that must be refused, and look whether it has left anything."""
    before = sorted(tree.rglob("*"))
    done = torchbuild("build", "--cuda", "--yes", "--source", tree, *words, environ=environ)
    assert done.code == 3, done.out + done.err
    assert "Traceback" not in done.err
    assert sorted(tree.rglob("*")) == before
    return done


def test_an_unknown_architecture(tree: Path, tmp_path: Path) -> None:
    done = refused(tree, "--cuda-toolkit", pretend(tmp_path / "cuda"), "--arch", "Amper")
    assert "did you mean Ampere?" in done.err


def test_an_architecture_that_the_toolkit_does_not_compile_for(tree: Path, tmp_path: Path) -> None:
    done = refused(tree, "--cuda-toolkit", pretend(tmp_path / "cuda"), "--arch", "12.0")
    assert "CUDA 12.8" in done.err


def test_a_toolkit_that_is_a_file(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "cuda.run"
    file.touch()
    assert str(file) in refused(tree, "--cuda-toolkit", file, "--arch", "8.6").err


def test_a_toolkit_that_is_not_there(tree: Path, tmp_path: Path) -> None:
    assert "gone" in refused(tree, "--cuda-toolkit", tmp_path / "gone", "--arch", "8.6").err


def test_two_toolkits_of_one_version(tree: Path, tmp_path: Path) -> None:
    one, other = pretend(tmp_path / "one", "12.6"), pretend(tmp_path / "other", "12.6")
    done = refused(
        tree,
        *("--cuda-toolkit", "12.6", "--arch", "8.6"),
        environ={"CUDA_HOME": str(one), "CUDA_PATH": str(other)},
    )
    assert str(one) in done.err
    assert str(other) in done.err


def test_an_nvcc_that_crashes(tree: Path, tmp_path: Path) -> None:
    toolkit = pretend(tmp_path / "cuda", script="kill -SEGV $$")
    done = refused(tree, "--cuda-toolkit", toolkit, "--arch", "8.6")
    assert "nvcc" in done.err


def test_a_host_compiler_that_is_too_new(tree: Path, tmp_path: Path) -> None:
    """The limit is that of the header in the toolkit. g++ is named: a clang that is here would be taken."""
    toolkit = pretend(tmp_path / "cuda", gcc=4)
    done = refused(tree, "--cuda-toolkit", toolkit, "--arch", "8.6", "--set", "CUDAHOSTCXX=g++")
    assert "takes GCC up to 4" in done.err


def test_a_cuda_release_that_does_not_exist(tree: Path) -> None:
    done = refused(tree, "--cuda-toolkit", "pypi:99.9", "--arch", "8.6")
    assert "99.9" in done.err

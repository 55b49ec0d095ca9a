"""What changed is compiled, and every other library is the wheel's, that of CUDA too.

One era has a kernel of CUDA where nvcc is; with --slow each era is tried with one and without.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import pytest

from tests.support.capabilities import needs_linux_compiler, skip_without
from tests.support.driver import Run, torchbuild
from tests.support.sample import Era, materialise, run_git

pytestmark = [pytest.mark.integration, needs_linux_compiler]

SUM = "import torch; print(float(torch.tensor([1.0, 2.0]).sum()), torch.version.git_version)"


OLDER, NEWER, NEWER_CUDA = ("setuptools", True), ("scikit-build-core", False), ("scikit-build-core", True)
NAMES = {OLDER: "setuptools", NEWER: "scikit-build-core", NEWER_CUDA: "scikit-build-core-cuda"}


def tried(*quick: tuple[str, bool], slow: tuple[tuple[str, bool], ...]) -> pytest.MarkDecorator:
    """Mark a test with the eras that a quick run tries it in, and those of --slow; each makes a wheel."""
    params = [pytest.param(each, id=NAMES[each]) for each in quick]
    params += [pytest.param(each, id=NAMES[each], marks=pytest.mark.slow) for each in slow]
    return pytest.mark.parametrize("line", params, indirect=True)


@pytest.fixture(scope="module")
def line(request: pytest.FixtureRequest) -> tuple[str, bool]:
    """The era, and whether there is a kernel where it can be compiled."""
    return cast("tuple[str, bool]", request.param)


@pytest.fixture(scope="module")
def era(line: tuple[str, bool]) -> Era:
    return cast("Era", line[0])


VERSIONS: Mapping[Era, str] = {"setuptools": "2.10.0a0"}  # that CUDA 13 compiles


@pytest.fixture(scope="module")
def flags(line: tuple[str, bool]) -> tuple[str, ...]:
    """What the wheel and what is compiled against it are built with; nvcc is tried in test_cuda_line.py."""
    return ("--cuda", "--arch", "8.0", "--no-preflight") if line[1] and shutil.which("nvcc") else ()


@pytest.fixture(scope="module")
def wheel(era: Era, flags: tuple[str, ...], made_wheel: Callable[..., Path]) -> Path:
    """The sample's own wheel, built by the tool."""
    return made_wheel(era, VERSIONS.get(era), *flags)


@pytest.fixture
def tree(era: Era, wheel: Path, tmp_path: Path) -> Path:
    """Another checkout of the same commit, in which nothing was built."""
    return materialise(tmp_path / "minitorch", era=era, git=True, version=VERSIONS.get(era))


def build(tree: Path, target: Path, wheel: Path, *more: str) -> Run:
    words: tuple[str | Path, ...] = ("--from-wheel", wheel, "--target", "changed", *more)
    return torchbuild("build", "--source", tree, "--python", target, "--yes", "--offline", *words)


ADDED = "\nextern const char changed[];\nconst char changed[] = __FILE__;\n"


def edit(tree: Path, name: str, old: str = "", new: str = ADDED) -> None:
    path = tree / name
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new) if old else text + new, "utf-8")


def unlike(tree: Path, wheel: Path) -> set[str]:
    """The libraries that are not the wheel's, byte for byte."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("torch/lib/")]
        return {Path(name).name for name in names if archive.read(name) != (tree / name).read_bytes()}


def compiled(tree: Path) -> set[str]:
    """The sources whose objects lie in the build tree, but what CMake tries its compilers with."""
    return {path.name.removesuffix(".o") for path in (tree / "build").rglob("*.dir/**/*.o")}


def run(target: Path, code: str, cwd: Path) -> str:
    words = [str(target), "-B", "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def listed(tree: Path) -> dict[str, bytes]:
    """Every file but the tool's own state, byte code, and the env file, which may have been sourced."""
    skipped = {".git", ".torchbuild", "__pycache__", "env_set.sh"}
    files = (path for path in tree.rglob("*") if path.is_file() and not skipped & set(path.parts))
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in files}


@tried(NEWER, slow=(OLDER, NEWER_CUDA))
def test_what_a_change_reaches_is_compiled_and_the_rest_is_the_wheels(
    tree: Path, wheel: Path, flags: tuple[str, ...], target: Path, tmp_path: Path
) -> None:
    before, head = listed(tree), run_git(tree, "rev-parse", "HEAD")
    edit(tree, "aten/src/ATen/sum.cpp", "0.0)", "40.0)")
    refused = torchbuild("build", "--source", tree, "--python", target, "--yes", "--from-wheel", wheel)
    assert refused.code == 3
    assert "The same command with --target changed compiles the libraries that this reaches" in refused.err

    done = build(tree, target, wheel, *flags)
    assert done.code == 0, done.out + done.err
    assert run(target, SUM, tmp_path) == f"43.0 {head}"
    assert unlike(tree, wheel) == {"libtorch_cpu.so"}
    assert compiled(tree) and not {
        each for each in compiled(tree) if not (tree / "aten/src/ATen" / each).exists()
    }
    assert run_git(tree, "status", "--porcelain") == "M aten/src/ATen/sum.cpp"

    manifest = (tree / "build/torchbuild-manifest.json").read_bytes()
    again = build(tree, target, wheel, *flags)
    assert again.code == 0 and "nothing was built since" in again.err, again.err
    assert (tree / "build/torchbuild-manifest.json").read_bytes() == manifest

    run_git(tree, "checkout", "--quiet", ".")
    gone = torchbuild("clean", "--source", tree, "--python", target, "--yes")
    assert gone.code == 0, gone.out + gone.err
    assert listed(tree) == before


@tried(NEWER, slow=(OLDER, NEWER_CUDA))
def test_what_no_change_reaches_any_more_is_the_wheels_again(
    tree: Path, wheel: Path, flags: tuple[str, ...], target: Path
) -> None:
    edit(tree, "aten/src/ATen/Elementwise.h", new="// changed\n")
    edit(tree, "torch/csrc/Convert.cpp")
    done = build(tree, target, wheel, *flags)
    assert done.code == 0, done.out + done.err
    assert unlike(tree, wheel) == {"libtorch_cpu.so", "libtorch_python.so"}
    assert "// changed" in (tree / "torch/include/ATen/Elementwise.h").read_text("utf-8")
    run_git(tree, "checkout", "--quiet", ".")
    edit(tree, "c10/util/Exception.cpp")
    other = build(tree, target, wheel, *flags)
    assert other.code == 0, other.out + other.err
    assert unlike(tree, wheel) == {"libc10.so"}
    assert "// changed" not in (tree / "torch/include/ATen/Elementwise.h").read_text("utf-8")


@tried(NEWER, slow=(OLDER, NEWER_CUDA))
@pytest.mark.slow
def test_what_cannot_be_told_or_would_not_fit_is_refused_with_the_file(
    tree: Path, wheel: Path, flags: tuple[str, ...], target: Path
) -> None:
    (tree / "aten/src/ATen/fresh.cpp").write_text("// new, and in no CMakeLists.txt\n", "utf-8")
    done = build(tree, target, wheel, *flags)
    assert done.code == 3, done.out + done.err
    assert "no step of this configuration compiles it: aten/src/ATen/fresh.cpp" in done.err
    (tree / "aten/src/ATen/fresh.cpp").unlink()

    edit(tree, "c10/macros/Export.h", new="// changed\n")  # what tools/codegen.py writes includes it
    done = build(tree, target, wheel, *flags)
    assert done.code == 3, done.out + done.err
    assert "c10/macros/Export.h is included by what tools/codegen.py generates" in done.err
    run_git(tree, "checkout", "--quiet", ".")

    edit(tree, "tools/codegen.py", '"""', '"""\n')
    done = build(tree, target, wheel, *flags)
    assert done.code == 3 and "generated, reaches" in done.err, done.out + done.err
    assert "--target changed compiles" not in done.err
    run_git(tree, "checkout", "--quiet", ".")

    edit(tree, "torch/csrc/Module.cpp")
    done = build(tree, target, wheel, *flags, "--set", "USE_NUMPY=0")
    assert done.code == 3, done.out + done.err
    assert "C10_USE_NUMPY of torch/include/c10/macros/cmake_macros.h: the wheel has" in done.err
    assert "The same command with --set USE_NUMPY=1" in done.err
    assert not list((tree / "build").rglob("*.dir/**/*.o"))


@tried(slow=(OLDER, NEWER_CUDA))
def test_what_reaches_the_library_of_a_kernel_is_refused_with_the_file(
    tree: Path, wheel: Path, flags: tuple[str, ...], target: Path
) -> None:
    if not flags:
        skip_without("nvcc")
    edit(tree, "c10/macros/Export.h", new="// changed\n")
    done = build(tree, target, wheel, *flags)
    assert done.code == 3, done.out + done.err
    assert "c10/macros/Export.h reaches libtorch_cuda.so, by aten/src/ATen/cuda/add.cu" in done.err


@tried(NEWER, slow=(OLDER, NEWER_CUDA))
def test_a_function_that_the_wheels_libraries_need_may_not_go(
    tree: Path, wheel: Path, flags: tuple[str, ...], target: Path, tmp_path: Path
) -> None:
    edit(tree, "aten/src/ATen/relu.cpp", "relu(", "relu_of_another_name(")
    done = build(tree, target, wheel, *flags)
    assert done.code == 6, done.out + done.err
    assert "What was compiled lacks symbols that the wheel's libraries need" in done.err
    assert re.search(r"relu\S*, which torch/lib/libtorch_python.so needs", done.err)
    assert unlike(tree, wheel) == set()
    assert run(target, SUM, tmp_path).startswith("3.0")

"""A checkout on the libraries of a wheel: nothing compiled, edits seen, undone to the last file."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.support.capabilities import needs_linux_compiler
from tests.support.driver import Run, torchbuild
from tests.support.sample import Era, materialise, run_git

pytestmark = [pytest.mark.integration, needs_linux_compiler]

ADD = "import torch; t = torch.tensor([1.0, 2.0]); print(torch.__file__, torch.version.git_version)"


@pytest.fixture(scope="module", params=["setuptools", "scikit-build-core"])
def era(request: pytest.FixtureRequest) -> Era:
    return cast("Era", request.param)


@pytest.fixture(scope="module")
def wheel(era: Era, target: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's own wheel, built by the tool."""
    tree = materialise(tmp_path_factory.mktemp("made") / "minitorch", era=era, git=True)
    done = torchbuild("build", "--source", tree, "--python", target, "--mode", "wheel", "--yes")
    assert done.code == 0, done.out + done.err
    (made,) = (tree / "dist").glob("torch-*.whl")
    folder = tmp_path_factory.mktemp("wheels")
    return Path(shutil.copy(made, folder / made.name))


@pytest.fixture
def tree(era: Era, wheel: Path, tmp_path: Path) -> Path:
    """Another checkout of the same commit, in which nothing was built."""
    return materialise(tmp_path / "minitorch", era=era, git=True)


def build(tree: Path, target: Path, word: str | Path, *more: str) -> Run:
    return torchbuild(
        "build", "--source", tree, "--python", target, "--yes", "--offline", "--from-wheel", word, *more
    )


def listed(tree: Path) -> dict[str, bytes]:
    """Every file but the tool's own state and byte code."""
    skipped = (".git", ".torchbuild", "__pycache__")
    files = (path for path in tree.rglob("*") if path.is_file() and not set(skipped) & set(path.parts))
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in files}


def folders(tree: Path) -> set[Path]:
    skipped = {".git", ".torchbuild", "__pycache__"}
    return {path for path in tree.rglob("*") if path.is_dir() and not skipped & set(path.parts)}


def run(target: Path, code: str, cwd: Path) -> str:
    done = subprocess.run(
        [str(target), "-B", "-c", code], capture_output=True, text=True, check=False, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_wheel_serves_a_checkout_and_leaves_it(
    tree: Path, wheel: Path, target: Path, tmp_path: Path
) -> None:
    before, dirs = listed(tree), folders(tree)
    done = build(tree, target, wheel.parent, "--verbose")
    assert done.code == 0, done.out + done.err
    assert "lie over the checkout" in done.err
    head = run_git(tree, "rev-parse", "HEAD")
    assert run(target, ADD, tmp_path) == f"{tree / 'torch/__init__.py'} {head}"

    assert re.search(rf"passed +import: git_version +{head}", done.out), done.out
    verified = torchbuild("verify", "--source", tree, "--python", target)
    assert verified.code == 0, verified.out + verified.err
    assert re.search(rf"passed +import: git_version +{head}", verified.out)

    with (tree / "torch/__init__.py").open("a", encoding="utf-8") as file:
        file.write("\nEDITED = 41 + 1\n")
    assert run(target, "import torch; print(torch.EDITED)", tmp_path) == "42"
    assert run_git(tree, "status", "--porcelain") == "M torch/__init__.py"
    run_git(tree, "commit", "--quiet", "--all", "--message", "An edit of Python")

    again = build(tree, target, wheel)
    assert again.code == 0, again.out + again.err
    assert "Up to date" in again.err

    gone = torchbuild("clean", "--source", tree, "--python", target, "--yes")
    assert gone.code == 0, gone.out + gone.err
    run_git(tree, "reset", "--quiet", "--hard", head)
    assert listed(tree) == before
    assert folders(tree) == dirs


def test_a_native_change_is_refused_with_its_part(tree: Path, wheel: Path, target: Path) -> None:
    with (tree / "c10/core/Allocator.cpp").open("a", encoding="utf-8") as file:
        file.write("\n// changed\n")
    (tree / "aten/src/ATen/fresh.cpp").write_text("// new\n", "utf-8")
    before = listed(tree)
    done = build(tree, target, wheel)
    assert done.code == 3, done.out + done.err
    assert "reaches c10: c10/core/Allocator.cpp" in done.err
    assert "aten/src/ATen/fresh.cpp" in done.err
    assert "without --from-wheel" in done.err
    assert listed(tree) == before


def test_a_change_in_a_submodule_counts(tree: Path, wheel: Path, target: Path) -> None:
    (changed,) = list((tree / "third_party/tinyfmt").rglob("*.h"))[:1]
    changed.write_text(changed.read_text("utf-8") + "\n// changed\n", "utf-8")
    done = build(tree, target, wheel)
    assert done.code == 3, done.out + done.err
    assert "third_party/tinyfmt" in done.err


def rewrite(wheel: Path, dest: Path, edit: Callable[[str, bytes], Iterator[tuple[str, bytes]]]) -> Path:
    """Copy a wheel, member by member."""
    made = dest / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            for name, data in edit(info.filename, old.read(info)):
                new.writestr(name, data)
    return made


def cut_off(wheel: Path, dest: Path) -> Path:
    made = dest / wheel.name
    made.write_bytes(wheel.read_bytes()[:-2000])
    return made


def damaged(wheel: Path, dest: Path) -> Path:
    """One byte of the first library is another."""
    made = dest / wheel.name
    with zipfile.ZipFile(wheel) as archive:
        info = next(each for each in archive.infolist() if each.filename.startswith("torch/lib/lib"))
    data = bytearray(wheel.read_bytes())
    data[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 0xFF
    made.write_bytes(data)
    return made


def of_another_commit(wheel: Path, dest: Path) -> Path:
    def edit(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
        yield (
            name,
            b"__version__ = '1'\ngit_version = '" + b"a" * 40 + b"'\n"
            if name == "torch/version.py"
            else data,
        )

    return rewrite(wheel, dest, edit)


def out_of_its_root(wheel: Path, dest: Path) -> Path:
    def edit(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
        yield name, data
        if name == "torch/version.py":
            yield "torch/lib/../../../outside.txt", b"out"

    return rewrite(wheel, dest, edit)


def for_another_python(wheel: Path, dest: Path) -> Path:
    name, version, _, _, platform = wheel.name.split("-")
    return Path(shutil.copy(wheel, dest / f"{name}-{version}-cp38-cp38-{platform}"))


def for_another_platform(wheel: Path, dest: Path) -> Path:
    name, version, python, abi, _ = wheel.name.split("-")
    return Path(shutil.copy(wheel, dest / f"{name}-{version}-{python}-{abi}-macosx_11_0_arm64.whl"))


def without_a_wheel(wheel: Path, dest: Path) -> Path:
    return dest / "torch-9.9.9-cp311-cp311-linux_x86_64.whl"


@pytest.mark.parametrize(
    ("make", "code", "said"),
    [
        (cut_off, 12, "cut off"),
        (damaged, 12, "is broken"),
        (of_another_commit, 3, "not in this checkout's history"),
        (out_of_its_root, 12, "leaves the folder with '..'"),
        (for_another_python, 3, "it is for cp38"),
        (for_another_platform, 3, "macosx_11_0_arm64"),
        (without_a_wheel, 2, "no file, no folder"),
    ],
)
def test_a_wheel_that_cannot_serve_leaves_the_checkout_as_it_was(
    tree: Path,
    wheel: Path,
    target: Path,
    tmp_path: Path,
    make: Callable[[Path, Path], Path],
    code: int,
    said: str,
) -> None:
    before, dirs = listed(tree), folders(tree)
    (tmp_path / "bad").mkdir()
    done = build(tree, target, make(wheel, tmp_path / "bad"))
    assert done.code == code, done.out + done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert listed(tree) == before
    assert folders(tree) == dirs
    assert not (tmp_path / "outside.txt").exists()


def test_without_network_an_unknown_version_says_so(tree: Path, wheel: Path, target: Path) -> None:
    before = listed(tree)
    done = build(tree, target, "9.8.7")
    assert done.code == 10, done.out + done.err
    assert "9.8.7" in done.err
    assert listed(tree) == before


def test_files_of_somebody_else_are_not_overwritten(tree: Path, wheel: Path, target: Path) -> None:
    (tree / "torch/version.py").write_text("mine = True\n", "utf-8")
    done = build(tree, target, wheel)
    assert done.code == 9, done.out + done.err
    assert "torch/version.py" in done.err
    assert (tree / "torch/version.py").read_text("utf-8") == "mine = True\n"

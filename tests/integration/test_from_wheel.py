"""A checkout on the libraries of a wheel: nothing compiled, edits seen, undone to the last file."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tests.support.capabilities import needs_linux_compiler
from tests.support.driver import Run, torchbuild
from tests.support.sample import ERAS, Era, in_one_era, materialise, run_git
from torchbuild_tasks.build.history import history_file, write
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.store import store_folder
from torchbuild_tasks.model.history import History, PastBuild

pytestmark = [pytest.mark.integration, needs_linux_compiler]

ADD = "import torch; t = torch.tensor([1.0, 2.0]); print(torch.__file__, torch.version.git_version)"


@pytest.fixture(scope="module", params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return cast("Era", request.param)


@pytest.fixture(scope="module")
def wheel(era: Era, made_wheel: Callable[..., Path]) -> Path:
    """The sample's own wheel, built by the tool."""
    return made_wheel(era)


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


def auto(tree: Path, target: Path) -> str:
    """The line that --auto says."""
    done = torchbuild("build", "--source", tree, "--python", target, "--yes", "--auto")
    assert done.code == 0, done.out + done.err
    (line,) = [each.strip() for each in done.err.splitlines() if "auto: " in each]
    return line


def folders(tree: Path) -> set[Path]:
    skipped = {".git", ".torchbuild", "__pycache__"}
    return {path for path in tree.rglob("*") if path.is_dir() and not skipped & set(path.parts)}


def run(target: Path, code: str, cwd: Path) -> str:
    done = subprocess.run(
        [str(target), "-B", "-c", code], capture_output=True, text=True, check=False, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@in_one_era("era")
def test_a_wheel_serves_a_checkout_and_leaves_it(
    tree: Path, wheel: Path, target: Path, tmp_path: Path
) -> None:
    before, dirs = listed(tree), folders(tree)
    done = build(tree, target, wheel.parent, "--verbose")
    assert done.code == 0, done.out + done.err
    assert "were copied over the checkout" in done.err
    head = run_git(tree, "rev-parse", "HEAD")
    assert run(target, ADD, tmp_path) == f"{tree / 'torch/__init__.py'} {head}"

    assert re.search(r"\d+ passed, 0 failed", done.out), done.out
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
    # Neither flag makes it the file that the wheel was built from; a file that is left out is no change.
    run_git(tree, "update-index", "--assume-unchanged", "c10/core/Allocator.cpp")
    run_git(tree, "update-index", "--skip-worktree", "README.md", "torch/csrc/Module.cpp")
    change_binding(tree, "hidden from git")
    (tree / "README.md").unlink()
    assert run_git(tree, "status", "--porcelain") == "?? aten/src/ATen/fresh.cpp"
    before = listed(tree)
    past = PastBuild(finished="2026-01-01T00:00:00+00:00", seconds=1200.0, steps=1000)
    store = Path(store_folder(Probe(environ=dict(os.environ))))
    write(history_file(store, tree, "g++"), History(source=str(tree), builds=(past,)))
    done = build(tree, target, wheel)
    assert done.code == 3, done.out + done.err
    assert "reaches c10: c10/core/Allocator.cpp" in done.err
    assert "reaches torch_python: torch/csrc/Module.cpp" in done.err
    assert "aten/src/ATen/fresh.cpp" in done.err
    assert "To compile: the same command without --from-wheel. That takes about 20 min." in done.err
    assert listed(tree) == before


OLDER = pytest.mark.parametrize("era", ["setuptools"], indirect=True)
DOC = "import torch; print(torch._C.__doc__, torch.version.git_version)"


def change_binding(tree: Path, text: str) -> None:
    """Change a source that only torch_python is compiled from."""
    module = tree / "torch/csrc/Module.cpp"
    module.write_text(re.sub(r'("torch\._C", )"[^"]*"', rf'\1"{text}"', module.read_text("utf-8")), "utf-8")


@OLDER
def test_torch_python_alone_is_compiled_against_the_wheel(
    tree: Path, wheel: Path, target: Path, tmp_path: Path
) -> None:
    before, dirs, head = listed(tree), folders(tree), run_git(tree, "rev-parse", "HEAD")
    change_binding(tree, "of this checkout")
    refused = build(tree, target, wheel)
    assert refused.code == 3
    assert "The same command with --target torch_python compiles that alone" in refused.err

    done = build(tree, target, wheel, "--target", "torch_python")
    assert done.code == 0, done.out + done.err
    assert re.search(r"\d+ passed, 0 failed", done.out), done.out
    assert run(target, DOC, tmp_path) == f"of this checkout {head}"
    assert run_git(tree, "status", "--porcelain") == "M torch/csrc/Module.cpp"
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if name.startswith("torch/lib/")]
        unlike = [name for name in libraries if archive.read(name) != (tree / name).read_bytes()]
    assert [Path(name).name for name in unlike] == ["libtorch_python.so"]
    compiled = set((tree / "build").rglob("*.o"))
    assert compiled and all("torch_python.dir" in path.as_posix() for path in compiled)

    manifest = (tree / "build/torchbuild-manifest.json").read_bytes()
    for _ in range(2):  # the first leaves the second as it found all
        again = build(tree, target, wheel, "--target", "torch_python")
        assert again.code == 0 and "nothing was built since" in again.err, again.err
    assert (tree / "build/torchbuild-manifest.json").read_bytes() == manifest
    change_binding(tree, "of this checkout, once more")
    assert auto(tree, target).startswith("auto: mixed, about ")
    left_out = json.loads((tree / "build/torchbuild-manifest.json").read_text("utf-8"))["verify"]["left_out"]
    assert "matmul" in left_out  # as after any edit: that it computes was tried with the wheel
    assert run(target, DOC, tmp_path) == f"of this checkout, once more {head}"
    assert auto(tree, target).startswith("auto: no-op, about 2 s (")

    run_git(tree, "checkout", "--quiet", ".")
    plain = build(tree, target, wheel)  # no torch_python of our own is left
    assert plain.code == 0 and "were copied over the checkout" in plain.err, plain.err
    assert run(target, DOC, tmp_path) == f"minitorch's native half {head}"
    assert not (tree / "build/build.ninja").exists()
    gone = torchbuild("clean", "--source", tree, "--python", target, "--yes")
    assert gone.code == 0, gone.out + gone.err
    (tree / "env_set.sh").unlink()  # a compile's, and kept: it may have been sourced
    assert listed(tree) == before
    assert folders(tree) == dirs


@OLDER
def test_auto_names_what_finds_out_whether_bindings_are_compiled_alone(
    tree: Path, wheel: Path, target: Path
) -> None:
    change_binding(tree, "of this checkout")
    (tree / "dist").mkdir()
    shutil.copy(wheel, tree / "dist")
    words = ("--source", tree, "--python", target, "--auto", "--set", "CXX=/nowhere/c++")
    offers = torchbuild("build", *words)  # all are said, and none can work
    assert offers.code == 3 and "from-wheel torch/csrc/Module.cpp must be compiled" in offers.err, offers.err
    assert (
        "mixed whether its wheel was built alike is found out by torchbuild build --from-wheel auto"
        in offers.err
    )


@OLDER
@pytest.mark.slow
def test_what_is_configured_otherwise_than_the_wheel_is_refused_with_what_makes_it_alike(
    tree: Path, wheel: Path, target: Path, tmp_path: Path
) -> None:
    change_binding(tree, "of this checkout")
    words = ("--target", "torch_python", "--set")
    refused = build(tree, target, wheel, *words, "USE_DISTRIBUTED=0", "--set", "CXXFLAGS=-DOWN=1")
    assert refused.code == 3, refused.out + refused.err
    assert "USE_DISTRIBUTED: the wheel has ON, and this configuration 0" in refused.err
    assert "-DOWN=1: only this configuration is compiled with it" in refused.err
    assert "The same command with --set USE_DISTRIBUTED=1" in refused.err
    assert not list((tree / "build").rglob("*.o"))
    done = build(tree, target, wheel, *words, "USE_DISTRIBUTED=1")
    assert done.code == 0, done.out + done.err
    assert run(target, DOC, tmp_path).startswith("of this checkout")

    # What the last build noted of another wheel is not held against this one.
    manifest = tree / "build/torchbuild-manifest.json"
    noted = json.loads(manifest.read_text("utf-8"))
    noted["inputs"] |= {"wheel": "torch-another.whl 1", "wheel built with": '{"compiler": "clang 3.4"}'}
    manifest.write_text(json.dumps(noted), "utf-8")
    other = build(tree, target, wheel, *words, "USE_DISTRIBUTED=1")
    assert other.code == 0 and "were copied over the checkout" in other.err, other.out + other.err


@OLDER
@pytest.mark.slow
def test_a_binding_that_nothing_compiles_and_a_library_that_changed_are_refused(
    tree: Path, wheel: Path, target: Path
) -> None:
    change_binding(tree, "of this checkout")
    fresh = tree / "torch/csrc/Fresh.cpp"
    fresh.write_text("// new, and in no CMakeLists.txt\n", "utf-8")
    refused = build(tree, target, wheel, "--target", "torch_python")
    assert refused.code == 3, refused.out + refused.err
    assert "no step of this configuration compiles it: torch/csrc/Fresh.cpp" in refused.err
    fresh.unlink()
    with (tree / "aten/src/ATen/add.cpp").open("a", encoding="utf-8") as file:
        file.write("\n// changed\n")
    refused = build(tree, target, wheel, "--target", "torch_python")
    assert refused.code == 3, refused.out + refused.err
    assert "reaches torch_cpu: aten/src/ATen/add.cpp" in refused.err
    assert "reaches torch_python" not in refused.err


@in_one_era("era")
def test_a_change_in_a_submodule_counts(tree: Path, wheel: Path, target: Path) -> None:
    (changed,) = list((tree / "third_party/tinyfmt").rglob("*.h"))[:1]
    changed.write_text(changed.read_text("utf-8") + "\n// changed\n", "utf-8")
    done = build(tree, target, wheel)
    assert done.code == 3, done.out + done.err
    assert "third_party/tinyfmt" in done.err


@in_one_era("era")
def test_foreign_files_are_not_overwritten(tree: Path, wheel: Path, target: Path) -> None:
    (tree / "torch/version.py").write_text("mine = True\n", "utf-8")
    done = build(tree, target, wheel)
    assert done.code == 9, done.out + done.err
    assert "torch/version.py" in done.err
    assert (tree / "torch/version.py").read_text("utf-8") == "mine = True\n"


@in_one_era("era")
def test_auto_takes_the_cheapest_way_for_each_change(tree: Path, wheel: Path, target: Path) -> None:
    (tree / "dist").mkdir()
    shutil.copy(wheel, tree / "dist")
    assert auto(tree, target).startswith("auto: from-wheel, about")
    with (tree / "torch/__init__.py").open("a", encoding="utf-8") as file:
        file.write("\nEDITED = 41 + 1\n")
    assert auto(tree, target).startswith("auto: no-op, about")
    with (tree / "c10/core/Allocator.cpp").open("a", encoding="utf-8") as file:
        file.write("\n// changed\n")
    compiled = auto(tree, target)
    assert compiled.startswith("auto: front end, ")
    assert "from-wheel c10/core/Allocator.cpp must be compiled" in compiled
    assert auto(tree, target).startswith("auto: no-op, about")
    with (tree / "c10/core/Allocator.cpp").open("a", encoding="utf-8") as file:
        file.write("\n// changed again\n")
    again = auto(tree, target)
    assert "ninja install" in again and "from-wheel this checkout has a build of its own" in again


@in_one_era("era")
def test_a_plan_names_the_wheel_and_what_stands_against_it(tree: Path, wheel: Path, target: Path) -> None:
    words = ("plan", "--source", tree, "--python", target, "--json", "--from-wheel", wheel)
    before = listed(tree)
    plan = torchbuild(*words).json
    assert (plan["verdict"], plan["way"]["name"]) == ("ok", "from-wheel")
    (choice,) = [each for each in plan["choices"] if each["name"] == "wheel"]
    assert choice["value"] == str(wheel)
    with (tree / "c10/core/Allocator.cpp").open("a", encoding="utf-8") as file:
        file.write("\n// changed\n")
    refused = torchbuild(*words)
    assert refused.code == 3
    assert any("reaches c10" in each["text"] for each in refused.json["findings"])
    run_git(tree, "checkout", "--quiet", ".")
    assert listed(tree) == before


def stand_ins(folder: Path) -> Path:
    """Make a folder of empty wheels: the requirements of torchvision other than torch."""
    folder.mkdir()
    for name, version in (("pillow", "11.0.0"), ("requests", "2.32.0"), ("packaging", "24.0")):
        info = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as made:
            made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            made.writestr(f"{info}/RECORD", "")
    return folder


BESIDE = """\
import os
from setuptools import setup
import torch
setup(name="{name}", version="0.1", packages=["{name}"])
"""


@pytest.mark.parametrize("era", ["setuptools"], indirect=True)
@pytest.mark.slow
def test_the_same_command_goes_on_after_one_that_is_built_with_it_failed(
    tree: Path, wheel: Path, target: Path, tmp_path: Path
) -> None:
    words = ["--wheels", str(stand_ins(tmp_path / "wheels"))]
    for name in ("torchvision", "torchaudio"):
        (tmp_path / name / name).mkdir(parents=True)
        (tmp_path / name / name / "__init__.py").write_text("import torch\n", "utf-8")
        (tmp_path / name / "setup.py").write_text(BESIDE.format(name=name), "utf-8")
        words += ["--with", f"{name}={tmp_path / name}"]
    setup = tmp_path / "torchaudio" / "setup.py"
    whole = setup.read_text("utf-8")
    setup.write_text(whole + "raise SystemExit('fatal error: sox.h: No such file or directory')\n", "utf-8")
    try:
        failed = build(tree, target, wheel, *words)
        assert failed.code == 6, failed.out + failed.err
        assert "torchvision is built against" in failed.err and "fatal error: sox.h" in failed.err
        setup.write_text(whole, "utf-8")
        done = build(tree, target, wheel, *words)
        assert done.code == 0, done.out + done.err
        assert "the files of this wheel are in place, unchanged" in done.err
        assert "torchvision: built for this torch and verified before" in done.err
        assert "torchaudio is built against" in done.err
        again = build(tree, target, wheel, *words)
        assert again.code == 0 and "torchvision, torchaudio: built for this torch" in again.err, again.err
    finally:
        gone = [str(target), "-m", "pip", "uninstall", "-q", "-y", "torchvision", "torchaudio", "pillow"]
        subprocess.run(gone, check=True)

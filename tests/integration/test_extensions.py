"""Extensions of each build style and a real torch: built against it, installed, or refused as a whole.

TORCHBUILD_TEST_TORCH names a venv of Python 3.11 that has torch 2.13.0 for CPUs, setuptools, wheel, ninja,
cmake and scikit-build-core; without it one is made, which downloads torch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs_linux_compiler
from tests.support.extensions import Telling, cmake_extension, setuptools_extension, stable_extension
from tests.support.machines import ask, linux_facts, plan_of, with_tree
from tests.support.preflight import ledger_of
from torchbuild_tasks.build.work import Fetching, Work
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import BuildFailed, RequirementsError
from torchbuild_tasks.features.companions.act import build_companions, fetch_companions
from torchbuild_tasks.features.companions.choose import choose_companions
from torchbuild_tasks.features.companions.look import with_companions
from torchbuild_tasks.model import Environment
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.values import replace
from torchbuild_tasks.verify.torch_probe import COMPANION_CHECKS

VERSION = "2.13.0"
PACKAGES = (f"torch=={VERSION}", "numpy", "setuptools", "wheel", "ninja", "cmake", "scikit-build-core")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    needs_linux_compiler,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason=f"torch {VERSION} is kept for Python 3.11"),
]


@pytest.fixture(scope="module")
def torch_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("TORCHBUILD_TEST_TORCH"):
        return Path(given)
    venv = tmp_path_factory.mktemp("torch") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", *PACKAGES]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"torch {VERSION} cannot be installed here: {done.stderr.strip()[-300:]}")
    return venv


@pytest.fixture(scope="module")
def python(torch_venv: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A venv of its own that borrows torch, so that the other stays as it is."""
    venv = tmp_path_factory.mktemp("borrows") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    site = "lib/python3.11/site-packages"
    (venv / site / "borrowed.pth").write_text(f"{torch_venv / site}\n")
    return str(venv / "bin/python")


def build(
    root: Path, python: str, word: str, environ: Mapping[str, str] | None = None, *, cuda: bool = False
) -> tuple[Work, Telling]:
    """Run both stages for one value of --with-extension."""
    flags: dict[str, Any] = {"with_extension": (word,), "jobs": 2, "cuda": cuda}
    facts = with_tree(linux_facts(), root=str(root), version=VERSION)
    facts = with_companions(facts, (), (word,), load_catalog())
    plan = replace(
        plan_of(facts),
        source=str(root),
        build_dir=str(root / "build"),
        environment=Environment(python=python, version="3.11.7"),
        companions=choose_companions(ask(facts, **flags), python),
        expectations=tuple(
            each for each in plan_of(facts, **flags).expectations if each.check in COMPANION_CHECKS
        ),
    )
    request, said = BuildRequest(with_extension=(word,)), Telling()
    programs = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    work = Work(
        question=Question(request, facts, load_catalog()),
        plan=plan,
        report=said,
        ledger=ledger_of(request, facts, plan, root),
        fetching=Fetching(store=root, lock_file=root / "lock", net=Net(), require_hashes=False),
        environ={**os.environ, "PATH": programs, **(environ or {})},
    )
    with work.ledger:
        return build_companions(fetch_companions(work)), said


def run(python: str, code: str) -> str:
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def has(python: str, name: str) -> bool:
    return run(python, f"import importlib.util as u; print(u.find_spec({name!r}) is not None)") == "True"


def outcomes(work: Work) -> dict[str, str]:
    assert work.verified is not None
    return {row.check: row.outcome for row in work.verified.checks}


MULADD = "import torch, {0}; print(torch.ops.{0}.muladd(torch.tensor(3.), torch.tensor(2.)).item())"


def test_one_of_cpp_extension_is_built_and_computes(python: str, tmp_path: Path) -> None:
    source = setuptools_extension(tmp_path / "plain_ext", "plain_ext", '["torch>=2.0"]')
    work, said = build(tmp_path, python, str(source))
    assert outcomes(work)["extension: plain_ext"] == "passed"
    assert run(python, MULADD.format("plain_ext")) == "7.0"
    assert any("1.0 is installed; its wheel" in note for note in said.notes)


def test_one_of_scikit_build_core_finds_torch_by_cmake(python: str, tmp_path: Path) -> None:
    """What its build asks of torch counts for nothing: without isolation the build has this one."""
    source = cmake_extension(tmp_path / "cmake_ext", "cmake_ext")
    work, _ = build(tmp_path, python, f"cmake_ext={source}")
    assert outcomes(work)["extension: cmake_ext"] == "passed"
    assert run(python, MULADD.format("cmake_ext")) == "7.0"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not here")
def test_its_kernels_are_compiled_for_the_architectures_of_torch(python: str, tmp_path: Path) -> None:
    """Beside a torch for CPUs: only what CMake and nvcc make of the list can be seen here."""
    source = cmake_extension(tmp_path / "cuda_ext", "cuda_ext", cuda=True)
    build(tmp_path, python, str(source), {"TORCH_CUDA_ARCH_LIST": "8.6;9.0+PTX"})
    place = run(python, "import torch, cuda_ext; print(cuda_ext._C.__file__)")
    code = Path(place).read_bytes()
    assert b"sm_86" in code and b"sm_90" in code


def test_one_of_the_stable_abi_is_one_wheel_for_many(python: str, tmp_path: Path) -> None:
    source = stable_extension(tmp_path / "stable_ext", "stable_ext")
    work, _ = build(tmp_path, python, str(source))
    (wheel,) = Path(work.plan.companions[0].wheels).glob("*.whl")
    assert "-cp39-abi3-" in wheel.name
    code = "import torch, stable_ext; print(torch.ops.stable_ext.dimensions(torch.zeros(2, 3)))"
    assert run(python, code) == "2"


def asking_for(folder: Path, name: str, requirement: str) -> Path:
    """An extension whose setup.py asks for something."""
    setup = f'from setuptools import setup\nsetup(name="{name}", version="1.0", packages=["{name}"], '
    setup += f'install_requires=["{requirement}"])\n'
    return setuptools_extension(folder / name, name, setup_py=setup)


def test_one_that_wants_another_torch_is_refused_and_nothing_is_replaced(python: str, tmp_path: Path) -> None:
    """Its setup.py says so, which no file shows before it is built."""
    source = asking_for(tmp_path, "pinned_ext", "torch==2.9.0")
    with pytest.raises(RequirementsError) as refused:
        build(tmp_path, python, str(source))
    assert "asks for torch==2.9.0, and this torch is 2.13.0" in refused.value.what
    assert not has(python, "pinned_ext")
    assert run(python, "import torch; print(torch.__version__)").startswith(VERSION)


def test_what_wants_another_torch_through_a_dependency_is_refused(python: str, tmp_path: Path) -> None:
    """pip is constrained to this torch, and torchvision 0.23.0 requires torch 2.8.0."""
    source = asking_for(tmp_path, "far_ext", "torchvision==0.23.0")
    with pytest.raises(RequirementsError):
        build(tmp_path, python, str(source))
    assert not has(python, "far_ext")
    assert run(python, "import torch; print(torch.__version__)").startswith(VERSION)


def test_a_symbol_that_this_torch_lacks_is_named_before_it_is_imported(python: str, tmp_path: Path) -> None:
    op = "#include <cstdint>\nnamespace c10 { void gone_long_ago(int64_t); }\n"
    op += 'extern "C" void call() { c10::gone_long_ago(1); }\n'
    source = setuptools_extension(tmp_path / "old_ext", "old_ext", op_cpp=op)
    with pytest.raises(BuildFailed) as refused:
        build(tmp_path, python, str(source))
    assert "needs symbols that torch 2.13.0" in refused.value.what
    assert any("gone_long_ago" in line for line in refused.value.looked)
    assert not has(python, "old_ext")


def test_one_whose_import_fails_is_not_installed(python: str, tmp_path: Path) -> None:
    setup = 'from setuptools import setup\nsetup(name="bad_ext", version="1.0", packages=["bad_ext"])\n'
    source = setuptools_extension(tmp_path / "bad_ext", "bad_ext", setup_py=setup)
    with pytest.raises(BuildFailed) as refused:  # there is no bad_ext._C
        build(tmp_path, python, str(source))
    assert "cannot be imported" in refused.value.what
    assert any("_C" in line for line in refused.value.looked)
    assert not has(python, "bad_ext")


def test_without_a_compiler_the_build_says_so(python: str, tmp_path: Path) -> None:
    source = setuptools_extension(tmp_path / "bare_ext", "bare_ext")
    nothing = {"PATH": str(tmp_path), "CC": "", "CXX": ""}
    with pytest.raises(BuildFailed) as refused:
        build(tmp_path, python, str(source), nothing)
    assert any("compiler" in line or "g++" in line or "c++" in line for line in refused.value.looked)


def test_a_real_project_comes_from_the_index_and_computes(python: str, tmp_path: Path) -> None:
    """One file of C++; with an nvcc on PATH it would have kernels, too, which need a torch with CUDA."""
    plain = {"PATH": f"{Path(python).parent}:/usr/bin:/bin"}
    work, _ = build(tmp_path, python, "torchsort==0.1.10", plain)
    assert outcomes(work)["extension: torchsort"] == "passed"
    code = "import torch, torchsort; x = torch.tensor([[8., 0., 5., 3.]]); "
    code += "print(torchsort.soft_rank(x, regularization_strength=0.1).tolist())"
    assert run(python, code) == "[[4.0, 1.0, 3.0, 2.0]]"

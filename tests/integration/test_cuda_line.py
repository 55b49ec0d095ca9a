"""All steps with CUDA: the sample's kernel by a real nvcc, in both eras, without any GPU.

One era has the toolkit of the machine (skipped where there is none), the other one that is put
together from NVIDIA's wheels; with --slow each era has both.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.capabilities import needs_linux_compiler, skip_without
from tests.support.driver import Run, torchbuild
from tests.support.sample import Era, materialise

pytestmark = [pytest.mark.integration, needs_linux_compiler]

SYSTEM, MADE = "system", "pypi:13.0"
LINES = [
    pytest.param(("setuptools", SYSTEM), id="setuptools-system", marks=pytest.mark.slow),
    pytest.param(("scikit-build-core", MADE), id="scikit-build-core-made"),
    pytest.param(("setuptools", MADE), id="setuptools-made", marks=pytest.mark.slow),
    pytest.param(("scikit-build-core", SYSTEM), id="scikit-build-core-system", marks=pytest.mark.slow),
]
ARCHS = "8.6;9.0+PTX"
# What goes the same way in both eras: a quick run has it with the toolkit that no machine lacks.
FIRST = pytest.param(*LINES[0].values, id=LINES[0].id, marks=pytest.mark.slow)
IN_ONE_ERA = pytest.mark.parametrize("line", [FIRST, *LINES[1:]], indirect=True)


class CudaLine:
    """A copy of the sample, the Python that gets its torch, and the toolkit that it is built with."""

    def __init__(self, tree: Path, python: Path, store: Path, toolkit: str) -> None:
        self.tree, self.python, self.store = tree, python, store
        self.words = ["--cuda", *(["--cuda-toolkit", toolkit] if toolkit != SYSTEM else [])]

    def __call__(self, verb: str, *words: str, environ: dict[str, str] | None = None) -> Run:
        place = ("--source", str(self.tree), "--python", str(self.python))
        return torchbuild(
            verb,
            *(*place, *self.words, *words),
            environ={"TORCHBUILD_CACHE": str(self.store), **(environ or {})},
            timeout=900,
        )

    def torch(self, expression: str) -> str:
        """Return the value of an expression on the built torch, evaluated in another folder."""
        argv = [str(self.python), "-I", "-c", f"import torch; print({expression})"]
        done = subprocess.run(argv, cwd=self.tree.parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def codes(self) -> set[str]:
        """What the library with the kernel holds, by cuobjdump."""
        # Beside the one that was linked may be an installed one.
        library, *_ = sorted((self.tree / "build").rglob("libtorch_cuda.so"))
        program = next(self.store.glob("unpacked/*cuobjdump*/nvidia/*/bin/cuobjdump"))
        done = subprocess.run(
            [str(program), "--list-elf", "--list-ptx", str(library)],
            capture_output=True,
            text=True,
            check=True,
        )
        lines = [line.split() for line in done.stdout.splitlines() if " file " in line]
        return {f"{words[0]} {words[-1].split('.')[-2]}" for words in lines}

    @property
    def record(self) -> Any:
        return json.loads((self.tree / "build/torchbuild-manifest.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache of downloads for all lines."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module", params=LINES)
def line(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, target: Path, store: Path
) -> Iterator[CudaLine]:
    """The sample with CUDA, built once; the tests of this module go on from there in their order."""
    era, toolkit = cast(tuple[Era, str], request.param)
    if toolkit == SYSTEM and not shutil.which("nvcc"):
        skip_without("nvcc")
    version = "2.10.0a0" if era == "setuptools" else None  # before 2.9 no torch compiles with CUDA 13
    tree = materialise(tmp_path_factory.mktemp(era) / "minitorch", era=era, version=version)
    line = CudaLine(tree, target, store, toolkit)
    done = line("build", "--yes", "--arch", ARCHS, "--with-helper", "cuobjdump")
    assert done.code == 0, done.out + done.err
    assert "0 failed" in done.out
    assert "Pre-flight" in done.err
    yield line
    subprocess.run([str(target), "-m", "pip", "uninstall", "-q", "-y", "torch"], check=True)


def test_the_toolkit_is_the_one_requested(line: CudaLine) -> None:
    (choice,) = [c for c in line.record["choices"] if c["name"] == "CUDA toolkit"]
    made = str(line.store / "toolkits")
    assert choice["value"].startswith(made) == (MADE in line.words)
    cache = (line.tree / "build/CMakeCache.txt").read_text("utf-8")
    assert f"CMAKE_CUDA_COMPILER:FILEPATH={choice['value']}/bin/nvcc" in cache or (
        f"={choice['value']}/bin/nvcc" in cache
    )


def test_the_library_holds_the_planned_architectures(line: CudaLine) -> None:
    assert line.codes() == {"ELF sm_86", "ELF sm_90", "PTX sm_90"}
    assert line.torch("torch._C._cuda_getArchFlags()") == "sm_86 sm_90 compute_90"


def test_it_is_verified_as_far_as_a_machine_allows(line: CudaLine) -> None:
    checks = {check["check"]: check for check in line.record["verify"]["checks"]}
    assert checks["cuda_arch_list: arch_list"]["outcome"] == "passed"
    assert checks["config: USE_CUDA"]["outcome"] == "passed"
    assert line.torch("torch.version.cuda") != "None"


def test_an_unchanged_tree_is_up_to_date_without_a_pre_flight(line: CudaLine) -> None:
    done = line("build", "--arch", ARCHS, "--with-helper", "cuobjdump")
    assert done.code == 0, done.err
    assert "Up to date" in done.err
    assert "Pre-flight" not in done.err


@IN_ONE_ERA
def test_other_architectures_reach_nvcc(line: CudaLine) -> None:
    """PyTorch's own build would go on with the cached list in both eras."""
    plan = line("plan", "--arch", "8.0", "--with-helper", "cuobjdump", "--json").json
    assert plan["freshness"]["needs"] == "reconfigure"
    done = line("build", "--arch", "8.0", "--with-helper", "cuobjdump", "--no-preflight")  # the first had one
    assert done.code == 0, done.out + done.err
    assert line.codes() == {"ELF sm_80"}


def test_a_host_compiler_that_does_not_run_is_known_in_seconds(line: CudaLine, tmp_path: Path) -> None:
    broken = tmp_path / "g++-broken"
    broken.write_text("#!/bin/sh\necho 'g++-broken: no such luck' >&2\nexit 1\n", "utf-8")
    broken.chmod(0o755)
    done = line("build", "--arch", "8.0", "--set", f"CUDAHOSTCXX={broken}", "--yes")
    assert done.code == 13, done.out + done.err
    assert "cannot run its host compiler" in done.err
    assert "== compile" not in done.err


@IN_ONE_ERA
@pytest.mark.slow
def test_back_to_a_cpu_build(line: CudaLine) -> None:
    line.words = ["--cpu"]
    done = line("build", "--clean")
    assert done.code == 0, done.out + done.err
    assert line.torch("torch.version.cuda") == "None"

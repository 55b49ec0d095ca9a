"""The verification against a real torch, sound and deliberately broken.

TORCHBUILD_TEST_TORCH names a venv of Python 3.11 that has torch 2.13.0, numpy, setuptools
and ninja; without it one is made, which downloads torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.capabilities import needs_symlinks
from tests.support.pretended_gpu import PRETENDED_GPU
from torchbuild_tasks.model import Expectation
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.verify import session
from torchbuild_tasks.verify.torch_probe import CPU_CHECKS, CUDA_CHECKS

VERSION = "2.13.0"
PACKAGES = (f"torch=={VERSION}", "numpy", "setuptools", "ninja")
QUICK = tuple(name for name in CPU_CHECKS if name not in ("cpp_extension", "cmake_consumer"))  # minutes less

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    needs_symlinks,  # the broken copies are made of them
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason=f"torch {VERSION} is kept for Python 3.11"),
]

Broken = Callable[[str], str]


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a venv that has the real torch."""
    given = os.environ.get("TORCHBUILD_TEST_TORCH")
    if given:
        return Path(given)
    venv = tmp_path_factory.mktemp("torch") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"torch {VERSION} cannot be installed here: {done.stderr.strip()[-300:]}")
    return venv


def site_of(venv: Path) -> Path:
    return venv / "lib" / "python3.11" / "site-packages"


@pytest.fixture
def another(sound: Path, tmp_path: Path) -> Path:
    """Give a venv that borrows the packages of the sound one, after its own."""
    venv = tmp_path / "venv"
    python = str(sound / "bin" / "python")
    subprocess.run([python, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site_of(venv) / "borrowed.pth").write_text(f"{site_of(sound)}\n")
    return venv


@pytest.fixture
def broken(another: Path) -> Broken:
    """Give a Python whose torch is changed by `code` at start-up; -I still reads .pth files."""

    def make(code: str) -> str:
        (site_of(another) / "spoil.py").write_text(f"import torch\n{code}\n")
        (site_of(another) / "spoil.pth").write_text("import spoil\n")
        return str(another / "bin" / "python")

    return make


def verify(python: str, *expectations: Expectation, environ: Mapping[str, str] = os.environ) -> VerifyReport:
    return session.verify(python=python, expectations=expectations, environ=environ)


def passing(names: tuple[str, ...]) -> list[Expectation]:
    return [Expectation(check=name) for name in names]


def failures(report: VerifyReport) -> dict[str, str]:
    return {row.check: row.detail for row in report.checks if row.outcome != "passed"}


# ---------------------------------------------------------------- a sound torch


def test_a_sound_torch_passes_every_check(sound: Path) -> None:
    promised = {
        ("import", "inside"): str(sound),
        ("import", "extension_inside"): str(sound),
        ("import", "version"): VERSION,
        ("import", "distribution"): VERSION,
        ("import", "debug"): "0",
        ("config", "BUILD_TYPE"): "Release",
        ("config", "TORCH_VERSION"): VERSION,
        ("config", "USE_OPENMP"): "1",
        ("config", "USE_MPI"): "0",
        ("config", "lapack"): "1",
        ("numpy", "built_with"): "1",
    }
    parts = [Expectation(check=check, key=key, wanted=text) for (check, key), text in promised.items()]
    report = verify(str(sound / "bin" / "python"), *passing(CPU_CHECKS), *parts)
    assert failures(report) == {}
    assert len(report.checks) == len(CPU_CHECKS) + len(promised)
    assert len(report.torch["git_version"]) == 40
    assert int(report.torch["threads"]) > 0


@pytest.mark.parametrize(
    ("key", "wanted"), [("version", "2.12.0"), ("version", "2.13.0+mine"), ("inside", "/opt/src/pytorch")]
)
def test_another_torch_than_the_planned_one(sound: Path, key: str, wanted: str) -> None:
    expectation = Expectation(check="import", key=key, wanted=wanted)
    failed = failures(verify(str(sound / "bin" / "python"), *passing(("matmul",)), expectation))
    assert list(failed) == [f"import: {key}"]
    assert wanted in failed[f"import: {key}"]


def test_a_compiler_that_does_not_compile(sound: Path) -> None:
    environ = {**os.environ, "CXX": "false"}
    names = ("import", "conv", "cpp_extension")
    failed = failures(verify(str(sound / "bin" / "python"), *passing(names), environ=environ))
    assert list(failed) == ["cpp_extension"]


# ---------------------------------------------------------------- broken ones

SPOILED = {
    "matmul": """
true = torch.matmul
torch.matmul = lambda a, b: true(a, b) + 1e-3
""",
    "threads": """
true = torch.Tensor.__add__
def add(self, other):
    wrong = torch.get_num_threads() > 1 and self.shape == (192, 192)
    return torch.add(true(self, other), 1e-3 if wrong else 0.0)
torch.Tensor.__add__ = add
""",
    "autograd": """
class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x.sinh() / x.cosh()
    @staticmethod
    def backward(context, gradient):
        return 0.999 * gradient / context.saved_tensors[0].cosh() ** 2
torch.tanh = Tanh.apply
""",
    "linalg": """
def svd(*args, **more):
    raise RuntimeError("Calling torch.linalg.svd on a CPU tensor requires compiling PyTorch with LAPACK.")
torch.linalg.svd = svd
""",
    "conv": """
true = torch.nn.functional.conv2d
torch.nn.functional.conv2d = lambda *args, **more: true(*args, **more) + 1e-2
""",
    "save_load": """
true = torch.load
def load(*args, **more):
    state = true(*args, **more)
    state["weight"][0, 0] += 1e-6
    return state
torch.load = load
""",
    "numpy": """
torch.from_numpy = torch.tensor
""",
}


@pytest.mark.parametrize("check", SPOILED)
def test_what_is_broken_fails_and_nothing_else(broken: Broken, check: str) -> None:
    failed = failures(verify(broken(SPOILED[check]), *passing(QUICK)))
    assert list(failed) == [check], failed


def test_torchs_own_message_is_kept(broken: Broken) -> None:
    failed = failures(verify(broken(SPOILED["linalg"]), *passing(("linalg",))))
    assert failed["linalg"].startswith("RuntimeError: Calling torch.linalg.svd on a CPU tensor requires")


def test_a_crash_inside_torch_costs_one_check(broken: Broken) -> None:
    python = broken("import ctypes\ntorch.nn.functional.conv2d = lambda *args, **more: ctypes.string_at(1)")
    failed = failures(verify(python, *passing(QUICK)))
    assert list(failed) == ["conv"]
    assert "died by signal 11 (Segmentation fault) during conv" in failed["conv"]


def test_a_library_is_missing(sound: Path, another: Path) -> None:
    torch, copy = site_of(sound) / "torch", site_of(another) / "torch"
    (copy / "lib").mkdir(parents=True)
    for folder in (Path(), Path("lib")):
        for entry in (torch / folder).iterdir():
            if entry.name not in ("lib", "libtorch_cpu.so"):
                (copy / folder / entry.name).symlink_to(entry)
    failed = failures(verify(str(another / "bin" / "python"), *passing(QUICK)))
    assert "libtorch_cpu.so: cannot open shared object file" in failed.pop("import")
    assert failed == dict.fromkeys(QUICK[1:], "torch could not be imported")


def test_no_numpy_is_no_fault_of_torch(broken: Broken) -> None:
    python = broken("import sys\nsys.modules['numpy'] = None")
    report = verify(python, *passing(QUICK))
    assert [(row.check, row.outcome) for row in report.checks if row.outcome != "passed"] == [
        ("numpy", "not possible")
    ]


# ---------------------------------------------------------------- a CUDA torch was promised


def test_a_cpu_torch_is_no_cuda_torch(sound: Path) -> None:
    promised = {
        ("import", "cuda"): "13.0",
        ("config", "USE_CUDA"): "1",
        ("cuda_arch_list", "arch_list"): "sm_86 compute_86",
    }
    parts = [Expectation(check=check, key=key, wanted=text) for (check, key), text in promised.items()]
    report = verify(str(sound / "bin" / "python"), *passing(CUDA_CHECKS), *parts)
    rows = {row.check: row for row in report.checks}
    assert {name: row.detail for name, row in rows.items() if row.outcome == "failed"} == {
        "import: cuda": "None, wanted 13.0",
        "config: USE_CUDA": "0, wanted 1",
        "cuda_available": "this torch was built without CUDA",
    }
    passed = [name for name, row in rows.items() if row.outcome == "passed"]
    assert passed == ["import"]
    assert {row.detail for row in rows.values() if row.outcome == "not possible"} == {
        "not tried, because of cuda_available: this torch was built without CUDA",
        "cuda_arch_list not possible: "
        "not tried, because of cuda_available: this torch was built without CUDA",
    }


ALONE = ("cuda_peer", "nccl")  # not possible with one GPU


def test_the_checks_of_a_cuda_torch_agree_with_the_cpu(broken: Broken) -> None:
    report = verify(broken(PRETENDED_GPU), *passing(CUDA_CHECKS))
    failed = failures(report)
    assert failed.pop("cuda_driver").startswith("the driver cannot be asked without torch: ")
    assert failed == {
        "cuda_peer": "there is one GPU only",
        "nccl": "NCCL 2.29.7: there is one GPU only",
    }
    assert report.torch["devices"] == "0: Pretended (9.0, 16.0 GiB)"
    assert report.torch["arch_list"] == "sm_80 sm_90 compute_90"
    assert (report.torch["cudnn"], report.torch["nccl"], report.torch["magma"]) == ("9.20.0", "2.29.7", "ON")


def test_several_gpus(broken: Broken) -> None:
    report = verify(broken(PRETENDED_GPU + "\nCOUNT = 3"), *passing(ALONE))
    rows = {row.check: (row.outcome, row.detail) for row in report.checks}
    assert rows["cuda_peer"] == ("passed", "copies between 3 GPUs; peer access: 0-1 0-2 1-2")
    assert rows["nccl"][0] == "passed"
    assert "sum on GPU 2 off by 0.0e+00" in rows["nccl"][1]


# As torch 2.11.0 with CUDA 13.0 on a real GPU: svd is cuSOLVER's, mixed up, where MAGMA is preferred.
SVD_HANDED_ON = """
import warnings
true_svd = torch.linalg.svd
def svd(*args, **more):
    u, s, vh = true_svd(*args, **more)
    if preferred[-1:] != ["magma"]:
        return u, s, vh
    warnings.warn("linalg.svd: MAGMA, as a backend, is deprecated. It will try cuSOLVER instead.")
    return u, s, vh.t()
torch.linalg.svd = svd
"""


def test_a_function_that_magma_no_longer_makes_fails_no_torch(broken: Broken) -> None:
    report = verify(broken(PRETENDED_GPU + SVD_HANDED_ON), *passing(("cuda_linalg",)))
    (row,) = [row for row in report.checks if row.check == "cuda_linalg"]
    assert row.outcome == "passed", row.detail
    assert "svd is left to the other library; eigh off by" in row.detail


# What is broken, and which checks notice.
SPOILED_GPU = {
    "torch.Tensor.__matmul__ = lambda a, b: torch.matmul(a, b) + 1e-2": (
        *("cuda_matmul", "cuda_linalg", "cuda_streams"),
    ),
    "true_bmm = torch.bmm\ntorch.bmm = lambda a, b: true_bmm(a, b) * 1.1": ("cublas",),
    "true_svd = torch.linalg.svd\n"
    "torch.linalg.svd = lambda *a, **m: [part * (1 + 1e-6) for part in true_svd(*a, **m)]": ("cuda_linalg",),
    "torch.empty = lambda *size, **more: true_empty(0)": ("cuda_oom",),
    "torch.cuda.memory_allocated = iter(range(9)).__next__": ("cuda_oom",),
    "torch.Tensor.is_pinned = lambda self: False": ("cuda_pinned",),
    "Event.elapsed_time = lambda self, end: -1.0": ("cuda_streams",),
    "torch.autocast = lambda device, dtype: contextlib.nullcontext()": ("cuda_amp",),
    "torch.amp.GradScaler.step = lambda self, descent: descent.step()": ("cuda_amp",),
    "torch.backends.cudnn.version = lambda: int('cuDNN of another version')": ("cudnn",),
    "torch._C._cuda_getArchFlags = lambda: 'sm_80 sm_86'": ("cuda_arch_list",),
    "torch.cuda.device_count = lambda: 0": ("cuda_devices",),
    "there = lambda device: 'cpu' if str(device).startswith('cuda') else device": ("cuda_exceptions",),
    "class CudnnOff:\n    version, enabled, allow_tf32 = lambda self: 92000, False, False\n"
    "torch.backends.cudnn = CudnnOff()": ("cudnn",),
}


@pytest.mark.parametrize("code", SPOILED_GPU, ids=lambda code: code[:40])
def test_what_is_broken_on_the_gpu_fails_and_nothing_else(broken: Broken, code: str) -> None:
    report = verify(broken(f"{PRETENDED_GPU}\n{code}\n"), *passing(CUDA_CHECKS))
    failed = tuple(row.check for row in report.checks if row.outcome == "failed")
    assert failed == SPOILED_GPU[code], failures(report)

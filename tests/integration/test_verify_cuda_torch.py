"""The verification against a real CUDA torch, on a machine without a GPU.

TORCHBUILD_TEST_CUDA_TORCH names a venv that has one, with the libraries it needs: torch 2.13.0
from PyPI with its NVIDIA wheels takes 5 GB, so it is not installed for the test.
The driver is one of our own that answers as it is told; torch and its CUDA runtime are real.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.capabilities import needs, needs_gcc, needs_posix_paths
from tests.support.fake_driver import build, environ_with
from torchbuild_tasks.model import Expectation
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.verify import session
from torchbuild_tasks.verify.torch_probe import CUDA_CHECKS

VENV = os.environ.get("TORCHBUILD_TEST_CUDA_TORCH", "")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    needs(bool(VENV), "CUDA torch (TORCHBUILD_TEST_CUDA_TORCH)"),
    needs(not Path("/dev/nvidiactl").exists(), "machine without an NVIDIA driver"),
    needs_posix_paths,
]


def verify(environ: dict[str, str], *more: Expectation) -> VerifyReport:
    python = str(Path(VENV) / "bin" / "python")
    expected = [*(Expectation(check=name) for name in CUDA_CHECKS), *more]
    return session.verify(python=python, expectations=expected, environ=environ)


def rows_of(report: VerifyReport) -> dict[str, tuple[str, str]]:
    return {row.check: (row.outcome, row.detail) for row in report.checks}


def test_without_a_driver() -> None:
    report = verify(dict(os.environ))
    rows = rows_of(report)
    assert [name for name, row in rows.items() if row[0] == "passed"] == ["import", "cuda_exceptions"]
    assert not [name for name, row in rows.items() if row[0] == "failed"]
    assert rows["cuda_available"][1].startswith("the driver's library libcuda.so.1 cannot be loaded. Install")
    assert "RuntimeError: Found no NVIDIA driver" in rows["cuda_exceptions"][1]
    assert report.torch["runtime"] == report.torch["cuda"]
    assert report.torch["arch_list"].startswith("sm_")
    assert {"cudnn", "nccl", "magma"} <= set(report.torch)


def test_the_planned_architectures_are_compared_with_it_without_a_gpu() -> None:
    archs = verify(dict(os.environ)).torch["arch_list"].split()
    turned = Expectation(check="cuda_arch_list", key="arch_list", wanted=" ".join(reversed(archs)))
    less = Expectation(check="cuda_arch_list", key="arch_list", wanted=" ".join(archs[1:]))
    assert rows_of(verify(dict(os.environ), turned))["cuda_arch_list: arch_list"][0] == "passed"
    outcome, detail = rows_of(verify(dict(os.environ), less))["cuda_arch_list: arch_list"]
    assert (outcome, detail.endswith(f"; with {archs[0]}")) == ("failed", True)


@needs_gcc
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"FAKE_CODE": 34}, "error 34: the libcuda.so.1 that was loaded is the toolkit's stub"),
        ({"FAKE_CODE": 46}, "error 46: all GPUs are in use by others"),
        ({"FAKE_CODE": 100}, "error 100: the driver sees no GPU"),
        ({"FAKE_CODE": 802}, "error 802: the system is not yet initialised"),
        (
            {"FAKE_CODE": 803},
            "error 803: the driver's library and its kernel module are of different versions",
        ),
        ({"FAKE_CODE": 804}, "error 804: a newer driver library runs on an older kernel module"),
        ({"FAKE_CODE": 999}, "error 999: the driver gives no reason"),
        ({"FAKE_CODE": 77}, "error 77: Unexpected error from cudaGetDeviceCount()"),
        ({"FAKE_CODE": 100, "CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES is '', which leaves no GPU"),
        (
            {"FAKE_CODE": 100, "FAKE_CUDA": 10010},
            "error 35: the driver is too old for the CUDA of this torch",
        ),
    ],
)
def test_what_the_driver_answers(tmp_path: Path, said: dict[str, str | int], words: str) -> None:
    rows = rows_of(verify(environ_with(build(tmp_path), os.environ, **said)))
    assert rows["cuda_available"][0] == "not possible"
    assert rows["cuda_available"][1].startswith(words)
    assert rows["cuda_exceptions"][0] == "passed"
    possible = {"import", "cuda_available", "cuda_arch_list", "cuda_exceptions"}
    rest = {row for name, row in rows.items() if name not in possible}
    assert len(rest) == 1
    outcome, reason = rest.pop()
    assert outcome == "not possible"
    assert reason.startswith(f"no GPU can be used: {words[:20]}")


@needs_gcc
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("hang", "no answer for too long during cuda_available: it is the driver that does not answer"),
        ("crash", "died by signal 6 (Aborted) during cuda_available"),
    ],
)
def test_a_driver_that_hangs_or_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, words: str
) -> None:
    monkeypatch.setattr(session, "LIMIT", 15.0)  # importing torch is under it as well
    rows = rows_of(verify(environ_with(build(tmp_path), os.environ, FAKE_AT="cuInit", FAKE_HOW=how)))
    assert rows.pop("import")[0] == "passed"
    outcome, detail = rows.pop("cuda_available")
    assert (outcome, words in detail) == ("failed", True), detail
    assert {outcome for outcome, _ in rows.values()} == {"not possible"}
    assert all(detail.startswith("not tried, because of cuda_available: the") for _, detail in rows.values())

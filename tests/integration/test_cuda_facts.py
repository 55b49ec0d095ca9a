"""The toolkit and the driver of this machine, such as they are."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.facts.fakes import link
from tests.support.capabilities import needs, needs_shebang, needs_symlinks, skip_without
from torchbuild_tasks.facts.cuda import gpus
from torchbuild_tasks.facts.cuda.gpus import look_at_kernel
from torchbuild_tasks.facts.cuda.toolkit_folder import ask_nvcc, host_limits, root_of_nvcc
from torchbuild_tasks.facts.cuda.toolkits import look_for_toolkits
from torchbuild_tasks.facts.gather import look_at_cuda
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Toolkit

pytestmark = pytest.mark.integration

NVCC = shutil.which("nvcc")
needs_nvcc = needs(NVCC is not None, "nvcc")


def door(**environ: str) -> Probe:
    return Probe(environ={**os.environ, **environ})


def here(probe: Probe, asked: str | None = None) -> Toolkit:
    """The toolkit that is found first."""
    return look_for_toolkits(probe, asked, None, ())[0][0]


@needs_nvcc
def test_the_toolkit_that_is_on_path() -> None:
    names = ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR")
    seen = here(Probe(environ={k: v for k, v in os.environ.items() if not k.upper().startswith(names)}))
    assert (seen.found_via, seen.problem) == ("PATH", None)
    said = subprocess.run([str(NVCC), "--version"], capture_output=True, text=True, check=True).stdout
    assert f"V{seen.nvcc_version}" in said
    assert seen.version and seen.version.split(".")[:2] == (seen.nvcc_version or "").split(".")[:2]
    assert seen.headers
    assert list(seen.archs) == sorted(seen.archs, key=lambda arch: tuple(map(int, arch.split("."))))
    assert "8.0" in seen.archs  # every nvcc from 11.0 on compiles for it
    assert seen.gcc and seen.clang and seen.msc and seen.msc[0] < seen.msc[1]


@needs_nvcc
def test_the_limits_are_those_with_which_nvcc_refuses(tmp_path: Path) -> None:
    """The header itself decides: a preprocessor reads it with the macros of each compiler version."""
    probe = door()
    root = root_of_nvcc(probe, str(NVCC))
    seen = here(probe, root)
    compiler = shutil.which("g++")
    if compiler is None or seen.gcc is None:
        skip_without("g++")
    header = Path(root) / "include" / "crt" / "host_config.h"
    if not header.exists():
        pytest.skip("no host_config.h in the usual place here")
    assert host_limits(header.read_text("utf-8")).gcc == seen.gcc
    for version, accepted in ((seen.gcc, True), (seen.gcc + 1, False)):
        argv = [compiler, "-E", "-x", "c++", "-U__GNUC__", f"-D__GNUC__={version}", "-D__CUDACC__"]
        argv += ["-I", str(header.parents[1]), str(header), "-o", str(tmp_path / "out")]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert ("unsupported GNU version" not in done.stderr) is accepted, done.stderr


@needs_nvcc
@needs_symlinks
@needs_shebang
def test_a_link_and_a_script_lead_to_the_same_toolkit(tmp_path: Path) -> None:
    root = root_of_nvcc(door(), str(NVCC))
    real = Path(root) / "bin" / "nvcc"
    link(tmp_path, "linked/nvcc", str(real))
    script = tmp_path / "script" / "nvcc"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{real}" "$@"\n', "utf-8")
    script.chmod(0o755)
    for folder in ("linked", "script"):
        path = f"{tmp_path / folder}{os.pathsep}{os.environ['PATH']}"
        found = look_for_toolkits(door(PATH=path), None, None, ())[0]
        assert Path(root).resolve() in [Path(one.path) for one in found]
        assert len({one.path for one in found}) == len(found)
        assert Path(root_of_nvcc(door(), str(tmp_path / folder / "nvcc"))).resolve() == Path(root).resolve()


@needs_shebang
def test_an_nvcc_that_crashes(tmp_path: Path) -> None:
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text("#!/bin/sh\nkill -SEGV $$\n", "utf-8")
    nvcc.chmod(0o755)
    assert ask_nvcc(door(), str(nvcc)).problem == f"{nvcc} --version ended with -11: without a word"
    assert here(door(), str(tmp_path)).problem == ask_nvcc(door(), str(nvcc)).problem


def test_nvml_answers_whatever_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a driver it names the GPUs, without one it says so."""
    monkeypatch.setattr(gpus, "NVML_TIMEOUT", 60.0)  # in wine a Python starts in 5 s on a loaded machine
    answer = gpus.ask_nvml(door())
    assert not answer.hung
    if answer.driver is None:
        assert answer.gpus == ()
        assert answer.summary in (
            "libnvidia-ml.so.1 was not found",
            "nvml.dll was not found",
            answer.problem,
        )
    else:
        assert all(gpu.name for gpu in answer.gpus)
        assert look_at_kernel(door()).module in (answer.driver, None)


def test_a_package_that_is_not_there_ends_at_once(tmp_path: Path) -> None:
    if sys.platform == "linux":  # one that the loader takes
        (tmp_path / "libnvidia-ml.so.1").symlink_to(str(importlib.import_module("_ctypes").__file__))
    argv = (sys.executable, "-I", "-S", "-B", str(gpus.NVML_SCRIPT), str(tmp_path))
    output = door(LD_LIBRARY_PATH=str(tmp_path)).run(argv, timeout=60)
    assert output is not None
    assert output.rc != 0
    assert "No module named 'pynvml'" in output.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the package itself looks for it")
def test_without_the_library_the_package_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"")  # found first, and none
    argv = (sys.executable, "-I", "-S", "-B", str(gpus.NVML_SCRIPT), str(tmp_path))
    output = door(LD_LIBRARY_PATH=str(tmp_path)).run(argv, timeout=60)
    assert output is not None
    assert json.loads(output.stdout) == {"error": "libnvidia-ml.so.1 is missing", "code": 12}


def test_the_full_look_at_this_machine() -> None:
    seen = look_at_cuda(door(CUDA_VISIBLE_DEVICES="0"), toolkit=None, store=None)
    assert seen.visible == "0"
    assert set(seen.probes) >= {"nvml", "pci"}
    assert all(not one.path.endswith(("/", "\\")) for one in seen.toolkits)

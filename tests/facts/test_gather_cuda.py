"""CUDA among all facts: the requested toolkit, those in packages of interpreters, those in the store."""

from __future__ import annotations

import json
from pathlib import Path

from tests.facts.cuda.canned import device, nvml, toolkit
from tests.facts.fakes import FakeProbe, machine
from torchbuild_tasks.facts.gather import gather

PYTHON = json.dumps({"executable": "/v/bin/python", "version": "3.12.1", "prefix": "/v"})
MARK = json.dumps({"id": "made", "version": "13.0", "finished": "2026-11-20T10:00:00Z"})


def workstation(tmp_path: Path) -> FakeProbe:
    made = "/home/me/.cache/torchbuild-tasks/toolkits/made"
    roots = ("/asked", "/v/lib/python3.12/site-packages/nvidia/cu13", made)
    files = {path: text for root in roots for path, text in toolkit(root).items()}
    door = machine(
        tmp_path,
        files={**files, f"{made}/.torchbuild-toolkit.json": MARK},
        programs={"/v/bin/python": PYTHON},
        environ={"VIRTUAL_ENV": "/v"},
    )
    nvml(door, device())
    return door


def test_everything_is_found_once(tmp_path: Path) -> None:
    door = workstation(tmp_path)
    cuda = gather(source="/src", python=None, patterns=[], cuda_toolkit="/asked", probe=door).cuda
    assert cuda is not None
    assert [one.found_via for one in cuda.toolkits] == ["--cuda-toolkit", "NVIDIA's wheels", "managed"]
    assert [gpu.capability for gpu in cuda.gpus] == ["8.6"]
    assert len(door.asked) == len(set(door.asked))


def test_nothing_is_requested(tmp_path: Path) -> None:
    cuda = gather(source="/src", python=None, patterns=[], probe=workstation(tmp_path)).cuda
    assert cuda is not None
    assert [one.found_via for one in cuda.toolkits] == ["NVIDIA's wheels", "managed"]


def test_paths_of_loader_and_compiler_are_kept(tmp_path: Path) -> None:
    door = machine(tmp_path, environ={"LD_LIBRARY_PATH": "/cuda-11.8/lib64", "CPATH": "", "MANPATH": "/m"})
    cuda = gather(source="/src", python=None, patterns=[], probe=door).cuda
    assert cuda is not None and cuda.paths == {"LD_LIBRARY_PATH": "/cuda-11.8/lib64"}


def test_a_folder_counts_in_whichever_way_it_is_named(tmp_path: Path) -> None:
    """A flag stands over the environment, the settings file below it; facts keep the environment alone."""
    header = "#define CUDNN_MAJOR {}\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n"
    files = {f"/{n}/include/cudnn_version.h": header.format(n) for n in (7, 8, 9)}
    nccl = {"/n/include/nccl.h": "#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n"}
    lt = {"/lt/include/cusparseLt.h": "", "/lt/lib/libcusparseLt.so": ""}

    def seen(environ: dict[str, str], flags: dict[str, str], file: dict[str, str]) -> dict[str, str | None]:
        door = machine(tmp_path, files={**files, **nccl, **lt}, environ=environ)
        facts = gather(source="/src", python=None, patterns=["CUDNN_*"], probe=door, around=(flags, file))
        assert facts.environ == environ
        assert facts.cuda
        found: dict[str, str | None] = {}
        for library in facts.cuda.libraries:
            found.setdefault(library.name, library.version)
        return found

    low = {"CUDNN_ROOT": "/7", "NCCL_ROOT": "/n", "CUSPARSELT_ROOT": "/lt"}
    assert seen({}, {}, low) == {"cudnn": "7.1.0", "nccl": "2.21.5", "cusparselt": None}
    assert seen({"CUDNN_ROOT": "/8"}, {}, low)["cudnn"] == "8.1.0"
    assert seen({"CUDNN_ROOT": "/8"}, {"CUDNN_ROOT": "/9"}, low)["cudnn"] == "9.1.0"

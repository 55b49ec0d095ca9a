"""A pre-flight without the rest of a build: its work, its messages, and the real programs it needs."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.support.capabilities import needs
from tests.support.machines import linux_facts, plan_of
from torchbuild_tasks.build.ledger import Ledger
from torchbuild_tasks.build.outputs import patterns
from torchbuild_tasks.build.preflight import preflight
from torchbuild_tasks.build.work import Fetching, Work
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.manifest.act import redact, start_manifest
from torchbuild_tasks.model import BuildPlan, Facts, Preflight
from torchbuild_tasks.model.record import Removal
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.preflight import CPP_FILE, KERNEL_FILE, plan_preflight
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.process import Sink
from torchbuild_tasks.values import replace

CXX = shutil.which("g++") or shutil.which("clang++") or ""


def _newest_nvcc() -> str:
    """The nvcc on PATH, else that of the newest /usr/local/cuda-X.Y."""
    folders = Path("/usr/local").glob("cuda*") if sys.platform != "win32" else ()
    found = [path for folder in folders if os.access(path := folder / "bin" / "nvcc", os.X_OK)]
    found.sort(key=lambda path: [int(part) for part in re.findall(r"\d+", str(path))])
    return shutil.which("nvcc") or str(next(reversed(found), ""))


NVCC = _newest_nvcc()
needs_nvcc = needs(bool(NVCC), "nvcc")


class RecordingReporter:
    """A reporter that records messages and agrees to nothing."""

    def stream(self) -> Sink:
        """Ignore it."""
        return io.BytesIO()

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.commands: list[tuple[str, ...]] = []
        self.output = b""

    def stage(self, title: str) -> None: ...
    def transfer(self, name: str, done: int, total: int | None) -> None: ...
    def removal(self, removal: Removal) -> None: ...

    def note(self, text: str, *, alone: bool = False) -> None:
        self.notes.append(text)

    def command(self, argv: tuple[str, ...]) -> None:
        self.commands.append(argv)

    def left(self, seconds: float | None, spread: float = 1.0) -> None:
        pass

    def block(self, block: bytes) -> None:
        self.output += block

    def inner(self, title: str) -> Self:
        return self

    def confirm(self, question: str) -> bool:
        return False


def planned(**changes: Any) -> Preflight:
    """A pre-flight of a Linux build for one architecture; `changes` are arguments of plan_preflight."""
    values: dict[str, Any] = {
        "cxx": "/usr/bin/g++",
        "cxx_flags": (),
        "nvcc": "/cuda/bin/nvcc",
        "host": "/usr/bin/g++",
        "nvcc_flags": (),
        "archs": ("8.6",),
        "launcher": "",
        "cuda_launcher": "",
        "cuobjdump": "",
        "cxx_standard": 17,
        "msvc": False,
    }
    return plan_preflight(**{**values, **changes})


def briefly(what: Preflight) -> Preflight:
    """The same with files that hardly take time, where it does not matter what is in them.

    To read the headers of a standard library takes half a second of a compiler each time.
    """
    sources = {
        CPP_FILE: "int preflight(int argument) { return argument; }\n",
        KERNEL_FILE: "__global__ void f() {}\n",
    }
    return replace(what, sources=sources)


def cpp_only(cxx: str = CXX, launcher: str = "") -> Preflight:
    """One brief C++ file without the kernel, for machines that have no nvcc."""
    whole = briefly(planned(cxx=cxx, launcher=launcher))
    return replace(whole, trials=whole.trials[:1], cubin="", archs=())


def ledger_of(request: BuildRequest, facts: Facts, plan: BuildPlan, tree: Path) -> Ledger:
    """The ledger of a build in a checkout, with its build tree in `build`."""
    question = Question(request, facts, load_catalog())
    manifest = start_manifest(question, plan, "tests 1", started="2026-11-01T10:00:00+00:00")
    return Ledger(manifest, tree, tree / "build", patterns(question.catalog, plan.era), redact)


def run(tree: Path, what: Preflight | None, environ: Mapping[str, str] | None = None) -> RecordingReporter:
    """Run the stage for a checkout `tree`."""
    request, facts, catalog, said = BuildRequest(), linux_facts(), load_catalog(), RecordingReporter()
    plan = replace(plan_of(facts), source=str(tree), build_dir=str(tree / "build"), preflight=what)
    ledger = ledger_of(request, facts, plan, tree)
    work = Work(
        question=Question(request, facts, catalog),
        plan=plan,
        report=said,
        ledger=ledger,
        fetching=Fetching(store=tree, lock_file=tree / "lock", net=Net(), require_hashes=False),
        environ={**os.environ, **(environ or {})},
    )
    with ledger:
        assert preflight(work) is work
    return said

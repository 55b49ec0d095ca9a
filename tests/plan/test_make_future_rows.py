"""A coming release is only rows: with those of a next torch, companion and CUDA, a build of it is planned."""

from __future__ import annotations

from typing import Final

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.machines import TEMPLATES, found, modern_tree, python, tool
from torchbuild_tasks.catalog import Catalog, load_catalog
from torchbuild_tasks.catalog.cuda import CudaTorchRow
from torchbuild_tasks.catalog.source import CompanionReleaseRow
from torchbuild_tasks.model import Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.make import make_plan
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.torch_ref import read_word
from torchbuild_tasks.plan.versions import version_lines
from torchbuild_tasks.values import replace

NOW: Final = load_catalog()


def after(version: str) -> str:
    """The series after a series."""
    parsed = Version(version)
    return f"{parsed.major}.{parsed.minor + 1}"


TORCH: Final = replace(
    NOW.torch[-1],
    version=after(NOW.torch[-1].version),
    latest=f"{after(NOW.torch[-1].version)}.1",
    python=">=3.12,<3.17",
    gcc=">=12",
)
CUDA: Final = replace(NOW.cuda[-1], version=after(NOW.cuda[-1].version))
VISION: Final = CompanionReleaseRow(
    name="torchvision", version="9.0.0", torch=f">={TORCH.version}.0a0", source="this test"
)
BEST: Final = CudaTorchRow(
    torch=f">={TORCH.version}a0",
    cuda=f">={CUDA.version}",
    best=CUDA.version,
    because="upstream built it so",
    source="this test",
)
# The row of the newest has no end; who adds the next one gives it its end.
OTHERS: Final = tuple(
    row for row in NOW.cuda_torch if not row.best or TORCH.latest not in SpecifierSet(row.torch)
)
NEXT: Final = Catalog(
    **{
        **vars(NOW),
        "torch": (*NOW.torch, TORCH),
        "cuda": (*NOW.cuda, CUDA),
        "cuda_torch": (*OTHERS, BEST),
        "companion_release": (*NOW.companion_release, VISION),
    }
)


def facts() -> Facts:
    return replace(
        cuda_facts(toolkit(f"{CUDA.version}.20"), gpus=(gpu(),)),
        tree=modern_tree(version=f"{TORCH.version}.0a0"),
        pythons=(python(version="3.13.1"),),
        compilers=(tool("g++", "13.2.0"),),
    )


def test_a_build_of_the_next_torch_is_planned_by_its_row() -> None:
    request = BuildRequest(cuda=True, with_=("torchvision",))
    plan = make_plan(Question(request, facts(), NEXT), templates=TEMPLATES, writer="tests")
    assert "torch-version" not in [finding.id for finding in plan.findings]
    assert [each.version for each in plan.companions] == [VISION.version]
    assert found(plan.findings, "cuda-toolkit").status == "ok"
    assert plan.verdict != "refuse", [each.text for each in plan.findings if each.status == "error"]
    without = make_plan(Question(request, facts(), NOW), templates=TEMPLATES, writer="tests")
    assert found(without.findings, "torch-version").status != "ok"


def test_it_stands_in_the_table_and_is_the_latest() -> None:
    (line,) = (line for line in version_lines(NEXT, facts()) if line.version == TORCH.version)
    assert (line.status, line.latest, line.newest_fit) == ("ok", TORCH.latest, True)
    assert (line.torchvision, line.cuda_best) == (VISION.version, CUDA.version)
    assert read_word("latest", NEXT).ref == f"v{TORCH.latest}"

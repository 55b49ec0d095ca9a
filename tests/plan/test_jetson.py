"""Jetson boards: recognition, what their builds leave out, and their findings."""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.support.for_each import each_case
from tests.support.jetsons import (
    BOARDS,
    jetpack_toolkit,
    nano,
    orin_nano,
    thor,
    tx2,
    with_cuda,
    with_tegra,
    xavier_nx,
)
from tests.support.machines import ask, found, linux_facts, plan_of, settings, statuses, tree
from torchbuild_tasks.catalog import GIB, load_catalog
from torchbuild_tasks.catalog.rows import HelperRow
from torchbuild_tasks.model import Choice, Facts, Finding, Library, Memory, Tegra
from torchbuild_tasks.plan.cuda.toolkit import choose_toolkit
from torchbuild_tasks.plan.jetson import board, check_jetson, jetpack, jetson_variables, later_jetpack
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

CATALOG = load_catalog()
KNOWN = {
    "tx2": ("Jetson TX2", "6.2", "4.6"),
    "nano": ("Jetson Nano", "5.3", "4.6.1"),
    "xavier_nx": ("Jetson Xavier NX", "7.2", "5.1"),
    "orin_nano": ("Jetson Orin Nano", "8.7", "6.2"),
    "thor": ("Jetson AGX Thor", "11.0", "7.0"),
}


def left_out(question: Question) -> tuple[Choice, ...]:
    return jetson_variables(question, choose_toolkit(question))


def checked(question: Question) -> tuple[Finding, ...]:
    return check_jetson(question, choose_toolkit(question))


def variables(facts: Facts, **flags: Any) -> dict[str, str]:
    chosen = left_out(ask(facts, cuda=True, **flags))
    assert all(choice.because and choice.source == "default" for choice in chosen)
    return {choice.name: choice.value for choice in chosen}


# ---------------------------------------------------------------- the rows


def test_every_chip_has_a_last_row_that_takes_any_board() -> None:
    """Boards of other makers have names of their own, and the chip's."""
    for chip in ("tegra210", "tegra186", "tegra194", "tegra234", "tegra264"):
        stranger = Tegra(model="Carrier", compatible=(f"acme,board-{chip}", f"nvidia,{chip}"))
        row = board(ask(with_cuda(nano(), tegra=stranger)))
        assert row is not None
        assert row.note.startswith("any other board")


def test_boards_of_one_chip_agree_about_it() -> None:
    """No row's pattern takes another chip's board."""
    last = {row.compatible[0]: row for row in CATALOG.board if row.note.startswith("any other board")}
    chips = iter(last.values())
    chip = next(chips)
    for row in CATALOG.board:
        assert (row.capability, row.launch_bounds) == (chip.capability, chip.launch_bounds), row.name
        if row is chip:
            chip = next(chips, chip)


def test_board_rows() -> None:
    names = [row.name for row in CATALOG.board]
    assert len(names) == len(set(names))
    for row in CATALOG.board:
        Version(row.capability)
        assert row.source
        assert all(pattern.startswith("nvidia,") for pattern in row.compatible)
        assert all(part == part.casefold() and "-" not in part for part in row.models)


def test_no_board_row_is_hidden_by_an_earlier_one() -> None:
    """Neither by a pattern nor by a part of a model that is also a part of a later one's."""
    for earlier, later in itertools.combinations(CATALOG.board, 2):
        for own, other in itertools.product(earlier.compatible, later.compatible):
            assert not fnmatch.fnmatchcase(other.replace("*", ""), own), (earlier.name, later.name)
        for part, text in itertools.product(earlier.models, later.models):
            assert part not in text, (earlier.name, later.name)


def test_jetpack_rows() -> None:
    boards = {row.name for row in CATALOG.board}
    names = [row.name for row in CATALOG.jetpack]
    assert len(names) == len(set(names))
    for row in CATALOG.jetpack:
        SpecifierSet(row.l4t)
        Version(row.cuda)
        assert row.source
        assert set(row.boards) <= boards


def test_every_board_has_a_jetpack() -> None:
    named = {name for row in CATALOG.jetpack for name in row.boards}
    assert named == {row.name for row in CATALOG.board if not row.note.startswith("any other board")}


@each_case(
    ("l4t", "name", "cuda"),
    [
        ("32.6.1", "4.6", "10.2"),
        ("32.5", "4.5", "10.2"),
        ("32.5.0", "4.5", "10.2"),
        ("32.3.1", "4.3", "10.0"),
        ("32.9.9", "4.x", "10.2"),
        ("34.1.1", "5.x", "11.4"),
        ("35.4.1", "5.1.2", "11.4"),
        ("36.2.0", "6.0 DP", "12.2"),
        ("36.3.0", "6.0", "12.2"),
        ("36.4.0", "6.1", "12.6"),
        ("36.4", "6.1", "12.6"),
        ("36.4.4", "6.2.1", "12.6"),
        ("36.4.9", "6.x", "12.6"),
        ("38.2.1", "7.0", "13.0"),
        ("39.2.0", "7.2", "13.2"),
    ],
)
def test_the_release_says_the_jetpack(l4t: str, name: str, cuda: str) -> None:
    row = jetpack(ask(with_tegra(nano(), l4t=l4t)))
    assert row is not None
    assert (row.name, row.cuda) == (name, cuda)


@pytest.mark.parametrize("l4t", [None, "21.5", "99.1", "R36"])
def test_a_release_that_no_row_knows(l4t: str | None) -> None:
    question = ask(with_tegra(nano(), l4t=l4t))
    assert jetpack(question) is None
    assert found(checked(question), "jetpack").status == "unknown"


def test_the_page_says_what_the_rows_say() -> None:
    page = (Path(__file__).parents[2] / "docs/jetson.md").read_text("utf-8")
    lines = re.findall(r"^\| ([^|]+) \| (\d+\.\d+)[^|]* \| (\d+\.\d+\.\d+) \| (\d+\.\d+) \|$", page, re.M)
    shown = {f"Jetson {name}": tuple(rest) for names, *rest in lines for name in names.split(", ")}
    rows = {row.name: row for row in CATALOG.board}
    assert set(shown) == {name for pack in CATALOG.jetpack for name in pack.boards}
    for name, (capability, newest, cuda) in shown.items():
        pack = next(pack for pack in CATALOG.jetpack if name in pack.boards)
        assert (rows[name].capability, pack.name, pack.cuda) == (capability, newest, cuda), name


# ---------------------------------------------------------------- the board


@pytest.mark.parametrize("name", BOARDS)
def test_the_boards_are_distinguished(name: str) -> None:
    question = ask(BOARDS[name]())
    row, pack = board(question), jetpack(question)
    assert row is not None
    assert pack is not None
    assert (row.name, row.capability, pack.name) == KNOWN[name]
    assert row.launch_bounds == (name in ("tx2", "nano"))


@each_case(
    ("model", "name"),
    [
        ("jetson_tx1", "Jetson TX1"),
        ("NVIDIA Jetson TX2 NX", "Jetson TX2 NX"),
        ("NVIDIA Jetson TX2", "Jetson TX2"),
        ("NVIDIA Jetson AGX Xavier", "Jetson AGX Xavier"),
        ("NVIDIA Jetson Xavier NX", "Jetson Xavier NX"),
        ("NVIDIA Jetson Orin Nano Developer Kit", "Jetson Orin Nano"),
        ("NVIDIA Jetson Nano Developer Kit", "Jetson Nano"),
        ("NVIDIA Jetson T4000", "Jetson T4000"),
    ],
)
def test_a_model_alone_names_the_board(model: str, name: str) -> None:
    row = board(ask(with_tegra(nano(), model=model, compatible=())))
    assert row is not None
    assert row.name == name


def test_no_board_without_a_tegra() -> None:
    for facts in (linux_facts(), with_cuda(nano(), tegra=None)):
        question = ask(facts, cuda=True)
        assert board(question) is None
        assert jetpack(question) is None
        assert left_out(question) == ()
        assert checked(question) == ()


def test_a_board_that_no_row_knows_is_unknown_and_named() -> None:
    finding = found(
        checked(ask(with_tegra(nano(), model="Acme", compatible=("acme,x", "nvidia,tegra999")))),
        "jetson",
    )
    assert finding.status == "unknown"
    assert "acme,x" in finding.text
    assert "--arch" in finding.fix


# ---------------------------------------------------------------- what is switched off


@pytest.mark.parametrize("facts", [tx2, nano, xavier_nx, orin_nano])
def test_without_nccl_and_magma(facts: Callable[[], Facts]) -> None:
    assert variables(facts()) == {"USE_NCCL": "0", "USE_MAGMA": "0"}


def test_thor_keeps_nccl() -> None:
    assert variables(thor()) == {"USE_MAGMA": "0"}


def test_an_nccl_that_is_there_is_used() -> None:
    facts = orin_nano()
    assert facts.cuda is not None
    nccl = Library(name="nccl", version="2.27.3", include="/usr/include", found_via="system")
    assert "USE_NCCL" not in variables(with_cuda(facts, libraries=(*facts.cuda.libraries, nccl)))


def test_what_the_user_decided_stays() -> None:
    assert variables(nano(environ={"USE_NCCL": "1"}), set=("USE_MAGMA=1",)) == {}
    assert variables(nano(environ={"MAGMA_HOME": "/opt/magma"})) == {"USE_NCCL": "0"}
    said = settings(variables={"USE_NCCL": "1"})
    assert [choice.name for choice in left_out(ask(nano(), said, cuda=True))] == ["USE_MAGMA"]


def test_a_magma_of_the_users_own_is_taken() -> None:
    """Where a row says that there is one, upstream's leaving it out is no reason."""
    row = HelperRow(
        name="magma",
        version="2.9.0",
        os="linux",
        arch="aarch64",
        needed="cuda",
        unpack="tar.bz2",
        source="own",
    )
    said = replace(settings(), helpers=(row,))
    assert "USE_MAGMA" not in [choice.name for choice in left_out(ask(nano(), said, cuda=True))]


def test_a_cpu_build_is_left_alone() -> None:
    assert left_out(ask(nano())) == ()


def test_the_preset_stands_for_a_board_that_is_not_seen() -> None:
    """In a container the device tree may be hidden."""
    facts = with_cuda(orin_nano(), tegra=None)
    assert variables(facts) == {}
    assert variables(facts, preset="jetson") == {"USE_NCCL": "0", "USE_MAGMA": "0"}


# ---------------------------------------------------------------- what is said


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_as_it_comes_is_fine(name: str) -> None:
    findings = checked(ask(BOARDS[name](), cuda=True, preset="jetson"))
    known, capability, pack = KNOWN[name]
    assert known in found(findings, "jetson").text
    assert capability in found(findings, "jetson").text
    assert f"JetPack {pack}" in found(findings, "jetpack").text
    assert statuses(findings, "jetpack-cuda") == []
    assert statuses(findings, "preset") == []
    short = {"nano"}
    assert {finding.status for finding in findings} == ({"ok", "warn"} if name in short else {"ok"})


def test_four_gigabytes_want_swap() -> None:
    finding = found(checked(ask(nano(), cuda=True)), "swap")
    assert finding.status == "warn"
    assert "2.6 GiB" in finding.text
    assert "1.9 GiB of swap" in finding.text
    for command in ("fallocate -l 8G", "mkswap", "swapon", "nvzramconfig"):
        assert command in finding.fix


def test_enough_swap_is_enough() -> None:
    memory = Memory(total=4 * GIB, available=int(2.6 * GIB), swap_free=8 * GIB)
    assert statuses(checked(ask(nano(memory=memory), cuda=True)), "swap") == []


def test_swap_does_not_help_against_a_limit() -> None:
    memory = Memory(
        total=30 * GIB,
        available=28 * GIB,
        swap_free=16 * GIB,
        limit=4 * GIB,
        used_in_limit=0,
        limit_via="/sys/fs/cgroup/memory.max",
    )
    finding = found(checked(ask(thor(memory=memory), cuda=True)), "swap")
    assert "swapon" not in finding.fix
    assert "limit" in finding.fix


def test_memory_that_is_not_known_is_no_finding() -> None:
    assert statuses(checked(ask(nano(memory=Memory()), cuda=True)), "swap") == []


def test_another_toolkit_than_jetpacks() -> None:
    new = with_cuda(orin_nano(), toolkits=(jetpack_toolkit("12.9", ("8.7",), 14),))
    finding = found(checked(ask(new, cuda=True)), "jetpack-cuda")
    assert finding.status == "warn"
    assert "cuda-compat-12-9" in finding.fix
    older = with_cuda(orin_nano(), toolkits=(jetpack_toolkit("12.2", ("8.7",), 12),))
    assert "cuda-compat" not in found(checked(ask(older, cuda=True)), "jetpack-cuda").fix
    old = with_cuda(tx2(), toolkits=(jetpack_toolkit("11.4", ("6.2",), 11),))
    finding = found(checked(ask(old, cuda=True)), "jetpack-cuda")
    assert "cuda-compat" not in finding.fix
    assert "sudo apt-get install nvidia-jetpack, then --cuda-toolkit 10.2" in finding.fix
    two = (jetpack_toolkit("11.4", ("6.2",), 11), jetpack_toolkit("10.2", ("6.2",), 8))
    both = with_cuda(tx2(), toolkits=two)
    chosen = found(checked(ask(both, cuda=True, cuda_toolkit="11.4")), "jetpack-cuda")
    assert "Use JetPack's own: --cuda-toolkit 10.2" in chosen.fix
    first = replace(with_tegra(older, l4t="36.4.3"), tree=tree(version="2.2.2"))
    fix = found(checked(ask(first, cuda=True)), "jetpack-cuda").fix
    assert fix.endswith("--cuda-toolkit 12.6, and torch 2.5, the nearest that builds with it")
    unlisted = with_tegra(older, l4t="36.4.9")  # its CUDA is a guess
    assert found(checked(ask(unlisted, cuda=True)), "jetpack-cuda").status == "unknown"


def test_no_torch_is_advised_that_keeps_the_toolkit_which_the_board_does_not_run() -> None:
    facts = replace(thor(), tree=tree(version="2.9.1"))
    findings = plan_of(facts, cuda=True, cuda_toolkit="pypi:12.8").findings
    assert statuses(findings, "jetpack-cuda") == ["warn"]
    fix = found(findings, "architectures").fix
    assert "12.8" not in fix and "--cuda-toolkit 13.0" in fix


def test_what_only_another_torch_mends_has_one_fix() -> None:
    findings = plan_of(replace(thor(), tree=tree(version="2.8.0")), cuda=True).findings
    (fix,) = [each.fix for each in findings if each.id == "architectures" and each.status == "warn"]
    assert "2.9" in fix and "PTX" not in fix


def test_wheels_are_for_servers() -> None:
    own = {"toolkits": (replace(jetpack_toolkit("12.6", ("8.7",), 13), managed=True),)}
    finding = found(checked(ask(with_cuda(orin_nano(), **own), cuda=True)), "jetson-wheels")
    assert finding.status == "warn"
    assert "Jetson Orin Nano" in finding.text
    assert statuses(checked(ask(with_cuda(thor(), **own), cuda=True)), "jetson-wheels") == []
    assert statuses(checked(ask(orin_nano(), cuda=True)), "jetson-wheels") == []


def test_a_jetpack_that_does_not_run_on_the_board() -> None:
    finding = found(checked(ask(with_tegra(tx2(), l4t="36.4.3"), cuda=True)), "jetpack")
    assert finding.status == "unknown"
    assert "Jetson TX2" in finding.text


def test_the_preset_is_recommended() -> None:
    finding = found(checked(ask(nano(), cuda=True)), "preset")
    assert finding.status == "ok"
    assert "--preset jetson" in finding.text


def older_orin(**changes: Any) -> Facts:
    """Return a board with JetPack 5.1.2, which JetPack 6 runs on, too."""
    facts = with_tegra(orin_nano(**changes), l4t="35.4.1")
    return with_cuda(facts, toolkits=(jetpack_toolkit("11.4", ("7.2", "8.7"), 11),))


@pytest.mark.parametrize(
    ("kit", "later"), [(nano, False), (tx2, False), (xavier_nx, False), (older_orin, True)]
)
def test_a_torch_that_is_too_new_for_a_board_is_told_once_and_which_fits(
    kit: Callable[..., Facts], later: bool
) -> None:
    """A later JetPack is named only where the board has one; with the torch that is named it is fine."""
    facts = kit(tree=tree(version="2.14.0"))
    told = [each for each in plan_of(facts, cuda=True).findings if each.id == "cuda-toolkit"]
    (finding,) = told
    assert finding.status == "error"
    assert ("a later JetPack" in finding.fix) is later
    series = re.search(r"take torch (\d+\.\d+)", finding.fix)
    assert series, finding.fix
    latest = next(row.latest for row in CATALOG.torch if row.version == series[1])
    after = plan_of(kit(tree=tree(version=latest)), cuda=True).findings
    assert found(after, "cuda-toolkit").status == "ok"


@pytest.mark.parametrize("torch", ["2.4.0", "2.8.0", "2.10.0"])
def test_a_later_jetpack_is_one_whose_cuda_builds_this_torch(torch: str) -> None:
    facts = with_cuda(orin_nano(tree=tree(version=torch)), toolkits=(jetpack_toolkit("11.4", ("8.7",), 11),))
    assert facts.cuda and facts.cuda.tegra
    facts = with_cuda(facts, tegra=replace(facts.cuda.tegra, l4t="35.4.1"))
    later = later_jetpack(ask(facts, cuda=True))
    assert later is not None
    after = with_cuda(facts, toolkits=(jetpack_toolkit(later.cuda, ("8.7",), 13),))
    assert "error" not in statuses(plan_of(after, cuda=True).findings, "cuda-toolkit")


def test_no_advice_leads_from_one_cuda_to_another_that_does_not_work() -> None:
    """JetPack 4 has no cuda-compat: 11.8 does not run there, and torch 2.0 does not build with its 10.2."""
    both = (jetpack_toolkit("10.2", ("5.3", "6.2", "7.2"), 8), jetpack_toolkit("11.8", ("6.2", "7.2"), 11))
    facts = with_cuda(tx2(tree=tree(version="2.0.1")), toolkits=both)
    with_newer = found(plan_of(facts, cuda=True, cuda_toolkit="11.8").findings, "jetpack-cuda")
    assert with_newer.fix.startswith("Use JetPack's own: --cuda-toolkit 10.2, and torch 1.13")
    with_own = found(plan_of(facts, cuda=True, cuda_toolkit="10.2").findings, "cuda-toolkit")
    assert "take torch 1." in with_own.fix and "Take --cuda-toolkit" not in with_own.fix


def test_the_later_jetpack_that_is_named_is_one_that_upstream_built_this_torch_with() -> None:
    """Not the newest of all: its CUDA 12.6 would be told to be none of torch 2.4's."""
    facts = replace(with_tegra(orin_nano(), l4t="35.5.0"), tree=tree(version="2.4.0"))
    later = later_jetpack(ask(facts, cuda=True))
    assert later and later.cuda == "12.2"


def test_on_a_board_no_compiler_is_advised_that_its_cuda_refuses() -> None:
    """GCC 10 compiles torch 2.6, and CUDA 10.2 of JetPack 4 takes none after 8."""
    plan = plan_of(replace(nano(), tree=tree(version="2.6.0")), cuda=True)
    fix = next(each.fix for each in plan.findings if each.id == "compiler")
    assert fix.startswith("Take torch 1.") and "CUDA 10.2" in fix

"""Checks of machine and checkout: all problems at once, each with a fix; unknown is no error."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cuda import cuda_facts, toolkit
from tests.support.for_each import each_case
from tests.support.machines import (
    ask,
    found,
    linux_facts,
    modern_tree,
    plan_of,
    python,
    statuses,
    tool,
    tree,
    with_tree,
)
from tests.support.windows import windows_facts
from torchbuild_tasks.catalog import GIB, load_catalog
from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.model import Disk, Facts, Health, Host, Memory, Need, Previous, Room
from torchbuild_tasks.model.facts import LOCKED, NOT_CHECKED_OUT, SHUT
from torchbuild_tasks.plan.decisions import decide_build
from torchbuild_tasks.plan.fit import EMPTY, check_machine_and_tree
from torchbuild_tasks.values import replace


def with_disk(free: int | None, **changes: Any) -> Facts:
    return linux_facts(disk=Disk(path="/src/pytorch", mount="/src", free=free), **changes)


def test_a_sound_machine_is_ok() -> None:
    names = {"cmake": "3.28.1", "ninja": "1.13.2", "ccache": "4.7.5", "mold": "2.4.0"}
    plan = plan_of(linux_facts(tools=tuple(tool(*each) for each in names.items())))
    assert plan.verdict == "ok"
    assert {finding.status for finding in plan.findings} == {"ok"}


@each_case(
    ("path", "system", "more", "status"),
    [
        ("/home/a/gcc-13/bin/g++", "8.5.0", {"loaded": False}, ["warn"]),
        ("/home/a/gcc-13/bin/g++", "8.5.0", {}, ["unknown"]),  # a dump of before
        ("/home/a/gcc-13/bin/g++", "", {"loaded": False}, ["unknown"]),
        ("/home/a/gcc-13/bin/g++", "8.5.0", {"loaded": True}, []),
        (
            "/home/a/gcc-13/bin/g++",
            "8.5.0",
            {"loaded": False, "environ": {"LDFLAGS": "-static-libstdc++"}},
            [],
        ),
        ("/home/a/gcc-13/bin/g++", "8.5.0", {"environ": {"LD_LIBRARY_PATH": "/home/a/gcc-13/lib64"}}, []),
        ("/home/a/gcc-13/bin/g++", "14.2.0", {"loaded": False}, []),
        ("/usr/local/gcc-13/bin/g++", "9.4.0", {"loaded": False}, ["warn"]),
        ("/usr/local/bin/g++", "9.4.0", {"loaded": True}, []),
        ("/home/a/bin/g++", "8.5.0", {"loaded": False, "aliases": ("/usr/bin/g++-13",)}, []),
        ("/opt/rh/gcc-toolset-13/root/usr/bin/g++", "8.5.0", {"loaded": False}, []),
        ("/conda/bin/x86_64-conda-linux-gnu-g++", "8.5.0", {"loaded": False}, []),
        ("/usr/bin/g++", "", {}, []),
    ],
)
def test_a_compiler_whose_library_the_loader_does_not_find(
    path: str, system: str, more: dict[str, Any], status: list[str]
) -> None:
    own = replace(tool("g++", "13.3.0", path), loaded=more.get("loaded"), aliases=more.get("aliases", ()))
    others = (tool("g++", system),) if system else ()
    facts = linux_facts(compilers=(own, *others), environ={"CXX": path, **more.get("environ", {})})
    assert statuses(plan_of(facts).findings, "cxx-library") == status


HOPELESS = linux_facts(
    host=Host(os="linux", arch="i686"),
    disk=Disk(path="/src/pytorch", mount="/src", free=GIB),
    compilers=(tool("g++", "7.5.0"),),
    pythons=(
        python(
            version="3.15.0",
            bits=32,
            abi="cpython-311-i386-linux-gnu",
            headers=False,
            packages={"setuptools": "70"},
        ),
    ),
    memory=Memory(available=2 * GIB),
    environ={"MAX_JOBS": "abc", "PYTORCH_BUILD_NUMBER": "1"},
    tree=tree(empty=("third_party/fmt", "third_party/onnx"), writable=False),
)
PROBLEMS = (
    "arch",
    "compiler",
    "device",
    "disk",
    "jobs",
    "python",
    "python-bits",
    "python-headers",
    "python-pip",
    "submodules",
    "variable",
    "version-pair",
    "writable",
)


def test_all_problems_are_listed_together_each_with_what_to_do() -> None:
    plan = plan_of(HOPELESS, set=("CMAKE_INSTALL_PREFIX=/opt",), cpu=True, cuda=True)
    assert plan.verdict == "refuse"
    errors = [finding for finding in plan.findings if finding.status == "error"]
    assert sorted(finding.id for finding in errors) == list(PROBLEMS)
    assert [finding.id for finding in errors if not finding.fix] == []


def test_a_refused_plan_still_shows_its_choices() -> None:
    plan = plan_of(HOPELESS)
    assert plan.choices
    assert plan.compile.argv


@pytest.mark.parametrize("problem", ["no such folder", "no torch checkout, for it holds no c10"])
def test_a_tree_that_is_none_is_named_alone_and_once(problem: str) -> None:
    looked = ("/src/version.txt", "/src/c10")
    bad = replace(HOPELESS, tree=tree(root="/src", problem=problem, looked=looked, version=None, era=None))
    bad = replace(bad, host=Host(os="linux", arch="x86_64"))
    plan = plan_of(bad)
    (finding,) = plan.findings
    assert (finding.id, finding.status, plan.verdict) == ("source", "error", "refuse")
    assert finding.text == f"/src: {problem}"
    assert "--source" in finding.fix


def test_a_zip_download_that_lost_its_git_is_no_problem_by_itself() -> None:
    assert plan_of(with_tree(linux_facts(), git=False, commit=None)).verdict == "ok"


@pytest.mark.parametrize(("arch", "status"), [("x86_64", []), ("aarch64", []), ("i686", ["error"])])
def test_the_architecture(arch: str, status: list[str]) -> None:
    facts = linux_facts(host=Host(os="linux", arch=arch))
    assert statuses(plan_of(facts).findings, "arch") == status


def test_a_system_that_nothing_is_planned_for_is_refused() -> None:
    plan = plan_of(linux_facts(host=Host(os="darwin", arch="arm64", distribution="macOS 15.1")))
    assert (statuses(plan.findings, "arch"), plan.verdict) == (["error"], "refuse")


@pytest.mark.parametrize("arch", ["s390x", "ppc64le", "riscv64", "armv7l"])
def test_processors_that_upstreams_sources_know(arch: str) -> None:
    plan = plan_of(linux_facts(host=Host(os="linux", arch=arch)))
    assert (statuses(plan.findings, "arch"), statuses(plan.findings, "platform")) == ([], ["warn"])


@pytest.mark.parametrize("version", ["2.99.0", "3.0.0a0"])
def test_a_series_of_the_future_is_planned_like_the_newest(version: str) -> None:
    plan = plan_of(linux_facts(tree=modern_tree(version=version)))
    finding = found(plan.findings, "torch-version")
    assert finding.status == "unknown"
    assert version in finding.text
    assert f"planned like {load_catalog().torch[-1].version}" in finding.text
    assert plan.verdict == "ok"


def test_a_version_that_cannot_be_read_is_unknown() -> None:
    finding = found(plan_of(with_tree(linux_facts(), version="main")).findings, "torch-version")
    assert finding.status == "warn"
    assert "'main'" in finding.text
    named = ("PYTORCH_BUILD_VERSION=2.6.0", "PYTORCH_BUILD_NUMBER=1")
    plan = plan_of(with_tree(linux_facts(), version="main"), set=named)
    assert found(plan.findings, "torch-version").status == "unknown"


def test_a_known_series_is_not_mentioned() -> None:
    assert statuses(plan_of().findings, "torch-version") == []


def test_a_tree_without_a_build_system_is_refused() -> None:
    assert found(plan_of(with_tree(linux_facts(), era=None)).findings, "era").status == "error"


@pytest.mark.parametrize(("writable", "status"), [(True, []), (None, []), (False, ["error"])])
def test_a_read_only_checkout(writable: bool | None, status: list[str]) -> None:
    plan = plan_of(with_tree(linux_facts(), writable=writable))
    assert statuses(plan.findings, "writable") == status


@pytest.mark.parametrize(
    ("version", "cmake", "status"),
    [
        ("2.5.1", "4.0.1", ["ok"]),
        ("2.8.0a0", "4.0.1", []),
        ("2.8.0a0", "3.20.0", ["ok"]),
        ("2.8.0a0", "3.28.1", []),
    ],
)
def test_a_cmake_that_does_not_fit_is_reported_without_a_fix(
    version: str, cmake: str, status: list[str]
) -> None:
    facts = with_tree(linux_facts(tools=(tool("cmake", cmake), tool("ninja", "1.11.1"))), version=version)
    plan = plan_of(facts)
    assert statuses(plan.findings, "cmake") == status
    if status:
        assert cmake in found(plan.findings, "cmake").text
        assert plan.environment.install is not None


@pytest.mark.parametrize(
    ("preset", "free", "status"),
    [
        ("minimal", 9 * GIB, "ok"),
        ("minimal", 7 * GIB, "error"),
        ("dev", 9 * GIB, "error"),
        ("debug", 20 * GIB, "error"),
        ("debug", 90 * GIB, "ok"),
        ("dev", None, "unknown"),
        ("dev", 0, "error"),
    ],
)
def test_the_disk_by_preset(preset: str, free: int | None, status: str) -> None:
    finding = found(plan_of(with_disk(free), preset=preset).findings, "disk")
    assert finding.status == status
    assert finding.fix or status != "error"


@pytest.mark.parametrize(
    "flags",
    [
        {"build_type": "Debug"},
        {"build_type": "RelWithDebInfo"},
        {"set": ("DEBUG=1",)},
        {"set": ("CMAKE_BUILD_TYPE=Debug",)},
        {"preset": "debug"},
    ],
)
def test_debug_information_takes_its_room_wherever_it_is_asked_for(flags: dict[str, Any]) -> None:
    assert "needs about 40 GiB" in found(plan_of(with_disk(20 * GIB), **flags).findings, "disk").text
    if "preset" not in flags:
        small = plan_of(with_disk(20 * GIB), preset="minimal", **flags)
        assert "needs about 27 GiB" in found(small.findings, "disk").text


def test_unknown_disk_space_does_not_refuse() -> None:
    assert plan_of(with_disk(None)).verdict == "ok"


def test_the_sample_needs_little_disk() -> None:
    assert found(plan_of(with_tree(with_disk(GIB), sample=True)).findings, "disk").status == "ok"


def test_a_tree_that_was_built_before_holds_most_of_what_it_needs() -> None:
    facts = with_tree(with_disk(2 * GIB), previous=Previous(result="ok"))
    assert found(plan_of(facts).findings, "disk").status == "warn"


@pytest.mark.parametrize("character", ";#,|\n")
def test_a_character_that_no_build_survives_is_named(character: str) -> None:
    facts = linux_facts(tree=tree(root=f"/src/py{character}torch"))
    (finding,) = [f for f in plan_of(facts).findings if f.id == "path"]
    assert finding.status == "error"
    assert repr(character) in finding.text


@pytest.mark.parametrize(("version", "told"), [("1.6.0", ["error"]), ("1.7.0", [])])
def test_a_blank_before_the_libraries_were_quoted(version: str, told: list[str]) -> None:
    facts = linux_facts(tree=tree(root="/src/py torch", version=version))
    assert statuses(plan_of(facts).findings, "path") == told


@each_case("character", " é%!@^+~[")
def test_other_characters_are_no_matter(character: str) -> None:
    facts = linux_facts(tree=tree(root=f"/src/py{character}torch"))
    assert "path" not in [finding.id for finding in plan_of(facts).findings]


@each_case("path", ["/src/pytorch (1)", "/r&d/pytorch", "/src/$HOME", "/o'hara/pytorch", "/a`b"])
def test_what_upstream_does_not_quote_breaks_its_build_and_not_the_samples(path: str) -> None:
    facts = linux_facts(tree=tree(root=path))
    assert statuses(plan_of(facts).findings, "path") == ["error"]
    assert statuses(plan_of(with_tree(facts, sample=True)).findings, "path") == []
    assert statuses(plan_of(facts, from_wheel="auto").findings, "path") == []


# ---------------------------------------------------------------- a row's claims, and whose they are


SERIES = sorted({*(f"{row.version}.0" for row in load_catalog().torch), *(f"1.{n}.0" for n in range(14))})


@each_case("version", [*SERIES, "0.4.1", "2.16.0", "2.16.0a0", "2.99.1", "3.0.0", "1.14.0a0", "2.15.0a0"])
def test_no_torch_takes_another_series_claims_without_saying_so(version: str) -> None:
    for facts in (with_tree(linux_facts(), version=version), HOPELESS):
        plan = plan_of(with_tree(facts, version=version))
        own = any(version.startswith(f"{row.version}.") for row in load_catalog().torch)
        said = [finding.text for finding in plan.findings if finding.id == "torch-version"]
        assert bool(said) is not own
        others = {"python", "compiler"} if said else set()
        assert not [f for f in plan.findings if f.id in others and f.status == "error" and "torch" in f.text]


def test_every_series_from_1_0_to_the_newest_has_a_row_and_each_a_best_cuda() -> None:
    catalog = load_catalog()
    versions = [row.version for row in catalog.torch]
    assert versions == [*(f"1.{n}" for n in range(14)), *(f"2.{n}" for n in range(len(versions) - 14))]
    for row in catalog.torch:
        best = [each for each in catalog.cuda_torch if each.best and admits(each.torch, row.latest)]
        assert len(best) == 1, row.version
        assert row.source


@each_case(
    ("torch", "version", "abi", "status"),
    [
        ("1.6.0", "3.9.1", None, "error"),
        ("1.6.0", "3.8.2", None, "ok"),
        ("2.15.0", "3.15.0", None, "ok"),
        ("2.15.0", "3.15.0", "cpython-315t-x86_64-linux-gnu", "ok"),
        ("2.14.0", "3.15.0", None, "unknown"),
        ("2.14.0", "3.14.0", "cpython-314t-x86_64-linux-gnu", "ok"),
        ("2.13.0", "3.13.1", "cpython-313t-x86_64-linux-gnu", "unknown"),
        ("2.9.0", "3.15.0", None, "error"),
        ("2.99.0", "3.17.0", None, "unknown"),
    ],
)
def test_pythons_that_upstream_builds_for_or_tries(
    torch: str, version: str, abi: str | None, status: str
) -> None:
    facts = linux_facts(pythons=(python(version=version, abi=abi),), tree=modern_tree(version=torch))
    assert statuses(plan_of(facts).findings, "python") == [status]


@pytest.mark.parametrize(
    ("torch", "gcc", "status"),
    [
        ("1.3.1", "4.9.2", "ok"),
        ("1.4.0", "4.9.2", "error"),
        ("1.6.0", "4.9.2", "error"),
        ("2.0.1", "7.5.0", "ok"),
        ("2.1.0", "7.5.0", "error"),
    ],
)
def test_the_gcc_of_old_series(torch: str, gcc: str, status: str) -> None:
    facts = with_tree(linux_facts(compilers=(tool("g++", gcc),)), version=torch)
    assert statuses(plan_of(facts).findings, "compiler") == [status]


def test_windows_on_arm_says_what_upstream_builds_there() -> None:
    def said(torch: str, **flags: Any) -> list[str]:
        host = Host(os="windows", arch="aarch64")
        return statuses(
            plan_of(with_tree(linux_facts(host=host), version=torch), **flags).findings, "platform"
        )

    assert said("2.6.0") == ["warn"] and said("2.8.0") == []


@pytest.mark.parametrize(
    ("host", "cuda", "status"),
    [
        (Host(os="linux", arch="x86_64", libc="musl 1.2.5"), False, "warn"),
        (Host(os="linux", arch="x86_64", libc="musl 1.2.5"), True, "error"),
        (Host(os="linux", arch="x86_64", libc="glibc 2.35", kernel="4.4.0-19041-Microsoft"), True, "warn"),
    ],
)
def test_systems_that_upstream_does_not_build_on(host: Host, cuda: bool, status: str) -> None:
    findings = plan_of(
        cuda_facts(toolkit("12.8"), host=host), cuda=cuda, arch="8.6" if cuda else None
    ).findings
    assert statuses(findings, "platform") == [status]


@pytest.mark.parametrize(("torch", "statuses_of"), [("1.4.0", ["warn"]), ("1.8.0", [])])
def test_an_old_nccl_wants_headers_that_rhel_6_has_not(torch: str, statuses_of: list[str]) -> None:
    host = Host(os="linux", arch="x86_64", libc="glibc 2.12")
    facts = with_tree(cuda_facts(toolkit("10.1"), host=host), version=torch)
    assert statuses(plan_of(facts, cuda=True, arch="7.0").findings, "platform") == statuses_of
    assert not statuses(plan_of(facts).findings, "platform")


@pytest.mark.parametrize(
    ("kernel", "cuda"), [("4.4.0-19041-Microsoft", False), ("5.15.167.4-microsoft-standard-WSL2", True)]
)
def test_systems_that_it_does_build_on(kernel: str, cuda: bool) -> None:
    host = Host(os="linux", arch="x86_64", libc="glibc 2.35", kernel=kernel)
    findings = plan_of(
        cuda_facts(toolkit("12.8"), host=host), cuda=cuda, arch="8.6" if cuda else None
    ).findings
    assert statuses(findings, "platform") == []


def test_a_build_on_a_mount_without_exec_is_refused_without_a_doctor() -> None:
    """torch would compile for hours, and then not load: failed to map segment from shared object."""
    disk = Disk(path="/x/build", mount="/x", free=100 * GIB, noexec=True)
    finding = found(plan_of(linux_facts(disk=disk)).findings, "noexec")
    assert finding.status == "error" and "/x is mounted noexec" in finding.text


@pytest.mark.parametrize(("purpose", "status"), [("build", "error"), ("tmp", "warn")])
def test_a_folder_from_which_nothing_can_be_started(purpose: str, status: str) -> None:
    health = Health(rooms=(Room(purpose=purpose, path="/x", mount="/x", noexec=True),))
    assert found(plan_of(linux_facts(health=health)).findings, "noexec").status == status


@pytest.mark.parametrize(
    ("needs", "free", "status"),
    [("reconfigure", 0, "error"), ("nothing", 0, "warn"), ("clean", 0, "warn"), ("build", 2 * GIB, "warn")],
)
def test_a_full_disk_ends_a_build_that_has_something_to_compile(needs: Need, free: int, status: str) -> None:
    question = ask(with_tree(with_disk(free), previous=Previous(result="ok")))
    finding = found(check_machine_and_tree(decide_build(question), needs), "disk")
    assert finding.status == status
    # By its settings nothing is due; whether a source was edited is seen when it is built.
    assert ("a source that was edited" in finding.text) is (needs == "nothing")
    assert ("needs about" in finding.text) is (needs != "nothing")


def test_no_row_of_an_old_release_is_applied_to_a_version_that_cannot_be_read() -> None:
    """It is planned like the newest; "from 9 on it stops in LeftRight.h" is 1.4's."""
    plan = plan_of(with_tree(linux_facts(), version="main"))
    assert "LeftRight.h" not in " ".join(each.text for each in plan.findings)
    nameless = found(plan_of(with_tree(linux_facts(), version=None)).findings, "torch-version")
    assert "None" not in nameless.text and "planned like" in nameless.text


def test_a_byte_order_mark_in_the_version_is_told() -> None:
    plan = plan_of(with_tree(linux_facts(), version="\ufeff2.6.0a0"))
    finding = found(plan.findings, "torch-version")
    assert (finding.status, "byte order mark" in finding.text) == ("warn", True)
    assert "planned like" not in finding.text


@pytest.mark.parametrize("what", ["a file", "a link to what is not there"])
def test_what_stands_in_the_way_of_a_folder_is_an_error(what: str) -> None:
    plan = plan_of(with_tree(linux_facts(), blocked={"/src/build": what}))
    finding = found(plan.findings, "writable")
    assert (finding.status, finding.fix) == ("error", "Remove it: rm /src/build")


@each_case(
    ("problem", "fix"),
    [
        ("not a git repository: /m/.git/worktrees/w", "git worktree repair /src"),
        ("detected dubious ownership in repository at '/src'", "--add safe.directory /src"),
        ("ambiguous argument 'HEAD': unknown revision or path", "Commit what is there"),
        ("not a git repository: (null)", "git -C /src status"),
    ],
)
def test_a_git_that_cannot_be_read_is_told_with_the_way_out(problem: str, fix: str) -> None:
    facts = linux_facts(tree=tree(root="/src", git=True, git_problem=problem))
    finding = found(plan_of(facts).findings, "git")
    assert finding.status == "warn" and fix in finding.fix


def test_a_clone_without_files_is_checked_out() -> None:
    facts = linux_facts(tree=tree(root="/src", problem=NOT_CHECKED_OUT))
    plan = plan_of(facts)
    assert "git -C /src checkout HEAD -- ." in found(plan.findings, "source").fix
    assert not plan.expectations


def test_a_broken_file_is_put_back() -> None:
    broken = linux_facts(tree=tree(root="/src", problem="whatever is said of it", broken="pyproject.toml"))
    finding = found(plan_of(broken).findings, "source")
    assert "git -C /src checkout HEAD -- pyproject.toml" in finding.fix


def test_an_empty_setup_py_is_put_back() -> None:
    facts = with_tree(linux_facts(), root="/src", digests={"setup.py": EMPTY})
    finding = found(plan_of(facts).findings, "source")
    assert finding.status == "error" and "checkout HEAD -- setup.py" in finding.fix


def test_what_another_user_has_built_is_taken_over_at_once() -> None:
    blocked = {"/src/build": SHUT, "/src/env_set.sh": LOCKED}
    finding = found(plan_of(linux_facts(tree=tree(root="/src", blocked=blocked))).findings, "writable")
    assert (finding.status, finding.fix) == ("error", "Make all of it yours: sudo chown -R $(id -u) /src")


def test_windows_has_a_command_of_its_own_to_take_over() -> None:
    facts = windows_facts(tree=tree(root=r"C:\src", blocked={r"C:\src\build": SHUT, r"D:\build": SHUT}))
    fix = found(plan_of(facts).findings, "writable").fix
    assert fix.endswith(r"as administrator: takeown /r /f C:\src, then takeown /r /f D:\build")


def test_sudo_is_warned_of_before_it_leaves_files_of_roots() -> None:
    host = replace(linux_facts().host, root=True)
    finding = found(plan_of(with_tree(linux_facts(host=host), by_sudo=True)).findings, "writable")
    assert (finding.status, finding.fix) == ("warn", "Run it without sudo.")
    assert "writable" not in [each.id for each in plan_of(with_tree(linux_facts(), by_sudo=True)).findings]


def test_a_checkout_that_cannot_be_written_to_is_told_once() -> None:
    facts = with_tree(linux_facts(), writable=False, blocked={"/src/torch/lib": SHUT})
    assert statuses(plan_of(facts).findings, "writable") == ["error"]

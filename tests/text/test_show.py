"""Values as text: columns stand under each other, and nothing that was decided is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.cuda import cuda_facts, driver, gpu, toolkit
from tests.support.for_each import each_case
from tests.support.machines import base_python, built, linux_facts, modern_tree, plan_of, tree, with_tree
from tests.support.windows import toolset as msvc
from tests.support.windows import windows, windows_facts
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.errors import BuildFailed, PlanRefused, UsageError
from torchbuild_tasks.fronts.output import error_object, error_text
from torchbuild_tasks.model import (
    BuildPlan,
    CacheReport,
    Command,
    Cpu,
    Facts,
    Finding,
    GpuSeen,
    Library,
    Memory,
    Tegra,
    Tool,
    Way,
)
from torchbuild_tasks.model.record import Built, CheckResult, Removal, StageTime, VerifyReport
from torchbuild_tasks.text import show
from torchbuild_tasks.text.page import plain
from torchbuild_tasks.values import replace

# ---------------------------------------------------------------- columns

CELLS = st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1, max_size=12)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1)))
def test_columns_stand_under_each_other(rows: list[list[str]]) -> None:
    lines = show.columns(rows).splitlines()
    assert len(lines) == len(rows)
    starts = [2]
    for column in range(len(rows[0]) - 1):
        starts.append(starts[-1] + max(len(row[column]) for row in rows) + 2)
    for line, row in zip(lines, rows, strict=True):
        for start, cell in zip(starts, row, strict=True):
            assert line[start:].startswith(cell)


def test_no_rows_are_no_text() -> None:
    assert show.columns([]) == ""


def test_lines_do_not_end_in_blanks() -> None:
    assert show.columns([("a", ""), ("bbb", "")]) == "  a\n  bbb\n"


# ---------------------------------------------------------------- the plan

PLANS = [
    plan_of(),
    plan_of(preset="minimal", mode="wheel", set=("BLAS=MKL",)),
    plan_of(built(), set=("USE_MKLDNN=0",)),
    plan_of(built()),
    plan_of(linux_facts(tree=modern_tree(), pythons=(base_python(),))),
    plan_of(linux_facts(compilers=(), pythons=())),
]


@each_case("plan", PLANS)
def test_the_plan_shows_value_source_and_reason_of_every_choice(plan: BuildPlan) -> None:
    lines = plain(show.plan_text(plan)).splitlines()
    for choice in plan.choices:
        (line,) = [
            line
            for line in lines
            if line.lstrip("* ").split()[:1] == choice.name.split()[:1] and choice.because in line
        ]
        assert choice.name in line
        assert choice.value in line
        assert (f"[{choice.source}]" in line) == (choice.source != "default")


@each_case("plan", PLANS)
def test_the_plan_shows_what_would_be_done_and_verified(plan: BuildPlan) -> None:
    text = plain(show.plan_text(plan))
    commands = [plan.environment.create, plan.environment.install, plan.way.ninja, plan.compile]
    for command in filter(None, commands):
        assert command.because in text
        assert all(word in text for word in command.argv)
    for expectation in plan.expectations:
        assert expectation.check in text
        assert not expectation.key or expectation.wanted in text
    for finding in plan.findings:
        assert finding.text in text
        assert finding.fix in text
    assert show.NEEDS[plan.freshness.needs] in text
    assert all(env_file.path in text for env_file in plan.env_files)
    assert text.endswith(f"Verdict: {plan.verdict}\n")


def test_the_plan_shows_what_changed() -> None:
    text = show.plan_text(plan_of(built(set=("USE_MKLDNN=1",)), set=("USE_MKLDNN=0",)))
    (line,) = [line for line in text.splitlines() if "1 -> 0" in line]
    assert "USE_MKLDNN" in line
    assert "needs reconfigure" in line


def test_a_changed_decision_has_a_star_and_what_it_was() -> None:
    text = plain(show.plan_text(plan_of(built(set=("USE_MKLDNN=1",)), set=("USE_MKLDNN=0",))))
    (line,) = [line for line in text.splitlines() if line.startswith("*")]
    assert line.split()[:3] == ["*", "USE_MKLDNN", "0"]
    assert line.endswith("(was 1)")
    assert not [line for line in show.plan_text(plan_of()).splitlines() if "*" in line[:3]]


def test_a_verbose_plan_shows_the_env_files_as_they_will_be() -> None:
    plan = plan_of(set=("BLAS=MKL",))
    line = "export BLAS='MKL'"
    assert line in show.plan_text(plan, verbose=True)
    assert line not in show.plan_text(plan)


def test_a_command_can_be_typed_as_it_is_shown() -> None:
    command = Command(argv=("/a b/python", "-c", "it's"), cwd="/", because="why")
    assert "$ '/a b/python' -c 'it'\"'\"'s'" in show.command_text(command)


def test_the_env_files_are_named_or_shown() -> None:
    plan = plan_of(env_shell="fish")
    assert show.env_text(plan, dry_run=False).splitlines() == [
        "wrote /src/pytorch/env_set.sh",
        "wrote /src/pytorch/env_set.fish",
    ]
    dry = show.env_text(plan, dry_run=True)
    assert all(env_file.text in dry for env_file in plan.env_files)
    assert "wrote" not in dry


# ---------------------------------------------------------------- the facts


def row(facts: Facts, name: str, *, verbose: bool = False) -> str:
    lines = show.facts_text(facts, verbose=verbose).splitlines()
    (line,) = [line for line in lines if line.split()[:1] == [name]]
    return line


def test_the_facts_of_a_machine() -> None:
    facts = linux_facts(
        cpu=Cpu(cores=64, affinity=8, quota=2.5, quota_via="cpu.max"),
        memory=Memory(total=32 * GIB, available=30 * GIB, limit=4 * GIB, used_in_limit=GIB, limit_via="v2"),
        environ={"USE_NCCL": "0"},
    )
    assert "Debian GNU/Linux 12" in row(facts, "system")
    assert "64 (8 by affinity, 2.5 by cgroup quota (cpu.max))" in row(facts, "cores")
    assert "30.0 GiB free of 32.0 GiB, limit 4.0 GiB of which 1.0 GiB used (v2)" in row(facts, "memory")
    assert "12.2.0" in row(facts, "g++")
    assert "/usr/bin/g++" in row(facts, "g++")
    assert "torch 2.8.0a0, setuptools" in row(facts, "source")
    assert row(facts, "commit").endswith("4567")
    assert row(facts, "USE_NCCL").endswith(" 0")


@each_case("memory", [Memory(), Memory(total=GIB)])
def test_what_is_unknown_is_reported(memory: Memory) -> None:
    assert "unknown" in row(linux_facts(memory=memory), "memory")


def test_uncommitted_changes_and_problems_are_reported() -> None:
    assert "uncommitted" in row(with_tree(linux_facts(), dirty=True), "commit")
    assert "no such folder" in row(with_tree(linux_facts(), problem="no such folder"), "source")


def test_a_missing_tool_lists_where_was_looked_on_request() -> None:
    facts = linux_facts(tools=(Tool(name="ninja", looked=("/usr/bin", "/opt/bin")),))
    assert "not found" in row(facts, "ninja")
    assert "/opt/bin" not in row(facts, "ninja")
    assert "/usr/bin, /opt/bin" in row(facts, "ninja", verbose=True)


def test_what_a_host_does_not_say_is_not_called_none() -> None:
    facts = linux_facts(host=replace(linux_facts().host, distribution=None, libc=None))
    assert "None" not in row(facts, "system")


# ---------------------------------------------------------------- findings, errors, reports

FINDINGS = (
    Finding(id="disk", status="error", text="1.0 GiB free", fix="Free some space."),
    Finding(id="cmake", status="unknown", text="no version"),
)


def test_findings_say_what_to_do() -> None:
    lines = plain(show.findings_text(FINDINGS)).splitlines()
    assert lines[1] == "Findings"
    assert lines[2].split() == ["error", "1.0", "GiB", "free"]
    assert "-> Free some space." in lines[3]
    assert len(lines) == 5
    assert show.findings_text(()) == ""


def test_an_error_is_a_paragraph() -> None:
    error = BuildFailed("It failed.", looked=("a.cpp:1: error: x", "  ^"), next_step="See build.log, line 7.")
    text = plain(error_text(error))
    for part in ("error: It failed.", "a.cpp:1: error: x", "See build.log, line 7."):
        assert part in text
    assert text.endswith("\n")


def test_a_refused_plan_lists_its_findings() -> None:
    text = error_text(PlanRefused("It cannot work.", findings=FINDINGS))
    assert "1.0 GiB free" in text
    assert "-> Free some space." in text


def test_an_error_for_a_program() -> None:
    made = error_object(PlanRefused("It cannot work.", findings=FINDINGS))
    assert (made["error"], made["exit_code"], made["what"]) == ("PlanRefused", 3, "It cannot work.")
    assert made["findings"] == FINDINGS
    assert error_object(UsageError("No."))["findings"] == ()


def test_a_report_counts_its_checks() -> None:
    checks = (
        CheckResult(check="import", outcome="passed", detail="2.8.0"),
        CheckResult(check="linalg", outcome="failed", detail="no LAPACK"),
        CheckResult(check="conv", outcome="not possible", detail="the sample has none"),
    )
    text = show.report_text(
        VerifyReport(python="/venv/bin/python", checks=checks, torch={"version": "2.8.0"})
    )
    assert "2.8.0 by /venv/bin/python" in text
    assert "1 passed, 1 failed, 1 not possible here" in text
    assert "FAILED" in text
    assert "no LAPACK" in text
    assert all(check.check in text for check in checks)


def test_a_report_without_checks_is_shown_too() -> None:
    report = VerifyReport(python="python", checks=())
    assert "0 passed, 0 failed" in show.report_text(report)


BUILT = Built(
    plan=plan_of(),
    verified=VerifyReport(python="/v/python", checks=(CheckResult(check="import", outcome="passed"),)),
    stages=(
        StageTime(stage="write env files", seconds=0.2, result="ok"),
        StageTime(stage="verify", seconds=7.25, result="ok"),
        StageTime(stage="compile", seconds=3725.0, result="ok"),
    ),
    caches=(CacheReport(tool="ccache", hits={"C++": 3}, misses={"C++": 1}), CacheReport(tool="sccache")),
    log="/src/pytorch/.torchbuild/logs/build.log",
)


def test_a_build_ends_with_what_it_is_and_how_it_is_used() -> None:
    lines = plain(show.built_text(BUILT, 3740.0, windows=False)).splitlines()
    assert lines[0].endswith("1 passed, 0 failed, 0 not possible here")
    assert lines[1] == "Built torch 2.8.0a0 (CPU, Release, develop) in 1 h 02 min"
    assert lines[-2] == "  use it"
    rows = dict(line.split(maxsplit=1) for line in lines[2:-2])
    assert rows == {
        "in": "/src/pytorch",
        "time": "compile 1 h 02 min, verify 7.2 s",
        "cache": "ccache: 3 of 4 compiles found (75%)",
        "log": BUILT.log,
        "report": "torchbuild report",
    }
    assert lines[-1].startswith(f"  $ {BUILT.plan.environment.python} -c 'import torch")


def test_a_warning_stands_at_the_end_as_well() -> None:
    plan = replace(BUILT.plan, findings=(Finding.warn("gpu", "it would not run here", "Name it."),))
    lines = plain(show.built_text(replace(BUILT, plan=plan), 5.0, windows=False)).splitlines()
    assert "  warning  it would not run here" in lines


def test_the_version_is_what_torch_says_of_itself() -> None:
    """PYTORCH_BUILD_VERSION can set another version than the plan's."""
    verified = VerifyReport(python="/v/python", checks=(), torch={"version": "2.9.1+cpu"})
    text = plain(show.built_text(replace(BUILT, verified=verified), 5.0, windows=False))
    assert "Built torch 2.9.1+cpu (CPU, Release, develop) in 5.0 s" in text


def test_one_target_is_no_torch_that_could_be_used() -> None:
    text = plain(show.built_text(replace(BUILT, verified=None), 5.0, windows=False, target="c10"))
    assert text.startswith("Built c10 of torch 2.8.0a0 (CPU, Release, develop) in 5.0 s")
    assert "import torch" not in text and BUILT.plan.build_dir in text


def test_a_wheels_torch_is_called_so() -> None:
    plan = replace(BUILT.plan, way=Way(name="from-wheel", because=""))
    text = plain(show.built_text(replace(BUILT, plan=plan, verified=None), 5.0, windows=False))
    assert text.startswith("Built torch 2.8.0a0 (from a wheel) in 5.0 s")


def test_nothing_built_is_one_line() -> None:
    text = show.built_text(replace(BUILT, up_to_date=True, verified=None), 1.23, windows=False)
    assert text == "torch 2.8.0a0 in /src/pytorch is up to date (1.2 s)\n"


def test_a_failed_check_shows_all_of_them() -> None:
    checks = (CheckResult(check="linalg", outcome="failed", detail="no LAPACK"),)
    text = show.built_text(replace(BUILT, verified=VerifyReport(python="p", checks=checks)), 1, windows=False)
    assert "no LAPACK" in text


def test_doctor_begins_with_the_verdict_and_what_is_wrong() -> None:
    plan = plan_of(linux_facts(compilers=()))
    lines = plain(show.doctor_text(plan, linux_facts())).splitlines()
    assert lines[0].startswith("Verdict: refuse, this cannot be built (")
    assert lines[1].split()[0] == "error"
    assert lines.index("Facts") < lines.index("Findings")
    fine = lines[lines.index("Findings") + 1 :]
    assert {line.split()[0] for line in fine} <= {"ok", "->"}


# ---------------------------------------------------------------- a clean


def test_a_removal_is_listed_by_folder() -> None:
    files = ("build/a.o", "build/x/b.o", "build/x/c.o", "torch/lib/libc10.so", "torch/version.py")
    kept = (("torch/_C.so", "changed since the build"),)
    uninstall = Command(argv=("pip",), cwd="/", because="the editable install of torch in /venv")
    removal = Removal(root="/src/pytorch", files=files, folders=(), kept=kept, planned=0, uninstall=uninstall)
    text = show.removal_text(removal)
    assert "/src/pytorch: 5 files" in text
    assert "the editable install of torch in /venv" in text
    assert "torch/_C.so" in text
    assert "changed since the build" in text
    assert (
        sum(
            int(line.split()[-2])
            for line in text.splitlines()
            if line.endswith((" file", " files")) and not line.startswith("To be")
        )
        == 5
    )


def test_the_facts_of_a_machine_with_cuda() -> None:
    split = gpu("9.0", mig=True, bus=None, probe="nvidia-smi")
    facts = cuda_facts(
        toolkit("12.4", cudnn="9.1.0", headers=False),
        toolkit("11.8", problem="nvcc does not run"),
        gpus=(gpu("8.6"), split, GpuSeen(probe="pci", pci_id="10de:ffff")),
        driver=driver("550.54", cuda="12.4", library="550.40"),
        libraries=(Library(name="cudnn", include="/opt/cudnn/include", found_via="CUDNN_ROOT"),),
        visible="",
        tegra=Tegra(model="Orin", l4t="36.4.3"),
        probes={"nvml": "2 GPUs"},
    )
    for line in (
        "12.4  /usr/local/cuda-12.4 (/usr/local), without headers, with cuDNN 9.1.0",
        "11.8  /usr/local/cuda-11.8 (/usr/local): nvcc does not run",
        "GPU of 8.6, compute capability 8.6, 24 GiB at 0000:01:00.0 (nvml)",
        "GPU of 9.0, compute capability 9.0, 24 GiB, split by MIG (nvidia-smi)",
        "10de:ffff (pci)",
        "550.54 (nvml), runs CUDA up to 12.4, kernel module 550.54, library 550.40",
        "version unknown  /opt/cudnn/include (CUDNN_ROOT)",
        "(empty: hides every GPU)",
        "Orin, L4T 36.4.3",
        "2 GPUs",
    ):
        assert f"  {line}\n" in show.facts_text(facts)
    none = show.facts_text(cuda_facts(), verbose=True)
    assert "CUDA toolkit  not found in PATH, /usr/local" in none


def test_a_removal_of_nothing_says_so() -> None:
    nothing = Removal(root="/src/pytorch", files=(), folders=(), kept=(), planned=0)
    assert show.removal_text(nothing) == "Nothing to remove: no build is recorded in /src/pytorch.\n"


def test_the_facts_of_a_windows_machine() -> None:
    facts = windows_facts(windows=windows(msvc("14.44.35207"), active="14.44.35207", git_long_paths=None))
    text = show.facts_text(facts)
    assert "Community 17.14.5  C:\\Program Files\\Microsoft Visual Studio\\2022\\Community (vswhere)" in text
    assert "cl.exe, active in this shell" in text
    assert "on, in git unknown" in text
    assert "Visual Studio" not in show.facts_text(linux_facts())


def test_a_machine_without_visual_studio_says_where_was_looked() -> None:
    facts = windows_facts(windows=windows(msvc("14.44", cl=None), visual_studios=(), sdks=()))
    assert "vswhere.exe" in show.facts_text(facts, verbose=True)
    assert "without a compiler for 64 bits" in show.facts_text(facts)


def test_a_command_is_quoted_for_the_system_of_its_paths() -> None:
    assert show.shell_text(("ninja", "-C", r"C:\my pt", "install")) == r'ninja -C "C:\my pt" install'
    assert show.shell_text(("winget", "--override", "--wait --quiet")) == 'winget --override "--wait --quiet"'
    assert show.shell_text(("ninja", "-C", "/my pt", "run.bat")) == "ninja -C '/my pt' run.bat"


def test_a_driver_that_gave_no_answer_was_not_found_by_anything() -> None:
    silent = driver("", found_via="", problem="NVML gave no answer within 5 s", module="", library="")
    text = show.facts_text(cuda_facts(gpus=(), driver=silent))
    assert "version unknown: NVML gave no answer within 5 s" in text


def test_without_a_checkout_nothing_is_planned() -> None:
    nothing = linux_facts(tree=tree(problem="it has no torch in it", version=None, era=None))
    text = plain(show.plan_text(plan_of(nothing)))
    assert text.startswith("Nothing is planned: there is no checkout to build.\n")
    assert "it has no torch in it" in text and "Verdict: refuse" in text
    assert not any(part in text for part in ("Commands", "Verification", "setup.py", "first build"))

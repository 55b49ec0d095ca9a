"""The entries for VS Code on each system, and the findings."""

from __future__ import annotations

from tests.support.for_each import each_case
from tests.support.machines import found
from torchbuild_tasks.features.develop.choose import BOTH, Debugging, findings, launch_lists, task_lists
from torchbuild_tasks.values import replace

READY = Debugging(
    environment="/venv/bin/python",
    python="/usr/bin/python3.11",
    gdb="/usr/bin/gdb",
    debugpy=True,
    ptrace_scope=0,
    debug_info=(("/src/pytorch/torch/lib/libc10.so", True),),
    gdbinit="/src/pytorch/.gdbinit",
)


@each_case(("windows", "kind"), [(False, "cppdbg"), (True, "cppvsdbg")])
def test_the_compound_names_entries_that_are_there(windows: bool, kind: str) -> None:
    lists = launch_lists(READY, "/src/pytorch", windows)
    entries = {entry["name"]: entry for entry in lists["configurations"][1]}
    (both,) = lists["compounds"][1]
    assert both["name"] == BOTH
    started, attached = (entries[name] for name in both["configurations"])
    assert (started["type"], started["python"]) == ("debugpy", "/venv/bin/python")
    assert (attached["type"], attached["request"]) == (kind, "attach")
    assert attached["processId"] == "${command:pickProcess}"


def test_gdb_gets_the_program_without_links_and_pytorchs_commands() -> None:
    """gdb attaches to the interpreter itself, not to the link of a venv."""
    (native,) = [e for e in launch_lists(READY, "/src/pytorch", False)["configurations"][1] if "MIMode" in e]
    assert (native["program"], native["MIMode"]) == ("/usr/bin/python3.11", "gdb")
    assert native["miDebuggerPath"] == "/usr/bin/gdb"
    assert any("/src/pytorch/tools/gdb/pytorch-gdb.py" in each["text"] for each in native["setupCommands"])
    without = launch_lists(replace(READY, gdbinit=None), "/src/pytorch", False)
    assert "pytorch-gdb" not in str(without)


def test_the_tasks_start_this_tool() -> None:
    for windows, matcher in ((False, "$gcc"), (True, "$msCompile")):
        build, test = task_lists(("/py", "-m", "tool"), windows)["tasks"][1]
        assert [build["command"], *build["args"][:3]] == ["/py", "-m", "tool", "build"]
        assert build["problemMatcher"] == [matcher]
        assert test["args"][2:] == ["test", "--source", "${workspaceFolder}", "--only", "${fileBasename}"]


def test_nothing_stands_in_the_way() -> None:
    assert {finding.status for finding in findings(READY, False)} == {"ok"}
    assert {finding.id for finding in findings(READY, True)} == {"debug-info"}, "no gdb and no Yama there"


@each_case(
    ("change", "id", "told"),
    [
        ({"gdb": None}, "gdb", "package gdb"),
        ({"ptrace_scope": 1}, "ptrace", "sudo tee /proc/sys/kernel/yama/ptrace_scope"),
        ({"ptrace_scope": 2}, "ptrace", "as root"),
        ({"ptrace_scope": 3}, "ptrace", "reboot"),
        ({"debug_info": (("/x/libc10.so", False),)}, "debug-info", "RelWithDebInfo"),
    ],
)
def test_what_stands_in_the_way_is_a_warning_with_its_cure(
    change: dict[str, object], id: str, told: str
) -> None:
    finding = found(findings(replace(READY, **change), False), id)
    assert finding.status == "warn"
    assert told in finding.fix


@each_case("seen", [(), (("/x/libc10.so", None),)])
def test_what_is_not_known_is_reported(seen: tuple[tuple[str, bool | None], ...]) -> None:
    known = replace(READY, debug_info=seen)
    assert found(findings(known, False), "debug-info").status == "unknown"


def test_a_command_can_be_copied_where_the_path_has_a_blank() -> None:
    here = replace(READY, environment="/my venv/bin/python", debugpy=False)
    assert found(findings(here, False), "debugpy").text.endswith(
        '"/my venv/bin/python" -m pip install debugpy'
    )


def test_no_yama_forbids_nothing() -> None:
    assert found(findings(replace(READY, ptrace_scope=None), False), "ptrace").status == "ok"

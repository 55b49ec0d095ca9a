from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs_symlinks
from tests.support.for_each import each_case
from torchbuild_tasks.model import Expectation
from torchbuild_tasks.system.process import Captured
from torchbuild_tasks.verify import session
from torchbuild_tasks.verify.judge import Seen
from torchbuild_tasks.verify.torch_probe import GATES, MARK

PASSED = Seen(outcome="passed")


def begin(name: str) -> bytes:
    return f"{MARK}{json.dumps({'begin': name})}\n".encode()


def answer(name: str, outcome: str = "passed", **more: Any) -> bytes:
    return begin(name) + f"{MARK}{json.dumps({'check': name, 'outcome': outcome, **more})}\n".encode()


END = f'{MARK}{{"end": true}}\n'.encode()
AGAIN = f'{MARK}{{"again": true}}\n'.encode()


class Interpreter:
    """Plays the probe: answers every check but those that end it."""

    def __init__(self, **deaths: Captured) -> None:
        self.deaths = deaths
        self.rounds: list[list[str]] = []

    def __call__(self, names: Sequence[str], seconds: float) -> Captured:
        self.rounds.append(list(names))
        said = b""
        for name in ["import", *(name for name in names if name != "import")]:
            if name in self.deaths:
                last = self.deaths[name]
                return Captured(
                    rc=last.rc, stdout=said + begin(name), stderr=last.stderr, timed_out=last.timed_out
                )
            said += answer(name)
        return Captured(rc=0, stdout=said + END)


# ---------------------------------------------------------------- reading


def test_what_torch_prints_between_is_passed_over() -> None:
    stdout = (
        b"hello\n\xff" + begin("import") + b"libgomp says " + answer("import", detail="x") + b"{}\n" + END
    )
    told = session.read_run(stdout)
    assert told == session.ProbeRun(
        seen={"import": Seen(outcome="passed", detail="x")}, at="import", ended=True
    )


@each_case(
    "line", [b"", b"{", b"[1]", b"null", b'{"check": "conv", "outcome": "splendid"}', b'{"check": "conv"}']
)
def test_a_line_that_is_not_ours_never_passes(line: bytes) -> None:
    told = session.read_run(MARK.encode() + line + b"\n")
    assert not told.ended
    assert all(seen.outcome == "failed" for seen in told.seen.values())


def test_values_are_texts() -> None:
    told = session.read_run(answer("config", values={"threads": 2}) + answer("conv", values=[1]))
    assert told.seen["config"].values == {"threads": "2"}
    assert told.seen["conv"].values == {}


# ---------------------------------------------------------------- asking again


def test_one_round_when_all_goes_well() -> None:
    ask = Interpreter()
    seen, farewell = session.observe(ask, ["import", "matmul"], 60)
    assert (seen, farewell) == ({"import": PASSED, "matmul": PASSED}, "")
    assert ask.rounds == [["import", "matmul"]]


def test_a_death_is_blamed_on_its_check_and_the_rest_is_queried_again() -> None:
    ask = Interpreter(conv=Captured(rc=-11, stderr=b"Fatal Python error\n"), linalg=Captured(rc=0xC0000005))
    seen, farewell = session.observe(ask, ["import", "linalg", "conv", "numpy"], 60)
    assert ask.rounds == [["import", "linalg", "conv", "numpy"], ["conv", "numpy"], ["numpy"]]
    assert (seen["import"], seen["numpy"], farewell) == (PASSED, PASSED, "")
    assert seen["linalg"].detail.endswith("exit status 0xc0000005 (access violation) during linalg")
    assert seen["conv"].outcome == "failed"
    assert seen["conv"].detail.endswith("(Segmentation fault) during conv\n  Fatal Python error")


def test_after_the_death_of_the_last_check_nothing_is_queried() -> None:
    ask = Interpreter(numpy=Captured(rc=-11))
    seen, farewell = session.observe(ask, ["import", "numpy"], 60)
    assert (len(ask.rounds), seen["numpy"].outcome, farewell) == (1, "failed", "")


def test_when_import_is_fatal_nothing_else_is_queried() -> None:
    ask = Interpreter(**{"import": Captured(rc=-4)})
    seen, _ = session.observe(ask, ["import", "conv"], 60)
    assert list(seen) == ["import"]
    assert seen["import"].detail == "the interpreter died by signal 4 (Illegal instruction) during import"


def test_an_import_that_dies_only_the_second_time_ends_too() -> None:
    rounds = iter([answer("import") + begin("conv"), *[begin("import")] * 9])
    seen, _ = session.observe(
        lambda names, seconds: Captured(rc=-11, stdout=next(rounds)), ["import", "conv", "numpy"], 60
    )
    assert {name: each.outcome for name, each in seen.items()} == {
        "import": "passed",
        "conv": "failed",
        "numpy": "failed",
    }
    assert "during import" in seen["numpy"].detail


def test_a_hang_that_the_probe_ended_is_called_so() -> None:
    ask = Interpreter(threads=Captured(rc=1, stderr=b"Timeout (0:03:00)!\nThread 0x1:\n"))
    seen, _ = session.observe(ask, ["import", "threads", "numpy"], 60)
    assert seen["threads"].detail.startswith("the interpreter gave no answer for too long during threads")
    assert seen["numpy"] == PASSED


def test_when_time_is_up_the_rest_was_not_tried() -> None:
    ask = Interpreter(conv=Captured(rc=124, timed_out=True))
    seen, _ = session.observe(ask, ["import", "conv", "numpy"], 60)
    assert (seen["conv"].outcome, seen["conv"].detail) == ("failed", "the time was up during conv")
    assert (seen["numpy"].outcome, seen["numpy"].detail) == (
        "not possible",
        "no time was left for this check",
    )
    assert len(ask.rounds) == 1


@each_case(
    ("captured", "words"),
    [
        (Captured(rc=127, stderr=b"cannot start /no/python: No such file"), "cannot start /no/python"),
        (
            Captured(rc=0, stdout=b"I am no Python\n"),
            "status 0, and printed nothing that can be read\n  I am no",
        ),
        (Captured(rc=0xC0000135), "exit status 0xc0000135 (a DLL was not found), and printed nothing"),
        (Captured(rc=124, timed_out=True), "the time was up"),
    ],
)
def test_an_interpreter_that_says_nothing(captured: Captured, words: str) -> None:
    seen, farewell = session.observe(lambda names, seconds: captured, ["import"], 60)
    assert seen["import"].outcome == "failed"
    assert words in seen["import"].detail
    assert farewell == ""


def test_a_failed_import_keeps_what_was_printed_next_to_it() -> None:
    captured = Captured(
        rc=0, stdout=answer("import", "failed", detail="ImportError") + END, stderr=b"loader\n"
    )
    seen, _ = session.observe(lambda names, seconds: captured, ["import", "conv"], 60)
    assert seen == {"import": Seen(outcome="failed", detail="ImportError\n  loader")}


# ---------------------------------------------------------------- a GPU that is not what it should be


def test_the_rest_is_queried_of_a_fresh_process() -> None:
    """After a fault on the GPU its error may stick to the process."""
    rounds = iter(
        [
            answer("import") + answer("cublas", "failed", detail="illegal address") + AGAIN,
            answer("import") + answer("nccl") + END,
        ]
    )
    asked: list[list[str]] = []

    def ask(names: Sequence[str], seconds: float) -> Captured:
        asked.append(list(names))
        return Captured(rc=0, stdout=next(rounds))

    seen, farewell = session.observe(ask, ["import", "cublas", "nccl"], 60)
    assert asked == [["import", "cublas", "nccl"], ["nccl"]]
    assert seen["cublas"] == Seen(outcome="failed", detail="illegal address")
    assert (seen["nccl"], farewell) == (PASSED, "")


def test_to_ask_again_and_again_without_an_answer_ends() -> None:
    rounds: list[int] = []

    def ask(names: Sequence[str], seconds: float) -> Captured:
        rounds.append(len(names))
        return Captured(rc=0, stdout=answer("import") + AGAIN)

    seen, _ = session.observe(ask, ["import", "cublas", "nccl"], 60)
    assert rounds == [3, 2, 1]
    assert [seen[name].outcome for name in ("cublas", "nccl")] == ["failed", "failed"]


@each_case("gate", ["cuda_available", "cuda_devices", "cuda_driver", "cuda_op"])
def test_behind_a_closed_gate_no_check_of_cuda_is_tried(gate: str) -> None:
    ask = Interpreter(**{gate: Captured(rc=-11)})
    seen, _ = session.observe(ask, ["import", gate, "cublas", "nccl", "numpy"], 60)
    assert ask.rounds == [["import", gate, "cublas", "nccl", "numpy"], ["numpy"]]
    assert seen["numpy"] == PASSED
    for name in ("cublas", "nccl"):
        assert seen[name].outcome == "not possible"
        assert seen[name].detail.startswith(
            f"not tried, because of {gate}: the interpreter died by signal 11"
        )


def test_a_gate_that_failed_is_closed_too() -> None:
    said = answer("import") + answer("cuda_op", "failed", detail="no kernel image\n  at torch") + AGAIN
    seen, _ = session.observe(
        lambda names, seconds: Captured(rc=0, stdout=said), ["import", "cuda_op", "nccl"], 60
    )
    assert seen["nccl"] == Seen(
        outcome="not possible", detail="not tried, because of cuda_op: no kernel image"
    )


def test_a_gate_where_nothing_can_be_shown_is_open() -> None:
    said = answer("import") + answer("cuda_op", "not possible") + answer("nccl", "not possible") + END
    ask = iter([Captured(rc=0, stdout=said)])
    seen, _ = session.observe(lambda names, seconds: next(ask), ["import", "cuda_op", "nccl"], 60)
    assert seen["nccl"] == Seen(outcome="not possible")


@each_case("name", GATES)
def test_a_hang_there_is_the_drivers(name: str) -> None:
    ask = Interpreter(**{name: Captured(rc=1, stderr=b"Timeout (0:00:20)!\nThread 0x1:\n")})
    seen, _ = session.observe(ask, ["import", name], 60)
    assert f"no answer for too long during {name}: {session.HANGS[name]}\n  Timeout" in seen[name].detail
    assert "driver" in session.HANGS[name] and "dmesg" in session.HANGS[name]


def test_a_crash_there_is_no_hang() -> None:
    seen, _ = session.observe(Interpreter(cuda_op=Captured(rc=-11)), ["import", "cuda_op"], 60)
    assert seen["cuda_op"].detail == "the interpreter died by signal 11 (Segmentation fault) during cuda_op"


@each_case("death", [Captured(rc=-6), Captured(rc=1, stderr=b"Timeout (0:00:20)!\n")])
def test_a_failure_of_the_driver_alone_is_no_failure_of_torch(death: Captured) -> None:
    seen, _ = session.observe(Interpreter(cuda_driver=death), ["import", "cuda_driver", "nccl"], 60)
    assert (seen["cuda_driver"].outcome, seen["nccl"].outcome) == ("not possible", "not possible")


# ---------------------------------------------------------------- the report


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    interpreter = Interpreter()

    def capture(argv: Sequence[str], **more: Any) -> Captured:
        calls.append({"argv": list(argv), "files": list(Path(more["cwd"]).iterdir()), **more})
        captured = interpreter(argv[5:], 1.0)
        values = {"version": "2.13.0+cpu", "file": "/site/torch/__init__.py"}
        return Captured(rc=0, stdout=captured.stdout + answer("import", values=values) + END)

    monkeypatch.setattr(session, "capture", capture)
    return calls


def run(*expectations: Expectation, environ: Mapping[str, str] | None = None, timeout: float = 600.0) -> Any:
    return session.verify(
        python="/venv/bin/python", expectations=expectations, environ=environ or {}, timeout=timeout
    )


def test_the_probe_runs_isolated_in_an_empty_folder(calls: list[dict[str, Any]]) -> None:
    run(Expectation(check="conv"), environ={"PATH": "/bin", "PYTHONPATH": "/src", "PythonHome": "/x"})
    (call,) = calls
    assert call["argv"][:2] == ["/venv/bin/python", "-I"]
    assert call["argv"][2:] == [str(session.PROBE), "--limit", "180.0", "import", "config", "conv"]
    assert call["env"] == {"PATH": "/bin"}
    assert call["files"] == []
    assert not Path(call["cwd"]).exists()


def test_what_is_skipped_is_not_run(calls: list[dict[str, Any]]) -> None:
    report = run(Expectation(check="cpp_extension", skip="no compiler"), Expectation(check="matmul"))
    assert calls[0]["argv"][5:] == ["import", "config", "matmul"]
    assert [row.outcome for row in report.checks] == ["passed", "not possible", "passed"]


def test_import_is_always_in_the_report_once(calls: list[dict[str, Any]]) -> None:
    assert [row.check for row in run().checks] == ["import"]
    assert [row.check for row in run(Expectation(check="import")).checks] == ["import"]
    assert [row.check for row in run(Expectation(check="import", skip="why not")).checks] == ["import"] * 2


def test_the_report_carries_what_torch_says_of_itself(calls: list[dict[str, Any]]) -> None:
    report = run(Expectation(check="import", key="version", wanted="2.13.0"))
    assert report.python == "/venv/bin/python"
    assert report.torch == {"version": "2.13.0+cpu", "file": "/site/torch/__init__.py"}
    assert [row.outcome for row in report.checks] == ["passed", "passed"]


def test_the_report_keeps_what_the_gpu_checks_found(monkeypatch: pytest.MonkeyPatch) -> None:
    said = b"".join(
        answer(name, outcome, values=values)
        for name, outcome, values in (
            ("config", "passed", {"cudnn": "8.5"}),
            ("cuda_available", "not possible", {"driver": "580.65.06", "runtime": "13.0"}),
            ("cuda_arch_list", "failed", {"arch_list": "sm_75"}),
            ("cuda_op", "passed", {"not": "kept"}),
            ("cudnn", "passed", {"cudnn": "8.5.0"}),
            ("nccl", "not possible", {"nccl": "2.29.7"}),
        )
    )
    captured = Captured(rc=0, stdout=answer("import") + said + END)
    monkeypatch.setattr(session, "capture", lambda argv, **more: captured)
    assert run().torch == {
        "cudnn": "8.5.0",
        "driver": "580.65.06",
        "runtime": "13.0",
        "arch_list": "sm_75",
        "nccl": "2.29.7",
    }


@needs_symlinks
@pytest.mark.usefixtures("calls")
def test_links_to_the_wanted_folder_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    file = str(tmp_path / "real" / "torch" / "__init__.py")
    said = Captured(rc=0, stdout=answer("import", values={"file": file}) + END)
    monkeypatch.setattr(session, "capture", lambda argv, **more: said)
    report = run(Expectation(check="import", key="inside", wanted=str(tmp_path / "link")))
    assert report.checks[-1].outcome == "passed"


def test_an_interpreter_that_dies_after_its_last_check(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Captured(rc=-11, stdout=answer("import") + answer("config") + END, stderr=b"double free\n")
    monkeypatch.setattr(session, "capture", lambda argv, **more: said)
    report = run()
    assert [(row.check, row.outcome) for row in report.checks] == [("import", "passed"), ("exit", "failed")]
    assert report.checks[-1].detail.endswith("(Segmentation fault) after the last check\n  double free")


def test_the_limit_of_a_check_is_never_longer_than_the_total(calls: list[dict[str, Any]]) -> None:
    run(timeout=7.0)
    assert calls[0]["argv"][3:5] == ["--limit", "7.0"]
    assert calls[0]["timeout"] <= 7.0

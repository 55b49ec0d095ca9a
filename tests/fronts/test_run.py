"""A verb that is ended from outside prints one paragraph, at any stage."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import POSIX, needs
from tests.support.machines import linux_facts
from torchbuild_tasks.errors import Interrupted, Untrusted, UsageError
from torchbuild_tasks.fronts import console, run
from torchbuild_tasks.fronts.reporter import ConsoleReporter
from torchbuild_tasks.options import BuildRequest, flag_name, variable_name
from torchbuild_tasks.values import to_json
from torchbuild_tasks.verbs import VERBS, Outcome


def test_a_terminal_shows_that_a_verb_works_unless_another_program_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    titles: list[str] = []
    monkeypatch.setattr(run, "load", lambda verb: lambda *_: Outcome(None))
    monkeypatch.setattr(run, "settle", lambda *_: None)
    monkeypatch.setattr(ConsoleReporter, "begin", lambda _, title: titles.append(title))
    assert {run.run_verb(verb, BuildRequest()) for verb in VERBS} == {0}
    assert titles == [verb.summary for verb in VERBS.values() if not verb.attached]


def test_cycles_are_looked_for_once_a_verb_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The console stops that while it reads modules; a build of hours must not go on so."""
    monkeypatch.setattr(run, "load", lambda verb: lambda *_: Outcome(None))
    monkeypatch.setattr(run, "settle", lambda *_: None)
    gc.disable()
    assert run.run_verb("plan", BuildRequest()) == 0
    assert gc.isenabled()


@pytest.mark.parametrize(("as_json", "answer"), [(True, True), (False, False)])
def test_what_is_not_trusted_stops_a_verb_that_acts(
    as_json: bool, answer: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --json nobody is asked; else the answer counts."""
    (tmp_path / "torchbuild.toml").write_text('python = "x/python"\n', "utf-8")
    asked: list[str] = []

    def confirm(_: ConsoleReporter, text: str) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr(ConsoleReporter, "confirm", confirm)
    with pytest.raises(Untrusted, match="not trusted"):
        run.settle("build", BuildRequest(source=str(tmp_path), json=as_json), ConsoleReporter())
    assert len(asked) == (0 if as_json else 1)


def press(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_outside_any_stage_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A look that only reads, or an import: nothing of it turns Ctrl-C into our own error."""
    monkeypatch.setattr(run, "load", lambda verb: press)
    assert run.run_verb("plan", BuildRequest()) == Interrupted.exit_code
    shown = capsys.readouterr()
    assert "Interrupted." in shown.err and "Traceback" not in shown.err and shown.out == ""


def test_ctrl_c_before_a_verb_begins_ends_as_shells_expect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "run", press)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # main sets its own
    with pytest.raises(SystemExit) as ended:
        console.main()
    assert ended.value.code == console.SIGINT_CODE == Interrupted.exit_code
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_a_limit_of_the_process_is_no_traceback(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object) -> None:
        raise error

    monkeypatch.setattr(run, "load", lambda verb: fail)
    assert run.run_verb("plan", BuildRequest()) == 2
    assert "ulimit -a" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EIO, "once that disk or server answers"),
        (errno.ENOMEM, "more memory"),
        (errno.EMFILE, "ulimit -n 4096"),
        (errno.ENOSPC, "make room"),
        (errno.EACCES, "yours to read and write"),
        (errno.ENAMETOOLONG, "shorter path"),
        (errno.ELOOP, "remove the one"),
    ],
)
def test_a_file_that_the_system_does_not_give_is_no_traceback(
    number: int, advice: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object) -> None:
        raise OSError(number, "it fails", "/co/x")

    monkeypatch.setattr(run, "load", lambda verb: fail)
    assert run.run_verb("plan", BuildRequest()) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "/co/x: it fails" in shown and advice in shown


@needs(POSIX, "a home directory that is asked of the system")
@pytest.mark.parametrize("verb", ["plan", "doctor", "clean"])
def test_a_path_that_leads_nowhere_is_no_traceback(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pathlib raises RuntimeError for ~ of an unknown user, and until 3.12 for links in a circle."""
    monkeypatch.chdir(tmp_path)
    assert console.run([verb, "--source", "~nobody-of-that-name/x"]) == UsageError.exit_code
    assert "~nobody-of-that-name is no home directory" in capsys.readouterr().err
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert console.run([verb, "--source", "a/x"]) == UsageError.exit_code
    assert "Links lead around in a circle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verb", "field", "value"),
    [
        ("plan", "mirror", "notaurl"),
        ("plan", "url", "notaurl"),
        ("plan", "cache", "notacache"),
        ("plan", "cache", "redis://"),
        ("plan", "cache_size", "many"),
        ("plan", "distribute", "a:b"),
        ("plan", "distribute", "reapi://host"),
        ("plan", "linker", "none-such"),
        ("plan", "url", "../none-such"),
        ("plan", "mirror", "http://[/"),
        ("container", "registry", "http://host"),
        ("container", "registry", "=x"),
    ],
)
def test_a_value_that_is_none_is_refused_by_what_the_user_wrote(
    verb: str,
    field: str,
    value: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The flag, the variable, or the setting with its file; also with the facts of another machine."""
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps(to_json(linux_facts())), encoding="utf-8")
    words = [verb, "build"] if verb == "container" else [verb, "--facts", str(facts)]
    flag = flag_name(field)

    def error(*more: str) -> str:
        assert console.run([*words, *more]) == UsageError.exit_code
        return " ".join(capsys.readouterr().err.split())

    assert error(flag, value).startswith(f"error: {flag}")
    settings = tmp_path / "torchbuild.toml"
    written = [value] if field == "registry" else value
    settings.write_text(f"{flag[2:]} = {json.dumps(written)}\n", encoding="utf-8")
    if field != "linker":  # which only a plan of this machine compares
        assert error("--config", str(settings)).startswith(f"error: {flag[2:]} in {settings}: ")
    monkeypatch.setenv(variable_name(field), value)
    assert error().startswith(f"error: {variable_name(field)}")


@pytest.mark.parametrize("flag", ["--wheels", "--cache-dir", "--linker", "--patch-dir"])
def test_a_file_for_a_folder_and_a_folder_for_a_program_are_refused(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not for another machine, whose files are not here."""
    (tmp_path / "file").touch()
    wrong = str(tmp_path if flag == "--linker" else tmp_path / "file")
    assert console.run(["plan", "--source", str(tmp_path), flag, wrong]) == UsageError.exit_code
    assert " ".join(capsys.readouterr().err.split()).startswith(f"error: {flag}")
    (tmp_path / "facts.json").write_text(json.dumps(to_json(linux_facts())), encoding="utf-8")
    assert console.run(["plan", "--facts", str(tmp_path / "facts.json"), flag, wrong]) == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["container", "write", "--memory", "-5G"], "--memory cannot be '-5G'"),
        (["container", "write", "--base", "not an image"], "--base 'not an image' is no image"),
        (["package", "wheel", "--max-size", "abc"], "--max-size cannot be 'abc'"),
        (["package", "wheel", "--max-size", "-1G"], "--max-size cannot be '-1G'"),
        (["cluster", "scheduler", "--listen", "999.1.1.1:70000"], "--listen '999.1.1.1:70000' is not"),
        (["plan", "--jobs", "1_0"], "--jobs '1_0' is not a whole number"),
        (["plan", "--jobs", "-3"], "--jobs cannot be -3"),
        (["plan", "--source", " "], "--source needs a value, and it is empty"),
        (["plan", "--set", "=1"], "--set USE_DISTRIBUTED=0"),
    ],
)
def test_what_a_flag_cannot_be_is_told_before_anything_else(
    words: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert console.run(words) == UsageError.exit_code
    assert told in " ".join(capsys.readouterr().err.split())


@needs(POSIX, "a scheduler of distributed compiles")
def test_a_token_that_is_not_there_is_told_before_anything_is_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cluster", "server", "http://host", "--token-file", str(tmp_path / "none")]
    assert console.run(words) == UsageError.exit_code
    assert str(tmp_path / "none") in capsys.readouterr().err


def test_a_file_that_is_no_archive_is_no_name_of_a_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").touch()
    assert console.run(["source", "get", str(tmp_path / "notes")]) == UsageError.exit_code
    assert "is a file, and no archive" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"memory": {"available": -5}}, "facts.memory.available is -5, not int >= 0"),
        ({"cpu": {"cores": 0}}, "facts.cpu.cores is 0, not int >= 1"),
        ({"cpu": {"cores": 99999999}}, "facts.cpu.cores is 99999999, not int <= 1048576"),
    ],
)
def test_a_number_that_no_machine_has_is_refused_by_its_name(
    facts: dict[str, dict[str, int]], field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = to_json(linux_facts())
    for part, values in facts.items():
        dump[part] |= values
    (tmp_path / "facts.json").write_text(json.dumps(dump), encoding="utf-8")
    assert console.run(["plan", "--facts", str(tmp_path / "facts.json")]) == UsageError.exit_code
    assert field in " ".join(capsys.readouterr().err.split())


def test_folders_of_path_that_depend_on_the_current_one_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout may bring a `bin/git`."""
    absolute = [str(Path(name).absolute()) for name in ("one", "two")]
    monkeypatch.setenv("PATH", os.pathsep.join((".", absolute[0], "", "bin", "./bin", absolute[1], "..")))
    seen = []

    def look(*given: object) -> Outcome:
        seen.append(os.environ["PATH"])
        return Outcome({})

    monkeypatch.setattr(run, "load", lambda verb: look)
    assert run.run_verb("plan", BuildRequest()) == 0
    assert seen == [os.pathsep.join(absolute)]


@needs(POSIX, "a current folder that can be removed")
def test_a_removed_current_folder_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def look(*_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setattr(run, "load", lambda verb: look)
    with pytest.raises(FileNotFoundError):  # something else is missing
        run.run_verb("plan", BuildRequest())
    gone.rmdir()
    assert run.run_verb("plan", BuildRequest()) == UsageError.exit_code
    assert "The current folder was removed." in capsys.readouterr().err

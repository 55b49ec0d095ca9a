"""Invoke, the console script and nox: the same arguments give the same request and exit code."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import nox.logger
import nox.registry
import pytest
from invoke.collection import Collection
from invoke.program import Program

import torchbuild_tasks
from tests.support.capabilities import needs
from tests.support.machines import actions, example, request_of, spelled
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.fronts import console, nox_sessions
from torchbuild_tasks.fronts import run as fronts_run
from torchbuild_tasks.fronts.invoke_tasks import make_namespace, words_by_verb
from torchbuild_tasks.fronts.parsing import flags, parse
from torchbuild_tasks.options import BuildRequest, variable_name
from torchbuild_tasks.verbs import SESSIONS, VERBS

needs_sigpipe = needs(hasattr(signal, "SIGPIPE"), "SIGPIPE")
EVERY = [(verb, field.name) for verb in VERBS for field in flags(verb)]
Ran = list[tuple[str, BuildRequest]]
Run = Callable[[list[str]], int]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Every verb that a runner runs, instead of running it; ends with exit code 0."""
    seen: Ran = []

    def run_verb(verb: str, request: BuildRequest) -> int:
        seen.append((verb, request))
        return 0

    monkeypatch.setattr(fronts_run, "run_verb", run_verb)
    return seen


def runner(program: Program, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(words: list[str]) -> int:
        argv = ["inv", *words]
        monkeypatch.setattr(sys, "argv", argv)
        try:
            program.run(argv)
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    return run


@pytest.fixture
def inv(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Invoke with a user's tasks.py, which it copies into a collection of its own class."""
    tasks = ModuleType("tasks")
    tasks.namespace = torchbuild_tasks.namespace  # type: ignore[attr-defined]
    return runner(Program(name="inv", namespace=Collection.from_module(tasks)), monkeypatch)


@pytest.fixture
def torchbuild() -> Run:
    """The console script."""

    def run(words: list[str]) -> int:
        try:
            return console.run(words)
        except SystemExit as end:
            return int(end.code or 0)

    return run


def through_nox(verb: str, words: list[str]) -> int:
    try:
        nox_sessions.run(verb, tuple(words))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


# ---------------------------------------------------------------- the same words


def names_in_turn() -> dict[str, list[str]]:
    """Every flag with one of the verbs that have it, not always the same; a verb has all at once below."""
    turns: dict[str, list[str]] = {}
    for number, name in enumerate(dict.fromkeys(name for _, name in EVERY)):
        verbs = [verb for verb, other in EVERY if other == name]
        turns.setdefault(verbs[number % len(verbs)], []).append(name)
    return turns


def same_everywhere(verb: str, names: Iterable[str], inv: Run, torchbuild: Run, ran: Ran) -> None:
    for name in names:
        ran.clear()
        values = {**actions(verb), name: example(name, verb)}
        words = [word for field, value in values.items() for word in spelled(field, value, verb)]
        codes = [inv([verb, *words]), torchbuild([verb, *words]), through_nox(verb, words)]
        assert (name, codes) == (name, [0, 0, 0])
        assert ran == [(verb, request_of(verb, **values))] * 3, name


@pytest.mark.one_system  # under Windows all flags of a verb at once, below
@pytest.mark.parametrize(("verb", "names"), names_in_turn().items(), ids=list(names_in_turn()))
def test_each_flag_means_the_same_everywhere(
    verb: str, names: list[str], inv: Run, torchbuild: Run, ran: Ran
) -> None:
    same_everywhere(verb, names, inv, torchbuild, ran)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_each_flag_with_every_verb_that_has_it(verb: str, inv: Run, torchbuild: Run, ran: Ran) -> None:
    same_everywhere(verb, [field.name for field in flags(verb)], inv, torchbuild, ran)


@pytest.mark.parametrize("verb", VERBS)
def test_all_flags_at_once_mean_the_same_everywhere(verb: str, inv: Run, torchbuild: Run, ran: Ran) -> None:
    words = [word for field in flags(verb) for word in spelled(field.name, example(field.name, verb), verb)]
    assert [inv([verb, *words]), torchbuild([verb, *words]), through_nox(verb, words)] == [0, 0, 0]
    assert ran == [(verb, parse(verb, words))] * 3


def test_no_words_set_no_field(inv: Run, ran: Ran) -> None:
    assert inv(["plan"]) == 0
    assert ran == [("plan", BuildRequest())]


@pytest.mark.parametrize(
    ("verb", "words", "near"),
    [
        ("plan", ["--cuad"], "--cuda"),
        ("build", ["--sorce", "x"], "--source"),
        ("build", ["--cpu", "--jbos=3"], "--jobs"),
        ("clean", ["--preset", "dev"], "clean has no flag --preset"),
        ("build", ["--jobs", "abc"], "not a whole number"),
        ("build", ["--jobs", "99999999999999999999"], "is too large: at most 999999999"),
    ],
)
def test_an_unknown_flag_or_value_ends_with_2_everywhere(
    verb: str,
    words: list[str],
    near: str,
    inv: Run,
    torchbuild: Run,
    ran: Ran,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for run in (inv, torchbuild, lambda argv: through_nox(argv[0], argv[1:])):
        assert run([verb, *words]) == 2
        said = capsys.readouterr()
        assert near in said.err
        assert said.out == ""
    assert ran == []


def test_the_name_of_a_verb_may_be_a_value(inv: Run, torchbuild: Run, ran: Ran) -> None:
    for verb in VERBS:
        ran.clear()
        words = ["--source", verb, "--facts", "x.json", "--preset", "full"]
        assert [inv(["plan", *words]), torchbuild(["plan", *words]), through_nox("plan", words)] == [0, 0, 0]
        assert ran == [("plan", BuildRequest(source=verb, facts="x.json", preset="full"))] * 3


def test_two_verbs_in_one_line_each_have_their_flags(inv: Run, ran: Ran) -> None:
    assert inv(["plan", "--cpu", "clean", "--yes"]) == 0
    assert ran == [("plan", BuildRequest(cpu=True)), ("clean", BuildRequest(yes=True))]


def test_the_second_verb_refuses_unknown_flags_too(inv: Run, ran: Ran) -> None:
    assert inv(["plan", "--cpu", "clean", "--yse"]) == 2
    assert ran == []


def test_the_verbs_inside_a_sub_collection(monkeypatch: pytest.MonkeyPatch, ran: Ran) -> None:
    root = Collection()
    root.add_collection(make_namespace(), name="torch")
    run = runner(Program(name="inv", namespace=root), monkeypatch)
    assert run(["torch.plan", "--cpu"]) == 0
    assert run(["torch.plan", "--cuad"]) == 2
    assert ran == [("plan", BuildRequest(cpu=True))]


def test_a_mistyped_verb_names_the_nearest(torchbuild: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert torchbuild(["biuld", "--cpu"]) == 2
    assert "did you mean build?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["plan", "-x"], ["--sorce", "x", "plan"]])
def test_a_flag_is_not_called_a_verb(
    words: list[str], torchbuild: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert torchbuild(words) == 2
    assert "no verb -" not in capsys.readouterr().err


def test_a_flag_given_twice_counts_as_it_was_given_last(inv: Run, torchbuild: Run, ran: Ran) -> None:
    words = ["plan", "--jobs", "3", "--cpu", "--jobs", "4", "--cpu"]
    assert [inv(words), torchbuild(words), through_nox("plan", words[1:])] == [0, 0, 0]
    assert ran == [("plan", BuildRequest(jobs=4, cpu=True))] * 3


@pytest.mark.parametrize("words", [["plan", "-f", "x"], ["plan", "-f"], ["-f", "x.yaml", "plan"]])
def test_a_file_that_invoke_cannot_read_is_an_error_and_no_traceback(
    words: list[str], inv: Run, ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inv(words) == 2
    assert "--config FILE" in capsys.readouterr().err
    assert ran == []


@pytest.mark.parametrize(
    "words",
    [["help"], ["-h"], ["help", "plan"], ["--help", "plan"], ["plan", "-h"], ["plan", "--json", "--help"]],
)
def test_help_in_every_spelling(
    words: list[str], torchbuild: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert torchbuild(words) == 0
    assert capsys.readouterr().out.startswith("usage: torchbuild ")


def test_dashes_and_underscores_of_a_name_are_the_same(torchbuild: Run, ran: Ran) -> None:
    assert [torchbuild(["build-cpu"]), torchbuild(["debug_config"])] == [0, 0]
    assert [verb for verb, _ in ran] == ["build", "debug-config"]


def test_an_error_before_any_verb_is_json_when_requested(
    torchbuild: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert torchbuild(["--json"]) == 2
    assert '"exit_code": 2' in capsys.readouterr().out


def test_invokes_own_dry_run_does_not_build(inv: Run, ran: Ran) -> None:
    """`inv build --dry` sets Invoke's own dry mode, which promises that nothing is run."""
    inv(["build", "--dry"])
    assert [request.dry_run for verb, request in ran] in ([], [True])


# ---------------------------------------------------------------- exit codes


@pytest.mark.parametrize("code", [0, 2, 3, 6, 7, 130])
def test_the_exit_code_of_a_verb_is_that_of_the_runner(
    code: int, inv: Run, torchbuild: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fronts_run, "run_verb", lambda verb, request: code)
    assert [inv(["plan"]), torchbuild(["plan"]), through_nox("plan", [])] == [code, code, code]


# ---------------------------------------------------------------- what they list


def test_the_collection_lists_all_verbs(inv: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert inv(["--list"]) == 0
    listed = capsys.readouterr().out
    for verb in VERBS:
        assert any(line.split()[:1] == [verb] for line in listed.splitlines())
        assert VERBS[verb].summary[:30] in listed


def test_invokes_own_help_of_a_verb_is_ours(inv: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert inv(["--help", "plan"]) == 0
    assert capsys.readouterr().out.startswith("usage: invoke plan")


def test_the_words_of_each_verb() -> None:
    assert words_by_verb(["-e", "plan", "--cpu"]) == [("plan", ["--cpu"])]
    assert words_by_verb(["torch.plan", "--cpu"]) == [("plan", ["--cpu"])]
    assert words_by_verb(["build", "--cpu", "plan"]) == [("build", ["--cpu"]), ("plan", [])]
    assert words_by_verb(["plan", "--source", "build", "--cpu"]) == [("plan", ["--source", "build", "--cpu"])]
    assert words_by_verb(["mine", "--foo", "plan", "--cpu"]) == [("plan", ["--cpu"])]


def test_what_stands_behind_two_dashes_belongs_to_another_program(
    inv: Run, torchbuild: Run, ran: Ran
) -> None:
    words = ["--only", "test_torch", "--", "-k", "a b", "--source", "plan"]
    assert [inv(["test", *words]), torchbuild(["test", *words]), through_nox("test", words)] == [0, 0, 0]
    assert (
        ran == [("test", request_of("test", only="test_torch", words=("-k", "a b", "--source", "plan")))] * 3
    )


def test_words_behind_two_dashes_are_refused_where_no_verb_reads_them(
    inv: Run, torchbuild: Run, ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = [inv(["plan", "--", "x"]), inv(["test", "plan", "--", "x"]), torchbuild(["plan", "--", "x"])]
    assert refused == [2, 2, 2]
    assert capsys.readouterr().err.count("plan takes no words after --") == 3
    assert ran == []


@pytest.fixture
def registry() -> Iterator[None]:
    """nox's list of sessions, given back as it was."""
    kept = nox.registry._REGISTRY.copy()
    nox.registry._REGISTRY.clear()
    yield
    nox.registry._REGISTRY.clear()
    nox.registry._REGISTRY.update(kept)


@pytest.mark.usefixtures("ran")
def test_nox_shows_what_libraries_log_only_from_a_warning_on(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    kept = root.level
    nox.logger.setup_logging(color=False)
    try:
        through_nox("plan", [])
        for name in ("some_library", "nox"):
            logging.getLogger(name).debug("%s in detail", name)
            logging.getLogger(name).warning("%s warns", name)
    finally:
        root.handlers[:] = [each for each in root.handlers if each.get_name() != "nox-stream-handler"]
        root.setLevel(kept)
    shown = capsys.readouterr().err
    assert "some_library in detail" not in shown
    assert all(words in shown for words in ("some_library warns", "nox in detail", "nox warns"))


@pytest.mark.usefixtures("registry")
def test_nox_gets_a_session_a_verb_and_none_of_them_by_default() -> None:
    torchbuild_tasks.register()
    sessions = nox.registry.get()
    assert set(sessions) == {"build_cpu", "build_cuda", *VERBS}
    for session in sessions.values():
        assert session.default is False
        assert session.python is False
        assert session.__doc__


@pytest.mark.usefixtures("registry")
def test_some_of_the_sessions_under_another_name() -> None:
    torchbuild_tasks.register(names=("build_cpu", "verify"), prefix="torch_")
    assert set(nox.registry.get()) == {"torch_build_cpu", "torch_verify"}


@pytest.mark.usefixtures("registry")
def test_the_help_says_what_the_users_own_files_call_a_verb(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torchbuild_tasks.register("build_cpu", prefix="torch_")
    with pytest.raises(SystemExit):
        nox.registry.get()["torch_build_cpu"].func(SimpleNamespace(posargs=["--help"]))
    own = Collection(torch=make_namespace())
    assert runner(Program(name="inv", namespace=own), monkeypatch)(["torch.build_cpu", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "usage: nox -s torch_build_cpu -- [FLAGS]" in shown
    assert "usage: invoke torch.build-cpu [FLAGS]" in shown


@pytest.mark.usefixtures("registry")
def test_a_session_that_the_noxfile_has_itself_is_left_out() -> None:
    torchbuild_tasks.register(leave_out=("bench", "test"))
    assert set(nox.registry.get()) == {"build_cpu", "build_cuda", *VERBS} - {"bench", "test"}


@pytest.mark.usefixtures("registry")
def test_a_session_that_is_there_already_stays() -> None:
    def build(session: nox.Session) -> None:
        """Build the wheel of this project."""

    nox.session(build)
    torchbuild_tasks.register()
    assert nox.registry.get()["build"].__doc__ == "Build the wheel of this project."
    assert "build_cpu" in nox.registry.get()


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("which", ["names", "leave_out"])
def test_a_name_that_is_no_session_is_reported(which: str) -> None:
    with pytest.raises(ValueError, match=r"no sessions of torchbuild_tasks: buidl; it has build_cpu, "):
        torchbuild_tasks.register(**{which: ("buidl", "build_cpu")})  # type: ignore[arg-type]
    assert set(nox.registry.get()) == set()


@pytest.mark.usefixtures("registry")
def test_names_are_one_word_several_or_a_list() -> None:
    torchbuild_tasks.register("build_cpu")
    torchbuild_tasks.register("plan", "verify")
    torchbuild_tasks.register(["doctor"], prefix="torch_")
    assert set(nox.registry.get()) == {"build_cpu", "plan", "verify", "torch_doctor"}
    torchbuild_tasks.register(leave_out="test")
    assert "build" in nox.registry.get() and "test" not in nox.registry.get()
    with pytest.raises(TypeError, match="not name"):
        torchbuild_tasks.register(name="build_cpu")


# ---------------------------------------------------------------- the environment


def test_a_variable_is_a_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "JOBS": "3",
        "OFFLINE": "1",
        "WITH_HELPER": "mkl 'a b'",
        "BUILD_TYPE": "Debug",
    }.items():
        monkeypatch.setenv(f"TORCHBUILD_{name}", value)
    request = parse("build", ["--build-type", "Release"])
    assert (request.jobs, request.offline, request.with_helper) == (3, True, ("mkl", "a b"))
    assert request.build_type == "Release"
    assert set(request.from_environment) == {"jobs", "offline", "with_helper"}


def test_a_device_on_the_command_line_silences_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBUILD_CUDA", "1")
    assert parse("build", []).cuda
    assert not parse("build", ["--cpu"]).cuda
    assert not parse("build", [], fixed={"cpu": True}).cuda


@pytest.mark.parametrize(
    ("variable", "value"),
    [("JOBS", "many"), ("OFFLINE", "perhaps"), ("PRESET", "dve"), ("SET", "A='b"), ("CPU", "1")],
)
def test_a_wrong_variable_is_named(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBUILD_CUDA", "1")
    monkeypatch.setenv(f"TORCHBUILD_{variable}", value)
    with pytest.raises(UsageError, match=f"TORCHBUILD_{variable}"):
        parse("build", [])


def test_a_variable_that_says_no_silences_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBUILD_OFFLINE", "0")
    request = parse("build", [])
    assert not request.offline
    assert request.denied_by_environment == ("offline",)
    monkeypatch.setenv("TORCHBUILD_OFFLINE", "")
    assert parse("build", []).denied_by_environment == ()


def test_no_variable_of_a_flag_has_another_meaning() -> None:
    others = {"CACHE", "NAME", "STATE", "STALL", "RUN", "TREE", "VCVARS", "RESULT", "TEXT", "TITLE", "COMMIT"}
    names = [variable_name(field.name) for verb in VERBS for field in flags(verb)]
    assert not {f"TORCHBUILD_{other}" for other in others} & set(names)


@pytest.mark.parametrize("words", [["--version"], ["-V", "--verbose"], ["--version", "--json"]])
def test_the_version_says_what_it_runs_on(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert console.run(words) == 0
    said = capsys.readouterr().out
    assert torchbuild_tasks.version() in said
    for part in ("python", "nox", "invoke"):
        assert part in said


def test_help_begins_with_the_flags_of_the_verb(torchbuild: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert torchbuild(["build_cpu", "--help"]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles[:2] == ["Only for build:", "Often used:"]
    assert titles[-1] == "Common:"


@pytest.mark.parametrize(
    ("name", "verb", "request_"),
    [
        ("build_cpu", "build", BuildRequest(cpu=True, jobs=3)),
        ("build_cuda", "build", BuildRequest(cuda=True, jobs=3)),
        ("build", "build", BuildRequest(jobs=3)),
        ("verify", "verify", request_of("verify", jobs=3)),
        ("env", "env", BuildRequest(jobs=3)),
        ("doctor", "doctor", request_of("doctor", jobs=3)),
    ],
)
def test_a_name_means_the_same_in_every_runner(
    name: str, verb: str, request_: BuildRequest, inv: Run, torchbuild: Run, ran: Ran
) -> None:
    words = ["--jobs", "3"]
    dashed = name.replace("_", "-")  # Invoke spells the names of all tasks so
    codes = [inv([dashed, *words]), torchbuild([name, *words]), through_nox(name, words)]
    assert codes == [0, 0, 0]
    assert ran == [(verb, request_)] * 3


def test_the_command_lists_each_of_its_verbs_once(
    torchbuild: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([], ["--help"], ["-h"]):
        assert torchbuild(words) == 0
        listed = capsys.readouterr().out
        assert sorted(re.findall(r"^  (\S+)", listed, re.MULTILINE)) == sorted(SESSIONS)
        assert all(SESSIONS[name].summary in listed for name in SESSIONS)
    assert torchbuild(["--version"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"torchbuild {torchbuild_tasks.version()}"


def test_an_error_of_the_words_is_json_when_requested(capsys: pytest.CaptureFixture[str]) -> None:
    assert through_nox("plan", ["--json", "--cuad"]) == 2
    said = capsys.readouterr()
    assert '"exit_code": 2' in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    "words", [["helpers", "--help"], ["--help", "helpers"], ["helpers", "list", "--help"]]
)
def test_help_for_a_verb_with_actions_needs_none(
    words: list[str], torchbuild: Run, ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    assert torchbuild(words) == 0
    assert "--with-helper" in capsys.readouterr().out
    assert ran == []


@pytest.mark.integration
@needs_sigpipe
@pytest.mark.parametrize("words", [["--help"], ["plan", "--help"], ["versions", "--json"]])
def test_a_reader_that_stops_gets_no_traceback(words: list[str]) -> None:
    """`torchbuild versions | head`, where head has gone."""
    read, write = os.pipe()
    os.close(read)
    argv = [sys.executable, "-m", "torchbuild_tasks.fronts.console", *words]
    with os.fdopen(write, "w") as gone:
        done = subprocess.run(argv, stdout=gone, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (console.SIGPIPE_CODE, "")


@pytest.mark.integration
@needs(Path("/dev/full").exists(), "/dev/full")
@pytest.mark.parametrize("words", [["--help"], ["versions", "--json"]])
def test_output_without_room_gets_no_traceback(words: list[str]) -> None:
    argv = [sys.executable, "-m", "torchbuild_tasks.fronts.console", *words]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr == "\nerror: what this prints cannot be written: No space left on device.\n"


@pytest.mark.integration
@needs(sys.platform != "win32", "a shell that closes streams")
def test_closed_streams_are_no_place_for_files(tmp_path: Path) -> None:
    """The next file that is opened would be stdout, and get what is printed."""
    code = "import os, sys; from torchbuild_tasks.fronts import console; console._open_streams(); " + (
        "number = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR); print('lost'); sys.exit(number < 3)"
    )
    file = tmp_path / "file"
    argv = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code, str(file)]
    assert subprocess.run(argv, check=False, timeout=120).returncode == 0
    assert file.read_bytes() == b""

"""What a verb prints and with which exit code it ends; results on stdout, the rest on stderr."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines import linux_facts, plan_of, request_of, with_tree
from torchbuild_tasks import errors
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.bisect.act import BisectResult
from torchbuild_tasks.features.bisect.choose import Step
from torchbuild_tasks.features.bootstrap.choose import Bootstrap, Missing
from torchbuild_tasks.features.develop.act import DebugConfig, Written
from torchbuild_tasks.features.helpers.choose import HelperLine, HelperReport
from torchbuild_tasks.features.manifest.compare import Comparison, Difference
from torchbuild_tasks.features.manifest.replay import Replay
from torchbuild_tasks.features.package.act import Package
from torchbuild_tasks.features.package.choose import SizeReport
from torchbuild_tasks.features.publish import choose as publishing
from torchbuild_tasks.features.report.verb import ReportFiles
from torchbuild_tasks.features.support.verb import SupportFile
from torchbuild_tasks.features.trust.act import Trusted
from torchbuild_tasks.fronts.parsing import request_class
from torchbuild_tasks.fronts.run import run_verb, show_error
from torchbuild_tasks.model import (
    BuildPlan,
    CacheState,
    Cluster,
    Command,
    Diagnosis,
    Facts,
    Finding,
    Reading,
    source,
)
from torchbuild_tasks.model.record import Built, CheckResult, Removal, VerifyReport
from torchbuild_tasks.model.source import Away, Checkout, Entering, Last, Shown, SourceReport
from torchbuild_tasks.model.wheel import Member
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.versions import version_lines
from torchbuild_tasks.system import lock
from torchbuild_tasks.values import dumps, from_json, replace
from torchbuild_tasks.verbs import VERBS, Outcome

SOUND = plan_of(env_shell="fish")
HOPELESS = plan_of(linux_facts(compilers=()))
GOOD = VerifyReport(python="/venv/bin/python", checks=(CheckResult(check="import", outcome="passed"),))
BAD = VerifyReport(
    python="/venv/bin/python",
    checks=(*GOOD.checks, CheckResult(check="linalg", outcome="failed", detail="no LAPACK")),
)


REMOVAL = Removal(
    root="/src/pytorch", files=("build/a.o", "build/b.o"), folders=("build/",), kept=(), planned=0
)
BROKEN = Finding(id="a", status="error", text="b is gone")
LINE = HelperLine(
    id="sccache-0.16.0", because="a compiler cache", folder="/cache/sccache", wanted=False, here=False, size=9
)
TOLD = Diagnosis(
    id="oom", cause="Memory ran out.", fix="Less at once.", command="torchbuild build", see="x#oom"
)
READING = Reading(
    status="diagnosed", error_line=" Killed", error_block=(" Killed",), line_number=7, diagnoses=(TOLD, TOLD)
)
DIFFERENT = (Difference(group="source", name="commit", there="a", here="b", remedy="git checkout a"),)
DEBUG = Shown(
    name="debug",
    folder="/src/pytorch-debug",
    state="there",
    active=False,
    ref="v2.9.1",
    parents=("base",),
    last=Last(result="ok", finished="2026-11-21", torch="2.9.1", python="/venv/bin/python"),
    values={"cuda": (True, "t.toml"), "with_helper": (("mkl", "magma"), "[builds.base] in t.toml")},
)
STEP = Step(commit="c" * 40, title="one", verdict="skip", because="broken", seconds=1.0, finished="t")
PUBLISHED = publishing.Step(
    file=publishing.File(name="t.whl", project="t", version="1", sha256="0", size=1), what="send"
)
RESULTS: dict[str, Any] = {
    "doctor": (linux_facts(), SOUND),
    "bootstrap": Bootstrap(
        manager="apt",
        missing=(Missing(package="g++", kind="needed", because="a compiler", name="g++"),),
        commands=(Command(argv=("apt-get", "install", "g++"), cwd="/", because="g++"),),
    ),
    "plan": SOUND,
    "env": SOUND,
    "build": Built(plan=SOUND, verified=GOOD),
    "diagnose": READING,
    "support": SupportFile(path="a.zip", members=("about.txt",), redacted={"user": 2}, problems=("plan: x",)),
    "report": ReportFiles(page=Path("report.html"), trace=None, steps=3, notes=("no record",)),
    "clean": REMOVAL,
    "verify": GOOD,
    "helpers": HelperReport(action="list", lines=(LINE, replace(LINE, here=True, wanted=True))),
    "cache": (CacheState(tool="ccache", version="4.7.5", program="/usr/bin/ccache", folder="/c", used=9),),
    "cluster": (
        Cluster(url="http://big:10600", conf="/c", servers=2, cpus=64, busy=3),
        Cluster(url="http://other:10600"),
    ),
    "versions": version_lines(load_catalog(), linux_facts()),
    "replay": (Replay(plan=SOUND, differences=DIFFERENT, not_carried=("A_TOKEN",)), None),
    "compare": Comparison(differences=DIFFERENT, not_compared=("source: a folder",)),
    "builds": (DEBUG, replace(DEBUG, name="other", last=None, active=True)),
    "source": SourceReport(action="get", checkouts=(Checkout(path="/pt", kind="clone", version="2.9.1"),)),
    "publish": (
        (PUBLISHED,),
        True,
    ),
    "package": Package(
        path=Path("torch.whl"),
        version="2.9.1+cu126",
        platform="manylinux_2_28_x86_64",
        grafted={"libgomp.so.1": "/usr/lib/libgomp.so.1"},
        requires=("nvidia-nccl-cu12",),
        expects=("libcuda.so.1",),
        stripped=9,
        size=SizeReport(packed=9, size=99, largest=(Member(name="a", size=99, packed=9),)),
        notes=("a note",),
    ),
    "container": Outcome({"image": "localhost/torchbuild:1"}, "wrote Containerfile\n"),
    "debug-config": DebugConfig(
        files=(Written(path="launch.json"), Written(path="tasks.json")), commands="it is there", findings=()
    ),
    "test": 0,
    "bench": 0,
    "config": ({"keys": ()}, "Set\n"),
    "completion": "complete -F _shtab_torchbuild torchbuild\n",
    "trust": ({"trusted": Trusted(place="/src")}, "Trusted.\n"),
    "bisect": BisectResult(first_bad=("a", "b"), messages=("commit a", "commit b"), steps=(STEP,), log="/l"),
}
WORDS: dict[str, dict[str, Any]] = {
    "helpers": {"action": "list"},
    "cache": {"action": "stats"},
    "completion": {"action": "bash"},
    "cluster": {"action": "status"},
    "builds": {"action": "list"},
    "diagnose": {"log": "-"},
    "replay": {"manifest": "a.json"},
    "compare": {"manifest": "a.json", "other": "b.json"},
    "source": {"action": "get"},
    "package": {"action": "wheel"},
    "publish": {"place": "index"},
    "container": {"action": "write"},
}
# What a verb runs before it shows what came of it.
WORKERS = {
    "doctor": ("features.doctor.verb", "examine"),
    "bootstrap": ("features.bootstrap.verb", "install_missing"),
    "plan": ("flow", "preview_build"),
    "env": ("flow", "write_env"),
    "build": ("flow", "build"),
    "diagnose": ("features.diagnosis.verb", "read_log"),
    "support": ("features.support.verb", "write_archive"),
    "report": ("features.report.verb", "write_report"),
    "package": ("features.package.verb", "make"),
    "publish": ("features.publish.verb", "send"),
    "container": ("features.container.verb", "make"),
    "clean": ("flow", "clean"),
    "verify": ("flow", "verify"),
    "versions": ("features.versions.verb", "list_versions"),
    "replay": ("features.manifest.verb", "replay_build"),
    "compare": ("features.manifest.verb", "find_differences"),
    "debug-config": ("features.develop.verb", "write_entries"),
    "test": ("features.develop.verb", "run_upstream"),
    "bench": ("features.develop.verb", "run_upstream"),
    **{verb: (f"features.{verb}.verb", "answer") for verb in ("config", "trust")},
    "bisect": ("features.bisect.verb", "find_first_bad"),
    "completion": ("fronts.completion", "script"),
    **{verb: (f"features.{verb}.verb", "run_action") for verb in ("helpers", "cache", "cluster")},
    **{verb: (f"features.{verb}.verb", "run_action") for verb in ("builds", "source")},
}
ATTACHED = ("run", "shell", "python")  # tests/integration/test_enter.py: their work is another program's
Give = Callable[[str, Any], None]


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Let a verb of the flow give this value, or raise this error."""

    def make(verb: str, result: Any) -> None:
        def run(*args: Any) -> Any:
            if isinstance(result, Exception):
                raise result
            return result

        module, name = WORKERS[verb]
        monkeypatch.setattr(importlib.import_module(f"torchbuild_tasks.{module}"), name, run)

    return make


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ATTACHED])
def test_json_is_one_object_and_nothing_else_and_a_person_gets_text(
    verb: str, give: Give, capsys: pytest.CaptureFixture[str]
) -> None:
    give(verb, RESULTS[verb])
    code = 6 if verb == "bisect" else 0  # several commits are left
    assert run_verb(verb, request_of(verb, json=True, **WORDS.get(verb, {}))) == code
    said = capsys.readouterr()
    assert isinstance(json.loads(said.out), dict)
    assert said.err == ""
    assert run_verb(verb, request_of(verb, **WORDS.get(verb, {}))) == code
    out = capsys.readouterr().out
    if not request_class(verb).trailing:  # those pass on what another program says
        assert out.endswith("\n") and not out.startswith("{")


@pytest.mark.parametrize(
    ("action", "answer", "says"),
    [
        (
            "show",
            (DEBUG,),
            r"ref +v2.9.1(?s:.)* cuda +true +t.toml\n +with-helper +mkl magma +\[b",
        ),
        ("diff", (source.Difference(name="jobs", values=("2", "3")),), r"jobs +2 +3"),
        ("diff", (), r"^debug and other are planned alike.$"),
        ("remove", Away(name="debug", folder="/d", size=3 << 20, removed=True), r"^Removed /d \(3\.1 MB\)"),
        (
            "use",
            Entering(name="d", folder="/d", lines={"sh": "cd /d"}, missing=("fish",)),
            r"torchbuild_use\(\)",
        ),
    ],
)
def test_every_action_of_builds(
    action: str, answer: Any, says: str, give: Give, capsys: pytest.CaptureFixture[str]
) -> None:
    give("builds", answer)
    assert run_verb("builds", request_of("builds", action=action, name="debug", second="other")) == 0
    assert re.search(says, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("lines", "missing", "says"),
    [
        ({}, (), 'torchbuild build --source "/my co" --config t.toml\n'),
        ({"sh": "cd /d"}, ("fish",), 'torchbuild env --name d --env-shell SHELL --source "/my co"'),
    ],
)
def test_what_a_used_build_still_needs_is_reported_for_its_checkout(
    lines: dict[str, str], missing: tuple[str, ...], says: str, give: Give, capsys: pytest.CaptureFixture[str]
) -> None:
    give("builds", Entering(name="d", folder="/d", lines=lines, missing=missing))
    request = request_of("builds", action="use", name="d", source="/my co", config="t.toml")
    assert run_verb("builds", request) == 0
    assert says in capsys.readouterr().out


def test_a_reading_shows_the_error_and_each_cause(give: Give, capsys: pytest.CaptureFixture[str]) -> None:
    give("diagnose", READING)
    assert run_verb("diagnose", request_of("diagnose", log="-")) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:3] == ["The first error, line 7:", "   Killed", "Cause: Memory ran out."]
    assert out[3:6] == ["  -> Less at once.", "     $ torchbuild build", "     x#oom"]
    assert out[6] == "Or: Memory ran out."


def test_a_reading_in_json_is_one_object_of_these_keys(
    give: Give, capsys: pytest.CaptureFixture[str]
) -> None:
    give("diagnose", READING)
    assert run_verb("diagnose", request_of("diagnose", log="-", json=True)) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said)[:5] == ["status", "error_line", "error_block", "line_number", "diagnoses"]
    assert {"id", "cause", "fix", "see"} <= set(said["diagnoses"][0])


def test_of_an_unknown_error_nothing_is_made_up(give: Give, capsys: pytest.CaptureFixture[str]) -> None:
    give("diagnose", replace(READING, status="unknown", diagnoses=()))
    assert run_verb("diagnose", request_of("diagnose", log="-")) == 0
    assert "No row knows this error" in capsys.readouterr().out


def test_a_log_without_a_failure_is_reported_as_such(give: Give, capsys: pytest.CaptureFixture[str]) -> None:
    give("diagnose", Reading(status="clean", notes=(TOLD,)))
    assert run_verb("diagnose", request_of("diagnose", log="-")) == 0
    assert capsys.readouterr().out.startswith("No failure in this log.\nWarning: Memory ran out.\n")


def test_a_failed_build_names_its_causes(give: Give, capsys: pytest.CaptureFixture[str]) -> None:
    give("build", errors.BuildFailed("It failed.", looked=("Killed",), diagnoses=(TOLD,), next_step="Next."))
    assert run_verb("build", request_of("build")) == 6
    said = capsys.readouterr().err
    assert said.index("Killed") < said.index("Cause: Memory ran out.") < said.index("Next.")
    assert run_verb("build", request_of("build", json=True)) == 6
    assert json.loads(capsys.readouterr().out)["diagnoses"][0]["id"] == "oom"


def test_the_plan_in_json_is_the_plan(give: Give, capsys: pytest.CaptureFixture[str]) -> None:
    give("plan", SOUND)
    run_verb("plan", request_of("plan", json=True))
    assert from_json(BuildPlan, json.loads(capsys.readouterr().out)) == SOUND


@pytest.mark.parametrize(("verb", "result"), [("plan", HOPELESS), ("doctor", (linux_facts(), HOPELESS))])
@pytest.mark.parametrize("as_json", [True, False])
def test_a_refusing_plan_ends_with_3_and_is_shown(
    verb: str, result: Any, as_json: bool, give: Give, capsys: pytest.CaptureFixture[str]
) -> None:
    give(verb, result)
    assert run_verb(verb, request_of(verb, json=as_json)) == 3
    assert "no C++ compiler was found" in capsys.readouterr().out


@pytest.mark.parametrize("as_json", [True, False])
def test_a_dry_build_is_the_plan(as_json: bool, give: Give, capsys: pytest.CaptureFixture[str]) -> None:
    give("plan", SOUND)
    give("build", AssertionError("it was built"))
    assert run_verb("build", request_of("build", dry_run=True, json=as_json)) == 0
    dry = capsys.readouterr().out
    run_verb("plan", request_of("plan", json=as_json))
    assert capsys.readouterr().out == dry


def test_an_up_to_date_build_has_nothing_to_report(give: Give, capsys: pytest.CaptureFixture[str]) -> None:
    give("build", Built(plan=SOUND, up_to_date=True))
    assert run_verb("build", request_of("build")) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_what_a_build_offers_at_its_end_is_for_its_checkout(
    give: Give, capsys: pytest.CaptureFixture[str]
) -> None:
    give("build", Built(plan=SOUND, log="build.log"))
    assert run_verb("build", request_of("build", source="/co")) == 0
    assert "torchbuild report --source /co\n" in capsys.readouterr().out


@pytest.mark.parametrize("as_json", [True, False])
def test_a_failed_check_ends_with_7_and_the_full_report(
    as_json: bool, give: Give, capsys: pytest.CaptureFixture[str]
) -> None:
    give("verify", BAD)
    assert run_verb("verify", request_of("verify", json=as_json)) == 7
    assert "no LAPACK" in capsys.readouterr().out


def test_a_clean_says_what_it_removed(give: Give, capsys: pytest.CaptureFixture[str]) -> None:
    give("clean", REMOVAL)
    run_verb("clean", request_of("clean", yes=True))
    assert "2 files" in capsys.readouterr().out
    run_verb("clean", request_of("clean", dry_run=True))
    out = capsys.readouterr().out
    assert "Removed" not in out and "2 files" in out


# ---------------------------------------------------------------- errors

FINDING = Finding(id="disk", status="error", text="1.0 GiB free", fix="Free some space.")
ERRORS = [
    errors.UsageError("The flag is wrong.", looked=("keys: a, b",), next_step="Use another."),
    errors.PlanRefused("It cannot work.", findings=(FINDING,)),
    errors.EnvFileError("It does not load."),
    errors.RequirementsError("pip failed."),
    errors.BuildFailed("It failed.", looked=("a.cpp:1: error: x",), next_step="The whole log: b.log"),
    errors.VerifyFailed("1 check failed."),
    errors.TreeBusy("Held by process 7."),
    errors.CleanRefused("Nothing was removed."),
    errors.DownloadFailed("No such file."),
    errors.HashRefused("Another file than before."),
    errors.ArchiveRefused("It leaves its folder."),
    errors.PreflightFailed("The compilers do not work."),
    errors.PatchRefused("A patch does not fit."),
    errors.ClusterError("Another program listens there."),
    errors.SourceError("There is no such ref."),
    errors.ManifestError("It is cut off."),
    errors.Untrusted("It names a program."),
    errors.PackageRefused("It is too large."),
    errors.ContainerError("No engine answers."),
    errors.NotBuilt("Nothing was built here yet."),
    errors.Interrupted("Interrupted."),
]


def test_an_error_is_a_paragraph_on_stderr_or_an_object_for_a_program(
    give: Give, capsys: pytest.CaptureFixture[str]
) -> None:
    for error in ERRORS:
        give("build", error)
        assert run_verb("build", request_of("build", quiet=True)) == error.exit_code
        said = capsys.readouterr()
        assert said.out == "" and all(
            part in said.err for part in (error.what, *error.looked, error.next_step)
        )
        assert run_verb("build", request_of("build", json=True)) == error.exit_code
        said = capsys.readouterr()
        data = json.loads(said.out)
        assert (data["exit_code"], data["what"], said.err) == (error.exit_code, error.what, "")


def test_who_misses_a_build_that_is_under_way_is_told_to_wait(
    give: Give, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`report` in a first build had said to build first, for which there was no room beside that one."""
    request = request_of("report", source=str(tmp_path))
    give("report", errors.NotBuilt("There is no log.", next_step="Build first"))
    with lock.hold(tmp_path, "build"):
        assert run_verb("report", request) == 21
        said = capsys.readouterr().err
    assert f"process {os.getpid()}" in said and "Wait until it is over." in said and "Build first" not in said
    give("report", errors.NotBuilt("There is no log.", next_step="Build first"))
    run_verb("report", request)
    assert "Build first" in capsys.readouterr().err


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [error.exit_code for error in ERRORS]
    assert len(set(codes)) == len(codes)
    assert {type(error) for error in ERRORS} == set(errors.TorchbuildError.__subclasses__())
    assert not {0, 1} & set(codes)


def test_a_bug_is_not_hidden(give: Give) -> None:
    give("plan", ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        run_verb("plan", request_of("plan"))


def test_showing_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(ERRORS[1], as_json=False)
    assert "-> Free some space." in capsys.readouterr().err


# ---------------------------------------------------------------- through the flow, from a dump


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def dump(folder: Path, facts: Facts) -> str:
    path = folder / "facts.json"
    path.write_text(dumps(facts), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("facts", "code"),
    [(linux_facts(), 0), (linux_facts(compilers=()), 3), (with_tree(linux_facts(), problem="gone"), 3)],
)
def test_a_dump_is_planned_for(
    facts: Facts, code: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_verb("plan", request_of("plan", facts=dump(here, facts))) == code
    assert "Verdict:" in capsys.readouterr().out
    assert [path.name for path in here.iterdir()] == ["facts.json"]


def test_what_doctor_dumps_can_be_planned_from(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = request_of("doctor", facts=dump(here, linux_facts()), json=True)
    assert run_verb("doctor", request) == 0
    again = here / "again.json"
    again.write_text(capsys.readouterr().out, "utf-8")
    assert run_verb("doctor", replace(request, facts=str(again))) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(again.read_text("utf-8"))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"preset": "mininal"}, "did you mean minimal?"),
        ({"build_type": "release"}, "did you mean Release?"),
        ({"mode": "wheels"}, "did you mean wheel?"),
        ({"env_shell": "zsh"}, "did you mean sh?"),
        ({"jobs": 0}, "at least one job"),
        ({"set": ("USE_CUDA",)}, "is not KEY=VALUE"),
        ({"facts": "nowhere.json"}, "nowhere.json cannot be read"),
        ({"config": "nowhere.toml"}, "nowhere.toml does not exist"),
    ],
)
def test_a_bad_value_ends_with_2(
    flags: dict[str, Any], says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = BuildRequest(**{"facts": dump(here, linux_facts()), **flags})
    assert run_verb("plan", request) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("prest = 'dev'\n", "torchbuild.toml, line 1: unknown key 'prest'; did you mean preset?"),
        ("\njobs = 0\n", "torchbuild.toml, line 2: jobs = 0"),
        ("mode = \n", "torchbuild.toml, line 1, key mode"),
        ("[set]\n'BAD NAME' = 1\n", "torchbuild.toml, line 2"),
    ],
)
def test_a_broken_settings_file_names_file_line_and_key(
    text: str, says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "torchbuild.toml").write_text(text, "utf-8")
    assert run_verb("plan", request_of("plan", facts=dump(here, linux_facts()))) == 2
    assert says in capsys.readouterr().err


def test_a_dump_that_is_none_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("{", "[]", '{"facts": 3}', '"x"', '{"schema": 1}'):
        (here / "bad.json").write_text(text, "utf-8")
        assert run_verb("plan", request_of("plan", facts="bad.json")) == 2
        assert capsys.readouterr().err.strip()


def test_how_it_speaks_is_no_matter_of_the_settings_file(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that reads --json must not depend on a file in the folder it runs in."""
    facts = dump(here, linux_facts())
    for name in ("verbose", "quiet", "json", "yes"):
        (here / "torchbuild.toml").write_text(f"{name} = true\n", "utf-8")
        assert run_verb("plan", request_of("plan", facts=facts)) == 2
        assert f"torchbuild.toml, line 1: unknown key '{name}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("report", "code", "says"),
    [
        (HelperReport(action="list", lines=(LINE,)), 0, "sccache-0.16.0"),
        (HelperReport(action="where", lines=(LINE,)), 0, "No helper is wanted"),
        (
            HelperReport(action="where", lines=(replace(LINE, wanted=True),)),
            0,
            "/cache/sccache  (not fetched yet)",
        ),
        (HelperReport(action="verify", lines=(LINE,)), 0, "No helper is here."),
        (HelperReport(action="verify", lines=(LINE,), findings=(BROKEN,)), 12, "a: b is gone"),
        (HelperReport(action="prune", lines=(), removed=("/cache/old",)), 0, "removed /cache/old"),
        (HelperReport(action="prune", lines=(), removable=("/cache/old",)), 0, "would remove /cache/old"),
        (HelperReport(action="prune", lines=()), 0, "Nothing to remove."),
    ],
)
def test_the_text_about_helpers(
    report: HelperReport, code: int, says: str, give: Give, capsys: pytest.CaptureFixture[str]
) -> None:
    give("helpers", report)
    assert run_verb("helpers", request_of("helpers", action=report.action)) == code
    assert says in capsys.readouterr().out


@pytest.mark.parametrize("as_json", [True, False])
def test_a_pipe_that_is_no_utf8_can_carry_every_name(
    as_json: bool, give: Give, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows gives a pipe the code page of the system, and Python is strict with it."""
    line = replace(LINE, folder="C:\\日本\\Grüße \U0001f525", wanted=True, here=True)
    give("helpers", HelperReport(action="where", lines=(line,)))
    pipe = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", pipe)
    assert run_verb("helpers", request_of("helpers", action="where", json=as_json)) == 0
    said = pipe.buffer.getvalue()
    if as_json:
        assert json.loads(said.decode("ascii"))["lines"][0]["folder"] == line.folder
    else:
        assert "\\u65e5\\u672c\\Grüße" in said.decode("cp1252")

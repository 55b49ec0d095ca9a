"""The archive of `support`: its content, without secrets; it is written even where parts fail."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs_symlinks
from tests.support.machines import linux_facts, plan_of, request_of, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.context import read_facts
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.doctor import health
from torchbuild_tasks.features.support import verb as support_verb
from torchbuild_tasks.features.support.verb import Attempts, SupportFile, make_support
from torchbuild_tasks.fronts.run import run_verb
from torchbuild_tasks.model import BuildPlan, Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.values import from_json

SECRET = "Zq9xK3vT7nB2wL8mR4"
LOG = (
    "# 2026-01-01 ninja\n"
    f"-- proxy http://me:{SECRET}@proxy:3128\n"
    f"+ curl -H 'Authorization: Bearer {SECRET}' https://x\n"
    "FAILED: a.o\n/home/ada/src/x.cpp:1:1: error: 'foo' was not declared in this scope\n"
    "ninja: build stopped: subcommand failed.\n"
)


def made(tmp_path: Path, facts: Facts | None, plan: BuildPlan | None, *problems: str) -> SupportFile:
    request = BuildRequest(out=str(tmp_path / "a.zip"), set=(f"MY_TOKEN={SECRET}",), source=str(tmp_path))
    attempts = Attempts(problems=list(problems))
    return make_support(request, facts, plan, load_catalog(), attempts, writer="torchbuild_tasks 1")


def contents(tmp_path: Path) -> dict[str, str]:
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Facts, BuildPlan]:
    """A secret in the environment, in argv, in --set, in the log, the manifest and the settings file."""
    root = tmp_path / "pytorch"
    (root / ".torchbuild/logs").mkdir(parents=True)
    (root / "build").mkdir()
    (root / ".torchbuild/logs/build.log").write_text(LOG, "utf-8")
    (root / "build/torchbuild-manifest.json").write_text(json.dumps({"request": {"token": SECRET}}), "utf-8")
    (root / "torchbuild.toml").write_text(f'[set]\nMY_TOKEN = "{SECRET}"\n', "utf-8")
    for name in ("MY_TOKEN", "SOME_VARIABLE"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("https_proxy", f"http://me:{SECRET}@proxy:3128")
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("CXXFLAGS", f"-DKEY_SECRET={SECRET} -I/home/ada/include")
    monkeypatch.setattr(sys, "argv", ["torchbuild", "support", "--set", f"MY_TOKEN={SECRET}"])
    facts = with_tree(
        linux_facts(environ={"MY_TOKEN": SECRET}), root=str(root), build_dir=str(root / "build")
    )
    return facts, plan_of(facts, set=(f"MY_TOKEN={SECRET}",))


def test_everything_is_in_it_and_nothing_secret(tmp_path: Path, planted: tuple[Facts, BuildPlan]) -> None:
    written = made(tmp_path, *planted, f"plan: it said {SECRET}")
    files = contents(tmp_path)
    assert set(files) == {
        *("about.txt", "facts.json", "plan.json", "request.json", "environ.json", "diagnosis.json"),
        *("log-head.txt", "manifest.json", "torchbuild.toml", "problems.txt"),
    }
    assert not [name for name, text in files.items() if SECRET in text or "/home/ada" in text]
    assert SECRET not in repr(written)
    said = json.loads(files["diagnosis.json"])["error_line"]
    assert said == "/home/USER/src/x.cpp:1:1: error: 'foo' was not declared in this scope"
    # Windows writes every name in capitals.
    environ = {name.upper(): value for name, value in json.loads(files["environ.json"]).items()}
    assert environ["SOME_VARIABLE"] == "(set, not shown)"
    assert environ["HTTPS_PROXY"] == "http://REDACTED@proxy:3128"
    assert "-I/home/USER/include" in environ["CXXFLAGS"]
    for rule, count in written.redacted.items():
        assert f"{count}  {rule}: " in files["about.txt"]


def test_it_has_the_settings_file_that_was_named(tmp_path: Path, planted: tuple[Facts, BuildPlan]) -> None:
    own = tmp_path / "own.toml"
    own.write_bytes(b"jobs = 3\r\n")  # as an editor of Windows ends a line
    request = BuildRequest(out=str(tmp_path / "a.zip"), config=str(own))
    make_support(request, *planted, load_catalog(), Attempts(), writer="torchbuild_tasks 1")
    assert contents(tmp_path)["torchbuild.toml"] == "jobs = 3\n"


def test_it_can_be_planned_from_elsewhere(tmp_path: Path) -> None:
    facts = linux_facts(environ={})
    plan = plan_of(facts)
    made(tmp_path, facts, plan)
    again = plan_of(read_facts(tmp_path / "a.zip"))
    assert again == plan
    assert from_json(BuildPlan, json.loads(contents(tmp_path)["plan.json"])).verdict == plan.verdict


def test_without_a_machine_a_checkout_or_a_plan_there_is_one(tmp_path: Path) -> None:
    nothing = made(tmp_path, None, None, "look: it broke")
    assert {"about.txt", "request.json", "environ.json", "problems.txt"} == set(nothing.members)
    assert nothing.problems == ("look: it broke",)


def test_a_log_that_cannot_be_read_is_a_problem_and_no_end(
    tmp_path: Path, planted: tuple[Facts, BuildPlan]
) -> None:
    root = Path(planted[0].tree.root)
    (root / "torchbuild.toml").unlink()
    (root / "torchbuild.toml").mkdir()
    (root / ".torchbuild/logs/build.log").write_bytes(bytes(range(256)) * 8)
    written = made(tmp_path, *planted)
    assert "facts.json" in written.members
    assert [problem.partition(":")[0] for problem in written.problems] == ["diagnose"]


@needs_symlinks
def test_what_links_of_the_checkout_lead_to_is_not_handed_on(
    tmp_path: Path, planted: tuple[Facts, BuildPlan]
) -> None:
    root = Path(planted[0].tree.root)
    private = tmp_path / "private.txt"
    private.write_text("what is nobody's business", "utf-8")
    for name in (".torchbuild/logs/build.log", "build/torchbuild-manifest.json", "torchbuild.toml"):
        (root / name).unlink()
        (root / name).symlink_to(private)
    written = made(tmp_path, *planted)
    assert len(written.problems) == 4  # the log is asked for twice
    assert not [name for name, text in contents(tmp_path).items() if "business" in text]


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    made(tmp_path / "new" / "one", None, None)
    assert "about.txt" in contents(tmp_path / "new" / "one")


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="there already"):
        made(tmp_path, None, None)
    assert (tmp_path / "a.zip").read_text("utf-8") == "mine"


def broken(*args: Any, **flags: Any) -> Any:
    raise RuntimeError("a bug")


def test_a_bug_in_the_plan_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(support_verb, "look", broken)
    monkeypatch.setattr(health, "look_without_settings", broken)
    assert run_verb("support", request_of("support", out=str(tmp_path / "a.zip"))) == 0
    assert "RuntimeError: a bug" in capsys.readouterr().out
    assert "problems.txt" in contents(tmp_path)


@pytest.mark.parametrize("content", [b"PK\x05\x06" + b"\0" * 18, b"PK and no archive", b"{", b"\xff\xfe"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(UsageError):
        read_facts(tmp_path / "x.zip")


def test_facts_of_a_later_schema_are_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"facts": {"schema": 99}}')
    with pytest.raises(UsageError, match="schema 99, from a newer version"):
        read_facts(tmp_path / "x.json")

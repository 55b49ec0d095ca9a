"""Named builds as a user has them: side by side, entered, compared, removed, killed on the way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.caches import needs_ccache
from tests.support.capabilities import (
    needs_cxx,
    needs_git,
    needs_linux_compiler,
    needs_sh,
    needs_shebang,
    needs_signals,
)
from tests.support.driver import TORCHBUILD, Run, environment, torchbuild
from tests.support.gits import fatal_git
from tests.support.sample import materialise, run_git

pytestmark = [pytest.mark.integration, needs_git, needs_cxx]

TOML = """\
preset = "minimal"

[builds.base]
jobs = 2

[builds.debug]
extends = "base"
build-type = "Debug"

[builds.twin]
extends = "debug"

[builds.other]
extends = "base"
"""


class Home:
    """A checkout of the sample with a torchbuild.toml, and the verbs that are run on it."""

    def __init__(self, tree: Path, able: dict[str, str]) -> None:
        self.tree, self.able = tree, able
        (tree / "torchbuild.toml").write_text(TOML, "utf-8")

    def __call__(self, *words: str | Path, cwd: Path | None = None, **environ: str) -> Run:
        return torchbuild(*words, cwd=cwd or self.tree, environ={**self.able, **environ})

    def folder(self, name: str) -> Path:
        return self.tree.with_name(f"{self.tree.name}-{name}")

    def states(self) -> dict[str, str]:
        return {each["name"]: each["state"] for each in self("builds", "list", "--json").json["answer"]}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once; every test has a copy."""
    return materialise(tmp_path_factory.mktemp("model") / "mini", git=True)


@pytest.fixture
def home(model: Path, tmp_path: Path, able: dict[str, str]) -> Home:
    shutil.copytree(model, tmp_path / "mini", symlinks=True)
    return Home(tmp_path / "mini", able)


def _made(home: Home, target: Path, *words: str) -> Run:
    """Start a build that fails after its worktree was made, which is cheaper than a real one."""
    done = home("build", "--python", str(target), "--target", "no_such_target", *words)
    assert done.code != 0
    return done


def test_an_unmade_build_is_planned_from_the_main_checkout(home: Home) -> None:
    plan = home("plan", "--name", "debug", "--json").json
    choices = {choice["name"]: choice for choice in plan["choices"]}
    assert plan["source"] == str(home.folder("debug"))
    assert "its worktree is not there yet" in choices["source"]["because"]
    assert choices["build type"]["value"] == "Debug"
    assert choices["python"]["value"].startswith(str(home.folder("debug")))
    assert not home.folder("debug").exists()
    assert set(home.states().values()) == {"not made yet"}
    assert home("builds", "use", "debug", "--env-shell", "sh").code == 21
    assert home("builds", "remove", "debug", "--yes").code == 9


def test_the_build_that_is_used_is_what_verbs_take_until_that_is_undone(home: Home) -> None:
    used = home("builds", "use", "debug")
    assert used.code == 0 and "verbs take here from now on" in used.out and "no env file yet" in used.out
    assert home.states()["debug"] == "not made yet, the default"
    planned = home("plan", "--json")
    assert planned.json["source"] == str(home.folder("debug"))
    assert "using the build debug, as `builds use` chose" in home("config").err
    assert home("plan", "--json", "--name", "none").json["source"] == str(home.tree)
    assert home("run", "--", "true").code == 21  # that of debug, which was not built
    assert "itself again" in home("builds", "use", "none").out
    assert home("plan", "--json").json["source"] == str(home.tree)


def test_a_default_that_is_gone_from_the_settings_says_what_to_do(home: Home) -> None:
    assert home("builds", "use", "debug").code == 0
    (home.tree / "torchbuild.toml").write_text('[builds.other]\nbuild-type = "Debug"\n', "utf-8")
    gone = home("plan")
    assert gone.code == 2 and "torchbuild builds use none" in gone.err
    assert home("builds", "use", "none").code == 0
    assert home("plan", "--json").json["source"] == str(home.tree)


def test_an_unmade_build_is_planned_with_the_version_of_its_own_ref(home: Home) -> None:
    """And without what the main checkout lacks: the build brings it, and there is no worktree to fix."""
    (home.tree / "version.txt").write_text("9.9.9a0\n", "utf-8")
    run_git(home.tree, "commit", "-qam", "A later version")
    shutil.rmtree(home.tree / "third_party/tinyfmt")
    (home.tree / "third_party/tinyfmt").mkdir()
    own = home.tree.with_name("own.toml")
    own.write_text('[builds.before]\nref = "HEAD~1"\n', "utf-8")
    plan = home("plan", "--name", "before", "--config", str(own), "--json").json
    choices = {choice["name"]: choice for choice in plan["choices"]}
    assert choices["torch"]["value"] != "9.9.9a0"
    assert run_git(home.tree, "rev-parse", "HEAD~1")[:10] in choices["torch"]["because"]
    assert not [each for each in plan["findings"] if each["id"] == "submodules"]


def test_two_builds_are_compared(home: Home) -> None:
    found = {
        each["name"]: each["values"]
        for each in home("builds", "diff", "base", "debug", "--json").json["answer"]
    }
    assert found["build type"] == ["Release", "Debug"]
    assert not {"source", "python", "CCACHE_BASEDIR"} & set(found)
    assert "planned alike" in home("builds", "diff", "debug", "twin").out


def test_a_build_that_was_never_named_is_refused(home: Home) -> None:
    done = home("build", "--name", "debgu")
    assert done.code == 2
    assert "did you mean debug?" in done.err
    assert home("builds", "diff", "debug").code == 2


@needs_linux_compiler
@pytest.mark.slow
@needs_ccache
def test_builds_exist_side_by_side_and_share_their_objects(home: Home, target: Path) -> None:
    words = ("build", "--cache", "ccache", "--python", str(target), "--yes")
    records = []
    for name in ("base", "other"):
        done = home(*words, "--name", name)
        assert done.code == 0, done.out + done.err
        records.append(json.loads((home.folder(name) / "build/torchbuild-manifest.json").read_text("utf-8")))
    (first,), (second,) = (record["caches"] for record in records)
    assert sum(second["hits"].values()) >= 0.95 * (
        sum(first["hits"].values()) + sum(first["misses"].values())
    )
    assert not (home.tree / "build").exists()
    assert set(home.states().values()) == {"there", "not made yet"}

    # Inside a worktree no name is needed, and from there it is not removed.
    inside = home("plan", "--python", str(target), "--json", cwd=home.folder("base")).json
    assert {choice["name"]: choice["value"] for choice in inside["choices"]}["jobs"] == "2"
    assert inside["freshness"]["needs"] == "nothing"
    assert home("builds", "remove", "base", "--yes", cwd=home.folder("base")).code == 9
    assert home("builds", "remove", "base", "--yes", TORCHBUILD_NAME="base").code == 9

    listed = home("builds", "remove", "base")  # nobody is there to agree
    assert listed.code == 9
    assert str(home.folder("base")) in listed.err
    assert f"{target} -m pip uninstall torch" in listed.err
    assert home.folder("base").exists()
    done = home("builds", "remove", "base", "--yes")
    assert done.code == 0, done.err
    assert not home.folder("base").exists()
    assert home.folder("other").exists()
    assert (home.states()["base"], home.states()["other"]) == ("not made yet", "there")


@needs_sh
def test_the_line_of_use_enters_the_build(home: Home, target: Path) -> None:
    _made(home, target, "--name", "debug")
    assert home("env", "--name", "debug").code == 0
    line = home("builds", "use", "debug", "--env-shell", "sh").out
    asked = f"{line.strip()} && pwd && echo $TORCHBUILD_NAME $CMAKE_BUILD_TYPE"
    said = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, check=True, env=environment())
    assert said.stdout.split() == [str(home.folder("debug")), "debug", "Debug"]
    assert home("builds", "use", "twin", TORCHBUILD_NAME="debug").code == 2


def test_what_is_the_users_is_not_removed(home: Home, target: Path) -> None:
    _made(home, target, "--name", "debug")
    mine = home.folder("debug") / "mine.py"
    mine.write_text("", "utf-8")
    done = home("builds", "remove", "debug", "--yes")
    assert (done.code, "mine.py" in done.err) == (16, True)
    assert mine.exists()
    text = TOML + f'\n[builds.own]\nsource = "{home.folder("debug").as_posix()}"\n'
    (home.tree / "torchbuild.toml").write_text(text, "utf-8")
    assert home("builds", "remove", "own", "--yes").code == 9
    mine.unlink()
    (home.tree / "torchbuild.toml").write_text('preset = "minimal"\n', "utf-8")
    assert home.states() == {"debug": "not in torchbuild.toml"}
    assert home("builds", "remove", "debug", "--yes").code == 0
    assert not home.folder("debug").exists()


@pytest.mark.slow
def test_a_new_ref_is_switched_to_and_changes_are_not_lost(home: Home, target: Path) -> None:
    _made(home, target, "--name", "debug")
    ask = ("git", "-C", str(home.tree), "-c", "user.name=a", "-c", "user.email=a@b")
    (home.tree / "later.txt").write_text("later", "utf-8")
    subprocess.run([*ask, "add", "later.txt"], check=True)
    subprocess.run([*ask, "commit", "-q", "-m", "later"], check=True)
    subprocess.run([*ask, "tag", "later"], check=True)
    (home.tree / "torchbuild.toml").write_text(
        TOML.replace("[builds.debug]", '[builds.debug]\nref = "later"'), "utf-8"
    )
    changed = home.folder("debug") / "version.txt"
    before = changed.read_bytes()
    changed.write_text("9.9\n", "utf-8")
    done = _made(home, target, "--name", "debug")
    assert (done.code, "version.txt" in done.err) == (16, True)
    assert changed.read_text("utf-8") == "9.9\n"
    changed.write_bytes(before)
    _made(home, target, "--name", "debug")
    assert (home.folder("debug") / "later.txt").exists()


@needs_shebang
@needs_signals
@pytest.mark.parametrize("at", [pytest.param(at, marks=pytest.mark.slow) for at in (9, 14, 20)])
def test_a_build_that_was_killed_while_its_worktree_was_made(
    home: Home, target: Path, tmp_path: Path, at: int
) -> None:
    words = ("build", "--name", "debug", "--python", str(target), "--target", "no_such_target")
    environ = {**fatal_git(tmp_path / "bin", at, after=True), **home.able}
    path = f"{tmp_path / 'bin'}{os.pathsep}{environment()['PATH']}"
    killed = subprocess.run(
        [*TORCHBUILD, *words], cwd=home.tree, env={**environ, "PATH": path}, capture_output=True, check=False
    )
    assert killed.returncode == -9
    assert home.states()["debug"] == "half made"
    _made(home, target, "--name", "debug")
    assert home.states()["debug"] == "there"
    assert list((home.folder("debug") / "third_party").rglob("*.h"))


def test_two_runs_of_one_build_do_not_meet(home: Home, target: Path) -> None:
    holder = (
        "import sys; from pathlib import Path; from torchbuild_tasks.system import lock\n"
        "folder = Path(sys.argv[1]); folder.mkdir(parents=True)\n"
        "with lock.hold(folder, 'build'): print('held', flush=True); sys.stdin.read()\n"
    )
    folder = home.tree / ".torchbuild/builds/debug"
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"held"
        done = home("build", "--name", "debug", "--python", str(target))
        assert (done.code, f"process {other.pid}" in done.err) == (8, True)
        assert not home.folder("debug").exists()
        assert other.stdin is not None
        other.stdin.close()


@needs_signals
@pytest.mark.slow
def test_a_venv_that_was_killed_while_it_was_made_is_made_anew(home: Home, tmp_path: Path) -> None:
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")
    words = ("--name", "debug", "--python", str(base))
    cut = {"PIP_NO_INDEX": "1", "UV_NO_INDEX": "1"}  # no package can be had, and the plan does not know it
    note = home.folder("debug") / f".torchbuild/venv-3.{sys.version_info[1]}.making"
    with subprocess.Popen(
        [*TORCHBUILD, "build", *words],
        cwd=home.tree,
        env={**environment(home.able), **cut},
        stderr=subprocess.DEVNULL,
    ) as run:
        while not (note.exists() and note.with_suffix("").joinpath("bin/python").exists()):
            assert run.poll() is None
        run.kill()
    done = home(
        "build", *words, PIP_NO_INDEX="1", UV_NO_INDEX="1"
    )  # makes the venv, and then says what it cannot install
    assert done.code == 5, done.err
    assert not note.exists()
    python = note.with_suffix("") / "bin/python"
    subprocess.run([python, "-m", "pip", "--version"], check=True, stdout=subprocess.DEVNULL)


def test_two_builds_are_compared_by_their_names(home: Home, tmp_path: Path) -> None:
    recorded = (Path(__file__).parents[1] / "features/manifest/schema-1.json").read_text("utf-8")
    for name, text in (("debug", recorded), ("twin", recorded.replace("2.14.0a0", "2.13.0"))):
        (home.folder(name) / "build").mkdir(parents=True)
        (home.folder(name) / "build/torchbuild-manifest.json").write_text(text, "utf-8")
    done = home("compare", "debug", "twin", "--json")
    assert done.code == 0, done.err
    assert ("2.14.0a0", "2.13.0") in [(each["there"], each["here"]) for each in done.json["differences"]]
    assert home("compare", "debug", "debug", "--json").json["differences"] == []
    missing = home("compare", "debug", "other")
    assert missing.code == 21
    assert "mini-other/build/torchbuild-manifest.json" in missing.err

"""A tree full of bait: what a checkout brings is not run by a look, nor before the user vouches for it."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import torchbuild_tasks
from tests.support.capabilities import has, needs, needs_git
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs_git]

COMMAND: Final = (sys.executable, "-P", "-m", "torchbuild_tasks.fronts.console")
PACKAGE: Final = Path(torchbuild_tasks.__file__).parents[1]
WINDOWS: Final = sys.platform == "win32"
# Writes down every program that the process door starts.
WATCHED: Final = """
import os, subprocess, sys
log, start = os.environ["STARTED"], subprocess.Popen.__init__
def watched(self, args, *rest, **named):
    words = [args] if isinstance(args, str) else [os.fsdecode(word) for word in args]
    with open(log, "a", encoding="utf-8") as file:
        file.write(words[0] + "\\n")
    start(self, args, *rest, **named)
subprocess.Popen.__init__ = watched
sys.argv[0] = "torchbuild"
from torchbuild_tasks.fronts.console import main
main()
"""


def run(root: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run it in the checkout, as a person does who has just cloned it."""
    return subprocess.run(
        [*COMMAND[:2], "-c", WATCHED, *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "STARTED": str(root.parent / "started"), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=300,
    )


def bait(path: Path, says: Path) -> Path:
    """A program that writes down that it ran."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if WINDOWS:
        path = path.with_name(path.name + ".cmd")
        path.write_text(f"@echo ran>{says}\n@exit /b 1\n", "utf-8")
    else:
        path.write_text(f"#!/bin/sh\ntouch '{says}'\nexit 1\n", "utf-8")
        path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of which every part that can name a program does."""
    root = materialise(tmp_path / "pytorch", git=True)

    def evil(place: str, name: str) -> str:
        return bait(root / place, tmp_path / f"ran-{name}").as_posix()

    (root / "torchbuild.toml").write_text(
        f'python = "{evil("x/python", "python")}"\n'
        "cuda = true\n"
        f'cuda-toolkit = "{Path(evil("tk/bin/nvcc", "nvcc")).parents[1].as_posix()}"\n'
        f'notify = "{evil("x/notify", "notify")}"\n'
        f'linker = "{evil("x/ld", "linker")}"\n'
        'jobs = 2\ncache = "redis://127.0.0.1:1"\ndistribute = "http://127.0.0.1:1"\n'
        'mirror = "http://127.0.0.1:1/"\nwheels = "x"\nwith = ["torchvision=../x"]\n'
        f'[set]\nUSE_MKLDNN = 0\nCXX = "{evil("x/cxx", "cxx")}"\nPATH = "{(root / "x").as_posix()}"\n'
        f'BASH_ENV = "{evil("x/bashenv", "bashenv")}"\nLD_PRELOAD = "{(root / "x/cxx").as_posix()}"\n'
        f'CMAKE_PROJECT_INCLUDE = "x"\nGIT_SSH = "{evil("x/ssh", "gitssh")}"\n'
        '[mirrors]\n"https://github.com/" = "http://127.0.0.1:1/"\n'
        '[[helper]]\nname = "h"\nversion = "1"\nos = "linux"\nneeded = "asked"\nunpack = "zip"\n'
        'source = "a"\nurls = ["http://127.0.0.1:1/h.zip"]\n'
        f'check = ["{evil("x/check", "check")}"]\n',
        "utf-8",
    )
    for name in ("git", "cmake", "ninja", "g++", "python", "nvcc", "sh", "locale", "ldd"):
        if WINDOWS or not (root / name).exists():
            evil(name, f"here-{name}")  # Windows would look for programs in the current folder
    (root / "env_templates").mkdir()
    for shell in ("sh", "bat"):
        (root / f"env_templates/env_set.{shell}.in").write_text("@{ops}\ntouch evil\n", "utf-8")
    scripts = ".torchbuild/venv-3.99/" + ("Scripts" if WINDOWS else "bin")
    evil(f"{scripts}/python", "venv")
    if WINDOWS:
        shutil.copy(os.environ["COMSPEC"], root / scripts / "python.exe")
    (root / ".torchbuild/venv-3.99/pyvenv.cfg").write_text("home = /usr/bin\n", "utf-8")
    (root / ".torchbuild/venv-3.99/torchbuild-made-here").write_text("", "utf-8")
    (root / "build").mkdir(exist_ok=True)
    (root / "build/CMakeCache.txt").write_text(
        f"CMAKE_HOME_DIRECTORY:INTERNAL={root.as_posix()}\nCMAKE_GENERATOR:INTERNAL=Ninja\n"
        f"CMAKE_MAKE_PROGRAM:FILEPATH={evil('x/ninja', 'ninja')}\n"
        f"CMAKE_CXX_COMPILER:FILEPATH={evil('x/c++', 'cache')}\n",
        "utf-8",
    )
    (root / "build/.ninja_log").write_text("# ninja log v5\n0\t5\t0\ta.o\t1\n", "utf-8")
    (root / ".envrc").write_text(f"touch '{tmp_path / 'ran-envrc'}'\n", "utf-8")
    _bait_of_git(root, tmp_path)
    return root


def _bait_of_git(root: Path, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)

    git("add", "-f", ".torchbuild")
    for key in ("core.fsmonitor", "filter.e.clean", "filter.e.process", "diff.external", "core.sshCommand"):
        git("config", key, f"touch '{(tmp_path / f'ran-{key}').as_posix()}'; cat")
    git("config", "submodule.third_party/tinyfmt.update", f"!touch '{(tmp_path / 'ran-sub').as_posix()}'")
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("version.txt filter=e\n", "utf-8")
    (root / "version.txt").write_text((root / "version.txt").read_text("utf-8"), "utf-8")
    for hook in ("post-checkout", "post-index-change", "fsmonitor-watchman"):
        path = root / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch '{(tmp_path / 'ran-hook').as_posix()}'\n", "utf-8")
        path.chmod(0o755)


def ran(root: Path) -> list[str]:
    return sorted(path.name for path in root.parent.glob("ran-*"))


def started(root: Path) -> list[str]:
    log = root.parent / "started"
    return log.read_text("utf-8").splitlines() if log.exists() else []


def is_of(program: str, root: Path) -> bool:
    path = Path(os.path.realpath(shutil.which(program) or program))
    return path.is_relative_to(root.resolve()) or (root / program).exists() and not shutil.which(program)


def own_settings(root: Path) -> str:
    own = root.parent / "own.toml"
    own.write_text("", "utf-8")
    return str(own)


def test_a_repair_runs_nothing_of_a_submodules_repository(checkout: Path) -> None:
    """`.git` may have been copied whole, with settings for the submodules that are filled from it."""
    module = checkout / "third_party/tinyfmt"
    inside = checkout / ".git/modules/third_party/tinyfmt"
    says = (checkout.parent / "ran-smudge").as_posix()
    for key in ("filter.s.smudge", "filter.s.process", "core.fsmonitor"):
        subprocess.run(["git", "--git-dir", str(inside), "config", key, f"touch '{says}'; cat"], check=True)
    (inside / "info").mkdir(exist_ok=True)
    (inside / "info/attributes").write_text("* filter=s\n", "utf-8")
    shutil.rmtree(module)
    module.mkdir()
    said = run(checkout, "doctor", "--offline", "--fix", "--yes", "--config", own_settings(checkout))
    assert "submodules: done" in said.stderr, said.stdout + said.stderr
    assert len(list(module.iterdir())) > 1
    assert not Path(says).exists()


def test_a_manifest_of_a_stranger_names_no_programs(checkout: Path) -> None:
    """What it says of python, servers and the environment counts once it is trusted."""
    own = own_settings(checkout)
    shutil.rmtree(checkout / "env_templates")
    facts = json.loads(run(checkout, "doctor", "--offline", "--json", "--config", own).stdout)["facts"]
    python = bait(checkout / "x/replayed", checkout.parent / "ran-replayed").as_posix()
    here = checkout.as_posix()
    facts["environ"] = {"USE_MKLDNN": "0", "PATH": f"{here}/x", "LD_PRELOAD": python, "CXX": python}
    facts["tree"]["previous"] = None
    manifest = {
        "schema": 2,
        "tool": "t",
        "result": "ok",
        "started": "2026-01-01T00:00:00+00:00",
        "root": here,
        "build_dir": f"{here}/build",
        "era": facts["tree"]["era"],
        "facts": facts,
        "python": python,
        "choices": [],
        "inputs": {},
        "env": [],
        "repositories": [],
        "request": {"python": python, "mirror": "http://[::1]:1/", "set": [f"CXX={python}", "USE_FBGEMM=0"]},
        "settings": {"path": "x", "values": {"jobs": 2, "cuda_toolkit": here}, "variables": {}},
    }
    path = checkout.parent / "manifest.json"
    path.write_text(json.dumps(manifest), "utf-8")
    said = run(checkout, "replay", str(path), "--source", str(checkout), "--json")
    replay = json.loads(said.stdout)["replay"]
    assert ran(checkout) == []
    assert [program for program in started(checkout) if is_of(program, checkout)] == []
    not_carried = " ".join(replay["not_carried"])
    for each in (
        "flag python",
        "flag mirror",
        "values of --set",
        "cuda_toolkit",
        "variable CXX",
        "torchbuild trust ",
    ):
        assert each in not_carried
    choices = {choice["name"]: choice["value"] for choice in replay["plan"]["choices"]}
    assert (choices["jobs"], choices["USE_FBGEMM"], choices["USE_MKLDNN"]) == ("2", "0", "0")
    facts["environ"] = {
        "USE_MKLDNN": "0",
        "CXX": python,
    }
    path.write_text(json.dumps(manifest), "utf-8")
    assert run(checkout, "trust", str(path)).returncode == 0
    said = run(checkout, "replay", str(path), "--source", str(checkout), "--json")
    assert "ran-replayed" in ran(checkout), said.stdout[:2000] + said.stderr


LOOKS = (
    "plan",
    "doctor --offline",
    "versions",
    "source status",
    "helpers list",
    "builds list",
    "report",
    "support",
)


@pytest.mark.parametrize("words", LOOKS)
def test_a_look_runs_nothing_of_the_tree(checkout: Path, words: str) -> None:
    said = run(checkout, *words.split())
    assert "Traceback" not in said.stderr
    assert ran(checkout) == []
    assert [program for program in started(checkout) if is_of(program, checkout)] == []
    if words in ("plan", "doctor --offline"):
        assert len(started(checkout)) > 3  # it did look
        text = said.stdout + said.stderr
        for key in ("python", "cuda-toolkit", "notify", "linker", "set.CXX"):
            assert f"{key} (" in text
        assert "torchbuild trust " in text
        assert said.returncode == 3


@pytest.mark.parametrize("words", ["plan", "doctor --offline"])
@needs(has("strace"), "strace")
def test_the_kernel_saw_nothing_of_the_tree_start(checkout: Path, words: str) -> None:
    """Also what programs start that are started: every execve of a whole look, by where its file lies."""
    log = checkout.parent / "strace"
    argv = ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=execve,execveat", "-o", str(log), *COMMAND]
    subprocess.run(
        [*argv, *words.split()],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=600,
        check=False,
    )
    ran_files = [
        found[1]
        for line in log.read_text("utf-8", "replace").splitlines()
        if (found := re.search(r'execve\("([^"]+)".*\) = 0$', line))
    ]
    assert len(ran_files) > 5
    assert [path for path in ran_files if is_of(path, checkout)] == []
    assert [path for path in ran_files if not path.startswith("/")] == []
    assert ran(checkout) == []


def test_what_is_harmless_counts_all_the_same(checkout: Path) -> None:
    plan: dict[str, Any] = json.loads(run(checkout, "plan", "--json").stdout)
    choices = {choice["name"]: (choice["value"], choice["source"]) for choice in plan["choices"]}
    assert choices["jobs"] == ("2", "torchbuild.toml")
    assert choices["USE_MKLDNN"] == ("0", "torchbuild.toml")
    assert choices["CXX"][1] != "torchbuild.toml"


@pytest.mark.parametrize("words", ["build", "env", "helpers verify", "source update", "build --yes"])
def test_what_acts_says_the_command_and_does_nothing(checkout: Path, words: str) -> None:
    said = run(checkout, *words.split())
    assert said.returncode == 18, said.stderr
    assert f"torchbuild trust {checkout.resolve()}" in said.stderr
    assert ran(checkout) == []


def test_trust_counts_until_a_file_changes(checkout: Path) -> None:
    """The command of the error message works; afterwards the programs of the file are run."""
    assert run(checkout, "trust", str(checkout.resolve())).returncode == 0
    said = run(checkout, "plan")
    assert "is not trusted" not in said.stdout
    assert "ran-python" in ran(checkout)
    assert not {"ran-venv", "ran-core.fsmonitor", "ran-filter.e.clean"} & set(ran(checkout))
    with (checkout / "torchbuild.toml").open("a", encoding="utf-8") as file:
        file.write("# more\n")
    assert "is not trusted" in run(checkout, "plan").stdout
    assert "changed since" in run(checkout, "trust", "--list").stdout


def test_no_build_is_entered_by_an_env_file_of_the_checkout(checkout: Path) -> None:
    """What `builds use` prints is for a shell to run."""
    (checkout / "torchbuild.toml").write_text('[builds.dev]\nfolder = "sub"\n', "utf-8")
    shutil.rmtree(checkout / "env_templates")
    (checkout / "sub").mkdir()
    for name in ("env_set.sh", "env_set.bat", "env_set.ps1", "env_set.fish"):
        (checkout / "sub" / name).write_text("exit 9\n", "utf-8")
    for words in (["--env-shell", "sh"], ["--env-shell", "ps1"], []):
        said = run(checkout, "builds", "use", "dev", *words)
        assert "env_set" not in said.stdout, said.stdout


def test_a_file_that_is_named_is_the_users_word(checkout: Path) -> None:
    own = checkout.parent / "own.toml"
    own.write_text("jobs = 3\n[set]\nMY_TOOL = '/usr/bin/true'\n", "utf-8")
    shutil.rmtree(checkout / "env_templates")
    said = run(checkout, "plan", "--config", str(own))
    assert "not trusted" not in said.stdout + said.stderr
    assert ran(checkout) == []

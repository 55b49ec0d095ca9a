"""A fork runs a command as a new process would, and leaves nothing to the next one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.capabilities import POSIX, needs
from tests.support.driver import TORCHBUILD, Run, environment, forking_server, torchbuild
from tests.support.forked import write_client

pytestmark = [pytest.mark.integration, needs(POSIX and sys.platform == "linux", "Linux")]


@pytest.mark.parametrize(
    "words", [("--version", "--verbose"), ("config", "--json"), ("plan", "--no-such-flag")]
)
def test_a_fork_gives_what_a_new_process_gives(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "torchbuild.toml").write_text("jobs = 3\n", "utf-8")
    env = environment({"NO_COLOR": "1"})
    new = subprocess.run(
        [*TORCHBUILD, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    fork = torchbuild(*words, cwd=tmp_path, environ={"NO_COLOR": "1"})
    assert (fork.code, fork.out, fork.err) == (new.returncode, new.stdout, new.stderr)


def test_the_environment_and_the_folder_are_those_of_one_command(tmp_path: Path) -> None:
    (tmp_path / "torchbuild.toml").write_text("jobs = 3\n", "utf-8")
    words = ("config", "--json")
    done = torchbuild(*words, cwd=tmp_path, environ={"TORCHBUILD_PRESET": "minimal"})
    assert chosen(done) == ('"minimal"', "3")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert chosen(torchbuild(*words, cwd=elsewhere)) == ("", "")


def chosen(done: Run) -> tuple[str, str]:
    """Return the preset and the jobs that `config` prints; "" where nothing sets one."""
    values = {key["key"]: key["value"] for key in done.json["keys"]}
    return values["preset"], values["jobs"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_umask_is_that_of_the_test(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        assert torchbuild("config", "--write", cwd=tmp_path).code == 0
    finally:
        os.umask(before)
    assert (tmp_path / "torchbuild.toml").stat().st_mode & 0o777 == mode


def test_what_python_reads_at_its_start_needs_a_new_process() -> None:
    server = forking_server()
    assert server.can_have(environment({"TORCHBUILD_JOBS": "1"}))
    for name in ("PYTHONUTF8", "LC_ALL", "LD_PRELOAD"):
        assert not server.can_have(environment({name: "1"}))


def test_a_shell_starts_forks_with_its_own_streams(tmp_path: Path) -> None:
    """What a fork cannot have is started anew; here that is another program, so that it is seen."""
    anew, program = tmp_path / "anew", tmp_path / "torchbuild"
    anew.write_text("import sys; print('anew', *sys.argv[1:])\n", "utf-8")
    write_client(program, forking_server(), anew)
    script = """
        echo 'jobs = 3' > torchbuild.toml
        ./torchbuild config --json | grep -c '"jobs"'
        echo "a.cpp:1:1: error: 'x' was not declared in this scope" | ./torchbuild diagnose -
        ./torchbuild no-such-verb 2>/dev/null || echo "code $?"
        LC_ALL=C ./torchbuild --version
    """
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path,
        env=environment(),
        pass_fds=[forking_server().channel.fileno()],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-2:]) == ("1", ["code 2", "anew --version"]), done.stdout + done.stderr
    assert any("was not declared in this scope" in line for line in lines)


def test_no_process_is_left() -> None:
    assert torchbuild("--version").code == 0
    assert psutil.Process(forking_server().pid).children(recursive=True) == []


def test_a_command_that_takes_too_long_is_killed_and_the_next_one_runs(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        torchbuild("plan", "--source", tmp_path, timeout=0.001)
    assert torchbuild("--version").code == 0

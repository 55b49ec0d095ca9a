"""The door to git, with a real git and a repository on disk."""

from __future__ import annotations

import base64
import http.server
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs_git
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system import process
from torchbuild_tasks.system.git.run import Git, unread_error
from torchbuild_tasks.system.git.transfer import git_settings
from torchbuild_tasks.values import replace

pytestmark = [
    pytest.mark.integration,
    needs_git,
]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    git = Git(folder=tmp_path, config=("user.name=a", "user.email=a@b", "init.defaultBranch=main"))
    git.run("init", "-q")
    git.run("commit", "-q", "--allow-empty", "-m", "first")
    return git


def test_settings_go_with_the_command_and_nowhere_else(git: Git) -> None:
    assert git.run("log", "--format=%an") == "a"
    assert "name" not in (git.folder / ".git/config").read_text("utf-8")


def test_a_hook_around_us_does_not_send_git_elsewhere(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(git.folder / "elsewhere"))
    assert git.output("rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_a_failure_has_gits_message(git: Git) -> None:
    assert git.output("rev-parse", "--verify", "nothing") is None
    with pytest.raises(SourceError) as raised:
        git.run("checkout", "nothing")
    assert any("pathspec 'nothing'" in line for line in raised.value.looked)


def test_no_git_is_reported(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(git.folder))
    with pytest.raises(SourceError, match="does not start") as raised:
        git.run("status")
    assert "Install git" in raised.value.next_step


def test_a_repository_that_git_cannot_read_is_not_a_folder_without_one(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside").mkdir()
    assert unread_error(git) is None
    assert unread_error(Git(folder=tmp_path / "beside")) is None
    (git.folder / ".git" / "HEAD").unlink()
    broken = unread_error(git)
    assert broken and "cannot read the repository" in broken.what
    assert broken.next_step == f"See what is wrong: git -C {git.folder} status"
    other = process.Captured(rc=128, stdout=b"", stderr=b"fatal: detected dubious ownership in repository\n")
    monkeypatch.setattr(process, "capture", lambda *_, **__: other)
    refused = unread_error(git)
    assert refused and refused.next_step == f"git config --global --add safe.directory {git.folder}"
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path / "beside"))
    absent = unread_error(git)
    assert absent and "Install git" in absent.next_step


LOGIN = "https://ada:S3cr3tV4lue99@mirror.invalid/"


def test_no_login_stands_in_a_command_line(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror may hold one, and every user of a machine can list the command lines of all."""
    seen: list[str] = []
    door = process.capture

    def capture(argv: Sequence[str], **how: Any) -> process.Captured:
        seen.extend(argv)
        return door(argv, **how)

    monkeypatch.setattr(process, "capture", capture)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.email")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "mine@b")
    mirrored = replace(git, config=(*git.config[:1], *git_settings((("https://github.com/", LOGIN),))))
    assert mirrored.run("ls-remote", "--get-url", "https://github.com/x") == "https://mirror.invalid/x"
    said = mirrored.run("config", "--get-urlmatch", "http.extraHeader", "https://mirror.invalid/x")
    assert base64.b64decode(said.removeprefix("Authorization: Basic ")) == b"ada:S3cr3tV4lue99"
    assert mirrored.run("config", "user.email") == "mine@b"
    assert "ls-remote" in seen and not any("S3cr3t" in word for word in seen)
    with pytest.raises(SourceError) as raised:
        mirrored.run("fetch", "nothing")
    assert not any("S3cr3t" in line for line in raised.value.looked)


@pytest.mark.parametrize("way", ["address", "mirror"])
def test_a_server_is_reported_a_login_that_no_child_of_gits_has_in_its_words(
    git: Git, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """git hands addresses to its helper for http; GIT_TRACE writes down what it starts."""
    told: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append(self.headers.get("Authorization", ""))
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("GIT_TRACE", "1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://ada:S3cr3t%40V4lue99@127.0.0.1:{server.server_port}/"
        if way == "mirror":
            git = replace(git, config=git_settings((("https://github.com/", place),)))
        done = git.ask("ls-remote", "https://github.com/x" if way == "mirror" else f"{place}x")
        server.shutdown()
    assert base64.b64decode(told[0].removeprefix("Basic ")) == b"ada:S3cr3t@V4lue99"
    assert b"remote-http" in done.stderr and b"S3cr3t" not in done.stderr

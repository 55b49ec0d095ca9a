"""No setting that a repository brings starts a program, and the user's own go on to count."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git
from tests.support.for_each import each_case
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import look_at_git
from torchbuild_tasks.system.git import guard
from torchbuild_tasks.system.git.run import Git

# Key and command line, in which {name} is the file that shows that it ran.
BAITS = (
    ("core.fsmonitor", "touch {fsmonitor};:"),
    ("filter.a=b.clean", "touch {clean}; cat"),
    ("filter.a=b.smudge", "touch {smudge}; cat"),
    ("filter.a=b.required", "true"),
    ("filter.p.process", "touch {process}; cat"),
    ("filter.p.required", "true"),
    ("diff.external", "touch {external};:"),
    ("diff.d.textconv", "touch {textconv}; cat"),
    ("diff.d.command", "touch {command};:"),
    ("merge.d.driver", "touch {merge};:"),
    ("core.sshCommand", "touch {ssh};false"),
    ("core.gitProxy", "touch-{proxy}"),
    ("core.askPass", "touch {askpass};:"),
    ("core.pager", "touch {pager}; cat"),
    ("core.editor", "touch {editor};:"),
    ("core.alternateRefsCommand", "touch {alternate};:"),
    ("credential.helper", "!touch {credential};:"),
    ("gpg.program", "{gpg}"),
    ("log.showSignature", "true"),
    ("gc.recentObjectsHook", "touch {gc}"),
    ("remote.local.url", "{here}"),
    ("remote.local.uploadpack", "touch {uploadpack}; git-upload-pack"),
    ("remote.ssh.url", "ssh://nowhere.invalid/y"),
    ("remote.ext.url", "ext::sh -c touch% {ext}"),
    ("protocol.ext.allow", "always"),
    ("submodule.s.update", "!touch {submodule}"),
)
HOOKS = ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "pre-auto-gc")
COMMANDS = (
    *("status --porcelain", "diff", "diff --cached HEAD", "log -1", "show", "add f g", "stash", "gc --auto"),
    *("checkout HEAD -- f g", "reset --hard", "checkout --detach", "commit --allow-empty --message x"),
    *("fetch local", "fetch ssh", "fetch ext", "worktree add --detach ../worktree", "ls-files"),
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository from an attacker: its settings, attributes and hooks would run programs."""
    root = tmp_path / "repository"
    root.mkdir()
    plain = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(root), *words], check=True, env=plain, capture_output=True)

    git("init", "-q")
    for name in ("f", "g"):
        (root / name).write_text("a\n", "utf-8")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
    for hook in HOOKS:
        path = root / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {(tmp_path / 'ran-hook').as_posix()}\n", "utf-8")
        path.chmod(0o755)
    for key, command in BAITS:
        places = {"here": root.as_posix()}
        names = [part.split("}")[0] for part in command.split("{")[1:]]
        places |= {name: (tmp_path / f"ran-{name}").as_posix() for name in names if name != "here"}
        git("config", "--add", key, command.format(**places))
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("f filter=a=b diff=d\ng filter=p merge=d\n", "utf-8")
    return root


def ran(root: Path) -> list[str]:
    return sorted(path.name for path in root.parent.glob("ran-*"))


@pytest.mark.integration
@needs_git
def test_no_command_starts_what_the_repository_names(repository: Path) -> None:
    git = Git(folder=repository, config=("user.name=a", "user.email=a@b"))
    for command in COMMANDS:
        for name in ("f", "g"):
            (repository / name).write_text(f"{command}\n", "utf-8")
        git.ask(*command.split())
        assert ran(repository) == [], command


@pytest.mark.integration
@needs_git
def test_a_look_starts_nothing_either_and_still_sees_changes(repository: Path) -> None:
    for text, dirty in (("a\n", False), ("b\n", True)):
        (repository / "f").write_text(text, "utf-8")
        seen = look_at_git(Probe(environ=dict(os.environ)), str(repository.resolve()), tags=True)
        assert (seen.commit is not None, seen.dirty) == (True, dirty)
    assert ran(repository) == []


@pytest.mark.integration
@needs_git
def test_the_bait_is_bait(repository: Path) -> None:
    """Plain git runs these programs, so the tests above can fail."""
    (repository / "f").write_text("b\n", "utf-8")
    subprocess.run(["git", "-C", str(repository), "status"], capture_output=True)
    assert "ran-clean" in ran(repository)


@pytest.mark.integration
@needs_git
def test_a_look_asks_no_server_for_what_the_repository_lacks(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git would, where the repository says that it is a part of what a server has."""
    git = Git(folder=repository, config=("user.name=a", "user.email=a@b"))
    blob = git.run("rev-parse", "HEAD:f")
    for setting in ("extensions.partialClone", "ssh"), ("remote.ssh.promisor", "true"):
        git.run("config", *setting)
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    (repository / "f").write_text("b\n", "utf-8")
    asked = repository.parent / "ran-asked"
    monkeypatch.setenv("GIT_SSH_COMMAND", f"touch {asked.as_posix()};false")
    for command in (
        "status --porcelain",
        "diff",
        "log -1 -p",
        f"cat-file -e {blob}",
        "ls-files",
        "ls-tree HEAD",
    ):
        git.ask(*command.split())
        assert not asked.exists(), command
    look_at_git(Probe(environ=dict(os.environ)), str(repository.resolve()), tags=True)
    assert not asked.exists()
    git.ask("show", "HEAD:f")  # which `source` does of its own checkouts
    assert asked.exists()


@pytest.mark.integration
@needs_git
def test_the_users_own_filter_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git LFS has its filter in the user's settings; what the repository says of it is off."""
    home = tmp_path / "settings"
    home.write_text('[filter "up"]\n\tclean = tr a-z A-Z\n\trequired\n', "utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home))
    git = Git(folder=tmp_path / "r", config=("user.name=a", "user.email=a@b"))
    git.folder.mkdir()
    git.run("init", "-q")
    git.run("config", "filter.up.clean", "tr a-z 0-9")
    (git.folder / ".gitattributes").write_text("f filter=up\n", "utf-8")
    (git.folder / "f").write_text("abc\n", "utf-8")
    git.run("add", ".")
    assert git.run("cat-file", "-p", ":f") == "ABC"


def test_what_the_environment_says_of_settings_is_kept() -> None:
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    env = guard.environment(given)
    assert (env["GIT_CONFIG_KEY_0"], env["GIT_CONFIG_VALUE_0"]) == ("safe.directory", "*")
    assert int(env["GIT_CONFIG_COUNT"]) > 1
    assert guard.environment({"GIT_CONFIG_COUNT": "many"})["GIT_CONFIG_KEY_0"] == "core.fsmonitor"
    assert "GIT_DIR" not in guard.environment({"GIT_DIR": "/elsewhere"})


def test_a_git_without_that_variable_is_reported_as_its_own_c_option_tells() -> None:
    """The mark is not in the answer of git before 2.31."""
    env = guard.environment({}, b"local\0filter.x.clean\nrm -rf '!'\0")
    assert "'core.fsmonitor=false'" in env["GIT_CONFIG_PARAMETERS"]
    assert "'filter.x.clean='" in env["GIT_CONFIG_PARAMETERS"]


@each_case(
    ("entries", "laid_over"),
    [
        ([(True, "filter.x.clean", "evil")], [("filter.x.clean", ""), ("filter.x.required", "false")]),
        ([(False, "filter.x.clean", "mine")], []),
        (
            [(False, "filter.x.clean", "mine"), (True, "filter.x.clean", "evil")],
            [("filter.x.clean", "mine")],
        ),
        ([(True, "submodule.a.update", "rebase")], []),
        ([(True, "submodule.a.update", "!evil")], [("submodule.a.update", "checkout")]),
        ([(True, "core.sshcommand", "evil")], [("core.sshcommand", "ssh")]),
        ([(True, "remote.o.uploadpack", "evil")], [("protocol.file.allow", "never")]),
        (
            [(False, "credential.helper", "store"), (True, "credential.https://x.helper", "!evil")],
            [("credential.https://x.helper", ""), ("credential.helper", "store")],
        ),
        ([(True, "lfs.customtransfer.t.path", "evil")], [("lfs.customtransfer.t.path", "")]),
        ([(True, "core.autocrlf", "true")], []),
    ],
)
def test_what_is_laid_over(entries: list[tuple[bool, str, str]], laid_over: list[tuple[str, str]]) -> None:
    assert list(guard.overrides(entries)) == laid_over

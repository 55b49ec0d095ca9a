"""The scripts of `completion` in real shells."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.capabilities import needs, needs_bash, needs_powershell, needs_pty
from torchbuild_tasks.fronts.completion import script

pytestmark = pytest.mark.integration

LINES = [
    ("torchbuild bui", "build build_cpu build_cuda builds"),
    ("torchbuild build --preset m", "minimal"),
    ("torchbuild plan --cpu --torch 2.1", "2.1 2.10 2.11 2.12 2.13 2.14 2.15"),
    ("torchbuild plan --arch 8.", "8.0 8.6 8.7 8.8 8.9"),
    ("torchbuild build --name a", "alpha"),
    ("torchbuild source g", "get"),
    ("torchbuild build --source pyt", "pytorch"),
    ("nox -s build_c", "build_cpu build_cuda"),
    ("invoke build-c", "build-cpu build-cuda"),
]
FISH = needs(os.name == "posix" and shutil.which("fish") is not None, "fish")
ZSH = needs(os.name == "posix" and shutil.which("zsh") is not None, "zsh")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two builds, in which `torchbuild` can be run."""
    (tmp_path / "torchbuild.toml").write_text("[builds.alpha]\n[builds.beta]\n", encoding="utf-8")
    (tmp_path / "pytorch").mkdir()
    program = tmp_path / "bin" / "torchbuild"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m torchbuild_tasks "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, shell: str, name: str) -> None:
    for command in ("torchbuild", "nox", "invoke"):
        (folder / name.format(command)).write_text(script(shell, command), encoding="utf-8")


def ran(*argv: str) -> list[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


@needs_bash
def test_bash(folder: Path) -> None:
    write(folder, "bash", "{}.bash")
    (folder / "try.bash").write_text(
        "for command in torchbuild nox invoke; do source ./$command.bash; done\n"
        'for line in "$@"; do read -ra COMP_WORDS <<<$line; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n'
        "_shtab_${COMP_WORDS[0]}; echo $(printf '%s\\n' ${COMPREPLY[*]} | LC_ALL=C sort); done\n",
        encoding="utf-8",
    )
    found = ran("bash", "try.bash", *(line for line, _ in LINES))
    assert found == [wanted for _, wanted in LINES]


@needs_bash
def test_reading_the_script_takes_bash_less_than_50_ms(folder: Path) -> None:
    write(folder, "bash", "{}.bash")
    loop = "TIMEFORMAT=%U; time for i in 1 2 3 4 5 6 7 8 9 10; do source ./torchbuild.bash; done"
    timed = subprocess.run(["bash", "-c", loop], capture_output=True, text=True, check=True, timeout=60)
    assert float(timed.stderr.replace(",", ".")) / 10 < 0.05


@FISH
def test_fish(folder: Path) -> None:
    write(folder, "fish", "{}.fish")
    reads = "; ".join(f"source {command}.fish" for command in ("torchbuild", "nox", "invoke"))
    for line, wanted in LINES:
        found = [
            each.split("\t")[0].rstrip("/") for each in ran("fish", "-c", f"{reads}; complete -C '{line}'")
        ]
        assert sorted(found) == wanted.split()


@ZSH
@pytest.mark.parametrize("read", ["source ./_{}", 'eval "$(<_{})"'])
def test_zsh_reads_the_script_at_its_start(folder: Path, read: str) -> None:
    """A .zshrc may source the script: the completion is registered and nothing is printed."""
    write(folder, "zsh", "_{}")
    read_all = "; ".join(read.format(command) for command in ("torchbuild", "nox", "invoke"))
    shown = "print $_comps[torchbuild] $_comps[nox]"
    found = subprocess.run(
        ["zsh", "-fc", f"autoload -Uz compinit; compinit -D; {read_all}; {shown}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (found.stdout, found.stderr) == ("_shtab_torchbuild _shtab_nox\n", "")


@ZSH
@pytest.mark.slow
@needs_pty
def test_zsh(folder: Path) -> None:
    write(folder, "zsh", "_{}")
    parent, child = os.openpty()
    environ = {**os.environ, "TERM": "dumb", "PS1": "> ", "COLUMNS": "200"}
    with subprocess.Popen(["zsh", "-fi"], env=environ, stdin=child, stdout=child, stderr=child) as zsh:
        os.close(child)
        try:
            os.write(parent, b"fpath=($PWD $fpath); autoload -U compinit; compinit -D; echo re''ady\n")
            answer(parent, "ready")
            for line, wanted in LINES:
                os.write(parent, f"{line}\t\t".encode())
                answer(parent, *wanted.split())
                os.write(parent, b"\x15")
        finally:
            zsh.kill()
    os.close(parent)


def answer(terminal: int, *wanted: str) -> None:
    """Read until all of these words were shown.

    Raises:
        AssertionError: they were not, within twenty seconds.
    """
    seen, end = "", time.monotonic() + 20
    while not all(word in seen for word in wanted):
        assert time.monotonic() < end, f"{wanted}: {seen}"
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 1 << 16).decode("utf-8", "replace")


@needs_powershell("pwsh")
def test_powershell(folder: Path) -> None:
    write(folder, "powershell", "{}.ps1")
    for line, wanted in LINES:
        asked = f"(TabExpansion2 '{line}' {len(line)}).CompletionMatches.CompletionText"
        reads = "; ".join(f". ./{command}.ps1" for command in ("torchbuild", "nox", "invoke"))
        found = ran("pwsh", "-NoProfile", "-Command", f"{reads}; {asked}")
        assert sorted(each.removeprefix("./") for each in found) == wanted.split()

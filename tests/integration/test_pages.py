"""Every command of the pages that needs nothing special, run unchanged on a built copy of the sample."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import forked
from tests.support.capabilities import needs_bash, needs_linux_compiler
from tests.support.driver import environment, forking_server
from tests.support.pages import PAGES, ROOT, blocks, script
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs_linux_compiler, needs_bash, pytest.mark.one_system]

PROGRAMS = {
    "torchbuild": "from torchbuild_tasks.fronts.console import main; main()",
    "nox": "from nox.__main__ import main; main()",
    "invoke": "from invoke.main import program; program.run()",
}
RUN = {page: [block for block in blocks(page) if block.is_run] for page in PAGES}
QUICK = [page for page, found in RUN.items() if any("slow" not in block.marks for block in found)]
SLOW = [page for page, found in RUN.items() if any("slow" in block.marks for block in found)]

Stamp = tuple[int, ...]  # of a file or link its mode, size and time (ns); empty for a folder


class Home:
    """A home with ~/pytorch, built, and ~/torchbuild-tasks, from where the runners are called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.saved = folder / "home", folder / "saved"
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name, code in PROGRAMS.items():
            program = self.programs / name
            start = f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
            program.write_text(f"{start}{code}\n")
            program.chmod(0o755)
        anew = (self.programs / "torchbuild").rename(self.programs / ".torchbuild")
        forked.write_client(self.programs / "torchbuild", forking_server(), anew)
        python = self.programs / "python"  # of a venv that is active
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        materialise(self.folder / "pytorch", git=True)
        own = self.folder / "torchbuild-tasks"
        materialise(own / "samples/minitorch")
        (own / "noxfile.py").write_text("import torchbuild_tasks\n\ntorchbuild_tasks.register()\n")
        (own / "tasks.py").write_text("from torchbuild_tasks import namespace\n")
        (self.folder / ".gitconfig").write_text(
            '[user]\nname = "me"\nemail = "me@example.org"\n[protocol "file"]\nallow = always\n'
        )
        self.run("torchbuild build --source ~/pytorch", self.folder)
        subprocess.run(["cp", "-a", str(self.folder), str(self.saved)], check=True)
        self.stamps = stamps(self.saved)

    def run(self, commands: str, folder: Path) -> str:
        """Run commands in bash; what they print."""
        environ = environment({"HOME": str(self.folder), "CI": "1"})
        environ["PATH"] = f"{self.programs}:{environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", commands],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            pass_fds=[forking_server().channel.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=3000,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout[-6000:]}"
        return done.stdout

    def again(self) -> None:
        """Make all as it was after the first build, in the same place: venvs and build trees name it."""
        restore(self.saved, self.folder, self.stamps)


def restore(saved: Path, place: Path, wanted: Mapping[str, Stamp]) -> None:
    """Make a folder as it was saved; what is the same by kind, mode, size and time is not copied again."""
    here = stamps(place)
    for name in sorted(here, reverse=True):
        if here[name] != wanted.get(name):
            (place / name).unlink() if here[name] else shutil.rmtree(place / name)
    for name in sorted(wanted):
        if wanted[name] != here.get(name):
            if wanted[name]:
                shutil.copy2(saved / name, place / name, follow_symlinks=False)
            else:
                (place / name).mkdir(exist_ok=True)


def stamps(root: Path) -> dict[str, Stamp]:
    """Return what says whether an entry below a folder has changed, by its path."""
    found: dict[str, Stamp] = {}
    folders = [str(root)]
    start = len(folders[0]) + 1
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    found[entry.path[start:]] = ()
                else:
                    seen = entry.stat(follow_symlinks=False)
                    found[entry.path[start:]] = (seen.st_mode, seen.st_size, seen.st_mtime_ns)
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("page", QUICK, ids=lambda page: page.stem)
def test_the_commands_of_a_page_work(page: Path, home: Home) -> None:
    home.again()
    printed = home.run(script(page, slow=False), home.folder)
    if page.stem == "first-cpu-build":
        assert "Built torch" in printed
        assert not (home.folder / "pytorch/build").exists()  # its last command is clean


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=lambda page: page.stem)
def test_the_long_commands_of_a_page_work(page: Path, home: Home) -> None:
    home.again()
    home.run(script(page, slow=True), home.folder)

"""SIGKILL at random moments of every verb that writes, then one plain `build`: all is right by itself.

Meanwhile a person keeps files in the build folder; each of them must be there at the end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.archives import Put, make
from tests.support.capabilities import needs_linux_compiler
from tests.support.driver import TORCHBUILD, environment, torchbuild
from tests.support.sample import Era, materialise
from torchbuild_tasks.system.left_running import VARIABLE

pytestmark = [pytest.mark.integration, needs_linux_compiler]
HELPERS = ("--with-helper", "none", "--with-helper", "tool")
VERBS: tuple[tuple[str, ...], ...] = (
    ("build", "--yes"),
    ("build", "--clean", "--yes"),
    ("build", "--set", "USE_DISTRIBUTED=0", "--yes"),
    ("clean", "--yes"),
    ("env",),
    ("helpers", "fetch", *HELPERS),
    ("helpers", "prune", "--yes", *HELPERS),
)
FIRST_GUESS = {"build": 30.0, "clean": 4.0, "env": 4.0, "helpers": 4.0}  # seconds that a verb may take


class World:
    """A checkout, a person who keeps files in its build folder, and a killer with a seed."""

    def __init__(self, tree: Path, python: Path, store: Path, seed: int) -> None:
        self.tree, self.python, self.store = tree, python, store
        self.chance = random.Random(seed)
        self.longest = dict(FIRST_GUESS)
        self.mine: dict[Path, str] = {}
        self.kills = 0

    def words(self, *verb: str) -> list[str]:
        settings = str(self.tree.parent / "settings.toml")
        return [*verb, "--source", str(self.tree), "--python", str(self.python), "--config", settings]

    @property
    def environ(self) -> dict[str, str]:
        return {"TORCHBUILD_CACHE": str(self.store), "CCACHE_DISABLE": "1"}

    def kill_one(self) -> None:
        """Start a verb, and kill it within the time that it takes."""
        verb = self.chance.choice(VERBS)
        for source in self.chance.sample(sorted(self.tree.glob("[act]*/**/*.cpp")), 3):
            source.touch()
        started = time.monotonic()
        process = subprocess.Popen(
            [*TORCHBUILD, *self.words(*verb)],
            env=environment(self.environ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = started + self.chance.uniform(0.3, self.longest[verb[0]])
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            if self.chance.random() < 0.02:
                self._keep_a_file()
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            self.kills += 1
        else:  # it took less than was thought
            self.longest[verb[0]] = max(1.0, 0.9 * (time.monotonic() - started))
        process.wait()

    def _keep_a_file(self) -> None:
        folder = self.tree / "build" / self.chance.choice(("", "c10", "mine", "editable/torch", "torch"))
        if not folder.parent.is_dir() or "editable" in folder.parts:
            return  # what scikit-build-core empties at that very moment is nobody's to save
        path = folder / f"note-{len(self.mine)}.txt"
        try:
            folder.mkdir(exist_ok=True)
            path.write_text(f"{path.name}: mine\n", "utf-8")
        except OSError:
            return  # a clean was faster
        self.mine[path] = path.read_text("utf-8")

    def build(self) -> str:
        """Build plainly; "" when all is right, else what is not."""
        done = torchbuild(*self.words("build", "--yes"), environ=self.environ)
        if done.code:
            return f"build ended with {done.code}: {(done.out + done.err)[-3000:]}"
        if lost := [str(path) for path, text in self.mine.items() if _text(path) != text]:
            return f"lost: {lost}"
        if left := list(_running_of_ours(self.tree)):
            return f"still running: {left}"
        for name in ("made.json", "installed.json"):
            json.loads((self.tree / ".torchbuild" / name).read_bytes())
        partial = [path for path in self.tree.rglob(".*.partial") if "venv" not in path.as_posix()]
        return f"left: {partial}" if partial else ""


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _running_of_ours(tree: Path) -> Iterator[str]:
    import psutil

    for process in psutil.process_iter():
        try:
            if process.cwd().startswith(str(tree)) and VARIABLE in process.environ():
                yield process.name()
        except (psutil.Error, OSError):
            continue


def make_world(folder: Path, python: Path, era: Era, seed: int) -> World:
    """A checkout with a helper of its own, built once."""
    tree = materialise(folder / "minitorch", era=era)
    archive = make("zip", folder / "tool.zip", [Put("tool/done", b"1" * 5_000_000)])
    rows = {"name": "tool", "version": "1", "os": "linux", "needed": "asked", "unpack": "zip", "source": "t"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in rows.items()]
    lines += [f"urls = {json.dumps([archive.as_uri()])}", 'holds = ["tool/done"]']
    (folder / "settings.toml").write_text("\n".join(["[[helper]]", *lines, ""]), "utf-8")
    made = World(tree, python, folder / "store", seed)
    problem = made.build()
    assert problem == ""
    return made


@pytest.mark.skipif(sys.platform == "win32", reason="there a job ends what a killed run has started")
@pytest.mark.parametrize("era", ["scikit-build-core", "setuptools"])
def test_after_kills_one_plain_build_is_right(era: Era, tmp_path: Path, target: Path) -> None:
    world = make_world(tmp_path, target, era, 16)
    for _ in range(2):
        world.kill_one()
    problem = world.build()
    assert problem == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there a job ends what a killed run has started")
@pytest.mark.parametrize("era", ["scikit-build-core", "setuptools"])
def test_after_a_hundred_kills_each_a_plain_build_is_right(era: Era, tmp_path: Path, target: Path) -> None:
    world = make_world(tmp_path, target, era, 3)
    while world.kills < 100:
        world.kill_one()
        problem = world.build()
        assert problem == "", f"after {world.kills} kills"

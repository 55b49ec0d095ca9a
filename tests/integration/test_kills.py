"""SIGKILL at random moments of every verb that writes: the next command goes on without a hand.

Meanwhile a person keeps files in the build folder; each of them must be there at the end. The campaign:
pytest tests/integration/test_kills.py --slow --kills 200
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support import git_servers as gits
from tests.support.archives import Put, make
from tests.support.capabilities import needs_linux_compiler
from tests.support.driver import TORCHBUILD, environment, torchbuild
from tests.support.sample import Era, materialise
from torchbuild_tasks.system.left_running import VARIABLE

pytestmark = [pytest.mark.integration, needs_linux_compiler]
HELPERS = ("--with-helper", "none", "--with-helper", "tool")
BUILD = ("build", "--yes")
# What is killed, and what then has to go on: itself, where that does not take long.
TREE: dict[tuple[str, ...], tuple[str, ...]] = {
    BUILD: BUILD,
    ("build", "--clean", "--yes"): BUILD,
    ("build", "--set", "USE_DISTRIBUTED=0", "--yes"): BUILD,
    ("clean", "--yes"): BUILD,
    ("env",): ("env",),
    ("helpers", "fetch", *HELPERS): ("helpers", "fetch", *HELPERS),
    ("helpers", "prune", "--yes", *HELPERS): ("helpers", "fetch", *HELPERS),
}
LAY = ("build", "--yes", "--offline", "--from-wheel", "WHEEL")
MADE = ("--wheel", "WHEEL", "--out", "OUT")
PACKAGES = tuple(("package", kind, *MADE) for kind in ("wheel", "libtorch"))
if importlib.util.find_spec("rattler_build"):
    PACKAGES += (("package", "conda", *MADE),)
SDIST = ("package", "sdist", "--source", "TREE", "--out", "OUT")
PUBLISH = ("publish", "OUT/index", "--file", "WHEEL", "--yes")
CONTAINER = ("container", "write", "--source", "TREE", "--out", "OUT/container")
SIDE = ("build", "--name", "side", "--yes")
GET = ("source", "get", "v2.14.0", "--url", "URL", "--source", "GOT")
FURTHER: dict[tuple[str, ...], tuple[str, ...]] = {
    LAY: LAY,
    **{each: each for each in (*PACKAGES, SDIST, PUBLISH, CONTAINER)},
    ("cache", "clear", "--yes"): ("cache", "clear", "--yes"),
    ("report", "--out", "OUT/report.html"): BUILD,  # which it tells of
    ("trust", "TREE"): ("trust", "TREE"),
    SIDE: SIDE,
    ("builds", "remove", "side", "--yes"): SIDE,
    ("builds", "use", "side"): ("builds", "use", "none"),  # the build without a name goes on below
    ("support", "--out", "OUT/support.zip"): BUILD,
    ("debug-config",): ("debug-config",),
    ("replay", "TREE/build/torchbuild-manifest.json", "--yes"): BUILD,
    GET: GET,
    ("source", "update", "v2.15.0", "--source", "GOT"): ("source", "update", "v2.14.0", "--source", "GOT"),
    ("source", "reset", "--third-party", "--yes", "--source", "GOT"): ("source", "update", "--source", "GOT"),
}
Verbs = Mapping[tuple[str, ...], tuple[str, ...]]
FIRST_GUESS = {"build": 30.0, "replay": 30.0}  # seconds that a verb may take
LIGHT_GUESS = 6.0


class World:
    """A checkout, a person who keeps files in its build folder, and a killer with a seed."""

    def __init__(self, tree: Path, python: Path, store: Path, seed: int, verbs: Verbs) -> None:
        self.tree, self.python, self.store, self.verbs = tree, python, store, verbs
        self.chance = random.Random(seed)
        self.deck: list[tuple[str, ...]] = []
        self.longest = {verb: FIRST_GUESS.get(verb[0], LIGHT_GUESS) for verb in verbs}
        self.mine: dict[Path, str] = {}
        self.killed = False
        self.kills: Counter[str] = Counter()
        self.places = {"TREE": str(tree), "OUT": str(tree.parent / "out"), "GOT": str(tree.parent / "got")}

    def words(self, *verb: str) -> list[str]:
        """Return a whole command: the places put in, and what every command here gets."""
        settings = str(self.tree.parent / "settings.toml")
        found = [self._placed(word) for word in verb]
        alone = verb[0] in ("trust", "package", "publish")
        if "--source" not in found and not alone:
            found += ["--source", str(self.tree), "--python", str(self.python)]
        return found if alone else [*found, "--config", settings]

    def _placed(self, word: str) -> str:
        for name, place in self.places.items():
            if word == name or word.startswith(f"{name}/"):
                return word.replace(name, place, 1)
        return word

    @property
    def environ(self) -> dict[str, str]:
        """Return the store, a state and a cache of our own, as variables; kills meet real compiles."""
        cache = {"CCACHE_DISABLE": "1", "CCACHE_DIR": str(self.store / "ccache")} if self.killed else {}
        return {"TORCHBUILD_CACHE": str(self.store), "TORCHBUILD_STATE": str(self.store / "state"), **cache}

    def kill_one(self) -> tuple[str, ...]:
        """Start a verb, and kill it within the time that it takes; return what has to go on then."""
        self.killed = True
        if not self.deck:  # every verb once before any comes again
            self.deck = self.chance.sample(list(self.verbs), len(self.verbs))
        verb = self.deck.pop()
        if verb is GET and Path(self.places["GOT"]).is_dir():
            shutil.rmtree(self.places["GOT"])
        for source in self.chance.sample(sorted(self.tree.glob("[act]*/**/*.cpp")), 3):
            if verb is not LAY:  # which compiles nothing, and says so of a source that is newer
                source.touch()
        started = time.monotonic()
        process = subprocess.Popen(
            [*TORCHBUILD, *self.words(*verb)],
            env=environment(self.environ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = started + self.chance.uniform(0.3, self.longest[verb])
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            if self.chance.random() < 0.02:
                self._keep_a_file()
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            self.kills[" ".join(verb[:2])] += 1
        else:  # it took less than was thought
            self.longest[verb] = max(0.5, 0.9 * (time.monotonic() - started))
        process.wait()
        return self.verbs[verb]

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

    def go_on(self, verb: tuple[str, ...] = BUILD) -> str:
        """Run a command to its end; "" when all is right then, else what is not."""
        done = torchbuild(*self.words(*verb), environ=self.environ, timeout=900)
        if done.code:
            return f"{' '.join(verb)} ended with {done.code}: {(done.out + done.err)[-3000:]}"
        return self._wrong()

    def _wrong(self) -> str:
        if lost := [str(path) for path, text in self.mine.items() if _text(path) != text]:
            return f"lost: {lost}"
        if left := list(_running_of_ours(self.tree)):
            return f"still running: {left}"
        for name in ("made.json", "installed.json"):
            if (self.tree / ".torchbuild" / name).exists():
                json.loads((self.tree / ".torchbuild" / name).read_bytes())
        partial = [path for path in self.tree.rglob(".*.torchbuild-partial") if "venv" not in path.as_posix()]
        partial += Path(self.places["OUT"]).glob(".*.unpacking")
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


def make_world(folder: Path, python: Path, era: Era, seed: int, verbs: Verbs = TREE) -> World:
    """Make a checkout with a helper of its own, built once, and a wheel of it where the verbs need one."""
    tree = materialise(folder / "minitorch", era=era, git=LAY in verbs)
    archive = make("zip", folder / "tool.zip", [Put("tool/done", b"1" * 5_000_000)])
    rows = {"name": "tool", "version": "1", "os": "linux", "needed": "asked", "unpack": "zip", "source": "t"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in rows.items()]
    lines += [f"urls = {json.dumps([archive.as_uri()])}", 'holds = ["tool/done"]']
    (tree / "torchbuild.toml").write_text("jobs = 2\n", "utf-8")
    lines += ["[builds.side]", 'mode = "wheel"']
    (folder / "settings.toml").write_text("\n".join(["[[helper]]", *lines, ""]), "utf-8")
    made = World(tree, python, folder / "store", seed, verbs)
    if LAY in verbs:
        problem = made.go_on((*BUILD, "--mode", "wheel"))
        assert problem == ""
        (wheel,) = (tree / "dist").glob("*.whl")
        made.places["WHEEL"] = str(shutil.copy(wheel, folder / wheel.name))
        made.places["URL"] = gits.publish(folder / "published").joinpath("pytorch.git").as_uri()
        problem = made.go_on(GET)
        assert problem == ""
    problem = made.go_on()
    assert problem == ""
    return made


@pytest.mark.skipif(sys.platform == "win32", reason="there a job ends what a killed run has started")
def test_after_kills_one_plain_build_is_right(tmp_path: Path, target: Path) -> None:
    """In the newer era; the campaign has both."""
    world = make_world(tmp_path, target, "scikit-build-core", 16)
    for _ in range(2):
        world.kill_one()
    problem = world.go_on()
    assert problem == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there a job ends what a killed run has started")
@pytest.mark.parametrize("era", ["scikit-build-core", "setuptools"])
def test_after_each_of_many_kills_the_next_command_goes_on(
    era: Era, tmp_path: Path, target: Path, kills: int
) -> None:
    """Half of `--kills` for each build system; what was killed is printed (pytest -s)."""
    world = make_world(tmp_path, target, era, 3, {**TREE, **FURTHER})
    while world.kills.total() < kills // 2:
        following = world.kill_one()
        problem = world.go_on(following)
        print(f"{world.kills.total()} kills {era}: {dict(world.kills)}", flush=True)
        assert problem == "", f"after {world.kills}"
    assert world.go_on() == ""

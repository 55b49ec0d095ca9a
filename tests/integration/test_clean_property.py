"""Whatever lies in a checkout and whenever it came: a clean takes the build's files and no others."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from torchbuild_tasks.build.outputs import patterns
from torchbuild_tasks.build.ownership import begin, plan_removal, remove
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.system.log import last_write, open_log

pytestmark = pytest.mark.integration

NAMES: tuple[str, ...] = (
    *("build", "torch", "lib", "include", "bin", "share", "generated", "_C.so", "_Cuser.so", "version.py"),
    *("torch.egg-info", "CMakeCache.txt", "dist", "env", "venv", "__pycache__", "node_modules", "a.o"),
    *(".env", ".envrc", ".idea", ".vscode", ".venv", ".hidden", "notes.txt", "a b", "new\nline", "tab\t"),
    *("\u00e9\u4e2d", "e\u0301", "\udcff", "-rf", "*", "[x]", "?", "'", '"', "\\", "~", "$HOME", "..."),
)  # fmt: skip
if os.name == "nt":  # it has no such names
    NAMES = tuple(name for name in NAMES if not set(name) & set('\n\t*?"\\\udcff') and name != "...")
PREFIXES = ("", "", "build/", "build/lib/", "torch/", "torch/lib/", "torch/csrc/autograd/generated/")
OUTPUT_PREFIXES = ("build/", "build/a/b/", "build/lib/", "torch/lib/", "torch/csrc/autograd/generated/")
ERAS = ("setuptools", "scikit-build-core")
TICK = 0.012  # file times of some kernels move in steps of 10 ms; people are slower

names = st.sampled_from(NAMES)
user_paths = st.builds(
    lambda prefix, parts: prefix + "/".join(parts),
    st.sampled_from(PREFIXES),
    st.lists(names, min_size=1, max_size=3),
)
output_paths = st.one_of(
    st.sampled_from(("torch/version.py", "build/CMakeCache.txt", "build/.ninja_log", "torch/_VF.pyi")),
    st.builds(lambda prefix, name: prefix + name, st.sampled_from(OUTPUT_PREFIXES), names),
)
Kind = Literal["file", "link in", "link out", "link to folder"]


def _has_links() -> bool:
    with tempfile.TemporaryDirectory() as base:
        link = Path(base, "link")
        with contextlib.suppress(OSError):
            link.symlink_to(base)
        return link.is_symlink()


LINKS = _has_links()
ALL_KINDS: tuple[Kind, ...] = ("file", "file", "file", "link in", "link out", "link to folder")
kinds = st.sampled_from(ALL_KINDS if LINKS else ALL_KINDS[:1])
user_files = st.lists(st.tuples(user_paths, kinds), max_size=6)


class Round(msgspec.Struct, frozen=True):
    """One build: what it writes, what the user does meanwhile and afterwards, how it ends."""

    outputs: list[str]
    meanwhile: list[tuple[str, Kind]]
    killed: bool
    afterwards: list[tuple[str, Kind]]
    edits: int


rounds = st.builds(
    Round,
    outputs=st.lists(output_paths, max_size=6),
    meanwhile=user_files,
    killed=st.booleans(),
    afterwards=user_files,
    edits=st.integers(0, 3),
)


@dataclass
class World:
    """A checkout, what is outside it, and what must survive."""

    root: Path
    outside: Path
    era: str
    mine: dict[str, object] = field(default_factory=dict)
    built: set[str] = field(default_factory=set)
    ever_built: set[str] = field(default_factory=set)

    def free(self, path: str) -> bool:
        """Whether something can be created there."""
        parents = [self.root / parent for parent in Path(path).parents]
        clear = all(
            parent.is_dir() and not parent.is_symlink() for parent in parents if os.path.lexists(parent)
        )
        return clear and not os.path.lexists(self.root / path)

    def add(self, path: str, kind: Kind) -> None:
        """The user makes a file or a link, where nothing is yet."""
        if not self.free(path):
            return
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            target.write_text(f"mine: {path!a}")
        else:
            inside = self.root / "torch" / "__init__.py"
            goals = {"link in": inside, "link out": self.outside / "data", "link to folder": self.outside}
            target.symlink_to(goals[kind])
        self.mine[path] = content(target)

    def edit(self, path: str) -> None:
        """Edit a file, one of the user's or of the build's; from then on it counts as the user's."""
        target = self.root / path
        if target.is_file() and not target.is_symlink():
            target.write_text("edited: " + target.read_text())
            self.mine[path] = content(target)
            self.built.discard(path)

    def build(self, step: Round) -> None:
        outputs = patterns(load_catalog(), self.era)
        with open_log(self.root / ".torchbuild" / "logs", "build") as log:
            claims = begin(self.root, "build", outputs, log_time=log.previous_time)
            for number, path in enumerate(step.outputs):
                self._compile(path, number)
            for path, kind in step.meanwhile:
                if not outputs.below("build/").matches(path):
                    self.add(path, kind)
            time.sleep(TICK)
            log.write(b"the last word\n")
        if not step.killed:
            claims.finish()
        time.sleep(TICK)

    def _compile(self, path: str, number: int) -> None:
        """Write an output over any existing file, as a build does."""
        target = self.root / path
        if path in self.mine and target.is_file() and not target.is_symlink():
            target.write_text("overwritten by the build")
            self.mine[path] = content(target)
            if path in self.ever_built:  # nothing of the user's is left in it: it may go or stay
                del self.mine[path]
        elif path in self.built and not target.is_symlink():
            target.write_text("built again, and longer")
        elif patterns(load_catalog(), self.era).below("build/").matches(path) and self.free(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            if LINKS and number % 3 == 2:
                target.symlink_to(self.outside / "data")
            else:
                target.write_text("built")
            self.built.add(path)
            self.ever_built.add(path)


def content(path: Path) -> object:
    """What makes a file the same: its bytes, or where the link leads."""
    return path.readlink() if path.is_symlink() else path.read_bytes()


def contents(folder: Path) -> Mapping[str, object]:
    return {str(path): content(path) for path in folder.rglob("*") if path.is_symlink() or path.is_file()}


histories = given(
    era=st.sampled_from(ERAS),
    before=user_files,
    steps=st.lists(rounds, min_size=1, max_size=3),
    git=st.booleans() if shutil.which("git") else st.just(False),
    edited=st.integers(0, 1000),
)


@settings(max_examples=examples(20, 60), deadline=None, suppress_health_check=list(HealthCheck))
@histories
def test_a_clean_takes_the_builds_files_and_no_others(
    era: str, before: list[tuple[str, Kind]], steps: list[Round], git: bool, edited: int
) -> None:
    check(era, before, steps, git, edited)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@histories
def test_a_clean_takes_the_builds_files_and_no_others_at_length(
    era: str, before: list[tuple[str, Kind]], steps: list[Round], git: bool, edited: int
) -> None:
    check(era, before, steps, git, edited)


def check(era: str, before: list[tuple[str, Kind]], steps: list[Round], git: bool, edited: int) -> None:
    with tempfile.TemporaryDirectory() as base:
        world = World(root=Path(base, "pt"), outside=Path(base, "outside"), era=era)
        world.outside.mkdir()
        (world.outside / "data").write_text("not in the checkout")
        world.root.mkdir()
        world.add("torch/__init__.py", "file")
        for path, kind in before:
            world.add(path, kind)
        for step in steps:
            world.build(step)
            for path, kind in step.afterwards:
                world.add(path, kind)
            for number in range(step.edits):
                everything = sorted([*world.mine, *world.built])
                world.edit(everything[(edited + number * 7) % len(everything)])
            time.sleep(TICK)
        tracked = _track(world) if git else None
        outside = contents(world.outside)
        plan = plan_removal(
            world.root,
            "build",
            patterns(load_catalog(), era),
            log_time=last_write(world.root / ".torchbuild" / "logs", "build"),
        )
        done = remove(plan)
        event(f"removed {min(done.count, 5)} or more")
        assert done.failed == ()
        assert {path: content(world.root / path) for path in world.mine} == world.mine
        assert [p for p in world.built if os.path.lexists(world.root / p)] == ([tracked] if tracked else [])
        assert contents(world.outside) == outside
        assert all(not path.endswith("/") for path in plan.files)


def _track(world: World) -> str | None:
    """Put one file that the build made under git, as `git add -f` by mistake does."""
    run = ("git", "-c", "core.fsmonitor=false", "-C", str(world.root))
    subprocess.run([*run, "init", "-q"], check=True)
    chosen = min(world.built, default=None)
    if chosen is not None:
        subprocess.run([*run, "--literal-pathspecs", "add", "-f", "--", os.fsencode(chosen)], check=True)
    return chosen

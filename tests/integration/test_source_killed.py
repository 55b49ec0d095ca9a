"""`source` killed at seeded moments: the next run finishes, and the result equals an undisturbed one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import git_servers as gits
from tests.support.capabilities import needs_git, needs_signals
from tests.support.git_servers import NEXT, TAG, GitServer
from tests.support.sources import act, content

pytestmark = [pytest.mark.integration, needs_git, needs_signals]
ROOT = Path(__file__).resolve().parents[2]
KILLS = (2, 5)  # times that an action is killed: in the ordinary test, in the slow ones


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with GitServer(gits.publish(tmp_path_factory.mktemp("published") / "root")) as server:
        yield server


def killed(chance: random.Random, *words: str | Path) -> bool:
    """Run an action and kill it after a while, once its git works; whether that came before its end."""
    argv = [sys.executable, "-m", "tests.support.sources", *map(str, words)]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True) as process:
        asked = time.monotonic() + 60
        store = Path(words[0])
        while not list(store.glob("**/source.working")) and process.poll() is None:
            assert time.monotonic() < asked
            time.sleep(0.005)
        time.sleep(chance.random() * 0.6)
        over = process.poll() is not None
        if not over:
            os.kill(process.pid, signal.SIGKILL)  # it alone: its git goes on
        process.communicate()
    return not over


def disturbed(seed: int, server: GitServer, store: Path, *words: str | Path) -> None:
    """Kill an action several times, then let it end."""
    chance = random.Random(seed)
    for _ in range(KILLS[seed % 100 > 0]):
        if not killed(chance, store, server.url, *words):
            return
    argv = [sys.executable, "-m", "tests.support.sources", str(store), server.url, *map(str, words)]
    subprocess.run(argv, cwd=ROOT, check=True)


SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] if seed else []) for seed in range(12)]


@pytest.fixture(scope="module")
def undisturbed(server: GitServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    store = tmp_path_factory.mktemp("undisturbed")
    return {tag: content(Path(act(store, server.url, "get", tag).checkouts[0].path)) for tag in (TAG, NEXT)}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.slow
def test_get_move_and_reset(
    server: GitServer, undisturbed: dict[str, dict[str, str]], tmp_path: Path, seed: int
) -> None:
    store, root = tmp_path / "store", tmp_path / "store/checkout"
    disturbed(seed, server, store, "get", TAG, root)
    assert content(root) == undisturbed[TAG]
    disturbed(seed + 100, server, store, "update", NEXT, root)
    assert content(root) == undisturbed[NEXT]
    disturbed(seed + 200, server, store, "reset", "", root)
    assert content(root) == undisturbed[NEXT]
    assert sorted(path.name for path in store.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.slow
def test_mirror(server: GitServer, undisturbed: dict[str, dict[str, str]], tmp_path: Path, seed: int) -> None:
    store = tmp_path / "store"
    disturbed(seed + 300, server, store, "mirror", TAG)
    disturbed(seed + 400, server, store, "mirror", NEXT)
    for tag in (TAG, NEXT):
        root = Path(act(store, server.url, "get", tag, offline=tag == NEXT).checkouts[0].path)
        assert content(root) == undisturbed[tag]

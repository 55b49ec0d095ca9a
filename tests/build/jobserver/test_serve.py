"""The thread that serves: what it gives, takes, refills, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.waiting import until
from torchbuild_tasks.build.jobserver.serve import Served, Tokens, serve
from torchbuild_tasks.build.jobserver.tokens import MemoryState, Orders, Running

HANG = 20.0  # a guard, not a measure


class FakeProcesses:
    """Processes with one running compiler or none, which record the suspended ones."""

    def __init__(self, *running: Running) -> None:
        self.running, self.held = list(running), [frozenset[int]()]

    def look(self) -> list[Running]:
        return self.running

    def hold(self, wanted: frozenset[int]) -> tuple[tuple[int, float], ...]:
        if wanted != self.held[-1]:
            self.held.append(wanted)
        return tuple((pid, 0.0) for pid in wanted)


class FixedPolicy:
    """A policy with configured decisions."""

    def __init__(self, tokens: int) -> None:
        self.orders = Orders(tokens=tokens, wait=0.01)

    def __call__(self, state: MemoryState, running: Sequence[Running], tokens: int, now: float) -> Orders:
        return self.orders


def made(
    scratch: Path, policy: FixedPolicy, processes: FakeProcesses, most: int = 4
) -> tuple[Served, Tokens]:
    pool = Tokens(scratch)
    return Served(most, pool, policy, MemoryState, processes), pool  # type: ignore[arg-type]


ONE = Running(1, 1.0, 100, 100)


def test_the_first_tokens_are_there_before_the_build_starts(scratch: Path) -> None:
    with serve(4, policy=FixedPolicy(3), look=MemoryState, folder=scratch) as served:
        assert served.environment({})["MAKEFLAGS"].startswith(" --jobserver-auth=")
        assert served._out == 3
    assert list(scratch.iterdir()) == []


def test_free_tokens_are_taken_back_and_given_again(scratch: Path) -> None:
    policy = FixedPolicy(4)
    served, pool = made(scratch, policy, FakeProcesses(ONE))
    served.start()
    assert pool.free() == 4
    policy.orders = Orders(tokens=1, wait=0.01)
    until(lambda: pool.free() == 1)
    policy.orders = Orders(tokens=99, wait=0.01)  # never more than it was made for
    until(lambda: pool.free() == 4)
    served.end()
    pool.close()
    assert served.fewest == 1


def test_tokens_that_died_with_a_client_are_given_again_once_nothing_runs(scratch: Path) -> None:
    processes = FakeProcesses(ONE)
    served, pool = made(scratch, FixedPolicy(4), processes)
    served.start()
    assert pool.take(0.0) and pool.take(0.0)
    time.sleep(0.1)
    assert pool.free() == 2  # somebody may hold them
    processes.running = []
    until(lambda: pool.free() == 4)
    served.end()
    pool.close()


def test_a_token_that_is_taken_a_moment_before_its_job_is_seen_is_not_given_twice(scratch: Path) -> None:
    processes = FakeProcesses()
    served, pool = made(scratch, FixedPolicy(4), processes)
    served.start()
    time.sleep(1.2)  # as while Ninja loads its files
    assert pool.take(0.0)
    time.sleep(0.1)
    processes.running = [ONE]
    time.sleep(0.1)
    pool.give_out(1)
    free = pool.free()
    served.end()
    pool.close()
    assert free == 4


def test_suspended_processes_continue_at_the_end(scratch: Path) -> None:
    processes, policy = FakeProcesses(ONE), FixedPolicy(4)
    policy.orders = Orders(tokens=4, hold=frozenset({1}), wait=0.01)
    served, pool = made(scratch, policy, processes)
    served.start()
    until(lambda: served.held_seconds > 0)
    served.end()
    pool.close()
    assert processes.held == [frozenset(), {1}, frozenset()]


def test_when_it_breaks_the_build_goes_on_with_all_tokens(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    processes, policy = FakeProcesses(ONE), FixedPolicy(1)
    served, pool = made(scratch, policy, processes)
    policy.orders = Orders(tokens=1, hold=frozenset({1}), wait=0.01)
    served.start()
    policy.orders = None  # type: ignore[assignment]
    until(lambda: not served._thread.is_alive())
    assert pool.free() == 4 and processes.held[-1] == frozenset()
    served.end()
    pool.close()

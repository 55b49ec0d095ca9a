"""Shared test rules: unit tests cannot reach a subprocess, the network or the real home."""

from __future__ import annotations

import gc
import itertools
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol  # as pytest-rerunfailures takes it from there

from tests.support import early, runs, skips
from tests.support.everywhere import is_same_everywhere
from tests.support.examples import load_profile

# A shell script starts what it puts into the background (`pytest &`) with SIGINT ignored, nohup with
# SIGHUP ignored, and every program that a test starts would inherit that: what Ctrl-C and a closed
# terminal do could not be tested.
for name in ("SIGINT", "SIGHUP"):
    number = getattr(signal, name, None)
    if number and signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)


# A file of which every test is an integration test: with `-m "not integration"` it need not be read.
ALL_REAL = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.integration\b", re.MULTILINE)
SLOW_SECONDS = 3600  # the bound of a long test; that of every other is `timeout` in pyproject.toml


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without a requested test, and under Windows tests whose result is the same everywhere."""
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    if runs.has_none(config, collection_path):
        return True
    if config.getoption("markexpr") == "not integration" and ALL_REAL.search(
        collection_path.read_text("utf-8")
    ):
        return True
    windows = sys.platform == "win32" and not config.getoption("--slow")
    return True if windows and is_same_everywhere(collection_path) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")
    parser.addoption("--kills", type=int, default=200, help="of the slow test that kills verbs: how often")
    runs.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    load_profile(slow=config.getoption("--slow"))
    runs.start_record(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = runs.choose_items(config, items)
    if len(chosen) < len(items):
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen
    if hasattr(config, "workerinput"):  # of several workers none shall begin a build when the others are done
        items.sort(key=lambda item: item.get_closest_marker("integration") is None)
    slow = config.getoption("--slow")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
            if not slow:
                item.add_marker(pytest.mark.skip(reason="slow; run with --slow"))
        elif item.get_closest_marker("one_system") and sys.platform == "win32" and not slow:
            item.add_marker(pytest.mark.skip(reason="the same on every system; here with --slow"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Ten thousand tests are a million values that live to the end: no collection looks at them."""
    gc.disable()
    early.import_in_turn(session.config, lambda file: pytest_ignore_collect(file, session.config))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000)  # as `run_verb` does: at each 700 new values it took a tenth of some files
    gc.enable()


SECONDS_TOLD = 0.1  # of a fixture, for --durations


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Let a worker report what a test was, and not that its fixtures came and went well: a fifth less CPU.

    Each report is a message to the process that all workers report to (3,000 empty tests by `pytest -n 2`,
    four times in turns on a loaded machine: 12.1 s of CPU, or 9.6).
    """
    if not hasattr(item.config, "workerinput"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > SECONDS_TOLD:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = skips.summary(terminalreporter.getreports("skipped"))
    if lines:
        terminalreporter.section("skipped")
    for line in lines:
        terminalreporter.write_line(line)


NUMBERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own. pytest's fixture lists all folders of all tests before to find a number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}{next(NUMBERS)}"
    folder.mkdir(mode=0o700)
    return folder


# The variables that lead programs, Python and platformdirs to a user's own folders, and where below
# the test's home they lead instead. Windows has one for each; platformdirs asks Windows itself there
# unless its own two are set.
HOMES = {
    "HOME": ".",
    "USERPROFILE": ".",
    "APPDATA": "AppData/Roaming",
    "LOCALAPPDATA": "AppData/Local",
    "WIN_PD_OVERRIDE_APPDATA": "AppData/Roaming",
    "WIN_PD_OVERRIDE_LOCAL_APPDATA": "AppData/Local",
}
XDG = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")  # outrank HOME


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of all tests without a folder of their own; none may leave files there for the next."""
    home = tmp_path_factory.mktemp("nobody")
    yield home
    assert list(home.iterdir()) == [], "a test without tmp_path wrote into the home of all"


@pytest.fixture(scope="module")
def home_of_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of all integration tests of a file."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def locked_doors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, shared_home: Path) -> None:
    """Give a test with a folder a home in it; close the doors for all but integration tests."""
    home = shared_home
    if request.node.get_closest_marker("integration"):
        home = request.getfixturevalue("home_of_file")
    elif "tmp_path" in request.fixturenames:
        home = request.getfixturevalue("tmp_path") / "home"
        home.mkdir()
    for name, folder in HOMES.items():
        if name == "HOME" or sys.platform == "win32":
            monkeypatch.setenv(name, str(home / folder))
    for name in XDG:
        monkeypatch.delenv(name, raising=False)
    if request.node.get_closest_marker("integration"):
        return

    def locked(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError(f"a unit test reached the real machine: {args!r}")

    monkeypatch.setattr(subprocess.Popen, "__init__", locked)
    monkeypatch.setattr(socket.socket, "connect", locked)
    monkeypatch.setattr(socket, "getaddrinfo", locked)

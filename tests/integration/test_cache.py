"""Real ccache and sccache with real compilations: hits, two checkouts, faults, files left over."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.caches import clean, environ_for, needs_ccache, ninja, objects, plan_for, project
from tests.support.capabilities import (
    needs_cmake,
    needs_enforced_permissions,
    needs_linux_compiler,
    needs_ninja,
)
from tests.support.sample import materialise
from tests.support.waiting import until
from torchbuild_tasks.errors import CleanRefused, Interrupted
from torchbuild_tasks.features.cache import server, stats
from torchbuild_tasks.features.cache.act import cache_states, clear_caches, serve_cache
from torchbuild_tasks.features.cache.run import cache_running
from torchbuild_tasks.features.cache.server import own_place
from torchbuild_tasks.features.cache.stats import hit_rate
from torchbuild_tasks.model import CachePlan, CacheReport

pytestmark = [pytest.mark.integration, needs_linux_compiler, needs_ninja]

BOTH = [pytest.param("ccache", marks=needs_ccache), "sccache"]
FILES = 4


@pytest.fixture(scope="module")
def programs(sccache: str) -> dict[str, str]:
    return {"ccache": shutil.which("ccache") or "", "sccache": sccache}


class Bench:
    """A cache folder and the output of builds with it."""

    def __init__(self, name: str, program: str, tmp_path: Path) -> None:
        self.name, self.program, self.tmp_path = name, program, tmp_path
        self.folder = tmp_path / "cache"
        self.said: list[str] = []

    @property
    def plan(self) -> CachePlan:
        return plan_for(self.name, self.program, self.folder)

    def checkout(self, name: str, files: int = FILES) -> Path:
        root = project(self.tmp_path / name, self.program, files)
        (root / ".torchbuild").mkdir()
        return root

    def build(self, root: Path, **changes: str) -> CacheReport:
        """Build it and return what the cache did; an empty report when it did nothing."""
        environ = {**environ_for(self.name, self.folder, root), **changes}
        with cache_running(self.plan, "", environ, root, self.said.append) as running:
            done = ninja(root, running.environ)
            assert done.returncode == 0, done.stdout + done.stderr
        return running.reports[0] if running.reports else CacheReport(tool=self.name)


@pytest.fixture
def bench(request: pytest.FixtureRequest, programs: dict[str, str], tmp_path: Path) -> Bench:
    return Bench(request.param, programs[request.param], tmp_path)


each_cache = pytest.mark.parametrize("bench", BOTH, indirect=True)
only_sccache = pytest.mark.parametrize("bench", ["sccache"], indirect=True)


def count(report: CacheReport) -> tuple[int, int]:
    return sum(report.hits.values()), sum(report.misses.values())


# ---------------------------------------------------------------- hits


@each_cache
def test_a_second_build_finds_everything(bench: Bench) -> None:
    root = bench.checkout("one")
    assert count(bench.build(root)) == (0, FILES)
    first = objects(root)
    clean(root)
    report = bench.build(root)
    assert count(report) == (FILES, 0)
    assert report.hits == {"C/C++": FILES}
    assert objects(root) == first
    assert f"{bench.name}: {FILES} hits, 0 misses (100%)" in bench.said


@each_cache
def test_another_checkout_finds_what_the_first_has_made_and_keeps_its_own_headers(bench: Bench) -> None:
    """Two clean builds of the second: a dependency file that came from the first one would show then."""
    one, two = bench.checkout("one"), bench.checkout("elsewhere")
    bench.build(one)
    assert count(bench.build(two)) == (FILES, 0)
    clean(two)
    assert count(bench.build(two)) == (FILES, 0)
    (two / "include" / "own.h").write_text("#define OWN 2\n", "utf-8")
    assert count(bench.build(two)) == (0, FILES)
    assert objects(two) != objects(one)


@pytest.mark.slow
@each_cache
@needs_cmake
def test_two_copies_of_the_sample_share(bench: Bench) -> None:
    rates = []
    for name in ("here", "there"):
        root = materialise(bench.tmp_path / name)
        environ = environ_for(bench.name, bench.folder, root)
        environ |= {f"CMAKE_{each}_COMPILER_LAUNCHER": bench.program for each in ("C", "CXX")}
        with cache_running(bench.plan, "", environ, root, bench.said.append) as running:
            for argv in (("cmake", "-G", "Ninja", "-S", ".", "-B", "build"), ("ninja", "-C", "build")):
                subprocess.run(argv, cwd=root, env=running.environ, check=True, capture_output=True)
        rates.append(hit_rate(running.reports[0]))
    assert rates[1] is not None
    assert rates[1] >= 0.95, bench.said


@each_cache
def test_a_build_that_asks_for_nothing_says_nothing(bench: Bench) -> None:
    root = bench.checkout("one")
    bench.build(root)
    bench.said.clear()
    assert count(bench.build(root)) == (0, 0)
    assert bench.said == []


# ---------------------------------------------------------------- drift, hints


@each_cache
def test_a_changed_setting_is_reported_before_it_happens(bench: Bench) -> None:
    root = bench.checkout("one")
    bench.build(root)
    tool = bench.plan.tools[0]
    changed = {**tool.settings, "compiler": "c++ 2"}
    plan = plan_for(bench.name, bench.program, bench.folder)
    plan = CachePlan(
        tools=(type(tool)(name=tool.name, program=tool.program, version="1", settings=changed),),
        memory=plan.memory,
    )
    with cache_running(plan, "", environ_for(bench.name, bench.folder, root), root, bench.said.append):
        assert any("compiler: c++ 1 -> c++ 2" in line for line in bench.said)
    bench.said.clear()
    clean(root)
    bench.build(root)  # with the settings of before: no warning
    assert not any("Warning" in line for line in bench.said)


@each_cache
def test_what_goes_on_where_another_run_stopped_finds_little(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left was never compiled: that is no sign of other flags."""
    monkeypatch.setattr(stats, "ENOUGH", 1)
    root = bench.checkout("one")
    bench.build(root)
    environ = environ_for(bench.name, bench.folder, root)
    told = []
    for number, goes_on in ((2, True), (3, False)):
        (root / "include" / "own.h").write_text(f"#define OWN {number}\n", "utf-8")
        bench.said.clear()
        with cache_running(bench.plan, "", environ, root, bench.said.append, goes_on=goes_on) as running:
            assert ninja(root, running.environ).returncode == 0
        told.append(any(line.startswith("Few hits") for line in bench.said))
    assert told == [False, True]


# ---------------------------------------------------------------- faults


@each_cache
@needs_enforced_permissions
def test_a_read_only_folder_is_used_and_not_written(bench: Bench) -> None:
    one, two = bench.checkout("one"), bench.checkout("two")
    bench.build(one)
    for path in [bench.folder, *bench.folder.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        assert count(bench.build(two)) == (FILES, 0)
        assert any("adds nothing to it" in line for line in bench.said)
    finally:
        for path in [bench.folder, *bench.folder.rglob("*")]:
            path.chmod(0o700)


@each_cache
def test_a_folder_that_cannot_be_is_one_line(bench: Bench) -> None:
    bench.folder.write_text("a file where the folder should be", "utf-8")
    root = bench.checkout("one")
    assert count(bench.build(root)) == (0, 0)
    assert len(objects(root)) == FILES
    (line,) = bench.said
    assert "keeps nothing in this build" in line
    assert str(bench.folder) in line


@each_cache
def test_a_cache_without_room_still_compiles(bench: Bench) -> None:
    """A cache of next to no size evicts all the time."""
    variable = {"ccache": "CCACHE_MAXSIZE", "sccache": "SCCACHE_CACHE_SIZE"}[bench.name]
    root = bench.checkout("one")
    bench.build(root, **{variable: "1K"})
    assert len(objects(root)) == FILES


@only_sccache
def test_a_taken_port_and_a_strange_server_do_not_matter(bench: Bench) -> None:
    """At the address of the user's settings listens a program that never answers."""
    import socket

    with socket.socket() as strange:
        strange.bind(("127.0.0.1", 0))
        strange.listen()
        port = str(strange.getsockname()[1])
        root = bench.checkout("one")
        assert count(bench.build(root, SCCACHE_SERVER_PORT=port)) == (0, FILES)


@only_sccache
def test_a_server_that_a_killed_build_left_is_ended(bench: Bench) -> None:
    root = bench.checkout("one")
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from tests.support.caches import environ_for, plan_for\n"
        "from torchbuild_tasks.features.cache.run import cache_running\n"
        "program, folder, root = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])\n"
        "plan, environ = plan_for('sccache', program, folder), environ_for('sccache', folder, root)\n"
        "with cache_running(plan, '', environ, root, print):\n    os._exit(9)\n"
    )
    argv = [sys.executable, "-c", code, bench.program, str(bench.folder), str(root)]
    assert subprocess.run(argv, check=False, timeout=60).returncode == 9
    (left,) = own_place(root).leftovers()
    assert count(bench.build(root)) == (0, FILES)
    assert not lives(left)
    assert own_place(root).leftovers() == ()


@only_sccache
def test_a_server_that_cannot_start_leaves_the_compilers_alone(bench: Bench) -> None:
    broken = bench.tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'sccache: error: no such thing' >&2\nexit 2\n", "utf-8")
    broken.chmod(0o700)
    root = bench.checkout("one")
    environ = {"CMAKE_CXX_COMPILER_LAUNCHER": str(broken), "CMAKE_C_COMPILER_LAUNCHER": "mine"}
    plan = plan_for("sccache", str(broken), bench.folder)
    with cache_running(plan, "", {**os.environ, **environ}, root, bench.said.append) as running:
        assert running.environ["CMAKE_CXX_COMPILER_LAUNCHER"] == ""
        assert running.environ["CMAKE_C_COMPILER_LAUNCHER"] == "mine"
        assert running.unlaunched
    (line,) = bench.said
    assert "without sccache" in line
    assert "no such thing" in line


@only_sccache
@pytest.mark.skipif(sys.platform == "win32", reason="a server's process is not told there")
def test_a_server_that_hangs_is_replaced(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clients wait for ever, since the connection stands; the files that waited are compiled alone."""
    monkeypatch.setattr(server, "ANSWER", 2.0)
    root = bench.checkout("one")
    environ = environ_for("sccache", bench.folder, root)
    with cache_running(bench.plan, "", environ, root, bench.said.append, every=0.05) as running:
        (pid,) = own_place(root).leftovers()
        os.kill(pid, signal.SIGSTOP)
        done = ninja(root, running.environ)  # ends itself after 300 s
    assert done.returncode == 0, done.stdout + done.stderr
    assert not lives(pid)
    assert sum("hung" in line for line in bench.said) == 1, bench.said
    clean(root)
    assert count(bench.build(root))[0] > 0  # the new one kept what came after


# ---------------------------------------------------------------- the end


@only_sccache
@pytest.mark.parametrize("error", [None, RuntimeError, Interrupted])
def test_the_server_ends_with_the_build(bench: Bench, error: type[Exception] | None) -> None:
    root = bench.checkout("one")
    environ = environ_for("sccache", bench.folder, root)
    with _swallowed(error), cache_running(bench.plan, "", environ, root, bench.said.append) as running:
        (pid,) = own_place(root).leftovers()
        argv = ["ninja", "-C", str(root / "build")]
        build = subprocess.Popen(argv, env=running.environ, stdout=subprocess.DEVNULL)
        time.sleep(0.3)
        if error:
            build.kill()
            build.wait()
            raise error("the build is over")
        assert build.wait(60) == 0
    until(lambda: not lives(pid))
    assert own_place(root).leftovers() == ()


# ---------------------------------------------------------------- the verb


@each_cache
def test_the_state_and_emptying(bench: Bench) -> None:
    root = bench.checkout("one")
    bench.build(root)
    environ = environ_for(bench.name, bench.folder, root)
    (state,) = cache_states(bench.plan, environ)
    assert (state.folder, state.made) == (str(bench.folder), True)
    assert (state.used or 0) > 0
    with pytest.raises(CleanRefused):
        clear_caches(bench.plan, environ, lambda question: False, bench.said.append)
    assert len(clear_caches(bench.plan, environ, lambda question: True, bench.said.append)) == 1
    clean(root)
    assert count(bench.build(root)) == (0, FILES)


@only_sccache
def test_a_folder_that_was_there_before_is_not_emptied(bench: Bench) -> None:
    bench.folder.mkdir()
    root = bench.checkout("one")
    bench.build(root)
    environ = environ_for(bench.name, bench.folder, root)
    with pytest.raises(CleanRefused, match="not emptied"):
        clear_caches(bench.plan, environ, lambda question: True, bench.said.append)


@only_sccache
def test_serve_runs_a_server_for_builds_by_hand(bench: Bench) -> None:
    root = bench.checkout("one")
    environ = environ_for("sccache", bench.folder, root)

    def by_hand() -> None:
        words = next(line for line in bench.said if line.startswith("export "))
        name, _, value = words.removeprefix("export ").partition("=")
        assert ninja(root, {**environ, name: value.strip("'")}).returncode == 0

    serve_cache(bench.plan, "", environ, root, bench.said.append, by_hand)
    assert any(line.startswith(f"sccache: 0 hits, {FILES} misses") for line in bench.said)


def lives(pid: int) -> bool:
    """Whether a process does more than wait for its parent to hear of its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class _swallowed:
    def __init__(self, error: type[Exception] | None) -> None:
        self.error = error

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        return kind is self.error

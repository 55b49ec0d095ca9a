"""recc and a real Remote Execution server: shared, sent away, gone before the build and gone during it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.support.caches import casd, clean, free_port, ninja, objects, plan_for, project, recc_environ
from tests.support.capabilities import has, needs, needs_linux_compiler, needs_ninja
from torchbuild_tasks.features.cache.run import cache_running
from torchbuild_tasks.model import CacheReport

pytestmark = [
    pytest.mark.integration,
    needs_linux_compiler,
    needs_ninja,
    needs(has("recc") and has("buildbox-casd"), "recc and buildbox-casd (Debian's package buildbox)"),
]
FILES = 3


class Machine:
    """One checkout that is built through recc, with the variables that a plan gives it."""

    def __init__(self, root: Path, port: int, **flags: str) -> None:
        program = str(shutil.which("recc"))
        self.root, self.address = project(root, program, FILES, heavy=True), f"reapi://127.0.0.1:{port}"
        (self.root / ".torchbuild").mkdir()
        self.environ = recc_environ(self.root, program, **(flags or {"cache": self.address}))
        self.plan = plan_for("recc", program, root, remotes=(self.address,))
        self.said: list[str] = []

    def build(self, every: float = 0.5) -> CacheReport | None:
        path = f"{self.root / 'venv/bin'}{os.pathsep}{os.environ['PATH']}"  # as a build has it
        environ = {**os.environ, **self.environ, "PATH": path}
        context = cache_running(self.plan, self.address, environ, self.root, self.said.append, every=every)
        with context as running:
            done = ninja(self.root, running.environ)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "ERROR" not in done.stdout + done.stderr
        assert len(objects(self.root)) == FILES
        assert list((self.root / ".torchbuild").iterdir()) == []
        return running.reports[0] if running.reports else None

    def link(self) -> Path:
        """Have the build make a library of all objects, by the launcher that the plan gives to links."""
        names = " ".join(f"f{n}.o" for n in range(FILES))
        launcher = self.environ["CMAKE_CXX_LINKER_LAUNCHER"]
        rule = f"rule link\n  command = {launcher} c++ -shared -o $out $in\nbuild libf.so: link {names}\n"
        with (self.root / "build/build.ninja").open("a", encoding="utf-8") as file:
            file.write(rule)
        return self.root / "build/libf.so"


def count(report: CacheReport | None) -> tuple[int, int]:
    assert report
    return sum(report.hits.values()), sum(report.misses.values())


def test_another_checkout_finds_a_link_too_and_never_that_of_other_objects(tmp_path: Path) -> None:
    with casd(tmp_path / "casd") as (port, _):
        one, two = (Machine(tmp_path / name, port) for name in ("one", "two"))
        library, other = one.link(), two.link()
        first, second = one.build(), two.build()
        assert first and second and (first.links, second.links) == (0, 1)
        assert (first.errors, second.errors) == (0, 0)
        before = library.read_bytes()
        assert other.read_bytes() == before
        (two.root / "include/own.h").write_text("#define OWN 7\n", "utf-8")
        changed = two.build()
        assert changed and changed.links == 0 and other.read_bytes() != before


def test_another_checkout_finds_what_one_has_compiled(tmp_path: Path) -> None:
    with casd(tmp_path / "casd") as (port, _):
        one, two = (Machine(tmp_path / name, port) for name in ("one", "two"))
        assert count(one.build()) == (0, FILES)
        assert count(two.build()) == (FILES, 0)
        assert objects(one.root) == objects(two.root)
        assert any(line == f"shared cache: {one.address}" for line in one.said)
        (two.root / "include/own.h").write_text("#define OWN 2\n", "utf-8")
        assert count(two.build()) == (0, FILES)  # its own header, and not the other checkout's
        assert objects(one.root) != objects(two.root)


def test_the_server_compiles_in_the_requested_folder(tmp_path: Path) -> None:
    with casd(tmp_path / "casd") as (port, _):
        away = Machine(tmp_path / "sent", port, distribute=f"reapi://127.0.0.1:{port}")
        assert "RECC_CACHE_ONLY" not in away.environ
        (away.root / "include/own.h").write_text("#define OWN 3\n", "utf-8")
        assert count(away.build()) == (0, FILES)


def test_one_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "one", free_port())
    machine.build()
    assert len([line for line in machine.said if "left out of this build" in line]) == 1


def test_one_that_hangs_before_the_build_is_left_out_in_seconds(tmp_path: Path) -> None:
    with casd(tmp_path / "casd") as (port, server):
        server.send_signal(signal.SIGSTOP)
        machine = Machine(tmp_path / "one", port)
        machine.build()
    assert any("does not answer within" in line for line in machine.said)


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP"])
def test_one_that_is_gone_during_the_build_lets_it_go_on(tmp_path: Path, how: str) -> None:
    with casd(tmp_path / "casd") as (port, server):
        machine = Machine(tmp_path / "one", port)

        def end() -> None:
            while not list((machine.root / ".torchbuild").glob("recc-*/metrics")):
                time.sleep(0.05)
            server.send_signal(getattr(signal, how))

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        machine.build(every=0.2)
        ending.join(5)
        clean(machine.root)
        machine.build()
    assert any("is gone" in line or "left out" in line for line in machine.said)


def test_one_that_hangs_while_it_compiles_is_not_waited_for(tmp_path: Path) -> None:
    """A compile under way has no time of its own: gRPC asks a silent server but twice, at its start."""
    slow, ran = tmp_path / "bin/c++", tmp_path / "ran"
    slow.parent.mkdir()
    lists_headers = 'case " $* " in *" -M "*) ;; *) touch "$RAN"; sleep 3 ;; esac'
    script = f'#!/bin/sh\nRAN="{ran}"\n{lists_headers}\nexec c++ "$@"\n'
    slow.write_text(script, "utf-8")
    slow.chmod(0o755)
    with casd(tmp_path / "casd") as (port, server):
        away = Machine(tmp_path / "sent", port, distribute=f"reapi://127.0.0.1:{port}")
        away.environ["RECC_KEEPALIVE_TIME"] = "600"  # as if these were over
        rules = away.root / "build/build.ninja"
        rules.write_text(rules.read_text("utf-8").replace(" c++ ", f" {slow} "), "utf-8")

        def end() -> None:
            while not ran.exists():
                time.sleep(0.05)
            server.send_signal(signal.SIGSTOP)

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        started = time.monotonic()
        away.build(every=0.2)
        assert time.monotonic() - started < 60
        ending.join(5)
    assert any("is gone" in line for line in away.said)

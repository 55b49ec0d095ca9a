"""Several hosts on one machine: network name spaces on a bridge, each with a user of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support.capabilities import has, needs

NET: Final = "10.213.97"
# A kernel takes its time to remove a name space and what is in it, so no name is used twice.
_NUMBERS: Final = itertools.count()


def has_hosts() -> bool:
    """Whether this user may make a network name space."""
    if sys.platform != "linux" or os.geteuid() != 0 or not has("ip"):
        return False
    name = f"tb-try-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return False
    return not subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False).returncode


needs_hosts = needs(has_hosts(), "network name spaces")
needs_bubblewrap = needs(has("bwrap"), "bubblewrap")


class Host:
    """One host. Programs run in it by `argv`; those of `start` end with the hosts."""

    def __init__(self, name: str, number: int, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.link = f"tb{os.getpid() % 100000}n{next(_NUMBERS)}"
        self.address = f"{NET}.{number}"
        self.space = f"{self.link}-{name}"
        self.started: list[subprocess.Popen[bytes]] = []
        folder.mkdir()

    @property
    def environ(self) -> dict[str, str]:
        """A user of its own."""
        own = {"HOME": self.folder, "TORCHBUILD_CACHE": self.folder / "cache"}
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "SCCACHE_", "CCACHE_"))}
        return {**clean, **{name: str(value) for name, value in own.items()}}

    def argv(self, *words: str | Path) -> list[str]:
        """The command that runs these words there."""
        return ["ip", "netns", "exec", self.space, *map(str, words)]

    def run(
        self, *words: str | Path, environ: Mapping[str, str] | None = None, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(
            self.argv(*words),
            env={**self.environ, **(environ or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )

    def start(self, log: Path, *words: str | Path) -> subprocess.Popen[bytes]:
        """Start a program in the background, with its output in a file."""
        with log.open("wb") as out:
            process = subprocess.Popen(
                self.argv(*words), env=self.environ, stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )
        self.started.append(process)
        return process

    def pids(self) -> tuple[int, ...]:
        """Everything that runs there."""
        found = subprocess.run(["ip", "netns", "pids", self.space], capture_output=True, check=False)
        return tuple(map(int, found.stdout.split()))

    def send(self, number: signal.Signals) -> None:
        """Send a signal to everything that runs there."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """As when the power fails, only that the network says so."""
        self.send(signal.SIGKILL)

    def cut_off(self) -> None:
        """Nothing reaches it any more, and nothing says so."""
        ip("link", "set", f"{self.link}b", "down")


def ip(*words: str) -> None:
    """Change the network; a failure is this test's."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextlib.contextmanager
def hosts(folder: Path, *names: str) -> Iterator[list[Host]]:
    """Hosts that reach each other."""
    bridge = f"tb{os.getpid() % 100000}r{next(_NUMBERS)}"
    made = [Host(name, number, folder / name) for number, name in enumerate(names, 1)]
    try:
        ip("link", "add", bridge, "type", "bridge")
        ip("link", "set", bridge, "up")
        for host in made:
            link = host.link
            ip("netns", "add", host.space)
            ip("link", "add", f"{link}a", "type", "veth", "peer", "name", f"{link}b")
            ip("link", "set", f"{link}a", "netns", host.space)
            ip("link", "set", f"{link}b", "master", bridge)
            ip("link", "set", f"{link}b", "up")
            ip("-n", host.space, "addr", "add", f"{host.address}/24", "dev", f"{link}a")
            ip("-n", host.space, "link", "set", f"{link}a", "up")
            ip("-n", host.space, "link", "set", "lo", "up")
        yield made
    finally:
        for host in made:
            host.kill()
            for process in host.started:
                process.wait()
            subprocess.run(["ip", "link", "del", f"{host.link}b"], check=False, capture_output=True)
            subprocess.run(["ip", "netns", "del", host.space], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", bridge], check=False, capture_output=True)

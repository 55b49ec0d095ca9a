"""Serve the job tokens of a build from a thread, and suspend compiles while memory is short.

Ninja and make find the jobserver by the variable MAKEFLAGS. Source: gnu.org/software/make/manual/html_node/
(Job-Slots.html, POSIX-Jobserver.html, Windows-Jobserver.html); Ninja reads it since 1.13
(doc/manual.asciidoc).
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.jobserver.tokens import MemoryState, Orders, Policy

if sys.platform == "win32":
    from torchbuild_tasks.build.jobserver.windows import CAN_HOLD, MemoryLook, Processes, Tokens
else:
    from torchbuild_tasks.build.jobserver.posix import CAN_HOLD, MemoryLook, Processes, Tokens

# Seconds after which missing tokens count as lost with a killed client, if nothing of the build runs. For a
# moment they are missing whenever a job is about to start.
_QUIET: Final = 1.0  # seconds
# Flags of the user's about jobs: a number, or another jobserver.
_JOBS: Final = re.compile(r"-j\d*|--jobs(=\d+)?|--jobserver-(auth|fds|style)=\S*")
# Each of these variables becomes a -j on Ninja's command line, which disables the jobserver.
SWITCH_OFF: Final = ("MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL")


@contextlib.contextmanager
def serve(
    tokens: int,
    *,
    policy: Policy,
    look: Callable[[], MemoryState] | None = None,
    processes: Processes | None = None,
    folder: Path | None = None,
) -> Iterator[Served]:
    """Serve up to `tokens` job tokens during the body; then resume all suspended processes.

    Args:
        tokens: one less than the jobs that may run, because the first job needs no token.
        policy: decides at each look, many times a second; such as TokenPolicy.
        look: reads the memory; this system's reader unless another is given.
        processes: the processes of the build; without it, all descendants of this process.
        folder: where the named pipe is made (POSIX), instead of the folder for temporary files.

    Raises:
        OSError: this system or folder has no place for tokens. The build can go on without.
    """
    pool = Tokens(folder)
    served = Served(tokens, pool, policy, look or MemoryLook(), processes or Processes())
    try:
        served.start()
        yield served
    finally:
        served.end()
        pool.close()


class Served:
    """A running jobserver. `held_seconds` and `fewest` show afterwards what it did to save memory."""

    def __init__(
        self, tokens: int, pool: Tokens, policy: Policy, look: Callable[[], MemoryState], processes: Processes
    ) -> None:
        self.most = max(0, tokens)
        self.fewest = self.most
        self.held_seconds = 0.0
        self._out = 0
        self._pool = pool
        self._policy = policy
        self._look = look
        self._processes = processes
        self._over = threading.Event()
        self._quiet_since = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="jobserver", daemon=True)

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the environment that names this jobserver and has no variable that adds -j."""
        return environment(self._pool.auth, environ)

    def start(self) -> None:
        """Add the first tokens before the build starts: Ninja reads them only when a job ends."""
        self._step()
        self._thread.start()

    def end(self) -> None:
        """Stop the thread, and resume all processes."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._processes.hold(frozenset())

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                orders = self._step()
                if self._out > orders.tokens:
                    self._out -= self._pool.take(orders.wait)
                else:
                    self._over.wait(orders.wait)
        finally:  # after an error, too: the build goes on without protection
            self._processes.hold(frozenset())
            self._give_out_up_to(self.most)

    def _step(self) -> Orders:
        running = self._processes.look()
        now = time.monotonic()
        orders = self._policy(self._look(), running, self._out, now)
        held = self._processes.hold(orders.hold)
        self._pool.note_held(held)
        self.held_seconds += orders.wait * len(held)
        self._give_out_up_to(min(orders.tokens, self.most))
        self.fewest = min(self.fewest, self._out)
        if running or (free := self._pool.free()) >= self._out:
            self._quiet_since = now
        elif now - self._quiet_since > _QUIET:
            self._out = free
        return orders

    def _give_out_up_to(self, number: int) -> None:
        if number > self._out:
            self._pool.give_out(number - self._out)
            self._out = number


def environment(auth: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a build that takes its tokens from the jobserver `auth`.

    The user's own MAKEFLAGS stay, less what they say about jobs; the variables that become a
    -j are left out. The first word of MAKEFLAGS holds single letters (`ks`), and where there
    are none it is empty.
    """
    others = {name: value for name, value in environ.items() if name not in SWITCH_OFF}
    makeflags = environ.get("MAKEFLAGS", "")
    words = [word for word in makeflags.split() if not _JOBS.fullmatch(word)]
    letters = words.pop(0) if words and not words[0].startswith("-") and "=" not in words[0] else ""
    return {**others, "MAKEFLAGS": " ".join((letters, *words, f"--jobserver-auth={auth}"))}


__all__ = ["CAN_HOLD", "Processes", "MemoryLook", "SWITCH_OFF", "Served", "Tokens", "environment", "serve"]

"""Notice a server of sccache-dist that hangs while compiles wait for it, and have them made here.

sccache itself waits 20 minutes for an answer (REQUEST_TIMEOUT_SECS in its src/dist/http.rs), but compiles
here at once when the connection breaks.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Final

from torchbuild_tasks.features.cache.server import server_of
from torchbuild_tasks.features.cluster.ask import is_server
from torchbuild_tasks.system.connections import break_connections, list_peers
from torchbuild_tasks.system.periodic import Periodic
from torchbuild_tasks.text.words import url_host

Address = tuple[str, int]
ANSWER: Final = 10.0  # seconds; a server that compiles on all of its cores takes one for its part of TLS


class HangWatch(Periodic):
    """A thread that breaks the connections to each server that hangs, for as long as it does.

    Args:
        url: the scheduler, which knows the servers.
        environ: leads to sccache's own server, whose connections they are.
        say: hears of a server that hangs, once.
        give_up: is told why nothing may be sent any more, where connections cannot be broken.
        every: seconds between two looks.
        answer: seconds that a server has for its part of TLS.
    """

    def __init__(
        self,
        url: str,
        environ: Mapping[str, str],
        say: Callable[[str], None],
        give_up: Callable[[str], None],
        every: float,
        answer: float = ANSWER,
    ) -> None:
        self._url, self._environ, self._say, self._give_up = url, environ, say, give_up
        self._every, self._answer = every, answer
        self._known: dict[Address, bool | None] = {}
        self._hung: set[Address] = set()
        super().__init__("servers that hang", self._test, every)

    def _test(self) -> float | None:
        if pid := server_of(self._environ):
            hanging = (each for each in list_peers(pid) if self._is_server(each) and self._hangs(each))
            if not all(self._go_on(each, pid) for each in hanging):
                return None
        return self._every

    def _is_server(self, address: Address) -> bool:
        """Say whether the scheduler knows it as a server: sccache also asks shared caches."""
        known = self._known.get(address)
        if known is None:
            known = self._known[address] = is_server(self._url, *address)
        return bool(known)

    def _hangs(self, address: Address) -> bool:
        """Ask twice, for one that is busy for a moment does not hang; what hung before is asked once."""
        tries = 1 if address in self._hung else 2
        hangs = all(is_silent(*address, self._answer) for _ in range(tries))
        if not hangs:
            self._hung.discard(address)
        return hangs and not self.is_over

    def _go_on(self, address: Address, pid: int) -> bool:
        """Have what waits for this server compiled here; say whether others can be watched further."""
        host, port = address
        shown = f"{url_host(host)}:{port}"
        broken = break_connections(host, port, pid)
        if not broken and address in list_peers(pid):
            self._give_up(f"its server {shown} hangs, and the system does not let its connections be broken")
            return False
        if broken and address not in self._hung:
            reason = f"does not answer within {self._answer:g} s"
            self._say(f"Warning: the server {shown} {reason}; what waits for it is compiled here.")
            self._hung.add(address)
        return True


def is_silent(host: str, port: int, seconds: float) -> bool:
    """Say whether a server takes a connection, or not even that, and does not begin TLS in that time."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent, and nothing trusted
    try:
        with socket.create_connection((host, port), timeout=seconds) as plain:
            plain.settimeout(seconds)
            with context.wrap_socket(plain):
                return False
    except TimeoutError:
        return True
    except OSError:  # refused, reset, an error of TLS: it is gone, as sccache sees, or it answers
        return False

"""Limit the total time for the headers of a response, or for one block of its body.

A timeout of requests and urllib3 is for one wait: a server that sends a byte every few seconds evades it,
in the TLS handshake, in a proxy's answer, in the headers, and between the chunks of a body. Here one timer
runs from the connection to the end of the response's headers, then for each block of the body, and shuts
the connection down.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

if TYPE_CHECKING:
    _Connection = HTTPConnection
else:
    _Connection = object


class _Deadline:
    """Shuts down one connection after a time; `is_cut` says whether it did."""

    def __init__(self, connection: socket.socket) -> None:
        self.is_cut = False
        self._socket = connection.dup()  # TLS detaches the first one, and cannot be duplicated
        self._timer: threading.Timer | None = None
        self._until = 0.0

    def start(self, seconds: float) -> None:
        """Start the time, unless it is running."""
        if self._timer is None:
            self.renew(seconds)
            self._set_timer(seconds)

    def renew(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def _set_timer(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._cut_connection)
        self._timer.daemon = True
        self._timer.start()

    def _cut_connection(self) -> None:
        remaining = self._until - time.monotonic()
        if remaining > 0 and self._timer is not None:  # it was restarted meanwhile
            self._set_timer(remaining)
            return
        self.is_cut = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """Raise TimeoutError if the connection was cut: http.client would take the body for complete."""
        if self.is_cut:
            raise TimeoutError("an answer took too long")

    def stop_timing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """Stop the time and close the duplicate socket; the connection is closed elsewhere."""
        self.stop_timing()
        self._socket.close()


class _TimedConnection(_Connection):
    """A connection of a pool, whose class has the time limit."""

    answer = 0.0
    deadline: _Deadline | None = None

    def _new_conn(self) -> socket.socket:
        connection = super()._new_conn()
        self._drop()
        self.deadline = _Deadline(connection)
        self.deadline.start(self.answer)
        return connection

    def getresponse(self) -> Any:
        """Read a response's status and headers, within the deadline."""
        deadline = self.deadline
        if deadline is None:
            return super().getresponse()
        deadline.start(self.answer)
        response = super().getresponse()
        deadline.stop_timing()
        try:
            deadline.check()
        except TimeoutError:
            response.close()
            raise
        return response

    def _tunnel(self) -> None:
        super()._tunnel()
        if self.deadline is not None:
            self.deadline.check()

    def close(self) -> None:
        self._drop()
        super().close()

    def _drop(self) -> None:
        if self.deadline is not None:
            self.deadline.close()
            self.deadline = None


class DeadlineAdapter(HTTPAdapter):
    """A requests adapter with such connections, also through proxies.

    Args:
        answer: seconds from the making of a connection to the end of an answer's headers.
    """

    def __init__(self, answer: float) -> None:
        plain = type("Plain", (_TimedConnection, HTTPConnection), {"answer": answer})
        secure = type("Secure", (_TimedConnection, HTTPSConnection), {"answer": answer})
        self._pools = {
            "http": type("PlainPool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
            "https": type("SecurePool", (HTTPSConnectionPool,), {"ConnectionCls": secure}),
        }
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Create the pools of direct connections."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Return the pools of a proxy; those of a SOCKS proxy are left unchanged."""
        manager = super().proxy_manager_for(proxy, **options)
        if not urlsplit(proxy).scheme.lower().startswith("socks"):
            manager.pool_classes_by_scheme = self._pools
        return manager

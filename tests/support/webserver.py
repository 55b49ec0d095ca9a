"""A web server on loopback that serves files correctly, except for the faults of its list.

    with WebServer({"big.bin": data}, faults=[Fault("cut", at=0.5)]) as server:
        ... server.url("big.bin") ...

Each request for a file takes the next fault of the list; when there is none left, it is
answered honestly. As a program it serves a folder: `python -m tests.support.webserver FOLDER [RATE]`.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import mmap
import random
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import unquote

import msgspec

# What each does is said in _Handler; FINAL ones end an address, WRONG_BYTES only a hash can find.
LOSSES = ("drop", "cut", "reset", "stall", "long", "nonsense", "slow")
LIES = ("elsewhere", "other_total", "bare_206", "whole", "gzip", "bad_length", "no_such_range", "new_etag")
BUSY = ("busy_408", "busy_429", "busy_500", "busy_503", "busy_until")
FINAL = ("missing", "loop", "hops", "downgrade")
WRONG_BYTES = ("flip", "short")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One misbehaviour, `at` that part (0 to 1) of the body where it matters."""

    kind: str
    at: float = 0.5


def faults_of(seed: int, kinds: tuple[str, ...]) -> list[Fault]:
    """One to eight faults, the same for the same seed."""
    chance = random.Random(seed)
    return [Fault(kind=chance.choice(kinds), at=chance.random()) for _ in range(chance.randint(1, 8))]


@dataclass(kw_only=True)
class State:
    """The faults of the server and the requests that it has received."""

    files: Mapping[str, bytes | memoryview]
    faults: list[Fault]
    rate: float = 0.0  # bytes/s of each connection; 0: as fast as it goes
    stall: float = 2.0  # seconds that a stalled answer is silent
    base: str = ""
    parts: bool = True  # whether it says that it gives parts of a file
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: threading.Event = field(default_factory=threading.Event)
    seen: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    committed: list[str] = field(default_factory=list)
    version: int = 0
    open: int = 0
    most_open: int = 0


class WebServer:
    """Serves `files` on 127.0.0.1, over TLS when given a certificate and its key in one file."""

    def __init__(
        self,
        files: Mapping[str, bytes | memoryview],
        *,
        faults: Iterable[Fault] = (),
        rate: float = 0.0,
        stall: float = 2.0,
        certificate: Path | None = None,
        parts: bool = True,
    ) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        scheme = "https" if certificate else "http"
        base = f"{scheme}://127.0.0.1:{self._server.server_port}/"
        self.state = self._server.state = State(
            files=files, faults=list(faults), rate=rate, stall=stall, base=base, parts=parts
        )
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.context = context
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def url(self, name: str) -> str:
        return self.state.base + name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.state.done.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    state: State
    context: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(20)
        if self.context is not None:  # here, in the connection's own thread: a handshake may take long
            request = self.context.wrap_socket(request, server_side=True)
        try:
            super().finish_request(request, client_address)
        finally:
            request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what many of these tests are about."""
        if not isinstance(sys.exc_info()[1], (OSError, ValueError)):
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def state(self) -> State:
        return cast(_Server, self.server).state

    @property
    def _name(self) -> str:
        """The file that is asked for: a client may write + as %2B."""
        return unquote(self.path.lstrip("/").partition("?")[0])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        state, name = self.state, self._name
        with state.lock:
            state.seen.append((self.path, dict(self.headers)))
            fault = state.faults.pop(0) if state.faults and not name.startswith("hop") else None
            if fault:
                state.committed.append(fault.kind)
            state.open += 1
            state.most_open = max(state.most_open, state.open)
        try:
            if fault and not self._before(fault):
                return
            if name.startswith("hop"):
                self._redirect(f"hop{int(name[3:]) + 1}")
            elif name.startswith("to/"):
                self._redirect(name[3:].replace("/", "://", 1))
            elif name in state.files:
                self._file(memoryview(state.files[name]), fault)
            else:
                self._say(404)
        finally:
            with state.lock:
                state.open -= 1

    def do_HEAD(self) -> None:
        data = self.state.files.get(self._name)
        parts = {"Accept-Ranges": "bytes"} if self.state.parts else {}
        self._say(404 if data is None else 200, {"Content-Length": str(len(data or b"")), **parts})

    def _before(self, fault: Fault) -> bool:
        """Faults without a body; returns whether the file is to be sent all the same."""
        kind = fault.kind
        if kind == "drop":
            self.close_connection = True
        elif kind == "nonsense":
            self.wfile.write(b"\x00\x01 this is not HTTP\r\n\r\n")
            self.close_connection = True
        elif kind == "missing":
            self._say(404)
        elif kind == "loop":
            self._redirect(self.path.lstrip("/"))
        elif kind == "hops":
            self._redirect("hop1")
        elif kind == "downgrade":
            self._redirect("http://127.0.0.1:9/never")
        elif kind == "no_such_range":
            self._say(416)
        elif kind == "busy_until":
            self._say(503, {"Retry-After": formatdate(time.time() + 1, usegmt=True)})
        elif kind.startswith("busy_"):
            self._say(int(kind[5:]), {"Retry-After": "1"})
        else:
            return True
        return False

    def _say(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def _redirect(self, target: str) -> None:
        self._say(302, {"Location": target if "://" in target else self.state.base + target})

    def _file(self, data: memoryview, fault: Fault | None) -> None:
        kind, size = fault.kind if fault else "", len(data)
        if kind == "new_etag":
            self.state.version += 1
        etag = f'"{hashlib.md5(data[:4096]).hexdigest()}-{size}-{self.state.version}"'
        first, last = self._asked(size, etag)
        if kind == "elsewhere":
            first = min(first + 1 + int(size * 0.1), size - 1) if first is not None else size // 3
        if kind == "whole":
            first = None
        body = data[first or 0 : last + 1]
        if kind == "flip" and body:
            changed = bytearray(body)
            changed[int(fault.at * (len(body) - 1)) if fault else 0] ^= 1
            body = memoryview(changed)
        partly = first is not None or kind == "bare_206"
        self.send_response(206 if partly else 200)
        if kind == "gzip":
            body = memoryview(gzip.compress(body, 1))
            self.send_header("Content-Encoding", "gzip")
        if partly and kind != "bare_206":
            total = size + 1 if kind == "other_total" else size
            self.send_header("Content-Range", f"bytes {first or 0}-{last}/{total}")
        if kind.startswith("no_length"):  # as HTTP/1.0 has it: the end of the connection is the end
            self.close_connection = True
        else:
            self.send_header("Content-Length", self._length(kind, len(body)))
        if self.path.endswith("/"):
            self.send_header("Content-Type", "text/html")
        self.send_header("ETag", etag)
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        self._body(body, kind, fault.at if fault else 1.0)

    def _asked(self, size: int, etag: str) -> tuple[int | None, int]:
        """The first byte (None: the whole file) and the last one."""
        text = self.headers.get("Range", "")
        if not text.startswith("bytes=") or self.headers.get("If-Range", etag) != etag:
            return None, size - 1
        first, _, last = text[6:].partition("-")
        return int(first), min(int(last or size - 1), size - 1)

    @staticmethod
    def _length(kind: str, real: int) -> str:
        made = {"long": str(real + 1000), "short": str(max(real - 1000, 0)), "bad_length": "many"}
        return made.get(kind, str(real))

    def _body(self, body: memoryview, kind: str, at: float) -> None:
        if kind in ("cut", "reset", "stall", "no_length_cut"):
            self._send(body[: int(at * len(body))])
        elif kind == "slow":
            for start in range(0, len(body), max(1, len(body) // 5)):
                self._send(body[start : start + max(1, len(body) // 5)])
                self.state.done.wait(0.02)
        else:
            self._send(body)
        if kind == "stall":
            self.state.done.wait(self.state.stall)
        if kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        if kind in ("cut", "reset", "stall", "long", "short"):
            self.close_connection = True

    def _send(self, data: memoryview) -> None:
        rate = self.state.rate
        if not rate:
            self.wfile.write(data)
            return
        step, start = max(1, int(rate / 50)), time.monotonic()
        for at in range(0, len(data), step):
            self.wfile.write(data[at : at + step])
            ahead = (at + step) / rate - (time.monotonic() - start)
            if ahead > 0 and self.state.done.wait(ahead):
                return


_NO_LINGER = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)


def main(folder: Path, rate: float = 0.0) -> None:
    """Serve the files of a folder until stdin ends; says the address first."""
    with contextlib.ExitStack() as stack:
        files = {}
        for path in folder.iterdir():
            file = stack.enter_context(path.open("rb"))
            files[path.name] = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        with WebServer(files, rate=rate) as server:
            print(server.url(""), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(float, sys.argv[2:]))

"""A small PyTorch with nested submodules as git servers have it, and servers that misbehave."""

from __future__ import annotations

import contextlib
import http.server
import os
import random
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TAG = "v2.14.0"
NEXT = "v2.15.0"
# Each with a size in bytes, large enough that an answer can be cut in the middle; `deep` lies in `deeper`.
MODULES = {"third_party/one": 60_000, "third_party/two": 60_000, "third_party/deeper": 20_000}
INNER = "third_party/deep"
ALL = (*MODULES, f"third_party/deeper/{INNER}")

_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "a"), ("EMAIL", "a@example.invalid"), ("DATE", "2026-01-01T00:00:00Z"))
    },
}
_GIT = ("git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")


def git(folder: Path, *words: str) -> str:
    """Run git without the user's settings; return its output."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        [*_GIT, *words], cwd=folder, env=env | _ENV, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def publish(root: Path) -> Path:
    """Make `root/*.git` with two releases of a small PyTorch; the folder is returned."""
    work = root / "work"
    work.mkdir(parents=True)
    _repository(work / "deep", root / "deep.git", 20_000)
    for path, size in MODULES.items():
        name = Path(path).name
        _repository(work / name, root / f"{name}.git", size)
    git(work / "deeper", "submodule", "--quiet", "add", "../deep.git", INNER)
    _release(work / "deeper", "deeper with deep")
    top = work / "pytorch"
    _repository(top, root / "pytorch.git", 10_000)
    (top / "torch").mkdir()
    (top / "c10").mkdir()
    for name, text in (
        ("version.txt", "2.14.0\n"),
        ("CMakeLists.txt", "project(Torch)\n"),
        ("torch/__init__.py", ""),
        ("c10/a", ""),
    ):
        (top / name).write_text(text)
    for path in MODULES:
        git(top, "submodule", "--quiet", "add", f"../{Path(path).name}.git", path)
    _release(top, TAG, tag=TAG)
    for name in ("one", "deeper"):
        (work / name / "new.txt").write_text("new\n")
        _release(work / name, "new")
        git(top / "third_party" / name, "pull", "--quiet", "origin", "main")
    (top / "version.txt").write_text("2.15.0\n")
    (top / "payload.bin").write_bytes(random.Random(2).randbytes(9_000))
    _release(top, NEXT, tag=NEXT)
    git(root / "pytorch.git", "config", "uploadpack.allowFilter", "true")
    return root


def _repository(folder: Path, bare: Path, size: int) -> None:
    folder.mkdir()
    git(folder.parent, "init", "--quiet", "--bare", str(bare))
    git(folder, "init", "--quiet")
    git(folder, "remote", "add", "origin", str(bare))
    (folder / "payload.bin").write_bytes(random.Random(folder.name).randbytes(size))
    (folder / "text.txt").write_text(f"{folder.name}\n" * 50)
    _release(folder, "first")


def _release(folder: Path, message: str, tag: str = "") -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    git(folder, "push", "--quiet", "origin", "HEAD:refs/heads/main")
    if tag:
        git(folder, "tag", "--annotate", "--message", message, tag)
        git(folder, "push", "--quiet", "origin", tag)


class GitServer:
    """`git http-backend` on 127.0.0.1; a repository named in `faults` misbehaves that many times.

    fail: 500; missing: 404; stall: the request is taken and never answered; vanish: the connection is
    closed in the middle of the answer.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.faults: dict[str, list[str]] = {}
        self.seen: list[str] = []
        self.over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> GitServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The address of the small PyTorch."""
        return f"http://127.0.0.1:{self._server.server_port}/pytorch.git"


class _Server(http.server.ThreadingHTTPServer):
    owner: GitServer
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is not an error of the server's."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers["Content-Length"] or 0)))

    def _serve(self, body: bytes) -> None:
        owner = self.server.owner
        path, _, query = self.path.partition("?")
        name = path.split("/")[1].removesuffix(".git")
        owner.seen.append(path)
        faults = owner.faults.get(name, [])
        # The middle of an answer is that of the objects, not of the greeting.
        fault = faults.pop(0) if faults and (faults[0] != "vanish" or self.command == "POST") else ""
        if fault in ("fail", "missing"):
            self.send_error(500 if fault == "fail" else 404)
            return
        if fault == "stall":
            owner.over.wait()
            return
        head, content = self._backend(path, query, body)
        status = next((line[8:] for line in head.split(b"\r\n") if line.startswith(b"Status: ")), b"200 OK")
        self.wfile.write(b"HTTP/1.0 " + status + b"\r\n" + head + b"\r\n\r\n")
        self.wfile.write(content[: len(content) // 2] if fault == "vanish" else content)

    def _backend(self, path: str, query: str, body: bytes) -> tuple[bytes, bytes]:
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_PROJECT_ROOT": str(self.server.owner.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "http-backend"], input=body, env=environ, capture_output=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        return head, content

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """Start a server that accepts connections and never sends anything; return its git:// address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: list[socket.socket] = []

        def take() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(server.accept()[0])

        threading.Thread(target=take, daemon=True).start()
        yield f"git://127.0.0.1:{server.getsockname()[1]}/pytorch.git"
        server.shutdown(socket.SHUT_RDWR)
        for each in taken:
            each.close()

"""Query a scheduler, and manage the files with its tokens, which only this user can read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from torchbuild_tasks.errors import ClusterError, UsageError
from torchbuild_tasks.model import Cluster
from torchbuild_tasks.system import files
from torchbuild_tasks.system.reading import read_bytes, read_text
from torchbuild_tasks.text.words import url_host
from torchbuild_tasks.values import as_table, parse_json, parse_toml, replace

if TYPE_CHECKING:
    from http.client import HTTPConnection

SECONDS: Final = 3.0
WRONG_TOKEN: Final = "it refuses the token that this machine has for it"
_NO_SCHEDULER: Final = "what answers there is no scheduler of sccache-dist"
_LONGEST: Final = 1 << 16
LONGEST = 4096  # characters of a token


def ask(url: str, token: str = "", seconds: float = SECONDS) -> Cluster:
    """Return the state of a scheduler; `problem` is why it cannot be used. Never raises.

    Args:
        url: `http://host:port`.
        token: is tried too, if there is one.
        seconds: to wait for each answer.
    """
    from http.client import HTTPException

    try:
        answer = _status(url, seconds)
        if not answer.problem and token and _is_refused(url, token, seconds):
            return Cluster(url=url, problem=WRONG_TOKEN)
        return answer
    except TimeoutError:
        return Cluster(url=url, problem=f"it does not answer within {seconds:g} s")
    except OSError as error:
        return Cluster(url=url, problem=error.strerror or str(error))
    except HTTPException:
        return Cluster(url=url, problem=_NO_SCHEDULER)


def _status(url: str, seconds: float) -> Cluster:
    with _connect(url, seconds) as connection:
        connection.request("GET", "/api/v1/scheduler/status", headers={"Accept": "application/json"})
        response = connection.getresponse()
        text = response.read(_LONGEST)
    if response.status != 200:
        return Cluster(url=url, problem=_NO_SCHEDULER)
    try:
        status = parse_json(text)
        servers, cpus, busy = (int(status[key]) for key in ("num_servers", "num_cpus", "in_progress"))
        return Cluster(url=url, servers=servers, cpus=cpus, busy=busy)
    except (ValueError, TypeError, KeyError):
        return Cluster(url=url, problem=_NO_SCHEDULER)


def is_server(url: str, host: str, port: int, seconds: float = SECONDS) -> bool | None:
    """Say whether a scheduler has a certificate of the server at an address; None: it does not answer."""
    from http.client import HTTPException

    address = f"{url_host(host)}:{port}"
    with contextlib.suppress(OSError, HTTPException), _connect(url, seconds) as connection:
        connection.request("GET", f"/api/v1/scheduler/server_certificate/{address}")
        return connection.getresponse().status == 200
    return None


def _is_refused(url: str, token: str, seconds: float) -> bool:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"}
    with _connect(url, seconds) as connection:
        connection.request("POST", "/api/v1/scheduler/alloc_job", body=b"", headers=headers)
        return connection.getresponse().status == 401


@contextlib.contextmanager
def _connect(url: str, seconds: float) -> Iterator[HTTPConnection]:
    """Connect without a proxy: a scheduler is in the local network."""
    from http.client import HTTPConnection, HTTPSConnection

    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    try:
        yield connection
    finally:
        connection.close()


# ---- files


class ClusterFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Our files about clusters. `root` need not exist; `space` is for files that can be created again."""

    root: Path
    space: Path

    @property
    def scheduler(self) -> Path:
        """Return the path of scheduler.conf of the scheduler on this machine."""
        return self.root / "scheduler.conf"

    @property
    def client_token(self) -> Path:
        """Return the path of the token for machines that build."""
        return self.root / "client.token"

    def server_token(self, address: str) -> Path:
        """Return the path of the token for one server."""
        return self.root / f"server-{address.replace('[', '').replace(']', '').replace(':', '-')}.token"

    def server(self, name: str) -> Path:
        """Return the path of server.conf of this machine for the scheduler `name`."""
        return self.root / f"server-of-{name}.conf"

    def client(self, name: str) -> Path:
        """Return the path of sccache's configuration for builds with the scheduler `name`."""
        return self.root / f"client-of-{name}.conf"

    def list_joined(self) -> tuple[Path, ...]:
        """Return the configuration of each joined scheduler."""
        return tuple(sorted(self.root.glob("client-of-*.conf")))


def cluster_files(cache_folder: str) -> ClusterFiles:
    """Return this user's files about clusters."""
    from platformdirs import user_config_dir

    root = Path(user_config_dir("torchbuild-tasks", appauthor=False)) / "cluster"
    return ClusterFiles(root=root, space=Path(cache_folder) / "cluster")


def write_secret(path: Path, text: str) -> None:
    """Write a file atomically, readable for this user only.

    Raises:
        ClusterError: it cannot be written.
    """
    with files.translate_errors(ClusterError, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
    files.write_atomic(path, text.encode(), error=ClusterError, private=True)


def value(path: Path, *names: str) -> str:
    """Return one value of a TOML file of ours; "" without the value or the file.

    Args:
        names: the table and the key: `client_auth`, `token`.
    """
    try:
        value: Any = parse_toml(read_text(path))
    except (OSError, ValueError):
        return ""
    for name in names:
        value = as_table(value).get(name)
    return value if isinstance(value, str) else ""


def read_token(path: Path) -> str:
    """Return the token in a file that was copied here.

    Raises:
        UsageError: there is no such file, or no token in it.
    """
    try:
        token = read_bytes(path, most=_LONGEST).decode("utf-8", "replace").strip()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if not token or len(token) > LONGEST or not (token.isascii() and token.isprintable()) or " " in token:
        raise UsageError(
            f"{path} holds no token: it must be one word on one line",
            next_step="Copy the file itself from the scheduler's machine: `cluster scheduler` says where.",
        )
    return token


def look_at_cluster(url: str, conf: Path) -> Cluster:
    """Query a scheduler, with the token in the file of `cluster join`."""
    token = value(conf, "dist", "auth", "token")
    return replace(ask(url, token), conf=str(conf) if token else "")

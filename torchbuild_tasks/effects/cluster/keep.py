"""Files with tokens: in a folder that only this user can enter, and only this user can read them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from torchbuild_tasks.errors import ClusterError, UsageError
from torchbuild_tasks.system import files

LONGEST = 4096  # characters of a token


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """Our files of clusters. `root` need not exist; `space` is for what can be made again."""

    root: Path
    space: Path

    @property
    def scheduler(self) -> Path:
        """scheduler.conf of the scheduler that this machine runs."""
        return self.root / "scheduler.conf"

    @property
    def client_token(self) -> Path:
        """The token that is copied to machines that build."""
        return self.root / "client.token"

    def server_token(self, address: str) -> Path:
        """The token that is copied to one server."""
        return self.root / f"server-{_plain(address)}.token"

    def server(self, name: str) -> Path:
        """server.conf of this machine for the scheduler `name`."""
        return self.root / f"server-of-{name}.conf"

    def client(self, name: str) -> Path:
        """sccache's configuration of a build that uses the scheduler `name`."""
        return self.root / f"client-of-{name}.conf"

    def joined(self) -> tuple[Path, ...]:
        """Such a file of each scheduler that was joined."""
        return tuple(sorted(self.root.glob("client-of-*.conf")))


def shelf(cache_folder: str) -> Shelf:
    """The files of this user.

    Args:
        cache_folder: the folder of helpers; what can be made again goes beside them.
    """
    from platformdirs import user_config_dir

    root = Path(user_config_dir("torchbuild-tasks", appauthor=False)) / "cluster"
    return Shelf(root=root, space=Path(cache_folder) / "cluster")


def write_secret(path: Path, text: str) -> None:
    """Write a file whole, for this user's eyes from its first byte on.

    Raises:
        ClusterError: it cannot be written.
    """
    with files.told_as(ClusterError, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
    files.write_atomic(path, text.encode(), error=ClusterError, private=True)


def value(path: Path, *names: str) -> str:
    """One value of a TOML file of ours; "" where there is none, or no such file.

    Args:
        path: the file.
        names: the table and the key: `client_auth`, `token`.
    """
    try:
        found: Any = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""


def read_token(path: Path) -> str:
    """A token out of a file that was copied here.

    Raises:
        UsageError: there is no such file, or no token in it.
    """
    try:
        token = path.read_text("utf-8", "replace").strip()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if not token or len(token) > LONGEST or not (token.isascii() and token.isprintable()) or " " in token:
        raise UsageError(
            f"{path} holds no token: it must be one word on one line",
            next_step="Copy the file itself from the scheduler's machine: `cluster scheduler` says where.",
        )
    return token


def _plain(address: str) -> str:
    return address.replace("[", "").replace("]", "").replace(":", "-")

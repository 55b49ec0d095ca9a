"""Addresses of schedulers and servers, as a person writes them and as sccache wants them."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from torchbuild_tasks.errors import UsageError

# sccache's own choice in its examples (docs/DistributedQuickstart.md of 0.16).
SCHEDULER_PORT: Final = 10600
SERVER_PORT: Final = 10501
EVERYWHERE: Final = "0.0.0.0"


def scheduler_url(text: str) -> str:
    """A scheduler's address as a URL: `host`, `host:10600`, `http://host:10600` or `https://host`.

    Raises:
        UsageError: it is none of these.
    """
    full = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(full)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _wrong(text, str(error)) from None
    if parts.scheme not in ("http", "https"):
        raise _wrong(text, f"{parts.scheme}:// is neither http:// nor https://")
    if not host:
        raise _wrong(text, "it names no host")
    if "@" in parts.netloc:
        raise _wrong("that address", "no user or password belongs there; the token is in a file")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise _wrong(text, "nothing may stand behind the port")
    if port is None and parts.scheme == "http":
        port = SCHEDULER_PORT
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


def file_name(url: str) -> str:
    """A scheduler's address as a part of a file's name."""
    parts = urlsplit(url)
    host = (parts.hostname or "").replace(":", "_")
    return f"{host}-{parts.port or 443}"


def listening(text: str, port: int, flag: str) -> str:
    """Where a program listens, or what a token is for: an IP address with a port, as sccache writes it.

    Args:
        text: `10.0.0.2`, `10.0.0.2:10501` or `[fd00::2]:10501`.
        port: the one that goes without saying.
        flag: whose value it is, for messages.

    Raises:
        UsageError: it is no IP address, or the port is none.
    """
    host, number = _split(text)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise UsageError(
            f"{flag} {text!r} is no IP address",
            next_step=f"Write for example: {flag} 192.168.1.10 or {flag} 192.168.1.10:{port}",
        ) from None
    if number and not (number.isdecimal() and 0 < int(number) < 65536):
        raise UsageError(f"{flag} {text!r}: {number} is no port", next_step="Ports are 1 to 65535.")
    shown = f"[{address}]" if address.version == 6 else str(address)
    return f"{shown}:{number or port}"


def host_and_port(address: str) -> tuple[str, int]:
    """Both parts of what `listening` gives."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _split(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return host, port
    return text, ""


def _wrong(text: str, why: str) -> UsageError:
    return UsageError(
        f"{text!r} is no scheduler's address: {why}",
        next_step="Write for example 192.168.1.10, build-host:10600 or https://build-host",
    )

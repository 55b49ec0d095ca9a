"""How this run reaches the network: mirrors, --offline, certificates, patience."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from torchbuild_tasks.errors import DownloadFailed, UsageError

if TYPE_CHECKING:
    import requests

WEB: Final = ("http", "https")
_TO: Final = (*WEB, "file")


def _unheard(text: str) -> None:
    """Say nothing."""


class Net(msgspec.Struct, frozen=True, kw_only=True):
    """How this run reaches the network.

    Args:
        mirrors: URL prefix -> replacement prefix, longest match wins; the prefix "" stands
            for every host, its replacement is followed by `<host>/<path>`.
        offline: no network at all; files of a `file://` mirror can still be had.
        connect: seconds until a server must have taken the connection.
        read: seconds without a byte after which a connection counts as lost.
        attempts: how often one address is tried without getting further.
        back_off: s; the second wait before another attempt is twice that, and each later one doubles.
        longest_wait: no wait is longer, s, whatever a server asks for with Retry-After.
        note: seconds between two notes of how far a download is.
        sleep: waits in the place of ours, which ends at once when a download is stopped.
        wheels: a folder of wheels that pip is sent to as well.
        say: told what is waited for and why something is tried again; from any thread.
    """

    mirrors: tuple[tuple[str, str], ...] = ()
    offline: bool = False
    connect: float = 15.0
    read: float = 60.0
    attempts: int = 5
    back_off: float = 0.5
    longest_wait: float = 120.0
    note: float = 1.0
    sleep: Callable[[float], None] | None = None
    wheels: str = ""
    say: Callable[[str], None] = _unheard

    def address(self, url: str) -> str:
        """The URL that is really asked for: `url`, or what the longest fitting mirror makes of it."""
        plain = _plain(url)  # a user name and password are not for the mirror
        for old, new in sorted(self.mirrors, key=lambda pair: len(pair[0]), reverse=True):
            if old and _starts_with(plain, old):
                return _joined(new, plain[len(_plain(old)) :])
            if not old and urlsplit(plain).scheme in WEB and not _starts_with(plain, new):
                return _joined(new, plain.split("://", 1)[1])
        return url

    def session(self) -> requests.Session:
        """A new session: TLS always verified; proxies, certificates and netrc as the user has them.

        Raises:
            DownloadFailed: the variable for the certificates names nothing that is there.
        """
        import requests

        class ByHand(requests.Session):
            """Follows no redirect: even told not to, requests would read the body of one into memory."""

            def resolve_redirects(self, *args: Any, **options: Any) -> Iterator[Any]:
                return iter(())

        session = ByHand()
        # requests reads REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE itself, and lets them win over this.
        session.verify = os.environ.get("SSL_CERT_FILE") or True
        # Bytes as they are stored: a hash, a length and a range mean nothing of compressed ones.
        session.headers.update({"Accept-Encoding": "identity", "User-Agent": "torchbuild-tasks"})
        _certificates(session)
        return session


def _certificates(session: requests.Session) -> None:
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    name = next((name for name in names if os.environ.get(name)), None)
    if name and not Path(os.environ[name]).exists():
        session.close()
        raise DownloadFailed(
            "The certificates for secure connections are not where they are said to be.",
            looked=(f"{name}={os.environ[name]}: no such file or folder",),
            next_step=f"Set {name} to the file with your certificates, or unset it.",
        )


def read_mirrors(text: str) -> tuple[tuple[str, str], ...]:
    """Parse TORCHBUILD_MIRROR: `OLD=NEW` prefixes, or one bare `NEW` for every host.

    Args:
        text: entries separated by `;` or white space, such as
            `https://s3.amazonaws.com/=http://127.0.0.1:8000/;https://x/=file:///y/`.

    Returns:
        (OLD, NEW) pairs with a slash at the end; OLD is "" for a bare NEW.

    Raises:
        UsageError: an entry is neither; or a prefix is there twice.
    """
    pairs: dict[str, str] = {}
    for entry in re.split(r"[;\s]+", text.strip()):
        if not entry:
            continue
        old, equals, new = entry.partition("=") if "=" in entry else ("", "", entry)
        problem = ""
        if equals and not _is_prefix(old, WEB):
            problem = f"{shown(old)} is not the beginning of an http or https address"
        elif not _is_prefix(new, _TO):
            problem = f"{shown(new) or 'nothing'} is not the beginning of an http, https or file address"
        elif (old := _ended(old)) in pairs:
            problem = f"{shown(old) or 'every host'} is there twice"
        if problem:
            raise UsageError(
                f"TORCHBUILD_MIRROR cannot be understood: {problem}.",
                next_step="Write OLD=NEW, or NEW alone for every host, several separated by `;`, as in "
                "TORCHBUILD_MIRROR=https://s3.amazonaws.com/=http://127.0.0.1:8000/",
            )
        pairs[old] = _ended(new)
    return tuple(pairs.items())


def shown(url: str) -> str:
    """`url` as it may be printed: without user, password, and the values of its query."""
    url = re.sub(r"(?<=//)[^/?#\s]*@", "", url)
    return re.sub(r"([?&;][^=&;#?\s]*)=[^&;#\s]*", r"\1=...", url)


def _is_prefix(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for a port that is no number
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.netloc or parts.scheme == "file" and parts.path)


def _ended(prefix: str) -> str:
    return prefix if not prefix or prefix.endswith("/") else f"{prefix}/"


def _starts_with(url: str, prefix: str) -> bool:
    """Whether `prefix` is a beginning of `url` that ends where a part of it ends."""
    prefix = _plain(prefix)
    rest = url[len(prefix) :]
    return url.startswith(prefix) and (prefix.endswith("/") or rest[:1] in ("", "/", "?"))


def _joined(prefix: str, rest: str) -> str:
    return f"{prefix}{rest[1:]}" if prefix.endswith("/") and rest.startswith("/") else f"{prefix}{rest}"


def _plain(url: str) -> str:
    """`url` without user and password, its host in small letters."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2].lower())) if parts.netloc else url

"""Access the network: mirrors, errors, retries, and stopping.

requests and urllib3 are imported at the first request, so that a build that
downloads nothing does not pay for them.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from torchbuild_tasks.errors import DownloadFailed, UsageError
from torchbuild_tasks.text.words import is_host, say_bad_port

if TYPE_CHECKING:
    import requests

WEB: Final = ("http", "https")
_TO: Final = (*WEB, "file")
_ENDING: Final = 1.0  # seconds
_FURTHER: Final = 1 << 20  # bytes of progress after which the attempts are counted anew
_PROXY: Final = 407


def _drop(text: str) -> None:
    """Ignore a report."""


class Net(msgspec.Struct, frozen=True, kw_only=True):
    """The network settings of this run.

    Args:
        mirrors: URL prefix -> replacement prefix, longest match wins; the prefix "" stands
            for every host, its replacement is followed by `<host>/<path>`.
        offline: no network at all; files of a `file://` mirror can still be had.
        connect: seconds until a server must have taken the connection.
        read: seconds without a byte after which a connection counts as lost.
        answer: seconds in which a connection must be made and the headers of an answer be there.
        least: bytes a second that a body must bring on average over `patience` seconds.
        patience: seconds, see `least`.
        largest: the most bytes of a file without a size in its row.
        room: bytes that are left free on the disk.
        attempts: how often one address is tried without getting further.
        back_off: s; the second wait before another attempt is twice that, and each later one doubles.
        longest_wait: seconds of the longest wait, whatever Retry-After says.
        note: seconds between two notes of how far a download is.
        wheels: a folder of wheels that pip is sent to as well.
        say: is called with what is waited for and why something is tried again; from any thread.
    """

    mirrors: tuple[tuple[str, str], ...] = ()
    offline: bool = False
    connect: float = 15.0
    read: float = 60.0
    answer: float = 120.0
    least: float = 1024.0
    patience: float = 60.0
    largest: int = 16 << 30
    room: int = 64 << 20
    attempts: int = 5
    back_off: float = 0.5
    longest_wait: float = 120.0
    note: float = 1.0
    wheels: str = ""
    say: Callable[[str], None] = _drop

    def address(self, url: str) -> str:
        """Return the URL to request: `url`, or its replacement by the longest matching mirror."""
        plain = _plain(url)  # the login is not for the mirror
        for old, new in sorted(self.mirrors, key=lambda pair: len(pair[0]), reverse=True):
            if old and _starts_with(plain, old):
                return _join(new, plain[len(_plain(old)) :])
            if not old and urlsplit(plain).scheme in WEB and not _starts_with(plain, new):
                return _join(new, plain.split("://", 1)[1])
        return url

    def session(self) -> requests.Session:
        """Return a new session: TLS is always verified; proxies, certificates and netrc are the user's.

        Raises:
            DownloadFailed: the variable for the certificates names nothing that is there.
        """
        import requests

        from torchbuild_tasks.system.net.deadline import DeadlineAdapter

        class ManualRedirects(requests.Session):
            """A session without redirects: requests would read the body of each into memory."""

            def resolve_redirects(self, *args: Any, **options: Any) -> Iterator[Any]:
                return iter(())

        session = ManualRedirects()
        for scheme in WEB:
            session.mount(f"{scheme}://", DeadlineAdapter(self.answer))
        # requests reads REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE itself, and lets them win over this.
        session.verify = os.environ.get("SSL_CERT_FILE") or True
        # No compression: hash, length and range refer to the stored bytes.
        session.headers.update({"Accept-Encoding": "identity", "User-Agent": "torchbuild-tasks"})
        _certificates(session)
        return session


def _certificates(session: requests.Session) -> None:
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    name = next((name for name in names if os.environ.get(name)), None)
    if name and not Path(os.environ[name]).exists():
        session.close()
        raise DownloadFailed(
            "The certificates for secure connections are not where they should be.",
            looked=(f"{name}={os.environ[name]}: no such file or folder",),
            next_step=f"Set {name} to the file with your certificates, or unset it.",
        )


# ---------------- addresses: mirrors, and redaction


_MIRRORS: Final = (
    "Write OLD=NEW, or NEW alone for every host, several separated by `;`: "
    "https://s3.amazonaws.com/=http://127.0.0.1:8000/"
)


def read_mirrors(text: str) -> tuple[tuple[str, str], ...]:
    """Parse --mirror: `OLD=NEW` prefixes, or one bare `NEW` for every host.

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
        if equals and (why := _why_no_prefix(old, WEB)):
            problem = f"{redact(old) or 'nothing'} {why}"
        elif why := _why_no_prefix(new, _TO):
            problem = f"{redact(new) or 'nothing'} {why}"
        elif (old := _with_slash(old)) in pairs:
            problem = f"{redact(old) or 'every host'} is there twice"
        if problem:
            raise UsageError(
                f"--mirror: {problem}.",
                next_step=_MIRRORS,
            )
        pairs[old] = _with_slash(new)
    if text.strip() and not pairs:
        raise UsageError(f"--mirror: {text!r} names none.", next_step=_MIRRORS)
    return tuple(pairs.items())


def _why_no_prefix(url: str, schemes: tuple[str, ...]) -> str:
    """Say why an address cannot be the beginning of others, as the end of a sentence; "" if it can."""
    why = f"is not the beginning of an {', '.join(schemes[:-1])} or {schemes[-1]} address"
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for a port that is not a number
    except ValueError:
        return f"{why}: {say_bad_port(url)}"
    place = bool(parts.netloc or parts.path) if parts.scheme == "file" else is_host(parts.hostname or "")
    return "" if parts.scheme in schemes and place else why


def _with_slash(prefix: str) -> str:
    return prefix if not prefix or prefix.endswith("/") else f"{prefix}/"


def _starts_with(url: str, prefix: str) -> bool:
    """Say whether `url` begins with `prefix`, up to the end of one of its parts."""
    prefix = _plain(prefix)
    rest = url[len(prefix) :]
    return url.startswith(prefix) and (prefix.endswith("/") or rest[:1] in ("", "/", "?"))


def _join(prefix: str, rest: str) -> str:
    return f"{prefix}{rest[1:]}" if prefix.endswith("/") and rest.startswith("/") else f"{prefix}{rest}"


def _plain(url: str) -> str:
    """Return `url` without user and password, its host in lower case."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2].lower())) if parts.netloc else url


def redact(url: str) -> str:
    """Return `url` for printing: without user, password, and the values of its query."""
    url = re.sub(r"(?<=//)[^/?#\s]*@", "", url)
    return re.sub(r"([?&;][^=&;#?\s]*)=[^&;#\s]*", r"\1=...", url)


# ---------------- failures: permanent ones, and those that another attempt may fix


class Again(Exception):
    """A failure that another attempt may fix.

    Args:
        why: what happened, without secrets.
        wait: seconds in the server's Retry-After.
        lied: the response contradicts itself or the request.
    """

    def __init__(self, why: str, *, wait: float = 0.0, lied: bool = False) -> None:
        super().__init__(why)
        self.wait = wait
        self.lied = lied


class Refused(Exception):
    """A failure of this address that another attempt would not fix.

    Args:
        why: what happened, without secrets.
        status: of the answer that says no, 404 also for a folder without the file; 0 where none came.
    """

    def __init__(self, why: str, *, status: int = 0) -> None:
        super().__init__(why)
        self.status = status


class Halted(Exception):
    """Another thread failed or the user stopped the run; this thread ends silently."""


@contextlib.contextmanager
def translate_network_errors() -> Iterator[None]:
    """Turn exceptions of requests and urllib3 into Again or Refused.

    The body must not write files: the errors of requests are OSErrors, too.
    """
    import requests
    import urllib3

    try:
        yield
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as problem:
        raise _judge(problem) from None


def _judge(problem: Exception) -> Again | Refused:
    import ssl

    import requests
    import urllib3

    inner = list(_chain(problem))
    for each in inner:
        if isinstance(each, ssl.SSLCertVerificationError):
            return Refused(f"its certificate cannot be trusted: {each.verify_message}")
        if (tunnel := re.search(r"Tunnel connection failed: (\d+)", str(each))) and tunnel[1] < "5":
            return Refused(f"the proxy answered {status_text(int(tunnel[1]))}", status=_PROXY)
    if isinstance(problem, (requests.Timeout, urllib3.exceptions.TimeoutError)):
        return Again("no answer in time")
    if isinstance(problem, ValueError):  # requests: an invalid address or header
        return Refused(f"cannot be asked for: {redact(str(problem))}")
    return Again(f"the connection failed: {_innermost(inner)}")


def _innermost(inner: list[BaseException]) -> str:
    import http.client

    for each in reversed(inner):
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
        if isinstance(each, http.client.IncompleteRead):
            return "it ended before the file did"
        if isinstance(each, http.client.RemoteDisconnected):
            return "it was closed without an answer"
    return type(inner[-1]).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, the outermost first."""
    todo: list[object] = [error]
    seen: set[int] = set()
    while todo:
        each = todo.pop(0)
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [*each.args, getattr(each, "reason", None), each.__cause__, each.__context__]


def status_text(status: int) -> str:
    """Return a status with its standard phrase, not the server's."""
    import http

    with contextlib.suppress(ValueError):
        return f"{status} {http.HTTPStatus(status).phrase}"
    return str(status)


# What an answer means for who asked; the first that fits counts. S3 says 403 also of what is not there.
_MEANINGS: Final = (
    ((_PROXY,), "The proxy wants a login (HTTPS_PROXY=http://USER:PASSWORD@HOST), or forbids this address"),
    ((401,), "The server wants a login: name one for its host in .netrc"),
    ((403,), "The server does not give it out: without a login (.netrc), to this network, or any more"),
    ((404, 410), "It is not there any more: it was moved or withdrawn"),
)


def meaning(statuses: Collection[int]) -> str:
    """Return what the refusals of all addresses mean; "" where one of them was no answer."""
    if not statuses or 0 in statuses:
        return ""
    met = (text for wanted, text in _MEANINGS if not set(wanted).isdisjoint(statuses))
    return next(met, "The server will not answer this question")


# ---------------- retries, and stopping


class Tries:
    """Counts the failures of one address, and waits before each further attempt.

    How often and how long is urllib3's `Retry`. requests' adapter cannot be left to apply it: it
    would try again only up to an answer's headers, in silence, and in a sleep that nothing ends.
    """

    def __init__(self, name: str, net: Net, halt: Halt) -> None:
        from urllib3 import Retry

        self._name = name
        self._net = net
        self._halt = halt
        self._all = self._left = Retry(
            total=net.attempts - 1,
            backoff_factor=net.back_off,
            backoff_max=net.longest_wait,
            backoff_jitter=net.back_off,  # jitter, so that clients that failed together do not retry together
        )
        self._furthest = 0

    def wait(self, trouble: Again, so_far: int) -> None:
        """Wait for as long as the server asked, or exponentially longer each time.

        Args:
                so_far: bytes that are there; getting further gives all attempts back.

        Raises:
            Refused: that was the last attempt.
        """
        from urllib3.exceptions import MaxRetryError

        if so_far >= self._furthest + _FURTHER:
            self._left = self._all
            self._furthest = so_far
        try:
            self._left = self._left.increment(error=trouble)
        except MaxRetryError:
            raise Refused(f"{trouble} ({self._net.attempts} attempts)") from None
        pause = min(max(self._left.get_backoff_time(), trouble.wait), self._net.longest_wait)
        wait = f" and asked for a wait of {trouble.wait:.0f} s" if trouble.wait else ""
        self._net.say(f"{self._name}: {trouble}{wait}; trying again in {pause:.1f} s")
        self._halt.sleep(pause)


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of `Retry-After`, 0 without a valid one."""
    from urllib3 import Retry
    from urllib3.exceptions import InvalidHeader

    try:
        return float(Retry().parse_retry_after(headers.get("Retry-After", "0")))
    except (InvalidHeader, ValueError, OverflowError):
        return 0.0


class Halt:
    """Stops threads that sleep or read from a connection."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._open: list[requests.Response] = []

    def now(self) -> None:
        """Stop: end all sleeps, and shut down the connections being read."""
        self._event.set()
        with self._lock:
            for response in self._open:
                # Before urllib3 2.3 there is no shutdown(); the thread ends at its next block.
                with contextlib.suppress(AttributeError, RuntimeError, ValueError, OSError):
                    response.raw.shutdown()

    def check(self) -> None:
        if self._event.is_set():
            raise Halted

    def sleep(self, seconds: float) -> None:
        self._event.wait(seconds)
        self.check()

    @contextlib.contextmanager
    def reading(self, response: requests.Response) -> Iterator[None]:
        """Make `response` stoppable while it is read, and close it at the end."""
        with self._lock:
            self._open.append(response)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._open.remove(response)
            response.close()


def join_all(threads: Iterable[threading.Thread]) -> None:
    """Wait briefly for stopped threads; a later one writes nothing any more."""
    deadline = time.monotonic() + _ENDING
    for thread in threads:
        if thread.ident:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))

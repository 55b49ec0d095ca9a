"""Download files: each completely and with the right hash or not at all; several at once.

`fetch_all` runs a thread for each of a few jobs; a job goes through the addresses of its file,
with as many attempts at each as are worth it, and moves the file to its path when the hash is right.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote, urlsplit

from torchbuild_tasks.errors import DownloadFailed, HashRefused
from torchbuild_tasks.system.net.client import Again, Halt, Net, Refused, Tries, join_all, meaning, redact
from torchbuild_tasks.system.net.transfer import (
    Origin,
    Part,
    Remote,
    Tell,
    ask,
    blocks,
    content_range,
    ends_visibly,
    length,
    origin,
)

if TYPE_CHECKING:
    import requests

_SLICE: Final = 0.2  # seconds: Windows notices a Ctrl-C only between waits
_BLOCK: Final = 1 << 20  # bytes


def fetch(remote: Remote, target: Path, net: Net, tell: Tell) -> str:
    """Download to `target`, whose folder exists; resume from `<target>.part`.

    No other process may fetch to the same target meanwhile.

    Returns:
        The sha256 in hex.

    Raises:
        DownloadFailed: no address gave it, or it cannot be written; a part stays for the next run.
        HashRefused: what came is another file; nothing is kept.
    """
    return fetch_all(((remote, target),), net, tell)[0]


def fetch_all(
    jobs: Sequence[tuple[Remote, Path]],
    net: Net,
    tell: Tell,
    *,
    at_once: int = 4,
    seen: dict[Path, Origin] | None = None,
) -> tuple[str, ...]:
    """Download several files to as many targets, `at_once` at the same time.

    The first error, or Ctrl-C, stops the others and is raised; their parts stay for the next run.

    Args:
        seen: gets what is known of each file's origin, by its target.

    Returns:
        The hashes in the order of `jobs`.
    """
    if len({target for _, target in jobs}) < len(jobs):
        raise ValueError("two downloads to one target")
    halt = Halt()
    todo: queue.SimpleQueue[tuple[int, _Job]] = queue.SimpleQueue()
    ended: queue.SimpleQueue[tuple[int, str | BaseException]] = queue.SimpleQueue()
    all_jobs = [_Job(remote, target, net, tell, halt) for remote, target in jobs]
    for each in enumerate(all_jobs):
        todo.put(each)
    # Daemon threads: one that waits for a dead server must not prevent the exit.
    threads = [
        threading.Thread(target=_work, args=(todo, ended), name="download", daemon=True)
        for _ in jobs[:at_once]
    ]
    hashes = [""] * len(jobs)
    try:
        for thread in threads:
            thread.start()
        for _ in jobs:
            index, outcome = _next(ended)
            if isinstance(outcome, BaseException):
                raise outcome
            hashes[index] = outcome
            if seen is not None and (known := all_jobs[index].part.origin):
                seen[jobs[index][1]] = known
    finally:
        halt.now()
        for job in all_jobs:
            job.part.give_up()
        join_all(threads)
    return tuple(hashes)


def _next(ended: queue.SimpleQueue[tuple[int, str | BaseException]]) -> tuple[int, str | BaseException]:
    while True:
        with contextlib.suppress(queue.Empty):
            return ended.get(timeout=_SLICE)


def _work(
    todo: queue.SimpleQueue[tuple[int, _Job]], ended: queue.SimpleQueue[tuple[int, str | BaseException]]
) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            index, job = todo.get_nowait()
            try:
                job.halt.check()
                ended.put((index, job.run()))
            except BaseException as problem:  # noqa: BLE001 - raised again in the calling thread
                ended.put((index, problem))


class _Job:
    """The download of one file, over all its addresses."""

    def __init__(self, remote: Remote, target: Path, net: Net, tell: Tell, halt: Halt) -> None:
        self.remote = remote
        self.net = net
        self.tell = tell
        self.halt = halt
        self.part = Part(target, every=net.note, room=net.room)
        self._clean = False  # whether it was restarted because of a wrong hash

    def run(self) -> str:
        """Download the file; see `fetch`."""
        refused: dict[str, Refused] = {}
        addresses = list(dict.fromkeys(map(self.net.address, self.remote.urls)))
        if self.net.offline:
            addresses = [address for address in addresses if address.startswith("file:")]
            if not addresses:
                raise self._unavailable()
        self.part.resume()
        try:
            for address in addresses:
                try:
                    return self._from(address)
                except Refused as problem:
                    refused[redact(address)] = problem
        finally:
            self.part.give_up()
        raise DownloadFailed(
            f"{self.remote.name} could not be downloaded.",
            looked=tuple(f"{address}: {problem}" for address, problem in refused.items()),
            next_step=self._way_out([problem.status for problem in refused.values()]),
        )

    def _way_out(self, statuses: Collection[int]) -> str:
        """Return what leads on: after an answer of every server, to ask again does not."""
        means = meaning(statuses)
        if not means:
            return (
                "Check the network and run the same command again: it continues where it stopped. "
                "Behind a firewall set HTTPS_PROXY, or TORCHBUILD_MIRROR to a server or folder with the "
                "files."
            )
        mirrored = any(self.net.address(url) != url for url in self.remote.urls)
        mirror = (
            "put it where TORCHBUILD_MIRROR looks for it, or unset that"
            if mirrored
            else "set TORCHBUILD_MIRROR to a server or folder that has it"
        )
        return (
            f"{means}; the same command gets the same answer. Download it elsewhere and put it at "
            f"{self.part.target}, or {mirror}."
        )

    def _from(self, address: str) -> str:
        if address.startswith("file:"):
            copy(address, self.part, self.remote.size, self._report_bytes)
            return self._finish(address, sure=True)
        tries = Tries(self.remote.name, self.net, self.halt)
        with Receiver(self.remote, address, self.part, self.net, self.tell, self.halt) as receiver:
            while True:
                try:
                    receiver.attempt(whole=self._clean)
                    return self._finish(address, sure=receiver.sure)
                except Again as trouble:
                    self.part.note()
                    tries.wait(trouble, self.part.done)

    def _report_bytes(self, done: int, size: int) -> None:
        self.halt.check()
        self.tell(self.remote.name, done, size)

    def _finish(self, address: str, *, sure: bool) -> str:
        """Move the complete part to its target if it is the right file."""
        part = self.part
        wanted = (self.remote.sha256 or "").lower()
        got = self.part.sha256()
        if wanted and got != wanted:
            pieced = part.pieced
            part.forget()
            if not sure:
                raise Again("what came has another hash, and may have been cut short")
            if pieced and not self._clean:
                self._clean = True
                raise Again("pieces of different answers do not make the right file; from the beginning")
            raise HashRefused(
                f"{self.remote.name} is not the file that was expected.",
                looked=(f"expected sha256 {wanted}", f"got      sha256 {got}", f"from {redact(address)}"),
                next_step="Nothing of it was kept. Either the file at that address was replaced, or it "
                "was changed on the way: compare with another source before you trust it.",
            )
        part.finish()
        return got

    def _unavailable(self) -> DownloadFailed:
        name = self.remote.name
        hash_ = self.remote.sha256
        return DownloadFailed(
            f"{name} is not here, and with --offline nothing is downloaded.",
            looked=(*map(redact, self.remote.urls), *([f"sha256 {hash_}"] if hash_ else [])),
            next_step=f"Download it elsewhere and put it at {self.part.target}, or set TORCHBUILD_MIRROR "
            "to a folder (file:///...) that has it.",
        )


# ---------------- one address of a server


class Receiver:
    """Fills a part from one address, over several attempts."""

    def __init__(self, remote: Remote, address: str, part: Part, net: Net, tell: Tell, halt: Halt) -> None:
        self._remote = remote
        self._address = address
        self._part = part
        self._net = net
        self._tell = tell
        self._halt = halt
        self._session = net.session()
        self.sure = True  # whether a truncated body would have been noticed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def attempt(self, *, whole: bool = False) -> None:
        """Receive the rest of the part.

        Args:
            whole: receive one response from beginning to end, without resuming.

        Raises:
            Again: the part can be resumed.
            Refused: this address will not do.
        """
        self._halt.check()
        part = self._part
        wanted = self._remote.size
        same = not whole and part.origin is not None and part.origin.url == redact(self._address)
        if same and part.done == self._total() == (wanted or part.done):
            return  # killed between the last byte and the move
        headers = _range_headers(part) if same else {}
        response = ask(self._session, self._net, self._address, headers)
        with self._halt.reading(response):
            if headers and response.status_code != 200:
                self._check_rest(response)
            else:
                self._begin(response)
            self._receive(response)
        self._check_end()

    def _begin(self, response: requests.Response) -> None:
        """Begin at zero: the full file was requested, or the rest is not available."""
        if response.status_code != 200:
            raise Again(f"answered {response.status_code} to a plain question", lied=True)
        about = origin(self._address, response)
        if None not in (about.size, self._remote.size) and about.size != self._remote.size:
            raise Again(f"announced {about.size} bytes instead of {self._remote.size}", lied=True)
        self._check_largest(about.size or 0)
        self.sure = ends_visibly(response) or self._remote.size is not None
        if not self.sure and not self._remote.sha256:
            raise Refused("does not say how long the file is, so one that is cut short could not be noticed")
        self._part.restart(about)

    def _check_largest(self, size: int) -> None:
        """Refuse a file without a size in its row that is larger than any known one."""
        if self._remote.size is None and size > self._net.largest:
            self._part.forget()
            raise Refused(
                f"has more than {self._net.largest} bytes, the most of a file whose row gives no `size`"
            )

    def _check_rest(self, response: requests.Response) -> None:
        """Check that a response to `Range` is of the same file, from the end of our part to its end."""
        part = self._part
        about = origin(self._address, response)
        span = content_range(response)
        assert part.origin is not None
        size = part.origin.size
        wrong = ""
        if response.status_code == 416:
            wrong = "does not have the rest of the file"
        elif span is None or size is None or span != (part.done, size - 1, size):
            wrong = "answered with another range than was asked for"
        elif length(response) not in (None, size - part.done):
            wrong = "answered with a range of another length"
        elif part.origin.changed(about):
            wrong = "has another file now than the one that was begun"
        if wrong:
            part.forget()
            raise Again(f"{wrong}; from the beginning", lied=True)
        part.pieced = True

    def _receive(self, response: requests.Response) -> None:
        part = self._part
        size = self._total()
        self._tell(self._remote.name, part.done, size)
        for block in blocks(response.raw, self._net):
            self._halt.check()
            if size is not None and part.done + len(block) > size:
                part.forget()
                raise Again("sent more than it had announced", lied=True)
            self._check_largest(part.done + len(block))
            part.add(block)
            self._tell(self._remote.name, part.done, size)

    def _total(self) -> int | None:
        assert self._part.origin is not None
        return self._part.origin.size if self._part.origin.size is not None else self._remote.size

    def _check_end(self) -> None:
        self._halt.check()  # a stopped connection looks like a complete one
        size = self._total()
        if size is not None and self._part.done < size:
            raise Again(f"the connection ended after {self._part.done} of {size} bytes")


def _range_headers(part: Part) -> dict[str, str]:
    """Return the headers that request the rest, if that is safe."""
    if part.origin is None or not part.done or part.origin.size is None or not part.origin.validator:
        return {}
    return {"Range": f"bytes={part.done}-", "If-Range": part.origin.validator}


# ---------------- one address on this machine: a `file:` mirror


def copy(address: str, part: Part, size: int | None, moved: Callable[[int, int], None]) -> None:
    """Copy `part` from a `file:` address.

    Args:
        size: bytes that it must have, if known.
        moved: is called with bytes so far and bytes in all.

    Raises:
        Refused: it is not there, cannot be read, or has another size.
    """
    try:
        with _local(address).open("rb", buffering=0) as file:
            there = file.seek(0, 2)
            file.seek(0)
            if size not in (None, there):
                raise Refused(f"has {there} bytes instead of {size}")
            part.restart(Origin(url=redact(address), size=there))
            while block := file.read(_BLOCK):
                part.add(block)
                moved(part.done, there)
    except OSError as problem:
        gone = 404 if isinstance(problem, FileNotFoundError) else 0
        raise Refused(problem.strerror or str(problem), status=gone) from problem
    if part.done != there:
        raise Refused("changed while it was copied")


def _local(address: str) -> Path:
    """Return the path of a `file:` address, on this system."""
    from urllib.request import url2pathname

    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost"):
        return Path(f"//{parts.netloc}{unquote(parts.path)}")
    return Path(url2pathname(parts.path))

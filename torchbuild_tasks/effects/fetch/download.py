"""Downloads: one file to one place, whole and right or not at all; several of them at once."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Sequence
from pathlib import Path

from torchbuild_tasks.effects.fetch import disk_mirror
from torchbuild_tasks.effects.fetch.net import Net, shown
from torchbuild_tasks.effects.fetch.part import Part
from torchbuild_tasks.effects.fetch.receiving import Receiver
from torchbuild_tasks.effects.fetch.remote import Remote as Remote
from torchbuild_tasks.effects.fetch.remote import Tell as Tell
from torchbuild_tasks.effects.fetch.tries import Again, Halt, Refused, Tries, join_all
from torchbuild_tasks.errors import DownloadFailed, HashRefused

_SLICE = 0.2  # seconds: Windows notices a Ctrl-C only between waits


def fetch(remote: Remote, target: Path, net: Net, tell: Tell) -> str:
    """Download to `target`, whose folder exists; resumes what `<target>.part` holds.

    No other process may fetch to the same target meanwhile.

    Args:
        tell: is told how far it is.

    Returns:
        The sha256 in hex.

    Raises:
        DownloadFailed: no address gave it, or it cannot be written; a part stays for the next run.
        HashRefused: what came is another file; nothing is kept.
    """
    return fetch_all(((remote, target),), net, tell)[0]


def fetch_all(
    jobs: Sequence[tuple[Remote, Path]], net: Net, tell: Tell, *, at_once: int = 4
) -> tuple[str, ...]:
    """`fetch` several files to as many targets, `at_once` at the same time.

    The first error, or Ctrl-C, stops the others and is raised; their parts stay for the next run.

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
    # Daemons: a thread that waits for a dead server must not keep the program from ending.
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
            except BaseException as problem:  # noqa: BLE001 - raised again in the thread that asked
                ended.put((index, problem))


class _Job:
    """One file on its way, through all its addresses."""

    def __init__(self, remote: Remote, target: Path, net: Net, tell: Tell, halt: Halt) -> None:
        self.remote, self.net, self.tell, self.halt = remote, net, tell, halt
        self.part = Part(target, every=net.note)
        self._clean = False  # whether it was begun anew because of a wrong hash

    def run(self) -> str:
        """The whole download; see `fetch`."""
        looked = []
        addresses = list(dict.fromkeys(map(self.net.address, self.remote.urls)))
        if self.net.offline:
            addresses = [address for address in addresses if address.startswith("file:")]
            if not addresses:
                raise self._not_at_hand()
        self.part.recall()
        try:
            for address in addresses:
                try:
                    return self._from(address)
                except Refused as problem:
                    looked.append(f"{shown(address)}: {problem}")
        finally:
            self.part.give_up()
        raise DownloadFailed(
            f"{self.remote.name} could not be downloaded.",
            looked=tuple(looked),
            next_step="Check the network and run the same command again: it goes on where it stopped. "
            "Behind a firewall set HTTPS_PROXY, or TORCHBUILD_MIRROR to a server or folder with the files.",
        )

    def _from(self, address: str) -> str:
        if address.startswith("file:"):
            disk_mirror.copy(address, self.part, self.remote.size, self._moved)
            return self._checked(address, sure=True)
        tries = Tries(self.remote.name, self.net, self.halt)
        with Receiver(self.remote, address, self.part, self.net, self.tell, self.halt) as receiver:
            while True:
                try:
                    receiver.attempt(whole=self._clean)
                    return self._checked(address, sure=receiver.sure)
                except Again as trouble:
                    self.part.note()
                    tries.wait(trouble, self.part.done)

    def _moved(self, done: int, size: int) -> None:
        self.halt.check()
        self.tell(self.remote.name, done, size)

    def _checked(self, address: str, *, sure: bool) -> str:
        """Move the complete part to its place if it is the right file."""
        part, wanted, got = self.part, (self.remote.sha256 or "").lower(), self.part.sha256()
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
                looked=(f"expected sha256 {wanted}", f"got      sha256 {got}", f"from {shown(address)}"),
                next_step="Nothing of it was kept. Either the file at that address was replaced, or somebody "
                "between here and there changed it: compare with another source before you trust it.",
            )
        part.finish()
        return got

    def _not_at_hand(self) -> DownloadFailed:
        name, hash_ = self.remote.name, self.remote.sha256
        return DownloadFailed(
            f"{name} is not at hand, and with --offline nothing is downloaded.",
            looked=(*map(shown, self.remote.urls), *([f"sha256 {hash_}"] if hash_ else [])),
            next_step=f"Download it elsewhere and put it at {self.part.target}, or set TORCHBUILD_MIRROR "
            "to a folder (file:///...) that has it.",
        )

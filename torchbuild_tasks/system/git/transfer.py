"""Run a git command that can take long: report its progress, and end it if it stalls.

git prints its progress once a second while anything moves. Over HTTP it notices a stall itself
(http.lowSpeedTime); over git:// and ssh it would wait forever for a silent server.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from torchbuild_tasks.system import process
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.stall import patience

# Our git processes for one checkout carry its name, so that those of a killed run can be recognised.
TREE: Final = "TORCHBUILD_TREE"
PATIENCE: Final = 60.0
_QUIET: Final = 2.0  # seconds without output after which a note is made
_LAST_LINES: Final = 12  # last lines of git's output
_STEP: Final = re.compile(r"(?:remote: )?(?P<phase>[A-Z][a-z]+(?: [a-z]+)*): +(?P<percent>\d+)% \(\d+/\d+\)")
_BYTES: Final = re.compile(r", (?P<count>[\d.]+) (?P<unit>bytes|KiB|MiB|GiB)(?: \||,|$)")
_UNITS: Final[Mapping[str, int]] = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_COUNTED: Final = re.compile(r"(?:remote: )?(?:Enumerating|Counting|Total|Unpacking) .*\d")


def git_settings(mirrors: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the settings for every git command: mirrors, time limits, checked packs."""
    return (
        *(f"url.{new}.insteadOf={old}" for old, new in mirrors),
        "http.lowSpeedLimit=10",  # bytes a second: a server sends more than this even while it counts objects
        f"http.lowSpeedTime={int(patience(PATIENCE))}",
        "fetch.unpackLimit=1",
        "fetch.recurseSubmodules=false",
        "submodule.recurse=false",
        "gc.auto=0",
        "maintenance.auto=false",
        *(("core.longpaths=true",) if sys.platform == "win32" else ()),
    )


def _ignore(*text: object) -> None:
    """Ignore a report."""


class Stopped(Exception):
    """Another thread was interrupted, so this one ends, too."""


class _Stalled(Exception):
    pass


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """The time limit for a silent command, and the receiver of progress.

    Args:
        tree: the checkout, or the mirror, that this is about.
        patience: seconds without a word, and without computing, after which a command is ended.
        transfer: called with a name, the bytes that came, and None for their total (git prints none).
        note: called with a line about what else takes its time.
        stop: set when everything is to end.
    """

    tree: str
    patience: float = PATIENCE
    transfer: Callable[[str, int, int | None], None] = _ignore
    note: Callable[[str], None] = _ignore
    stop: threading.Event = msgspec.field(default_factory=threading.Event)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The exit code of a command, and its last lines without progress."""

    rc: int
    words: tuple[str, ...] = ()


def run(
    git: Git, words: tuple[str, ...], name: str, watch: Watch, *, lines: list[str] | None = None
) -> Outcome:
    """Run one git command that may take long.

    Args:
        name: what the progress is called ("third_party/fbgemm").
        lines: gets every line of its output.

    Raises:
        Stopped: `watch.stop` was set meanwhile.
    """
    listener = _Listener(name, watch, lines)
    try:
        rc = process.stream(
            git.argv(words),
            env={**git.environment(words), TREE: watch.tree},
            cwd=None,
            on_block=listener.block,
            on_idle=listener.idle,
        )
    except _Stalled:
        text = f"nothing was heard for {watch.patience:.0f} seconds"
        return Outcome(rc=process.TIMED_OUT, words=(*listener.words, text))
    return Outcome(rc=rc, words=tuple(listener.words))


class _Listener:
    """Receives a command's output, and notices when there is none."""

    def __init__(self, name: str, watch: Watch, lines: list[str] | None) -> None:
        self._name = name
        self._watch = watch
        self._all = lines
        self.words: list[str] = []
        self._heard = self._noted = time.monotonic()
        self._phase = ""
        self._cpu = 0.0

    def block(self, block: bytes) -> None:
        """Process output of git's, whose progress lines end with a carriage return."""
        self._stop()
        self._heard = time.monotonic()
        lines = block.decode(errors="replace").splitlines()
        if self._all is not None:
            self._all += lines
        for line in lines:
            if step := _STEP.match(line):
                self._step(step["phase"], step["percent"], line)
            elif line.strip() and not _COUNTED.match(line):
                self.words.append(line.strip())
        del self.words[:-_LAST_LINES]

    def idle(self, pid: int) -> None:
        """Count half a second without output; end the command if it has also used no CPU for too long."""
        self._stop()
        now = time.monotonic()
        if now - self._heard < _QUIET:
            return
        cpu = _cpu_seconds(pid)
        if cpu > self._cpu + 0.01:
            self._cpu = cpu
            self._heard = now
        if now - self._heard >= self._watch.patience:
            raise _Stalled
        self._tell(f"{self._name}: waiting for an answer" if not self._phase else f"{self._name}: working")

    def _step(self, phase: str, percent: str, line: str) -> None:
        if match := _BYTES.search(line):
            count = int(float(match["count"]) * _UNITS[match["unit"]])
            self._watch.transfer(self._name, count, None)
        elif phase != self._phase or percent != "100":
            self._tell(f"{self._name}: {phase.lower()} {percent}%")
        self._phase = phase

    def _tell(self, text: str) -> None:
        """Report a line, first after two seconds and then every half minute."""
        now = time.monotonic()
        if now - self._noted >= _QUIET:
            self._noted = now + 30.0 - _QUIET
            self._watch.note(text)

    def _stop(self) -> None:
        if self._watch.stop.is_set():
            raise Stopped


def _cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a command and its descendants."""
    import psutil

    used = 0.0
    with contextlib.suppress(psutil.Error, OSError):
        top = psutil.Process(pid)
        for each in (top, *top.children(recursive=True)):
            with contextlib.suppress(psutil.Error, OSError):
                times = each.cpu_times()
                used += times.user + times.system
    return used


Kind = Literal["unreachable", "stalled", "missing", "denied", "full", "long", "owner", "yours", "other"]


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of a failure, and the line of git's that shows it."""

    kind: Kind
    line: str

    @property
    def again(self) -> bool:
        """Say whether another attempt may succeed."""
        return self.kind in ("unreachable", "stalled", "other")


# The first that matches counts. Messages of git 2.39 and curl, from real failures.
_PATTERNS: Final[tuple[tuple[Kind, str], ...]] = (
    ("full", r"No space left on device|Out of diskspace|[Dd]isk quota"),
    ("long", r"Filename too long|File name too long"),
    ("owner", r"dubious ownership"),
    (
        "missing",
        r"couldn't find remote ref|not our ref|unadvertised object|[Rr]epository .*not (?:found|exported)",
    ),
    ("missing", r"does not appear to be a git repository|returned error: 404"),
    ("denied", r"could not read Username|Authentication failed|Permission denied|returned error: 40[13]"),
    (
        "unreachable",
        r"Could not resolve|unable to look up|Connection refused|Failed to connect|Connection timed out",
    ),
    ("unreachable", r"unable to connect|No route to host|Network is unreachable|Could not connect|--offline"),
    ("stalled", r"nothing was heard for|Operation too slow"),
)


def find_reason(words: Sequence[str]) -> Reason:
    """Return the kind of failure, from the last lines of a failed git command."""
    for kind, pattern in _PATTERNS:
        for line in words:
            if re.search(pattern, line):
                return Reason(kind=kind, line=line)
    fatal = [line for line in words if line.startswith(("fatal:", "error:"))]
    line = (fatal or list(words) or ["git said nothing"])[0]
    return Reason(kind="other", line=line)


# What leads on after failures of these kinds; {host} is the server's address.
_ADVICE: Final[tuple[tuple[tuple[Kind, ...], str], ...]] = (
    (
        ("unreachable", "stalled"),
        "If that host cannot be reached from here, name a mirror of it in torchbuild.toml:\n"
        '[mirrors]\n"{host}" = "https://MIRROR/"',
    ),
    (("denied",), "The server wants to know who asks: see whether the address is right, or log in with git."),
    (("full",), "Make room on the disk."),
    (("long",), "Use a shorter folder, such as C:\\pt."),
    (("owner",), "The checkout belongs to another user: git config --global --add safe.directory FOLDER"),
    (("missing",), "If the submodule's address has changed: source reset --third-party"),
    (
        ("yours",),
        "Commit or stash them in there (git stash push -u), or undo them with git restore .; "
        "source reset --third-party --yes throws away all such changes.",
    ),
)


def advice(reasons: Sequence[Reason], url: str) -> str:
    """Return the next steps for all failures of a run."""
    seen = {each.kind for each in reasons}
    match = re.match(r"[a-z+]+://[^/]+/", url)
    host = match[0] if match else url
    lines = [text.replace("{host}", host) for kinds, text in _ADVICE if not seen.isdisjoint(kinds)]
    return "\n".join((*lines, "Run the same command again: what was fetched stays."))

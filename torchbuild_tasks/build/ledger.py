"""Write a run's log, the manifest in the build tree, and the record of the files it wrote.

Nothing is written until a stage opens the ledger or uses the log, so a run that finds
everything up to date leaves the last build's log and manifest as they are.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from torchbuild_tasks.build import ownership
from torchbuild_tasks.build.outputs import Outputs
from torchbuild_tasks.errors import INTERRUPTIONS, BuildFailed, TorchbuildError, UsageError
from torchbuild_tasks.facts.trust import digest
from torchbuild_tasks.model import Command
from torchbuild_tasks.model.history import Peak
from torchbuild_tasks.model.record import MANIFEST_FILE, RECORD_FILE, Manifest, Ran, StageTime
from torchbuild_tasks.system import files, trust
from torchbuild_tasks.system.log import Log, last_write, open_log
from torchbuild_tasks.values import dumps, replace

LOGS: Final = "logs"
LOG: Final = "build"


def now() -> str:
    """Return the time in the manifest's format: ISO 8601, UTC, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def last_log_time(root: Path) -> int | None:
    """Return when the log of a build in this checkout was last written, in nanoseconds; None without one."""
    return last_write(root / files.STATE_DIR / LOGS, LOG)


def last_manifest(build_dir: Path) -> Path:
    """Return the manifest of the last build, or the record of 0.1.0 until a newer build replaces it."""
    record = build_dir / RECORD_FILE
    return record if record.is_file() else build_dir / MANIFEST_FILE


class Ledger:
    """The log, manifest and file record of one run. Enter it around the stages; it records how they end.

    Args:
        manifest: the build that begins.
        outputs: the files that builds write.
        redact: removes credentials from the manifest.
    """

    def __init__(
        self,
        manifest: Manifest,
        root: Path,
        build_dir: Path,
        outputs: Outputs,
        redact: Callable[[Manifest], Manifest],
    ) -> None:
        self.manifest = manifest
        self.environ: Mapping[str, str] | None = None  # in which the commands of the build run
        # Completes the manifest after the build.
        self.epilogue: Callable[[], None] | None = None
        self._root = root
        self._build_dir = build_dir
        self._outputs = outputs
        self._redact = redact
        self._build: ownership.Build | None = None

    @property
    def manifest_path(self) -> Path:
        """The manifest's file, in the build tree."""
        return self._build_dir / MANIFEST_FILE

    @cached_property
    def log(self) -> Log:
        """The run's log, opened at its first use."""
        return open_log(files.state_dir(self._root) / LOGS, LOG, self.manifest.argv)

    def open(self) -> None:
        """Record the files of the tree before its first change, and that a build is running."""
        if self._build is None:
            log_time = self.log.previous_time
            self._build = ownership.begin(self._root, self._build_dir, self._outputs, log_time=log_time)
            self.note(result="running")
            self.save()

    def note(self, **parts: Any) -> None:
        """Set these fields of the manifest, which is written by `save` and at the end."""
        self.manifest = replace(self.manifest, **parts)

    def forget_inputs(self, names: Collection[str]) -> None:
        """Remove inputs that did not reach the build, so that the next plan sees them as changed."""
        self.note(inputs={name: value for name, value in self.manifest.inputs.items() if name not in names})

    def note_command(self, command: Command, environ: Mapping[str, str] | None = None) -> None:
        """Record a command that is about to run."""
        self.environ = environ or self.environ
        self.note(commands=(*self.manifest.commands, Ran(argv=command.argv, cwd=command.cwd)))

    def note_peaks(self, peaks: Iterable[Peak]) -> None:
        """Merge the peak memory of the build's processes into the manifest."""
        known = {each.kind: each for each in self.manifest.peaks}
        for new in peaks:
            old = known.pop(new.kind, replace(new, count=0))
            known[new.kind] = replace(new, bytes=max(old.bytes, new.bytes), count=old.count + new.count)
        self.note(peaks=tuple(known.values()))

    @contextlib.contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Time one stage and record how it ended."""
        start = time.monotonic()
        result = "failed"
        try:
            yield
            result = "ok"
        except INTERRUPTIONS:
            result = "interrupted"
            raise
        finally:
            took = StageTime(stage=title, seconds=round(time.monotonic() - start, 3), result=result)
            self.note(stages=(*self.manifest.stages, took))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._build is not None:
            result = "ok" if kind is None else "interrupted" if issubclass(kind, INTERRUPTIONS) else "failed"
            # Report the error of the build, not a full disk that also prevents the manifest.
            with contextlib.suppress(TorchbuildError) if error else contextlib.nullcontext():
                self.note(result=result, finished=now())
                self.save()
                if self.epilogue:
                    self.epilogue()
                self._build.finish()
        if "log" in self.__dict__:
            self.log.__exit__(kind, error, trace)

    def save(self) -> None:
        """Write the manifest, if the build has changed anything yet.

        Raises:
            BuildFailed: the file cannot be written.
        """
        if self._build is None:
            return
        with files.translate_errors(BuildFailed, self.manifest_path):
            self._build_dir.mkdir(parents=True, exist_ok=True)
        data = dumps(self._redact(self.manifest)).encode()
        files.write_atomic(self.manifest_path, data, error=BuildFailed, private=True)
        place = os.path.realpath(self.manifest_path)
        with contextlib.suppress(UsageError):  # no state folder: `replay` then asks for `trust`
            trust.write_proof("manifests", place, digest(place))
        # Last: a run killed before this leaves the older manifest, and has changed nothing yet.
        record = self._build_dir / RECORD_FILE
        with files.translate_errors(BuildFailed, record):
            files.unlink(record, missing_ok=True)

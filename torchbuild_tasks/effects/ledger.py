"""What a run leaves behind: its log, the record in the build tree, the list of what it made.

Nothing is written until a stage opens the ledger or uses the log, so a run that finds
everything up to date leaves the last build's log and record as they are.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from torchbuild_tasks.effects import files, made
from torchbuild_tasks.effects.log import Log, open_log
from torchbuild_tasks.effects.owned import Outputs
from torchbuild_tasks.errors import BuildFailed, Interrupted, TorchbuildError
from torchbuild_tasks.model import CacheReport, Command
from torchbuild_tasks.model.history import Peak
from torchbuild_tasks.record import BuildRecord, JobserverUse, StageTime, VerifyReport
from torchbuild_tasks.values import dumps, replace

if TYPE_CHECKING:
    from torchbuild_tasks.manifest import Repository

RECORD_FILE: Final = "torchbuild-record.json"
LOGS: Final = "logs"
LOG: Final = "build"


def now() -> str:
    """The time as the record has it: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger:
    """One run's traces. Enter it around the stages; how they end is its last word."""

    def __init__(self, record: BuildRecord, root: Path, build_dir: Path, outputs: Outputs) -> None:
        self.verified: VerifyReport | None = None
        self.caches: tuple[CacheReport, ...] = ()
        self.jobserver: JobserverUse | None = None
        self.repositories: tuple[Repository, ...] | str | None = None  # or why they are not known
        self.commands: tuple[Command, ...] = ()
        self.environ: Mapping[str, str] | None = None
        self._record, self._root, self._build_dir, self._outputs = record, root, build_dir, outputs
        self._build: made.Build | None = None
        # What is written beside the record, once that has its last word.
        self.epilogue: Callable[[BuildRecord], None] | None = None

    @property
    def record_path(self) -> Path:
        """The record's file, in the build tree."""
        return self._build_dir / RECORD_FILE

    @cached_property
    def log(self) -> Log:
        """The run's log, opened at its first use."""
        return open_log(files.state_dir(self._root) / LOGS, LOG, self._record.argv)

    def open(self) -> None:
        """From here on the tree changes: note what was there, and that a build is running."""
        if self._build is None:
            log_time = self.log.previous_time
            self._build = made.begin(self._root, self._build_dir, self._outputs, log_time=log_time)
            self._write("running")

    def forget_inputs(self, names: Collection[str]) -> None:
        """Note that these inputs of the plan did not reach the build, so that the next plan sees it."""
        inputs = {name: value for name, value in self._record.inputs.items() if name not in names}
        self._record = replace(self._record, inputs=inputs)

    def ran(self, command: Command, environ: Mapping[str, str] | None = None) -> None:
        """Note a command that is about to run, for the manifest."""
        self.commands, self.environ = (*self.commands, command), environ or self.environ

    def saw(self, peaks: Iterable[Peak]) -> None:
        """Note what the processes of the build took, beside what was seen of it before."""
        for new in peaks:
            old = next((each for each in self._record.peaks if each.kind == new.kind), new)
            others = tuple(each for each in self._record.peaks if each.kind != new.kind)
            count = new.count + (old.count if old is not new else 0)
            both = replace(new, bytes=max(old.bytes, new.bytes), count=count)
            self._record = replace(self._record, peaks=(*others, both))

    @contextlib.contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Time one stage and note how it ended."""
        start, result = time.monotonic(), "failed"
        try:
            yield
            result = "ok"
        except Interrupted:
            result = "interrupted"
            raise
        finally:
            took = StageTime(stage=title, seconds=round(time.monotonic() - start, 3), result=result)
            self._record = replace(self._record, stages=(*self._record.stages, took))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._build is not None:
            result = "ok" if kind is None else "interrupted" if issubclass(kind, Interrupted) else "failed"
            # The error under way is the one to tell; a full disk that also stops the record is not.
            with contextlib.suppress(TorchbuildError) if error else contextlib.nullcontext():
                self._write(result)
                if self.epilogue:
                    self.epilogue(self._record)
                self._build.finish()
        if "log" in self.__dict__:
            self.log.__exit__(kind, error, trace)

    def _write(self, result: str) -> None:
        finished = None if result == "running" else now()
        self._record = replace(
            self._record,
            result=result,
            finished=finished,
            caches=self.caches,
            verify=self.verified,
            jobserver=self.jobserver,
        )
        with files.told_as(BuildFailed, self.record_path):
            self._build_dir.mkdir(parents=True, exist_ok=True)
        files.write_atomic(self.record_path, dumps(self._record).encode(), error=BuildFailed)

"""What `debug-config` did, as text for a person; and the output of upstream's programs, as it comes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Protocol

from torchbuild_tasks.model import Finding
from torchbuild_tasks.text.show import findings_text


class _File(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def problem(self) -> str: ...
    @property
    def entries(self) -> Mapping[str, Any] | None: ...


class Configured(Protocol):
    """What `flow.debug_config` returns."""

    @property
    def files(self) -> Sequence[_File]: ...
    @property
    def commands(self) -> str: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...


def debug_text(done: Configured, *, dry_run: bool) -> str:
    """The files that have the entries; the entries themselves for a file that was left as it is."""
    lines = []
    for file in done.files:
        if file.problem:
            lines.append(f"{file.path} was left as it is: {file.problem}. Put this into it yourself:")
            lines.append(json.dumps(file.entries, indent=4))
        else:
            lines.append(f"{file.path} {'would get' if dry_run else 'has'} the entries `torchbuild: ...`")
    return "\n".join((*lines, done.commands, "")) + findings_text(done.findings)


class Flushed:
    """A stream that shows each piece at once."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes, /) -> object:
        """Write and flush."""
        self._stream.write(data)
        return self._stream.flush()

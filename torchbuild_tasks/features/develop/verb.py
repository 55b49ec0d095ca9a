"""What a debugger finds on this machine and in the build: looked at for `debug-config` alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Protocol

from torchbuild_tasks.context import Sight
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.features.develop.choose import Debugging
from torchbuild_tasks.features.develop.look import look_at_debugging
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


# ----------------


def debugging(sight: Sight, python: str) -> Debugging:
    """The debugger, the right to attach, the debug information of what is built for this Python."""
    tree, probe = sight.facts.tree, Probe(environ=dict(os.environ))
    packages = (each.packages for each in sight.facts.pythons if each.executable == python)
    build_dir = tree.build_dir or probe.join(tree.root, "build")
    return look_at_debugging(tree.root, build_dir, python, tuple(next(packages, ())), probe)

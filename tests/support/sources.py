"""Drives the actions of `source` without the command line, and says what a checkout holds.

As a program it runs one action: `python -m tests.support.sources STORE URL ACTION [WORD] [FOLDER]`.
"""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.support import git_servers as gits
from tests.support import machines
from torchbuild_tasks.features.source.act import run_source
from torchbuild_tasks.features.source.get import Task
from torchbuild_tasks.model.source import SourceReport
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system.git.transfer import git_settings
from torchbuild_tasks.system.process import Sink


@dataclass
class RecordingReporter:
    """A reporter that records the messages."""

    notes: list[str] = field(default_factory=list)
    transfers: list[tuple[str, int]] = field(default_factory=list)

    def stream(self) -> Sink:
        """Nobody reads it."""
        return io.BytesIO()

    def stage(self, title: str) -> None:
        """Keep a stage."""
        self.notes.append(title)

    def note(self, text: str, *, alone: bool = False) -> None:
        """Keep a note."""
        self.notes.append(text)

    def transfer(self, name: str, done: int, total: int | None) -> None:
        """Keep how far a transfer is."""
        self.transfers.append((name, done))

    def command(self, argv: tuple[str, ...]) -> None: ...
    def block(self, block: bytes) -> None: ...
    def left(self, seconds: float | None, spread: float = 1.0) -> None: ...
    def removal(self, removal: Any) -> None: ...
    def inner(self, title: str) -> Self:
        return self

    def confirm(self, question: str) -> bool:
        """Nobody is there to say yes."""
        return False


def everything(root: Path) -> Callable[[str], bool]:
    """Every submodule is needed."""
    return lambda path: True


def act(
    store: Path,
    url: str,
    action: str,
    ref: str | None = None,
    folder: Path | None = None,
    *,
    said: RecordingReporter | None = None,
    mirrors: tuple[tuple[str, str], ...] = (),
    needs: Callable[[Path], Callable[[str], bool]] = everything,
    **flags: Any,
) -> SourceReport:
    """Run one action."""
    task = Task(
        request=BuildRequest(action=action, ref=ref, **flags),
        facts=machines.linux_facts(),
        report=said or RecordingReporter(),
        store=store,
        url=url,
        config=git_settings(mirrors),
        needs=needs,
    )
    return run_source(task, folder)


def content(root: Path) -> dict[str, str]:
    """Every file of a checkout with its digest, and every repository in it with its commit and its state."""
    found = {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and not {".git", ".torchbuild"} & set(path.relative_to(root).parts)
    }
    found["commits"] = gits.git(root, "rev-parse", "HEAD") + gits.git(
        root, "submodule", "status", "--recursive"
    )
    found["changes"] = gits.git(root, "status", "--porcelain")
    for path in (root, *(link.parent for link in root.rglob("third_party/*/.git"))):
        gits.git(path, "fsck", "--no-dangling")
        assert not list(Path(gits.git(path, "rev-parse", "--absolute-git-dir")).glob("*.lock"))
    return found


if __name__ == "__main__":
    store_, url_, action_, *rest = sys.argv[1:]
    ref_ = rest[0] if rest and rest[0] else None
    act(
        Path(store_),
        url_,
        action_,
        ref_,
        Path(rest[1]) if len(rest) > 1 else None,
        third_party=action_ == "reset",
    )

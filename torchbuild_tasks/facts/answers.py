"""Keep what programs have answered, for as long as neither they nor what they have read changes.

A build with nothing to do would start fifteen programs to hear what the last one has heard, two fifths of its
CPU time (docs/speed.md). Only a build keeps answers, in the folder where nothing that a checkout brings can
write. What sees a build's facts takes them (plan, env, verify, clean); `doctor` asks every program.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

import msgspec

from torchbuild_tasks.system.reading import open_file, read_value

KEPT_FILE: Final = "answers.json"
_LINE: Final = 256  # bytes; the kernel reads as many of a script's first line (BINPRM_BUF_SIZE)
_MOST: Final = 100  # answers; a machine with two compilers of each kind has thirty
# Seconds for which a file must have been left alone: what is written in the same tick of a clock has the
# same time (FAT, at the worst, counts two seconds).
_SETTLED: Final = 2.0
# ldconfig writes it anew when a package brings another library (ldconfig(8)).
_LIBRARIES: Final = "/etc/ld.so.cache"
# Beginnings of names of variables that each terminal sets for itself: no answer depends on them.
_OF_TERMINALS: Final = (
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_",
    "TERM",
    "TMUX",
    "VSCODE_",
    "WINDOWID",
    "XDG_SESSION_",
)

# Size, times of its content and of its entry (ns), and number of a file or folder; None for none there.
Stamp = tuple[int, int, int, int] | None


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a program has answered: exit code, stdout, stderr; and all on which that depends.

    `real` is the program without links, `seen` the stamp of every file and folder that counts.
    """

    argv: tuple[str, ...]
    environ: str
    real: str
    seen: Mapping[str, Stamp]
    output: tuple[int, str, str]


class Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of answers, the newest first."""

    answers: tuple[Answer, ...] = ()


class Answers:
    """The answers that an earlier run has kept in a folder, and those of this run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / KEPT_FILE
        kept = read_value(Kept, self.path) or Kept()
        self._known = {_key(answer): answer for answer in kept.answers}
        self._new: list[Answer] = []

    @property
    def changed(self) -> Kept | None:
        """The content of the file with what this run was answered; None if that is as it was."""
        if not self._new:
            return None
        both = {_key(answer): answer for answer in self._new}
        both |= {key: answer for key, answer in self._known.items() if key not in both}
        return Kept(answers=tuple(both.values())[:_MOST])

    def find(self, argv: Sequence[str], environ: Mapping[str, str]) -> tuple[int, str, str] | None:
        """Return the answer of a command, if it would be the same now."""
        known = self._known.get((tuple(argv), _digest(environ)))
        if known is None or known.real != os.path.realpath(argv[0]):
            return None
        return known.output if all(_stamp(path) == stamp for path, stamp in known.seen.items()) else None

    def keep(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        output: tuple[int, str, str],
        *,
        asked: float,
        reads: Iterable[str] = (),
    ) -> None:
        """Keep the answer of a command, unless more decides about it than can be looked at.

        Args:
            output: its exit code, and what it printed.
            asked: the time at which it was started, in seconds since 1970.
            reads: the files and folders that it has read, or looked for.
        """
        real = os.path.realpath(argv[0])
        if not _answers_for_itself(argv[0], real):
            return
        seen = {path: _stamp(path) for path in (*_around(real), *reads)}
        settled = (asked - _SETTLED) * 1e9
        if all(stamp is None or max(stamp[1:3]) < settled for stamp in seen.values()):
            command = tuple(argv)
            self._new.append(
                Answer(argv=command, environ=_digest(environ), real=real, seen=seen, output=output)
            )


def _key(answer: Answer) -> tuple[tuple[str, ...], str]:
    return answer.argv, answer.environ


def _answers_for_itself(path: str, real: str) -> bool:
    """Say whether a command is answered by the program at its path, and by nothing that this chooses.

    A shim chooses among versions: it is a script, or a link to a program of another name (mise, snap). A
    script that pip has written names the interpreter beside it. Windows' shims are programs of the same name.
    """
    program = Path(real)
    name = PurePath(path).name
    if sys.platform == "win32" or (name not in program.name and program.name not in name):
        return False
    with contextlib.suppress(OSError), open_file(program) as file:
        head = file.read(_LINE)
        if not head.startswith(b"#!"):
            return True
        interpreter = Path(os.fsdecode(head[2:].partition(b"\n")[0].strip()))
        return interpreter.parent == program.parent and interpreter.name.startswith("python")
    return False


def _around(real: str) -> tuple[str, ...]:
    """Return the places by which a program, or a library that it loads, is replaced."""
    folder = PurePath(real).parent
    beside = folder.parent
    return (real, str(folder), str(beside / "lib"), str(beside / "lib64"), _LIBRARIES)


def _stamp(path: str) -> Stamp:
    try:
        info = os.stat(path)  # noqa: PTH116 - hundreds of them
    except (OSError, ValueError):
        return None
    return (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def _digest(environ: Mapping[str, str]) -> str:
    names = sorted(name for name in environ if name != "_" and not name.startswith(_OF_TERMINALS))
    text = "\0".join(f"{name}={environ[name]}" for name in names)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]

"""The `torchbuild` command: one verb with its words and flags."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from types import TracebackType

from torchbuild_tasks import version
from torchbuild_tasks.errors import TorchbuildError
from torchbuild_tasks.verbs import SESSIONS

HEAD = """usage: torchbuild VERB [WORDS] [FLAGS]

Build PyTorch from source and prove the result.

"""
FOOT = """
torchbuild VERB --help    its words and flags
torchbuild --version
"""


SIGPIPE_CODE = 141  # what a shell shows for a program that ended by SIGPIPE


def _tell_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a bug; the error in it may hold a name of somebody else's."""
    import traceback

    from torchbuild_tasks.text.visible import visible

    sys.stderr.write(visible("".join(traceback.format_exception(kind, error, trace))))


def main() -> None:
    """Entry point of the console script."""
    sys.excepthook = _tell_bug
    try:
        try:
            code = run(sys.argv[1:])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # `torchbuild plan | head`: nobody reads on
        # Python flushes once more at its end: https://docs.python.org/3/library/signal.html#note-on-sigpipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = SIGPIPE_CODE
    sys.exit(code)


def run(argv: Sequence[str]) -> int:
    """Run the verb of a command line.

    Returns:
        The exit code: 0, or that of the error (errors.py).
    """
    words = list(argv)
    asks_help = bool(words) and words[0] in ("-h", "--help")
    words = words[1:] if asks_help else words
    if words in (["-V"], ["--version"]):
        sys.stdout.write(f"torchbuild {version()}\n")
        return 0
    if not words:
        sys.stdout.write(overview())
        return 0
    return _run_verb(words[0], ["--help"] if asks_help else words[1:])


def overview() -> str:
    """Return the list of verbs."""
    width = max(map(len, SESSIONS))
    lines = [f"  {name:<{width}}  {session.summary}\n" for name, session in SESSIONS.items()]
    return HEAD + "".join(lines) + FOOT


def _run_verb(name: str, words: list[str]) -> int:
    from torchbuild_tasks.fronts.parsing import parse, unknown_verb
    from torchbuild_tasks.fronts.run import run_verb, show_error

    try:
        if name not in SESSIONS:
            raise unknown_verb(name, tuple(SESSIONS))
        session = SESSIONS[name]
        request = dataclasses.replace(parse(session.verb, words, f"torchbuild {name}"), **session.fixed)
    except TorchbuildError as error:
        show_error(error, as_json="--json" in words)
        return error.exit_code
    return run_verb(session.verb, request)


if __name__ == "__main__":
    main()

"""The `torchbuild` command: one verb with its words and flags."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import get_args

from torchbuild_tasks import version
from torchbuild_tasks.errors import TorchbuildError, UsageError
from torchbuild_tasks.fronts.dependencies import explain_missing
from torchbuild_tasks.verbs import SESSIONS, VERBS, Group, session_name

HELP = ("-h", "--help")
HEAD = """usage: torchbuild VERB [WORDS] [FLAGS]

Build PyTorch from source and verify the result. Begin with: torchbuild doctor

"""
FOOT = """
torchbuild VERB --help            show the words and flags of a verb
torchbuild --version [--verbose]  show the version, and what it runs on
"""


SIGPIPE_CODE = 141  # a shell's exit code for a program ended by SIGPIPE
SIGINT_CODE = 130  # and by Ctrl-C


def _tell_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a bug, with control characters escaped."""
    import traceback

    from torchbuild_tasks.text.visible import visible

    sys.stderr.write(visible("".join(traceback.format_exception(kind, error, trace))))


def _open_streams() -> None:
    """Open closed standard streams on the null device: else the next opened file would get our output."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def main() -> None:
    """Entry point of the console script."""
    # Until `run_verb`, which says how often: reading modules makes many values, and none in a cycle.
    gc.disable()
    sys.excepthook = _tell_bug
    _open_streams()
    try:
        try:
            code = run(sys.argv[1:])
        finally:
            sys.stdout.flush()
    except OSError as error:  # `torchbuild plan | head` stops reading; or a full disk behind a `>`
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO) or error.filename:
            raise
        # Python flushes once more at its end: https://docs.python.org/3/library/signal.html#note-on-sigpipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = SIGPIPE_CODE
        if error.errno != errno.EPIPE:
            code = UsageError.exit_code
            with contextlib.suppress(OSError):  # of a terminal that is closed
                sys.stderr.write(f"\nerror: what this prints cannot be written: {error.strerror}.\n")
    except KeyboardInterrupt:  # before a verb has started: nothing to end or report
        code = SIGINT_CODE
    gc.freeze()  # at its end Python looks for cycles again, in all that the system takes back anyway
    sys.exit(code)


@explain_missing()
def run(argv: Sequence[str]) -> int:
    """Run the verb of a command line.

    Returns:
        The exit code: 0, or that of the error (errors.py).
    """
    words = list(argv)
    asks_help = bool(words) and words[0] in (*HELP, "help")
    words = words[1:] if asks_help else words
    if words and words[0] in ("-V", "--version") and set(words[1:]) <= {"-v", "--verbose", "--json"}:
        sys.stdout.write(_versions(words))
        return 0
    if not words:
        sys.stdout.write(overview())
        return 0
    return _run_verb(words[0], ["--help"] if asks_help else words[1:])


# What a bug report needs.
PARTS = ("nox", "invoke", "msgspec", "rich", "packaging")


def _versions(words: Sequence[str]) -> str:
    """Return the version, and a line about Python and the system; with --verbose all details."""
    import platform
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    values = {"torchbuild": version(), "python": platform.python_version(), "platform": system}
    for name in PARTS:
        try:
            values[name] = version_of(name)
        except PackageNotFoundError:
            values[name] = "not installed"
    values |= {"executable": sys.executable, "package": os.path.dirname(os.path.dirname(__file__))}  # noqa: PTH120
    if "--json" in words:
        import json

        return json.dumps(values) + "\n"
    if {"-v", "--verbose"}.intersection(words):
        return "".join(f"{name:<10}  {value}\n" for name, value in values.items())
    parts = (f"{name} {values[name]}" for name in ("python", "nox", "invoke"))
    return f"torchbuild {version()}\n{', '.join(parts)}, {system}\n"


def overview() -> str:
    """Return the list of verbs, grouped by purpose."""
    from torchbuild_tasks.fronts.output import on_screen

    width = max(map(len, SESSIONS))
    text = HEAD
    for group in get_args(Group):
        lines = (
            f"  {name:<{width}}  {session.summary}\n"
            for name, session in sorted(SESSIONS.items(), key=lambda each: each[0] not in VERBS)
            if VERBS[session.verb].group == group
        )
        text += f"{group}\n{''.join(lines)}\n"
    return on_screen(sys.stdout, text.rstrip("\n") + "\n" + FOOT)


def _run_verb(word: str, words: list[str]) -> int:
    from torchbuild_tasks.fronts.parsing import parse, unknown_verb
    from torchbuild_tasks.fronts.run import run_verb, show_error

    try:
        name = session_name(word)
        if name is None:
            raise unknown_verb(word, tuple(SESSIONS))
        session = SESSIONS[name]
        request = parse(session.verb, words, f"torchbuild {name}", session.fixed)
    except TorchbuildError as error:
        show_error(error, as_json="--json" in (word, *words))
        return error.exit_code
    return run_verb(session.verb, request)


if __name__ == "__main__":
    main()

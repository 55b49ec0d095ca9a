"""The `torchbuild` command: one verb with its words and flags."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Final

from torchbuild_tasks import version
from torchbuild_tasks.errors import TorchbuildError
from torchbuild_tasks.verbs import SESSIONS

HEAD = """usage: torchbuild VERB [WORDS] [FLAGS]

Build PyTorch from source and prove the result.

"""
FOOT = """
torchbuild VERB --help           its words and flags
torchbuild --version [--verbose] what it is, and what it runs on
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
    if words and words[0] in ("-V", "--version") and set(words[1:]) <= {"-v", "--verbose", "--json"}:
        sys.stdout.write(_versions(words))
        return 0
    if not words:
        sys.stdout.write(overview())
        return 0
    return _run_verb(words[0], ["--help"] if asks_help else words[1:])


# What a report of a bug must say: on what it runs.
PARTS = ("nox", "invoke", "msgspec", "rich", "packaging")


def _versions(words: Sequence[str]) -> str:
    """Return the version; what it runs on comes in a second line, all that matters with --verbose."""
    import platform
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    found = {"torchbuild": version(), "python": platform.python_version(), "platform": system}
    for name in PARTS:
        try:
            found[name] = version_of(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    found |= {"executable": sys.executable, "package": os.path.dirname(os.path.dirname(__file__))}  # noqa: PTH120
    if "--json" in words:
        import json

        return json.dumps(found) + "\n"
    if {"-v", "--verbose"}.intersection(words):
        return "".join(f"{name:<10}  {value}\n" for name, value in found.items())
    parts = (f"{name} {found[name]}" for name in ("python", "nox", "invoke"))
    return f"torchbuild {version()}\n{', '.join(parts)}, {system}\n"


# The verbs in the order in which they are needed; those that no group names come last.
GROUPS: Final = {
    "Build": ("doctor", "plan", "build", "build_cpu", "build_cuda", "verify", "package", "clean"),
    "When it fails, and afterwards": ("diagnose", "report", "support", "bootstrap"),
    "Source and versions": ("source", "versions", "builds", "bisect", "test", "bench", "debug-config"),
    "Settings and stores": ("config", "trust", "env", "helpers", "cache", "cluster", "replay", "compare"),
}


def overview() -> str:
    """Return the list of verbs, by what they are for."""
    width = max(map(len, SESSIONS))
    named = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "More": tuple(name for name in SESSIONS if name not in named)}
    text = ""
    for title, names in groups.items():
        there = [name for name in names if name in SESSIONS]
        lines = "".join(f"  {name:<{width}}  {SESSIONS[name].summary}\n" for name in there)
        text += f"{title}\n{lines}\n" if there else ""
    from torchbuild_tasks.fronts.output import on_screen

    return on_screen(sys.stdout, HEAD + text.rstrip("\n") + "\n" + FOOT)


def _run_verb(name: str, words: list[str]) -> int:
    from torchbuild_tasks.fronts.parsing import parse, unknown_verb
    from torchbuild_tasks.fronts.run import run_verb, show_error

    try:
        if name not in SESSIONS:
            raise unknown_verb(name, tuple(SESSIONS))
        session = SESSIONS[name]
        request = parse(session.verb, words, f"torchbuild {name}", session.fixed)
    except TorchbuildError as error:
        show_error(error, as_json="--json" in words)
        return error.exit_code
    return run_verb(session.verb, request)


if __name__ == "__main__":
    main()

"""Print text for a person, wrapped to the screen, and JSON for a program.

A screen has colours if it is a terminal, not CI's, and NO_COLOR is not set (no-color.org); FORCE_COLOR
(force-color.org) enables them anywhere. Lines are wrapped on a terminal, at COLUMNS if that is set; in a
pipe or a file they are not wrapped, whatever COLUMNS is, so that a search finds them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, TextIO

from torchbuild_tasks.errors import BuildFailed, PlanRefused, TorchbuildError
from torchbuild_tasks.fronts.parsing import flags, request_class
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.text.page import plain, styled, wrap_text
from torchbuild_tasks.text.show import finding_text
from torchbuild_tasks.text.visible import visible
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.values import dumps
from torchbuild_tasks.verbs import VERBS


def json_text(value: object) -> str:
    """Write JSON that any program can read, also from a pipe on Windows, which is not UTF-8 there."""
    return dumps(value, ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8"))


def out(text: str) -> None:
    """Print a result; escape control characters, and letters that the pipe's code page lacks."""
    _write(sys.stdout, visible(plain(text)))


def show(text: str) -> None:
    """Print a result for a person, wrapped to the screen."""
    _write(sys.stdout, on_screen(sys.stdout, text))


def err(text: str) -> None:
    """Print an error, as `show` does; stderr itself escapes letters that it lacks."""
    sys.stderr.write(on_screen(sys.stderr, text))


def on_screen(stream: TextIO, text: str) -> str:
    """Return a text for this stream: wrapped, and with or without colours."""
    return wrap_text(text, width=width_of(stream), colours=shows_colours(stream))


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def is_live(stream: TextIO) -> bool:
    """Say whether a stream is an interactive terminal."""
    return stream.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


def shows_colours(stream: TextIO) -> bool:
    """Say whether a stream takes colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_live(stream) and (os.name != "nt" or _takes_sequences(stream))


def width_of(stream: TextIO) -> int | None:
    """Return the width of a line in cells; None if lines are not wrapped."""
    if not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and len(columns) < 6 and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):  # a screen without a file, or of no size
        return None


def _takes_sequences(stream: TextIO) -> bool:
    """Enable colours in a console of Windows; return whether that worked.

    https://learn.microsoft.com/windows/console/setconsolemode (ENABLE_VIRTUAL_TERMINAL_PROCESSING = 4)
    """
    import ctypes

    kernel = getattr(ctypes, "windll").kernel32  # noqa: B009 - only there on Windows
    mode = ctypes.c_ulong()
    handle = kernel.GetStdHandle(-12 if stream is sys.stderr else -11)
    return bool(
        kernel.GetConsoleMode(handle, ctypes.byref(mode)) and kernel.SetConsoleMode(handle, mode.value | 4)
    )


# ---------------- errors and findings as paragraphs to a person, or as an object for a program


_MOST_LINES = 6  # lines of a failed build's output
# A command line of the compiler, which the log has in full.
_COMPILE = re.compile(r"\S*/(?:ccache|sccache|c\+\+|cc|g\+\+|gcc|clang\S*|nvcc)(?:-\d+)? .* -")


def error_text(error: TorchbuildError) -> str:
    """Write an error as a paragraph: what happened, what was looked for, what to do next."""
    parts = [f"\n{styled('error', 'error:')} {error.what}\n"]
    failed = isinstance(error, BuildFailed)
    looked = _select_lines(error.looked) if failed else error.looked
    diagnoses = error.diagnoses if isinstance(error, BuildFailed) else ()
    parts += [f"  {line}\n" for line in looked]
    if isinstance(error, PlanRefused):
        parts += map(finding_text, error.findings)
    if diagnoses:
        from torchbuild_tasks.features.diagnosis.show import diagnoses_text

        parts.append(diagnoses_text(diagnoses[:1]))
    if len(diagnoses) > 1:
        parts.append(f"{len(diagnoses) - 1} more possible: torchbuild diagnose\n")
    if error.next_step:
        parts.append(f"{error.next_step}\n")
    return "".join(parts)


def _select_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the most informative lines of a failed command, without its own command line."""
    shown = [line for line in lines if not _COMPILE.match(line)]
    more = len(shown) - _MOST_LINES
    return (*shown[:_MOST_LINES], f"({more} more lines)") if more > 0 else tuple(shown)


def error_object(error: TorchbuildError) -> dict[str, Any]:
    """Return an error as an object for a program."""
    findings = error.findings if isinstance(error, PlanRefused) else ()
    diagnoses = error.diagnoses if isinstance(error, BuildFailed) else ()
    return {
        "error": type(error).__name__,
        "exit_code": error.exit_code,
        "what": error.what,
        "looked": error.looked,
        "next_step": error.next_step,
        "findings": findings,
        "diagnoses": diagnoses,
    }


# ---------------- commands in printed advice, completed for the checkout of this run

# Flags that name places, and those that decide what is built: no verb remembers them, so that a command
# without them would build something else.
_PLACES: Final = ("source", "name", "config")
_DECIDING: Final = (
    "python", "cpu", "cuda", "cuda_toolkit", "arch", "preset", "build_type", "toolset", "mode", "set"
)  # fmt: skip
_DEVICES: Final = {"--cpu", "--cuda"}
# Verbs without a checkout, and actions whose --source is a new folder.
_ELSEWHERE: Final = ("trust", "cache", "cluster", "completion", "compare", "versions", "get", "mirror")
_COMMAND: Final = re.compile(
    r"\btorchbuild (?P<verb>[a-z][a-z-]+)(?: (?P<action>[a-z]+)\b)?(?P<rest>(?:(?!\btorchbuild )[^\n])*)"
)
_END: Final = re.compile(r"[,;:.)](?=\s|$)")  # of a command in a sentence
_FLAG: Final = re.compile(r"(?<!\S)--[a-z-]+")
_CUDA_ONLY: Final = {"--cuda-toolkit", "--arch"}


def complete_commands(text: str, request: BuildRequest) -> str:
    """Give each `torchbuild VERB` those flags of this run that it needs to be about the same build.

    These are --source, --name and --config, and the flags that decide what is built, where the verb takes
    them and the command says nothing else.
    """
    places = [(flag_name(name), as_word(value)) for name in _PLACES if (value := getattr(request, name))]
    given = [(flag, value) for flag, value in places if value != "."]
    given += [
        each for name in _DECIDING if name not in request.from_environment for each in _said(name, request)
    ]
    return _COMMAND.sub(lambda found: _complete(found, given), text) if given else text


def _said(name: str, request: BuildRequest) -> Iterator[tuple[str, str]]:
    """Return a flag as this command line says it, with each of its values; "" for a switch."""
    value = getattr(request, name)
    values = value if isinstance(value, tuple) else (value,)
    yield from ((flag_name(name), "" if each is True else as_word(each)) for each in values if each)


def _complete(found: re.Match[str], given: Sequence[tuple[str, str]]) -> str:
    verb = found["verb"]
    action = found["action"]
    if verb not in VERBS or verb in _ELSEWHERE or action in _ELSEWHERE:
        return found[0]
    head = f"torchbuild {verb}"
    if action in request_class(verb).actions:
        head += f" {action}"
    words = (f" {flag} {value}".rstrip() for flag, value in given if _lacks(found, flag, value))
    return head + "".join(words) + found[0][len(head) :]


def _lacks(found: re.Match[str], flag: str, value: str) -> bool:
    """Say whether a printed command takes this flag, has none, and is not about what is wrong with it."""
    if flag not in {flag_name(field.name) for field in flags(found["verb"])}:
        return False
    rest = _END.split(found["rest"], maxsplit=1)[0]
    has = set(_FLAG.findall(rest))
    if flag == "--set":  # a variable that the advice or what is above it names may be the one to be dropped
        name = value.lstrip("'\"").partition("=")[0]
        about = "\n".join((*found.string[: found.start()].split("\n")[-2:], rest))
        return not re.search(rf"\b{re.escape(name)}\b", about)
    if flag in _CUDA_ONLY and "--cpu" in has:
        return False
    return not has & (_DEVICES if flag in _DEVICES else {flag})

"""The lines of an env file for cmd.

Straight lines without labels, which cmd can miss in a file that is not ASCII. What the
user's variables hold never stands where cmd parses it: in %PATH% a quote of the user's
would let an & in it start a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from torchbuild_tasks.core.quoting import quote_bat
from torchbuild_tasks.model import EnvOp

# A longer line is an error in cmd. Bytes, not characters: cmd fills its buffer before it decodes.
LINE_BYTES: Final = 8_191
# What the lines below put around a name and a value, generously.
_AROUND: Final = 160


def line_bytes(op: EnvOp) -> int:
    """The size of the longest line that this operation makes."""
    if op.op == "load":
        return 2 * len(quote_bat(call_text(op)).encode()) + len(op.name) + _AROUND
    size = len(f'set "{op.name}={quote_bat(op.value)}"'.encode())
    return size + (_AROUND if op.op == "prepend" else 0)


def list_room(op: EnvOp) -> int:
    """How many characters a list may have before cmd cannot put this entry in front of it."""
    return LINE_BYTES - line_bytes(op)


def call_text(op: EnvOp) -> str:
    """The batch file and its arguments, as the variable `name` remembers them."""
    return " ".join((op.value, *op.arguments))


def begin(ops: Sequence[EnvOp]) -> Iterable[str]:
    """Let cmd read what follows as UTF-8 if a value needs it, and stop if it does not."""
    return () if _is_ascii(ops) else _UTF8_BEGIN.splitlines()


def end(ops: Sequence[EnvOp]) -> Iterable[str]:
    """Put the code page back that was."""
    return () if _is_ascii(ops) else _UTF8_END.splitlines()


def _is_ascii(ops: Sequence[EnvOp]) -> bool:
    return all(op.value.isascii() for op in ops)


def lines(op: EnvOp) -> Iterable[str]:
    """The lines of one operation."""
    match op.op:
        case "set":
            return (f'set "{op.name}={quote_bat(op.value)}"',)
        case "unset":
            return (f'set "{op.name}="',)
        case "prepend":
            return _prepend(op)
        case "load":
            return _load(op)


def _prepend(op: EnvOp) -> Iterable[str]:
    """Take the entry out of the list, then put it in front.

    The length is looked at first: cmd would skip a line that grew too long, and go on
    without the list. Of entries side by side one pass takes out every other one, for they
    share a semicolon: three passes take out seven. No loop does that, since in its body the
    %n of an entry would be the loop's.
    """
    name, value = op.name, quote_bat(op.value)
    return (
        "setlocal EnableDelayedExpansion",
        'set "TORCHBUILD__REST="',
        f'if "!{name}!"=="" set "TORCHBUILD__REST=;"',  # a parent process can hand down empty ones
        f'if defined {name} if "!{name}:~0,-{list_room(op)}!"=="" set "TORCHBUILD__REST=;!{name}!;"',
        "if not defined TORCHBUILD__REST (",
        f"  echo %~nx0: {name} is too long for cmd 1>&2",
        "  endlocal",
        f"  {_PAGE_BACK}",
        "  exit /b 1",
        ")",
        *[f'set "TORCHBUILD__REST=!TORCHBUILD__REST:;{value};=;!"'] * 3,
        f'for /f "delims=" %%p in ("{value}!TORCHBUILD__REST:~0,-1!") do endlocal & set "{name}=%%p"',
    )


def _load(op: EnvOp) -> Iterable[str]:
    """Call the batch file unless its settings are in force already.

    `call` expands a second time and doubles ^ inside quotes, so the file stands in a
    variable that only that second time puts in; its arguments are plain (refusal.py) and
    stay bare, for Visual Studio's files read -vcvars_ver=14.38 as two. `pushd`: they may
    change the folder. Their banner and their errors both come on stdout: to stderr with
    both. `ver` sets the exit code to 0 for a file that ends without one of its own.
    """
    run = "if not defined TORCHBUILD__CODE"
    arguments = "".join(f" {argument}" for argument in op.arguments)
    return (
        f'set "TORCHBUILD__FILE={quote_bat(op.value)}"',
        f'set "TORCHBUILD__CALL={quote_bat(call_text(op))}"',
        'set "TORCHBUILD__CODE="',
        "setlocal EnableDelayedExpansion",
        f'if defined VSCMD_VER if defined VCToolsVersion if "!{op.name}!"=="!TORCHBUILD__CALL!"'
        ' (endlocal & set "TORCHBUILD__CODE=0")',
        f"{run} endlocal",
        f'{run} set "{op.name}="',
        "ver >nul",
        "pushd .",
        f'{run} call "%%TORCHBUILD__FILE%%"{arguments} 1>&2',
        f'{run} set "TORCHBUILD__CODE=%ERRORLEVEL%"',
        "popd",
        *_stop_if(
            'not "%TORCHBUILD__CODE%"=="0"',
            '"%TORCHBUILD__FILE%" failed with exit code %TORCHBUILD__CODE%',
            "%TORCHBUILD__CODE%",
        ),
        *_stop_if("not defined VCToolsVersion", '"%TORCHBUILD__FILE%" has set no VCToolsVersion', "1"),
        f'set "{op.name}=%TORCHBUILD__CALL%"',
        *_FORGET,
    )


_FORGET: Final = tuple(f'set "TORCHBUILD__{name}="' for name in ("FILE", "CALL", "CODE"))


def _stop_if(condition: str, words: str, code: str) -> Iterable[str]:
    """End the file with a sentence; cmd expands % in the block before it runs the block."""
    return (
        f"if {condition} (",
        f"  echo %~nx0: {words} 1>&2",
        f"  {_PAGE_BACK}",
        *(f"  {line}" for line in _FORGET),
        f"  exit /b {code}",
        ")",
    )


# Without a console chcp fails, and cmd would turn every letter into two: so two letters of
# three bytes each are read back, and a third one stops the file. No code page but UTF-8 makes two of them.
_CHCP: Final = r"%SystemRoot%\System32\chcp.com"
_PAGE_BACK: Final = (
    f'if defined TORCHBUILD__PAGE {_CHCP} %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="'
)
_UTF8_BEGIN: Final = f"""\
rem Values below are not ASCII: cmd reads this file as UTF-8 from here on.
for /f "tokens=2 delims=:." %%c in ('{_CHCP}') do set "TORCHBUILD__PAGE=%%c"
{_CHCP} 65001 >nul 2>&1
set "TORCHBUILD__PROBE=\u20ac\u20ac"
if not "%TORCHBUILD__PROBE:~0,2%"=="%TORCHBUILD__PROBE%" (
  echo %~nx0: nothing was set, for cmd cannot read UTF-8 here ^(chcp 65001 fails without a console^) 1>&2
  {_PAGE_BACK}
  set "TORCHBUILD__PROBE="
  exit /b 1
)
set "TORCHBUILD__PROBE="
"""
_UTF8_END: Final = f"""\
rem Back to the code page that was.
{_PAGE_BACK}
"""

"""The lines of an env file: how each shell quotes a value, sets, unsets and prepends, and loads a batch file.

PowerShell is 5.1, which is part of Windows, and newer ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog.templates import fill
from torchbuild_tasks.model import EnvOp

# ---------------- POSIX sh and fish


def quote_sh(value: str) -> str:
    """Return one word of POSIX sh: single quotes, in which nothing but a single quote is special."""
    return "'" + value.replace("'", "'\\''") + "'"


def sh_lines(op: EnvOp) -> Iterable[str]:
    """Return the lines of one operation for POSIX sh."""
    match op.op:
        case "set":
            return (f"export {op.name}={quote_sh(op.value)}",)
        case "unset":
            return (f"unset -v {op.name}",)
    return (
        f"torchbuild__new={quote_sh(op.value)} torchbuild__old=${{{op.name}:+:${op.name}}}:",
        'while case $torchbuild__old in *:"$torchbuild__new":*) ;; *) false ;; esac; do',
        '  torchbuild__old=${torchbuild__old%%:"$torchbuild__new":*}:'
        '${torchbuild__old#*:"$torchbuild__new":}',
        "done",
        f'export {op.name}="$torchbuild__new${{torchbuild__old%:}}"',
        "unset -v torchbuild__new torchbuild__old",
    )


def quote_fish(value: str) -> str:
    """Return one word of fish: its single quotes know two escapes, of the quote and of the backslash."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_lines(op: EnvOp) -> Iterable[str]:
    """Return the lines of one operation for fish."""
    name, value = op.name, quote_fish(op.value)
    match op.op:
        case "set":
            return (f"set -gx {name} {value}",)
        case "unset":  # a universal variable would still be exported, and is not ours to erase
            words = f"env_set.fish: {name} is a universal variable; erase it: set -e -U {name}"
            return (
                f"set -e -g {name}",
                f"if set -q -U -x {name}; echo '{words}' >&2; return 1; end",
            )
    return (
        f'if test -n "${name}"; set -gx --path {name} "${name}"; else; set -gx --path {name}; end',
        f"while contains -- {value} ${name}; set -e -g {name}[(contains -i -- {value} ${name})]; end",
        f"set -gx --path {name} {value} ${name}",
    )


# ---------------- cmd


def quote_bat(value: str) -> str:
    """Return the text between `=` and the last quote of `set "NAME=..."`.

    cmd expands % everywhere. A quote in the value ends the quoting for what follows it,
    up to the next one; there, and only there, ^ takes the meaning from an operator.
    """
    out, quoted = [], True
    for character in value.replace("%", "%%"):
        if character == '"':
            quoted = not quoted
        out.append("^" + character if character in "&|<>" and not quoted else character)
    return "".join(out)


# A longer line is an error in cmd. Bytes, not characters: cmd fills its buffer before it decodes.
LINE_BYTES: Final = 8_191
# What the lines below put around a name and a value, generously.
_AROUND: Final = 160


def line_bytes(op: EnvOp) -> int:
    """Return the size of the longest line that this operation makes."""
    if op.op == "load":
        return 2 * len(quote_bat(call_text(op)).encode()) + len(op.name) + _AROUND
    size = len(f'set "{op.name}={quote_bat(op.value)}"'.encode())
    return size + (_AROUND if op.op == "prepend" else 0)


def list_room(op: EnvOp) -> int:
    """Return how many characters a list may have before cmd cannot put this entry in front of it."""
    return LINE_BYTES - line_bytes(op)


def call_text(op: EnvOp) -> str:
    """Return the batch file and its arguments, as the variable `name` remembers them."""
    return " ".join((op.value, *op.arguments))


def begin(ops: Sequence[EnvOp]) -> Iterable[str]:
    """Let cmd read what follows as UTF-8 if a value needs it, and stop if it does not."""
    return () if _is_ascii(ops) else _UTF8_BEGIN.splitlines()


def end(ops: Sequence[EnvOp]) -> Iterable[str]:
    """Put the code page back that was."""
    return () if _is_ascii(ops) else _UTF8_END.splitlines()


def _is_ascii(ops: Sequence[EnvOp]) -> bool:
    return all(op.value.isascii() for op in ops)


def bat_lines(op: EnvOp) -> Iterable[str]:
    """Return the lines of one operation for cmd."""
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
    variable that only that second time puts in; its arguments are plain (env_files.py) and
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


# ---------------- PowerShell


# A line break to some reader of a .ps1, or invisible in it.
_PS1_APART: Final = re.compile(r"([\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff])")


def quote_ps1(value: str) -> str:
    """Return an expression of PowerShell: single-quoted pieces joined with control characters by number.

    Curly single quotes end a string there just as the straight one does. Line breaks go
    by number, because the file's own line ends are CRLF.
    """
    pieces = [piece for piece in _PS1_APART.split(value) if piece]
    words = [f"[char]0x{ord(p):02X}" if _PS1_APART.match(p) else _ps1_text(p) for p in pieces]
    if not words or not words[0].startswith("'"):
        words.insert(0, "''")  # text first, so that + joins instead of adding numbers
    return words[0] if len(words) == 1 else "(" + " + ".join(words) + ")"


def _ps1_text(piece: str) -> str:
    return "'" + re.sub("(['\u2018\u2019\u201a\u201b])", r"\1\1", piece) + "'"


def ps1_lines(op: EnvOp) -> Iterable[str]:
    """Return the lines of one operation for PowerShell."""
    name, value = op.name, quote_ps1(op.value)
    match op.op:
        case "set":
            return (f"$env:{name} = {value}",)
        case "unset":
            return (f"Remove-Item -LiteralPath 'Env:{name}' -ErrorAction Ignore",)
        case "prepend":
            rest = f"$env:{name} -split [IO.Path]::PathSeparator"
            return (
                f"$env:{name} = (@({value}) + @({rest} | Where-Object {{ $_ -cne '' -and $_ -cne {value} }}))"
                " -join [IO.Path]::PathSeparator",
            )
        case "load":
            return _load_ps1(op)


def _load_ps1(op: EnvOp) -> Iterable[str]:
    fields = {
        "name": op.name,
        "text": quote_ps1(call_text(op)),
        "file": quote_ps1(f'"{op.value}"'),
        "call": " ".join(("call %TORCHBUILD__FILE%", *op.arguments)),
    }
    return fill(_LOAD, fields).splitlines()


# cmd runs the batch file and lists its environment; every line that is new is taken over.
# The command holds no quotes, since each PowerShell hands them on in a way of its own: they
# come inside the variables. The list goes through a file in UTF-16 (cmd /u), which no code
# page touches. `call` reads its line twice, so env_files.py lets no % and no ^ into it. The
# inner braces keep the variables of this block to itself.
_LOAD: Final = r"""
if (-not ($env:VSCMD_VER -and $env:VCToolsVersion -and $env:@{name} -ceq @{text})) { & {
    $list = [IO.Path]::GetTempFileName()
    $env:TORCHBUILD__FILE = @{file}
    $env:TORCHBUILD__LIST = '"' + $list + '"'
    try {
        Remove-Item -LiteralPath 'Env:@{name}' -ErrorAction Ignore
        $before = Get-ChildItem Env: | ForEach-Object { "$($_.Name)=$($_.Value)" -split '\r\n|\r|\n' }
        & "$env:SystemRoot\System32\cmd.exe" /d /v:off /c '@{call} 1>&2 && %SystemRoot%\System32\cmd.exe /d /u /c set >%TORCHBUILD__LIST%'
        if ($LASTEXITCODE -ne 0) { throw "$env:TORCHBUILD__FILE failed with exit code $LASTEXITCODE" }
        # PROMPT is what cmd itself adds.
        $after = [IO.File]::ReadAllLines($list, [Text.Encoding]::Unicode) -notlike 'PROMPT=*'
        $names = @('PROMPT') + @($after | ForEach-Object { ($_ -split '=', 2)[0] })
        Get-ChildItem Env: | Where-Object { $names -notcontains $_.Name } | Remove-Item
        foreach ($line in $after | Where-Object { $_ -like '?*=*' -and $before -cnotcontains $_ }) {
            $variable, $value = $line -split '=', 2
            [Environment]::SetEnvironmentVariable($variable, $value)
        }
        if (-not $env:VCToolsVersion) { throw "$env:TORCHBUILD__FILE has set no VCToolsVersion" }
        $env:@{name} = @{text}
    } finally {
        Remove-Item -LiteralPath $list
        Remove-Item -LiteralPath 'Env:TORCHBUILD__FILE', 'Env:TORCHBUILD__LIST' -ErrorAction Ignore
    }
} }
""".strip()  # noqa: E501 - a command of cmd's cannot be broken


LINES: Final[Mapping[str, Callable[[EnvOp], Iterable[str]]]] = {
    "sh": sh_lines,
    "bat": bat_lines,
    "ps1": ps1_lines,
    "fish": fish_lines,
}

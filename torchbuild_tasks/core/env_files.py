"""The text of an env file for each shell, made of operations and a template.

In every shell the file may be loaded twice: `prepend` takes an entry out of the list
before it puts it in front, so a list never grows and the order is always the file's. An
unset or empty list becomes the one entry, since an empty entry means the current folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from torchbuild_tasks.core.quoting import bat_room, quote_bat, quote_fish, quote_ps1, quote_sh, refusal
from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.model import EnvOp, Finding
from torchbuild_tasks.templates import fill

_COMMENT_LENGTH: Final = 400  # cmd fails on long lines, comments too


def file_name(shell: str) -> str:
    """The name of the file that this shell loads."""
    return f"env_set.{shell}"


def refusals(shell: str, ops: Sequence[EnvOp]) -> tuple[Finding, ...]:
    """One error for each operation that this shell cannot carry."""
    return tuple(_finding(shell, op, reason) for op in ops if (reason := refusal(shell, op)))


def _finding(shell: str, op: EnvOp, reason: str) -> Finding:
    name = _plain(op.name)
    return Finding(
        id="env-file",
        status="error",
        text=f"{file_name(shell)} cannot {op.op} {name}: {reason}",
        fix=f"Change or drop {name} (--set, torchbuild.toml), or write another file with --env-shell.",
    )


def render(shell: str, template: str, ops: Sequence[EnvOp], *, checkout: str, writer: str) -> str:
    """Fill the template's text; lines end in \\n here and as the shell wants them in `encode`.

    Raises:
        EnvFileError: the shell cannot carry an operation, or the template has an unknown name.
    """
    if refused := refusals(shell, ops):
        raise EnvFileError(
            f"{file_name(shell)} cannot carry every value.",
            looked=tuple(finding.text for finding in refused),
            next_step=refused[0].fix,
        )
    lines = (line for op in ops for line in (*_why(shell, op), *_LINES[shell](op)))
    fields = {
        "writer": _comment(shell, writer),
        "checkout": _comment(shell, checkout),
        "ops": "\n".join(_in_utf8(lines, ops) if shell == "bat" else lines),
    }
    return fill(template, fields)


def encode(shell: str, text: str) -> bytes:
    """The bytes of the file: CRLF for Windows' shells, and a mark by which PowerShell 5.1 knows UTF-8."""
    if shell in ("bat", "ps1"):  # their values hold no line breaks: bat refuses them, ps1 numbers them
        text = text.replace("\n", "\r\n")
    return text.encode("utf-8-sig" if shell == "ps1" else "utf-8")


def _plain(text: str) -> str:
    """One line of printable text, so that a comment cannot end before its end."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_COMMENT_LENGTH]


def _comment(shell: str, text: str) -> str:
    if shell != "bat":
        return _plain(text)
    # rem expands %, answers /?, and some cmd may go on to the next line after ^
    return _plain(text).replace("%", "%%").replace("/?", "/ ?").rstrip("^ ")


def _why(shell: str, op: EnvOp) -> tuple[str, ...]:
    """The reason. The name first: cmd looks at the first word after rem, and at no other."""
    mark = "rem" if shell == "bat" else "#"
    return (f"{mark} {op.name}: {_comment(shell, op.because)}",) if op.because else ()


def _sh(op: EnvOp) -> Iterable[str]:
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


def _fish(op: EnvOp) -> Iterable[str]:
    name, value = op.name, quote_fish(op.value)
    match op.op:
        case "set":
            return (f"set -gx {name} {value}",)
        case "unset":  # a universal variable would still be exported, and is not ours to erase
            words = f"{file_name('fish')}: {name} is a universal variable; erase it: set -e -U {name}"
            return (
                f"set -e -g {name}",
                f"if set -q -U -x {name}; echo '{words}' >&2; return 1; end",
            )
    return (
        f'if test -n "${name}"; set -gx --path {name} "${name}"; else; set -gx --path {name}; end',
        f"while contains -- {value} ${name}; set -e -g {name}[(contains -i -- {value} ${name})]; end",
        f"set -gx --path {name} {value} ${name}",
    )


def _ps1(op: EnvOp) -> Iterable[str]:
    name, value = op.name, quote_ps1(op.value)
    match op.op:
        case "set":
            return (f"$env:{name} = {value}",)
        case "unset":
            return (f"Remove-Item -LiteralPath 'Env:{name}' -ErrorAction Ignore",)
    rest = f"$env:{name} -split [IO.Path]::PathSeparator"
    return (
        f"$env:{name} = (@({value}) + @({rest} | Where-Object {{ $_ -cne '' -and $_ -cne {value} }}))"
        " -join [IO.Path]::PathSeparator",
    )


def _bat(op: EnvOp) -> Iterable[str]:
    """Straight lines without labels, which cmd can miss in a file that is not ASCII.

    The list goes through a delayed variable: in %PATH% a quote that the user's list holds
    would let an & in it start a command. Its length is looked at first: cmd would skip a line
    that grew too long, and go on without the list.
    """
    name, value = op.name, quote_bat(op.value)
    match op.op:
        case "set":
            return (f'set "{name}={value}"',)
        case "unset":
            return (f'set "{name}="',)
    return (
        "setlocal EnableDelayedExpansion",
        'set "TORCHBUILD__REST="',
        f'if not defined {name} set "TORCHBUILD__REST=;"',
        f'if defined {name} if "!{name}:~0,-{bat_room(op)}!"=="" set "TORCHBUILD__REST=;!{name}!;"',
        "if not defined TORCHBUILD__REST (",
        f"  echo %~nx0: {name} is too long for cmd 1>&2",
        f"  {_PAGE_BACK}",
        "  exit /b 1",
        ")",
        f'set "TORCHBUILD__REST=!TORCHBUILD__REST:;{value};=;!"',
        f'for /f "delims=" %%p in ("{value}!TORCHBUILD__REST:~0,-1!") do endlocal & set "{name}=%%p"',
    )


_LINES: Final[Mapping[str, Callable[[EnvOp], Iterable[str]]]] = {
    "sh": _sh,
    "bat": _bat,
    "ps1": _ps1,
    "fish": _fish,
}


def _in_utf8(lines: Iterable[str], ops: Sequence[EnvOp]) -> Iterable[str]:
    """Let cmd read the lines as UTF-8 if a value needs it, and stop if it does not."""
    if all(op.value.isascii() for op in ops):
        return lines
    return (*_UTF8_BEGIN.splitlines(), *lines, *_UTF8_END.splitlines())


# Without a console chcp fails, and cmd would turn every letter into two: so two letters of
# three bytes each are read back, and a third one stops the file. No code page but UTF-8 makes two of them.
_PAGE_BACK: Final = r"if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1"
_UTF8_BEGIN: Final = f"""\
rem Values below are not ASCII: cmd reads this file as UTF-8 from here on.
for /f "tokens=2 delims=:." %%c in ('%SystemRoot%\\System32\\chcp.com') do set "TORCHBUILD__PAGE=%%c"
%SystemRoot%\\System32\\chcp.com 65001 >nul 2>&1
set "TORCHBUILD__PROBE=\u20ac\u20ac"
if not "%TORCHBUILD__PROBE:~0,2%"=="%TORCHBUILD__PROBE%" (
  echo %~nx0: nothing was set, for cmd cannot read UTF-8 here ^(chcp 65001 fails without a console^) 1>&2
  {_PAGE_BACK}
  set "TORCHBUILD__PAGE="
  set "TORCHBUILD__PROBE="
  exit /b 1
)
"""
_UTF8_END: Final = f"""\
rem Back to the code page that was.
{_PAGE_BACK}
set "TORCHBUILD__PAGE="
set "TORCHBUILD__PROBE="
"""

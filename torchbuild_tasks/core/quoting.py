"""How each shell writes a value, and which operations it cannot carry.

A value comes back equal or is refused with the reason; nothing is escaped halfway. The
`quote_*` functions may count on `refusal` having said None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from torchbuild_tasks.model import EnvOp

# execve: one "NAME=value" and its NUL (MAX_ARG_STRLEN). A shell exports more without a
# word, and then no program starts.
LINUX_BYTES: Final = 131_072
# "The maximum size of a user-defined environment variable is 32,767 characters."
WINDOWS_CHARACTERS: Final = 32_767
# A longer line is an error in cmd. Bytes, not characters: cmd fills its buffer before it decodes.
CMD_LINE_BYTES: Final = 8_191
# What the prepend lines of env_files.py put around a name and a value, generously.
_CMD_AROUND: Final = 160

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# A line break to some reader of a .ps1, or invisible in it.
_PS1_APART: Final = re.compile(r"([\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff])")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names that a shell computes, keeps read-only or gives a type, so that what is assigned does
# not come back: measured with bash, dash and busybox sh, and in lower case with zsh.
_SH_OWN: Final = _words("""
    _ PWD OLDPWD SHLVL PPID UID EUID GID EGID USERNAME OPTIND OPTARG LINENO RANDOM SRANDOM SECONDS
    BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_COMPAT
    BASH_LINENO BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO BASH_XTRACEFD COMP_WORDBREAKS
    DIRSTACK EPOCHREALTIME EPOCHSECONDS FUNCNAME FUNCNEST GROUPS HISTCMD PIPESTATUS SHELLOPTS
    ARGC COLUMNS DIRSTACKSIZE ERRNO HISTCHARS HISTSIZE KEYBOARD_HACK KEYTIMEOUT LINES LISTMAX LOGCHECK
    MAILCHECK SAVEHIST TMOUT TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTY TTYIDLE WATCH ZSH_EVAL_CONTEXT
    ZSH_SUBSHELL
    aliases argv builtins cdpath commands dirstack dis_aliases dis_builtins dis_functions
    dis_functions_source dis_galiases dis_patchars dis_reswords dis_saliases fignore fpath funcfiletrace
    funcsourcetrace funcstack functions functions_source functrace galiases histchars history historywords
    jobdirs jobstates jobtexts keymaps mailpath manpath module_path modules nameddirs options parameters
    patchars path pipestatus prompt psvar reswords saliases signals status termcap terminfo userdirs
    usergroups watch widgets zsh_eval_context zsh_scheduled_events
""")
_FISH_OWN: Final = _words("""
    _ PWD SHLVL FISH_VERSION COLUMNS LINES fish_kill_signal fish_killring fish_pid
    fish_terminal_color_theme history hostname pipestatus status status_generation umask version
""")
_BAT_OWN: Final = _words("""
    CD DATE TIME RANDOM ERRORLEVEL CMDCMDLINE CMDEXTVERSION HIGHESTNUMANODENUMBER FIRMWARE_TYPE
    __CD__ __APPDIR__
""")
# The lists in which fish puts "." for an empty element.
_FISH_DOTTED: Final = frozenset({"PATH", "MANPATH", "CDPATH"})


def quote_sh(value: str) -> str:
    """One word of POSIX sh: single quotes, in which nothing but a single quote is special."""
    return "'" + value.replace("'", "'\\''") + "'"


def quote_fish(value: str) -> str:
    """One word of fish: its single quotes know two escapes, of the quote and of the backslash."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_ps1(value: str) -> str:
    """An expression of PowerShell: single-quoted pieces joined with control characters by number.

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


def quote_bat(value: str) -> str:
    """The text between `=` and the last quote of `set "NAME=..."`.

    cmd expands % everywhere. A quote in the value ends the quoting for what follows it,
    up to the next one; there, and only there, ^ takes the meaning from an operator.
    """
    out, quoted = [], True
    for character in value.replace("%", "%%"):
        if character == '"':
            quoted = not quoted
        out.append("^" + character if character in "&|<>" and not quoted else character)
    return "".join(out)


def refusal(shell: str, op: EnvOp) -> str | None:
    """Why this shell cannot carry this operation exactly, as a clause; None when it can."""
    checks = [_name, *([] if op.op == "unset" else _VALUE[shell])]
    reasons = (check(op) for check in (_owned(shell), *checks))
    return next((reason for reason in reasons if reason), None)


def _owned(shell: str) -> Callable[[EnvOp], str | None]:
    own = _OWN[shell]
    fold = str.upper if shell in ("bat", "ps1") else str

    def check(op: EnvOp) -> str | None:
        if op.name.lower().startswith("torchbuild__"):
            return "names that begin with torchbuild__ are the env file's own helpers"
        return "the shell keeps this variable for itself" if fold(op.name) in own else None

    return check


def _name(op: EnvOp) -> str | None:
    if _NAME.fullmatch(op.name):
        return None
    return "a name is made of ASCII letters, digits and _, and does not begin with a digit"


def _text(op: EnvOp) -> str | None:
    """What no environment or no UTF-8 file holds."""
    if "\0" in op.value:
        return "a value cannot hold NUL, which ends it"
    if any("\ud800" <= character <= "\udfff" for character in op.value):
        return "the value is not Unicode text (it holds a lone surrogate, or bytes that are no UTF-8)"
    return None


def _linux_size(op: EnvOp) -> str | None:
    size = len(f"{op.name}={op.value}".encode(errors="surrogatepass")) + 1
    if size <= LINUX_BYTES:
        return None
    return f"{size:,} bytes with its name; Linux starts no program with more than {LINUX_BYTES:,} in one"


def _windows_size(op: EnvOp) -> str | None:
    size = len(f"{op.name}={op.value}".encode("utf-16-le", "surrogatepass")) // 2 + 1
    if size <= WINDOWS_CHARACTERS:
        return None
    return f"{size:,} characters with its name; a Windows variable holds {WINDOWS_CHARACTERS:,}"


def _empty_unsets(op: EnvOp) -> str | None:
    """PowerShell before 7.5, and cmd in every version."""
    return "an empty value would unset it" if not op.value else None


def _prepended(separator: str) -> Callable[[EnvOp], str | None]:
    def check(op: EnvOp) -> str | None:
        if op.op != "prepend":
            return None
        if not op.value:
            return "an empty entry of a list means the current folder"
        if separator in op.value:
            return f"the value holds {separator!r}, which separates the entries of the list"
        return None

    return check


def _fish_list(op: EnvOp) -> str | None:
    if op.op == "set" and op.name in _FISH_DOTTED and "" in op.value.split(":"):
        return "fish writes '.' for an empty entry of this list"
    return None


def _bat_line(op: EnvOp) -> str | None:
    if control := _CONTROL.search(op.value):
        return f"a line of a .bat cannot hold the control character {control[0]!r}"
    bare = "\n".join(op.value.split('"')[1::2])  # what stands outside of quotes
    if sign := next((sign for sign in ("/?", "^") if sign in bare), None):
        return f"cmd does not take {sign} as text where a quote in the value comes before it"
    size = _bat_size(op)
    if size <= CMD_LINE_BYTES:
        return None
    return f"its longest line would have {size:,} bytes; cmd reads {CMD_LINE_BYTES:,}"


def _bat_size(op: EnvOp) -> int:
    size = len(f'set "{op.name}={quote_bat(op.value)}"'.encode())
    return size + (_CMD_AROUND if op.op == "prepend" else 0)


def bat_room(op: EnvOp) -> int:
    """How many characters a list may have before cmd cannot put this entry in front of it."""
    return CMD_LINE_BYTES - _bat_size(op)


def _bat_entry(op: EnvOp) -> str | None:
    """To look for an entry in a list, cmd has only !list:entry=!, which has signs of its own."""
    sign = next((sign for sign in '"!^=' if sign in op.value), None)
    if op.op == "prepend" and sign:
        return f"cmd cannot look for an entry with {sign} in a list"
    return None


_OWN: Final[Mapping[str, frozenset[str]]] = {
    "sh": _SH_OWN,
    "bat": _BAT_OWN,
    "ps1": frozenset(),
    "fish": _FISH_OWN,
}
_VALUE: Final[Mapping[str, tuple[Callable[[EnvOp], str | None], ...]]] = {
    "sh": (_text, _linux_size, _prepended(":")),
    "bat": (_text, _prepended(";"), _empty_unsets, _bat_line, _bat_entry),
    "ps1": (_text, _prepended(";"), _empty_unsets, _windows_size),
    "fish": (_text, _linux_size, _prepended(":"), _fish_list),
}

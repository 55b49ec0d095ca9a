"""The env files: the text that each shell loads, made from the plan's operations and a template.

The lines of each shell are in env_lines.py. What a shell cannot carry is named here, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog.templates import fill
from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.model import EnvFile, EnvOp, Finding
from torchbuild_tasks.options import SHELLS
from torchbuild_tasks.plan import env_lines
from torchbuild_tasks.plan.env_lines import LINE_BYTES, line_bytes
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.visible import visible
from torchbuild_tasks.values import replace

_COMMENT_LENGTH: Final = 400  # cmd fails on long lines, comments too


def plan_env_files(
    question: Question, ops: tuple[EnvOp, ...], templates: Mapping[str, str], writer: str
) -> tuple[EnvFile, ...]:
    """Return the finished texts; none for a shell that cannot carry the values (a finding reports it)."""
    root = question.facts.tree.root
    return tuple(
        EnvFile(
            shell=shell,
            path=question.join(file_name(shell)),
            text=render(shell, templates[shell], ops, checkout=root, writer=writer),
        )
        for shell in shells(question)
        if not refusals(shell, ops)
    )


def check_env_files(question: Question, ops: tuple[EnvOp, ...]) -> tuple[Finding, ...]:
    """Report what an env file cannot carry: an error for the build's own shell and one asked for by name.

    Of `all` the others are only left out, with a warning: on Windows sh can carry no path.
    """
    own, *others = shells(question)
    if question.value("env_shell", "") != "all":
        return tuple(finding for shell in (own, *others) for finding in refusals(shell, ops))
    refused = (finding for shell in others for finding in refusals(shell, ops))
    return (*refusals(own, ops), *(replace(finding, status="warn") for finding in refused))


def shells(question: Question) -> tuple[str, ...]:
    """Return the shells to write an env file for; the host's own is always among them."""
    own = "bat" if question.facts.host.os == "windows" else "sh"
    asked = question.choose("env shell", "env_shell", own, "").value
    wanted = SHELLS if asked == "all" else (asked,)
    return tuple(dict.fromkeys((own, *wanted)))


def file_name(shell: str) -> str:
    """Return the name of the file that this shell loads."""
    return f"env_set.{shell}"


def refusals(shell: str, ops: Sequence[EnvOp]) -> tuple[Finding, ...]:
    """Return one error for each operation that this shell cannot carry."""
    return tuple(
        _finding(shell, op, reason) for op in ops if (reason := refusal(shell, op) or repeat_refusal(op, ops))
    )


def _finding(shell: str, op: EnvOp, reason: str) -> Finding:
    name = _plain(op.name)
    fix = f"Change or drop {name} (--set, torchbuild.toml), or write another file with --env-shell."
    if op.op == "prepend":
        fix = f"Move what lies there to a folder without it: {op.value}"
    if shell in ("sh", "fish") and (op.op == "load" or _OF_DRIVE.match(op.value)):
        fix = "Take a shell of Windows: --env-shell bat, or ps1."
    text = f"{file_name(shell)} cannot {op.op} {name}: {reason}"
    return Finding.error("env-file", text, fix)


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
    lines = [line for op in ops for line in (*_why(shell, op), *env_lines.LINES[shell](op))]
    if shell == "bat":
        lines = [*env_lines.begin(ops), *lines, *env_lines.end(ops)]
    fields = {
        "writer": _comment(shell, writer),
        "checkout": _comment(shell, checkout),
        "ops": "\n".join(lines),
    }
    return fill(template, fields)


def encode(shell: str, text: str) -> bytes:
    """Encode the file: CRLF for Windows' shells, and a mark by which PowerShell 5.1 knows UTF-8."""
    if shell in ("bat", "ps1"):  # their values hold no line breaks: bat refuses them, ps1 numbers them
        text = text.replace("\n", "\r\n")
    return text.encode("utf-8-sig" if shell == "ps1" else "utf-8")


def _plain(text: str) -> str:
    """Return one line of printable text, so that a comment cannot end before its end."""
    words = visible(text)
    if not words.isprintable():
        words = "".join(c if c.isprintable() else " " for c in words)
    return " ".join(words.split())[:_COMMENT_LENGTH]


def _comment(shell: str, text: str) -> str:
    if shell != "bat":
        return _plain(text)
    # rem expands %, answers /?, and some cmd may go on to the next line after ^
    return _plain(text).replace("%", "%%").replace("/?", "/ ?").rstrip("^ ")


def _why(shell: str, op: EnvOp) -> tuple[str, ...]:
    """Return the reason. The name first: cmd looks at the first word after rem, and at no other."""
    mark = "rem" if shell == "bat" else "#"
    return (f"{mark} {op.name}: {_comment(shell, op.because)}",) if op.because else ()


# execve: one "NAME=value" and its NUL (MAX_ARG_STRLEN). A shell exports more without a
# word, and then no program starts.
LINUX_BYTES: Final = 131_072
# "The maximum size of a user-defined environment variable is 32,767 characters."
WINDOWS_CHARACTERS: Final = 32_767

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# A drive or a share, and none of the signs that no Windows path holds.
_BATCH_FILE: Final = re.compile(r'(?:[A-Za-z]:\\|\\\\)[^"<>|*?\x00-\x1f\x7f]+')
_PLAIN_ARGUMENT: Final = re.compile(r"[A-Za-z0-9_.:=+/\\-]+")
# What Visual Studio's batch files put their own folders in front of.
_EXTENDED: Final = frozenset({"PATH", "INCLUDE", "EXTERNAL_INCLUDE", "LIB", "LIBPATH"})


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


def refusal(shell: str, op: EnvOp) -> str | None:
    """Say why this shell cannot carry this operation exactly, as a clause; None when it can."""
    of_value = {"unset": (), "load": _LOAD[shell]}.get(op.op, _VALUE[shell])
    reasons = (check(op) for check in (_own_name(shell), _name, *of_value))
    return next((reason for reason in reasons if reason), None)


def repeat_refusal(op: EnvOp, ops: Sequence[EnvOp]) -> str | None:
    """Say why an operation among others would not come out the same when the file is loaded twice."""
    if op.op not in ("set", "unset") or op.name.upper() not in _EXTENDED:
        return None
    if not any(other.op == "load" for other in ops):
        return None
    return "the compiler's batch file adds to this list, and loading the env file again would take that away"


def _own_name(shell: str) -> Callable[[EnvOp], str | None]:
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
    """Return what no environment or no UTF-8 file holds."""
    if "\0" in op.value:
        return "a value cannot hold NUL, which ends it"
    if _SURROGATE.search(op.value):
        return "the value is not Unicode text (it holds a lone surrogate, or bytes that are not UTF-8)"
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
    """Refuse an empty value: cmd, and PowerShell before 7.5, unset the variable."""
    return "an empty value would unset it" if not op.value else None


def _list_entry(separator: str) -> Callable[[EnvOp], str | None]:
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
    return _bat_size(op)


def _bat_size(op: EnvOp) -> str | None:
    size = line_bytes(op)
    if size <= LINE_BYTES:
        return None
    return f"its longest line would have {size:,} bytes; cmd reads {LINE_BYTES:,}"


def _bat_entry(op: EnvOp) -> str | None:
    """Refuse what !list:entry=! cannot search for: cmd has nothing else to look for an entry in a list."""
    sign = next((sign for sign in '"!^=' if sign in op.value), None)
    if op.op == "prepend" and sign:
        return f"cmd cannot look for an entry with {sign} in a list"
    return None


def _no_batch_file(op: EnvOp) -> str | None:
    return "it runs a batch file, which only cmd and PowerShell can"


def _batch_file(op: EnvOp) -> str | None:
    if not _BATCH_FILE.fullmatch(op.value):
        return "a batch file is named by its full Windows path"
    odd = [argument for argument in op.arguments if not _PLAIN_ARGUMENT.fullmatch(argument)]
    return f"cmd might not hand on the argument {odd[0]!r} as it is" if odd else None


def _ps1_batch_file(op: EnvOp) -> str | None:
    """Refuse % and ^ in a path: on a command line `call` expands them a second time."""
    if sign := next((sign for sign in "%^" if sign in op.value), None):
        return f"PowerShell calls the batch file through cmd, which would change the {sign} in its path"
    return None


_OWN: Final[Mapping[str, frozenset[str]]] = {
    "sh": _SH_OWN,
    "bat": _BAT_OWN,
    "ps1": frozenset(),
    "fish": _FISH_OWN,
}
_VALUE: Final[Mapping[str, tuple[Callable[[EnvOp], str | None], ...]]] = {
    "sh": (_text, _linux_size, _list_entry(":")),
    "bat": (_text, _list_entry(";"), _empty_unsets, _bat_line, _bat_entry),
    "ps1": (_text, _list_entry(";"), _empty_unsets, _windows_size),
    "fish": (_text, _linux_size, _list_entry(":"), _fish_list),
}
_LOAD: Final[Mapping[str, tuple[Callable[[EnvOp], str | None], ...]]] = {
    "sh": (_no_batch_file,),
    "bat": (_text, _batch_file, _bat_size),
    "ps1": (_text, _batch_file, _ps1_batch_file, _bat_size),
    "fish": (_no_batch_file,),
}

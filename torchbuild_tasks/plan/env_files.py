"""The env files: the text that each shell loads, made from the plan's operations and a template.

The lines of each shell are in env_lines.py, what a shell cannot carry in env_limits.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog.templates import fill
from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.model import EnvFile, EnvOp, Finding
from torchbuild_tasks.options import SHELLS
from torchbuild_tasks.plan import env_lines
from torchbuild_tasks.plan.env_limits import refusal, repeat_refusal
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
    words = "".join(c if c.isprintable() else " " for c in visible(text))
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

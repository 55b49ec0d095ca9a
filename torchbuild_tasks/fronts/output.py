"""Results on stdout: text for a person, JSON for a program."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from torchbuild_tasks.errors import BuildFailed, PlanRefused, TorchbuildError
from torchbuild_tasks.features.diagnosis.show import diagnoses_text
from torchbuild_tasks.model import Finding
from torchbuild_tasks.values import dumps


def json_text(value: object) -> str:
    """JSON that any program can read, also from a pipe on Windows, which is no UTF-8 there."""
    return dumps(value, ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8"))


def out(text: str) -> None:
    """Print a result; a letter that the code page of a pipe lacks is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


# ---------------- errors and findings as paragraphs to a person, or as an object for a program


MARK = {"ok": "ok     ", "warn": "warning", "error": "error  ", "unknown": "unknown", "skipped": "skipped"}


_OF_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|.*\.(?:exe|bat|cmd)$", re.IGNORECASE)


def typed(argv: Sequence[str]) -> str:
    """A command as it could be typed into a shell of the system that its program is of."""
    if argv and _OF_WINDOWS.match(argv[0]):
        import subprocess

        return subprocess.list2cmdline(argv)
    return shlex.join(argv)


def finding_text(finding: Finding) -> str:
    """One finding with its mark; what to do stands under it."""
    fix = f"           -> {finding.fix}\n" if finding.fix else ""
    return f"  {MARK[finding.status]}  {finding.text}\n{fix}"


def error_text(error: TorchbuildError) -> str:
    """An error as a paragraph: what happened, what was looked for, what to do next."""
    parts = [f"\nerror: {error.what}\n"]
    parts += [f"  {line}\n" for line in error.looked]
    if isinstance(error, PlanRefused):
        parts += map(finding_text, error.findings)
    if isinstance(error, BuildFailed):
        parts.append(diagnoses_text(error.diagnoses))
    if error.next_step:
        parts.append(f"{error.next_step}\n")
    return "".join(parts)


def error_object(error: TorchbuildError) -> dict[str, Any]:
    """The same for a program."""
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

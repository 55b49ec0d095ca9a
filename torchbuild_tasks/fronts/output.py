"""Results on stdout: text for a person, JSON for a program."""

from __future__ import annotations

import sys
from typing import Any

from torchbuild_tasks.errors import BuildFailed, PlanRefused, TorchbuildError
from torchbuild_tasks.features.diagnosis.show import diagnoses_text
from torchbuild_tasks.text.show import finding_text
from torchbuild_tasks.text.visible import visible
from torchbuild_tasks.values import dumps


def json_text(value: object) -> str:
    """Write JSON that any program can read, also from a pipe on Windows, which is no UTF-8 there."""
    return dumps(value, ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8"))


def out(text: str) -> None:
    """Print a result; what acts on a terminal is escaped, and a letter that the code page of a pipe lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(visible(text).encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def err(text: str) -> None:
    """Print an error, as `out` does; stderr escapes letters that it lacks by itself."""
    sys.stderr.write(visible(text))


# ---------------- errors and findings as paragraphs to a person, or as an object for a program


def error_text(error: TorchbuildError) -> str:
    """Write an error as a paragraph: what happened, what was looked for, what to do next."""
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

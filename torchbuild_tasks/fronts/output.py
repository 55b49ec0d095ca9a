"""Results on stdout: text for a person, JSON for a program."""

from __future__ import annotations

import sys

from torchbuild_tasks.values import dumps


def json_text(value: object) -> str:
    """JSON that any program can read, also from a pipe on Windows, which is no UTF-8 there."""
    return dumps(value, ascii=(sys.stdout.encoding or "").lower() not in ("utf-8", "utf8"))


def out(text: str) -> None:
    """Print a result; a letter that the code page of a pipe lacks is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()

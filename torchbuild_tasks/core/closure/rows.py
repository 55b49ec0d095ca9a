"""Which row knows a library."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from torchbuild_tasks.catalog.rows import LibraryRow


def row_of(name: str, rows: Sequence[LibraryRow]) -> LibraryRow | None:
    """The first row that knows a file of this name; DLLs are compared in small letters."""
    known = name.lower() if name.lower().endswith((".dll", ".pyd")) else name
    return next((row for row in rows if any(fnmatchcase(known, pattern) for pattern in row.files)), None)

"""Facts of another machine: a `doctor --json` dump, or the archive of `support`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Facts
from torchbuild_tasks.values import from_json

SUPPORT_FACTS: Final = "facts.json"  # in the archive of `support`


def read_facts(path: Path) -> Facts:
    """Read a `doctor --json` dump, whole or its facts alone, or the archive of `support`.

    Raises:
        UsageError: no such file, no JSON, or not such a dump.
    """
    try:
        data: Any = json.loads(_dump(path).decode("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}", next_step="Make one with: doctor --json") from None
    return from_json(Facts, data.get("facts", data) if isinstance(data, dict) else data, "facts")


def _dump(path: Path) -> bytes:
    """The bytes of a dump; of an archive those of its facts."""
    data = path.read_bytes()
    if not data.startswith(b"PK"):
        return data
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(SUPPORT_FACTS)
    except (zipfile.BadZipFile, KeyError):
        raise UsageError(
            f"{path} is no archive of `support` with facts in it", next_step="Make one with: support"
        ) from None

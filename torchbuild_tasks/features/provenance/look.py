"""Look at the licences of a checkout and its submodules."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from torchbuild_tasks.catalog.packaging import LicenceRow
from torchbuild_tasks.features.provenance.choose import Licence, identify_licence
from torchbuild_tasks.system.reading import read_bytes

_NAMES: Final = ("licen", "copying", "unlicense")  # LICENSE, LICENCE.md, COPYING.MPL2 ...
_TOO_LONG: Final = 1 << 20  # bytes


def look_at_licences(root: Path, path: str, rows: Iterable[LicenceRow]) -> tuple[Licence, ...]:
    """Return what the files of licences say that lie at the top of a repository, by name."""
    rows, found = tuple(rows), []
    for file in sorted((root / path).iterdir()):
        if file.name.lower().startswith(_NAMES) and file.is_file() and file.stat().st_size < _TOO_LONG:
            name = f"{path}/{file.name}".lstrip("/")
            text = read_bytes(file).decode("utf-8", "replace")  # names of authors are in any encoding
            found.append(Licence(file=name, id=identify_licence(text, rows)))
    return tuple(found)

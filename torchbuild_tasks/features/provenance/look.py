"""Look at the licences of a checkout and its submodules, and at the statement of a wheel."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.catalog.packaging import LicenceRow
from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.features.provenance.choose import PREDICATE, STATEMENT, Licence, identify_licence
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.values import parse_json

_NAMES: Final = ("licen", "copying", "unlicense")  # LICENSE, LICENCE.md, COPYING.MPL2 ...
_TOO_LONG: Final = 1 << 20  # bytes


def look_at_licences(root: Path, path: str, rows: Iterable[LicenceRow]) -> tuple[Licence, ...]:
    """Return the texts of the licence files at the top of a repository, by name."""
    rows, licences = tuple(rows), []
    for file in sorted((root / path).iterdir()):
        if file.name.lower().startswith(_NAMES) and file.is_file() and file.stat().st_size < _TOO_LONG:
            name = f"{path}/{file.name}".lstrip("/")
            text = read_bytes(file).decode("utf-8", "replace")  # names of authors are in any encoding
            licences.append(Licence(file=name, id=identify_licence(text, rows)))
    return tuple(licences)


def read_statement(path: Path) -> Any:
    """Return a statement of provenance as JSON.

    Raises:
        PackageRefused: it is not one.
    """
    try:
        statement = parse_json(read_bytes(path))
    except ValueError as error:
        raise PackageRefused(f"{path} is not a statement: {error}.", next_step="Get it again.") from None
    kinds = (statement.get("_type"), statement.get("predicateType")) if isinstance(statement, dict) else ()
    if kinds != (STATEMENT, PREDICATE):
        raise PackageRefused(
            f"{path} is not a statement of provenance.",
            looked=(f"wanted: {STATEMENT} with {PREDICATE}",),
            next_step="Get the one that was made with the wheel.",
        )
    return statement

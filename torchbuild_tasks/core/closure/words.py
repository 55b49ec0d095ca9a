"""What a break in the closure means, in sentences, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog.rows import LibraryRow
from torchbuild_tasks.core.closure.rows import row_of
from torchbuild_tasks.model.closure import Break
from torchbuild_tasks.values import replace

_VARIABLES: Final = ("LD_LIBRARY_PATH", "PATH")
_FOLDERS: Final = 12


def told(found: Break, rows: Sequence[LibraryRow]) -> Break:
    """The break with its sentence, its fix and the packages that bring what is lacking."""
    row = row_of(found.library, rows) if found.library else None
    packages = _packages(found, row) if row and found.kind not in ("twice", "shadowed") else {}
    return replace(found, text=_text(found, row), fix=_fix(found, row, packages), packages=packages)


def _packages(found: Break, row: LibraryRow) -> dict[str, str]:
    """What brings it on the system that the file is of."""
    elsewhere = ("apt", "dnf") if found.library.lower().endswith(".dll") else ("winget",)
    return {manager: name for manager, name in row.packages.items() if manager not in elsewhere}


def base(path: str) -> str:
    """The name of a file, of either system."""
    return re.split(r"[/\\]", path)[-1]


def folder(path: str) -> str:
    """The folder of a file, of either system."""
    return path[: len(path) - len(base(path))].rstrip("/\\") or "/"


def _text(found: Break, row: LibraryRow | None) -> str:
    name = f"{found.library} ({row.what})" if row else found.library
    by = f", which {base(found.chain[-1])} needs" if found.chain else ""
    at = f" {found.path}" + (f" (found by: {found.how})" if found.how else "")
    has = f"; {found.better} has it" if found.better else ""
    really = f", which calls itself {found.detail}," if found.detail not in ("", found.library) else ""
    lacking = ", ".join(found.wanted) + (
        f" and {found.count - len(found.wanted)} more" if _more(found) else ""
    )
    match found.kind:
        case "missing":
            return f"{name} is missing{by}{f': there is no {found.path}' if found.path else ''}."
        case "damaged":
            return f"{name} is damaged: {found.path} is {found.detail}{by}."
        case "other machine":
            return f"{name} is for another processor: {found.path} is {found.detail}{by}."
        case "version":
            return f"{name} is an older one:{at} lacks {lacking}{by}{has}."
        case "symbol" if found.library:
            return f"{name} is another one than torch was built with:{at}{really} lacks {lacking}{by}{has}."
        case "symbol":
            return f"{base(found.chain[-1])} needs {lacking}, and no library that is loaded has it."
        case "twice":
            return f"{found.detail} is there twice: {found.better} and {found.path}."
        case "shadowed":
            return f"{name} comes from {found.path} ({found.how}), before torch's own {found.better}."
        case _:
            return f"{name} is old:{at} is {found.detail} {base(found.chain[-1])}."


def _more(found: Break) -> bool:
    return found.count > len(found.wanted)


def looked(found: Break) -> str:
    """The folders in which it was looked for, the first dozen by name."""
    more = len(found.looked) - _FOLDERS
    return ", ".join(found.looked[:_FOLDERS]) + (f" and {more} more" if more > 0 else "")


def _fix(found: Break, row: LibraryRow | None, packages: Mapping[str, str]) -> str:
    """Take out of the way what comes first wrongly; else bring what is lacking."""
    if found.kind == "twice":
        return "Keep one of them: two in one process can crash it or slow it down."
    if found.how in _VARIABLES and found.kind != "missing":
        return f"Take {folder(found.path)} out of {found.how}."
    if found.how == "LD_PRELOAD":
        return f"Take {found.path} out of LD_PRELOAD."
    if found.kind == "symbol" and not found.library:
        return "Libraries of two builds are mixed: install torch anew, or torchbuild build --clean."
    parts = [_brought(packages), row.fix if row else ""]
    return " ".join(filter(None, parts))


def _brought(packages: Mapping[str, str]) -> str:
    names = [f"{manager}: {name}" for manager, name in packages.items()]
    return f"It comes with {'; '.join(names)}." if names else ""

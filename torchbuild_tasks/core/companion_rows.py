"""Which release of torchvision or torchaudio belongs to a torch."""

from __future__ import annotations

from packaging.version import Version

from torchbuild_tasks.catalog import Catalog, CompanionReleaseRow
from torchbuild_tasks.catalog.match import admits


def newest_release(catalog: Catalog, name: str, torch: Version | None) -> CompanionReleaseRow | None:
    """The newest release of a project that builds against this torch; None when none is known to."""
    return next((row for row in reversed(releases_of(catalog, name)) if admits(row.torch, torch)), None)


def releases_of(catalog: Catalog, name: str) -> list[CompanionReleaseRow]:
    """The releases of a project, ascending."""
    rows = [row for row in catalog.companion_release if row.name == name]
    return sorted(rows, key=lambda row: Version(row.version))

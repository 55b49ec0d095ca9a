"""Which torchvision and torchaudio belong to a torch, those with the stable ABI included."""

from __future__ import annotations

from typing import Final

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.support.for_each import each_case
from torchbuild_tasks.catalog import Catalog, load_catalog
from torchbuild_tasks.features.companions.choose import newest_release, releases_of

# The last of each that the cases below know of: those of later rows may be newer.
KNOWN: Final = {"torchvision": Version("0.29.2"), "torchaudio": Version("2.11.0")}


def catalog_of_then() -> Catalog:
    """The rows without those that came after the cases were written."""
    rows = (row for row in load_catalog().companion_release if Version(row.version) <= KNOWN[row.name])
    return Catalog(companion_release=tuple(rows))


@each_case(
    ("name", "torch", "version"),
    [
        ("torchvision", "2.13.0", "0.28.0"),
        ("torchvision", "2.13.0a0+git1234567", "0.28.0"),
        ("torchvision", "1.13.1", "0.14.1"),
        ("torchvision", "2.14.0a0", "0.29.0"),
        ("torchvision", "2.14.0", "0.29.2"),
        ("torchvision", "2.15.0a0", "0.29.2"),
        ("torchvision", "2.99.0", "0.29.2"),
        ("torchvision", "1.9.1", "0.10.1"),
        ("torchaudio", "1.1.0", None),
        ("torchaudio", "2.10.0", "2.10.0"),
        ("torchaudio", "2.11.0", "2.11.0"),
        ("torchaudio", "2.15.0", "2.11.0"),
        ("torchaudio", "1.1.0", None),
        ("torchvision", None, None),
    ],
)
def test_the_newest_release_that_builds_against_a_torch(
    name: str, torch: str | None, version: str | None
) -> None:
    row = newest_release(catalog_of_then(), name, Version(torch) if torch else None)
    assert (row and row.version) == version


@each_case("name", ["torchvision", "torchaudio"])
def test_rows_ascend_and_their_specifiers_parse(name: str) -> None:
    rows = releases_of(load_catalog(), name)
    assert len({row.version for row in rows}) == len(rows) > 10
    for row in rows:
        assert SpecifierSet(row.torch) and SpecifierSet(row.wheel) is not None and row.source


def test_what_a_wheel_asks_is_admitted_by_its_row() -> None:
    for row in load_catalog().companion_release:
        for wanted in SpecifierSet(row.wheel):
            assert SpecifierSet(row.torch).contains(wanted.version, prereleases=True), row

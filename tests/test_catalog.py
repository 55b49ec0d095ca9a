"""What must hold for every row, checked over all of them; never a copy of the table."""

from __future__ import annotations

import itertools

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchbuild_tasks.catalog import (
    TABLES,
    CheckRow,
    EntryRow,
    OutputRow,
    PresetRow,
    TorchRow,
    VariableRow,
    load_catalog,
    make_row,
)
from torchbuild_tasks.core.rows import admits, variable_row
from torchbuild_tasks.request import BUILD_TYPES, MODES, PRESETS

CATALOG = load_catalog()
ERAS = ("setuptools", "scikit-build-core")


def test_a_misspelt_column_names_file_and_row() -> None:
    with pytest.raises(TypeError, match=r"data/torch.toml, \[\[torch\]\] row 3.*columns are version"):
        make_row(TorchRow, {"versoin": "1.1"}, "data/torch.toml, [[torch]] row 3")


def test_no_table_is_empty() -> None:
    assert all(getattr(CATALOG, table) for table in TABLES)


@pytest.mark.parametrize("row", CATALOG.torch, ids=lambda row: row.version)
def test_torch_rows(row: TorchRow) -> None:
    assert len(Version(row.version).release) == 2
    for specifier in (row.python, row.gcc, row.cmake):
        SpecifierSet(specifier)
    assert row.cxx in (11, 14, 17, 20)
    assert row.source
    names = [Requirement(text).name for text in row.requires]
    assert len(names) == len(set(names))
    assert "setuptools" in names


def test_torch_rows_ascend_and_demands_never_fall() -> None:
    ordered = sorted(CATALOG.torch, key=lambda row: Version(row.version))
    assert list(CATALOG.torch) == ordered
    assert len({row.version for row in ordered}) == len(ordered)
    for older, newer in itertools.pairwise(ordered):
        assert older.cxx <= newer.cxx
        assert older.released < newer.released


def test_every_era_and_mode_has_an_entry() -> None:
    for era, mode in itertools.product(ERAS, MODES):
        assert [row for row in CATALOG.entry if (row.era, row.mode) == (era, mode)]


@pytest.mark.parametrize("row", CATALOG.entry, ids=lambda row: f"{row.era}-{row.mode}-{row.torch}")
def test_entry_rows(row: EntryRow) -> None:
    assert row.era in ERAS
    assert row.mode in MODES
    assert row.argv[0] == "{python}"
    SpecifierSet(row.torch)


def test_presets_are_those_of_the_flag() -> None:
    assert {row.name for row in CATALOG.preset} == set(PRESETS)


@pytest.mark.parametrize("row", CATALOG.preset, ids=lambda row: row.name + row.os)
def test_preset_rows(row: PresetRow) -> None:
    assert row.build_type in BUILD_TYPES
    assert row.disk > 0
    assert row.os in ("", "linux", "windows")
    for name, value in row.variables.items():
        assert isinstance(value, str)
        assert variable_row(CATALOG, name, ERAS[0], None), f"{name} is read by nothing"


@pytest.mark.parametrize("row", CATALOG.variable, ids=lambda row: row.name + row.era + row.torch)
def test_variable_rows(row: VariableRow) -> None:
    assert row.era in ("", *ERAS)
    assert row.needs in ("nothing", "build", "reconfigure", "clean")
    SpecifierSet(row.torch)
    # A row that an earlier one hides says nothing: its own name must find it.
    if "*" not in row.name:
        for era in (row.era,) if row.era else ERAS:
            version = next((r.version for r in reversed(CATALOG.torch) if admits(row.torch, r.version)), None)
            found = variable_row(CATALOG, row.name, era, Version(version) if version else None)
            assert found is not None
            assert found.name == row.name


def test_variable_rows_are_unique() -> None:
    keys = [(row.name, row.era, row.torch) for row in CATALOG.variable]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("row", CATALOG.check, ids=lambda row: f"{row.check}-{row.key}")
def test_check_rows(row: CheckRow) -> None:
    assert row.because
    assert bool(row.key) == bool(row.wanted or row.variable)
    assert not (row.wanted and row.variable)
    row.wanted.format(folder="", version="", commit="", debug="", build_type="")


@pytest.mark.parametrize("row", CATALOG.output, ids=lambda row: row.era + row.pattern)
def test_output_rows(row: OutputRow) -> None:
    assert row.era in ("", *ERAS)
    assert row.what
    assert not row.pattern.startswith("/")
    assert ".." not in row.pattern.split("/")


def test_submodule_rows() -> None:
    for row in CATALOG.submodule:
        assert row.path.startswith("third_party/")
        assert row.default in ("0", "1")
        assert variable_row(CATALOG, row.unless, ERAS[0], None)
    # The first row that covers a folder is taken, so an inner one stands before the outer one.
    for place, row in enumerate(CATALOG.submodule):
        assert not any(row.path.startswith(f"{earlier.path}/") for earlier in CATALOG.submodule[:place])


def test_backport_rows() -> None:
    for row in CATALOG.backport:
        SpecifierSet(row.python)
        assert row.because


def test_character_rows() -> None:
    characters = [row.character for row in CATALOG.character]
    assert len(set(characters)) == len(characters)
    assert all(len(character) == 1 for character in characters)
    assert all(row.breaks and row.os in ("", "linux", "windows") for row in CATALOG.character)


def test_inputs_are_unique() -> None:
    names = [row.name for row in CATALOG.input]
    assert len(names) == len(set(names))

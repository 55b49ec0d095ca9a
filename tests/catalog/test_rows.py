"""What must hold for every row, checked over all of them; never a copy of the table."""

from __future__ import annotations

import itertools
import re
import string
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.support.for_each import each_case, for_each
from torchbuild_tasks.catalog import TABLES, load_catalog, row_place
from torchbuild_tasks.catalog.cuda import ToolkitRow, part_rows
from torchbuild_tasks.catalog.match import admits, variable_row
from torchbuild_tasks.catalog.rows import (
    CheckRow,
    EntryRow,
    HelperRow,
    OutputRow,
    PresetRow,
    TorchRow,
    VariableRow,
)
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.helpers.choose import artifact_id
from torchbuild_tasks.options import BUILD_TYPES, MODES
from torchbuild_tasks.values import from_json

CATALOG = load_catalog()
ERAS = ("setuptools", "scikit-build-core")


def test_a_misspelt_column_names_file_and_row() -> None:
    row = {"name": "mkl", "versoin": "1"}
    place = row_place("data/helpers.toml", "helper", 3, row)
    message = (
        r"data/helpers.toml, \[\[helper\]\] row 3 \(mkl\) has an unknown key: versoin; did you mean version"
    )
    with pytest.raises(UsageError, match=message):
        from_json(HelperRow, row, place)


def test_a_column_of_the_wrong_type_names_file_and_row() -> None:
    row = {"check": "torch", "because": "", "spelled": "yes"}
    place = row_place("data/checks.toml", "check", 1, row)
    with pytest.raises(UsageError, match=r'row 1 \(torch\).spelled is "yes", not array'):
        from_json(CheckRow, row, place)


@each_case(
    ("part", "text"),
    [
        ({"name": "nvcc", "version": "1", "files": [{"tag": "win_amd64", "sha": "ab"}]}, "unknown key: sha"),
        (
            {"name": "nvcc", "version": "1", "files": [{"tag": "win_amd64"}]},
            r"files\[0\] lacks the key sha256",
        ),
    ],
)
def test_a_misspelt_part_names_file_and_row(part: dict[str, Any], text: str) -> None:
    row = {"cuda": "12.4.1", "parts": [part]}
    named = r"data/toolkits.toml, \[\[toolkit\]\] row 1 \(12.4.1\).parts\[0\]"
    with pytest.raises(UsageError, match=f"{named}.*{text}"):
        from_json(ToolkitRow, row, row_place("data/toolkits.toml", "toolkit", 1, row))


def test_a_part_of_no_kind_names_file_and_row() -> None:
    toolkit = from_json(
        ToolkitRow, {"cuda": "12.4.1", "parts": [{"name": "nvc", "version": "1", "files": []}]}
    )
    message = "data/toolkits.toml, CUDA 12.4.1, part 1: no part_kind is called nvc"
    with pytest.raises(UsageError, match=message):
        part_rows((), (toolkit,))


def test_no_table_is_empty() -> None:
    assert all(getattr(CATALOG, table) for table in TABLES)


@for_each(CATALOG.torch, lambda row: row.version)
def test_torch_rows(row: TorchRow) -> None:
    assert len(Version(row.version).release) == 2
    for specifier in (row.python, row.gcc, row.cmake):
        SpecifierSet(specifier)
    assert row.cxx in (11, 14, 17, 20)
    assert row.source
    wanted = [Requirement(text) for text in row.requires]
    for system in ("linux", "win32"):
        at = {"sys_platform": system, "python_version": "3.12"}
        names = [each.name for each in wanted if not each.marker or each.marker.evaluate(at)]
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


@for_each(CATALOG.entry, lambda row: f"{row.era}-{row.mode}-{row.torch}")
def test_entry_rows(row: EntryRow) -> None:
    assert row.era in ERAS
    assert row.mode in (*MODES, "configure")
    assert row.argv[0] == "{python}"
    SpecifierSet(row.torch)


@for_each(CATALOG.preset, lambda row: row.name + row.os)
def test_preset_rows(row: PresetRow) -> None:
    assert row.build_type in BUILD_TYPES
    assert row.disk > 0
    assert row.os in ("", "linux", "windows")
    for name, value in row.variables.items():
        assert isinstance(value, str)
        assert variable_row(CATALOG, name, ERAS[0], None), f"{name} is read by nothing"


def test_every_switch_of_a_preset_has_its_reason() -> None:
    rows = {(row.variable, row.value) for row in CATALOG.switch}
    wanted = {pair for row in CATALOG.preset for pair in row.variables.items()}
    assert wanted == rows


@for_each(CATALOG.variable, lambda row: row.name + row.era + row.torch)
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


@for_each(CATALOG.check, lambda row: f"{row.check}-{row.key}")
def test_check_rows(row: CheckRow) -> None:
    assert row.because
    assert bool(row.key) == bool(row.wanted not in ("", "{places}") or row.variable)
    assert not (row.wanted and row.variable)
    promises = ("folder", "version", "commit", "debug", "build_type", "cuda", "arch_list", "blas", "places")
    row.wanted.format_map(dict.fromkeys(promises, ""))


@for_each(CATALOG.output, lambda row: row.era + row.pattern)
def test_output_rows(row: OutputRow) -> None:
    assert row.era in ("", *ERAS)
    assert row.what
    assert not row.pattern.startswith("/")
    assert ".." not in row.pattern.split("/")


def test_submodule_rows() -> None:
    for row in CATALOG.submodule:
        assert row.source and row.os in ("", "linux", "windows", "android")
        assert {*row.needs.values(), *row.any.values()} <= {"0", "1", "x86_64", "windows"}
        for name in (*row.needs, *row.any, *row.system):
            assert variable_row(CATALOG, name, ERAS[0], None)
        for releases in filter(None, (row.torch, row.checked)):
            assert list(SpecifierSet(releases))
    # The first row that covers a folder is taken, so an inner one stands before the outer one.
    for place, row in enumerate(CATALOG.submodule):
        assert not any(row.path.startswith(f"{earlier.path}/") for earlier in CATALOG.submodule[:place])


def test_gate_rows() -> None:
    for row in CATALOG.gate:
        assert row.os in ("", "linux", "windows")
        assert list(SpecifierSet(row.fits))
        assert row.because
        assert row.name in ("cmake", "ninja")
    assert all(row.because for row in CATALOG.left_out)


def test_backport_rows() -> None:
    for row in CATALOG.backport:
        SpecifierSet(row.python)
        assert row.because


def test_character_rows() -> None:
    characters = [(row.character, row.torch) for row in CATALOG.character]
    assert len(set(characters)) == len(characters)
    assert all(
        len(row.character) == 1 or row.character == "\\\\" or row.status == "warn"
        for row in CATALOG.character
    )
    assert all(row.breaks and row.os in ("", "linux", "windows") for row in CATALOG.character)


def test_inputs_are_unique() -> None:
    names = [(row.name, row.mode) for row in CATALOG.input]
    assert len(names) == len(set(names))


HELPERS = CATALOG.helper
TAGS = {
    ("windows", "x86_64"): "win_amd64",
    ("windows", "aarch64"): "win_arm64",
    ("linux", "x86_64"): r"manylinux[0-9_]+_x86_64",
    ("linux", "aarch64"): r"manylinux[0-9_]+_aarch64",
}
ENDINGS = {"7z": (".7z",), "zip": (".zip", ".whl"), "tar.bz2": (".tar.bz2",), "conda": (".conda",)}


def helper_key(row: HelperRow) -> tuple[str, ...]:
    return (row.name, row.version, row.os, row.arch, row.cuda, row.configuration)


def helper_id(row: HelperRow) -> str:
    return "-".join(filter(None, helper_key(row)))


def test_helper_rows_are_distinct() -> None:
    keys = [helper_key(row) for row in HELPERS]
    assert len(keys) == len(set(keys))
    # What is downloaded is called by these alone, on whichever system.
    ids = [artifact_id(row) for row in HELPERS if not row.tag]
    assert len(ids) == len(set(ids))


@for_each(HELPERS, helper_id)
def test_helper_rows(row: HelperRow) -> None:
    Version(row.version)
    SpecifierSet(row.torch)
    assert row.os in ("linux", "windows")
    assert row.arch in ("x86_64", "aarch64")
    assert row.needed in ("build", "cuda", "distributed", "asked")
    assert row.because
    assert row.source
    assert row.holds, "nothing would tell a wrong archive from the right one"
    assert row.set or row.prepend, "nothing would find it"
    assert bool(row.urls) != bool(row.project), "an address or a project, not both"
    assert bool(row.cuda) == bool(row.configuration) == (row.name == "magma")


@for_each([row for row in HELPERS if row.urls], helper_id)
def test_downloaded_helpers(row: HelperRow) -> None:
    files = {url.rpartition("/")[2] for url in row.urls}
    assert len(files) == 1, "all addresses are of one file"
    assert len(set(row.urls)) == len(row.urls)
    for url in row.urls:
        assert url.startswith("https://")
    file = files.pop()
    version = "" if row.name == "nvtoolsext" else row.version  # its file has none in its name
    named = row.urls[0] if row.unpack == "file" else file  # of a program, the folder has the version
    for part in (version, row.configuration, f"cuda{row.cuda}_" if row.cuda else ""):
        assert part in named
    assert row.unpack == "file" or file.endswith(ENDINGS[row.unpack])


@for_each([row for row in HELPERS if row.project], helper_id)
def test_wheel_helpers(row: HelperRow) -> None:
    assert row.unpack == "zip", "a wheel is a zip"
    assert re.fullmatch(TAGS[row.os, row.arch], row.tag)
    assert len(row.sha256) == 64
    assert not set(row.sha256) - set("0123456789abcdef")
    assert row.size > 1 << 18
    # A wheel's folders carry its version: a bump that forgets one would look in vain. NVIDIA's do not.
    nvidia = row.project.startswith("nvidia-")
    folder = "nvidia/" if nvidia else f"{row.project.replace('-', '_')}-{row.version}.data/"
    for path in row.holds:
        assert path.startswith(folder)
    for value in (*row.set.values(), *row.prepend.values()):
        assert value.startswith(f"{{folder}}/{folder}")


@for_each(HELPERS, helper_id)
def test_helper_paths_stay_inside_and_are_written_one_way(row: HelperRow) -> None:
    exported = (*row.set.values(), *row.prepend.values(), *row.check[:1])
    for text in (*exported, *row.check[1:], *row.holds):
        assert "\\" not in text, "written with forward slashes"
        fields = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
        assert fields <= {"folder"}
    for text in exported:
        assert text.startswith("{folder}")
    for text in (*exported, *row.holds):
        assert ".." not in text.split("/")
        assert not text.startswith("/")


def test_a_helper_that_the_user_has_is_named_by_a_variable_that_we_read() -> None:
    names = {name for row in HELPERS for name in row.unless}
    assert names
    for name in names:
        assert variable_row(CATALOG, name, ERAS[0], None), f"{name} would not be looked at"
    assert all(row.unless for row in HELPERS if row.needed != "asked")


def test_magma_comes_in_pairs_and_one_version_for_each_cuda() -> None:
    magma = [row for row in HELPERS if row.name == "magma"]
    kinds = {(row.cuda, row.configuration) for row in magma}
    assert kinds == set(itertools.product({row.cuda for row in magma}, ("release", "debug")))
    assert len(kinds) == len(magma)


def test_no_helper_row_is_hidden_by_a_newer_one() -> None:
    # Of rows that want the same builds the newest is always taken; the others say nothing.
    same: dict[tuple[str, ...], list[str]] = {}
    for row in HELPERS:
        key = (row.name, row.os, row.arch, row.torch, row.cuda, row.configuration)
        same.setdefault(key, []).append(row.version)
    assert {key: versions for key, versions in same.items() if len(versions) > 1} == {}


@for_each([row.version for row in CATALOG.torch], str)
def test_every_torch_series_gets_exactly_one_mkl_on_windows(series: str) -> None:
    rows = [row for row in HELPERS if row.os == "windows" and row.needed == "build"]
    names = {row.name for row in rows if admits(row.torch, series)}
    assert names in ({"mkl"}, {"mkl-static", "mkl-include", "mkl-openmp"})


def test_every_toolset_is_in_one_row_that_says_its_cuda() -> None:
    """From Visual Studio 2017 on; a toolset in none of them would be taken for any CUDA."""
    rows = [row for row in CATALOG.msvc if row.cuda]
    for minor in range(10, 60):
        holding = [row.name for row in rows if f"14.{minor}" in SpecifierSet(row.toolset)]
        assert len(holding) == 1, f"14.{minor} is in {holding}"
    assert all(row.install and row.name for row in rows)


def test_a_row_without_a_name_is_called_by_its_number() -> None:
    assert row_place("data/x.toml", "x", 2, {}) == "data/x.toml, [[x]] row 2"


def test_every_limit_on_toolsets_says_one_thing() -> None:
    for row in CATALOG.msvc:
        assert bool(row.cuda) + bool(row.refused) + bool(row.doubted) == 1, row
        for specifier in (row.toolset, row.cuda, row.torch, row.visual_studio):
            SpecifierSet(specifier)


def advice() -> list[str]:
    """Return every text of a row that advises --with-helper."""
    texts = (
        text
        for table in TABLES
        for row in getattr(load_catalog(), table)
        for field in row.__struct_fields__
        for value in [getattr(row, field)]
        for text in (value if isinstance(value, tuple) else (value,))
    )
    return [text for text in texts if isinstance(text, str) and "--with-helper" in text]


def test_a_helper_that_is_advised_exists_for_the_system_that_is_named() -> None:
    """A text once advised `--with-helper cudnn`, a helper that does not exist."""
    told = advice()
    assert len(told) > 3
    for text in told:
        for name in re.findall(r"--with-helper (\w[\w-]*)", text):
            rows = [row for row in CATALOG.helper if row.name == name or row.name.startswith(f"{name}-")]
            assert rows, f"no helper {name}: {text}"
            assert {row.os for row in rows} > {"windows"} or "Windows" in text, (
                f"{name} is of Windows: {text}"
            )

"""Which row applies: versions, series, entries and the first variable row that covers a name."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.match import (
    admits,
    applies,
    covers,
    entry_row,
    parse_version,
    torch_row,
    variable_row,
)
from torchbuild_tasks.text.words import nearest

CATALOG = load_catalog()


@each_case(
    ("specifier", "version", "wanted"),
    [
        (">=3.10,<3.15", "3.11.7", True),
        (">=3.10,<3.15", "3.15.0", False),
        (">=3.10,<3.15", "3.9.18", False),
        (">=2.14", "2.14.0", True),
        (">=2.14.0a0", "2.14.0a0+git0123", True),
        ("", "1.0", True),
        (">=3", None, None),
        (">=3", "trunk", None),
        ("", None, None),
    ],
)
def test_admits_has_three_outcomes(specifier: str, version: str | None, wanted: bool | None) -> None:
    assert admits(specifier, version) is wanted


@each_case("text", [None, "", "main", "2.x"])
def test_what_is_no_version_is_none(text: str | None) -> None:
    assert parse_version(text) is None


def test_a_row_without_a_range_takes_every_version_and_an_unknown_version_every_row() -> None:
    assert applies("", Version("1.13"))
    assert applies(">=2.9", None)
    assert not applies(">=2.9", Version("2.8"))


@each_case(
    ("version", "series", "exact"),
    [
        ("2.8.0a0", "2.8", True),
        ("2.14.0a0+git0123456", "2.14", True),
        ("1.13.1", "1.13", True),
        ("2.99.0", CATALOG.torch[-1].version, False),
        ("1.9.1", "1.9", True),
        ("0.4.1", "1.0", False),
        (None, CATALOG.torch[-1].version, False),
    ],
)
def test_the_row_of_a_series_or_the_nearest_older(version: str | None, series: str, exact: bool) -> None:
    row, own = torch_row(CATALOG, parse_version(version))
    assert (row.version, own) == (series, exact)


@each_case(
    ("era", "mode", "version", "words"),
    [
        ("setuptools", "develop", "2.8.0a0", "setup.py develop --no-deps"),
        ("setuptools", "develop", "1.13.1", "setup.py develop --no-deps"),
        ("setuptools", "develop", "2.9.0a0", "-m pip install --no-build-isolation --no-deps -v -e ."),
        ("setuptools", "develop", "2.13.0", "-m pip install --no-build-isolation --no-deps -v -e ."),
        ("setuptools", "wheel", "1.13.1", "setup.py bdist_wheel"),
        ("setuptools", "wheel", "2.13.0", "setup.py bdist_wheel"),
        ("scikit-build-core", "develop", "2.14.0a0", "-m pip install --no-build-isolation --no-deps -v -e ."),
        ("scikit-build-core", "wheel", "2.15.0", "-m build --wheel --no-isolation"),
    ],
)
def test_how_each_era_is_built(era: str, mode: str, version: str, words: str) -> None:
    assert entry_row(CATALOG, era, mode, Version(version)).argv[1:] == tuple(words.split())


@each_case(
    ("name", "era", "version", "row"),
    [
        ("USE_DISTRIBUTED", "setuptools", "2.8", "USE_*"),
        ("USE_NIGHTLY", "setuptools", "2.13", "USE_*"),
        ("USE_NIGHTLY", "scikit-build-core", "2.14", "USE_NIGHTLY"),
        ("CXX_HAS_AVX2_1_EXITCODE", "setuptools", "1.13", "*EXITCODE"),
        ("CMAKE_FRESH", "setuptools", "2.8", "CMAKE_FRESH"),
        ("CMAKE_FRESH", "setuptools", "1.13", "CMAKE_*"),
        ("_GLIBCXX_USE_CXX11_ABI", "setuptools", "1.13", "_GLIBCXX_USE_CXX11_ABI"),
        ("_GLIBCXX_USE_CXX11_ABI", "scikit-build-core", "2.14", None),
        ("JAVA_HOME", "scikit-build-core", "2.14", None),
        ("use_distributed", "setuptools", "2.8", None),
        ("HOME", "setuptools", "2.8", None),
    ],
)
def test_which_row_covers_a_name(name: str, era: str, version: str, row: str | None) -> None:
    covering = variable_row(CATALOG, name, era, Version(version))
    assert (covering.name if covering else None) == row


@each_case(
    ("pattern", "name", "covered"),
    [
        ("USE_*", "USE_CUDA", True),
        ("USE_*", "BUILD_TEST", False),
        ("*_HOME", "CUDA_HOME", True),
        ("MAX_J?BS", "MAX_JOBS", True),
        ("MAX_J[AO]BS", "MAX_JOBS", True),
        ("MAX_JOBS", "MAX_JOBS_2", False),
        ("A[", "A[", True),
    ],
)
def test_a_pattern_covers_names(pattern: str, name: str, covered: bool) -> None:
    assert covers(pattern, name) is covered


def test_a_pattern_is_not_compiled_for_names_that_begin_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fnmatch.fnmatchcase", None)
    assert not covers("USE_*", "BUILD_TEST")


@each_case(
    ("word", "known", "meant"),
    [
        ("MAX_JBOS", ("MAX_JOBS", "BLAS"), "MAX_JOBS"),
        ("max_jobs", ("MAX_JOBS", "BLAS"), "MAX_JOBS"),
        ("relase", ("Release", "Debug"), "Release"),
        ("zzz", ("Release", "Debug"), None),
        ("anything", (), None),
    ],
)
def test_the_nearest_word(word: str, known: tuple[str, ...], meant: str | None) -> None:
    assert nearest(word, known) == meant

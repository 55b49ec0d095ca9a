"""What must hold for every row about CUDA, checked over all of them; never a copy of the table."""

from __future__ import annotations

import itertools
import re

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.support.for_each import each_case, for_each
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.cuda import ArchRow, CudaRow, CudaTorchRow, FamilyRow, GpuRow
from torchbuild_tasks.catalog.match import admits

CATALOG = load_catalog()
CAPABILITY = re.compile(r"\d{1,2}\.\d[af]?")
SERIES = [row.version for row in CATALOG.torch]
TOOLKITS = [row.version for row in CATALOG.cuda]


def number(capability: str) -> tuple[int, int]:
    """A capability as numbers, so that 10.3 comes after 9.0."""
    major, _, minor = capability.rstrip("af").partition(".")
    return int(major), int(minor)


@for_each(CATALOG.cuda, lambda row: row.version)
def test_toolkit_rows(row: CudaRow) -> None:
    assert len(Version(row.version).release) == 2
    assert row.source
    assert all(map(CAPABILITY.fullmatch, row.archs))
    assert len(set(row.archs)) == len(row.archs)
    assert list(row.archs) == sorted(row.archs, key=lambda arch: (number(arch), arch))
    assert set(row.deprecated) < set(row.archs)
    # The letters are about code for a capability that is there without one, too.
    assert {arch.rstrip("af") for arch in row.archs} <= set(row.archs)
    for driver in filter(None, (row.driver_linux, row.driver_windows)):
        Version(driver)


def test_toolkit_rows_ascend_and_what_they_take_never_falls() -> None:
    versions = [Version(row.version) for row in CATALOG.cuda]
    assert versions == sorted(set(versions))
    for older, newer in itertools.pairwise(CATALOG.cuda):
        assert older.gcc <= newer.gcc
        assert older.clang <= newer.clang
        assert number(older.archs[0]) <= number(newer.archs[0]), "old capabilities go and never come back"
        if older.driver_linux and newer.driver_linux:
            assert Version(older.driver_linux) < Version(newer.driver_linux)
        if older.driver_windows and newer.driver_windows:
            assert Version(older.driver_windows) < Version(newer.driver_windows)


def test_a_capability_that_goes_was_deprecated_before() -> None:
    """Within what was read from NVIDIA's files; Thor's was not dropped but renamed."""
    renamed = {row.capability for row in CATALOG.arch if row.renamed}
    read = [row for row in CATALOG.cuda if "host_config.h" in row.source]
    for older, newer in itertools.pairwise(read):
        plain = {arch for arch in older.archs if arch[-1].isdigit()}
        assert plain - set(newer.archs) <= {*older.deprecated, *renamed}


def test_driver_rows() -> None:
    assert {row.cuda for row in CATALOG.cuda_driver} == {
        version.partition(".")[0] for version in TOOLKITS if Version(version) >= Version("11")
    }
    for row in CATALOG.cuda_driver:
        own = [each for each in CATALOG.cuda if each.version.startswith(f"{row.cuda}.")]
        assert row.source
        # The first release of a major may want less than what makes its later ones run.
        for each in own[1:]:
            assert not each.driver_linux or Version(row.linux) < Version(each.driver_linux)
            assert not each.driver_windows or Version(row.windows) < Version(each.driver_windows)


def torch_id(row: CudaTorchRow) -> str:
    return f"{row.torch}-{row.cuda}"


@for_each(CATALOG.cuda_torch, torch_id)
def test_torch_rows(row: CudaTorchRow) -> None:
    for specifier in (row.torch, row.cuda, row.cudnn):
        SpecifierSet(specifier)
    assert any(admits(row.torch, series) for series in SERIES), "it is about no torch"
    assert any(admits(row.cuda, cuda) for cuda in TOOLKITS)
    assert row.os in ("", "linux", "windows")
    assert row.because
    assert not row.because.endswith(".")
    assert row.source
    assert not (row.best and row.refuse)


@for_each(SERIES, str)
def test_every_torch_has_one_best_toolkit_which_every_row_takes(series: str) -> None:
    rows = [row for row in CATALOG.cuda_torch if admits(row.torch, series)]
    (best,) = [row.best for row in rows if row.best]
    assert best in TOOLKITS
    # On one system alone even upstream's own may need something more, which a warning tells.
    assert all(admits(row.cuda, best) for row in rows if row.refuse or not row.os)


@each_case("version", ["1.5.0", "1.9.1", "2.9.0a0", "2.15.0a0+git1234567", "2.16.0", "3.0"])
def test_versions_without_a_series_of_their_own_have_a_best_toolkit_too(version: str) -> None:
    assert len([row for row in CATALOG.cuda_torch if row.best and admits(row.torch, version)]) == 1


def test_best_toolkits_never_fall() -> None:
    best = {}
    for series in SERIES:
        (best[series],) = [r.best for r in CATALOG.cuda_torch if r.best and admits(r.torch, series)]
    assert list(map(Version, best.values())) == sorted(map(Version, best.values()))


def span(text: str) -> tuple[int, int]:
    """First and last id of a range."""
    first, _, last = text.partition("-")
    return int(first, 16), int(last or first, 16)


@for_each(CATALOG.gpu, lambda row: row.chip)
def test_gpu_rows(row: GpuRow) -> None:
    assert CAPABILITY.fullmatch(row.capability)
    assert row.capability[-1].isdigit()
    assert row.source
    assert row.ids or "not on PCI" in row.source
    for text in (*row.ids, *row.datacenter):
        assert re.fullmatch(r"[0-9a-f]{4}(-[0-9a-f]{4})?", text)
        first, last = span(text)
        assert first < last or "-" not in text
    for text in row.datacenter:
        assert any(span(ids)[0] <= span(text)[0] and span(text)[1] <= span(ids)[1] for ids in row.ids)


def test_chips_are_distinct() -> None:
    chips = [row.chip for row in CATALOG.gpu]
    assert len(set(chips)) == len(chips)
    ranges = sorted((*span(text), row.chip) for row in CATALOG.gpu for text in row.ids)
    for older, newer in itertools.pairwise(ranges):
        assert older[1] < newer[0], f"{older} and {newer} overlap"


def test_every_capability_of_a_chip_is_compiled_by_some_toolkit() -> None:
    compiled = {arch for row in CATALOG.cuda for arch in row.archs}
    assert {row.capability for row in CATALOG.gpu} <= compiled


@for_each(CATALOG.family, lambda row: f"{row.name}-{row.torch}")
def test_family_rows(row: FamilyRow) -> None:
    SpecifierSet(row.torch)
    assert row.source
    archs = row.archs.split(";")
    assert all(map(CAPABILITY.fullmatch, archs)), "numbers, so that nothing is left to expand"
    assert archs == sorted(archs, key=number)
    assert set(filter(None, row.ptx.split(";"))) <= set(archs)


def test_a_family_means_one_thing_to_one_torch() -> None:
    for name in {row.name for row in CATALOG.family}:
        for series, arch in itertools.product(SERIES, ("x86_64", "aarch64")):
            rows = [r for r in CATALOG.family if r.name == name and r.arch in ("", arch)]
            rows = [r for r in rows if not r.torch or admits(r.torch, series)]
            assert len(rows) <= 1, (name, series)


def test_every_member_of_a_family_is_compiled_by_some_toolkit() -> None:
    compiled = {arch for row in CATALOG.cuda for arch in row.archs}
    for row in CATALOG.family:
        assert set(row.archs.split(";")) <= compiled, row.name


def knows(series: str, capability: str) -> bool:
    """Whether extensions of that torch take a capability."""
    rows = [row for row in CATALOG.arch if row.capability == capability and not row.renamed]
    return any(not row.torch or admits(row.torch, series) is True for row in rows)


@for_each(CATALOG.arch, lambda row: f"{row.capability}{row.cuda}")
def test_arch_rows(row: ArchRow) -> None:
    for specifier in (row.torch, row.build, row.cuda):
        SpecifierSet(specifier)
    assert CAPABILITY.fullmatch(row.capability)
    assert row.source
    assert bool(row.renamed) == bool(row.cuda)


def test_arch_rows_are_unique_and_leave_no_toolkit_out() -> None:
    plain = [row.capability for row in CATALOG.arch if not row.renamed]
    assert len(set(plain)) == len(plain)
    wanted = {arch for row in CATALOG.cuda for arch in row.archs}
    assert wanted == set(plain)


def test_a_renamed_capability_is_compiled_under_one_name_only() -> None:
    for row in CATALOG.arch:
        for toolkit in CATALOG.cuda:
            if row.renamed and admits(row.cuda, toolkit.version):
                assert row.capability not in toolkit.archs
                back = [r for r in CATALOG.arch if r.capability == row.renamed and r.renamed]
                assert [r.renamed for r in back] == [row.capability]


@each_case(
    ("capability", "first"),
    [("8.6", "1.7"), ("8.7", "2.1"), ("9.0", "2.0"), ("10.0", "2.6"), ("12.0", "2.7"), ("11.0", "2.9")],
)
def test_the_first_torch_that_knows_a_capability(capability: str, first: str) -> None:
    """Spot checks of the table against what the files of these releases say."""
    assert next(series for series in SERIES if knows(series, capability)) == first

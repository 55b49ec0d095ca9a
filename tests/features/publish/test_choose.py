"""What goes to an index, and the pages of a folder, decided from values alone."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import PackageRefused, UsageError
from torchbuild_tasks.features.publish.choose import (
    File,
    check_address,
    index_address,
    project_of,
    project_page,
    read_page,
    root_page,
    steps,
    too_large,
    unread_advice,
)
from torchbuild_tasks.values import replace

ONE = File(
    name="torch-2.6.0+a.1-py3-none-any.whl", project="torch", version="2.6.0+a.1", sha256="1" * 64, size=1
)


def test_what_is_there_with_the_same_bytes_is_left() -> None:
    assert [step.what for step in steps([ONE], {ONE.name: ONE.sha256}, "x")] == ["there"]
    assert [step.what for step in steps([ONE], {}, "x")] == ["send"]


@each_case("digest", ["2" * 64, ""])
def test_other_bytes_are_never_replaced(digest: str) -> None:
    with pytest.raises(PackageRefused, match="Nothing was sent"):
        steps([ONE], {ONE.name: digest}, "x")


@each_case(
    ("lost", "status", "says"),
    [(True, 0, "network"), (False, 401, "TWINE_PASSWORD"), (False, 200, "--index")],
)
def test_an_index_that_cannot_be_read_gets_the_advice_of_its_reason(
    lost: bool, status: int, says: str
) -> None:
    assert says in unread_advice(lost=lost, status=status)


def test_the_kind_of_package_that_is_in_the_way_is_made_with_another_version() -> None:
    names = ("torch-1-py3-none-any.whl", "pytorch-local-1-0.conda", "torch-1.tar.gz")
    files = [replace(ONE, name=name) for name in names]
    with pytest.raises(PackageRefused) as refused:
        steps(files, dict.fromkeys(names, ""), "x")
    commands = [f"torchbuild package {kind} --local mine.2" for kind in ("wheel", "conda", "sdist")]
    assert refused.value.next_step.endswith(" and ".join(commands))


@each_case(
    ("url", "error"),
    [
        ("https://me:secret@example.org/", UsageError),
        ("http://example.org/", UsageError),
        ("https://upload.pypi.org/legacy/", PackageRefused),
    ],
)
def test_addresses_that_leak_and_versions_that_pypi_refuses(url: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        check_address(url, [ONE])
    assert "secret" not in str(raised.value)


def test_two_files_of_one_name_are_refused_before_one_is_sent() -> None:
    other = msgspec.structs.replace(ONE, sha256="2" * 64)
    with pytest.raises(PackageRefused, match="Two different files"):
        steps([ONE, other], {}, "x")
    assert len(steps([ONE, ONE], {}, "x")) == 2


@each_case(
    ("url", "size", "files"),
    [
        ("https://upload.pypi.org/legacy/", 200 << 20, 1),
        ("https://upload.pypi.org/legacy/", 100 << 20, 0),
        ("https://example.org/pypi/", 200 << 20, 0),
    ],
)
def test_files_above_pypis_default_limit_are_reported(url: str, size: int, files: int) -> None:
    large = msgspec.structs.replace(ONE, size=size)
    assert len(too_large(url, [large], load_catalog().index_limit)) == files


def test_an_address_of_ones_own_is_taken() -> None:
    check_address("http://127.0.0.1:8080", [ONE])
    check_address("https://example.org/pypi/", [ONE])
    assert index_address("https://example.org/pypi/") == "https://example.org/pypi/simple/"
    assert index_address("https://upload.pypi.org/legacy/") == "https://pypi.org/simple/"


def test_a_page_that_is_written_is_read_again() -> None:
    assert read_page(project_page("torch", [ONE])) == {ONE.name: ONE.sha256}
    assert read_page('{"files": [{"filename": "a.whl", "hashes": {"sha256": "12"}}]}') == {"a.whl": "12"}
    assert read_page("<a href='../../x/a%2Bb.whl'>a</a>") == {"a+b.whl": ""}
    assert root_page(["Torch"]).count('href="torch/"') == 1


def test_a_name_says_project_and_version() -> None:
    assert project_of("torch-2.9.0a0+git1234567.tar.gz") == ("torch", "2.9.0a0+git1234567")
    with pytest.raises(PackageRefused):
        project_of("libtorch-shared-2.6.0.zip")

"""The folder of a mirror: readable, and another one for another address."""

from __future__ import annotations

from pathlib import Path

from tests.support.for_each import each_case
from torchbuild_tasks.system.git.fetch import mirror_of


def test_a_mirror_is_named_by_host_and_path() -> None:
    mirror = mirror_of(Path("/store"), "https://github.com/pytorch/pytorch.git")
    assert mirror.parent == Path("/store")
    assert mirror.name.startswith("github.com-pytorch-pytorch-")
    assert mirror.suffix == ".git"


@each_case("same", ["https://h/a", "https://h/a/", "https://h/a.git"])
def test_one_repository_has_one_mirror(same: str) -> None:
    assert mirror_of(Path(), same) == mirror_of(Path(), "https://h/a.git")


@each_case("other", ["https://h/b", "https://g/a", "ssh://h/a", "https://h/A", "/h/a"])
def test_another_address_has_another_mirror(other: str) -> None:
    assert mirror_of(Path(), other) != mirror_of(Path(), "https://h/a")

"""Requirements that a folder of wheels lacks, by its file names."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.plan.requirements import missing_from_files

NAMES = (
    "setuptools-69.5.1-py3-none-any.whl",
    "PyYAML-6.0.3-cp311-cp311-manylinux_2_28_x86_64.whl",
    "typing_extensions-4.16.0-py3-none-any.whl",
    "numpy-2.0.0rc1-cp311-cp311-win_amd64.whl",
    "six-1.17.0.tar.gz",
    "notes.txt",
    "broken.whl",
)


@each_case(
    ("requirement", "there"),
    [
        ("setuptools<70", True),
        ("setuptools>=77", False),
        ("pyyaml", True),
        ("typing-extensions>=4.10", True),
        ("numpy>=2.0.0rc1", True),
        ("six", True),
        ("notes", False),
        ("wheel", False),
    ],
)
def test_name_and_version_have_to_fit(requirement: str, there: bool) -> None:
    assert missing_from_files(NAMES, (requirement,)) == (() if there else (requirement,))


def test_all_that_is_missing_is_named_in_order() -> None:
    assert missing_from_files((), ("b", "a>=1")) == ("b", "a>=1")

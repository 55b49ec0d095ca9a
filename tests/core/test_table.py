"""The version table, held against a machine."""

from __future__ import annotations

import pytest

from tests.support.machines import base_python, linux_facts, python, tool, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.core.table import VersionLine, version_lines
from torchbuild_tasks.model import Facts, Tool


def lines(facts: Facts) -> dict[str, VersionLine]:
    return {line.version: line for line in version_lines(load_catalog(), facts)}


def test_newest_first_and_every_row_once() -> None:
    table = list(version_lines(load_catalog(), linux_facts()))
    assert [line.released for line in table] == sorted((line.released for line in table), reverse=True)
    assert len(table) == len(load_catalog().torch)


@pytest.mark.parametrize(
    ("version", "here"),
    [("2.8.0a0", ["2.8"]), ("2.10.1", ["2.10"]), ("1.13.1", ["1.13"]), ("2.99", []), (None, [])],
)
def test_the_series_of_the_checkout_is_marked(version: str | None, here: list[str]) -> None:
    table = lines(with_tree(linux_facts(), version=version))
    assert [line.version for line in table.values() if line.here] == here


def test_what_this_machine_can_build() -> None:
    table = lines(linux_facts())
    assert table["2.8"].status == "ok"
    assert table["1.13"].status == "error"
    assert "no Python" in table["1.13"].because


def test_a_gcc_that_is_too_old_is_named() -> None:
    table = lines(linux_facts(compilers=(tool("g++", "10.2.1"),)))
    assert table["2.8"].status == "ok"
    assert table["2.13"].status == "error"
    assert "no g++ >=11.3 here" in table["2.13"].because


def test_one_fitting_python_is_enough() -> None:
    both = (python(version="3.9.18"), base_python(version="3.13.1"))
    table = lines(linux_facts(pythons=both))
    assert table["1.13"].status == table["2.15"].status == "ok"


@pytest.mark.parametrize(
    "facts",
    [
        linux_facts(pythons=()),
        linux_facts(compilers=()),
        linux_facts(compilers=(Tool(name="g++", looked=("PATH",)),)),
        linux_facts(compilers=(tool("clang++", "17.0.6"),)),
        linux_facts(pythons=(python(version=None, problem="it hangs"),)),
        linux_facts(compilers=(Tool(name="g++", path="/usr/bin/g++"),)),
    ],
)
def test_what_cannot_be_compared_is_unknown(facts: Facts) -> None:
    assert lines(facts)["2.8"].status == "unknown"

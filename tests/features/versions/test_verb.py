"""The version table and one row of it, as a person reads them."""

from __future__ import annotations

from tests.support.machines import linux_facts, tool
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.versions.verb import versions_text
from torchbuild_tasks.plan.versions import version_lines


def test_the_version_table_marks_the_checkout_and_names_the_newest_that_fits() -> None:
    lines = version_lines(load_catalog(), linux_facts())
    head, *text = versions_text(lines).splitlines()
    rows = text[: len(lines)]
    (marked,) = [line for line in rows if line.startswith("*")]
    assert marked.split()[1] == "2.8"
    assert all(line[head.index("released") :].startswith("20") for line in rows)
    assert text[len(lines)] == f"The newest that fits this machine: {lines[0].latest}"


def test_where_none_fits_none_is_called_the_newest() -> None:
    facts = linux_facts(compilers=(tool("g++", "4.4.7"),))
    assert "newest that fits" not in versions_text(version_lines(load_catalog(), facts))


def test_a_row_in_detail_has_pins_sources_and_what_is_unconfirmed() -> None:
    lines = {line.version: line for line in version_lines(load_catalog(), linux_facts())}
    text = versions_text([lines["2.8"]], detail=True)
    assert text.startswith("torch 2.8, last release 2.8.0")
    assert "setuptools<80" in text and "only with --cuda" in text and "==3.4.0" in text
    assert text.rstrip().endswith("the checkout is of this series")
    assert "UNCONFIRMED" in versions_text([lines["2.15"]], detail=True)
    assert "compute capability 7.5 and later" in versions_text([lines["2.15"]], detail=True)
    assert "--preset old-gpu" not in text
    assert "torchaudio              not known" in versions_text([lines["1.1"]], detail=True)

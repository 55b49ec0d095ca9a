"""The rows of chips against the system's own list of PCI ids, where one is installed."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import needs
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.cuda import GpuRow
from torchbuild_tasks.facts.cuda.pci import FILES
from torchbuild_tasks.plan.cuda.devices import within

LIST = next((path for path in map(Path, FILES) if path.is_file()), None)
pytestmark = [pytest.mark.integration, needs(LIST is not None, "pci.ids")]

ROWS = load_catalog().gpu
# Devices that carry a chip's name without being its graphics part; what stands in brackets is a card.
OTHER = re.compile(r"[^\[]*(Controller|bridge|PCIe|PCI Express|Audio|USB|UCSI)|.*NVSwitch", re.IGNORECASE)
# Samples that say two chips at once, "GM204 [GM107 CS1]": older lists have other names for the same ids.
SAMPLES = re.compile(r"G[A-Z]\d+ \[G[A-Z]\d{3}\b")


def listed() -> Iterator[tuple[int, str]]:
    """Id and name of every device of NVIDIA's."""
    assert LIST is not None
    data = LIST.read_bytes()
    text = (gzip.decompress(data) if LIST.suffix == ".gz" else data).decode("utf-8", "replace")
    section = re.search(r"^10de  .*\n((?:[\t#].*\n?|\n)*)", text, re.MULTILINE)
    assert section is not None
    for id, name in re.findall(r"^\t([0-9a-f]{4})  (.+)$", section[1], re.MULTILINE):
        if not SAMPLES.match(name):
            yield int(id, 16), name


def chip_of(name: str) -> str | None:
    """The chip of a row that a name begins with; None for other chips and for what is not a GPU."""
    if OTHER.match(name):
        return None
    for row in ROWS:
        if re.match(rf"{row.chip}B?(GL)?M?\b", name):
            return row.chip
    return None


def row_of(id: int) -> GpuRow | None:
    return next((row for row in ROWS if within(row.ids, id)), None)


def test_the_list_is_read() -> None:
    assert len(list(listed())) > 1000
    assert sum(chip_of(name) is not None for _, name in listed()) > 300


def test_no_id_of_a_known_chip_is_missing() -> None:
    missing = {f"{id:04x}": name for id, name in listed() if chip_of(name) and not row_of(id)}
    assert missing == {}


def test_every_id_of_a_row_is_of_its_chip() -> None:
    """Names that begin with no chip ("GN20-P0-R-K2") say nothing; those of another chip contradict."""
    wrong = {}
    for id, name in listed():
        row, chip = row_of(id), re.match(r"(G[ABHKMPRTV]|TU|AD)\d\d", name)
        if row and chip and not OTHER.match(name) and chip_of(name) != row.chip:
            wrong[f"{id:04x}"] = f"{name} in the row of {row.chip}"
    assert wrong == {}


def test_no_other_device_is_in_a_row() -> None:
    wrong = {f"{id:04x}": name for id, name in listed() if OTHER.match(name) and row_of(id)}
    assert wrong == {}


def test_cards_for_data_centres_are_marked() -> None:
    """By the names that only such cards have; the reverse is checked by what consumer cards are called."""
    for id, name in listed():
        row = row_of(id)
        if row is None or chip_of(name) is None:
            continue
        marked = within(row.datacenter, id)
        if re.search(r"\[Tesla|\[(A100|H100|H200|L40?|A30|A40|A10)\b", name):
            assert marked, f"{id:04x} {name}"
        if re.search(r"GeForce|Quadro|TITAN|\[RTX A\d", name):
            assert not marked, f"{id:04x} {name}"

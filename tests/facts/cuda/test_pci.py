from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.facts.fakes import FakeProbe, machine, write
from tests.support.capabilities import needs_odd_names
from torchbuild_tasks.facts.cuda.pci import look_at_pci, read_names
from torchbuild_tasks.model import GpuSeen

IDS = """\
# comment
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t2204  Not this one [Radeon]
10de  NVIDIA Corporation
\t0020  NV4 [Riva TNT]
# between
\t1db6  GV100GL [Tesla V100 PCIe 32GB]
\t\t10de 124a  V100
\t1e07  TU102 [GeForce RTX 2080 Ti Rev. A]
\t1f06  TU106 [GeForce RTX 2060 SUPER]

\t2204  GA102 [GeForce RTX 3090]
\t\t10de 1454  FE
\t2321  GH100 [H100L 94GB]
\t2b85  no brackets
10df  Emulex Corporation
\t2204  Nor this one
"""


def pci(tmp_path: Path, *devices: tuple[str, str, str]) -> FakeProbe:
    """Devices 0000:00:00.0, 0000:01:00.0 ... of (vendor, class, device)."""
    names = ("vendor", "class", "device")
    for bus, values in enumerate(devices):
        folder = f"/sys/bus/pci/devices/0000:{bus:02x}:00.0"
        write(tmp_path, {f"{folder}/{name}": f"{value}\n" for name, value in zip(names, values, strict=True)})
    return machine(tmp_path)


@needs_odd_names
def test_nvidias_display_controllers_of_each_class(tmp_path: Path) -> None:
    door = pci(
        tmp_path,
        ("0x10de", "0x030000", "0x2204"),
        ("0x10DE", "0x030200", "0x1DB6"),
        ("0x10de", "0x038000", "0x2321"),
        ("0x10de", "0x040300", "0x1aef"),  # its sound
        ("0x10de", "0x068000", "0x22a3"),  # NVSwitch
        ("0x1002", "0x030000", "0x2204"),
        ("", "", ""),
        ("0x10de", "0x030000", "junk"),
    )
    assert look_at_pci(door) == tuple(
        GpuSeen(probe="pci", bus=f"0000:{bus:02x}:00.0", pci_id=f"10de:{device}")
        for bus, device in enumerate(("2204", "1db6", "2321"))
    )


@needs_odd_names
def test_with_names_where_the_system_has_them(tmp_path: Path) -> None:
    door = pci(tmp_path, ("0x10de", "0x030000", "0x2204"), ("0x10de", "0x030000", "0x2fff"))
    write(tmp_path, {"/usr/share/hwdata/pci.ids": IDS})
    first, second = look_at_pci(door)
    assert (first.chip, first.name) == ("GA102", "GeForce RTX 3090")
    assert (second.chip, second.name) == (None, None)


def test_names(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/usr/share/misc/pci.ids": IDS})
    assert read_names(door, {"1db6", "1e07", "2321", "2b85", "ffff"}) == {
        "1db6": ("GV100GL", "Tesla V100 PCIe 32GB"),
        "1e07": ("TU102", "GeForce RTX 2080 Ti Rev. A"),
        "2321": ("GH100", "H100L 94GB"),
        "2b85": (None, "no brackets"),
    }


def test_a_packed_list(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/usr/share/misc/": ""})
    (tmp_path / "usr/share/misc/pci.ids.gz").write_bytes(gzip.compress(IDS.encode()))
    assert read_names(door, {"2204"}) == {"2204": ("GA102", "GeForce RTX 3090")}


@pytest.mark.parametrize(
    "data", [b"", b"\xff\x00", b"10de", b"10de  NVIDIA Corporation", gzip.compress(b"x", mtime=0)[:9]]
)
def test_a_list_that_says_nothing(tmp_path: Path, data: bytes) -> None:
    door = machine(tmp_path, files={"/usr/share/misc/": ""})
    for name in ("pci.ids", "pci.ids.gz"):
        (tmp_path / "usr/share/misc" / name).write_bytes(data)
    assert read_names(door, {"2204"}) == {}


def test_no_bus(tmp_path: Path) -> None:
    assert look_at_pci(machine(tmp_path)) == ()

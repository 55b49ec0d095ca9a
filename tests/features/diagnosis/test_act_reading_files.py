"""Whole logs on the disk: what they say, and files that are not logs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support.diagnosis import read_file
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.diagnosis.act import log_chunks


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"10%\r20%\rdone\r\none\r\na.cpp:1:2: error: x\r\nend")
    reading = read_file(path)
    assert (reading.line_number, reading.error_line) == (3, "a.cpp:1:2: error: x")


def test_an_error_after_many_calm_lines_keeps_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    calm = b"[1/2] Building CXX object a.cpp.o\na.cpp:1:2: warning: unused [-Wunused]\n" * 40_000
    path.write_bytes(calm + b"FAILED: b.o\nc++ -c b.cpp\nb.cpp:1:2: error: x\n" + calm)
    assert read_file(path).line_number == 80_003


LOG = b"a.cpp:1:10: fatal error: nccl.h: No such file or directory\n"


PACKED = gzip.compress(LOG, mtime=0)  # else each worker that collects the tests has others
JOINED = gzip.compress(LOG[:9], mtime=0) + gzip.compress(LOG[9:], mtime=0)


@pytest.mark.parametrize("data", [PACKED, JOINED, PACKED[:-6]], ids=["whole", "joined", "cut off"])
def test_a_log_that_gzip_has_packed_is_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(data)
    assert read_file(path).component == "NCCL"


@pytest.mark.parametrize("name", ["https://ci/job/1/raw", "http://ci/x.log"])
def test_an_address_is_no_file(name: str) -> None:
    with pytest.raises(UsageError, match="is an address"):
        list(log_chunks(name))


def test_a_line_without_end_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * 5_000_000 + b"\na.cpp:1:2: error: y\n")
    assert read_file(path).line_number == 2


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04" + bytes(99), "is packed by zip"),
        (b"\x7fELF\x02" + bytes(range(256)) * 8, "is not text"),
    ],
)
def test_what_is_no_log_is_said(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=says):
        read_file(path)

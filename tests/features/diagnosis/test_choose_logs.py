"""Logs with their noise, from public threads and made here: the line of the error, and its cause."""

from __future__ import annotations

import functools

from tests.support.diagnosis import FOLDERS, Label, labels, read_file
from tests.support.for_each import each_case
from torchbuild_tasks.features.diagnosis.decode import Decoder, wide_encoding

LABELS = labels()
read_once = functools.cache(read_file)


@each_case("label", LABELS, ids=lambda label: label.name)
def test_the_first_error_of_a_log_and_its_cause(label: Label) -> None:
    reading = read_once(label.path)
    assert reading.line_number == label.line
    assert [each.id for each in reading.diagnoses[:1]] == list(filter(None, [label.cause or label.kind]))
    assert label.kind in ("", reading.kind)
    assert label.component in ("", reading.component)
    assert (reading.status == "clean") == (label.line == 0)


@each_case("label", [label for label in LABELS if label.line], ids=lambda label: label.name)
def test_the_line_is_that_of_the_log(label: Label) -> None:
    data = label.path.read_bytes()
    encoding = wide_encoding(data)
    lines = data.decode(encoding).encode().split(b"\n") if encoding else data.split(b"\n")
    assert read_once(label.path).error_line == Decoder()(lines[label.line - 1]).rstrip("\r")


def test_every_log_has_a_label_and_every_label_a_source() -> None:
    names = [path.stem for path in FOLDERS[0].glob("*.log")]
    assert set(names) <= {label.name for label in LABELS}
    assert all(label.source for label in LABELS)

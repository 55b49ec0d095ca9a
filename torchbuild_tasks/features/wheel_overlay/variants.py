"""Decide which wheels of an index to try for a checkout: of which release or nightly, for which CUDA."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion

from torchbuild_tasks.model.wheel import Wheel
from torchbuild_tasks.plan.variables import is_off

_TOOLKIT: Final = re.compile(r"cu(\d+)(\d)")  # cu118, cu126, cu130: the last digit is the minor version
_SERIES: Final = re.compile(r" (\d+\.\d+)\S*$")  # of the input `cuda toolkit`: folder and version
_OTHER: Final = ("rocm", "xpu")
NIGHTS: Final = (
    3  # nightly versions tried; an older one is rarely built from an ancestor with the same sources
)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The device of a plan: `cuda` is None if undecided; `toolkit` as in cu126, "" if unknown."""

    cuda: bool | None = None
    toolkit: str = ""

    @property
    def folder(self) -> str:
        """Return the folder of the download index for this variant alone; "" if the plan has none."""
        return "cpu" if self.cuda is False else self.toolkit


def wanted_device(inputs: Mapping[str, str]) -> Wanted:
    """Return the device of a plan, from its inputs."""
    value = inputs.get("variable USE_CUDA")
    cuda = None if value is None else value != "" and not is_off(value)
    series = planned_cuda(inputs) if cuda else ""
    return Wanted(cuda=cuda, toolkit=f"cu{series.replace('.', '')}" if series else "")


def planned_cuda(inputs: Mapping[str, str]) -> str:
    """Return the series of a plan's CUDA toolkit, from its inputs: 12.6; "" for none."""
    match = _SERIES.search(inputs.get("cuda toolkit", ""))
    return match[1] if match else ""


def why_no_cuda(wheel: Wheel, wanted: Wanted) -> str:
    """Say that the plan is for CUDA and the wheel is not; "" if they agree."""
    return "it was built without CUDA, and the plan is for CUDA" if wanted.cuda and not wheel.cuda else ""


def night_source(subject: str) -> str:
    """Return the commit that a commit of the branch `nightly` was made from, by its subject; "" if none.

    "2024-09-17 nightly release (0a1b...)", as PyTorch's tools/nightly.py reads it.
    """
    match = re.search(r"nightly release \(([0-9a-f]{40})\)", subject)
    return match[1] if match else ""


def rank_variant(local: str, wanted: Wanted) -> tuple[int, int] | None:
    """Return the rank of a variant, smallest first; None if it cannot be used.

    Args:
        local: the local part of the version, as cu126 of 2.9.1+cu126; "" for PyPI's default variant.
    """
    kind = local.partition(".")[0]
    toolkit = _TOOLKIT.fullmatch(kind)
    newest = -int(f"{toolkit[1]}{toolkit[2]}") if toolkit else 0
    if kind.startswith(_OTHER) or (toolkit if wanted.cuda is False else wanted.cuda and kind == "cpu"):
        return None
    if toolkit and wanted.toolkit and toolkit[1] == wanted.toolkit[2:-1]:
        return (0 if kind == wanted.toolkit else 1, newest)
    order = ("", "cpu") if wanted.cuda is None else ("cpu", "")
    if kind in order:
        return (2 + order.index(kind), 0)
    return (4 if toolkit else 5, newest)


def version_of(file: str) -> str:
    """Return the version in the file name of a wheel; "" if the name is invalid."""
    with contextlib.suppress(InvalidWheelFilename, InvalidVersion):
        return str(parse_wheel_filename(file)[1])
    return ""


def choose_files(files: Iterable[str], publics: Sequence[str], wanted: Wanted) -> tuple[str, ...]:
    """Return the versions to try, in order: for each public version, the variants from best to worst.

    Args:
        files: file names of wheels that fit the Python and the machine.
        publics: versions without their variant, nearest first.
    """
    ranked = set()
    for file in files:
        public, _, local = version_of(file).partition("+")
        rank = rank_variant(local, wanted)
        if rank is not None and public in publics:
            ranked.add((publics.index(public), rank, version_of(file)))
    return tuple(version for _, _, version in sorted(ranked))


def choose_nights(files: Iterable[str], release: str, day: str) -> tuple[str, ...]:
    """Return the newest nightly versions up to a day, without their variant.

    Args:
        files: file names of wheels on the index of nightly builds.
        release: the release of the checkout's version: 2.10.0.
        day: the day of the commit, as 20251120.
    """
    found = set()
    for file in files:
        with contextlib.suppress(InvalidWheelFilename, InvalidVersion):
            version = parse_wheel_filename(file)[1]
            night = f"{version.dev:08d}" if version.dev else ""
            if version.base_version == release and "" < night <= day:
                found.add((night, version.public))
    return tuple(public for _, public in sorted(found, reverse=True)[:NIGHTS])

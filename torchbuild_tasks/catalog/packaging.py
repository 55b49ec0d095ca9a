"""Rows of what a wheel of torch brings, what it may expect, how large it may be, and what it is made of."""

from __future__ import annotations

from typing import Literal

import msgspec


class WheelInputRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a change of these files asks of a torch out of a wheel; wheel_inputs.toml explains the columns."""

    paths: tuple[str, ...]
    kind: Literal["native", "generated", "build", "python", "test", "docs"]
    part: str = ""


class SharedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Libraries that a wheel of torch needs and does not build, by patterns of their names.

    `way` is what a package does about them: graft (copied into torch/lib under their real names), target
    (every machine that the wheel is for has them), or cuda: what --cuda-libraries says. Those of CUDA name
    the `cuda` major that they are of, and the `project` on the package index that has them. `part` is that
    part in data/toolkits.toml, whose version belongs to a toolkit. `also` are patterns of files beside it
    that it loads by name, so that they go where it goes.
    """

    files: tuple[str, ...]
    what: str
    way: Literal["graft", "target", "cuda"]
    source: str
    cuda: str = ""
    project: str = ""
    part: str = ""
    also: tuple[str, ...] = ()


class RpathRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the libraries of a wheel for a `cuda` major look for NVIDIA's wheels, below site-packages."""

    cuda: str
    folders: tuple[str, ...]
    source: str


class CompressRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What nvcc is told so that device code is small, for CUDA versions of `cuda` (a PEP 440 specifier)."""

    cuda: str
    flags: str
    because: str
    source: str


class IndexLimitRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The largest file, in bytes, that `place` takes."""

    place: str
    size: int
    source: str


class SmallerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What makes a wheel smaller: for files of these patterns, from `share` of its size on."""

    files: tuple[str, ...]
    what: str
    advice: str
    share: float = 0.02
    device: Literal["", "cuda"] = ""

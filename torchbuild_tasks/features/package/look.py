"""Look at a wheel without unpacking it."""

from __future__ import annotations

from pathlib import Path

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.facts import wheel as wheels
from torchbuild_tasks.model.wheel import Wheel as Content


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel of torch, by its name, METADATA and torch/version.py. `cuda` is "" for none."""

    path: Path
    version: str
    platforms: tuple[str, ...]
    content: Content

    @property
    def cuda(self) -> str:
        """Return the CUDA that it was built with."""
        return self.content.cuda

    @property
    def windows(self) -> bool:
        """Say whether it is for Windows."""
        return self.platforms[0].startswith("win")

    @property
    def machine(self) -> str:
        """The processor that it is for."""
        return "aarch64" if self.platforms[0].endswith(("aarch64", "arm64")) else "x86_64"


def look_at_wheel(path: Path) -> Wheel:
    """Return the facts of a wheel.

    Raises:
        PackageRefused: it is not a wheel of torch, broken, or for another system than Linux and Windows.
    """
    again = "Build it again: torchbuild build --mode wheel"
    try:
        _, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise PackageRefused(f"{path} is not named as a wheel: {error}", next_step=again) from None
    platforms = tuple(sorted({tag.platform for tag in tags}))
    if not platforms[0].startswith(("linux", "manylinux", "musllinux", "win")):
        raise PackageRefused(f"{path} is for {platforms[0]}; packages are made for Linux and Windows.")
    content = wheels.look_at_wheel(path)
    if content.problem:
        raise PackageRefused(f"{path}: {content.problem}.", next_step=again)
    return Wheel(path=path, version=str(version), platforms=platforms, content=content)

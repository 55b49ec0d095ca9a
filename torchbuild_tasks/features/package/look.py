"""Look at a wheel without unpacking it."""

from __future__ import annotations

import ast
import re
import zipfile
from pathlib import Path
from typing import Final

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.features.package.choose import Member

_VALUE: Final = re.compile(r"(?m)^(\w+)\s*(?::[^=\n]+)?=\s*(['\"].*?['\"]|None|True|False)\s*$")


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel of torch: what its name, METADATA and torch/version.py say. `cuda` is "" for none."""

    path: Path
    project: str
    version: str
    platforms: tuple[str, ...]
    torch: str
    cuda: str
    commit: str
    members: tuple[Member, ...]

    @property
    def windows(self) -> bool:
        """Say whether it is for Windows."""
        return self.platforms[0].startswith("win")

    @property
    def machine(self) -> str:
        """The processor that it is for."""
        return "aarch64" if self.platforms[0].endswith(("aarch64", "arm64")) else "x86_64"


def look_at_wheel(path: Path) -> Wheel:
    """Read what a wheel is.

    Raises:
        PackageRefused: it is no wheel of torch, broken, or for another system than Linux and Windows.
    """
    again = "Build it again: torchbuild build --mode wheel"
    try:
        project, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise PackageRefused(f"{path} is not named as a wheel: {error}", next_step=again) from None
    platforms = tuple(sorted({tag.platform for tag in tags}))
    if not platforms[0].startswith(("linux", "manylinux", "musllinux", "win")):
        raise PackageRefused(f"{path} is for {platforms[0]}; packages are made for Linux and Windows.")
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            found = dict(_VALUE.findall(archive.read("torch/version.py").decode("utf-8", "replace")))
    except KeyError:
        raise PackageRefused(f"{path} is no wheel of torch: there is no torch/version.py in it.") from None
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise PackageRefused(f"{path} cannot be read as a wheel: {error}.", next_step=again) from None
    values = {name: str(ast.literal_eval(value) or "") for name, value in found.items()}
    return Wheel(
        path=path,
        project=project,
        version=str(version),
        platforms=platforms,
        torch=values.get("__version__", ""),
        cuda=values.get("cuda", ""),
        commit=values.get("git_version", ""),
        members=members_of(infos),
    )


def members_of(infos: list[zipfile.ZipInfo]) -> tuple[Member, ...]:
    """Return the files of an archive."""
    return tuple(
        Member(name=info.filename, size=info.file_size, packed=info.compress_size)
        for info in infos
        if not info.is_dir()
    )

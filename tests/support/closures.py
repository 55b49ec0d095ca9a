"""A shelf of values: the closure of either system, decided on any."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from torchbuild_tasks.model.closure import Image, Symbol


@dataclass
class Values:
    """Libraries by path, with their imports and exports; a library not named in `gives` exports all."""

    images: Mapping[str, Image]
    takes: Mapping[str, Sequence[Symbol]] = field(default_factory=dict)
    gives: Mapping[str, Collection[str]] = field(default_factory=dict)

    def image(self, path: str) -> Image | None:
        return self.images.get(path)

    def wanted(self, path: str) -> Sequence[Symbol]:
        return self.takes.get(path, ())

    def exported(self, path: str, symbols: Collection[Symbol]) -> Collection[Symbol]:
        names = self.gives.get(path)
        return symbols if names is None else [symbol for symbol in symbols if symbol.name in names]


def shelf(*images: Image) -> dict[str, Image]:
    """Images by their path."""
    return {image.real: image for image in images}


def lib(path: str, *needed: str, machine: str = "x86_64", name: str = "", **columns: object) -> Image:
    """A library that calls itself as its file is called."""
    own = name or path.replace("\\", "/").rpartition("/")[2]
    return Image(real=path, machine=machine, name=own, needed=needed, **columns)  # type: ignore[arg-type]

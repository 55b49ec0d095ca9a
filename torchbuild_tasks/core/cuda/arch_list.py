"""TORCH_CUDA_ARCH_LIST as values: its grammar in every era, families by rows.

    8.6   9.0+PTX   9.0a   12.0f   Ampere   Ampere+PTX   Ampere+Tegra

separated by semicolons, commas or blanks. Both eras read plain numbers; names of families
are written out, because the oldest one that knows a name differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from torchbuild_tasks.catalog import FamilyRow
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.rows import applies
from torchbuild_tasks.core.words import did_you_mean
from torchbuild_tasks.values import replace

_ENTRY = re.compile(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?", re.IGNORECASE)


class Capability(NamedTuple):
    """A compute capability as numbers, so that 10.3 comes after 9.0; `kind` is "", "a" or "f"."""

    major: int
    minor: int
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.kind}"

    @property
    def plain(self) -> Capability:
        """The same without its letter."""
        return Capability(self.major, self.minor)


class Arch(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the list: a cubin for `capability`, and with `ptx` also its PTX."""

    capability: Capability
    ptx: bool = False

    def __str__(self) -> str:
        return f"{self.capability}{'+PTX' if self.ptx else ''}"


class UnknownArch(ValueError):
    """A word that is no entry of an architecture list; the text says what was meant, perhaps."""


def capability(text: str) -> Capability:
    """Read "8.6" or "9.0a".

    Raises:
        UnknownArch: it is not a capability.
    """
    entry = _ENTRY.fullmatch(text.strip())
    if entry is None or entry[4]:
        raise UnknownArch(f"{text!r} is not a compute capability")
    return Capability(int(entry[1]), int(entry[2]), entry[3].lower())


def read(question: Question, text: str) -> tuple[Arch, ...]:
    """Read a whole list, names of families written out, each capability once, in numeric order.

    Raises:
        UnknownArch: a word is neither a number nor a family that a row names.
    """
    words = [word for word in re.split(r"[;,\s]+", text) if word]
    if not words:
        raise UnknownArch("the list of architectures is empty")
    return ordered(arch for word in words for arch in _meaning(question, word))


def ordered(archs: Iterable[Arch]) -> tuple[Arch, ...]:
    """Each capability once, +PTX where any entry says it, in numeric order."""
    ptx: dict[Capability, bool] = {}
    for arch in archs:
        ptx[arch.capability] = ptx.get(arch.capability, False) or arch.ptx
    return tuple(Arch(capability=each, ptx=ptx[each]) for each in sorted(ptx))


def spelled(archs: Sequence[Arch]) -> str:
    """The list as TORCH_CUDA_ARCH_LIST has it."""
    return ";".join(map(str, archs))


def families(question: Question) -> tuple[FamilyRow, ...]:
    """The names that the torch of the checkout knows; else, all of them."""
    return tuple(row for row in question.catalog.family if applies(row.torch, question.version))


def _meaning(question: Question, word: str) -> tuple[Arch, ...]:
    if entry := _ENTRY.fullmatch(word):
        kind = entry[3].lower()
        return (Arch(capability=Capability(int(entry[1]), int(entry[2]), kind), ptx=bool(entry[4])),)
    if (row := _family(question, word)) is not None:
        return _plain(row.archs)
    if word.lower().endswith("+ptx") and (row := _family(question, word[:-4])) is not None:
        return (*_plain(row.archs), *(replace(arch, ptx=True) for arch in _plain(row.ptx)))
    if re.fullmatch(r"(sm_|compute_)?\d{2,3}[af]?", word):
        digits = re.sub(r"\D", "", word)
        raise UnknownArch(
            f"{word!r} is nvcc's spelling; write {digits[:-1]}.{digits[-1]}{word[len(word.rstrip('af')) :]}"
        )
    hint = did_you_mean(word, sorted({row.name for row in question.catalog.family}))
    raise UnknownArch(f"{word!r} is no architecture{hint}")


def _family(question: Question, name: str) -> FamilyRow | None:
    """The row of a name, as the torch of the checkout reads it, else as any does."""
    rows = (*families(question), *question.catalog.family)
    return next((row for row in rows if row.name.lower() == name.lower()), None)


def _plain(numbers: str) -> tuple[Arch, ...]:
    return tuple(Arch(capability=capability(number)) for number in numbers.split(";"))

"""The rows that only the doctor and bootstrap read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class OptionRow:
    """Options of PyTorch's build by name; they are handed on by a pattern, so no variable row names them."""

    names: tuple[str, ...]
    source: str

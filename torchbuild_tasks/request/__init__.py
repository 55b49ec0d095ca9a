"""What the user asks for: one frozen value, one declaration per flag.

Every field of `BuildRequest` is a command-line flag of the same name. Its metadata
feeds both task runners, the help, `torchbuild.toml` and the reference in
`docs/flags.md`; nothing about a flag is written anywhere else.

This leaf stands apart from `model` for start-up: listing tasks needs the flags
and nothing else, and making one frozen dataclass costs about a millisecond.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from torchbuild_tasks.request.how import HowFlags
from torchbuild_tasks.request.said import SaidFlags
from torchbuild_tasks.request.verbs import (
    ACTIONS,
    BUILD_TYPES,
    MANAGERS,
    MAYBE,
    MODES,
    OBJECTS,
    PRESETS,
    SAMPLES,
    SHELLS,
    TRAILING,
    VERBS,
    WORDED,
    WORDS,
)
from torchbuild_tasks.request.what import WhatFlags

__all__ = [
    "ACTIONS",
    "BUILD_TYPES",
    "BuildRequest",
    "MANAGERS",
    "MAYBE",
    "MODES",
    "OBJECTS",
    "PRESETS",
    "SAMPLES",
    "SHELLS",
    "TRAILING",
    "VERBS",
    "WORDED",
    "WORDS",
    "flag_name",
    "flags",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildRequest(SaidFlags, HowFlags, WhatFlags):
    """The flags as given; `None` and `False` mean the user said nothing.

    `set` holds `KEY=VALUE` strings in the order given; a later one wins.
    """


def flags(verb: str) -> tuple[dataclasses.Field[Any], ...]:
    """The flags that `verb` takes, in the order of their declaration."""
    return tuple(field for field in dataclasses.fields(BuildRequest) if verb in field.metadata["verbs"])


def flag_name(field: str) -> str:
    """Spell a field as the user types it: `build_type` -> `--build-type`, `with_` -> `--with`."""
    return "--" + field.rstrip("_").replace("_", "-")

"""The declaration of one flag."""

from __future__ import annotations

import dataclasses
from typing import Any

from torchbuild_tasks.request.verbs import BUILDING


def flag(
    help: str,
    *,
    verbs: tuple[str, ...] = BUILDING,
    metavar: str = "",
    choices: tuple[str, ...] = (),
    default: Any = None,
    in_file: bool = True,
    positional: bool = False,
) -> Any:
    """Declare a flag; `in_file` says whether torchbuild.toml may carry a default for it.

    A `positional` one has no dashes: it is the word after the verb.
    """
    metadata = {
        "help": help,
        "verbs": verbs,
        "metavar": metavar,
        "choices": choices,
        "in_file": in_file,
        "positional": positional,
    }
    return dataclasses.field(default=default, metadata=metadata)

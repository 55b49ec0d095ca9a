"""What a log was found to say: the error that stopped the build, and its causes."""

from __future__ import annotations

from typing import Literal

import msgspec


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cause that a row knows, fitted to this machine.

    `command` is one of ours that does what `fix` says, "" where there is none; `see` is the
    address of the row's own place in the documentation.
    """

    id: str
    cause: str
    fix: str
    command: str = ""
    see: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a whole log says.

    `clean`: no failure in it. `unknown`: the error is shown and no row knows it. `error_line`
    is the line as it stands in the log, `line_number` its number (from 1; 0 when clean),
    `error_block` what belongs to it. `diagnoses` are ranked, a root before what follows from it.
    `notes` are rows for warnings, which are no failures.
    """

    status: Literal["diagnosed", "unknown", "clean"]
    error_line: str = ""
    error_block: tuple[str, ...] = ()
    line_number: int = 0
    diagnoses: tuple[Diagnosis, ...] = ()
    notes: tuple[Diagnosis, ...] = ()

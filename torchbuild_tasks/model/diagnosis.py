"""The first error of a log, and its causes."""

from __future__ import annotations

from typing import Literal

import msgspec


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One known cause of an error, with a fix for this machine.

    `command` is one of ours that does what `fix` says, "" where there is none; `see` is the
    address of the row's own place in the documentation. `component` is the part of the build that it
    is about, where a kind of errors was looked up.
    """

    id: str
    cause: str
    fix: str
    command: str = ""
    see: str = ""
    component: str = ""


class OtherError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What else failed in the same build, for another cause than the first error.

    `target` is what could not be made, "" for that of the first error; `line_number` and `error_line` are
    those of its error, the line without what a service wrote before it. `cause` is one sentence, "" where no
    row and no kind knows it.
    """

    target: str
    line_number: int
    error_line: str
    cause: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of reading a log.

    `clean`: no failure in it. `unknown`: the error is shown and no row knows it. `error_line`
    is the line as it stands in the log, `line_number` its number (from 1; 0 when clean),
    `error_block` what belongs to it. `diagnoses` are ranked, a root before what follows from it.
    `kind` is of which kind the error is (data/kinds.toml), `subject` what it is about, and `component`
    whose that is; "" where that is not known.
    `log` is the path that was read, `state` says of the build that wrote it what the log does not: that it
    still runs, or did not end well. `notes` are rows for warnings, which are not failures.
    `also` are errors of other targets, each with another cause.
    """

    status: Literal["diagnosed", "unknown", "clean"]
    error_line: str = ""
    error_block: tuple[str, ...] = ()
    line_number: int = 0
    diagnoses: tuple[Diagnosis, ...] = ()
    kind: str = ""
    subject: str = ""
    component: str = ""
    log: str = ""
    state: str = ""
    notes: tuple[Diagnosis, ...] = ()
    also: tuple[OtherError, ...] = ()

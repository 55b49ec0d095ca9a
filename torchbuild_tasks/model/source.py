"""Values of the verbs `source` (checkouts of PyTorch) and `builds` (named builds)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Kind = Literal["clone", "worktree", "submodule", "archive", "folder"]


class ModuleState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A submodule: its path, its recorded and its present commit, and its changes.

    `state` is ok, missing, unneeded (missing, and the plan does without), elsewhere (at another commit) or
    changed (files in it differ; then `changed` names them).
    """

    path: str
    wanted: str
    there: str | None
    state: Literal["ok", "missing", "unneeded", "elsewhere", "changed"]
    changed: tuple[str, ...] = ()


class Lacking(msgspec.Struct, frozen=True, kw_only=True):
    """The empty submodules of a checkout, by whether the plan needs them.

    `missing` says for each that a build needs what needs it; `fix` is what brings those.
    """

    missing: Mapping[str, str] = msgspec.field(default_factory=dict)
    unneeded: tuple[str, ...] = ()
    fix: str = ""


class Checkout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One checkout.

    Args:
        kind: how it came to be: a clone, a worktree, a submodule of another repository, an unpacked
            archive, or a plain folder.
        version: what version.txt says.
        url: where it is from, as far as that is known.
        commit: what is checked out; `at` is the tag or the branch.
        shallow: whether history was left out.
        changed: changed files outside of submodules.
        modules: its submodules, nested ones too.
        cut_off: whether a command on it was killed.
        lost: folders of objects that it borrows from and that are gone.
        fix: what brings the submodules that are missing.
        notes: what else a person should know.
    """

    path: str
    kind: Kind
    version: str | None = None
    url: str = ""
    commit: str | None = None
    at: str = ""
    shallow: bool = False
    changed: tuple[str, ...] = ()
    modules: tuple[ModuleState, ...] = ()
    cut_off: bool = False
    lost: tuple[str, ...] = ()
    fix: str = ""
    notes: tuple[str, ...] = ()


class SourceReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a `source` action.

    Args:
        checkouts: those that it is about.
        mirrors: address and folder of each mirror in the store.
        unfinished: where a new checkout grows, or did when it was cut off.
        removed: submodules that were, or with --dry-run would be, fetched again.
        kept: submodules that hold changes and were left alone, with the files.
    """

    action: str
    checkouts: tuple[Checkout, ...] = ()
    mirrors: tuple[tuple[str, str], ...] = ()
    unfinished: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[tuple[str, tuple[str, ...]], ...] = ()


# ---------------- named builds: state, entering, removal, comparison


class Last(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The end of the last build in a folder, by its manifest; `python` got torch, in `mode`."""

    result: str
    finished: str
    torch: str
    python: str
    mode: str = ""


class Shown(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named build, its folder and its state.

    `values` are its fields, and its variables as `set.NAME`, each with the table that says it.
    """

    name: str
    folder: str
    state: str
    active: bool
    ref: str = ""
    parents: tuple[str, ...] = ()
    last: Last | None = None
    values: Mapping[str, tuple[Any, str]] | None = None


class Away(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effect of a removal: the folder, its bytes, and files left elsewhere."""

    name: str
    folder: str
    size: int
    left: tuple[str, ...] = ()
    removed: bool = False


class Entering(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lines that enter a build, by shell, and the shells for which no env file was written yet."""

    name: str
    folder: str
    lines: Mapping[str, str]
    missing: tuple[str, ...]


class Difference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One difference between two plans: a choice, variable or command; `reasons` explain both values."""

    name: str
    values: tuple[str, str]
    reasons: tuple[str, str] = ("", "")


Answer = tuple[Shown, ...] | tuple[Difference, ...] | Entering | Away

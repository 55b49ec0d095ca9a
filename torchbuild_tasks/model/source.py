"""Checkouts of PyTorch as `source` finds and leaves them."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["clone", "worktree", "submodule", "archive", "folder"]


class ModuleState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A submodule: where it lies, the commit that is wanted, the one that is there, what was changed in it.

    `state` is ok, missing, unneeded (missing, and the plan does without), elsewhere (at another commit) or
    changed (files in it differ; then `changed` names them).
    """

    path: str
    wanted: str
    there: str | None
    state: Literal["ok", "missing", "unneeded", "elsewhere", "changed"]
    changed: tuple[str, ...] = ()


class Checkout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One checkout.

    Args:
        path: its folder.
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
    notes: tuple[str, ...] = ()


class SourceReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a `source` action found or did.

    Args:
        action: which.
        checkouts: those that it is about.
        mirrors: address and folder of each mirror in the store.
        unfinished: where a new checkout grows, or did when it was cut off.
        removed: submodules that were, or with --dry-run would be, got anew.
        kept: submodules that hold changes and were left alone, with the files.
    """

    action: str
    checkouts: tuple[Checkout, ...] = ()
    mirrors: tuple[tuple[str, str], ...] = ()
    unfinished: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[tuple[str, tuple[str, ...]], ...] = ()

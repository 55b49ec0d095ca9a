"""The request, the settings and the facts from which a recorded build is planned again here.

A plan is a pure function of them, so the same machine gives the same plan. What measures the moment (free
memory, the processes of builds before) is taken from the manifest where the machine is as large as that one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from torchbuild_tasks.core.manifest.secrets import HIDDEN
from torchbuild_tasks.model import BuildPlan, EnvOp, Facts
from torchbuild_tasks.model.record import Manifest
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.settings import Settings, check_settings
from torchbuild_tasks.plan.variables import DECIDED_APART
from torchbuild_tasks.text.redaction import is_secret
from torchbuild_tasks.values import replace

# Fields of a request that say how one run goes, or where; they are never taken from a manifest.
_OF_ONE_RUN: Final = frozenset(
    (
        *("action", "clean", "watch", "notify", "dry_run", "facts", "config", "json", "quiet", "verbose"),
        *(
            "yes",
            "out",
            "source",
            "torch",
            "name",
            "manifest",
            "good",
            "bad",
            "skip",
            "resume",
            "reset",
            "command",
        ),
    )
)


def request_of(manifest: Manifest, given: BuildRequest, source: str) -> BuildRequest:
    """What was asked for then, with what is asked for now laid over it."""
    return asked_again(manifest.request, given, source)


def asked_again(recorded: Mapping[str, object], given: BuildRequest, source: str) -> BuildRequest:
    """The flags of a build of then, with those that are given now laid over them."""
    asked = {name: _value(value) for name, value in recorded.items() if _kept(name, value)}
    now = {
        field.name: getattr(given, field.name)
        for field in dataclasses.fields(given)
        if getattr(given, field.name) not in (None, False, ())
    }
    assignments = (*asked.get("set", ()), *now.get("set", ()))
    return BuildRequest(**{**asked, **now, "set": assignments, "source": source})


def not_carried(manifest: Manifest) -> tuple[str, ...]:
    """What was asked for then and cannot be asked for again: unknown here, or a credential."""
    known = {field.name for field in dataclasses.fields(BuildRequest)}
    names = [name for name in manifest.request if name not in known]
    return (*(f"flag {name}" for name in names), *manifest.redacted)


def _kept(name: str, value: object) -> bool:
    known = name in {field.name for field in dataclasses.fields(BuildRequest)}
    hidden = isinstance(value, str) and HIDDEN in value
    return known and not hidden and name not in _OF_ONE_RUN


def _value(value: object) -> Any:
    """Lists are tuples in a request; a hidden --set is not one."""
    if isinstance(value, (list, tuple)):
        return tuple(item for item in value if HIDDEN not in str(item))
    return value


def settings_of(manifest: Manifest) -> Settings:
    """torchbuild.toml as it was.

    Raises:
        UsageError: it has a key that this torchbuild_tasks does not know.
    """
    recorded = manifest.settings
    if not recorded:
        return Settings()
    parts: dict[str, Any] = {name: recorded.get(name) or {} for name in ("values", "variables")}
    values = {name: value for name, value in parts["values"].items() if HIDDEN not in str(value)}
    rows = [_row(row) for row in _rows(recorded.get("helpers"))]
    data = {**values, "set": parts["variables"], **({"helper": rows} if rows else {})}
    return check_settings(str(recorded.get("path")), data, {})


def _rows(value: object) -> list[Mapping[str, object]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, (list, tuple)) else []


def _row(row: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if value is not None}


def pinned(facts: Facts, manifest: Manifest) -> Facts:
    """The facts with the user's build variables of then, and the free memory of then where it can be."""
    then = manifest.facts
    environ = {name: value for name, value in then.environ.items() if HIDDEN not in value}
    kept = {name: value for name, value in facts.environ.items() if is_secret(name)}
    facts = replace(facts, environ={**environ, **kept})
    if not as_large(facts, manifest):
        return facts
    store = facts.store and replace(facts.store, peaks=then.store.peaks if then.store else ())
    return replace(facts, cpu=then.cpu, memory=then.memory, store=store)


def as_large(facts: Facts, manifest: Manifest) -> bool:
    """Whether this machine has the cores, the memory and the limits of that one."""
    one, other = facts.memory, manifest.facts.memory
    return facts.cpu == manifest.facts.cpu and (one.total, one.limit) == (other.total, other.limit)


def pins(manifest: Manifest, plan: BuildPlan, facts: Facts) -> tuple[str, ...]:
    """The variables, as --set takes them, that bring a plan made here nearer to the recorded one.

    A value that names a place is taken only where a program of this machine is there.
    """
    tools = (*facts.compilers, *facts.tools)
    places = {path for tool in tools for path in (tool.path, *tool.aliases) if path}
    here = {op.name: op.value for op in plan.env if op.op == "set"}
    return tuple(
        f"{op.name}={op.value}"
        for op in manifest.env
        if _can_be_set(op, places) and here.get(op.name) != op.value
    )


def _can_be_set(op: EnvOp, places: set[str]) -> bool:
    compilers = op.name in ("CC", "CXX") and op.value in places
    apart = op.name in DECIDED_APART or is_secret(op.name)
    placeless = not any(mark in op.value for mark in ("/", "\\", HIDDEN))
    return op.op == "set" and (compilers or (not apart and (placeless or op.value in places)))

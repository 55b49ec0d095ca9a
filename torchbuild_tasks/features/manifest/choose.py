"""Redact credentials in a manifest, and derive the request, settings and facts of a replay.

Credentials go at every write, since a manifest is made to be handed on. A diff is changed only where an
address in it carries a login, since a changed diff no longer applies; its `problem` then says so.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.features.cache.address import redacted
from torchbuild_tasks.model import BuildPlan, EnvOp, Facts
from torchbuild_tasks.model.record import Manifest, Repository
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.freshness import conceal
from torchbuild_tasks.plan.settings import Settings, check_settings
from torchbuild_tasks.plan.trust import is_harmless, is_harmless_variable
from torchbuild_tasks.plan.variables import DECIDED_APART
from torchbuild_tasks.text.redaction import is_secret, without_forms
from torchbuild_tasks.values import as_table, replace

HIDDEN: Final = "***"

_LOGIN: Final = re.compile(r"(?<=://)[^/\s'\"@]+@")
_ASSIGNED: Final = re.compile(r"([-\w.]+)=(.+)", re.DOTALL)
_LEAST: Final = 4  # characters: a shorter value would match any text by accident


def without_secrets(manifest: Manifest) -> Manifest:
    """Return the manifest without credentials; its `redacted` lists what was removed."""
    parts = {each: getattr(manifest, each) for each in manifest.__struct_fields__}
    for apart in ("repositories", "inputs"):
        del parts[apart]
    # Of the facts only the variables: names such as tokenizers or auth.h are no secrets.
    named = {**parts, "facts": manifest.facts.environ}
    pairs = [each for part in named.values() for each in _secrets(part)]
    secrets = dict(pairs)
    names = [*manifest.redacted, *(name for _, name in pairs)]
    clean = {name: _clean(value, secrets, names) for name, value in parts.items()}
    clean["inputs"] = conceal_inputs(manifest.inputs, secrets)
    clean["repositories"] = tuple(_repository(each, names) for each in manifest.repositories)
    return replace(manifest, **{**clean, "redacted": tuple(dict.fromkeys(names))})


def conceal_inputs(inputs: Mapping[str, str], secrets: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the inputs with a short hash in place of each value with a secret.

    Args:
        inputs: as the plan has them; only its variables can be secret by their own names.
        secrets: values that are secret by a name elsewhere, with that name.
    """
    variables = {name: value for name, value in inputs.items() if name.startswith("variable ")}
    known = {**(secrets or {}), **dict(_secrets(variables))}
    return {
        name: value if _text(value, known, []) == value else conceal(value) for name, value in inputs.items()
    }


def _secrets(value: object) -> Iterator[tuple[str, str]]:
    """Yield every value that is a secret by its name, with that name."""
    if isinstance(value, str):  # --set NAME=VALUE
        if (assigned := _ASSIGNED.fullmatch(value)) and is_secret(assigned[1].lstrip("-")):
            yield assigned[2], assigned[1]
    elif isinstance(value, Mapping):
        yield from ((str(item), str(name)) for name, item in value.items() if item and is_secret(str(name)))
        yield from (secret for item in value.values() for secret in _secrets(item))
    elif isinstance(value, (tuple, list)):
        yield from (secret for item in value for secret in _secrets(item))
    elif isinstance(value, msgspec.Struct):
        name = getattr(value, "name", "")
        text = getattr(value, "value", "")
        if isinstance(text, str) and text and is_secret(name):
            yield text, name
        yield from (secret for each in value.__struct_fields__ for secret in _secrets(getattr(value, each)))


def _clean(value: Any, secrets: Mapping[str, str], names: list[str]) -> Any:
    if isinstance(value, str):
        return _text(value, secrets, names)
    if isinstance(value, Mapping):
        return {name: _clean(item, secrets, names) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_clean(item, secrets, names) for item in value)
    if isinstance(value, msgspec.Struct):
        parts = {each: _clean(getattr(value, each), secrets, names) for each in value.__struct_fields__}
        return replace(value, **parts)
    return value


def _text(text: str, secrets: Mapping[str, str], names: list[str]) -> str:
    for secret in secrets:
        if text == secret or len(secret) >= _LEAST:
            text = text.replace(secret, HIDDEN)
    clean = redacted(text)
    if clean != text:
        names.append("a login in an address")
    if (bare := without_forms(clean, HIDDEN)) != clean:
        names.append("what looks like a secret")
    return bare


def _repository(repository: Repository, names: list[str]) -> Repository:
    url = redacted(repository.url)
    diff = _LOGIN.sub(f"{HIDDEN}@", repository.diff)
    name = repository.path or "torch"
    if url != repository.url:
        names.append(f"a login in the address of {name}")
    if diff == repository.diff:
        return replace(repository, url=url)
    names.append(f"a login in the diff of {name}")
    problem = "an address in the diff carried a login, which was taken out"
    return replace(repository, url=url, diff=diff, problem=problem)


# ---------------- the request, the settings and the facts from which a recorded build is planned again


# Fields of a request about one run or its place, which are never taken from a manifest.
_OF_ONE_RUN: Final = frozenset(
    (
        *("action", "auto", "clean", "watch", "notify", "dry_run", "facts", "config", "json", "quiet"),
        *("verbose", "yes", "out", "source", "torch", "name", "manifest"),
        *("good", "bad", "skip", "resume", "reset", "command"),  # of `bisect`
    )
)


def withhold(manifest: Manifest, catalog: Catalog) -> tuple[Manifest, tuple[str, ...]]:
    """Return an untrusted manifest without names of programs, servers and remote places.

    Returns:
        The manifest with harmless values alone, and what was taken out of it.
    """
    request = {
        name: _harmless_set(value, catalog) if name == "set" else value
        for name, value in manifest.request.items()
        if name == "set" or is_harmless(name, _value(value))
    }
    recorded = manifest.settings
    environ = manifest.facts.environ
    values, variables = (as_table(recorded.get(part)) for part in ("values", "variables"))
    settings = {
        "path": str(recorded.get("path")),
        "values": {name: value for name, value in values.items() if is_harmless(name, _value(value))},
        "variables": _harmless(variables, catalog),
    }
    clean = replace(
        manifest,
        request=request,
        settings=settings if recorded else {},
        facts=replace(manifest.facts, environ=_harmless(environ, catalog)),
        env=tuple(
            op
            for op in manifest.env
            if op.name in ("CC", "CXX") or is_harmless_variable(op.name, op.value, catalog)
        ),
    )
    out = [f"flag {name}" for name in manifest.request if _is_repeated(name, "") and name not in request]
    out += [f"setting {name}" for name in values if name not in settings["values"]]
    every = {**variables, **environ}
    out += [f"variable {name}" for name in sorted(every.keys() - _harmless(every, catalog).keys())]
    out += ["rows of helpers"] if recorded.get("helpers") else []
    recorded_set = list(_value(manifest.request.get("set")) or ())
    out += ["values of --set"] if recorded_set != request.get("set", []) else []
    return clean, tuple(out)


def _harmless(variables: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    return {
        name: value for name, value in variables.items() if is_harmless_variable(name, str(value), catalog)
    }


def _harmless_set(value: object, catalog: Catalog) -> list[str]:
    pairs = [str(item).partition("=") for item in _value(value) or ()]
    return [f"{name}={text}" for name, _, text in pairs if is_harmless_variable(name, text, catalog)]


def request_again(recorded: Mapping[str, object], request: BuildRequest, source: str) -> BuildRequest:
    """Return the recorded flags; present ones win, except a verb's own."""
    repeated = {name: _value(value) for name, value in recorded.items() if _is_repeated(name, value)}
    now = {
        field.name: getattr(request, field.name)
        for field in dataclasses.fields(BuildRequest)
        if getattr(request, field.name) not in (None, False, ())
    }
    assignments = (*repeated.get("set", ()), *now.get("set", ()))
    return BuildRequest(**{**repeated, **now, "set": assignments, "source": source})


def of_builds(recorded: Mapping[str, object]) -> Mapping[str, object]:
    """Return recorded flags without those of one run or its place, such as --json, --yes or --source."""
    return {name: value for name, value in recorded.items() if name not in _OF_ONE_RUN}


def not_carried(manifest: Manifest) -> tuple[str, ...]:
    """Return recorded flags that cannot be repeated: unknown ones, and credentials."""
    known = {field.name for field in dataclasses.fields(BuildRequest)}
    names = [name for name in manifest.request if name not in known]
    return (*(f"flag {name}" for name in names), *manifest.redacted)


def _is_repeated(name: str, value: object) -> bool:
    known = name in {field.name for field in dataclasses.fields(BuildRequest)}
    hidden = isinstance(value, str) and HIDDEN in value
    return known and not hidden and name not in _OF_ONE_RUN


def _value(value: object) -> Any:
    """Return a recorded value as a request's field: lists become tuples, hidden --set values are left out."""
    if isinstance(value, (list, tuple)):
        return tuple(item for item in value if HIDDEN not in str(item))
    return value


def settings_of(manifest: Manifest) -> Settings:
    """Return the recorded torchbuild.toml.

    Raises:
        UsageError: it has a key that this torchbuild_tasks does not know.
    """
    recorded = manifest.settings
    if not recorded:
        return Settings()
    parts: dict[str, Any] = {name: recorded.get(name) or {} for name in ("values", "variables")}
    values = {name: value for name, value in parts["values"].items() if HIDDEN not in str(value)}
    helpers = recorded.get("helpers")
    rows = [
        {name: value for name, value in row.items() if value is not None}
        for row in (helpers if isinstance(helpers, (list, tuple)) else ())
        if isinstance(row, Mapping)
    ]
    data = {**values, "set": parts["variables"], **({"helper": rows} if rows else {})}
    return check_settings(str(recorded.get("path")), data, {})


def pin_facts(facts: Facts, manifest: Manifest) -> Facts:
    """Return the facts with the recorded build variables, and the recorded free memory if possible."""
    then = manifest.facts
    environ = {name: value for name, value in then.environ.items() if HIDDEN not in value}
    secrets = {name: value for name, value in facts.environ.items() if is_secret(name)}
    facts = replace(facts, environ={**environ, **secrets})
    if not is_as_large(facts, manifest):
        return facts
    store = facts.store and replace(facts.store, peaks=then.store.peaks if then.store else ())
    return replace(facts, cpu=then.cpu, memory=then.memory, store=store)


def is_as_large(facts: Facts, manifest: Manifest) -> bool:
    """Say whether this machine has at least the recorded cores, memory and limits."""
    one = facts.memory
    other = manifest.facts.memory
    return facts.cpu == manifest.facts.cpu and (one.total, one.limit) == (other.total, other.limit)


def pins(manifest: Manifest, plan: BuildPlan, facts: Facts) -> tuple[str, ...]:
    """Return --set values that bring a plan made here nearer to the recorded one.

    A value that is a path is taken only where it is a program of this machine.
    """
    tools = (*facts.compilers, *facts.tools)
    places = {path for tool in tools for path in (tool.path, *tool.aliases) if path}
    planned = {op.name: op.value for op in plan.env if op.op == "set"}
    return tuple(
        f"{op.name}={op.value}"
        for op in manifest.env
        if _can_be_set(op, places) and planned.get(op.name) != op.value
    )


def _can_be_set(op: EnvOp, places: set[str]) -> bool:
    compilers = op.name in ("CC", "CXX") and op.value in places
    apart = op.name in DECIDED_APART or is_secret(op.name)
    placeless = not any(mark in op.value for mark in ("/", "\\", HIDDEN))
    return op.op == "set" and (compilers or (not apart and (placeless or op.value in places)))

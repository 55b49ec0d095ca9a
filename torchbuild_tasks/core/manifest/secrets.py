"""Takes credentials out of a manifest, at every write of one: it is made to be handed on.

A diff is changed only where an address in it carries a login, since a changed diff no longer applies; it
is then said not to be whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from torchbuild_tasks.features.cache.address import redacted
from torchbuild_tasks.model.record import Manifest, Repository
from torchbuild_tasks.plan.fresh import conceal
from torchbuild_tasks.text.redaction import is_secret
from torchbuild_tasks.values import replace

HIDDEN: Final = "***"

_LOGIN: Final = re.compile(r"(?<=://)[^/\s'\"@]+@")
_ASSIGNED: Final = re.compile(r"([-\w.]+)=(.+)", re.DOTALL)
_LEAST: Final = 4  # letters: a shorter value is found by chance in any text


def without_secrets(manifest: Manifest) -> Manifest:
    """The manifest as it may be written and handed on; `redacted` lists what was taken out."""
    parts = {each: getattr(manifest, each) for each in manifest.__struct_fields__}
    for apart in ("repositories", "inputs"):
        del parts[apart]
    # Of the facts only the variables: names of packages and files (tokenizers, auth.h) speak of no secret.
    named = {**parts, "facts": manifest.facts.environ}
    found = [each for part in named.values() for each in _secrets(part)]
    secrets, taken = dict(found), [*manifest.redacted, *(name for _, name in found)]
    clean = {name: _clean(value, secrets, taken) for name, value in parts.items()}
    clean["inputs"] = conceal_inputs(manifest.inputs, secrets)
    clean["repositories"] = tuple(_repository(each, taken) for each in manifest.repositories)
    return replace(manifest, **{**clean, "redacted": tuple(dict.fromkeys(taken))})


def conceal_inputs(inputs: Mapping[str, str], secrets: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the fingerprint with a short hash for each value that is or holds a secret.

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
    """Every value that the name beside it makes a secret, with that name."""
    if isinstance(value, str):  # --set NAME=VALUE
        if (assigned := _ASSIGNED.fullmatch(value)) and is_secret(assigned[1].lstrip("-")):
            yield assigned[2], assigned[1]
    elif isinstance(value, Mapping):
        yield from ((str(item), str(name)) for name, item in value.items() if item and is_secret(str(name)))
        yield from (found for item in value.values() for found in _secrets(item))
    elif isinstance(value, (tuple, list)):
        yield from (found for item in value for found in _secrets(item))
    elif isinstance(value, msgspec.Struct):
        name = getattr(value, "name", "")
        text = getattr(value, "value", "")
        if isinstance(text, str) and text and is_secret(name):
            yield text, name
        yield from (found for each in value.__struct_fields__ for found in _secrets(getattr(value, each)))


def _clean(value: Any, secrets: Mapping[str, str], taken: list[str]) -> Any:
    if isinstance(value, str):
        return _text(value, secrets, taken)
    if isinstance(value, Mapping):
        return {name: _clean(item, secrets, taken) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_clean(item, secrets, taken) for item in value)
    if isinstance(value, msgspec.Struct):
        parts = {each: _clean(getattr(value, each), secrets, taken) for each in value.__struct_fields__}
        return replace(value, **parts)
    return value


def _text(text: str, secrets: Mapping[str, str], taken: list[str]) -> str:
    for secret in secrets:
        if text == secret or len(secret) >= _LEAST:
            text = text.replace(secret, HIDDEN)
    clean = redacted(text)
    if clean != text:
        taken.append("a login in an address")
    return clean


def _repository(repository: Repository, taken: list[str]) -> Repository:
    url = redacted(repository.url)
    diff = _LOGIN.sub(f"{HIDDEN}@", repository.diff)
    name = repository.path or "torch"
    if url != repository.url:
        taken.append(f"a login in the address of {name}")
    if diff == repository.diff:
        return replace(repository, url=url)
    taken.append(f"a login in the diff of {name}")
    problem = "an address in the diff carried a login, which was taken out"
    return replace(repository, url=url, diff=diff, problem=problem)

"""Takes credentials out of a manifest: a manifest is made to be handed on.

A diff is changed only where an address in it carries a login, since a changed diff no longer applies; it
is then said not to be whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from torchbuild_tasks.core.cache.address import redacted
from torchbuild_tasks.core.redaction import is_secret
from torchbuild_tasks.manifest import Manifest, Repository

HIDDEN: Final = "***"

_LOGIN: Final = re.compile(r"(?<=://)[^/\s'\"@]+@")
_ASSIGNED: Final = re.compile(r"([-\w.]+)=(.+)", re.DOTALL)
_LEAST: Final = 4  # letters: a shorter value is found by chance in any text


def without_secrets(manifest: Manifest) -> Manifest:
    """The manifest as it may be written and handed on; `redacted` lists what was taken out."""
    parts = {each.name: getattr(manifest, each.name) for each in fields(manifest)}
    repositories: tuple[Repository, ...] = parts.pop("repositories")
    secrets = dict(found for part in parts.values() for found in _secrets(part))
    taken = list(secrets.values())
    clean = {name: _clean(value, secrets, taken) for name, value in parts.items()}
    whole = tuple(_repository(each, taken) for each in repositories)
    return replace(manifest, **{**clean, "repositories": whole, "redacted": tuple(dict.fromkeys(taken))})


def _secrets(value: object) -> Iterator[tuple[str, str]]:
    """Every value that the name beside it makes a secret, with that name."""
    if isinstance(value, str):  # --set NAME=VALUE
        if (assigned := _ASSIGNED.fullmatch(value)) and is_secret(
            assigned[1].lstrip("-")
        ):  # --set NAME=VALUE
            yield assigned[2], assigned[1]
    elif isinstance(value, Mapping):
        yield from ((str(item), str(name)) for name, item in value.items() if item and is_secret(str(name)))
        yield from (found for item in value.values() for found in _secrets(item))
    elif isinstance(value, (tuple, list)):
        yield from (found for item in value for found in _secrets(item))
    elif is_dataclass(value):
        name = getattr(value, "name", "")
        text = getattr(value, "value", "")
        if isinstance(text, str) and text and is_secret(name):
            yield text, name
        yield from (found for each in fields(value) for found in _secrets(getattr(value, each.name)))


def _clean(value: Any, secrets: Mapping[str, str], taken: list[str]) -> Any:
    if isinstance(value, str):  # --set NAME=VALUE
        return _text(value, secrets, taken)
    if isinstance(value, Mapping):
        return {name: _clean(item, secrets, taken) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_clean(item, secrets, taken) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: _clean(getattr(value, each.name), secrets, taken) for each in fields(value)}
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

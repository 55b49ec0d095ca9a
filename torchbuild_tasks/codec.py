"""Values to JSON and back, both ways, checked.

`decode` refuses what does not fit the dataclass and names the place, so a dump that was
edited by hand fails with its path ("facts.cpu.cores"), not three functions later.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, cast

from torchbuild_tasks.errors import UsageError

T = TypeVar("T")


def encode(value: object) -> Any:
    """Turn a value of ours into what `json.dumps` takes; field order is kept."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    return value


def dumps(value: object, *, ascii: bool = False) -> str:
    """One JSON object as text, for people and programs: indented, Unicode as it is.

    A name that is no valid Unicode (a byte of an old file system) is escaped; with `ascii`
    everything beyond ASCII is.
    """
    text = json.dumps(encode(value), indent=2, ensure_ascii=ascii)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def decode(kind: type[T], data: object, place: str = "") -> T:
    """Build a `kind` from decoded JSON.

    Raises:
        UsageError: a key is unknown or missing, or a value has the wrong type.
    """
    return cast(T, _decode(kind, data, place or kind.__name__))


def _decode(kind: Any, data: object, place: str) -> Any:
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(cast(type, kind), data, place)
    if origin in (Union, types.UnionType):
        return _decode_union(typing.get_args(kind), data, place)
    if origin is Literal:
        if data in typing.get_args(kind):
            return data
        raise _wrong(place, " or ".join(map(str, typing.get_args(kind))), data)
    if origin is tuple and isinstance(data, list):
        return tuple(_decode(typing.get_args(kind)[0], item, f"{place}[{i}]") for i, item in enumerate(data))
    if origin is Mapping and isinstance(data, dict):
        return {key: _decode(typing.get_args(kind)[1], item, f"{place}.{key}") for key, item in data.items()}
    return _decode_plain(kind, data, place)


def _decode_union(kinds: tuple[Any, ...], data: object, place: str) -> Any:
    if data is None and type(None) in kinds:
        return None
    wanted = [kind for kind in kinds if kind is not type(None)]
    return _decode(wanted[0], data, place)


def _decode_plain(kind: Any, data: object, place: str) -> Any:
    if kind is object:
        return data
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if isinstance(kind, type) and isinstance(data, kind) and not (kind is int and isinstance(data, bool)):
        return data
    raise _wrong(place, getattr(kind, "__name__", "list or object"), data)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode_dataclass(kind: type, data: object, place: str) -> Any:
    if not isinstance(data, dict):
        raise _wrong(place, "object", data)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(set(data) - set(fields)):
        raise UsageError(f"{place} has an unknown key: {unknown[0]}", looked=(f"known: {', '.join(fields)}",))
    for name, field in fields.items():
        no_default = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if no_default and name not in data:
            raise UsageError(f"{place} lacks the key {name}")
    hints = _hints(kind)
    return kind(**{name: _decode(hints[name], item, f"{place}.{name}") for name, item in data.items()})


def _wrong(place: str, wanted: str, data: object) -> UsageError:
    return UsageError(f"{place} is {json.dumps(data, default=str)[:80]}, not {wanted}")

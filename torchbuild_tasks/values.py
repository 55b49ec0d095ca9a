"""Values: how one is changed, shown, turned into JSON and read back, checked.

Values, rows and decisions are frozen `msgspec.Struct`s; what a JSON file or a row may hold follows
from their fields. What does not fit is refused with its place ("facts.cpu.cores"), so that a
dump that was edited by hand does not fail three functions later.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from torchbuild_tasks.errors import UsageError

T = TypeVar("T")
# The parts of a place as msgspec 0.22 writes it: `$.rows[1].set[...]`, where [...] is any key of a mapping.
_STEP: Final = re.compile(r"\.[^.\[]+|\[[^]]+\]")
_MISTYPED: Final = re.compile(r"Expected `([^`]+)`, got `([^`]+)`$")
# What msgspec calls the types that JSON and TOML have.
_TYPES: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    type(None): "null",
    list: "array",
    dict: "object",
}


def replace(value: T, /, **changes: Any) -> T:
    """Return a copy of a value with some fields changed."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]  # the flags: `request`


def repr_without(value: msgspec.Struct, *hidden: str) -> str:
    """Return the `repr` of a value without its secrets, which belong into no log and no traceback."""
    shown = (name for name in value.__struct_fields__ if name not in hidden)
    return f"{type(value).__name__}({', '.join(f'{name}={getattr(value, name)!r}' for name in shown)})"


def to_json(value: object) -> Any:
    """Turn a value into what `json.dumps` takes; the order of the fields is kept.

    `msgspec.to_builtins` keeps tuples, which are not equal to the lists that come back from a file.
    """
    if isinstance(value, msgspec.Struct):
        return {name: to_json(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def dumps(value: object, *, ascii: bool = False) -> str:
    """Write one JSON object as text, for people and programs: indented, Unicode as it is.

    A name that is no valid Unicode (a byte of an old file system), which `msgspec.json.encode` refuses,
    is escaped; with `ascii` everything beyond ASCII is.
    """
    text = json.dumps(to_json(value), indent=2, ensure_ascii=ascii)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def from_json(kind: type[T], data: object, place: str = "") -> T:
    """Make a value of decoded JSON or TOML.

    Args:
        kind: what it is: a Struct.
        data: the decoded object.
        place: what the data is called in an error: a file, a row, "facts".

    Raises:
        UsageError: a key is unknown or missing, or a value has the wrong type; the text names the place.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise _refusal(kind, data, place or kind.__name__, str(error)) from None


def _refusal(kind: type, data: object, place: str, message: str) -> UsageError:
    """Say what msgspec refused: with the value, with the names of a mapping's keys, with the known keys."""
    text, _, at = message.partition(" - at ")
    steps = _STEP.findall(at.partition("$")[2].rstrip("`"))
    mistyped = _MISTYPED.match(text)
    found = list(_values_at(data, steps))
    word = text.split("`")[1] if "`" in text else ""
    fitting = [each for each in found if _is_meant(text, word, each[1])]
    where, value = (fitting or found or [("".join(steps), None)])[0]
    place += where
    if text.startswith("Object contains unknown field"):
        return _unknown(place, word, [field.name for field in getattr(_type_at(kind, steps), "fields", ())])
    if text.startswith("Object missing required field"):
        return UsageError(f"{place} lacks the key {word}")
    shown = json.dumps(value, default=str)[:80]
    if text.startswith("Invalid enum value"):
        known = getattr(_type_at(kind, steps), "values", ())
        return UsageError(f"{place} is {shown}, not {' or '.join(map(str, known))}")
    if mistyped and not at.startswith("`key`"):
        return UsageError(f"{place} is {shown}, not {mistyped[1].replace(' | ', ' or ')}")
    return UsageError(f"{place}: {text.replace('`', '')}")


def _is_meant(text: str, word: str, value: object) -> bool:
    """Say whether a message can be about this value, where msgspec leaves open which of a mapping it is."""
    if mistyped := _MISTYPED.match(text):
        return _TYPES.get(type(value)) == mistyped[2]
    if text.startswith("Invalid enum value"):
        return text == f"Invalid enum value {value!r}"
    return isinstance(value, dict) and (word in value) is text.startswith("Object contains")


def _unknown(place: str, key: str, known: Sequence[str]) -> UsageError:
    import difflib  # only for an error

    near = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return UsageError(f"{place} has an unknown key: {key}{hint}", looked=(f"known: {', '.join(known)}",))


def _values_at(value: Any, steps: Sequence[str]) -> Iterator[tuple[str, object]]:
    """Yield the places that a path may mean, and what is there."""
    if not steps:
        yield "", value
        return
    step, *rest = steps
    keys = [step[1:]] if step[0] == "." else list(value) if step == "[...]" else [int(step[1:-1])]
    for key in keys:
        label = f"[{key}]" if isinstance(key, int) else f".{key}"
        with contextlib.suppress(LookupError, TypeError):  # of another mapping than the one that is meant
            for tail, found in _values_at(value[key], rest):
                yield label + tail, found


def _type_at(kind: type, steps: Sequence[str]) -> object:
    """Return the type, as `msgspec.inspect` describes it, of what is at a path; of `X | None` that of X."""
    info: Any = msgspec.inspect.type_info(kind)
    for step in (*steps, ""):
        if isinstance(info, msgspec.inspect.UnionType):
            info = next(each for each in info.types if not isinstance(each, msgspec.inspect.NoneType))
        if isinstance(info, msgspec.inspect.StructType) and step:
            info = next(field.type for field in info.fields if field.name == step[1:])
        elif step:
            inner = getattr(info, "item_types", None)
            info = inner[int(step[1:-1])] if inner else getattr(info, "item_type", None) or info.value_type
    return info

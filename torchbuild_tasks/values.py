"""Change, show and write values, and read them back from JSON and TOML with checks.

`parse_json` and `parse_toml` are the only parsers of either. They bound the time, memory and stack that a
hostile text can use, and refuse numbers that only Python knows.

Values, rows and decisions are frozen `msgspec.Struct`s, whose fields define what a JSON file or a row may
hold. An error names the place ("facts.cpu.cores"), so that a dump edited by hand is refused where it is read.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.text.visible import visible_json
from torchbuild_tasks.text.words import did_you_mean

T = TypeVar("T")
DEEPEST: Final = 64  # levels of nesting; what is read here has at most ten
LONGEST: Final = 64 << 20  # characters of JSON; the listing of a built tree has 20 MiB
LONGEST_TOML: Final = 1 << 20  # tomllib (3.11) takes about a second for it
_MOST: Final = 4_000_000  # commas and brackets, each of which can be 50 bytes of Python
_DOTS: Final = 500  # in a line: tomllib is quadratic in the parts of a key
_WHOLE: Final = range(-(2**63), 2**64)  # the integers of TOML, msgspec and file systems
# Numbers that Python's decoder accepts and JSON does not allow, or that become infinite.
_SUSPECT: Final = re.compile(r"\d{19}|[eE]\+?\d{3}|NaN|Infinity")
_KEY_BEFORE: Final = re.compile(r'"([^"\\\n]{1,80})"\s*:\s*[\[\s-]*\Z')
_KEY: Final = 500  # characters of a TOML key: keys of [mirrors] are addresses
_DIGITS: Final = re.compile(r"[0-9_]{4301,}")  # longer than Python converts to an int: sys.int_info
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
    # The flags: dataclasses.replace hands a hundred of them to __init__, for each toolkit that a plan tries.
    if unknown := changes.keys() - vars(value).keys():
        raise TypeError(f"{type(value).__name__} has no {', '.join(sorted(unknown))}")
    copied = copy.copy(value)
    vars(copied).update(changes)
    return copied


def repr_without(value: msgspec.Struct, *hidden: str) -> str:
    """Return the `repr` of a value without its secrets, for logs and tracebacks."""
    shown = (name for name in value.__struct_fields__ if name not in hidden)
    return f"{type(value).__name__}({', '.join(f'{name}={getattr(value, name)!r}' for name in shown)})"


def as_table(value: object) -> Mapping[str, Any]:
    """Return a mapping of decoded JSON or TOML; an empty one for other values."""
    return value if isinstance(value, Mapping) else {}


def texts_in(value: object) -> tuple[str, ...]:
    """Return the texts of a decoded list; empty for other values."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def to_json(value: object) -> Any:
    """Convert a value for `json.dumps`; the order of the fields is kept.

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
    """Return a value as indented JSON with Unicode unescaped.

    A name that is not valid Unicode (a byte of an old file system), which `msgspec.json.encode` refuses,
    and invisible characters are escaped; with `ascii` everything beyond ASCII is.
    """
    return visible_json(json.dumps(to_json(value), indent=2, ensure_ascii=ascii)) + "\n"


def toml_value(value: object) -> str:
    """Return a value in TOML, whose texts, lists, numbers and booleans are JSON's but for one character.

    https://toml.io/en/v1.0.0#string: no text holds a DEL, and no escape is half of a surrogate pair.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


class Malformed(ValueError):
    """A text that is not JSON or TOML, or exceeds a limit; the message has the reason and the place."""


def decode_text(data: bytes, errors: str = "strict") -> str:
    """Decode text in its own Unicode encoding, without a byte order mark.

    What PowerShell's `>` writes is UTF-16; a first character of ASCII shows the encoding without a mark, too.

    Raises:
        UnicodeDecodeError: it is in no Unicode encoding.
    """
    return data.decode(json.detect_encoding(data), errors).removeprefix("\ufeff")


def parse_json(data: bytes | str) -> Any:
    """Decode JSON in its own Unicode encoding.

    Raises:
        Malformed: the text is not JSON, is too long or too deep, or has a number that JSON does not allow
            or with more than 64 bits; the message names its key.
    """
    if len(data) > LONGEST:
        raise Malformed(f"it has more than {LONGEST >> 20} MiB")
    try:
        # A lone surrogate represents a byte of an old file system: `dumps` writes it so.
        text = decode_text(data, "surrogatepass") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise Malformed(f"it is not UTF-8 text: {error.reason} at byte {error.start}") from None
    if sum(map(text.count, ",[{")) > _MOST:
        raise Malformed(f"it has more than {_MOST} values")
    strict: dict[str, Any] = {}
    if _SUSPECT.search(text):
        strict = {
            "parse_int": lambda word: _number(text, word, int),
            "parse_float": lambda word: _number(text, word, float),
            "parse_constant": lambda word: _number(text, word, None),
        }
    try:
        value = json.loads(text.removeprefix("\ufeff"), **strict)
    except RecursionError:
        raise Malformed("it is nested too deep") from None
    except json.JSONDecodeError as error:
        raise Malformed(str(error)) from None
    _check_depth(value)
    return value


def _number(text: str, word: str, kind: type[int] | type[float] | None) -> int | float:
    value = kind(word) if kind is not None and len(word) < 400 else None
    if value is not None and (value in _WHOLE if isinstance(value, int) else math.isfinite(value)):
        return value
    key = _KEY_BEFORE.search(text[: text.find(word)][-200:])
    raise Malformed(_of_no_size(word) + (f" (key {key[1]})" if key else ""))


def _of_no_size(word: str) -> str:
    shown = word if len(word) <= 40 else f"{word[:20]}... ({len(word)} digits)"
    return f"{shown} is not a number of 64 bits"


def parse_toml(text: str) -> dict[str, Any]:
    """Decode TOML.

    Raises:
        Malformed: the text is not TOML, is too long or too deep, or has a number or character that is not
            supported; the message ends with the place in the file, or begins with the key.
    """
    import tomllib  # not needed to read JSON

    if len(text) > LONGEST_TOML:
        raise Malformed(f"it has more than {LONGEST_TOML >> 20} MiB")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _DOTS and line.count('"') + line.count("'") < _DOTS // 10:
            raise Malformed(f"more than {_DOTS} dots in one line (at line {number}, column 1)")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise Malformed("it is nested too deep") from None
    except tomllib.TOMLDecodeError as error:
        raise Malformed(str(error)) from None
    except ValueError:  # only int() of too many digits raises it
        at = found.start() if (found := _DIGITS.search(text)) else 0
        word = found[0] if found else "a number"
        place = f" (at line {text.count(chr(10), 0, at) + 1}, column 1)"
        raise Malformed(f"{_of_no_size(word)}{place}") from None
    _check_depth(data)
    for key, value in _leaves(data, ""):
        if problem := _unusable(value):
            raise Malformed(f"key {key}: {problem}")
    return data


def _unusable(value: object) -> str:
    if isinstance(value, int) and value not in _WHOLE:
        return _of_no_size(str(value))
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a number"
    has_nul = isinstance(value, str) and "\0" in value
    return "a text with a NUL in it, which no program takes" if has_nul else ""


def _leaves(value: object, key: str) -> Iterator[tuple[str, object]]:
    """Yield every value and every key with its dotted key."""
    if isinstance(value, dict):
        for name, item in value.items():
            if len(name) > _KEY:
                raise Malformed(f"{name[:40]}... is a key of {len(name)} letters")
            yield from _leaves(item, f"{key}.{name}" if key else name)
            yield key or repr(name), name
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, key)
    else:
        yield key, value


def _check_depth(value: object) -> None:
    """Refuse nesting too deep for recursion; walk level by level, without recursion."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            item
            for above in level
            for item in (above.values() if type(above) is dict else above if type(above) is list else ())
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return
    raise Malformed("it is nested too deep")


def from_json(kind: type[T], data: object, place: str = "") -> T:
    """Convert decoded JSON or TOML to a value.

    Args:
        place: the name of the data in errors: a file, a row, "facts".

    Raises:
        UsageError: a key is unknown or missing, or a value has the wrong type; the text names the place.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise _refusal(kind, data, place or kind.__name__, str(error)) from None
    except UnicodeEncodeError:  # a lone surrogate where msgspec parses a text: a number, a time, a key
        raise UsageError(f"{place or kind.__name__} holds a text that is not Unicode") from None


def decode_json(kind: type[T], data: bytes) -> T:
    """Decode JSON to a value; fast for valid data, such as a listing of 20,000 files.

    Raises:
        Malformed, UsageError: as for `parse_json` and `from_json`.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError):  # also for names that are not Unicode, which may be here
        return from_json(kind, parse_json(data))


def _refusal(kind: type, data: object, place: str, message: str) -> UsageError:
    """Return msgspec's refusal in our words: with the value, the keys of a mapping, the known keys."""
    text, _, at = message.partition(" - at ")
    steps = _STEP.findall(at.partition("$")[2].rstrip("`"))
    mistyped = _MISTYPED.match(text)
    found = list(_values_at(data, steps))
    word = text.split("`")[1] if "`" in text else ""
    fitting = [each for each in found if _can_be_about(text, word, each[1])]
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
    if text.startswith("Expected") and "got" not in text:  # a number outside of its bounds
        return UsageError(f"{place} is {shown}, not {text.removeprefix('Expected ').replace('`', '')}")
    if mistyped and not at.startswith("`key`"):
        return UsageError(f"{place} is {shown}, not {mistyped[1].replace(' | ', ' or ')}")
    return UsageError(f"{place}: {text.replace('`', '')}")


def _can_be_about(text: str, word: str, value: object) -> bool:
    """Say whether a message can be about this value: msgspec does not name the key of a mapping."""
    if mistyped := _MISTYPED.match(text):
        return _TYPES.get(type(value)) == mistyped[2]
    if text.startswith("Invalid enum value"):
        return text == f"Invalid enum value {value!r}"
    return isinstance(value, dict) and (word in value) is text.startswith("Object contains")


def _unknown(place: str, key: str, known: Sequence[str]) -> UsageError:
    shown = key if len(key) <= _KEY else f"{key[:40]}..."
    hint = did_you_mean(key, known)
    return UsageError(f"{place} has an unknown key: {shown}{hint}", looked=(f"known: {', '.join(known)}",))


def _values_at(value: Any, steps: Sequence[str]) -> Iterator[tuple[str, object]]:
    """Yield the places that a path may mean, each with its value."""
    if not steps:
        yield "", value
        return
    step, *rest = steps
    keys = [step[1:]] if step[0] == "." else list(value) if step == "[...]" else [int(step[1:-1])]
    for key in keys:
        label = f"[{key}]" if isinstance(key, int) else f".{key}"
        with contextlib.suppress(LookupError, TypeError):  # the path fits another mapping
            for tail, found in _values_at(value[key], rest):
                yield label + tail, found


def _type_at(kind: type, steps: Sequence[str]) -> object:
    """Return the type at a path, as `msgspec.inspect` describes it; of `X | None` that of X."""
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

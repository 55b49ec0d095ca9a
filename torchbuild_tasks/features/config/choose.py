"""List the keys of the settings with values and sources; format a commented file, and a JSON schema."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from torchbuild_tasks.catalog.diagnosis import FailureRow
from torchbuild_tasks.catalog.rows import HelperRow
from torchbuild_tasks.options import BuildRequest, choices_of, flag_name, group_of, variable_name
from torchbuild_tasks.plan.settings import OWN, Settings
from torchbuild_tasks.text.page import styled
from torchbuild_tasks.values import toml_value

_DEFAULT: Final = re.compile(r"\(default: (.*?)\)")
_SCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"
_TABLES: Final = {
    "set": ("build variables for torch's build", 'USE_DISTRIBUTED = "0"'),
    "mirrors": (
        "beginnings of git addresses, and their replacements",
        '"https://github.com/" = "https://mirror.example/"',
    ),
    "builds.NAME": ("a named build in its own worktree: the same keys, and extends, ref, folder", ""),
}


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key: its value in TOML ("" for none), its source, and its meaning."""

    key: str
    value: str
    source: str
    variable: str
    meaning: str


def keys(request: BuildRequest, settings: Settings) -> tuple[Key, ...]:
    """Return every key that a settings file may have, then the build variables that are set."""
    keys = [_key(field, request, settings) for field in _fields()]
    for name, value in settings.variables.items():
        place = settings.place(f"set.{name}")
        keys.append(Key(key=f"set.{name}", value=toml_value(value), source=place, variable=name, meaning=""))
    return tuple(keys)


def _fields() -> tuple[dataclasses.Field[Any], ...]:
    return tuple(field for field in dataclasses.fields(BuildRequest) if field.metadata["in_file"])


def name_of(field: dataclasses.Field[Any]) -> str:
    """Return the key of a flag: `with_helper` -> `with-helper`."""
    return flag_name(field.name)[2:]


def _key(field: dataclasses.Field[Any], request: BuildRequest, settings: Settings) -> Key:
    requested = getattr(request, field.name)
    variable = variable_name(field.name)
    value = ""
    source = f"default: {default_of(field)}"
    if requested not in (None, False, ()):
        value = toml_value(requested)
        source = variable if field.name in request.from_environment else flag_name(field.name)
    elif field.name in request.denied_by_environment:
        value = "false"
        source = variable
    elif field.name in settings.values:
        value = toml_value(settings.values[field.name])
        source = settings.place(field.name)
    help_ = str(field.metadata["help"])
    return Key(key=name_of(field), value=value, source=source, variable=variable, meaning=help_)


def default_of(field: dataclasses.Field[Any]) -> str:
    """Return the default as text."""
    match = _DEFAULT.search(str(field.metadata["help"]))
    return match[1] if match else "no" if field.default is False else "none"


def keys_text(keys: tuple[Key, ...], files: Mapping[str, bool]) -> str:
    """Return the effective settings, with the defaults dimmed below."""
    widest = max(len(key.key) for key in keys)
    set_lines = [f"  {key.key:<{widest}}  {key.value}  {key.source}\n" for key in keys if key.value]
    rest = [styled("dim", f"  {key.key:<{widest}}  {key.source}") + "\n" for key in keys if not key.value]
    places = [f"  {path}{'' if there else ' (does not exist)'}\n" for path, there in files.items()]
    parts = (("Files, the first has priority", places), ("Set", set_lines), ("Not set", rest))
    text = "\n".join(f"{styled('strong', title)}\n{''.join(lines)}" for title, lines in parts if lines)
    return f"{text}\nWrite them into a file with what each means: torchbuild config --write\n"


def file_text(keys: tuple[Key, ...], schema: str) -> str:
    """Return a torchbuild.toml with every key; unset ones are commented out."""
    by_key = {key.key: key for key in keys}
    lines = [
        f"#:schema {schema}\n",
        "# Settings of torchbuild. The first of these has priority: a flag, its variable (TORCHBUILD_JOBS),\n"
        "# this file, the user-wide file. Remove the #: of a line to use it.\n",
    ]
    for title in dict.fromkeys(group_of(field.name) for field in _fields()):
        lines.append(f"\n# ---------------- {title}\n")
        for field in _fields():
            if group_of(field.name) == title:
                lines += _entry(field, by_key[name_of(field)])
    for table, (meaning, sample) in _TABLES.items():
        own = [key for key in keys if key.key.startswith(f"{table}.")]
        lines.append(f"\n# {meaning}\n")
        lines.append(f"[{table}]\n" if own else f"#: [{table}]\n")
        lines += [f"{key.variable} = {key.value}\n" for key in own] or ([f"#: {sample}\n"] if sample else [])
    return "".join(lines)


def _entry(field: dataclasses.Field[Any], key: Key) -> Iterator[str]:
    choices = choices_of(field)
    yield f"\n# {key.meaning}" + (f": {', '.join(choices)}" if choices else "") + "\n"
    yield f"{key.key} = {key.value}\n" if key.value else f"#: {key.key} = {_example(field)}\n"


def _example(field: dataclasses.Field[Any]) -> str:
    if field.default is False:
        return "true"
    if field.default == ():
        return "[]"
    if field.name == "jobs":
        return "8"
    choices = choices_of(field)
    return toml_value(choices[0] if choices else "")


# ---------------- the schema that editors read


def schema() -> dict[str, Any]:
    """Return the JSON schema of torchbuild.toml."""
    _, rows = msgspec.json.schema_components((HelperRow, FailureRow), ref_template="#/$defs/{name}")
    for row in rows.values():
        # msgspec took docstrings as they stand in the source before 0.23 and since without their indentation.
        row["description"] = inspect.cleandoc(row["description"])
    flags = {name_of(field): _type_of(field) for field in _fields()}
    variables = {
        "type": "object",
        "description": "build variables",
        "additionalProperties": {"type": ["string", "integer", "boolean"]},
    }
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    own = {name: {"type": "string"} for name in OWN}
    build = {
        "type": "object",
        "properties": {**flags, "set": variables, **own},
        "additionalProperties": False,
    }
    return {
        "$schema": _SCHEMA,
        "title": "torchbuild.toml",
        "type": "object",
        "properties": {
            **flags,
            "set": variables,
            "mirrors": texts,
            "builds": {"type": "object", "additionalProperties": build},
            "helper": {"type": "array", "items": {"$ref": "#/$defs/HelperRow"}},
            "failure": {"type": "array", "items": {"$ref": "#/$defs/FailureRow"}},
        },
        "additionalProperties": False,
        "$defs": rows,
    }


def _type_of(field: dataclasses.Field[Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": str(field.metadata["help"])}
    if field.default is False:
        return {"type": "boolean", **described}
    if field.default == ():
        return {"type": "array", "items": {"type": "string"}, **described}
    if field.name == "jobs":
        return {"type": "integer", "minimum": 1, **described}
    choices = choices_of(field)
    return {"type": "string", **({"enum": list(choices)} if choices else {}), **described}

"""Parse a manifest from the text of a file.

torchbuild_tasks 0.1.0 (schema 1) had two files: a manifest without the fingerprint and with parts of the
facts, and a record with all facts and without the source, the programs and the packages. Both are read.

A key that this version does not know is left out: a newer version may write more, and only what cannot be
understood without it makes a new schema, which is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from torchbuild_tasks.errors import ManifestError, UsageError
from torchbuild_tasks.features.manifest.choose import without_secrets
from torchbuild_tasks.model.record import MANIFEST_FILE, MANIFEST_SCHEMA, Manifest
from torchbuild_tasks.values import as_table, from_json, parse_json

_WHERE: Final = f"Every build writes one: {MANIFEST_FILE} in the build tree."
_FIRST: Final = "torchbuild_tasks 0.1.0"
_OF_FACTS: Final = ("host", "cpu", "memory", "environ")


def read_manifest(data: bytes, path: str) -> Manifest:
    """Read a manifest, also a manifest or a record of 0.1.0.

    Raises:
        ManifestError: it is empty, cut off, no manifest, of a newer schema, or does not fit its schema.
    """
    if not data.strip():
        raise ManifestError(f"{path} is empty.", next_step=_WHERE)
    try:
        content: Any = parse_json(data)
    except ValueError as error:  # also bytes that are not UTF-8
        what = "is cut off or damaged" if data.lstrip()[:1] == b"{" else "is not a manifest"
        raise ManifestError(f"{path} {what}: {error}.", next_step=_WHERE) from None
    is_ours = isinstance(content, dict) and {"schema", "env"} <= set(content)
    if not is_ours or not {"repositories", "inputs"} & set(content):
        raise ManifestError(f"{path} is JSON, but not a manifest of a build.", next_step=_WHERE)
    schema = content["schema"]
    if isinstance(schema, int) and schema > MANIFEST_SCHEMA:
        raise ManifestError(
            f"{path} has schema {schema}, and this torchbuild_tasks reads up to {MANIFEST_SCHEMA}.",
            looked=(f"written by {content.get('tool', 'a newer torchbuild_tasks')}",),
            next_step="Update torchbuild_tasks here: pip install --upgrade torchbuild-tasks",
        )
    try:
        if schema != 1:
            return _convert(content, "manifest")
        if "repositories" in content:
            return _convert(_first_manifest(content), "manifest")
        return without_secrets(_convert(_first_record(content), "record"))
    except UsageError as error:
        raise ManifestError(
            f"{path} does not fit the schema of a manifest: {error.what}.",
            looked=error.looked,
            next_step="It was edited or damaged. Use the file as the build wrote it.",
        ) from None


def _convert(content: Mapping[str, Any], place: str) -> Manifest:
    known = _known_part(content, msgspec.inspect.type_info(Manifest))
    return from_json(Manifest, known, place)


def _known_part(data: Any, kind: Any) -> Any:
    """Return decoded JSON without keys that a type (of `msgspec.inspect`) lacks."""
    inspect = msgspec.inspect
    if isinstance(kind, inspect.UnionType):  # `X | None`: the structs of a manifest stand in no other union
        kind = next((each for each in kind.types if not isinstance(each, inspect.NoneType)), kind)
    if isinstance(kind, inspect.StructType) and isinstance(data, dict):
        types = {field.name: field.type for field in kind.fields}
        return {name: _known_part(value, types[name]) for name, value in data.items() if name in types}
    if isinstance(kind, inspect.VarTupleType) and isinstance(data, list):
        return [_known_part(item, kind.item_type) for item in data]
    if isinstance(kind, inspect.DictType) and isinstance(data, dict):
        return {name: _known_part(value, kind.value_type) for name, value in data.items()}
    return data


def _first_manifest(content: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a manifest of 0.1.0."""
    moved = (*_OF_FACTS, "torch", "store", "peaks")
    rest = {name: value for name, value in content.items() if name not in moved}
    facts = {name: content[name] for name in _OF_FACTS if name in content}
    root = content.get("root")
    store = content.get("store")
    facts["disk"] = {"path": root}
    facts["tree"] = {"root": root, "version": content.get("torch"), "era": content.get("era")}
    if store:
        facts["store"] = {"folder": store, "peaks": content.get("peaks", [])}
    return {**rest, "schema": MANIFEST_SCHEMA, "facts": facts}


def _first_record(content: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a record of 0.1.0 to a manifest; fields that it lacks are empty."""
    facts, inputs, request = (as_table(content.get(name)) for name in ("facts", "inputs", "request"))
    root = inputs.get("source")
    commit = inputs.get("commit")
    return {
        **content,
        "schema": MANIFEST_SCHEMA,
        "tool": _FIRST,
        "root": root,
        "build_dir": as_table(facts.get("tree")).get("build_dir") or f"{root}/build",
        "era": inputs.get("era"),
        "repositories": [{"path": "", "commit": commit}] if commit else [],
        "source_problem": f"a record of {_FIRST} holds no more than the commit",
        "request": {name: value for name, value in request.items() if value not in (None, False, [])},
        "python": str(inputs.get("python")).rpartition(" ")[0],
    }

"""A manifest from the text of a file, or the reason why it is none."""

from __future__ import annotations

import json
from typing import Any

from torchbuild_tasks.errors import ManifestError, UsageError
from torchbuild_tasks.manifest import MANIFEST_FILE, MANIFEST_SCHEMA, Manifest
from torchbuild_tasks.values import from_json

_WHERE = f"Every build writes one beside its record: {MANIFEST_FILE} in the build tree."


def read_manifest(data: bytes, path: str) -> Manifest:
    """Read a manifest.

    Args:
        data: the file's content.
        path: its name, for messages.

    Raises:
        ManifestError: it is empty, cut off, no manifest, of a newer schema, or does not fit its schema.
    """
    if not data.strip():
        raise ManifestError(f"{path} is empty.", next_step=_WHERE)
    try:
        found: Any = json.loads(data)
    except ValueError as error:  # also bytes that are no UTF-8
        what = "is cut off or damaged" if data.lstrip()[:1] == b"{" else "is no manifest"
        raise ManifestError(f"{path} {what}: {error}.", next_step=_WHERE) from None
    if not isinstance(found, dict) or not {"schema", "repositories", "env"} <= set(found):
        raise ManifestError(f"{path} is JSON, but no manifest of a build.", next_step=_WHERE)
    schema = found["schema"]
    if isinstance(schema, int) and schema > MANIFEST_SCHEMA:
        raise ManifestError(
            f"{path} has schema {schema}, and this torchbuild_tasks reads up to {MANIFEST_SCHEMA}.",
            looked=(f"written by {found.get('tool', 'a newer torchbuild_tasks')}",),
            next_step="Update torchbuild_tasks here: pip install --upgrade torchbuild-tasks",
        )
    try:
        return from_json(Manifest, found, "manifest")
    except UsageError as error:
        raise ManifestError(
            f"{path} does not fit the schema of a manifest: {error.what}.",
            looked=error.looked,
            next_step="It was edited or damaged. Use the file as the build wrote it.",
        ) from None

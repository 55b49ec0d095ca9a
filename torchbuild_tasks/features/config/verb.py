"""`config`: list every key of the settings with value and source, or write a file of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

SCHEMA = "torchbuild.schema.json"  # in docs/


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConfigRequest(BuildRequest):
    """The flags of `config`, and every flag that a settings file may have."""

    takes = tuple(field.name for field in dataclasses.fields(BuildRequest) if field.metadata["in_file"])

    write: bool = own_flag(
        "write ./torchbuild.toml with every key, its meaning, and your current values", default=False
    )
    user: bool = own_flag(
        "with --write: write the user-wide file, for all checkouts; a project's file has priority",
        default=False,
    )
    schema: bool = own_flag("print the JSON schema of torchbuild.toml, for editors", default=False)


def run(request: ConfigRequest, report: Reporter) -> Outcome:
    """List every key of the settings, its value, and its source."""
    return Outcome(*answer(request))


def answer(request: ConfigRequest) -> tuple[dict[str, Any], str]:
    """List or write the settings, or return their schema; as value and as text."""
    from torchbuild_tasks.facts.settings import find_settings, user_settings_path
    from torchbuild_tasks.features.config import choose
    from torchbuild_tasks.values import dumps

    if request.schema:
        schema = choose.schema()
        return schema, dumps(schema)
    from torchbuild_tasks.context import read_named_build

    settings = read_named_build(request).settings
    known = choose.keys(request, settings)
    wide = user_settings_path()
    if request.write:
        path = wide if request.user else Path("torchbuild.toml")
        _write(
            path, choose.file_text(known, f"https://raw.githubusercontent.com/{_REPOSITORY}/docs/{SCHEMA}")
        )
        return {"written": str(path.absolute())}, f"wrote {path.absolute()}\n"
    project = find_settings(request.config, request.source or ".")
    files = {project.path if project else str(Path("torchbuild.toml").absolute()): project is not None}
    files[str(wide)] = wide.is_file()
    return {"keys": known, "files": files}, choose.keys_text(known, files)


_REPOSITORY = "torchbuild/torchbuild-tasks/main"


def _write(path: Path, text: str) -> None:
    """Write the file, unless it exists."""
    from torchbuild_tasks.system.files import translate_errors, write_atomic

    if path.exists():
        raise UsageError(
            f"{path.absolute()} is there already; it stays as it is.",
            next_step="Move it away first, or see what counts: torchbuild config",
        )
    with translate_errors(UsageError, path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode("utf-8", "surrogateescape"), error=UsageError)

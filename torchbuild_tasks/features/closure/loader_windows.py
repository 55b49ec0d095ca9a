"""How the loader of Windows looks for the DLLs of one interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchbuild_tasks.model.closure import Loader


def loader_of(said: Mapping[str, Any], environ: Mapping[str, str]) -> Loader:
    """The loader of the process that `said` this of itself, in this environment."""
    path = next((value for name, value in environ.items() if name.upper() == "PATH"), "")
    system = tuple(str(folder) for folder in said["system"])
    return Loader(
        system="windows",
        machine=str(said["machine"]),
        executable=str(said["executable"]),
        roots=(*said["dlls"], str(said["extension"])),
        loaded=tuple(said["loaded"]),
        search_path=tuple(folder.strip('"') for folder in path.split(";") if folder),
        cache={name.lower(): (f"{system[0]}\\{name}",) for name in said["known"]},
        defaults=system,
        extra=tuple(said["folders"]),
    )

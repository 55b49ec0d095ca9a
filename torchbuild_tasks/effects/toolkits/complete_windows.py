"""What a toolkit on Windows has besides the files of its parts: libraries to link its DLLs with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from torchbuild_tasks.effects.toolkits.import_library import import_library
from torchbuild_tasks.system.pe import read_exports

# cublas64_13.dll is linked with as cublas.lib, cupti64_2025.3.1.dll as cupti.lib, nvJitLink_130_0.dll
# as nvJitLink.lib.
_DLL: Final = re.compile(r"(?P<name>\w+?)(?:64)?(?:_[\d._]*\d)?\.dll", re.IGNORECASE)
_FOLDERS: Final = ("bin", "bin/x86_64", "bin/x64")
LIBRARIES: Final = "lib/x64"


def complete(folder: Path, note: Callable[[str], None]) -> None:
    """Make `lib/x64/X.lib` for every DLL that came without.

    Raises:
        OSError: something cannot be written.
    """
    for dll, name in _linked(folder):
        place = folder / LIBRARIES / f"{name}.lib"
        if place.exists():
            continue
        try:
            exports = read_exports(dll)
        except ValueError as error:
            note(f"no {place.name} can be made for {dll.name}: {error}")
            continue
        if exports:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(import_library(dll.name, exports))


def _linked(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every DLL, and the name under which it is linked with."""
    for inside in _FOLDERS:
        if (folder / inside).is_dir():
            for path in sorted((folder / inside).iterdir()):
                if match := _DLL.fullmatch(path.name):
                    yield path, match["name"]

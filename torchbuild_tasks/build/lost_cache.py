"""Recognise compiles that failed because sccache's server ended, and go on from there.

sccache compiles by itself if its server ends during a compile, but fails if the server ends before it has
answered for the first time (`request_compile` in its commands.rs, 0.16.0 and 0.17.0), whatever
SCCACHE_IGNORE_SERVER_IO_ERROR is. The next compile starts another server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.work import Work

# Attempts after a lost server before the build fails.
ATTEMPTS: Final = 3
# Where CMake writes what its checks compiled; the second before 3.26.
_CHECKS: Final = ("CMakeFiles/CMakeConfigureLog.yaml", "CMakeFiles/CMakeError.log")
_LOST: Final = re.compile(
    r"^(sccache: error: (?!failed to (execute compile|spawn)\b)\w"
    r"|(sccache: )?caused by: (error reading compile response from server"
    r"|Failed to (read response header|send data to or receive data from server)))"
)


def find_lost(lines: Iterable[str]) -> str:
    """Return the line by which sccache says that its server was lost; "" for none."""
    return next((line.strip()[:200] for line in lines if _LOST.match(line.strip())), "")


def uses_sccache(work: Work) -> bool:
    """Say whether the compiles of this build ask a server of sccache."""
    return work.plan.cache is not None and any(tool.name == "sccache" for tool in work.plan.cache.tools)


class Checks:
    """What CMake's checks compile from now on.

    A check that fails for want of a server is no error: CMake takes what it looked for as absent.
    """

    def __init__(self, build_dir: Path) -> None:
        self._sizes = {build_dir / name: _size(build_dir / name) for name in _CHECKS}

    def find_lost(self) -> str:
        """Return the line by which one of them says that sccache's server was lost; "" for none."""
        return next(filter(None, (_find_after(file, size) for file, size in self._sizes.items())), "")


def _find_after(file: Path, size: int) -> str:
    now = _size(file)
    if now == size:
        return ""
    with file.open("rb") as log:
        log.seek(size if size < now else 0)  # a new one, if it is shorter
        return find_lost(line.decode(errors="replace") for line in log)


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0

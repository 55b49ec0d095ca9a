"""What ccache says of itself: its folder and size, and what it did in one build."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.system import process

LOG: Final = "ccache-build.log"
_SECONDS: Final = 15.0
_UNITS: Final = {"": 1, "k": 1000, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BINARY: Final = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def ccache_home(program: str, environ: Mapping[str, str]) -> tuple[Path | None, int]:
    """The folder that ccache uses, and the most bytes it fills; 0 for a size without limit or not known."""
    folder = _setting(program, "cache_dir", environ)
    return (Path(folder) if folder else None), read_size(_setting(program, "max_size", environ))


def read_size(text: str) -> int:
    """ccache's own spelling of a size: "5.0 GB", "5.0 GiB", "0"."""
    found = re.fullmatch(r"([0-9.]+)\s*([kKMGT]i?)?B?", text.strip())
    if found is None:
        return 0
    unit = found[2] or ""
    with contextlib.suppress(ValueError):
        return int(float(found[1]) * (_BINARY.get(unit) or _UNITS.get(unit, 1)))
    return 0


def statistics(program: str, environ: Mapping[str, str]) -> str:
    """The counters of its whole folder (--print-stats); "" when it does not tell them."""
    done = process.capture((program, "--print-stats"), env=environ, timeout=_SECONDS)
    return done.stdout.decode(errors="replace") if done.rc == 0 else ""


def clear(program: str, environ: Mapping[str, str]) -> str:
    """Empty its folder by its own command; returns why it failed."""
    done = process.capture((program, "--clear"), env=environ)
    return "" if done.rc == 0 else done.stderr.decode(errors="replace").strip()


def _setting(program: str, name: str, environ: Mapping[str, str]) -> str:
    done = process.capture((program, "--get-config", name), env=environ, timeout=_SECONDS)
    return done.stdout.decode(errors="replace").strip() if done.rc == 0 else ""

"""Hold the tags of wheels (PEP 425) against a Python and a machine."""

from __future__ import annotations

import re
from typing import Final

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from torchbuild_tasks.model import Host, Python
from torchbuild_tasks.values import replace

# https://peps.python.org/pep-0600/: the glibc that the older names stand for
_LEGACY: Final = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_MANYLINUX: Final = re.compile(r"manylinux_(\d+)_(\d+)_(.+)")
_WINDOWS: Final = {"x86_64": "win_amd64", "aarch64": "win_arm64"}
_INTERPRETER: Final = re.compile(r"(cp|py)3(\d*)")


def takes(name: str, python: Python, host: Host) -> bool:
    """Say whether a Python takes a file of this name on this machine; true for what is not a wheel."""
    try:
        tags = parse_wheel_filename(name)[3]
    except InvalidWheelFilename:
        return True
    machine = replace(host, arch=python.machine or host.arch)
    return any(
        _takes_python(tag, python.version, python.abi) and not why_other_platform(tag.platform, machine)
        for tag in tags
    )


def _takes_python(tag: Tag, version: str | None, abi: str | None) -> bool:
    """Say whether a Python takes a tag's: its own, the stable ABI of an older one, or none."""
    found = _INTERPRETER.fullmatch(tag.interpreter)
    if found is None or not version:
        return found is not None
    python, own = python_tags(version, abi)
    minor = int(version.split(".")[1])
    named = int(found[2] or 0)
    if tag.interpreter == python and tag.abi in (own, "none"):
        return True
    stable = found[1] == "cp" and tag.abi == "abi3" and not own.endswith("t")
    return named <= minor and (stable or (found[1] == "py" and tag.abi == "none"))


def python_tags(version: str | None, abi: str | None) -> tuple[str, str]:
    """Return the tags of an interpreter and its ABI: ("cp313", "cp313t") of a free-threaded 3.13."""
    parts = (version or "").split(".")
    python = "cp" + "".join(parts[:2])
    threaded = re.search(r"\d{3}t(?!\w)", abi or "") is not None
    return python, f"{python}t" if threaded else python


def why_other_platform(platform: str, host: Host) -> str:
    """Say why a wheel for a platform does not fit this machine, by PEP 425 and 600; "" if it fits."""
    there = f"this machine is {host.os} on {host.arch}"
    if platform == "any":
        return ""
    if host.os == "windows":
        return "" if platform == _WINDOWS.get(host.arch) else f"it is for {platform}, and {there}"
    if platform.startswith("musllinux_") and (host.libc or "").startswith("musl"):
        return "" if platform.endswith(f"_{host.arch}") else f"it is for {platform}, and {there}"
    legacy = next((known for known in _LEGACY if platform.startswith(f"{known}_")), "")
    if match := _MANYLINUX.fullmatch(platform):
        needs, arch = (int(match[1]), int(match[2])), match[3]
    elif legacy:
        needs, arch = _LEGACY[legacy], platform.removeprefix(f"{legacy}_")
    elif platform.startswith("linux_"):
        needs, arch = (0, 0), platform.removeprefix("linux_")
    else:
        return f"it is for {platform}, and {there}"
    if arch != host.arch:
        return f"it is for {platform}, and {there}"
    glibc = re.fullmatch(r"(?:glibc )?(\d+)\.(\d+).*", host.libc or "")
    if needs > (0, 0) and host.libc and (not glibc or (int(glibc[1]), int(glibc[2])) < needs):
        return f"it needs glibc {needs[0]}.{needs[1]}, and this machine has {host.libc}"
    return ""

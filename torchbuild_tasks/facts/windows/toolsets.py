"""The MSVC toolsets that stand side by side in each Visual Studio, and the Windows SDKs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Toolset, VisualStudio

FOLDER = "VC/Tools/MSVC"
# The 64-bit compiler for 64-bit targets: the folders for host and target by the processor.
BINARIES = {"amd64": "bin/Hostx64/x64", "arm64": "bin/Hostarm64/arm64"}
SDK_ROOT = "HKLM\\SOFTWARE\\Microsoft\\Windows Kits\\Installed Roots"
SDK_HEADER = "um/windows.h"

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_SDK = re.compile(r"10\.0\.\d+\.\d+")


def toolsets_of(probe: Probe, studios: Iterable[VisualStudio]) -> tuple[Toolset, ...]:
    """All toolsets of all installations, the newest first; one without `cl` has other targets only."""
    binaries = BINARIES.get((probe.uname().machine or "").lower(), BINARIES["amd64"])
    found = []
    for studio in studios:
        folder = probe.join(studio.path, FOLDER)
        for version in filter(_VERSION.fullmatch, probe.children(folder)):
            cl = probe.join(folder, version, binaries, "cl.exe")
            found.append(
                Toolset(
                    version=version,
                    visual_studio=studio.path,
                    cl=cl if probe.is_program(cl) else None,
                    msc_ver=msc_ver(version),
                )
            )
    return tuple(sorted(found, key=lambda toolset: _numbers(toolset.version), reverse=True))


def msc_ver(version: str) -> int | None:
    """What _MSC_VER is in a toolset: 1929 in 14.29.30133; None for anything but 14.x.

    Holds from 14.0 (1900) to 14.50 (1950), for both Visual Studio 2019 16.10 and 16.11 (1929).
    """
    major, minor = _numbers(version)[:2]
    return 1900 + minor if major == 14 else None


def look_for_sdks(probe: Probe) -> tuple[str, ...]:
    """The Windows 10 and 11 SDKs that have the header of the desktop API, the newest first."""
    said = probe.registry_value(SDK_ROOT, "KitsRoot10")
    usual = probe.variable("ProgramFiles(x86)") or "C:\\Program Files (x86)"
    root = said if isinstance(said, str) and said else probe.join(usual, "Windows Kits/10")
    folder = probe.join(root, "Include")
    names = filter(_SDK.fullmatch, probe.children(folder))
    found = [name for name in names if probe.is_file(probe.join(folder, name, SDK_HEADER))]
    return tuple(sorted(found, key=_numbers, reverse=True))


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]

"""Which Visual Studios there are: vswhere says, an active shell says, or a known folder holds one.

All versions are taken. The range in PyTorch's README, [15,17), can never find 2022 or later, so
which one fits is decided elsewhere, and nothing is left out here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import VisualStudio

# vswhere's documentation gives this place for ever: the installer puts it there with every product.
VSWHERE: Final = "Microsoft Visual Studio/Installer/vswhere.exe"
QUESTION: Final = (
    *("-products", "*"),
    *("-requires", "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"),
    *("-format", "json", "-utf8"),
)
VCVARSALL: Final = "VC/Auxiliary/Build/vcvarsall.bat"
# 2026 installs into a folder called by its version, 18.
YEARS: Final = ("2026", "18", "2022", "2019")
PRODUCTS: Final = ("BuildTools", "Community", "Professional", "Enterprise", "Preview")


def look_for_visual_studios(probe: Probe) -> tuple[tuple[VisualStudio, ...], tuple[str, ...]]:
    """Every installation once, as it was found first, and all the places that were looked at.

    vswhere names only installations with the C++ compiler. One without it is found in the
    known folders all the same, and has no `vcvarsall`.
    """
    answers, places = _vswhere(probe)
    active = _active(probe)
    looked = (*places, "environment VSINSTALLDIR", "environment VCINSTALLDIR")
    known = tuple(_known_folders(probe))
    found: dict[str, VisualStudio] = {}
    for studio in (*answers, *active, *_in_folders(probe, known)):
        found.setdefault(probe.names.key(studio.path), studio)
    return tuple(found.values()), (*looked, *known)


def _vswhere(probe: Probe) -> tuple[list[VisualStudio], tuple[str, ...]]:
    """What vswhere answers, and where it was looked for; a failure of it is told there."""
    home = probe.join(_program_files(probe)[0], VSWHERE)
    path = home if probe.is_program(home) else probe.which("vswhere")
    if path is None:
        return [], (home, "vswhere on PATH")
    output = probe.run((path, *QUESTION))
    if output is None:
        return [], (f"{path} (gave no answer)",)
    if output.rc != 0:
        return [], (f"{path} (ended with {output.rc})",)
    try:
        said = json.loads(output.stdout)
    except (ValueError, RecursionError):
        return [], (f"{path} (answered with something that is not JSON)",)
    items = [item for item in said if isinstance(item, dict)] if isinstance(said, list) else []
    return [studio for item in items if (studio := _answer(probe, item))], (path,)


def _answer(probe: Probe, item: dict[str, Any]) -> VisualStudio | None:
    path, version, product = (item.get(k) for k in ("installationPath", "installationVersion", "productId"))
    if not isinstance(path, str) or not path:
        return None
    catalog = item.get("catalog")
    release = catalog.get("productDisplayVersion") if isinstance(catalog, dict) else None
    return _studio(
        probe,
        path,
        via="vswhere",
        version=version if isinstance(version, str) else None,
        release=release if isinstance(release, str) else None,
        product=product.rpartition(".")[2] if isinstance(product, str) else None,
    )


def _active(probe: Probe) -> Iterator[VisualStudio]:
    """The one whose vcvarsall.bat or developer prompt this shell has been through."""
    for variable in ("VSINSTALLDIR", "VCINSTALLDIR"):
        folder = probe.variable(variable)
        if folder and probe.is_dir(folder):
            path = probe.names.normal(folder)
            path = probe.names.parent(path) if variable == "VCINSTALLDIR" else path
            yield _studio(probe, path, via=variable, release=probe.variable("VSCMD_VER") or None)
            return


def _known_folders(probe: Probe) -> Iterator[str]:
    for programs in _program_files(probe):
        for year in YEARS:
            yield probe.join(programs, "Microsoft Visual Studio", year)


def _in_folders(probe: Probe, folders: tuple[str, ...]) -> Iterator[VisualStudio]:
    for folder in folders:
        for product in PRODUCTS:
            path = probe.join(folder, product)
            if probe.is_dir(probe.join(path, "VC")) or probe.is_dir(probe.join(path, "Common7")):
                yield _studio(probe, path, via="known folder", product=product)


def _studio(probe: Probe, path: str, *, via: str, **more: str | None) -> VisualStudio:
    """The installation at `path`; `more` is version, release and product as far as they are known."""
    path = probe.names.normal(path)
    vcvarsall = probe.join(path, VCVARSALL)
    there = probe.is_file(vcvarsall)
    return VisualStudio(path=path, found_via=via, vcvarsall=vcvarsall if there else None, **more)


def _program_files(probe: Probe) -> tuple[str, str]:
    """The 32-bit folder, where the installer and everything up to 2019 is, and the 64-bit one."""
    old = probe.variable("ProgramFiles(x86)") or "C:\\Program Files (x86)"
    new = probe.variable("ProgramW6432") or probe.variable("ProgramFiles") or "C:\\Program Files"
    return old, new

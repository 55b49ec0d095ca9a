"""Look at Windows: Visual Studio, its toolsets, SDKs, and settings.

Nothing is left out for its age. The range for vswhere in PyTorch's README, [15,17), can never find Visual
Studio 2022 or later; which installation fits is decided in `plan`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from torchbuild_tasks.facts.probe import Probe, program_files
from torchbuild_tasks.facts.tree import read_git
from torchbuild_tasks.model import Toolset, VisualStudio, Windows
from torchbuild_tasks.text.words import numbers_in
from torchbuild_tasks.values import as_table, parse_json


def look_at_windows(probe: Probe, root: str) -> Windows:
    """Look for Visual Studios, their toolsets and SDKs, and at settings that can break a build."""
    studios, looked = look_for_visual_studios(probe)
    return Windows(
        visual_studios=studios,
        toolsets=look_for_toolsets(probe, studios),
        sdks=look_for_sdks(probe),
        looked=looked,
        active=probe.variable("VCToolsVersion").strip("\\/ ") or None,
        long_paths=_switch(probe, FILE_SYSTEM, "LongPathsEnabled"),
        git_long_paths=git_long_paths(probe, root),
        developer_mode=_switch(probe, APP_MODEL, "AllowDevelopmentWithoutDevLicense"),
        shell=shell(probe),
        path_characters=len(probe.variable("PATH")),
    )


# ---------------- Visual Studio: vswhere, the active shell, the known folders

# vswhere's documentation guarantees this path for every product.
VSWHERE: Final = "Microsoft Visual Studio/Installer/vswhere.exe"
QUESTION: Final = (
    *("-products", "*"),
    *("-requires", "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"),
    *("-format", "json", "-utf8"),
)
VCVARSALL: Final = "VC/Auxiliary/Build/vcvarsall.bat"
# 2026 installs into a folder named by its version, 18.
YEARS: Final = ("2026", "18", "2022", "2019")
PRODUCTS: Final = ("BuildTools", "Community", "Professional", "Enterprise", "Preview")


def look_for_visual_studios(probe: Probe) -> tuple[tuple[VisualStudio, ...], tuple[str, ...]]:
    """Return every installation once, and all searched places.

    vswhere names only installations with the C++ compiler. One without it is found in the
    known folders all the same, and has no `vcvarsall`.
    """
    answers, places = _vswhere(probe)
    active = _active(probe)
    looked = (*places, "environment VSINSTALLDIR", "environment VCINSTALLDIR")
    known = tuple(_known_folders(probe))
    studios: dict[str, VisualStudio] = {}
    for studio in (*answers, *active, *_in_folders(probe, known)):
        studios.setdefault(probe.names.key(studio.path), studio)
    return tuple(studios.values()), (*looked, *known)


def _vswhere(probe: Probe) -> tuple[list[VisualStudio], tuple[str, ...]]:
    """Return the installations that vswhere lists, and where it was searched or how it failed."""
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
        data = parse_json(output.stdout)
    except ValueError:
        return [], (f"{path} (answered with something that is not JSON)",)
    items = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
    return [studio for item in items if (studio := _answer(probe, item))], (path,)


def _answer(probe: Probe, item: dict[str, Any]) -> VisualStudio | None:
    path, version, product = (item.get(k) for k in ("installationPath", "installationVersion", "productId"))
    if not isinstance(path, str) or not path:
        return None
    release = as_table(item.get("catalog")).get("productDisplayVersion")
    return _studio(
        probe,
        path,
        via="vswhere",
        version=version if isinstance(version, str) else None,
        release=release if isinstance(release, str) else None,
        product=product.rpartition(".")[2] if isinstance(product, str) else None,
    )


def _active(probe: Probe) -> Iterator[VisualStudio]:
    """Yield the Visual Studio whose vcvarsall.bat or developer prompt has run in this shell."""
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
    """Return the installation at `path`; `more` is version, release and product, if known."""
    path = probe.names.normal(path)
    vcvarsall = probe.join(path, VCVARSALL)
    exists = probe.is_file(vcvarsall)
    return VisualStudio(path=path, found_via=via, vcvarsall=vcvarsall if exists else None, **more)


def _program_files(probe: Probe) -> tuple[str, str]:
    """Return the 32-bit folder (the installer, and versions up to 2019) and the 64-bit one."""
    old = probe.variable("ProgramFiles(x86)") or "C:\\Program Files (x86)"
    return old, program_files(probe)


# ---------------- MSVC toolsets and Windows SDKs

FOLDER = "VC/Tools/MSVC"
# The 64-bit compiler for 64-bit targets: the folders for host and target by the processor.
BINARIES = {"amd64": "bin/Hostx64/x64", "arm64": "bin/Hostarm64/arm64"}
SDK_ROOT = "HKLM\\SOFTWARE\\Microsoft\\Windows Kits\\Installed Roots"
SDK_HEADER = "um/windows.h"
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_SDK = re.compile(r"10\.0\.\d+\.\d+")


def look_for_toolsets(probe: Probe, studios: Iterable[VisualStudio]) -> tuple[Toolset, ...]:
    """Return the toolsets of all installations, newest first; without `cl` they have other targets only."""
    binaries = BINARIES.get((probe.uname().machine or "").lower(), BINARIES["amd64"])
    toolsets = []
    for studio in studios:
        folder = probe.join(studio.path, FOLDER)
        for version in filter(_VERSION.fullmatch, probe.children(folder)):
            cl = probe.join(folder, version, binaries, "cl.exe")
            toolsets.append(
                Toolset(
                    version=version,
                    visual_studio=studio.path,
                    cl=cl if probe.is_program(cl) else None,
                    msc_ver=msc_ver(version),
                )
            )
    return tuple(sorted(toolsets, key=lambda toolset: numbers_in(toolset.version), reverse=True))


def msc_ver(version: str) -> int | None:
    """Return _MSC_VER of a toolset: 1929 for 14.29.30133; None for anything but 14.x.

    Holds from 14.0 (1900) to 14.50 (1950), for both Visual Studio 2019 16.10 and 16.11 (1929).
    """
    major, minor = numbers_in(version)[:2]
    return 1900 + minor if major == 14 else None


def look_for_sdks(probe: Probe) -> tuple[str, ...]:
    """Return the Windows 10 and 11 SDKs that have the header of the desktop API, newest first."""
    registered = probe.registry_value(SDK_ROOT, "KitsRoot10")
    default = probe.join(_program_files(probe)[0], "Windows Kits/10")
    root = registered if isinstance(registered, str) and registered else default
    folder = probe.join(root, "Include")
    names = filter(_SDK.fullmatch, probe.children(folder))
    versions = [name for name in names if probe.is_file(probe.join(folder, name, SDK_HEADER))]
    return tuple(sorted(versions, key=numbers_in, reverse=True))


# ---------------- Windows, and its settings that can break a build

FILE_SYSTEM = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\FileSystem"
APP_MODEL = "HKLM\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\AppModelUnlock"
CURRENT_VERSION = "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"
FIRST_11 = 22000


def windows_name(probe: Probe) -> str | None:
    """Return the name of this Windows: "Windows 11 Pro 24H2 (build 26100.4349)".

    In Windows 11 ProductName is still "Windows 10"; from build 22000 it is 11. Names of servers are right.
    """
    values = {
        name: probe.registry_value(CURRENT_VERSION, name)
        for name in ("ProductName", "DisplayVersion", "ReleaseId", "CurrentBuildNumber", "UBR")
    }
    name = values["ProductName"]
    build = values["CurrentBuildNumber"]
    if not isinstance(name, str) or not name:
        return None
    name = name.removeprefix("Microsoft ")
    number = str(build or "")
    if number.isascii() and number.isdigit() and int(number) >= FIRST_11 and name.startswith("Windows 10"):
        name = name.replace("Windows 10", "Windows 11", 1)
    if release := values["DisplayVersion"] or values["ReleaseId"]:
        name += f" {release}"
    update = f".{values['UBR']}" if values["UBR"] is not None else ""
    return f"{name} (build {number}{update})" if number else name


def _switch(probe: Probe, key: str, name: str) -> bool | None:
    """Return a setting, off if it is not set; None if the registry cannot be read."""
    value = probe.registry_value(key, name)
    if value is None and probe.registry_value(CURRENT_VERSION, "CurrentBuildNumber") is None:
        return None
    return value not in (None, 0)


def git_long_paths(probe: Probe, root: str) -> bool | None:
    """Return Git's core.longpaths for `root`; False if it is not set, None if git fails."""
    git = probe.which("git")
    if git is None:
        return None
    folder = ("-C", root) if probe.is_dir(root) else ()
    output = read_git(probe).run((git, *folder, "config", "--type=bool", "--get", "core.longpaths"))
    # git config ends with 1 for a name that is not set (git-config(1)).
    if output is None or output.rc not in (0, 1):
        return None
    return output.rc == 0 and output.stdout.strip() == "true"


def shell(probe: Probe) -> str | None:
    """Return cmd or powershell; None if the environment is ambiguous.

    cmd.exe sets PROMPT for what it starts. Everyone has PSModulePath, but only a running
    PowerShell puts the user's own modules or its own into it (about_PSModulePath).
    """
    prompt = probe.variable("PROMPT") != ""
    modules = [path.lower() for path in probe.names.split_path(probe.variable("PSModulePath"))]
    folders = ("\\documents\\windowspowershell\\modules", "\\powershell\\modules", "\\powershell\\7\\modules")
    powershell = any(path.rstrip("\\").endswith(folders) for path in modules)
    if prompt == powershell:
        return None
    return "cmd" if prompt else "powershell"

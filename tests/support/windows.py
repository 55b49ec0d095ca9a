"""Windows machines that do not exist, for tests of what is decided from their facts."""

from __future__ import annotations

from typing import Any

from tests.support.machines import linux_facts, python, tree
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.model import Disk, Facts, Host, Store, Tool, Toolset, VisualStudio, Windows

ROOT = r"C:\src\pytorch"
VS_2022 = r"C:\Program Files\Microsoft Visual Studio\2022\Community"
VS_2019 = r"C:\Program Files (x86)\Microsoft Visual Studio\2019\BuildTools"


def studio(path: str = VS_2022, release: str = "17.14.5", **changes: Any) -> VisualStudio:
    """An installation with the C++ workload."""
    values: dict[str, Any] = {
        "path": path,
        "found_via": "vswhere",
        "version": f"{release}.1",
        "release": release,
        "product": path.rpartition("\\")[2],
        "vcvarsall": rf"{path}\VC\Auxiliary\Build\vcvarsall.bat",
    }
    return VisualStudio(**{**values, **changes})


def toolset(version: str, path: str = VS_2022, **changes: Any) -> Toolset:
    """A side-by-side toolset that compiles for x64."""
    cl = rf"{path}\VC\Tools\MSVC\{version}\bin\Hostx64\x64\cl.exe"
    return Toolset(**{"version": version, "visual_studio": path, "cl": cl, **changes})


def windows(*toolsets: Toolset, **changes: Any) -> Windows:
    """Both Visual Studios, with these toolsets, on a machine that is set up well."""
    values: dict[str, Any] = {
        "visual_studios": (studio(), studio(VS_2019, "16.11.40")),
        "toolsets": toolsets or (toolset("14.44.35207"), toolset("14.38.33130")),
        "sdks": ("10.0.26100.0",),
        "looked": (r"C:\Program Files (x86)\Microsoft Visual Studio\Installer\vswhere.exe",),
        "long_paths": True,
        "git_long_paths": True,
        "shell": "cmd",
    }
    return Windows(**{**values, **changes})


def windows_facts(**changes: Any) -> Facts:
    """A sound Windows workstation with everything a CPU build needs."""
    values: dict[str, Any] = {
        "host": Host(os="windows", arch="x86_64", distribution="Windows 11 Pro 24H2", kernel="10.0.26100"),
        "disk": Disk(path=ROOT, mount="C:\\", free=100 * GIB, total=200 * GIB),
        "compilers": (),
        "tools": (
            Tool(
                name="cmake", path=r"C:\Program Files\CMake\bin\cmake.exe", version="3.28.1", found_via="PATH"
            ),
            Tool(name="ninja", path=r"C:\ninja\ninja.exe", version="1.12.1", found_via="PATH"),
        ),
        "pythons": (windows_python(),),
        "tree": tree(root=ROOT, build_dir=rf"{ROOT}\build"),
        "windows": windows(),
        "store": Store(folder=r"C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache"),
    }
    return linux_facts(**{**values, **changes})


def windows_python(**changes: Any) -> Any:
    """A complete Python 3.11 in a venv of the user's."""
    own = {
        "executable": r"C:\venv\Scripts\python.exe",
        "prefix": r"C:\venv",
        "scripts": r"C:\venv\Scripts",
        "include": r"C:\Python311\Include",
        "abi": "cp311-win_amd64",
        "debug_library": False,
    }
    return python(**{**own, **changes})

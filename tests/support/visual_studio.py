"""A stand-in for Visual Studio: vswhere.exe, vcvarsall.bat and toolsets, answering like the real ones.

What it stands in for is not available without Microsoft's licence and installer. The compiler
behind its `cl.exe` is a real one that makes real Windows programs, but it is not MSVC: it is
the bench's clang with MinGW's ABI, and it takes no /flags.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Final

TOOLSETS: Final = ("14.38.33130", "14.44.35207")
NEWEST: Final = TOOLSETS[-1]
SDK: Final = "10.0.26100.0"

# vswhere writes this for -format json; unknown instances and components have no answer.
_VSWHERE: Final = """\
import json, sys
words = sys.argv[1:]
needed = words[words.index("-requires") + 1] if "-requires" in words else None
if "-products" not in words or needed not in (None, "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"):
    print("[]")
elif words[words.index("-format") + 1] != "json" or "-utf8" not in words:
    sys.exit("the stand-in answers in JSON and UTF-8 only")
else:
    sys.stdout.buffer.write(%(answer)r)
"""

# As the real one: banner and errors on stdout, name=value as two arguments, another folder at
# the end, its own folders in front of every list, exit code 1 for a toolset that is not there.
_VCVARSALL: Final = r"""@echo off
set "STAND_IN_ARCH="
set "STAND_IN_TOOLS=@NEWEST@"
:next
if "%1"=="" goto known
if /i "%1"=="x64" goto arch
if /i "%1"=="-vcvars_ver" goto tools
echo [ERROR:%~nx0] Invalid argument found : %1
exit /b 1
:arch
set "STAND_IN_ARCH=x64"
shift
goto next
:tools
set "STAND_IN_TOOLS=%2"
shift
shift
goto next
:known
if not defined STAND_IN_ARCH goto no_arch
for %%i in ("%~dp0..\..\..") do set "VSINSTALLDIR=%%~fi\"
set "VCToolsInstallDir=%VSINSTALLDIR%VC\Tools\MSVC\%STAND_IN_TOOLS%\"
if not exist "%VCToolsInstallDir%" goto no_tools
echo **********************************************************************
echo ** Visual Studio 2022 Developer Command Prompt v17.14.5
echo **********************************************************************
set "VSCMD_VER=17.14.5"
set "VSCMD_ARG_HOST_ARCH=x64"
set "VSCMD_ARG_TGT_ARCH=%STAND_IN_ARCH%"
set "VCINSTALLDIR=%VSINSTALLDIR%VC\"
set "VCToolsVersion=%STAND_IN_TOOLS%"
set "WindowsSDKVersion=@SDK@\"
set "INCLUDE=%VCToolsInstallDir%include;%INCLUDE%"
set "LIB=%VCToolsInstallDir%lib\x64;%LIB%"
set "LIBPATH=%VCToolsInstallDir%lib\x64;%LIBPATH%"
set "PATH=%VCToolsInstallDir%bin\Hostx64\x64;%PATH%"
set "STAND_IN_ARCH="
set "STAND_IN_TOOLS="
cd /d "%VSINSTALLDIR%"
exit /b 0
:no_arch
echo [ERROR:%~nx0] Error in script usage. The correct usage is: vcvarsall.bat [arch]
exit /b 1
:no_tools
echo [ERROR:%~nx0] Toolset directory for version '%STAND_IN_TOOLS%' was not found.
exit /b 1
"""


def install(programs: Path, compiler: Path) -> Path:
    """Lay out Visual Studio 2022 Community below `programs`, the 32-bit programs folder.

    Args:
        programs: what `ProgramFiles(x86)` will name.
        compiler: clang.exe of the bench, which is behind the `cl.exe` of every toolset.

    Returns:
        The installation.
    """
    studio = programs / "Microsoft Visual Studio" / "2022" / "Community"
    batch = studio / "VC" / "Auxiliary" / "Build" / "vcvarsall.bat"
    batch.parent.mkdir(parents=True)
    text = _VCVARSALL.replace("@NEWEST@", NEWEST).replace("@SDK@", SDK)
    batch.write_bytes(text.replace("\n", "\r\n").encode())
    for version in TOOLSETS:
        folder = studio / "VC" / "Tools" / "MSVC" / version
        for part in ("include", "lib/x64", "bin/Hostx64/x64"):
            (folder / part).mkdir(parents=True)
        _copy_compiler(compiler, folder / "bin" / "Hostx64" / "x64" / "cl.exe")
    header = programs / "Windows Kits" / "10" / "Include" / SDK / "um" / "windows.h"
    header.parent.mkdir(parents=True)
    header.write_text("/* a stand-in */\n", "utf-8")
    vswhere = programs / "Microsoft Visual Studio" / "Installer" / "vswhere.exe"
    make_program(vswhere, _VSWHERE % {"answer": json.dumps([_instance(studio)]).encode()})
    return studio


def _instance(studio: Path) -> dict[str, object]:
    """The keys of vswhere's answer that matter, and some that do not."""
    return {
        "instanceId": "5a1d1e6f",
        "installationName": "VisualStudio/17.14.5+36221.1",
        "installationPath": str(studio),
        "installationVersion": "17.14.36221.1",
        "productId": "Microsoft.VisualStudio.Product.Community",
        "isComplete": True,
        "isPrerelease": False,
        "catalog": {"productDisplayVersion": "17.14.5", "productLineVersion": "2022"},
    }


def _copy_compiler(compiler: Path, target: Path) -> None:
    """Make a cl.exe that compiles C and C++, each by its suffix, and links both.

    The bench's programs are small ones that run what a file beside them says, under their
    name: the program, then an argument a line. clang.exe leaves out the C++ library alone.
    """
    shutil.copyfile(compiler, target)
    arguments = compiler.with_suffix(".shim").read_text("utf-8").rstrip("\n")
    target.with_suffix(".shim").write_text(f"{arguments}\n-lstdc++\n", "utf-8")


def make_program(path: Path, script: str) -> None:
    """Make a Windows program of a Python script: pip's launcher, the interpreter's name, a zip."""
    import pip._vendor.distlib as distlib

    launcher = (Path(str(distlib.__file__)).parent / "t64.exe").read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("__main__.py", script)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(launcher + f'#!"{sys.executable}"\r\n'.encode() + packed.getvalue())

"""The capabilities of this machine, each as a skip mark that names what is missing.

@needs_symlinks
def test_links(): ...

pytestmark = needs_bash  # a whole module
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import pytest

from tests.support.packages import without

POSIX = os.name == "posix"


NEED: Final = "TORCHBUILD_TESTS_NEED"


def needs(present: bool, capability: str) -> pytest.MarkDecorator:
    """Return a mark that skips if the capability is missing, naming it and its package.

    A machine that is there to try something says so in TORCHBUILD_TESTS_NEED (names with ; between
    them), and nothing is skipped for lack of that.

    Raises:
        RuntimeError: the machine must have the capability, and has not.
    """
    if not present and capability in os.environ.get(NEED, "").split(";"):
        raise RuntimeError(f"{NEED} names {capability}, and there is no {capability} here")
    return pytest.mark.skipif(not present, reason=without(capability))


def skip_without(capability: str) -> NoReturn:
    """Skip the test that runs: only now it is known that this is missing."""
    pytest.skip(without(capability))


def tried(attempt: Callable[[Path], bool]) -> bool:
    """Whether the attempt, made in a temporary folder of its own, succeeds."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return attempt(Path(folder))
        except (OSError, NotImplementedError, ValueError):
            return False


def makes_symlinks(folder: Path) -> bool:
    """Make a link and look at it: wine's call succeeds and makes nothing."""
    link = folder / "link"
    link.symlink_to(folder, target_is_directory=True)
    return link.is_symlink()


def makes_hard_links(folder: Path) -> bool:
    """Give a file a second name and look at both."""
    first, second = folder / "first", folder / "second"
    first.write_bytes(b"")
    os.link(first, second)
    return first.samefile(second) and first.stat().st_nlink == 2


def keeps_modes(folder: Path) -> bool:
    """Take all rights from group and others; Windows knows only "read-only"."""
    file = folder / "file"
    file.write_bytes(b"")
    file.chmod(0o700)
    return file.stat().st_mode & 0o777 == 0o700


def refuses_writes(folder: Path) -> bool:
    """Make a folder read-only and write there all the same, as root may."""
    locked = folder / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    try:
        (locked / "file").write_bytes(b"")
    except PermissionError:
        return True
    finally:
        locked.chmod(0o700)
    return False


def takes_odd_names(folder: Path) -> bool:
    """Use characters in a name that Windows keeps for itself."""
    name = 'a:b?"c|d*'
    (folder / name).write_bytes(b"")
    return [path.name for path in folder.iterdir()] == [name]


def has(program: str) -> bool:
    """Whether the program is on PATH."""
    return shutil.which(program) is not None


needs_symlinks = needs(tried(makes_symlinks), "symlinks")
needs_hard_links = needs(tried(makes_hard_links), "hard links")
needs_posix_permissions = needs(tried(keeps_modes), "POSIX permissions")
needs_enforced_permissions = needs(tried(refuses_writes), "permissions that bind this user")
needs_odd_names = needs(tried(takes_odd_names), "file names with : ? * and quotes")

# A path like /proc means something on Windows, too: that folder on the current drive.
needs_posix_paths = needs(POSIX, "POSIX paths")
needs_proc = needs(POSIX and Path("/proc/self/status").exists(), "/proc")
needs_signals = needs(POSIX and hasattr(signal, "SIGKILL"), "signals between processes")
needs_fifo = needs(hasattr(os, "mkfifo"), "named pipes in folders")
needs_pty = needs(hasattr(os, "openpty"), "pseudo-terminals")
needs_unix_sockets = needs(hasattr(socket, "AF_UNIX"), "Unix sockets")
needs_shebang = needs(POSIX, "programs that start by their #! line")

needs_sh = needs(POSIX and has("sh"), "sh")
needs_bash = needs(POSIX and has("bash"), "bash")
needs_gcc = needs(has("g++"), "gcc")
needs_clang = needs(has("clang++"), "clang")
needs_cxx = needs(has("g++") or has("clang++") or has("cl"), "C++ compiler")
needs_linux_compiler = needs(POSIX and (has("g++") or has("clang++")), "gcc or clang for Linux")
needs_git = needs(has("git"), "git")
needs_lld = needs(POSIX and has("ld.lld"), "lld")
needs_mold = needs(POSIX and has("ld.mold"), "mold")
needs_ninja = needs(has("ninja"), "ninja")
needs_cmake = needs(has("cmake"), "cmake")
needs_7z = needs(has("7zz") or has("7z"), "7-Zip")

needs_cmd = needs(not POSIX and has("cmd.exe"), "cmd.exe")
needs_winreg = needs(sys.platform == "win32", "Windows registry")


def answers(*argv: str) -> bool:
    """Say whether a program can end with exit code 7: wine's powershell.exe does nothing."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 7


@functools.cache
def needs_powershell(name: str) -> pytest.MarkDecorator:
    """Return the mark for pwsh (PowerShell 7, any system) or powershell (5.1, a part of Windows).

    A function, since to try one takes a second: only the modules that are about them ask.
    """
    words = ("-NoProfile", "-NonInteractive", "-Command", "exit 7")
    return needs(has(name) and answers(name, *words), name)


@functools.cache
def visual_studio() -> Path | None:
    """The newest Visual Studio with Microsoft's C++ compiler, as its own vswhere names it."""
    programs = os.environ.get("PROGRAMFILES(X86)", "")  # Windows takes the name in any case
    vswhere = Path(programs, "Microsoft Visual Studio", "Installer", "vswhere.exe")
    if sys.platform != "win32" or not vswhere.is_file():
        return None
    words = ("-latest", "-products", "*", "-property", "installationPath", "-utf8")
    needed = ("-requires", "Microsoft.VisualStudio.Component.VC.Tools.x86.x64")
    done = subprocess.run([str(vswhere), *words, *needed], capture_output=True, timeout=120, check=False)
    line = done.stdout.decode(errors="replace").strip()
    return Path(line) if line else None

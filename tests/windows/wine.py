"""A Windows machine in a folder: where its parts lie, what its programs see, how it starts and ends.

Wine's server is kept running between programs: a start costs 0.1-0.3 s then, and 2-3 s otherwise.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Nothing of the caller's environment reaches a Windows program but these. It would take PYTHONHOME,
# VIRTUAL_ENV or TEMP=/tmp at their word.
HANDED_ON = (
    "CI",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_DEFAULT_TIMEOUT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)

# These name files, so they arrive by the files' Windows names.
HANDED_ON_AS_FILES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")

# Mono and Gecko would ask to be installed, the menu builder writes into ~/.local, and the debugger
# waits for ever on a machine without a screen.
SWITCHED_OFF = "mscoree,mshtml,winemenubuilder.exe,winedbg.exe="

SYSTEM_PACKAGES = {  # a program that stands for the package, and the package's name on Debian and Ubuntu
    "wine": ("wine", "wine64"),
    "wineserver": ("wine", "wine64"),
    "x86_64-w64-mingw32-g++-win32": ("g++-mingw-w64-x86-64-win32",),
}

SECONDS_KEPT = 600  # how long the server stays after the last program
SECONDS_TO_END = 60.0  # how long it may take to end all programs
LATE = 124  # the exit code after a time limit, as coreutils' timeout has it


class BenchError(Exception):
    """The bench cannot be made or used; the text says what to do."""


def missing_packages() -> list[str]:
    """The system packages that the bench needs and this machine lacks."""
    absent = [names for program, names in SYSTEM_PACKAGES.items() if not shutil.which(program)]
    return sorted({name for names in absent for name in names})


def install_command(packages: Sequence[str]) -> str:
    """The one command that installs system packages."""
    return f"apt-get install -y --no-install-recommends {' '.join(packages)}"


def default_folder() -> Path:
    """Return the default folder of the bench: outside the checkout, where no clean reaches it."""
    named = os.environ.get("TORCHBUILD_WINDOWS_BENCH")
    return Path(named) if named else Path.home() / ".cache" / "torchbuild-windows-bench"


@dataclass(frozen=True)
class Bench:
    """The folder that holds a Windows machine."""

    root: Path

    @property
    def prefix(self) -> Path:
        """What wine calls its prefix: the registry and the drives."""
        return self.root / "prefix"

    @property
    def drive(self) -> Path:
        """Drive C:."""
        return self.prefix / "drive_c"

    @property
    def home(self) -> Path:
        """A Linux home of its own: wine links Documents, Desktop and others into it."""
        return self.root / "home"

    @property
    def cache(self) -> Path:
        """The folder of downloads, which is kept when the rest is made again."""
        return self.root / "cache"

    def windows_path(self, path: Path) -> str:
        """The name of a Linux path as Windows programs know it: below C:, else on Z:, which is /."""
        whole = path.resolve()
        if whole.is_relative_to(self.drive):
            return "C:\\" + "\\".join(whole.relative_to(self.drive).parts)
        return "Z:" + str(whole).replace("/", "\\")

    def linux_path(self, path: str) -> Path | None:
        """The Linux path of a whole Windows path on C: or Z:, else nothing."""
        roots = {"c:": self.drive, "z:": Path("/")}
        root = roots.get(path[:2].lower())
        return root / path[2:].replace("\\", "/").strip("/") if root else None

    def environment(
        self, folders: Sequence[str] = (), environ: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """All that wine and the Windows programs get to see.

        Args:
            folders: Windows folders for the front of PATH.
            environ: more variables, for the programs.
        """
        wine = shutil.which("wine")
        places = [str(Path(wine).parent)] if wine else []
        values = {
            "PATH": os.pathsep.join([*places, "/usr/local/bin", "/usr/bin", "/bin"]),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "WINEPREFIX": str(self.prefix),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": SWITCHED_OFF,
            "WINEPATH": ";".join([*folders, r"C:\Python311", r"C:\Python311\Scripts"]),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        values |= {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        for name in HANDED_ON_AS_FILES:
            file = Path(os.environ.get(name) or "/nowhere")
            if file.is_file():
                values[name] = self.windows_path(file)
        return values | dict(environ or {})

    def quietly(self, *command: str, seconds: float | None = None) -> int:
        """Run a command with nothing of ours in its hands, and give its exit code; LATE after so long.

        The first program starts wine's services, which keep what it had open. A pipe of ours would
        stay open as long as they live, and its reader would wait for its end.
        """
        try:
            done = subprocess.run(
                command,
                env=self.environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return LATE
        return done.returncode

    def wine(self, *command: str) -> None:
        """Run a Windows program that must succeed, quietly."""
        code = self.quietly("wine", *command)
        if code != 0:
            raise BenchError(f"`{' '.join(command)}` ended with exit code {code} under wine")

    def start(self) -> None:
        """Have the server and the services up before a program of ours starts."""
        self.quietly("wineserver", f"-p{SECONDS_KEPT}")
        self.quietly("wine", "cmd", "/c", "exit 0")

    def stop(self) -> None:
        """End every Windows process of this bench; the registry is written out.

        A process may stand still so that the server waits for it for ever: then Linux ends it.
        """
        if self.prefix.is_dir():
            self.quietly("wineserver", "-k", seconds=SECONDS_TO_END)
            if self.quietly("wineserver", "-w", seconds=SECONDS_TO_END) == LATE:
                for process in self.processes():
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)

    def processes(self) -> list[int]:
        """The ids of Linux's processes that have this prefix in their environment, as all of wine's do."""
        mark = f"WINEPREFIX={self.prefix}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # ended meanwhile, or another user's
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found

    def step(self, name: str, inputs: str, make: Callable[[Bench], None]) -> str:
        """Make a part of the bench unless it was made from the same inputs.

        Args:
            name: the part.
            inputs: what it is made from; another text makes it again.
            make: makes it, over whatever a broken attempt left.

        Returns:
            A digest of the inputs, which is an input of what builds on this part.
        """
        digest = hashlib.sha256(inputs.encode()).hexdigest()
        stamp = self.root / "made" / name
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != digest:
            print(f"windows bench: making the {name}", flush=True)
            stamp.unlink(missing_ok=True)
            make(self)
            stamp.parent.mkdir(exist_ok=True)
            stamp.write_text(digest, encoding="utf-8")
        return digest


def wine_version() -> str:
    """What `wine --version` says, as `wine-8.0`."""
    done = subprocess.run(
        ["wine", "--version"],
        env=os.environ | {"WINEDEBUG": "-all"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()[0]


def wine_major(version: str) -> int:
    """The first number of `wine-8.0`."""
    found = re.match(r"wine-(\d+)", version)
    if found is None:
        raise BenchError(f"`wine --version` says {version!r}, which names no version")
    return int(found[1])

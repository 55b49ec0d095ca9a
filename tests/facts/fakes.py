"""A machine made of a folder and a table: the fake behind the door of `facts`.

`machine` is Linux and `windows_machine` is Windows, on whichever of the two a test runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from torchbuild_tasks.facts import names_posix, names_windows
from torchbuild_tasks.facts.names import Names
from torchbuild_tasks.facts.probe import Output, Probe, Uname
from torchbuild_tasks.system import trust
from torchbuild_tasks.system.windows_memory import MemoryStatus

GCC = "{name} (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n"
CLANG = "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n"

LINUX = Uname(system="linux", release="6.1.0", machine="x86_64")
WINDOWS = Uname(system="win32", release="10.0.26100", machine="AMD64")
WINDOWS_ENVIRON = {
    "Path": "C:\\Windows\\system32;C:\\bin",
    "PATHEXT": ".COM;.EXE;.BAT;.CMD;.VBS;.JS",
    "ProgramFiles": "C:\\Program Files",
    "ProgramW6432": "C:\\Program Files",
    "ProgramFiles(x86)": "C:\\Program Files (x86)",
    "USERPROFILE": "C:\\Users\\Ada Lovelace",
    "APPDATA": "C:\\Users\\Ada Lovelace\\AppData\\Roaming",
}


class FakeProbe(Probe, frozen=True, kw_only=True):
    """Programs answer from `outputs` (by the whole command, else by the program); None hangs."""

    names: Names = msgspec.field(default_factory=lambda: names_posix)
    outputs: dict[str, Output | None] = msgspec.field(default_factory=dict)
    asked: list[str] = msgspec.field(default_factory=list)
    many: int | None = 8
    allowed: int | None = 8
    kernel: Uname = LINUX
    c_library: str | None = "glibc 2.36"
    usage: tuple[int, int] | None = (1000, 400)
    memory: MemoryStatus | None = None
    registry: Mapping[str, Mapping[str, str | int]] = msgspec.field(default_factory=dict)
    versions: Mapping[str, str] = msgspec.field(default_factory=dict)
    cache: str = "/home/me/.cache/torchbuild-tasks"
    here: str = "/here"
    files: tuple[int, int] | None = (1024, 4096)

    def run(self, argv: object, *, timeout: float = 10.0) -> Output | None:
        assert isinstance(argv, tuple)
        command = " ".join(argv)
        self.asked.append(command)
        return self.outputs[command] if command in self.outputs else self.outputs.get(argv[0])

    def is_program(self, path: str) -> bool:
        """What begins as a script does is one on our Linux: on Windows files have no modes."""
        if self.windows:
            return super().is_program(path)
        return (self.read(path) or "").startswith("#!")

    def current_folder(self) -> str | None:
        return self.here

    def cores(self) -> int | None:
        return self.many

    def open_files(self) -> tuple[int, int] | None:
        return self.files

    def administrator(self) -> bool | None:
        return False

    def file_system(self, path: str) -> str | None:
        return "NTFS" if self.windows else None

    def affinity(self) -> int | None:
        return self.allowed

    def uname(self) -> Uname:
        return self.kernel

    def glibc(self) -> str | None:
        return self.c_library

    def disk_usage(self, path: str) -> tuple[int, int] | None:
        return self.usage

    def volume(self, path: str) -> str | None:
        return self.names.drive(path) or None

    def memory_status(self) -> MemoryStatus | None:
        return self.memory

    def registry_value(self, key: str, name: str = "") -> str | int | None:
        return self.registry.get(key, {}).get(name)

    def registry_keys(self, key: str) -> tuple[str, ...]:
        below = [k.removeprefix(f"{key}\\") for k in self.registry if k.startswith(f"{key}\\")]
        return tuple(dict.fromkeys(k.split("\\")[0] for k in below))

    def file_version(self, path: str) -> str | None:
        return self.versions.get(path)

    def cache_folder(self) -> str:
        return self.cache

    def state_folder(self) -> Path:
        return (self.root or Path()) / "state of torchbuild"


def made_here(door: FakeProbe, *folders: str) -> FakeProbe:
    """Record venvs of the machine as ours, as a build that makes them does."""
    for folder in folders:
        token = door.at(door.join(folder, trust.TOKEN))
        token.write_text("a word", "utf-8")
        entry = trust.entry_path(door.state_folder(), "venvs", folder)
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.write_text(json.dumps({"place": folder, "proof": "a word"}), "utf-8")
    return door


def write(root: Path, files: Mapping[str, str], names: Names | None = None) -> None:
    """Make files below `root`, with the folders they need; a name that ends with / or \\ is a folder."""
    for name, text in files.items():
        path = (names or names_posix).file_of(root, name.rstrip("/\\"))
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(("/", "\\")):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(text, "utf-8", newline="")


def link(root: Path, path: str, target: str) -> None:
    """Make a relative symbolic link, so that it stays inside the fake machine."""
    place = root / path.strip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def machine(
    root: Path,
    *,
    files: Mapping[str, str] | None = None,
    programs: Mapping[str, str | Output | None] | None = None,
    environ: Mapping[str, str] | None = None,
) -> FakeProbe:
    """A fake Linux machine in `root`. Programs: path -> what it says, an Output, or None (it hangs)."""
    write(root, files or {})
    outputs = _programs(root, programs or {}, names_posix)
    return FakeProbe(environ={"PATH": "/usr/bin", **(environ or {})}, root=root, outputs=outputs)


def windows_machine(
    root: Path,
    *,
    files: Mapping[str, str] | None = None,
    programs: Mapping[str, str | Output | None] | None = None,
    environ: Mapping[str, str] | None = None,
    registry: Mapping[str, Mapping[str, str | int]] | None = None,
    versions: Mapping[str, str] | None = None,
) -> FakeProbe:
    """A fake Windows machine: C:\\x is the file C/x in `root`."""
    write(root, files or {}, names_windows)
    return FakeProbe(
        environ={**WINDOWS_ENVIRON, **(environ or {})},
        root=root,
        names=names_windows,
        outputs=_programs(root, programs or {}, names_windows),
        registry=registry or {},
        versions=versions or {},
        kernel=WINDOWS,
        c_library=None,
        memory=MemoryStatus(1 << 35, 1 << 34, 3 << 34, 1 << 34),
        cache="C:\\Users\\Ada Lovelace\\AppData\\Local\\torchbuild-tasks\\Cache",
        here="C:\\here",
    )


def _programs(
    root: Path, programs: Mapping[str, str | Output | None], names: Names
) -> dict[str, Output | None]:
    outputs: dict[str, Output | None] = {}
    for path, said in programs.items():
        write(root, {path: "#!/bin/false\n"}, names)
        outputs[path] = Output(0, said) if isinstance(said, str) else said
    return outputs

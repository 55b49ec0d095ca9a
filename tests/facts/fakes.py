"""A machine made of a folder and a table: the fake behind the door of `facts`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchbuild_tasks.facts.probe import Output, Probe, Uname

GCC = "{name} (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n"
CLANG = "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n"


@dataclass(frozen=True, kw_only=True)
class FakeProbe(Probe):
    """Programs answer from `outputs` (by the whole command, else by the program); None hangs."""

    outputs: Mapping[str, Output | None] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    many: int | None = 8
    allowed: int | None = 8
    kernel: Uname = field(default_factory=lambda: Uname(system="linux", release="6.1.0", machine="x86_64"))
    c_library: str | None = "glibc 2.36"
    usage: tuple[int, int] | None = (1000, 400)

    def run(self, argv: object, *, timeout: float = 10.0) -> Output | None:
        assert isinstance(argv, tuple)
        command = " ".join(argv)
        self.asked.append(command)
        return self.outputs[command] if command in self.outputs else self.outputs.get(argv[0])

    def cores(self) -> int | None:
        return self.many

    def affinity(self) -> int | None:
        return self.allowed

    def uname(self) -> Uname:
        return self.kernel

    def glibc(self) -> str | None:
        return self.c_library

    def disk_usage(self, path: str) -> tuple[int, int] | None:
        return self.usage


def write(root: Path, files: Mapping[str, str]) -> None:
    """Make files below `root`, with the folders they need; a name that ends with / is a folder."""
    for name, text in files.items():
        path = root / name.strip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(text, "utf-8")


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
    """A fake machine in `root`. Programs: path -> what it says, an Output, or None (it hangs)."""
    write(root, files or {})
    outputs: dict[str, Output | None] = {}
    for path, said in (programs or {}).items():
        write(root, {path: "#!/bin/false\n"})
        os.chmod(root / path.strip("/"), 0o755)  # noqa: PTH101
        outputs[path] = Output(0, said) if isinstance(said, str) else said
    return FakeProbe(environ={"PATH": "/usr/bin", **(environ or {})}, root=root, outputs=outputs)

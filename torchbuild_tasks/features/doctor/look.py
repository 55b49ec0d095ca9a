"""Look at surroundings that can break a build or the import of its torch, for the doctor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from torchbuild_tasks.facts.machine import (
    look_at_disk,
    mount_of,
    nearest_existing,
    relevant_environ,
    takes_files,
)
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import look_at_cache, read_git
from torchbuild_tasks.model import Facts, Health, OtherTree, Room, Tree

# Variables that affect which compilers, headers and libraries are found. They are not in
# data/variables.toml, and hold no login.
ENVIRON: Final = (
    *("CONDA_PREFIX", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"),
    *("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"),
    *("CMAKE_PREFIX_PATH", "CUDA_HOME", "CUDA_PATH"),
)
# Prefixes of build variables; most other names belong to other programs.
_BUILD_LIKE: Final = (
    "USE_",
    "BUILD_",
    "NO_",
    "WITH_",
    "CMAKE_",
    "TORCH_CUDA_",
    "PYTORCH_BUILD_",
)


def look_at_health(
    probe: Probe, facts: Facts, places: Mapping[str, str], patterns: Sequence[str], build_dir: str
) -> Health:
    """Look at the surroundings of a build."""
    tree = facts.tree
    limit = probe.open_files()
    with ThreadPoolExecutor(max_workers=4) as pool:
        settings = pool.submit(git_settings, probe, tree.root)
        refuses = pool.submit(git_refuses, probe, tree)
        known = pool.submit(_is_known_locale, probe)
        ahead = newest_file(probe, tree.root, build_dir)
        return Health(
            rooms=look_at_rooms(probe, places),
            open_files=limit[0] if limit else None,
            open_files_most=limit[1] if limit else None,
            locale=_locale(probe) or None,
            newest=ahead[0] if ahead else None,
            ahead=ahead[1] if ahead else None,
            environ=relevant_environ(probe.environ, ENVIRON, ignore_case=probe.windows),
            strangers=_strangers(probe, patterns),
            conda_linkers=conda_linkers(probe, facts),
            shadows=shadowing_torches(probe),
            others=other_trees(probe, tree.root, build_dir),
            administrator=probe.administrator(),
            git=settings.result(),
            git_refuses=refuses.result(),
            locale_known=known.result(),
        )


def _strangers(probe: Probe, patterns: Sequence[str]) -> tuple[str, ...]:
    known = relevant_environ(probe.environ, patterns, ignore_case=probe.windows)
    names = sorted(name.upper() if probe.windows else name for name in probe.environ)
    return tuple(name for name in names if name.startswith(_BUILD_LIKE) and name not in known)


def _locale(probe: Probe) -> str:
    """Return the locale for characters, by POSIX's precedence; "" on Windows."""
    names = () if probe.windows else ("LC_ALL", "LC_CTYPE", "LANG")
    return next((value for name in names if (value := probe.variable(name))), "")


def _is_known_locale(probe: Probe) -> bool | None:
    """Say whether a locale is installed, by `locale -a`, which spells UTF-8 as utf8."""
    wanted = _locale(probe)
    program = probe.which("locale")
    output = probe.run((program, "-a")) if wanted and program else None
    if output is None or output.rc != 0:
        return None
    return _plain(wanted) in {_plain(line) for line in output.stdout.splitlines()}


def _plain(locale: str) -> str:
    return locale.lower().replace("utf-8", "utf8").strip()


# ---------------- file systems that the build writes to


def look_at_rooms(probe: Probe, places: Mapping[str, str]) -> tuple[Room, ...]:
    """Return the free space for each purpose; for a missing folder that of its nearest parent."""
    return tuple(_room(probe, purpose, path) for purpose, path in places.items())


def temporary_folder(probe: Probe) -> str:
    """Return the folder for temporary files of compilers and pip: TMPDIR, TEMP, TMP, else /tmp."""
    names = ("TEMP", "TMP") if probe.windows else ("TMPDIR", "TEMP", "TMP")
    named = next((value for name in names if (value := probe.variable(name))), "")
    return probe.absolute(named) if named else "C:\\Windows\\Temp" if probe.windows else "/tmp"


def _room(probe: Probe, purpose: str, path: str) -> Room:
    disk = look_at_disk(probe, path)
    mount = mount_of(probe, disk.mount) if disk.mount else None
    kind = mount.kind if mount else probe.file_system(disk.mount) if disk.mount and probe.windows else None
    return Room(
        purpose=purpose,
        path=path,
        mount=disk.mount,
        free=disk.free,
        kind=kind,
        noexec=disk.noexec,
        writable=takes_files(probe, nearest_existing(probe, path)),
    )


# ---------------- git's settings that can change a checkout's files

# None of these can hold a login, as url.*.insteadOf and http.extraHeader do.
GIT_SETTINGS: Final = ("core.autocrlf", "core.longpaths", "core.symlinks", "http.sslverify")


def git_settings(probe: Probe, root: str) -> dict[str, str]:
    """Return git's settings for the checkout, by lower-case name; empty without git."""
    git = probe.which("git")
    if git is None or not probe.is_dir(root):
        return {}
    pattern = "^(" + "|".join(name.replace(".", r"\.") for name in GIT_SETTINGS) + ")$"
    output = read_git(probe).run((git, "-C", root, "config", "--get-regexp", pattern))
    lines = output.stdout.splitlines() if output and output.rc == 0 else []
    pairs = (line.partition(" ") for line in lines)
    # A name alone is true; a later line wins.
    return {name.lower(): value.strip().lower() or "true" for name, _, value in pairs}


def git_refuses(probe: Probe, tree: Tree) -> bool:
    """Say whether git refuses this checkout because it belongs to another user."""
    git = probe.which("git")
    if not tree.git or tree.commit or git is None:
        return False
    output = read_git(probe).run((git, "-C", tree.root, "rev-parse", "--git-dir"))
    return output is not None and output.rc != 0 and "dubious ownership" in output.stderr


# ---------------- files in and around the checkout

# Files whose times Ninja and CMake compare, and those that a checkout or copy has just written.
_TIMED: Final = ("version.txt", "setup.py", "CMakeLists.txt", "pyproject.toml", ".git/index", ".git/HEAD")
_BUILT: Final = ("build.ninja", ".ninja_log", "CMakeCache.txt")
_TREES: Final = ("build", "cmake-build", "out", "_build")


def newest_file(probe: Probe, root: str, build_dir: str) -> tuple[str, float] | None:
    """Return the file with the time furthest in the future, and by how many seconds."""
    files = [probe.join(root, name) for name in _TIMED] + [probe.join(build_dir, name) for name in _BUILT]
    ahead = [(seconds, file) for file in files if (seconds := probe.ahead(file))]
    return (max(ahead)[1], max(ahead)[0]) if ahead else None


def other_trees(probe: Probe, root: str, build_dir: str) -> tuple[OtherTree, ...]:
    """Return the build trees directly in the checkout, except the planned one."""
    folders = (probe.join(root, name) for name in probe.children(root) if name.startswith(_TREES))
    caches = ((folder, look_at_cache(probe, folder)) for folder in folders if folder != build_dir)
    return tuple(OtherTree(path=folder, home=cache.home) for folder, cache in caches if cache is not None)


def shadowing_torches(probe: Probe) -> tuple[str, ...]:
    """Return the torches in the current folder or PYTHONPATH, which `import torch` finds first."""
    entries = probe.names.split_path(probe.variable("PYTHONPATH"))
    folders = [probe.current_folder() or "", *(probe.absolute(entry) for entry in entries if entry)]
    files = (
        probe.join(folder, name)
        for folder in dict.fromkeys(filter(None, folders))
        for name in ("torch/__init__.py", "torch.py")
    )
    return tuple(file for file in files if probe.is_file(file))


def conda_linkers(probe: Probe, facts: Facts) -> tuple[str, ...]:
    """Return the ld of each conda environment with a Python, whose link commands use it."""
    prefixes = [python.prefix for python in facts.pythons if python.environment == "conda" and python.prefix]
    if active := probe.variable("CONDA_PREFIX"):
        prefixes.append(active)
    programs = (probe.join(prefix, "compiler_compat", "ld") for prefix in dict.fromkeys(prefixes))
    return tuple(program for program in programs if probe.is_file(program))

"""Look at the machine: system, processor, memory, disk, and the variables that concern a build.

Limits of containers count: memory and CPU quotas come from the cgroups of this process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal, NamedTuple

from torchbuild_tasks.catalog.match import covers
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Cpu, Disk, Host, Memory


def look_at_host(probe: Probe) -> Host:
    """Look at the operating system.

    Sources: uname(2), os-release(5), confstr(3); on Windows its version, environment and registry.
    """
    uname = probe.uname()
    machine = (uname.machine or "unknown").lower()
    release = {} if probe.windows else _os_release(probe)
    return Host(
        os="windows" if uname.system == "win32" else uname.system,
        arch=_ARCHS.get(machine, machine),
        distribution=_windows_name(probe) if probe.windows else release.get("PRETTY_NAME") or None,
        like=tuple(dict.fromkeys(f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".split())),
        kernel=uname.release,
        libc=None if probe.windows else probe.glibc() or _musl(probe),
        lc_all=None if probe.windows else probe.variable("LC_ALL") or None,
        root=not probe.windows and bool(probe.administrator()),
    )


_ARCHS = {"amd64": "x86_64", "arm64": "aarch64"}


def _windows_name(probe: Probe) -> str | None:
    from torchbuild_tasks.facts.windows import windows_name

    return windows_name(probe)


def _os_release(probe: Probe) -> dict[str, str]:
    """Return what os-release(5) says."""
    text = probe.read("/etc/os-release") or probe.read("/usr/lib/os-release") or ""
    lines = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip().strip("\"'") for name, _, value in lines}


def _musl(probe: Probe) -> str | None:
    """Return "musl 1.2.5"; musl has no version call, its ldd prints it to stderr and ends with 1."""
    ldd = probe.which("ldd")
    output = probe.run((ldd, "--version")) if ldd else None
    if output is None or "musl" not in output.stdout + output.stderr:
        return None
    version = re.search(r"Version (\S+)", output.stdout + output.stderr)
    return f"musl {version[1]}" if version else "musl"


# ---------------- processor


def look_at_cpu(probe: Probe) -> Cpu:
    """Return cores, affinity, and the smallest CPU quota of this process's cgroup and those above it.

    `cores` is 1 when the system does not tell; `quota_via` names the file of the quota.
    """
    quota, via = min(_quotas(probe), default=(None, None))
    return Cpu(cores=probe.cores() or 1, affinity=probe.affinity(), quota=quota, quota_via=via)


def _quotas(probe: Probe) -> Iterator[tuple[float, str]]:
    """Yield each quota in cores with its file: microseconds of work in a period; max and -1 are no limit."""
    for level in cgroup_levels(probe, "cpu"):
        if level.version == 2:
            file = f"{level.folder}/cpu.max"
            words = (probe.read(file) or "").split()
        else:
            file = f"{level.folder}/cpu.cfs_quota_us"
            words = [probe.read(path) or "" for path in (file, f"{level.folder}/cpu.cfs_period_us")]
        numbers = [number_in(word) for word in words[:2]]
        if len(numbers) == 2 and numbers[0] and numbers[1]:
            yield numbers[0] / numbers[1], file


# ---------------- memory

# cgroup v1 writes "no limit" as the largest multiple of a page, about 2**63.
NO_LIMIT = 1 << 60


class MemoryFiles(NamedTuple):
    """The files of a cgroup for its limits and its use; of memory.stat the prefix with all groups below."""

    limits: tuple[str, ...]
    used: str
    prefix: str
    mapped: str


# By version. Above memory.high a group is slowed to a crawl before memory.max would kill it, so for a build
# both are limits.
MEMORY_FILES: Final = {
    2: MemoryFiles(("memory.max", "memory.high"), "memory.current", "", "file_mapped"),
    1: MemoryFiles(("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_", "total_mapped_file"),
}


class _Limit(NamedTuple):
    bytes: int
    used: int | None
    via: str

    @property
    def room(self) -> tuple[int, int]:
        """Bytes left below the limit, then the limit, as a key for sorting."""
        return self.bytes - (self.used or 0), self.bytes


def look_at_memory(probe: Probe) -> Memory:
    """Return memory in bytes. Sources: /proc/meminfo, the cgroup of this process and those above it.

    On Windows GlobalMemoryStatusEx; the limit is that of commit, beyond which Windows refuses allocations
    even with unused memory.

    The tightest limit is the one with the least room left, not the smallest one: a group
    above can be nearly filled by others. `limit_via` names its file.
    """
    if status := probe.memory_status():
        return Memory(
            total=status.total,
            available=status.available,
            limit=status.commit_limit,
            used_in_limit=max(0, status.commit_limit - status.commit_free),
            limit_via="commit: memory and page files",
        )
    info = pairs_in(probe.read("/proc/meminfo"))
    tightest = min(_limits(probe), key=lambda limit: limit.room, default=None)
    return Memory(
        total=_kib(info, "MemTotal"),
        available=_kib(info, "MemAvailable"),
        swap_free=_kib(info, "SwapFree"),
        limit=tightest.bytes if tightest else None,
        used_in_limit=tightest.used if tightest else None,
        limit_via=tightest.via if tightest else None,
    )


def _limits(probe: Probe) -> Iterator[_Limit]:
    for level in cgroup_levels(probe, "memory"):
        settings = _limits_of(probe, level)
        used = _memory_in_use(probe, level) if settings else None
        for via, value in settings:
            yield _Limit(bytes=value, used=used, via=via)


def _limits_of(probe: Probe, level: CgroupLevel) -> list[tuple[str, int]]:
    """Return the limits in one folder, each with its file.

    In version 1 the group's own memory.stat also has the limit of ancestors that a container cannot see.
    """
    files = (f"{level.folder}/{name}" for name in MEMORY_FILES[level.version].limits)
    limits = [(file, number_in(probe.read(file))) for file in files]
    if level.version == 1 and level.own:
        file = f"{level.folder}/memory.stat"
        limits.append((file, pairs_in(probe.read(file)).get("hierarchical_memory_limit")))
    return [(file, value) for file, value in limits if value is not None and value < NO_LIMIT]


def _memory_in_use(probe: Probe, level: CgroupLevel) -> int | None:
    """Return bytes in use, without inactive page cache, which the kernel drops first."""
    names = MEMORY_FILES[level.version]
    used = number_in(probe.read(f"{level.folder}/{names.used}"))
    if used is None:
        return None
    cache = pairs_in(probe.read(f"{level.folder}/memory.stat")).get(f"{names.prefix}inactive_file", 0)
    return max(0, used - cache)


def pairs_in(text: str | None) -> dict[str, int]:
    """Read lines of a name and a number: `MemTotal:  24682416 kB`, `inactive_file 159744`."""
    pairs = {}
    for line in (text or "").splitlines():
        words = line.split()
        value = number_in(words[1]) if len(words) > 1 else None
        if value is not None:
            pairs[words[0].rstrip(":")] = value
    return pairs


def _kib(info: dict[str, int], name: str) -> int | None:
    return info[name] * 1024 if name in info else None


def number_in(text: str | None) -> int | None:
    """Return a text as a number; None for anything else."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() else None


# ---------------- disk


def look_at_disk(probe: Probe, path: str) -> Disk:
    """Return the bytes of the file system of `path`, which need not exist yet.

    `free` is what this user may fill: file systems keep some for root. Sources:
    statvfs(3), /proc/self/mountinfo; on Windows GetDiskFreeSpaceEx, GetVolumePathName.
    """
    existing = nearest_existing(probe, path)
    usage = probe.disk_usage(existing)
    real = probe.realpath(existing)
    mount = mount_of(probe, real)
    return Disk(
        path=path,
        mount=mount.point if mount else probe.volume(real),
        noexec="noexec" in mount.own if mount else None,
        total=usage[0] if usage else None,
        free=usage[1] if usage else None,
    )


def nearest_existing(probe: Probe, path: str) -> str:
    """Return the deepest existing folder of `path`; its root if none exists."""
    while not probe.exists(path) and (above := probe.names.parent(path)) != path:
        path = above
    return path


# ---------------- the user's variables


def own_names(environ: Mapping[str, str], *, ignore_case: bool = False) -> tuple[str, ...]:
    """Return the names of torchbuild's own variables; with `ignore_case`, as on Windows, in capitals."""
    names = (name.upper() if ignore_case else name for name in environ)
    return tuple(sorted(name for name in names if name.startswith("TORCHBUILD_")))


def relevant_environ(
    environ: Mapping[str, str], patterns: Sequence[str], *, ignore_case: bool = False
) -> dict[str, str]:
    """Return the variables whose names match one of the patterns (`USE_*`), sorted by name.

    Upper and lower case differ, as they do on Linux. On Windows (`ignore_case`) a variable
    goes by the spelling of the plain pattern that names it, else in capitals, as Python
    itself reads it there.
    """
    if ignore_case:
        spelling = {pattern.upper(): pattern for pattern in patterns}
        relevant = relevant_environ({name.upper(): value for name, value in environ.items()}, list(spelling))
        return dict(sorted((spelling.get(name, name), value) for name, value in relevant.items()))
    # Nearly all patterns are plain names, which are looked up; only the others are matched.
    plain = set(patterns)
    wild = [pattern for pattern in patterns if any(mark in pattern for mark in "*?[")]
    return {
        name: value
        for name, value in sorted(environ.items())
        if name in plain or any(covers(pattern, name) for pattern in wild)
    }


# ---------------- /proc/self/mountinfo (proc(5))


class Mount(NamedTuple):
    """One mount: the folder `root` of a file system is mounted at `point`.

    `options` are the file system's, `own` those of this mount.
    """

    root: str
    point: str
    kind: str
    options: tuple[str, ...]
    own: tuple[str, ...] = ()


def read_mounts(probe: Probe) -> tuple[Mount, ...]:
    """Return all mounts, oldest first; empty if the file cannot be read, or on Windows."""
    # On Windows this path is a folder of the current drive, which any user can create.
    lines = [] if probe.windows else (probe.read("/proc/self/mountinfo") or "").splitlines()
    return tuple(mount for line in lines if (mount := _mount(line)))


def mount_of(probe: Probe, path: str) -> Mount | None:
    """Return the mount that holds a real path, of several on one folder the last; None if unknown."""
    mounts = reversed(read_mounts(probe))
    holding = (m for m in mounts if path == m.point or path.startswith(m.point.rstrip("/") + "/"))
    return max(holding, key=lambda mount: len(mount.point), default=None)


# File systems that show something of the kernel: root may write to their folders by access(2), and nobody
# can make a file there (proc(5), sysfs(5), cgroups(7), Documentation/filesystems of Linux).
_SHOWN_BY_KERNEL: Final = (
    *("binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "efivarfs"),
    *("fusectl", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs"),
)


def takes_files(probe: Probe, path: str) -> bool | None:
    """Say whether this user can make files in a folder; None where that is not known."""
    mount = mount_of(probe, probe.realpath(path))
    return False if mount and mount.kind in _SHOWN_BY_KERNEL else probe.writable(path)


def _mount(line: str) -> Mount | None:
    left, separator, right = line.partition(" - ")
    before = left.split()
    after = right.split()
    if not separator or len(before) < 6 or len(after) < 3:
        return None
    return Mount(
        root=_unescape(before[3]),
        point=_unescape(before[4]),
        kind=after[0],
        options=tuple(after[2].split(",")),
        own=tuple(before[5].split(",")),
    )


def _unescape(text: str) -> str:
    """Decode octal escapes of blank, tab, newline and backslash; UTF-8 is not escaped."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


# ---------------- the cgroups that this process is in, of version 1 and 2, from its own up to the top one
# https://docs.kernel.org/admin-guide/cgroup-v2.html, https://man7.org/linux/man-pages/man7/cgroups.7.html


class CgroupLevel(NamedTuple):
    """One folder of the hierarchy; `own` is true for the group the process itself is in."""

    version: Literal[1, 2]
    folder: str
    own: bool


def cgroup_levels(probe: Probe, controller: str) -> tuple[CgroupLevel, ...]:
    """Return the folders that can hold limits of `controller` ("memory", "cpu"), own one first.

    On a hybrid machine folders of both versions are returned: only one holds the controller's files.
    """
    own = _read_own_groups(probe)
    levels: list[CgroupLevel] = []
    for mount in read_mounts(probe):
        if mount.kind == "cgroup2" and "" in own:
            levels += _levels_of(mount, own[""], 2)
        elif mount.kind == "cgroup" and controller in mount.options and controller in own:
            levels += _levels_of(mount, own[controller], 1)
    return tuple(levels)


def _read_own_groups(probe: Probe) -> dict[str, str]:
    """Return controller -> path of this process's group; version 2 has the empty name."""
    groups: dict[str, str] = {}
    for line in (probe.read("/proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            groups.update(dict.fromkeys(parts[1].split(","), parts[2]))
    return groups


def _levels_of(mount: Mount, group: str, version: Literal[1, 2]) -> Iterator[CgroupLevel]:
    below = _path_below(mount.root, group)
    folder = PurePosixPath(mount.point, *below)
    for depth in range(len(below) + 1):
        yield CgroupLevel(version=version, folder=str(folder), own=depth == 0)
        folder = folder.parent


def _path_below(root: str, group: str) -> tuple[str, ...]:
    """Return the folders from the mount's root down to the group.

    In a container the group is often named as the host sees it while only a part of the
    hierarchy is mounted (or none of the process's own, "/../x"): then the mount point is
    all there is to read.
    """
    path = PurePosixPath(group)
    if ".." in path.parts or not path.is_relative_to(root):
        return ()
    return path.relative_to(root).parts

"""Checks of the machine: disk space, memory, limits, locale, clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.catalog.match import memory_row
from torchbuild_tasks.features.doctor.check import View
from torchbuild_tasks.model import Finding, Room
from torchbuild_tasks.plan.environment import ASCII_LOCALES
from torchbuild_tasks.plan.fit import SMALLEST, TEMPORARY, check_noexec, needed_disk, temporary_names
from torchbuild_tasks.plan.jobs import gib_of_job, usable_memory, ways_to_memory
from torchbuild_tasks.plan.places import list_unwritable
from torchbuild_tasks.plan.variables import choose_build_type
from torchbuild_tasks.text.words import as_word

# Factor on the size of an archive, for it and its unpacked files: a safe estimate.
_UNPACKED: Final = 3
_UNSIZED: Final = 0.3  # GiB, for a helper whose row has no size
# Ninja holds a pipe or two for each job, a linker may hold the objects of an archive open.
_FILES: Final = 256
_FILES_EACH_JOB: Final = 8
_CLOCK: Final = 5.0  # seconds; file systems keep times no finer than two
_SHARED: Final = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "drvfs", "virtiofs")
_PLAIN: Final = ("exfat", "vfat", "msdos", "fat32")  # file systems of memory cards
_IN_MEMORY: Final = ("tmpfs", "ramfs")
# Folders that are written to, and how to choose another one; the plan speaks of the store.
_NAMED: Final = {"cache": "--cache-dir", "state": "TORCHBUILD_STATE", "tmp": ""}


def check_disk(view: View) -> tuple[Finding, ...]:
    """Check the free space of each file system for everything that this build writes there."""
    needs = _needs(view)
    mounts: dict[str, list[Room]] = {}
    for room in view.health.rooms:
        if room.purpose == "state":  # a few files of some hundred bytes
            continue
        # In a chroot no mount is known; folders with the same free bytes count as one file system.
        mounts.setdefault(room.mount or f"free: {room.free}", []).append(room)
    return tuple(_check_mount(view, rooms, needs) for rooms in mounts.values())


def _needs(view: View) -> Mapping[str, float]:
    """Return GiB by purpose; missing source is reported by the finding `submodules`."""
    stored = view.facts.store.unpacked if view.facts.store else {}
    missing = (each for each in view.plan.artifacts if each.stored_as not in stored)
    store = sum(each.size or _UNSIZED * GIB for each in missing) * _UNPACKED / GIB
    cache = view.plan.cache.size / GIB if view.plan.cache else 0.0
    build = needed_disk(view.question, choose_build_type(view.question).value)
    return {"build": build, "store": store, "cache": cache, "tmp": TEMPORARY}


def _check_mount(view: View, rooms: list[Room], needs: Mapping[str, float]) -> Finding:
    """Check one file system: an error if the build does not fit, a warning if a full cache does not."""
    mount = rooms[0].mount or f"the file system of {rooms[0].path}"
    free = rooms[0].free
    parts = [(room.purpose, needs[room.purpose]) for room in rooms if needs.get(room.purpose)]
    if free is None:
        return Finding.unknown("disk", f"free space on {mount} is not known")
    what = ", ".join(f"{purpose} {gib:.2g}" for purpose, gib in parts)
    text = f"{free / GIB:.1f} GiB free on {mount}; needed there in GiB: {what or 'nothing'}"
    must = sum(gib for purpose, gib in parts if purpose != "cache")
    if free / GIB < must:
        built = view.facts.tree.previous is not None
        fix = ", or ".join(("Free some space", *_ways_to_space(view, dict(parts), must - free / GIB)))
        return Finding(id="disk", status="warn" if built else "error", text=text, fix=fix)
    if free / GIB < sum(gib for _, gib in parts):
        rest = f"{max(1, int(free / GIB - must))}G"
        fix = f"The compiler cache can fill the rest: --cache-size {rest}, or --cache-dir on another disk"
        return Finding.warn("disk", text, fix)
    return Finding.ok("disk", text)


def _ways_to_space(view: View, parts: Mapping[str, float], lacking: float) -> Iterator[str]:
    """Return what makes room on a file system with these parts that lacks so many GiB."""
    least = needed_disk(view.question, choose_build_type(view.question).value, SMALLEST)
    if "build" in parts and parts["build"] - least >= lacking:
        yield f"choose a smaller preset: --preset {SMALLEST}"
    names = {"store": "TORCHBUILD_CACHE", "tmp": temporary_names(view.question)}
    if elsewhere := [name for purpose, name in names.items() if purpose in parts]:
        yield f"put a part elsewhere: {', '.join(elsewhere)}"


def check_starts(view: View) -> tuple[Finding, ...]:
    """Check that programs can be started from where the build and compilers write them."""
    text = "programs can be started from the folders of the build and of temporary files"
    return tuple(check_noexec(view.question)) or (Finding.ok("noexec", text),)


def check_places(view: View) -> tuple[Finding, ...]:
    """Check that the folders can be written, and are on a suitable file system."""
    findings: list[Finding] = []
    told = list_unwritable(view.facts.store, view.plan.environment)  # by the plan, with what they are for
    for room in view.health.rooms:
        if room.writable is False and room.purpose in _NAMED and room.path not in told:
            text = f"{room.path} ({room.purpose}) cannot be written to"
            names = _NAMED[room.purpose] or temporary_names(view.question)
            fix = f"Make it yours, or name another: {names}."
            # A cache never fails a build.
            status = Finding.warn if room.purpose == "cache" else Finding.error
            findings.append(status("places", text, fix))
        if slow := _file_system_problem(view, room):
            text = f"{room.path} ({room.purpose}) is on {room.kind}, {slow[0]}"
            findings.append(Finding.warn("places", text, slow[1]))
    well = Finding.ok("places", "folders for caches, records and temporary files can be written to")
    return tuple(findings) or (() if told else (well,))


def _file_system_problem(view: View, room: Room) -> tuple[str, str] | None:
    """Return the problem of a build on a file system, and a fix; None if it is suitable."""
    if room.kind in _SHARED and room.purpose in ("build", "cache"):
        return "which is shared, and slow", "A local disk is several times as fast for many small files."
    if room.kind in _PLAIN and room.purpose in ("source", "build") and not view.windows:
        return (
            "which knows no links and no rights: git, venv and libraries with versions want both",
            "Use a checkout on a file system of Linux (ext4, xfs, btrfs).",
        )
    jobs = int(decided) if (decided := view.choice("jobs")).isdecimal() else 1
    if room.kind in _IN_MEMORY and room.purpose == "build":
        return (
            "which is in memory: a build there leaves less of it for compilers, and a restart deletes it",
            "Use a checkout on a disk" + (f", or fewer jobs: --jobs {jobs // 2}" if jobs > 1 else ""),
        )
    return None


def check_memory(view: View) -> tuple[Finding, ...]:
    """Check whether one compile of this build fits into memory; swap is reported separately."""
    memory = view.facts.memory
    room = usable_memory(memory)
    if room is None:
        return (Finding.unknown("memory", "free memory is not known"),)
    each = gib_of_job(view.question, view.choice("build type"))
    reserve = memory_row(view.question.catalog, "reserve").gib
    swap = f", {memory.swap_free / GIB:.1f} GiB of swap" if memory.swap_free else ", no swap"
    swap = "" if view.windows else swap
    free = room[0] / GIB
    text = f"{free:.1f} GiB {room[1]}{swap}; one compile may take {each:g} GiB, {reserve:g} GiB is kept free"
    if free >= each + reserve:
        return (Finding.ok("memory", text),)
    spare = (memory.swap_free or 0) / GIB
    fix = f"{ways_to_memory(memory, view.facts.host.os)}; --jobs 1 --preset minimal needs least."
    return (Finding(id="memory", status="warn" if free + spare >= each else "error", text=text, fix=fix),)


def check_open_files(view: View) -> tuple[Finding, ...]:
    """Check `ulimit -n` against the open files of the plan's jobs and one link."""
    soft = view.health.open_files
    most = view.health.open_files_most
    if soft is None:
        why = (
            "open files: Windows has no such limit"
            if view.windows
            else "how many files may be open is not known"
        )
        return (Finding(id="open-files", status="skipped" if view.windows else "unknown", text=why),)
    jobs = view.choice("jobs")
    need = _FILES + _FILES_EACH_JOB * (int(jobs) if jobs.isdecimal() else 1)
    text = f"{soft:,} files may be open (ulimit -n), {need:,} are enough here"
    if soft >= need:
        return (Finding.ok("open-files", text),)
    fix = f"ulimit -n {need}" if most is None or most >= need else f"root must raise it; {most} is the most"
    return (Finding.warn("open-files", text, fix),)


def check_locale(view: View) -> tuple[Finding, ...]:
    """Check whether names and messages are UTF-8, in an installed locale."""
    if view.windows:
        return (Finding.skipped("locale", "locale: Windows has none of that kind"),)
    name = view.health.locale
    if name is None or name in ASCII_LOCALES:
        state = f"the locale is {name}" if name else "no locale is set"
        text = f"{state}, so programs treat text as ASCII, except Python, which uses UTF-8"
        return (Finding.ok("locale", text),)
    if view.health.locale_known is False:
        text = (
            f"the locale {name} is not installed here: perl, bash and git complain, and treat text as ASCII"
        )
        return (Finding.warn("locale", text, "export LC_ALL=C.UTF-8"),)
    if "utf" not in name.lower():
        text = f"the locale {name} is not UTF-8: generated sources and names beyond ASCII can break"
        return (Finding.warn("locale", text, "export LC_ALL=C.UTF-8"),)
    return (Finding.ok("locale", f"the locale is {name}"),)


def check_clock(view: View) -> tuple[Finding, ...]:
    """Check the clock by the times of files and of servers."""
    health = view.health
    if health.ahead is not None and health.ahead > _CLOCK:
        text = (
            f"{health.newest} was changed {_span(health.ahead)} in the future: Ninja rebuilds it every time"
        )
        fix = "Put the clock right; then: "
        fix += "save it anew" if view.windows else f"touch {as_word(health.newest)}"
        return (Finding.warn("clock", text, fix),)
    ahead = [host.ahead for host in health.reached or () if host.ahead is not None]
    least = min(ahead, key=abs, default=None)
    if least is not None and abs(least) > 60:
        side = "behind" if least > 0 else "ahead of"
        text = f"this clock is {_span(abs(least))} {side} that of the servers: certificates may be refused"
        return (
            Finding.warn("clock", text, "timedatectl set-ntp true" if not view.windows else "w32tm /resync"),
        )
    against = "files and servers" if least is not None else "the files of the checkout"
    return (Finding.ok("clock", f"the clock agrees with {against}"),)


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"

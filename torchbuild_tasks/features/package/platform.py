"""Determine the platform of a wheel: manylinux by auditwheel's tables, Windows by delvewheel's."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path

from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.features.package.choose import provided_names
from torchbuild_tasks.features.package.look import Wheel
from torchbuild_tasks.model.closure import Image


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
    return provided_names(own | {name for policy in policies for name in policy.whitelist})


def _of_windows(machine: str) -> frozenset[str]:
    """Return the DLLs of Windows and of Python, in lower case."""
    from delvewheel import _dll_list as known

    names = known.ignore_names_arm64 if machine == "aarch64" else known.ignore_names_x64
    return provided_names({name.lower() for name in names}) | {
        *("api-*", "ext-ms-*", "python3*.dll", "combase.dll", "vcruntime140.dll", "vcruntime140_1.dll"),
    }


def platform_of(wheel: Wheel, tree: Path, scratch: Path, external: tuple[str, ...]) -> str:
    """Return the platform tag that the libraries in `tree` allow.

    Args:
        wheel: what it was.
        tree: the unpacked wheel.
        scratch: a folder for a copy that auditwheel reads.
        left: libraries that are known to come from elsewhere.

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

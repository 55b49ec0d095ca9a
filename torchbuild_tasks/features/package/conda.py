"""Write a conda package of an unpacked wheel with py-rattler-build, without conda."""

from __future__ import annotations

import shutil
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from packaging.utils import parse_wheel_filename

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.facts.wheel import read_programs
from torchbuild_tasks.features.package.choose import conda_package
from torchbuild_tasks.features.package.look import Wheel
from torchbuild_tasks.model.wheel import Member
from torchbuild_tasks.system.reading import read_text

_SUMMARY: Final = (
    "PyTorch {} as it was built from source by its owner: a wheel with its own libraries in conda's form, "
    "no build of conda-forge"
)
# Starts the Python next to it in any environment; the second line is a string literal for Python.
_PROGRAM: Final = """#!/bin/sh
'''exec' "$(dirname "$(readlink -f "$0")")/python" "$0" "$@"
' '''
import sys
from {module} import {first}
sys.exit({name}())
"""


def write_conda(
    wheel: Wheel, tree: Path, scratch: Path, version: str, platform: str, catalog: Catalog
) -> tuple[Path, list[str]]:
    """Write the .conda below `scratch`; return it, and notes.

    Args:
        tree: the unpacked wheel, complete; its files are moved.
        scratch: where everything is made.
        version, platform: torch's version, and the tag that its libraries allow.

    Raises:
        PackageRefused: py-rattler-build does not take it.
    """
    from auditwheel.wheeltools import rewrite_record
    from rattler_build import RattlerBuildError, assemble_package

    (info,) = tree.glob("*.dist-info")
    _, _, _, tags = parse_wheel_filename(wheel.path.name)
    tag = min(tags, key=str)
    package = conda_package(
        version=version,
        cuda=wheel.cuda,
        tags=(tag.interpreter, tag.abi),
        machine=wheel.machine,
        platform=platform,
        requires=_requires(info / "METADATA"),
        rows=catalog.conda_name,
    )
    (info / "INSTALLER").write_text("conda\n", "utf-8", newline="\n")
    rewrite_record(tree)
    prefix = scratch / "prefix"
    site = prefix / ("Lib" if wheel.windows else f"lib/python{package.python}") / "site-packages"
    licences = [
        path for path in sorted(info.rglob("*")) if path.is_file() and path.name in ("LICENSE", "NOTICE")
    ]
    site.mkdir(parents=True)
    notes = _place(wheel, tree, prefix, site, info.name)
    if package.left_out:
        notes.append(f"Not asked for, since conda has no words for it: {', '.join(package.left_out)}")
    out = scratch / "conda"
    try:
        package_file = assemble_package(
            package.name,
            package.version,
            package.subdir,
            package.build,
            out,
            files_dir=prefix,
            homepage="https://pytorch.org",
            license="BSD-3-Clause",
            license_files=[site / path.relative_to(tree) for path in licences],
            summary=_SUMMARY.format(version),
            depends=list(package.depends),
            constrains=list(package.constrains),
            compression_level=3,  # compression level of 19: torch 2.13.0 takes 1.5 minutes at 1
            detect_prefix=False,
        )
    except RattlerBuildError as error:
        raise PackageRefused(f"py-rattler-build made no package: {error}") from None
    return Path(package_file.path), notes


def members_of_prefix(scratch: Path) -> tuple[Member, ...]:
    """Return the files of the package below `scratch`, with their installed sizes.

    The archive in it is packed as one piece, so what one file takes there has no size.
    """
    prefix = scratch / "prefix"
    return tuple(
        Member(name=path.relative_to(prefix).as_posix(), size=size, packed=size)
        for path in prefix.rglob("*")
        if path.is_file() and (size := path.stat().st_size)
    )


def _requires(metadata: Path) -> list[str]:
    return [*map(str, HeaderParser().parsestr(read_text(metadata)).get_all("Requires-Dist", ()))]


def _place(wheel: Wheel, tree: Path, prefix: Path, site: Path, info: str) -> list[str]:
    """Move an unpacked wheel's files to conda's folders; return notes about those left out."""
    notes = []
    for path in sorted(tree.iterdir()):
        if path.name.endswith(".data"):
            for kind in sorted(path.iterdir()):
                where = {"data": prefix, "purelib": site, "platlib": site}.get(kind.name)
                if where is None:
                    notes.append(f"Left out, for conda has no place for it: {path.name}/{kind.name}")
                else:
                    shutil.copytree(kind, where, dirs_exist_ok=True)
        else:
            path.rename(site / path.name)
    programs = site / info / "entry_points.txt"
    scripts = read_programs(read_text(programs), "console_scripts") if programs.is_file() else {}
    if scripts and wheel.windows:
        return [*notes, f"Left out, for they are programs of pip's on Windows: {', '.join(sorted(scripts))}"]
    for name, value in scripts.items():
        module, _, called = "".join(value.partition("[")[0].split()).partition(":")
        path = prefix / "bin" / name
        path.parent.mkdir(exist_ok=True)
        text = _PROGRAM.format(module=module, first=called.partition(".")[0], name=called)
        path.write_text(text, "utf-8", newline="\n")
        path.chmod(0o755)
    return notes

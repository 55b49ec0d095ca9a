"""`package`: make a portable wheel or libtorch from a built wheel, or a source distribution."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import NotBuilt, PackageRefused, UsageError
from torchbuild_tasks.features.package.choose import CUDA_LIBRARIES, uv_settings
from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.plan.settings import read_size
from torchbuild_tasks.text.show import columns, size_text
from torchbuild_tasks.text.words import first_few
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.features.package.act import Order, Package
    from torchbuild_tasks.features.package.sdist import Sdist
    from torchbuild_tasks.model import EnvOp
    from torchbuild_tasks.model.record import Manifest
    from torchbuild_tasks.plan.question import Question

FOLDER: Final = "dist/packages"
_PLACES: Final = re.compile(r"(_ROOT|_HOME|_PATH|_DIR|_LIBRARY|^LIB|^PATH)$")
_BELOW: Final = ("", "lib64", "lib", "bin", "bin/x64")
_AGAIN: Final = "Build one: torchbuild build --mode wheel"
_OWN: Final = "or name the wheel yourself: package {} --wheel FILE"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackageRequest(BuildRequest):
    """The words and flags of `package`."""

    actions = {
        "wheel": "make a wheel that works on other machines",
        "libtorch": "make a zip for C++: include, lib, share/cmake",
        "conda": "make a conda package, pytorch-local",
        "sdist": "make a source distribution of exactly this source",
        "uv": "print what another project needs to use this torch with uv",
    }

    wheel: str | None = own_flag("package this wheel (default: the last build's, in dist/)", metavar="FILE")
    cuda_libraries: str | None = own_flag(
        "NVIDIA's libraries: depend on NVIDIA's wheels (default for a wheel on Linux), bundle them (default "
        "on Windows and for conda), or leave them to the system (default for libtorch on Linux)",
        metavar="HOW",
        choices=CUDA_LIBRARIES,
    )
    local: str | None = own_flag(
        "local part of the version: auto (cpu, cu126), none, or your own (default: as built)", metavar="PART"
    )
    graft: tuple[str, ...] = own_flag(
        "also copy this library (libfoo.so.1, or a pattern) into the package; may be repeated",
        metavar="NAME",
        default=(),
    )
    keep_debug: bool = own_flag("keep debug information in the libraries", default=False)
    max_size: str | None = own_flag("refuse a package above this size, such as 2G", metavar="SIZE")


def run(request: PackageRequest, report: Reporter) -> Outcome:
    """Make a portable wheel, libtorch, or a source distribution."""
    from torchbuild_tasks.features.package.act import as_value

    read_size(request.max_size or "", "--max-size")
    if request.action == "uv":
        return _uv(request)
    if request.action == "sdist":
        source = _sdist(request, report)
        return Outcome(as_value(source), sdist_text(source))
    package = make(request, report)
    return Outcome(as_value(package), package_text(package))


def make(request: PackageRequest, report: Reporter) -> Package:
    """Find the wheel, check that it is the last build's, and make its package."""
    from torchbuild_tasks.features.package.act import Order, make_package
    from torchbuild_tasks.features.package.look import look_at_wheel
    from torchbuild_tasks.system.signals import interruptible

    if request.sign:
        from torchbuild_tasks.features.provenance.act import require_key

        require_key(request.sign, str(request.action), "Say package wheel.")
    with interruptible():
        path, folders, root = _named_wheel(request) if request.wheel else _last_built_wheel(request)
        wheel = look_at_wheel(path)
        order = Order(
            kind=str(request.action),
            out=_folder(request, root),
            cuda_libraries=_cuda_libraries(request, wheel.windows),
            local=request.local,
            graft=request.graft,
            keep_debug=request.keep_debug,
            max_size=read_size(request.max_size or "", "--max-size"),
            search=tuple(folders),
        )
        report.note(f"wheel: {path}")
        package = make_package(wheel, order, load_catalog(), report)
        return _state(package, path, order, request.sign) if order.kind == "wheel" else package


def _state(package: Package, wheel: Path, order: Order, key: str | None) -> Package:
    """Write the statement of the package's provenance; if that is not possible, add a note."""
    from torchbuild_tasks.features.provenance.act import write_package_statement

    names = ("kind", "cuda_libraries", "local", "graft", "keep_debug")
    options = {name: getattr(order, name) for name in names}
    why = write_package_statement(wheel, package.path, options, key)
    return msgspec.structs.replace(package, notes=(*package.notes, *filter(None, (why,))))


def _look(request: PackageRequest) -> tuple[Question, Path]:
    """Return the facts of the checkout and its folder.

    Raises:
        TreeBusy: another command runs there, and what it makes is not finished.
    """
    from torchbuild_tasks.context import look, require_checkout
    from torchbuild_tasks.system import lock

    question = look(request, everything=False)
    root = require_checkout(question)
    if running := question.facts.tree.running:
        raise lock.busy(root, running)
    return question, root


def _sdist(request: PackageRequest, report: Reporter) -> Sdist:
    """Pack the checkout's source."""
    from torchbuild_tasks.features.package.sdist import make_sdist
    from torchbuild_tasks.plan.variables import decide
    from torchbuild_tasks.system.signals import interruptible

    if request.wheel or request.graft or request.cuda_libraries or request.keep_debug or request.sign:
        raise UsageError(
            "--wheel, --graft, --cuda-libraries, --keep-debug and --sign are for packages of a wheel; "
            "a source distribution is made from the checkout."
        )
    question, root = _look(request)
    chosen = (decide(question, f"PYTORCH_BUILD_{part}") for part in ("VERSION", "NUMBER"))
    report.stage("pack the source")
    with interruptible():
        return make_sdist(
            root,
            _folder(request, root),
            request.local,
            question.catalog.submodule,
            {choice.name: choice.value for choice in chosen if choice},
            max_size=read_size(request.max_size or "", "--max-size"),
        )


def _uv(request: PackageRequest) -> Outcome:
    """Return the lines of another project's pyproject.toml by which uv uses the newest package or wheel."""
    from torchbuild_tasks.features.package.look import look_at_wheel

    path, _, root = _named_wheel(request) if request.wheel else _last_built_wheel(request)
    if not request.wheel:
        packages = sorted(_folder(request, root).glob("torch-*.whl"), key=lambda each: each.stat().st_mtime)
        path = packages[-1] if packages else path
    wheel = look_at_wheel(path)
    text = uv_settings(path.as_posix())
    return Outcome({"wheel": str(path), "version": wheel.version, "toml": text}, text)


def _folder(request: PackageRequest, root: Path) -> Path:
    """Return the folder for the package."""
    out = Path(request.out).expanduser().absolute() if request.out else root / FOLDER
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --out names the folder that the package goes to.")
    return out


def _cuda_libraries(request: PackageRequest, windows: bool) -> str:
    requested = request.cuda_libraries
    whys = {
        "libtorch": "libtorch has no Python that would install them",
        "conda": "conda installs no wheels",
    }
    why = whys.get(str(request.action)) or ("torch for Windows does not look there" if windows else "")
    if requested == "depend" and why:
        raise UsageError(
            f"--cuda-libraries depend: NVIDIA's wheels cannot be used here, {why}.",
            next_step="--cuda-libraries bundle, or system.",
        )
    if requested or windows:
        return requested or "bundle"
    return {"libtorch": "system", "conda": "bundle"}.get(str(request.action), "depend")


def _named_wheel(request: PackageRequest) -> tuple[Path, list[str], Path]:
    path = Path(str(request.wheel)).expanduser().absolute()
    if not path.is_file():
        raise PackageRefused(f"There is no wheel {path}.", next_step=_AGAIN)
    return path, [], path.parent.parent if path.parent.name == "dist" else Path.cwd()


def _last_built_wheel(request: PackageRequest) -> tuple[Path, list[str], Path]:
    """Return the last build's wheel, the library folders of its build, and the checkout."""
    from torchbuild_tasks.build.ledger import last_manifest
    from torchbuild_tasks.features.manifest.read import read_manifest
    from torchbuild_tasks.system.reading import read_bytes

    question, root = _look(request)
    wheels = sorted((root / "dist").glob("*.whl"))
    own = _OWN.format(request.action)
    if not wheels:
        raise NotBuilt(
            "There is no wheel yet.",
            looked=(f"looked for: {root / 'dist'}/*.whl",),
            next_step=f"{_AGAIN}, {own}",
        )
    path = last_manifest(Path(question.build_dir))
    try:
        manifest = read_manifest(read_bytes(path), str(path))
    except FileNotFoundError:
        raise PackageRefused(
            f"Nothing says which build {wheels[-1].name} is of: there is no {path}.",
            next_step=f"{_AGAIN}, {own}",
        ) from None
    return _of_last_build(wheels, manifest, own), list(_folders(manifest.env)), root


def _of_last_build(wheels: list[Path], manifest: Manifest, own: str) -> Path:
    """Return the wheel of the recorded build, checked by the hash in the manifest."""
    when = f"The last build, of {manifest.started},"
    if manifest.result != "ok":
        raise PackageRefused(f"{when} did not succeed ({manifest.result}).", next_step=f"{_AGAIN}, {own}")
    if manifest.decided.get("mode") != "wheel":
        raise PackageRefused(
            f"{when} was an editable install; {wheels[-1].name} is of another build.",
            next_step=f"{_AGAIN}, {own}",
        )
    from torchbuild_tasks.system.reading import hash_file

    installed = {each.archive: each for each in manifest.requirements if each.archive}
    hashes = {wheel: hash_file(wheel) for wheel in wheels}
    for wheel, digest in hashes.items():
        if digest in installed:
            return wheel
    torch = [each for each in manifest.requirements if each.name == "torch"]
    raise PackageRefused(
        f"{when} made none of the wheels in dist/: they are of another build, or were changed.",
        looked=(
            *(f"{wheel} has sha256 {digest}" for wheel, digest in hashes.items()),
            *(f"installed then: {each.origin or 'torch'}, sha256 {each.archive}" for each in torch),
        ),
        next_step=f"{_AGAIN}, {own}",
    )


def _folders(operations: Iterable[EnvOp]) -> Iterable[str]:
    """Yield the library folders in the build's environment."""
    import os

    for operation in operations:
        if _PLACES.search(operation.name):
            for entry in str(operation.value).split(os.pathsep):
                path = Path(entry)
                if path.is_absolute():
                    base = path if path.is_dir() else path.parent
                    yield from (str(base / part) for part in _BELOW if (base / part).is_dir())


def package_text(package: Package) -> str:
    """Return the package, its bundled and external libraries, its size, and ways to reduce it."""
    size = package.size
    rows = [
        ("version", package.version),
        ("platform", package.platform),
        *(("brings", f"{name}, from {source}") for name, source in package.grafted.items()),
        *(("requires", requirement) for requirement in package.requires),
        *(("expects", f"{name} on the machine") for name in package.expects),
        ("size", f"{size_text(size.packed)}, {size_text(size.size)} installed"),
        *([("stripped", f"{size_text(package.stripped)} of debug information")] * bool(package.stripped)),
        *(("", f"{size_text(each.packed):>9}  {each.name}") for each in size.largest),
        *(("too large", f"for {place}") for place in size.too_large_for),
        *(("smaller", advice) for advice in size.advice),
    ]
    notes = "".join(f"! {note}\n" for note in package.notes)
    return f"wrote {package.path}\n{columns(rows)}{notes}"


def sdist_text(sdist: Sdist) -> str:
    """Return the written file, and its differences from the commit."""
    of_submodules = f", with those of {sdist.submodules} submodules" if sdist.submodules else ""
    rows = [
        ("version", sdist.version),
        ("commit", sdist.commit),
        ("files", f"{sdist.files}{of_submodules}"),
        ("size", size_text(sdist.packed)),
    ]
    if changed := sdist.changed:
        rows.append(("changed", f"{len(changed)} as they are here: {first_few(changed, 3)}"))
    if left_out := sdist.left_out:
        rows.append(("left out", f"{len(left_out)} that git does not track: {first_few(left_out, 3)}"))
    return f"wrote {sdist.path}\n{columns(rows)}"

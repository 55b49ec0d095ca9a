"""Build, test and install the wheel of a companion: none is installed that this torch cannot load.

First its metadata are checked, then the symbols of its libraries, then its import from a separate folder.
Until it has passed, only its requirements are installed, and an earlier version is kept.
"""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

import msgspec
from packaging.utils import canonicalize_name

from torchbuild_tasks.build.compile import run_logged
from torchbuild_tasks.build.installed import find_missing
from torchbuild_tasks.build.prepare import install
from torchbuild_tasks.build.work import Work, is_agreed
from torchbuild_tasks.catalog.source import CompanionRow
from torchbuild_tasks.errors import BuildFailed, RequirementsError
from torchbuild_tasks.facts.wheel import BROKEN, read_metadata
from torchbuild_tasks.features.closure.act import find_breaks
from torchbuild_tasks.features.companions.choose import (
    BUILDS_WITH,
    FOLDER,
    find_other_torch,
    without_torch,
)
from torchbuild_tasks.features.companions.look import look_at_companions
from torchbuild_tasks.model import Command, Companion, CompanionSource
from torchbuild_tasks.model.record import CheckResult
from torchbuild_tasks.system import files, process
from torchbuild_tasks.text.words import shell_line

_LIMIT: Final = 300.0  # seconds for an import, which may compile kernels
_LIBRARY: Final = re.compile(r"\.so(\.\d+)*$|\.pyd$|\.dll$")
# A line of its own, since a package may print during its import.
_IMPORT: Final = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
import torch
for name in sys.argv[2:]:
    importlib.import_module(name)
"""
_CMAKE: Final = "import torch; print(torch.utils.cmake_prefix_path)"


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel: its name and version, its requirements (PEP 508), its modules, its libraries."""

    name: str
    version: str
    asks: tuple[str, ...]
    modules: tuple[str, ...]
    libraries: tuple[str, ...]


# ---------------- before it is built


def build_environment(work: Work, companion: Companion, torch: str) -> dict[str, str]:
    """Return the environment of a companion's build: that of torch's, with the companion's own variables.

    `{torch}` and `{archs}` in its row are filled in; a variable whose list is empty is left out.
    """
    environ = dict(work.env)
    archs = environ.get("TORCH_CUDA_ARCH_LIST", "")
    row = _row_of(work, companion)
    known = {"{torch}": torch, "{archs}": plain_archs(archs, row.archs if row else ())}
    for name, value in companion.set.items():
        for word, meaning in known.items():
            if word in value and not meaning:
                break
            value = value.replace(word, meaning)
        else:
            environ[name] = value
    if work.wheel:  # without a sourced env file, which would put the environment's CMake and Ninja first
        programs = str(Path(work.plan.environment.python).parent)
        environ["PATH"] = os.pathsep.join(filter(None, (programs, environ.get("PATH"))))
    if companion.extension:
        # CMake's own list of architectures, for a project that does not get it from find_package(Torch).
        environ |= {"CUDAARCHS": cmake_archs(archs)} if archs and "CUDAARCHS" not in environ else {}
        path = _constraints(work, torch)  # every pip and uv of the build keeps this torch
        environ |= {"PIP_CONSTRAINT": path.as_uri(), "UV_CONSTRAINT": str(path)}
        environ = {**_look_at(companion).forces, **environ}
        ask = (work.plan.environment.python, "-I", "-X", "utf8", "-c", _CMAKE)
        captured = process.capture(ask, env=work.env, timeout=_LIMIT)
        prefix = captured.text.strip().splitlines()
        if captured.rc == 0 and prefix:  # for find_package(Torch)
            places = (prefix[-1], environ.get("CMAKE_PREFIX_PATH", ""))
            environ["CMAKE_PREFIX_PATH"] = os.pathsep.join(filter(None, places))
    return environ


def _row_of(work: Work, companion: Companion) -> CompanionRow | None:
    return next((row for row in work.catalog.companion if row.name == companion.name), None)


def plain_archs(archs: str, known: Sequence[str] = ()) -> str:
    """Return TORCH_CUDA_ARCH_LIST in the form of most extensions' own variables: "8.0;9.0a+PTX" is "80;90a".

    Args:
        archs: the list.
        known: what the extension has code for, where it passes over others: 8.6 runs that of 80, since code
            runs on later GPUs of the same major number. Empty: any.
    """
    words = [word.removesuffix("+PTX").replace(".", "") for word in re.split("[; ]+", archs) if word]
    if not known:
        return ";".join(words)
    wanted = [int(word.rstrip("af")) for word in words]
    runs = ([each for each in map(int, known) if each // 10 == one // 10 and each <= one] for one in wanted)
    return ";".join(dict.fromkeys(str(max(each)) for each in runs if each))


def cmake_archs(archs: str) -> str:
    """Return TORCH_CUDA_ARCH_LIST in CMake's form: machine code for each, and PTX if requested."""
    words = [word for word in re.split("[; ]+", archs) if word]
    kinds = ((plain_archs(word), "" if word.endswith("+PTX") else "-real") for word in words)
    return ";".join(f"{number}{kind}" for number, kind in kinds)


def _constraints(work: Work, torch: str) -> Path:
    """Write the constraints file that keeps this torch."""
    path = work.root.joinpath(*FOLDER, "constraints.txt")
    files.write_atomic(path, f"torch=={torch}\n".encode(), error=RequirementsError)
    return path


def _look_at(companion: Companion) -> CompanionSource:
    return look_at_companions([(companion.name, companion.folder)], any_package=(companion.name,))[0]


def prepare_extension(work: Work, companion: Companion, torch: str, environ: Mapping[str, str]) -> None:
    """Check the source's requirements against this torch, and install its build requirements.

    Raises:
        RequirementsError: it requires another torch, or a build requirement is not available.
    """
    source = _look_at(companion)
    if source.problem:
        raise BuildFailed(
            f"{source.path} cannot be built: {source.problem}.",
            next_step="Name the folder with its setup.py.",
        )
    for script in companion.before:  # other releases have it in another place, or not
        if Path(companion.folder, script).is_file():
            argv = (work.plan.environment.python, script)
            run_logged(work, Command(argv=argv, cwd=companion.folder, because=companion.because), environ)
    source = _look_at(companion)
    called = f"{companion.name} {source.version or ''}".rstrip()
    _refuse_another_torch(work, companion, called, source.asks, torch)
    row = _row_of(work, companion)
    needs = without_torch(source.builds_with or BUILDS_WITH, row.without if row else ())
    _install(work, companion, needs, torch)


def _refuse_another_torch(
    work: Work, companion: Companion, called: str, asks: tuple[str, ...], torch: str
) -> None:
    pin = find_other_torch(asks, torch, work.plan.environment.version or "")
    if not pin:
        return
    own = torch.partition("+")[0]
    raise RequirementsError(
        f"{called} asks for {pin}, and this torch is {torch}. It is not installed, nothing is replaced.",
        looked=(f"its source: {companion.folder}",),
        next_step=f"Take a release of it for torch {own}: --with-extension {companion.name}==VERSION or "
        f"{companion.name}=URL@REF; or, where it works with this torch all the same, change that line of its "
        f"source and name the folder: --with-extension {companion.name}={companion.folder}",
    )


def _install(work: Work, companion: Companion, asks: tuple[str, ...], torch: str) -> None:
    """Install the missing requirements, keeping torch."""
    python = work.plan.environment.python
    missing = find_missing(python, work.plan.environment.version or "", asks)
    if not missing:
        return
    options = (*work.plan.environment.install_options, "--constraint", str(_constraints(work, torch)))
    start = work.plan.environment.installer or (python, "-m", "pip", "install", "--disable-pip-version-check")
    argv = (*start, *options, *missing)
    because = f"what {companion.name} asks for"
    line = shell_line(argv, windows=os.name == "nt")
    if work.plan.environment.foreign and not is_agreed(work, f"{companion.name} needs: {line}\nGo on?"):
        raise RequirementsError(
            f"{companion.name} requires packages that {python} lacks, and that is your own environment.",
            looked=missing,
            next_step=f"Do that yourself, or add --yes: {line}",
        )
    install(work, Command(argv=argv, cwd=str(work.root / files.STATE_DIR), because=because))


# ---------------- once there is a wheel


def admit(work: Work, companion: Companion, torch: str) -> CheckResult:
    """Check the wheel against this torch, test it in a separate folder, and install it; return the results.

    Raises:
        RequirementsError: it requires another torch.
        BuildFailed: it needs what this torch does not have, or cannot be imported with it.
    """
    python = work.plan.environment.python
    wheel = _wheel_of(companion)
    built = read_wheel(wheel, companion)
    called = f"{built.name} {built.version}"
    _refuse_another_torch(work, companion, called, built.asks, torch)
    with tempfile.TemporaryDirectory(prefix="torchbuild-trial-", ignore_cleanup_errors=True) as apart:
        place = Path(apart, "site")
        pip = (python, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps")
        cwd = str(work.root / files.STATE_DIR)
        unpack = (*pip, "--quiet", "--no-index", "--no-compile", "--target", str(place), str(wheel))
        install(work, Command(argv=unpack, cwd=cwd, because="it is tried before it is installed"))
        _check_symbols(work, companion, place, built, torch)
        if companion.extension:
            _install(work, companion, without_torch(built.asks), torch)
        _try_import(work, companion, place, built)
    argv = (*pip, "--no-index", "--force-reinstall", str(wheel))
    install(work, Command(argv=argv, cwd=cwd, because=companion.because))
    detail = f"{called}: its {len(built.libraries)} libraries find all symbols in torch {torch}, "
    work.report.note(f"{called} is installed; its wheel: {wheel}")
    return CheckResult(
        check=f"extension: {companion.name}",
        outcome="passed",
        detail=f"{detail}and {', '.join(built.modules)} can be imported",
    )


def _wheel_of(companion: Companion) -> Path:
    wheels = sorted(Path(companion.wheels).glob("*.whl"))
    if not wheels:
        raise BuildFailed(
            f"The build of {companion.name} succeeded but left no wheel in {companion.wheels}.",
            next_step=f"Look at its own build: {companion.folder}",
        )
    return wheels[-1]


def read_wheel(wheel: Path, companion: Companion) -> Built:
    """Return the facts of a wheel; without `module` its modules are those named like the project.

    Raises:
        BuildFailed: it is none.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            headers = HeaderParser().parsestr(read_metadata(archive).decode("utf-8", "replace"))
    except BROKEN:
        raise BuildFailed(f"{wheel} is not a wheel.", next_step="Build it again: the same command.") from None
    return Built(
        name=str(headers["Name"]),
        version=str(headers["Version"]),
        asks=tuple(str(each) for each in headers.get_all("Requires-Dist") or ()),
        modules=(companion.module,) if companion.module else modules_of(names, str(headers["Name"])),
        libraries=tuple(name for name in names if _LIBRARY.search(name)),
    )


def modules_of(names: Iterable[str], project: str) -> tuple[str, ...]:
    """Return the modules of a wheel to import: those named like the project, else all at its top."""
    modules: dict[str, None] = {}
    for name in names:
        parts = re.sub(r"^[^/]+\.data/(?:pure|plat)lib/", "", name).split("/")
        if parts[0].endswith((".dist-info", ".data")):
            continue
        if len(parts) == 2 and parts[1].startswith("__init__."):
            modules[parts[0]] = None
        elif len(parts) == 1 and (parts[0].endswith(".py") or _LIBRARY.search(parts[0])):
            modules[parts[0].partition(".")[0]] = None
    own = [name for name in modules if canonicalize_name(name) == canonicalize_name(project)]
    return tuple(own or [name for name in modules if name.isidentifier()])


def _check_symbols(work: Work, companion: Companion, place: Path, built: Built, torch: str) -> None:
    """Refuse libraries that need symbols which this torch lacks; the import would stop at the first."""
    there = [str(path) for path in sorted(place.rglob("*")) if _LIBRARY.search(path.name) and path.is_file()]
    breaks = find_breaks(work.plan.environment.python, work.env, there)
    lacking = [
        f"{os.path.relpath(path, place)}: {each.text}"
        for path, broken in breaks.items()
        for each in broken
        if each.kind == "symbol"
    ]
    if lacking:
        raise BuildFailed(
            f"{built.name} {built.version} needs symbols that torch {torch} does not have. "
            "It was not installed, and nothing was replaced.",
            looked=tuple(lacking[:8]),
            next_step="It was compiled with headers of another torch, or does not link what it uses. "
            f"Remove what its builds have left in {companion.folder} (build/, *.so), and look which "
            "torch's include folder stands in the log.",
        )


def _try_import(work: Work, companion: Companion, place: Path, built: Built) -> None:
    """Import it from the separate folder, after torch, as any program would."""
    python = work.plan.environment.python
    argv = (python, "-I", "-c", _IMPORT, str(place), *built.modules)
    seen = process.capture(argv, env=work.env, cwd=str(place.parent), timeout=_LIMIT)
    if seen.rc == 0:
        return
    words = seen.error_text.splitlines()
    raise BuildFailed(
        f"{built.name} {built.version} was built, and cannot be imported with this torch "
        f"({process.ending(seen)}). It was not installed, and nothing was replaced.",
        looked=tuple(words[-12:]),
        next_step=f"Its source: {companion.folder}. Its wheel, to look at: {_wheel_of(companion)}",
    )

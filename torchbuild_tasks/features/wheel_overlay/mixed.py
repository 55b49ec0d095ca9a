"""Compile against the libraries of a wheel: torch_python alone, or every library with a changed source.

For torch_python upstream has a switch. Otherwise CMake is configured for all of torch, and Ninja reads a copy
of its build file that uses the wheel's libraries in place of those that need no compile.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.compile import run_build
from torchbuild_tasks.build.install.rules import rules_of
from torchbuild_tasks.build.work import Planned, Work
from torchbuild_tasks.errors import BuildFailed, PlanRefused
from torchbuild_tasks.facts.wheel import VERSION_FILE
from torchbuild_tasks.features.wheel_overlay.act import COMPILED, SETTINGS, STAGING, unpack
from torchbuild_tasks.features.wheel_overlay.choose import (
    CHANGED,
    PLAIN,
    PYTHON_PART,
    Reached,
    find_row,
    obstacle,
)
from torchbuild_tasks.features.wheel_overlay.compatibility import (
    find_differences,
    find_header_differences,
    read_settings,
    shared_settings,
)
from torchbuild_tasks.features.wheel_overlay.find import look_at_change
from torchbuild_tasks.features.wheel_overlay.reach import (
    HEADERS,
    SOURCES,
    Spread,
    describe_spread,
    find_included,
    find_parts,
    find_readers,
    list_includes,
    spread_change,
    take_from_wheel,
)
from torchbuild_tasks.model import Command, Finding
from torchbuild_tasks.model.closure import Symbol
from torchbuild_tasks.model.wheel import Wheel
from torchbuild_tasks.ninja.build_file import parse_build_file
from torchbuild_tasks.system import process
from torchbuild_tasks.system.elf import open_symbols, read_cache, read_elf
from torchbuild_tasks.system.files import Patience, state_dir, translate_errors, write_atomic
from torchbuild_tasks.system.git.run import Git, entries_in
from torchbuild_tasks.system.reading import open_file, read_bytes
from torchbuild_tasks.system.remove import unfinished_folder
from torchbuild_tasks.text.words import first_few, first_lines
from torchbuild_tasks.values import parse_json, replace
from torchbuild_tasks.verify.session import verify

_COMPILER_KEY: Final = "compiler"
_COMPILER_SET: Final = re.compile(r'set\(CMAKE_CXX_COMPILER_(ID|VERSION) "([^"]*)"\)')
_FOLDER: Final = re.compile(rf"(?m)^build (\S+)/CMakeFiles/{PYTHON_PART}\.dir/")
_STEP: Final = re.compile(rb"(?m)^\[\d+/\d+\] .*")
_WRITES_VERSION: Final = b"generate_torch_version.py"
_LIBRARY: Final = re.compile(rf"(?m)^build (\S+): CXX_SHARED_LIBRARY_LINKER__{PYTHON_PART}\w*")
_NINJA_FILE: Final = "build.ninja"
BUILD_FILE: Final = "torchbuild.ninja"
_INCLUDE: Final = "torch/include/"
_GENERATORS: Final = ("torchgen/", "tools/")  # folders of code generators in Python
_ATEN: Final = "aten/src/"  # also on the include path
_SHOWN: Final = 8
_TESTS: Final = "the C++ tests"


def compile_against(work: Work) -> Work:
    """Compile torch_python, or the libraries with changes, against the wheel's libraries, and install them.

    Raises:
        PlanRefused: the wheel was built with other settings, or a change needs more than these libraries.
        BuildFailed: the compile failed.
    """
    wheel, configure = work.wheel, work.plan.way.configure
    assert wheel is not None and configure is not None
    theirs = _wheel_settings(work)
    if not (work.build_dir / "CMakeCache.txt").exists():
        work.ledger.open()
        work = run_build(work, configure)
    elif work.request.target == CHANGED:
        _refresh(work)
    build_file = _read(work.build_dir / _NINJA_FILE)
    reached = look_at_change(work, wheel.commit).reached
    if work.request.target == CHANGED:
        return _compile_reached(work, theirs, build_file, reached)
    _refuse(
        work,
        (
            *find_differences(theirs, _configured(work), _compiler(work)),
            *_find_uncompiled(work, build_file, reached),
        ),
    )
    folder = _FOLDER.search(build_file)
    if folder is None:
        raise BuildFailed(f"{work.build_dir / _NINJA_FILE} has no target {PYTHON_PART}.")
    ninja = (*work.ninja, PYTHON_PART)
    stale = _find_stale(work, wheel, reached)
    if not stale and _is_installed(work, build_file) and _is_idle(work, ninja):
        work.report.note(f"Up to date: Ninja finds nothing to compile or link for {PYTHON_PART}.")
        return _with_all_of_torch(work)
    work.ledger.open()
    because = f"{PYTHON_PART} alone, against the wheel's libraries"
    work = run_build(work, Command(argv=ninja, cwd=work.plan.source, because=because))
    if not _is_installed(work, build_file):
        argv = (*work.ninja, f"{folder[1]}/install")  # installing sets the RPATHs
        run_build(work, Command(argv=argv, cwd=work.plan.source, because="torch imports it from there"))
    return _finish(work, wheel, reached)


def _with_all_of_torch(work: Work) -> Work:
    """Return the work without --target: the stages that follow apply to all of torch."""
    request = dataclasses.replace(work.request, target=None)
    return replace(work, question=replace(work.question, request=request))


def _finish(work: Work, wheel: Wheel, reached: Sequence[Reached]) -> Work:
    """Write the version and changed headers; verification is repeated unless the last one was complete."""
    for path, data in _find_stale(work, wheel, reached).items():
        write_atomic(path, data, error=BuildFailed)
    previous = work.facts.tree.previous
    again = work.up_to_date and previous is not None and previous.verified  # of this wheel
    return replace(_with_all_of_torch(work), up_to_date=False, front_end_skipped=again)


def _refresh(work: Work) -> None:
    """Have Ninja run CMake again if that is due, as after a change of a source that CMake copies."""
    command = Command(argv=(*work.ninja, _NINJA_FILE), cwd=work.plan.source, because="CMake copies sources")
    dry = process.capture((*command.argv, "-n"), env=work.environ, cwd=command.cwd)
    if dry.rc != 0 or b"no work to do" not in dry.stdout:
        work.ledger.open()
        run_build(work, command)


def _wheel_settings(work: Work) -> Mapping[str, str]:
    """Return the settings that the wheel's torch reports; imported once, before any library is replaced.

    Raises:
        BuildFailed: the wheel's torch cannot be imported.
    """
    inputs = work.ledger.manifest.inputs
    if SETTINGS not in inputs:
        report = verify(python=work.plan.environment.python, expectations=(), environ=work.env)
        if _COMPILER_KEY not in report.torch:
            raise BuildFailed(
                "The wheel's torch does not say how it was built, so nothing can be compiled against it.",
                looked=tuple(each.detail for each in report.failed),
                next_step="verify   says what is wrong with it.",
            )
        inputs = {**inputs, SETTINGS: json.dumps(shared_settings(report.torch), sort_keys=True)}
        work.ledger.note(inputs=inputs)
    settings: Mapping[str, str] = parse_json(inputs[SETTINGS].encode())
    return settings


def _configured(work: Planned) -> Mapping[str, str]:
    path = work.build_dir / "caffe2" / "core" / "macros.h"
    with translate_errors(BuildFailed, path):
        return read_settings(_read(path))


def _compiler(work: Planned) -> tuple[str, str]:
    """Return CMake's name for the C++ compiler, and its version."""
    for path in (work.build_dir / "CMakeFiles").glob("*/CMakeCXXCompiler.cmake"):
        settings = dict(_COMPILER_SET.findall(_read(path)))
        return settings.get("ID", ""), settings.get("VERSION", "")
    return "", ""


def _find_uncompiled(work: Work, build_file: str, reached: Sequence[Reached]) -> tuple[Finding, ...]:
    """Return a finding on changed sources that this configuration does not compile; headers are left out."""
    names = [each.path for each in reached if not each.path.endswith((".h", ".hpp"))]
    lost = [name for name in names if (work.root / name).as_posix().replace(" ", "$ ") not in build_file]
    return (obstacle(f"no step of this configuration compiles it: {first_few(lost)}"),) if lost else ()


def _refuse(work: Work, findings: Sequence[Finding]) -> None:
    if not findings:
        return
    words = " ".join(dict.fromkeys(each.fix for each in findings if each.fix.startswith("--")))
    raise PlanRefused(
        f"{_what(work)} cannot be compiled against this wheel as it is configured here. "
        "Nothing was compiled; the wheel's files are in place.",
        findings=tuple(findings),
        next_step=f"The same command with {words}"
        if words
        else "Leave out --from-wheel, which compiles torch.",
    )


def _what(work: Work) -> str:
    return PYTHON_PART if work.request.target == PYTHON_PART else "What has changed"


def _is_installed(work: Work, build_file: str) -> bool:
    """Say whether the installed torch_python is the one that was linked last."""
    names = _LIBRARY.findall(build_file)[:1]
    return bool(names) and _are_installed(work, {name: f"torch/lib/{Path(name).name}" for name in names})


def _are_installed(work: Work, files: Mapping[str, str]) -> bool:
    """Say whether these outputs are installed; CMake's install keeps the time of a file, in whole seconds."""
    with contextlib.suppress(OSError):
        pairs = ((work.build_dir / output, work.root / place) for output, place in files.items())
        return all(int(built.stat().st_mtime) == int(read.stat().st_mtime) for built, read in pairs)
    return False


def _is_idle(work: Work, ninja: Sequence[str]) -> bool:
    """Say whether Ninja would only write the version, which it does at every build."""
    dry = process.capture((*ninja, "-n", "-v"), env=work.environ, cwd=work.plan.source)
    return dry.rc == 0 and all(_WRITES_VERSION in step for step in _STEP.findall(dry.stdout))


def _find_stale(work: Work, wheel: Wheel, reached: Sequence[Reached]) -> dict[Path, bytes]:
    """Return the files to write, with their content: the wheel's version.py, and changed headers."""
    with zipfile.ZipFile(wheel.path) as archive:
        wanted = {work.root / VERSION_FILE: archive.read(VERSION_FILE)}
    for copy, path in _headers(wheel, reached).items():
        if (work.root / path).is_file():
            wanted[work.root / copy] = read_bytes(work.root / path)
    return {path: data for path, data in wanted.items() if read_bytes(path) != data}


def _headers(wheel: Wheel, reached: Sequence[Reached]) -> dict[str, str]:
    """Return the changed headers that the wheel installs for extensions, by their names in the wheel."""
    names = {each.name for each in wheel.members}
    copies = {f"{_INCLUDE}{each.path.removeprefix(_ATEN)}": each.path for each in reached}
    return {copy: path for copy, path in copies.items() if copy in names}


# ---------------- --target changed


def _compile_reached(work: Work, theirs: Mapping[str, str], text: str, reached: Sequence[Reached]) -> Work:
    """Compile the libraries that the change reaches, and install them in place of the wheel's."""
    wheel = work.wheel
    assert wheel is not None
    ninja = (*work.ninja, "-f", BUILD_FILE)
    spread, findings = check_change(work, wheel, theirs, reached)
    _refuse(work, findings)
    noted = parse_json(work.ledger.manifest.inputs.get(COMPILED, "[]"))
    replaced = replaced_files(spread, wheel, reached)
    back = sorted(set(noted) - set(replaced))
    due = [output for part in spread.due for output in part.files]
    files = {output: member for part in spread.kept for output, member in part.files.items()}
    derived = take_from_wheel(text, files, work.build_dir.as_posix(), work.root.as_posix())
    data = derived.encode("utf-8", "surrogateescape")
    if not (work.build_dir / BUILD_FILE).is_file() or read_bytes(work.build_dir / BUILD_FILE) != data:
        work.ledger.open()  # before the first write
        write_atomic(work.build_dir / BUILD_FILE, data, error=BuildFailed)
    laid = not back and all(_are_installed(work, part.files) for part in spread.due)
    if laid and (not due or _is_idle(work, (*ninja, *due))) and not _find_stale(work, wheel, reached):
        work.report.note("Up to date: Ninja finds nothing to compile or link for what has changed.")
        return _with_all_of_torch(work)
    work.ledger.open()
    _note_compiled(work, {*noted, *replaced})  # recorded first, in case this is killed
    _restore_libraries(work, wheel, back)
    if due:
        work.report.note(describe_spread(spread))
        command = Command(
            argv=(*ninja, *due), cwd=work.plan.source, because="the other libraries are the wheel's"
        )
        work = run_build(work, command)
        _require_symbols(work, wheel, spread)
        _install_parts(work, spread)
    done = _finish(work, wheel, reached)
    _note_compiled(work, replaced)
    return done


def _note_compiled(work: Work, names: Iterable[str]) -> None:
    work.ledger.note(inputs={**work.ledger.manifest.inputs, COMPILED: json.dumps(sorted(names))})


def replaced_files(spread: Spread, wheel: Wheel, reached: Sequence[Reached]) -> list[str]:
    """Return the names of the wheel's files that this build replaces."""
    libraries = {member for part in spread.due for member in part.files.values()}
    return sorted(libraries | set(_headers(wheel, reached)))


def check_change(
    work: Planned, wheel: Wheel, theirs: Mapping[str, str], reached: Sequence[Reached]
) -> tuple[Spread, list[Finding]]:
    """Return the libraries that a change reaches, and findings if these alone cannot be compiled.

    `theirs`: the settings that the wheel's torch reports.
    """
    text = _read(work.build_dir / _NINJA_FILE)
    build_file = parse_build_file(lambda name: text if name == _NINJA_FILE else _read(work.build_dir / name))
    place = functools.partial(_place, work.root.as_posix(), work.build_dir.as_posix())
    parts = find_parts(build_file, (each.name for each in wheel.members), place)
    made = {place(output) for edge in build_file.edges for output in edge.outputs}
    headers = _configured_headers(work, wheel, made)
    includes = _read_includes(work, {each for part in parts for each in part.sources}, headers)
    changed = [each.path for each in reached if each.part != _TESTS]
    rows = work.catalog.wheel_input
    generators = [path for path in includes if (row := find_row(path, rows)) and row.kind == "generated"]
    covered = find_included((each for part in parts for each in part.sources), includes)
    spread = spread_change(parts, changed, find_readers(changed, includes), generators, covered)
    findings = list(spread.findings)
    if not spread.due or findings:
        return spread, findings
    sources = frozenset().union(*(part.sources for part in spread.due))
    read = [path for path in headers if not sources.isdisjoint(find_readers((path,), includes))]
    with zipfile.ZipFile(wheel.path) as archive:
        for path in read:
            whole = archive.read(headers[path]).decode("utf-8", "surrogateescape")
            findings += find_header_differences(headers[path], whole, _read(work.root / path))
    reads = _reader_of(work, find_included(sources, includes), spread)
    findings += find_differences(theirs, _configured(work), _compiler(work), reads=reads)
    return spread, findings


def _reader_of(work: Planned, files: Set[str], spread: Spread) -> Callable[[str], bool] | None:
    """Return a function that says whether c10 uses a definition; None if other libraries are due, too.

    c10 uses what its files mention; other libraries include headers of submodules, which are not read here.
    Names that begin with _, and NDEBUG, count as used, by the headers of the system.
    """
    if any(part.name.removeprefix("lib").partition(".")[0] not in PLAIN for part in spread.due):
        return None
    text = b"".join(read_bytes(work.root / path) for path in files if (work.root / path).is_file())
    words = frozenset(re.findall(rb"\w+", text))
    return lambda name: name.startswith("_") or name == "NDEBUG" or os.fsencode(name) in words


def _place(root: str, build_dir: str, path: str) -> str:
    """Convert a path of Ninja's into one relative to the checkout; one outside of it stays absolute."""
    whole = path if path.startswith("/") or path[1:2] == ":" else f"{build_dir}/{path}"
    return os.path.normpath(whole).replace(os.sep, "/").removeprefix(f"{root}/")


def _read(path: Path) -> str:
    return read_bytes(path).decode("utf-8", "surrogateescape")


def _configured_headers(work: Planned, wheel: Wheel, made: Collection[str]) -> dict[str, str]:
    """Return the headers that CMake writes in the build tree, with their names in the wheel."""
    found = {}
    inside = work.build_dir.relative_to(work.root).as_posix()
    for member in wheel.members:
        if not member.name.startswith(_INCLUDE):
            continue
        for folder in ("", _ATEN):
            path = f"{inside}/{folder}{member.name.removeprefix(_INCLUDE)}"
            if path not in made and (work.root / path).is_file():
                found[path] = member.name
    return found


def _read_includes(
    work: Planned, sources: Iterable[str], headers: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Return the includes of each source and header of the checkout, and of those that CMake wrote."""
    listed = Git(folder=work.root).run("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    wanted = {
        name
        for name in entries_in(listed)
        if name.endswith((*HEADERS, *SOURCES)) or name.startswith(_GENERATORS) and name.endswith(".py")
    }
    includes = {}
    for name in (*wanted, *sources, *headers):
        with contextlib.suppress(OSError):
            if name not in includes:
                includes[name] = list_includes(read_bytes(work.root / name))
    return includes


def _restore_libraries(work: Work, wheel: Wheel, names: Sequence[str]) -> None:
    """Restore the wheel's own libraries where an earlier compile had replaced them."""
    if not names:
        return
    members = [each for each in wheel.members if each.name in names]
    place, patience = state_dir(work.root) / STAGING, Patience()
    with unfinished_folder(place, BuildFailed) as staging, translate_errors(BuildFailed, staging):
        unpack(wheel, members, staging)
        for name in names:
            patience.replace(staging / name, work.root / name)
    work.report.note(f"restored from the wheel: {first_few(names)}")


def _require_symbols(work: Work, wheel: Wheel, spread: Spread) -> None:
    """Check that the new libraries export every symbol that the wheel's libraries import from them.

    Raises:
        BuildFailed: a symbol that a library of the wheel needs is missing.
    """
    libraries = [each.name for each in wheel.members if re.search(r"\.so(?:\.|$)", each.name)]
    new = {member: work.build_dir / output for part in spread.due for output, member in part.files.items()}
    new = {member: path for member, path in new.items() if member in libraries}
    wanted: dict[Symbol, str] = {}
    for name in libraries:
        if name not in new and (symbols := open_symbols(str(work.root / name))):
            wanted |= {Symbol(each.name): name for each in symbols.wanted()}
    lost = set[Symbol]()
    with unfinished_folder(state_dir(work.root) / STAGING, BuildFailed) as staging:
        with translate_errors(BuildFailed, staging):
            unpack(wheel, [each for each in wheel.members if each.name in new], staging)
        for name in new:
            if old := open_symbols(str(staging / name)):
                lost |= set(old.exported(wanted))
    for path in (*new.values(), *_find_system_libraries(new.values())):
        if lost and (symbols := open_symbols(str(path))):
            lost -= set(symbols.exported(lost))
    if lost:
        shown = sorted(f"{symbol.name}, which {wanted[symbol]} needs" for symbol in lost)
        raise BuildFailed(
            "What was compiled lacks symbols that the wheel's libraries need. Nothing was installed.",
            looked=first_lines(shown, _SHOWN),
            next_step="Keep these as they were, or leave out --from-wheel, which compiles torch.",
        )


def _find_system_libraries(libraries: Collection[Path]) -> list[str]:
    """Return the system's libraries that these need; wheels hold parts of a newer libstdc++ themselves."""
    found: dict[str, None] = {}
    for path in libraries:
        with open_file(path) as file:
            image = read_elf(file, str(path), path.stat().st_size)
        cache = read_cache(Path("/etc/ld.so.cache"), image.machine)
        found |= dict.fromkeys(place for name in image.needed for place in cache.get(name, ())[:1])
    return list(found)


def _install_parts(work: Work, spread: Spread) -> None:
    """Have CMake install these libraries alone, which sets their RPATHs.

    Raises:
        BuildFailed: CMake failed, or has no install rule for one of them.
    """
    script = work.build_dir / "torchbuild_install.cmake"
    files = [(work.build_dir / output).as_posix() for part in spread.due for output in part.files]
    write_atomic(
        script, rules_of(work.build_dir, files).encode("utf-8", "surrogateescape"), error=BuildFailed
    )
    environment = Path(work.plan.environment.python).parent
    path = os.pathsep.join((str(environment), work.env.get("PATH", "")))
    prefix = f"-DCMAKE_INSTALL_PREFIX={(work.root / 'torch').as_posix()}"
    argv = (shutil.which("cmake", path=path) or "cmake", prefix, "-P", str(script))
    run_build(work, Command(argv=argv, cwd=str(work.build_dir), because="torch imports it from there"))
    left = [part.name for part in spread.due if not _are_installed(work, part.files)]
    if left:
        raise BuildFailed(f"CMake's install did not put {first_few(left)} where the wheel has it.")

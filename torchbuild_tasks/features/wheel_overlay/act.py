"""Copy a wheel's libraries and generated files over the checkout, and record them for `clean`.

The layout is that of an in-place editable install, as both build systems make it: compiled files are in the
checkout next to the Python files that import them, and a .pth file in the environment points to the checkout.
Everything is unpacked into a staging folder first, so a broken wheel changes nothing.
"""

from __future__ import annotations

import contextlib
import csv
import json
import locale
import os
import shutil
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.build import ownership
from torchbuild_tasks.build.install import leftovers
from torchbuild_tasks.build.install.rules import MANIFEST
from torchbuild_tasks.build.installed import find_missing, read_requirements
from torchbuild_tasks.build.ledger import last_log_time
from torchbuild_tasks.build.outputs import Listing, Outputs, outputs_of_both_eras
from torchbuild_tasks.build.prepare import agreeing_flags, install
from torchbuild_tasks.build.work import Work, is_agreed
from torchbuild_tasks.errors import (
    ArchiveRefused,
    BuildFailed,
    CleanRefused,
    RequirementsError,
    UsageError,
)
from torchbuild_tasks.facts.wheel import identify, record_row, record_text
from torchbuild_tasks.features.wheel_overlay.choose import (
    choose_members,
    describe_overlay,
    wheel_expectations,
    wheel_inputs,
)
from torchbuild_tasks.features.wheel_overlay.find import find_ancestor
from torchbuild_tasks.model import Command
from torchbuild_tasks.model.wheel import Member, Wheel
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import Patience, state_dir, translate_errors, write_atomic
from torchbuild_tasks.system.git.run import Git, entries_in
from torchbuild_tasks.system.remove import is_link, snapshot, unfinished_folder
from torchbuild_tasks.text.show import size_text
from torchbuild_tasks.text.words import first_few, in_short
from torchbuild_tasks.values import replace

STAGING: Final = "wheel"  # folder in .torchbuild for unpacking
_SHOWN: Final = 8
_SITE: Final = "import sysconfig; print(sysconfig.get_path('purelib'))"
_WHEEL_TEXT: Final = (
    "Wheel-Version: 1.0\nGenerator: torchbuild_tasks\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
)
_FROM_WHEEL: Final = ("entry_points.txt", "METADATA")
# Names of inputs in the manifest; the plan takes those that begin with "wheel" from the last build.
SETTINGS: Final = "wheel built with"
COMPILED: Final = "wheel libraries compiled"
TARGET: Final = "wheel target"


def lay_wheel(work: Work) -> Work:
    """Copy the chosen wheel's files over the checkout, and make the Python import torch from there.

    Raises:
        ArchiveRefused: the wheel is broken, or has a member that must not be unpacked.
        CleanRefused: files are in the way that no earlier wheel or build owns.
        RequirementsError: a requirement of the wheel cannot be installed.
    """
    wheel = work.wheel
    assert wheel is not None
    inputs = {**work.plan.inputs, **wheel_inputs(wheel, identify(wheel)), TARGET: work.request.target or ""}
    expectations = wheel_expectations(work.question, work.plan.expectations, inputs)
    work = replace(work, plan=replace(work.plan, expectations=expectations))
    outputs = outputs_of_both_eras(work.catalog, work.plan.era)
    members, unused = choose_members(wheel, _list_tracked(work), outputs.matches)
    work.ledger.note(inputs=inputs)  # even if nothing is copied: building companions opens the manifest
    if _is_in_place(work, inputs, members):
        text = "the files of this wheel are in place, unchanged."
        work.report.note(text if work.request.mixed else f"Up to date: {text}")
        return replace(work, up_to_date=True)
    work.ledger.forget_inputs((SETTINGS, COMPILED))  # of the wheel before
    _check_conflicts(work, members)
    with unfinished_folder(state_dir(work.root) / STAGING, BuildFailed) as staging:
        with translate_errors(BuildFailed, staging):
            unpack(wheel, members, staging)
        work.ledger.open()
        _install_editable(work, wheel, staging)
        _remove_earlier(work, outputs)
        _move_into_place(work, members, staging)
    work.report.note(describe_overlay(len(members), wheel, _commits_since(work, wheel)))
    if unused:
        work.report.note(f"not taken from the wheel, because this checkout lacks them: {first_few(unused)}")
    return work


def _list_tracked(work: Work) -> frozenset[str]:
    return frozenset(entries_in(Git(folder=work.root).run("ls-files", "-z")))


def _commits_since(work: Work, wheel: Wheel) -> int:
    git = Git(folder=work.root)
    return int(git.output("rev-list", "--count", f"{find_ancestor(git, wheel.commit)}..HEAD") or 0)


# ---------------- before anything is written


def _is_in_place(work: Work, inputs: dict[str, str], members: Sequence[Member]) -> bool:
    """Say whether all files of this wheel are already in place, and the chosen Python imports them."""
    previous = work.facts.tree.previous  # also of a build that failed later, in a companion
    same = ("wheel", TARGET)  # with another target, some libraries are compiled and not the wheel's
    if previous is None or any(previous.inputs.get(name, "") != inputs[name] for name in same):
        return False
    python = work.facts.python_at(work.plan.environment.python)
    if python is None or python.torch_from != work.plan.source or work.request.clean:
        return False
    recorded = ownership.owned(work.root).paths
    return all(_is_unchanged(work.root, each.name, recorded) for each in members)


def _is_unchanged(root: Path, name: str, recorded: Listing) -> bool:
    with contextlib.suppress(OSError):
        info = (root / name).lstat()
        return name in recorded and (info.st_mtime_ns, info.st_size) == tuple(recorded[name][:2])
    return False


def _check_conflicts(work: Work, members: Sequence[Member]) -> None:
    """Refuse to overwrite files that no earlier wheel or (with --clean) build owns, or to follow links.

    Raises:
        CleanRefused: there are such files or links, or a build that may not be removed.
        RequirementsError: torch would be installed into an environment of the user without leave.
    """
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
    question = f"This checkout has a build of {len(own)} files. Remove them?"
    if compiled and not (work.request.clean or is_agreed(work, question)):
        raise CleanRefused(
            "This checkout has a build of its own, whose libraries and those of a wheel do not mix. "
            "Nothing was changed.",
            next_step=f"Add {agreeing_flags(work.request)} to remove what it made, or use another checkout.",
        )
    environment = work.plan.environment
    question = f"torch is installed into {environment.python}, with what it asks for. Go on?"
    if environment.foreign and not is_agreed(work, question):
        raise RequirementsError(
            f"torch would be installed into {environment.python}, which is your own environment.",
            next_step="Add --yes, or leave --python out to get a venv in the checkout.",
        )


def _list_owned(work: Work) -> Listing:
    """Return the files that builds own here, including those of a build that was killed."""
    outputs = outputs_of_both_eras(work.catalog, work.plan.era).below(
        ownership.within(work.root, work.build_dir)
    )
    now = snapshot(work.root, outputs)
    return ownership.find_claimed(work.root, work.build_dir, outputs, now, last_log_time(work.root)).paths


def _find_linked_folders(root: Path, name: str) -> list[str]:
    parts = name.split("/")[:-1]
    folders = ("/".join(parts[: depth + 1]) for depth in range(len(parts)))
    return [folder for folder in folders if is_link(root / folder)]


def unpack(wheel: Wheel, members: Sequence[Member], staging: Path) -> None:
    """Unpack the files into the staging folder; zipfile compares the checksum of each.

    Raises:
        ArchiveRefused: the wheel is broken.
    """
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
    """Remove the files of an earlier wheel, or of a build that the user agreed to remove."""
    recorded = ownership.owned(work.root).paths
    if not recorded:
        return
    removal = ownership.plan_stale(work.root, work.build_dir, outputs, recorded)
    removed = ownership.remove(removal)
    if removed.count:
        work.report.note(f"removed {removed.count} files of the last build ({size_text(removed.bytes)})")


def _move_into_place(work: Work, members: Sequence[Member], staging: Path) -> None:
    """Move the files into the checkout, listed first in the install manifest, as CMake's install does."""
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
    """Install the wheel's metadata with a .pth file that points to the checkout (PEP 660), by pip.

    Its requirements, such as CUDA's libraries, are resolved in the same run: triton 2.0.0 requires torch,
    and on its own pip would download one release of torch after another.
    """
    path = staging / f"torch-{wheel.version}-py3-none-any.whl"
    with translate_errors(BuildFailed, path):
        _write_editable(wheel, path, work.plan.source)
    environment = work.plan.environment
    if find_missing(environment.python, environment.version or "", read_requirements(path)):
        _pip_install(work, (str(path),), f"{wheel.file} asks for it")
    _pip_install(work, ("--force-reinstall", "--no-deps", str(path)), "torch is imported from the checkout")
    # Without UTF-8 mode the pipe has the code page of Windows.
    argv = (environment.python, "-I", "-X", "utf8", "-c", _SITE)
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
    texts[f"{info}/RECORD"] = record_text([*rows, (f"{info}/RECORD", "", "")]).encode()
    with zipfile.ZipFile(path, "w") as written:
        for name, data in texts.items():
            written.writestr(name, data)


def path_line(source: str) -> bytes:
    """Return the line of a .pth file in the encoding that site.py reads: that of the locale, UTF-8 on Linux.

    From Python 3.13 on site.py tries UTF-8 first, and the locale's encoding if that fails.
    """
    line = f"{source}\n"
    try:
        return line.encode(locale.getencoding())
    except UnicodeEncodeError:
        return line.encode("utf-8", "surrogateescape")


def _mark_editable(info: Path, root: Path) -> None:
    """Record in the metadata that this is an editable install of the checkout (PEP 610)."""
    data = json.dumps({"dir_info": {"editable": True}, "url": root.as_uri()}).encode()
    name = f"{info.name}/direct_url.json"
    with translate_errors(UsageError, info):
        rows = list(csv.reader((info / "RECORD").read_text("utf-8").splitlines()))
    rows = [row for row in rows if row and row[0].replace("\\", "/") != name]
    rows.append(list(record_row(name, data)))
    write_atomic(info / "direct_url.json", data, error=RequirementsError)
    write_atomic(info / "RECORD", record_text(rows).encode(), error=RequirementsError)

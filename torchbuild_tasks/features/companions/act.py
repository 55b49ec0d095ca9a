"""The stages for the companions of torch, such as torchvision: get the sources first, build them last.

The source of one is cloned once by git, a single ref without its history. Each is built against the torch
of this build and verified with it; a mark records for which torch, so that it is not built again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.build.compile import run_logged
from torchbuild_tasks.build.ledger import last_manifest
from torchbuild_tasks.build.work import Work, where_to_read
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.companions.choose import FOLDER
from torchbuild_tasks.model import Command, Companion, Python
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.system import files
from torchbuild_tasks.system.reading import read_json
from torchbuild_tasks.system.remove import UNPACKING, discard, leftovers, temporary_name
from torchbuild_tasks.values import replace

if TYPE_CHECKING:
    from torchbuild_tasks.system.git.run import Git


def fetch_companions(work: Work) -> Work:
    """Get every source, before an hour is spent on torch.

    Raises:
        SourceError: one cannot be had.
    """
    cloned = [each for each in work.plan.companions if each.url and not work.request.target]
    if not cloned:
        return work
    from torchbuild_tasks.system.git.run import Git
    from torchbuild_tasks.system.git.transfer import git_settings

    files.state_dir(work.root)
    for companion in cloned:
        git = Git(folder=Path(companion.folder), config=git_settings(work.fetching.git_mirrors))
        offline, say = work.fetching.net.offline, work.report.note
        clone_source(git, companion.url, companion.ref, offline=offline, say=say)
    return work


def clone_source(git: Git, url: str, ref: str, *, offline: bool, say: Callable[[str], None]) -> None:
    """Clone into git's folder, which gets its name only when it is whole; one that is there is kept as it is.

    Raises:
        SourceError: the address cannot be reached, has no such ref, or --offline forbids to ask it.
    """
    folder = git.folder
    if folder.is_dir():
        return
    name = folder.name.partition("-")[0]
    ways = f"Name a folder that has it: --with {name}=PATH, or another address: --with {name}=URL@REF"
    if offline:
        raise SourceError(f"{folder} is not there, and --offline forbids to get it.", next_step=ways)
    with files.translate_errors(SourceError, folder.parent):
        folder.parent.mkdir(exist_ok=True)
    for left in leftovers(folder.parent, folder.name):
        discard(left)
    part = temporary_name(folder, UNPACKING)
    say(f"{url} at {ref} is cloned to {folder}")
    try:
        with files.translate_errors(SourceError, part):
            part.mkdir()
        _fetch(replace(git, folder=part), url, ref, say)
        with files.translate_errors(SourceError, folder):
            files.replace(part, folder)
    except SourceError as error:
        what = f"{ref} of {url} could not be had: {error.what}"
        raise SourceError(what, looked=error.looked, next_step=error.next_step or ways) from None
    finally:
        discard(part)


def _fetch(git: Git, url: str, ref: str, say: Callable[[str], None]) -> None:
    """Fetch one ref: `git clone` takes no commit, and for a missing ref it takes the default branch."""
    from torchbuild_tasks.system.git.complete import complete
    from torchbuild_tasks.system.git.fetch import Access
    from torchbuild_tasks.system.git.transfer import Watch

    git.run("init", "--quiet")
    git.run("config", "--local", "remote.origin.url", url)  # what relative addresses of submodules count from
    git.run("fetch", "--quiet", "--depth", "1", "--no-tags", url, ref)
    git.run("checkout", "--quiet", "--detach", "FETCH_HEAD")
    complete(git, Access(config=git.config, watch=Watch(tree=str(git.folder), note=say)), lambda path: True)


def build_companions(work: Work) -> Work:
    """Build each against the torch that is installed now, and run its checks.

    pip is kept from building in an environment of its own, where it would put another torch, and from
    installing what the project asks for. What was built for just this torch is not built again.

    Raises:
        BuildFailed: one cannot be built.
        VerifyFailed: one was built and does not compute with this torch.
    """
    if work.request.target or not work.plan.companions or _failed(work.verified):
        return work
    if all(_is_built(work, companion) for companion in work.plan.companions):
        names = ", ".join(companion.name for companion in work.plan.companions)
        work.report.note(f"{names}: built for this torch and verified before")
        return work
    torch = _torch_version(work)
    for companion in work.plan.companions:
        _build(work, companion, torch)
    from torchbuild_tasks.verify.judge import require_passed
    from torchbuild_tasks.verify.session import ALWAYS
    from torchbuild_tasks.verify.torch_probe import COMPANION_CHECKS

    report = _verify(work, (*ALWAYS, *COMPANION_CHECKS))
    require_passed(report, where_to_read(work, None))
    for companion in work.plan.companions:
        _remember(work, companion)
    return _add_checks(work, report)


def _failed(report: VerifyReport | None) -> bool:
    """Return whether torch failed a check: nothing is built against it, and the end of the run reports it."""
    return report is not None and any(check.outcome == "failed" for check in report.checks)


def _verify(work: Work, checks: tuple[str, ...]) -> VerifyReport:
    from torchbuild_tasks.verify.session import verify

    kept = tuple(each for each in work.plan.expectations if each.check in checks)
    return verify(python=work.plan.environment.python, expectations=kept, environ=work.env)


def _torch_version(work: Work) -> str:
    """Return the version that pip sees of the torch to build against."""
    from torchbuild_tasks.verify.judge import require_passed

    report = work.verified or _verify(work, ("import",))
    require_passed(report, where_to_read(work, None))
    return report.torch.get("distribution") or report.torch["version"]


def _build(work: Work, companion: Companion, torch: str) -> None:
    work.report.note(f"{companion.name} {companion.version or companion.ref} is built against torch {torch}")
    environ = dict(work.env)
    environ.update({name: value.replace("{torch}", torch) for name, value in companion.set.items()})
    if work.wheel:  # no env file was sourced, which would have put the environment's CMake and Ninja first
        programs = str(Path(work.plan.environment.python).parent)
        environ["PATH"] = os.pathsep.join(filter(None, (programs, environ.get("PATH"))))
    _mark(work, companion).unlink(missing_ok=True)
    # Not in the checkout, whose folder `torch` would be imported.
    cwd = str(work.root / files.STATE_DIR)
    command = Command(argv=companion.argv, cwd=cwd, because=companion.because)
    run_logged(work, command, environ)


def _add_checks(work: Work, report: VerifyReport) -> Work:
    """Return the work with the checks of the companions added to the report of torch."""
    from torchbuild_tasks.verify.torch_probe import COMPANION_CHECKS

    if work.verified is None:
        return replace(work, verified=report)
    added = tuple(row for row in report.checks if row.check.partition(":")[0] in COMPANION_CHECKS)
    whole = replace(work.verified, checks=(*work.verified.checks, *added))
    work.ledger.note(verify=whole)
    return replace(work, verified=whole)


def _mark(work: Work, companion: Companion) -> Path:
    return work.root.joinpath(*FOLDER, f"{companion.name}.json")


def _built_from(work: Work, companion: Companion) -> dict[str, str] | None:
    """Return what one is built from; None where that is not known, so that it is built again.

    A build of torch that finds nothing to do leaves the manifest as it is, with the time at which it began.
    """
    try:
        began = str(read_json(last_manifest(work.build_dir))["started"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if not companion.state:
        return None
    argv = " ".join(companion.argv)
    variables = json.dumps(dict(companion.set), sort_keys=True)
    return {"state": companion.state, "torch": began, "argv": argv, "set": variables}


def _is_built(work: Work, companion: Companion) -> bool:
    wanted = _built_from(work, companion)
    if not any(companion.name in python.packages for python in _pythons(work)):
        return False
    try:
        return wanted is not None and read_json(_mark(work, companion)) == wanted
    except (OSError, ValueError):
        return False


def _pythons(work: Work) -> tuple[Python, ...]:
    return tuple(each for each in work.facts.pythons if each.executable == work.plan.environment.python)


def _remember(work: Work, companion: Companion) -> None:
    built_from = _built_from(work, companion)
    if built_from is not None:
        mark = _mark(work, companion)
        with files.translate_errors(SourceError, mark):
            mark.parent.mkdir(exist_ok=True)
        files.write_atomic(mark, json.dumps(built_from).encode(), error=SourceError)

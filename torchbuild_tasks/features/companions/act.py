"""The stages for companions (torchvision or any extension): fetch the sources first, build last.

The source of one is cloned once by git, a single ref without its history, or is the sdist of an index. Each
becomes a wheel, built against the torch of this build; only one that passes its trial is installed
(`trial.py`). A mark records for which torch, so that it is not built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from torchbuild_tasks.build.compile import run_logged
from torchbuild_tasks.build.ledger import last_manifest
from torchbuild_tasks.build.work import Work, where_to_read
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.companions.choose import FOLDER
from torchbuild_tasks.model import Command, Companion
from torchbuild_tasks.model.record import CheckResult, VerifyReport
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.reading import read_json
from torchbuild_tasks.system.remove import discard, unfinished_folder
from torchbuild_tasks.values import replace
from torchbuild_tasks.verify.torch_probe import COMPANION_CHECKS

# Outputs of builds in a project's folder.
_BUILD_OUTPUT: Final = frozenset(
    {".git", "__pycache__", "build", "dist", ".eggs", ".mypy_cache", ".pytest_cache"}
)
_COMPILED: Final = (".so", ".pyd", ".dll", ".o", ".obj", ".pyc")


def fetch_companions(work: Work) -> Work:
    """Fetch every source, before an hour is spent on torch.

    Raises:
        SourceError: one is not available.
    """
    wanted = [each for each in work.plan.companions if not work.request.target]
    for companion in wanted:
        if companion.requirement:
            from torchbuild_tasks.features.companions.sdist import fetch_sdist

            files.state_dir(work.root)
            python = work.plan.environment.version or ""
            fetch_sdist(companion, python, work.fetching.net, work.report)
    cloned = [each for each in wanted if each.url]
    if not cloned:
        return work
    from torchbuild_tasks.system.git.transfer import git_settings

    files.state_dir(work.root)
    for companion in cloned:
        git = Git(folder=Path(companion.folder), config=git_settings(work.fetching.git_mirrors))
        offline = work.fetching.net.offline
        say = work.report.note
        word = f"{'--with-extension' if companion.extension else '--with'} {companion.name}"
        ways = f"Name a folder that has it: {word}=PATH, or another address: {word}=URL@REF"
        clone_source(git, companion.url, companion.ref, offline=offline, say=say, ways=ways)
    return work


def clone_source(
    git: Git, url: str, ref: str, *, offline: bool, say: Callable[[str], None], ways: str
) -> None:
    """Clone into a folder that is renamed when it is complete; keep an existing one.

    `ways` says how else it can be had.

    Raises:
        SourceError: the address cannot be reached, has no such ref, or --offline forbids to ask it.
    """
    folder = git.folder
    if folder.is_dir():
        return
    if offline:
        raise SourceError(f"{folder} is not there, and --offline prevents downloading it.", next_step=ways)
    say(f"{url} at {ref} is cloned to {folder}")
    try:
        with unfinished_folder(folder, SourceError) as part:
            _fetch(replace(git, folder=part), url, ref, say)
            with files.translate_errors(SourceError, folder):
                files.replace(part, folder)
    except SourceError as error:
        what = f"{ref} of {url} could not be fetched: {error.what}"
        raise SourceError(what, looked=error.looked, next_step=error.next_step or ways) from None


def _fetch(git: Git, url: str, ref: str, say: Callable[[str], None]) -> None:
    """Fetch one ref: `git clone` accepts no commit, and uses the default branch for a missing ref."""
    from torchbuild_tasks.system.git.complete import complete
    from torchbuild_tasks.system.git.fetch import Access
    from torchbuild_tasks.system.git.transfer import Watch

    git.run("init", "--quiet")
    git.run(
        "config", "--local", "remote.origin.url", url
    )  # relative addresses of submodules are resolved against it
    git.run("fetch", "--quiet", "--depth", "1", "--no-tags", "--", url, ref)
    git.run("checkout", "--quiet", "--detach", "FETCH_HEAD")
    complete(git, Access(config=git.config, watch=Watch(tree=str(git.folder), note=say)), lambda path: True)


def build_companions(work: Work) -> Work:
    """Build each companion against the torch that was installed, and run its checks.

    pip is kept from building in an environment of its own, where it would put another torch. What was built
    for just this torch is not built again.

    Raises:
        BuildFailed: one cannot be built, or cannot be loaded with this torch.
        RequirementsError: a companion requires another torch, or something that is not available.
        VerifyFailed: one was built and does not compute with this torch.
    """
    if work.request.target or not work.plan.companions:
        return work
    if work.verified and work.verified.failed:  # which the end of the run reports
        return work
    wanted = {each.name: _build_inputs(work, each) for each in work.plan.companions}
    due = [each for each in work.plan.companions if not _is_built(work, each, wanted[each.name])]
    if up_to_date := ", ".join(each.name for each in work.plan.companions if each not in due):
        work.report.note(f"{up_to_date}: built for this torch and verified before")
    if not due:
        return work
    torch = _torch_version(work)
    if work.up_to_date and (began := _torch_began(work)):
        work.ledger.note(started=began)  # the manifest keeps describing the present torch
    from torchbuild_tasks.verify.judge import require_passed
    from torchbuild_tasks.verify.session import ALWAYS

    for companion in due:  # those before a failed one stay built, verified and recorded
        tried = _build(work, companion, torch)
        checks = [each for each in COMPANION_CHECKS if _belongs_to(companion.name, each)]
        report = _verify(work, (*ALWAYS, *checks))
        report = replace(report, checks=(*report.checks, tried))
        require_passed(report, where_to_read(work, None))
        _remember(work, companion, wanted[companion.name])
        work = _add_checks(work, report, (*checks, tried.check))
    return work


def _belongs_to(name: str, check: str) -> bool:
    """Say whether a check belongs to a companion: torchvision_cuda to torchvision."""
    return check.removesuffix("_cuda") == canonicalize_name(name).replace("-", "_")


def _verify(work: Work, checks: tuple[str, ...]) -> VerifyReport:
    from torchbuild_tasks.verify.session import verify

    expectations = tuple(each for each in work.plan.expectations if each.check in checks)
    return verify(python=work.plan.environment.python, expectations=expectations, environ=work.env)


def _torch_version(work: Work) -> str:
    """Return the version of torch in pip's metadata."""
    from torchbuild_tasks.verify.judge import require_passed

    report = work.verified or _verify(work, ("import",))
    require_passed(report, where_to_read(work, None))
    return report.torch.get("distribution") or report.torch["version"]


def _build(work: Work, companion: Companion, torch: str) -> CheckResult:
    """Build a companion's wheel, check it against this torch, install it, and return the checks' results."""
    from torchbuild_tasks.features.companions import trial

    version = companion.version or companion.ref or companion.requirement
    work.report.note(f"{companion.name} {version} is built against torch {torch}".replace("  ", " "))
    files.state_dir(work.root).joinpath(FOLDER[1]).mkdir(exist_ok=True)
    environ = trial.build_environment(work, companion, torch)
    if companion.extension:
        trial.prepare_extension(work, companion, torch, environ)
    _mark(work, companion).unlink(missing_ok=True)
    discard(Path(companion.wheels))
    # Not in the checkout, whose folder `torch` would be imported.
    cwd = str(work.root / files.STATE_DIR)
    command = Command(argv=companion.argv, cwd=cwd, because=companion.because)
    run_logged(work, command, environ)
    return trial.admit(work, companion, torch)


def _add_checks(work: Work, report: VerifyReport, own: Collection[str]) -> Work:
    """Return the work with a companion's own checks added to the report of torch."""
    if work.verified is None:
        return replace(work, verified=report)
    added = tuple(row for row in report.checks if row.check in own or row.check.partition(":")[0] in own)
    verified = replace(work.verified, checks=(*work.verified.checks, *added))
    work.ledger.note(verify=verified)
    return replace(work, verified=verified)


def _mark(work: Work, companion: Companion) -> Path:
    return work.root.joinpath(*FOLDER, f"{companion.name}.json")


def _torch_began(work: Work) -> str:
    """Return when the build of the present torch began; "" if unknown.

    A no-op build of torch does not change the manifest, and so not this time.
    """
    try:
        return str(read_json(last_manifest(work.build_dir))["started"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def _build_inputs(work: Work, companion: Companion) -> dict[str, str]:
    """Return the inputs of a companion's build, except torch."""
    state = companion.state or stamp_files(Path(companion.folder), _makes(work, companion))
    variables = json.dumps(dict(companion.set), sort_keys=True)
    return {"state": state, "argv": " ".join(companion.argv), "set": variables}


def _makes(work: Work, companion: Companion) -> frozenset[str]:
    return frozenset(
        path for row in work.catalog.companion if row.name == companion.name for path in row.makes
    )


def stamp_files(folder: Path, makes: Collection[str] = ()) -> str:
    """Return a fingerprint of a folder without git: its files and times."""
    seen = hashlib.sha256()
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(
            each for each in folders if each not in _BUILD_OUTPUT and not each.endswith(".egg-info")
        )
        for name in sorted(names):
            path = Path(top, name)
            shown = path.relative_to(folder).as_posix()
            if shown in makes or name.endswith(_COMPILED):
                continue
            with contextlib.suppress(OSError):
                info = path.lstat()
                seen.update(f"{shown}\n{info.st_size} {info.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return f"files {seen.hexdigest()}"


def _is_built(work: Work, companion: Companion, built_from: Mapping[str, str]) -> bool:
    name = canonicalize_name(companion.name)
    python = work.facts.python_at(work.plan.environment.python)
    if python is None or name not in map(canonicalize_name, python.packages):
        return False
    began = _torch_began(work)
    try:
        return bool(began) and read_json(_mark(work, companion)) == {**built_from, "torch": began}
    except (OSError, ValueError):
        return False


def _remember(work: Work, companion: Companion, built_from: Mapping[str, str]) -> None:
    if began := _torch_began(work):
        mark = _mark(work, companion)
        with files.translate_errors(SourceError, mark):
            mark.parent.mkdir(exist_ok=True)
        files.write_json(mark, {**built_from, "torch": began}, error=SourceError)

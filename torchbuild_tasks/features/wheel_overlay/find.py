"""Find a wheel whose libraries suit the checkout: of its commit, or of the nearest ancestor.

A wheel that cannot suit by the tag of its release is refused before anything is downloaded.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from torchbuild_tasks.build.build_program import build_program
from torchbuild_tasks.build.history import longest_build
from torchbuild_tasks.build.ledger import last_manifest
from torchbuild_tasks.build.work import Planned, Work
from torchbuild_tasks.catalog.match import parse_version
from torchbuild_tasks.errors import ArchiveRefused, DownloadFailed, HashRefused, PlanRefused, UsageError
from torchbuild_tasks.facts.wheel import VERSION_FILE, look_at_version, look_at_wheel
from torchbuild_tasks.features.wheel_overlay.cheapest import describe_time
from torchbuild_tasks.features.wheel_overlay.choose import (
    Reached,
    built_from_changes,
    describe_reach,
    find_reached,
    is_commit,
    obstacle,
    release_tags,
    select_blocking,
    suggest_target,
    why_other_cuda,
    why_unsuitable,
)
from torchbuild_tasks.features.wheel_overlay.variants import (
    Wanted,
    choose_files,
    choose_nights,
    night_source,
    version_of,
    wanted_device,
    why_no_cuda,
)
from torchbuild_tasks.model import BuildPlan, Finding, Python
from torchbuild_tasks.model.wheel import Wheel
from torchbuild_tasks.ninja.progress import ProgressParser
from torchbuild_tasks.plan.wheel_tags import python_tags
from torchbuild_tasks.system import process
from torchbuild_tasks.system.archive.members import check_wheel_names
from torchbuild_tasks.system.archive.members import fault as archive_fault
from torchbuild_tasks.system.files import DOWNLOADING, STATE_DIR, state_dir, translate_errors
from torchbuild_tasks.system.git.run import Git, entries_in
from torchbuild_tasks.system.net import download, pip
from torchbuild_tasks.system.net.client import redact
from torchbuild_tasks.system.net.transfer import Remote
from torchbuild_tasks.system.reading import hash_file, read_json
from torchbuild_tasks.system.remove import unfinished_folder
from torchbuild_tasks.text.words import first_few
from torchbuild_tasks.values import replace

AUTO: Final = "auto"
NO_PLACE: Final = "that is neither a file, a folder, an address nor a version"
INDEX: Final = (
    "https://download.pytorch.org/whl/"  # {cpu,cu126 ...}: https://pytorch.org/get-started/previous-versions/
)
_NIGHTLY: Final = f"{INDEX}nightly/"  # has the same folders; like INDEX, it also lists all variants
_DOWNLOADS: Final = "wheels"  # folder in .torchbuild for downloaded wheels
_OWN: Final = ("dist", "dist/packages", f"{STATE_DIR}/{_DOWNLOADS}")  # folders of a checkout that have wheels
_TRIES: Final = 3  # versions tried of one index
_DRY_RUN: Final = 60.0  # seconds
_COMPILE: Final = "To compile: the same command without --from-wheel."


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """Why a wheel or release cannot be used: findings on files that need a compile since its commit."""

    name: str
    findings: tuple[Finding, ...]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The changes from a commit to the checkout; `ahead` counts commits, None if it is not an ancestor."""

    ahead: int | None
    reached: tuple[Reached, ...] = ()


def find_wheel(work: Work) -> Work:
    """Find a wheel that suits the checkout, the Python and the machine; nothing is changed.

    Raises:
        PlanRefused: no wheel suits; the findings give the reason for each.
        ArchiveRefused: the named wheel cannot be read.
        DownloadFailed: the wheel is not available.
    """
    word = str(work.request.from_wheel)
    misfits: list[Finding] = []
    looked: list[str] = []
    obstacles: list[Obstacle] = []
    for each in _candidates(work, word, looked):
        if isinstance(each, Obstacle):
            obstacles.append(each)
            continue
        problem = check_wheel(work, each)
        if problem and isinstance(problem, tuple):
            obstacles.append(Obstacle(name=each.file, findings=problem))
            continue
        if not problem and word == AUTO:
            problem = why_no_cuda(each, wanted_device(work.plan.inputs))
        if not problem:
            _report_places(work, looked)
            work.report.note(f"wheel: {each.path}, of commit {each.commit[:10]}")
            return replace(work, wheel=each)
        if word != AUTO and (each.problem or name_fault(each)):
            raise ArchiveRefused(f"{each.path} cannot be used: {problem}.", next_step="Get the wheel again.")
        misfits.append(obstacle(f"{each.file}: {problem}"))
    _report_places(work, looked)
    if obstacles:  # the nearest comes first
        raise PlanRefused(
            f"Something that is compiled differs between {obstacles[0].name} and this checkout. "
            "Nothing was changed.",
            findings=obstacles[0].findings,
            next_step=f"{_COMPILE} {_time_to_compile(work)}",
        )
    if not misfits:
        where = "any of these places" if word == AUTO else word
        misfits.append(obstacle(f"no wheel of torch is in {where}"))
    raise PlanRefused(
        "No wheel fits this checkout. Nothing was changed.",
        findings=tuple(misfits),
        next_step=f"Name one that does: --from-wheel PATH, VERSION or URL. {_COMPILE}",
    )


def _report_places(work: Work, looked: Sequence[str]) -> None:
    if looked:
        work.report.note(f"looked in {'; '.join(looked)}")


def _time_to_compile(work: Work) -> str:
    """Return how long the due steps, or a full build, take, by the builds recorded here."""
    past, previous = longest_build(work.fetching.store, work.root), work.facts.tree.previous
    if past is None:
        return "How long that takes is not known here yet."
    own = previous is not None and "wheel" not in previous.inputs
    steps = count_due_steps(work).get("steps", past.steps) if own else past.steps
    return f"That takes {describe_time(past.seconds * steps / past.steps)}."


def check_wheel(work: Planned, wheel: Wheel) -> str | tuple[Finding, ...]:
    """Say why a wheel cannot be used; as findings if the only reason is that something must be compiled."""
    if problem := wheel.problem or name_fault(wheel):
        return problem
    if reason := why_unsuitable_here(work, wheel):
        return reason
    if not is_commit(wheel.commit):
        return f"it does not say which commit it was built from ({wheel.commit or 'nothing'})"
    if Path(wheel.path).parent.name == "dist" and (reason := _own_changes(work, wheel)):
        return reason
    if not Git(folder=work.root).has(wheel.commit):
        branch = "origin nightly" if ".dev" in wheel.version else "--tags"
        fix = f"`git fetch {branch}` (or `source get --full`) brings it if it is upstream's"
        return f"it was built from {wheel.commit[:10]}, which is not in this checkout's history; {fix}"
    change = look_at_change(work, wheel.commit)
    if change.ahead is None:
        return f"it was built from {wheel.commit[:10]}, which is not an ancestor of what is checked out"
    if reason := why_other_cuda(wheel, work.plan, change.reached):
        return reason
    return find_obstacles(work, change.reached)


def why_unsuitable_here(work: Planned, wheel: Wheel) -> str:
    """Say why a wheel does not fit the Python and the machine of this build; "" if it fits."""
    python = target_python(work)
    abi = python.abi if python else None
    return why_unsuitable(wheel, work.plan.environment.version, abi, work.facts.host)


def find_obstacles(work: Planned, reached: tuple[Reached, ...]) -> tuple[Finding, ...]:
    """Return findings on the changed files that rule a wheel out; none if all can be compiled against it."""
    rest = select_blocking(work.plan.way.target, reached)
    return describe_reach(rest, ninja_targets(work, rest), offer=suggest_target(work.facts, rest))


def name_fault(wheel: Wheel) -> str:
    """Say which name in a wheel is unsafe: it leaves the wheel, collides, is a link or no plain path."""
    try:
        check_wheel_names(wheel)
    except ArchiveRefused as error:
        return str(error).partition(": ")[2].rstrip(".")
    return ""


def _own_changes(work: Planned, wheel: Wheel) -> str:
    """Say that a wheel built here, or in another worktree, was built from changed files; "" if not."""
    with contextlib.suppress(OSError, ValueError):
        tree = Path(wheel.path).parent.parent / os.path.relpath(work.build_dir, work.root)
        manifest = read_json(last_manifest(tree))
        return built_from_changes(manifest, wheel.commit, work.catalog.wheel_input)
    return ""


def target_python(work: Planned) -> Python | None:
    """Return the facts of the Python that torch is installed into, or of the base of its new venv."""
    environment = work.plan.environment
    base = environment.create.argv[0] if environment.create else environment.python
    return next((each for each in work.facts.pythons if each.executable in (environment.python, base)), None)


def find_ancestor(git: Git, commit: str) -> str | None:
    """Return the commit if it is HEAD or an ancestor, or else the one that this nightly was made from."""
    for start in (commit, night_source(git.output("log", "-1", "--format=%s", commit) or "")):
        if start and git.output("merge-base", start, "HEAD") == start:
            return start
    return None


def look_at_change(work: Planned, commit: str) -> Change:
    """Compare a commit with the files of the checkout, including submodules and new files.

    Raises:
        SourceError: git failed.
    """
    git = Git(folder=work.root)
    start = find_ancestor(git, commit)
    if start is None:
        return Change(ahead=None)
    ahead = int(git.run("rev-list", "--count", f"{start}..HEAD"))
    # Untracked files in submodules come from builds.
    same = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", "--ignore-submodules=untracked")
    changed = entries_in(git.run(*same, commit, "--"))
    staged = entries_in(git.run(*same, "--cached", commit, "--"))
    untracked = entries_in(git.run("ls-files", "-z", "--others", "--exclude-standard"))
    hidden = _find_flagged_changes(work.root, git)
    rows = work.catalog.wheel_input
    return Change(ahead=ahead, reached=find_reached(sorted({*changed, *staged, *hidden}), untracked, rows))


def _find_flagged_changes(root: Path, git: Git) -> list[str]:
    """Return changed files that git diff leaves out because of assume-unchanged or skip-worktree.

    Files that are missing in a sparse checkout are not changes.
    """
    listed = entries_in(git.run("ls-files", "-v", "-z"))
    flagged = [each[2:] for each in listed if each[0] == "S" or each[0].islower()]
    present = [name for name in flagged if (root / name).is_file()]
    if not present:
        return []
    known = {each.partition("\t")[2]: each.split()[1] for each in entries_in(git.run("ls-files", "-s", "-z"))}
    now = git.run("hash-object", "--", *present).split()
    return [name for name, hashed in zip(present, now, strict=True) if hashed != known[name]]


def ninja_targets(work: Planned, reached: tuple[Reached, ...]) -> dict[str, tuple[str, ...]]:
    """Return the outputs that Ninja makes directly of each file; empty without a build tree."""
    targets: dict[str, tuple[str, ...]] = {}
    if not (work.build_dir / "build.ninja").is_file():
        return targets
    ninja = build_program(work.build_dir, "ninja") or "ninja"
    for each in reached[:20]:
        argv = (ninja, "-C", str(work.build_dir), "-t", "query", str(work.root / each.path))
        captured = process.capture(argv, timeout=20.0)
        if captured.rc == 0:
            _, _, outputs = captured.text.partition("outputs:")
            targets[each.path] = tuple(line.strip() for line in outputs.splitlines() if line.strip())[:3]
    return targets


def count_due_steps(work: Planned, *target: str) -> dict[str, Any]:
    """Count the steps that Ninja would run, without running them.

    Returns:
        {"steps": count}, or {"no_ninja": the reason why they cannot be counted}.
    """
    program = build_program(work.build_dir, "ninja")
    if not program:
        return {"no_ninja": "its Ninja is not there"}
    dry = process.capture((program, "-C", str(work.build_dir), "-n", *target), timeout=_DRY_RUN)
    if dry.rc != 0:
        return {"no_ninja": "Ninja cannot say what is due"}
    parser = ProgressParser()
    steps = [parser.feed(line) for line in dry.text.splitlines()]
    return {"steps": sum(step is not None and step.phase != "codegen" for step in steps)}


# ---------------- the places that are searched


def _candidates(work: Work, word: str, looked: list[str]) -> Iterator[Wheel | Obstacle]:
    match place_of(word):
        case "auto":
            yield from local_wheels(work, work.fetching.net.wheels, looked)
            yield from _find_release(work, looked)
        case "address":
            yield _get_by_address(work, word)
        case "path":
            yield from find_named_wheels(work, Path(word).expanduser())
        case "version":
            yield _get_from_index(work, word)
        case _:
            raise UsageError(
                f"--from-wheel {word}: {NO_PLACE}.",
                next_step="Say auto, the path of a wheel or of a folder of wheels, a version such as 2.9.1 "
                "or 2.9.1+cpu, or an address that begins with https://",
            )


def place_of(word: str) -> Literal["auto", "address", "path", "version", ""]:
    """Say what kind of place a value of --from-wheel names; "" for none."""
    if word == AUTO:
        return "auto"
    if urlsplit(word).scheme.lower() in ("http", "https", "file"):
        return "address"
    if Path(word).expanduser().exists():
        return "path"
    return "version" if parse_version(word) else ""


def local_wheels(work: Planned, wheels: str | None, looked: list[str]) -> Iterator[Wheel]:
    """Yield the wheels built or downloaded in this checkout, then in other worktrees, then in --wheels.

    Within a folder, the wheel of the nearest commit comes first. `looked` is extended with a text a folder.
    """
    folders = [work.root / name for name in _OWN]
    listed = Git(folder=work.root).output("worktree", "list", "--porcelain") or ""
    trees = [Path(line.removeprefix("worktree ")) for line in listed.splitlines() if line[:9] == "worktree "]
    folders += [tree / name for tree in trees if tree != work.root for name in _OWN]
    folders += [Path(wheels).expanduser()] if wheels else []
    for folder in folders:
        found = _nearest_first(work, _in_folder(folder))
        if found or folder in (folders[0], folders[2]) or wheels and folder == folders[-1]:
            inside = folder.is_relative_to(work.root)
            shown = folder.relative_to(work.root).as_posix() if inside else str(folder)
            looked.append(f"{shown}: {first_few([each.file for each in found]) or 'no wheel'}")
        yield from found


def find_named_wheels(work: Planned, path: Path) -> list[Wheel]:
    """Return the wheel at a path, or those of a folder, nearest commit first."""
    return _nearest_first(work, _in_folder(path)) if path.is_dir() else [look_at_wheel(path.resolve())]


def _in_folder(folder: Path) -> list[Wheel]:
    return [look_at_wheel(path) for path in sorted(folder.glob("torch-*.whl"))]


def _nearest_first(work: Planned, wheels: list[Wheel]) -> list[Wheel]:
    git = Git(folder=work.root)

    def distance(wheel: Wheel) -> tuple[bool, int]:
        count = (
            git.output("rev-list", "--count", f"{wheel.commit}..HEAD") if is_commit(wheel.commit) else None
        )
        return (count is None, int(count or 0))

    return sorted(wheels, key=distance)


def _find_release(work: Work, looked: list[str]) -> Iterator[Wheel | Obstacle]:
    """Yield wheels of the nearest release before HEAD; without a tag, nightly wheels, then the version's.

    The tag of a release gives its commit; that of any other wheel has to be read from the wheel.
    """
    version, reached = nearest_release(work) or ("", ())
    obstacles = find_obstacles(work, reached) if version else ()
    if version and not obstacles:
        yield from _search_indexes(work, (version,), looked, is_known=True)
        return
    if version:
        yield Obstacle(name=f"the release {version}", findings=obstacles)
    if version != release_of(work):
        yield from _search_indexes(work, (), looked)
        yield from _search_indexes(work, (release_of(work),), looked)


def _search_indexes(
    work: Work, publics: tuple[str, ...], looked: list[str], *, is_known: bool = False
) -> Iterator[Wheel]:
    """Yield wheels of these releases from indexes, best variant first; nightly wheels if there are none.

    `is_known`: a tag gives the commit, so the wheel may be downloaded without reading it first.
    """
    _refuse_unknown_hash(work, f"torch {' '.join(publics)}".rstrip())
    settings = pip.read_settings(os.environ)
    wanted = wanted_device(work.plan.inputs)
    tried: set[str] = set()
    for places in _index_groups(wanted, settings, publics):
        with _incoming(work) as folder:
            listed = pip.list_wheels(_wheel_wanted(work, ""), places, folder, settings, work.fetching.net)
        files = [file for each in listed for file in each.files]
        named = publics or choose_nights(files, release_of(work), _day(work))
        place_of: dict[str, pip.Place] = {}
        for each in listed:
            found = choose_files(each.files, named, wanted)
            place_of = {**dict.fromkeys(found, each.place), **place_of}
            none = each.problem or f"no {' or '.join(publics) or f'night of {release_of(work)}'} that fits"
            looked.append(f"{redact(each.place.address)}: {first_few(found) or none}")
        untried = [each for each in choose_files(files, named, wanted) if each not in tried][:_TRIES]
        tried.update(untried)
        for version in untried:
            yield _get_from_index(work, version, place_of[version], is_known=is_known)


def _day(work: Work) -> str:
    """Return the day of HEAD in UTC, as 20251120: a nightly wheel is built from earlier commits."""
    seconds = int(Git(folder=work.root).run("log", "-1", "--format=%ct"))
    return time.strftime("%Y%m%d", time.gmtime(seconds))


def _index_groups(
    wanted: Wanted, settings: pip.PipSettings, publics: tuple[str, ...]
) -> Iterator[tuple[pip.Place, ...]]:
    """Yield groups of places to search together; a group is used only if those before had nothing."""
    base = INDEX if publics else _NIGHTLY
    own = tuple(pip.Place(address=each) for each in settings.index_urls)
    own += tuple(pip.Place(address=each, links=True) for each in settings.find_links)
    if not settings.index_urls:  # --no-index: only these folders and pages
        yield from (own,) if own else ()
        return
    if wanted.folder:
        yield (pip.Place(address=f"{base}{wanted.folder}"),)
        yield (*own, pip.Place(address=base))
    else:
        yield from (own,) if own else ()
        yield (pip.Place(address=base),)


def release_of(work: Planned) -> str:
    """Return the release of the checkout's version: 2.6.0 of 2.6.0a0+git1234567."""
    version = parse_version(work.facts.tree.version)
    return version.base_version if version else str(work.facts.tree.version)


def indexed_version(version: str, plan: BuildPlan) -> str:
    """Return the version to request first for a release: PyPI's wheel, unless the plan has a device."""
    return f"{version}+{folder}" if (folder := wanted_device(plan.inputs).folder) else version


def nearest_release(work: Planned) -> tuple[str, tuple[Reached, ...]] | None:
    """Return the newest release whose tag is an ancestor, and the files to compile since; None if none is."""
    git = Git(folder=work.root)
    tags = release_tags(git.run("tag", "--merged", "HEAD").splitlines())
    if not tags:
        return None
    tag, version = tags[0]
    return version, look_at_change(work, git.run("rev-list", "-1", tag)).reached


def _get_by_address(work: Work, url: str) -> Wheel:
    """Return the wheel at an address, downloaded if it is not here yet, and checked against #sha256=….

    A wheel that cannot be used by its name, or by its commit if the server supports ranges, is not
    downloaded.
    """
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    address, _, fragment = url.partition("#")
    sha256 = fragment.removeprefix("sha256=").lower() if fragment.startswith("sha256=") else None
    if not name.endswith(".whl") or archive_fault(name) or "\\" in name:
        raise UsageError(f"--from-wheel {url}: the address ends in no name of a wheel (torch-….whl).")
    if work.fetching.require_hashes and not sha256:
        raise UsageError(
            f"--require-hashes, and {url} carries no #sha256=…", next_step="Append it to the address."
        )
    net, kept = work.fetching.net, state_dir(work.root) / _DOWNLOADS / name
    if net.address(address).lower().startswith("http:") and not (sha256 or work.fetching.allow_http):
        raise HashRefused(
            f"{redact(address)} would be downloaded over plain http, and its hash is not known.",
            next_step="Nothing was downloaded: anybody on the way could put another file in its place. "
            "Append #sha256=… to the address, name one with https, or add --allow-http.",
        )
    if kept.is_file() and sha256 in (None, hash_file(kept)) and not (there := look_at_wheel(kept)).problem:
        return there
    by_name = Wheel(path=name, version=version_of(name))
    if not by_name.version or why_unsuitable_here(work, by_name):
        return by_name
    wanted = _wheel_wanted(work, by_name.version)
    settings = pip.read_settings(os.environ)
    with _incoming(work) as folder:
        ahead = pip.read_ahead(wanted, VERSION_FILE, folder, settings, net, address)
    if ahead and check_wheel(work, wheel := look_at_version(name, by_name.version, ahead[1])):
        return wheel
    with _incoming(work) as folder:
        remote = Remote(name=name, urls=(address,), sha256=sha256)
        download.fetch(remote, folder / name, net, work.report.transfer)
        return look_at_wheel(_keep(work, folder / name))


def _get_from_index(
    work: Work, version: str, place: pip.Place | None = None, *, is_known: bool = True
) -> Wheel:
    """Return the wheel of this version of torch, downloaded by pip if it is not here yet.

    If the server supports ranges, the commit is read first, and an unsuitable wheel is not downloaded.

    Args:
        version: the version with its variant.
        place: the index that lists it; None uses pip's indexes, after the download index for a variant.
        is_known: the wheel may be downloaded without reading its commit first.
    """
    wanted = _wheel_wanted(work, version, alone=place is not None)
    pattern = f"torch-{version}-{wanted.python}-{wanted.abi}-*.whl"
    downloaded = sorted((state_dir(work.root) / _DOWNLOADS).glob(pattern))
    if downloaded and not (there := look_at_wheel(downloaded[0])).problem:
        return there
    _refuse_unknown_hash(work, f"torch {version}")
    settings = pip.read_settings(os.environ)
    _, _, variant = version.partition("+")
    if place is not None:
        only = place.settings
        settings = replace(settings, index_urls=only.index_urls, find_links=only.find_links)
    elif settings.index_urls and (variant or ".dev" in version):
        base = _NIGHTLY if ".dev" in version else INDEX
        settings = replace(settings, index_urls=(f"{base}{variant}", *settings.index_urls))
    net = work.fetching.net
    with _incoming(work) as folder:
        ahead = pip.read_ahead(wanted, VERSION_FILE, folder, settings, net)
    if ahead and check_wheel(work, wheel := look_at_version(ahead[0], ahead[0].split("-")[1], ahead[1])):
        return wheel
    if place is not None and ahead is None and not is_known and pip.is_far(place.address, net):
        unseen = "its commit cannot be seen before all of it is downloaded, because its server gives no parts"
        return Wheel(
            path=f"torch {version}", problem=f"{unseen} of a file; --from-wheel {version} downloads it"
        )
    with _incoming(work) as folder:
        path, _ = pip.download_wheel(wanted, folder, settings, net, work.report.transfer)
        return look_at_wheel(_keep(work, path))


def _wheel_wanted(work: Work, version: str, *, alone: bool = False) -> pip.WheelWanted:
    python = target_python(work)
    tag, abi = python_tags(work.plan.environment.version, python.abi if python else None)
    return pip.WheelWanted(
        project="torch", version=version, tag="", sha256=None, python=tag, abi=abi, alone=alone
    )


def _refuse_unknown_hash(work: Work, name: str) -> None:
    if work.fetching.require_hashes:
        raise UsageError(
            f"--require-hashes, and the hash of {name} is not known beforehand.",
            next_step="Name an address with its hash: --from-wheel https://…/torch-….whl#sha256=…",
        )


@contextlib.contextmanager
def _incoming(work: Work) -> Iterator[Path]:
    """Make the folder of downloads, and yield a temporary folder next to it."""
    place = state_dir(work.root) / _DOWNLOADS
    with translate_errors(DownloadFailed, place):
        place.mkdir(exist_ok=True)
    with unfinished_folder(place, DownloadFailed, DOWNLOADING) as folder:
        yield folder


def _keep(work: Work, path: Path) -> Path:
    """Move a download to the folder where the next run finds it."""
    target = state_dir(work.root) / _DOWNLOADS / path.name
    with translate_errors(DownloadFailed, target):
        path.replace(target)
    return target

"""Submodules of a repository: list them with their commits, check one out, and remove it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

import msgspec

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git.checkout import (
    InTheWay,
    changed_files,
    check_out,
    files_in_the_way,
    ids_in_tree,
)
from torchbuild_tasks.system.git.fetch import shallow_commits
from torchbuild_tasks.system.git.run import Git, entries_in
from torchbuild_tasks.system.git.transfer import Outcome, Watch
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.values import replace

_KEYS: Final = r"^submodule\..*\.(path|url|update)$"
_LOCAL: Final = re.compile(r"file:|[/\\~]|[A-Za-z]:", re.IGNORECASE)
_SIDES: Final = {"1": "both came from", "2": "ours", "3": "theirs"}


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """One submodule.

    Args:
        top: its path from the outermost checkout, with `/`.
        path: its path in the repository around it.
        name: what .gitmodules calls it.
        url: where it is fetched from: what the repository's settings say goes before .gitmodules.
        listed: the address in .gitmodules, absolute; tried where `url` does not have the commit.
        foreign: whether `listed` names a place on this machine by itself, not from where the repository
            around it came from: git takes nothing from there (CVE-2022-39253), and neither do we.
        commit: the commit that the repository around it wants.
        around: the worktree around it.
        repository: its own git folder.
    """

    top: str
    path: str
    name: str
    url: str
    listed: str
    commit: str
    around: Path
    repository: Path
    foreign: bool = False

    @property
    def folder(self) -> Path:
        """Its worktree."""
        return self.around / self.path

    def git(self, config: tuple[str, ...]) -> Git:
        """Return git in its worktree."""
        return Git(folder=self.folder, config=config)

    @property
    def is_present(self) -> bool:
        """Say whether its checkout is complete, or was begun."""
        return os.path.lexists(self.folder / ".git")


# ---------------- listing


def submodule_settings(git: Git, *where: str) -> dict[str, dict[str, str]]:
    """Return `path`, `url` and `update` of each submodule by its name.

    Args:
        where: words of `git config` that name a .gitmodules (`--file F`, `--blob COMMIT:F`); without
            them the repository's own settings.
    """
    settings: dict[str, dict[str, str]] = {}
    for entry in entries_in(git.output("config", *where, "-z", "--get-regexp", _KEYS)):
        key, _, value = entry.partition("\n")
        name, _, what = key.removeprefix("submodule.").rpartition(".")
        settings.setdefault(name, {})[what] = value
    return settings


def modules(git: Git, prefix: str = "", *, commit: str = "") -> tuple[Module, ...]:
    """Return the submodules in a worktree's index, without those with `update = none`.

    Args:
        git: the worktree around them.
        prefix: its own path from the outermost checkout.
        commit: take those that this commit names instead.

    Raises:
        SourceError: one is in conflict after a merge, or has a name or a path that leaves its folder.
    """
    links = {} if commit else _links(git)
    where = ("--blob", f"{commit}:.gitmodules") if commit else ("--file", str(git.folder / ".gitmodules"))
    listed = submodule_settings(git, *where)
    if not listed:
        return ()
    links = links or (ids_in_tree(git, commit, "commit") if commit else {})
    named = {values["path"]: name for name, values in listed.items() if "path" in values}
    own = submodule_settings(git)
    wanted = {
        path: name
        for path in links
        if (name := named.get(path)) is not None
        and own.get(name, {}).get("update", listed[name].get("update")) != "none"
    }
    if not wanted:
        return ()
    base = git.folder / git.run("rev-parse", "--git-path", "modules")
    result = []
    for path, name in wanted.items():
        _check(git, name, path)
        _check_place(git.folder, *path.split("/"), ".git")
        _check_place(base.parent, "modules", *name.split("/"))
        place = git.folder / path / ".git"
        address = listed[name].get("url", "")
        result.append(
            Module(
                top=f"{prefix}{path}",
                path=path,
                name=name,
                url=own.get(name, {}).get("url", address),
                listed=address if not address.startswith(".") else absolute(_origin(git), address),
                commit=links[path],
                around=git.folder,
                repository=place if place.is_dir() else base / name,
                foreign=_LOCAL.match(address) is not None and not _allows_local(git),
            )
        )
    return tuple(result)


def _origin(git: Git) -> str:
    return git.output("config", "--get", "remote.origin.url") or str(git.folder)


def _allows_local(git: Git) -> bool:
    """Say whether the user's settings (not the repository's) allow local submodule addresses."""
    settings = git.output("config", "--show-scope", "--get-all", "protocol.file.allow") or ""
    words = [line.split() for line in settings.splitlines() if line.split()[0] not in ("local", "worktree")]
    return bool(words) and words[-1][-1] == "always"


def absolute(base: str, url: str) -> str:
    """Return a submodule's absolute address; a relative one is resolved against the parent repository's."""
    if not re.match(r"\.\.?/", url):
        return url
    if "://" in base:
        scheme, _, rest = base.partition("://")  # urljoin does not support git:// and ssh://
        return f"{scheme}://" + urljoin(f"http://{rest.rstrip('/')}/", url).removeprefix("http://")
    path = base.rstrip("/")
    while (step := re.match(r"(\.\.?)/", url)) is not None:
        path = path.rpartition("/")[0] if step[1] == ".." else path
        url = url[step.end() :]
    return f"{path}/{url}"


def _links(git: Git) -> dict[str, str]:
    """Return the commit of each submodule in the index, by path."""
    links: dict[str, str] = {}
    conflicts: dict[str, list[str]] = {}
    for entry in entries_in(git.run("ls-files", "--stage", "-z")):
        about, _, path = entry.partition("\t")
        mode, commit, stage = about.split(" ")
        if mode != "160000":
            continue
        if stage == "0":
            links[path] = commit
        else:
            conflicts.setdefault(path, []).append(f"{_SIDES[stage]} {commit[:10]}")
    if conflicts:
        path = next(iter(conflicts))
        folder = as_word(git.folder)
        raise SourceError(
            f"{git.folder} is in a merge that git cannot decide for {len(conflicts)} submodules.",
            looked=tuple(f"{path}: {', '.join(sides)}" for path, sides in conflicts.items()),
            next_step=f"Choose a commit: git -C {as_word(git.folder / path)} checkout COMMIT, then "
            f"git -C {folder} add {as_word(path)}\nor leave the merge: git -C {folder} merge --abort",
        )
    return links


def _check(git: Git, name: str, path: str) -> None:
    """Refuse names and paths that git itself refuses, because they lead out of the repository."""
    for text in (name, path):
        # As Windows reads it: with backslashes, and without dots and blanks at the end of a part.
        parts = [part.rstrip(". ").lower() for part in text.replace("\\", "/").split("/")]
        if not all(parts) or {".git", "git~1"} & {*parts} or text.startswith("-") or ":" in text:
            raise SourceError(
                f"{git.folder / '.gitmodules'} has a submodule {text!r}, which is not a safe name."
            )


def _check_place(folder: Path, *parts: str) -> None:
    """Refuse a submodule whose path leads out of the repository through a link."""
    place = folder.joinpath(*parts)
    real = os.path.realpath(place)
    if os.path.normcase(real) != os.path.normcase(folder.resolve().joinpath(*parts)):
        raise SourceError(
            f"{place} points to {real}, and no submodule is changed outside its checkout.",
            next_step="Remove that link, and run the same command again.",
        )


def is_empty(module: Module) -> bool:
    """Say whether a submodule's folder is empty except for git's link file."""
    try:
        return {path.name for path in module.folder.iterdir()} <= {".git"}
    except OSError:
        return True


def head(module: Module, config: tuple[str, ...]) -> str | None:
    """Return the commit that is completely checked out; None if there is none, or its files were removed."""
    if is_empty(module) or not (module.repository / "index").exists():
        return None
    git = module.git(config)
    return git.output("rev-parse", "HEAD") if _is_connected(module, git) else None


def _is_connected(module: Module, git: Git) -> bool:
    """Say whether a submodule and its git folder refer to each other."""
    output = (git.output("rev-parse", "--show-toplevel", "--absolute-git-dir") or "").split("\n")
    if len(output) != 2 or not Path(output[0]).samefile(module.folder):
        return False
    return Path(output[1]).resolve().is_relative_to(module.repository.resolve())


def walk(git: Git, prefix: str = "", *, commit: str = "") -> Iterator[Module]:
    """Yield all submodules, recursively into those that are checked out, outermost first.

    Args:
        git, prefix: as for `modules`.
        commit: "HEAD" for what the commits name instead of the indexes.
    """
    for module in modules(git, prefix, commit=commit):
        yield module
        if head(module, git.config) is not None:
            yield from walk(module.git(git.config), f"{module.top}/", commit=commit)


# ---------------- changes of the user's


def changes(git: Git, prefix: str = "") -> Iterator[str]:
    """Yield the changes since HEAD in tracked files and submodules, recursively."""
    yield from (f"{prefix}{path}" for path in changed_files(git, untracked=False))
    for module in modules(git, prefix, commit="HEAD"):
        at = head(module, git.config)
        if at is None:
            continue
        if at != module.commit:
            yield f"{module.top} (a submodule, at commit {at[:10]})"
        yield from changes(module.git(git.config), f"{module.top}/")


def files_overwritten(git: Git, commit: str, ends: Sequence[str], prefix: str = "") -> Iterator[str]:
    """Yield the user's files that a checkout of a commit would overwrite, also in submodules.

    Args:
        git: a worktree; its objects and those of its submodules may still lack the commit's.
        ends: commits whose content is not the user's: where it is, and between which a move was cut off.
    """
    dropped = _find_dropped(git, commit)
    yield from (f"{prefix}{path}" for path in _obstacles(git, commit, ends, dropped))
    known: dict[str, set[str]] = {}
    for end in ends:
        for module in modules(git, commit=end):
            known.setdefault(module.path, set()).add(module.commit)
    for module in modules(git, prefix, commit=commit):
        at = head(module, git.config)
        known_commits = known.get(module.path, set()) | {module.commit}
        if not module.is_present or at == module.commit:
            continue
        sub = module.git(git.config)
        if at and at not in known_commits:
            yield f"{module.top} (a submodule, at commit {at[:10]})"
        elif sub.has(module.commit):
            others = sorted(each for each in known_commits - {module.commit} if sub.has(each))
            yield from files_overwritten(sub, module.commit, others, f"{module.top}/")


def keep_head(git: Git) -> None:
    """Create a ref for a checked-out commit of the user's that no branch contains.

    A commit that was fetched alone, without its history, came from a server.
    """
    commit = git.output("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not commit or commit in shallow_commits(git):
        return
    if git.output("for-each-ref", "--count=1", "--contains", commit) == "":
        git.run("update-ref", f"refs/torchbuild/kept/{commit}", commit)


# ---------------- one submodule


def move(git: Git, commit: str, name: str, watch: Watch, *, also: Sequence[str] = ()) -> Outcome:
    """Check out a commit, and remove unchanged submodules that it no longer has.

    Args:
        commit: where it goes; its objects are in the repository.
        also: commits between which a move was cut off: their content is not the user's.

    Raises:
        InTheWay: files of the user's would be overwritten; nothing was changed.
        SourceError: a file cannot be removed.
    """
    dropped = _find_dropped(git, commit)
    if dropped and (others := _obstacles(git, commit, also, dropped)):
        raise InTheWay(others)
    for module in dropped:
        remove_files(module.git(git.config))
    return check_out(git, commit, name, watch, also=also)


def _find_dropped(git: Git, commit: str) -> list[Module]:
    """Return unchanged submodules of HEAD that a commit lacks or has under another name."""
    if git.output("rev-parse", "--verify", "--quiet", "HEAD") is None:
        return []
    before = [module for module in modules(git, commit="HEAD") if (module.folder / ".git").is_file()]
    after = {(module.path, module.name) for module in modules(git, commit=commit)} if before else set()
    return [
        module for module in before if (module.path, module.name) not in after and not _is_users(git, module)
    ]


def _obstacles(git: Git, commit: str, also: Sequence[str], dropped: Sequence[Module]) -> tuple[str, ...]:
    """Return the user's files at paths where a commit has others, if these submodules are removed."""
    going = {f"{module.path}/{path}" for module in dropped for path in _list_tracked(module.git(git.config))}
    return tuple(path for path in files_in_the_way(git, commit, *also) if path not in going)


def _list_tracked(git: Git) -> Iterator[str]:
    """Yield the tracked files of a worktree and of its submodules."""
    yield from entries_in(git.output("ls-files", "-z"))
    for module in modules(git, commit="HEAD"):
        if module.is_present:
            inner = module.git(git.config)
            yield from (f"{module.path}/{path}" for path in _list_tracked(inner))


def _is_users(git: Git, module: Module) -> bool:
    """Say whether a submodule has changes of the user's; a deleted file is none."""
    inside = module.git(git.config)
    if changed_files(inside, deleted=False, untracked=False):
        return True
    return any(inner.is_present and _is_users(inside, inner) for inner in modules(inside, commit="HEAD"))


def remove_files(git: Git) -> None:
    """Remove a submodule's tracked files, those of nested submodules first; keep untracked files.

    Raises:
        SourceError: a file cannot be removed.
    """
    keep_head(git)
    for module in modules(git, commit="HEAD"):
        if (module.folder / ".git").is_file():
            remove_files(module.git(git.config))
    patience = files.Patience()
    parents = set[Path]()
    with files.translate_errors(SourceError, git.folder):
        for entry in entries_in(git.output("ls-files", "--stage", "-z")):
            path = git.folder / entry.partition("\t")[2]
            if not entry.startswith("160000 "):
                with contextlib.suppress(FileNotFoundError):
                    patience.unlink(path)
            parents.update(parent for parent in path.parents if parent.is_relative_to(git.folder))
        patience.unlink(git.folder / ".git")  # last: until then the index lists the files that are left
    for folder in sorted(parents, key=lambda folder: len(folder.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()


def initialise(git: Git, listed: Sequence[Module], *, sync: bool) -> bool:
    """Write missing submodule addresses into the configuration, as git does; `sync` rewrites all.

    Returns:
        Whether anything was written.

    Raises:
        SourceError: git fails.
    """
    own = submodule_settings(git) if listed else {}
    new = [module.path for module in listed if "url" not in own.get(module.name, {})]
    if new:
        git.run("submodule", "--quiet", "init", "--", *new)
    if sync and listed:
        git.run("submodule", "--quiet", "sync", "--", *(module.path for module in listed))
    return bool(new or (sync and listed))


def open_repository(module: Module, config: tuple[str, ...]) -> Git:
    """Return the submodule's repository as a bare one; create it if needed.

    Raises:
        SourceError: git fails.
    """
    git = Git(folder=module.repository, config=config, bare=True)
    with files.translate_errors(SourceError, module.repository):
        module.repository.mkdir(parents=True, exist_ok=True)
    if git.output("rev-parse", "--absolute-git-dir") is None or not (module.repository / "HEAD").exists():
        replace(git, bare=False).run("init", "--quiet", "--bare", ".")
    if git.output("config", "--local", "remote.origin.url") != module.url:
        git.run("config", "--local", "remote.origin.url", module.url)
        git.run("config", "--local", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    return git


def connect(module: Module, git: Git) -> Git:
    """Connect the submodule's folder with its repository; return the resulting worktree.

    Raises:
        SourceError: the folder holds something else, belongs to another repository, or git fails.
    """
    link = module.folder / ".git"
    if not (os.path.lexists(link) and _is_connected(module, module.git(git.config))):
        back = Path(os.path.relpath(module.folder, module.repository)).as_posix()
        git.run("config", "--local", "core.bare", "false")
        git.run("config", "--local", "core.worktree", back)
        with files.translate_errors(SourceError, module.folder):
            module.folder.mkdir(parents=True, exist_ok=True)
            target = Path(os.path.relpath(module.repository, module.folder)).as_posix()
        if not link.is_dir():
            files.write_atomic(link, f"gitdir: {target}\n".encode(), error=SourceError)
    return module.git(git.config)


def remove_index(module: Module) -> None:
    """Remove git's index, so that the next checkout writes all files again.

    Raises:
        SourceError: it cannot be removed.
    """
    with files.translate_errors(SourceError, module.repository):
        files.unlink(module.repository / "index", missing_ok=True)

"""The submodules of a checkout, moved along with it, level by level.

A submodule that is missing is cloned from the one that the main checkout has, with hard links where
both are on one file system: that takes no room and no network, and, unlike git's alternates, still
holds when the main checkout's submodule is tidied up (`git gc`) or removed. Where the main checkout
lacks the commit, it comes from the submodule's own address.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.effects import gitmodules
from torchbuild_tasks.effects.files import Patience
from torchbuild_tasks.effects.git import Git
from torchbuild_tasks.errors import SourceError

_LOCAL: Final = ("-c", "protocol.file.allow=always")  # git distrusts submodules at a path on disk
_NO_FILES: Final = "--work-tree=."  # in a repository whose files are not checked out
_ANY_COMMIT: Final = "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack"


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One submodule as a commit names it; `url` is as it stands in .gitmodules."""

    path: str
    commit: str
    name: str
    url: str

    def of(self, git: Git) -> Git:
        """git in that submodule of a checkout."""
        return Git(folder=git.folder / self.path, config=git.config)

    def is_there(self, git: Git) -> bool:
        """Whether that checkout has it."""
        return os.path.lexists(git.folder / self.path / ".git")


def links(git: Git, commit: str = "HEAD") -> tuple[Link, ...]:
    """The submodules that a commit names, without those inside them."""
    said = gitmodules.settings(git, "--blob", f"{commit}:.gitmodules")
    names = {about["path"]: name for name, about in said.items() if "path" in about}
    return tuple(
        Link(path=path, commit=wanted, name=names[path], url=said[names[path]].get("url", ""))
        for path, wanted in gitmodules.commits(git, commit).items()
        if path in names
    )


def changes(git: Git, commits: Sequence[str]) -> Iterator[str]:
    """Tracked files that are as none of the commits has them, in submodules too.

    One commit is the usual question; while a switch is under way a file may be as either end has it.
    """
    for what in ((), ("--cached",)):
        differing = [_differing(git, commit, what) for commit in commits]
        yield from sorted(set.intersection(*differing))
    below: dict[str, list[Link]] = {}
    for commit in commits:
        for link in links(git, commit):
            below.setdefault(link.path, []).append(link)
    for path, ends in below.items():
        sub = ends[0].of(git)
        if not ends[0].is_there(git) or {item.name for item in sub.folder.iterdir()} == {".git"}:
            continue  # not there, or as a clone leaves it that was broken off
        head, wanted = sub.said("rev-parse", "HEAD"), list(dict.fromkeys(link.commit for link in ends))
        if head not in wanted:
            yield f"{path} (a submodule, at commit {str(head)[:10]})"
        known = [commit for commit in wanted if sub.has(commit)]
        if known:
            yield from (f"{path}/{name}" for name in changes(sub, known))


def _differing(git: Git, commit: str, what: tuple[str, ...]) -> set[str]:
    said = git.run("diff", *what, "--name-only", "-z", "--no-renames", "--ignore-submodules=all", commit)
    return set(filter(None, said.split("\0")))


def in_the_way(git: Git, commit: str) -> Iterator[str]:
    """Files that git does not track yet and that the commit has with other contents, in submodules too."""
    others = set(filter(None, git.run("ls-files", "--others", "-z").split("\0")))
    for entry in git.run("ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        about, _, path = entry.partition("\t")
        if path in others and git.said("hash-object", "--", path) != about.split()[2]:
            yield f"{path} (not tracked, and in the way)"
    for link in links(git, commit):
        if link.is_there(git) and link.of(git).has(link.commit):
            yield from (f"{link.path}/{name}" for name in in_the_way(link.of(git), link.commit))


def move(git: Git, commit: str, main: Git | None, *, force: bool) -> None:
    """Check out a commit and bring its submodules along; whoever calls has looked at `changes`.

    Args:
        git: the checkout.
        commit: what to check out.
        main: the checkout whose submodules are borrowed from.
        force: what differs is half of an earlier try.
    """
    after = {link.path: link for link in links(git, commit)}
    for link in links(git) if git.said("rev-parse", "--verify", "--quiet", "HEAD") else ():
        if link.is_there(git) and (link.path not in after or after[link.path].name != link.name):
            _leave(link.of(git))
    git.run("checkout", "--quiet", *(("--force",) if force else ()), "--detach", commit)
    settle(git, main, force=force)


def settle(git: Git, main: Git | None, *, force: bool = False) -> None:
    """Bring every submodule to where HEAD has it.

    One that the main checkout has at its own commit, too, but left out, is left out here.

    Raises:
        SourceError: one cannot be got; the others are there, and the next run goes on.
    """
    wanted = links(git)
    known = {link.path for link in links(main)} if main else set()
    due = [link for link in wanted if not link.is_there(git)]
    due = [link for link in due if not (main and link.path in known and not link.is_there(main))]
    _clone(git, due, main)
    for link in wanted:
        if not link.is_there(git):
            continue
        sub, lender = link.of(git), link.of(main) if main and link.is_there(main) else None
        if sub.said("rev-parse", "HEAD") == link.commit:
            settle(sub, lender, force=force)
        else:
            _get(sub, link, _store(main, link))
            move(sub, link.commit, lender, force=force)


def _store(main: Git | None, link: Link) -> Git | None:
    """The repository of a submodule of the main checkout, even one that its present commit lacks."""
    if main is None:
        return None
    place = link.of(main).said("rev-parse", "--absolute-git-dir") if link.is_there(main) else None
    if place is None:
        common = main.said("rev-parse", "--git-common-dir")
        place = str(main.folder / str(common) / "modules" / link.name)
    return Git(folder=Path(place), config=main.config) if Path(place).is_dir() else None


def _clone(git: Git, due: list[Link], main: Git | None) -> None:
    stores = {link: store for link in due if (store := _store(main, link)) and store.has(link.commit)}
    for link, store in stores.items():  # one that an earlier commit had is still in the repository
        kept = Path(git.run("rev-parse", "--absolute-git-dir")) / "modules" / link.name
        if kept.is_dir() and kept != store.folder:
            _get(Git(folder=kept, config=git.config), link, store)
    if stores:
        at = [
            word
            for link, store in stores.items()
            for word in ("-c", f"submodule.{link.name}.url={store.folder}")
        ]
        paths = [link.path for link in stores]
        git.run(*_LOCAL, *at, "submodule", "--quiet", "update", "--checkout", "--jobs", "8", "--", *paths)
    for link, store in stores.items():
        if address := store.said(_NO_FILES, "config", "--get", "remote.origin.url"):
            link.of(git).run("remote", "set-url", "origin", address)
    if left := [link.path for link in due if link not in stores]:
        try:
            git.run("submodule", "--quiet", "update", "--init", "--checkout", "--jobs", "8", "--", *left)
        except SourceError as error:
            raise SourceError(
                f"Submodules of {git.folder} cannot be got: {', '.join(left)}.",
                looked=error.looked,
                next_step="Run the same command again when the network is back; what is there stays.",
            ) from None


def _get(sub: Git, link: Link, store: Git | None) -> None:
    """Make sure that a submodule has the commit: from the main checkout's, else from its address."""
    if sub.has(link.commit):
        return
    if store and store.has(link.commit):
        sub.run(*_LOCAL, _NO_FILES, "fetch", "--quiet", _ANY_COMMIT, str(store.folder), link.commit)
        return
    address = "origin" if link.url.startswith(("./", "../")) else link.url
    if sub.ask("fetch", "--quiet", address, link.commit, timeout=None).rc != 0:
        sub.run("fetch", "--quiet", "--tags", address, "+refs/heads/*:refs/remotes/origin/*")


def _leave(sub: Git) -> None:
    """Take a submodule's tracked files out of the way; what git does not track stays."""
    for link in links(sub):
        if link.is_there(sub):
            _leave(link.of(sub))
    patience, parents = Patience(), set[Path]()
    for entry in filter(None, (sub.said("ls-files", "--stage", "-z") or "").split("\0")):
        path = sub.folder / entry.partition("\t")[2]
        if not entry.startswith("160000 "):
            with contextlib.suppress(FileNotFoundError):
                patience.unlink(path)
        parents.update(parent for parent in path.parents if parent.is_relative_to(sub.folder))
    if (sub.folder / ".git").is_file():
        patience.unlink(sub.folder / ".git")
    for folder in sorted(parents, key=lambda folder: len(folder.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()

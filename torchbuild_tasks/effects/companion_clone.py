"""The source of what is built beside torch, cloned once by git: one ref without its history."""

from __future__ import annotations

from collections.abc import Callable

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git.complete import complete
from torchbuild_tasks.system.git.fetch import Way
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.transfer import Watch
from torchbuild_tasks.system.remove import UNPACKING, discard, hidden, leftovers
from torchbuild_tasks.values import replace


def have_clone(git: Git, url: str, ref: str, *, offline: bool, say: Callable[[str], None]) -> None:
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
        raise SourceError(f"{folder} is not there, and --offline is said.", next_step=ways)
    with files.told_as(SourceError, folder.parent):
        folder.parent.mkdir(exist_ok=True)
    for left in leftovers(folder.parent, folder.name):
        discard(left)
    part = hidden(folder, UNPACKING)
    say(f"{url} at {ref} is cloned to {folder}")
    try:
        with files.told_as(SourceError, part):
            part.mkdir()
        _fetch(replace(git, folder=part), url, ref, say)
        with files.told_as(SourceError, folder):
            files.replace(part, folder)
    except SourceError as error:
        what = f"{ref} of {url} could not be had: {error.what}"
        raise SourceError(what, looked=error.looked, next_step=error.next_step or ways) from None
    finally:
        discard(part)


def _fetch(git: Git, url: str, ref: str, say: Callable[[str], None]) -> None:
    """`clone` would take no commit, and one of a missing ref would take the default branch."""
    git.run("init", "--quiet")
    git.run("config", "--local", "remote.origin.url", url)  # what relative addresses of submodules count from
    git.run("fetch", "--quiet", "--depth", "1", "--no-tags", url, ref)
    git.run("checkout", "--quiet", "--detach", "FETCH_HEAD")
    complete(git, Way(config=git.config, watch=Watch(tree=str(git.folder), note=say)), lambda path: True)

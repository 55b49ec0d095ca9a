"""What `git apply` makes of one file: it works on a copy in a folder of its own, and decides.

git takes a patch exactly or not at all: every line of its context must be there as it stands in the diff.
Where it is may have moved, for it does with every release; that is said. The copy keeps its name and
place, so that git's words name the file; no repository around it, no setting of the user's and no variable
of a git hook can have a say.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import PatchRefused
from torchbuild_tasks.system import process
from torchbuild_tasks.text.diffs import Section

# Whatever the user has set for whitespace or line ends would change what fits, or what is written.
_PLAIN: Final = (
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", f"core.attributesFile={os.devnull}"),
    *("-c", "apply.whitespace=nowarn", "-c", "apply.ignoreWhitespace=no"),
)
_DIFF: Final = "change.diff"
_SECONDS: Final = 60.0
_OFFSET: Final = re.compile(r"^Hunk #\d+ succeeded at (\d+ \(offset .*\))\.$", re.MULTILINE)


class DoesNotApply(Exception):
    """The change does not fit the file; the text is git's."""


def changed(
    content: bytes | None,
    section: Section,
    *,
    reverse: bool = False,
    said: Callable[[str], None] = lambda line: None,
) -> bytes | None:
    """What git makes of the file's content; None is no file. One whose lines end in CRLF keeps that.

    Args:
        content: the file as it is.
        section: the change; all its context must be there, though it may be on other lines.
        reverse: take the change back.
        said: told of each part that was found on other lines.

    Raises:
        DoesNotApply: git refuses.
        PatchRefused: there is no git.
    """
    crlf = content is not None and _is_crlf(content)
    plain = content.replace(b"\r\n", b"\n") if crlf and content is not None else content
    with tempfile.TemporaryDirectory(prefix="torchbuild-patch-") as folder:
        root = Path(folder).resolve()
        file = root / section.path
        file.parent.mkdir(parents=True)
        if plain is not None:
            file.write_bytes(plain)
        (root / _DIFF).write_bytes(section.text.encode())
        for line in _OFFSET.findall(_git(root, reverse)):
            said(line)
        result = file.read_bytes() if file.exists() else None
    if result == plain:  # git leaves out, with exit code 0, what it takes to be outside of its folder
        raise DoesNotApply("git apply changed nothing")
    return result.replace(b"\n", b"\r\n") if crlf and result is not None else result


def _git(root: Path, reverse: bool) -> str:
    argv = ("git", *_PLAIN, "apply", "--verbose", *(("-R",) if reverse else ()), _DIFF)
    done = process.capture(argv, cwd=root, env=dict(_outside_of_git(os.environ, root)), timeout=_SECONDS)
    if done.rc == process.CANNOT_START:
        raise PatchRefused(
            "The source has to be patched, and git, which does that, does not start. Nothing was changed.",
            looked=(done.stderr.decode(errors="replace").strip(),),
            next_step="Install git: sudo apt-get install git, winget install Git.Git",
        )
    if done.rc != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise DoesNotApply(said or f"git apply ended with exit code {done.rc}")
    return done.stderr.decode(errors="replace")


def _outside_of_git(environ: Mapping[str, str], root: Path) -> Iterator[tuple[str, str]]:
    """The environment without what git sets inside a hook, and with a border above the folder."""
    for name, value in environ.items():
        if not name.startswith("GIT_") or name == "GIT_EXEC_PATH":
            yield name, value
    yield "GIT_CEILING_DIRECTORIES", str(root.parent)
    yield "LC_ALL", "C"


def _is_crlf(content: bytes) -> bool:
    """Whether every line ends in CRLF; a file of both kinds is taken as it is."""
    return b"\r\n" in content and content.count(b"\n") == content.count(b"\r\n")


def fits(content: bytes | None, section: Section, *, reverse: bool = False) -> bool:
    """Whether git takes the change, forward or back."""
    try:
        changed(content, section, reverse=reverse)
    except DoesNotApply:
        return False
    return True

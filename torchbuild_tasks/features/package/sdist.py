"""Make a source distribution: the tracked files of the checkout and all submodules, as they are now."""

from __future__ import annotations

import gzip
import io
import os
import posixpath
import re
import stat
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.catalog.source import SubmoduleRow
from torchbuild_tasks.errors import PackageRefused, UsageError
from torchbuild_tasks.features.package.choose import source_version
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git.checkout import changed_files
from torchbuild_tasks.system.git.run import Git, entries_in
from torchbuild_tasks.system.git.submodules import modules
from torchbuild_tasks.system.reading import read_text
from torchbuild_tasks.system.remove import unfinished_folder
from torchbuild_tasks.text.show import size_text
from torchbuild_tasks.text.words import first_few

_LINK: Final = "120000"  # git's modes of a link, and of a submodule
_SUBMODULE: Final = "160000"
_COMPLETE: Final = "torchbuild source update --full, or: git submodule update --init --recursive"


class Sdist(msgspec.Struct, frozen=True, kw_only=True):
    """The written source distribution.

    `files` and `submodules` are counted. `changed` are files that differ from the commit and went in as they
    are, `left_out` those that git neither tracks nor ignores.
    """

    path: Path
    version: str
    commit: str
    files: int
    submodules: int
    packed: int
    changed: tuple[str, ...]
    left_out: tuple[str, ...]


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a checkout: the git mode of each by its path; further lists of paths."""

    modes: dict[str, str] = {}
    present: list[str] = []
    missing: list[str] = []
    changed: list[str] = []
    left_out: list[str] = []


def make_sdist(
    root: Path,
    out: Path,
    local: str | None,
    rows: Sequence[SubmoduleRow],
    variables: Mapping[str, str],
    *,
    max_size: int = 0,
) -> Sdist:
    """Write `torch-<version>.tar.gz` of a checkout, which pip can build without git and network.

    Args:
        out: the folder that it goes to.
        local: the local part of its version; None for the one that upstream's build in git takes.
        rows: what is known of submodules; one that no build takes may be missing.
        variables: what a build here would have of PYTORCH_BUILD_VERSION and PYTORCH_BUILD_NUMBER.
        max_size: nothing larger is wanted, bytes; 0 for any size.

    Raises:
        PackageRefused: something of the source is not here, or git does not track it.
    """
    git = Git(folder=root)
    if not (root / ".git").exists():
        raise PackageRefused(
            f"{root} is not under git, so it is not known which of its files are source.",
            next_step="An archive of a release is its own source distribution; else: torchbuild source get",
        )
    seen = _Seen()
    _look(git, "", tuple(row.path for row in rows if row.unused), seen)
    _refuse_incomplete(root, seen)
    commit = git.run("rev-parse", "HEAD")
    with files.translate_errors(PackageRefused, root / "version.txt"):
        text = read_text(root / "version.txt", most=4096).strip()
    version = source_version(text, commit, variables, local, changed=bool(seen.changed))
    stamp = _stamp(os.environ.get("SOURCE_DATE_EPOCH") or git.run("log", "-1", "--format=%ct"))
    target = out / f"torch-{version}.tar.gz"
    private = unfinished_folder(out / "sdist", PackageRefused, private=True)
    with files.translate_errors(PackageRefused, out), private as place:
        path = place / target.name
        _write(path, root, seen, version, stamp)
        packed = path.stat().st_size
        if max_size and packed > max_size:
            raise PackageRefused(
                f"{target.name} is {size_text(packed)}, more than --max-size {size_text(max_size)}. "
                "Nothing was written."
            )
        files.replace(path, target)
    return Sdist(
        path=target,
        version=version,
        commit=commit,
        files=len(seen.modes),
        submodules=len(seen.present),
        packed=packed,
        changed=tuple(seen.changed),
        left_out=tuple(seen.left_out),
    )


def _stamp(text: str) -> int:
    """Return the time for all files of the archive; gzip's header has 32 bits for it."""
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) >> 32:
        raise UsageError(
            f"SOURCE_DATE_EPOCH is {text[:40]!r}, which is not a number of seconds since 1970.",
            next_step="Unset it, or set it to the number that this prints: git log -1 --format=%ct",
        )
    return int(text)


def _look(git: Git, prefix: str, unused: Sequence[str], seen: _Seen) -> None:
    """Add the files of one worktree and its submodules."""
    for entry in entries_in(git.run("ls-files", "--stage", "-z")):
        words, _, path = entry.partition("\t")
        if (mode := words.split(" ")[0]) != _SUBMODULE:
            seen.modes[prefix + path] = mode
    seen.changed.extend(prefix + path for path in changed_files(git, untracked=False))
    others = git.run("ls-files", "--others", "--exclude-standard", "-z")
    seen.left_out.extend(prefix + path for path in entries_in(others))
    for module in modules(git, prefix):
        if not module.is_present:
            if not any(f"{module.top}/".startswith(f"{path}/") for path in unused):
                seen.missing.append(module.top)
            continue
        inner = Git(folder=module.folder)
        seen.present.append(module.top)
        if inner.output("rev-parse", "HEAD") != module.commit:
            seen.changed.append(module.top)
        _look(inner, f"{module.top}/", unused, seen)


def _refuse_incomplete(root: Path, seen: _Seen) -> None:
    if seen.missing:
        raise PackageRefused(
            "Submodules are missing: a build of this source would need a network. Nothing was written.",
            looked=tuple(f"{path} holds nothing" for path in seen.missing),
            next_step=_COMPLETE,
        )
    lost = [path for path in seen.modes if not os.path.lexists(root / path)]
    if lost:
        raise PackageRefused(
            f"{len(lost)} files that git tracks are not here: {first_few(lost, 3)}. Nothing was written.",
            next_step="Bring them back (git checkout -- FILE, git sparse-checkout disable), or git rm them.",
        )
    outer = [path for path, mode in seen.modes.items() if mode == _LINK and _leaves(root, path)]
    inside = {root.joinpath(path).parent for path in seen.modes}  # one of which may have become a link
    outer += [str(each) for each in sorted(inside) if not each.resolve().is_relative_to(root.resolve())]
    if outer:
        raise PackageRefused(
            f"Links point out of the checkout, to files that only this machine has: {first_few(outer, 3)}.",
            next_step="Put the files in their place, or git rm the links.",
        )


def _leaves(root: Path, path: str) -> bool:
    """Say whether a link leads out of the tree; pip refuses to unpack such links."""
    to = _target(root / path)
    path_in_tree = posixpath.normpath(posixpath.join(posixpath.dirname(path), to))
    return posixpath.isabs(to) or path_in_tree == ".." or path_in_tree.startswith("../")


def _target(path: Path) -> str:
    """Return the target of a link; on Windows git may have written it into a plain file."""
    return str(path.readlink() if path.is_symlink() else path.read_text("utf-8")).replace("\\", "/")


def _write(path: Path, root: Path, seen: _Seen, version: str, stamp: int) -> None:
    """Write the archive, whose bytes depend only on the files, the version and the time."""
    top = path.name.removesuffix(".tar.gz")
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=stamp) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, mode, data in _members(root, seen, version):
            info = tarfile.TarInfo(f"{top}/{name}")
            info.mtime = stamp
            info.mode = 0o755 if mode == "100755" else 0o644
            if mode == _LINK:
                info.type, info.linkname = tarfile.SYMTYPE, _target(root / name)
                archive.addfile(info)
            elif data is not None:
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
            else:
                with (root / name).open("rb") as file:
                    info.size = os.fstat(file.fileno()).st_size
                    archive.addfile(info, file)


def _members(root: Path, seen: _Seen, version: str) -> Iterator[tuple[str, str, bytes | None]]:
    """Yield each file's path and mode, and its bytes if they differ from the file's.

    Without git upstream's builds take the version from version.txt, later ones first from PKG-INFO
    (tools/generate_torch_version.py, 2.6.0 and 2.9.0). With metadata 2.1 pip and uv ask the build for more.
    """
    yield "PKG-INFO", "100644", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n".encode()
    for name, mode in sorted(seen.modes.items()):
        if name == "version.txt":
            yield name, mode, f"{version}\n".encode()
        elif mode == _LINK or stat.S_ISREG((root / name).lstat().st_mode):
            yield name, mode, None

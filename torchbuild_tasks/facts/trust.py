"""Decide whether the user trusts the present files of a checkout."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.facts.settings import NAME, SettingsFile, read_settings
from torchbuild_tasks.system import trust
from torchbuild_tasks.system.reading import hash_file, read_text
from torchbuild_tasks.text.words import flag_words

TEMPLATES: Final = "env_templates"
_LARGEST: Final = 4 << 30  # bytes
_PROGRAMS: Final = ("", "bin", "Scripts")  # the program folders of an environment or a toolkit


def place_of(path: str) -> str:
    """Return the place to trust for a settings file: its folder, or the file itself under another name."""
    file = Path(os.path.realpath(path))
    return str(file.parent if file.name == NAME else file)


def is_trusted(place: str) -> bool:
    """Say whether the user trusts these files, and none has changed since."""
    state = os.path.realpath(trust.state_folder(os.environ))
    if is_within(state, place):
        return False
    if trust.is_vouched(place):
        return True
    proof = trust.read_proof(Path(state), "files", place)
    return proof is not None and proof == digest(place)


def is_trusted_manifest(place: str) -> bool:
    """Say whether an unchanged manifest was written by a build here, or is trusted by the user."""
    state = os.path.realpath(trust.state_folder(os.environ))
    own = None if is_within(state, place) else trust.read_proof(Path(state), "manifests", place)
    return own == digest(place) if own else is_trusted(place)


def common_git_folder(source: Path) -> str:
    """Return the main git folder if the checkout is a worktree of another; else "".

    A checkout may bring any `.git`, and what that names is believed, or handed to what is built: it counts
    where that folder names this worktree, too, as git there wrote it.
    """
    try:
        folder = (source / read_text(source / ".git", most=4096).partition("gitdir:")[2].strip()).resolve()
        back = folder / read_text(folder / "gitdir", most=4096).strip()
        same = back.samefile(source / ".git") and folder.parent.name == "worktrees"
    except (OSError, ValueError):
        return ""
    return str(folder.parents[1]) if same else ""


def is_own_env_file(path: Path) -> bool:
    """Say whether an env file is unchanged since it was written here; a shell runs it."""
    proof = trust.read_proof(trust.state_folder(os.environ), "envs", str(path))
    return proof is not None and proof.encode() == _hash_of(path)


def is_within(state: str, place: str) -> bool:
    """Say whether the entries are inside a checkout, which could forge them; the home folder is none."""
    return _is_below(state, place) and not _is_below(os.path.realpath(Path.home()), place)


def digest(place: str) -> str:
    """Return the hash of all relevant files: settings, env templates, programs in the tree that they name."""
    hashed = hashlib.sha256()
    for path in sorted(set(files_of(place))):
        name = os.path.relpath(path, place).encode("utf-8", "surrogateescape")
        hashed.update(b"%d %s %s\n" % (len(name), name, _hash_of(path)))
    return hashed.hexdigest()


def files_of(place: str) -> Iterator[Path]:
    """Yield the files covered by the trust of `place`."""
    root = Path(place)
    settings = root / NAME if root.is_dir() else root
    if root.is_dir():
        yield from (root / TEMPLATES).glob("*.in")
    if settings.is_file():
        yield settings
    if settings.is_file() and settings.suffix != ".json":  # a manifest does not refer to files next to it
        yield from _find_named(settings.parent, read_settings(settings))


def own_templates(folder: Path, ours: Mapping[str, str]) -> tuple[str, ...]:
    """Return the env templates in a folder that differ from the shipped ones."""
    templates = []
    for path in sorted((folder / TEMPLATES).glob("*.in")):
        try:
            same = read_text(path).replace("\r\n", "\n") == ours.get(path.name)
        except OSError:
            same = False
        if not same and path.name in ours:
            templates.append(path.name)
    return tuple(templates)


def _find_named(base: Path, file: SettingsFile) -> Iterator[Path]:
    """Yield the files below `base` that strings of a settings file name; for a folder those in its bin."""
    root = os.path.realpath(base)
    for word in dict.fromkeys(_words(file.data)):
        try:
            path = base / word
            if word and path.exists() and _is_below(os.path.abspath(path), root) and not path.samefile(base):  # noqa: PTH100
                yield from _files(path)
        except (OSError, ValueError):
            continue


def _files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return (path,)
    return [file for name in _PROGRAMS for file in (path / name).glob("*") if file.is_file()]


def _words(value: object) -> Iterator[str]:
    """Yield each string in a value, and each of its words."""
    if isinstance(value, str):
        yield value
        yield from flag_words(value)
        yield from value.split("=", 1)[1:]
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _words(item)


def _hash_of(path: Path) -> bytes:
    """Return a file's hash, or its time if it is too large to be a program."""
    try:
        info = path.stat()
        return b"%d" % info.st_mtime_ns if info.st_size > _LARGEST else hash_file(path).encode()
    except OSError:
        return b"-"


def _is_below(path: str, folder: str) -> bool:
    one = os.path.normcase(path)
    other = os.path.normcase(folder)
    return one == other or one.startswith(other.rstrip(os.sep) + os.sep)

"""Look at the inputs of a build: the repositories, the programs, the packages of its Python.

Looked at only when something was built: the hash of a compiler takes milliseconds, the packages a start
of the Python that has them.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.facts.probe import Output, Probe
from torchbuild_tasks.model.record import FileSeen, Installed, Program, Repository
from torchbuild_tasks.system import process
from torchbuild_tasks.system.git.run import Git, git_error
from torchbuild_tasks.system.git.submodules import submodule_settings
from torchbuild_tasks.system.reading import hash_file
from torchbuild_tasks.values import parse_json

_SECONDS: Final = 120.0
_MOST_DIFF: Final = 16 << 20  # bytes that are kept of one diff
_MOST_HASHED: Final = 4 << 20  # bytes of an untracked file that is hashed
_MOST_UNTRACKED: Final = 1000  # files of one repository
_DEPTH: Final = 8
_STATUS: Final = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
_DIFF: Final = (
    *("diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=all", "HEAD"),
)


def look_at_repositories(root: Path, own_files: frozenset[str]) -> tuple[Repository, ...]:
    """Return the state of torch and its submodules, parents first.

    Args:
        own_files: untracked files that the tool itself writes into it, relative to it.

    Raises:
        SourceError: git is missing, or does not answer about the checkout.
    """
    return tuple(_walk(root, "", "", own_files, _DEPTH))


def _walk(root: Path, path: str, url: str, own_files: frozenset[str], depth: int) -> Iterator[Repository]:
    git = Git(folder=root / path, config=("core.quotePath=false",))
    if path and not (git.folder / ".git").exists():
        yield Repository(path=path, url=url, problem="not checked out")
        return
    try:
        yield _look(git, path, url or git.output("config", "--get", "remote.origin.url") or "", own_files)
    except SourceError as error:
        if not path:
            raise
        yield Repository(path=path, url=url, problem=" ".join((error.what, *error.looked[-1:])))
        return
    for inner, address in _submodules(git) if depth else ():
        yield from _walk(root, f"{path}/{inner}".lstrip("/"), address, frozenset(), depth - 1)


def _look(git: Git, path: str, url: str, own_files: frozenset[str]) -> Repository:
    # --ignore-submodules: each is queried itself. No optional locks: the user's git may be running.
    words = (*_STATUS, "--ignore-submodules=all")
    commit, changed, names = _status(_output(git, "--no-optional-locks", *words))
    files = sorted(name for name in names if name not in own_files and not name.startswith(".torchbuild/"))
    untracked = tuple(_seen(git.folder, name) for name in files[:_MOST_UNTRACKED])
    unlisted = len(files) - len(untracked)
    problem = f"{unlisted} more untracked files are not listed" if unlisted else ""
    if not changed or commit is None:
        return Repository(path=path, commit=commit, url=url, untracked=untracked, problem=problem)
    diff = _output(git, "--no-optional-locks", *_DIFF)
    complete = len(diff) <= _MOST_DIFF
    if not complete:
        problem = f"the diff has {len(diff)} bytes, too many to keep"
    return Repository(
        path=path,
        commit=commit,
        url=url,
        diff=diff.decode("utf-8", "surrogateescape") if complete else "",
        diff_sha256=hashlib.sha256(diff).hexdigest() if diff else "",
        untracked=untracked,
        problem=problem,
    )


def _output(git: Git, *words: str) -> bytes:
    captured = git.ask(*words, timeout=_SECONDS)
    if captured.rc != 0:
        raise git_error(git.argv(words), captured)
    return captured.stdout


def _status(output: bytes) -> tuple[str | None, bool, list[str]]:
    """Return the commit, whether a tracked file is changed, and the untracked files."""
    commit = None
    changed = False
    untracked = []
    for line in output.decode("utf-8", "surrogateescape").split("\0"):
        if line.startswith("# branch.oid "):
            commit = None if line.endswith("(initial)") else line.rpartition(" ")[2]
        elif line.startswith("? "):
            untracked.append(line[2:])
        elif line[:2] in ("1 ", "2 ", "u "):
            changed = True
    return commit, changed, untracked


def _seen(folder: Path, name: str) -> FileSeen:
    path = folder / name
    try:
        size = path.lstat().st_size
        small = path.is_file() and size <= _MOST_HASHED
        digest = hash_file(path) if small else None
    except OSError:
        return FileSeen(path=name, size=0)
    return FileSeen(path=name, size=size, sha256=digest)


def _submodules(git: Git) -> list[tuple[str, str]]:
    """Return the path and address of each submodule, from .gitmodules."""
    answer = submodule_settings(git, "--file", str(git.folder / ".gitmodules")).values()
    pairs = [(each["path"], each.get("url", "")) for each in answer if "path" in each]
    return sorted((path, url) for path, url in pairs if ".." not in Path(path).parts)


# ---------------- programs, and the packages of a Python


_MOST_HASHED_TOOLS: Final = 256 << 20  # bytes; a compiler has less
_TOOL_SECONDS: Final = 60.0

# Runs in the Python that gets torch, which may be an old one. A RECORD names every file with its hash.
_LIST: Final = """
import sys
sys.path = [path for path in sys.path if path]
import hashlib, json
from importlib import metadata
found, reads = {}, list(sys.path)
for one in metadata.distributions():
    if hasattr(one, "_path"):  # a folder or file, but for those of a finder of its own
        reads += [str(one._path), str(one._path / "RECORD"), str(one._path / "PKG-INFO")]
    about = one.metadata  # parsed at each access, with the description
    name = about["Name"]
    if name and name not in found:
        record = one.read_text("RECORD")
        found[name] = {
            "version": about["Version"],
            "record": record and hashlib.sha256(record.encode("utf-8", "surrogateescape")).hexdigest(),
            "direct_url": one.read_text("direct_url.json"),
        }
print(json.dumps({"packages": found, "reads": reads}))
"""
NO_ARCHIVE: Final = "installed from an index: pip keeps no hash of the wheel, only of each file (RECORD)"
NO_RECORD: Final = "it has no RECORD: not installed from a wheel"


def program(name: str, path: str, version: str | None, environ: Mapping[str, str]) -> Program:
    """Return a program on the PATH of `environ`; without a hash if it cannot be read."""
    located = shutil.which(path, path=process.search_path(environ)) or path
    try:
        real = Path(located).resolve()
        status = real.stat()
        small = status.st_size <= _MOST_HASHED_TOOLS
        digest = hash_file(real) if small else None
    except OSError:
        return Program(name=name, path=located, version=version)
    modified = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
    return Program(
        name=name, path=located, version=version, sha256=digest, size=status.st_size, modified=modified
    )


def list_installed(probe: Probe, python: str) -> tuple[Installed, ...]:
    """Return the installed distributions of a Python, by name; empty if it fails.

    It is asked again when a package has come, gone or changed: that takes a tenth of a second.
    """
    if not Path(python).is_file():
        return ()
    output = probe.ask((python, "-c", _LIST), timeout=_TOOL_SECONDS, reads=_list_read)
    installed = _parse(output).get("packages", {}) if output is not None and output.rc == 0 else {}
    return tuple(_distribution(name, installed[name]) for name in sorted(installed, key=str.lower))


def _list_read(output: Output) -> tuple[str, ...]:
    return tuple(_parse(output).get("reads", ()))


def _parse(output: Output) -> dict[str, Any]:
    """Return what `_LIST` has printed, in its last line: a sitecustomize may have printed before."""
    try:
        return dict(parse_json(output.stdout.rstrip().rpartition("\n")[2]))
    except (ValueError, TypeError):
        return {}


def _distribution(name: str, entry: Mapping[str, str | None]) -> Installed:
    archive, origin = _direct(entry["direct_url"])
    record = entry["record"]
    unknown = NO_RECORD if not record else "" if archive or origin else NO_ARCHIVE
    return Installed(
        name=name,
        version=str(entry["version"]),
        record=record,
        archive=archive,
        origin=origin,
        unknown=unknown,
    )


def _direct(text: str | None) -> tuple[str | None, str]:
    """Return the archive's hash and the address, from direct_url.json (PEP 610)."""
    try:
        answer = parse_json(text or "{}")
        url = str(answer.get("url", ""))
        if "archive_info" in answer:
            info = answer["archive_info"]
            hashes = dict(info.get("hashes") or {})
            if "=" in str(info.get("hash", "")):
                kind, _, value = info["hash"].partition("=")
                hashes.setdefault(kind, value)
            return hashes.get("sha256"), url
        if "vcs_info" in answer:
            return None, f"{answer['vcs_info'].get('vcs')}+{url}@{answer['vcs_info'].get('commit_id')}"
        editable = answer.get("dir_info", {}).get("editable")
        return None, f"editable {url}" if editable else url
    except (ValueError, AttributeError, TypeError, KeyError):
        return None, ""

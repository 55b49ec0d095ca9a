"""Look at the source tree: whether it is a torch checkout, its build system, and earlier builds."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.probe import Output, Probe
from torchbuild_tasks.facts.requirements import build_requirements, install_requirements
from torchbuild_tasks.facts.submodules import look_at_submodules
from torchbuild_tasks.facts.tools import version_of
from torchbuild_tasks.facts.tree_reads import look_at_reads
from torchbuild_tasks.model import CMakeCache, Era, OwnPatch, Previous, Running, Tree
from torchbuild_tasks.model.facts import LOCKED, NOT_CHECKED_OUT, SHUT
from torchbuild_tasks.model.record import MANIFEST_FILE, RECORD_FILE
from torchbuild_tasks.options import flag_name
from torchbuild_tasks.system.git import guard
from torchbuild_tasks.text.paths import file_name
from torchbuild_tasks.values import Malformed, as_table, decode_text, parse_toml, replace, texts_in

TOP: Final = "CMakeLists.txt"
PROJECT: Final = "pyproject.toml"
MARKS = ("version.txt", TOP, "torch/__init__.py", "c10")
DIGESTED = ("version.txt", PROJECT, "setup.py", "requirements.txt", TOP)
SAMPLE_MARK = "__sample__"
# Before 1.4 the version is in setup.py (PR 27149 added version.txt).
_SETUP_VERSION: Final = re.compile(r"""(?m)^version = ['"]([\w.+]{1,200})['"]$""")


def look_at_tree(
    probe: Probe,
    root: str,
    front_end: Sequence[str] = (),
    *,
    folders: Sequence[str] = (),
    tags: bool = False,
    changes: bool = True,
    variables: Sequence[str] = (),
) -> Tree:
    """Look at the folder `root`; `problem` is set if it is not a readable checkout.

    `front_end` are the files, relative to it, that the Python front end reads (`*` in the last part);
    `folders` are those of submodules, for where no .gitmodules names them. git is asked for the commit, with
    `tags` also for its tags, and with `changes` whether files differ from it. `variables` are the names of
    variables that are set.

    The root is reported without symbolic links, as CMake and pip will record it. A
    checkout from which only the submodules are missing is read in full all the same.
    """
    given = probe.absolute(root)
    root = probe.realpath(given)
    looked = tuple(probe.join(root, mark) for mark in MARKS)
    if problem := _checkout_problem(probe, root, given):
        return Tree(root=root, problem=problem, looked=looked)
    if probe.size(probe.join(root, TOP)) == 0:
        problem = f"its {TOP} is empty, so it was not unpacked or checked out completely"
        return Tree(root=root, problem=problem, broken=TOP, looked=looked)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=1) as pool:
        # `git status` of a large checkout takes as long as all that is read here meanwhile.
        repository = pool.submit(look_at_git, probe, root, tags=tags, changes=changes)
        project = look_at_pyproject(probe, root)
        is_top = probe.exists(probe.join(root, ".git"))
        submodules = look_at_submodules(read_git(probe), root, folders, git=is_top)
        build_dir = project.build_dir or probe.join(root, "build")  # the planned one if the tree names none
        folders_made = (probe.join(root, ".torchbuild"), *_folders_of(probe, build_dir, root))
        return Tree(
            root=root,
            broken=PROJECT if project.problem else "",
            looked=looked,
            sample=SAMPLE_MARK in (probe.read(probe.join(root, "torch/__init__.py")) or ""),
            version=look_at_version(root, probe),
            writable=probe.writable(root),
            blocked={path: what for path in folders_made if (what := _in_the_way(probe, path))}
            | _left_by_another(probe, root),
            by_sudo=_is_by_sudo(probe, root),
            digests=_digests(probe, root, front_end),
            cache=look_at_cache(probe, build_dir),
            previous=look_at_manifest(probe, build_dir),
            installed=look_at_install(probe, build_dir),
            reads=look_at_reads(probe, root, variables),
            recorded=any(probe.exists(probe.join(root, ".torchbuild", name)) for name in RECORDS),
            running=look_at_running(probe, root),
            git=is_top,
            **project._asdict(),
            **submodules._asdict(),
            **repository.result()._asdict(),
        )


def _checkout_problem(probe: Probe, root: str, given: str) -> str | None:
    if not probe.exists(root):
        return _gone(probe, given)
    if not probe.is_dir(root):
        return "a file, not a folder"
    missing = _missing_marks(probe, root)
    if not missing:
        return None
    if len(missing) == len(MARKS) and _is_bare_of_files(probe, root):
        return NOT_CHECKED_OUT
    return f"not a PyTorch checkout: it has no {', no '.join(missing)}{_nearby_checkout(probe, root)}"


def _is_bare_of_files(probe: Probe, root: str) -> bool:
    git = probe.join(root, ".git")
    there = probe.is_file(git) or probe.exists(probe.join(git, "HEAD"))
    return there and all(name.startswith(".") for name in probe.children(root))


def _gone(probe: Probe, root: str) -> str:
    """Say that a folder is not there; of a symbolic link, where it leads."""
    if target := probe.link_target(root):
        loop = "to itself" if probe.absolute(probe.join(probe.names.parent(root), target)) == root else ""
        return f"a symbolic link that leads {loop or f'to {target}, which is not there'}"
    return "no such folder"


def _in_the_way(probe: Probe, path: str) -> str:
    """Say what stands where a folder is to be made; "" where nothing does."""
    if probe.is_dir(path):
        return SHUT if probe.writable(path) is False else ""
    if probe.exists(path):
        return "a file"
    there = file_name(path) in probe.children(probe.names.parent(path))
    return "a link to what is not there" if there else ""


# What a build makes in folders that are part of the checkout: where another user has built, its files stay.
_MADE: Final = ("torch/version.py", "torch/lib", "torch/include", "torch/bin", "torch/share")


def _left_by_another(probe: Probe, root: str) -> dict[str, str]:
    """Return what a build of another user, as by sudo, has left and this one cannot replace."""
    paths = [probe.join(root, *name.split("/")) for name in _MADE]
    left = {path: SHUT if probe.is_dir(path) else LOCKED for path in paths if probe.writable(path) is False}
    env_file = probe.join(root, "env_set.sh")  # it is read first, and then replaced
    unread = probe.is_file(env_file) and probe.read(env_file) is None
    return left | ({env_file: LOCKED} if unread else {})


def _is_by_sudo(probe: Probe, root: str) -> bool:
    """Say whether the checkout is of the user who called sudo."""
    owner = probe.owner(root)
    return bool(owner) and str(owner) == probe.variable("SUDO_UID")


def _folders_of(probe: Probe, path: str, root: str) -> list[str]:
    """Return a folder inside the checkout and those around it, the outermost first."""
    found = list[str]()
    while probe.inside(path, root) and path != root and (above := probe.names.parent(path)) != path:
        found.insert(0, path)
        path = above
    return found


def _nearby_checkout(probe: Probe, root: str) -> str:
    """Return where the checkout is, if the user named its parent or a folder inside it."""
    for name in probe.children(root):
        if not _missing_marks(probe, probe.join(root, name)):
            return f"; its folder {name} is one"
    folder = root
    while (above := probe.names.parent(folder)) != folder:
        folder = above
        if not _missing_marks(probe, folder):
            return f"; the folder {folder} around it is one"
    return ""


def _missing_marks(probe: Probe, folder: str) -> list[str]:
    missing = [mark for mark in MARKS if not probe.exists(probe.join(folder, mark))]
    # setup.py is read last: a folder that lacks more than version.txt is no checkout.
    return [] if missing == ["version.txt"] and _setup_version(probe, folder) else missing


def look_at_version(root: str, probe: Probe | None = None) -> str | None:
    """Return the version that a checkout gives itself; None where it says none."""
    probe = probe or Probe()
    path = probe.join(root, "version.txt")
    if not probe.exists(path):
        return _setup_version(probe, root)
    # A link may lead to any file, whose first word would be in the facts.
    if not probe.inside(probe.realpath(path), root):
        return None
    words = (probe.read(path) or "").split()
    return " ".join(words)[:200] or None  # setup.py takes all that is in it


def _setup_version(probe: Probe, root: str) -> str | None:
    path = probe.join(root, "setup.py")
    text = probe.read(path) if probe.inside(probe.realpath(path), root) else None
    found = _SETUP_VERSION.search(text or "")
    return found[1] if found else None


def _digests(probe: Probe, root: str, front_end: Sequence[str]) -> dict[str, str]:
    """Return the first 16 hex digits of the SHA-256 of each file that decides how a build is configured.

    With the line ends of Linux: git's core.autocrlf changes the bytes of a file and nothing else.
    """
    names = (*DIGESTED, *(name for pattern in front_end for name in _files_of_pattern(probe, root, pattern)))
    contents = {name: probe.read_bytes(probe.join(root, name)) for name in dict.fromkeys(names)}
    return {
        name: hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()[:16]
        for name, data in contents.items()
        if data is not None
    }


def _files_of_pattern(probe: Probe, root: str, pattern: str) -> list[str]:
    """Return the files that match a pattern, relative to the root."""
    folder, slash, last = pattern.rpartition("/")
    if "*" not in last:
        return [pattern]
    return [
        f"{folder}{slash}{name}"
        for name in probe.children(probe.join(root, folder))
        if fnmatch.fnmatchcase(name, last)
    ]


# ---------------- the build system, by pyproject.toml, never by the version number


class Project(NamedTuple):
    """The fields of `Tree` about pyproject.toml; `era` is None for an unknown build system."""

    problem: str | None = None
    era: Era | None = None
    backend: str | None = None
    requires: tuple[str, ...] = ()
    build_dir: str | None = None
    asks: tuple[str, ...] = ()
    depends: tuple[str, ...] | None = None


def look_at_pyproject(probe: Probe, root: str) -> Project:
    """Read pyproject.toml; without one (or without a backend in it) setup.py means setuptools.

    `build_dir` is absolute; None where the build system chooses it by a pattern.
    """
    text = probe.read(probe.join(root, PROJECT)) or ""
    try:
        data = parse_toml(text)
    except Malformed as error:
        return Project(problem=f"{PROJECT} cannot be read: {error}")
    system = as_table(data.get("build-system"))
    backend = system.get("build-backend")
    backend = backend if isinstance(backend, str) else None
    requires = texts_in(system.get("requires"))
    setup_py = probe.is_file(probe.join(root, "setup.py"))
    era = _era(backend, requires, bool(system.get("backend-path")), setup_py)
    build_dir = _build_dir(data, era)
    if build_dir is not None:
        build_dir = probe.names.normal(probe.join(root, build_dir))
    return Project(
        era=era,
        backend=backend,
        requires=requires,
        build_dir=build_dir,
        asks=build_requirements(probe, root, data),
        depends=install_requirements(probe, root, data),
    )


def _era(backend: str | None, requires: tuple[str, ...], in_tree: bool, setup_py: bool) -> Era | None:
    if backend is None:
        return "setuptools" if setup_py else None
    if backend.startswith("setuptools.build_meta"):
        return "setuptools"
    if backend == "scikit_build_core.build":
        return "scikit-build-core"
    names = {re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0] for text in requires}
    built_on = {re.sub(r"[-_.]+", "-", name).lower() for name in names}
    return "scikit-build-core" if in_tree and "scikit-build-core" in built_on else None


def _build_dir(data: Mapping[str, object], era: Era | None) -> str | None:
    """Return the build folder in pyproject.toml, relative to the root or absolute."""
    if era == "setuptools":
        return "build"
    folder = as_table(as_table(data.get("tool")).get("scikit-build")).get("build-dir")
    if era is None or not isinstance(folder, str) or not folder or "{" in folder:
        return None
    return folder


# ---------------- git: the commit, and whether tracked files were changed


def read_git(probe: Probe) -> Probe:
    """Return the probe for git commands that only read names and settings."""
    return replace(probe, environ=guard.environment(probe.environ) | guard.WITHOUT_SERVERS)


def hold_git(probe: Probe, ask: Sequence[str]) -> Probe | None:
    """Return the probe for git commands, in which the repository's settings start no program.

    `ask` is git with the folder of the query. Missing objects are not fetched (git 2.45). None if git
    cannot read the settings, or they have names that are not UTF-8.
    """
    answer = read_git(probe).run((*ask, *guard.QUESTION))
    if answer and (answer.rc != 0 or "\ufffd" in answer.stdout):
        return None
    text = answer.stdout if answer else ""  # do not start a git again that did not start or end
    environ = {**probe.environ, "GIT_NO_LAZY_FETCH": "1"}
    return replace(probe, environ=guard.environment(environ, text.encode()) | guard.WITHOUT_SERVERS)


class Repository(NamedTuple):
    """The fields of `Tree` that git reports; None for what it did not report."""

    git_problem: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    tags: tuple[str, ...] | None = None


def _git_problem(output: Output | None, lines: Sequence[str]) -> str | None:
    """Return why git does not answer for a folder with a .git: its first line of an error."""
    if output is None:
        return None
    if len(lines) == 2:
        return f"for git, this folder is a part of the repository {lines[0]}"
    said = next((line for line in output.stderr.splitlines() if line.startswith("fatal: ")), "")
    return said.removeprefix("fatal: ").strip()[:300] or None


def look_at_git(probe: Probe, root: str, *, tags: bool = False, changes: bool = True) -> Repository:
    """Query git, if `root` (a real path) is the top of a repository or worktree.

    The commit's `tags` are read on request only: PyTorch has a hundred thousand tags. So are `changes`: git
    looks at each of its 15,000 files.
    git answers nothing about a folder that belongs to another user (safe.directory).
    """
    if not probe.exists(probe.join(root, ".git")):
        return Repository()
    git = probe.which("git")
    if git is None:
        return Repository()
    # Without this, looking would rewrite .git/index, perhaps while the user's git runs.
    ask = (git, "--no-optional-locks", "-C", root)
    output = read_git(probe).run((*ask, "rev-parse", "--show-toplevel", "HEAD"))
    lines = output.stdout.splitlines() if output and output.rc == 0 else []
    # With a broken .git, git reports the repository around it.
    key = probe.names.key  # git for Windows writes C:/src
    if len(lines) != 2 or key(probe.realpath(probe.names.normal(lines[0]))) != key(root):
        return Repository(git_problem=_git_problem(output, lines))
    git_here = hold_git(probe, ask) if changes else None
    words = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    status = git_here.run((*ask, *words), timeout=30.0) if git_here else None
    dirty = status.stdout.strip() != "" if status and status.rc == 0 else None
    return Repository(commit=lines[1], dirty=dirty, tags=_tags(probe, ask) if tags else None)


def look_at_commit_time(probe: Probe, root: str) -> int | None:
    """Return the commit time of HEAD, in seconds since 1970; None if git fails."""
    git = probe.which("git")
    words = ("--no-optional-locks", "-C", root, "cat-file", "commit", "HEAD")
    output = read_git(probe).run((git, *words)) if git else None
    match = re.search(r"(?m)^committer .* (\d+) [+-]\d{4}$", output.stdout) if output else None
    return int(match[1]) if match else None


def _tags(probe: Probe, ask: tuple[str, ...]) -> tuple[str, ...] | None:
    output = read_git(probe).run((*ask, "tag", "--points-at", "HEAD"))
    return tuple(output.stdout.split()) if output and output.rc == 0 else None


# ---------------- the last build: CMake's cache, our manifest, the editable install

LOCK_NOTE = ".torchbuild/lock.json"  # written by system/lock.py
RECORDS = ("made.json", "before.json")  # written by build/ownership.py
INSTALL_FILE = "torchbuild-install.json"
_LOG_VERSION: Final = re.compile(rb"# ninja log v(\d{1,3})\n")  # kFileSignature in Ninja's src/build_log.cc
# By precedence: values that PyTorch's own build passes come first.
PYTHON_KEYS = ("PYTHON_EXECUTABLE", "Python_EXECUTABLE", "Python3_EXECUTABLE")


def look_at_cache(probe: Probe, build_dir: str | None) -> CMakeCache | None:
    """Return the entries of CMakeCache.txt that show whether the tree still fits; None without the file.

    Paths are as CMake writes them: with / on Windows, too. The checkout's is without links, by which CMake
    may have been started.
    """
    text = probe.read(probe.join(build_dir, "CMakeCache.txt")) if build_dir else None
    if text is None:
        return None
    entries = _cache_entries(text)
    release = [entries.get(f"CMAKE_CACHE_{part}_VERSION") for part in ("MAJOR", "MINOR", "PATCH")]
    program = entries.get("CMAKE_MAKE_PROGRAM")
    return CMakeCache(
        home=_without_links(probe, entries.get("CMAKE_HOME_DIRECTORY")),
        generator=entries.get("CMAKE_GENERATOR"),
        build_type=entries.get("CMAKE_BUILD_TYPE"),
        python=next((entries[key] for key in PYTHON_KEYS if key in entries), None),
        compiler=entries.get("CMAKE_CXX_COMPILER"),
        prefix=entries.get("CMAKE_INSTALL_PREFIX"),
        make_program=program,
        make_version=_version_on_path(probe, program) if program else None,
        # scikit-build-core names Ninja without .exe on Windows.
        make_gone=program is not None and not any(map(probe.exists, (program, f"{program}.exe"))),
        ninja_log=_log_version(probe, build_dir),
        cmake=".".join(part for part in release if part) if all(release) else None,
    )


def _version_on_path(probe: Probe, program: str) -> str | None:
    """Return the version of a program; run only one on PATH: the cache may have come with the checkout."""
    folder = probe.realpath(probe.names.parent(program))
    known = folder in map(probe.realpath, probe.path_folders)
    return version_of(probe, program) if known and probe.program_at(program) else None


def _without_links(probe: Probe, path: str | None) -> str | None:
    real = probe.realpath(path) if path else path
    return path if real is None or probe.names.key(real) == probe.names.key(str(path)) else real


def _log_version(probe: Probe, build_dir: str | None) -> int | None:
    log = probe.read_bytes(probe.join(build_dir, ".ninja_log")) if build_dir else None
    match = _LOG_VERSION.match(log or b"")
    return int(match[1]) if match else None


def _cache_entries(text: str) -> dict[str, str]:
    """Parse KEY:TYPE=VALUE lines with a value; CMake writes X-NOTFOUND for an unsuccessful search."""
    entries = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        key, colon, _ = name.partition(":")
        if equals and colon and not key.startswith(("#", "//")) and value and not value.endswith("NOTFOUND"):
            entries[key] = value
    return entries


class _Check(msgspec.Struct, frozen=True, kw_only=True):
    outcome: str


class _Verification(msgspec.Struct, frozen=True, kw_only=True):
    checks: tuple[_Check, ...]
    left_out: tuple[str, ...] = ()


class _Build(msgspec.Struct, frozen=True, kw_only=True):
    """What the next plan needs of a manifest of any version."""

    result: str
    inputs: Mapping[str, str] = msgspec.field(default_factory=dict)
    finished: str | None = None
    verify: _Verification | None = None


def look_at_manifest(probe: Probe, build_dir: str | None) -> Previous | None:
    """Return the last build by its manifest; None if there is none or it is broken.

    The record of 0.1.0 counts until a newer build replaces it; the manifest written with it has no inputs.
    """
    if not build_dir:
        return None
    record = probe.join(build_dir, RECORD_FILE)
    path = record if probe.exists(record) else probe.join(build_dir, MANIFEST_FILE)
    build = probe.value(_Build, path)
    if build is None:
        return None
    return Previous(
        result=build.result,
        inputs=build.inputs,
        finished=build.finished,
        verified=build.verify is not None and all(each.outcome != "failed" for each in build.verify.checks),
        left_out=build.verify.left_out if build.verify else (),
    )


def look_at_running(probe: Probe, root: str) -> Running | None:
    """Return the running command, by the note of the checkout's lock, which a killed one leaves behind."""
    running = probe.value(Running, probe.join(root, LOCK_NOTE))
    try:
        since = datetime.fromisoformat(running.started).timestamp() if running else 0.0
    except ValueError:
        return None
    return running if running and probe.works(running.pid, running.host, since) else None


def look_at_install(probe: Probe, build_dir: str | None) -> Mapping[str, str] | None:
    """Return the inputs of the last editable install that this tool finished; None without one."""
    inputs = probe.table(probe.join(build_dir, INSTALL_FILE)).get("inputs") if build_dir else None
    good = isinstance(inputs, dict) and all(isinstance(value, str) for value in inputs.values())
    return inputs if good else None


# ---------------- the user's own changes: `*.patch` and `*.diff` of a folder, in the order of their names

PATCH_ENDINGS = (".patch", ".diff")


def patch_folders(named: str | None, settings: str | None, source: str) -> tuple[str, ...]:
    """Return the folders of the user's patches.

    Without one that is named: `patches` next to torchbuild.toml, and in the checkout.

    Raises:
        UsageError: there is no such folder as the one that was named.
    """
    if not named:
        own = (str(Path(settings).parent / "patches"),) if settings else ()
        return (*own, str(Path(source, "patches")))
    if Path(named).expanduser().is_dir():
        return (named,)
    raise UsageError(
        f"{flag_name('patch_dir')}: there is no folder {named}",
        next_step="Name the folder that holds the *.patch and *.diff files.",
    )


def look_at_patches(folders: Sequence[str]) -> tuple[OwnPatch, ...]:
    """Return the patches in these folders, one folder after the other, each folder once."""
    probe = Probe()
    patches: list[OwnPatch] = []
    for folder in dict.fromkeys(probe.realpath(probe.absolute(folder)) for folder in folders):
        names = (name for name in probe.children(folder) if name.lower().endswith(PATCH_ENDINGS))
        patches += [_read_patch(probe, name, probe.join(folder, name)) for name in names]
    return tuple(patches)


def _read_patch(probe: Probe, name: str, path: str) -> OwnPatch:
    data = probe.read_bytes(path)
    if data is None:
        return OwnPatch(name=name, path=path, problem="cannot be read")
    try:
        text = decode_text(data)
    except UnicodeDecodeError as error:
        return OwnPatch(name=name, path=path, problem=f"is not UTF-8 text: {error.reason}")
    if text.count("\r\n") == text.count("\n"):  # as git checks it out on Windows
        text = text.replace("\r\n", "\n")
    return OwnPatch(name=name, path=path, text=text)

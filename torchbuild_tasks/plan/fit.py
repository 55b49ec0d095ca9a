"""Check whether the machine and the checkout are fit for a build, where it belongs to no single choice.

The last checks are for Windows alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from packaging.version import Version

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.catalog.match import admits, applies, parse_version, preset_rows, series, torch_row
from torchbuild_tasks.catalog.rows import CharacterRow
from torchbuild_tasks.model import Finding, Need, Room
from torchbuild_tasks.model.facts import LOCKED, NOT_CHECKED_OUT, SHUT
from torchbuild_tasks.plan.decisions import Decisions
from torchbuild_tasks.plan.env_lines import LINE_BYTES
from torchbuild_tasks.plan.environment import brought_cmake, first_python
from torchbuild_tasks.plan.packages import OWN_BINUTILS
from torchbuild_tasks.plan.question import BOM, Question
from torchbuild_tasks.plan.submodules import check_submodules
from torchbuild_tasks.plan.torch_ref import check_torch
from torchbuild_tasks.plan.variables import decide, is_off
from torchbuild_tasks.text.paths import is_inside
from torchbuild_tasks.text.words import as_word, first_few, in_turn

# Where a compiler's libraries are found: by the loader, or by what the compiler itself writes.
OF_THE_SYSTEM = ("/usr", *OWN_BINUTILS)
ARCHITECTURES = ("x86_64", "aarch64")
SYSTEMS = ("linux", "windows")
SAMPLE_DISK = 0.5
# GiB for temporary files of compilers, and for what pip unpacks: an estimate on the safe side.
TEMPORARY = 1.0
SMALLEST = "minimal"
WITH_DEBUG_INFO = ("Debug", "RelWithDebInfo")
# Bytes with which no build that has something to compile ends well.
FULL = 1 << 20
EMPTY = hashlib.sha256(b"").hexdigest()[:16]  # as the digests of a tree have it


def check_machine_and_tree(decisions: Decisions, needs: Need) -> tuple[Finding, ...]:
    """Return the findings that do not belong to a single choice; `needs` is what the tree needs."""
    question, variables = decisions.question, decisions.variables
    if question.facts.tree.problem:
        return (*_check_tree(question, variables), *_check_arch(question), *_check_cut(question))
    return (
        *_check_facts(question),
        *_check_tree(question, variables),
        *check_torch(question),
        *_check_series(question),
        *check_submodules(question, variables),
        *_check_arch(question),
        *_check_platform(question, variables, decisions.cuda.toolkit.version),
        *_check_cmake(question),
        *_check_library(decisions),
        *_check_rooms(question),
        *check_noexec(question),
        *_check_disk(question, decisions.build_type.value, needs),
        *_check_cut(question),
    )


def _check_facts(question: Question) -> tuple[Finding, ...]:
    """Say of a plan for another machine which parts are from where."""
    request, root = question.request, question.facts.tree.root
    if not (request.facts and request.source):
        return ()
    text = (
        f"planned for the machine in {request.facts} and the checkout {root} of this machine, not built yet; "
        "its paths are those of this machine, and differ on the other"
    )
    return (Finding.ok("facts", text),)


def _put_back(question: Question, file: str) -> str:
    line = question.line("git", "-C", question.facts.tree.root, "checkout", "HEAD", "--", file)
    return f"Put that file back; in a git checkout: {line}. Or get another one: torchbuild source get"


def _check_tree(question: Question, variables: Mapping[str, str]) -> Iterator[Finding]:
    tree = question.facts.tree
    if tree.problem:
        fix = "Name a PyTorch checkout: --source PATH, or get one: torchbuild source get"
        if tree.problem == NOT_CHECKED_OUT:
            line = question.line("git", "-C", tree.root, "checkout", "HEAD", "--", ".")
            fix = f"{line}; or {fix[0].lower()}{fix[1:]}"
        elif tree.broken:
            fix = _put_back(question, tree.broken)
        yield Finding.error("source", f"{tree.root}: {tree.problem}", fix)
        return
    if tree.era == "setuptools" and tree.digests.get("setup.py") == EMPTY:
        yield Finding.error(
            "source",
            f"setup.py in {tree.root} is empty: it builds nothing, and says nothing",
            _put_back(question, "setup.py"),
        )
    yield from check_repository(question)
    if tree.era is None:
        text = f"{tree.root} has neither a known build-backend in pyproject.toml nor a setup.py"
        yield Finding.error("era", text, "Check out a complete PyTorch source tree.")
    yield from _check_characters(question, variables)
    yield from check_writable(question)


def _check_library(decisions: Decisions) -> Iterator[Finding]:
    """Report a GCC outside of the system, whose C++ library no program finds when torch runs.

    Red Hat's toolsets link what the system's lacks statically, and conda's and Nix's compilers write where
    theirs is.
    """
    question, tool = decisions.question, decisions.compilers.tool
    folder, _, name = str(tool.path if tool else "").rpartition("/bin/")
    version = parse_version(tool.version) if tool else None
    conda = [python.prefix for python in question.facts.pythons if python.environment == "conda"]
    places = (folder, *(tool.aliases if tool else ()))
    ours = any(map(_is_of_system, places)) or folder in conda or "-conda-" in name
    if tool is None or tool.name != "g++" or version is None or not folder or ours:
        return
    system = _system_library(question)
    if (system and version.major <= system) or tool.loaded or _links_library(question, folder):
        return
    own = f"of GCC {system}" if system else "if that is older"
    text = f"{tool.path} ({tool.version}) is not the system's. Torch is linked with its libstdc++, and when "
    text += f'it runs the loader takes the system\'s ({own}): "version GLIBCXX_… not found"'
    fix = f"Wherever torch runs: export LD_LIBRARY_PATH={as_word(folder)}/lib64:$LD_LIBRARY_PATH"
    python = first_python(question)  # conda's brings a newer libstdc++ along
    sure = system and tool.loaded is False and not (python and python.environment == "conda")
    yield Finding(id="cxx-library", status="warn" if sure else "unknown", text=text, fix=fix)


def _is_of_system(path: str) -> bool:
    """Say whether a compiler is of the distribution: /usr/local is GCC's own place, and its users'."""
    return path.startswith(OF_THE_SYSTEM) and not is_inside(path, "/usr/local")


def _system_library(question: Question) -> int:
    """Return the GCC whose libstdc++ the system has, 0 for unknown; Ubuntu has that of the next GCC."""
    host = question.facts.host
    found = (each for each in question.facts.compilers if f"{each.path}".startswith("/usr/bin/g++"))
    majors = [version.major for each in found if (version := parse_version(each.version))]
    ahead = "ubuntu" in (f"{host.distribution}".partition(" ")[0].casefold(), *host.like)
    return max(majors) + ahead if majors else 0


def _links_library(question: Question, folder: str) -> bool:
    """Say whether flags or the loader's path lead to a compiler's libraries, or torch holds them itself."""
    names = ("LDFLAGS", "CMAKE_SHARED_LINKER_FLAGS")
    flags = (choice.value for name in names if (choice := decide(question, name)))
    path = question.facts.environ.get("LD_LIBRARY_PATH", "")  # for facts that say nothing of the loader
    return any(folder in value or "-static-libstdc++" in value for value in (*flags, path))


def _check_characters(question: Question, variables: Mapping[str, str]) -> Iterator[Finding]:
    """Report each way in which the characters of the checkout's path break this build, once."""
    tree, host, request = question.facts.tree, question.facts.host, question.request
    generates = not tree.sample and (request.mixed or not request.from_wheel)
    told = set()
    for row in question.catalog.character:
        here = row.os in ("", host.os) and row.kernel in (host.kernel or "") and row.character in tree.root
        here = here and (generates or not row.upstream) and row.breaks not in told
        if here and applies(row.torch, question.version) and _is_on(row, variables):
            told.add(row.breaks)
            text = f"'{tree.root}' has {row.character!r} in its path: {row.breaks}"
            yield Finding(id="path", status=row.status, text=text, fix=row.fix)


def check_writable(question: Question) -> Iterator[Finding]:
    """Report what stands where a build writes, and what it cannot write to."""
    tree = question.facts.tree
    if tree.by_sudo and question.facts.host.root:
        text = f"this runs by sudo, and {tree.root} is your own: what is written there and in the caches of "
        text += "your home folder will be root's, and you cannot build there without sudo any more"
        yield Finding.warn("writable", text, "Run it without sudo.")
    shut = [path for path, what in tree.blocked.items() if what in (SHUT, LOCKED)]
    if shut and tree.writable is not False:  # a build with sudo leaves them so, and others below them
        other = "as by sudo" if question.facts.windows is None else "as an administrator's"
        text = f"you cannot write to {first_few(shut)}, which a build of another user has made, {other}, and "
        text += "the build writes there"
        yield Finding.error("writable", text, _take_over(question, shut))
    for path, what in tree.blocked.items():
        if path in shut:
            continue
        text = f"{path} is {what}, where the build makes a folder"
        fix = f"Remove it: {question.line('rm' if question.facts.windows is None else 'del', path)}"
        yield Finding.error("writable", text, fix)
    if tree.writable is False:
        text = (
            f"{tree.root} cannot be written to; a build writes its tree, its env file and its manifest there"
        )
        fix = "Use a checkout of your own, mount its file system writable, or make its folders writable."
        yield Finding.error("writable", text, fix)


def _take_over(question: Question, shut: list[str]) -> str:
    roots = [question.facts.tree.root]
    roots += [path for path in shut if not is_inside(path, roots[0])]
    if question.facts.windows is None:
        return f"Make all of it yours: sudo chown -R $(id -u) {question.line(*roots)}"
    commands = [question.line("takeown", "/r", "/f", path) for path in roots]
    return f"Make all of it yours, as administrator: {in_turn(*commands, windows=True)}"


def check_repository(question: Question) -> Iterator[Finding]:
    """Warn of a .git that git cannot read: torch gets no commit, and no submodule is compared."""
    tree = question.facts.tree
    if not tree.git_problem:
        return
    text = f"there is a .git in {tree.root} that git cannot read, so the built torch has no commit: "
    text += tree.git_problem
    fix = f"See what is wrong: {question.line('git', '-C', tree.root, 'status')}"
    if "dubious ownership" in tree.git_problem:
        fix = question.line("git", "config", "--global", "--add", "safe.directory", tree.root)
    elif re.search(r"[/\\]worktrees[/\\]", tree.git_problem):
        line = question.line("git", "worktree", "repair", tree.root)
        fix = f"In the main checkout, of which this is a worktree: {line}"
    elif "unknown revision" in tree.git_problem or "ambiguous argument 'HEAD'" in tree.git_problem:
        text = f"the git repository in {tree.root} has no commit, so the built torch has none, either"
        fix = "Commit what is there (git add -A; git commit), or get a checkout: torchbuild source get"
    yield Finding.warn("git", text, fix)


def _is_on(row: CharacterRow, variables: Mapping[str, str]) -> bool:
    """Say whether a character is a problem of this build: those of a switch are where it is on."""
    cuda, unless = (variables.get(name, "0") for name in ("USE_CUDA", row.unless))
    return not row.switch or not (is_off(cuda) or is_off(variables.get(row.switch)) or not is_off(unless))


def _check_series(question: Question) -> tuple[Finding, ...]:
    row, exact = torch_row(question.catalog, question.read_version)
    named = question.facts.tree.version
    if question.read_version is None:
        text = (
            f"the version {named!r} cannot be read" if named else "this checkout says no version of its own"
        )
        text += f"; planned like torch {row.version}"
        if decide(question, "PYTORCH_BUILD_VERSION"):  # the package gets that one
            return (Finding.unknown("torch-version", text),)
        text += (
            ". Setuptools takes no package whose version is none by PEP 440, and says so after the compile"
        )
        fix = "Put back the version.txt of your release"
        fix += ": git checkout -- version.txt" if question.facts.tree.git else "."
        return (Finding.warn("torch-version", text, fix),)
    if named and named.startswith(BOM):
        text = (
            "version.txt begins with a byte order mark, which setup.py takes into the version of the package"
        )
        fix = "Save it as UTF-8 without that mark."
        return (Finding.warn("torch-version", text, fix),)
    if not exact:
        text = f"torch {question.version} is not known yet; planned like {row.version}"
        return (Finding.unknown("torch-version", text),)
    return ()


def _check_arch(question: Question) -> tuple[Finding, ...]:
    arch, system = question.facts.host.arch, question.facts.host.os
    if system not in SYSTEMS:
        text = f"this machine has {system}; builds are planned for {' and '.join(SYSTEMS)} only"
        fix = "Build on one of these, or as upstream's README says for yours."
        return (Finding.error("arch", text, fix),)
    if arch in ARCHITECTURES or any(row.arch == arch for row in question.catalog.platform):
        return ()
    text = f"this machine is {arch}; PyTorch builds on {' and '.join(ARCHITECTURES)}"
    return (Finding.error("arch", text, "Build on a 64-bit x86 or Arm machine."),)


def _check_platform(
    question: Question, variables: Mapping[str, str], toolkit: Version | None
) -> tuple[Finding, ...]:
    """Report the rows about this system on this processor, where not every torch is built on it."""
    host, cuda = question.facts.host, not is_off(variables.get("USE_CUDA", "0"))
    managed = str(question.value("cuda_toolkit", "")).startswith("pypi:")
    rows = [
        row
        for row in question.catalog.platform
        if row.os == host.os
        and row.arch in ("", host.arch)
        and (host.libc or "").startswith(row.libc)
        and (host.kernel or "").startswith(row.kernel)
        and (host.distribution or "").startswith(row.distribution)
        and (managed or not row.managed)
        and applies(row.torch, question.version)
        and (cuda or not row.cuda)
        and (not row.toolkit or admits(row.toolkit, toolkit))
        and not any(is_off(variables.get(name, "1")) for name in row.on)
        and all(is_off(variables.get(name, "0")) for name in row.off)
    ]
    states = {row.status for row in rows}
    worst = [row for row in rows if row.status == "error"] or rows  # the others only say less of it
    if "warn" in states:
        worst = [row for row in worst if row.status != "unknown"]
    return tuple(Finding(id="platform", status=row.status, text=row.text, fix=row.fix) for row in worst)


def _check_rooms(question: Question) -> Iterator[Finding]:
    """Report too little space for temporary files on another machine; of this one the doctor says it."""
    health = question.facts.health
    for room in health.rooms if health and question.request.facts else ():
        if room.purpose == "tmp" and room.free is not None and room.free < TEMPORARY * GIB:
            text = f"{_size(room.free)} free in {room.path}, where compilers and pip write: "
            text += f"they may need {TEMPORARY:g} GiB"
            fix = f"Set {temporary_names(question)} to another folder."
            yield Finding.warn("disk", text, fix)


def check_noexec(question: Question) -> Iterator[Finding]:
    """Report folders from which nothing can be started: the build's, and a known one of temporary files."""
    disk, health = question.facts.disk, question.facts.health
    here = Room(purpose="build", path=disk.path, mount=disk.mount, noexec=disk.noexec)
    rooms = health.rooms if health else (here,)
    for room in rooms if question.facts.host.os != "windows" else ():
        if not room.noexec or room.purpose not in ("build", "tmp"):
            continue
        build = room.purpose == "build"
        text = f"{room.mount} is mounted noexec: nothing that is built in {room.path} can be started"
        text += " or loaded" if build else "; configure tests and what pip builds may want to"
        fix = "Use a checkout on another file system."
        fix = fix if build else f"Set {temporary_names(question)} to another folder."
        yield Finding(id="noexec", status="error" if build else "warn", text=text, fix=fix)


def temporary_names(question: Question) -> str:
    """Return the variables that name the folder for temporary files there."""
    return "TMP and TEMP" if question.facts.host.os == "windows" else "TMPDIR"


def _check_cmake(question: Question) -> tuple[Finding, ...]:
    """Say that a CMake cannot configure this tree and which one does; the user need not act."""
    if admits(question.row.cmake, brought_cmake(question)):
        return ()
    for tool in question.facts.tools:
        if tool.name == "cmake" and tool.path and admits(question.row.cmake, tool.version) is False:
            text = (
                f"{tool.path} is CMake {tool.version}, and torch {question.row.version} "
                f"needs CMake {question.row.cmake}, which is installed from PyPI into the Python of the build"
            )
            return (Finding.ok("cmake", text),)
    return ()


def _check_cut(question: Question) -> tuple[Finding, ...]:
    """Report programs that did not answer in time; their answers are missing from the facts."""
    if not question.facts.cut:
        return ()
    text = f"{', '.join(question.facts.cut)} did not answer in time (stopped, and treated as not installed)"
    fix = "Start it by hand to see why; a machine that just woke up may only need a second try."
    return (Finding.warn("probe", text, fix),)


def needed_disk(question: Question, build_type: str, preset: str = "") -> float:
    """Return the GiB that the build tree will take, by the row of its preset, or of another one.

    Debug information that the preset does not have takes as many times more as between `dev` and `debug`.
    """
    if question.facts.tree.sample:
        return SAMPLE_DISK
    rows = preset_rows(question.catalog, preset or question.preset.value, question.facts.host.os)
    if not rows:
        return 0.0
    more = build_type in WITH_DEBUG_INFO and rows[-1].build_type not in WITH_DEBUG_INFO
    disks = {row.name: row.disk for row in question.catalog.preset if not row.os}
    return float(round(rows[-1].disk * (disks["debug"] / disks["dev"] if more else 1)))


def _size(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size >> 20} MiB"


def _check_disk(question: Question, build_type: str, needs: Need) -> tuple[Finding, ...]:
    disk, need = question.facts.disk, needed_disk(question, build_type)
    if disk.free is None:
        return (Finding.unknown("disk", f"free space on {disk.path} is not known"),)
    free = disk.free / GIB
    if free >= need:
        return (Finding.ok("disk", f"{free:.0f} GiB free on {disk.mount or disk.path}, {need:g} needed"),)
    text = f"{_size(disk.free)} free on {disk.mount or disk.path}, and this build needs about {need:g} GiB"
    fix = "Free some space"
    built = question.facts.tree.previous is not None
    if built and needs == "nothing":  # by its settings; whether a source was edited is seen when it is built
        text = f"{_size(disk.free)} free on {disk.mount or disk.path}: "
        text += "a source that was edited since the last build may not fit there once it is compiled"
    elif free >= needed_disk(question, build_type, SMALLEST):
        fix += f", or choose a smaller preset: --preset {SMALLEST}"
    elif build_type in WITH_DEBUG_INFO:
        fix += ", or build without debug information, which takes less than a third"
    # A tree that was built before already holds most of what it needs. Not for a clean, which frees what it
    # needs, and not where nothing may be left to write.
    full = disk.free < FULL and needs in ("build", "reconfigure")
    return (Finding(id="disk", status="warn" if built and not full else "error", text=text, fix=fix),)


# Beyond it Ninja without long paths ends in "manifest 'build.ninja' still dirty after 100 tries"
# (pytorch issue 134956).
LONGEST_CHECKOUT = 52
# Of PATH, with which Visual Studio's batch files and ours still write it anew in one line of cmd. Theirs put
# a dozen folders in front (1,000 to 2,000 characters, UNCONFIRMED).
LONGEST_PATH = LINE_BYTES - 2_000


def check_windows(decisions: Decisions) -> tuple[Finding, ...]:
    """Check path lengths, git and debug libraries on Windows, and give advice about the antivirus."""
    question = decisions.question
    if question.facts.windows is None:
        return ()
    return (
        *_check_length(question),
        *_check_path_list(question),
        *_check_git(question),
        *_check_debug(decisions),
        _antivirus(question),
    )


def _check_length(question: Question) -> Iterator[Finding]:
    root, windows = question.facts.tree.root, question.facts.windows
    if windows and windows.long_paths is not True:
        known = "off" if windows.long_paths is False else "not known"
        text = f"LongPathsEnabled is {known}: programs cannot use paths of more than 260 characters"
        fix = (
            "As administrator: reg add HKLM\\SYSTEM\\CurrentControlSet\\Control\\FileSystem "
            "/v LongPathsEnabled /t REG_DWORD /d 1 /f"
        )
        yield Finding.warn("long-paths", text, fix)
    if len(root) > LONGEST_CHECKOUT:
        text = (
            f"{root} has {len(root)} characters; beyond {LONGEST_CHECKOUT} Ninja may end in "
            "\"manifest 'build.ninja' still dirty after 100 tries\""
        )
        yield Finding.warn("path-length", text, "Use a short folder, such as C:\\pt.")


def _check_path_list(question: Question) -> Iterator[Finding]:
    windows = question.facts.windows
    characters = (windows and windows.path_characters) or 0
    if characters > LONGEST_PATH:
        text = (
            f"PATH has {characters:,} characters; a line of cmd, in which the compiler's folders are put in "
        )
        text += f'front of it, has at most {LINE_BYTES:,} ("The input line is too long")'
        fix = "Begin in a new prompt, where no vcvarsall.bat has run, or take folders out of PATH."
        yield Finding.warn("path-list", text, fix)


def _check_git(question: Question) -> tuple[Finding, ...]:
    windows = question.facts.windows
    if not question.facts.tree.git or (windows and windows.git_long_paths):
        return ()
    text = "git's core.longpaths is not on; some submodules have paths that it cannot check out without"
    fix = "git config --global core.longpaths true"
    return (Finding.warn("git-long-paths", text, fix),)


def _check_debug(decisions: Decisions) -> tuple[Finding, ...]:
    python = decisions.python.python
    if decisions.build_type.value != "Debug" or python is None or python.debug_library is not False:
        return ()
    library = f"python{series(python.version).replace('.', '')}_d.lib"
    text = f"a Debug build links {library}, and {python.executable} does not have it (LNK1104)"
    fix = (
        'Use --build-type RelWithDebInfo, or add "Download debug binaries" with the installer of python.org.'
    )
    return (Finding.error("python-debug", text, fix),)


def _antivirus(question: Question) -> Finding:
    """Give advice about the antivirus; the machine's owner decides what it excludes."""
    root = question.facts.tree.root
    text = "an antivirus reads every object file as it is written, which slows the build; where you may, "
    text += f"as administrator in PowerShell, Add-MpPreference -ExclusionPath '{root}' leaves them out"
    return Finding.ok("antivirus", text)

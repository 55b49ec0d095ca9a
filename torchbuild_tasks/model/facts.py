"""Facts about the machine and the tree, without conclusions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from torchbuild_tasks.model.cuda import Cuda, Library
from torchbuild_tasks.model.history import PastPeak

Era = Literal["setuptools", "scikit-build-core"]

FACTS_SCHEMA = 1
# What a `problem` of a tree, or one of its `blocked`, says where a plan knows the way out.
NOT_CHECKED_OUT: Final = "a git repository whose files are not checked out"
SHUT: Final = "a folder that you cannot write to"
LOCKED: Final = "a file that you cannot write to"

# What a machine can have; a dump that was edited by hand may say anything.
Bytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
Cores = Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]


class Tool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that was searched for; `path` is None if it was not found.

    `found_via` says how ("PATH", "environment CXX" ...), `looked` where, `aliases` other
    paths to it; `version` is None when it did not say one that could be read. `by_any_python` is a script
    (or a launcher of one) that starts whichever python is first on PATH. `libc` is the C library whose
    headers a compiler takes, as Host.libc, where it has its own. `loaded` says of a GCC from outside of the
    system whether the loader finds the libraries beside it.
    """

    name: str
    path: str | None = None
    version: str | None = None
    found_via: str | None = None
    looked: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    by_any_python: bool = False
    libc: str | None = None
    loaded: bool | None = None


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The machine: `os` is linux or windows, `arch` x86_64, aarch64 or what uname says.

    `like` are the identifiers (os-release) of the distribution and of those that it is made from, the nearest
    first. `lc_all` is LC_ALL, where it is set. `root`: this is a POSIX system, and who asks is its root.
    """

    os: str
    arch: str
    distribution: str | None = None
    like: tuple[str, ...] = ()
    kernel: str | None = None
    libc: str | None = None
    lc_all: str | None = None
    root: bool = False


class Cpu(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cores of the machine, cores this process may run on, and the cgroup quota in cores."""

    cores: Cores
    affinity: Cores | None = None
    quota: Annotated[float, msgspec.Meta(gt=0)] | None = None
    quota_via: str | None = None


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes: of the machine, free for new programs, and the tightest limit with its use.

    A limit is a cgroup's, or that of commit on Windows (memory and page files).
    """

    total: Bytes | None = None
    available: Bytes | None = None
    swap_free: Bytes | None = None
    limit: Bytes | None = None
    used_in_limit: Bytes | None = None
    limit_via: str | None = None


class Disk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Free and total bytes of the mount that holds `path`.

    `noexec` says whether no program may be started from it; None: not known.
    """

    path: str
    mount: str | None = None
    free: Bytes | None = None
    total: Bytes | None = None
    noexec: bool | None = None


class Python(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An interpreter that could get torch.

    `environment` is venv, conda or base; `managed` is true for a venv that this tool
    made inside the checkout, `tool` for the environment that it is installed in itself.
    `problem` says why the interpreter could not be read. `torch` is the installed torch
    distribution's version, `torch_from` the folder an editable install of it points to, `half_torch` a folder
    of that name among the packages that no distribution has.
    `debug_library` says whether python3xx_d.lib is there (Windows only; a Debug build
    links it).
    """

    executable: str
    found_via: str
    version: str | None = None
    implementation: str | None = None
    abi: str | None = None
    bits: int | None = None
    environment: Literal["venv", "conda", "base"] | None = None
    managed: bool = False
    tool: bool = False
    externally_managed: bool = False
    prefix: str | None = None
    scripts: str | None = None
    include: str | None = None
    headers: bool | None = None
    venv: bool | None = None
    debug_library: bool | None = None
    packages: Mapping[str, str] = msgspec.field(default_factory=dict)
    torch_from: str | None = None
    half_torch: str | None = None
    problem: str | None = None

    @property
    def machine(self) -> str:
        """Return the processor in its ABI tag (cp312-win_amd64), by the name in the facts; else ""."""
        named = re.search(r"-(?:win_)?(x86_64|amd64|aarch64|arm64)(?:-|$)", self.abi or "")
        return {"amd64": "x86_64", "arm64": "aarch64"}.get(named[1], named[1]) if named else ""

    @property
    def free_threaded(self) -> bool:
        """Say whether its ABI tag (cpython-313t-x86_64-linux-gnu) is of a build without the GIL."""
        return re.search(r"\dt(?:-|$)", self.abi or "") is not None


class CMakeCache(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The relevant entries of an existing CMakeCache.txt; `prefix` is the target of its install rules.

    `cmake` is the version of the CMake that configured it, `make_program` the path of its Ninja, whose
    `make_version` is known if the program is on PATH; with `make_gone` the program is missing.
    `ninja_log` is the version of the format of Ninja's log.
    """

    home: str | None = None
    generator: str | None = None
    build_type: str | None = None
    python: str | None = None
    compiler: str | None = None
    prefix: str | None = None
    cmake: str | None = None
    make_program: str | None = None
    make_version: str | None = None
    make_gone: bool = False
    ninja_log: int | None = None


class Previous(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of the last build's manifest that the next plan needs; `left_out` are checks not run."""

    result: str
    inputs: Mapping[str, str] = msgspec.field(default_factory=dict)
    finished: str | None = None
    verified: bool = False
    left_out: tuple[str, ...] = ()


class Switch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An option() of the checkout's CMake files.

    `default` is what it is set to, `needs` the condition of a cmake_dependent_option: where that does not
    hold, the switch is off whatever it is set to. `place` is file and line.
    """

    name: str
    default: str
    place: str
    needs: str = ""


class TreeReads(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Variables that the checkout's files read: CMake's, and those of the environment (`direct`).

    `flags` are boolean variables of setup.py, `values` the choices of a variable.
    """

    names: tuple[str, ...] = ()
    direct: tuple[str, ...] = ()
    switches: tuple[Switch, ...] = ()
    flags: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Running(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The command that is running in a checkout, by its lock's note; `started` is in ISO 8601."""

    command: str
    user: str
    host: str
    pid: int
    started: str

    def __str__(self) -> str:
        """Return its description for errors and findings."""
        return f"`{self.command}` of {self.user} on {self.host}, process {self.pid}, since {self.started}"

    @property
    def said(self) -> str:
        """A sentence about it, for other commands in the checkout."""
        return f"{self} still works on this checkout: what is shown here may be unfinished"


class Tree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The source tree: `problem` is None for a readable torch checkout, `broken` the file that it is about.

    `installed` are the inputs of the last editable install that was finished, if that was ours.

    `empty` lists third_party folders that .gitmodules, setup.py's own check or the folder itself names and
    that hold nothing; `absent` those that only rows name, in a tree without .gitmodules; `linkless` those of
    both that git could not fetch, because its index has no submodule there. `checked` are the folders that
    setup.py looks into itself, None where it could not be read; `torn` those of them that hold something,
    and nothing that it takes for a submodule. `git` says whether there is a .git, and
    `git_problem` why git cannot read that one, in its own words. `commit` is None outside git;
    `dirty` counts tracked files only.
    `recorded` says whether a build of this tool ever began here, so that a clean knows what is of builds.
    `running` is a command of this tool that works on it just now; None also for one that was killed.
    `blocked` says by their paths what stands where a build makes its folders and files. `by_sudo`: sudo was
    called by whose checkout it is.
    `tags` are the commit's own, `committed` its time in seconds since 1970, None if it was not read.
    `requires` is what its build system needs,
    `asks` what it tells its builders to install, `depends` what the built torch asks for when it is
    installed; None where only running its code could tell.
    """

    root: str
    problem: str | None = None
    broken: str = ""
    looked: tuple[str, ...] = ()
    sample: bool = False
    version: str | None = None
    era: Era | None = None
    backend: str | None = None
    build_dir: str | None = None
    requires: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    depends: tuple[str, ...] | None = None
    git: bool = False
    git_problem: str | None = None
    commit: str | None = None
    committed: int | None = None
    dirty: bool | None = None
    tags: tuple[str, ...] | None = None
    empty: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    linkless: tuple[str, ...] = ()
    checked: tuple[str, ...] | None = None
    torn: tuple[str, ...] = ()
    writable: bool | None = None
    blocked: Mapping[str, str] = msgspec.field(default_factory=dict)
    by_sudo: bool = False
    digests: Mapping[str, str] = msgspec.field(default_factory=dict)
    cache: CMakeCache | None = None
    previous: Previous | None = None
    installed: Mapping[str, str] | None = None
    reads: TreeReads | None = None
    recorded: bool | None = None
    running: Running | None = None


class VisualStudio(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One installation: `version` from vswhere ("16.7.30330.147"), `product` "Community" ...

    `release` is what people call that version ("16.7.2": catalog.productDisplayVersion).
    `vcvarsall` is None when the C++ workload is not installed.
    """

    path: str
    found_via: str
    version: str | None = None
    release: str | None = None
    product: str | None = None
    vcvarsall: str | None = None


class Toolset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One side-by-side MSVC toolset: a folder of VC\\Tools\\MSVC.

    `version` is the folder's name ("14.44.35207"), `cl` the 64-bit compiler for 64-bit
    targets (None when only other targets are installed), `visual_studio` the path of its
    installation, `msc_ver` what _MSC_VER is in it.
    """

    version: str
    visual_studio: str
    cl: str | None = None
    msc_ver: int | None = None


class Windows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts of a Windows machine only; None fields could not be read.

    `looked` lists where Visual Studio was looked for. `active` is the VCToolsVersion of a
    shell in which a toolset is already active. `long_paths` is the registry's
    LongPathsEnabled, `git_long_paths` git's core.longpaths, `shell` cmd or powershell.
    `path_characters` is the length of PATH.
    """

    visual_studios: tuple[VisualStudio, ...] = ()
    toolsets: tuple[Toolset, ...] = ()
    sdks: tuple[str, ...] = ()
    looked: tuple[str, ...] = ()
    active: str | None = None
    long_paths: bool | None = None
    git_long_paths: bool | None = None
    developer_mode: bool | None = None
    shell: str | None = None
    path_characters: int | None = None


class Store(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cache of helpers, by artifact id.

    `unpacked` is what lies there, with the sha256 of its archive; `pins` are the hashes of
    the checkout's torchbuild.lock; `peaks` the memory that builds on this machine took. `writable` says
    whether this user can make files there, None where that is not known; `state` is the folder of the notes
    of our venvs, where they cannot be made.
    """

    folder: str
    writable: bool | None = None
    state: str = ""
    unpacked: Mapping[str, str] = msgspec.field(default_factory=dict)
    pins: Mapping[str, str] = msgspec.field(default_factory=dict)
    peaks: tuple[PastPeak, ...] = ()


class Brought(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What lies here for a build without a network.

    `wheels` are the names of the files in --wheels, `archives` the names of those in the store that wait to
    be unpacked, and the hashes of those that it keeps; `sources` are the folders of companions that were
    fetched.
    """

    wheels: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class OwnPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch of the user's: a file and its text, or why it cannot be read."""

    name: str
    path: str
    text: str = ""
    problem: str = ""


class CompanionSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder of --with: `version` is from its version.txt, `problem` says why it is no project.

    `builds_with` is what its pyproject.toml says that its build needs, or needs for `text_licence`, a licence
    in it that is a string; `asks` is what it will ask for (PEP 508),
    `forces` the variables without which its setup.py downloads a wheel instead of building one, or compiles
    more at once than it has jobs.
    """

    name: str
    path: str
    version: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    problem: str | None = None
    builds_with: tuple[str, ...] = ()
    text_licence: bool = False
    asks: tuple[str, ...] = ()
    forces: Mapping[str, str] = msgspec.field(default_factory=dict)


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of a scheduler when it was queried.

    `conf` is the file that `cluster join` left for it ("" before that); `busy` are the jobs that
    it has under way. `problem` is why it cannot be used now; "" when it answered and took our token.
    """

    url: str
    conf: str = ""
    servers: int = 0
    cpus: int = 0
    busy: int = 0
    problem: str = ""


# ---------------- facts for the doctor only


class Room(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Free bytes of a folder for writing: `purpose` is source, build, store, cache or tmp.

    `mount` tells which of them share a file system. `kind` is the file system ("ext4", "nfs4",
    "NTFS"), `noexec` whether no program may be started from it; None fields are not known.
    """

    purpose: str
    path: str
    mount: str | None = None
    free: int | None = None
    kind: str | None = None
    noexec: bool | None = None
    writable: bool | None = None


class OtherTree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A build tree in the checkout, and the source folder that its CMakeCache.txt was made for."""

    path: str
    home: str | None = None


class Reached(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reachability of a host: `dns` and `https` are errors, "" for success, None for not tried.

    `proxy` is the host of the proxy that it is asked through (its DNS is the one that counts then),
    `ahead` the seconds by which its clock is ahead of ours.
    """

    host: str
    why: str
    dns: str | None = None
    https: str | None = None
    proxy: str = ""
    ahead: float | None = None


class Health(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts for the doctor only; None and empty fields could not be read.

    `open_files` is `ulimit -n`, `open_files_most` what it may be raised to. `locale` is the locale of
    messages and file names, `locale_known` whether the system has it. `newest` is a file of the
    checkout with a time in the future, `ahead` by how many seconds. `git` are the settings of git that
    matter (`GIT_SETTINGS` in facts/health), `git_refuses` what it says of a checkout of another user.
    `environ` are the variables that change which compilers and libraries are found, `strangers` the
    names (never values) of variables that look like those of a build and that no row knows.
    `conda_linkers` are ld programs that conda's Pythons bring along, `shadows` the folders in which
    `import torch` would find something else first. `others` are further build trees. `reached` is None
    when no host was asked; `proxies` says what is wrong with the variables of proxies.
    """

    rooms: tuple[Room, ...] = ()
    open_files: int | None = None
    open_files_most: int | None = None
    locale: str | None = None
    locale_known: bool | None = None
    newest: str | None = None
    ahead: float | None = None
    git: Mapping[str, str] = msgspec.field(default_factory=dict)
    git_refuses: bool = False
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    strangers: tuple[str, ...] = ()
    conda_linkers: tuple[str, ...] = ()
    shadows: tuple[str, ...] = ()
    others: tuple[OtherTree, ...] = ()
    offline: bool = False
    reached: tuple[Reached, ...] | None = None
    proxies: tuple[str, ...] | None = None
    administrator: bool | None = None


# ---------------- all facts


class InstallerSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A variable of pip or uv; `place` is the file of pip that says the same, "" for the environment.

    `gone` are the files that it names and that are not there.
    """

    name: str
    value: str
    place: str = ""
    gone: tuple[str, ...] = ()


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All facts, without conclusions.

    `environ` holds only the variables of the user's environment that a PyTorch build
    reads (rows of data/variables.toml), so a dump never carries unrelated secrets; `own` are the names of
    torchbuild's own variables there.
    `linked` are the libraries of linked.toml that are here, None if no switch asked for one.
    `brought` is None unless the build may use no network.
    `strange_venvs` are folders in the place of our venvs that no record of this user says are ours.
    `cut` are the programs that did not answer in time and were ended; `health` is None
    unless the doctor looked.
    """

    schema: int = FACTS_SCHEMA
    host: Host
    cpu: Cpu
    memory: Memory
    disk: Disk
    compilers: tuple[Tool, ...] = ()
    tools: tuple[Tool, ...] = ()
    pythons: tuple[Python, ...] = ()
    strange_venvs: tuple[str, ...] = ()
    tree: Tree
    windows: Windows | None = None
    store: Store | None = None
    cuda: Cuda | None = None
    cluster: Cluster | None = None
    companions: tuple[CompanionSource, ...] = ()
    patches: tuple[OwnPatch, ...] = ()
    blas: tuple[Library, ...] | None = None
    linked: tuple[Library, ...] | None = None
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    brought: Brought | None = None
    own: tuple[str, ...] = ()
    installers: tuple[InstallerSetting, ...] = ()
    cut: tuple[str, ...] = ()
    health: Health | None = None

    def tool(self, name: str) -> Tool | None:
        """Return the program of this name other than a compiler; None if it is not here."""
        return next((tool for tool in self.tools if tool.name == name and tool.path), None)

    def python_at(self, path: str) -> Python | None:
        """Return the interpreter at a path; None if it was not looked at, as one of a venv to come."""
        return next((python for python in self.pythons if python.executable == path), None)

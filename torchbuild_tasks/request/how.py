"""How it is built: in which steps, with how much of the machine, with which accelerators."""

from __future__ import annotations

import dataclasses

from torchbuild_tasks.request.flag import flag
from torchbuild_tasks.request.verbs import CACHING, JOBSERVER, PLANNING


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class HowFlags:
    """How it is built: in which steps, with how much of the machine, with which accelerators."""

    clean: bool = flag(
        "remove what the last build made before building",
        verbs=("plan", "build"),
        default=False,
        in_file=False,
    )
    watch: bool = flag(
        "build again whenever a file of the checkout is saved, until Ctrl-C",
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
        "leave the source as it is, whatever patches there are",
        verbs=("plan", "build", "bisect"),
        default=False,
    )
    patches: bool = flag(
        "undo the source patches that a build applied, and remove nothing else",
        verbs=("clean",),
        default=False,
        in_file=False,
    )
    jobs: int | None = flag(
        "parallel compile jobs (default: from cores and free memory)", verbs=PLANNING, metavar="N"
    )
    jobserver: str | None = flag(
        "auto: start compiles while the memory lasts, where the build program can; off: a fixed number",
        metavar="WHEN",
        choices=JOBSERVER,
    )
    notify: str | None = flag(
        "run this when the build has ended, with TORCHBUILD_RESULT in its environment",
        verbs=("build",),
        metavar="COMMAND",
    )
    cache: str | None = flag(
        "compiler cache: auto, none, ccache, sccache, or the address of a shared one such as redis://host",
        verbs=(*CACHING, "replay"),
        metavar="NAME|URL",
    )
    cache_read_only: bool = flag("read a shared cache and add nothing to it", verbs=CACHING, default=False)
    cache_dir: str | None = flag(
        "where compiler caches keep their results (default: their own folders)", verbs=CACHING, metavar="PATH"
    )
    cache_size: str | None = flag(
        "the least size of a compiler cache (default: 20G); a larger one stays", verbs=CACHING, metavar="SIZE"
    )
    distribute: str | None = flag(
        "send compiles to the servers of this scheduler (`cluster join` it first)",
        verbs=("doctor", "plan", "env", "build"),
        metavar="SCHEDULER",
    )
    listen: str | None = flag(
        "where the scheduler or server listens (default: everywhere, or what the token is for)",
        verbs=("cluster",),
        metavar="ADDRESS[:PORT]",
        in_file=False,
    )
    allow: tuple[str, ...] = flag(
        "make the token of a server at this address; may be repeated",
        verbs=("cluster",),
        metavar="ADDRESS[:PORT]",
        default=(),
        in_file=False,
    )
    token_file: str | None = flag(
        "a token's file, copied from the scheduler's machine",
        verbs=("cluster",),
        metavar="FILE",
        in_file=False,
    )
    space: str | None = flag(
        "where a server keeps toolchains and compiles (default: beside the helpers)",
        verbs=("cluster",),
        metavar="FOLDER",
        in_file=False,
    )

"""What is built, from which source, for which Python."""

from __future__ import annotations

import dataclasses

from torchbuild_tasks.request.flag import flag
from torchbuild_tasks.request.verbs import (
    ACTIONS,
    BUILD_TYPES,
    BUILDING,
    EVERY,
    FETCHING,
    HOLDING,
    MODES,
    PLANNING,
    PRESETS,
    SHELLS,
    TRAILING,
)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class WhatFlags:
    """What is built, from which source, for which Python."""

    action: str | None = flag(
        "what to do",
        verbs=tuple(ACTIONS),
        metavar="ACTION",
        choices=tuple(word for words in ACTIONS.values() for word in words),
        in_file=False,
        positional=True,
    )
    scheduler: str | None = flag(
        "the scheduler of distributed compiles (with status: default all that were joined)",
        verbs=("cluster",),
        metavar="URL",
        in_file=False,
        positional=True,
    )
    log: str | None = flag(
        "log of a build, or - for what comes in by a pipe",
        verbs=("diagnose",),
        metavar="LOG",
        in_file=False,
        positional=True,
    )
    manifest: str | None = flag(
        "manifest of a build (torchbuild-manifest.json in its build tree); for compare also its name",
        verbs=("replay", "compare"),
        metavar="MANIFEST",
        in_file=False,
        positional=True,
    )
    other: str | None = flag(
        "manifest of another build, or its name",
        verbs=("compare",),
        metavar="OTHER",
        in_file=False,
        positional=True,
    )
    name: str | None = flag(
        "the build of this name, [builds.NAME] in torchbuild.toml: its settings, in a worktree of its own",
        verbs=EVERY,
        metavar="NAME",
        in_file=False,
    )
    second: str | None = flag(
        "the build that it is held against",
        verbs=("builds",),
        metavar="NAME",
        in_file=False,
        positional=True,
    )
    ref: str | None = flag(
        "which PyTorch: 2.9, 2.9.1, latest, a tag, branch or commit, or the file of a release archive "
        "(default: the newest that fits; update: stay, but follow a branch)",
        verbs=("source",),
        metavar="REF|FILE",
        in_file=False,
        positional=True,
    )
    good: tuple[str, ...] = flag(
        "a commit, tag or branch where the command still succeeds; may be repeated",
        verbs=("bisect",),
        metavar="REF",
        default=(),
        in_file=False,
    )
    bad: str | None = flag("one where it fails", verbs=("bisect",), metavar="REF", in_file=False)
    skip: tuple[str, ...] = flag(
        "leave this commit, or this range A..B, out; may be repeated",
        verbs=("bisect",),
        metavar="REF",
        default=(),
        in_file=False,
    )
    source: str | None = flag(
        "PyTorch checkout to work on (default: the current folder)", verbs=EVERY, metavar="PATH"
    )
    torch: str | None = flag(
        "which torch: 2.9, 2.9.1, latest, main, a commit, or a ref of git such as release/2.9 (default: what "
        "the checkout is)",
        verbs=(*HOLDING, "versions"),
        metavar="VERSION|REF",
    )
    url: str | None = flag(
        "repository that checkouts are got from (default: PyTorch's on GitHub)",
        verbs=("plan", "build", "source"),
        metavar="URL",
    )
    python: str | None = flag(
        "Python that gets torch: a path or a version such as 3.12", verbs=EVERY, metavar="PATH|VERSION"
    )
    cpu: bool = flag("build without CUDA (the default)", verbs=(*FETCHING, "source"), default=False)
    cuda: bool = flag("build with CUDA", verbs=(*FETCHING, "source"), default=False)
    cuda_toolkit: str | None = flag(
        "CUDA toolkit: its folder, a version such as 12.6, or pypi:13.0 for one made of NVIDIA's wheels",
        verbs=FETCHING,
        metavar="PATH|VERSION|pypi:VERSION",
    )
    arch: str | None = flag(
        "GPU architectures: auto, native, common, a list such as '8.6;9.0+PTX', or a family such as Ampere",
        metavar="LIST",
    )
    preset: str | None = flag(
        "named set of build variables (default: dev)",
        verbs=(*BUILDING, "source"),
        metavar="NAME",
        choices=PRESETS,
    )
    build_type: str | None = flag("CMake build type", verbs=FETCHING, metavar="TYPE", choices=BUILD_TYPES)
    toolset: str | None = flag(
        "MSVC toolset on Windows, such as 14.38 (default: the newest that fits)", metavar="VERSION"
    )
    mode: str | None = flag(
        "develop: editable install; wheel: a wheel in dist/ (default: develop)", metavar="MODE", choices=MODES
    )
    target: str | None = flag(
        "build this target of Ninja (c10, torch_cpu, a file ...) and nothing else; nothing is installed",
        verbs=("plan", "build"),
        metavar="NAME",
        in_file=False,
    )
    only: str | None = flag(
        "one test file (test_torch) or one operator's benchmarks (add) instead of all",
        verbs=TRAILING,
        metavar="NAME",
        in_file=False,
    )
    words: tuple[str, ...] = flag("what stands behind --", verbs=(), default=(), in_file=False)
    set: tuple[str, ...] = flag(
        "set a build variable; may be repeated",
        verbs=(*PLANNING, "source"),
        metavar="KEY=VALUE",
        default=(),
        in_file=False,
    )
    env_shell: str | None = flag(
        "which env files to write (default: sh on Linux, bat on Windows)",
        verbs=(*BUILDING, "builds"),
        metavar="SHELL",
        choices=SHELLS,
    )
    with_: tuple[str, ...] = flag(
        "also build torchvision or torchaudio against the torch that was built: NAME for the release that "
        "belongs to it, NAME=PATH, NAME=URL@REF; may be repeated",
        metavar="NAME",
        default=(),
    )
    with_helper: tuple[str, ...] = flag(
        "also use this helper (mkl, sccache ...), `none` for none but those named; may be repeated",
        verbs=FETCHING,
        metavar="NAME",
        default=(),
    )
    linker: str | None = flag(
        "linker: auto, default, bfd, gold, lld, mold, or the path of one (default: auto)",
        metavar="NAME|PATH",
    )

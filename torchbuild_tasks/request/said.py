"""Where things come from and go to, and how much is said and asked."""

from __future__ import annotations

import dataclasses

from torchbuild_tasks.request.flag import flag
from torchbuild_tasks.request.verbs import EVERY, FETCHING, MANAGERS


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SaidFlags:
    """Where things come from and go to, and how much is said and asked."""

    mirror: str | None = flag(
        "where downloads come from instead: OLD=NEW prefixes, or one NEW for all (TORCHBUILD_MIRROR)",
        verbs=("doctor", "build", "helpers", "replay", "bisect"),
        metavar="URL",
    )
    offline: bool = flag(
        "download nothing; name what is missing",
        verbs=("doctor", "support", "build", "helpers", "replay", "source", "bisect"),
        default=False,
    )
    full: bool = flag(
        "get all history, and every submodule, not only what a build needs",
        verbs=("source",),
        default=False,
        in_file=False,
    )
    third_party: bool = flag(
        "reset: get every submodule anew, but those that hold changes",
        verbs=("source",),
        default=False,
        in_file=False,
    )
    wheels: str | None = flag(
        "folder of wheels that Python packages are taken from first (with --offline: from nowhere else)",
        verbs=("doctor", "plan", "build"),
        metavar="FOLDER",
    )
    require_hashes: bool = flag(
        "refuse downloads whose hash is not known beforehand", verbs=FETCHING, default=False
    )
    manager: str | None = flag(
        "package manager that installs (default: the system's)",
        verbs=("bootstrap",),
        metavar="NAME",
        choices=MANAGERS,
    )
    fix: bool = flag(
        "put right what can be put right safely, each after a question (--yes answers them)",
        verbs=("doctor",),
        default=False,
        in_file=False,
    )
    out: str | None = flag(
        "where to write: report its page (default: .torchbuild/report.html), support its archive, "
        "replay the recorded diffs",
        verbs=("report", "support", "replay"),
        metavar="PATH",
        in_file=False,
    )
    trace: str | None = flag(
        "also write the timeline as a trace that Perfetto and Chrome show",
        verbs=("report",),
        metavar="FILE",
        in_file=False,
    )
    closure: bool = flag(
        "list every library that `import torch` loads and where it is found; load none, check nothing else",
        verbs=("verify",),
        default=False,
        in_file=False,
    )
    dry_run: bool = flag(
        "show what would be done and stop",
        verbs=("build", "clean", "env", "helpers", "builds", "source", "debug-config"),
        default=False,
        in_file=False,
    )
    facts: str | None = flag(
        "plan from a `doctor --json` dump, or an archive of `support`, instead of this machine",
        verbs=("doctor", "bootstrap", "plan", "diagnose", "versions"),
        metavar="FILE",
        in_file=False,
    )
    config: str | None = flag(
        "settings file (default: torchbuild.toml here or in the checkout)",
        verbs=EVERY,
        metavar="FILE",
        in_file=False,
    )
    json: bool = flag("print one JSON object", verbs=EVERY, default=False, in_file=False)
    quiet: bool = flag("print results and problems only", verbs=EVERY, default=False, in_file=False)
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
    resume: bool = flag(
        "go on with the bisect that is under way in this checkout",
        verbs=("bisect",),
        default=False,
        in_file=False,
    )
    reset: bool = flag(
        "give the bisect up: remove its worktree and what is remembered of it",
        verbs=("bisect",),
        default=False,
        in_file=False,
    )

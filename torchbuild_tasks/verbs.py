"""The verbs: where each is run, and what the runners' lists say of it. `nox -l` reads this and nothing else.

A verb is a function of a request and a reporter that returns an `Outcome`; the class that its first
parameter is annotated with declares its flags (`options.py`). A line here is all that registers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

# In the order in which `torchbuild --help` lists them.
Group = Literal["Build", "When it fails, and afterwards", "Source and versions", "Settings and stores"]


class Verb(NamedTuple):
    """The place of a verb ("module:function", without the package's name), its summary, its group in help."""

    run: str
    summary: str
    group: Group = "Build"


class Outcome(NamedTuple):
    """The result of a verb: `value` for a program (--json), `text` for a person, the process's exit code."""

    value: Any
    text: str = ""
    exit_code: int = 0


# Verbs, and actions of verbs, that only look: they go on where what was found is not trusted, without it.
LOOKS: Final = (
    "doctor",
    "bootstrap",
    "plan",
    "diagnose",
    "support",
    "report",
    "versions",
    "compare",
    "replay",
    "clean",
    "helpers list",
    "helpers where",
    "cache stats",
    "cluster status",
    "source status",
    "trust",
    "config",
    "completion",
    "builds list",
    "builds show",
    "builds diff",
)

VERBS: Final = {
    "doctor": Verb(
        "features.doctor.verb:run", "Look at the machine and the checkout, and say what is wrong."
    ),
    "bootstrap": Verb(
        "features.bootstrap.verb:run",
        "Print the package manager's commands for what is missing, or run them.",
        "When it fails, and afterwards",
    ),
    "plan": Verb("fronts.build_verbs:plan", "Show every decision of a build with its reason; write nothing."),
    "env": Verb(
        "fronts.build_verbs:env",
        "Write the env files of the plan.",
        "Settings and stores",
    ),
    "build": Verb("fronts.build_verbs:build", "Build, record and verify torch."),
    "diagnose": Verb(
        "features.diagnosis.verb:run",
        "Find the first real error of a log, its cause, and what to do about it.",
        "When it fails, and afterwards",
    ),
    "support": Verb(
        "features.support.verb:run",
        "Write one archive for somebody else to look at, without secrets.",
        "When it fails, and afterwards",
    ),
    "report": Verb(
        "features.report.verb:run",
        "Write the last build's timeline, slowest files and critical path as one HTML page.",
        "When it fails, and afterwards",
    ),
    "clean": Verb("fronts.build_verbs:clean", "Remove what the build made, and nothing else."),
    "verify": Verb("fronts.build_verbs:verify", "Hold the installed torch to what the plan promises."),
    "helpers": Verb(
        "features.helpers.verb:run",
        "List, fetch, find, verify, prune or build the libraries and tools that builds download.",
        "Settings and stores",
    ),
    "cache": Verb(
        "features.cache.verb:run",
        "Tell how full the compiler caches are, empty them, or serve one for builds by hand.",
        "Settings and stores",
    ),
    "cluster": Verb(
        "features.cluster.verb:run",
        "Run a scheduler or a server of distributed compiles, join one, or say how they are.",
        "Settings and stores",
    ),
    "versions": Verb(
        "features.versions.verb:run",
        "Show the torch versions and which of them fit this machine.",
        "Source and versions",
    ),
    "builds": Verb(
        "features.builds.verb:run",
        "List, show, enter, compare or remove the named builds of torchbuild.toml.",
        "Source and versions",
    ),
    "run": Verb(
        "features.enter.verb:run", "Run a command in the environment of the last build: run -- COMMAND."
    ),
    "shell": Verb("features.enter.verb:shell", "Start a shell in the environment of the last build."),
    "python": Verb(
        "features.enter.verb:python",
        "Run the Python that has the built torch; words behind -- are its own.",
    ),
    "replay": Verb(
        "features.manifest.verb:replay",
        "Plan a recorded build again here, say what differs all the same; --yes builds it.",
        "Settings and stores",
    ),
    "compare": Verb(
        "features.manifest.verb:compare",
        "Say what differs between the manifests of two builds, or --bits of two wheels.",
        "Settings and stores",
    ),
    "source": Verb(
        "features.source.verb:run",
        "Get, update, look at, fix or mirror a checkout of PyTorch.",
        "Source and versions",
    ),
    "package": Verb(
        "features.package.verb:run",
        "Make a wheel that works elsewhere, libtorch, a conda package or an sdist; say how uv takes it.",
    ),
    "publish": Verb(
        "features.publish.verb:run",
        "Send packages to a folder that pip or conda reads, or to an index.",
    ),
    "container": Verb(
        "features.container.verb:run",
        "Write a container for the planned build; make its image, build or work in it.",
    ),
    "debug-config": Verb(
        "features.develop.verb:debug_config",
        "Write entries for VS Code's debuggers, link compile_commands.json, and check.",
        "Source and versions",
    ),
    "test": Verb(
        "features.develop.verb:test",
        "Run upstream's own tests with the built torch; words behind a -- of their own are passed on.",
        "Source and versions",
    ),
    "bench": Verb(
        "features.develop.verb:bench",
        "Run upstream's operator benchmarks with the built torch; words behind a -- are passed on.",
        "Source and versions",
    ),
    "config": Verb(
        "features.config.verb:run",
        "List every key of the settings, its value and where from; --write makes a commented file.",
        "Settings and stores",
    ),
    "completion": Verb(
        "fronts.completion:run",
        "Print the script with which bash, zsh, fish or PowerShell completes words, flags and values.",
        "Settings and stores",
    ),
    "trust": Verb(
        "features.trust.verb:run",
        "Let the torchbuild.toml and env templates that came with a checkout name programs and servers.",
        "Settings and stores",
    ),
    "bisect": Verb(
        "features.bisect.verb:run",
        "Find the commit that broke something: bisect --good REF --bad REF -- COMMAND.",
        "Source and versions",
    ),
}


class Session(NamedTuple):
    """A verb under the name of a nox session, with the flags that are given by that name, and its summary."""

    verb: str
    fixed: Mapping[str, Any]
    summary: str


# What can be run by name, in every runner: the verbs, and a build with its device.
SESSIONS: Final[Mapping[str, Session]] = {
    "build_cpu": Session("build", {"cpu": True}, "Build, record and verify torch without CUDA."),
    "build_cuda": Session("build", {"cuda": True}, "Build, record and verify torch with CUDA."),
    **{name: Session(name, {}, verb.summary) for name, verb in VERBS.items()},
}


def session_name(word: str) -> str | None:
    """Return which of `SESSIONS` a word names, written with dashes (Invoke) or underscores (nox)."""
    spellings = (word, word.replace("-", "_"), word.replace("_", "-"))
    return next((name for name in spellings if name in SESSIONS), None)

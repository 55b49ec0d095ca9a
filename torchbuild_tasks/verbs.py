"""The table of verbs, with the function and the summary of each. `nox -l` imports only this module.

A verb is a function of a request and a reporter that returns an `Outcome`; the class that its first
parameter is annotated with declares its flags (`options.py`). A line here is all that registers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

# In the order in which `torchbuild --help` lists them.
Group = Literal[
    "Build", "When it fails", "Use the built torch", "Packages", "Checkouts and builds", "Settings and caches"
]


ALWAYS: Final = ("",)  # a verb that only reads, whatever its action


class Verb(NamedTuple):
    """The place of a verb ("module:function", without the package's name), its summary, its group in help.

    Attributes:
        early: the place of a function of the request, whose context is entered before the verb is imported.
        reads: the actions that only read, `ALWAYS` for all of a verb: they ignore untrusted settings
            instead of failing.
        attached: it gives the terminal to another program, or runs until Ctrl-C. For all others a terminal
            shows the summary after a second, until a stage has a title.
        about_one_build: `builds use` chooses for it; False for a verb about no build, or about all.
        advises: its result recommends commands.
        shows_untrusted: it shows untrusted files among its findings.
    """

    run: str
    summary: str
    group: Group = "Build"
    early: str = ""
    reads: tuple[str, ...] = ()
    attached: bool = False
    about_one_build: bool = True
    advises: bool = False
    shows_untrusted: bool = False


class Outcome(NamedTuple):
    """The result of a verb: `value` for --json, `text` for a person, the process's exit code."""

    value: Any
    text: str = ""
    exit_code: int = 0


VERBS: Final = {
    "doctor": Verb(
        "features.doctor.verb:run",
        "Check the machine and the checkout, and say what is wrong.",
        reads=ALWAYS,
        advises=True,
        shows_untrusted=True,
    ),
    "bootstrap": Verb(
        "features.bootstrap.verb:run",
        "Print the commands that install what is missing, or run them.",
        reads=ALWAYS,
        shows_untrusted=True,
    ),
    "plan": Verb(
        "fronts.build_verbs:plan",
        "Show every decision of a build with its reason; write nothing.",
        reads=ALWAYS,
        advises=True,
        shows_untrusted=True,
    ),
    "build": Verb(
        "fronts.build_verbs:build",
        "Build torch and verify it.",
        early="build.install.early:ask_early",
        advises=True,
    ),
    "verify": Verb("fronts.verify_verb:verify", "Test the built torch against the plan.", advises=True),
    "clean": Verb("fronts.build_verbs:clean", "Remove what builds made, and nothing else.", reads=ALWAYS),
    "diagnose": Verb(
        "features.diagnosis.verb:run",
        "Find the first real error in a log, its cause and a fix.",
        "When it fails",
        reads=ALWAYS,
        advises=True,
    ),
    "support": Verb(
        "features.support.verb:run",
        "Write one archive, without secrets, to ask others for help.",
        "When it fails",
        reads=ALWAYS,
        shows_untrusted=True,
    ),
    "report": Verb(
        "features.report.verb:run",
        "Write an HTML page about the last build: its timeline and slowest files.",
        "When it fails",
        reads=ALWAYS,
    ),
    "bisect": Verb(
        "features.bisect.verb:run",
        "Find the commit that broke something: bisect --good A --bad B -- COMMAND.",
        "When it fails",
    ),
    "run": Verb(
        "features.enter.verb:run",
        "Run a command in the environment of the last build: run -- COMMAND.",
        "Use the built torch",
        attached=True,
    ),
    "shell": Verb(
        "features.enter.verb:shell",
        "Start a shell in the environment of the last build.",
        "Use the built torch",
        attached=True,
    ),
    "python": Verb(
        "features.enter.verb:python",
        "Run the Python that has the built torch: python -- ARGUMENTS.",
        "Use the built torch",
        attached=True,
    ),
    "debug-config": Verb(
        "features.develop.verb:debug_config",
        "Set up VS Code's debuggers and clangd for the built torch.",
        "Use the built torch",
        advises=True,
    ),
    "test": Verb(
        "features.develop.verb:test",
        "Run upstream's tests with the built torch: test -- ARGUMENTS.",
        "Use the built torch",
    ),
    "bench": Verb(
        "features.develop.verb:bench",
        "Run upstream's operator benchmarks with the built torch.",
        "Use the built torch",
    ),
    "package": Verb(
        "features.package.verb:run",
        "Make a wheel, conda package, libtorch or sdist for other machines.",
        "Packages",
    ),
    "publish": Verb(
        "features.publish.verb:run",
        "Send packages to an index or a channel, or to a folder that becomes one.",
        "Packages",
    ),
    "container": Verb(
        "features.container.verb:run",
        "Make a container image for the planned build; build or work in it.",
        "Packages",
        attached=True,
    ),
    "source": Verb(
        "features.source.verb:run",
        "Get, update, check, reset or mirror a checkout of PyTorch.",
        "Checkouts and builds",
        reads=("status",),
    ),
    "versions": Verb(
        "features.versions.verb:run",
        "Show the torch versions, and which of them fit this machine.",
        "Checkouts and builds",
        reads=ALWAYS,
        about_one_build=False,
    ),
    "builds": Verb(
        "features.builds.verb:run",
        "List, show, choose, compare or remove named builds.",
        "Checkouts and builds",
        reads=("list", "show", "diff"),
        about_one_build=False,
    ),
    "replay": Verb(
        "features.manifest.verb:replay",
        "Plan a recorded build again and list what differs; --yes builds it.",
        "Checkouts and builds",
        reads=ALWAYS,
        advises=True,
    ),
    "compare": Verb(
        "features.manifest.verb:compare",
        "Show how two builds differ, or with --bits two wheels.",
        "Checkouts and builds",
        reads=ALWAYS,
        about_one_build=False,
    ),
    "config": Verb(
        "features.config.verb:run",
        "Show every setting and where it comes from; --write makes a file.",
        "Settings and caches",
        reads=ALWAYS,
    ),
    "trust": Verb(
        "features.trust.verb:run",
        "Trust the settings that came with a checkout.",
        "Settings and caches",
        reads=ALWAYS,
        about_one_build=False,
    ),
    "env": Verb("fronts.build_verbs:env", "Write the env files of the plan.", "Settings and caches"),
    "helpers": Verb(
        "features.helpers.verb:run",
        "List, fetch, check, remove or build the libraries that builds download.",
        "Settings and caches",
        reads=("list", "where"),
    ),
    "cache": Verb(
        "features.cache.verb:run",
        "Show, empty or serve the compiler caches.",
        "Settings and caches",
        reads=("stats",),
        attached=True,
        about_one_build=False,
    ),
    "cluster": Verb(
        "features.cluster.verb:run",
        "Run, join or show the machines that compile for a build.",
        "Settings and caches",
        reads=("status",),
        attached=True,
        about_one_build=False,
    ),
    "completion": Verb(
        "fronts.completion:run",
        "Print the completion script of a shell.",
        "Settings and caches",
        reads=ALWAYS,
        attached=True,
        about_one_build=False,
    ),
}


class Session(NamedTuple):
    """A verb under the name of a nox session, with the flags that are given by that name, and its summary."""

    verb: str
    fixed: Mapping[str, Any]
    summary: str


# The names that every runner accepts: the verbs, and a build with its device.
SESSIONS: Final[Mapping[str, Session]] = {
    "build_cpu": Session("build", {"cpu": True}, "Build torch without CUDA and verify it."),
    "build_cuda": Session("build", {"cuda": True}, "Build torch with CUDA and verify it."),
    **{name: Session(name, {}, verb.summary) for name, verb in VERBS.items()},
}


def session_name(word: str) -> str | None:
    """Return the name in `SESSIONS` for a word, written with dashes (Invoke) or underscores (nox)."""
    spellings = (word, word.replace("-", "_"), word.replace("_", "-"))
    return next((name for name in spellings if name in SESSIONS), None)

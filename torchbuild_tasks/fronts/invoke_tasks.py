"""The verbs as an Invoke collection: `from torchbuild_tasks import namespace` in a tasks.py."""

from __future__ import annotations

import sys
from typing import Any

from invoke.collection import Collection
from invoke.context import Context
from invoke.exceptions import Exit
from invoke.parser.argument import Argument
from invoke.tasks import Task

from torchbuild_tasks.errors import TorchbuildError, UsageError
from torchbuild_tasks.fronts.parsing import apart, arguments, make_request, refuse_unknown, words_by_verb
from torchbuild_tasks.request import ACTIONS, TRAILING, VERBS

SUMMARIES = {
    "doctor": "Look at the machine and the checkout, and say what is wrong.",
    "bootstrap": "Print the package manager's commands for what is missing, or run them.",
    "plan": "Show every decision of a build with its reason; write nothing.",
    "env": "Write the env files of the plan.",
    "build": "Build, record and verify torch.",
    "diagnose": "Find the first real error of a log, its cause, and what to do about it.",
    "support": "Write one archive for somebody else to look at, without secrets.",
    "report": "Write the last build's timeline, slowest files and critical path as one HTML page.",
    "clean": "Remove what the build made, and nothing else.",
    "verify": "Hold the installed torch to what the plan promises.",
    "helpers": "List, fetch, find, verify or prune the libraries and tools that builds download.",
    "cache": "Tell how full the compiler caches are, empty them, or serve one for builds by hand.",
    "cluster": "Run a scheduler or a server of distributed compiles, join one, or say how they are.",
    "replay": "Plan a recorded build again here, say what differs all the same; --yes builds it.",
    "compare": "Say what differs between the manifests of two builds.",
    "source": "Get, update, look at, mend or mirror a checkout of PyTorch.",
    "bisect": "Find the commit that broke something: bisect --good REF --bad REF -- COMMAND.",
    "versions": "Show the torch versions and which of them fit this machine.",
    "builds": "List, show, enter, compare or remove the named builds of torchbuild.toml.",
    "debug-config": "Write entries for VS Code's debuggers, link compile_commands.json, and check.",
    "test": "Run upstream's own tests with the built torch; words behind -- are passed on.",
    "bench": "Run upstream's operator benchmarks with the built torch; words behind -- are passed on.",
}


class VerbTask(Task[Any]):
    """A task whose arguments come from the declarations in `request/`."""

    def __init__(self, verb: str) -> None:
        def body(context: Context, **values: Any) -> None:
            if context.config.run.dry and "dry_run" in values:  # `inv --dry build`
                values["dry_run"] = True
            if verb in TRAILING:  # from argv: Invoke joins these words with blanks
                values["words"] = apart(sys.argv[1:])[1]
            run(verb, values)

        body.__doc__ = SUMMARIES[verb]
        super().__init__(body, name=verb, positional=())

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """The verb's flags; an unknown one on the command line ends the run here.

        Invoke copies a tasks.py's collection into one of its own class and prints parse
        errors itself, so this call, made while it parses, is where a task has a say.
        """
        if {"-h", "--help"}.intersection(sys.argv[1:]):
            # A task that still waits for its action would take --help for it.
            named = set(ACTIONS.get(self.name, ())).intersection(sys.argv)
            return arguments(self.name, positional=bool(named))
        if self.name not in {word.rpartition(".")[2] for word in sys.argv[1:]}:
            return []  # Invoke copies the flags of every task
        own: list[str] = []
        try:
            for verb, words in words_by_verb(sys.argv[1:]):
                if verb == self.name:
                    refuse_unknown(verb, words)
                    own = words
        except UsageError as error:
            from torchbuild_tasks.fronts.paragraph import error_text

            raise Exit(error_text(error), code=error.exit_code) from None
        return arguments(self.name, own)


def make_namespace() -> Collection:
    """All verbs as one collection."""
    namespace = Collection()
    for verb in VERBS:
        namespace.add_task(VerbTask(verb))
    return namespace


def run(verb: str, values: dict[str, Any]) -> None:
    """Run a verb for Invoke; an error becomes Invoke's own way to end with a code."""
    from torchbuild_tasks.fronts.verbs import run_verb, show_error

    try:
        request = make_request(values)
    except TorchbuildError as error:
        show_error(error, as_json=bool(values.get("json")))
        raise Exit(code=error.exit_code) from None
    if code := run_verb(verb, request):
        raise Exit(code=code)

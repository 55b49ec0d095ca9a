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
from torchbuild_tasks.fronts.parsing import (
    apart,
    arguments,
    make_request,
    refuse_unknown,
    request_class,
    words_by_verb,
)
from torchbuild_tasks.verbs import VERBS


class VerbTask(Task[Any]):
    """A task whose arguments come from the declared flags."""

    def __init__(self, verb: str) -> None:
        def body(context: Context, **values: Any) -> None:
            if context.config.run.dry and "dry_run" in values:  # `inv --dry build`
                values["dry_run"] = True
            if request_class(verb).trailing:  # from argv: Invoke joins these words with blanks
                values["words"] = apart(sys.argv[1:])[1]
            run(verb, values)

        body.__doc__ = VERBS[verb].summary
        super().__init__(body, name=verb, positional=())

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """Return the verb's flags; an unknown one on the command line ends the run here.

        Invoke copies a tasks.py's collection into one of its own class and prints parse
        errors itself, so this call, made while it parses, is where a task has a say.
        """
        if {"-h", "--help"}.intersection(sys.argv[1:]):
            # A task that still waits for its action would take --help for it.
            named = set(request_class(self.name).actions).intersection(sys.argv)
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
            from torchbuild_tasks.fronts.output import error_text
            from torchbuild_tasks.text.visible import visible

            raise Exit(visible(error_text(error)), code=error.exit_code) from None
        return arguments(self.name, own)


def make_namespace() -> Collection:
    """Return all verbs as one collection."""
    namespace = Collection()
    for verb in VERBS:
        namespace.add_task(VerbTask(verb))
    return namespace


def run(verb: str, values: dict[str, Any]) -> None:
    """Run a verb for Invoke; an error becomes Invoke's own way to end with a code."""
    from torchbuild_tasks.fronts.run import run_verb, show_error

    try:
        request = make_request(verb, values)
    except TorchbuildError as error:
        show_error(error, as_json=bool(values.get("json")))
        raise Exit(code=error.exit_code) from None
    if code := run_verb(verb, request):
        raise Exit(code=code)

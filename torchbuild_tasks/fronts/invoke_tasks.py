"""The verbs as an Invoke collection: `from torchbuild_tasks import namespace` in a tasks.py.

Invoke splits a command line among its tasks by what each task's arguments say of themselves, and prints
parse errors itself ("No idea what '--cuad' is!", exit code 1). So parsing.py reads each verb's words first.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from invoke.collection import Collection
from invoke.context import Context
from invoke.exceptions import Exit
from invoke.parser.argument import Argument
from invoke.tasks import Task

from torchbuild_tasks.errors import TorchbuildError, UsageError
from torchbuild_tasks.fronts.dependencies import explain_missing
from torchbuild_tasks.fronts.parsing import (
    HELP,
    SHORT,
    flags,
    help_text,
    make_request,
    parse,
    request_class,
    spellings,
    split_at_dashes,
    takes_value,
)
from torchbuild_tasks.options import flag_name
from torchbuild_tasks.verbs import SESSIONS, VERBS, session_name


class VerbTask(Task[Any]):
    """A task whose arguments come from the declared flags."""

    def __init__(self, name: str) -> None:
        verb = SESSIONS[name].verb

        def body(context: Context, **arguments: Any) -> None:
            values = {field: _one(verb, field, value) for field, value in arguments.items()}
            if context.config.run.dry and "dry_run" in values:  # `inv --dry build`
                values["dry_run"] = True
            if request_class(verb).trailing:  # from argv: Invoke joins these words with blanks
                values["words"] = split_at_dashes(sys.argv[1:])[1]
            run(verb, {**values, **SESSIONS[name].fixed})

        body.__doc__ = SESSIONS[name].summary
        super().__init__(body, name=name, positional=())

    @explain_missing()
    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """Return the verb's flags; a wrong word on the command line ends the run here.

        Invoke copies a tasks.py's collection into one of its own class, so this call, made while it parses,
        is where a task has a say.
        """
        verb = SESSIONS[self.name].verb
        called = next((word for word in sys.argv[1:] if _name_of(word) == self.name), "")
        if not called:
            return []  # Invoke copies the flags of every task
        own: list[str] = []
        try:
            _check_own_config(sys.argv[1:])
            for name, words in words_by_verb(sys.argv[1:]):
                if name == self.name:
                    asks_help = set(HELP).intersection(split_at_dashes(sys.argv[1:])[0])
                    own_words = ["--help"] if asks_help else _without_core(verb, words)
                    parse(verb, own_words, f"invoke {called.replace('_', '-')}")
                    own = words
        except SystemExit:  # --help has been printed
            raise Exit(code=0) from None
        except UsageError as error:
            from torchbuild_tasks.fronts.run import show_error

            show_error(error, as_json="--json" in sys.argv)
            raise Exit(code=error.exit_code) from None
        return arguments(verb, own)


def make_namespace() -> Collection:
    """Return all verbs as one collection."""
    namespace = Collection()
    for name in SESSIONS:
        namespace.add_task(VerbTask(name))
    return namespace


@explain_missing()
def run(verb: str, values: dict[str, Any]) -> None:
    """Run a verb for Invoke; turn an error into Invoke's Exit."""
    from torchbuild_tasks.fronts.run import run_verb, show_error

    try:
        request = make_request(verb, values)
    except TorchbuildError as error:
        show_error(error, as_json=bool(values.get("json")))
        raise Exit(code=error.exit_code) from None
    if code := run_verb(verb, request):
        raise Exit(code=code)


# ---------------- the flags as Invoke's arguments


def arguments(verb: str, words: Sequence[str] = ()) -> list[Argument]:
    """Return the verb's flags as Invoke arguments."""
    due = ("action", *request_class(verb).positionals, *_objects(verb, words))
    return [_argument(field, verb, field.name in due) for field in flags(verb)]


def _argument(field: dataclasses.Field[Any], verb: str, positional: bool) -> Argument:
    # Invoke has no place for a second --jobs but in a list, of which the last one counts.
    kind = bool if not takes_value(field) else str if positional else list
    return Argument(
        names=[flag_name(field.name)[2:], *filter(None, [SHORT.get(field.name)])],
        attr_name=field.name if "_" in field.name else None,
        kind=kind,
        default=None if kind is str else kind(),
        help=help_text(field, verb),
        positional=positional,
    )


def _one(verb: str, name: str, value: Any) -> Any:
    """Return the last of a flag's values, if it takes only one."""
    several = next(field.default == () for field in flags(verb) if field.name == name)
    return value if several or not isinstance(value, list) else value[-1] if value else None


# Invoke's configuration files: https://docs.pyinvoke.org/en/stable/concepts/configuration.html
_CONFIGS = (".yaml", ".yml", ".json", ".py")


def _check_own_config(argv: Sequence[str]) -> None:
    """Refuse a file of Invoke's own -f that would end in a traceback of Invoke.

    Raises:
        UsageError: there is none, or its name has none of the endings that Invoke knows.
    """
    own, _ = split_at_dashes(argv)
    for word, after in itertools.pairwise([*own, ""]):
        if word == "-f" and not (after.endswith(_CONFIGS) and Path(after).is_file()):
            raise UsageError(
                f"-f is Invoke's flag for a file of its own settings, and {after or 'nothing'} is none",
                next_step="The file of torchbuild's settings: --config FILE",
            )


def _objects(verb: str, words: Sequence[str]) -> list[str]:
    """Return the fields whose words follow an action, of optional ones those present."""
    objects = request_class(verb).objects
    fields = [name for name in [request_class(verb).optional.get("")] if name and _has_word(verb, words)]
    for word, after in itertools.pairwise([*words, ""]):
        fields += (*objects.get(word, ()), _optional(verb, word, after))
    return fields


def _has_word(verb: str, words: Sequence[str]) -> bool:
    """Say whether one of these words is neither a flag nor a flag's value."""
    taking = {each for field in flags(verb) if takes_value(field) for each in spellings(field)}
    return any(
        not _is_flag(word) and before not in taking for before, word in itertools.pairwise(["", *words])
    )


def _optional(verb: str, action: str, after: str) -> str:
    """Return the field for the optional word after an action; "" if that is a flag or the next verb."""
    is_value = verb in VERBS and after and not _is_flag(after) and after not in VERBS
    return request_class(verb).optional.get(action, "") if is_value else ""


# ---------------- splitting the command line


def words_by_verb(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return each verb of a command line with its words up to the next task.

    A value is not taken for a verb: in `plan --source build` the folder is called build.
    """
    verbs: list[tuple[str, list[str]]] = []
    value_follows = False
    due = 0  # words that must follow the verb
    own, trailing = split_at_dashes(argv)
    for word, after in itertools.pairwise([*own, ""]):
        if not (value_follows or due or _is_flag(word)):
            verbs.append((_name_of(word), []))
            due = _words_due(verbs[-1][0])
            continue
        if verbs:
            verbs[-1][1].append(word)
        if value_follows or not verbs or not _is_flag(word):
            if due and not value_follows:
                verb = SESSIONS[verbs[-1][0]].verb
                due += len(request_class(verb).objects.get(word, ()))
                due += bool(_optional(verb, word, after)) - 1
            value_follows = False
        else:
            value_follows = _value_follows(verbs[-1][0], word)
    if verbs and trailing is not None:
        verbs[-1][1].extend(("--", *trailing))
    return [(name, words) for name, words in verbs if name in SESSIONS]


def _name_of(word: str) -> str:
    """Return the verb's name of a task: `torch.build-cpu` is build_cpu."""
    last = word.rpartition(".")[2]
    return session_name(last) or last


def _is_flag(word: str) -> bool:
    """Say whether a word is a flag; a lone dash means stdin."""
    return word.startswith("-") and word != "-"


def _words_due(name: str) -> int:
    """Return the number of words that follow a verb: the required ones, and an optional one if present."""
    if name not in SESSIONS:
        return 0
    request = request_class(SESSIONS[name].verb)
    return len(request.positionals) or bool(request.actions) or "" in request.optional


def _value_follows(name: str, word: str) -> bool:
    if name not in SESSIONS:
        return False
    return any(word in spellings(field) and takes_value(field) for field in flags(SESSIONS[name].verb))


def _without_core(verb: str, words: Sequence[str]) -> list[str]:
    """Return the words without flags of Invoke itself, which are allowed after a task's name."""
    known = {spelling for field in flags(verb) for spelling in spellings(field)}
    own, trailing = split_at_dashes(words)
    others = [word for word in own if word in known or word.partition("=")[0] not in _core_flags() - known]
    return others if trailing is None else [*others, "--", *trailing]


@functools.cache
def _core_flags() -> frozenset[str]:
    """Return the flags of Invoke itself; not --dry, which users mistake for --dry-run."""
    from invoke.program import Program

    program = Program()
    arguments = program.core_args() + program.task_args()
    spelled = {f"--{name}" if len(name) > 1 else f"-{name}" for arg in arguments for name in arg.names}
    return frozenset(spelled) - {"--dry"}

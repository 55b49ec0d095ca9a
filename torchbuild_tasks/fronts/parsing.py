"""Flags and words as arguments of Invoke's parser, for both runners.

nox has no argument parser of its own for posargs, so it borrows this one: the same words
mean the same, and an unknown one is refused with the nearest in both.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from invoke.exceptions import ParseError
from invoke.parser import Parser
from invoke.parser.argument import Argument
from invoke.parser.context import ParserContext

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.verbs import VERBS, Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

SHORT = {"source": "s", "python": "p", "jobs": "j", "quiet": "q", "verbose": "v", "yes": "y"}


@functools.cache
def load(verb: str) -> Callable[[Any, Reporter], Outcome]:
    """Return the function of a verb; its module is read only now."""
    module, _, name = VERBS[verb].run.partition(":")
    run: Callable[[Any, Reporter], Outcome] = getattr(
        importlib.import_module(f"torchbuild_tasks.{module}"), name
    )
    return run


@functools.cache
def request_class(verb: str) -> type[BuildRequest]:
    """Return the class of a verb's requests: what the first parameter of its function is annotated with."""
    run = load(verb)
    found: type[BuildRequest] = run.__globals__[run.__annotations__["request"]]
    return found


@functools.cache
def flags(verb: str) -> tuple[dataclasses.Field[Any], ...]:
    """Return the flags that a verb takes, in the order of their declaration, its own last."""
    asked = request_class(verb)
    shared = {field.name for field in dataclasses.fields(BuildRequest)}
    names = {"action"} if asked.actions else set()
    names |= set(asked.takes)
    return tuple(
        field
        for field in dataclasses.fields(asked)
        if field.name not in shared or field.name in names or verb in field.metadata["verbs"]
    )


def arguments(verb: str, words: Sequence[str] = (), *, positional: bool = True) -> list[Argument]:
    """Return the verb's flags as Invoke arguments.

    Args:
        verb: whose flags.
        words: what follows it; some actions take a further word.
        positional: without it the action may be left out.
    """
    due = ("action", *request_class(verb).positionals, *_objects(verb, words)) if positional else ()
    return [_argument(field, verb, field.name in due) for field in flags(verb)]


def _objects(verb: str, words: Sequence[str]) -> list[str]:
    """Return the fields whose words follow an action; of those that may be left out, what is there."""
    objects = request_class(verb).objects
    fields: list[str] = []
    for word, after in itertools.pairwise(["", *words, ""]):
        fields += (*objects.get(word, ()), _optional(verb, word, after))
    return fields


def _optional(verb: str, action: str, after: str) -> str:
    """Return the field that the word after an action is the value of; "" for a flag and for the next verb."""
    is_value = verb in VERBS and after and not _is_flag(after) and after not in VERBS
    return request_class(verb).optional.get(action, "") if is_value else ""


def _argument(field: dataclasses.Field[Any], verb: str, positional: bool) -> Argument:
    kind = list if field.default == () else bool if field.default is False else str
    return Argument(
        names=[flag_name(field.name)[2:], *filter(None, [SHORT.get(field.name)])],
        attr_name=field.name if "_" in field.name else None,
        kind=kind,
        default=None if kind is str else kind(),
        help=help_text(field, verb),
        positional=positional,
    )


def help_text(field: dataclasses.Field[Any], verb: str | None = None) -> str:
    """Return the flag's help with its choices, as the help of both runners and the docs show it."""
    choices = request_class(verb).actions if verb and field.name == "action" else field.metadata["choices"]
    return str(field.metadata["help"]) + (f" [{'|'.join(choices)}]" if choices else "")


def refuse_unknown(verb: str, words: Sequence[str]) -> None:
    """Refuse a flag that the verb does not have, before Invoke's parser sees the words.

    Its own answer ("No idea what '--cuad' is!", exit code 1) names nothing.

    Raises:
        UsageError: an unknown flag or action (names the nearest), or a flag without its value.
    """
    asked = request_class(verb)
    rest, trailing = apart(words)
    if trailing is not None and not asked.trailing:
        raise UsageError(f"{verb} takes no words behind --", next_step=f"{verb} --help shows its flags.")
    action = ""
    action_due = bool(asked.actions)
    missing = list(asked.positionals)
    while rest:
        word = rest.pop(0)
        if _is_flag(word):
            if _needs_value(verb, word, rest):
                rest.pop(0)
        elif action_due:
            action_due = False
            action = _known_action(verb, word)
            missing = list(asked.objects.get(action, ()))
            if rest and _optional(verb, action, rest[0]):
                rest.pop(0)
        elif missing:
            missing.pop(0)
        else:
            return  # the next task's
    if action_due:
        raise _action_error(verb, f"{verb} needs to be told what to do")
    given = {word.partition("=")[0] for word in words}
    if absent := [name for name in missing if flag_name(name) not in given]:
        raise _missing_word(verb, action, absent[0])


def _needs_value(verb: str, word: str, rest: Sequence[str]) -> bool:
    """Say whether the next word is the value of this flag; refuse an unknown flag, and a value that lacks."""
    takes_value = _takes_value(verb, word)
    if takes_value is None:
        raise _unknown_flag(verb, word.split("=")[0])
    if takes_value and not rest:
        raise UsageError(f"{word} needs a value", next_step=f"{verb} --help says which.")
    return takes_value


def apart(words: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Return the words up to a `--`, and those behind it, which are for another program; None without one."""
    if "--" not in words:
        return list(words), None
    end = list(words).index("--")
    return list(words[:end]), tuple(words[end + 1 :])


def _is_flag(word: str) -> bool:
    """Say whether a word is a flag; a dash alone stands for what comes in by a pipe."""
    return word.startswith("-") and word != "-"


def _known_action(verb: str, word: str) -> str:
    actions = request_class(verb).actions
    if word not in actions:
        raise _action_error(verb, f"{verb} cannot {word}{did_you_mean(word, actions)}")
    return word


def _action_error(verb: str, what: str) -> UsageError:
    actions = ", ".join(f"{verb} {word}" for word in request_class(verb).actions)
    return UsageError(what, next_step=f"Say one of: {actions}.")


def _missing_word(verb: str, action: str, name: str) -> UsageError:
    asked = request_class(verb)
    samples = {field.name: field.metadata["sample"] for field in flags(verb)}
    words = " ".join(samples[field][1] for field in asked.objects.get(action) or asked.positionals)
    pipe = ", or `diagnose -` for what comes in by a pipe" if verb == "diagnose" else ""
    command = f"{verb} {action}".rstrip()
    return UsageError(
        f"{command} needs to be told which {samples[name][0]}", next_step=f"Write: {command} {words}{pipe}"
    )


def words_by_verb(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return each verb on a command line with the words up to the next task.

    A value is not taken for a verb: in `plan --source build` the folder is called build.
    """
    found: list[tuple[str, list[str]]] = []
    value_follows = False
    due = 0  # words that must follow the verb
    own, trailing = apart(argv)
    for word, after in itertools.pairwise([*own, ""]):
        if not (value_follows or due or _is_flag(word)):
            verb = word.rpartition(".")[2]
            found.append((verb, []))
            due = _words_due(verb) + bool(_optional(verb, "", after))
            continue
        if found:
            found[-1][1].append(word)
        if value_follows or not found or not _is_flag(word):
            if due and not value_follows:
                current = found[-1][0]
                due += len(request_class(current).objects.get(word, ()))
                due += bool(_optional(current, word, after)) - 1
            value_follows = False
        else:
            current = found[-1][0]
            value_follows = current in VERBS and bool(_takes_value(current, word))
    if found and trailing is not None:
        found[-1][1].extend(("--", *trailing))
    return [(verb, words) for verb, words in found if verb in VERBS]


def _words_due(verb: str) -> int:
    if verb not in VERBS:
        return 0
    asked = request_class(verb)
    return len(asked.positionals) or bool(asked.actions)


def _takes_value(verb: str, word: str) -> bool | None:
    """Say whether a value follows this flag of a verb; None when the verb has no such flag."""
    for argument in arguments(verb):
        for spelling in _spellings(argument):
            if word == spelling:
                return bool(argument.takes_value)
            attached = f"{spelling}=" if spelling.startswith("--") else spelling
            if word.startswith(attached):
                return False
    return False if word.split("=")[0] in _core_flags() else None


def _spellings(argument: Argument) -> list[str]:
    return [f"--{name}" if len(name) > 1 else f"-{name}" for name in argument.names]


def _unknown_flag(verb: str, name: str) -> UsageError:
    known = [spelling for argument in arguments(verb) for spelling in _spellings(argument)]
    hint = did_you_mean(name, known)
    flags_of = " ".join(flag for flag in known if flag.startswith("--"))
    return UsageError(f"{verb} has no flag {name}{hint}", next_step=f"Flags of {verb}: {flags_of}")


def unknown_word(word: str) -> str:
    """Return the paragraph for a word before any verb that is neither a verb nor a flag."""
    kind = "flag" if word.startswith("-") else "verb"
    hint = did_you_mean(word, tuple(VERBS)) if kind == "verb" else ""
    return f"\nerror: there is no {kind} {word}{hint}\nVerbs: {' '.join(VERBS)}"


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return the end of a sentence that names the known word that a mistyped one most likely meant."""
    from torchbuild_tasks.text import words

    return words.did_you_mean(word, known)


def _core_flags() -> frozenset[str]:
    """Flags of Invoke itself that may also stand after a task's name.

    Not --dry: there it would be taken for --dry-run and then build.
    """
    from invoke.program import Program

    program = Program()
    arguments = program.core_args() + program.task_args()
    return frozenset(flag for argument in arguments for flag in _spellings(argument)) - {"--dry"}


def parse(verb: str, argv: Sequence[str]) -> BuildRequest:
    """Read flags that come as plain words, as nox's posargs do.

    Raises:
        UsageError: an unknown flag, a flag without its value, a word that is no flag.
    """
    refuse_unknown(verb, argv)
    own, trailing = apart(argv)
    context = ParserContext(name=verb, args=arguments(verb, own))
    try:
        (parsed,) = Parser(contexts=[context]).parse_argv([verb, *own])
    except ParseError as error:
        raise UsageError(str(error), next_step=f"Flags of {verb}: {' '.join(context.flags)}") from None
    return make_request(verb, {**parsed.as_kwargs, "words": trailing or None})


def make_request(verb: str, values: dict[str, Any]) -> BuildRequest:
    """Turn parsed values into the request; the job count becomes a number here.

    Raises:
        UsageError: --jobs is not a whole number.
    """
    clean = {key: value for key, value in values.items() if value not in (None, [])}
    clean = {key: tuple(value) if isinstance(value, list) else value for key, value in clean.items()}
    if "jobs" in clean:
        try:
            clean["jobs"] = int(clean["jobs"])
        except ValueError:
            raise UsageError(f"{flag_name('jobs')} {clean['jobs']!r} is not a whole number") from None
    return request_class(verb)(**clean)

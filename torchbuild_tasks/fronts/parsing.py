"""The flags of `request/` as arguments of Invoke's parser, for both runners.

nox has no argument parser of its own for posargs, so it borrows this one: the same words
mean the same, and an unknown one is refused with the nearest in both.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from invoke.exceptions import ParseError
from invoke.parser import Parser
from invoke.parser.argument import Argument
from invoke.parser.context import ParserContext

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.options import (
    ACTIONS,
    MAYBE,
    OBJECTS,
    SAMPLES,
    TRAILING,
    VERBS,
    WORDED,
    WORDS,
    BuildRequest,
    flag_name,
    flags,
)

SHORT = {"source": "s", "python": "p", "jobs": "j", "quiet": "q", "verbose": "v", "yes": "y"}


def arguments(verb: str, words: Sequence[str] = (), *, positional: bool = True) -> list[Argument]:
    """The verb's flags as Invoke arguments.

    Args:
        verb: whose flags.
        words: what follows it; some actions take a further word.
        positional: without it the action may be left out.
    """
    due = ("action", *WORDS.get(verb, ()), *_objects(verb, words)) if positional else ()
    return [_argument(field, verb, field.name in due) for field in flags(verb)]


def _objects(verb: str, words: Sequence[str]) -> list[str]:
    """The fields whose words follow an action, of those that may be left out only what is there."""
    fields: list[str] = []
    for word, after in itertools.pairwise([*words, ""]):
        fields += (*OBJECTS.get((verb, word), ()), _maybe(verb, word, after))
    return fields


def _maybe(verb: str, action: str, after: str) -> str:
    """The field that the word after an action is the value of; none for a flag and for the next verb."""
    is_value = after and not _is_flag(after) and after not in VERBS
    return MAYBE.get((verb, action), "") if is_value else ""


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
    """The flag's help with its choices, as the help of both runners and the docs show it."""
    choices = ACTIONS[verb] if verb in ACTIONS and field.metadata["positional"] else field.metadata["choices"]
    return str(field.metadata["help"]) + (f" [{'|'.join(choices)}]" if choices else "")


def refuse_unknown(verb: str, words: Sequence[str]) -> None:
    """Refuse a flag that the verb does not have, before Invoke's parser sees the words.

    Its own answer ("No idea what '--cuad' is!", exit code 1) names nothing.

    Raises:
        UsageError: an unknown flag or action (names the nearest), or a flag without its value.
    """
    own, trailing = apart(words)
    if trailing is not None and verb not in TRAILING:
        raise UsageError(f"{verb} takes no words behind --", next_step=f"{verb} --help shows its flags.")
    rest, action_due, action, missing = own, verb in ACTIONS, "", list(WORDS.get(verb, ()))
    while rest:
        word = rest.pop(0)
        if not _is_flag(word):
            if not (action_due or missing):
                return  # the next task's
            if action_due:
                _refuse_action(verb, word)
                action = word
                missing = list(OBJECTS.get((verb, word), ()))
                if rest and _maybe(verb, word, rest[0]):
                    rest.pop(0)
            else:
                missing = missing[1:]
            action_due = False
            continue
        takes_value = _takes_value(verb, word)
        if takes_value is None:
            raise _unknown_flag(verb, word.split("=")[0])
        if takes_value and not rest:
            raise UsageError(f"{word} needs a value", next_step=f"{verb} --help says which.")
        if takes_value:
            rest.pop(0)
    if action_due:
        raise _action_error(verb, f"{verb} needs to be told what to do")
    given = {word.partition("=")[0] for word in words}
    if missing := [name for name in missing if flag_name(name) not in given]:
        raise _missing_word(verb, action, missing[0])


def apart(words: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """The words up to a `--`, and those behind it, which are for another program; None without one."""
    if "--" not in words:
        return list(words), None
    end = list(words).index("--")
    return list(words[:end]), tuple(words[end + 1 :])


def _is_flag(word: str) -> bool:
    """A dash alone is a word: it stands for what comes in by a pipe."""
    return word.startswith("-") and word != "-"


def _refuse_action(verb: str, word: str) -> None:
    if verb in ACTIONS and word not in ACTIONS[verb]:
        raise _action_error(verb, f"{verb} cannot {word}{did_you_mean(word, ACTIONS[verb])}")


def _action_error(verb: str, what: str) -> UsageError:
    return UsageError(what, next_step=f"Say one of: {', '.join(f'{verb} {word}' for word in ACTIONS[verb])}.")


def _missing_word(verb: str, action: str, name: str) -> UsageError:
    samples = " ".join(SAMPLES[field][1] for field in OBJECTS.get((verb, action)) or WORDS[verb])
    pipe = ", or `diagnose -` for what comes in by a pipe" if verb == "diagnose" else ""
    said = f"{verb} {action}".rstrip()
    return UsageError(
        f"{said} needs to be told which {SAMPLES[name][0]}", next_step=f"Write: {said} {samples}{pipe}"
    )


def words_by_verb(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each verb on a command line with the words up to the next task.

    A value is not taken for a verb: in `plan --source build` the folder is called build.
    """
    found: list[tuple[str, list[str]]] = []
    value_follows, due = False, 0
    own, trailing = apart(argv)
    for word, after in itertools.pairwise([*own, ""]):
        verb = word.rpartition(".")[2]
        if not (value_follows or due or _is_flag(word)):
            found.append((verb, []))
            due = len(WORDS.get(verb, ("action",))) if verb in WORDED else 0
            continue
        if found:
            found[-1][1].append(word)
        if value_follows or not found or not _is_flag(word):
            if due and not value_follows:
                current = found[-1][0]
                due += len(OBJECTS.get((current, word), ())) + bool(_maybe(current, word, after)) - 1
            value_follows = False
        else:
            current = found[-1][0]
            value_follows = current in VERBS and bool(_takes_value(current, word))
    if found and trailing is not None:
        found[-1][1].extend(("--", *trailing))
    return [(verb, words) for verb, words in found if verb in VERBS]


def _takes_value(verb: str, word: str) -> bool | None:
    """Whether a value follows this flag of a verb; None when the verb has no such flag."""
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
    """The paragraph for a word before any verb that is neither a verb nor a flag."""
    kind = "flag" if word.startswith("-") else "verb"
    hint = did_you_mean(word, VERBS) if kind == "verb" else ""
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
    return make_request({**parsed.as_kwargs, "words": trailing or None})


def make_request(values: dict[str, Any]) -> BuildRequest:
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
    return BuildRequest(**clean)

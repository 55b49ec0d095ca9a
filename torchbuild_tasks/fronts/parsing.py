"""The flags of `request.py` as arguments of Invoke's parser, for both runners.

nox has no argument parser of its own for posargs, so it borrows this one: the same words
mean the same, and an unknown one is refused with the nearest in both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from invoke.exceptions import ParseError
from invoke.parser import Parser
from invoke.parser.argument import Argument
from invoke.parser.context import ParserContext

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.request import VERBS, BuildRequest, flag_name, flags

SHORT = {"source": "s", "python": "p", "jobs": "j", "quiet": "q", "verbose": "v", "yes": "y"}


def arguments(verb: str) -> list[Argument]:
    """The verb's flags as Invoke arguments."""
    return [_argument(field) for field in flags(verb)]


def _argument(field: dataclasses.Field[Any]) -> Argument:
    kind = list if field.default == () else bool if field.default is False else str
    return Argument(
        names=[field.name.replace("_", "-"), *filter(None, [SHORT.get(field.name)])],
        attr_name=field.name if "_" in field.name else None,
        kind=kind,
        default=None if kind is str else kind(),
        help=help_text(field),
    )


def help_text(field: dataclasses.Field[Any]) -> str:
    """The flag's help with its choices, as the help of both runners and the docs show it."""
    choices = field.metadata["choices"]
    return str(field.metadata["help"]) + (f" [{'|'.join(choices)}]" if choices else "")


def refuse_unknown(verb: str, words: Sequence[str]) -> None:
    """Refuse a flag that the verb does not have, before Invoke's parser sees the words.

    Its own answer ("No idea what '--cuad' is!", exit code 1) names nothing. Reads up to
    the first word that is neither a flag nor a flag's value: there the next task begins.

    Raises:
        UsageError: names the nearest flag.
    """
    known = {name: argument.takes_value for argument in arguments(verb) for name in _spellings(argument)}
    value_follows = False
    for word in words:
        name, has_value = word.split("=")[0], "=" in word
        if value_follows:
            value_follows = False
        elif name in known:
            value_follows = known[name] and not has_value
        elif not word.startswith("-"):
            return
        elif word.startswith("--") and name not in _core_flags():
            raise _unknown_flag(verb, name, list(known))


def _spellings(argument: Argument) -> list[str]:
    return [f"--{name}" if len(name) > 1 else f"-{name}" for name in argument.names]


def _unknown_flag(verb: str, name: str, known: Sequence[str]) -> UsageError:
    near = nearest(name, known)
    hint = f"; did you mean {near}?" if near else ""
    flags_of = " ".join(flag for flag in known if flag.startswith("--"))
    return UsageError(f"{verb} has no flag {name}{hint}", next_step=f"Flags of {verb}: {flags_of}")


def unknown_verb(token: str) -> str:
    """The paragraph for a verb that does not exist."""
    near = nearest(token, VERBS)
    hint = f"; did you mean {near}?" if near else ""
    return f"\nerror: there is no verb {token}{hint}\nVerbs: {' '.join(VERBS)}"


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that a mistyped one most likely meant."""
    from torchbuild_tasks.core import words

    return words.nearest(word, known)


def _core_flags() -> frozenset[str]:
    """Flags of Invoke itself, which may also stand after a task's name."""
    from invoke.program import Program

    names = [name for arg in Program().core_args() + Program().task_args() for name in arg.names]
    return frozenset(f"--{name}" for name in names)


def parse(verb: str, argv: Sequence[str]) -> BuildRequest:
    """Read flags that come as plain words, as nox's posargs do.

    Raises:
        UsageError: an unknown flag, a flag without its value, a word that is no flag.
    """
    refuse_unknown(verb, argv)
    context = ParserContext(name=verb, args=arguments(verb))
    try:
        (parsed,) = Parser(contexts=[context]).parse_argv([verb, *argv])
    except ParseError as error:
        raise UsageError(str(error), next_step=f"Flags of {verb}: {' '.join(context.flags)}") from None
    return make_request(parsed.as_kwargs)


def make_request(values: dict[str, Any]) -> BuildRequest:
    """Turn parsed values into the request; the job count becomes a number here.

    Raises:
        UsageError: --jobs is not a whole number.
    """
    clean = {key: value for key, value in values.items() if value not in (None, [])}
    if "set" in clean:
        clean["set"] = tuple(clean["set"])
    if "jobs" in clean:
        try:
            clean["jobs"] = int(clean["jobs"])
        except ValueError:
            raise UsageError(f"{flag_name('jobs')} {clean['jobs']!r} is not a whole number") from None
    return BuildRequest(**clean)

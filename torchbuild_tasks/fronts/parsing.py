"""Parse a command line to a request: the same flags and errors for every runner.

`torchbuild` and nox have their words read here. Invoke has a parser of its own; what it is given for that,
and where it asks here, is in invoke_tasks.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.options import (
    COMMON,
    GROUPS,
    BuildRequest,
    choices_of,
    flag_name,
    group_of,
    variable_name,
)
from torchbuild_tasks.text.words import did_you_mean
from torchbuild_tasks.verbs import VERBS, Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

SHORT = {"source": "s", "python": "p", "jobs": "j", "quiet": "q", "verbose": "v", "yes": "y"}
HELP = ("-h", "--help")


@functools.cache
def load(verb: str) -> Callable[[Any, Reporter], Outcome]:
    """Import and return the function of a verb."""
    run: Callable[[Any, Reporter], Outcome] = _import(VERBS[verb].run)
    return run


def begin_early(verb: str, request: BuildRequest) -> AbstractContextManager[object]:
    """Return the context of what a verb begins before it is imported itself."""
    if not VERBS[verb].early:
        return nullcontext()
    begin: Callable[[BuildRequest], AbstractContextManager[object]] = _import(VERBS[verb].early)
    return begin(request)


def _import(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"torchbuild_tasks.{module}"), name)


@functools.cache
def request_class(verb: str) -> type[BuildRequest]:
    """Return the class of a verb's requests: the annotation of its function's first parameter."""
    run = load(verb)
    declared: type[BuildRequest] = run.__globals__[run.__annotations__["request"]]
    return declared


@functools.cache
def flags(verb: str) -> tuple[dataclasses.Field[Any], ...]:
    """Return the flags that a verb takes, in the order of their declaration, its own last."""
    request = request_class(verb)
    shared = {field.name for field in dataclasses.fields(BuildRequest)}
    names = {"action"} if request.actions else set()
    names |= set(request.takes)
    return tuple(
        field
        for field in dataclasses.fields(request)
        if field.name not in shared or field.name in names or verb in field.metadata["verbs"]
    )


def spellings(field: dataclasses.Field[Any]) -> list[str]:
    """Return the option strings of a flag: `--jobs` and `-j`."""
    return [flag_name(field.name), *(f"-{short}" for short in [SHORT.get(field.name)] if short)]


def takes_value(field: dataclasses.Field[Any]) -> bool:
    """Say whether a word follows the flag."""
    return field.default is not False


def help_text(field: dataclasses.Field[Any], verb: str | None = None) -> str:
    """Return the flag's help with its choices, as the help of all runners and the docs show it."""
    choices = request_class(verb).actions if verb and field.name == "action" else choices_of(field)
    return str(field.metadata["help"]) + (f" [{'|'.join(choices)}]" if choices else "")


# ---------------- parsing


def parse(
    verb: str,
    argv: Sequence[str],
    command: str = "",
    fixed: Mapping[str, Any] = {},
) -> BuildRequest:
    """Parse the words after a verb.

    Args:
        verb: one of `VERBS`.
        argv: what follows it.
        command: how the verb is called here, for its help: `torchbuild build`.
        fixed: what the verb's name says already: `build_cpu`.

    Raises:
        UsageError: an unknown flag or action (names the nearest), a flag without its value, a word too few
            or too many.
        SystemExit: --help was among them, and has been printed.
    """
    own, trailing = split_at_dashes(argv)
    if trailing and not request_class(verb).trailing:
        raise UsageError(f"{verb} takes no words after --", next_step=f"Its flags: {_help_command(verb)}")
    if set(HELP).intersection(own):
        sys.stdout.write(Parser(verb, command or f"torchbuild {verb}").format_help())
        raise SystemExit(0)
    _check_letters(verb, own)
    try:
        known, rest = Parser(verb).parse_known_args(_join_negative_numbers(verb, own))
    except argparse.ArgumentError as error:
        raise _value_error(verb, error, own) from None
    for place, word in enumerate(rest):
        if word.startswith("-") and word != "-":  # a lone dash means stdin
            raise _unknown_flag(verb, rest[place:])
    values = vars(known)
    _check_paths(verb, values)
    for name, value in values.items():
        for text in texts_of_flag(value):
            _check_letters_of_value(name, text)
        if "" in [each.strip() for each in texts_of_flag(value)]:  # --source=$NOWHERE
            raise UsageError(
                f"{flag_name(name)} needs a value, and it is empty",
                next_step=f"Its values: {_help_command(verb)}",
            )
    answers = {**values, **_assign_words(verb, rest, given=values), "words": trailing or None}
    return make_request(verb, answers, fixed)


def _join_negative_numbers(verb: str, words: Sequence[str]) -> list[str]:
    """Return the words with a negative number as the value of its flag, where argparse sees another flag."""
    takers = {
        spelling: flag_name(each.name)
        for each in flags(verb)
        if takes_value(each)
        for spelling in spellings(each)
    }
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in takers and re.match(r"-[.\d]", word):
            joined[-1] = f"{takers[joined[-1]]}={word}"
        else:
            joined.append(word)
    return joined


def texts_of_flag(value: object) -> list[str]:
    """Return the texts of a flag's value: itself, or those of one that may be repeated."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def make_request(verb: str, values: dict[str, Any], fixed: Mapping[str, Any] = {}) -> BuildRequest:
    """Turn parsed values into the request; the job count becomes a number here.

    Args:
        verb: one of `VERBS`.
        values: what the command line says, by field.
        fixed: what the verb's name says (`build_cpu`); it wins over both.

    Raises:
        UsageError: --jobs is not an integer, or a TORCHBUILD_ variable has an invalid value.
    """
    values = {**values, **fixed}
    values = {**read_environment(verb, os.environ, values), **values}
    _check_paths(verb, values)
    clean = {key: value for key, value in values.items() if value not in (None, [])}
    clean = {key: tuple(value) if isinstance(value, list) else value for key, value in clean.items()}
    if "jobs" in clean:
        text = str(clean["jobs"]).strip()
        digits = text.removeprefix("-")
        whole = digits.isascii() and digits.isdecimal()
        if not whole or len(digits) > _LONGEST:
            name = variable_name("jobs") if "jobs" in clean.get("from_environment", ()) else flag_name("jobs")
            why = f"is too large: at most {'9' * _LONGEST}" if whole else "is not a whole number"
            raise UsageError(f"{name} {clean['jobs']!r} {why}", next_step="Write for example: --jobs 4")
        clean["jobs"] = int(text)
    return request_class(verb)(**clean)


_LONGEST = 9  # digits of a number of jobs
_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")
_OPPOSITE = {"cpu": "cuda", "cuda": "cpu"}


def read_environment(verb: str, environ: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags' values from TORCHBUILD_ variables, and the names of those given and those turned off.

    A variable that is empty says nothing; neither does one whose flag was given, or whose opposite was.

    Raises:
        UsageError: a variable of a switch is neither yes nor no, or the value is none of its choices.
    """
    values: dict[str, Any] = {}
    denied: list[str] = []
    present = {name for name, value in given.items() if value not in (None, False, [], ())}
    for field in flags(verb):
        variable = variable_name(field.name)
        text = environ.get(variable, "").strip()
        silenced = field.name in present or _OPPOSITE.get(field.name) in present
        if not text or silenced or field.name in ("action", *_word_fields(verb)):
            continue
        value = _from_variable(field, variable, text)
        if value is False:
            denied.append(field.name)
        else:
            values[field.name] = value
    if "cpu" in values and "cuda" in values:
        what = f"{variable_name('cpu')} and {variable_name('cuda')} are both set"
        raise UsageError(what, next_step="Unset one of them, or give the flag: --cpu or --cuda.")
    return {**values, "from_environment": tuple(values), "denied_by_environment": tuple(denied)}


def _from_variable(field: dataclasses.Field[Any], variable: str, text: str) -> Any:
    """Return a variable's text as its flag's value; words of a list are separated by blanks, or quoted."""
    if not takes_value(field):
        if text.lower() in (*_YES, *_NO):
            return text.lower() in _YES
        raise UsageError(f"{variable} cannot be {text!r}", next_step="Say 1 or 0, or unset it.")
    if field.default == ():
        lexer = shlex.shlex(text, posix=True, punctuation_chars="")
        lexer.whitespace_split = True
        lexer.escape = ""
        lexer.commenters = ""
        try:
            return list(lexer)
        except ValueError:
            raise UsageError(f"{variable} has a quote that is not closed: {text}") from None
    choices = choices_of(field)
    if choices and text not in choices:
        hint = did_you_mean(text, choices)
        choose = f"Choose one of: {', '.join(choices)}."
        raise UsageError(f"{variable} cannot be {text!r}{hint}", next_step=choose)
    return text


def split_at_dashes(words: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Return the words before `--`, and those after it for another program; None without `--`."""
    if "--" not in words:
        return list(words), None
    end = list(words).index("--")
    return list(words[:end]), tuple(words[end + 1 :])


class _WholeWords(argparse.HelpFormatter):
    """Wrap help between words only, so that `flash-attn==2.8.3` and lists of values can be copied."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap  # imported late, as argparse does: most runs show no help

        return textwrap.wrap(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """The parser of a verb's flags; with `command` also of its words, for the help."""

    def __init__(self, verb: str, command: str = "") -> None:
        super().__init__(
            usage=_usage(verb, command),
            description=_description(verb),
            formatter_class=_WholeWords,
            add_help=False,
            allow_abbrev=False,
            exit_on_error=False,
            argument_default=argparse.SUPPRESS,
        )
        due = {"action", *_word_fields(verb)} if command else set()
        groups = _groups(verb, due)
        for title, fields in groups.items():
            group = self.add_argument_group(title)
            for field in fields:
                self._add(group, field, verb, is_word=field.name in due)
        if command:
            self.epilog = _EPILOG

    def _add(
        self, group: argparse._ArgumentGroup, field: dataclasses.Field[Any], verb: str, *, is_word: bool
    ) -> None:
        text = help_text(field, verb).replace("%", "%%")
        if is_word:
            group.add_argument(field.name, metavar=field.metadata["metavar"], help=text)
        elif not takes_value(field):
            group.add_argument(*spellings(field), dest=field.name, action="store_true", help=text)
        else:
            how = "append" if field.default == () else "store"
            metavar = field.metadata["metavar"]
            group.add_argument(*spellings(field), dest=field.name, action=how, metavar=metavar, help=text)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError for argparse's errors, where it would end the process."""
        raise UsageError(message)


_EPILOG = (
    "A flag may also be given by a variable (--jobs: TORCHBUILD_JOBS) or in torchbuild.toml (jobs = 8); "
    "`torchbuild config` shows what applies here, and why."
)
# Flags that are used most.
_OFTEN = ("cpu", "cuda", "preset", "torch", "jobs", "set", "clean", "dry_run", "arch", "build_type")


def _groups(verb: str, due: Collection[str]) -> dict[str, list[dataclasses.Field[Any]]]:
    """Return the flags by heading: words, the verb's own, often used, other, common."""
    shared = {field.name for field in dataclasses.fields(BuildRequest)}
    order = ["Words", f"Only for {verb}", "Often used", *(title for _, title in GROUPS), "Common"]
    groups: dict[str, list[dataclasses.Field[Any]]] = {title: [] for title in order}
    for field in flags(verb):
        if field.name in due:
            groups["Words"].append(field)
        elif field.name not in shared or field.metadata["verbs"] == (verb,):
            groups[f"Only for {verb}"].append(field)
        elif field.name in _OFTEN:
            groups["Often used"].append(field)
        else:
            groups[group_of(field.name)].append(field)
    groups["Common"].sort(key=lambda field: COMMON.index(field.name))
    return {title: fields for title, fields in groups.items() if fields}


def _description(verb: str) -> str:
    """Return the summary of a verb, and below it a line for each of its actions."""
    actions = request_class(verb).actions
    wide = max(map(len, actions), default=0)
    return "\n".join((VERBS[verb].summary, *(f"  {name:<{wide}}  {what}" for name, what in actions.items())))


def _usage(verb: str, command: str) -> str:
    """Return one line for each action with the words that follow it."""
    request = request_class(verb)
    by_name = {field.name: field for field in flags(verb)}
    end = " [FLAGS]" + (" [-- WORDS]" if request.trailing else "")
    lines = []
    for action in request.actions or ("",):
        words = [command, *filter(None, [action])]
        names = request.objects.get(action, request.positionals)
        words += [by_name[name].metadata["metavar"] for name in names]
        if name := request.optional.get(action):
            words.append(f"[{by_name[name].metadata['metavar']}]")
        lines.append(" ".join(words).replace("%", "%%") + end)
    return "\n       ".join(lines)


def _word_fields(verb: str) -> set[str]:
    """Return the fields whose values are positional words."""
    request = request_class(verb)
    after = (name for names in request.objects.values() for name in names)
    return {*request.positionals, *after, *request.optional.values()}


def _assign_words(verb: str, words: Sequence[str], given: dict[str, Any]) -> dict[str, str]:
    """Assign the positional words to their fields.

    Raises:
        UsageError: an unknown action, a word too few or too many.
    """
    request = request_class(verb)
    rest = list(words)
    fields = dict[str, str]()
    action = given.get("action", "")
    if request.actions and not action:
        if not rest:
            raise _action_error(verb, f"{verb} needs an action")
        fields["action"] = action = rest.pop(0)
    if request.actions and action not in request.actions:
        raise _action_error(verb, f"{verb} has no action {action}{did_you_mean(action, request.actions)}")
    due = [name for name in request.objects.get(action, request.positionals) if name not in given]
    # An empty word is from an unset variable; as a path it would mean the current folder.
    filled = next((place for place, word in enumerate(rest) if not word.strip()), len(rest))
    if filled < len(due):
        raise _missing_word(verb, action, due[filled])
    may = [name for name in filter(None, [request.optional.get(action)]) if name not in given]
    if len(rest) > len(due) + len(may):
        command = f"{verb} {action}".rstrip()
        extra = rest[len(due) + len(may) :]
        if not extra[0].isascii():
            from torchbuild_tasks.fronts.slips import letters_error

            if error := letters_error(extra[0], begins=True):
                raise error
        meant = _meant(verb, extra, given.get("set") or ())
        raise UsageError(
            f"{command} does not know what to do with the word {extra[0]!r}",
            next_step=f"Write: {meant}"
            if meant
            else f"{_behind_dashes(verb)}Its words and flags: {_help_command(verb)}",
        )
    return fields | dict(zip([*due, *may], rest, strict=False))


# ---------------- errors


def _value_error(verb: str, error: argparse.ArgumentError, words: Sequence[str]) -> UsageError:
    """Return the error about a flag without a value, or with one that it does not take."""
    what = "needs a value" if "expected" in str(error) else "takes no value"
    if error.argument_name == "--set":
        what += " such as USE_DISTRIBUTED=0, without CMake's -D"
    step = f"Its values: {_help_command(verb)}"
    given = re.search(
        r"ignored explicit argument '(.+)'", str(error)
    )  # argparse's words, Python 3.11 to 3.14
    defined = next((after for word, after in pairwise(words) if word == "--set" and after[:2] == "-D"), "")
    if defined and error.argument_name == "--set" and (meant := _meant(verb, [defined])):
        return UsageError(f"{error.argument_name} {what}", next_step=f"Write: {meant}")
    if given and (meant := _meant(verb, given.groups())):
        step = f"Write: {error.argument_name} {meant}"
    return UsageError(f"{error.argument_name} {what}", next_step=step)


def _help_command(verb: str) -> str:
    """Return the command that shows a verb's help, for the present runner."""
    return f"torchbuild {verb} --help"


def _action_error(verb: str, what: str) -> UsageError:
    actions = ", ".join(f"{verb} {word}" for word in request_class(verb).actions)
    return UsageError(what, next_step=f"Choose one of: {actions}.")


def _missing_word(verb: str, action: str, name: str) -> UsageError:
    request = request_class(verb)
    samples = {field.name: field.metadata["sample"] for field in flags(verb)}
    words = " ".join(samples[field][1] for field in request.objects.get(action) or request.positionals)
    pipe = ", or `diagnose -` for what comes in by a pipe" if verb == "diagnose" else ""
    command = f"{verb} {action}".rstrip()
    return UsageError(
        f"{command} needs to be told which {samples[name][0]}", next_step=f"Write: {command} {words}{pipe}"
    )


def _unknown_flag(verb: str, words: Sequence[str]) -> UsageError:
    """Return the error about the first of some words, which is a flag that the verb does not have."""
    from torchbuild_tasks.fronts.slips import letters_error, near_flag, why_nothing_near

    name = words[0].partition("=")[0]
    if error := letters_error(name):
        return error
    known = [spelling for field in flags(verb) for spelling in spellings(field)]
    others = [other for other in VERBS if any(name in spellings(field) for field in flags(other))]
    if others:
        what = f"{verb} has no flag {name}, which is one of {', '.join(others[:4])}"
        return UsageError(what, next_step=f"See: {_help_command(others[0])}, and {_help_command(verb)}")
    if meant := _meant(verb, words):
        return UsageError(f"{verb} has no flag {name}", next_step=f"Write: {meant}")
    if why := why_nothing_near(name, known):
        return UsageError(f"{verb} has no flag {name}", next_step=why)
    hint = near_flag(name, known)
    own = {"action", *_word_fields(verb)}
    flags_of = " ".join(flag_name(field.name) for field in flags(verb) if field.name not in own)
    listed = f"All of its flags: {_help_command(verb)}" if hint else f"Flags of {verb}: {flags_of}"
    return UsageError(f"{verb} has no flag {name}{hint}", next_step=f"{_behind_dashes(verb)}{listed}")


def _behind_dashes(verb: str) -> str:
    """Return how words reach the program that a verb starts, a line; "" for one that starts none."""
    own = request_class(verb).trailing
    return f"What its program gets stands behind two dashes: {verb} [FLAGS] -- WORDS\n" if own else ""


def _check_letters(verb: str, words: Sequence[str]) -> None:
    """Refuse a flag of the verb with a dash that is no hyphen."""
    if not all(map(str.isascii, words)):
        from torchbuild_tasks.fronts.slips import check_dashes

        check_dashes(words, {*(spelling for each in flags(verb) for spelling in spellings(each)), *HELP})


def _check_paths(verb: str, values: Mapping[str, Any]) -> None:
    """Refuse a path with a quote that the shell left in it.

    Args:
        verb: one of `VERBS`.
        values: what was given, by field.
    """
    for field in flags(verb):
        texts = texts_of_flag(values.get(field.name))
        if any('"' in text or "'" in text for text in texts) and _takes_path(field):
            from torchbuild_tasks.fronts.slips import check_path_quotes

            name = field.metadata["metavar"] if field.name in _word_fields(verb) else flag_name(field.name)
            if field.name in values.get("from_environment", ()):
                name = variable_name(field.name)
            for text in texts:
                check_path_quotes(name, text)


def _takes_path(field: dataclasses.Field[Any]) -> bool:
    return bool(
        {"PATH", "FILE", "FOLDER", "LOG", "MANIFEST", "WHEEL"}.intersection(
            str(field.metadata["metavar"]).split("|")
        )
    )


def _check_letters_of_value(name: str, text: str) -> None:
    """Refuse a flag's value in the quotes of a printed text."""
    if not text.isascii():
        from torchbuild_tasks.fronts.slips import check_quotes

        check_quotes(flag_name(name), text)


def _meant(verb: str, words: Sequence[str], assignments: Sequence[str] = ()) -> str:
    """Return what to write instead of a word that the verb does not know; "" where that is unknown.

    Args:
        verb: one of `VERBS`.
        words: the word, and what follows it.
        assignments: the values of --set.
    """
    from torchbuild_tasks.catalog import load_catalog  # most runs have no such word
    from torchbuild_tasks.fronts.slips import torn_assignment, what_was_meant

    if torn := torn_assignment(assignments, words):
        return torn
    switches = {name for row in load_catalog().option for name in row.names}
    known = [spelling for field in flags(verb) for spelling in spellings(field)]
    return what_was_meant(words, known, switches)


def unknown_verb(word: str, known: Sequence[str]) -> UsageError:
    """Return the error for an unknown verb."""
    if not word.isascii():
        from torchbuild_tasks.fronts.slips import letters_error

        if error := letters_error(word, begins=True):
            return error
    if word.startswith("-"):
        what = f"there is no flag {word} before the verb; a verb's flags follow it"
        hint = ""
    else:
        hint = did_you_mean(word, known)
        what = f"there is no verb {word or repr(word)}{hint}"
    listed = "All verbs: torchbuild --help" if hint else f"Verbs: {' '.join(known)}"
    return UsageError(what, next_step=listed)

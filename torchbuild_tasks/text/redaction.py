"""Redact texts: replace secrets and personal data by named rules before they leave in a report.

A rule is a pattern over text, with its replacement; docs/support.md lists them. The values of environment
variables with a secret's name are replaced wherever else they occur, too. Replacements are words that are
valid in paths, so that redacted facts can still be planned for.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from torchbuild_tasks.catalog import load_catalog

MASK: Final = "REDACTED"
_SHORTEST: Final = 6  # a shorter value would match too often by accident
_BEFORE: Final = 8  # characters before a name by which our own sentences are known
# Common values of such variables that are no secret.
_SAYS_NOTHING: Final = frozenset(
    ("enabled", "disabled", "default", "required", "release", "system", "public")
)
# Values that are no secret whatever the name is.
_PLAIN: Final = frozenset(
    ("", "0", "1", "on", "off", "true", "false", "yes", "no", "none", "null", "success", "failed", "passed")
    + ("enabled", "disabled", "required", "optional", "set", "unset", "basic", "(set,", "***")
)
_A_PATH: Final = re.compile(r"(?:~|[A-Za-z]:)?(?:[\\/][\w@.+ -]+){2,}[\\/]?")
# What a container engine's --secret is given: the name of a secret, and the file or variable that has it.
_NAMES_A_SECRET: Final = re.compile(r"(?:type=\w+,)?id=[\w.-]+(?:,(?:type|src|source|env)=[^\s,=]+)+")

_VALUED: Final = ("value", "before", "after")  # keys besides "name" in the values of a plan
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]{1,20}"
_NAME: Final = r"[A-Za-z_](?:[A-Za-z0-9_.-]{0,100}[A-Za-z0-9_])?"
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# User names that name no person, and are common words.
_GENERIC_USERS: Final = frozenset(
    ("root", "user", "users", "runner", "admin", "administrator", "ubuntu", "debian", "build", "builder")
    + ("jenkins", "vagrant", "docker", "nobody", "default", "public", "test", "torch", "pytorch", "python")
    + ("home", "local")
)


class Rule(NamedTuple):
    """One kind of redaction: its name, its description, the pattern, and the replacement.

    One that is about a person, and not a secret, goes only where a text is handed on. Where there is a
    pattern of a `value`, the first group of the other is a name, and what follows goes if that is a secret's.
    """

    id: str
    what: str
    pattern: re.Pattern[str]
    instead: str = MASK
    person: bool = False
    value: re.Pattern[str] | None = None


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Return the rules in the order of their application."""
    flags = {"": 0, "i": re.IGNORECASE, "m": re.MULTILINE}
    rows = [
        Rule(row.id, row.what, re.compile(row.pattern, flags[row.flags]), row.instead, row.about == "person")
        for row in load_catalog().secret_form
    ]
    named = (
        Rule(
            "flag",
            "values of flags whose names speak of a secret (--token X, --password=X)",
            re.compile(rf"(?<![A-Za-z0-9-])(--?{_NAME})(?:=|\s+)(?!-|{MASK})(?=\S)"),
            value=re.compile(r"\"[^\"\r\n]*\"|'[^'\r\n]*'|(?:[\"'](?=\w))?[^\s\"']+"),
        ),
        Rule(
            "assignment",
            'values of names that speak of a secret (API_TOKEN=X, "password": "X", ?sig=X)',
            re.compile(
                rf"(?<![A-Za-z0-9_.])(-{{0,2}}{_NAME})\\?[\"']?(?::[A-Z]{{4,8}}=|\s*(?:=>?|:(?!:))>?[ \t]*)"
                rf"(?!{MASK})(?=[^\s&;,])"
            ),
            # The quotation mark of a line that was cut is never closed.
            value=re.compile(r"\\?\"[^\"\r\n]*\"|'[^'\r\n]*'|(?:[\"'](?=\w))?[^\s\"'&;,]+"),
        ),
    )
    people = tuple(row for row in rows if row.person)
    return (*(row for row in rows if not row.person), *named, *people)


# Names of people in paths; other characters than letters and digits are kept, because they can matter.
_HOMES: Final = re.compile(
    # On Windows they may contain blanks and quotes, if another folder follows.
    r"((?<=[A-Za-z]:)[\\/]{1,4}(?:Users|Documents and Settings)[\\/]{1,4})"
    r"([^\\/\r\n\":;<>|*?]+(?=[\\/])|[^\\/\s\"':;<>|*?,)\]}]+)"
    r"|(/home/|/Users/)([^\\/\s\"':;<>|*?,)\]}]+)",
    re.IGNORECASE,
)
# Rules with values of this machine, and their descriptions.
OWN_RULES: Final[Mapping[str, str]] = {
    "known-value": "values known from the environment or --set by a name that speaks of a secret, and logins",
    "home": "the user's name in paths below /home, /Users and C:\\Users",
    "user": "the user's name elsewhere",
    "host": "the machine's name",
    "environment": "the values of all variables but those that a build or its programs read",
}


def is_secret(name: str) -> bool:
    """Say whether the value of a variable, key or flag of this name is a secret."""
    return _speaks(name.rpartition(" ")[2])  # the inputs of a build have keys such as "variable CC"


@functools.lru_cache(maxsize=4096)
def _speaks(name: str) -> bool:
    words = tuple(word.lower() for word in _WORD.findall(name))
    whole, ends = _secret_words()
    if whole.isdisjoint(words) and not any(word.endswith(ends) for word in words):
        return False  # true for nearly all names: each row below needs one of these
    rows = load_catalog().secret_name
    if any(_matches_position(row.words, row.where, words) for row in rows if row.harmless):
        return False
    return any(_matches_position(row.words, row.where, words) for row in rows if not row.harmless)


@functools.cache
def _secret_words() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the words, and the endings of words, of which each secret's name has one."""
    rows = [row for row in load_catalog().secret_name if not row.harmless]
    whole = {word for row in rows if row.where != "end" for each in row.words for word in each.split()}
    return frozenset(whole), tuple(word for row in rows if row.where == "end" for word in row.words)


_WEAK: Final = frozenset(("key", "keys", "pass", "sig", "auth"))


def _matches_position(wanted: Iterable[str], where: str, words: tuple[str, ...]) -> bool:
    """Say whether a row's words are at the row's position in a name."""
    joined = " ".join(words)
    if where == "whole":
        return joined in wanted
    if where == "end":
        ends = tuple(wanted)
        return any(word.endswith(ends) and word not in _WHOLE_WORDS for word in words)
    if where == "first of key":
        return words[0] in wanted and not _strong(words)
    if where == "behind key":
        return len(words) > 1 and words[-1] in wanted and not _strong(words[:-2])
    if where == "last":
        return any(joined == each or joined.endswith(f" {each}") for each in wanted)
    return any(f" {each} " in f" {joined} " for each in wanted)


# English words with the ending of a secret's name.
_WHOLE_WORDS: Final = frozenset(
    ("bypass", "compass", "trespass", "surpass", "encompass", "underpass", "overpass", "multipass", "pass")
)


def _strong(words: tuple[str, ...]) -> bool:
    """Say whether a name is a secret's even without its ambiguous words."""
    rows = [row for row in load_catalog().secret_name if not row.harmless and row.where == "anywhere"]
    rest = tuple(word for word in words if word not in _WEAK)
    pairs = any(_matches_position(row.words, row.where, words) for row in rows if " " in row.words[0])
    return pairs or (bool(rest) and any(_matches_position(row.words, row.where, rest) for row in rows))


@functools.lru_cache(maxsize=4096)  # a build writes its manifest several times, with the same texts
def without_forms(text: str, instead: str) -> str:
    """Return a text in which `instead` replaces everything with the form of a secret."""
    for rule in rules():
        if not rule.value and not rule.person:
            text = rule.pattern.sub(rule.instead.replace(MASK, instead), text)
    return text


class Redactor:
    """Applies the rules, and counts the replacements of each.

    Args:
        users: names of the user.
        hosts: names of the machine.
        people: whether to redact personal data, too.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        users: Iterable[str] = (),
        hosts: Iterable[str] = (),
        *,
        people: bool = True,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._people = people
        self._values = _secret_values(environ)
        self._literal = _literals(self._values)
        self._users = _words(name for name in users if name.lower() not in _GENERIC_USERS)
        self._hosts = _words(name for name in hosts if name.lower() != "localhost")

    def learn(self, value: Any) -> None:
        """Add the secrets in a value, such as those of --set and files, to the known ones."""
        self._values |= {text for text in _list_secret_values(value) if _is_distinctive(text)}
        self._literal = _literals(self._values)

    def text(self, text: str) -> str:
        if self._literal:
            text = self._replace("known-value", self._literal, MASK, text)
        for rule in rules():
            if rule.value:
                text = self._values_of_names(rule, rule.value, text)
            elif self._people or not rule.person:
                text = self._replace(rule.id, rule.pattern, rule.instead, text, spares_rows=not rule.person)
        if not self._people:
            return text
        text, count = _HOMES.subn(
            lambda match: (match[1] or match[3]) + _mask_name(match[2] or match[4]), text
        )
        self.counts["home"] += count
        for id, pattern, word in (("user", self._users, "USER"), ("host", self._hosts, "HOST")):
            if pattern:
                text = self._replace(id, pattern, word, text)
        return text

    def value(self, value: Any) -> Any:
        """Return a value as JSON has it, of the same shape."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._list(value)
        if isinstance(value, dict):
            named = _has_secret_name(value)
            return {
                self.text(key): self._count_and_mask()
                if named and key in _VALUED and item
                else self._count_and_mask()
                if is_secret(key) and isinstance(item, str) and item
                else self.value(item)
                for key, item in value.items()
            }
        return value

    def _list(self, items: list[Any]) -> list[Any]:
        """Redact the words of a command, such as the one after --token."""
        masked = []
        before = ""
        for item in items:
            flag = before.startswith("-") and is_secret(before.lstrip("-")) and isinstance(item, str)
            flag = flag and not _NAMES_A_SECRET.fullmatch(item)
            masked.append(self._count_and_mask() if flag else self.value(item))
            before = item if isinstance(item, str) else ""
        return masked

    def _count_and_mask(self) -> str:
        self.counts["assignment"] += 1
        return MASK

    def _replace(
        self, id: str, pattern: re.Pattern[str], instead: str, text: str, *, spares_rows: bool = False
    ) -> str:
        def mask(match: re.Match[str]) -> str:
            if spares_rows and _stands_in_row(match[0]):
                return match[0]
            self.counts[id] += 1
            return match.expand(instead)

        return pattern.sub(mask, text)

    def _values_of_names(self, rule: Rule, value: re.Pattern[str], text: str) -> str:
        """Redact values after names of secrets.

        Only there it is read: behind every name, it could reach to the end of a long line.
        """
        parts = []
        at = 0
        while match := rule.pattern.search(text, at):
            parts.append(text[at : match.end()])
            at = match.end()
            found = value.match(text, at) if is_secret(match[1].lstrip("-")) else None
            if found and not (
                found[0].strip("\"'\\").lower() in _PLAIN
                or _NAMES_A_SECRET.fullmatch(found[0].strip("\"'"))
                or _stands_in_row(text[match.start() : found.end()])
                or _is_filled_in(text, match)
                or _is_of_a_file(text, match)
            ):
                quote = next((mark for mark in ('\\"', '"', "'") if found[0].startswith(mark)), "")
                parts.append(f"{quote}{MASK}{quote}")
                at = found.end()
                self.counts[rule.id] += 1
        return "".join((*parts, text[at:]))


@functools.cache
def _row_texts() -> str:
    """Return all that rows say of a failure, in which the names of what is filled in still stand."""
    catalog = load_catalog()
    rows = (*catalog.failure, *catalog.kind, *catalog.component, *catalog.fetcher)
    names = ("cause", "fix", "command", "proxy", "trust", "patience")
    values = (getattr(row, name, "") for row in rows for name in names)
    return "\n".join(text for each in values for text in ((each,) if isinstance(each, str) else each))


def _stands_in_row(text: str) -> bool:
    """Say whether a text is our own advice, which holds examples of secrets and no secret."""
    return text in _row_texts()


def _is_filled_in(text: str, name: re.Match[str]) -> bool:
    """Say whether a row has this name, in the same words, and what follows is filled in from a log."""
    before = text[max(0, name.start() - _BEFORE) : name.start()]
    return len(before) == _BEFORE and "\n" not in before and f"{before}{name[0]}{{" in _row_texts()


def _is_of_a_file(text: str, name: re.Match[str]) -> bool:
    """Say whether the name ends a path, and what follows is said of that file: /etc/passwd: not a folder."""
    return text[: name.start()].endswith(("/", "\\")) and name[0].endswith(": ")


def _secret_values(environ: Mapping[str, str]) -> set[str]:
    """Return the values of secret names, and the parts of logins in addresses, to be replaced anywhere."""
    values = {value for name, value in environ.items() if is_secret(name)}
    for value in environ.values():
        for login in re.findall(rf"\b{_SCHEME}://([^\s/\"'<>]+)@", value):
            values |= {login, login.partition(":")[2]}
    return {value.strip() for value in values if _is_distinctive(value.strip())}


def _is_distinctive(value: str) -> bool:
    """Say whether a secret's value is replaced in other texts, too: not a short or common one."""
    return len(value) >= _SHORTEST and value.lower() not in _SAYS_NOTHING and _A_PATH.fullmatch(value) is None


def _has_secret_name(value: dict[str, Any]) -> bool:
    """Say whether the name of a choice, a variable or a key of a file is a secret's."""
    return any(isinstance(name := value.get(each), str) and is_secret(name) for each in ("name", "variable"))


def _list_secret_values(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        name, equals, rest = value.partition("=")
        if equals and is_secret(name):
            before, _, name = name.rpartition(" ")
            rest = rest.partition(" ")[0] if before else rest  # of a text or a command, which goes on
            if not _stands_in_row(f"{name}={rest}"):
                yield rest
    elif isinstance(value, list):
        for item in value:
            yield from _list_secret_values(item)
    elif isinstance(value, dict):
        if _has_secret_name(value):
            yield from (item.strip("\"'") for key in _VALUED if isinstance(item := value.get(key), str))
        for key, item in value.items():
            if is_secret(key) and isinstance(item, str):
                yield item
            yield from _list_secret_values(item)


def _literals(values: Iterable[str]) -> re.Pattern[str] | None:
    """Return the values, longest first, each also as JSON and URLs escape it."""
    from urllib.parse import quote, unquote

    spelled = {
        form
        for value in values
        for form in (value, json.dumps(value)[1:-1], quote(value, ""), unquote(value))
    }
    ordered = sorted(spelled, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def _words(names: Iterable[str]) -> re.Pattern[str] | None:
    wanted = sorted({name for name in names if len(name) >= 3}, key=len, reverse=True)
    if not wanted:
        return None
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, wanted))})(?![A-Za-z0-9])")


def _mask_name(name: str) -> str:
    """Replace words of a name but not its blanks, quotes or letters beyond ASCII, which can break builds."""
    return re.sub(r"[A-Za-z0-9_.-]+", "USER", name)

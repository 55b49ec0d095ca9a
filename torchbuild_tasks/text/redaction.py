"""What must not leave the machine in a report: rules by name, applied to every text in it.

A rule is a pattern over text, with what is put in its place; docs/support.md lists them. What the
environment holds under a name that speaks of a secret is taken out wherever else it stands, too.
Replacements are words that a path can hold, so that facts without names can still be planned for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

GONE: Final = "REDACTED"
_SHORTEST: Final = 6  # a shorter value stands in too many places by accident

# Names of variables, keys and flags whose values are secrets.
_NAME: Final = (
    r"(?:[A-Za-z0-9_.-]{0,64}(?:token|secret|passw(?:or)?d|passphrase|api_?key|access_?key|private_?key|account_?key"
    r"|credential|cookie|signature|auth(?!or))[A-Za-z0-9_.-]{0,64}|[A-Za-z0-9_.-]{0,64}[_-](?:key|pat|pwd|sas)|sig|pwd|pgpass)"
)
_SECRET_NAME: Final = re.compile(_NAME, re.IGNORECASE)
# Their values are names of things: USE_*_KEY and the like do not exist in a build.
_HARMLESS: Final = frozenset(("oldpwd", "pwd", "ssh_auth_sock", "xauthority"))
_VALUED: Final = ("value", "before", "after")  # beside "name", in what a plan is made of
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]{1,20}"
# Users that stand for nobody, and would be found in half of all texts.
_NOBODY: Final = frozenset(
    ("root", "user", "users", "runner", "admin", "administrator", "ubuntu", "debian", "build", "builder")
    + ("jenkins", "vagrant", "docker", "nobody", "default", "public", "test", "torch", "pytorch", "python")
    + ("home", "local")
)


class Rule(NamedTuple):
    """What is taken out: its name, in words, the pattern, and what stands there then."""

    id: str
    what: str
    pattern: re.Pattern[str]
    instead: str = GONE


def _rule(id: str, what: str, pattern: str, instead: str = GONE, flags: int = 0) -> Rule:
    return Rule(id, what, re.compile(pattern, flags), instead)


_I: Final = re.IGNORECASE
RULES: Final = (
    _rule(
        "private-key",
        "private keys (PEM, OpenSSH, PGP), also where a log begins or ends within one",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----(?:(?!-----END)[A-Za-z0-9+/=\s\\:,.-])*"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----)?"
        r"|(?:^[ \t]*[A-Za-z0-9+/=]{16,}[ \t]*\r?\n){1,80}"
        r"[ \t]*-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----",
        flags=re.MULTILINE,
    ),
    _rule(
        "url-login",
        "user names, passwords and tokens in addresses (proxies, package indexes, git, redis)",
        rf"\b({_SCHEME}://)[^\s/\"'<>]+@",
        rf"\1{GONE}@",
    ),
    _rule(
        "authorization",
        "headers that log in (Authorization, Proxy-Authorization, Cookie, X-...-Token)",
        r"\b((?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]{0,30}(?:token|key))(\s*[:=]\s*)[^\r\n\"']+",
        rf"\1\2{GONE}",
        _I,
    ),
    _rule("bearer", "bearer tokens", r"\b(bearer)\s+[A-Za-z0-9+/_.~=-]{8,}", rf"\1 {GONE}", _I),
    _rule("netrc", "logins of netrc files", r"\b(login\s+)\S+(\s+password\s+)\S+", rf"\1{GONE}\2{GONE}", _I),
    _rule("jwt", "JSON web tokens", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    _rule("aws", "key ids of AWS", r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b"),
    _rule("github", "tokens of GitHub", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    _rule("gitlab", "tokens of GitLab", r"\bgl(?:pat|dt|rt|ptt|cbt|soat)-[A-Za-z0-9_.-]{16,}"),
    _rule("package-index", "tokens of PyPI and npm", r"\b(?:pypi-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{20,})"),
    _rule(
        "model-hosts",
        "keys of Hugging Face, NVIDIA, OpenAI, Anthropic, Weights & Biases",
        r"\b(?:hf_[A-Za-z0-9]{16,}|nvapi-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{16,}|wandb_v1_[A-Za-z0-9_]{16,})",
    ),
    _rule(
        "cloud",
        "keys of Google, Azure, Slack, Stripe, DigitalOcean",
        r"\b(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}"
        r"|[rs]k_live_[A-Za-z0-9]{16,}|dop_v1_[a-f0-9]{32,})",
    ),
    _rule(
        "flag",
        "values of flags whose names speak of a secret (--token X, --password=X)",
        rf"(?<![A-Za-z0-9-])(--?{_NAME})(=|\s+)(?!-)(?:\"[^\"\r\n]*\"|'[^'\r\n]*'|[^\s\"']+)",
        rf"\1\2{GONE}",
        _I,
    ),
    _rule(
        "assignment",
        'values of names that speak of a secret (API_TOKEN=X, "password": "X", ?sig=X)',
        rf"(?<![A-Za-z0-9_.-])({_NAME})(\\?[\"']?\s*[:=]>?\s*)"
        rf"(?!{GONE})(?:\\?\"[^\"\r\n]*\"|'[^'\r\n]*'|[^\s\"'&;,]+)",
        rf"\1\2{GONE}",
        _I,
    ),
    _rule(
        "email",
        "e-mail addresses",
        rf"\b(?!{GONE}@)[A-Za-z0-9._%+-]{{1,64}}@[A-Za-z0-9-]{{1,63}}(?:\.[A-Za-z0-9-]{{1,63}})+\b",
    ),
)
# Names of people in paths; what is no letter or digit stays, because it can matter to a build.
_HOMES: Final = re.compile(
    # Windows' may hold blanks and quotes, where another folder follows.
    r"((?<=[A-Za-z]:)[\\/]{1,4}(?:Users|Documents and Settings)[\\/]{1,4})"
    r"([^\\/\r\n\":;<>|*?]+(?=[\\/])|[^\\/\s\"':;<>|*?,)\]}]+)"
    r"|(/home/|/Users/)([^\\/\s\"':;<>|*?,)\]}]+)",
    _I,
)
# Rules that need to know this machine, with what they take out.
OWN_RULES: Final[Mapping[str, str]] = {
    "known-value": "values known from the environment or --set by a name that speaks of a secret, and logins",
    "home": "the user's name in paths below /home, /Users and C:\\Users",
    "user": "the user's name elsewhere",
    "host": "the machine's name",
    "environment": "the values of all variables but those that a build or its programs read",
}


def is_secret(name: str) -> bool:
    """Say whether a name says that its value is a secret."""
    word = name.rpartition(" ")[2]  # the inputs of a build have keys such as "variable CC"
    return word.lower() not in _HARMLESS and _SECRET_NAME.fullmatch(word) is not None


class Redactor:
    """Takes out what the rules name, and counts how often each did.

    Args:
        environ: the whole environment.
        users: names of the user.
        hosts: names of the machine.
    """

    def __init__(self, environ: Mapping[str, str], users: Iterable[str], hosts: Iterable[str]) -> None:
        self.counts: Counter[str] = Counter()
        self._values = _secret_values(environ)
        self._literal = _literals(self._values)
        self._users = _words(name for name in users if name.lower() not in _NOBODY)
        self._hosts = _words(name for name in hosts if name.lower() != "localhost")

    def learn(self, value: Any) -> None:
        """Take the secrets that a value holds under such names for known: --set and files have some, too."""
        self._values |= {text for text in _named_values(value) if len(text) >= _SHORTEST}
        self._literal = _literals(self._values)

    def text(self, text: str) -> str:
        """Return the text without them."""
        if self._literal:
            text = self._replaced("known-value", self._literal, GONE, text)
        for rule in RULES:
            text = self._replaced(rule.id, rule.pattern, rule.instead, text)
        text, count = _HOMES.subn(lambda found: (found[1] or found[3]) + _masked(found[2] or found[4]), text)
        self.counts["home"] += count
        for id, pattern, word in (("user", self._users, "USER"), ("host", self._hosts, "HOST")):
            if pattern:
                text = self._replaced(id, pattern, word, text)
        return text

    def value(self, value: Any) -> Any:
        """Return a value as JSON has it, of the same shape."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._list(value)
        if isinstance(value, dict):
            named = isinstance(value.get("name"), str) and is_secret(value["name"])
            return {
                self.text(key): self._gone()
                if named and key in _VALUED and item
                else self._gone()
                if is_secret(key) and isinstance(item, str) and item
                else self.value(item)
                for key, item in value.items()
            }
        return value

    def _list(self, items: list[Any]) -> list[Any]:
        """Return words of a command: what follows --token is one."""
        done, before = [], ""
        for item in items:
            flag = before.startswith("-") and is_secret(before.lstrip("-")) and isinstance(item, str)
            done.append(self._gone() if flag else self.value(item))
            before = item if isinstance(item, str) else ""
        return done

    def _gone(self) -> str:
        self.counts["assignment"] += 1
        return GONE

    def _replaced(self, id: str, pattern: re.Pattern[str], instead: str, text: str) -> str:
        text, count = pattern.subn(instead, text)
        self.counts[id] += count
        return text


def _secret_values(environ: Mapping[str, str]) -> set[str]:
    """Return values of secret names, and the logins in addresses: each alone, for a log may repeat it so."""
    values = {value for name, value in environ.items() if is_secret(name)}
    for value in environ.values():
        for login in re.findall(rf"\b{_SCHEME}://([^\s/\"'<>]+)@", value):
            values |= {login, login.partition(":")[2]}
    return {value.strip() for value in values if len(value.strip()) >= _SHORTEST}


def _named_values(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        name, equals, rest = value.partition("=")
        if equals and is_secret(name):
            yield rest
    elif isinstance(value, list):
        for item in value:
            yield from _named_values(item)
    elif isinstance(value, dict):
        if isinstance(value.get("name"), str) and is_secret(value["name"]):
            yield from (item for key in _VALUED if isinstance(item := value.get(key), str))
        for key, item in value.items():
            if is_secret(key) and isinstance(item, str):
                yield item
            yield from _named_values(item)


def _literals(values: Iterable[str]) -> re.Pattern[str] | None:
    """Return the longest first, each also as JSON and an address spell it."""
    import json
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


def _masked(name: str) -> str:
    """`Ada Lovelace` becomes `USER USER`: a blank, a quote or a letter beyond ASCII breaks other things."""
    return re.sub(r"[A-Za-z0-9_.-]+", "USER", name)

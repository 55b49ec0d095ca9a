"""The settings for every git command by which those of a repository cannot start a program.

A repository may come with a `.git/config` that another person wrote, and many of git's settings are command
lines. What the user's own settings say (system, global, GIT_CONFIG_* of the environment) counts as ever;
what the repository's own say of programs is laid over with those, or with nothing. All goes by
GIT_CONFIG_COUNT, which the gits that git starts inherit. Nothing is started here: a caller asks `QUESTION`
in the repository, which only reads settings, and gives the answer to `environment`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

Pairs = tuple[tuple[str, str], ...]

# git-config(1) of 2.49 describes each. Any repository can set `core.fsmonitor` and hooks.
_ALWAYS: Final[Pairs] = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),  # Git for Windows accepts it, too
    ("core.askPass", ""),
    ("core.pager", "cat"),
    ("credential.interactive", "false"),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),  # a submodule is queried separately, with its own settings
    ("fetch.recurseSubmodules", "false"),
    ("status.submoduleSummary", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
)
_FIXED: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
# A repository can name a server for missing objects, which git then fetches on demand; reading commands
# must not. The first variable is of git 2.44.
WITHOUT_SERVERS: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
# The user's own value wins.
_UNLESS_SET: Final = {"GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
# A hook sets these for its own repository; our commands would use that one.
_SET_BY_HOOKS: Final = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"),
)

# Settings that are command lines (in git's lower case), and the value that replaces a repository's own.
_PROGRAMS: Final[tuple[tuple[str, str], ...]] = (
    (r"filter\..*\.(?:clean|smudge|process)", ""),
    (r"core\.sshcommand", "ssh"),
    (r"core\.alternaterefscommand", ":"),
    (r"merge\..*\.driver", "false"),
    (r"gpg(?:\..*)?\.(?:program|defaultkeycommand)", "false"),
    (r"remote\..*\.(?:uploadpack|receivepack)", ""),
    (r"remote\..*\.vcs", ""),
    (r"submodule\..*\.update", "checkout"),
    (r"lfs\.(?:.*\.)?(?:path|args|clean|smudge|standalonetransferagent|sshtransfer)", ""),
    (r"credential(?:\..*)?\.helper", ""),
    (r"core\.gitproxy", ""),
    (r"gc\.recentobjectshook", ""),
)
# git uses the first of these, or all, so they cannot be overridden; instead their use is disabled.
_FIRST_COUNTS: Final[tuple[tuple[str, Pairs], ...]] = (
    (".uploadpack", (("protocol.file.allow", "never"),)),  # over other transports it runs on the server
    (".receivepack", ()),  # we never push
    ("gc.recentobjectshook", (("gc.auto", "0"), ("maintenance.auto", "false"))),
    ("core.gitproxy", ()),  # GIT_PROXY_COMMAND
)
_REQUIRED: Final = r"filter\..*\.required"
_MARK: Final = "torchbuild.guard"  # in the output of every git that reads GIT_CONFIG_COUNT (2.31, 2021)
_NEUTRAL: Final = tuple((re.compile(pattern, re.DOTALL), neutral) for pattern, neutral in _PROGRAMS)
_OWN: Final = (b"local", b"worktree")  # scopes of the repository

QUESTION: Final = (
    *("config", "--show-scope", "-z", "--get-regexp"),
    f"^({'|'.join(pattern.replace('(?:', '(') for pattern, _ in _PROGRAMS)}|{_REQUIRED}|{_MARK})$",
)


def environment(environ: Mapping[str, str], answer: bytes | None = None) -> dict[str, str]:
    """Return the environment of a git command.

    Args:
        answer: what `QUESTION` printed in the repository; None for a command that reads settings and names.
    """
    inherited = {name: value for name, value in environ.items() if name not in _SET_BY_HOOKS}
    env = {**_UNLESS_SET, **inherited, **_FIXED}
    pairs: Pairs = (*_ALWAYS, (_MARK, "1"))
    if answer is not None:
        entries = tuple(_entries(answer))
        pairs += overrides(entries)
        if any(own and key == "core.gitproxy" for own, key, _ in entries):
            env.setdefault("GIT_PROXY_COMMAND", "")  # git uses the first, so it cannot be overridden
        if answer and not any(key == _MARK for _, key, _ in entries):
            return _for_old(env, pairs)
    return with_config(env, pairs)


def overrides(entries: Iterable[tuple[bool, str, str]]) -> Pairs:
    """Return the settings that override the command lines in a repository's configuration.

    Args:
        entries: whether it is the repository's, the key, the value; in git's order.
    """
    entries = tuple(entries)
    users = {key: value for own, key, value in entries if not own}
    settings: dict[str, str] = {}
    loose: list[str] = []
    for own, key, value in entries:
        neutral = next((each for pattern, each in _NEUTRAL if pattern.fullmatch(key)), None)
        if not own or neutral is None or (key.endswith(".update") and not value.startswith("!")):
            continue
        settings[key] = users.get(key, neutral)
        if key.startswith("filter.") and key not in users:
            loose.append(key.rpartition(".")[0] + ".required")  # one that is, and has no command, is an error
    pairs = [*settings.items(), *((key, "false") for key in loose)]
    if any(key.startswith("credential.") for key in settings):  # an empty value resets the list
        pairs = [
            (key, "" if key in settings and key.startswith("credential.") else value) for key, value in pairs
        ]
        pairs += [(key, value) for own, key, value in entries if not own and key.startswith("credential")]
    for ending, instead in _FIRST_COUNTS:
        pairs += instead if any(key.endswith(ending) for key in settings) else ()
    skipped = tuple(ending for ending, _ in _FIRST_COUNTS)
    return tuple((key, value) for key, value in pairs if not key.endswith(skipped))


def _entries(answer: bytes) -> Iterator[tuple[bool, str, str]]:
    """Parse `git config --show-scope -z`: scope NUL key LF value NUL."""
    words = answer.split(b"\0")
    for scope, entry in zip(words[::2], words[1::2], strict=False):
        key, _, value = entry.decode("utf-8", "surrogateescape").partition("\n")
        section, _, name = key.rpartition(".")
        yield scope in _OWN, f"{section}.{name.lower()}", value


def with_config(environ: Mapping[str, str], pairs: Pairs) -> dict[str, str]:
    """Add settings to those in GIT_CONFIG_COUNT of the environment, which git 2.31 reads after all files."""
    if not pairs:
        return dict(environ)
    count = environ.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() and len(count) < 6 else 0
    env = {**environ, "GIT_CONFIG_COUNT": str(first + len(pairs))}
    for number, (key, value) in enumerate(pairs, first):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


def _for_old(environ: Mapping[str, str], pairs: Pairs) -> dict[str, str]:
    """Set GIT_CONFIG_PARAMETERS, by which `git -c` passes settings on; git before 2.31 reads only that."""
    words = (f"{key}={value}".replace("'", "'\\''").replace("!", "'\\!'") for key, value in pairs)
    words_before = [environ.get("GIT_CONFIG_PARAMETERS", ""), *(f"'{word}'" for word in words)]
    return {**environ, "GIT_CONFIG_PARAMETERS": " ".join(filter(None, words_before))}

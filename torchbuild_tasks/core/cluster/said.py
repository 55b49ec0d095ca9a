"""What sccache-dist writes while it runs, in plain words; what nobody needs is left out.

Its lines look like `[2026-11-21T13:27:13Z INFO  sccache_dist] Registered new server ServerId(10.0.0.2:10501)`
(0.16). A scheduler that refuses a token writes the right one beside it as a warning of
`sccache_dist::token_check`, so that module has to stay silent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

SCHEDULER_LOG: Final = (
    "error,sccache_dist=info,sccache_dist::token_check=off,sccache::dist::http::server=warn"
)
SERVER_LOG: Final = "error,sccache::dist::http::server=info"
CLIENT_LOG: Final = "off,sccache::compiler::compiler=warn"

_LINE: Final = re.compile(r"\[\S+ (\w+) +([\w:]+)\] (.*)")
_KNOWN: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"Registered new server ServerId\((.*)\)", "server {0} has joined"),
        (r"Server (\S+) appears to be dead.*", "server {0} has been silent for 90 s and is left out"),
        (r"Bearer auth failed.*", "a client with a wrong token was refused"),
        (r"Server listening for clients on (\S+)", "listening on {0}"),
        (r"Server connected to scheduler", "the scheduler has taken this server"),
        (
            r"Failed to send heartbeat to server: Error 401.*",
            "the scheduler refuses this server's token; it is asked again every 10 s",
        ),
        (
            r"Failed to send heartbeat to server.*",
            "the scheduler does not answer; it is asked again every 10 s",
        ),
    )
)
_SILENT: Final = (
    re.compile(r"Job \d+ (created and will be|successfully) assigned.*"),
    re.compile(r"Job \d+ updated state to .*"),
    re.compile(r"Res \d+ error: .*"),
    re.compile(r"Adding new certificate for .*"),
)


def plainly(line: str, secrets: Iterable[str] = ()) -> str:
    """One line in plain words; "" for one that says nothing to a person.

    Args:
        line: as sccache-dist wrote it.
        secrets: texts that must not be shown, whatever the line says.
    """
    found = _LINE.match(line)
    said = found[3] if found else line.strip()
    if any(pattern.fullmatch(said) for pattern in _SILENT):
        return ""
    for pattern, words in _KNOWN:
        if known := pattern.fullmatch(said):
            return words.format(*known.groups())
    for secret in secrets:
        said = said.replace(secret, "***") if secret else said
    return said.removeprefix("sccache-dist: ")


_BACK: Final = re.compile(r"Could not perform distributed compile, falling back to local: (.*)")
_BUSY: Final = "Insufficient capacity across"
BUSY: Final = "every server was busy"


def given_back(log: str) -> str:
    """Why most of the compiles that were to be sent away were made here after all; "" if none was.

    Args:
        log: what a client's sccache server wrote with `CLIENT_LOG`.
    """
    said = (BUSY if _BUSY in reason else reason for reason in _BACK.findall(log))
    return next((reason for reason, _ in Counter(said).most_common(1)), "")

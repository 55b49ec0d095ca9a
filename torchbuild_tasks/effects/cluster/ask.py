"""Asks a scheduler how many servers it has, and whether it takes our token; within seconds, without a trace.

It answers `GET /api/v1/scheduler/status` to everybody, as JSON to whoever wants that. The token is tried by
a request for a job that has no body: with a wrong one the answer is 401, with the right one 400, and no
job is made (sccache-dist 0.16). That has to be known before a build: there a wrong token fails every compile.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from http.client import HTTPConnection

SECONDS: Final = 3.0
WRONG_TOKEN: Final = "it refuses the token that this machine has for it"
_NO_SCHEDULER: Final = "what answers there is no scheduler of sccache-dist"
_LONGEST: Final = 1 << 16


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler says of itself; `problem` is why it cannot be used, "" when it can."""

    servers: int = 0
    cpus: int = 0
    busy: int = 0
    problem: str = ""


def ask(url: str, token: str = "", seconds: float = SECONDS) -> Answer:
    """Ask a scheduler. Never raises.

    Args:
        url: `http://host:port`.
        token: is tried too, if there is one.
        seconds: to wait for each answer.
    """
    from http.client import HTTPException

    try:
        answer = _status(url, seconds)
        if not answer.problem and token and _refused(url, token, seconds):
            return Answer(problem=WRONG_TOKEN)
        return answer
    except TimeoutError:
        return Answer(problem=f"it does not answer within {seconds:g} s")
    except OSError as error:
        return Answer(problem=error.strerror or str(error))
    except HTTPException:
        return Answer(problem=_NO_SCHEDULER)


def _status(url: str, seconds: float) -> Answer:
    with _connected(url, seconds) as connection:
        connection.request("GET", "/api/v1/scheduler/status", headers={"Accept": "application/json"})
        response = connection.getresponse()
        text = response.read(_LONGEST)
    if response.status != 200:
        return Answer(problem=_NO_SCHEDULER)
    try:
        said = json.loads(text)
        return Answer(
            servers=int(said["num_servers"]), cpus=int(said["num_cpus"]), busy=int(said["in_progress"])
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return Answer(problem=_NO_SCHEDULER)


def _refused(url: str, token: str, seconds: float) -> bool:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"}
    with _connected(url, seconds) as connection:
        connection.request("POST", "/api/v1/scheduler/alloc_job", body=b"", headers=headers)
        return connection.getresponse().status == 401


@contextlib.contextmanager
def _connected(url: str, seconds: float) -> Iterator[HTTPConnection]:
    """Not through a proxy: a scheduler stands in one's own network."""
    from http.client import HTTPConnection, HTTPSConnection

    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    try:
        yield connection
    finally:
        connection.close()

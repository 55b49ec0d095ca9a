"""A server without a network: an adapter of requests that returns the responses of a test."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import requests
import urllib3
from requests.adapters import BaseAdapter

from torchbuild_tasks.system.net.client import Net

Answer = tuple[int, Mapping[str, str], bytes] | Exception
"""(status, headers, body), or an exception to raise."""


class Scripted(BaseAdapter):
    """Responds by a function of the request; `asked` are the requests so far."""

    def __init__(self, answer: Callable[[requests.PreparedRequest], Answer]) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[requests.PreparedRequest] = []
        self._lock = threading.Lock()

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        with self._lock:
            self.asked.append(request)
            answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        status, headers, body = answer
        response = requests.Response()
        response.status_code = status
        response.headers.update(headers)
        response.raw = urllib3.HTTPResponse(io.BytesIO(body), headers, status, preload_content=False)
        response.url, response.request = str(request.url), request
        return response

    def close(self) -> None:
        """Nothing is open."""


def in_turn(*answers: Answer) -> Scripted:
    """One answer after the other."""
    rest = iter(answers)
    return Scripted(lambda request: next(rest))


class ScriptedNet(Net, frozen=True, kw_only=True):
    """A network of which every server answers by the script, and where nothing is waited for."""

    script: Scripted = msgspec.field(default_factory=in_turn)
    back_off: float = 0.0

    def session(self) -> requests.Session:
        session = super().session()
        session.mount("http://", self.script)
        session.mount("https://", self.script)
        return session

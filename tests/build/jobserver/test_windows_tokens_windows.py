"""The tokens in a real named semaphore."""

from __future__ import annotations

import ctypes
import sys

import pytest

from tests.support.capabilities import needs
from torchbuild_tasks.build.jobserver.windows import Tokens

ANY = 0x00100000 | 0x0002  # SYNCHRONIZE | SEMAPHORE_MODIFY_STATE, what Ninja asks for


def opened(name: str) -> int:
    if sys.platform != "win32":
        raise AssertionError
    return int(ctypes.windll.kernel32.OpenSemaphoreA(ANY, False, name.encode()))


@needs(sys.platform == "win32", "named semaphores")
def test_what_is_put_can_be_taken_by_anybody_once() -> None:
    tokens = Tokens()
    assert " " not in tokens.auth and "\\" not in tokens.auth
    tokens.give_out(3)
    assert tokens.free() == 3
    assert opened(tokens.auth)
    assert [tokens.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert not tokens.take(0.05)
    tokens.close()
    tokens.close()


@needs(sys.platform == "win32", "named semaphores")
def test_it_is_gone_with_its_last_handle() -> None:
    tokens = Tokens()
    tokens.close()
    assert not opened(tokens.auth)


@needs(sys.platform != "win32", "system without named semaphores")
def test_elsewhere_it_is_an_os_error() -> None:
    with pytest.raises(OSError):
        Tokens()

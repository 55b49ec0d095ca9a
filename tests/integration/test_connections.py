"""A connection of a program that was started from here ends when it is broken; others go on."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tests.support.capabilities import needs
from torchbuild_tasks.system.connections import break_connections

pytestmark = [
    pytest.mark.integration,
    needs(sys.platform == "linux", "Linux, which lends a program's socket"),
]

CLIENT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall(b"x")
    sys.exit(3 if connection.recv(1) == b"" else 4)
"""


def test_what_waits_for_a_server_that_hangs_goes_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [each.getsockname()[1] for each in (server, other)]
        clients = [subprocess.Popen([sys.executable, "-c", CLIENT, str(port)]) for port in ports]
        answers = [each.accept()[0] for each in (server, other)]
        assert [each.recv(1) for each in answers] == [b"x", b"x"]
        assert break_connections("localhost", ports[0]) == 1
        assert clients[0].wait(20) == 3
        answers[1].sendall(b"y")
        assert clients[1].wait(20) == 4
        for each in answers:
            each.close()
    assert break_connections("localhost", ports[0]) == 0

"""What sccache-dist writes, in plain words. The lines are its own (0.16), as it wrote them."""

from __future__ import annotations

import pytest

from torchbuild_tasks.core.cluster.said import SCHEDULER_LOG, given_back, plainly

AT = "[2026-11-21T13:27:13Z INFO  "


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            f"{AT}sccache_dist] Registered new server ServerId(10.0.0.2:10501)",
            "server 10.0.0.2:10501 has joined",
        ),
        (
            "[2026-11-21T13:27:13Z WARN  sccache_dist] Server 10.0.0.2:10501 appears to be dead, pruning it in "
            "the scheduler",
            "server 10.0.0.2:10501 has been silent for 90 s and is left out",
        ),
        (
            '[2026-11-21T13:27:16Z WARN  sccache::dist::http::server] Bearer auth failed: ClientVisibleMsg("Fixed '
            'token mismatch")',
            "a client with a wrong token was refused",
        ),
        (
            f"{AT}sccache::dist::http::server] Server listening for clients on 10.0.0.2:10501",
            "listening on 10.0.0.2:10501",
        ),
        (
            f"{AT}sccache::dist::http::server] Server connected to scheduler",
            "the scheduler has taken this server",
        ),
        (f"{AT}sccache_dist] Job 3 created and will be assigned to server ServerId(10.0.0.2:10501)", ""),
        (f"{AT}sccache_dist] Job 3 successfully assigned and saved with state ready", ""),
        (f"{AT}sccache_dist] Job 3 updated state to Complete", ""),
        (f"{AT}sccache::dist::http::server] Adding new certificate for 10.0.0.2:10501 to scheduler", ""),
        (
            "[2026-11-21T13:27:16Z WARN  sccache::dist::http::server] Res 3 error: error while parsing the bincode "
            "body, caused by: io error: failed to fill whole buffer",
            "",
        ),
        ("sccache-dist: error: Overlay builder failed to start", "error: Overlay builder failed to start"),
    ],
)
def test_its_lines(line: str, words: str) -> None:
    assert plainly(line) == words


def test_a_secret_is_never_shown() -> None:
    line = "[2026-11-21T13:27:16Z ERROR sccache_dist] something about s3cr3t went wrong"
    assert plainly(line, ("s3cr3t", "")) == "something about *** went wrong"


def test_the_module_that_writes_tokens_down_is_silent() -> None:
    """A warning of its: User token wrong != expected token <the right one>."""
    assert "sccache_dist::token_check=off" in SCHEDULER_LOG


LOG = """
[2026-11-21T13:30:00Z WARN  sccache::compiler::compiler] ["a.o"]: Could not perform distributed compile, \
falling back to local: Insufficient capacity across 2 available servers: Failed to allocate job
[2026-11-21T13:30:01Z WARN  sccache::compiler::compiler] ["b.o"]: Could not perform distributed compile, \
falling back to local: error sending request for url (http://10.0.0.1:10600/): Connection refused (os error 111)
[2026-11-21T13:30:02Z WARN  sccache::compiler::compiler] ["c.o"]: Could not perform distributed compile, \
falling back to local: error sending request for url (http://10.0.0.1:10600/): Connection refused (os error 111)
[2026-11-21T13:30:02Z WARN  sccache::compiler::compiler] ["c.o"]: something else
"""


def test_the_commonest_reason_for_what_came_back() -> None:
    assert given_back(LOG).startswith("error sending request for url (http://10.0.0.1:10600/)")
    assert given_back("") == ""

"""Messages of sccache-dist, in plain words. The lines are from the output of sccache-dist 0.16."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.features.cluster.choose import SCHEDULER_LOG, rephrase, why_compiled_here

AT = "[2026-11-21T13:27:13Z INFO  "
WARN = "[2026-11-21T13:27:16Z WARN  "
HTTP = "sccache::dist::http::server"


@each_case(
    ("line", "words"),
    [
        (
            f"{AT}sccache_dist] Registered new server ServerId(10.0.0.2:10501)",
            "server 10.0.0.2:10501 has joined",
        ),
        (
            f"{WARN}sccache_dist] Server 10.0.0.2:10501 appears to be dead, pruning it in the scheduler",
            "server 10.0.0.2:10501 has been silent for 90 s and is left out",
        ),
        (
            f'{WARN}{HTTP}] Bearer auth failed: ClientVisibleMsg("Fixed token mismatch")',
            "a client with a wrong token was refused",
        ),
        (
            f"{AT}{HTTP}] Server listening for clients on 10.0.0.2:10501",
            "listening on 10.0.0.2:10501",
        ),
        (
            f"{AT}{HTTP}] Server connected to scheduler",
            "the scheduler has taken this server",
        ),
        (f"{AT}sccache_dist] Job 3 created and will be assigned to server ServerId(10.0.0.2:10501)", ""),
        (f"{AT}sccache_dist] Job 3 successfully assigned and saved with state ready", ""),
        (f"{AT}sccache_dist] Job 3 updated state to Complete", ""),
        (f"{AT}{HTTP}] Adding new certificate for 10.0.0.2:10501 to scheduler", ""),
        (
            f"{WARN}{HTTP}] Res 3 error: error while parsing the bincode body, caused by: "
            "io error: failed to fill whole buffer",
            "",
        ),
        ("sccache-dist: error: Overlay builder failed to start", "error: Overlay builder failed to start"),
    ],
)
def test_its_lines(line: str, words: str) -> None:
    assert rephrase(line) == words


def test_a_secret_is_never_shown() -> None:
    line = "[2026-11-21T13:27:16Z ERROR sccache_dist] something about s3cr3t went wrong"
    assert rephrase(line, ("s3cr3t", "")) == "something about *** went wrong"


def test_the_module_that_writes_tokens_down_is_silent() -> None:
    """A warning of its: User token wrong != expected token <the right one>."""
    assert "sccache_dist::token_check=off" in SCHEDULER_LOG


BACK = f"{WARN}x] ['a.o']: Could not perform distributed compile, falling back to local: "
REFUSED = "tcp connect error: Connection refused (os error 111)"
FULL = "Insufficient capacity across {} available servers: Failed to allocate job"


def test_the_commonest_reason_for_what_came_back() -> None:
    log = f"{BACK}{FULL.format(2)}\n{BACK}{REFUSED}\n{BACK}{REFUSED}\n{WARN}x] something else\n"
    assert why_compiled_here(log) == REFUSED
    assert (
        why_compiled_here(f"{log}{BACK}{FULL.format(2)}\n{BACK}{FULL.format(1)}\n") == "every server was busy"
    )
    assert why_compiled_here("") == ""

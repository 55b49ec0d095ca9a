"""MAKEFLAGS: the jobserver is in it, the user's own flags stay, and no -j is left."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.build.jobserver.serve import environment

AUTH = "fifo:/tmp/x/tokens"
OURS = f"--jobserver-auth={AUTH}"


@each_case(
    ("given", "expected"),
    [
        ("", f" {OURS}"),
        ("k", f"k {OURS}"),
        ("ks -l4 CC=gcc", f"ks -l4 CC=gcc {OURS}"),
        ("--no-print-directory", f" --no-print-directory {OURS}"),
        ("CC=gcc", f" CC=gcc {OURS}"),
        (" -j8 --jobserver-auth=3,4", f" {OURS}"),
        ("-j --jobserver-fds=3,4 --jobserver-auth=3,4", f" {OURS}"),
        ("s -j3 --jobs=4 --jobserver-style=pipe --jobserver-auth=fifo:/y -w", f"s -w {OURS}"),
    ],
)
def test_our_jobserver_replaces_the_users_job_flags(given: str, expected: str) -> None:
    assert environment(AUTH, {"MAKEFLAGS": given})["MAKEFLAGS"] == expected


def test_what_becomes_a_j_of_ninja_is_left_out_and_the_rest_stays() -> None:
    environ = {"MAX_JOBS": "4", "CMAKE_BUILD_PARALLEL_LEVEL": "4", "PATH": "/bin"}
    assert environment(AUTH, environ) == {"PATH": "/bin", "MAKEFLAGS": f" {OURS}"}
    assert environ["MAX_JOBS"] == "4"

"""A try that fails is no failure where the log goes on another way and ends well."""

from __future__ import annotations

import pytest

from tests.support.diagnosis import read

CURL = "curl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server"
PROBE = ("+ gcc conftest.c -lx -o conftest", "/usr/bin/ld: cannot find -lx: No such file or directory")
HTML = ("make: *** [Makefile:2: html] Error 127", "make: Leaving directory '/w/docs'")
WELL = "Build finished"


@pytest.mark.parametrize(
    "lines",
    [
        (*PROBE, "collect2: error: ld returned 1 exit status", "+ echo no"),
        ("make[1]: *** [Makefile:2: html] Error 127", "make: [Makefile:9: all] Error 2 (ignored)"),
        ("sh: 1: sphinx: not found", *HTML, "make: 'lib.o' is up to date."),
        ("fatal: unable to access 'https://a/'", "Clone attempt 1 failed! Retrying in 2 seconds"),
        ("error: patch failed: f.txt:1", "p.patch is applied already, skipped"),
        ("trying http://a:1/src.txt", CURL, "trying http://b/src.txt"),
    ],
)
def test_a_try_that_the_log_got_over_is_no_failure(lines: tuple[str, ...]) -> None:
    assert read("\n".join((*lines, WELL))).status == "clean"
    assert read("\n".join(lines + ("curl: (22) The requested URL returned error: 404",))).status != "clean"


@pytest.mark.parametrize(
    "lines",
    [
        ("+ gcc main.c -lx -o main", PROBE[1], "collect2: error: ld returned 1 exit status", "+ echo no"),
        (*PROBE[:1], "configure: error: C compiler cannot create executables"),
        ("sh: 1: sphinx: not found", *HTML),
        ("make[1]: *** [Makefile:2: html] Error 127", "make: *** [Makefile:9: all] Error 2"),
        ("error: patch failed: f.txt:1", "hint: use --3way, or ignore it with --reject instead"),
        ("a.c:1:2: error: unknown type name 'x'", "b.c is skipped"),
        ("trying http://a:1/src.txt", CURL, "trying http://b/other.txt"),
    ],
)
def test_an_error_that_nothing_was_done_about_is_one_whatever_ends_well_behind_it(
    lines: tuple[str, ...],
) -> None:
    assert read("\n".join((*lines, WELL))).status != "clean"

"""Words of a commit or an option are no error."""

from __future__ import annotations

from tests.support.diagnosis import read
from tests.support.for_each import each_case

COMMIT = "commit 1058e0ab8a129d66855561cbbd45b3703714fadf\nAuthor: n <a@b>\nDate:   Sun Nov 29 23:53:57 2026 +0000\n\n"
FULLER = "AuthorDate: Sun Nov 29 23:53:57 2026 +0000\nCommit:     n <a@b>\nCommitDate: Sun Nov 29 23:53:57 2026 +0000\n\n"


@each_case(
    ("log", "status"),
    [
        (COMMIT + "    Add error submodule\n", "clean"),
        (COMMIT + "    Mend it\n    \n    error: this was fatal\n    ld: cannot find -lx", "clean"),
        (FULLER + "    CMake Error at a.txt:1 (message)", "clean"),
        (COMMIT + "    Mend it\nfatal: bad object x", "diagnosed"),
        ("  - Build settings: CXX_FLAGS= -Werror=format -Wno-error, USE_X=OFF\n1.0", "clean"),
        ("CXX_FLAGS=-Wno-error=format,-Werror", "clean"),
        ("g++: error: unrecognized command-line option '-Wno-errors'", "diagnosed"),
        ("tool: -Wno-error is not known", "unknown"),
    ],
)  # fmt: skip
def test_a_commit_and_an_option_are_no_error(log: str, status: str) -> None:
    assert read(log).status == status

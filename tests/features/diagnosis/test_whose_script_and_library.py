"""Whose script stops, whose library is missing, and who only tried: the answer is for the one that it is of."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.for_each import each_case

STEP = "CMake Error at /b/x-prefix/src/x-stamp/x-configure-.cmake:49 (message):\n  Command failed: 1\n\n   '/usr/bin/cmake' '-GNinja' '-S' '/s/sub' '-B' '/b/x'\n"


@each_case(
    ("log", "said", "not_said"),
    [
        # A script that CMake has written for a step is not to be corrected.
        (STEP + "\n  See also\n\n    /b/x-prefix/src/x-stamp/x-configure-*.log\n", "Read /b/x-prefix/src/x-stamp/x-configure-*.log", "if() above"),
        (STEP.replace("'-GNinja' ", "'-GNinja' '-DA=" + "b" * 300 + "' ") + "\n  See also\n\n    /b/x.log\n", "Read /b/x.log", "if() above"),
        (STEP, "stands above this line", "if() above"),
        (STEP.replace("/b/x-prefix/src/x-stamp/x-configure-.cmake", "cmake/x.cmake"), "if() above", "has written"),
    ],
)  # fmt: skip
def test_the_answer_is_for_the_one_that_it_is_of(log: str, said: str, not_said: str) -> None:
    told = elsewhere(log)
    assert said in told.fix
    assert not_said not in told.fix

"""What a program goes on without is no failure; a build folder that was moved stays one, whatever it configures."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case

_NUMPY = "/v/torch/a.py:3: UserWarning: Failed to initialize NumPy: No module named 'numpy' (Triggered internally at /a.cpp:84.)\n  cpu = torch.device('cpu')"
_MOVED = "CMake Error: The current CMakeCache.txt directory /b/build/CMakeCache.txt is different than the directory /a/build where CMakeCache.txt was created. This may result in binaries being created in the wrong place."
_CONFIGURED = "[0/1] Re-running CMake...\n-- Configuring done (1.4s)\n-- Generating done (0.1s)\n-- Build files have been written to: {}"
_DIRTY = "ninja: error: manifest 'build.ninja' still dirty after 100 tries, perhaps system time is not set"


@each_case(
    "log, line, cause",
    [
        (_NUMPY, 0, ""),
        ("/v/a.py:9: RuntimeWarning: no fast path: No module named 'triton'\n  warn(text)", 0, ""),
        (f"{_NUMPY}\nRuntimeError: Numpy is not available", 3, "numpy"),
        ("ModuleNotFoundError: No module named 'numpy'", 1, "numpy"),
    ],
)
def test_a_warning_of_what_is_not_there_is_no_failure(log: str, line: int, cause: str) -> None:
    reading = read(log)
    assert reading.line_number == line
    assert cause in "".join(each.cause.lower() for each in reading.diagnoses)


@each_case(
    "log, first",
    [
        (f"{_MOVED}\n{_CONFIGURED.format('/a/build')}\n{_DIRTY}", "cmake-cache-dir"),
        # it was deleted and configured anew
        (f"{_MOVED}\n{_CONFIGURED.format('/b/build')}\n{_DIRTY}", "ninja-dirty-100"),
        (_DIRTY, "ninja-dirty-100"),
    ],
)
def test_a_folder_that_was_moved_configures_the_one_that_it_was(log: str, first: str) -> None:
    assert read(log).diagnoses[0].id == first

"""Who starts a build says much around an error: that it failed, tries again, counts; none is the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.diagnosis import read, read_file
from tests.support.for_each import each_case
from torchbuild_tasks.model import Reading

STEPS = [f"[{at}/6100] Building CXX object c10/CMakeFiles/c10.dir/x{at}.cpp.o" for at in range(1, 21)]
HEADER = ["a.cpp:3:10: fatal error: gloo/x.h: No such file or directory", "compilation terminated."]
KILLED = ["c++: fatal error: Killed signal terminated program cc1plus", "compilation terminated."]
CURL = ["curl: (6) Could not resolve host: github.com"]
STOPPED = "ninja: build stopped: subcommand failed."


def reading(*lines: str) -> Reading:
    return read("\n".join(lines) + "\n")


AGAIN = (
    "Retrying in 5 seconds...",
    "build.sh: attempt 1 failed, retrying",
    "Warning: Attempt 1 failed. Reason: Child_process exited with error code 2",
    "Build failed with -j16, running again with -j4",
    "make failed; rebuilding with MAX_JOBS=1",
    "++ echo 'first try failed, second try'",
    "(attempt 2/3) cmake --build .",
)
ENDS = (
    ["[6100/6100] Linking CXX shared library lib/libtorch_python.so"],
    ["[100%] Built target torch_python"],
    ["Successfully installed torch-2.6.0", "Post job cleanup.", "Cleaning up orphan processes"],
    ["-- Installing: /opt/torch/share/cmake/Torch/TorchConfig.cmake"],
    ["build.sh: success"],
)


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("error", [HEADER, KILLED])
def test_an_attempt_that_failed_counts_no_more_when_the_next_ends_in_order(
    again: str, end: list[str], error: list[str]
) -> None:
    assert reading(*STEPS, *error, STOPPED, again, *STEPS, *end).status == "clean"


@pytest.mark.parametrize("again", AGAIN)
def test_of_several_attempts_the_last_one_counts(again: str) -> None:
    other = reading(*STEPS, *KILLED, STOPPED, again, *STEPS, *HEADER, STOPPED)
    assert (other.kind, other.line_number) == ("missing-header", 2 * len(STEPS) + 5)
    alike = reading(*CURL, again, *CURL)
    assert (alike.kind, alike.line_number) == ("network", 1)
    cut = reading(*STEPS, *KILLED, STOPPED, again, "Cloning into 'x'...")
    assert cut.kind == "killed", "the next attempt does not end in order"


def test_a_failed_job_that_sends_its_files_again_has_failed() -> None:
    sent = ["##[error]Process completed with exit code 1.", "Post job cleanup.", "Retrying (attempt 2)"]
    assert reading(*STEPS, *KILLED, STOPPED, *sent, "Successfully done").kind == "killed"
    assert (
        reading(*STEPS, *KILLED, STOPPED, "Retrying upload, attempt 2", "Successfully sent").kind == "killed"
    )


def test_of_several_attempts_a_cut_one_counts_not() -> None:
    cut = reading(*STEPS, *KILLED, STOPPED, AGAIN[0], "Cloning into 'x'...")
    assert cut.kind == "killed", "the next attempt does not end in order"


@each_case(
    "count",
    [
        "Killed workers: 0",
        "errors=0",
        "Errors: 0, Warnings: 12",
        "Crashed: none",
        "0 jobs killed",
        "Process exited with code 0",
        "Cache errors                          0",
        "gpu01 : ok=3 changed=1 unreachable=0 failed=0",
        "ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)",
        "Total failed: 0 / 12",
        "0 error(s), 12 warning(s)",
    ],
)
def test_what_was_counted_as_none_is_no_error(count: str) -> None:
    assert reading(*STEPS, count).status == "clean"


@pytest.mark.parametrize(
    "count",
    ["Killed workers: 3", "Failures: 1, Errors: 0", "10 failed", "exit status 10", "rc=1", "errors=4"],
)
def test_what_was_counted_is_one(count: str) -> None:
    assert reading("copying a.py -> b", count).status != "clean"


BELOW = {
    "nix": (
        "error: builder for '/nix/store/x.drv' failed with exit code 2;",
        "       last 10 log lines:",
        "       > ",
    ),
    "spack": ("==> Error: ProcessError: Command exited with status 1:", "    'make' '-j8'", "  >> 4344    "),
    "uv": ("  × Failed to build `ext==1.0`", "  ├─▶ The build backend returned an error", "      "),
    "buck": ("Action failed: root//:torch", "Local command returned non-zero exit code 1", ""),
    "python": (
        "subprocess.CalledProcessError: Command '['make']' returned non-zero exit status 2.",
        "Output:",
        "",
    ),
    "cmake": ("CMake Error at cmake/nccl.cmake:66 (message):", "  Build step for nccl failed, see below", ""),
}


@pytest.mark.parametrize("driver", BELOW)
@pytest.mark.parametrize(
    ("error", "kind"), [(HEADER, "missing-header"), (CURL, "network"), (KILLED, "killed")]
)
def test_a_headline_is_not_the_error_below_it(driver: str, error: list[str], kind: str) -> None:
    first, second, before = BELOW[driver]
    said = reading(*STEPS, first, second, *(f"{before}{line}" for line in error))
    assert (said.kind, said.line_number) == (kind, len(STEPS) + 3)


@each_case(
    "after",
    [
        ["error: Bad exit status from /var/tmp/rpm-tmp.Xk1 (%build)", "RPM build errors:"],
        ["dpkg-buildpackage: error: debian/rules build subprocess returned exit status 2"],
        ["ERROR: Task (/meta/recipes/pytorch.bb:do_compile) failed with exit code '1'"],
        ["Failed   <<< torch_node [12.1s, exited with code 2]", "Summary: 4 packages finished [13.0s]"],
        ["scons: *** [a.o] Error 1", "scons: building terminated because of errors."],
        ["FAILURE: Build failed with an exception.", "BUILD FAILED in 12s"],
        ["ERROR: script returned exit code 2", "Finished: FAILURE"],
        ["*** Error code 1", "", "Stop.", "===> Compilation failed unexpectedly."],
    ],
)
def test_neither_is_what_a_driver_says_after_it(after: list[str]) -> None:
    said = reading(*STEPS, *HEADER, *after)
    assert (said.kind, said.line_number) == ("missing-header", len(STEPS) + 1)


@pytest.mark.parametrize(
    "before",
    [
        "INFO: ",
        "[build] ",
        "job1\t",
        "  17 ",
        "1715000{n} ",
        "2024-05-14 08:00:{n} - builder - INFO - ",
        ":info:build ",
    ],
)
def test_progress_is_no_part_of_what_a_logger_writes_before_each_line(tmp_path: Path, before: str) -> None:
    log = tmp_path / "build.log"
    lines = [f"[ {10 + at}%] Building CXX object x{at}.o" for at in range(30)]
    said = [*lines, "CMake Error at a.cmake:5 (find_package):", '  provided by "Gloo" with any of']
    log.write_text("".join(f"{before.format(n=10 + at)}{line}\n" for at, line in enumerate(said)), "utf-8")
    assert (read_file(log).kind, read_file(log).line_number) == ("missing-package", 31)


def test_a_logfmt_message_is_read() -> None:
    said = reading('time="2024-05-14T08:00:01Z" level=info msg="curl: (6) Could not resolve host: \\"x\\""')
    assert (said.kind, said.line_number) == ("network", 1)


@each_case(
    "word", ["Fehler", "erreur", "błąd", "hata", "fout", "fel", "virhe", "chyba", "помилка", "lỗi", "σφάλμα"]
)
def test_a_compilers_error_is_met_in_any_of_its_languages(word: str) -> None:
    said = reading(*STEPS, "FAILED: a.o", "c++ -c a.cpp -o a.o", f"a.cpp:5:3: {word}: x", STOPPED)
    assert (said.kind, said.line_number) == ("compile-error", len(STEPS) + 3)


def test_an_exception_after_which_a_program_goes_on_to_its_end_was_caught() -> None:
    caught = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1',
        "ModuleNotFoundError: No module named 'x'",
    ]
    steps = [f"step={at} loss=1.0" for at in range(20)]
    assert reading(*caught, *steps, "Training finished, saved to out/best.pt").status == "clean"
    assert reading(*caught, *steps).kind == "missing-module"
    assert reading(*caught, "finished").kind == "missing-module"


def test_who_interrupts_a_program_is_not_the_reason_it_gave_before() -> None:
    said = ["OpenBLAS blas_thread_init: pthread_create failed: Resource temporarily unavailable"]
    stopped = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1',
        "    import numpy",
        "KeyboardInterrupt",
    ]
    assert reading(*said, *stopped).kind == "too-many-processes"
    assert reading("step 1", *stopped).kind == "interrupted"


def test_a_command_without_words_of_its_own_fails_of_the_exception_before() -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "gen.py", line 1',
        "FileNotFoundError: [Errno 2] x",
    ]
    said = reading(
        *STEPS, *raised, "[19/698] Building x.o", "FAILED: x.o", "cc -c x.c", "[20/698] Building y.o"
    )
    assert (said.kind, said.line_number) == ("missing-file", len(STEPS) + 3)


def test_what_no_compiler_says_is_not_read_behind_a_place_in_a_source() -> None:
    assert reading("gloo/tcp/device.cc:1:2: error: Connection refused is no type").kind == "compile-error"


def test_source_that_pytest_quotes_is_no_error() -> None:
    quoted = [
        "    def test_it():",
        "        text = 'a.cpp:1:2: error: quoted'",
        ">       assert text == 'no'",
    ]
    said = reading(
        "____ test_it ____",
        *quoted,
        "E       AssertionError: assert 'a.cpp' == 'no'",
        "test_it.py:3: AssertionError",
    )
    assert (said.kind, said.line_number) == ("test-failure", 5)

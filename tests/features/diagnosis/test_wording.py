"""A fix is told in the words of the log's system, and behind what the log shows as done of it already."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

import re

import pytest

from tests.support.diagnosis import read
from tests.support.examples import examples
from tests.support.for_each import each_case, for_each
from tests.support.machines import linux_facts, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.diagnosis import FailureRow, SystemWordRow
from torchbuild_tasks.features.diagnosis.own_words import is_foreign, leave_out
from torchbuild_tasks.features.diagnosis.show import reading_text, state_text
from torchbuild_tasks.features.diagnosis.wording import translate
from torchbuild_tasks.model import Previous, Reading, Running

WORDS = load_catalog().system_word
WINDOWS = "PS C:\\Users\\u> cmake --build b\n{}"
# What no prompt of Windows takes.
_UNIX = re.compile(
    r"LD_LIBRARY_PATH|\bLIBRARY_PATH\b|\bldd\b|find / |which -a|command -v|\bexport [A-Z]|\$\(|\buname\b|env \| "
    r"|-c '|install '|\$CONDA_PREFIX|(?<!CPLUS_)\bCPATH\b"
    r"|\bunset [A-Z]|\bdf -h\b|\bchmod \+|\brm -r|\benv -u\b|\bxargs\b|\bls -[ld]|\btouch [A-Z]"
)
# A message that only Linux or macOS has.
_LINUX = re.compile(
    r"(?:^|[\s'\"(=:`])/\w|\.so\b|\.dylib|-linux-|\bld\b|GLIBC|GOMP|macOS|architecture arm64|WSL|zsh|shm|</torch_|sh: |apt|dnf|nix|glibc"
)


def told(log: str) -> str:
    return " ".join(each.fix for each in read(log).diagnoses)


@each_case(
    ("system", "text", "words"),
    [
        ("windows", "python -m pip install 'numpy<2', or build.", 'python -m pip install "numpy<2", or build.'),
        ("windows", "python -c 'print(f(\"P\"))' tells", "python -c \"print(f('P'))\" tells"),
        ("windows", "put its folder into LD_LIBRARY_PATH", "put its folder into PATH"),
        ("windows", "name it in LIBRARY_PATH and CPATH", "name it in LIB and INCLUDE"),
        ("windows", "find / -name 'x.dll*' tells", "where /R C:\\ x.dll* tells"),
        ("windows", "find / -name with its name tells", "where /R C:\\ with its name tells"),
        ("windows", "ldd on the file shows", "dumpbin /dependents on the file shows"),
        ("windows", "env | grep -i proxy shows", "set | findstr /i proxy shows"),
        ("windows", "TORCH_CUDA_ARCH_LIST='8.0;9.0'", "TORCH_CUDA_ARCH_LIST=8.0;9.0"),
        ("windows", "CFLAGS=-x in front of the build's command", "set CFLAGS=-x before the build's command"),
        ("windows", "Without it: unset RUSTC_WRAPPER", "Without it: take out of the environment (set NAME=) RUSTC_WRAPPER"),
        ("windows", "df -h shows whether", "dir shows whether"),
        ("windows", "env -u PYTHONHOME -u PYTHONPATH python -V works", "python -E -V works"),
        ("windows", "Name /usr/local/cuda there", "Name %CUDA_PATH% there"),
        ("mac", "ldd on the file; LD_LIBRARY_PATH", "otool -L on the file; DYLD_LIBRARY_PATH"),
        ("mac", "install 'numpy<2'", "install 'numpy<2'"),
        ("linux", "ldd on it, python -c 'x'", "ldd on it, python -c 'x'"),
        ("", "ldd on it, python -c 'x'", "ldd on it, python -c 'x'"),
    ],
)  # fmt: skip
def test_a_fix_is_in_the_words_of_the_system(system: str, text: str, words: str) -> None:
    assert translate(system, text, WORDS) == words
    assert translate(system, words, WORDS) == words, "and stays so"


@for_each(WORDS, lambda row: row.unix)
def test_a_word_is_one_that_a_fix_has(row: SystemWordRow) -> None:
    catalog = load_catalog()
    fixes = [text for each in catalog.failure for text in each.fix]
    fixes += [text for each in catalog.kind for text in each.fix]
    fixes += [text for each in catalog.component for text in (each.runtime, *each.fix)]
    fixes += [each.take for each in catalog.gone]
    assert any(re.search(row.unix, text) for text in fixes), row.unix


# What a message of that system or package manager alone has as its fix.
_OF_ITS_MESSAGE = ("{!apt}", "{!other file}", "sudo dpkg", "{!cmake install}", "{!socket}", "{!place}")
_MARKED = re.compile(r"(?:\{![^{}]*\})*\[([^\]]+)\] ")


@each_case(
    "around", [("windows", "winget"), ("mac", "brew"), ("linux", "apt"), ("linux", "dnf"), ("linux", "apk")]
)
def test_each_fix_has_something_that_its_system_knows(around: tuple[str, str]) -> None:
    catalog = load_catalog()
    fixes = [(text, row.os) for row in catalog.failure for text in row.fix]
    fixes += [(text, "") for row in catalog.kind for text in row.fix]
    fixes += [(text, " ".join(row.systems)) for row in catalog.component for text in (row.runtime, *row.fix)]
    foreign = [row.words for row in catalog.own_word if is_foreign(row, around)]
    for text, systems in fixes:
        marked = _MARKED.match(text)
        of = [
            each for each in (marked[1] if marked else systems).split() if each in ("linux", "windows", "mac")
        ]
        if (of and around[0] not in of) or any(each in text for each in _OF_ITS_MESSAGE):
            continue
        told = leave_out(translate(around[0], text, WORDS), around, catalog.own_word)
        assert not any(re.search(words, told) for words in foreign), text


@each_case(
    "around, text, left",
    [
        ("windows", "Look (ldconfig -p | grep x, PATH; in WSL alone /usr/lib/wsl/lib). Then go on.", "Look (PATH). Then go on."),
        ("windows", "Raise the limit (ulimit -t, the CI's or scheduler's, timeout).", "Raise the limit (the CI's or scheduler's, timeout)."),
        ("windows", "ls -l x shows it; take a folder of your own.", "Take a folder of your own."),
        ("windows", "Take a larger one; sudo dmesg tells.", "Take a larger one."),
        ("windows", "chmod +x helps. Or write it anew.", "Write it anew."),
        ("windows", "chmod +x helps.", "chmod +x helps."),
        ("mac", "free -h shows it. ulimit -f raises it.", "ulimit -f raises it."),
        ("linux dnf", "By its name (apt-cache search, dnf search, brew search).", "By its name (dnf search)."),
        ("linux apt", "It is libomp (apt install libomp-dev; on macOS brew install libomp, and OpenMP_ROOT=$(brew --prefix libomp)).", "It is libomp (apt install libomp-dev)."),
        ("linux dnf", "OpenSSL's headers (libssl-dev, openssl-devel).", "OpenSSL's headers (openssl-devel)."),
        ("linux apt", "Its library (libx-N-dev with that N on Debian and Ubuntu, libx-devel on Fedora, x in conda).", "Its library (libx-N-dev with that N on Debian and Ubuntu, x in conda)."),
        ("linux", "By its name (apt-cache search, dnf search).", "By its name (apt-cache search, dnf search)."),
        ("", "free -h shows it (dir on Windows).", "free -h shows it (dir on Windows)."),
    ],
)  # fmt: skip
def test_what_another_system_knows_is_left_out(around: str, text: str, left: str) -> None:
    assert leave_out(text, around.split(), load_catalog().own_word) == left


@each_case(
    "log, said",
    [
        ("C:\\w> docker build .\ncc1plus.exe: out of memory allocating 65536 bytes after a total of 9048576 bytes", "i686"),
        ("C:\\w> a\nUserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some? Error 2: out of memory", "nvcuda.dll"),
    ],
)  # fmt: skip
def test_a_log_of_windows_has_its_own_ways(log: str, said: str) -> None:
    assert said in told(log)
    assert "ulimit" not in told(log)


@for_each(
    [row for row in load_catalog().failure if row.samples and row.severity == "error"], lambda row: row.id
)
def test_no_fix_for_windows_is_typed_as_on_linux(row: FailureRow) -> None:
    for sample in row.samples[: examples(1, 99)]:
        if _LINUX.search(sample):
            continue
        found = _UNIX.search(told(WINDOWS.format(sample)))
        assert found is None, found


@each_case(
    ("log", "said"),
    [
        (
            "$ pip install --no-build-isolation zork\nModuleNotFoundError: No module named 'torch'",
            "This log shows --no-build-isolation in a command already",
        ),
        ("+ export CMAKE_POLICY_VERSION_MINIMUM=3.5\nCMake Error at a/CMakeLists.txt:1 (cmake_minimum_required):\n  Compatibility with CMake < 3.5 has been removed from CMake.", "This log shows CMAKE_POLICY_VERSION_MINIMUM=3.5 in"),
        ("cmake -B b -DCMAKE_POLICY_VERSION_MINIMUM:STRING=3.5\nCMake Error at a/CMakeLists.txt:1 (cmake_minimum_required):\n  Compatibility with CMake < 3.5 has been removed from CMake.", "This log shows CMAKE_POLICY_VERSION_MINIMUM=3.5 in"),
        (
            "Successfully installed numpy-1.26.4 torch-2.2.0\nAttributeError: _ARRAY_API not found",
            "This log shows numpy 1.26.4, which such a bound allows already.",
        ),
        (
            "AttributeError: _ARRAY_API not found\n[pip3] numpy==1.26.4\n[pip3] torch==2.2.0",
            "This log shows numpy 1.26.4",
        ),
    ],
)  # fmt: skip
def test_what_was_done_already_is_said(log: str, said: str) -> None:
    assert said in told(log)


@pytest.mark.parametrize(
    "log",
    [
        "Try `pip install --no-build-isolation zork`\nModuleNotFoundError: No module named 'torch'",
        "hint: pip install --no-build-isolation zork\nModuleNotFoundError: No module named 'torch'",
        "$ pip install zork\nModuleNotFoundError: No module named 'torch'",
        "Successfully installed numpy-2.1.0\nAttributeError: _ARRAY_API not found",
        "Successfully installed numpy-1.26.4\n  Installing build dependencies: started\nAttributeError: _ARRAY_API not found",
    ],
)
def test_nothing_is_said_of_what_was_not(log: str) -> None:
    assert told(log)
    assert "This log shows" not in told(log)


def test_what_size_of_numpys_types_was_expected_tells_which_is_too_old() -> None:
    changed = "ValueError: numpy.{} size changed, may indicate binary incompatibility. Expected {} from C header, got {} from PyObject"
    assert "'numpy<2'" in told(changed.format("dtype", 96, 88))
    assert "'numpy>=1.20'" in told(changed.format("ndarray", 88, 80))


def test_a_module_that_is_not_there_is_not_always_a_compiled_part() -> None:
    error = "AttributeError: 'NoneType' object has no attribute 'origin'"
    trace = 'Traceback (most recent call last):\n  File "{}", line 7, in <module>\n    {}\n' + error
    beside = trace.format(
        "/v/torch_sparse/__init__.py", "f'{library}_{suffix}', [osp.dirname(__file__)]).origin)"
    )
    assert "compiled part of the extension" in told(beside)
    asked = trace.format("setup.py", "torch_dir = importlib.util.find_spec('torch').origin")
    assert "install that first" in told(asked)
    assert "compiled part of the extension" not in told(asked)


def test_a_library_of_a_free_threaded_python_is_asked_for_by_its_macro() -> None:
    error = "LINK : fatal error LNK1104: cannot open file '{}'"
    assert "Where it prints 0 or None, a usual Python builds" in told(error.format("python313t.lib"))
    assert "Where it prints 0 or None" not in told(error.format("python313.lib"))


def test_a_build_that_still_writes_its_log_is_named() -> None:
    running = Running(command="build", user="ada", host="x", pid=7, started="2026-11-29T12:00:00+00:00")
    said = state_text(with_tree(linux_facts(), running=running).tree, clean=False)
    assert "process 7" in said
    assert said in reading_text(Reading(status="clean", state=said))


@pytest.mark.parametrize(
    ("result", "said"), [("ok", ""), ("failed", "disk"), ("running", "cut off"), ("interrupted", "goes on")]
)
def test_a_build_that_did_not_end_well_is_told_of_where_its_log_has_no_error(result: str, said: str) -> None:
    tree = with_tree(linux_facts(), previous=Previous(result=result)).tree
    assert said in state_text(tree, clean=True)
    assert bool(state_text(tree, clean=True)) == bool(said)
    assert state_text(tree, clean=False) == ""

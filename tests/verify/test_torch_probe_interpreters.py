"""The probe run for real, by interpreters and against torches that misbehave in every way."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import fake_driver
from tests.support.capabilities import needs_gcc, needs_posix_paths, needs_signals
from torchbuild_tasks.model import Expectation
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.verify import session
from torchbuild_tasks.verify.torch_probe import MARK

pytestmark = pytest.mark.integration

WINDOWS = sys.platform == "win32"

# As much of torch as the sample has: no nn, no autograd, no linalg, one dtype.
SMALL_TORCH = """
import pickle
from torch import __config__, version
from torch.version import __version__

float64 = "torch.float64"
_threads = 3


class Tensor:
    def __init__(self, data):
        self._data = data

    def tolist(self):
        return self._data

    def __add__(self, other):
        return Tensor([[a + b for a, b in zip(*rows)] for rows in zip(self._data, other._data)])

    def __matmul__(self, other):
        columns = list(zip(*other._data))
        return Tensor([[sum(map(float.__mul__, row, column)) for column in columns] for row in self._data])


def tensor(data, *, dtype=float64):
    return Tensor(data)


def matmul(left, right):
    return left @ right


def get_num_threads():
    return _threads


def set_num_threads(count):
    global _threads
    _threads = count


def save(state, path):
    with open(path, "wb") as file:
        pickle.dump(state, file)


def load(path):
    with open(path, "rb") as file:
        return pickle.load(file)
"""
CONFIG = """
def show():
    return "PyTorch built with:\\n  - GCC 13.3\\n  - Build settings: BUILD_TYPE=Release, USE_OPENMP=ON, \\n"


def parallel_info():
    return "ATen/Parallel:\\n\\tat::get_num_threads() : 3\\nATen parallel backend: OpenMP\\n"
"""
INTERPRETER = """\
import runpy, sys
assert sys.argv.pop(1) == "-I"
sys.argv.pop(0)
sys.path.insert(0, {site!r})
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SURFACE = ("import", "config", "matmul", "threads", "save_load")
READ_NULL = "status 0xc0000005 (access violation)" if WINDOWS else "signal 11 (Segmentation fault) during"
NO_LIBRARY = "status 0xc0000135 (a DLL was not found)" if WINDOWS else "ended with exit status 127"
ABORTED = "the interpreter " + ("ended with exit status" if WINDOWS else "died by signal 6 (Aborted)")
QUICK = tuple(name for name in SURFACE if name != "threads")  # which multiplies much, in Python here
MISSING = ("autograd", "linalg", "conv")

Python = Callable[[str], str]


def interpreter(folder: Path, code: str) -> str:
    """Make a program that runs this code and ignores its arguments."""
    if WINDOWS:
        (folder / "python.py").write_text(code, encoding="utf-8")
        return script(folder / "python.bat", f'@"{sys.executable}" "%~dp0python.py" %*\n')
    return script(folder / "python", f"#!{sys.executable}\n{code}")


def script(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def python_with(tmp_path: Path) -> Python:
    """Give a Python that has the small torch, with more code at the end of its `__init__.py`."""

    def make(code: str) -> str:
        torch = tmp_path / "site" / "torch"
        torch.mkdir(parents=True)
        (torch / "__init__.py").write_text(SMALL_TORCH + textwrap.dedent(code), encoding="utf-8")
        (torch / "__config__.py").write_text(CONFIG, encoding="utf-8")
        (torch / "version.py").write_text("__version__ = '2.13.0a0+git1234567'\ndebug = False\n")
        return interpreter(tmp_path, INTERPRETER.format(site=str(tmp_path / "site")))

    return make


def verify(python: str, *names: str, timeout: float = 60.0) -> VerifyReport:
    expectations = [Expectation(check=name) for name in names]
    return session.verify(python=python, expectations=expectations, environ=os.environ, timeout=timeout)


def failures(report: VerifyReport) -> dict[str, str]:
    return {row.check: row.detail for row in report.checks if row.outcome != "passed"}


# ---------------------------------------------------------------- torches


def test_what_the_sample_has_is_enough_for_its_checks(python_with: Python, tmp_path: Path) -> None:
    report = verify(python_with(""), *SURFACE)
    assert failures(report) == {}
    assert report.torch["version"] == "2.13.0a0+git1234567"
    assert report.torch["file"] == os.path.realpath(tmp_path / "site" / "torch" / "__init__.py")
    assert report.torch["parallel_backend"] == "OpenMP"


def test_what_torch_lacks_is_a_failure_in_its_own_words(python_with: Python) -> None:
    failed = failures(verify(python_with(""), *QUICK, *MISSING))
    assert tuple(failed) == MISSING
    assert failed["linalg"].startswith("AttributeError: module 'torch' has no attribute 'linalg'")


def test_a_skip_of_the_plan_makes_it_not_possible(python_with: Python) -> None:
    skipped = Expectation(check="linalg", skip="the sample has no torch.linalg")
    report = session.verify(python=python_with(""), expectations=[skipped], environ=os.environ)
    assert [row.outcome for row in report.checks] == ["passed", "not possible"]


@pytest.mark.parametrize(
    ("check", "code", "words"),
    [
        ("matmul", "matmul = lambda a, b: tensor([[0.0] * 41] * 37)", "float64 off by"),
        ("matmul", "Tensor.__matmul__ = lambda a, b: tensor([[7.0]])", "off by inf"),
        ("threads", "get_num_threads = lambda: 0", "torch.get_num_threads() is 0"),
        ("threads", "Tensor.__add__ = lambda a, b: tensor([[float(_threads)]])", "addition off by 2.0e+00"),
        ("save_load", "load = lambda path: {}", "KeyError: 'weight'"),
        ("config", "del __config__.show", "has no attribute 'show'"),
    ],
)
def test_a_wrong_torch_fails_its_check_only(python_with: Python, check: str, code: str, words: str) -> None:
    failed = failures(verify(python_with(code), *SURFACE))
    assert list(failed) == [check]
    assert words in failed[check]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; matmul = lambda a, b: os.abort()", "during matmul\n  Fatal Python error: Aborted"),
        ("import faulthandler; matmul = lambda a, b: faulthandler._read_null()", READ_NULL),
        ("import os; matmul = lambda a, b: os._exit(77)", "ended with exit status 77 during matmul"),
    ],
)
def test_a_death_costs_one_check(python_with: Python, code: str, words: str) -> None:
    def only_in_matmul(code: str) -> str:  # the threads check multiplies too
        return (
            code + "\nfatal = matmul\nmatmul = lambda a, b: fatal(a, b) if len(a.tolist()) == 37 else a @ b\n"
        )

    failed = failures(verify(python_with(only_in_matmul(code)), *QUICK))
    assert list(failed) == ["matmul"]
    assert words in failed["matmul"]


def test_a_hang_costs_one_check_and_shows_where(python_with: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LIMIT", 5.0)
    python = python_with("import time\ndef save(state, path):\n    time.sleep(60)\n")
    failed = failures(verify(python, "matmul", "save_load", "autograd"))
    assert list(failed) == ["save_load", "autograd"]
    assert "no answer for too long during save_load" in failed["save_load"]
    assert "in save\n" in failed["save_load"]


def test_when_the_time_is_up_the_report_still_comes(python_with: Python) -> None:
    python = python_with("import time\n__config__.show = lambda: time.sleep(600)\n")
    start = time.monotonic()
    failed = failures(verify(python, *QUICK, timeout=15.0 if WINDOWS else 3.0))
    assert time.monotonic() - start < 300
    assert "config" in failed
    assert "import" not in failed


def test_torch_may_print_what_it_likes(python_with: Python) -> None:
    python = python_with("import os, sys; os.write(1, b'\\xff no newline '); print('{', file=sys.stderr)")
    assert failures(verify(python, *QUICK)) == {}


def test_a_death_on_the_way_out_is_a_row_of_its_own(python_with: Python) -> None:
    failed = failures(verify(python_with("import atexit, os; atexit.register(os.abort)"), *QUICK))
    assert list(failed) == ["exit"]
    assert failed["exit"].startswith(ABORTED)
    assert "after the last check" in failed["exit"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "import sys; print('noise', file=sys.stderr); import nothing_of_this_name",
            "No module named 'nothing_of",
        ),
        ("raise OSError('libtorch_cpu.so: cannot open shared object file')", "OSError: libtorch_cpu.so"),
        ("raise SystemExit(3)", "exit status 3 during import"),
        ("import os; os.abort()", "during import\n  Fatal Python error: Aborted"),
        ("del __version__", "has no attribute '__version__'"),
    ],
)
def test_a_torch_that_does_not_import(python_with: Python, code: str, words: str) -> None:
    failed = failures(verify(python_with(code), *QUICK))
    assert words in failed.pop("import")
    assert failed == dict.fromkeys(QUICK[1:], "torch could not be imported")


def test_no_torch_at_all(tmp_path: Path) -> None:
    code = INTERPRETER.format(site=str(tmp_path / "nowhere"))
    failed = failures(verify(interpreter(tmp_path, code), "conv"))
    assert failed["import"].startswith("ModuleNotFoundError: No module named 'torch'")
    assert failed["conv"] == "torch could not be imported"


# ---------------------------------------------------------------- GPUs

# What the CUDA half of torch is asked for before anything is computed; an error there sticks.
SMALL_CUDA = """
version.cuda = "13.0"


class cuda:
    stuck = False

    @staticmethod
    def is_available():
        if cuda.stuck:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return True

    @staticmethod
    def device_count():
        return 1

    @staticmethod
    def Stream():
        cuda.stuck = True
        raise RuntimeError("CUDA error: an illegal memory access was encountered")


def to(self, device):
    import time
    time.sleep(60)


Tensor.to = to
"""


def test_a_gpu_that_hangs_costs_its_checks_only(python_with: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LIMIT", 5.0)
    failed = failures(verify(python_with(SMALL_CUDA), "matmul", "cuda_op", "cuda_streams", "save_load"))
    assert list(failed) == ["cuda_op", "cuda_streams"]
    assert "too long during cuda_op: a single addition hangs in the driver" in failed["cuda_op"]
    assert "in to\n" in failed["cuda_op"]
    assert failed["cuda_streams"].startswith("not tried, because of cuda_op: ")


def test_an_error_that_sticks_to_the_process_costs_one_check(python_with: Python) -> None:
    failed = failures(verify(python_with(SMALL_CUDA), "cuda_streams", "cuda_peer"))
    assert failed.pop("cuda_streams").startswith("RuntimeError: CUDA error: an illegal memory access")
    assert failed == {"cuda_peer": "there is one GPU only"}


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """Return the folder of a driver's library whose answers the test chooses."""
    (tmp_path / "driver").mkdir()
    return fake_driver.build(tmp_path / "driver")


def driven(python: str, folder: Path, *names: str, **said: str | int) -> dict[str, tuple[str, str]]:
    environ = fake_driver.environ_with(folder, os.environ, **said)
    expectations = [Expectation(check=name) for name in names]
    report = session.verify(python=python, expectations=expectations, environ=environ)
    return {row.check: (row.outcome, row.detail) for row in report.checks}


@needs_gcc
@needs_posix_paths
def test_a_driver_that_works(python_with: Python, driver: Path) -> None:
    rows = driven(python_with(SMALL_CUDA), driver, "cuda_available", "cuda_driver", FAKE_CUDA=12040)
    assert rows["cuda_driver"] == ("passed", "the driver fills memory and copies it back")
    assert rows["cuda_available"][1].endswith("driver_cuda 12.4")


@needs_gcc
@needs_posix_paths
@pytest.mark.parametrize(
    ("at", "how", "words"),
    [
        ("cuInit", "3", "the driver fails without torch: cuInit gives error 3"),
        ("cuMemAlloc_v2", "2", "the driver fails without torch: cuMemAlloc_v2 gives error 2"),
        ("", "changed", "the driver fails without torch: memory that it filled comes back changed"),
        ("cuMemsetD32_v2", "crash", "died by signal 6 (Aborted) during cuda_driver"),
        ("cuMemcpyDtoH_v2", "hang", "during cuda_driver: the driver was at work alone, so it is no fault of"),
    ],
)
def test_a_driver_that_fails_is_no_fault_of_torch(
    python_with: Python, driver: Path, monkeypatch: pytest.MonkeyPatch, at: str, how: str, words: str
) -> None:
    monkeypatch.setattr(session, "LIMIT", 5.0)
    names = ("cuda_driver", "cuda_op", "matmul")
    rows = driven(python_with(SMALL_CUDA), driver, *names, FAKE_AT=at, FAKE_HOW=how)
    assert rows["cuda_driver"][0] == rows["cuda_op"][0] == "not possible"
    assert words in rows["cuda_driver"][1]
    assert "driver" in rows["cuda_op"][1]
    assert rows["matmul"][0] == "passed"


@needs_gcc
@needs_posix_paths
@pytest.mark.parametrize(
    ("code", "cuda", "words"),
    [(802, 13000, "error 802: "), (803, 13000, "error 803: "), (0, 12040, "error 35: ")],
)
def test_a_driver_says_why_it_does_not_work(
    python_with: Python, driver: Path, code: int, cuda: int, words: str
) -> None:
    python = python_with(SMALL_CUDA + "\ncuda.is_available = lambda: False")
    rows = driven(python, driver, "cuda_available", "cuda_driver", FAKE_CODE=code, FAKE_CUDA=cuda)
    assert rows["cuda_available"][0] == "not possible"
    assert rows["cuda_available"][1].startswith(words)
    assert rows["cuda_driver"][1].startswith(f"no GPU can be used: {words}")


@needs_gcc
@needs_posix_paths
def test_a_torch_that_does_not_see_what_the_driver_sees(python_with: Python, driver: Path) -> None:
    python = python_with(SMALL_CUDA + "\ncuda.is_available = lambda: False")
    rows = driven(python, driver, "cuda_available", "cuda_op")
    assert rows["cuda_available"][0] == "failed"
    assert "the driver is fine, yet torch.cuda.is_available() is false" in rows["cuda_available"][1]
    assert rows["cuda_op"][0] == "not possible"


# ---------------------------------------------------------------- interpreters


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('I am no Python')", "printed nothing that can be read\n  I am no Python"),
        (
            "import os, sys; sys.stdout.buffer.write(os.urandom(5_000_000))",
            "printed nothing that can be read",
        ),
        ("raise SystemExit('no libpython')", "status 1, and printed nothing that can be read\n  no lib"),
        (f"import os; os._exit({0xC0000135 - 2**32 if WINDOWS else 127})", NO_LIBRARY),
        pytest.param("import os; os.kill(os.getpid(), 9)", "died by signal 9 (Killed)", marks=needs_signals),
        pytest.param(
            f'import os; print(\'{MARK}{{"begin": "import"}}\', flush=True); os.kill(os.getpid(), 4)',
            "signal 4 (Illegal instruction) during import",
            marks=needs_signals,
        ),
    ],
)
def test_an_interpreter_that_is_none(tmp_path: Path, code: str, words: str) -> None:
    failed = failures(verify(interpreter(tmp_path, code), "matmul"))
    assert words in failed["import"]
    assert failed["matmul"] == "torch could not be imported"


def test_an_interpreter_that_cannot_start(tmp_path: Path) -> None:
    python = script(tmp_path / "python.exe", "#!/no/such/interpreter\n")
    assert "cannot start" in failures(verify(python, "matmul"))["import"]


def test_an_interpreter_that_is_missing(tmp_path: Path) -> None:
    failed = failures(verify(str(tmp_path / "python"), "matmul"))
    assert f"cannot start {tmp_path / 'python'}" in failed["import"]


def test_an_interpreter_that_never_ends(tmp_path: Path) -> None:
    python = interpreter(tmp_path, "import time; time.sleep(60)")
    failed = failures(verify(python, "matmul", timeout=1.0))
    assert failed["import"].startswith("the time was up")

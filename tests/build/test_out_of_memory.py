"""The messages of each tool that ran out of memory, and similar messages with another cause."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.build.out_of_memory import ATTEMPTS, Killed, find_killed, lower_jobs

DEATHS = [
    ("c++: fatal error: Killed signal terminated program cc1plus", "c++"),
    ("/usr/bin/x86_64-linux-gnu-g++-12: fatal error: Killed signal terminated program cc1plus", "c++"),
    ("g++: internal compiler error: Killed (program cc1plus)", "c++"),
    ("Killed", "c++"),
    ("/bin/sh: line 1: 12345 Killed                  /usr/bin/c++ -O2 -c a.cpp", "c++"),
    ("collect2: fatal error: ld terminated with signal 9 [Killed]", "link"),
    ("clang++: error: unable to execute command: Killed", "c++"),
    ("clang: error: clang frontend command failed due to signal 9 (use -v to see invocation)", "c++"),
    ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "cuda"),
    ("nvcc error   : 'ptxas' died due to signal 9 (Kill signal)", "cuda"),
    ("sccache: Compiler killed by signal 9", "c++"),
    ("make[2]: *** [x.dir/build.make:76: x.dir/a.cpp.o] Killed", "c++"),
    ("make[2]: *** [x.dir/build.make:76: x.dir/a.cpp.o] Error 137", "c++"),
    ("FAILED: [code=137] caffe2/CMakeFiles/torch_cpu.dir/a.cpp.o ", "c++"),
    ("FAILED: [code=137] caffe2/CMakeFiles/torch_cuda.dir/flash_fwd.cu.o ", "cuda"),
    ("virtual memory exhausted: Cannot allocate memory", "c++"),
    ("cc1plus: out of memory allocating 65536 bytes after a total of 1929379840 bytes", "c++"),
    ("/usr/bin/ld: final link failed: memory exhausted", "link"),
    ("/usr/bin/ld.gold: fatal error: out.so: Cannot allocate memory", "link"),
    ("a.cu(3): catastrophic error: out of memory", "cuda"),
    ("LLVM ERROR: out of memory", "c++"),
    ("ptxas fatal   : Memory allocation failure", "cuda"),
    ("terminate called after throwing an instance of 'std::bad_alloc'", "c++"),
    (r"C:\src\a.cpp(12): fatal error C1060: compiler is out of heap space", "c++"),
    ("c1xx: fatal error C1002: compiler is out of heap space in pass 2", "c++"),
    ("c1xx : fatal error C3859: Failed to create virtual memory for PCH", "c++"),
    ("LINK : fatal error LNK1102: out of memory", "link"),
    ("FAILED: [code=3221225495] a.obj ", "c++"),
    ("cl.exe exited with code 0xC0000409", "c++"),
]

NEAR_MISSES = [
    "c++: fatal error: Segmentation fault signal terminated program cc1plus",
    "nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)",
    "sccache: Compiler killed by signal 11",
    "collect2: fatal error: ld terminated with signal 11 [Segmentation fault], core dumped",
    "FAILED: [code=1] src/Killed.cpp.o ",
    "FAILED: [code=139] a.o ",
    "[3/9] Building CXX object x.dir/out_of_memory.cpp.o",
    "a.cpp:3:2: error: #error virtual memory exhausted: yes",
    '    3 | throw Error("out of memory allocating 12 bytes");',
    '  std::puts("LLVM ERROR: out of memory");',
    "RuntimeError: CUDA error: out of memory",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
    "ld: cannot find -lmemory: No such file or directory",
    "fatal error: error writing to /tmp/cc.s: No space left on device",
    "a.cpp(1): fatal error C1083: Cannot open include file: 'C1060.h': No such file or directory",
    "LINK : fatal error LNK1104: cannot open file 'LNK1102.lib'",
    "make: *** [Makefile:3: all] Error 2",
    "make: *** [Makefile:3: all] Interrupt",
    "Killed by a test on purpose",
    "KilledWorker.cpp: 3 warnings generated",
    "nvcc fatal   : Unsupported gpu architecture 'compute_137'",
    "ninja: build stopped: subcommand failed.",
]


@each_case(("line", "kind"), DEATHS)
def test_a_death_is_known_with_its_kind(line: str, kind: str) -> None:
    killed = find_killed(("[1/2] Building a", "  " + line, "ninja: build stopped"), 1)
    assert killed == Killed(kind=kind, line=line.strip())


@each_case("line", NEAR_MISSES)
def test_what_only_looks_like_one(line: str) -> None:
    assert find_killed((line,), 1) is None


@each_case("rc", [137, -9])
def test_ninja_itself_can_be_the_one_that_was_killed(rc: int) -> None:
    killed = find_killed(("[1/2] Building a",), rc)
    assert killed is not None and killed.kind == "build"


@each_case("rc", [0, 130, -2])
def test_neither_success_nor_ctrl_c_is_a_death(rc: int) -> None:
    assert find_killed(("Killed",), rc) is None


def test_a_bare_killed_is_of_the_kind_that_its_block_tells() -> None:
    lines = ("FAILED: flash_fwd.cu.o", "/usr/local/cuda/bin/nvcc -c flash_fwd.cu", "Killed")
    killed = find_killed(lines, 1)
    assert killed is not None and killed.kind == "cuda"


CUDA = Killed(kind="cuda", line="'cicc' died due to signal 9")
CXX = Killed(kind="c++", line="Killed signal terminated program cc1plus")


def test_the_jobs_are_halved() -> None:
    found = lower_jobs(7, CXX, 1)
    assert found is not None and found.jobs == 3
    assert "3 jobs, not 7" in found.because and CXX.line in found.because and "time 1 of 2" in found.because
    found = lower_jobs(8, CUDA, 2)
    assert found is not None and found.jobs == 4 and found.because.startswith("A CUDA compile")


def test_it_ends() -> None:
    assert lower_jobs(8, CUDA, ATTEMPTS + 1) is None
    assert lower_jobs(1, CXX, 1) is None


@given(
    jobs=st.integers(1, 500),
    kind=st.sampled_from(["c++", "cuda", "link", "build"]),
    attempt=st.integers(1, 4),
)
def test_numbers_fall_and_never_to_nothing(jobs: int, kind: str, attempt: int) -> None:
    found = lower_jobs(jobs, Killed(kind=kind, line="x"), attempt)
    assert found is None or 1 <= found.jobs < jobs

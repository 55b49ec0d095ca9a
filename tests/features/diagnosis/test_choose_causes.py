"""What is said of a log: ranked causes, an error that nobody knows, and warnings that are none."""

from __future__ import annotations

import pytest

from tests.support.diagnosis import book, machine, read
from tests.support.for_each import each_case
from torchbuild_tasks.catalog.failures import FailureBook, UserFailureRow
from torchbuild_tasks.features.diagnosis.choose import PAGE, explain
from torchbuild_tasks.features.diagnosis.show import reading_text

KILLED = "c++: fatal error: Killed signal terminated program cc1plus"
FAILED = "FAILED: a.o\nc++ -c a.cpp\n"
CMAKE = "CMake Error at x.cmake:1 (message):\n"
ARCH = "nvcc fatal   : Unsupported gpu architecture 'compute_30'"


def test_a_root_is_told_before_what_follows_from_it() -> None:
    log = (
        f"{FAILED}a.cpp:1:2: error: '__assert_fail' has not been declared\n{KILLED}\nninja: build stopped: x"
    )
    assert read(log).diagnoses[0].id == "oom-cc1plus"


def test_a_consequence_is_told_only_where_nothing_else_is_known() -> None:
    stopped = "ninja: build stopped: subcommand failed."
    assert [each.id for each in read(f"[1/2] Building\n{stopped}").diagnoses] == ["ninja-subcommand"]
    unknown = read(f"{FAILED}a.cpp:1:2: error: nobody knows\n{stopped}")
    assert (unknown.status, [each.id for each in unknown.diagnoses]) == ("unknown", ["compile-error"])
    assert unknown.error_line == "a.cpp:1:2: error: nobody knows"


def test_what_stands_elsewhere_in_the_log_is_no_cause() -> None:
    log = f"{ARCH}\n-- Performing Test HAS_X - Failed\n-- Configuring done\n{FAILED}a.cpp:1:2: error: x"
    assert [each.id for each in read(log).diagnoses] == ["compile-error"]


def test_the_line_stands_as_in_the_log_and_the_block_as_a_person_reads_it() -> None:
    line = "2026-05-01T12:34:56.78Z   \x1b[1ma.cpp:1:2: \x1b[31merror: \x1b[0mx"
    reading = read(f"2026-05-01T12:34:56.78Z one\n{line}\n")
    assert (reading.error_line, reading.line_number) == (line, 2)
    assert reading.error_block == ("  a.cpp:1:2: error: x",)


def test_warnings_of_a_log_without_a_failure_are_notes() -> None:
    reading = read("-- MAGMA not found. Compiling without MAGMA support\n-- Configuring done\n")
    assert (reading.status, reading.diagnoses, reading.line_number) == ("clean", (), 0)
    assert [note.id for note in reading.notes] == ["magma-not-found"]


FLASH = """  ╰─> [20 lines of output]
      /tmp/setup.py:72: UserWarning: flash_attn was requested, but nvcc was not found.
      Traceback (most recent call last):
        File "<string>", line 2, in <module>"""
VLLM = "WARNING ops.py:14] Failed to import from vllm._C with ImportError('x.so: undefined symbol: _ZN3c10')"
XFORMERS = """WARNING[XFORMERS]: xFormers was built for:
    PyTorch 2.6.0+cu124 with CUDA None (you have 2.5.1+cu121)
  Please reinstall xformers"""


@each_case(
    ("log", "row"),
    [(VLLM, "compiled-part-passed-over"), (FLASH, "nvcc-warned"), (XFORMERS, "xformers-built-for")],
)
def test_known_warnings_are_told_where_no_cause_is_known(log: str, row: str) -> None:
    reading = read(log)
    assert [note.id for note in reading.notes] == [row]
    assert f"Warning: {reading.notes[0].cause}" in reading_text(reading)


def test_a_warning_within_the_failing_block_is_its_cause() -> None:
    error = f"{CMAKE}  Could NOT find OpenMP_CXX (missing: OpenMP_CXX_FLAGS)\n"
    assert [each.id for each in read(error).diagnoses] == ["openmp-not-found"]


PIP = """  error: subprocess-exited-with-error
  × python setup.py bdist_wheel did not run successfully.
  │ exit code: 1
  ╰─> [12 lines of output]
      running build
      {}
      building 'zork' extension
      Zork has decided against it.
      [end of output]
ERROR: Failed building wheel for zork
"""


@each_case(
    "line",
    [
        "/v/cmd.py:66: SetuptoolsDeprecationWarning: setup.py install is deprecated.",
        "-- MAGMA not found. Compiling without MAGMA support",
        "-- Could NOT find Python3 (missing: Development)",
        "CMake Warning (dev) at a.cmake:3 (find_package): Policy CMP0148 is not set",
        "UserWarning: Failed to load image Python extension: '/x/image.so: undefined symbol: _ZN3c105ErrorC'",
    ],
)
def test_a_warning_beside_an_error_that_is_not_known_is_no_cause(line: str) -> None:
    reading = read(PIP.format(line))
    assert (reading.status, reading.line_number) == ("unknown", 8)
    assert [each.id for each in reading.diagnoses] == ["command-failed"]


def test_a_message_that_cmake_has_wrapped_is_read_as_one() -> None:
    error = f"{CMAKE}  Found NCCL header version and library\n  version do not match!\n"
    assert [each.id for each in read(error).diagnoses] == ["nccl-mismatch"]


def test_what_cmake_said_on_the_way_counts_for_its_error() -> None:
    log = f"-- The CUDA compiler identification is unknown\n{CMAKE}  Else\n"
    assert [each.id for each in read(log).diagnoses] == ["cuda-compiler-unknown"]


LD = "/usr/bin/ld: "


@pytest.mark.parametrize(
    ("why", "what", "row"),
    [
        ("skipping incompatible /x/libfoo.so when searching for -lfoo", "cannot find -lfoo", "link-skips"),
        (
            "warning: libfoo.so.1, needed by x.so, not found",
            "x.so: undefined reference to `f'",
            "link-needed-by",
        ),
    ],
)
def test_why_the_linker_misses_something_stands_above_it(why: str, what: str, row: str) -> None:
    reading = read(f"[1/2] Linking x\n{LD}{why}\n{LD}warning: cannot find entry symbol x\n{LD}{what}\n")
    assert (reading.diagnoses[0].id, reading.line_number) == (row, 2)
    assert read(f"[1/2] Linking x\n{LD}{why}\n[2/2] Linking y\n").status == "clean"


def test_what_ninja_says_at_the_end_is_no_cause_of_an_error_before_it() -> None:
    ninja = "ninja: error: 'a.yaml', needed by 'b', missing and no known rule"
    reading = read(f"a.cpp(7): error C2398: nobody knows\n{ninja}")
    assert (reading.kind, reading.line_number) == ("compile-error", 1)


def test_an_error_that_was_pasted_below_the_end_of_ninja_counts() -> None:
    log = "[1/2] c++ a\nninja: build stopped: subcommand failed.\nand above it\na.cpp(7): error C3536: x\n"
    assert read(log).line_number == 4
    assert (
        read("[1/2] c++ a\nninja: build stopped: x\nTraceback (most recent call last):\n  F").line_number == 2
    )


def test_what_only_announces_an_error_is_not_it() -> None:
    assert read("[1/2] c++ a\n>>> Other error: \nUnknown builtin op: torchvision::nms.\n").line_number == 3


def test_whose_run_time_compilation_fails_is_told_by_the_exception_within() -> None:
    said = "RuntimeError: The following operation failed in the TorchScript interpreter.\n"
    within = "RuntimeError: /tmp/comgr-1f/input/CompileSource1:6:7: error: unknown type name 'x'\n"
    reading = read(f"{said}Traceback of TorchScript (most recent call last):\n{within}")
    assert (reading.line_number, reading.diagnoses[0].id) == (3, "hip-jit")


def test_every_cause_has_its_place_in_the_documentation() -> None:
    (told,) = read(KILLED).diagnoses
    assert told.see == f"{PAGE}#oom-cc1plus"


def test_a_row_of_a_settings_file_does_not_speak_for_us() -> None:
    """The file may have come with the checkout, and its advice be to run something."""
    place = "/src/torchbuild.toml, line 5"
    row = UserFailureRow(
        id="x", phase="compile", cause="c", source="s", fix=("f",), patterns=("^evil$",), place=place
    )
    told = explain("evil", FailureBook((row,)), machine())
    assert told is not None
    assert told.see == f"from {place}"


# What a compiler said in the pre-flight, and the row that knows it. Those marked * were not said here
# but stand in the row's source.
SAID = {
    "host_config.h:137:2: error: #error -- unsupported GNU version! gcc versions later than 15 are not "
    "supported! The nvcc flag ...": "nvcc-gnu-version",
    "host_config.h:151:2: error: #error -- unsupported clang version! clang version must be less than 21 and "
    "greater than 3.2 .": "clang-cuda-host",
    # *
    "C:\\CUDA\\include\\crt/host_config.h(153): fatal error C1189: #error:  -- unsupported Microsoft Visual "
    "Studio version! Only the versions between 2017 and 2022 (inclusive) are supported!": "nvcc-msvc-version",
    "nvcc fatal   : Unsupported gpu architecture 'compute_120'": "nvcc-arch",
    "ptxas fatal   : Value 'sm_35' is not defined for option 'gpu-name'": "gpu-name-sm30",
    "<command-line>: fatal error: cuda_runtime.h: No such file or directory": "nvcc-headers",
    "../include/cuda_fp16.h:4100:10: fatal error: nv/target: No such file or directory": "nvcc-headers",
    # *
    "fatal error C1083: Cannot open include file: 'cuda_runtime.h': No such file": "nvcc-headers",
    "sh: 1: cicc: not found": "nvcc-incomplete",
    "sh: 1: ptxas: not found": "nvcc-incomplete",
    # *
    "'cicc' is not recognized as an internal or external command,": "nvcc-incomplete",
    # *
    "nvcc fatal   : Cannot find compiler 'cl.exe' in PATH": "cl-not-found",
    "/usr/bin/nix: No such file or directory\n"
    "nvcc fatal   : Failed to preprocess host compiler properties.": "nvcc-host-fails",
    # *
    "/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with '...':": "std-function-h",
    "preflight.cpp:29:1: fatal error: writing to /tmp/ccq7EBD6.s: No space left on device": "disk-full",
    "Killed": "oom-killed",
    "nvcc was ended by signal 9": "oom-killed",
    # *
    "nvcc error   : 'cicc' died due to signal 9 (Kill signal)": "oom-cicc",
    # *
    "g++: fatal error: Killed signal terminated program cc1plus": "oom-cc1plus",
    "Segmentation fault": "segfault",
    "cannot start /opt/sccache: [Errno 2] No such file or directory: '/opt/sccache'": "cache-not-started",
    "ccache: error: Failed to create directory /proc/nix/tmp: No such file": "ccache-hash",
    'ccache: error: Could not find compiler "nix" in PATH': "cache-no-compiler",
    "ccache: error: execute_noreturn of /nix failed: No such file or directory": "cache-no-compiler",
    "sccache: error: failed to execute compile\n"
    "sccache: caused by: cannot find binary path": "cache-no-compiler",
    "g++: error: unrecognized command-line option \u2018-std=c++99\u2019; did you mean": "unknown-flag",
    "nvcc fatal   : Unknown option '-foo'": "unknown-flag",
    "nvcc fatal   : Value 'c++99' is not defined for option 'std'": "unknown-flag",
}


@each_case(("said", "row"), SAID.items())
def test_what_a_short_command_said_is_explained(said: str, row: str) -> None:
    told = explain(
        f"In file included from preflight.cu:2:\n{said}\ncompilation terminated.", book(), machine()
    )
    assert told is not None
    assert told.id == row
    assert "{" not in told.cause + told.fix


def test_the_flag_that_is_unknown_is_named() -> None:
    told = explain("nvcc fatal   : Unknown option '-foo'", book(), machine())
    assert told is not None
    assert "-foo" in told.cause


def test_not_every_failure_is_known() -> None:
    assert explain("preflight.cu:3:1: error: expected unqualified-id", book(), machine()) is None
    # A path that holds such words is none of them.
    assert explain("/home/Killed/cicc: error: nothing", book(), machine()) is None


def test_the_first_of_two_compiles_that_fail_under_make_is_the_error() -> None:
    ice = "internal compiler error: in gimplify_var_or_parm_decl, at gimplify.c:1741"
    log = (
        f"[ 65%] Building a\na.cc:1:5: {ice}\n[ 65%] Building b\nb.cc:2:5: {ice}\nmake[2]: *** [b.o] Error 1"
    )
    for excerpt in (log, log.rpartition("\n")[0]):
        reading = read(excerpt)
        assert (reading.line_number, reading.error_line) == (2, f"a.cc:1:5: {ice}")


WARNED = "x.py:358: UserWarning: Error checking compiler version for cl: [WinError 2] not found"


def test_a_warning_of_pythons_counts_only_where_nothing_fails_later() -> None:
    assert [each.id for each in read(f"one\n{WARNED}\n  warnings.warn(x)").diagnoses] == ["cl-not-found"]
    trace = (
        'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nRuntimeError: nobody knows'
    )
    reading = read(f"one\n{WARNED}\n  warnings.warn(x)\nrunning build_ext\n{trace}")
    assert (reading.error_line, reading.status) == ("RuntimeError: nobody knows", "unknown")


def test_source_that_is_quoted_without_its_traceback_is_no_error() -> None:
    raised = 'raise ValueError("Unknown CUDA arch ({}) or GPU not supported".format(arch))'
    reading = read(f"{raised}\nValueError: Unknown CUDA arch (8.6) or GPU not supported")
    assert (reading.line_number, reading.diagnoses[0].id) == (2, "unknown-cuda-arch")


def test_a_head_of_cmake_that_a_narrow_terminal_wrapped_has_its_text() -> None:
    head = "CMake Error at /opt/env/share/cmake/Caffe2/public/cuda.cmake:65 (mess\nage):      "
    reading = read(f"{head}\n  Found two conflicting CUDA installs:     \n\n  V12.1.66 in '/usr/local/cuda'")
    assert (reading.line_number, reading.diagnoses[0].id) == (1, "two-cuda")
    whole = read(
        "CMake Error at x.cmake:1 (message):\nIt is not part of this.\n  Found two conflicting CUDA installs:"
    )
    assert [each.id for each in whole.diagnoses] == ["cmake-error"]


def test_an_excerpt_without_its_command_has_its_error_in_the_second_line() -> None:
    ld = "/usr/local/bin/ld: lib/libtorch_cpu.so: undefined reference to `__kmpc_fork_call'"
    reading = read(f"FAILED: bin/a\n{ld}\nclang: error: linker command failed with exit code 1")
    assert (reading.error_line, reading.diagnoses[0].id) == (ld, "kmpc-undefined")
    command = "/usr/bin/c++ -DSAY='x: error: y' -o bin/a a.o"
    assert read(f"FAILED: bin/a\n{command}\na.cpp:1:2: error: x").error_line == "a.cpp:1:2: error: x"


def test_what_uv_says_of_a_build_is_no_error_of_its_own() -> None:
    said = "error: The build backend returned an error\n  Caused by: Call to `x` failed\n\n[stderr]\n"
    trace = 'Traceback (most recent call last):\n  File "<string>", line 14, in <module>\n'
    reading = read(f"{said}{trace}ModuleNotFoundError: No module named 'torch'")
    assert (reading.line_number, reading.diagnoses[0].id) == (7, "build-isolation-torch")


def test_a_line_of_visual_studios_list_is_read_like_the_compilers_own() -> None:
    reading = read("Error\tC1001\tInternal compiler error.\tdnnl_cpu\tD:\\pt\\gemm.cpp\t401\t")
    assert reading.diagnoses[0].id == "msvc-vs2019-1671"
    assert reading.error_line.startswith("Error\tC1001")
    assert read("Warning\tC4996\t'x': was declared deprecated\tp\tD:\\pt\\x.cpp\t4\t").status == "clean"


EXTENSION = "/usr/local/cuda/bin/nvcc -DTORCH_EXTENSION_NAME=_ext -c a.cu -o a.o\n"


def test_what_builds_torch_is_no_help_to_an_extension() -> None:
    arch = "nvcc fatal   : Unsupported gpu architecture 'compute_86'"
    own, other = read(f"{FAILED}{arch}").diagnoses[0], read(f"{EXTENSION}{arch}").diagnoses[0]
    assert own.command.startswith("torchbuild build")
    assert other.command == ""
    assert "CUDA_HOME" in other.fix
    broken = "/x/a.so: undefined symbol: _ZN3c105ErrorC1ENS_14SourceLocationERKSs"
    at_run = read(f"{EXTENSION}[1/1] nvcc\nImportError: {broken}").diagnoses[0]
    assert at_run.command == "torchbuild verify --closure"


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("Created temporary directory: /tmp/pip-install-lymajxn4", False),
        ('  File "/tmp/pip-install-sukldczv/flash-attn_cd141/setup.py", line 117, in <module>', True),
        ("copying torch/utils/cpp_extension.py -> build/lib/torch/utils", False),
        ('  File "/env/lib/python3.10/site-packages/torch/utils/cpp_extension.py", line 9, in load', True),
        ("/usr/bin/c++ -I/pt/torch/include -c a.cpp -o a.o", False),
        ("/usr/bin/c++ -I/env/dist-packages/torch/include -c a.cpp -o a.o", True),
    ],
)
def test_an_extension_is_known_by_what_only_its_build_says(said: str, other: bool) -> None:
    arch = "nvcc fatal   : Unsupported gpu architecture 'compute_86'"
    assert (read(f"{said}\n{arch}").diagnoses[0].command == "") is other


def test_a_header_that_torch_bundles_is_not_fetched_with_it_for_an_extension() -> None:
    error = "a.cpp:1:10: fatal error: pybind11/pybind11.h: No such file or directory"
    assert "third_party/pybind11" in read(error).diagnoses[0].fix
    assert "third_party/pybind11" not in read(f"{EXTENSION}{error}").diagnoses[0].fix


def test_the_package_whose_module_does_not_load_is_the_one_to_get_anew() -> None:
    frames = (
        r'  File "C:\env\lib\site-packages\torch_sparse\__init__.py", line 15, in <module>',
        r'  File "C:\env\lib\site-packages\torch\_ops.py", line 104, in load_library',
    )
    error = "OSError: [WinError 127] The specified procedure could not be found"
    head = "Traceback (most recent call last):\n"
    assert read(head + "\n".join((*frames, error))).diagnoses[0].fix.startswith("torch_sparse was built for")
    assert read(head + "\n".join((frames[1], error))).diagnoses[0].fix.startswith("Install torch again")


def test_what_the_loader_misses_is_told_for_the_loader() -> None:
    error = "ImportError: libiomp5.so: cannot open shared object file: No such file or directory"
    fix = read(error).diagnoses[0].fix
    assert "LD_LIBRARY_PATH" in fix
    assert "CMAKE_PREFIX_PATH" not in fix


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("ninja: fatal: CreateProcess: Internal error.", "process-refused"),
        ("ninja: fatal: CreateProcess: Access is denied.", "process-refused"),
        ("ninja: fatal: posix_spawn: Resource temporarily unavailable", "too-many-processes"),
        ("OSError: [WinError 5] Access is denied: 'C:\\\\x\\\\torch_cpu.dll'", "permission"),
    ],
)
def test_a_refusal_of_the_system_is_not_laid_on_the_builds_files(said: str, kind: str) -> None:
    reading = read(said)
    assert (reading.kind, reading.error_line) == (kind, said)
    assert not any(each.command == "torchbuild build --clean" for each in reading.diagnoses)


def test_what_a_step_of_pip_has_said_before_it_ended_is_its_error() -> None:
    note = "note: This error originates from a subprocess"
    end = f"error: subprocess-exited-with-error\n\n  ╰─> No available output.\n\n{note}"
    said = "ERROR! Cannot compile the extension. Please ensure that:"
    assert read(f"  {said}\n\n  1. You have a compiler\n\n{end}\n").error_line == f"  {said}"


def test_what_a_package_lacks_of_itself_is_no_other_package() -> None:
    frame = r'  File "C:\dev\pytorch_scatter\torch_scatter\utils\ext.py", line 2, in <module>'
    head, error = (
        "Traceback (most recent call last):\n",
        "ModuleNotFoundError: No module named 'torch_scatter.cpu'",
    )
    own = read(f"{head}{frame}\n{error}").diagnoses[0]
    assert own.fix.startswith("torch_scatter itself asks for it")
    assert "pip install" not in own.fix
    other = read(f"{head}{frame}\nImportError: No module named 'nobody'").diagnoses[0].fix
    assert other.startswith("No package is known here for nobody")
    assert "pip install nobody" not in other  # it may be anything
    assert (
        "pip install pandas" in read(f"{head}{frame}\nImportError: No module named 'pandas'").diagnoses[0].fix
    )


@pytest.mark.parametrize(
    ("above", "said"),
    [
        (
            "ld: warning: -pie being ignored",
            "ld: unsupported tapi file type '!tapi-tbd' in YAML file '/x.tbd'",
        ),
        ("ld: warning: directory not found", "duplicate symbol __ZN2at6native1aEv in:"),
        ("ld: warning: x", "ld: in lib/liba.a(b.o), section __TEXT/__const address out of range for x86_64"),
    ],
)
def test_what_the_linker_of_macos_says_is_the_error_and_not_that_it_failed(above: str, said: str) -> None:
    end = "clang: error: linker command failed with exit code 1 (use -v to see invocation)"
    assert read(f"FAILED: liba.dylib\n: && clang -o liba.dylib\n{above}\n{said}\n{end}\n").error_line == said


def test_an_extension_reads_variables_where_torchs_build_takes_our_flags() -> None:
    said = "nvcc fatal   : Value 'c++17' is not defined for option 'std'"
    assert "(--cuda-toolkit)" in read(f"{FAILED}{said}").diagnoses[0].fix
    fix = read(f"{EXTENSION}{said}").diagnoses[0].fix
    assert "(CUDA_HOME)" in fix
    assert "--cuda-toolkit" not in fix


@pytest.mark.parametrize(
    ("log", "kind", "subject", "said"),
    [
        (  # the quoted call tells which program
            'Traceback (most recent call last):\n  File "setup.py", line 9, in <module>\n'
            '    raw = subprocess.check_output([cuda_dir + "/bin/nvcc", "-V"])\n'
            "FileNotFoundError: [WinError 2] The system cannot find the file specified",
            *("missing-tool", "nvcc", "toolkit"),
        ),
        (  # what a line announces comes next
            "error: No solution found when resolving dependencies\n"
            "  cause: Because torch was not found in the package registry and you require torch==9.9, your"
            " requirements are unsatisfiable.",
            *("package-not-found", "torch", "index"),
        ),
        (
            "error: No solution found when resolving dependencies\n"
            "  cause: Because a depends on b<2 and c depends on b>=2, your requirements are unsatisfiable.",
            *("package-conflict", "No solution", "take a release of that package"),
        ),
        (  # nobody is told to delete what a toolkit brought
            "/usr/local/cuda/lib64/libcudnn.so: error adding symbols: File in wrong format",
            *("bad-object", "libcudnn.so", "was installed"),
        ),
        (
            "/usr/bin/ld: b/x.o: file not recognized: file format not recognized",
            *("bad-object", "b/x.o", "delete it"),
        ),
        (  # what is linked lacks it, whatever is installed
            "a.o: undefined reference to `cblas_sgemm'\ncollect2: error: ld returned 1 exit status",
            *("undefined-symbol", "cblas_sgemm", "link"),
        ),
        (
            'wine: failed to open L"C:\\\\windows\\\\syswow64\\\\rundll32.exe": c0000135\n'
            '0024:err:module:import_dll Library c10.dll (which is needed by L"Z:\\\\a.exe") not found\n'
            '0024:err:module:LdrInitializeThunk Importing dlls for L"Z:\\\\a.exe" failed, status c0000135',
            *("missing-shared-library", "c10.dll", "PATH on Windows"),
        ),
    ],
)
def test_a_fix_fits_what_is_wrong(log: str, kind: str, subject: str, said: str) -> None:
    reading = read(log)
    assert (reading.kind, reading.diagnoses[0].id) == (kind, kind)
    assert subject in reading.subject
    assert said in reading.diagnoses[0].fix
    assert "sudo" not in reading.diagnoses[0].fix

"""Names and values of variables, checked against what a checkout reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import ask, found, linux_facts, modern_tree, plan_of, settings, tree, with_tree
from tests.support.windows import windows_facts
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.facts.machine import own_names
from torchbuild_tasks.model import Finding, Switch, Tree, TreeReads
from torchbuild_tasks.plan.names import unread
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import check_variables
from torchbuild_tasks.values import replace

READS = TreeReads(
    names=("USE_CUDA", "USE_FLASH_ATTENTION", "USE_KINETO", "USE_MKLDNN", "USE_NUMPY"),
    direct=("MAX_JOBS", "PYTORCH_ROCM_ARCH", "OpenBLAS_HOME"),
    switches=(
        Switch(name="USE_CUDA", default="ON", place="CMakeLists.txt:1"),
        Switch(name="USE_FLASH_ATTENTION", default="ON", place="CMakeLists.txt:2", needs="USE_CUDA"),
    ),
    flags=("DEBUG",),
    values={"BLAS": ("Eigen", "MKL", "OpenBLAS")},
)


def asked(*words: str, environ: dict[str, str] | None = None, file: dict[str, str] | None = None) -> Question:
    facts = with_tree(linux_facts(environ=environ or {}), reads=READS)
    return ask(facts, settings(variables=file or {}), set=words)


def told(question: Question) -> list[Finding]:
    return [finding for finding in check_variables(question) if finding.id == "variable"]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("USE_CUDA", "0 ", "a blank"),
        ("MKL_THREADING", " SEQ", "a blank"),
        ("CXXFLAGS", " -O2 ", ""),
        ("CXXFLAGS", "-O2\n-g", "a line break"),
    ],
)
def test_a_value_that_is_right_but_for_what_is_around_it(name: str, value: str, why: str) -> None:
    """As cmd keeps the blank of `set USE_CUDA=0 && …`, which CMake does not take for off."""
    for facts, words in ((linux_facts(), (f"{name}={value}",)), (linux_facts(environ={name: value}), ())):
        texts = [each.text for each in plan_of(facts, set=words).findings if each.id == "variable"]
        assert len(texts) == bool(why) and all(why in text for text in texts)


def test_what_only_cmake_reads_is_given_to_cmake() -> None:
    reads = TreeReads(names=("DEBUG_CUDA", "USE_CUDA"))
    facts = linux_facts(tree=modern_tree(reads=reads))
    (finding,) = told(ask(facts, set=("DEBUG_CUDA=1",)))
    assert "is in the CMake files of this checkout" in finding.text
    assert "--set SKBUILD_CMAKE_ARGS=-DDEBUG_CUDA=1" in finding.fix


def test_an_option_that_no_environment_reaches_is_not_called_unknown_to_cmake() -> None:
    reads = TreeReads(switches=(Switch(name="HAVE_SOVERSION", default="OFF", place="CMakeLists.txt:1"),))
    (finding,) = told(ask(linux_facts(tree=modern_tree(reads=reads)), set=("HAVE_SOVERSION=1",)))
    assert "is in the CMake files of this checkout" in finding.text
    assert "--set SKBUILD_CMAKE_ARGS=-DHAVE_SOVERSION=1" in finding.fix
    (older,) = told(ask(with_tree(linux_facts(), reads=reads), set=("HAVE_SOVERSION=1",)))
    assert "is in the CMake files of this checkout" in older.text
    assert 'set(HAVE_SOVERSION 1 CACHE STRING "" FORCE)' in older.fix
    file = "CMAKE_PROJECT_INCLUDE=/home/me/own.cmake"
    assert told(ask(with_tree(linux_facts(), reads=reads), set=(file,))) == []
    first = linux_facts(tree=tree(version="1.1.0", reads=reads))
    assert "PROJECT_INCLUDE" not in told(ask(first, set=("HAVE_SOVERSION=1",)))[0].fix


@pytest.mark.parametrize(
    ("default", "value", "right"),
    [("", "CPU", True), ("CPU", "CUDA", True), ("OFF", "CPU", False), ("${OTHER}", "CPU", False)],
)
@pytest.mark.parametrize("name", ["STATIC_DISPATCH_BACKEND", "USE_SOMETHING"])
def test_an_option_whose_default_is_a_text_holds_a_name(
    name: str, default: str, value: str, right: bool
) -> None:
    reads = TreeReads(names=(name,), switches=(Switch(name=name, default=default, place="CMakeLists.txt:1"),))
    found = told(ask(with_tree(linux_facts(), reads=reads), set=(f"{name}={value}",)))
    assert bool(found) is not (right or name == "STATIC_DISPATCH_BACKEND")


def test_what_many_programs_read_is_not_called_unread() -> None:
    preloaded = ("LD_PRELOAD=/x.so", "LD_AUDIT=/x.so", "GLIBC_TUNABLES=glibc.malloc.check=3", "MALLOC_CONF=x")
    assert not told(asked("CI=1", "ASAN_OPTIONS=detect_leaks=0", "MIMALLOC_VERBOSE=1", *preloaded))


def test_an_old_name_keeps_its_sense() -> None:
    for said, meant in (("WITH_NUMPY=0", 0), ("WITH_NUMPY=1", 1), ("NO_NUMPY=0", 1), ("NO_NUMPY=YES", 0)):
        (finding,) = told(asked(said))
        assert f"--set USE_NUMPY={meant}" in finding.fix
    (finding,) = told(asked("NO_NUMPY=1", "USE_NUMPY=0"))
    assert finding.fix == "Drop NO_NUMPY: USE_NUMPY=0 says the same."


@each_case(
    ("name", "meant"),
    [
        ("USE_CUDDA", "USE_CUDA"),
        ("USE_MKLDN", "USE_MKLDNN"),
        ("USE_NUMPYY", "USE_NUMPY"),
        ("USE_FLASH_ATTN", "USE_FLASH_ATTENTION"),
        ("DEBGU", "DEBUG"),
        ("CUDA_ARCH_LIST", "TORCH_CUDA_ARCH_LIST"),
        ("USE_GPU", "USE_CUDA"),
        ("BUILD_VERSION", "PYTORCH_BUILD_VERSION"),
        ("NO_NUMPY", "--set USE_NUMPY=0"),
        ("USE_FOOBAR", ""),
    ],
)
def test_a_name_that_this_checkout_does_not_have(name: str, meant: str) -> None:
    for question in (asked(f"{name}=1"), asked(file={name: "1"})):
        (finding,) = told(question)
        assert finding.status == "warn"
        assert meant in finding.fix if meant else "Did you mean" not in finding.fix


def test_the_environment_is_asked_about_only_where_a_name_is_near() -> None:
    environ = {"USE_CUDDA": "1", "USE_SOMETHING": "1", "BUILD_NUMBER": "7", "USE_KINETO": "0"}
    (finding,) = told(asked(environ=environ))
    assert "USE_CUDDA" in finding.text


READ = (
    *("CUDAFLAGS", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "CUDAARCHS", "CPATH", "LLVM_DIR", "MPI_HOME"),
    *(
        "CMAKE_ANYTHING",
        "CCACHE_SLOPPINESS",
        "SCCACHE_BUCKET",
        "PIP_INDEX_URL",
        "_CL_",
        "LIB",
        "NINJA_STATUS",
    ),
    *("PKG_CONFIG_PATH", "PYTORCH_ROCM_ARCH", "OpenBLAS_HOME", "cuDSS_ROOT", "OMP_NUM_THREADS", "PATH"),
)


@each_case("name", READ)
def test_what_another_program_reads_is_never_called_unread(name: str) -> None:
    assert unread(asked(), name) is None


FITTING = (
    "PYTORCH_BUILD_NUMBER=0",
    "USE_KINETO=",
    "USE_CUDA=1",
    "USE_CUDA=on",
    "DEBUG=0",
    "BLAS=OpenBLAS",
    "CMAKE_BUILD_TYPE=debug",
)


def test_values_that_fit() -> None:
    assert told(asked(*FITTING)) == []


STOPPING = ("CMAKE_GENERATOR", "BLAS", "MKL_THREADING", "ATEN_THREADING")


@each_case(
    ("word", "why"),
    [
        ("USE_CUDA=maybe", "switch"),
        ("USE_FLASH_ATTENTION=yes please", "switch"),
        ("DEBUG=2x", "switch"),
        ("CMAKE_BUILD_TYPE=Foo", "Release, Debug"),
        ("CMAKE_BUILD_TYPE=Relase", "did you mean Release?"),
        ("CMAKE_CXX_STANDARD=11", "17"),
        ("CMAKE_GENERATOR=Ninjaa", "did you mean Ninja?"),
        ("BLAS=openblas", "did you mean OpenBLAS?"),
        ("MKL_THREADING=seq", "did you mean SEQ?"),
        ("WITH_BLAS=openblas", "open, goto"),
        ("ATEN_THREADING=TBBX", "OMP, NATIVE"),
        ("PYTORCH_BUILD_NUMBER=x", "whole number"),
        ("CMAKE_BUILD_PARALLEL_LEVEL=0", "whole number above 0"),
    ],
)
def test_values_that_are_none(word: str, why: str) -> None:
    """CMake ends at a generator or BLAS that it does not know; other values it takes somehow."""
    name, _, value = word.partition("=")
    layers: list[tuple[Any, str]] = [
        (asked(word), "error"),
        (asked(file={name: value}), "error"),
        (asked(environ={name: value}), "error" if name in STOPPING else "warn"),
    ]
    for question, status in layers:
        (finding,) = told(question)
        assert finding.status == status
        assert why in finding.text
        example = finding.fix.removeprefix("Correct it, for example ").removesuffix(", or drop it.")
        assert example.startswith(f"{name}=") and not told(asked(example))
        assert name in finding.fix


def test_an_invalid_version_is_an_error_in_every_layer() -> None:
    for question in (asked("PYTORCH_BUILD_VERSION=my build"), asked(environ={"PYTORCH_BUILD_VERSION": "?"})):
        (finding,) = told(question)
        assert (finding.status, "no version" in finding.text) == ("error", True)


def test_a_setting_for_a_ci_system_alone_has_no_effect() -> None:
    assert told(asked(environ={"BUILD_TYPE": "Debug"})) == []
    (finding,) = told(asked("BUILD_TYPE=Debug"))
    assert finding.fix == "Did you mean --build-type?"


@pytest.mark.parametrize(
    ("args", "words", "status"),
    [
        ("-DUSE_CUDA=OFF", ("USE_CUDA=1",), "error"),
        ("-D USE_KINETO:BOOL=ON -DX=1", (), "warn"),
        ("-DUSE_KINETO=1", ("USE_KINETO=0",), "error"),
        ("-DCMAKE_BUILD_TYPE=Debug", (), "warn"),
        ("-DUSE_KINETO=off -DCMAKE_AR=/opt/ar", (), ""),
    ],
)
def test_definitions_that_contradict_the_plan(args: str, words: tuple[str, ...], status: str) -> None:
    facts = linux_facts(environ={"CMAKE_ARGS": args}, tree=modern_tree(reads=READS))
    found = [each for each in plan_of(facts, set=words).findings if each.id == "cmake-args"]
    assert [each.status for each in found] == ([status] if status else [])
    older = linux_facts(environ={"CMAKE_ARGS": args}, tree=tree(reads=READS))
    told = [each.text for each in plan_of(older, set=words).findings if each.id == "cmake-args"]
    assert bool(told) == (bool(status) and "USE_" in args)
    assert all("nothing reads CMAKE_ARGS" in text for text in told)


@pytest.mark.parametrize(
    ("version", "word", "said"),
    [
        ("2.6.0a0", "CMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG", "-O0 in CMAKE_CXX_FLAGS_RELEASE"),
        ("2.6.0a0", "CMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", ""),
        ("2.6.0a0", "CMAKE_CXX_FLAGS_DEBUG=-O0 -g0", ""),
        ("1.8.0", "CMAKE_CXX_FLAGS_RELEASE=-O0", ""),
    ],
)
def test_an_optimisation_that_torch_overrides_is_reported_with_the_cause(
    version: str, word: str, said: str
) -> None:
    plan = plan_of(linux_facts(tree=tree(version=version)), set=(word,))
    findings = [each for each in plan.findings if "does not do what it says" in each.text]
    assert [each.text.startswith(said) for each in findings] == ([True] if said else [])
    assert all(each.status == "warn" and "--build-type Debug" in (each.fix or "") for each in findings)


def test_warnings_as_errors_would_end_at_the_first_of_third_party() -> None:
    plan = plan_of(linux_facts(environ={"CXXFLAGS": "-O2 -Werror"}))
    (finding,) = [each for each in plan.findings if each.status == "warn"]
    assert finding.text.startswith("-Werror in CXXFLAGS: ")
    assert plan_of(linux_facts(environ={"CXXFLAGS": "-Werror=return-type"})).verdict == "ok"


def test_no_option_of_any_release_is_taken_for_a_misspelt_one_where_the_checkout_was_not_read() -> None:
    listed = [name for row in load_catalog().option for name in row.names]
    names = [name for name in listed if name.startswith(("USE_", "BUILD_"))]  # what setup.py hands on
    facts = with_tree(linux_facts(), reads=None)
    plan = plan_of(facts, set=tuple(f"{name}=0" for name in names))
    assert [finding.text for finding in plan.findings if "Did you mean" in finding.fix] == []


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("CMAKE_BULD_TYPE", "CMAKE_BUILD_TYPE"),
        ("CMAKE_CXX_FLASG", "CMAKE_CXX_FLAGS"),
        ("CMAKE_C_FLAGS_RELEASEE", "CMAKE_C_FLAGS_RELEASE"),
        ("CMAKE_CUDA_COMPILER_LAUNCHR", "CMAKE_CUDA_COMPILER_LAUNCHER"),
        ("CMAKE_VERBOSE_MAKFILE", "CMAKE_VERBOSE_MAKEFILE"),
    ],
)
def test_a_slip_in_a_variable_of_cmakes_is_questioned(name: str, near: str) -> None:
    (finding,) = told(asked(f"{name}=1"))
    assert (finding.status, finding.fix) == ("warn", f"Did you mean {near}?")


@each_case(
    "name",
    [
        *("CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS_DEBUG", "CMAKE_DISABLE_FIND_PACKAGE_MPI", "CMAKE_MY_FLAGS"),
        *(
            "CMAKE_CUDA_FLAGS_RELWITHDEBINFO",
            "CMAKE_PROJECT_Torch_INCLUDE",
            "CMAKE_HIP_FLAGS",
            "CMAKE_OF_OURS",
        ),
    ],
)
def test_any_other_name_of_cmakes_is_left_alone(name: str) -> None:
    assert not told(asked(f"{name}=1"))


@pytest.mark.parametrize("name", ["USE_OPENCV", "USE_LMDB", "BUILD_CAFFE2"])
def test_a_switch_that_is_gone_is_not_taken_for_a_slip(name: str) -> None:
    (finding,) = told(asked(f"{name}=1"))
    assert (finding.status, finding.fix) == ("warn", "Drop it.")
    assert "only by torch " in finding.text and "<2." in finding.text and "Caffe2" in finding.text


# ---------------- torchbuild's own variables


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (("TORCHBUILD_JOBBS",), "TORCHBUILD_JOBS"),
        (("TORCHBUILD_CAHCE",), "TORCHBUILD_CACHE"),
        (("TORCHBUILD_TREE", "TORCHBUILD_RESULT", "TORCHBUILD__FILE"), ""),
        (("TORCHBUILD_JOBS", "TORCHBUILD_COMPILER_CACHE", "TORCHBUILD_MEMORY", "TORCHBUILD_CACHE"), ""),
    ],
)
def test_a_slip_in_a_variable_of_our_own_is_questioned(names: tuple[str, ...], meant: str) -> None:
    found = told(ask(linux_facts(own=names)))
    assert [finding.fix for finding in found] == ([f"Did you mean {meant}?"] if meant else [])


def test_their_names_are_looked_for_as_the_system_spells_them() -> None:
    environ = {"TORCHBUILD_JOBBS": "3", "torchbuild_x": "", "USE_CUDA": "0"}
    assert own_names(environ) == ("TORCHBUILD_JOBBS",)
    assert own_names(environ, ignore_case=True) == ("TORCHBUILD_JOBBS", "TORCHBUILD_X")


@each_case(
    ("assignment", "said"),
    [
        ('CUDA_HOME="C:\\Program Files\\x"', r"CUDA_HOME=C:\Program Files\x"),
        ('USE_CUDA="0"', "USE_CUDA=0"),
        ("USE_CUDA='0'", "USE_CUDA=0"),
        ('CXXFLAGS="-O2 -g"', "CXXFLAGS=-O2 -g"),
        ('CXXFLAGS="-IC:\\a b"', ""),
        ('CXXFLAGS="-Ia b" "-Ic d"', ""),
        ('CXX="C:\\a b\\cl.exe"', ""),
        ('CUDA_HOME="', ""),
    ],
)
def test_quotes_that_a_shell_left_are_no_part_of_a_value(assignment: str, said: str) -> None:
    found = [each for each in told(ask(set=(assignment,))) if "the quotes are a part of it" in each.text]
    assert len(found) == bool(said)
    assert all(f" {said}," in each.fix for each in found)


@pytest.mark.parametrize("name", ["CXXFLAGS", "LDFLAGS"])
def test_a_line_break_is_corrected_to_a_blank(name: str) -> None:
    for value in ("-O1\n-g", "-O1 \n -g\n"):
        (finding,) = told(ask(set=(f"{name}={value}",)))
        assert f"{name}=-O1 -g," in finding.fix


def test_a_blas_that_the_checkout_does_not_know_is_told_once() -> None:
    facts = linux_facts(blas=(), tree=tree(version="1.10.0", reads=READS))
    errors = [each for each in plan_of(facts, set=("BLAS=FlexiBLAS",)).findings if "FlexiBLAS" in each.text]
    assert [each.id for each in errors] == ["variable"]


def test_a_word_for_cmake_that_contradicts_a_flag_is_not_advised_as_another() -> None:
    facts = linux_facts(environ={"CMAKE_ARGS": "-DUSE_CUDA=ON"})
    for cpu, fix in ((False, "Say it as --set USE_CUDA=ON."), (True, "Take it out of CMAKE_ARGS.")):
        assert found(plan_of(facts, cpu=cpu).findings, "cmake-args").fix == fix


@pytest.mark.parametrize(
    ("version", "generator", "taken"),
    [
        ("2.6.0", "NMake Makefiles", False),
        ("2.6.0", "Unix Makefiles", False),
        ("2.6.0", "Visual Studio 15 2017", False),
        ("2.6.0", "Visual Studio 17 2022", True),
        ("2.6.0", "Ninja", True),
        ("1.13.1", "Visual Studio 17 2022", False),
        ("1.13.1", "Visual Studio 15 2017", True),
    ],
)
def test_windows_builds_of_setup_py_take_ninja_and_few_of_visual_studio(
    version: str, generator: str, taken: bool
) -> None:
    facts = with_tree(windows_facts(), version=version)
    told = [f for f in plan_of(facts, set=(f"CMAKE_GENERATOR={generator}",)).findings if f.id == "variable"]
    assert [f.status for f in told] == ([] if taken else ["error"])


@pytest.mark.parametrize("name", ["USE_MKLDNN", "USE_CUDA", "BUILD_TEST"])
def test_a_switch_that_is_empty_is_told(name: str) -> None:
    """setup.py hands on -DUSE_MKLDNN=, which CMake reads as off."""
    for facts, words in ((linux_facts(), (f"{name}=",)), (linux_facts(environ={name: " "}), ())):
        (finding,) = [f for f in plan_of(facts, set=words).findings if f"{name} is empty" in f.text]
        assert finding.status == "warn" and f"{name}=0" in finding.fix
    assert not [f for f in plan_of(set=("CXXFLAGS=",)).findings if "is empty" in f.text]


@pytest.mark.parametrize("of_era", [tree, modern_tree])
def test_torch_is_not_built_without_python(of_era: Callable[[], Tree]) -> None:
    plan = plan_of(linux_facts(tree=of_era()), set=("BUILD_PYTHON=0",))
    (finding,) = [f for f in plan.findings if "BUILD_PYTHON" in f.text]
    assert finding.status == "error" and "BUILD_PYTHON must not be set" in finding.text
    assert "package libtorch" in finding.fix


@each_case(
    ("args", "said", "fix"),
    [
        (
            "-DCMAKE_CXX_COMPILER=/opt/g++",
            "counts before CMAKE_CXX_COMPILER=/usr/bin/g++",
            "--set CXX=/opt/g++",
        ),
        ("-D CMAKE_C_COMPILER:PATH=clang", "counts before CMAKE_C_COMPILER=/usr/bin/gcc", "--set CC=clang"),
        ("-DCMAKE_CXX_COMPILER=/usr/bin/g++ -DCMAKE_C_COMPILER=gcc", "", ""),
        ("-DCMAKE_CUDA_ARCHITECTURES=86", "torch takes its architectures from", "--arch"),
        ("-DBUILD_PYTHON=OFF", "what is installed is no torch", "Take -DBUILD_PYTHON out of"),
        ("-DCMAKE_INSTALL_PREFIX=/opt -DCMAKE_AR=/opt/ar -DUSE_KINETO=0", "", ""),
        ("-DUSE_CUDA=0 -DCMAKE_SYSTEM_NAME=Linux", "Linux in -DCMAKE_SYSTEM_NAME in", "Take it out"),
        ("-DCMAKE_TOOLCHAIN_FILE=/x.cmake", "cross-compiling is not supported", "Take it out"),
        ("'-DCMAKE_CXX_FLAGS=-O2 -Werror'", "-Werror in -DCMAKE_CXX_FLAGS in", "Take -Werror out of it"),
        ("-DDEBUG=maybe", "it is a switch", "DEBUG=1"),
        ("-DUSE_KINETTO=1", "is read by nothing", "Did you mean USE_KINETO?"),
    ],
)
def test_what_cmake_is_handed_is_held_against_the_plan_like_the_environment(
    args: str, said: str, fix: str
) -> None:
    """scikit-build-core hands it on; setup.py reads none of it."""
    for name in ("CMAKE_ARGS", "SKBUILD_CMAKE_ARGS"):
        words = args if name == "CMAKE_ARGS" else args.replace(" -D", ";-D").replace("'", "")
        facts = linux_facts(environ={name: words}, tree=modern_tree(reads=READS))
        findings = [f for f in plan_of(facts).findings if f.id in ("cmake-args", "variable")]
        assert len(findings) == bool(said)
        assert all((f.status, said in f.text, fix in f.fix) == ("warn", True, True) for f in findings)


def test_a_word_for_cmake_beside_a_flag_is_answered_by_the_flag_for_it() -> None:
    """Followed, --set USE_CUDA=OFF beside --cuda is refused."""
    environ = {"CMAKE_ARGS": "-DUSE_CUDA=OFF"}
    facts = linux_facts(environ=environ, tree=modern_tree(reads=READS))
    fix = found(plan_of(facts, cuda=True).findings, "cmake-args").fix
    assert fix == "Take -DUSE_CUDA out of CMAKE_ARGS, or say the same: --cpu"
    built = linux_facts(environ={"CMAKE_ARGS": "-DCMAKE_BUILD_TYPE=Debug"}, tree=modern_tree(reads=READS))
    fix = found(plan_of(built, build_type="Release").findings, "cmake-args").fix
    assert fix.endswith("or say the same: --build-type Debug")


@each_case(
    ("name", "value"),
    [
        ("CMAKE_TOOLCHAIN_FILE", "/opt/arm.cmake"),
        ("CMAKE_SYSTEM_NAME", "Linux"),
        ("CMAKE_SYSTEM_PROCESSOR", "aarch64"),
        ("CMAKE_CROSSCOMPILING", "1"),
        ("CMAKE_SYSROOT", "/opt/root"),
        ("CMAKE_CXX_COMPILER_TARGET", "aarch64-linux-gnu"),
    ],
)
def test_a_variable_of_a_cross_build_is_told_of(name: str, value: str) -> None:
    told_of = [
        each for each in plan_of(linux_facts(), set=(f"{name}={value}",)).findings if name in each.text
    ]
    assert any("cross-compiling is not supported" in each.text for each in told_of)


@each_case(
    ("value", "plain"),
    [("\u2013O2", "-O2"), ("-O2 \u2013g", "-O2 -g"), ("\u201c-O2\u201d", "-O2"), ("-O2\u00a0-g", "-O2 -g")],
)
def test_letters_of_print_in_a_value(value: str, plain: str) -> None:
    (finding,) = told(ask(set=(f"CXXFLAGS={value}",)))
    assert finding.status == "error" and "U+" in finding.text
    assert f"CXXFLAGS={plain}," in finding.fix


def test_a_folder_may_be_called_anything() -> None:
    assert not told(ask(set=("CMAKE_PREFIX_PATH=/home/a\u00a0b/\u2013c",)))


@each_case("name", ["PYTHON_EXECUTABLE", "Python_EXECUTABLE", "Python3_EXECUTABLE"])
def test_another_python_for_cmake_is_told_of(name: str) -> None:
    plan = plan_of(linux_facts(), set=(f"{name}=/usr/bin/python3.9",))
    said = [each for each in plan.findings if each.status == "warn" and "--python" in each.fix]
    assert any(name in each.text for each in said)


def test_another_build_tree_of_scikit_build_core_is_refused() -> None:
    facts = linux_facts(tree=modern_tree())
    refused = plan_of(facts, set=("SKBUILD_BUILD_DIR=/tmp/x",))
    assert any(each.status == "error" and "SKBUILD_BUILD_DIR" in each.text for each in refused.findings)
    plan = plan_of(replace(facts, environ={"SKBUILD_BUILD_DIR": "/tmp/x"}))
    assert any(each.status == "warn" and "SKBUILD_BUILD_DIR" in each.text for each in plan.findings)
    assert "/tmp/x" not in {op.value for op in plan.env}


@each_case(
    ("assignment", "system", "said"),
    [
        ("BUILD_SHARED_LIBS=0", "linux", True),
        ("BUILD_SHARED_LIBS=OFF", "linux", True),
        ("BUILD_SHARED_LIBS=1", "linux", False),
        ("BUILD_SHARED_LIBS=0", "windows", False),  # nothing is loaded before all else there
        ("CXX=g++ -m32", "linux", True),
        ("CXXFLAGS=-O2 -m32", "linux", True),
        ("CXXFLAGS=-m64", "linux", False),
    ],
)
def test_what_lets_a_build_fail_at_its_end_is_told_before(assignment: str, system: str, said: bool) -> None:
    facts = linux_facts() if system == "linux" else windows_facts()
    told_of = [each.text for each in plan_of(facts, set=(assignment,)).findings if each.status == "warn"]
    assert any("libtorch_global_deps" in text or "32 bits" in text for text in told_of) is said

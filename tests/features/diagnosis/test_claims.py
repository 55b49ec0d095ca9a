"""A fix is a claim: it is told only where the log, the rows or this machine show that it holds."""

from __future__ import annotations

import pytest

from tests.support.diagnosis import book, read
from tests.support.machines import linux_facts, plan_of, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.diagnosis.choose import read_log
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.model import Diagnosis


def elsewhere(log: str) -> Diagnosis:
    """What is told of a log that was brought here, outside of any checkout."""
    facts = with_tree(linux_facts(), problem="no checkout")
    scanner = LogScanner(book())
    scanner.feed_block(log.encode() + b"\n")
    machine = Machine(facts, plan_of(facts), load_catalog(), built=False)
    return read_log(scanner, book(), machine).diagnoses[0]


MISSING = "src/a.cpp:3:10: fatal error: {}: No such file or directory\n    3 | #include {}"

GFLAGS = MISSING.format("gflags/x.h", "<gflags/x.h>")


@pytest.mark.parametrize(
    ("log", "said"),
    [
        # A package where one has it; the source's own file has none.
        (MISSING.format("rapidjson/x.h", "<rapidjson/x.h>"), "sudo apt install rapidjson-dev"),
        (MISSING.format("core/x.h", '"core/x.h"'), "No package has it"),
        (MISSING.format("src/x.h", "<src/x.h>"), "No package has it"),
        (MISSING.format("nobody/x.h", "<nobody/x.h>"), "apt-file search /nobody/x.h names"),
        # The packages are those of the compiler's system, not of this one.
        ("x86_64-conda-linux-gnu-c++ -c a\n" + GFLAGS, "conda install -c conda-forge gflags"),
        ("gcc -L/usr/lib64/x -c a\n" + GFLAGS, "sudo dnf install gflags-devel"),
        ("clang -arch-apple-darwin\n" + GFLAGS, "brew install gflags"),
        # A library is added where the link names none, and looked at where it does.
        ("ld: a.o: undefined reference to `cublasCreate_v2'", "This link names no -lcublas"),
        ("c++ -o a a.o -lnuma\n/usr/bin/ld: a.o: undefined reference to `numa_free'", "This link names no"),
        # What releases have it.
        ("ModuleNotFoundError: No module named 'imp'", "Take a Python up to 3.11"),
        ("AttributeError: module 'numpy' has no attribute 'float'.", "'numpy<1.24'"),
        ("ModuleNotFoundError: No module named 'torch.nn.attention.flex_attention'", "from 2.5 on"),
        ("ImportError: cannot import name 'RMSNorm' from 'torch.nn' (/x.py)", "from 2.4 on"),
        (MISSING.format("torch/csrc/stable/tensor.h", "<t>"), "a torch that has it (from 2.8 on)"),
        ("ImportError: /l/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /x)", "GCC 12"),
        ("RuntimeError: module compiled against API version 0xf but this one of numpy is 0xe", "numpy>=1.22"),
    ],
)  # fmt: skip
def test_a_fix_is_told_with_what_it_rests_on(log: str, said: str) -> None:
    assert said in elsewhere(log).fix


def test_a_link_that_names_the_library_is_not_told_to_name_it() -> None:
    log = (
        "FAILED: app\nc++ -o app -lnuma main.o\n/usr/bin/ld: main.o: undefined reference to `numa_free'\n"
        "collect2: error: ld returned 1 exit status\nninja: build stopped: subcommand failed."
    )
    assert "-lnuma is named in this link" in elsewhere(log).fix


@pytest.mark.parametrize(
    "log",
    [
        "a.cpp:3:4: internal compiler error: in f, at g.cc:12",
        "csrc/f.cpp:12:10: fatal error: cutlass/x.h: No such file or directory",
        "Could not find any of CMakeLists.txt, setup.py in /x/third_party/gloo",
    ],
)
def test_whoever_builds_another_thing_gets_no_command_for_torch(log: str) -> None:
    told = elsewhere(log)
    assert "torchbuild" not in told.command + told.fix
    assert "third_party/cutlass" not in told.fix


def test_a_submodule_of_torch_is_fetched_in_torchs_checkout() -> None:
    facts = with_tree(linux_facts(), empty=("third_party/gloo",))
    scanner = LogScanner(book())
    scanner.feed_block(b"a.cpp:1:10: fatal error: gloo/x.h: No such file or directory\n")
    machine = Machine(facts, plan_of(facts), load_catalog(), built=False)
    assert "torchbuild source update" in read_log(scanner, book(), machine).diagnoses[0].fix


def test_a_crash_of_a_compiler_is_not_told_to_be_run_again() -> None:
    told = read("a.cpp:3:4: internal compiler error: in f, at g.cc:12").diagnoses[0]
    assert "--jobs" not in told.fix + told.command

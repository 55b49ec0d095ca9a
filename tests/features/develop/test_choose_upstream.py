"""How upstream's tests and benchmarks are started, and where on the machine."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.develop.act import run_tests
from torchbuild_tasks.features.develop.choose import (
    argv_of_benchmarks,
    argv_of_tests,
    nodes,
    pin_to_node,
    without,
)

# As numactl 2.0.16 says it of a machine with two sockets, and of one without any memory of its own on node 1.
TWO = """available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3
node 0 size: 64216 MB
node 0 free: 1024 MB
node 1 cpus: 4 5 6 7
node 1 size: 64508 MB
node distances:
node   0   1
  0:  10  21
  1:  21  10
"""


@each_case(
    ("only", "file"),
    [
        (None, "run_test.py"),
        ("test_torch", "test_torch.py"),
        ("test/test_torch.py", "test_torch.py"),
        ("nn\\test_pruning.py", "nn/test_pruning.py"),
    ],
)
def test_all_tests_or_one_file(only: str | None, file: str) -> None:
    assert argv_of_tests("/py", only, ("-k", "a b")) == ("/py", file, "-k", "a b")


@each_case(
    ("only", "module"),
    [(None, "benchmark_all_test"), ("add", "pt.add_test"), ("pt/add_test.py", "pt.add_test")],
)
def test_all_benchmarks_or_one_operators(only: str | None, module: str) -> None:
    assert argv_of_benchmarks("/py", only, ()) == ("/py", "-m", module)


def test_the_node_with_most_of_the_cores_that_may_be_used() -> None:
    assert nodes(TWO) == {0: {0, 1, 2, 3}, 1: {4, 5, 6, 7}}
    assert pin_to_node("numactl", TWO, range(8)) == ("numactl", "--cpunodebind=0", "--membind=0")
    assert pin_to_node("numactl", TWO, {3, 4, 5}) == ("numactl", "--cpunodebind=1", "--membind=1")


@each_case("said", ["", "No NUMA available on this system", "node 0 cpus:\n"])
def test_nothing_is_pinned_where_there_is_no_node(said: str) -> None:
    assert pin_to_node("numactl", said, range(8)) == ()


def test_the_checkout_leaves_pythonpath_and_nothing_else_does() -> None:
    assert without("/src/pytorch:/mine:/src/pytorch/", ":", "/src/pytorch") == "/mine"
    assert without("/src/pytorch2", ":", "/src/pytorch") == "/src/pytorch2"


def test_a_test_that_is_not_there_is_one_to_name_or_none_of_this_checkout(tmp_path: Path) -> None:
    def advice(only: str | None) -> str:
        with pytest.raises(UsageError) as caught:
            run_tests(tmp_path, sys.executable, only, (), io.BytesIO(), lambda text: None)
        return caught.value.next_step

    assert "torchbuild source get" in advice(None)
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_nn.py").touch()
    assert "--only" in advice("test_mn")

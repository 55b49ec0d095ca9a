"""How upstream's own tests and benchmarks are started, and on which part of the machine."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

# Relative to the checkout: where each is run, so that Python finds the files beside it first and not the
# source's torch/, as it would from the checkout itself.
TESTS: Final = "test"
BENCHMARKS: Final = "benchmarks/operator_benchmark"


def argv_of_tests(python: str, only: str | None, words: Iterable[str]) -> tuple[str, ...]:
    """All tests by run_test.py, or one file of them by itself; the path is relative to TESTS."""
    name = (only or "run_test.py").replace("\\", "/").removeprefix("test/")
    return (python, name if name.endswith(".py") else f"{name}.py", *words)


def argv_of_benchmarks(python: str, only: str | None, words: Iterable[str]) -> tuple[str, ...]:
    """All operators, or one: `add` is the module pt.add_test."""
    name = (only or "").replace("\\", "/").removesuffix(".py").rpartition("/")[2].removesuffix("_test")
    return (python, "-m", f"pt.{name}_test" if name else "benchmark_all_test", *words)


def nodes(hardware: str) -> dict[int, frozenset[int]]:
    """The cores of each NUMA node, from what `numactl --hardware` says."""
    found = re.findall(r"^node (\d+) cpus:([ \d]*)$", hardware, re.MULTILINE)
    return {int(node): frozenset(map(int, cores.split())) for node, cores in found}


def pinned(numactl: str, hardware: str, allowed: Collection[int]) -> tuple[str, ...]:
    """The words before a command that keep it and its memory on one node; none where there is no choice.

    The node is the one with most of the cores that this process may use: what crosses to another node's
    memory is slower, and two runs that are placed differently cannot be compared.
    """
    usable = {node: len(cores.intersection(allowed)) for node, cores in nodes(hardware).items()}
    node = max(usable, key=lambda each: (usable[each], -each), default=None)
    if node is None or not usable[node]:
        return ()
    return (numactl, f"--cpunodebind={node}", f"--membind={node}")


def without(pythonpath: str, separator: str, root: str) -> str:
    """PYTHONPATH without the checkout, whose torch/ would stand before the built one."""
    kept = [each for each in pythonpath.split(separator) if each.rstrip("/\\") != root.rstrip("/\\")]
    return separator.join(kept)

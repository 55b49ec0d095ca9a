"""What each build switch of a PyTorch tree saves: compile steps, and CPU seconds.

    python -m benchmarks.switches steps   TREE WORK    configures the tree once for each switch
    python -m benchmarks.switches compile TREE WORK    compiles a random sample, round after round
    python -m benchmarks.switches table   WORK         the figures so far

`steps`: upstream's defaults for a CPU build, then each switch alone turned to its other value, all
else equal; the compiles of a configuration are the objects among the inputs of `install`.
`compile`: the files fall into groups by which switches drop them; of each group, file by file in an
order drawn by a fixed seed, as long as it is left running, really compiled as upstream would (Release)
and their CPU seconds (user + system) noted by `rusage.py` as the compiler launcher.
`table`: files × mean of each group's sample; ± is the standard error, which is 0 once a group is whole.

The tree must have its submodules and a Python with CMake and Ninja first on the PATH. `build/` in it
is overwritten.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from torchbuild_tasks.catalog import load_catalog

CPU = {"USE_CUDA": "0", "USE_ROCM": "0", "USE_CCACHE": "0", "PYTHONHASHSEED": "0", "CMAKE_GENERATOR": "Ninja"}


# Results of CMake's checks in its cache; those of instruction sets are what some switches change.
CHECK = re.compile(
    r"(?!.*AVX)(HAVE_|HAS_|C_HAS_|CXX_HAS_|COMPILE|RUN_HAVE_|BLAS_|OPEN_LAPACK|LAPACK_|OpenMP_|CAFFE2_|SUPPORT"
    r"|UV_|FMT_HAS_|CMAKE_HAVE_|NEED_|LD_SIZE|SIZE_OF_|__CxxFlag|has_std_|protobuf_HAVE_)[\w]*:INTERNAL="
    r"|CMAKE_BUILD_TYPE:STRING="
)


def _checks(answer: str, *instructions: str) -> dict[str, str]:
    """What CMake's runs of these instruction sets found out: there is no option for the copies."""
    return {f"{language}_HAS_{each}_2": answer for language in ("C", "CXX") for each in instructions}


PRESETS = ("dev", "minimal")
BASE = "upstream's defaults"
SWITCHES: dict[str, dict[str, str]] = {
    BASE: {},
    "AVX512 copies": _checks("1", "AVX512"),
    "BUILD_CAFFE2=1": {"BUILD_CAFFE2": "1", "BUILD_CAFFE2_OPS": "0"},
    "BUILD_CAFFE2=1 BUILD_CAFFE2_OPS=1": {"BUILD_CAFFE2": "1", "BUILD_CAFFE2_OPS": "1"},
    **{
        f"{name}=0": {name: "0"}
        for name in (
            "BUILD_TEST",
            "USE_DISTRIBUTED",
            "USE_GLOO",
            "USE_TENSORPIPE",
            "USE_FBGEMM",
            "USE_MKLDNN",
            "USE_KINETO",
            "USE_ITT",
            "USE_NNPACK",
            "USE_QNNPACK",
            "USE_PYTORCH_QNNPACK",
            "USE_XNNPACK",
            "USE_NUMPY",
            "BUILD_FUNCTORCH",
            "BUILD_LAZY_TS_BACKEND",
            "USE_PER_OPERATOR_HEADERS",
        )
    },
    "no AVX2 copies": _checks("", "AVX2"),
    **{f"preset {row.name}": dict(row.variables) for row in load_catalog().preset if row.name in PRESETS},
}
WIDEST = SWITCHES["BUILD_CAFFE2=1 BUILD_CAFFE2_OPS=1"] | SWITCHES["AVX512 copies"]


def steps(tree: Path, work: Path) -> None:
    """Configure once for each switch that has no figures yet."""
    for name, values in SWITCHES.items():
        note = _note(work, name)
        if note.exists():
            continue
        configure(tree, work, values, note.with_suffix(".log"))
        made = objects(tree)
        note.write_text(json.dumps({"name": name, "objects": made}), "utf-8")
        print(f"{name}: {len(made)} compiles", flush=True)


def configure(tree: Path, work: Path, values: Mapping[str, str], log: Path, **more: str) -> None:
    """Make `build/` again; CMake is run by upstream's own front end.

    What the first run found out about the compiler is handed to the later ones, which saves a minute each.
    """
    shutil.rmtree(tree / "build", ignore_errors=True)
    (tree / "build").mkdir()
    seed, cache = work / "seed.txt", tree / "build" / "CMakeCache.txt"
    checks = {name: value for name, value in values.items() if "_HAS_" in name}
    known = seed.read_text("utf-8") if seed.exists() else ""
    cache.write_text(known + "".join(f"{name}:INTERNAL={value}\n" for name, value in checks.items()), "utf-8")
    argv = ["python", "setup.py", "build", "--cmake-only"]
    environ = {**os.environ, **CPU, **values, **more}
    with log.open("w", encoding="utf-8") as out:
        subprocess.run(argv, cwd=tree, env=environ, stdout=out, stderr=subprocess.STDOUT, check=True)
    if not seed.exists():
        seed.write_text("".join(filter(CHECK.match, cache.open(encoding="utf-8"))), "utf-8")


def objects(tree: Path) -> list[str]:
    """The objects that a whole build and install of this configuration compiles, relative to `build/`."""
    argv = ["ninja", "-t", "inputs", "install"]
    said = subprocess.run(argv, cwd=tree / "build", capture_output=True, text=True, check=True).stdout
    return sorted(line for line in said.splitlines() if line.endswith(".o"))


def compile_samples(tree: Path, work: Path) -> None:
    """Compile file by file of every group in turn, until all are compiled or it is stopped; goes on later."""
    log = work / "cpu.jsonl"
    ready = work / "configured"
    if not ready.exists():
        launcher = f"python;-IS;{Path(__file__).with_name('rusage.py')};{log}"
        languages = {f"CMAKE_{each}_COMPILER_LAUNCHER": launcher for each in ("C", "CXX")}
        configure(tree, work, WIDEST, work / "widest.log", **languages)
        ready.touch()
    there = set(objects(tree))
    waiting = [[name for name in drawn(group) if name in there] for group in groups(work).values()]
    done = {cost["object"] for cost in costs(log)}
    for batch in zip_longest(*waiting):
        targets = [name for name in batch if name and name not in done]
        if targets:
            argv = ["ninja", "-C", "build", "-k", "0", "-j", "2", *targets]
            subprocess.run(argv, cwd=tree, stdout=subprocess.DEVNULL, check=False)
            print(f"{len(list(costs(log)))} compiled", flush=True)


def drawn(group: Iterable[str]) -> list[str]:
    """The files of a group in the order of a draw that is the same every time."""
    files = sorted(group)
    random.Random(len(files)).shuffle(files)
    return files


def costs(log: Path) -> Iterator[dict[str, Any]]:
    """What was compiled and ended well."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else ()
    yield from (cost for line in lines if (cost := json.loads(line))["code"] == 0)


def groups(work: Path) -> dict[frozenset[str], set[str]]:
    """All files by which configurations compile them: as the names of those that differ from upstream's."""
    made = {name: set(json.loads(note.read_text("utf-8"))["objects"]) for name, note in _notes(work)}
    base, found = made[BASE], dict[frozenset[str], set[str]]()
    for file in set().union(*made.values()):
        differs = frozenset(name for name, files in made.items() if (file in files) != (file in base))
        # Whatever is compiled first, these are: a code generator is made of them.
        part = {"protobuf"} if file.startswith("third_party/protobuf/") else set[str]()
        found.setdefault(differs | part, set()).add(file)
    return found


class Sum(msgspec.Struct, frozen=True):
    """Files, how many of them were compiled, and the CPU seconds of all with the standard error."""

    files: int
    compiled: int
    seconds: float
    error: float


def total(parts: Iterable[tuple[int, set[str]]], seconds: Mapping[str, float]) -> Sum:
    """Each group's mean times its number, with its sign; the error of a sample without putting back."""
    files = compiled = 0
    cpu = variance = 0.0
    for sign, part in parts:
        sample = [seconds[name] for name in part if name in seconds]
        files, compiled = files + sign * len(part), compiled + len(sample)
        cpu += sign * len(part) * (statistics.fmean(sample) if sample else math.nan)
        if 1 < len(sample) < len(part):
            spread = statistics.variance(sample) / len(sample) * (1 - len(sample) / len(part))
            variance += len(part) ** 2 * spread
    return Sum(files, compiled, cpu, math.sqrt(variance))


def table(work: Path) -> None:
    """Print a row a configuration, as Markdown: what is compiled less (or more) than upstream does."""
    seconds = {cost["object"]: cost["user"] + cost["system"] for cost in costs(work / "cpu.jsonl")}
    base = set(json.loads(_note(work, BASE).read_text("utf-8"))["objects"])
    parts = groups(work)
    whole = total([(1, files) for files in parts.values() if files <= base], seconds)
    print("| | compiles | of them compiled here | CPU seconds | of all |\n| --- | --- | --- | --- | --- |")
    print(f"| {BASE} | {whole.files} | {whole.compiled} | {_seconds(whole)} | |")
    for name, _ in _notes(work):
        mine = [(1 if files <= base else -1, files) for key, files in parts.items() if name in key]
        less = total(mine, seconds)
        share = less.seconds / whole.seconds
        if mine:
            print(f"| {name} | {-less.files:+} | {less.compiled} | {_seconds(less, -1)} | {-share:+.1%} |")


def _seconds(one: Sum, sign: int = 1) -> str:
    if math.isnan(one.seconds):
        return "a group has no file that was compiled yet"
    return f"{sign * one.seconds:{'+' if sign < 0 else ''},.0f}" + (
        f" ± {one.error:,.0f}" if one.error else ""
    )


def _note(work: Path, name: str) -> Path:
    return work / ("steps-" + "".join(c if c.isalnum() else "_" for c in name) + ".json")


def _notes(work: Path) -> list[tuple[str, Path]]:
    return [(name, note) for name in SWITCHES if (note := _note(work, name)).exists()]


def main() -> None:
    """Do the part that the first word names."""
    match sys.argv[1:]:
        case "steps", tree, work:
            steps(Path(tree), Path(work))
        case "compile", tree, work:
            compile_samples(Path(tree), Path(work))
        case "table", work:
            table(Path(work))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()

"""What each build switch of a PyTorch tree saves: compile steps, and CPU seconds.

    python -m benchmarks.switches steps   TREE WORK    configures the tree once for each switch
    python -m benchmarks.switches compile TREE WORK    compiles a random sample, round after round
    python -m benchmarks.switches table   WORK         the figures so far

`steps`: upstream's defaults for a CPU build, then each switch alone turned to its other value, all
else equal; the objects of a configuration are those that `ninja -t compdb` names.
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
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

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


DEV = {
    name: "0"
    for name in (
        "BUILD_TEST",
        "USE_KINETO",
        "USE_NNPACK",
        "USE_QNNPACK",
        "USE_PYTORCH_QNNPACK",
        "USE_XNNPACK",
    )
}
MINIMAL = DEV | {
    name: "0" for name in ("BUILD_CAFFE2", "BUILD_CAFFE2_OPS", "USE_DISTRIBUTED", "USE_FBGEMM", "USE_MKLDNN")
}
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
    "preset dev": DEV,
    "preset minimal": MINIMAL,
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
    """Make `build/` anew; CMake is run by upstream's own front end.

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


def _note(work: Path, name: str) -> Path:
    return work / ("steps-" + "".join(c if c.isalnum() else "_" for c in name) + ".json")


def main() -> None:
    """Do the part that the first word names."""
    {"steps": steps}[sys.argv[1]](*map(Path, sys.argv[2:]))


if __name__ == "__main__":
    main()

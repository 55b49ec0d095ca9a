"""Whether `--from-wheel` ever says "no compile" where upstream's build inputs differ, over a real history.

python -m benchmarks.classification HISTORY [--ref v2.0.0] [--commits 5000] [--build BUILD]

HISTORY is a clone of pytorch/pytorch, bare or not. The rows of data/wheel_inputs.toml are held against what
is not written in them: the modes that git records (a submodule's commit is an input), a list of what
upstream's build reads, kept apart from the rows, and with --build what the ninja files of a real build
name. For comparison the judgement of upstream's own CI, which reuses a wheel after changes of some files:
ok_changed_file of https://github.com/pytorch/pytorch/blob/v2.8.0/.github/actions/reuse-old-whl/reuse_old_whl.py
"""

from __future__ import annotations

import argparse
import functools
import posixpath
import re
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from torchbuild_tasks.build.outputs import patterns
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.wheel_overlay.choose import find_reached

ROWS = load_catalog().wheel_input
GITLINK = "160000"
# What a compiler, an assembler, a shader compiler or protoc reads, wherever it lies.
NATIVE = re.compile(
    r"\.(c|cc|cpp|cxx|cu|cuh|h|hh|hpp|hxx|inl|inc|m|mm|metal|s|asm|glslh?|hip|proto|fbs|def|cl)$",
    re.IGNORECASE,
)
# What CMake, setup.py or the code generation reads: CMakeLists.txt of the root, caffe2/ and torch/,
# cmake/Codegen.cmake, setup.py and tools/setup_helpers/ of v1.13.1 and v2.0.0.
READ = re.compile(
    r"(.*/)?CMakeLists\.txt|.*\.cmake(\.in)?|.*\.in|.*\.bzl|cmake/.*|setup\.py|pyproject\.toml|version\.txt|\.gitmodules"
    r"|aten/.*\.(py|yaml)|aten/src/ATen/templates/.*|torchgen/.*|third_party/.*|caffe2/.*\.py"
    r"|tools/(autograd|jit|codegen|setup_helpers|shared|pyi|onnx|amd_build|lite_interpreter|code_analyzer)/.*"
    r"|tools/(build_pytorch_libs|generate_torch_version|build_libtorch|gen_vulkan_spv|gen_flatbuffers|nvcc_fix_deps)\.py"
    r"|functorch/(codegen|tools)/.*|functorch/(setup\.py|version\.txt)"
    r"|torch/csrc/.*\.(py|yaml|tpl|txt|ld|lds)|torch/_utils_internal\.py|torch/utils/hipify/.*"
    r"|torch/_(torch|tensor)_docs\.py|torch/utils/data/datapipes/(gen_pyi\.py|.*datapipe\.py|.*grouping\.py)"
)


class Commit(msgspec.Struct, frozen=True):
    """One commit: its name, the paths that differ to its first parent, those of them that are gitlinks."""

    name: str
    paths: tuple[str, ...]
    gitlinks: frozenset[str]


class Result(msgspec.Struct, kw_only=True):
    """What came out: the commits, those that need no compile by the rows and by upstream's CI, and faults."""

    commits: int = 0
    free: int = 0
    free_upstream: int = 0
    inputs: int = 0
    wrong: list[str] = msgspec.field(default_factory=list)


def read_commits(history: Path, ref: str, count: int) -> Iterator[Commit]:
    """Yield the newest commits before a ref with what each changes, merges against their first parent."""
    words = ("log", f"-{count}", "--first-parent", "-m", "--raw", "-z", "--no-renames", "--no-abbrev")
    done = subprocess.run(
        ["git", "-C", str(history), *words, "--format=%x01%H", ref], capture_output=True, check=True
    )
    for text in done.stdout.decode(errors="surrogateescape").split("\x01")[1:]:
        name, *fields = [field.strip("\n") for field in text.split("\0") if field.strip("\n")]
        pairs = list(zip(fields[::2], fields[1::2], strict=True))
        links = frozenset(
            path for modes, path in pairs if GITLINK in modes.split()[:2] or GITLINK in modes[1:15]
        )
        yield Commit(name, tuple(path for _, path in pairs), links)


def read_build(folder: Path) -> frozenset[str]:
    """Return the files of the checkout that the ninja files of a build name: its graph, and its headers."""
    cache = (folder / "CMakeCache.txt").read_text(errors="replace")
    home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", cache, re.MULTILINE)
    assert home, f"{folder} has no CMAKE_HOME_DIRECTORY"
    root = re.escape(f"{home[1].rstrip('/')}/".encode())
    data = (folder / "build.ninja").read_bytes() + b"\n" + (folder / ".ninja_deps").read_bytes()
    found = {match.decode() for match in re.findall(root + rb"([\w./+-]*\w)", data)}
    paths = {posixpath.normpath(path) for path in found}
    makes = patterns(load_catalog(), "setuptools").matches  # version.py, stubs: of the build itself
    return frozenset(path for path in paths if not path.startswith("build/") and not makes(path))


def allows_upstream(path: str) -> bool:
    """Say whether upstream's CI reuses a wheel after a change of this file (ok_changed_file)."""
    python = path.endswith(".py") and (
        path.startswith("test/") or re.match(r"torch/(?!csrc/)", path) is not None
    )
    return python or (path.startswith("docs/") and path.endswith((".md", ".rst")))


@functools.cache
def _is_reached(path: str) -> bool:
    return bool(find_reached([path], (), ROWS))


def classify(commits: Iterator[Commit], built: Collection[str] = ()) -> Result:
    """Hold what the rows say of each commit against what upstream's build reads."""
    result = Result()
    for commit in commits:
        result.commits += 1
        reached = {path for path in commit.paths if _is_reached(path)}
        inputs = {
            path
            for path in commit.paths
            if path in commit.gitlinks or path in built or NATIVE.search(path) or READ.fullmatch(path)
        }
        result.free += not reached
        result.free_upstream += all(map(allows_upstream, commit.paths))
        result.inputs += bool(inputs)
        result.wrong += [f"{commit.name[:10]} {path}" for path in sorted(inputs - reached)]
    return result


def main() -> int:
    """Print the figures; 1 when something is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("history", type=Path)
    parser.add_argument("--ref", default="HEAD")
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--build", type=Path)
    asked = parser.parse_args()
    built = read_build(asked.build) if asked.build else frozenset()
    result = classify(read_commits(asked.history, asked.ref, asked.commits), built)
    unseen = sorted(path for path in built if not _is_reached(path))
    print(f"{result.commits} commits; {result.inputs} change an input of the build")
    print(f"no compile by the rows: {result.free}; by upstream's CI: {result.free_upstream}")
    print(f"inputs that the rows do not see: {len(result.wrong)}", *result.wrong[:50], sep="\n  ")
    if built:
        print(
            f"of {len(built)} files that the real build names, not seen: {len(unseen)}",
            *unseen[:50],
            sep="\n  ",
        )
    return 1 if result.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Which paths are outputs, and which of them builds own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.build.outputs import CHANGED, TRACKED, Outputs, patterns, recordable_outputs
from torchbuild_tasks.catalog import load_catalog

SETUPTOOLS = patterns(load_catalog(), "setuptools").below("build/")
SCIKIT = patterns(load_catalog(), "scikit-build-core").below("build/")
A, B = (1, 1, 1), (2, 2, 2)


def test_rows_are_relative_and_unique_and_begin_with_a_name() -> None:
    rows = load_catalog().output
    assert len({(row.pattern, row.era) for row in rows}) == len(rows)
    for row in rows:
        first, *rest = row.pattern.split("/")
        assert first.isidentifier() or first.split(".")[0].isidentifier(), row
        assert ".." not in rest, row
        assert row.era in ("", "setuptools", "scikit-build-core"), row
        assert row.what, row


@each_case(
    "path",
    [
        "build/",
        "build/CMakeCache.txt",
        "build/a/b\nc/d.o",
        "torch/version.py",
        "torch/lib/libtorch.so",
        "torch/lib/",
        "torch/_C.cpython-312-x86_64-linux-gnu.so",
        "torch/csrc/autograd/generated/Functions.cpp",
        "torch.egg-info/PKG-INFO",
        "torch.egg-info/",
        "caffe2/a/b/x_pb2.py",
        "caffe2/x_pb2.py",
        "torch/utils/benchmark/utils/valgrind_wrapper/callgrind.h",
    ],
)
def test_outputs(path: str) -> None:
    assert SETUPTOOLS.matches(path)


@each_case(
    "path",
    [
        ".env",
        "env/bin/python",
        "build2/x",
        "my/build/x",
        "dist/torch.whl",
        "torch/",
        "torch/_C/__init__.pyi.in",
        "torch/_C/x.so",
        "torch/lib",
        "torch/libtorch.so",
        "torch/version.pyc",
        "torch/nn/version.py",
        "torch/testing/_internal/generated/__pycache__/x.pyc",
        "caffe2/x_pb2.py/y",
        ".torchbuild/made.json",
        ".git/config",
    ],
)
def test_no_outputs(path: str) -> None:
    assert not SETUPTOOLS.matches(path)


def test_the_new_era_makes_no_libraries_in_the_checkout() -> None:
    assert not SCIKIT.matches("torch/lib/libtorch.so")
    assert not SCIKIT.matches("torch/_C.cpython-312-x86_64-linux-gnu.so")
    assert SCIKIT.matches("torch/version.py")


def test_the_build_folder_counts_wherever_it_is_and_whatever_its_name() -> None:
    outputs = Outputs(patterns=("a/**",)).below("out/[x]*/")
    assert outputs.matches("out/[x]*/any/thing")
    assert outputs.matches("out/[x]*/__pycache__/a.pyc")
    assert not outputs.matches("out/xx/any")
    assert outputs.reaches("out/")
    assert not outputs.reaches("o/")


@given(st.sampled_from(load_catalog().output), st.text("ab/_.", max_size=12))
def test_every_match_can_be_reached(row: object, tail: str) -> None:
    """A walk that enters only what `reaches` says never misses a match."""
    pattern = row.pattern  # type: ignore[attr-defined]
    path = pattern.replace("**/", "x/y/").replace("**", f"x{tail}").replace("*", "z")
    if "//" in path or not SETUPTOOLS.matches(path):
        return
    parts = path.rstrip("/").split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        assert SETUPTOOLS.reaches("/".join(parts[:depth]) + "/"), path


def test_what_was_there_before_is_never_claimed() -> None:
    before = {"build/mine": A, "build/overwritten": A}
    after = {"build/mine": A, "build/overwritten": B, "build/": A, "build/new": A, "src/new": A}
    assert SETUPTOOLS.claim(before, after, {}) == {"build/": A, "build/new": A}


def test_a_build_keeps_what_builds_own_and_refreshes_only_what_it_wrote() -> None:
    earlier = {"build/same": A, "build/rewritten": A, "build/edited": A, "build/gone": A}
    before = {"build/same": A, "build/rewritten": A, "build/edited": B}
    after = {"build/same": A, "build/rewritten": B, "build/edited": B}
    owned = SETUPTOOLS.claim(before, after, earlier)
    assert owned == {"build/same": A, "build/rewritten": B, "build/edited": A}


def test_after_a_kill_nothing_later_than_the_log_is_claimed() -> None:
    after = {"build/": A, "build/in time": (0, 0, 5), "build/old but copied later": (0, 0, 6)}
    assert SETUPTOOLS.claim({}, after, {}, until=5) == {"build/": A, "build/in time": (0, 0, 5)}


def test_a_clean_keeps_what_changed_and_what_git_tracks() -> None:
    owned = {"build/": A, "a": A, "b": A, "c": A, "gone": A}
    now = {"build/": A, "a": (1, 1, 9), "b": B, "c": A, "foreign": A}
    assert SETUPTOOLS.split_removable(owned, now, ["c"]) == (("a",), (("b", CHANGED), ("c", TRACKED)))


def test_what_the_other_era_made_stays_owned_and_nothing_there_is_claimed_anew() -> None:
    both = recordable_outputs(load_catalog(), "scikit-build-core").below("build/")
    library, mine = "torch/lib/libtorch.so", "torch/lib/mine.so"
    assert both.matches(library)
    assert both.reaches("torch/lib/")
    owned = both.claim({library: A}, {library: A, mine: A, "torch/version.py": A}, {library: A})
    assert owned == {library: A, "torch/version.py": A}

"""What Ninja says of its targets."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.build.install.rules import Rule
from torchbuild_tasks.build.target import (
    _installed_path,
    check_target,
    files_of,
    is_unknown,
    nearest_targets,
)

LISTED = """\
all: phony
c10: phony
lib/libc10.so: CXX_SHARED_LIBRARY_LINKER__c10_Release
torch_cpu: phony
torch_python: phony
c10/CMakeFiles/c10.dir/core/Allocator.cpp.o: CXX_COMPILER__c10_unscanned_Release
"""


def test_where_torch_reads_it_is_known_after_a_configure_only(tmp_path: Path) -> None:
    """Not `/lib/libc10.so`, as when the facts of the plan had no CMakeCache.txt yet."""
    rule = Rule(destination="${CMAKE_INSTALL_PREFIX}/lib", sources=())
    assert _installed_path("/src/torch", rule, tmp_path / "libc10.so") == Path("/src/torch/lib/libc10.so")


def test_an_unknown_target() -> None:
    assert is_unknown("ninja: error: unknown target 'c1O', did you mean 'c10'?")
    assert not is_unknown("ninja: no work to do.")


def test_names_that_may_have_been_meant() -> None:
    assert nearest_targets("c1O", LISTED)[0] == "c10"
    assert nearest_targets("TorchPython", LISTED)[0] == "torch_python"
    assert nearest_targets("torch", LISTED) == ("torch_cpu", "torch_python")
    assert nearest_targets("zzz", LISTED) == ()
    assert not any("CMakeFiles" in name for name in nearest_targets("Allocator.cpp.o", LISTED))


def test_the_files_behind_a_name() -> None:
    said = "c10:\n  input: phony\n    lib/libc10.so\n  outputs:\n    all\n"
    assert files_of("c10", said) == ("lib/libc10.so",)
    said = (
        "lib/libc10.so:\n  input: CXX_SHARED_LIBRARY_LINKER__c10\n    a.o\n    | x.h\n  outputs:\n    c10\n"
    )
    assert files_of("lib/libc10.so", said) == ("lib/libc10.so",)


def test_a_tree_says_which_targets_it_has(tmp_path: Path) -> None:
    """Before Ninja is started; a file, and a tree that is not there yet, are left to Ninja."""
    assert not [*check_target(tmp_path, "c10")]
    lines = ("c10: phony lib/libc10.so", "lib/libc10.so c10.lib: LINK a.o", "torch_cpu: phony x")
    (tmp_path / "build.ninja").write_text("".join(f"build {line}\n" for line in lines), "utf-8")
    for name in ("c10", "c10.lib", "lib/x.so", "a.cpp^"):
        assert not [*check_target(tmp_path, name)]
    (wrong,) = check_target(tmp_path, "torchcpu")
    assert wrong.status == "error" and "names like it: torch_cpu" in wrong.text

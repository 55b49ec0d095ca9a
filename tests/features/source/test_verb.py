"""What `source` says to a person."""

from __future__ import annotations

from torchbuild_tasks.errors import INSTALL_GIT
from torchbuild_tasks.features.source.get import git_failure
from torchbuild_tasks.features.source.verb import source_text
from torchbuild_tasks.model.source import Checkout, ModuleState, SourceReport
from torchbuild_tasks.system.git.transfer import Outcome
from torchbuild_tasks.system.process import CANNOT_START

A, B = "a" * 40, "b" * 40
MODULES = (
    ModuleState(path="third_party/ok", wanted=A, there=A, state="ok"),
    ModuleState(path="third_party/missing", wanted=A, there=None, state="missing"),
    ModuleState(path="third_party/unneeded", wanted=A, there=None, state="unneeded"),
    ModuleState(path="third_party/elsewhere", wanted=A, there=B, state="elsewhere"),
    ModuleState(path="third_party/changed", wanted=A, there=A, state="changed", changed=("x.cc",)),
)


def test_the_state_of_every_submodule_that_is_not_as_it_should_be() -> None:
    checkout = Checkout(
        path="/pt",
        kind="clone",
        shallow=True,
        modules=MODULES,
        cut_off=True,
        lost=("/store",),
        changed=("a",),
    )
    text = source_text(
        SourceReport(action="status", checkouts=(checkout,), unfinished=("/.x.getting",)), dry_run=False
    )
    assert "clone (without its history)" in text
    assert "third_party/missing: missing\n" in text
    assert "third_party/elsewhere: at bbbbbbbbbb, wanted is aaaaaaaaaa\n" in text
    assert "third_party/changed: x.cc\n" in text
    assert "third_party/ok" not in text and "third_party/unneeded" not in text
    for said in ("was cut off", "are gone: /store", "/.x.getting: unfinished", "changed files (1): a"):
        assert said in text


def test_a_reset_says_what_it_kept() -> None:
    report = SourceReport(action="reset", removed=("third_party/a",), kept=(("third_party/b", ("x.cc",)),))
    assert source_text(report, dry_run=True).startswith("would be fetched again: third_party/a\n")
    text = source_text(report, dry_run=False)
    assert text.startswith("fetched again: third_party/a\n")
    assert "third_party/b: x.cc" in text and "--yes" in text


def test_nothing_anywhere_says_what_to_do() -> None:
    assert "source get WORD" in source_text(SourceReport(action="status"), dry_run=False)


def test_without_git_the_way_out_is_to_install_it() -> None:
    said = "cannot start git: it is in no folder of PATH"
    error = git_failure("Nothing was fetched.", Outcome(rc=CANNOT_START, words=(said,)), "https://x.org/y")
    assert (error.looked, error.next_step) == ((said,), INSTALL_GIT)

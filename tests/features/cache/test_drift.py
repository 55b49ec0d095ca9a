"""Which changed setting would empty a full cache in effect."""

from __future__ import annotations

from torchbuild_tasks.features.cache.drift import MOST_SETTINGS, drift, drift_line, remember_settings
from torchbuild_tasks.model import CacheTool
from torchbuild_tasks.values import replace

GCC = {"compiler": "g++ 12", "SCCACHE_DIRECT": "false"}
CLANG = {"compiler": "clang++ 16", "SCCACHE_DIRECT": "false"}
TOOL = CacheTool(name="sccache", program="/sccache", version="0.16.0", settings=GCC)


def test_the_first_build_and_the_same_settings_are_no_drift() -> None:
    assert drift(TOOL, []) == ()
    assert drift(TOOL, [GCC]) == ()
    assert drift_line(TOOL, ()) == ""


def test_a_change_is_named_with_both_values() -> None:
    before = {**GCC, "SCCACHE_DIRECT": "true"}
    changes = drift(TOOL, [before])
    assert changes == ("SCCACHE_DIRECT: true -> false",)
    assert "SCCACHE_DIRECT: true -> false" in drift_line(TOOL, changes)


def test_two_compilers_that_take_turns_are_no_drift() -> None:
    assert drift(TOOL, [GCC, CLANG]) == ()
    newer = replace(TOOL, settings={**GCC, "compiler": "g++ 13"})
    assert drift(newer, [GCC, CLANG]) == ("compiler: clang++ 16 -> g++ 13",)


def test_a_setting_that_is_new_or_gone_counts() -> None:
    assert drift(TOOL, [{"compiler": "g++ 12"}]) == ("SCCACHE_DIRECT:  -> false",)


def test_the_newest_combination_is_last_and_there_are_not_too_many() -> None:
    assert remember_settings([GCC, CLANG], GCC) == [CLANG, GCC]
    many = [{"compiler": str(n)} for n in range(50)]
    kept = remember_settings(many, GCC)
    assert (len(kept), kept[-1], kept[-2]) == (MOST_SETTINGS, GCC, {"compiler": "49"})

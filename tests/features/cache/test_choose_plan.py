"""The cache's part of a plan: what the stages get, and what decides a hit."""

from __future__ import annotations

from typing import Any

from tests.support.caches import CCACHE, SCCACHE, ask_cache
from tests.support.machines import linux_facts, with_tree
from torchbuild_tasks.catalog import GIB, load_catalog
from torchbuild_tasks.features.cache.choose import choose_cache, plan_cache
from torchbuild_tasks.features.cache.drift import CHECKOUT
from torchbuild_tasks.features.helpers.choose import Helpers
from torchbuild_tasks.model import CachePlan, Facts, Store
from torchbuild_tasks.values import from_json, replace, to_json


def planned(facts: Facts | None = None, **flags: Any) -> CachePlan | None:
    facts = facts or linux_facts()
    facts = replace(facts, tools=(CCACHE, SCCACHE), store=Store(folder="/store"))
    question = ask_cache(facts, **flags)
    chosen = choose_cache(question, cuda=False, helpers=Helpers())
    variables = {choice.name: choice.value for choice in chosen.choices}
    return plan_cache(question, chosen, variables, "/usr/bin/g++ 12.2.0")


def test_what_the_stages_get() -> None:
    plan = planned(cache="sccache", cache_dir="/big")
    assert plan is not None
    (tool,) = plan.tools
    assert (tool.name, tool.program, tool.folder) == ("sccache", "/usr/bin/sccache", "/big/sccache")
    assert (plan.size, plan.memory) == (20 * GIB, "/store/cache-settings.json")
    assert planned(cache="none") is None


def test_a_plan_goes_through_json_and_holds_no_login() -> None:
    plan = planned(cache="redis://me:secret@host")
    assert plan is not None
    assert "secret" not in str(to_json(plan))
    assert from_json(CachePlan, to_json(plan)) == plan


def test_what_differs_between_checkouts_alone_is_no_drift() -> None:
    one = planned(cache="sccache")
    two = planned(with_tree(linux_facts(), root="/elsewhere"), cache="sccache")
    assert one is not None
    assert two is not None
    assert one.tools[0].settings == two.tools[0].settings
    assert one.tools[0].settings["SCCACHE_BASEDIRS"] == CHECKOUT
    assert one.tools[0].settings["compiler"] == "/usr/bin/g++ 12.2.0"


def test_every_row_has_its_reason_and_its_system() -> None:
    rows = load_catalog().cache
    assert len({(row.tool, row.os, row.language) for row in rows}) == len(rows)
    for row in rows:
        assert row.tool in ("ccache", "sccache", "recc")
        assert row.os in ("linux", "windows")
        assert row.language in ("c++", "cuda")
        assert bool(row.warm) is bool(row.cold)
        assert bool(row.bad) is bool(row.because)
        assert row.source

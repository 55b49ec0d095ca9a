"""What --fix may run: in the checkout, for what is wrong, and nothing that could lose something."""

from __future__ import annotations

from tests.features.doctor.views import health
from tests.support.machines import ROOT, ask, linux_facts, plan_of, tool, with_tree
from torchbuild_tasks.features.doctor.choose import Repair, diagnose, repairs
from torchbuild_tasks.model import Facts, Health
from torchbuild_tasks.values import replace


def todo(facts: Facts, seen: Health | None = None) -> tuple[Repair, ...]:
    facts = replace(facts, health=seen or health())
    return repairs(ask(facts), diagnose(ask(facts), plan_of(facts)))


def test_nothing_is_done_where_nothing_is_wrong() -> None:
    assert todo(linux_facts()) == ()


def test_empty_submodules_are_filled_and_no_other_is_touched() -> None:
    empty = ("third_party/fmt", "third_party/gloo/third-party/googletest", "third_party/onnx")
    (repair,) = todo(with_tree(linux_facts(), empty=empty))
    assert repair.command.argv[:3] == ("git", "-C", ROOT)
    assert repair.command.argv[-3:] == ("--", "third_party/fmt", "third_party/onnx")
    assert todo(with_tree(linux_facts(), empty=empty[1:2])) == ()
    assert todo(with_tree(linux_facts(), empty=empty, git=False)) == ()
    assert todo(with_tree(linux_facts(), empty=empty, linkless=empty)) == ()


def test_only_the_settings_of_the_checkout_are_changed() -> None:
    facts = linux_facts(tools=(*linux_facts().tools, tool("git", "2.39")))
    (repair,) = todo(facts, health(git={"core.autocrlf": "true"}))
    assert repair.command.argv == ("git", "-C", ROOT, "config", "core.autocrlf", "input")

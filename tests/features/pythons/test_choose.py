"""Which wheels a list of Pythons means."""

from __future__ import annotations

import pytest

from tests.support.for_each import each_case
from tests.support.machines import ask, built, linux_facts, plan_of, plan_of_question, python
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.pythons.choose import require_wheels, split_pythons, with_others
from torchbuild_tasks.model import Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.values import replace


@each_case(
    ("said", "names"),
    [(None, ("",)), ("3.12", ("3.12",)), ("3.11, 3.12", ("3.11", "3.12")), ("3.13,3.11", ("3.13", "3.11"))],
)
def test_a_list_is_taken_in_its_order(said: str | None, names: tuple[str, ...]) -> None:
    assert split_pythons(said) == names


@each_case("said", ["3.11,3.11", "3.11,", ",", "3.11,,3.12"])
def test_a_list_with_a_mistake_is_refused(said: str) -> None:
    with pytest.raises(UsageError, match="name each Python once"):
        split_pythons(said)


def test_several_are_for_wheels_and_nothing_else() -> None:
    require_wheels("wheel", "3.11,3.12", ())
    with pytest.raises(UsageError, match="an editable install is of one"):
        require_wheels("develop", "3.11,3.12", ())
    with pytest.raises(UsageError, match="--target is for one"):
        require_wheels("wheel", "3.11,3.12", ("--target",))


def two() -> Facts:
    other = python(executable="/v12/bin/python", version="3.12.1", prefix="/v12")
    return linux_facts(pythons=(python(), other))


@each_case(
    ("before", "now", "needs"),
    [("wheel", "wheel", "reconfigure"), ("develop", "wheel", "clean"), ("develop", "develop", "clean")],
)
def test_another_python_keeps_the_tree_between_wheels(before: str, now: str, needs: str) -> None:
    facts = built(two(), mode=before, python="3.11")
    assert plan_of(facts, mode=now, python="3.12").freshness.needs == needs


def test_a_plan_for_several_tells_which_of_the_others_do_not_fit() -> None:
    named = ("3.11", "3.12", "3.7", "3.13")
    versions = ("3.11.9", "3.12.4", "3.7.17")
    pythons = tuple(
        python(version=each, executable=f"/usr/bin/python{each.rpartition('.')[0]}") for each in versions
    )
    facts = linux_facts(pythons=pythons)
    asked = [BuildRequest(python=name, mode="wheel", facts="machine.json") for name in named]
    first, *others = [plan_of_question(replace(ask(facts), request=each)) for each in asked]
    plan = with_others(first, "3.11", dict(zip(named[1:], others, strict=True)))
    assert (plan.choices, plan.verdict) == (first.choices, "refuse")
    told = [f"{each.status} {each.text}" for each in plan.findings if each.id == "python"]
    assert any(text.startswith("ok CPython 3.12.4") for text in told)
    assert any(text.startswith("error CPython 3.7.17") for text in told)
    assert any(text.startswith("error no Python 3.13 was found") for text in told)
    assert with_others(first, "3.11", {"3.12": others[0]}).verdict == first.verdict != "refuse"

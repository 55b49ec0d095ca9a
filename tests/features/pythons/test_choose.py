"""Which wheels a list of Pythons means."""

from __future__ import annotations

import pytest

from tests.support.machines import built, linux_facts, plan_of, python
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.pythons.choose import require_wheels, split_pythons
from torchbuild_tasks.model import Facts


@pytest.mark.parametrize(
    ("said", "names"),
    [(None, ("",)), ("3.12", ("3.12",)), ("3.11, 3.12", ("3.11", "3.12")), ("3.13,3.11", ("3.13", "3.11"))],
)
def test_a_list_is_taken_in_its_order(said: str | None, names: tuple[str, ...]) -> None:
    assert split_pythons(said) == names


@pytest.mark.parametrize("said", ["3.11,3.11", "3.11,", ",", "3.11,,3.12"])
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


@pytest.mark.parametrize(
    ("before", "now", "needs"),
    [("wheel", "wheel", "reconfigure"), ("develop", "wheel", "clean"), ("develop", "develop", "clean")],
)
def test_another_python_keeps_the_tree_between_wheels(before: str, now: str, needs: str) -> None:
    facts = built(two(), mode=before, python="3.11")
    assert plan_of(facts, mode=now, python="3.12").freshness.needs == needs

"""How two plans differ, apart from the folders that they are in."""

from __future__ import annotations

from tests.support.machines import linux_facts, plan_of
from torchbuild_tasks.features.builds.choose import CHECKOUT, NOTHING, differences
from torchbuild_tasks.values import replace


def test_the_same_build_in_another_folder_does_not_differ() -> None:
    facts = linux_facts()
    elsewhere = replace(facts, tree=replace(facts.tree, root="/elsewhere"))
    one, other = (plan_of(each, set=(f"OWN={each.tree.root}/x",)) for each in (facts, elsewhere))
    assert one.source != other.source
    assert not list(differences(one, other))


def test_choices_variables_and_the_command_are_compared() -> None:
    one = plan_of(linux_facts())
    other = plan_of(linux_facts(), build_type="Debug", mode="wheel", set=("BUILD_TEST=1",))
    found = {each.name: each for each in differences(one, other)}
    assert found["build type"].values == ("Release", "Debug")
    assert "--build-type" in found["build type"].reasons[1]
    assert found["BUILD_TEST"].values[1] == "1"
    assert found["mode"].values == ("develop", "wheel")
    assert "bdist_wheel" in found["command"].values[1]
    assert found["command"].values[0].endswith("develop")
    assert "source" not in found


def test_what_only_one_side_has_is_shown_as_missing_on_the_other() -> None:
    facts = linux_facts()
    difference = next(differences(plan_of(facts), plan_of(facts, set=(f"CUSTOM={facts.tree.root}/x",))))
    assert (difference.name, difference.values) == ("CUSTOM", (NOTHING, f"{CHECKOUT}/x"))

"""Where the packages of a build come from: an index, a folder of wheels, nowhere; by pip or by uv."""

from __future__ import annotations

import dataclasses

from packaging.requirements import Requirement

from tests.support.machines import base_python, linux_facts, plan_of, python, settings, statuses, tool
from torchbuild_tasks.model import Command, Facts


def machine(*, uv: bool = False) -> Facts:
    facts = dataclasses.replace(linux_facts(), pythons=(base_python(),))
    return dataclasses.replace(facts, tools=(*facts.tools, tool("uv", "0.13.9"))) if uv else facts


def command(found: Command | None) -> str:
    assert found is not None
    return " ".join(found.argv)


def test_the_index_is_asked_where_nothing_else_is_said() -> None:
    environment = plan_of(machine()).environment
    assert environment.install_options == ()
    assert "--find-links" not in command(environment.install)


def test_a_folder_of_wheels_stands_beside_the_index() -> None:
    environment = plan_of(machine(), wheels="/wheels").environment
    assert environment.install_options == ("--find-links", "/wheels")
    assert " --find-links /wheels " in command(environment.install)
    said = plan_of(machine(), settings({"wheels": "/of/the/file"})).environment
    assert said.install_options == ("--find-links", "/of/the/file")


def test_offline_with_wheels_asks_no_index() -> None:
    plan = plan_of(machine(), offline=True, wheels="/wheels")
    assert plan.environment.install_options == ("--no-index", "--find-links", "/wheels")
    assert statuses(plan.findings, "requirements") == []


def test_offline_without_wheels_lists_all_that_is_missing() -> None:
    plan = plan_of(machine(), offline=True)
    (finding,) = [finding for finding in plan.findings if finding.id == "requirements"]
    assert (plan.verdict, finding.status) == ("refuse", "error")
    assert plan.environment.install is not None
    for missing in plan.environment.install.argv[plan.environment.install.argv.index("--no-index") + 1 :]:
        assert missing in finding.text
    assert "--wheels" in finding.fix


def test_offline_is_no_matter_where_nothing_is_missing() -> None:
    install = plan_of(linux_facts()).environment.install
    assert install is not None
    names = [Requirement(text).name for text in install.argv[install.argv.index("--no-input") + 1 :]]
    complete = python(packages={**python().packages, **dict.fromkeys(names, "69.5")})
    plan = plan_of(dataclasses.replace(linux_facts(), pythons=(complete,)), offline=True)
    assert (plan.environment.install, statuses(plan.findings, "requirements")) == (None, [])


def test_uv_installs_where_there_is_one() -> None:
    plan = plan_of(machine(uv=True), wheels="/wheels")
    uv = next(tool.path for tool in machine(uv=True).tools if tool.name == "uv")
    wanted = f"{uv} pip install --python {plan.environment.python} --find-links /wheels "
    assert command(plan.environment.install).startswith(wanted)

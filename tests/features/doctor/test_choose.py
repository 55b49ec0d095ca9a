"""All findings of the doctor: no duplicates, and the verdict."""

from __future__ import annotations

from tests.features.doctor.views import health, room
from tests.support.machines import ask, linux_facts, plan_of, with_tree
from torchbuild_tasks.features.doctor.choose import CHECKS, diagnose
from torchbuild_tasks.values import replace


def test_the_doctor_says_what_the_plan_says_and_more() -> None:
    facts = replace(linux_facts(), health=health())
    plan = plan_of(facts)
    whole = diagnose(ask(facts), plan)
    assert {finding.id for finding in plan.findings} <= {finding.id for finding in whole.findings}
    assert sum(finding.id == "disk" for finding in whole.findings) == 1
    assert whole.verdict == "warn"  # no git is here


def test_a_full_disk_refuses() -> None:
    facts = replace(linux_facts(), health=health(rooms=(room("build", 1),)))
    assert diagnose(ask(facts), plan_of(facts)).verdict == "refuse"


def test_without_a_checkout_only_the_machine_is_looked_at() -> None:
    facts = replace(with_tree(linux_facts(), problem="no PyTorch here"), health=health())
    ids = {finding.id for finding in diagnose(ask(facts), plan_of(facts)).findings}
    assert {"source", "memory", "open-files"} <= ids
    assert not {"disk", "trees"} & ids


def test_a_dump_that_no_doctor_made_has_the_plans_findings() -> None:
    plan = plan_of()
    assert diagnose(ask(), plan) == plan


def test_a_check_speaks_in_its_own_name() -> None:
    facts = replace(linux_facts(), health=health(git={"core.autocrlf": "true"}))
    ids = {finding.id for finding in diagnose(ask(facts), plan_of(facts)).findings}
    assert set(CHECKS) - {"git", "https"} <= ids  # no host was needed


def test_a_program_that_hung_is_reported() -> None:
    plan = plan_of(replace(linux_facts(), cut=("/opt/bin/nvcc",)))
    (found,) = [finding for finding in plan.findings if finding.id == "probe"]
    assert "/opt/bin/nvcc" in found.text

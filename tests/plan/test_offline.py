"""What a build without a network lacks is told by the plan: helpers, parts of a toolkit, sources, wheels."""

from __future__ import annotations

from typing import Any

from tests.support.cuda import cuda_facts
from tests.support.machines import linux_facts, plan_of, tree
from torchbuild_tasks.model import Brought, BuildPlan, Finding
from torchbuild_tasks.values import replace

ROOM = linux_facts(brought=Brought(), tree=tree(version="2.6.0"))


def errors(plan: BuildPlan, *ids: str) -> list[Finding]:
    return [each for each in plan.findings if each.status == "error" and each.id in ids]


def offline(facts: Any = ROOM, **flags: Any) -> list[Finding]:
    return errors(plan_of(facts, offline=True, **flags), "offline")


def test_a_helper_that_would_be_downloaded_is_an_error() -> None:
    (finding,) = offline(with_helper=("mkl",))
    assert "mkl-static-" in finding.text
    assert "pip download --dest wheels --no-deps" in finding.fix
    assert "mkl-static==" in finding.fix
    assert not errors(plan_of(ROOM, with_helper=("mkl",)), "offline")


def test_the_parts_of_a_toolkit_too_until_they_are_brought() -> None:
    facts = cuda_facts(brought=Brought(), tree=tree(version="2.6.0"))
    (finding,) = offline(facts, cuda=True, cuda_toolkit="pypi:12.6")
    assert "nvidia_cublas" in finding.text.replace("-", "_")
    plan = plan_of(facts, cuda=True, cuda_toolkit="pypi:12.6")
    assert plan.artifacts
    wheels = tuple(
        f"{each.project.replace('-', '_')}-{each.version}-py3-none-{each.tag}.whl"
        for each in plan.artifacts
        if each.project
    )
    files = tuple(each.urls[0].rpartition("/")[2] for each in plan.artifacts if each.urls)
    there = replace(facts, brought=Brought(wheels=wheels, archives=files))
    assert not offline(there, cuda=True, cuda_toolkit="pypi:12.6", wheels="/wheels")


def test_the_source_of_a_companion_too() -> None:
    (finding,) = errors(plan_of(ROOM, offline=True, with_=("torchvision",)), "torchvision")
    assert "the source of torchvision is not here" in finding.text
    assert "git clone" in finding.fix
    folder = next(iter(plan_of(ROOM, with_=("torchvision",)).companions)).folder.rpartition("/")[2]
    there = replace(ROOM, brought=Brought(sources=(folder,)))
    assert not errors(plan_of(there, offline=True, with_=("torchvision",)), "torchvision")


def test_and_where_the_libraries_of_a_wheel_are_taken() -> None:
    (finding,) = errors(plan_of(ROOM, offline=True, from_wheel="auto", with_=("torchvision",)), "torchvision")
    assert "the source of torchvision is not here" in finding.text


def test_a_mirror_on_this_machine_may_have_it() -> None:
    assert not offline(with_helper=("mkl",), mirror="file:///srv/mirror")


def test_a_folder_of_wheels_is_compared_with_what_is_needed() -> None:
    facts = replace(ROOM, brought=Brought(wheels=("pyyaml-6.0-cp312-cp312-linux_x86_64.whl",)))
    (finding,) = errors(plan_of(facts, offline=True, wheels="/wheels"), "requirements")
    assert "/wheels lacks" in finding.text
    assert "typing" in finding.text
    assert "pyyaml-6.0-cp312-cp312-linux_x86_64.whl: for another Python or system" in finding.text
    assert "with Python 3.11 on such a system" in finding.fix
    fitting = replace(ROOM, brought=Brought(wheels=("pyyaml-6.0-cp311-cp311-linux_x86_64.whl",)))
    (finding,) = errors(plan_of(fitting, offline=True, wheels="/wheels"), "requirements")
    assert "yaml" not in finding.text


def test_without_a_look_nothing_is_said() -> None:
    assert not offline(replace(ROOM, brought=None), with_helper=("mkl",))

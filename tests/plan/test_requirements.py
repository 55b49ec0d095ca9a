"""Where the packages of a build come from: an index, a folder of wheels, nowhere; by pip or by uv."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.support.machines import ask, base_python, linux_facts, plan_of, python, settings, statuses, tool
from tests.support.windows import windows_facts
from torchbuild_tasks.facts.installers import look_at_installers
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Command, Facts, InstallerSetting
from torchbuild_tasks.plan import index
from torchbuild_tasks.plan.requirements import list_requirements, missing_requirements, one_each
from torchbuild_tasks.values import replace


def machine(*, uv: bool = False) -> Facts:
    facts = replace(linux_facts(), pythons=(base_python(),))
    return replace(facts, tools=(*facts.tools, tool("uv", "0.13.9"))) if uv else facts


def command(found: Command | None) -> str:
    assert found is not None
    return " ".join(found.argv)


def test_the_index_is_the_default() -> None:
    environment = plan_of(machine()).environment
    assert environment.install_options == ()
    assert "--find-links" not in command(environment.install)


def test_a_folder_of_wheels_is_added_to_the_index() -> None:
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
    plan = plan_of(replace(linux_facts(), pythons=(complete,)), offline=True)
    assert (plan.environment.install, statuses(plan.findings, "requirements")) == (None, [])


def test_uv_installs_where_there_is_one() -> None:
    plan = plan_of(machine(uv=True), wheels="/wheels")
    uv = next(tool.path for tool in machine(uv=True).tools if tool.name == "uv")
    wanted = f"{uv} pip install --python {plan.environment.python} --find-links /wheels "
    assert command(plan.environment.install).startswith(wanted)


def test_pip_is_asked_where_the_user_wants_it() -> None:
    plan = plan_of(machine(uv=True), installer="pip")
    assert command(plan.environment.install).startswith(f"{plan.environment.python} -m pip install")
    assert command(plan.environment.create).split()[1:3] == ["-m", "venv"]


def test_uv_makes_the_venv_too_also_where_python_has_no_module_for_it() -> None:
    facts = replace(machine(uv=True), pythons=(replace(base_python(), venv=False),))
    plan = plan_of(facts)
    assert command(plan.environment.create).split()[1:3] == ["venv", "--seed"]
    assert statuses(plan.findings, "python-venv") == []


def test_a_uv_that_is_wanted_and_missing_is_an_error() -> None:
    (finding,) = [each for each in plan_of(machine(), installer="uv").findings if each.id == "installer"]
    assert finding.status == "error" and "pip install uv" in finding.fix


def asking(*texts: str, facts: Facts) -> Facts:
    return replace(facts, tree=replace(facts.tree, asks=texts))


def test_requirements_of_the_checkout_and_pins_of_the_rows_are_installed() -> None:
    asked = ("sympy>=1.13.3", "cmake>=99", "lintrunner; platform_machine != 's390x'", "astunparse")
    install = command(plan_of(asking(*asked, facts=machine())).environment.install)
    assert "sympy>=1.13.3" in install
    assert "astunparse" in install
    assert ",>=99" in install or "cmake>=99" in install  # the machine's own is older
    assert "lintrunner" not in install
    assert "setuptools" in install


@pytest.mark.parametrize(
    ("facts", "version", "wanted"),
    [
        (windows_facts(), "1.13.0", ["!=1.11.1,!=1.13.0"]),
        (windows_facts(), "1.13.2", []),
        (linux_facts(), "1.13.0", []),
    ],
)
def test_a_ninja_that_breaks_builds_on_windows_is_not_taken_there(
    facts: Facts, version: str, wanted: list[str]
) -> None:
    tools = tuple(each for each in facts.tools if each.name != "ninja")
    facts = replace(facts, tools=(*tools, tool("ninja", version)))
    texts = [Requirement(text) for text in list_requirements(ask(facts))]
    assert [str(each.specifier) for each in texts if each.name == "ninja"] == wanted


def test_the_users_own_environment_gets_only_what_the_build_imports() -> None:
    own = replace(linux_facts(), pythons=(python(packages={"pip": "24.0"}),))
    install = command(plan_of(asking("expecttest", facts=own)).environment.install)
    assert "setuptools" in install
    assert "expecttest" not in install


def test_a_missing_package_comes_with_all_its_requirements() -> None:
    """Else pip goes beyond the row's pin for what the checkout alone asks for."""
    own = python(packages={"pip": "24.0", "setuptools": "60.0", "wheel": "0.43", "numpy": "1.26.4"})
    facts = replace(linux_facts(), pythons=(own,))
    question = ask(replace(facts, tree=replace(facts.tree, requires=("setuptools>=61",))))
    texts = [text for text in missing_requirements(question, own, own) if "setuptools" in text]
    assert texts == ["setuptools<80", "setuptools>=61"]


@pytest.mark.parametrize(
    ("version", "setuptools", "fits"),
    [
        ("2.5.1", "73.0.1", True),
        ("2.5.1", "75.1.0", False),
        ("2.6.0", "75.8.2", True),
        ("2.6.0", "76.0.0", False),
        ("2.6.0", "78.0.2", False),
        ("2.6.0", "79.0.0", True),
    ],
)
def test_windows_wants_a_setuptools_that_has_what_torch_takes_from_it(
    version: str, setuptools: str, fits: bool
) -> None:
    """pytorch#136541 and #148877: `_get_vc_env`, which comes and goes."""
    own = python(version="3.12.6", packages={"pip": "24.0", "setuptools": setuptools})
    for facts, here in ((windows_facts(), fits), (linux_facts(), True)):
        question = ask(replace(facts, tree=replace(facts.tree, version=version)))
        missing = missing_requirements(question, own, own)
        assert here is not any(text.startswith("setuptools") for text in missing)


def depending(*texts: str, facts: Facts) -> Facts:
    return replace(facts, tree=replace(facts.tree, depends=texts))


@pytest.mark.parametrize("era", ["setuptools", "scikit-build-core"])
@pytest.mark.parametrize("mode", ["develop", "wheel"])
def test_what_torch_asks_for_is_installed_before_and_never_by_the_build(era: Any, mode: str) -> None:
    """`setup.py develop` would have easy_install fetch it after the compile, past pip's settings."""
    own = replace(linux_facts(), pythons=(python(packages={"pip": "24.0", "sympy": "1.14.0"}),))
    facts = depending('sympy==1.13.1 ; python_version >= "3.9"', "old ; python_version < '3.9'", facts=own)
    plan = plan_of(replace(facts, tree=replace(facts.tree, era=era)), mode=mode)
    install = command(plan.environment.install)
    assert "sympy==1.13.1" in install
    assert "old" not in install
    assert mode == "wheel" or "--no-deps" in plan.compile.argv


def test_a_build_whose_files_do_not_say_what_it_asks_for_installs_that_itself() -> None:
    facts = linux_facts()
    assert "--no-deps" not in plan_of(replace(facts, tree=replace(facts.tree, depends=None))).compile.argv


def test_requirements_that_a_variable_adds_go_by_the_markers_of_the_machine_that_is_planned() -> None:
    more = (
        "nccl==2 ; platform_system == 'Linux' | intel ; platform_machine == 'AMD64'|any|x ; os_name == 'nt'"
    )
    said = settings(variables={"PYTORCH_EXTRA_INSTALL_REQUIREMENTS": more})
    here = [Requirement(text).name for text in missing_requirements(ask(linux_facts(), said), None, python())]
    there = [
        Requirement(text).name for text in missing_requirements(ask(windows_facts(), said), None, python())
    ]
    names = ("nccl", "intel", "any", "x")
    assert [name for name in names if name in here] == ["nccl", "any"]
    assert [name for name in names if name in there] == ["intel", "any", "x"]


@pytest.mark.parametrize(
    ("environ", "tools", "status"),
    [
        ({"PIP_NO_INDEX": "1"}, (), "error"),
        ({"PIP_NO_INDEX": "true"}, (), "error"),
        ({"PIP_NO_INDEX": "0"}, (), ""),
        ({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}, (), ""),
        ({"UV_OFFLINE": "1"}, (), ""),  # pip does not read it
        ({"UV_OFFLINE": "1"}, ("uv",), "warn"),
        ({"UV_NO_INDEX": "1"}, ("uv",), "error"),
        ({"PIP_NO_INDEX": "1"}, ("uv",), ""),  # and uv not that
    ],
)
def test_a_variable_that_forbids_an_index_is_heard(
    environ: dict[str, str], tools: tuple[str, ...], status: str
) -> None:
    facts = linux_facts(pythons=(base_python(),), environ=environ)
    facts = replace(facts, tools=(*facts.tools, *(tool(name, "0.9") for name in tools)))
    told = [each for each in plan_of(facts).findings if each.id == "requirements"]
    assert [each.status for each in told] == ([status] if status else [])
    assert all(next(iter(environ)) in each.text and "Unset" in each.fix for each in told)


def test_nothing_is_brought_over_a_forbidden_index() -> None:
    facts = linux_facts(pythons=(base_python(),), environ={"PIP_NO_INDEX": "1"})
    assert plan_of(facts).environment.better is None


@pytest.mark.parametrize(
    ("setting", "tools", "status", "says", "fix"),
    [
        (InstallerSetting(name="PIP_TARGET", value="/opt/x"), (), "error", "/opt/x", "Unset PIP_TARGET."),
        (InstallerSetting(name="PIP_TARGET", value="/opt/x"), ("uv",), "warn", "/opt/x", "Unset"),
        (
            InstallerSetting(name="PIP_PREFIX", value="/p", place="/c"),
            (),
            "error",
            "/p (/c)",
            "Take prefix out",
        ),
        (InstallerSetting(name="PIP_USER", value="1"), (), "error", "in a venv", "Unset"),
        (InstallerSetting(name="PIP_USER", value="0"), (), "", "", ""),
        (
            InstallerSetting(name="PIP_CONSTRAINT", value="/c", gone=("/c",)),
            (),
            "error",
            "not there",
            "Unset",
        ),
        (InstallerSetting(name="PIP_CONSTRAINT", value="/c"), (), "", "", ""),
        (InstallerSetting(name="UV_CONSTRAINT", value="/c", gone=("/c",)), (), "", "", ""),
        (InstallerSetting(name="UV_CONSTRAINT", value="/c", gone=("/c",)), ("uv",), "error", "not there", ""),
        (
            InstallerSetting(name="PIP_NO_INDEX", value="1", place="/c"),
            (),
            "error",
            "no index",
            "Take no-index",
        ),
    ],
)
def test_settings_of_the_installers_that_an_install_fails_with(
    setting: InstallerSetting, tools: tuple[str, ...], status: str, says: str, fix: str
) -> None:
    facts = linux_facts(pythons=(base_python(),), installers=(setting,))
    facts = replace(facts, tools=(*facts.tools, *(tool(name, "0.9") for name in tools)))
    told = [each for each in plan_of(facts).findings if each.id == "requirements"]
    assert [each.status for each in told] == ([status] if status else [])
    assert all(says in each.text and fix in each.fix for each in told)


def test_every_setting_that_the_plan_asks_for_is_looked_at() -> None:
    asked = (*index._OF_PIP, *index._OF_UV, *index._FOLDERS.values(), *index._ELSEWHERE, index._USER)
    environ = dict.fromkeys(asked, "1")
    assert {each.name for each in look_at_installers(Probe(environ=environ))} >= set(asked)


def test_each_package_is_named_once() -> None:
    texts = (
        "setuptools>=70.1,<80",
        'setuptools; python_version >= "3.12"',
        "build[uv]",
        "Build>=1",
        "x @ file:///x",
    )
    assert one_each(texts) == ("setuptools<80,>=70.1", "build[uv]>=1", "x @ file:///x")

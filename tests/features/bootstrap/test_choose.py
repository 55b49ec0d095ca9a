"""What is missing, what each package manager calls it, and who may install it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import ask, base_python, linux_facts, python, tool
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import RequirementsError, UsageError
from torchbuild_tasks.features.bootstrap import choose as bootstrap
from torchbuild_tasks.features.bootstrap.choose import (
    BECOME,
    Become,
    Bootstrap,
    plan_bootstrap,
    require_commands,
)
from torchbuild_tasks.features.bootstrap.verb import bootstrap_text
from torchbuild_tasks.model import Facts, Host, Toolset, Windows
from torchbuild_tasks.plan.environment import ChosenPython, choose_python
from torchbuild_tasks.plan.question import Question

WHOLE = (*linux_facts().tools, tool("git", "2"), tool("ccache", "4"), tool("ld.lld", "14"))
CATALOG = load_catalog()


def planned(facts: Facts, *, become: Become = (), **flags: Any) -> Bootstrap:
    return plan_bootstrap(ask(facts, **flags), become=become)


def bare(distribution: str) -> Facts:
    own = base_python(version="3.11.2", headers=False, venv=False)
    host = Host(os="linux", arch="x86_64", distribution=distribution)
    return linux_facts(host=host, compilers=(), tools=(), pythons=(own,))


def test_a_complete_machine_misses_nothing() -> None:
    made = planned(linux_facts(tools=WHOLE))
    assert (made.missing, made.commands) == ((), ())


@each_case(
    ("distribution", "needed", "faster"),
    [
        (
            "Debian GNU/Linux 12",
            "apt-get install --yes g++ git python3.11-dev python3.11-venv",
            "ninja-build ccache lld",
        ),
        (
            "Fedora Linux 42",
            "dnf install --assumeyes gcc-c++ git pkgconfig(python-3.11)",
            "ninja-build ccache lld",
        ),
        ("Arch Linux", "pacman -S --needed --noconfirm gcc git python", "ninja ccache lld"),
        ("Rocky Linux 9.5", "dnf install --assumeyes gcc-c++ git pkgconfig(python-3.11)", "lld"),
        (
            "openSUSE Leap 15.6",
            "zypper --non-interactive install gcc-c++ git pkgconfig(python-3.11)",
            "ninja ccache lld",
        ),
    ],
)
def test_every_manager_has_its_own_words(distribution: str, needed: str, faster: str) -> None:
    """One name that is unknown, and dnf, apt and zypper install nothing of that command."""
    made = planned(bare(distribution))
    assert " ".join(made.commands[-1].argv) == needed
    assert " ".join(made.faster[-1].argv).endswith(f" {faster}")
    kinds = {each.package: each.kind for each in made.missing}
    assert (kinds["g++"], kinds["ccache"]) == ("needed", "faster")


@each_case(
    ("distribution", "crb", "epel"),
    [
        (
            "Red Hat Enterprise Linux 9.5 (Plow)",
            "codeready-builder-for-rhel-9-x86_64-rpms",
            "latest-9.noarch",
        ),
        ("Rocky Linux 9.5 (Blue Onyx)", "config-manager --set-enabled crb", "install -y epel-release"),
        ("AlmaLinux 8.10", "config-manager --set-enabled powertools", "install -y epel-release"),
        ("Oracle Linux Server 9.5", "--set-enabled ol9_codeready_builder", "oracle-epel-release-el9"),
    ],
)
def test_what_is_in_a_repository_that_is_off_stands_apart_with_how_to_turn_it_on(
    distribution: str, crb: str, epel: str
) -> None:
    made = planned(bare(distribution))
    words = {word for command in (*made.commands, *made.faster) for word in command.argv}
    assert "gcc-c++" in words and not {"ninja-build", "ccache"} & words
    ninja, ccache = made.elsewhere
    assert crb in ninja and ninja.endswith(" && sudo dnf install ninja-build")
    assert epel in ccache and ccache.endswith(" && sudo dnf install ccache")
    text = bootstrap_text(made)
    assert ninja in text and text.index("gcc-c++") < text.index("From repositories that are off")
    assert planned(bare(distribution), manager="conda").elsewhere == ()


def test_what_is_gone_from_a_system_is_not_in_its_commands() -> None:
    made = planned(bare("CentOS Linux 7 (Core)"))
    assert (made.faster, made.elsewhere) == ((), ())
    assert "gcc-c++" in made.commands[-1].argv


def test_apt_learns_first_which_packages_there_are_and_needs_root() -> None:
    made = planned(bare("Ubuntu 24.04"), become=BECOME[0])
    assert [command.argv[:4] for command in made.commands] == [
        ("sudo", "-n", "apt-get", "update"),
        ("sudo", "-n", "apt-get", "install"),
    ]
    assert planned(bare("Ubuntu 24.04"), become=BECOME[0], manager="conda").commands[0].argv[0] == "conda"
    assert "  $ sudo apt-get update\n" in bootstrap_text(made)
    assert "prompt" not in bootstrap_text(made)


def test_without_sudo_and_doas_the_commands_are_for_roots_own_shell() -> None:
    made = planned(bare("Debian GNU/Linux 13 (trixie)"), become=None)
    text = bootstrap_text(made)
    assert "su - makes you root" in text and "  $ apt-get update\n" in text and "--yes runs" not in text
    with pytest.raises(RequirementsError, match="neither sudo nor doas") as refused:
        require_commands(made)
    assert "\napt-get install --yes g++" in str(refused.value.next_step)
    require_commands(planned(bare("Debian GNU/Linux 13 (trixie)"), become=None, manager="conda"))


def test_one_of_several_tools_is_enough() -> None:
    tools = (*WHOLE[:-2], tool("sccache", "0.8"), tool("mold", "2"))
    facts = linux_facts(tools=tools, compilers=(tool("clang++", "16"),))
    assert planned(facts).missing == ()


def test_a_windows_machine_gets_its_compiler() -> None:
    host = Host(os="windows", arch="x86_64", distribution="Windows 11")
    facts = linux_facts(host=host, compilers=(), tools=WHOLE, windows=Windows())
    made = planned(facts, become=None)
    (command,) = made.commands
    assert command.argv[0] == "winget"
    assert "found in a new prompt" in bootstrap_text(made)
    assert "Microsoft.VisualStudio.2022.BuildTools" in command.argv
    assert "VCTools" in command.argv[-1]
    toolset = Toolset(version="14.44", visual_studio="C:\\VS", cl="C:\\cl.exe")
    assert planned(linux_facts(host=host, tools=WHOLE, windows=Windows(toolsets=(toolset,)))).missing == ()


def test_one_call_a_package_where_the_manager_takes_one() -> None:
    host = Host(os="windows", arch="x86_64", distribution="Windows 11")
    made = planned(linux_facts(host=host, compilers=(), tools=(), windows=Windows()), manager="choco")
    assert [command.argv[3] for command in (*made.commands, *made.faster)] == [
        "visualstudio2022-workload-vctools",
        "git",
        "ninja",
        "ccache",
    ]


def test_what_no_package_manager_has_is_reported() -> None:
    made = planned(bare("Some Linux 1"))
    assert (made.manager, made.commands) == ("", ())
    with pytest.raises(UsageError, match=r"g\+\+"):
        require_commands(made)
    require_commands(planned(bare("Debian GNU/Linux 12")))


def test_no_python_at_all() -> None:
    assert [each.package for each in planned(linux_facts(tools=WHOLE, pythons=())).missing] == ["python"]
    broken = python(problem="it ended with 1")
    assert planned(linux_facts(tools=WHOLE, pythons=(broken,))).missing[0].package == "python"


def test_rows_agree() -> None:
    managers = {row.name for row in CATALOG.manager}
    systems = {row.command.removeprefix("sudo ").split()[0] for row in CATALOG.installer}
    names = {row.name for row in CATALOG.package}
    for want in CATALOG.want:
        assert {want.package, f"{want.package}-*"} & names
        assert bool(want.tools) != bool(want.part)
    for row in CATALOG.package:
        assert {*row.names} <= managers | systems and {*row.options} <= managers


def test_python_is_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(question: Question) -> ChosenPython:
        calls.append(question)
        return choose_python(question)

    monkeypatch.setattr(bootstrap, "choose_python", counted)
    plan_bootstrap(ask(linux_facts()), become=None)
    assert len(calls) == 1

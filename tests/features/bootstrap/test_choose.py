"""What is missing, what each package manager calls it, and who may install it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import ask, base_python, linux_facts, python, tool
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.bootstrap import choose as bootstrap
from torchbuild_tasks.features.bootstrap.choose import Bootstrap, plan_bootstrap, require_commands
from torchbuild_tasks.model import Facts, Host, Toolset, Windows
from torchbuild_tasks.plan.environment import ChosenPython, choose_python
from torchbuild_tasks.plan.question import Question

WHOLE = (*linux_facts().tools, tool("git", "2"), tool("ccache", "4"), tool("ld.lld", "14"))
CATALOG = load_catalog()


def planned(facts: Facts, *, administrator: bool = True, **flags: Any) -> Bootstrap:
    return plan_bootstrap(ask(facts, **flags), administrator=administrator)


def bare(distribution: str) -> Facts:
    own = base_python(version="3.11.2", headers=False, venv=False)
    host = Host(os="linux", arch="x86_64", distribution=distribution)
    return linux_facts(host=host, compilers=(), tools=(), pythons=(own,))


def test_a_complete_machine_misses_nothing() -> None:
    made = planned(linux_facts(tools=WHOLE))
    assert (made.missing, made.commands) == ((), ())


@pytest.mark.parametrize(
    ("distribution", "last"),
    [
        (
            "Debian GNU/Linux 12",
            "apt-get install --yes g++ git python3.11-dev python3.11-venv ninja-build ccache lld",
        ),
        (
            "Fedora Linux 42",
            "dnf install --assumeyes gcc-c++ git pkgconfig(python-3.11) ninja-build ccache lld",
        ),
        ("Arch Linux", "pacman -S --needed --noconfirm gcc git python ninja ccache lld"),
        (
            "openSUSE Leap 15.6",
            "zypper --non-interactive install gcc-c++ git pkgconfig(python-3.11) ninja ccache lld",
        ),
    ],
)
def test_every_manager_has_its_own_words(distribution: str, last: str) -> None:
    made = planned(bare(distribution))
    assert " ".join(made.commands[-1].argv) == last
    kinds = {each.package: each.kind for each in made.missing}
    assert (kinds["g++"], kinds["ccache"]) == ("needed", "faster")


def test_apt_learns_first_which_packages_there_are_and_needs_root() -> None:
    made = planned(bare("Ubuntu 24.04"), administrator=False)
    assert [command.argv[:4] for command in made.commands] == [
        ("sudo", "-n", "apt-get", "update"),
        ("sudo", "-n", "apt-get", "install"),
    ]
    assert planned(bare("Ubuntu 24.04"), administrator=False, manager="conda").commands[0].argv[0] == "conda"


def test_one_of_several_tools_is_enough() -> None:
    tools = (*WHOLE[:-2], tool("sccache", "0.8"), tool("mold", "2"))
    facts = linux_facts(tools=tools, compilers=(tool("clang++", "16"),))
    assert planned(facts).missing == ()


def test_a_windows_machine_gets_its_compiler() -> None:
    host = Host(os="windows", arch="x86_64", distribution="Windows 11")
    facts = linux_facts(host=host, compilers=(), tools=WHOLE, windows=Windows())
    (command,) = planned(facts, administrator=False).commands
    assert command.argv[0] == "winget"
    assert "Microsoft.VisualStudio.2022.BuildTools" in command.argv
    assert "VCTools" in command.argv[-1]
    toolset = Toolset(version="14.44", visual_studio="C:\\VS", cl="C:\\cl.exe")
    assert planned(linux_facts(host=host, tools=WHOLE, windows=Windows(toolsets=(toolset,)))).missing == ()


def test_one_call_a_package_where_the_manager_takes_one() -> None:
    host = Host(os="windows", arch="x86_64", distribution="Windows 11")
    made = planned(linux_facts(host=host, compilers=(), tools=(), windows=Windows()), manager="choco")
    assert [command.argv[3] for command in made.commands] == [
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
    names = {row.name for row in CATALOG.package}
    for want in CATALOG.want:
        assert {want.package, f"{want.package}-*"} & names
        assert bool(want.tools) != bool(want.part)
    for row in CATALOG.package:
        assert {*row.names, *row.options} <= managers


def test_python_is_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(question: Question) -> ChosenPython:
        calls.append(question)
        return choose_python(question)

    monkeypatch.setattr(bootstrap, "choose_python", counted)
    plan_bootstrap(ask(linux_facts()), administrator=False)
    assert len(calls) == 1

"""The names in the sentences of rows: what this machine has, and what is told when it has not."""

from __future__ import annotations

import dataclasses

import pytest

from tests.support.machines import linux_facts, plan_of, tool, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.core.diagnosis.machine import Machine
from torchbuild_tasks.model import Facts, Host

CATALOG = load_catalog()


def machine(facts: Facts | None = None, *, built: bool = True) -> Machine:
    facts = facts or linux_facts()
    return Machine(facts, plan_of(facts), CATALOG, built=built)


def on(distribution: str, os: str = "linux") -> Facts:
    return linux_facts(host=Host(os=os, arch="x86_64", distribution=distribution))


@pytest.mark.parametrize(
    ("distribution", "package", "command"),
    [
        ("Debian GNU/Linux 12", "g++", "sudo apt install g++"),
        ("Ubuntu 22.04.5 LTS", "g++-12", "sudo apt install g++-12"),
        ("Fedora Linux 42", "g++", "sudo dnf install gcc-c++"),
        ("Rocky Linux 9.4", "g++-12", "sudo dnf install gcc-toolset-12"),
        ("openSUSE Leap 15.6", "g++-13", "sudo zypper install gcc13-c++"),
        ("Arch Linux", "patchelf", "sudo pacman -S patchelf"),
        ("Arch Linux", "g++-12", "install g++-12"),
        ("Some Linux", "g++", "install g++"),
    ],
)
def test_a_package_has_the_name_of_its_distribution(distribution: str, package: str, command: str) -> None:
    assert machine(on(distribution)).value(f"package:{package}") == command


def test_the_first_sentence_whose_names_are_known_is_told() -> None:
    sentences = ("{gpus} are here.", "Up to {1}: {g++<={1}}.", "Install g++-{1}.")
    facts = linux_facts(compilers=(tool("g++", "14.2.0"), tool("g++", "13.1.0", path="/usr/bin/g++-13")))
    assert machine(facts).fill(sentences, ("13",)) == "Up to 13: /usr/bin/g++-13."
    assert machine(facts).fill(sentences, ("12",)) == "Install g++-12."
    assert machine(facts).fill(sentences, ()) == ""


def test_the_newest_compiler_that_fits_is_named() -> None:
    compilers = [tool("g++", f"{n}.1.0", path=f"/usr/bin/g++-{n}") for n in (9, 11, 14)]
    assert machine(linux_facts(compilers=tuple(compilers))).value("g++<=13") == "/usr/bin/g++-11"
    assert machine(linux_facts(compilers=tuple(compilers))).value("g++<=8") == ""


def test_only_the_log_of_the_build_itself_tells_of_its_jobs() -> None:
    assert machine().value("planned jobs") == "8"
    assert machine().value("jobs") == "4"
    assert machine(built=False).value("planned jobs") == ""
    assert machine(built=False).value("jobs") == "4"


def test_without_a_checkout_its_paths_are_not_made_up() -> None:
    facts = with_tree(linux_facts(), problem="no PyTorch checkout")
    assert (machine(facts).value("source"), machine(facts).value("python")) == (".", "python")
    assert machine().value("source") == linux_facts().tree.root


def test_a_value_of_a_message_is_no_name() -> None:
    assert machine().fill(("It is {1}.",), ("{jobs}",)) == "It is {jobs}."


def test_the_machine_is_not_changed() -> None:
    facts = linux_facts()
    machine(facts).fill(("{jobs}",), ())
    assert facts == dataclasses.replace(facts)

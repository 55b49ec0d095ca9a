"""The Python that gets torch, its environment, and what is installed there."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.support.for_each import each_case
from tests.support.machines import (
    ROOT,
    ask,
    base_python,
    found,
    linux_facts,
    modern_tree,
    plan_of,
    plan_of_question,
    python,
    settings,
    statuses,
    tool,
    tree,
    with_tree,
)
from tests.support.windows import windows_facts
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.model import Facts, Host, Previous, Python, Tool
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.environment import choose_python
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

OTHERS = ("typing-extensions", "filelock", "sympy", "networkx", "Jinja2", "fsspec", "packaging")
FULL = {
    "pip": "24.0",
    "setuptools": "69.5",
    "wheel": "0.43",
    "numpy": "1.26.4",
    "PyYAML": "6.0.1",
    **dict.fromkeys(OTHERS, "4.12"),
}


def machine(*pythons: Python, **changes: Any) -> Facts:
    return linux_facts(pythons=pythons, **changes)


def installed(facts: Facts, **flags: Any) -> set[str]:
    """Names of the requirements that the plan would install."""
    command = plan_of(facts, **flags).environment.install
    if command is None:
        return set()
    return {Requirement(word).name for word in command.argv[4:] if not word.startswith("--")}


# ---------------------------------------------------------------- which interpreter


def test_a_venv_of_the_users_is_used_as_it_is() -> None:
    plan = plan_of(machine(python()))
    assert plan.environment.python == "/venv/bin/python"
    assert plan.environment.create is None
    assert plan.environment.foreign


def test_the_environment_of_this_tool_is_left_alone_unless_it_is_named() -> None:
    found_on_path = machine(python(tool=True))
    plan = plan_of(found_on_path)
    assert plan.environment.python == "/src/pytorch/.torchbuild/venv-3.11/bin/python"
    assert not plan.environment.foreign
    assert plan_of(found_on_path, python="/venv/bin/python").environment.foreign


def test_a_change_of_the_users_environment_is_announced() -> None:
    facts = machine(python(packages={"pip": "24.0"}))
    assert statuses(plan_of(facts).findings, "python-foreign") == ["ok"]
    assert not statuses(plan_of(facts, yes=True).findings, "python-foreign")
    assert not statuses(plan_of(machine(base_python())).findings, "python-foreign")


def test_a_conda_environment_is_used_as_it_is() -> None:
    plan = plan_of(machine(python(executable="/opt/conda/bin/python", environment="conda")))
    assert (plan.environment.python, plan.environment.create) == ("/opt/conda/bin/python", None)


def test_a_venv_of_ours_needs_no_yes() -> None:
    ours = "/src/pytorch/.torchbuild/venv-3.11/bin/python"
    assert not plan_of(machine(python(executable=ours, managed=True))).environment.foreign


def test_the_machines_own_python_gets_a_venv_inside_the_checkout() -> None:
    plan = plan_of(machine(base_python(packages=FULL)))
    environment = plan.environment
    assert environment.python == "/src/pytorch/.torchbuild/venv-3.11/bin/python"
    assert environment.create is not None
    assert environment.create.argv == ("/usr/bin/python3", "-m", "venv", "/src/pytorch/.torchbuild/venv-3.11")
    assert not environment.foreign
    assert "venv" in next(choice.because for choice in plan.choices if choice.name == "python")


def test_a_venv_that_is_not_recorded_as_ours_is_announced_to_be_made_anew() -> None:
    """As it is where the command runs under another HOME."""
    own = "/src/pytorch/.torchbuild/venv-3.11"
    strange = machine(base_python(packages=FULL), strange_venvs=(own,))
    finding = found(plan_of(strange).findings, "python-venv")
    assert (finding.status, "moves it aside" in finding.text) == ("warn", True)
    assert "torchbuild trust /src/pytorch" in finding.fix
    other = machine(base_python(packages=FULL), strange_venvs=(f"{own}0",))
    assert not statuses(plan_of(other).findings, "python-venv")


@pytest.mark.parametrize("version", ["2.8.0a0", "2.13.0"])
def test_the_machines_own_python_is_never_changed(version: str) -> None:
    plan = plan_of(with_tree(machine(base_python()), version=version), mode="wheel")
    commands = [plan.environment.install, plan.compile, plan.way.ninja]
    assert not [command for command in commands if command and command.argv[0] == "/usr/bin/python3"]
    assert plan.environment.create
    assert "pip" not in plan.environment.create.argv
    assert "/usr/bin" not in [op.value for op in plan.env if op.op == "prepend"]


def test_a_venv_on_windows_lies_in_scripts() -> None:
    facts = machine(
        base_python(executable="C:\\Python311\\python.exe"),
        host=Host(os="windows", arch="x86_64"),
        tree=tree(root="C:\\src\\pytorch", build_dir="C:\\src\\pytorch\\build"),
    )
    wanted = "C:\\src\\pytorch\\.torchbuild\\venv-3.11\\Scripts\\python.exe"
    assert choose_python(ask(facts)).environment.python == wanted


OLD = base_python(executable="/usr/bin/python3.9", version="3.9.18")
NEW = base_python(executable="/usr/bin/python3.15", version="3.15.0")
PYPY = base_python(executable="/usr/bin/pypy3", version="3.11.7", implementation="PyPy")
BROKEN = base_python(executable="/usr/bin/python3.13", version=None, problem="it ended with exit code 1")


@each_case(
    ("pythons", "version", "executable"),
    [
        ((NEW, base_python()), "2.8.0a0", "/usr/bin/python3"),
        ((base_python(), NEW), "2.8.0a0", "/usr/bin/python3"),
        ((OLD, base_python()), "2.8.0a0", "/usr/bin/python3.9"),
        ((OLD, base_python()), "2.13.0", "/usr/bin/python3"),
        ((PYPY, base_python()), "2.8.0a0", "/usr/bin/python3"),
        ((BROKEN, base_python()), "2.8.0a0", "/usr/bin/python3"),
        ((BROKEN, NEW), "2.8.0a0", "/usr/bin/python3.15"),
        ((BROKEN,), "2.8.0a0", "/usr/bin/python3.13"),
    ],
)
def test_the_first_that_fits_this_torch(pythons: tuple[Python, ...], version: str, executable: str) -> None:
    chosen = choose_python(ask(with_tree(machine(*pythons), version=version)))
    assert chosen.python is not None
    assert chosen.python.executable == executable


@pytest.mark.parametrize(
    ("flags", "said", "source"),
    [
        ({"python": "/venv/bin/python"}, {"python": "3.12"}, "flag"),
        ({}, {"python": "/venv/bin/python"}, "torchbuild.toml"),
        ({}, {}, "default"),
    ],
)
def test_who_asked_for_it(flags: dict[str, str], said: dict[str, str], source: str) -> None:
    choice = choose_python(ask(machine(python()), settings(said), **flags)).choice
    assert choice.source == source
    assert "3.11.7" in choice.because


@pytest.mark.parametrize("asked", ["3.12", "/usr/bin/python3.12"])
def test_the_one_asked_for_is_taken_from_a_dump_too(asked: str) -> None:
    """`plan --facts FILE --python 3.12`: the dump lists what that machine has."""
    other = base_python(executable="/usr/bin/python3.12", version="3.12.1")
    chosen = choose_python(ask(machine(base_python(), other), python=asked))
    assert chosen.python is not None
    assert chosen.python.executable == "/usr/bin/python3.12"


# ---------------------------------------------------------------- what is wrong with it


def test_too_new_names_one_that_fits() -> None:
    first = replace(NEW, environment="venv")
    plan = plan_of(machine(first))
    finding = found(plan.findings, "python")
    assert (finding.status, plan.verdict) == ("error", "refuse")
    assert "3.15.0" in finding.text
    assert "does not fit: torch 2.8 builds for Python >=3.9,<3.14" in finding.text


@each_case(
    ("pythons", "id", "says", "fix"),
    [
        ((), "python", "no Python interpreter was found", "--python"),
        ((BROKEN,), "python", "it ended with exit code 1", "--python"),
        ((NEW,), "python", "does not fit", "--python"),
        ((PYPY,), "python", "PyPy", "--python"),
        ((base_python(bits=32),), "python-bits", "32-bit", "64-bit"),
        ((base_python(headers=False),), "python-headers", "Python.h", "apt install python3.11-dev"),
        ((base_python(venv=False),), "python-venv", "cannot make a venv", "apt install python3.11-venv"),
        ((python(packages={"setuptools": "69.5"}),), "python-pip", "has no pip", "-m ensurepip"),
        ((python(packages={}),), "python-pip", "has no pip", "-m ensurepip"),
    ],
)
def test_what_makes_it_impossible(pythons: tuple[Python, ...], id: str, says: str, fix: str) -> None:
    plan = plan_of(machine(*pythons))
    finding = found(plan.findings, id)
    assert (finding.status, plan.verdict) == ("error", "refuse")
    assert says in finding.text
    assert fix in finding.fix


def test_pip_is_asked_of_the_venv_that_gets_torch_and_not_of_what_made_it() -> None:
    """A uv venv and a uv tool have no pip; the checkout's own venv has it."""
    own = {"executable": f"{ROOT}/.torchbuild/venv-3.11/bin/python", "managed": True}
    made = python(packages=FULL, **own)
    assert statuses(plan_of(machine(base_python(packages={}), made)).findings, "python-pip") == []
    broken = python(packages={}, **own)
    finding = found(plan_of(machine(base_python(packages=FULL), broken)).findings, "python-pip")
    assert finding.text == f"{own['executable']} has no pip"
    assert finding.fix == f"{own['executable']} -m ensurepip"


def test_uv_brings_pip_where_its_venv_has_none() -> None:
    bare = replace(machine(python(packages={})), tools=(Tool(name="uv", path="/usr/bin/uv"),))
    plan = plan_of(bare)
    assert not statuses(plan.findings, "python-pip")
    assert plan.environment.install is not None
    assert plan.environment.install.argv[:3] == ("/usr/bin/uv", "pip", "install")
    assert plan.environment.install.argv[-1] == "pip"
    assert statuses(plan_of(bare, installer="pip").findings, "python-pip") == ["error"]


def test_a_python_that_the_sources_take_and_no_wheel_is_for() -> None:
    old = base_python(version="3.8.10")
    states = [
        found(plan_of(with_tree(machine(old), version=version)).findings, "python").status
        for version in ("2.4.1", "2.5.1", "2.6.0")
    ]
    assert states == ["ok", "unknown", "error"]


def test_a_machine_whose_pythons_have_32_bits() -> None:
    facts = machine(base_python(bits=32), host=Host(os="linux", arch="armv7l"))
    assert "python-bits" not in {each.id for each in plan_of(facts).findings}


def test_an_experimental_python_is_taken_and_not_advised() -> None:
    facts = with_tree(machine(base_python(version="3.10.12", abi="cpython-310")), version="2.15.0")
    assert found(plan_of(facts).findings, "python").fix.endswith("--python 3.14")
    facts = with_tree(machine(base_python(version="3.15.0", abi="cpython-315")), version="2.15.0")
    assert found(plan_of(facts).findings, "python").status == "ok"


def test_python_2_is_refused_in_words_that_are_so() -> None:
    """Upstream built torch 1.4 for it."""
    facts = with_tree(machine(base_python(version="2.7.17", abi="cp27mu")), version="1.4.1")
    finding = found(plan_of(facts).findings, "python")
    assert finding.status == "error" and "upstream's last for Python 2.7 is 1.4" in finding.text


def test_an_interpreter_that_names_no_version_is_unknown_and_not_refused() -> None:
    plan = plan_of(machine(python(version=None)))
    assert statuses(plan.findings, "python") == ["unknown"]


@pytest.mark.parametrize(
    "sound",
    [
        python(),
        python(venv=False),
        python(headers=None),
        base_python(packages={"setuptools": "69.5"}),
        base_python(venv=None),
    ],
)
def test_what_is_not_wrong(sound: Python) -> None:
    plan = plan_of(machine(sound))
    assert [f for f in plan.findings if f.status == "error" and f.id.startswith("python")] == []


def test_the_sample_needs_no_headers() -> None:
    facts = with_tree(machine(base_python(headers=False)), sample=True)
    assert statuses(plan_of(facts).findings, "python-headers") == []


# ---------------------------------------------------------------- what is installed


def test_a_complete_environment_needs_nothing() -> None:
    assert plan_of(machine(python(packages=FULL))).environment.install is None


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"setuptools": "80.9"}, {"setuptools"}),
        ({"PyYAML": None}, {"pyyaml"}),
        ({"typing-extensions": None}, {"typing_extensions"}),
        ({"sympy": None, "fsspec": None}, {"sympy", "fsspec"}),
    ],
)
def test_what_is_missing_or_of_the_wrong_version(change: dict[str, str | None], missing: set[str]) -> None:
    packages = {name: version for name, version in {**FULL, **change}.items() if version}
    assert installed(machine(python(packages=packages))) == missing


def test_a_new_venv_lacks_everything_that_the_machine_has() -> None:
    names = installed(machine(base_python(packages=FULL)))
    assert {"setuptools", "numpy", "pyyaml"} <= names


def test_installing_goes_through_the_pip_of_the_target() -> None:
    command = plan_of(machine(base_python())).environment.install
    assert command is not None
    assert command.argv[:4] == ("/src/pytorch/.torchbuild/venv-3.11/bin/python", "-m", "pip", "install")


@pytest.mark.parametrize(
    ("tools", "version", "missing"),
    [
        ((tool("cmake", "3.28.1"), tool("ninja", "1.11.1")), "2.8.0a0", set()),
        ((tool("cmake", "3.20.0"), tool("ninja", "1.11.1")), "2.8.0a0", {"cmake"}),
        ((tool("cmake", "4.1.0"), tool("ninja", "1.11.1")), "2.5.1", {"cmake"}),
        ((tool("cmake", "4.1.0"), tool("ninja", "1.11.1")), "2.8.0a0", set()),
        ((tool("cmake", "3.28.1"),), "2.8.0a0", {"ninja"}),
        (
            (Tool(name="cmake", looked=("PATH",)), Tool(name="ninja", looked=("PATH",))),
            "2.8.0a0",
            {"cmake", "ninja"},
        ),
        ((), "2.8.0a0", {"cmake", "ninja"}),
    ],
)
def test_cmake_and_ninja_come_from_path_when_they_fit(
    tools: tuple[Tool, ...], version: str, missing: set[str]
) -> None:
    facts = with_tree(machine(python(packages=FULL), tools=tools), version=version)
    assert installed(facts) == missing


def test_an_old_tree_gets_a_cmake_below_4_and_says_so() -> None:
    facts = with_tree(machine(base_python(), tools=(tool("cmake", "4.1.0"),)), version="2.5.1")
    plan = plan_of(facts)
    assert plan.environment.install is not None
    (wanted,) = [word for word in plan.environment.install.argv if word.startswith("cmake")]
    assert not Requirement(wanted).specifier.contains("4.0.0")
    assert Requirement(wanted).specifier.contains("3.28.1")
    assert found(plan.findings, "cmake").status == "ok"


def wanted_cmake(facts: Facts) -> list[Requirement]:
    command = plan_of(facts).environment.install
    words = command.argv[4:] if command else ()
    return [Requirement(word) for word in words if word.startswith("cmake")]


@pytest.mark.parametrize("requires", [("cmake", "ninja"), ("cmake>=3.18",)])
def test_what_the_checkout_requires_does_not_bring_a_cmake_over_the_one_that_fits(
    requires: tuple[str, ...],
) -> None:
    """Upstream's pyproject.toml says `cmake` without a ceiling, and pip would bring 4."""
    facts = with_tree(machine(python(packages=FULL)), version="2.5.1", requires=requires)
    assert not [requirement for requirement in wanted_cmake(facts) if requirement.specifier.contains("4.0.0")]


def test_a_cmake_of_the_environment_that_does_not_fit_would_hide_the_one_on_path() -> None:
    """The environment's folder comes first on PATH."""
    packages = {**FULL, "cmake": "4.1.0"}
    facts = with_tree(machine(python(packages=packages)), version="2.5.1")
    assert [str(requirement.specifier) for requirement in wanted_cmake(facts)] != []


def test_a_cmake_in_the_environment_serves_too() -> None:
    packages = {**FULL, "cmake": "3.30.1", "ninja": "1.11.1"}
    assert installed(machine(python(packages=packages), tools=())) == set()


@pytest.mark.parametrize(("mode", "wanted"), [("wheel", True), ("develop", False)])
def test_a_wheel_of_the_newer_era_needs_build(mode: str, wanted: bool) -> None:
    assert ("build" in installed(linux_facts(tree=modern_tree()), mode=mode)) is wanted
    assert "build" not in installed(linux_facts(), mode=mode)


def test_the_newer_era_adds_what_the_checkout_requires() -> None:
    assert "scikit-build-core" in installed(linux_facts(tree=modern_tree()))


@each_case(
    ("os", "arch", "requires", "wanted"),
    [
        ("linux", "x86_64", 'tomli>=2; python_version < "3.12"', True),
        ("linux", "x86_64", 'tomli>=2; python_version < "3.11"', False),
        ("linux", "x86_64", 'tomli>=2; python_full_version >= "3.11.7"', True),
        ("linux", "x86_64", 'tomli>=2; sys_platform == "linux"', True),
        ("windows", "x86_64", 'tomli>=2; sys_platform == "linux"', False),
        ("windows", "x86_64", 'tomli>=2; sys_platform == "win32"', True),
        ("windows", "x86_64", 'tomli>=2; platform_system == "Windows"', True),
        ("windows", "x86_64", 'tomli>=2; os_name == "nt"', True),
        ("linux", "aarch64", 'tomli>=2; platform_machine == "aarch64"', True),
        ("linux", "aarch64", 'tomli>=2; platform_machine == "x86_64"', False),
        ("linux", "x86_64", "what is this?", False),
    ],
)
def test_markers_are_read_for_the_machine_that_is_planned_for(
    os: str, arch: str, requires: str, wanted: bool
) -> None:
    facts = with_tree(linux_facts(host=Host(os=os, arch=arch)), requires=(requires,))
    assert ("tomli" in installed(facts)) is wanted


def test_another_torch_is_removed_before_setup_py_develop() -> None:
    """setup.py develop leaves it there, and it would be imported instead."""
    packages = {**python().packages, "torch": "2.13.0"}
    other = linux_facts(pythons=(python(packages=packages),))
    removal = plan_of(other).environment.remove
    assert removal is not None
    assert removal.argv[1:] == ("-m", "pip", "uninstall", "--yes", "torch")
    own = linux_facts(pythons=(python(packages=packages, torch_from=ROOT),))
    assert plan_of(own).environment.remove is None
    modern = linux_facts(pythons=(python(packages=packages),), tree=modern_tree())
    assert plan_of(modern).environment.remove is None  # pip install -e does it itself


def test_what_the_newer_era_installed_is_removed_on_the_way_back() -> None:
    """It leads to this checkout as well, but stands before what setup.py develop leaves."""
    packages = {**python().packages, "torch": "2.14.0"}
    installed = python(packages=packages, torch_from=ROOT)
    now = linux_facts(pythons=(installed,))
    for era, gone in (("scikit-build-core", True), ("setuptools", False)):
        facts = with_tree(now, previous=Previous(result="ok", inputs={"era": era}))
        assert (plan_of(facts).environment.remove is not None) is gone


def test_a_backport_is_never_installed() -> None:
    facts = linux_facts(tree=tree(requires=("dataclasses", "astunparse")))
    install = plan_of(facts).environment.install
    assert install is not None
    assert "astunparse" in install.argv
    assert "dataclasses" not in install.argv


def test_a_missing_version_is_reported_with_the_installed_ones() -> None:
    question = replace(ask(), request=BuildRequest(python="3.12", facts="machine.json"))
    finding = found(plan_of_question(question).findings, "python")
    assert finding.text == "no Python 3.12 was found; there is 3.11.7 (/venv/bin/python)"


@pytest.mark.parametrize("asked", ["3.11", "python3.11", "python3", "/x/../venv/bin/python", "/venv/"])
def test_an_interpreter_of_a_dump_has_many_names(asked: str) -> None:
    first = python(version="3.13.1", executable="/usr/bin/python3", prefix="/usr")
    others = () if asked == "python3" else (first,)
    facts = replace(linux_facts(), pythons=(*others, *linux_facts().pythons))
    question = replace(ask(facts), request=BuildRequest(python=asked, facts="machine.json"))
    assert plan_of_question(question).environment.python == "/venv/bin/python"
    slashes = python(executable="C:\\Python311\\python.exe", environment="venv")
    facts = replace(windows_facts(), pythons=(slashes,))
    question = replace(ask(facts), request=BuildRequest(python="c:/Python311/python.exe", facts="m.json"))
    assert plan_of_question(question).environment.python == slashes.executable


ASKED = [("3.12", "3.12"), ("3.13t", "3.13t"), ("3.8", "3.13"), ("python3.12", "3.12")]


@pytest.mark.parametrize(("asked", "brought"), ASKED)
def test_a_version_that_is_not_here_is_brought(asked: str, brought: str) -> None:
    absent = python(executable=asked, version=None, problem="not found")
    facts = linux_facts(pythons=(absent,), tree=tree(version="2.6.0"))
    fix = found(plan_of(facts, python=asked).findings, "python").fix
    assert fix.endswith(f"uv python install {brought}, and name it: --python {brought}")


def test_a_version_that_this_torch_is_not_built_for_is_not_advised() -> None:
    question = replace(ask(), request=BuildRequest(python="3.8", facts="machine.json"))
    finding = found(plan_of_question(question).findings, "python")
    assert "builds for Python >=3.9" in finding.text
    assert finding.fix == "Use /venv/bin/python: --python /venv/bin/python"


@pytest.mark.parametrize(("torch", "series"), [("2.1.0a0", "3.11"), ("2.6.0a0", "3.13"), ("1.9.0a0", "3.9")])
def test_the_newest_python_that_fits_is_named(torch: str, series: str) -> None:
    facts = linux_facts(pythons=(python(version="3.5.2"),), tree=tree(version=torch))
    fix = found(plan_of(facts).findings, "python").fix
    assert fix == f"pip install uv, then uv python install {series}, and name it: --python {series}"


def test_a_python_that_uv_no_longer_has_comes_from_conda() -> None:
    facts = linux_facts(pythons=(python(version="3.11.7"),), tree=tree(version="1.1.0a0"))
    fix = found(plan_of(facts).findings, "python").fix
    assert fix.startswith("conda create -n py3.7 -c conda-forge python=3.7, with conda from https://")
    assert fix.endswith(", and name the one in it: --python PATH")


def test_a_uv_that_is_here_brings_the_python_that_was_asked_for() -> None:
    facts = replace(linux_facts(), tools=(*linux_facts().tools, Tool(name="uv", path="/usr/bin/uv")))
    for asked, series in (("3.12", "3.12"), ("/no/python", "3.13")):
        question = replace(ask(facts), request=BuildRequest(python=asked, facts="machine.json"))
        fix = found(plan_of_question(question).findings, "python").fix
        assert fix.endswith(f"Or /usr/bin/uv python install {series}, and name it: --python {series}")


@pytest.mark.parametrize("abi", ["cpython-312", "cp312-mingw_x86_64_ucrt_gnu"])
def test_a_python_of_msys2_is_not_for_msvc(abi: str) -> None:
    msys = python(version="3.12.4", executable="C:\\msys64\\ucrt64\\bin\\python.exe", abi=abi)
    facts = windows_facts()
    finding = found(plan_of(replace(facts, pythons=(msys,))).findings, "python")
    assert (finding.status, "GCC made it" in finding.text) == ("error", True)
    assert found(plan_of(replace(facts, pythons=(msys, *facts.pythons))).findings, "python").status == "ok"


@pytest.mark.parametrize("mode", ["develop", "wheel"])
def test_a_list_of_pythons_is_for_builds_of_wheels(mode: str) -> None:
    finding = found(plan_of(linux_facts(), python="3.10,3.11", mode=mode).findings, "python")
    assert finding.status == "error" and "names several" in finding.text
    assert finding.fix.startswith("Name one: --python 3.10")  # `plan` takes no list with either


def test_a_path_with_a_blank_is_one_word_of_a_fix() -> None:
    spaced = "/my pythons/bin/python3"
    facts = linux_facts(pythons=(python(version="3.6.9"), python(version="3.12.4", executable=spaced)))
    fix = found(plan_of(facts, python="3.6").findings, "python").fix
    assert fix == f'Use {spaced}: --python "{spaced}"'


def test_a_checkout_in_other_letters_is_refused_where_lc_all_keeps_python_from_reading_its_name() -> None:
    """LC_ALL=C, and a path that is not ASCII: Python before 3.13 dies of the .pth file that names it."""
    forced = Host(os="linux", arch="x86_64", libc="glibc 2.36", lc_all="C")
    abroad = with_tree(linux_facts(host=forced), root="/home/Müller/pytorch")
    found = [each for each in plan_of(abroad).findings if each.id == "python-locale"]
    assert [each.status for each in found] == ["error"]
    newer = replace(abroad, pythons=(python(version="3.13.1"),))
    ways_out = (
        plan_of(abroad, mode="wheel"),
        plan_of(replace(abroad, host=replace(forced, lc_all="C.UTF-8"))),
        plan_of(replace(abroad, host=replace(forced, lc_all=None))),
        plan_of(newer),
        plan_of(with_tree(abroad, root="/home/mueller/pytorch")),
    )
    assert not [each for plan in ways_out for each in plan.findings if each.id == "python-locale"]


THREADED = base_python(
    version="3.13.1", executable="/usr/bin/python3.13t", abi="cpython-313t-x86_64-linux-gnu"
)
USUAL = base_python(version="3.13.1", executable="/usr/bin/python3.13", abi="cpython-313-x86_64-linux-gnu")


@each_case(
    ("asked", "executable", "folder"),
    [
        ("3.13t", "/usr/bin/python3.13t", "venv-3.13t"),
        ("3.13", "/usr/bin/python3.13", "venv-3.13"),
        ("3.13.1t", "/usr/bin/python3.13t", "venv-3.13t"),
    ],
)
def test_a_free_threaded_python_is_asked_for_by_its_t(asked: str, executable: str, folder: str) -> None:
    facts = with_tree(machine(THREADED, USUAL), version="2.6.0a0")
    chosen = choose_python(ask(facts, python=asked))
    assert chosen.python is not None and chosen.python.executable == executable
    assert f"/{folder}/" in chosen.environment.python


def test_a_free_threaded_python_is_called_so() -> None:
    plan = plan_of(with_tree(machine(THREADED), version="2.6.0a0"))
    assert "3.13.1t, free-threaded" in next(each for each in plan.choices if each.name == "python").because
    assert "experimental" in found(plan.findings, "python").text


def test_an_unusual_abi_is_not_taken_for_the_usual_one() -> None:
    facts = with_tree(machine(USUAL), version="2.6.0a0")
    question = Question(BuildRequest(python="3.13t", facts="other.json"), facts, load_catalog())
    finding = found(plan_of_question(question).findings, "python")
    assert finding.status == "error"


def test_a_cmake_that_any_python_starts_is_not_what_a_venv_needs() -> None:
    here = linux_facts(pythons=(base_python(),)).tools
    loose = tuple(replace(each, by_any_python=each.name == "cmake") for each in here)
    assert "cmake" not in installed(machine(base_python()))
    assert "cmake" in installed(machine(base_python(), tools=loose))


def test_a_python_that_cannot_be_asked_has_no_version_to_name() -> None:
    lost = Python(executable="/nothere", found_via="given path", problem="does not exist")
    (choice,) = [
        each
        for each in plan_of(linux_facts(pythons=(lost,)), python="/nothere").choices
        if each.name == "python"
    ]
    assert choice.because.endswith("given path")

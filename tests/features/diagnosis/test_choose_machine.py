"""The names in the sentences of rows: what this machine has, and what is told when it has not."""

from __future__ import annotations

from tests.support.for_each import each_case
from tests.support.machines import linux_facts, plan_of, tool, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.model import Cuda, Facts, Host, Previous, Toolkit, Toolset, Windows
from torchbuild_tasks.values import replace

CATALOG = load_catalog()


def machine(facts: Facts | None = None, *, built: bool = True) -> Machine:
    facts = facts or linux_facts()
    return Machine(facts, plan_of(facts), CATALOG, built=built)


def on(distribution: str, os: str = "linux") -> Facts:
    return linux_facts(host=Host(os=os, arch="x86_64", distribution=distribution))


@each_case(
    ("distribution", "package", "command"),
    [
        ("Debian GNU/Linux 12", "g++", "sudo apt install g++"),
        ("Ubuntu 22.04.5 LTS", "g++-12", "sudo apt install g++-12"),
        ("Fedora Linux 42", "g++", "sudo dnf install gcc-c++"),
        ("Rocky Linux 9.4", "g++-12", "sudo dnf install gcc-toolset-12"),
        ("openSUSE Leap 15.6", "g++-13", "sudo zypper install gcc13-c++"),
        ("Arch Linux", "patchelf", "sudo pacman -S patchelf"),
        ("Arch Linux", "g++-14", "sudo pacman -S gcc14"),
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


def test_a_clang_and_a_toolset_below_a_limit_are_named() -> None:
    compilers = tuple(tool("clang++", f"{n}.0.6", path=f"/usr/bin/clang++-{n}") for n in (14, 15, 16))
    assert machine(linux_facts(compilers=compilers)).value("clang++<16") == "/usr/bin/clang++-15"
    assert machine(linux_facts(compilers=compilers)).value("clang++<=16") == "/usr/bin/clang++-16"
    toolsets = (
        Toolset(version="14.29.30133", visual_studio="C:\\VS", cl="C:\\VS\\cl.exe"),
        Toolset(version="14.38.33130", visual_studio="C:\\VS"),  # for 32-bit programs only
        Toolset(version="14.44.35207", visual_studio="C:\\VS", cl="C:\\VS\\cl.exe"),
    )
    facts = linux_facts(windows=Windows(toolsets=toolsets))
    assert machine(facts).value("toolset<14.40") == "14.29.30133"
    assert machine(facts).value("toolset<=14.44") == "14.44.35207"
    assert machine(facts).value("toolset<14.29") == ""
    assert machine().value("toolset<14.40") == ""


def test_a_toolkit_that_compiles_is_named_and_no_other() -> None:
    toolkits = (
        Toolkit(path="/opt/headers", found_via="PATH"),
        Toolkit(path="/opt/broken", found_via="PATH", nvcc="/opt/broken/bin/nvcc", problem="it does not run"),
        Toolkit(path="/opt/cuda", found_via="PATH", nvcc="/opt/cuda/bin/nvcc"),
    )
    assert machine(linux_facts(cuda=Cuda(toolkits=toolkits))).value("cuda toolkit") == "/opt/cuda"
    assert machine(linux_facts(cuda=Cuda(toolkits=toolkits[:2]))).value("cuda toolkit") == ""


def test_a_symptom_at_run_time_goes_back_to_what_the_last_good_build_was_made_of() -> None:
    inputs = {"variable TORCH_CUDA_ARCH_LIST": "8.6;9.0", "cuda toolkit": "/opt/cuda 12.4"}
    for result, archs in (("ok", "8.6;9.0"), ("failed", "")):
        facts = with_tree(linux_facts(), previous=Previous(result=result, inputs=inputs))
        assert machine(facts, built=False).value("built TORCH_CUDA_ARCH_LIST") == archs
    assert machine(with_tree(linux_facts(), previous=Previous(result="ok"))).value("built USE_CUDA") == ""


def test_a_command_can_be_typed_as_it_is_said() -> None:
    facts = with_tree(linux_facts(), root="/home/me/my torch")
    commands = ("x --source {source} --set A={1}", "x --source {source}", "x")
    assert machine(facts).fill_command(commands, ("-O2",)) == 'x --source "/home/me/my torch" --set A=-O2'
    for said in ("a b", "$(rm -rf ~)", "a;b", "a'b", 'a"b', "a`b`", "a|b", "%(x)s", ""):
        assert machine(facts).fill_command(commands, (said,)) == 'x --source "/home/me/my torch"'
    assert machine(with_tree(linux_facts(), root="/a$b/c")).fill_command(commands, ("-O2",)) == "x"


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
    assert facts == replace(facts)


def test_what_brings_submodules_depends_on_what_this_folder_is() -> None:
    row = next(row for row in CATALOG.failure if row.id == "submodule-missing")
    told = machine().fill_command(row.command, ())
    assert told == "torchbuild source update --source /src/pytorch"
    for changes in ({"git": False}, {"linkless": ("third_party/fmt",)}):
        plain = machine(with_tree(linux_facts(), **changes))
        assert plain.fill_command(row.command, ()) == "torchbuild source get 2.8.0 --source /src/pytorch-git"
        assert "/src/pytorch-git" in plain.fill(row.fix, ())
    nowhere = machine(with_tree(linux_facts(), problem="no such folder", version=None))
    assert nowhere.fill_command(row.command, ()) == "torchbuild source update"


def test_a_toolkit_that_is_too_new_is_told_with_one_that_fits() -> None:
    row = next(row for row in CATALOG.failure if row.id == "cub-missing")
    old = machine(with_tree(linux_facts(), version="2.6.0a0"))
    assert old.fill_command(row.command, ()) == "torchbuild build --cuda --cuda-toolkit pypi:12.4"

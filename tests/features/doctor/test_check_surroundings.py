"""What gets into a build from around it: conda, variables, other torches, trees and CUDAs."""

from __future__ import annotations

from typing import Any

from tests.features.doctor.views import check, checks, health
from tests.support.cuda import cuda_facts, toolkit
from tests.support.for_each import each_case
from tests.support.machines import ROOT, linux_facts, python, tool, with_tree
from torchbuild_tasks.model import CMakeCache, Facts, OtherTree
from torchbuild_tasks.values import replace

CONDA = "/opt/conda/envs/work"
GIT = (*linux_facts().tools, tool("git", "2.39.5"))


def conda_facts(**changes: Any) -> Facts:
    own = python(executable=f"{CONDA}/bin/python", environment="conda", prefix=CONDA)
    return linux_facts(pythons=(own,), **changes)


def test_nothing_of_conda_is_nothing_to_say() -> None:
    assert check("conda").status == "ok"


def test_condas_ld_with_the_systems_compiler() -> None:
    facts = conda_facts(tools=(*linux_facts().tools, tool("ld", "2.38", f"{CONDA}/bin/ld")))
    found = check("conda", facts, health(environ={"CONDA_PREFIX": CONDA}))
    assert found.status == "warn"
    assert f"{CONDA}/bin/ld" in found.text


def test_condas_compiler_for_another_python() -> None:
    compilers = (tool("g++", "12.2.0", f"{CONDA}/bin/g++"), tool("gcc", "12.2.0", f"{CONDA}/bin/gcc"))
    found = check("conda", linux_facts(compilers=compilers), health(environ={"CONDA_PREFIX": CONDA}))
    assert found.status == "warn"
    assert "--set CXX=" in found.fix


def test_search_paths_into_conda() -> None:
    seen = health(environ={"CONDA_PREFIX": CONDA, "LD_LIBRARY_PATH": f"/usr/lib:{CONDA}/lib"})
    assert "LD_LIBRARY_PATH" in check("conda", conda_facts(), seen).text
    prefix = {"CMAKE_PREFIX_PATH": CONDA}
    own = health(environ={"CONDA_PREFIX": CONDA, **prefix})
    assert check("conda", conda_facts(), own).status == "ok"
    assert check("conda", linux_facts(), own).status == "warn"


@each_case(
    "entry", ["/opt/conda/lib", "/home/ada/miniforge3/envs/t/lib", "/home/ada/Anaconda3/lib", "/x/micromamba"]
)
def test_a_conda_that_is_not_active_is_known_by_its_folder(entry: str) -> None:
    seen = health(environ={"LD_LIBRARY_PATH": f"/usr/lib:{entry}"})
    finding = check("conda", linux_facts(), seen)
    assert finding.status == "warn"
    assert "LD_LIBRARY_PATH" in finding.text
    other = health(environ={"LD_LIBRARY_PATH": "/opt/secondary/lib:/home/ada/anacondas/lib"})
    assert check("conda", linux_facts(), other).status == "ok"


def test_condas_own_folder_is_not_that_of_the_environment() -> None:
    """pytorch#16904: headers of an older torch in Anaconda's root came first."""
    root = health(environ={"CONDA_PREFIX": CONDA, "CMAKE_PREFIX_PATH": "/opt/conda"})
    finding = check("conda", conda_facts(), root)
    assert finding.status == "warn"
    assert "CMAKE_PREFIX_PATH leads into conda's /opt/conda:" in finding.text


def test_a_compiler_of_the_environment_is_not_one_of_condas_root() -> None:
    compilers = (tool("g++", "12.2.0", f"{CONDA}/bin/g++"), tool("gcc", "12.2.0", f"{CONDA}/bin/gcc"))
    base = python(executable="/opt/conda/bin/python", environment="conda", prefix="/opt/conda")
    facts = conda_facts(compilers=compilers)
    facts = replace(facts, pythons=(*facts.pythons, base))
    assert check("conda", facts, health(environ={"CONDA_PREFIX": CONDA})).status == "ok"


@each_case(("version", "status"), [("3.8.0", "warn"), ("3.11.7", "ok")])
def test_compiler_compat_matters_to_old_pythons_alone(version: str, status: str) -> None:
    old = python(executable=f"{CONDA}/bin/python", environment="conda", prefix=CONDA, version=version)
    seen = health(conda_linkers=(f"{CONDA}/compiler_compat/ld",))
    found = check("conda", linux_facts(pythons=(old,)), seen)
    assert found.status == status
    assert "compiler_compat/ld" in found.text


@each_case(
    ("names", "expected"),
    [
        (("NO_CUDA",), "Drop NO_CUDA: USE_CUDA=0"),
        (("WITH_DISTRIBUTED",), "--set USE_DISTRIBUTED=1"),
        (("USE_DISTRIBUTD",), "USE_DISTRIBUTED"),
        (("TORCHBUILD_JOBBS",), ""),  # the plan's finding
        (("NO_COLOR", "BUILD_NUMBER", "CMAKE_COLOR_DIAGNOSTICS", "USE_SOMETHING_ELSE"), ""),
    ],
)
def test_names_that_nothing_reads(names: tuple[str, ...], expected: str) -> None:
    found = check("names", seen=health(strangers=names))
    assert expected in found.fix
    assert found.status == ("warn" if expected else "ok")


def test_a_name_of_the_other_era() -> None:
    facts = linux_facts(environ={"SKBUILD_EDITABLE_REBUILD": "1"})
    found = check("names", facts)
    assert found.status == "warn"
    assert "setuptools" in found.text


def test_a_torch_in_the_way_of_the_built_one() -> None:
    seen = health(shadows=("/here/torch/__init__.py",), environ={"PYTHONPATH": "/here"})
    assert (found := check("shadow", seen=seen)).status == "warn"
    assert found.fix == "unset PYTHONPATH"
    here = health(shadows=(f"{ROOT}/torch/__init__.py",))
    assert check("shadow", seen=here).status == "ok"  # the editable install is that one
    assert "current folder" in check("shadow", seen=here, mode="wheel").text


def test_a_tree_that_was_moved() -> None:
    moved = with_tree(linux_facts(), cache=CMakeCache(home="/elsewhere/pytorch"))
    # `build --clean` refuses one that was copied without the times of its files.
    assert "rm -r /src/pytorch/build && torchbuild build" in check("trees", moved).fix
    others = (OtherTree(path=f"{ROOT}/build_old", home="/gone"), OtherTree(path=f"{ROOT}/build2", home=ROOT))
    found = checks("trees", seen=health(others=others))
    assert [finding.status for finding in found] == ["warn", "ok"]


def test_variables_that_lead_to_another_cuda() -> None:
    facts = cuda_facts(toolkit("12.8"), toolkit("11.8"))
    assert check("cudas", facts).status == "skipped"
    seen = health(environ={"CUDA_PATH": "/usr/local/cuda-11.8"})
    found = check("cudas", facts, seen, cuda=True, cuda_toolkit="12.8")
    assert (found.status, "11.8" in found.text, "12.8" in found.text) == ("warn", True, True)
    for name in ("CPATH", "LIBRARY_PATH"):
        seen = health(environ={name: "/opt/x:/usr/local/cuda-11.8/include"})
        assert name in check("cudas", facts, seen, cuda=True, cuda_toolkit="12.8").text
    assert check("cudas", facts, cuda=True, cuda_toolkit="12.8").status == "ok"


def test_the_stand_in_for_the_driver_is_for_linking_only() -> None:
    seen = health(environ={"LD_LIBRARY_PATH": "/opt/lib:/usr/local/cuda/lib64/stubs/"})
    finding = check("stubs", linux_facts(), seen)
    assert (finding.status, "/usr/local/cuda/lib64/stubs" in finding.text) == ("warn", True)


@each_case(
    ("settings", "id", "status"),
    [
        ({}, "git", "ok"),
        ({"core.autocrlf": "true"}, "git-autocrlf", "warn"),
        ({"core.autocrlf": "input"}, "git", "ok"),
        ({"core.symlinks": "false"}, "git", "warn"),
        ({"http.sslverify": "false"}, "git", "warn"),
    ],
)
def test_settings_of_git(settings: dict[str, str], id: str, status: str) -> None:
    found = check("git", linux_facts(tools=GIT), health(git=settings))
    assert (found.id, found.status) == (id, status)


def test_no_git_and_a_checkout_of_another_user() -> None:
    assert "bootstrap" in check("git").fix
    found = check("git", linux_facts(tools=GIT), health(git_refuses=True))
    assert "safe.directory" in found.fix


def test_every_warning_says_what_to_do() -> None:
    seen = health(git_refuses=True, strangers=("NO_CUDA",), shadows=("/x/torch.py",), open_files=1)
    seen = replace(seen, newest="/x", ahead=99.0)
    for id in ("git", "names", "shadow", "open-files", "clock"):
        assert all(finding.fix for finding in checks(id, linux_facts(tools=GIT), seen))

"""The table of versions, compared with a machine."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tests.support.machines import base_python, linux_facts, python, tool, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.companions.choose import newest_release
from torchbuild_tasks.model import Cuda, Facts, Host, Tool, Toolkit, Toolset, VisualStudio, Windows
from torchbuild_tasks.plan.versions import Fit, VersionLine, newest_fit, version_lines


def lines(facts: Facts) -> dict[str, VersionLine]:
    return {line.version: line for line in version_lines(load_catalog(), facts)}


def test_newest_first_and_every_row_once() -> None:
    table = list(version_lines(load_catalog(), linux_facts()))
    assert [line.released for line in table] == sorted((line.released for line in table), reverse=True)
    assert len(table) == len(load_catalog().torch)


@pytest.mark.parametrize(
    ("version", "here"),
    [("2.8.0a0", ["2.8"]), ("2.10.1", ["2.10"]), ("1.13.1", ["1.13"]), ("2.99", []), (None, [])],
)
def test_the_series_of_the_checkout_is_marked(version: str | None, here: list[str]) -> None:
    table = lines(with_tree(linux_facts(), version=version))
    assert [line.version for line in table.values() if line.here] == here


def test_what_this_machine_can_build() -> None:
    table = lines(linux_facts())
    assert (table["2.8"].status, table["2.8"].because) == ("ok", "a fitting Python and g++ are here")
    assert table["1.12"].status == "error"
    assert "no Python" in table["1.12"].because


def test_a_gcc_that_is_too_old_is_named() -> None:
    table = lines(linux_facts(compilers=(tool("g++", "10.2.1"),)))
    assert table["2.8"].status == "ok"
    assert table["2.13"].status == "error"
    assert "no g++ >=11.3 here" in table["2.13"].because


def test_one_fitting_python_is_enough() -> None:
    both = (python(version="3.9.18"), base_python(version="3.13.1"))
    table = lines(linux_facts(pythons=both))
    assert table["1.13"].status == table["2.15"].status == "ok"


@pytest.mark.parametrize(
    "facts",
    [
        linux_facts(pythons=()),
        linux_facts(compilers=()),
        linux_facts(compilers=(Tool(name="g++", looked=("PATH",)),)),
        linux_facts(compilers=(tool("clang++", "17.0.6"),)),
        linux_facts(pythons=(python(version=None, problem="it hangs"),)),
        linux_facts(compilers=(Tool(name="g++", path="/usr/bin/g++"),)),
    ],
)
def test_what_cannot_be_compared_is_unknown(facts: Facts) -> None:
    assert lines(facts)["2.8"].status == "unknown"


def test_a_python_that_is_known_to_be_tried_is_named() -> None:
    line = lines(linux_facts(pythons=(python(version="3.15.0"),)))["2.14"]
    assert line.status == "unknown"
    assert "whether Python 3.15.0 (/venv/bin/python) builds it is not known" in line.because


def parts(facts: Facts, version: str) -> dict[str, Fit]:
    return {fit.what: fit for fit in lines(facts)[version].fits}


def test_a_series_has_its_companions() -> None:
    catalog = load_catalog()
    line = lines(linux_facts())["2.13"]
    row = next(row for row in catalog.torch if row.version == "2.13")
    audio = newest_release(catalog, "torchaudio", Version(row.latest))
    assert audio is not None
    assert (line.torchvision, line.torchaudio, line.triton) == ("0.28.0", audio.version, row.triton)
    assert (line.cuda_best, line.latest) == ("13.0", row.latest)
    assert lines(linux_facts())["1.1"].torchaudio == ""


def test_every_series_has_its_torchvision() -> None:
    """The one of torch 1.0 is UNCONFIRMED, so no row has it."""
    assert [line.version for line in lines(linux_facts()).values() if not line.torchvision] == ["1.0"]


def test_one_series_is_the_newest_that_fits() -> None:
    facts = linux_facts(compilers=(tool("g++", "10.2.1"),))
    assert [line.version for line in lines(facts).values() if line.newest_fit] == ["2.11"]
    row = newest_fit(load_catalog(), facts)
    assert row is not None and row.version == "2.11"


def test_a_cmake_that_is_too_old_is_replaced_and_refuses_nothing() -> None:
    facts = linux_facts(tools=(tool("cmake", "3.20.0"),))
    assert "one from PyPI" in parts(facts, "2.8")["CMake"].because
    assert parts(facts, "2.6")["CMake"].because == "/usr/bin/cmake is 3.20.0"
    assert lines(facts)["2.8"].status == "ok"


def toolkit(version: str) -> Toolkit:
    path = f"/usr/local/cuda-{version}"
    return Toolkit(
        path=path,
        found_via="standard folder",
        version=version,
        nvcc=f"{path}/bin/nvcc",
        headers=True,
        libraries=path,
    )


def test_a_toolkit_that_does_not_fit_is_no_obstacle_to_a_cpu_build() -> None:
    facts = linux_facts(cuda=Cuda(toolkits=(toolkit("13.0"),)))
    assert parts(facts, "2.8")["CUDA"].status == "error"
    assert lines(facts)["2.8"].status == "ok"
    assert parts(facts, "2.13")["CUDA"].status == "ok"
    both = linux_facts(cuda=Cuda(toolkits=(toolkit("13.0"), toolkit("12.8"))))
    assert parts(both, "2.8")["CUDA"].because == "/usr/local/cuda-12.8 is 12.8"
    assert parts(linux_facts(), "2.8")["CUDA"].status == "unknown"


def windows(*versions: str) -> Facts:
    studio = VisualStudio(
        path="C:\\VS", found_via="vswhere", release="17.9", vcvarsall="C:\\VS\\vcvarsall.bat"
    )
    toolsets = tuple(
        Toolset(version=each, visual_studio="C:\\VS", cl=f"C:\\VS\\{each}\\cl.exe") for each in versions
    )
    return linux_facts(
        host=Host(os="windows", arch="x86_64"),
        compilers=(),
        windows=Windows(visual_studios=(studio,), toolsets=toolsets),
    )


def test_on_windows_the_toolset_is_what_compiles() -> None:
    table = lines(windows("14.38.33130", "14.16.27023"))
    assert table["2.13"].status == "ok"
    assert "toolset 14.38" in parts(windows("14.38.33130"), "2.13")["MSVC"].because


def test_on_windows_a_refused_toolset_is_named_with_the_reason() -> None:
    table = lines(windows("14.16.27023"))
    assert table["2.12"].status == "ok"
    assert table["2.13"].status == "error"
    assert "torch asks for MSVC 19.20" in table["2.13"].because
    assert lines(windows())["2.12"].because.startswith("no MSVC toolset here")

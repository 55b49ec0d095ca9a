from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.facts.fakes import link, machine, made_here, windows_machine
from tests.facts.windows_11 import STORE
from tests.support.capabilities import needs_symlinks
from tests.support.for_each import each_case
from torchbuild_tasks.facts import python as places
from torchbuild_tasks.model import Python

TREE = "/src/pytorch"


def paths(found: Iterable[places.Candidate]) -> list[str]:
    return [place.path for place in found]


@pytest.mark.parametrize("text", ["3", "3.12", "3.12.1", "3.13t"])
def test_numbers_are_versions(tmp_path: Path, text: str) -> None:
    assert places.is_version(text)
    assert not places.is_path(machine(tmp_path), text)


@each_case("text", ["", "python3.12", "3.x", "3.12.1.4", "./3.12", "3.12 "])
def test_other_words_are_not(text: str) -> None:
    assert not places.is_version(text)


def test_a_word_is_a_path_when_it_has_a_separator_or_is_there(
    tmp_path: Path,
) -> None:
    door = machine(tmp_path, files={"/here/venv/": "", "/here/3.12/": ""})
    assert places.is_path(door, "bin/python")
    assert places.is_path(door, "venv")
    assert not places.is_path(door, "python3")
    assert not places.is_path(door, "3.12")  # a version, though a folder of that name is here


@each_case(
    ("wanted", "version", "expected"),
    [
        ("3.12", "3.12.1", True),
        ("3.1", "3.12.1", False),
        ("3.12.1", "3.12.1", True),
        ("3.12.1", "3.12.10", False),
        ("3", "3.8.2", True),
        ("3.13t", "3.13.0", True),
        ("3.13", "3.13.0rc1", True),
    ],
)
def test_versions_agree_part_by_part(wanted: str, version: str, expected: bool) -> None:
    assert places.versions_agree(wanted, version) is expected


def test_the_free_threaded_build_is_known_by_its_abi() -> None:
    tags = ("cpython-313t-x86_64-linux-gnu", "cp313t", "cpython-313-x86_64-linux-gnu", None)
    found = [Python(executable="python", found_via="PATH", abi=tag).free_threaded for tag in tags]
    assert found == [True, True, False, False]


def test_a_folder_stands_for_the_interpreter_in_it(tmp_path: Path) -> None:
    door = machine(
        tmp_path,
        files={"/empty/": ""},
        programs={"/v/bin/python3": "", "/v/bin/python": "", "/w/bin/python3": ""},
    )
    assert places.python_at(door, "/v").path == "/v/bin/python"
    assert places.python_at(door, "/w/").path == "/w/bin/python3"
    assert places.python_at(door, "/empty").path == "/empty/bin/python"
    assert places.python_at(door, "/v/bin/python3").path == "/v/bin/python3"


def test_what_is_active_comes_before_what_we_made_unless_a_version_is_wanted(tmp_path: Path) -> None:
    managed = {f"{TREE}/.torchbuild/venv-{n}/bin/python": "" for n in ("3.9", "3.12", "3.10")}
    environ = {"VIRTUAL_ENV": "/v", "CONDA_PREFIX": "/conda", "CONDA_DEFAULT_ENV": "base"}
    door = machine(tmp_path, programs={"/v/bin/python": "", **managed}, environ=environ)
    ours = [f"{TREE}/.torchbuild/venv-{n}/bin/python" for n in ("3.12", "3.10", "3.9")]
    made_here(door, *(path.removesuffix("/bin/python") for path in ours))
    assert paths(places.find_environments(door, None, TREE)) == ["/v/bin/python", "/conda/bin/python", *ours]
    assert paths(places.find_environments(door, "3.10", TREE)) == [
        ours[1],
        "/v/bin/python",
        "/conda/bin/python",
    ]
    assert paths(places.find_environments(door, "3.10.4", TREE))[0] == ours[1]
    assert paths(places.find_environments(door, "python3.10", TREE)) == []
    vias = [place.found_via for place in places.find_environments(door, None, TREE)]
    assert vias[:3] == [
        "environment VIRTUAL_ENV",
        "environment CONDA_PREFIX (base)",
        "managed venv of this checkout",
    ]


def test_a_venv_that_is_not_recorded_is_a_strange_one(tmp_path: Path) -> None:
    folder = f"{TREE}/.torchbuild"
    files = {f"{folder}/venv-3.{minor}/pyvenv.cfg": "" for minor in (10, 11, 12)}
    door = machine(tmp_path, files={**files, f"{folder}/venv-3.12.making": "", f"{folder}/other/x": ""})
    made_here(door, f"{folder}/venv-3.10")
    assert places.find_strange_venvs(door, TREE) == (f"{folder}/venv-3.11",)


@needs_symlinks
def test_path_is_searched_name_by_name_and_links_are_followed_once(tmp_path: Path) -> None:
    door = machine(
        tmp_path,
        programs={"/usr/bin/python3.11": "", "/opt/python3.13": "", "/opt/python3.7": ""},
        environ={"PATH": "/venv/bin:/usr/bin:/opt"},
    )
    link(tmp_path, "/usr/bin/python3", "python3.11")
    link(tmp_path, "/venv/bin/python3", "../../usr/bin/python3.11")
    found = list(places.find_on_path(door, None))
    assert paths(found) == ["/venv/bin/python3", "/usr/bin/python3", "/opt/python3.13"]
    assert found[0].found_via == "PATH (/venv/bin/python3)"


@each_case(
    ("wanted", "names"),
    [
        ("3.12", ("python3.12",)),
        ("3.12.4", ("python3.12",)),
        ("3.13t", ("python3.13t",)),
        ("2", ("python2",)),
        ("pypy3", ("pypy3",)),
    ],
)
def test_a_version_or_a_word_becomes_a_command(wanted: str, names: tuple[str, ...]) -> None:
    assert places.path_names(wanted) == names


def test_three_means_any_three() -> None:
    assert places.path_names("3") == places.path_names(None)
    assert {"python3", "python3.8", "python3.20"} <= set(places.path_names(None))


def test_pyenv_and_uv_keep_interpreters_off_the_path(tmp_path: Path) -> None:
    door = machine(
        tmp_path,
        files={"/home/me/.pyenv/versions/3.12.9/": ""},
        programs={
            "/home/me/.pyenv/versions/3.12.1/bin/python": "",
            "/home/me/.pyenv/versions/3.12.10/bin/python": "",
            "/home/me/.pyenv/versions/3.11.7/bin/python": "",
            "/home/me/.pyenv/versions/pypy3.12-7/bin/python": "",
            "/home/me/.local/share/uv/python/cpython-3.12.4-linux-x86_64-gnu/bin/python": "",
        },
        environ={"HOME": "/home/me"},
    )
    found = list(places.find_in_stores(door, "3.12"))
    assert [(place.found_via, place.path.split("/bin/")[0].rpartition("/")[2]) for place in found] == [
        ("pyenv", "3.12.10"),
        ("pyenv", "3.12.1"),
        ("uv", "cpython-3.12.4-linux-x86_64-gnu"),
    ]
    assert list(places.find_in_stores(door, None)) == list(places.find_in_stores(door, "pypy3")) == []


def test_of_the_shims_of_pyenv_only_the_chosen_one_is_started(tmp_path: Path) -> None:
    shims = {f"/home/me/.pyenv/shims/python{n}": "" for n in ("3", "3.13", "3.12", "3.9")}
    kept = {f"/home/me/.pyenv/versions/{n}/bin/python": "" for n in ("3.12.1", "3.12.10", "3.13.0")}
    door = machine(
        tmp_path,
        programs={**shims, **kept, "/usr/bin/python3.12": ""},
        environ={"HOME": "/home/me", "PATH": "/home/me/.pyenv/shims:/usr/bin"},
    )
    assert list(places.find_on_path(door, None)) == [
        ("/home/me/.pyenv/shims/python3", "PATH (/home/me/.pyenv/shims/python3)"),
        ("/home/me/.pyenv/versions/3.13.0/bin/python", "pyenv"),
        ("/home/me/.pyenv/versions/3.12.10/bin/python", "pyenv"),
        ("/usr/bin/python3.12", "PATH (/usr/bin/python3.12)"),
    ]
    # Asked for by its number, it is pyenv that says which of them counts here.
    assert paths(places.find_on_path(door, "3.12")) == [
        "/home/me/.pyenv/shims/python3.12",
        "/usr/bin/python3.12",
    ]


def test_the_stores_may_stand_elsewhere(tmp_path: Path) -> None:
    door = machine(
        tmp_path,
        programs={"/p/versions/3.12.1/bin/python": "", "/u/cpython-3.12.4+free-x/bin/python": ""},
        environ={"PYENV_ROOT": "/p", "UV_PYTHON_INSTALL_DIR": "/u"},
    )
    assert [place.found_via for place in places.find_in_stores(door, "3.12")] == ["pyenv", "uv"]


def test_the_layouts_of_windows(tmp_path: Path) -> None:
    programs = {"C:\\v\\Scripts\\python.exe": "", "C:\\conda\\python.exe": "", "C:\\p\\python.exe": ""}
    door = windows_machine(tmp_path, programs=programs, files={"C:\\empty\\": ""})
    assert places.python_at(door, "C:\\v").path == "C:\\v\\Scripts\\python.exe"
    assert places.python_at(door, "C:/conda/").path == "C:\\conda\\python.exe"
    assert places.python_at(door, "C:\\empty").path == "C:\\empty\\Scripts\\python.exe"
    assert places.python_at(door, "C:\\p\\python").path == "C:\\p\\python.exe"


def test_what_is_active_on_windows(tmp_path: Path) -> None:
    ours = "C:\\src\\.torchbuild\\venv-3.12\\Scripts\\python.exe"
    environ = {"Virtual_Env": "C:\\v", "CONDA_PREFIX": "C:\\conda", "CONDA_DEFAULT_ENV": "base"}
    programs = {ours: "", "C:\\conda\\python.exe": ""}
    door = windows_machine(tmp_path, programs=programs, environ=environ)
    made_here(door, "C:\\src\\.torchbuild\\venv-3.12")
    assert paths(places.find_environments(door, None, "C:\\src")) == [
        "C:\\v\\Scripts\\python.exe",
        "C:\\conda\\python.exe",
        ours,
    ]


def test_python_has_one_name_for_all_versions_on_windows(tmp_path: Path) -> None:
    programs = {"C:\\bin\\python.exe": "", "C:\\bin\\python3.12.exe": ""}
    door = windows_machine(tmp_path, programs=programs)
    assert paths(places.find_on_path(door, "3.12")) == ["C:\\bin\\python3.12.exe", "C:\\bin\\python.exe"]
    assert paths(places.find_on_path(door, "pypy3")) == []


def test_the_link_that_opens_the_store_is_no_interpreter(tmp_path: Path) -> None:
    stub = f"{STORE}\\python.exe"
    door = windows_machine(tmp_path, files={stub: ""}, environ={"Path": STORE})
    assert paths(places.find_on_path(door, None)) == []
    real = f"{STORE}\\PythonSoftwareFoundation.Python.3.12_qbz5n2kfra8p0\\"
    door = windows_machine(tmp_path, files={real: ""}, environ={"Path": STORE})
    assert paths(places.find_on_path(door, None)) == [stub]


def test_an_empty_program_elsewhere_is_no_link_to_the_store(tmp_path: Path) -> None:
    door = windows_machine(tmp_path, files={"C:\\bin\\python.exe": ""})
    assert paths(places.find_on_path(door, None)) == ["C:\\bin\\python.exe"]


def test_what_windows_has_installed_is_filtered_by_version(tmp_path: Path) -> None:
    said = " -V:3.13t  C:\\a\\python.exe\n -V:3.12 * C:\\b\\python.exe\n -V:Odd  C:\\c\\python.exe\n"
    programs = {f"C:\\{name}\\python.exe": "" for name in "abc"}
    door = windows_machine(tmp_path, programs={**programs, "C:\\bin\\py.exe": said})
    assert len(paths(places.find_installed(door, None))) == 3
    assert paths(places.find_installed(door, "3.12.4")) == ["C:\\b\\python.exe", "C:\\c\\python.exe"]
    assert paths(places.find_installed(door, "python3.12")) == []
    assert paths(places.find_installed(machine(tmp_path), None)) == []


def test_pyenv_and_uv_on_windows(tmp_path: Path) -> None:
    home = "C:\\Users\\Ada Lovelace"
    kept = (
        f"{home}\\.pyenv\\pyenv-win\\versions\\3.12.1\\python.exe",
        f"{home}\\AppData\\Roaming\\uv\\python\\cpython-3.12.4-windows-x86_64-none\\python.exe",
    )
    door = windows_machine(tmp_path, programs=dict.fromkeys(kept, ""))
    assert paths(places.find_in_stores(door, "3.12")) == list(kept)

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.facts.fakes import FakeProbe, link, machine, made_here, windows_machine
from tests.facts.windows_11 import PYTHON, ROOT, windows_11
from tests.support.capabilities import needs_symlinks
from torchbuild_tasks.facts.probe import Output, Probe
from torchbuild_tasks.facts.python import REPORT, look_for_pythons
from torchbuild_tasks.model import Python
from torchbuild_tasks.system import trust

TREE = "/src/pytorch"


def report(executable: str, **said: Any) -> str:
    """What the report script prints for an ordinary venv."""
    prefix = executable.rpartition("/bin/")[0] or "/usr"
    known = {"executable": executable, "version": "3.12.1", "environment": "venv", "prefix": prefix}
    return "\n" + json.dumps({**known, **said}) + "\n"


def look(door: FakeProbe, wanted: str | None = None) -> list[tuple[str, str, str | None]]:
    found = look_for_pythons(door, wanted, TREE)
    return [(python.executable, python.found_via, python.problem) for python in found]


def only(door: FakeProbe, wanted: str) -> Python:
    (python,) = look_for_pythons(door, wanted, TREE)
    return python


@pytest.mark.parametrize("kind", ["venv", "conda"])
@pytest.mark.parametrize("own", [True, False])
def test_the_environment_of_this_tool_is_known_whatever_made_it(
    kind: str, own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", "/v" if own else "/other")
    monkeypatch.setattr(sys, "base_prefix", sys.prefix if kind == "conda" else "/usr")
    door = machine(tmp_path, programs={"/v/bin/python": report("/v/bin/python", environment=kind)})
    assert only(door, "/v/bin/python").tool is own


def test_the_report_becomes_facts(tmp_path: Path) -> None:
    said = report(
        "/v/bin/python",
        implementation="CPython",
        abi="cpython-312-x86_64-linux-gnu",
        bits=64,
        externally_managed=False,
        scripts="/v/bin",
        include="/usr/include/python3.12",
        headers=False,
        venv=True,
        packages={"numpy": "2.0.1", "torch": "2.8.0a0"},
        torch_from="/src/pytorch",
    )
    door = machine(tmp_path, programs={"/v/bin/python": said}, files={"/src/pytorch/": ""})
    python = only(door, "/v/bin/python")
    assert python == Python(
        executable="/v/bin/python",
        found_via="given path",
        version="3.12.1",
        implementation="CPython",
        abi="cpython-312-x86_64-linux-gnu",
        bits=64,
        environment="venv",
        prefix="/v",
        scripts="/v/bin",
        include="/usr/include/python3.12",
        headers=False,
        venv=True,
        packages={"numpy": "2.0.1", "torch": "2.8.0a0"},
        torch_from="/src/pytorch",
    )
    assert door.asked == [f"/v/bin/python -I -B {REPORT}"]


@needs_symlinks
def test_an_editable_install_is_recognised_by_its_real_folder(tmp_path: Path) -> None:
    said = report("/v/bin/python", torch_from="/links/src")
    door = machine(tmp_path, programs={"/v/bin/python": said}, files={"/src/pytorch/": ""})
    link(tmp_path, "/links/src", "../src/pytorch")
    assert only(door, "/v/bin/python").torch_from == "/src/pytorch"


def test_a_given_path_is_the_only_one(tmp_path: Path) -> None:
    programs = {path: report(path) for path in ("/v/bin/python", "/w/bin/python", "/usr/bin/python3")}
    door = machine(tmp_path, programs=programs, environ={"VIRTUAL_ENV": "/w"})
    assert look(door, "/v") == [("/v/bin/python", "given path", None)]


def test_a_given_base_interpreter_brings_the_venv_that_we_made_on_its_version(tmp_path: Path) -> None:
    ours = {n: f"{TREE}/.torchbuild/venv-{n}/bin/python" for n in ("3.11", "3.12")}
    programs = {path: report(path, version=f"{n}.1") for n, path in ours.items()}
    programs["/usr/bin/python3"] = report("/usr/bin/python3", environment="base", prefix="/usr")
    programs["/v/bin/python"] = report("/v/bin/python")
    door = machine(tmp_path, programs=programs)
    assert [found[0] for found in look(door, "/usr/bin/python3")] == ["/usr/bin/python3"]
    made_here(door, *(path.removesuffix("/bin/python") for path in ours.values()))
    assert [found[0] for found in look(door, "/usr/bin/python3")] == ["/usr/bin/python3", ours["3.12"]]
    assert [found[0] for found in look(door, "/v")] == ["/v/bin/python"]


def test_so_does_one_that_was_requested_by_its_command(tmp_path: Path) -> None:
    ours = f"{TREE}/.torchbuild/venv-3.12/bin/python"
    base = report("/usr/bin/python3", environment="base", prefix="/usr")
    door = machine(
        tmp_path,
        programs={"/usr/bin/python3": base, "/usr/bin/python3.12": base, ours: report(ours)},
        environ={"PATH": "/usr/bin"},
    )
    made_here(door, ours.removesuffix("/bin/python"))
    assert [found[0] for found in look(door, "python3.12")] == ["/usr/bin/python3", ours]
    assert [found[0] for found in look(door)] == [ours]


def test_a_given_interpreter_that_is_broken_stands_alone(tmp_path: Path) -> None:
    ours = f"{TREE}/.torchbuild/venv-3.12/bin/python"
    door = machine(tmp_path, programs={"/usr/bin/python3": None, ours: report(ours)})
    assert [found[0] for found in look(door, "/usr/bin/python3")] == ["/usr/bin/python3"]


def test_given_paths_that_lead_nowhere(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/empty/": "", "/text.py": "", "/odd/bin/python/": ""})
    assert only(door, "/none/python").problem == "does not exist"
    assert only(door, "/empty").problem == "does not exist"
    assert only(door, "/empty").executable == "/empty/bin/python"
    assert only(door, "/odd").problem == "is a folder"
    assert only(door, "/text.py").problem == "is not a program that this user may start"
    assert door.asked == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (None, "no answer within"),
        (Output(0, "Hello\n{}\n[1]\n"), "not our report: 'Hello"),
        (Output(0, ""), "not our report: ''"),
        (Output(0, "[" * 100_000), "not our report"),
        (Output(0, '{"executable": 1, "version": "3"}'), "not our report"),
        (Output(0, '{"executable": "/x", "version": "3", "bits": "64"}'), "not our report"),
        (Output(0, '{"executable": "/x", "version": "3", "scripts": "\\ud800"}'), "not our report"),
        (Output(2, "", "Unknown option: -I\nusage: python [option]"), "ended with 2: Unknown option: -I"),
        (
            Output(1, "", "Traceback (most recent call last):\n  x\nKeyError: 'a'\n"),
            "ended with 1: KeyError: 'a'",
        ),
        (Output(127, "", ""), "ended with 127: without a word"),
        (Output(-11, "", ""), "ended with -11"),
    ],
    ids=[
        "hangs",
        "rubbish",
        "silent",
        "deep",
        "wrong kinds",
        "wrong kind",
        "no text",
        "python2",
        "traceback",
        "mute",
        "crash",
    ],
)
def test_an_interpreter_that_cannot_be_read_says_why(tmp_path: Path, said: Output | None, words: str) -> None:
    python = only(machine(tmp_path, programs={"/x/python": said}), "/x/python")
    assert words in (python.problem or "")
    assert (python.executable, python.version, python.packages) == ("/x/python", None, {})


def test_what_others_print_around_the_report_does_no_harm(tmp_path: Path) -> None:
    said = "sitecustomize says hello\n" + report("/x/python") + "{}\nbye\n"
    assert only(machine(tmp_path, programs={"/x/python": said}), "/x/python").version == "3.12.1"


def test_bytes_that_the_c_locale_could_not_read_are_read(tmp_path: Path) -> None:
    said = report("/x", prefix="/home/j\udcc3\udcbcrg")
    assert only(machine(tmp_path, programs={"/x": said}), "/x").prefix == "/home/jürg"


def test_with_an_environment_the_path_is_not_looked_at(tmp_path: Path) -> None:
    programs = {path: report(path) for path in ("/v/bin/python", "/usr/bin/python3")}
    door = machine(tmp_path, programs=programs, environ={"VIRTUAL_ENV": "/v"})
    assert look(door) == [("/v/bin/python", "environment VIRTUAL_ENV", None)]


def test_a_broken_environment_is_reported_and_skipped(tmp_path: Path) -> None:
    door = machine(
        tmp_path, programs={"/usr/bin/python3": report("/usr/bin/python3")}, environ={"VIRTUAL_ENV": "/gone"}
    )
    assert look(door) == [
        ("/gone/bin/python", "environment VIRTUAL_ENV", "does not exist"),
        ("/usr/bin/python3", "PATH (/usr/bin/python3)", None),
    ]


def test_the_managed_venv_is_managed_however_it_was_found(tmp_path: Path) -> None:
    ours = f"{TREE}/.torchbuild/venv-3.12"
    programs = {f"{ours}/bin/python": report(f"{ours}/bin/python")}
    active = machine(tmp_path, programs=programs, environ={"VIRTUAL_ENV": ours})
    (python,) = look_for_pythons(active, None, TREE)
    assert (python.found_via, python.managed) == ("environment VIRTUAL_ENV", False)  # it was only put there
    made_here(active, ours)
    (python,) = look_for_pythons(active, None, TREE)
    assert (python.found_via, python.managed) == ("environment VIRTUAL_ENV", True)
    (python,) = look_for_pythons(machine(tmp_path, programs=programs), None, TREE)
    assert (python.found_via, python.managed) == ("managed venv of this checkout", True)


def test_a_venv_of_another_checkout_is_not_managed_here(tmp_path: Path) -> None:
    path = "/src/other/.torchbuild/venv-3.12/bin/python"
    assert only(machine(tmp_path, programs={path: report(path)}), path).managed is False


def test_a_version_passes_over_environments_of_another_one(tmp_path: Path) -> None:
    programs = {
        "/v/bin/python": report("/v/bin/python", version="3.11.7"),
        "/usr/bin/python3.12": report("/usr/bin/python3.12"),
        "/usr/bin/python3": report("/usr/bin/python3", version="3.11.2"),
    }
    door = machine(tmp_path, programs=programs, environ={"VIRTUAL_ENV": "/v"})
    assert look(door, "3.12") == [("/usr/bin/python3.12", "PATH (/usr/bin/python3.12)", None)]


def test_an_environment_of_the_wanted_version_is_enough(tmp_path: Path) -> None:
    programs = {path: report(path) for path in ("/v/bin/python", "/usr/bin/python3.12")}
    door = machine(tmp_path, programs=programs, environ={"VIRTUAL_ENV": "/v"})
    assert look(door, "3.12.1") == [("/v/bin/python", "environment VIRTUAL_ENV", None)]
    assert "/usr/bin/python3.12" not in " ".join(door.asked)


def test_a_failing_shim_is_reported_and_the_store_behind_it_is_found(tmp_path: Path) -> None:
    kept = "/home/me/.pyenv/versions/3.12.1/bin/python"
    shim = Output(127, "", "pyenv: python3.12: command not found\n\nThe `python3.12' command exists in")
    door = machine(
        tmp_path, programs={"/usr/bin/python3.12": shim, kept: report(kept)}, environ={"HOME": "/home/me"}
    )
    assert look(door, "3.12") == [
        (
            "/usr/bin/python3.12",
            "PATH (/usr/bin/python3.12)",
            "ended with 127: pyenv: python3.12: command not found",
        ),
        (kept, "pyenv", None),
    ]


def test_free_threaded_means_just_that(tmp_path: Path) -> None:
    programs = {
        "/v/bin/python": report("/v/bin/python", version="3.13.0", abi="cpython-313-x86_64-linux-gnu"),
        "/usr/bin/python3.13t": report(
            "/usr/bin/python3.13t", version="3.13.0", abi="cpython-313t-x86_64-linux-gnu"
        ),
    }
    door = machine(tmp_path, programs=programs, environ={"VIRTUAL_ENV": "/v"})
    assert [found[0] for found in look(door, "3.13t")] == ["/usr/bin/python3.13t"]


def test_two_names_for_one_interpreter_are_one(tmp_path: Path) -> None:
    said = report("/usr/lib/python3.12/python")
    door = machine(
        tmp_path,
        programs={"/a/python3": said, "/b/python3.12": said, "/usr/lib/python3.12/python": ""},
        environ={"PATH": "/a:/b"},
    )
    assert look(door) == [("/usr/lib/python3.12/python", "PATH (/a/python3)", None)]


@needs_symlinks
def test_two_venvs_on_one_interpreter_are_two(tmp_path: Path) -> None:
    door = machine(
        tmp_path,
        programs={"/usr/bin/python3.12": ""},
        environ={"VIRTUAL_ENV": "/v", "CONDA_PREFIX": "/w", "PATH": ""},
    )
    for folder in ("/v", "/w"):
        link(tmp_path, f"{folder}/bin/python", "../../usr/bin/python3.12")
        door.outputs[f"{folder}/bin/python"] = Output(0, report(f"{folder}/bin/python"))
    assert [found[0] for found in look(door)] == ["/v/bin/python", "/w/bin/python"]


@pytest.mark.parametrize(("wanted", "name"), [(None, "python3"), ("3.12", "python3.12"), ("pypy3", "pypy3")])
def test_a_miss_says_what_was_looked_for_and_where(tmp_path: Path, wanted: str | None, name: str) -> None:
    door = machine(tmp_path, environ={"PATH": "/a:/b"})
    assert look(door, wanted) == [(name, "PATH", "not found in /a, /b")]


@pytest.mark.integration
def test_this_interpreter_tells_the_truth(tmp_path: Path) -> None:
    (python,) = look_for_pythons(Probe(environ=os.environ), sys.executable, str(tmp_path))
    assert python.problem is None
    assert python.version == sys.version.split()[0]
    assert python.prefix == sys.prefix
    assert python.implementation == "CPython"
    assert python.bits == (64 if sys.maxsize > 2**32 else 32)
    assert python.packages["pytest"] == pytest.__version__
    assert not python.managed


def test_python_is_found_where_windows_lists_it(tmp_path: Path) -> None:
    python = only_of(windows_11(tmp_path))
    assert (python.executable, python.found_via) == (f"{PYTHON}\\python.exe", "py launcher")
    assert (python.version, python.debug_library, python.managed) == ("3.12.10", False, False)


def only_of(door: FakeProbe) -> Python:
    (python,) = look_for_pythons(door, None, ROOT)
    return python


def test_our_venv_is_known_on_windows_however_it_is_spelled(tmp_path: Path) -> None:
    ours = f"{ROOT}\\.torchbuild\\venv-3.12"
    said = json.dumps({"executable": "x", "version": "3.12.1", "prefix": ours.replace("C:", "c:")})
    door = windows_machine(
        tmp_path, programs={f"{ours}\\Scripts\\python.exe": said}, environ={"VIRTUAL_ENV": ours}
    )
    assert only_of(made_here(door, ours)).managed is True


def test_a_miss_on_windows_names_its_lists(tmp_path: Path) -> None:
    (python,) = look_for_pythons(windows_machine(tmp_path), "3.12", ROOT)
    assert python.executable == "python3.12"
    assert "C:\\bin, the py launcher's list, the registry" in (python.problem or "")


@pytest.mark.parametrize(("tracked", "counts"), [("", True), ("bin/python\0", False)])
def test_a_venv_of_which_git_tracks_a_file_is_never_ours(tmp_path: Path, tracked: str, counts: bool) -> None:
    """A pull may have put the program there."""
    ours = f"{TREE}/.torchbuild/venv-3.12"
    programs = {f"{ours}/bin/python": report(f"{ours}/bin/python"), "/usr/bin/git": ""}
    door = machine(tmp_path, programs=programs, files={f"{TREE}/.git/": ""}, environ={"PATH": "/usr/bin"})
    door.outputs[f"/usr/bin/git -C {ours} ls-files -z -- ."] = Output(0, tracked)
    made_here(door, ours)
    assert [found[0] for found in look(door)] == ([f"{ours}/bin/python"] if counts else ["python3"])


def test_a_copied_checkout_brings_no_venv(tmp_path: Path) -> None:
    """The token in the copied venv was issued for the path of the other checkout."""
    there, here = "/src/other/.torchbuild/venv-3.12", f"{TREE}/.torchbuild/venv-3.12"
    programs = {f"{folder}/bin/python": report(f"{folder}/bin/python") for folder in (there, here)}
    door = made_here(machine(tmp_path, programs=programs), there)
    door.at(f"{here}/{trust.TOKEN}").write_text("a word", "utf-8")
    assert [found[0] for found in look(door)] == ["python3"]

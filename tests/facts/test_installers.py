"""Settings of pip and uv, as variables and in pip's files."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.facts.installers import look_at_installers
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import InstallerSetting


def test_variables_and_the_files_that_they_name(tmp_path: Path) -> None:
    there = tmp_path / "there.txt"
    there.write_text("")
    environ = {
        "PIP_TARGET": "/opt/x",
        "PIP_FIND_LINKS": "https://me:secret@host/",
        "PIP_CONSTRAINT": f"{there} /not/there.txt https://host/c.txt",
        "UV_OFFLINE": "1",
        "HOME": str(tmp_path),
    }
    found = {each.name: each for each in look_at_installers(Probe(environ=environ))}
    assert found["PIP_TARGET"] == InstallerSetting(name="PIP_TARGET", value="/opt/x")
    assert found["PIP_FIND_LINKS"].value == "set"
    assert found["PIP_CONSTRAINT"].gone == ("/not/there.txt",)
    assert found["UV_OFFLINE"].value == "1"


def test_a_file_of_pip_says_what_no_variable_does(tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("[global]\nno-index = true\nuser = yes\n[install]\nuser = no\n")
    found = look_at_installers(Probe(environ={"PIP_CONFIG_FILE": str(file), "HOME": str(tmp_path)}))
    said = {each.name: (each.value, each.place) for each in found}
    assert said["PIP_NO_INDEX"] == ("true", str(file))
    assert said["PIP_USER"][0] == "no"


def test_a_file_that_is_none_of_pips_is_left_to_pip(tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("no section\n")
    look_at_installers(Probe(environ={"PIP_CONFIG_FILE": str(file), "HOME": str(tmp_path)}))

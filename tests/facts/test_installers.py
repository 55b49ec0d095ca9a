"""Settings of pip and uv, as variables and in pip's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capabilities import needs_posix_paths
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


@needs_posix_paths
def test_the_file_that_is_named_stands_in_for_the_users(tmp_path: Path) -> None:
    """And the null device for all; a name is read with either dash."""
    user = tmp_path / ".config/pip/pip.conf"
    user.parent.mkdir(parents=True)
    user.write_text("[global]\nno_index = true\n")
    other = tmp_path / "other.conf"
    other.write_text("[global]\nuser = yes\n")
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "none")}

    def names(**more: str) -> set[str]:
        return {each.name for each in look_at_installers(Probe(environ={**environ, **more}))}

    assert "PIP_NO_INDEX" in names()
    assert "PIP_NO_INDEX" in names(PIP_CONFIG_FILE=str(tmp_path / "gone"))
    assert "PIP_NO_INDEX" not in names(PIP_CONFIG_FILE=str(other))
    assert "PIP_USER" in names(PIP_CONFIG_FILE=str(other))
    assert names(PIP_CONFIG_FILE="/dev/null") == set()
    assert "PIP_NO_INDEX" in names(HOME="", XDG_CONFIG_DIRS=str(user.parent.parent))


@needs_posix_paths
def test_without_a_home_nothing_of_the_current_folder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip").mkdir()
    (tmp_path / ".pip").mkdir()
    for place in ("pip/pip.conf", ".pip/pip.conf"):
        (tmp_path / place).write_text("[global]\nno-index = true\n")
    assert "PIP_NO_INDEX" not in {each.name for each in look_at_installers(Probe(environ={}))}

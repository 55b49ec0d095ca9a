"""A venv of the store: complete or made again, and a constraint that pip obeys."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.driver import in_venv
from torchbuild_tasks.errors import RequirementsError
from torchbuild_tasks.system import process, trust, venv


@pytest.fixture
def python(tmp_path: Path) -> str:
    python = in_venv(tmp_path / "venv of mine", "python")
    python.parent.mkdir(parents=True)
    python.write_text("", "utf-8")
    return str(python)


def test_a_venv_is_complete_only_after_mark_complete(python: str) -> None:
    assert venv.is_complete(python)
    venv.mark_unfinished(python)
    assert not venv.is_complete(python)
    venv.mark_unfinished(python)  # a second run, after the first was killed
    venv.mark_complete(python)
    assert venv.is_complete(python)


def test_a_folder_stays_where_it_is_if_no_venv_of_ours_can_be_recorded(
    python: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "state").write_bytes(b"")
    monkeypatch.setenv(trust.VARIABLE, str(tmp_path / "state"))
    with pytest.raises(RequirementsError, match="cannot be written to"):
        venv.set_aside(python)
    assert venv.folder_of(python).is_dir()


def test_a_folder_that_was_moved_aside_has_no_name_of_our_venvs(python: str) -> None:
    """Trusted with its checkout, it would be built with instead of the venv in its place."""
    aside = venv.set_aside(python)
    assert aside and aside.is_dir() and not aside.name.startswith("venv")
    assert not venv.folder_of(python).exists()


def test_the_constraint_is_rewritten_for_another_torch_only(python: str) -> None:
    assert venv.keep_torch(python, "2.9.1+git1")
    assert not venv.keep_torch(python, "2.9.1+git1")
    assert venv.keep_torch(python, "2.9.1+git2")
    folder = venv.folder_of(python)
    assert (folder / venv.CONSTRAINTS).read_text("utf-8").endswith("\ntorch==2.9.1+git2\n")
    assert (folder / venv.NONE).read_bytes() == b""


def test_a_configuration_of_the_users_is_left_alone(python: str) -> None:
    config = venv.folder_of(python) / ("pip.ini" if sys.platform == "win32" else "pip.conf")
    config.write_text("[global]\nindex-url = https://mirror\n", "utf-8")
    assert not venv.keep_torch(python, "2.9.1")
    assert config.read_text("utf-8") == "[global]\nindex-url = https://mirror\n"


def _wheel(folder: Path, name: str, version: str, requires: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Dist: {requires}\n" if requires else ""
    tags = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", f"version = {version!r}\n")
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", tags)
        wheel.writestr(
            f"{info}/RECORD", "".join(f"{each},,\n" for each in (f"{name}.py", f"{info}/METADATA"))
        )


@pytest.mark.integration
def test_pip_refuses_what_wants_another_torch(tmp_path: Path) -> None:
    folder, wheels = tmp_path / "a venv", tmp_path / "wheels"
    made = process.capture((sys.executable, "-m", "venv", str(folder)), timeout=300)
    assert made.rc == 0, made.stderr
    wheels.mkdir()
    for version in ("2.9.1+git1", "2.10.0"):
        _wheel(wheels, "torch", version)
    _wheel(wheels, "vision", "1.0", "torch==2.10.0")
    python = str(in_venv(folder, "python"))
    install = (python, "-m", "pip", "install", "--no-index", "--find-links", str(wheels))
    assert process.capture((*install, "torch==2.9.1+git1"), timeout=300).rc == 0
    assert venv.keep_torch(python, "2.9.1+git1")

    done = process.capture((*install, "vision"), timeout=300)
    assert done.rc != 0
    said = (done.stdout + done.stderr).decode()
    assert "vision 1.0 depends on torch==2.10.0" in said
    assert "(constraint) torch==2.9.1+git1" in said
    asked = process.capture((python, "-c", "import torch; print(torch.version)"))
    assert asked.stdout.strip() == b"2.9.1+git1"

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.facts.fakes import link, write
from tests.support.capabilities import needs_symlinks, skip_without
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.python import REPORT, find_in_stores

SERIES = range(6, 21)
WINDOWS = sys.platform == "win32"
ODD = "n\u00e4me\U0001d6fc" + ("" if WINDOWS else '"\\')  # what JSON has no letter for
PYTHON = "v/Scripts/python.exe" if WINDOWS else "v/bin/python"


def ask(python: str | Path) -> dict[str, Any]:
    command = [str(python), "-I", "-B", str(REPORT)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if run.returncode == 127:
        pytest.skip("a shim without an interpreter behind it")
    assert run.returncode == 0, run.stderr
    data: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-1])
    return data


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The site-packages of a fresh, empty venv in tmp_path/v."""
    venv.create(tmp_path / "v", symlinks=not WINDOWS)
    if WINDOWS:
        return tmp_path / "v" / "Lib" / "site-packages"
    return tmp_path / "v" / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"


def test_is_written_for_python_3_6() -> None:
    ast.parse(REPORT.read_text("utf-8"), feature_version=(3, 6))


@pytest.mark.integration
@pytest.mark.parametrize("minor", SERIES)
def test_every_interpreter_at_hand_can_run_it(minor: int) -> None:
    kept = next(find_in_stores(Probe(environ=os.environ), f"3.{minor}"), None)
    python = kept.path if kept else shutil.which(f"python3.{minor}")
    if python is None:
        skip_without("interpreters of every series")
    data = ask(python)
    assert data["version"].startswith(f"3.{minor}.")
    assert f"3{minor}" in data["abi"]


@pytest.mark.integration
def test_a_venv_knows_itself(tmp_path: Path, site: Path) -> None:
    data = ask(tmp_path / PYTHON)
    assert (data["environment"], data["prefix"]) == ("venv", str(tmp_path / "v"))
    assert data["executable"] == str(tmp_path / PYTHON)
    assert data["scripts"] == str((tmp_path / PYTHON).parent)
    assert data["externally_managed"] is False
    assert (data["packages"], data["torch_from"]) == ({}, None)
    # Debian's python3 names the folder of its headers also where python3-dev, which brings it, is absent.
    assert Path(data["include"]).resolve() == Path(sysconfig.get_config_var("INCLUDEPY")).resolve()
    assert data["headers"] is (Path(data["include"]) / "Python.h").exists()


@needs_symlinks
@pytest.mark.integration
def test_a_conda_folder_is_known_by_conda_meta(tmp_path: Path) -> None:
    base = Path(sys.base_prefix)
    link(tmp_path, "/env/bin/python", str(Path(sys.executable).resolve()))
    link(tmp_path, "/env/lib", str(base / "lib"))
    write(tmp_path, {"/env/conda-meta/": ""})
    run = subprocess.run(
        [str(tmp_path / "env/bin/python"), "-B", str(REPORT)],
        env={"PYTHONHOME": str(tmp_path / "env")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(run.stdout)["environment"] == "conda"


@pytest.mark.integration
def test_distributions_of_every_kind_are_listed(tmp_path: Path, site: Path) -> None:
    write(
        site,
        {
            "PyYAML-6.0.1.dist-info/": "",
            "typing_extensions-4.8.0.dist-info/": "",
            "ruamel.yaml-0.18.dist-info/": "",
            "old_thing-1.0-py3.8.egg-info": "",
            "dbus-python-1.3.2.egg-info/": "",
            "packed-2.1-py3.11-linux-x86_64.egg/": "",
            "develop.egg-info/PKG-INFO": "Name: develop\nVersion: 9.9.dev0\n\nVersion: 1",
            "nameless.egg-info/": "",
            "~ip-23.0.dist-info/": "",
            "numpy/": "",
            "numpy-1.26.4.dist-info/": "",
            f"{ODD}-1.dist-info/": "",
        },
    )
    assert ask(tmp_path / PYTHON)["packages"] == {
        "pyyaml": "6.0.1",
        "typing-extensions": "4.8.0",
        "ruamel-yaml": "0.18",
        "old-thing": "1.0",
        "dbus-python": "1.3.2",
        "packed": "2.1",
        "develop": "9.9.dev0",
        "numpy": "1.26.4",
        ODD: "1",
    }


def torch_of(tmp_path: Path) -> tuple[str | None, str | None]:
    data = ask(tmp_path / PYTHON)
    return data["packages"].get("torch"), data["torch_from"]


@pytest.mark.integration
def test_a_develop_install_points_to_its_source(tmp_path: Path, site: Path) -> None:
    source = tmp_path / "src"
    write(source, {"torch.egg-info/PKG-INFO": "Name: torch\nVersion: 1.13.0a0+git1234567\n"})
    write(site, {"easy-install.pth": f"{source}\n", "torch.egg-link": f"{source}\n.\n"})
    assert torch_of(tmp_path) == ("1.13.0a0+git1234567", str(source))
    (site / "torch.egg-link").unlink()
    assert torch_of(tmp_path) == ("1.13.0a0+git1234567", str(source))


@pytest.mark.integration
def test_a_package_next_to_the_link_is_what_is_imported(tmp_path: Path, site: Path) -> None:
    """A killed install leaves both; reporting the checkout's torch would test another one."""
    source = tmp_path / "src"
    for folder in (source, site):
        write(folder, {"torch/__init__.py": ""})
    write(source, {"torch.egg-info/PKG-INFO": "Name: torch\nVersion: 2.8.0\n"})
    write(site, {"easy-install.pth": f"{source}\n", "torch.egg-link": f"{source}\n.\n"})
    write(site, {"torch-2.8.0.dist-info/METADATA": "Name: torch\nVersion: 2.8.0\n"})
    assert torch_of(tmp_path) == ("2.8.0", None)


@pytest.mark.integration
@pytest.mark.parametrize("claimed", [True, False])
def test_a_torch_that_no_distribution_has_is_half_installed(
    tmp_path: Path, site: Path, claimed: bool
) -> None:
    """pip writes the files first: one that was killed leaves what is imported before a checkout."""
    write(site, {"torch/__init__.py": ""})
    if claimed:
        write(site, {"torch-2.8.0.dist-info/METADATA": "Name: torch\nVersion: 2.8.0\n"})
    assert ask(tmp_path / PYTHON)["half_torch"] == (None if claimed else str(site / "torch"))


@pytest.mark.integration
def test_a_develop_install_whose_source_is_gone_still_says_where_it_was(tmp_path: Path, site: Path) -> None:
    write(site, {"torch.egg-link": "/gone/pytorch\n."})
    assert torch_of(tmp_path) == (None, "/gone/pytorch")


@pytest.mark.integration
@pytest.mark.parametrize(
    ("direct_url", "torch_from"),
    [
        ('{"url": "file:///C:/src/my%20torch", "dir_info": {"editable": true}}', "/C:/src/my torch"),
        ('{"url": "file:///src/torch", "dir_info": {}}', None),
        ('{"url": "https://x/torch.whl", "archive_info": {}}', None),
        ('{"url": "file:///src/torch", "dir_info": {"editable": false}}', None),
        ('{"url": 3, "dir_info": 4}', None),
        ('{"url": 3, "dir_info": {"editable": true}}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_an_editable_install_points_to_its_source(
    tmp_path: Path, site: Path, direct_url: str, torch_from: str | None
) -> None:
    write(site, {"torch-2.8.0a0+gitabc.dist-info/direct_url.json": direct_url})
    if torch_from and WINDOWS:
        torch_from = torch_from.removeprefix("/").replace("/", "\\")
    assert torch_of(tmp_path) == ("2.8.0a0+gitabc", torch_from)


@pytest.mark.integration
def test_an_ordinary_install_points_nowhere(tmp_path: Path, site: Path) -> None:
    write(site, {"torch-2.8.0.dist-info/": ""})
    assert torch_of(tmp_path) == ("2.8.0", None)


@pytest.mark.integration
def test_an_egg_info_among_the_installed_packages_is_not_editable(tmp_path: Path, site: Path) -> None:
    write(site, {"torch-1.5.0-py3.8.egg-info/PKG-INFO": "Version: 1.5.0\n"})
    assert torch_of(tmp_path) == ("1.5.0", None)


@pytest.mark.integration
def test_the_debug_library_is_looked_for_where_windows_has_one() -> None:
    data = ask(sys.executable)
    library = Path(sys.base_prefix) / "libs" / "python{}{}_d.lib".format(*sys.version_info)
    assert data["debug_library"] is (library.exists() if WINDOWS else None)

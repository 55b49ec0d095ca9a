"""What `.ci/run` counts on before it starts anything that takes long."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from tests.support.capabilities import needs_bash, needs_posix_paths
from tests.support.waiting import until

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bare() -> ModuleType:
    """The script that makes the bare Debian."""
    spec = importlib.util.spec_from_file_location("bare", ROOT / ".ci" / "bare.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_gives_the_commands_that_are_tried(bare: ModuleType) -> None:
    build, test = bare.readme_commands()
    assert build.endswith(".venv/bin/nox -s build_cpu -- --source samples/minitorch")
    assert test.endswith(".venv/bin/nox -s tests")
    assert build.partition(" && ")[0] == "python3 -m venv .venv"


@needs_posix_paths
def test_pip_there_reads_what_it_reads_here(
    bare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings, its certificates, and folders of packages; nothing else of this user's."""
    certificates, packages = tmp_path / "ca.crt", tmp_path / "index" / "simple"
    certificates.write_text("a certificate", "utf-8")
    packages.mkdir(parents=True)
    settings = Path.home() / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[global]\nextra-index-url = https://a/simple file://{packages}\n", "utf-8")
    monkeypatch.setenv("PIP_CERT", str(certificates))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/a/file")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("TOKEN", "secret")
    tree = tmp_path / "tree"
    environ, folders = bare.hand_on_pip(tree)
    assert environ["PIP_CERT"] == str(certificates)
    assert environ["https_proxy"] == "http://proxy:3128"
    assert not {"PIP_CONFIG_FILE", "TOKEN", "HOME"} & set(environ)
    assert Path(f"{tree}{certificates}").read_text("utf-8") == "a certificate"
    assert Path(f"{tree}/home/builder/.config/pip/pip.conf").read_bytes() == settings.read_bytes()
    assert str(Path(*tmp_path.parts[:3])) in folders


@needs_bash
@pytest.mark.integration
def test_the_script_has_no_error_in_its_syntax() -> None:
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


# In the place of Python: makes a venv whose nox waits for ever, and says what the bench is asked to do.
PYTHON = """#!/bin/sh
case "$*" in
  *"bench running") echo $BUSY;;
  *"bench stop") echo "stop $TORCHBUILD_WINDOWS_BENCH" >>said;;
  "-m venv "*) mkdir -p $3/bin
    printf '#!/bin/sh\\nexit' >$3/bin/pip
    printf '#!/bin/sh\\nsleep 300 & echo $! >sleeper; wait' >$3/bin/nox
    chmod +x $3/bin/*;;
esac
"""
BARE = """#!/bin/sh
[ "$2" = --record ] || exit 0
while [ ! -s sleeper ]; do sleep 0.05; done
[ "$HOW" = failed ] && exit 3
touch ready
sleep 300
"""


@needs_bash
@needs_posix_paths
@pytest.mark.integration
@pytest.mark.parametrize("how", ["failed", "SIGINT", "SIGTERM"])
@pytest.mark.parametrize("busy", ["", "12 34"])
def test_nothing_that_it_has_started_is_left(tmp_path: Path, how: str, busy: str) -> None:
    for name, text in (("bin/python3", PYTHON), (".ci/bare.py", BARE), ("bin/id", "#!/bin/sh\necho 0\n")):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
        file.chmod(0o755)
    (tmp_path / "bin/mmdebstrap").symlink_to("id")
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    shutil.copy(ROOT / "README.md", tmp_path)
    environ = os.environ | {"HOW": how, "BUSY": busy, "TMPDIR": str(tmp_path)}
    environ["TORCHBUILD_WINDOWS_BENCH"] = "ours"
    environ["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{environ['PATH']}"
    with subprocess.Popen([tmp_path / ".ci/run"], env=environ, start_new_session=True) as script:
        if how != "failed":
            until((tmp_path / "ready").exists)
            os.killpg(script.pid, getattr(signal, how))  # as a terminal does
        assert script.wait(timeout=60) != 0
    sleeper = int((tmp_path / "sleeper").read_text("utf-8"))
    until(lambda: not psutil.pid_exists(sleeper))
    assert (tmp_path / "said").exists() == (not busy)
    if not busy:
        assert (tmp_path / "said").read_text("utf-8") == "stop ours\n"
    assert not [*tmp_path.glob("torchbuild-ci.*")]


@needs_posix_paths
@pytest.mark.integration
@pytest.mark.parametrize("module", ["tests.support.packages", "tests.windows.bench"])
def test_what_it_asks_first_needs_no_package(module: str) -> None:
    """It is run by the system's Python, which has neither pytest nor this package."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)

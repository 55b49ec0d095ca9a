"""uv and pip give one venv the same packages, from two indexes and a folder that only pip's settings name."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.extensions import Telling
from tests.support.machines import linux_facts, plan_of
from tests.support.preflight import ledger_of
from tests.support.wheels import make_wheel
from torchbuild_tasks.build.prepare import install, prepare_python, uses_uv
from torchbuild_tasks.build.work import Fetching, Work
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import RequirementsError
from torchbuild_tasks.model import Command, Environment
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system import venv
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.net.pip import python_with_pip
from torchbuild_tasks.values import replace

UV = shutil.which("uv")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(UV is None, reason="uv is not here: pip install uv"),
    pytest.mark.skipif(sys.platform == "win32", reason="the wheels are for Linux"),
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the wheels are for Python 3.11"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None: ...


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """Two indexes on loopback, the second with the newer torch; both are folders."""
    for index, version in (("one", "1.0"), ("two", "2.0")):
        folder = tmp_path / "www" / index / "torch"
        wheel = make_wheel(folder, version=version, requires=("far",) if index == "two" else ())
        (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>', "utf-8")
    handler = functools.partial(Quiet, directory=str(tmp_path / "www"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def configured(served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip.conf has the two indexes and a folder of wheels; uv reads none of it."""
    wheel = make_wheel(tmp_path / "found", version="1.0")
    renamed = wheel.with_name(wheel.name.replace("torch", "far"))
    wheel.rename(renamed)
    _rename_in(renamed)
    conf = tmp_path / "pip.conf"
    lines = ("[global]", f"index-url = {served}/one/", f"extra-index-url = {served}/two/")
    conf.write_text("\n".join([*lines, f"find-links = {tmp_path / 'found'}", ""]), "utf-8")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "UV_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(conf))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))


def _rename_in(wheel: Path) -> None:
    """Make the wheel's own folders be called as its file."""
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        held = {name.replace("torch", "far"): archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in held.items():
            text = data.replace(b"torch", b"far")
            archive.writestr(name, b"" if name.endswith("RECORD") else text)


def work_in(root: Path, python: str) -> Work:
    facts, request = linux_facts(), BuildRequest()
    environment = Environment(python=python, version="3.11.7")
    plan = replace(plan_of(facts), source=str(root), build_dir=str(root / "build"), environment=environment)
    return Work(
        question=Question(request, facts, load_catalog()),
        plan=plan,
        report=Telling(),
        ledger=ledger_of(request, facts, plan, root),
        fetching=Fetching(store=root, lock_file=root / "lock", net=Net(), require_hashes=False),
    )


def installed(python: str) -> dict[str, str]:
    code = "import importlib.metadata as m, json; "
    code += "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return {name: version for name, version in found.items() if name not in ("pip", "setuptools")}


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_both_take_the_best_of_all_places_that_pip_knows(
    installer: str, tmp_path: Path, configured: None
) -> None:
    bare = ["--without-pip"] if installer == "uv" else []  # which takes seconds
    subprocess.run([sys.executable, "-m", "venv", *bare, str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv/bin/python")
    begin = (
        (str(UV), "pip", "install", "--python", python)
        if installer == "uv"
        else (python, "-m", "pip", "install")
    )
    command = Command(argv=(*begin, "torch"), cwd=str(tmp_path), because="a test")
    assert uses_uv(command.argv) is (installer == "uv")
    work = work_in(tmp_path, python)
    with work.ledger:
        install(work, command)
    assert "uv could not install them; trying pip" not in work.report.notes  # type: ignore[attr-defined]
    assert installed(python) == {"torch": "2.0", "far": "1.0"}


def test_uv_asks_no_index_where_pip_asks_none(
    tmp_path: Path, configured: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of wheels is all there is: uv by itself would go to pypi.org."""
    conf = tmp_path / "pip.conf"
    conf.write_text(f"[global]\nno-index = true\nfind-links = {tmp_path / 'found'}\n", "utf-8")
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv/bin/python")
    argv = (str(UV), "pip", "install", "--python", python, "far")
    work = work_in(tmp_path, python)
    with work.ledger:
        install(work, Command(argv=argv, cwd=str(tmp_path), because="a test"))
    assert work.report.notes == []  # type: ignore[attr-defined]
    assert installed(python) == {"far": "1.0"}


@pytest.mark.slow
def test_what_neither_finds_is_an_error_and_pip_was_queried_too(tmp_path: Path, configured: None) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv/bin/python")
    begin = (str(UV), "pip", "install", "--python", python)
    work = work_in(tmp_path, python)
    with work.ledger, pytest.raises(RequirementsError, match="-m pip install"):
        install(work, Command(argv=(*begin, "torch==3"), cwd=str(tmp_path), because="a test"))
    assert work.report.notes == ["uv could not install them; trying pip"]  # type: ignore[attr-defined]
    assert installed(python) == {}


def test_where_uv_cannot_make_a_venv_python_does_and_a_failure_of_both_is_one(tmp_path: Path) -> None:
    """As where no index can be reached, from which uv takes the venv's pip."""
    failing, folder = tmp_path / "uv", tmp_path / ".torchbuild/venv"
    failing.write_text("#!/bin/sh\nexit 2\n", "utf-8")
    failing.chmod(0o755)
    python = str(folder / "bin/python")

    def make(base: str) -> Work:
        argv = (str(failing), "venv", "--seed", "--no-project", "--python", base, str(folder))
        work = work_in(tmp_path, python)
        create = Command(argv=argv, cwd=str(tmp_path), because="a test")
        environment = replace(work.plan.environment, create=create)
        work = replace(work, plan=replace(work.plan, environment=environment))
        with work.ledger:
            prepare_python(work)
        return work

    with pytest.raises(RequirementsError):
        make(str(tmp_path / "no python"))
    assert not venv.is_complete(python)
    assert "uv could not make the venv" in make(sys.executable).report.notes[-1]  # type: ignore[attr-defined]
    assert venv.is_complete(python) and Path(python).exists()


def test_uv_brings_no_pip_from_where_the_checkout_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look asks pip for its settings; uv brings that pip, and a checkout may come with a uv.toml."""
    (tmp_path / "uv.toml").write_text("no-index = true\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "bare"], check=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare/bin/python"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = subprocess.run([*python_with_pip(), "-m", "pip", "--version"], capture_output=True, check=False)
    assert done.stdout.startswith(b"pip "), done.stderr

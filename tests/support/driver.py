"""Drives the tool as a user does: the console command in a process of its own."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.support import forked

TORCHBUILD = (sys.executable, "-m", "torchbuild_tasks.fronts.console")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout as the one JSON object that --json promises."""
        return json.loads(self.out)


def in_venv(venv: Path, program: str) -> Path:
    """A program of a virtual environment, wherever the system's Python puts it."""
    return venv / "Scripts" / f"{program}.exe" if sys.platform == "win32" else venv / "bin" / program


def make_venv(folder: Path, *packages: str) -> Path:
    """Make a venv with pip and these packages; its Python is returned.

    ensurepip takes four times as long: it starts pip out of an archive and compiles what it installs. Here
    only what is imported gets byte code; that of all of sympy would take longer than all else.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = in_venv(folder, "python")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-compile"]
    subprocess.run([*pip, "pip", *packages], check=True)
    for listed in folder.rglob("cmake-*.dist-info/RECORD"):
        _leave_out_help(listed)
    return python


def _leave_out_help(listed: Path) -> None:
    """Take CMake's 3,700 pages and modules out of the list of its package's files, and the pages away.

    Its programs and each build of scikit-build-core read the list to find CMake: 0.16 s of CPU, or 0.08.
    """
    lines = listed.read_text("utf-8").splitlines(keepends=True)
    listed.write_text("".join(line for line in lines if not line.startswith("cmake/data/share/")), "utf-8")
    for pages in listed.parents[1].glob("cmake/data/share/cmake-*/Help"):
        shutil.rmtree(pages)


def copy_venv(model: Path, folder: Path) -> Path:
    """Copy a venv by links to its files, which pip replaces and never writes into; its Python is returned."""
    shutil.copytree(model, folder, symlinks=True, copy_function=os.link)
    for program in (folder / "bin").iterdir():
        data = program.read_bytes() if not program.is_symlink() else b""
        if data.startswith(b"#!") and os.fsencode(model) in data:
            mode = program.stat().st_mode
            program.unlink()
            program.write_bytes(data.replace(os.fsencode(model), os.fsencode(folder)))
            program.chmod(mode)
    return in_venv(folder, "python")


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the tests' environment without active venvs and build variables."""
    drop = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "CC", "CXX", "MAX_JOBS", "PYTEST_CURRENT_TEST")
    prefixes = ("USE_", "BUILD_", "CMAKE_", "PYTORCH_", "SKBUILD", "CUDA", "TORCH_", "NVCC_")
    kept = {k: v for k, v in os.environ.items() if k not in drop and not k.startswith(prefixes)}
    # Ninja, CMake and friends are not the machine's in the venv that runs the tests, nor in an active one.
    own = {Path(sysconfig.get_path("scripts"))} if sys.prefix != sys.base_prefix else set()
    if active := os.environ.get("VIRTUAL_ENV"):
        own.add(in_venv(Path(active), "python").parent)
    kept["PATH"] = os.pathsep.join(each for each in kept["PATH"].split(os.pathsep) if Path(each) not in own)
    return {**kept, **(changes or {})}


@functools.cache
def forking_server() -> forked.Server:
    """Return the server of this process, started at the first call."""
    return forked.Server(environment())


def torchbuild(
    *words: str | Path,
    cwd: Path | None = None,
    timeout: float = 500,  # below `timeout` of pyproject.toml, which does not end what a test has started
    environ: Mapping[str, str] | None = None,
) -> Run:
    """Run a verb to its end, in a process of its own (tests/support/forked.py)."""
    env, argv = environment(environ or {}), [str(word) for word in words]
    if sys.platform == "linux":
        server = forking_server()
        if server.can_have(env):
            ended = server.run(argv, env, str(cwd or Path.cwd()), timeout)
            return Run(code=ended.code, out=ended.out, err=ended.err)
    done = subprocess.run(
        [*TORCHBUILD, *argv],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=timeout,
        check=False,
    )
    return Run(code=done.returncode, out=done.stdout, err=done.stderr)

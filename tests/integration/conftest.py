"""One venv with what the sample's builds need, shared by all tests of a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python that gets torch: a venv of the user's, complete for both eras."""
    folder = tmp_path_factory.mktemp("target") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    wanted = ["scikit-build-core>=1.0", "build", "setuptools<80", "wheel", "numpy", "cmake<4", "ninja"]
    wanted += ["pyyaml", "typing_extensions", "filelock", "sympy", "networkx", "jinja2", "fsspec"]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *wanted], check=True)
    return python

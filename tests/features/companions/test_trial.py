"""What a built wheel says of itself, and the lists of architectures that extensions read."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.features.companions.trial import cmake_archs, modules_of, plain_archs, read_wheel
from torchbuild_tasks.model import Companion

EXTENSION = Companion(name="my-ext", version="", folder="/src/my-ext", argv=(), extension=True)


def test_architectures_are_spelled_as_they_are_read() -> None:
    assert plain_archs("8.0;8.6 9.0a+PTX") == "80;86;90a"
    assert cmake_archs("8.6;9.0+PTX") == "86-real;90"
    assert plain_archs("") == cmake_archs("") == ""


@each_case(
    ("archs", "built"),
    [("8.6", "80"), ("8.0;8.9;9.0a+PTX", "80;90"), ("12.1", "120"), ("7.5", ""), ("7.5;10.3f", "100")],
)
def test_an_architecture_that_an_extension_passes_over_gets_the_code_that_runs_there(
    archs: str, built: str
) -> None:
    """flash-attn compiles nothing for FLASH_ATTN_CUDA_ARCHS=86, and says nothing of it."""
    row = next(row for row in load_catalog().companion if row.name == "flash-attn")
    assert plain_archs(archs, row.archs) == built


@each_case(
    ("names", "modules"),
    [
        (("my_ext/__init__.py", "my_ext/_C.so", "tests/__init__.py"), ("my_ext",)),
        (("flash/__init__.py", "flash_cuda.cpython-311-x86_64-linux-gnu.so"), ("flash", "flash_cuda")),
        (("my_ext-1.0.data/platlib/my_ext/__init__.py",), ("my_ext",)),
        (("my_ext.cp311-win_amd64.pyd", "my_ext-1.0.dist-info/METADATA"), ("my_ext",)),
        (("a/b/__init__.py",), ()),
    ],
)
def test_what_is_called_as_the_project_is_imported_else_all(
    names: tuple[str, ...], modules: tuple[str, ...]
) -> None:
    assert modules_of(names, "my-ext") == modules


def test_a_wheel_says_what_it_asks_for(tmp_path: Path) -> None:
    wheel = tmp_path / "my_ext-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("my_ext/__init__.py", "")
        archive.writestr("my_ext/lib.so.2", "")
        text = (
            "Metadata-Version: 2.1\nName: my-ext\nVersion: 1.0\nRequires-Dist: torch==2.9\nRequires-Dist: x\n"
        )
        archive.writestr("my_ext-1.0.dist-info/METADATA", text)
    built = read_wheel(wheel, EXTENSION)
    assert (built.name, built.version, built.asks) == ("my-ext", "1.0", ("torch==2.9", "x"))
    assert (built.modules, built.libraries) == (("my_ext",), ("my_ext/lib.so.2",))


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "my_ext-1.0-py3-none-any.whl"
    wheel.write_bytes(b"PK")
    with pytest.raises(BuildFailed, match="is not a wheel"):
        read_wheel(wheel, EXTENSION)

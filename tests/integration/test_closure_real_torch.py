"""The closure of real torch 2.13.0, sound and broken, compared with the errors of `import torch`.

TORCHBUILD_TEST_TORCH names a venv of Python 3.11 that has torch 2.13.0; without it one is made, which
downloads torch. TORCHBUILD_TEST_TORCH_WINDOWS names a folder into which the wheel for win_amd64 was unpacked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.capabilities import needs_linux_compiler, needs_proc
from tests.support.closures import Values, lib
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.closure.act import Files, find_closure
from torchbuild_tasks.features.closure.choose import close
from torchbuild_tasks.model.closure import Image, Loader
from torchbuild_tasks.values import replace

VERSION = "2.13.0"
EXTENSION = "_C.cpython-311-x86_64-linux-gnu.so"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason=f"torch {VERSION} is kept for Python 3.11"),
]


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages of a venv that has the real torch."""
    given = os.environ.get("TORCHBUILD_TEST_TORCH")
    venv = Path(given) if given else tmp_path_factory.mktemp("torch") / "venv"
    if not given:
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", f"torch=={VERSION}"]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"torch {VERSION} cannot be installed here: {done.stderr.strip()[-300:]}")
    return venv / "lib" / "python3.11" / "site-packages"


@pytest.fixture
def python(sound: Path, tmp_path: Path) -> str:
    """A Python whose torch is a copy by hard links: what is to be spoiled is replaced, never written into."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    site = venv / "lib" / "python3.11" / "site-packages"
    (site / "borrowed.pth").write_text(f"{sound}\n")
    shutil.copytree(sound / "torch", site / "torch", copy_function=linked)
    (tmp_path / "first").mkdir()
    return str(venv / "bin" / "python")


def linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def replaced(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def byte(path: Path, place: int, value: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] = value
    replaced(path, bytes(data))


def library(path: Path, *flags: str) -> None:
    argv = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(path), "-", f"-Wl,-soname,{path.name}", *flags]
    subprocess.run(argv, input="int nothing;", text=True, check=True)


def old_libstdcxx(folder: Path) -> None:
    script = folder / "versions"
    script.write_text("GLIBCXX_3.4 { *; };\nCXXABI_1.3 { };\n")
    library(folder / "libstdc++.so.6", f"-Wl,--version-script={script}")


def cut(path: Path) -> None:
    replaced(path, path.read_bytes()[: path.stat().st_size // 2])


Spoil = Callable[[Path, Path], object]
# What is done to torch/lib or to the folder that comes first, the finding, and the words of the import:
# "" where it succeeds, "died" where it ends the interpreter.
CASES: Mapping[str, tuple[Spoil, str, str]] = {
    "sound": (lambda lib, first: None, "", ""),
    "gone": (lambda lib, first: (lib / "libc10.so").unlink(), "missing libc10.so", "libc10.so: cannot open"),
    "renamed": (
        lambda lib, first: (lib / "libshm.so").rename(lib / "libshm.so.old"),
        "missing libshm.so",
        "libshm.so: cannot open",
    ),
    "no global deps": (
        lambda lib, first: (lib / "libtorch_global_deps.so").unlink(),
        "missing libtorch_global_deps.so",
        "libtorch_global_deps.so: cannot open",
    ),
    "cut": (lambda lib, first: cut(lib / "libc10.so"), "damaged libc10.so", "died"),
    "empty": (lambda lib, first: replaced(lib / "libc10.so", b""), "damaged libc10.so", "file too short"),
    "aarch64": (
        lambda lib, first: byte(lib / "libc10.so", 18, 0xB7),
        "other machine libc10.so",
        "libc10.so: cannot open",
    ),
    "32 bits": (
        lambda lib, first: byte(lib / "libc10.so", 4, 1),
        "other machine libc10.so",
        "libc10.so: wrong ELF class",
    ),
    "another library by its name": (
        lambda lib, first: replaced(lib / "libc10.so", (lib / "libtorch.so").read_bytes()),
        "symbol libc10.so",
        "undefined symbol",
    ),
    "old libstdc++ first": (
        lambda lib, first: old_libstdcxx(first),
        "version libstdc++.so.6",
        "libstdc++.so.6: version `",
    ),
    "another libgomp first": (
        lambda lib, first: library(first / "libgomp.so.1"),
        "symbol libgomp.so.1",
        "undefined symbol: ",
    ),
}


@needs_linux_compiler
@needs_proc
@pytest.mark.parametrize("case", CASES)
def test_the_leaf_of_real_torch(python: str, tmp_path: Path, case: str) -> None:
    spoil, finding, words = CASES[case]
    torch_lib = Path(python).parents[1] / "lib" / "python3.11" / "site-packages" / "torch" / "lib"
    spoil(torch_lib, tmp_path / "first")
    environ = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "first")}
    argv = [python, "-I", "-c", "import torch"]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode < 0 if words == "died" else words in done.stderr
    assert (done.returncode == 0) == (not finding)
    errors = [each for each in find_closure(python, environ).breaks if each.status == "error"]
    assert f"{errors[0].kind} {errors[0].library}" == finding if finding else errors == []


# ---------------------------------------------------------------- the wheel for Windows

LIB = "C:\\p\\Lib\\site-packages\\torch\\lib"
SYSTEM = "C:\\Windows\\System32"
# What a Windows with Microsoft's runtime and a Python 3.11 has of what this torch imports.
OF_WINDOWS = (
    *("advapi32", "kernel32", "dbghelp", "ws2_32", "wintrust", "imagehlp", "psapi", "user32", "iphlpapi"),
    *("userenv", "msvcp140", "vcruntime140", "vcruntime140_1", "python311"),
)


@pytest.fixture(scope="session")
def dlls() -> dict[str, Path]:
    given = os.environ.get("TORCHBUILD_TEST_TORCH_WINDOWS")
    if not given:
        pytest.skip("no TORCHBUILD_TEST_TORCH_WINDOWS")
    return {f"{LIB}\\{path.name}": path for path in sorted(Path(given, "torch", "lib").glob("*.dll"))}


class _Wheel(Values):
    """The DLLs of the wheel by their place on Windows, read from here."""

    def __init__(self, dlls: Mapping[str, Path], without: str = "", strange: str = "") -> None:
        files = Files()
        images: dict[str, Image] = {}
        for place, path in dlls.items():
            image = files.image(str(path))
            assert image is not None
            assert image.damage == ""
            changed = replace(image, machine="x86") if place.endswith(f"\\{strange}") else image
            if not place.endswith(f"\\{without}"):
                images[place] = replace(changed, real=place)
        super().__init__(images, {p: files.wanted(str(f)) for p, f in dlls.items()})
        for place, path in dlls.items():
            wanted = [symbol for symbols in self.takes.values() for symbol in symbols]
            self.gives = {**self.gives, place: {s.name for s in files.exported(str(path), wanted)}}

    def image(self, path: str) -> Image | None:
        folder, _, name = path.rpartition("\\")
        if folder == SYSTEM and name.lower().removesuffix(".dll") in OF_WINDOWS:
            return lib(path)
        return super().image(path)


@pytest.mark.parametrize(
    ("without", "strange", "finding"),
    [
        ("", "", ""),
        ("uv.dll", "", "missing uv.dll"),
        ("c10.dll", "", "missing c10.dll"),
        ("libiomp5md.dll", "", "missing libiomp5md.dll"),
        ("", "uv.dll", "other machine uv.dll"),
    ],
)
def test_the_leaf_of_the_wheel_for_windows(
    dlls: Mapping[str, Path], without: str, strange: str, finding: str
) -> None:
    roots = tuple(place for place in dlls if not without or not place.endswith(f"\\{without}"))
    loader = Loader(
        system="windows",
        machine="x86_64",
        executable="C:\\p\\python.exe",
        roots=roots,
        defaults=(SYSTEM,),
        extra=(LIB,),
    )
    breaks = close(loader, _Wheel(dlls, without, strange), load_catalog().library)[1]
    errors = [f"{each.kind} {each.library}" for each in breaks if each.status == "error"]
    assert errors == ([finding] if finding else [])

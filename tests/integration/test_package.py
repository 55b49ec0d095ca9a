"""Packages of real libraries: completed, refused, installed where nothing of this machine is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import has, needs, needs_cmake, needs_linux_compiler, skip_without
from tests.support.driver import torchbuild
from tests.support.sample import Era, materialise
from tests.support.wheels import make_wheel, wrong_members
from torchbuild_tasks.features.package.graft import read_image
from torchbuild_tasks.system.process import capture
from torchbuild_tasks.verify.session import PROBE, observe

pytest.importorskip("auditwheel")
pytestmark = [pytest.mark.integration, needs_linux_compiler, needs(has("patchelf"), "patchelf")]

needs_debian = needs(
    sys.platform == "linux" and os.geteuid() == 0 and has("mmdebstrap"), "root and mmdebstrap for a Debian"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel whose library needs libgomp and one of this machine's own; with debug information."""
    folder = tmp_path_factory.mktemp("built")
    own, torch = folder / "libown.so.3", folder / "libtorch_cpu.so"
    flags = ("-shared", "-fPIC", "-g", "-x", "c", "-")
    for text, path, more in (
        ("int own(){return 1;}", own, ["-Wl,-soname,libown.so.3"]),
        ("int own(); int t(){return own();}", torch, ["-Wl,--no-as-needed", f"-L{folder}", "-l:libown.so.3"]),
    ):
        more = [*more, "-lgomp", f"-Wl,-rpath,{folder}"] if path == torch else more
        subprocess.run(["gcc", "-o", str(path), *flags, *more], input=text, text=True, check=True)
    return make_wheel(folder / "dist", {"torch/lib/libtorch_cpu.so": torch.read_bytes()})


def test_what_only_this_machine_has_is_refused_with_the_list(wheel: Path, tmp_path: Path) -> None:
    done = torchbuild("package", "wheel", "--wheel", wheel, "--out", tmp_path / "out")
    assert done.code == 19
    assert f"libown.so.3 ({wheel.parents[1]}/libown.so.3), which torch/lib/libtorch_cpu.so needs" in done.err
    assert "--graft libown.so.3" in done.err
    assert list((tmp_path / "out").iterdir()) == []


def test_what_the_error_says_to_do_makes_it_complete(wheel: Path, tmp_path: Path) -> None:
    words = ("package", "wheel", "--wheel", wheel, "--out", tmp_path, "--graft", "libown.so.3", "--json")
    done = torchbuild(*words)
    assert done.code == 0, done.err
    made = Path(done.json["path"])
    assert "manylinux" in made.name
    assert set(done.json["grafted"]) == {"libown.so.3", "libgomp.so.1"}
    assert done.json["stripped"] > 0
    assert wrong_members(made) == []
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path / "x")
    image = read_image(tmp_path / "x/torch/lib/libtorch_cpu.so")
    assert image is not None
    assert (image.rpath, image.runpath) == (("$ORIGIN",), ())
    run = capture([sys.executable, "-c", f"import ctypes; ctypes.CDLL({image.real!r})"], env={})
    assert run.rc == 0, run.stderr


def test_a_wheel_of_another_form_is_refused_in_words(tmp_path: Path) -> None:
    """auditwheel and zipfile stumble over these, each in its own way."""
    for number, files in enumerate(
        ({}, {"x.dist-info/x": b""}, {"torch/version.py": b"__version__='1'\n\xff"})
    ):
        wheel = make_wheel(tmp_path / str(number), files)
        done = torchbuild("package", "libtorch", "--wheel", wheel, "--out", tmp_path / "out")
        assert (done.code, "Traceback" in done.err) == (19, False), done.err
        assert list((tmp_path / "out").iterdir()) == []


def test_the_tag_counts_what_was_brought(wheel: Path, tmp_path: Path) -> None:
    """The library itself would run on any manylinux; this machine's libgomp asks for more."""
    words = ("package", "wheel", "--wheel", wheel, "--out", tmp_path, "--graft", "libown*", "--json")
    assert torchbuild(*words).json["platform"] != "manylinux_2_5_x86_64"


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        (("wheel",), "There is no wheel yet.", 21),
        (("libtorch", "--wheel", "gone.whl"), "There is no wheel", 19),
    ],
)
def test_without_a_wheel_it_says_how_to_get_one(
    words: tuple[str, ...], says: str, code: int, tmp_path: Path
) -> None:
    checkout = materialise(tmp_path / "pt")
    done = torchbuild("package", *words, "--source", checkout)
    assert done.code == code
    assert says in done.err
    assert f"torchbuild build --source {checkout} --mode wheel" in done.err


@needs(has("uv"), "uv")
def test_uv_takes_this_torch_where_a_dependency_pins_another(tmp_path: Path) -> None:
    """What `package uv` prints, in a project whose dependency asks for torch 2.5.0."""
    wheel = make_wheel(tmp_path, version="2.6.0+mine.1")
    wheel = wheel.rename(tmp_path / wheel.name.replace("cp311-cp311", "py3-none"))
    done = torchbuild("package", "uv", "--wheel", wheel)
    assert done.code == 0, done.err
    table = '[project]\nname = "{}"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["{}"]\n'
    for name, needed in (("inner", "torch==2.5.0"), ("outer", "inner")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text(table.format(name, needed), "utf-8")
    with (tmp_path / "outer/pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(f'{done.out}inner = {{ path = "../inner" }}\n')
    argv = ["uv", "lock", "--offline", "--python", sys.executable]
    subprocess.run(
        argv, cwd=tmp_path / "outer", check=True, env={**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache")}
    )
    lock = tomllib.loads((tmp_path / "outer/uv.lock").read_text("utf-8"))
    (torch,) = (each for each in lock["package"] if each["name"] == "torch")
    assert torch["version"] == "2.6.0+mine.1"


# ---------------- the whole way


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Debian with Python and nothing to compile with."""
    tree = tmp_path_factory.mktemp("debian") / "root"
    argv = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        "--include=python3,python3-venv",
        "bookworm",
        str(tree),
    ]
    if subprocess.run(argv, check=False).returncode:
        skip_without("a Debian made by mmdebstrap")
    assert not any((tree / "usr/bin" / name).exists() for name in ("cc", "gcc", "g++", "ld", "cmake"))
    yield tree
    shutil.rmtree(tree)


@pytest.mark.slow
@needs_debian
@needs_cmake
@needs(sys.version_info[:2] == (3, 11), "the Python of Debian 12")
@pytest.mark.parametrize("era", ["scikit-build-core", "setuptools"])
def test_it_works_in_another_root(era: Era, target: Path, debian: Path, tmp_path: Path) -> None:
    """A wheel passes the verification in an empty venv of another root, without the build tree."""
    tree = materialise(tmp_path / "pt", era=era, git=True)
    built = torchbuild("build", "--source", tree, "--python", target, "--mode", "wheel", "--cpu", "--yes")
    assert built.code == 0, built.err
    words = ("--source", tree, "--out", tmp_path / "out", "--json")
    made, zipped = (torchbuild("package", kind, *words) for kind in ("wheel", "libtorch"))
    assert (made.code, zipped.code) == (0, 0), made.err + zipped.err
    shutil.copytree(tree / "test/cpp", tmp_path / "cpp")
    tree.rename(tmp_path / "away")

    name = Path(made.json["path"]).name
    place = debian / "packages"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(PROBE.parent, place)
    shutil.copy(made.json["path"], place / name)
    for argv in (
        ["python3", "-m", "venv", "--clear", "/venv"],
        ["/venv/bin/pip", "install", "-q", "--no-index", "--no-deps", f"/packages/{name}"],
    ):
        subprocess.run(["chroot", str(debian), *argv], check=True)
    ask = ["chroot", str(debian), "/venv/bin/python", "-I", f"/packages/{PROBE.name}"]
    names = ("import", "config", "matmul", "threads", "save_load")
    seen, end = observe(lambda left, seconds: capture([*ask, *left], timeout=seconds), names, 120)
    assert {check: each.outcome for check, each in seen.items()} == dict.fromkeys(names, "passed")
    assert end == ""
    _consume(tmp_path, Path(zipped.json["path"]))


def _consume(folder: Path, zipped: Path) -> None:
    """Build a program in C++ against libtorch with CMake, and run it in an empty environment."""
    with zipfile.ZipFile(zipped) as archive:
        archive.extractall(folder)
    (folder / "cpp/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(consumer CXX)\nset(CMAKE_CXX_STANDARD 17)\n"
        "find_package(Torch REQUIRED)\nadd_executable(consumer basic.cpp)\n"
        "target_link_libraries(consumer ${TORCH_LIBRARIES})\n",
        "utf-8",
    )
    binary = folder / "binary"
    prefix = f"-DCMAKE_PREFIX_PATH={folder / 'libtorch'}"
    subprocess.run(["cmake", "-S", str(folder / "cpp"), "-B", str(binary), prefix], check=True)
    subprocess.run(["cmake", "--build", str(binary)], check=True)
    ran = subprocess.run([str(binary / "consumer")], env={}, capture_output=True, text=True)
    assert (ran.returncode, "FAIL" in ran.stdout) == (0, False), ran.stdout + ran.stderr

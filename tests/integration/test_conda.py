"""Conda packages of wheels: written, put into a channel, solved, installed into a prefix, imported there."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.archives import Put, tar
from tests.support.capabilities import has, needs, needs_linux_compiler
from tests.support.driver import torchbuild
from tests.support.wheels import make_wheel

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytest.importorskip("auditwheel")
rattler = pytest.importorskip("rattler", reason="no py-rattler here (the extra `conda`)")
rattler_build = pytest.importorskip("rattler_build", reason="no py-rattler-build here (the extra `conda`)")
pytestmark = [
    pytest.mark.integration,
    needs_linux_compiler,
    needs(has("patchelf"), "patchelf"),
    needs(sys.version_info[:2] == (3, 11), "the Python that the test's wheel is for"),
]

NAME = "pytorch-local"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A torch with a library that needs libgomp, a program, and requirements with markers."""
    folder = tmp_path_factory.mktemp("built")
    library = folder / "libtorch_cpu.so"
    argv = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-Wl,--no-as-needed", "-lgomp", "-o", str(library)]
    subprocess.run(argv, input="int answer() { return 42; }", text=True, check=True)
    own = (
        "import ctypes, os\nfrom torch.version import __version__\n"
        "lib = ctypes.CDLL(os.path.join(os.path.dirname(__file__), 'lib/libtorch_cpu.so'))\n"
    )
    files = {
        "torch/__init__.py": own.encode(),
        "torch/run.py": b"def main():\n    import torch\n    return torch.lib.answer()\n",
        "torch/lib/libtorch_cpu.so": library.read_bytes(),
        "torch-2.6.0+mine.1.dist-info/entry_points.txt": b"[console_scripts]\ntorchrun = torch.run:main\n",
        "torch-2.6.0+mine.1.dist-info/licenses/LICENSE": b"BSD\n",
    }
    requires = ("typing-extensions>=4.10.0", 'colorama; platform_system == "Windows"', 'x; extra == "y"')
    return make_wheel(folder / "dist", files, version="2.6.0+mine.1", requires=requires)


@pytest.fixture(scope="module")
def package(wheel: Path) -> Path:
    done = torchbuild("package", "conda", "--wheel", wheel, "--out", wheel.parent / "out", "--json")
    assert done.code == 0, done.err
    assert set(done.json["grafted"]) == {"libgomp.so.1"}
    largest = {each["name"]: each["size"] for each in done.json["size"]["largest"]}
    assert done.json["size"]["size"] >= largest["lib/python3.11/site-packages/torch/lib/libgomp.so.1"] > 0
    return Path(done.json["path"])


def test_it_says_what_it_is_and_needs(package: Path) -> None:
    """Not conda-forge's name, which others are built against; the local part stands in the build string."""
    about = rattler.IndexJson.from_package_archive(package)
    assert (package.name, str(about.subdir)) == ("pytorch-local-2.6.0-cpu_py311_mine.1_0.conda", "linux-64")
    glibc, *others = sorted(about.depends)
    assert glibc.startswith("__glibc >=2.")
    assert others == ["python >=3.11,<3.12.0a0", "python_abi 3.11.* *_cp311", "typing_extensions >=4.10.0"]
    assert "pytorch <0a0" in about.constrains


def empty_package(folder: Path, name: str, version: str, build: str, files: Path | None = None) -> Path:
    """Make an empty package that stands for one of a real channel, which a test does not reach."""
    made = rattler_build.assemble_package(name, version, "linux-64", build, folder, files_dir=files)
    return Path(made.path)


def this_python(folder: Path) -> Path:
    """A package `python` whose program starts the Python of the tests with the prefix's packages."""
    program = folder / "bin/python"
    program.parent.mkdir(parents=True)
    start = 'PYTHONPATH="$(dirname "$0")/../lib/python3.11/site-packages"'
    program.write_text(f'#!/bin/sh\n{start} exec {sys.executable} -S "$@"\n', "utf-8")
    program.chmod(0o755)
    return folder


def test_from_a_channel_it_is_solved_installed_and_imported(package: Path, tmp_path: Path) -> None:
    """Python comes from a package that the test makes, since no channel is reached."""
    made = [
        package,
        empty_package(tmp_path / "a", "python", "3.11.7", "0_cpython", this_python(tmp_path / "files")),
        empty_package(tmp_path / "a", "python_abi", "3.11", "5_cp311"),
        empty_package(tmp_path / "a", "typing_extensions", "4.12.0", "0"),
    ]
    channel = tmp_path / "channel"
    words = [word for path in made for word in ("--file", str(path))]
    done = torchbuild("publish", channel, *words, "--yes")
    assert done.code == 0, done.err
    assert f"conda install -c {channel.as_uri()}" in done.out
    repodata = json.loads((channel / "linux-64/repodata.json").read_text("utf-8"))
    assert package.name in {**repodata["packages"], **repodata["packages.conda"]}
    assert json.loads((channel / "noarch/repodata.json").read_text("utf-8"))

    prefix = tmp_path / "prefix"
    names = asyncio.run(install(channel, prefix, tmp_path / "cache"))
    assert sorted(names) == ["python", "python_abi", NAME, "typing_extensions"]
    says = "import torch; print(torch.__version__, torch.lib.answer(), torch.__file__)"
    run = subprocess.run(
        [prefix / "bin/python", "-c", says], env={}, capture_output=True, text=True, check=True
    )
    home = prefix / "lib/python3.11/site-packages/torch/__init__.py"
    assert run.stdout.split() == ["2.6.0+mine.1", "42", str(home)]
    moved = prefix.rename(tmp_path / "moved")  # its program finds the Python beside it
    assert (
        subprocess.run([moved / "bin/torchrun"], env={"PATH": "/usr/bin:/bin"}, check=False).returncode == 42
    )


async def install(channel: Path, prefix: Path, cache: Path) -> list[str]:
    """Solve and install, as conda would, for a machine like this one."""
    place = rattler.Channel(channel.as_uri())
    virtual: list[Any] = rattler.VirtualPackage.detect()
    gateway = rattler.Gateway(cache_dir=cache / "repodata")
    records = await rattler.solve(
        [place], [NAME], gateway=gateway, platforms=["linux-64", "noarch"], virtual_packages=virtual
    )
    await rattler.install(records, prefix, cache_dir=cache / "packages", show_progress=False)
    return [record.name.normalized for record in records]


def test_a_damaged_one_is_not_published(package: Path, tmp_path: Path) -> None:
    damaged = tmp_path / package.name
    damaged.write_bytes(package.read_bytes()[:-200])
    done = torchbuild("publish", tmp_path / "channel", "--file", damaged, "--yes")
    assert (done.code, (tmp_path / "channel").exists()) == (19, False)
    assert "is not a complete package" in done.err


@pytest.mark.parametrize("subdir", ["../../out", "/out", "a\nb", ".."])
def test_one_whose_platform_is_a_path_is_not_published(tmp_path: Path, subdir: str) -> None:
    """The platform in it becomes a folder of the channel."""
    about = {"name": "x", "version": "1", "build": "0", "build_number": 0, "depends": [], "subdir": subdir}
    info = tar([Put("info/index.json", json.dumps(about).encode())])
    package = tmp_path / "x-1-0.conda"
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("metadata.json", '{"conda_pkg_format_version":2}')
        archive.writestr("pkg-x-1-0.tar.zst", zstd.compress(tar([])))
        archive.writestr("info-x-1-0.tar.zst", zstd.compress(info))
    done = torchbuild("publish", tmp_path / "a/b/channel", "--file", package, "--yes")
    assert (done.code, "is no platform" in done.err) == (19, True), done.err
    assert list(tmp_path.rglob("*.conda")) == [package]


def test_an_index_of_pips_takes_none(package: Path) -> None:
    done = torchbuild("publish", "http://127.0.0.1:9/", "--file", package, "--yes")
    assert done.code == 19
    assert "torchbuild publish FOLDER" in done.err


def test_wheels_of_nvidia_are_no_use_to_conda(wheel: Path) -> None:
    done = torchbuild("package", "conda", "--wheel", wheel, "--cuda-libraries", "depend")
    assert done.code == 2
    assert "conda installs no wheels" in done.err

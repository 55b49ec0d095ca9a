"""What a wheel says of itself, what is not a wheel, and which names one may hold."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.support.for_each import each_case
from tests.support.wheels import make_wheel
from torchbuild_tasks.facts.wheel import info_folder, look_at_wheel, read_metadata
from torchbuild_tasks.features.wheel_overlay.find import name_fault
from torchbuild_tasks.model.wheel import Member, Wheel


@each_case(
    ("names", "said"),
    [
        (("torch/version.py", "torch/lib/libtorch.so"), ""),
        (("torch/../../x",), "leaves the folder"),
        (("/etc/x",), "absolute path"),
        (("\\\\server\\share\\x",), "absolute path"),
        (("c:x",), "absolute path"),
        (("torch/./x.so",), "'torch/x.so'"),
        (("torch//x.so",), "'torch/x.so'"),
        (("torch\\lib\\x.dll",), "'torch/lib/x.dll'"),
        (("torch/lib/A.so", "torch/lib/a.so"), "is the same file as"),
        (("torch/Lib/a.so", "torch/lib/b.so"), "is the same file as"),
        (("torch/lib/a.so", "torch/lib/a.so"), "there twice"),
        (("torch/lib", "torch/lib/a.so"), "both a file and a folder"),
        (("torch/con.py",), "Windows device"),
        (("torch/x.so.",), "ends in a dot"),
        (("torch/x:y",), "Windows does not allow"),
        (("torch/x\0y",), "Windows does not allow"),
        (("torch/\udcff",), "not valid Unicode"),
    ],
)
def test_names_are_those_of_a_wheel(names: tuple[str, ...], said: str) -> None:
    found = name_fault(Wheel(path="w.whl", members=tuple(Member(name=name, size=1) for name in names)))
    assert (said in found) if said else not found


def test_a_link_is_none_of_a_wheels_files() -> None:
    found = name_fault(Wheel(path="w.whl", members=(Member(name="torch/x", size=1, kind="link"),)))
    assert "is a link" in found


def test_a_name_is_read_as_the_wheel_says_it(tmp_path: Path) -> None:
    """On every system: zipfile turns a backslash around on Windows alone, and cuts at a NUL."""
    path = make_wheel(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        for name in ("torch\\lib\\a.so", "torch/b.so\0.txt"):
            info = zipfile.ZipInfo("x")
            info.filename = name
            archive.writestr(info, b"")
    names = [member.name for member in look_at_wheel(path).members]
    assert {"torch\\lib\\a.so", "torch/b.so\0.txt"} <= set(names)


def test_what_a_wheel_says_is_read_and_not_run(tmp_path: Path) -> None:
    wheel = look_at_wheel(make_wheel(tmp_path))
    assert (wheel.problem, wheel.version, wheel.torch_version) == ("", "2.6.0+cpu", "2.6.0+cpu")
    assert wheel.commit == "abc1234"


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (slice(0, -100), "truncated or not a wheel"),
        (slice(60, None), "it "),  # Python 3.11 and 3.13 stumble over it in different places
        (slice(0, 0), "truncated or not a wheel"),
    ],
)
def test_a_cut_wheel_is_none(tmp_path: Path, keep: slice, said: str) -> None:
    path = make_wheel(tmp_path)
    path.write_bytes(path.read_bytes()[keep])
    assert said in look_at_wheel(path).problem


def test_a_wheel_of_something_else_is_none_of_torch(tmp_path: Path) -> None:
    path = tmp_path / "torch-2.6.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other/__init__.py", b"")
    assert "not a wheel of torch" in look_at_wheel(path).problem
    assert "cannot be read" in look_at_wheel(tmp_path / "none.whl").problem


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("[console_scripts]\ntorchrun = torch.distributed.run:main [x]\n[other]\npip = 5 %(y)s\n", ""),
        ("[console_scripts]\n../out = a:b\n", "a program named '../out'"),
        ("[console_scripts]\nPython3 = a:b\n", "a program named 'Python3'"),
        ("[console_scripts]\nx = a:b\nx = a:b\n  import os\n", "which is no function"),
        ("[gui_scripts]\nx = %(y)s\n", "which is no function"),
        ("[console_scripts]\nx\n", "cannot be read"),
    ],
)
def test_programs_are_names_and_call_functions(tmp_path: Path, names: str, said: str) -> None:
    info = "torch-2.6.0+cpu.dist-info"
    wheel = look_at_wheel(make_wheel(tmp_path, {f"{info}/entry_points.txt": names.encode()}))
    assert (said in wheel.problem) if said else not wheel.problem


@pytest.mark.parametrize("name", ["scripts/python", "data/bin/python3", "data/Scripts/PIP.exe"])
def test_files_take_the_place_of_no_program_either(tmp_path: Path, name: str) -> None:
    wheel = look_at_wheel(make_wheel(tmp_path, {f"torch-2.6.0+cpu.data/{name}": b""}))
    assert "would install a program named" in wheel.problem


def test_the_metadata_is_a_wheels_own(tmp_path: Path) -> None:
    """What a package vendors has a .dist-info of its own, which may stand first in the archive."""
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        for info in ("torch/_vendor/b-1.dist-info", "torch-2.dist-info"):
            archive.writestr(f"{info}/METADATA", f"Name: {info}\n")
        assert (info_folder(archive), read_metadata(archive)) == (
            "torch-2.dist-info",
            b"Name: torch-2.dist-info\n",
        )
        archive.writestr("c-3.dist-info/RECORD", "")
        with pytest.raises(ValueError, match="several"):
            info_folder(archive)

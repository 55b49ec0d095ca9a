"""Untrusted wheels: a name or link that leads out of the folder is refused before anything is unpacked."""

from __future__ import annotations

import stat
import time
import zipfile
from pathlib import Path

import pytest

from torchbuild_tasks.errors import ArchiveRefused
from torchbuild_tasks.facts.wheel import look_at_wheel
from torchbuild_tasks.system.archive.members import check_wheel_names

INFO = "torch-2.6.0.dist-info"
VERSION = "__version__ = '2.6.0+cpu'\ncuda: Optional[str] = None\ngit_version = '%s'\n" % ("a" * 40)
METADATA = "Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0\n"


def wheel(
    folder: Path, version: str = VERSION, metadata: str = METADATA, *more: tuple[str | zipfile.ZipInfo, str]
) -> Path:
    path = folder / "torch-2.6.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("torch/version.py", version), (f"{INFO}/METADATA", metadata), *more):
            archive.writestr(name, text.encode("utf-8", "surrogatepass"))
    return path


def test_what_a_sound_one_says(tmp_path: Path) -> None:
    found = look_at_wheel(wheel(tmp_path))
    assert (found.problem, found.version, found.torch_version) == ("", "2.6.0", "2.6.0+cpu")
    assert (found.commit, found.cuda) == ("a" * 40, "")
    check_wheel_names(found)


@pytest.mark.parametrize(
    ("version", "metadata", "said"),
    [
        ("__version__ = '../../../x'", METADATA, "version in its torch/version.py"),
        ("__version__ = '2.6\\\\1'", METADATA, "version in its torch/version.py"),
        ("__version__ = '1\\nName: x'", METADATA, "version in its torch/version.py"),
        (VERSION.replace("None", "'12/../..'"), METADATA, "CUDA is not a version"),
        (VERSION.replace("a" * 40, "--output=/tmp/x"), METADATA, "commit is none"),
        (VERSION, METADATA.replace("2.6.0", "1/../../../x"), "version in its METADATA"),
        (VERSION, METADATA.replace("2.6.0", "\x1b]52;c;eA==\x07"), "version in its METADATA"),
        (VERSION, METADATA + "Requires-Dist: x @ https://x.invalid/x.whl\n", "address of its own"),
        (VERSION, METADATA + "Requires-Dist: --index-url=x\n", "not a requirement"),
        ("(" * 100_000, METADATA, "version in its torch/version.py"),
        ("-" * 1_000_000, METADATA, "version in its torch/version.py"),
        ("a \n" * 900_000, METADATA, "version in its torch/version.py"),
        ("#" * (5 << 20), METADATA, "longer than 4 MiB"),
        (VERSION, "x" * (5 << 20), "longer than 4 MiB"),
    ],
    ids=range(14),
)
def test_a_value_of_another_form_is_refused(tmp_path: Path, version: str, metadata: str, said: str) -> None:
    began = time.process_time()
    assert said in look_at_wheel(wheel(tmp_path, version, metadata)).problem
    assert time.process_time() - began < 10


@pytest.mark.parametrize("name", ["../../x", "/usr/bin/python", "..\\x", "-x", "C", "\x1b[1m", "python"])
def test_an_entry_point_stays_among_the_programs(tmp_path: Path, name: str) -> None:
    entries = (f"{INFO}/entry_points.txt", f"[console_scripts]\n{name} = os:abort\n")
    found = look_at_wheel(wheel(tmp_path, VERSION, METADATA, entries))
    assert bool(found.problem) == (name not in ("C", "torchrun"))


@pytest.mark.parametrize(
    "name",
    [
        *("../x", "torch/../../x", "/x", "C:x", "C:/x", "\\\\server\\x", "torch/lib/NUL", "torch/lib/x."),
        *("torch//x", "./torch/x", "torch\\x", "torch/VERSION.py", "torch/version.py/x", "torch/lib/a:b"),
        *("torch/lib/\x1b[2J", "torch/" + "x" * 300, "torch/lib/one"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_none_of_a_wheel_is_refused(tmp_path: Path, name: str) -> None:
    info = zipfile.ZipInfo(name)
    info.filename = name  # zipfile for Windows turns a backslash
    found = look_at_wheel(wheel(tmp_path, VERSION, METADATA, (info, "x"), ("torch/lib/one", "")))
    with pytest.raises(ArchiveRefused):
        check_wheel_names(found)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: int) -> None:
    info = zipfile.ZipInfo("torch/lib/x.so")
    info.external_attr = (kind | 0o777) << 16
    with pytest.raises(ArchiveRefused, match="is a link"):
        check_wheel_names(look_at_wheel(wheel(tmp_path, VERSION, METADATA, (info, "/etc/passwd"))))


def test_a_file_without_a_name_is_no_traceback(tmp_path: Path) -> None:
    path = wheel(tmp_path, VERSION, METADATA, ("torch/lib/nm", ""))
    path.write_bytes(path.read_bytes().replace(b"torch/lib/nm", b"\0orch/lib/nm"))
    found = look_at_wheel(path)
    if not found.problem:  # that of a zipfile to which "" is not a name
        with pytest.raises(ArchiveRefused):
            check_wheel_names(found)


def test_a_size_that_no_torch_has_is_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path, VERSION, METADATA, ("torch/lib/x.so", "x"))
    data = bytearray(path.read_bytes())
    listed = data.rindex(b"torch/lib/x.so") - 46  # its header in the list of files
    data[listed + 24 : listed + 28] = b"\xfe\xff\xff\xff"
    path.write_bytes(data)
    found = look_at_wheel(path)
    assert max(each.size for each in found.members) == 0xFFFFFFFE
    many = found.__class__(path=found.path, members=found.members * 5)
    with pytest.raises(ArchiveRefused):
        check_wheel_names(many)

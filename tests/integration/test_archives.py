"""Archives of real programs: as libraries and as 7-Zip itself make them."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

import py7zr
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.archives import Put, make
from tests.support.capabilities import needs_7z, needs_symlinks
from tests.support.examples import examples
from torchbuild_tasks.errors import ArchiveRefused
from torchbuild_tasks.system.archive.unpack import unpack
from torchbuild_tasks.system.mark import MARKER

pytestmark = pytest.mark.integration

METHODS = {
    "solid": ("-mx=5",),
    "one by one": ("-ms=off",),
    "blocks": ("-ms=2f",),
    "stored": ("-mx=0",),
    "ppmd": ("-m0=PPMd",),
    "bzip2": ("-m0=BZip2",),
    "deflate": ("-m0=Deflate",),
    "lzma and a branch filter": ("-m0=BCJ", "-m1=LZMA"),
    "headers as they are": ("-mhc=off",),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder like those that helpers are packed from."""
    folder = tmp_path / "tree"
    for name, data in {
        "include/mkl.h": b"#define MKL 1\n" * 5000,
        "include/mkl_\u00e9.h": b"",
        "lib/mkl_core.lib": os.urandom(200_000),
        "lib/mkl_rt.lib": bytes(300_000),
        "bin/tool": b"#!/bin/sh\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "lib/none").mkdir()
    (folder / "bin/tool").chmod(0o755)
    return folder


def look(folder: Path) -> dict[str, tuple[str, bytes, bool]]:
    """Everything in a folder: kind, content, whether it is executable."""
    found = {}
    for path in folder.rglob("*"):
        mode, name = path.lstat().st_mode, path.relative_to(folder).as_posix()
        if stat.S_ISLNK(mode):
            found[name] = ("link", str(path.readlink()).encode(), False)
        elif path.is_dir():
            found[name] = ("folder", b"", False)
        elif name != MARKER:
            found[name] = ("file", path.read_bytes(), os.name == "posix" and bool(mode & 0o111))
    return found


def out(archive: Path, kind: str, folder: Path) -> None:
    """Unpack."""
    unpack(archive, kind, folder, tell=lambda *_: None, name="x")


# ---------------------------------------------------------------- as libraries make them


@pytest.mark.parametrize("packer", ["py7zr", "zipfile", "tarfile"])
def test_a_packed_tree_comes_out_the_same(packer: str, tree: Path, tmp_path: Path) -> None:
    archive, kind = tmp_path / "a", {"py7zr": "7z", "zipfile": "zip", "tarfile": "tar.bz2"}[packer]
    if packer == "py7zr":
        with py7zr.SevenZipFile(archive, "w") as seven:
            seven.writeall(tree, ".")
    elif packer == "tarfile":
        with tarfile.open(archive, "w:bz2") as tar:
            tar.add(tree, ".")
    else:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(tree.rglob("*")):
                packed.write(path, path.relative_to(tree))
    out(archive, kind, tmp_path / "out")
    assert look(tmp_path / "out") == look(tree)


@needs_symlinks
@pytest.mark.parametrize("packer", ["py7zr", "tarfile"])
def test_links_come_out_as_links(packer: str, tree: Path, tmp_path: Path) -> None:
    (tree / "lib/mkl.lib").symlink_to("mkl_core.lib")
    (tree / "lib64").symlink_to("lib")
    archive = tmp_path / "a"
    if packer == "py7zr":
        with py7zr.SevenZipFile(archive, "w") as seven:
            seven.writeall(tree, ".")
    else:
        with tarfile.open(archive, "w:bz2") as tar:
            tar.add(tree, ".")
    out(archive, "7z" if packer == "py7zr" else "tar.bz2", tmp_path / "out")
    assert look(tmp_path / "out") == look(tree)


# ---------------------------------------------------------------- as 7-Zip makes them


def pack(tree: Path, archive: Path, *options: str) -> Path:
    """Pack with 7-Zip."""
    program = next(filter(None, map(shutil.which, ("7zz", "7z"))))
    subprocess.run([program, "a", *options, str(archive), "."], cwd=tree, check=True, capture_output=True)
    return archive


@needs_7z
@pytest.mark.parametrize("method", METHODS)
def test_what_7zip_packed_comes_out_the_same(method: str, tree: Path, tmp_path: Path) -> None:
    out(pack(tree, tmp_path / "a.7z", *METHODS[method]), "7z", tmp_path / "out")
    assert look(tmp_path / "out") == look(tree)


@needs_7z
def test_a_method_that_py7zr_cannot_read_is_named_with_a_way_out(tree: Path, tmp_path: Path) -> None:
    archive = pack(tree, tmp_path / "a.7z", "-m0=BCJ2", "-m1=LZMA2")
    with pytest.raises(ArchiveRefused, match="py7zr cannot read") as refused:
        out(archive, "7z", tmp_path / "new" / "out")
    assert "pack the folder as .zip" in refused.value.next_step
    assert list((tmp_path / "new").iterdir()) == []


@needs_7z
def test_a_damaged_archive_of_7zip_is_refused(tree: Path, tmp_path: Path) -> None:
    data = bytearray(pack(tree, tmp_path / "a.7z").read_bytes())
    data[5000] ^= 0xFF
    (tmp_path / "a.7z").write_bytes(bytes(data))
    with pytest.raises(ArchiveRefused, match="broken, or cut short"):
        out(tmp_path / "a.7z", "7z", tmp_path / "new" / "out")
    assert list((tmp_path / "new").iterdir()) == []


names = st.lists(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters='/\\:<>"|?*'),
        min_size=1,
        max_size=6,
    ),
    min_size=1,
    max_size=3,
).map("/".join)


@given(members=st.dictionaries(names, st.binary(max_size=50), min_size=1, max_size=4))
@settings(max_examples=examples(15, 100))
def test_whatever_the_names_all_comes_out_or_nothing(members: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        archive = make("7z", root / "a.7z", [Put(name, data) for name, data in members.items()])
        try:
            out(archive, "7z", root / "out")
        except ArchiveRefused:
            assert {path.name for path in root.iterdir()} == {"a.7z"}
        else:
            files = {name: data for name, (kind, data, _) in look(root / "out").items() if kind == "file"}
            assert sorted(files.values()) == sorted(members.values())

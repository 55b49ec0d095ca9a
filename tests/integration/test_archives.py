"""Archives of real programs, and an installed 7-Zip beside py7zr."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import py7zr
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.archives import Put, make
from tests.support.capabilities import needs_7z, needs_posix_permissions, needs_shebang, needs_symlinks
from tests.support.examples import examples
from torchbuild_tasks.effects.archive.seven_zip import find_program
from torchbuild_tasks.effects.archive.unpack import NO_PROGRAM, unpack
from torchbuild_tasks.effects.helpers.marker import MARKER, read_marker
from torchbuild_tasks.errors import ArchiveRefused

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


def out(archive: Path, kind: str, folder: Path, program: str | None = NO_PROGRAM) -> str | None:
    """Unpack; returns what did it."""
    unpack(archive, kind, folder, tell=lambda *_: None, name="x", program=program)
    marker = read_marker(folder)
    return marker.engine if marker else None


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
    program = find_program()  # leaves an archive with links to py7zr
    assert out(archive, "7z" if packer == "py7zr" else "tar.bz2", tmp_path / "out", program) in (
        "py7zr",
        "python",
    )
    assert look(tmp_path / "out") == look(tree)


# ---------------------------------------------------------------- 7-Zip beside py7zr


def pack(tree: Path, archive: Path, *options: str) -> Path:
    """Pack with 7-Zip."""
    program = find_program()
    assert program is not None
    subprocess.run([program, "a", *options, str(archive), "."], cwd=tree, check=True, capture_output=True)
    return archive


@needs_7z
@pytest.mark.parametrize("method", METHODS)
def test_both_engines_give_the_same(method: str, tree: Path, tmp_path: Path) -> None:
    archive = pack(tree, tmp_path / "a.7z", *METHODS[method])
    assert out(archive, "7z", tmp_path / "by-program", find_program()) == Path(find_program() or "").stem
    assert out(archive, "7z", tmp_path / "by-python") == "py7zr"
    assert look(tmp_path / "by-program") == look(tmp_path / "by-python") == look(tree)


@needs_7z
def test_what_py7zr_cannot_read_needs_the_program(tree: Path, tmp_path: Path) -> None:
    archive = pack(tree, tmp_path / "a.7z", "-m0=BCJ2", "-m1=LZMA2")
    assert out(archive, "7z", tmp_path / "by-program", find_program()) != "py7zr"
    assert look(tmp_path / "by-program") == look(tree)
    with pytest.raises(ArchiveRefused, match="py7zr cannot read") as refused:
        out(archive, "7z", tmp_path / "by-python")
    assert "Install 7-Zip" in refused.value.next_step


@needs_7z
@needs_posix_permissions
def test_the_program_sets_no_rights_but_x(tmp_path: Path) -> None:
    members = [Put("run", b"1", mode=0o4755), Put("shut", b"2", mode=0), Put("open", b"3", mode=0o666)]
    archive = make("7z", tmp_path / "a.7z", members)
    assert out(archive, "7z", tmp_path / "by-program", find_program()) != "py7zr"
    out(archive, "7z", tmp_path / "by-python")
    modes = [
        {path.name: path.stat().st_mode for path in folder.rglob("*") if path.name != MARKER}
        for folder in (tmp_path / "by-program", tmp_path / "by-python")
    ]
    assert modes[0] == modes[1]


names = st.lists(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters='/\\:<>"|?*'),
        min_size=1,
        max_size=6,
    ),
    min_size=1,
    max_size=3,
).map("/".join)


@needs_7z
@given(members=st.dictionaries(names, st.binary(max_size=50), min_size=1, max_size=4))
@settings(max_examples=examples(15, 100))
def test_whatever_the_names_both_engines_agree(members: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        archive = make("7z", root / "a.7z", [Put(name, data) for name, data in members.items()])
        seen: list[object] = []
        for number, program in enumerate((find_program(), NO_PROGRAM)):
            try:
                out(archive, "7z", root / str(number), program)
                seen.append(look(root / str(number)))
            except ArchiveRefused as refused:
                seen.append(refused.what)
        assert seen[0] == seen[1]
        assert {path.name for path in root.iterdir()} <= {"a.7z", "0", "1"}


LIES = {
    "fails": "sys.exit(2 if x else real())",
    "cannot list": "sys.exit(real() if x else 2)",
    "lists nothing": "sys.exit(real() if x else 0)",
    "lists noise": "print('----------\\nPath = a\\n') if not x else None; sys.exit(real() if x else 0)",
    "lists another name": "sys.exit(real() if x else said(b'mkl.h', b'mkl.x'))",
    "lists another size": "sys.exit(real() if x else said(b'Size = 300000', b'Size = 300001'))",
    "adds a file": "rc = real(); x and (target / 'more').write_bytes(b''); sys.exit(rc)",
    "adds a folder": "rc = real(); x and (target / 'more').mkdir(); sys.exit(rc)",
    "cuts a file": "rc = real(); x and (target / 'bin/tool').write_bytes(b'#'); sys.exit(rc)",
    "leaves out a file": "rc = real(); x and (target / 'bin/tool').unlink(); sys.exit(rc)",
    "makes a link": "rc = real(); x and (target / 'more').symlink_to('/'); sys.exit(rc)",
}


@needs_7z
@needs_shebang
@pytest.mark.parametrize("lie", LIES)
def test_a_program_that_does_something_else_is_not_believed(lie: str, tree: Path, tmp_path: Path) -> None:
    archive = pack(tree, tmp_path / "a.7z")
    program = tmp_path / "7zz"
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, subprocess, sys\n"
        "x = sys.argv[1] == 'x'\n"
        f"real = lambda: subprocess.call([{find_program()!r}, *sys.argv[1:]])\n"
        "target = pathlib.Path(next((w[2:] for w in sys.argv if w.startswith('-o')), ''))\n"
        "def said(old, new):\n"
        f"    out = subprocess.check_output([{find_program()!r}, *sys.argv[1:]])\n"
        "    assert old in out\n"
        "    sys.stdout.buffer.write(out.replace(old, new))\n"
        f"{LIES[lie]}\n",
        "utf-8",
    )
    program.chmod(0o755)
    assert out(archive, "7z", tmp_path / "out", str(program)) == "py7zr"
    assert look(tmp_path / "out") == look(tree)


@needs_7z
@pytest.mark.parametrize("program", ["/no/such/7zz", sys.executable])
def test_a_program_that_is_none_is_done_without(program: str, tree: Path, tmp_path: Path) -> None:
    assert out(pack(tree, tmp_path / "a.7z"), "7z", tmp_path / "out", program) == "py7zr"


@needs_7z
@pytest.mark.parametrize(
    "members",
    [
        [Put("../x", b"1")],
        [Put("/x", b"1")],
        [Put("a"), Put("A")],
        [Put("l", kind="link", target="/etc")],
        [Put("con", b"1")],
    ],
)
def test_the_program_is_not_even_asked_to_unpack_what_is_refused(members: list[Put], tmp_path: Path) -> None:
    archive = make("7z", tmp_path / "a.7z", members)
    with pytest.raises(ArchiveRefused):
        out(archive, "7z", tmp_path / "new" / "out", find_program())
    assert list((tmp_path / "new").iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} - {"home"} == {"a.7z", "new"}


@needs_7z
def test_a_damaged_archive_is_refused_with_the_program_too(tree: Path, tmp_path: Path) -> None:
    data = bytearray(pack(tree, tmp_path / "a.7z").read_bytes())
    data[5000] ^= 0xFF
    (tmp_path / "a.7z").write_bytes(bytes(data))
    with pytest.raises(ArchiveRefused, match="broken, or cut short"):
        out(tmp_path / "a.7z", "7z", tmp_path / "new" / "out", find_program())
    assert list((tmp_path / "new").iterdir()) == []

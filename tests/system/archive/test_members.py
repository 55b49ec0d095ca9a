"""Names and links of archives: what is refused, the same on every system."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.errors import ArchiveRefused
from torchbuild_tasks.model.wheel import Member
from torchbuild_tasks.system.archive.members import Tree, fault, parts_of

BAD = {
    "absolute": (
        "/etc/passwd",
        "\\etc",
        "C:\\x",
        "c:x",
        "//server/share/x",
        "\\\\server\\share",
        "\\\\?\\C:\\x",
    ),
    "leaves the folder": ("..", "../x", "a/../../x", "a\\..\\x", "a/..", "./.."),
    "Windows does not allow": (
        "a<b",
        "a>b",
        "x/a:b",
        'a"b',
        "a|b",
        "a?",
        "a*",
        "a\nb",
        "a\x00b",
        "a\x7f",
        "f:s",
    ),
    "dot or a space": ("a.", "a ", "a./b", "a /b", "...", "x/..."),
    "Windows device": (
        "CON",
        "con.txt",
        "a/nul",
        "NUL.tar.gz",
        "Com1",
        "lpt9.x",
        "COM\u00b9",
        "aux .c",
        "CONIN$",
    ),
    "not valid Unicode": ("a\udcff",),
    "more than": ("a" * 256, "\u00e9" * 128, "/".join(["abc"] * 300)),
}
GOOD = (
    "a",
    "a/b",
    "./a",
    "a//b",
    "a\\b",
    ".hidden",
    "a.b.c",
    "console",
    "com10",
    "COM",
    "nul_",
    "\u00e9\u4e2d",
    "a b",
    "..a",
)


def tree() -> Tree:
    return Tree(archive="sample.zip")


@each_case(("rule", "name"), [(rule, name) for rule, names in BAD.items() for name in names])
def test_bad_names_are_refused_with_member_and_rule(rule: str, name: str) -> None:
    if name == "f:s":  # one letter before a colon is a drive first
        rule = "absolute"
    with pytest.raises(ArchiveRefused, match=rule) as refused:
        tree().admit(Member(name=name))
    assert repr(name) in refused.value.what
    assert "sample.zip" in refused.value.what
    assert refused.value.next_step


@each_case("name", GOOD)
def test_good_names_are_taken(name: str) -> None:
    assert fault(name) == ""
    assert tree().admit(Member(name=name)) == "/".join(parts_of(name))


@each_case(
    ("one", "other"),
    [
        ("include/a.h", "include/A.h"),
        ("Include/a.h", "include/b.h"),
        ("\u00e9", "e\u0301"),
        ("\u03c3", "\u03c2"),
        ("a", "a"),
        ("a/b", "a\\b"),
        ("./a", "a"),
    ],
)
def test_two_members_that_are_one_file_on_windows_are_refused(one: str, other: str) -> None:
    judge = tree()
    judge.admit(Member(name=one))
    with pytest.raises(ArchiveRefused, match="same file|twice"):
        judge.admit(Member(name=other))


@each_case(("one", "other"), [("a", "a/b"), ("a/b", "a"), ("a", "A/b")])
def test_a_member_cannot_be_file_and_folder(one: str, other: str) -> None:
    judge = tree()
    judge.admit(Member(name=one))
    with pytest.raises(ArchiveRefused, match="both a file and a folder|same file"):
        judge.admit(Member(name=other))


def test_a_folder_may_be_there_twice_and_nameless() -> None:
    judge = tree()
    for name in ("a/", "./", "a", "a/b/c", "a/b"):
        judge.admit(Member(name=name, kind="folder"))
    assert judge.folders == {"a", "a/b", "a/b/c"}
    with pytest.raises(ArchiveRefused, match="has no name"):
        judge.admit(Member(name="./"))


def test_our_own_mark_cannot_be_brought_along() -> None:
    for name in (".torchbuild-helper.json", ".TORCHBUILD-helper.JSON"):
        with pytest.raises(ArchiveRefused, match="own mark"):
            tree().admit(Member(name=name))


def test_bytes_and_members_are_bounded() -> None:
    judge = Tree(archive="x", limit=10, count=3)
    judge.admit(Member(name="a", size=10))
    with pytest.raises(ArchiveRefused, match="limit of 10 bytes"):
        judge.admit(Member(name="b", size=1))
    with pytest.raises(ArchiveRefused, match="limit of 10 bytes"):
        tree_of_one = Tree(archive="x", limit=10)
        tree_of_one.admit(Member(name="a", size=-1))
    crowded = Tree(archive="x", count=3)
    crowded.admit(Member(name="a/b/c"))
    with pytest.raises(ArchiveRefused, match="more than 3 files and folders"):
        crowded.admit(Member(name="a/b/d"))


# ---------------------------------------------------------------- links


def linked(target: str, at: str = "a/link") -> str:
    """Where a link ends, in a tree with some files, folders and links."""
    judge = tree()
    for name in ("a/file", "a/b/deep", "top"):
        judge.admit(Member(name=name, size=1))
    others = {"a/b/up": "..", "a/self": "self", "a/one": "two", "a/two": "one", "a/hop": "b/up/file"}
    for name, text in {**others, at: target}.items():
        judge.links[judge.admit(Member(name=name, kind="link"))] = text
    end = judge.lead(at)
    assert end is not None
    return end


@each_case(
    ("target", "end"),
    [
        ("file", "a/file"),
        ("./b/deep", "a/b/deep"),
        ("b", "a/b"),
        ("../top", "top"),
        ("..\\top", "top"),
        ("b/up/file", "a/file"),
        ("hop", "a/file"),
        ("b/up/../top", "top"),
        ("..", ""),
    ],
)
def test_links_inside_are_followed_to_their_end(target: str, end: str) -> None:
    assert linked(target) == end


@each_case(
    ("target", "rule"),
    [
        ("../../x", "leaves the folder"),
        ("b/up/../../x", "leaves the folder"),  # by its text alone it would not
        ("/etc/passwd", "absolute path"),
        ("C:\\x", "absolute path"),
        ("\\\\server\\x", "absolute path"),
        ("missing", "nothing in the archive"),
        ("File", "nothing in the archive"),
        ("file/x", "nothing in the archive"),
        ("self", "in a circle"),
        ("one", "in a circle"),
        ("link", "in a circle"),
    ],
)
def test_links_that_leave_or_lead_nowhere_are_refused(target: str, rule: str) -> None:
    with pytest.raises(ArchiveRefused, match=rule):
        linked(target)


def test_a_member_below_a_link_is_refused() -> None:
    judge = tree()
    judge.admit(Member(name="a", kind="link"))
    with pytest.raises(ArchiveRefused, match="both a file and a folder"):
        judge.admit(Member(name="a/b"))


def test_many_links_to_a_large_file_count_as_copies() -> None:
    judge = Tree(archive="x", limit=100)
    judge.admit(Member(name="big", size=60))
    judge.links[judge.admit(Member(name="link", kind="link"))] = "big"
    with pytest.raises(ArchiveRefused, match="limit of 100 bytes"):
        judge.lead("link")


@given(st.text(alphabet="ab./\\: \x00CONcon~\u00e9\u0301", max_size=12))
def test_what_is_taken_stays_inside_in_every_reading(name: str) -> None:
    """Read as a Windows path or as a POSIX one, an accepted name goes down only."""
    import ntpath
    import posixpath

    if fault(name):
        return
    for path in (ntpath, posixpath):
        assert not path.isabs(name)
        assert not path.splitdrive(name)[0]
        assert ".." not in path.normpath(name).replace("\\", "/").split("/")

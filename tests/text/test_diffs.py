"""Diffs are taken apart by their own counts, and what cannot be applied whole is refused by name."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.text.diffs import problem, sections

ONE = "--- a/c10/a.h\n+++ b/c10/a.h\n@@ -1,3 +1,3 @@\n x\n-y\n+z\n w\n"
MAILED = (
    "From 01 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] Binary files are fine to mention\n\n---\n"
    " c10/a.h | 2 +-\n\ndiff --git a/c10/a.h b/c10/a.h\nindex 1..2 100644\n" + ONE + "-- \n2.39.2\n\n"
)
NEW = (
    "diff --git a/new/f.h b/new/f.h\nnew file mode 100644\n--- /dev/null\n+++ b/new/f.h\n@@ -0,0 +1 @@\n+x\n"
)
GONE = "--- a/old.h\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"


def test_a_mail_is_its_diff() -> None:
    (section,) = sections(MAILED)
    assert (section.path, section.text, section.creates) == ("c10/a.h", ONE, False)
    assert problem(MAILED) == ""


def test_several_files_made_changed_and_removed() -> None:
    parts = sections(NEW + ONE + GONE)
    assert [(part.path, part.creates) for part in parts] == [
        ("new/f.h", True),
        ("c10/a.h", False),
        ("old.h", False),
    ]
    assert problem(NEW + ONE + GONE) == ""


def test_a_line_that_looks_like_a_head_belongs_to_its_hunk() -> None:
    """A removed line `-- a/x` and an added `++ b/x` stand in the diff as heads do."""
    odd = "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- a/x\n+++ b/x\n k\n"
    (section,) = sections(odd)
    assert (section.path, section.text) == ("q.sql", odd)
    assert problem(odd) == ""


def test_no_newline_at_the_end_and_no_other_line_ends() -> None:
    no_newline = "\\ No newline at end of file\n"
    text = f"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\x0c\u2028y\n{no_newline}+z\n{no_newline}"
    assert [part.text for part in sections(text + ONE)] == [text, ONE]


def test_a_time_behind_the_name_and_another_first_folder() -> None:
    text = ONE.replace("a/c10/a.h", "old/c10/a.h\t2026-01-01 00:00").replace("b/c10/a.h", "new/c10/a.h")
    assert [part.path for part in sections(text)] == ["c10/a.h"]
    assert problem(text) == ""


@each_case(
    ("text", "told"),
    [
        ("", "contains no change"),
        ("hello\n", "contains no change"),
        (ONE + ONE, "changes c10/a.h twice"),
        (ONE.replace("c10/a.h", "../a.h"), "out of the checkout"),
        (ONE.replace("c10/a.h", "/etc/passwd"), "without a/ and b/"),
        (ONE.replace("a/c10/", "").replace("b/c10/", ""), "without a/ and b/"),
        (ONE.replace("c10/a.h", "C:/a.h"), "out of the checkout"),
        (ONE.replace("c10/a.h", "c10\\a.h"), "out of the checkout"),
        (ONE.replace("c10/a.h", ".git/config"), "not source"),
        (ONE.replace("b/c10/a.h", "b/c10/b.h"), "renames"),
        (ONE.replace("a/c10/a.h", '"a/c10/\\303\\244.h"'), "in quotes"),
        ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "renames a file"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "mode"),
        ("diff --git a/x b/x\nnew file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", "program"),
        ("diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\n", "binary"),
        (ONE + "diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary"),
    ],
)
def test_what_cannot_be_applied_completely(text: str, told: str) -> None:
    assert told in problem(text)


@each_case("row", load_catalog().patch, ids=lambda row: row.id)
def test_our_own_can(row: object) -> None:
    assert problem(row.text) == ""  # type: ignore[attr-defined]

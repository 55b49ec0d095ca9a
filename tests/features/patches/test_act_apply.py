"""Patches are applied completely or not at all, recorded, and undone even after a kill or an edit."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import (
    needs_enforced_permissions,
    needs_git,
    needs_posix_permissions,
    needs_symlinks,
)
from tests.support.for_each import each_case
from tests.support.patched_sources import (
    CONTEXT,
    KERNELS,
    SHAPES,
    THCUNN,
    contents,
    lay_out,
    own_patch,
    row_patch,
)
from torchbuild_tasks.errors import PatchRefused
from torchbuild_tasks.features.patches import act as patches
from torchbuild_tasks.features.patches.act import DoesNotApply, apply_section, fits
from torchbuild_tasks.features.patches.choose import PATCH_RECORD
from torchbuild_tasks.model import Patch
from torchbuild_tasks.system import files
from torchbuild_tasks.text.diffs import sections

pytestmark = [pytest.mark.integration, needs_git]

ROWS = {"1.1.0": "launch-bounds-thcunn", "1.13.0a0": "launch-bounds", "2.8.0a0": "launch-bounds"}
BOUNDS = row_patch("launch-bounds")
# Changes another line of KernelUtils.h.
BLOCKS = own_patch(
    "blocks",
    KERNELS,
    "// CUDA: number of blocks for threads.",
    "// Blocks.",
    before="",
    after="inline int GET_BLOCKS(const int64_t N, const int64_t max) {",
)

BLOCK = "inline int GET_BLOCKS(const int64_t N, const int64_t max) {"
SECOND_ALONE = own_patch(
    "alone", KERNELS, "// CUDA: number of blocks for threads.", "// Two.", before="", after=BLOCK
)


def apply(root: Path, wanted: Sequence[Patch]) -> tuple[str, ...]:
    """Have these patches; those that are new."""
    return patches.bring(root, wanted).applied


def undo(root: Path, *, dry_run: bool = False) -> tuple[str, ...]:
    """Have none; those that went."""
    return patches.bring(root, (), dry_run=dry_run).undone


def state(root: Path, diff: str) -> str:
    """Whether it stands whole (applied), fits (clean) or neither (refused)."""
    found = set()
    for section in sections(diff):
        path = root / section.path
        content = path.read_bytes() if path.is_file() else None
        known = fits(content, section, reverse=True)
        found.add("applied" if known else "clean" if fits(content, section) else "refused")
    return "refused" if "refused" in found else "clean" if "clean" in found else "applied"


def record(root: Path) -> Any:
    return json.loads((root / files.STATE_DIR / PATCH_RECORD).read_bytes())["patches"]


def edit(root: Path, name: str, old: str, new: str) -> None:
    path = root / name
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8", newline="\n")


# ---------------------------------------------------------------- there and back


@pytest.mark.parametrize("crlf", [False, True], ids=["lf", "crlf"])
@pytest.mark.parametrize("version", SHAPES)
def test_applied_and_taken_back(tmp_path: Path, version: str, crlf: bool) -> None:
    root = lay_out(tmp_path, version, crlf=crlf)
    before, patch = contents(root), row_patch(ROWS[version])
    assert state(root, patch.diff) == "clean"
    assert apply(root, [patch]) == (patch.id,)
    after = contents(root)
    assert state(root, patch.diff) == "applied"
    assert all(after[name] != before[name] for name in SHAPES[version])
    assert b"CUDA_NUM_THREADS = 512;" in after[KERNELS]
    assert b"maxThreadsPerBlock /= 2;" in after[CONTEXT]
    for name, data in after.items():
        assert data.count(b"\r\n") == (data.count(b"\n") if crlf else 0), name
    assert undo(root) == (patch.id,)
    assert contents(root) == before
    assert not (root / files.STATE_DIR / PATCH_RECORD).exists()
    assert undo(root) == ()


DIFF = "--- a/{name}\n+++ b/{name}\n@@ -1,2 +1,2 @@\n-one\n+two\n end\n"


@each_case(
    ("name", "file_ends", "head_ends", "body_ends"),
    itertools.product(("top.txt", "deep/down.txt"), *[("\n", "\r\n")] * 3),
)
def test_the_files_line_ends_count(name: str, file_ends: str, head_ends: str, body_ends: str) -> None:
    """git writes a diff of a CRLF file with LF in its headers; an editor puts CRLF on every line."""
    lines = DIFF.format(name=name).splitlines()
    diff = "".join(line + (head_ends if at < 3 else body_ends) for at, line in enumerate(lines))
    section = sections(diff)[0]
    old, new = (f"{word}{file_ends}end{file_ends}".encode() for word in ("one", "two"))
    assert apply_section(old, section) == new
    assert apply_section(new, section, reverse=True) == old


def test_a_file_is_made_by_a_diff_of_crlf() -> None:
    diff = "--- /dev/null\r\n+++ b/top.txt\r\n@@ -0,0 +1 @@\r\n+one\r\n"
    assert apply_section(None, sections(diff)[0]) == b"one\n"


def test_applied_once(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    apply(root, [BOUNDS])
    after, remembered = contents(root), record(root)
    assert apply(root, [BOUNDS]) == ()
    assert (contents(root), record(root)) == (after, remembered)


def test_what_the_record_says(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    apply(root, [BOUNDS])
    (entry,) = record(root)
    assert entry["id"] == "launch-bounds"
    assert entry["diff"] == BOUNDS.diff
    assert set(entry["files"]) == {CONTEXT, KERNELS}
    assert all(len(change[side]) == 64 for change in entry["files"].values() for side in change)


def test_no_patch_leaves_no_trace(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    assert apply(root, []) == ()
    assert patches.read_record(root).patches == ()
    assert not (root / files.STATE_DIR).exists()


def test_a_dry_run_says_and_does_nothing(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    apply(root, [BOUNDS])
    after = contents(root)
    assert undo(root, dry_run=True) == ("launch-bounds",)
    assert contents(root) == after
    assert len(record(root)) == 1


# ---------------------------------------------------------------- others change the source too


def test_one_that_another_tool_applied_is_neither_applied_again_nor_taken_back(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    apply(root, [BOUNDS])
    (root / files.STATE_DIR / PATCH_RECORD).unlink()
    after = contents(root)
    assert apply(root, [BOUNDS]) == ()
    assert undo(root) == ()
    assert contents(root) == after


def test_the_half_that_is_missing_is_applied_and_only_that_is_taken_back(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    context, _ = sections(BOUNDS.diff)
    theirs = apply_section((root / CONTEXT).read_bytes(), context)
    assert theirs is not None
    (root / CONTEXT).write_bytes(theirs)
    assert state(root, BOUNDS.diff) == "clean"
    assert apply(root, [BOUNDS]) == ("launch-bounds",)
    assert state(root, BOUNDS.diff) == "applied"
    undo(root)
    assert (root / CONTEXT).read_bytes() == theirs
    assert b"= 1024;" in (root / KERNELS).read_bytes()


def test_an_edit_elsewhere_in_the_file_survives(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    apply(root, [BOUNDS])
    edit(root, KERNELS, "#pragma once", "#pragma once\n// mine")
    assert apply(root, [BOUNDS]) == ()
    assert undo(root) == ("launch-bounds",)
    text = (root / KERNELS).read_text("utf-8")
    assert "// mine" in text
    assert "= 1024;" in text


def test_an_edit_of_the_same_line_is_not_undone(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    apply(root, [BOUNDS])
    edit(root, KERNELS, "= 512;", "= 256;")
    after = contents(root)
    with pytest.raises(PatchRefused) as refused:
        undo(root)
    assert KERNELS in refused.value.what
    assert KERNELS in refused.value.next_step
    assert contents(root) == after, "not even the other file"
    assert len(record(root)) == 1


def test_files_that_git_restored_are_patched_again(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    apply(root, [BOUNDS])
    after, remembered = contents(root), record(root)
    (root / KERNELS).write_bytes(before[KERNELS])
    assert apply(root, [BOUNDS]) == ("launch-bounds",)
    assert (contents(root), record(root)) == (after, remembered)


def test_files_that_git_restored_have_nothing_to_take_back(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    apply(root, [BOUNDS])
    (root / CONTEXT).unlink()
    (root / KERNELS).write_bytes(before[KERNELS] + b"// newer\n")
    assert undo(root) == ("launch-bounds",)
    assert (root / KERNELS).read_bytes() == before[KERNELS] + b"// newer\n"
    assert not (root / files.STATE_DIR / PATCH_RECORD).exists()


# ---------------------------------------------------------------- what does not fit


def test_one_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    edit(root, KERNELS, "= 1024;", "= 256;")
    before = contents(root)
    assert state(root, BOUNDS.diff) == "refused"
    with pytest.raises(PatchRefused) as refused:
        apply(root, [BOUNDS])
    assert "launch-bounds" in refused.value.what
    assert KERNELS in refused.value.what
    assert any("patch does not apply" in line for line in refused.value.looked), "git's own words"
    assert contents(root) == before
    assert not (root / files.STATE_DIR).exists()


def test_all_are_tried_before_the_first_is_applied(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    wrong = own_patch("wrong", CONTEXT, "nothing like it", "x", before="", after="")
    with pytest.raises(PatchRefused, match="wrong"):
        apply(root, [BOUNDS, wrong])
    assert contents(root) == before
    assert patches.read_record(root).patches == ()


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    root = lay_out(tmp_path, "1.13.0a0")
    assert state(root, row_patch("launch-bounds-thcunn").diff) == "refused"
    with pytest.raises(PatchRefused, match=THCUNN):
        apply(root, [row_patch("launch-bounds-thcunn")])


def test_no_fuzz(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    edit(root, KERNELS, "// Use 1024 threads per block", "// Use 1024 threads a block")
    assert state(root, BOUNDS.diff) == "refused"


# ---------------------------------------------------------------- several, and other versions of one


def test_two_patches_of_one_file(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    assert apply(root, [BOUNDS, BLOCKS]) == ("launch-bounds", "blocks")
    text = (root / KERNELS).read_text("utf-8")
    assert "= 512;" in text
    assert "// Blocks." in text
    assert apply(root, [BOUNDS, BLOCKS]) == ()
    assert patches.bring(root, [BLOCKS]).undone == ("launch-bounds",)
    text = (root / KERNELS).read_text("utf-8")
    assert "= 1024;" in text
    assert "// Blocks." in text
    assert [entry["id"] for entry in record(root)] == ["blocks"]
    assert undo(root) == ("blocks",)
    assert contents(root) == before


def test_what_the_plan_does_not_hold_any_more_goes(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    apply(root, [BOUNDS, BLOCKS])
    other = Patch(id="blocks", diff=BLOCKS.diff.replace("Blocks.", "Block."), because="newer")
    outcome = patches.bring(root, [BOUNDS, other])
    assert (outcome.applied, outcome.undone) == (("blocks",), ("blocks",))
    assert "// Block." in (root / KERNELS).read_text("utf-8")
    assert patches.bring(root, [other]) == patches.Outcome(undone=("launch-bounds",))


def test_an_older_tools_patch_is_taken_back_by_its_own_diff(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    old = Patch(id="blocks", diff=BLOCKS.diff.replace("Blocks.", "Old."), because="older")
    apply(root, [old])
    assert apply(root, [BLOCKS]) == ("blocks",)
    assert "Old." not in (root / KERNELS).read_text("utf-8")


# ---------------------------------------------------------------- a series, as people write them

# The second changes what the first has made.
FIRST = own_patch(
    "0001.patch", KERNELS, "// CUDA: number of blocks for threads.", "// One.", before="", after=BLOCK
)
SECOND = own_patch("0002.patch", KERNELS, "// One.", "// Two.", before="", after=BLOCK)
NEW = Patch(
    id="0003.patch",
    diff="--- /dev/null\n+++ b/torch/csrc/mine/new.h\n@@ -0,0 +1,2 @@\n+one\n+two\n",
    because="a test",
)


def removal(root: Path, name: str) -> Patch:
    lines = (root / name).read_text("utf-8").splitlines(keepends=True)
    body = "".join(f"-{line}" for line in lines)
    diff = f"--- a/{name}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n{body}"
    return Patch(id="0004.patch", diff=diff, because="a test")


def test_one_may_change_what_another_has_made(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    assert apply(root, [FIRST, SECOND]) == ("0001.patch", "0002.patch")
    assert "// Two." in (root / KERNELS).read_text("utf-8")
    assert patches.bring(root, [FIRST, SECOND]) == patches.Outcome()
    time = (root / KERNELS).stat().st_mtime_ns
    assert apply(root, [FIRST, SECOND, NEW]) == ("0003.patch",)
    assert (root / KERNELS).stat().st_mtime_ns == time, (
        "what is as it shall be is not written: Ninja would build"
    )
    assert patches.bring(root, [FIRST]).undone == ("0003.patch", "0002.patch")
    assert "// One." in (root / KERNELS).read_text("utf-8")
    assert undo(root) == ("0001.patch",)
    assert contents(root) == before


def test_files_that_git_restored_under_a_series_are_patched_again(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    apply(root, [FIRST, SECOND])
    (root / KERNELS).write_bytes(before[KERNELS])
    assert apply(root, [FIRST, SECOND]) == ("0001.patch", "0002.patch")
    (root / KERNELS).write_bytes(before[KERNELS])
    assert undo(root) == ("0002.patch", "0001.patch")
    assert contents(root) == before


def test_a_file_is_made_and_taken_away_with_its_folder(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    assert apply(root, [NEW]) == ("0003.patch",)
    assert (root / "torch/csrc/mine/new.h").read_bytes() == b"one\ntwo\n"
    assert apply(root, [NEW]) == ()
    assert undo(root) == ("0003.patch",)
    assert not (root / "torch/csrc").exists()


def test_a_file_of_that_name_that_says_something_else_is_not_overwritten(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    (root / "torch/csrc/mine").mkdir(parents=True)
    (root / "torch/csrc/mine/new.h").write_bytes(b"mine\n")
    with pytest.raises(PatchRefused, match="new.h"):
        apply(root, [FIRST, NEW])
    assert (root / "torch/csrc/mine/new.h").read_bytes() == b"mine\n"
    assert "// One." not in (root / KERNELS).read_text("utf-8")


def test_a_file_is_removed_and_comes_back(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    assert apply(root, [removal(root, CONTEXT)]) == ("0004.patch",)
    assert not (root / CONTEXT).exists()
    assert undo(root) == ("0004.patch",)
    assert contents(root) == before


@needs_symlinks
def test_a_new_file_is_not_made_through_a_link(tmp_path: Path) -> None:
    root, elsewhere = lay_out(tmp_path / "pytorch"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "torch").mkdir(exist_ok=True)
    (root / "torch/csrc").symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(PatchRefused, match="new.h"):
        apply(root, [NEW])
    assert list(elsewhere.iterdir()) == []


def test_one_that_the_source_has_already_is_left_out_and_reported(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    apply(root, [FIRST])
    (root / files.STATE_DIR / PATCH_RECORD).unlink()
    after = contents(root)
    assert patches.bring(root, [FIRST, NEW]) == patches.Outcome(
        applied=("0003.patch",), there=("0001.patch",)
    )
    assert patches.bring(root, [FIRST, NEW]) == patches.Outcome()
    assert undo(root) == ("0003.patch",)
    assert contents(root) == after, "it was not ours to take back"


def test_one_that_the_source_had_and_lost_is_applied(tmp_path: Path) -> None:
    """As after `git switch` to a version before the one that took it up."""
    root = lay_out(tmp_path)
    before = contents(root)
    apply(root, [FIRST])
    (root / files.STATE_DIR / PATCH_RECORD).unlink()
    assert patches.bring(root, [FIRST]).there == ("0001.patch",)
    (root / KERNELS).write_bytes(before[KERNELS])
    assert apply(root, [FIRST]) == ("0001.patch",)
    assert undo(root) == ("0001.patch",)
    assert contents(root) == before


def test_lines_that_moved_are_found_and_reported(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    edit(root, KERNELS, "#pragma once", "// a\n// b\n#pragma once")
    outcome = patches.bring(root, [BOUNDS])
    assert outcome.applied == ("launch-bounds",)
    assert any(KERNELS in where and "(offset " in where for where in outcome.moved["launch-bounds"])


@pytest.mark.parametrize("writes", range(7))
def test_a_killed_change_from_one_series_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """After a kill at any write, once or twice, the series can be applied, and undone to the source."""
    root = lay_out(tmp_path)
    before = contents(root)
    first, second = [BOUNDS, FIRST, SECOND], [SECOND_ALONE, NEW]
    apply(root, first)
    for again in (writes, 1):
        with monkeypatch.context() as patch:
            killed_after(patch, again)
            with contextlib.suppress(Killed):
                patches.bring(root, second if again == writes else first)
    patches.bring(root, second)
    text = (root / KERNELS).read_text("utf-8")
    assert "// Two." in text and "= 1024;" in text
    assert [entry["id"] for entry in record(root)] == ["alone", "0003.patch"]
    undo(root)
    assert contents(root) == before


# ---------------------------------------------------------------- interrupted


class Killed(BaseException):
    """Nothing that anybody catches."""


def killed_after(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """Let that many files be written, then end the run as a signal would."""
    count = 0
    real = files.write_atomic

    def write(*args: Any, **kwargs: Any) -> None:
        nonlocal count
        if count == writes:
            raise Killed
        count += 1
        real(*args, **kwargs)

    monkeypatch.setattr(patches, "write_atomic", write)


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_killed_run_is_finished_by_the_next_or_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    for finish in (True, False):
        root = lay_out(tmp_path / str(finish))
        before = contents(root)
        with monkeypatch.context() as patch, pytest.raises(Killed):
            killed_after(patch, writes)
            apply(root, [BOUNDS])
        if finish:
            assert apply(root, [BOUNDS]) == ("launch-bounds",)
            assert state(root, BOUNDS.diff) == "applied"
            assert undo(root) == ("launch-bounds",)
        else:
            undo(root)
        assert contents(root) == before


@pytest.mark.parametrize("writes", [0, 1])
def test_a_killed_undo_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    apply(root, [BOUNDS])
    with monkeypatch.context() as patch, pytest.raises(Killed):
        killed_after(patch, writes)
        undo(root)
    assert undo(root) == ("launch-bounds",)
    assert contents(root) == before


# ---------------------------------------------------------------- the record


@pytest.mark.parametrize("text", ["", "{", "[]", '{"patches": [{"id": 3}]}', '{"other": 1}'])
def test_a_record_that_cannot_be_read_is_reported(tmp_path: Path, text: str) -> None:
    root = lay_out(tmp_path)
    apply(root, [BOUNDS])
    path = root / files.STATE_DIR / PATCH_RECORD
    path.write_text(text, encoding="utf-8")
    after = contents(root)
    for planned in ([], [BLOCKS]):
        with pytest.raises(PatchRefused) as refused:
            apply(root, planned) if planned else undo(root)
        assert str(path) in refused.value.what
        assert refused.value.next_step
    assert contents(root) == after


def test_a_diff_in_the_record_that_was_edited_is_not_trusted(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    apply(root, [BOUNDS])
    path = root / files.STATE_DIR / PATCH_RECORD
    path.write_text(path.read_text("utf-8").replace("= 512", "= 511"), encoding="utf-8")
    with pytest.raises(PatchRefused):
        undo(root)


# ---------------------------------------------------------------- around git


def git(folder: Path, *words: str) -> bytes:
    return subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True).stdout


def test_inside_another_repository(tmp_path: Path) -> None:
    """git apply silently skips files outside of its working directory."""
    git(tmp_path, "init", "--quiet")
    root = lay_out(tmp_path / "work" / "pytorch")
    assert apply(root, [BOUNDS]) == ("launch-bounds",)
    assert state(root, BOUNDS.diff) == "applied"


def test_in_a_repository_only_the_files_change(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    git(root, "init", "--quiet")
    git(root, "add", "aten")
    index = (root / ".git/index").read_bytes()
    apply(root, [BOUNDS])
    assert (root / ".git/index").read_bytes() == index
    assert git(root, "diff", "--name-only").split() == [CONTEXT.encode(), KERNELS.encode()]
    undo(root)
    assert git(root, "diff", "--name-only") == b""


def test_what_the_user_has_set_for_git_has_no_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "core.autocrlf": "true",
        "core.eol": "crlf",
        "apply.whitespace": "error-all",
        "apply.ignorewhitespace": "change",
    }
    for name, value in settings.items():
        git(tmp_path, "config", "--global", name, value)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    root = lay_out(tmp_path / "pytorch")
    before = contents(root)
    apply(root, [BOUNDS])
    assert all(b"\r" not in data for data in contents(root).values())
    undo(root)
    assert contents(root) == before
    edit(root, KERNELS, "constexpr int CUDA", "constexpr  int  CUDA")
    assert state(root, BOUNDS.diff) == "refused", "no whitespace is ignored"


def test_a_temporary_folder_in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = tmp_path / "outer"
    (outer / "tmp").mkdir(parents=True)
    git(outer, "init", "--quiet")
    monkeypatch.setattr("tempfile.tempdir", str(outer / "tmp"))
    root = lay_out(tmp_path / "pytorch")
    assert apply(root, [BOUNDS]) == ("launch-bounds",)
    assert list((outer / "tmp").iterdir()) == []


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = lay_out(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(PatchRefused, match="git") as refused:
        apply(root, [BOUNDS])
    assert "Install git" in refused.value.next_step


def test_what_does_not_apply_says_why(tmp_path: Path) -> None:
    (section,) = sections(BLOCKS.diff)
    with pytest.raises(DoesNotApply, match=r"KernelUtils.h"):
        apply_section(b"something else\n", section)


# ---------------------------------------------------------------- files that are not like others


@needs_enforced_permissions
def test_a_read_only_file_is_refused_before_the_other_is_changed(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    (root / KERNELS).chmod(stat.S_IREAD)
    with pytest.raises(PatchRefused, match="KernelUtils.h"):
        apply(root, [BOUNDS])
    assert contents(root) == before
    assert patches.read_record(root).patches == ()


def test_a_file_that_may_not_be_written_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for root, whom no mode binds."""
    root = lay_out(tmp_path)
    before, real = contents(root), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != root / KERNELS and real(path, mode))
    with pytest.raises(PatchRefused, match="KernelUtils.h") as refused:
        apply(root, [BOUNDS])
    assert ("attrib -r" if os.name == "nt" else "chmod u+w") in refused.value.next_step
    assert contents(root) == before
    assert patches.read_record(root).patches == ()


@needs_posix_permissions
def test_the_mode_stays(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    (root / KERNELS).chmod(0o640)
    apply(root, [BOUNDS])
    assert stat.S_IMODE((root / KERNELS).stat().st_mode) == 0o640
    undo(root)
    assert stat.S_IMODE((root / KERNELS).stat().st_mode) == 0o640


@needs_symlinks
def test_a_link_out_of_the_checkout_is_not_followed(tmp_path: Path) -> None:
    root, elsewhere = lay_out(tmp_path / "pytorch"), lay_out(tmp_path / "elsewhere")
    (root / KERNELS).unlink()
    (root / KERNELS).symlink_to(elsewhere / KERNELS)
    before = contents(elsewhere)
    with pytest.raises(PatchRefused):
        apply(root, [BOUNDS])
    assert contents(elsewhere) == before


def test_lines_of_both_kinds_are_left_as_they_are(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    path = root / KERNELS
    path.write_bytes(path.read_bytes().replace(b"#pragma once\n", b"#pragma once\r\n"))
    before = contents(root)
    apply(root, [BOUNDS])
    assert path.read_bytes().count(b"\r\n") == 1
    undo(root)
    assert contents(root) == before

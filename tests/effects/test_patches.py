"""Patches are applied whole or not at all, remembered, and taken back, whatever happened in between."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import (
    needs_enforced_permissions,
    needs_git,
    needs_posix_permissions,
    needs_symlinks,
)
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
from torchbuild_tasks.effects import files, patches
from torchbuild_tasks.effects.git_apply import DoesNotApply, changed, sections
from torchbuild_tasks.errors import PatchRefused
from torchbuild_tasks.model import Patch

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


def record(root: Path) -> Any:
    return json.loads((root / files.STATE_DIR / patches.RECORD).read_bytes())["patches"]


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
    assert patches.state(root, patch.diff) == "clean"
    assert patches.apply(root, [patch]) == (patch.id,)
    after = contents(root)
    assert patches.state(root, patch.diff) == "applied"
    assert all(after[name] != before[name] for name in SHAPES[version])
    assert b"CUDA_NUM_THREADS = 512;" in after[KERNELS]
    assert b"maxThreadsPerBlock /= 2;" in after[CONTEXT]
    for name, data in after.items():
        assert data.count(b"\r\n") == (data.count(b"\n") if crlf else 0), name
    assert patches.undo(root) == (patch.id,)
    assert contents(root) == before
    assert not (root / files.STATE_DIR / patches.RECORD).exists()
    assert patches.undo(root) == ()


def test_applied_once(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    patches.apply(root, [BOUNDS])
    after, remembered = contents(root), record(root)
    assert patches.apply(root, [BOUNDS]) == ()
    assert (contents(root), record(root)) == (after, remembered)


def test_what_the_record_says(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    patches.apply(root, [BOUNDS])
    (entry,) = record(root)
    assert entry["id"] == "launch-bounds"
    assert entry["diff"] == BOUNDS.diff
    assert set(entry["files"]) == {CONTEXT, KERNELS}
    assert all(len(change[side]) == 64 for change in entry["files"].values() for side in change)


def test_no_patch_leaves_no_trace(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    assert patches.apply(root, []) == ()
    assert patches.recorded(root) == ()
    assert not (root / files.STATE_DIR).exists()


def test_a_dry_run_says_and_does_nothing(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    patches.apply(root, [BOUNDS])
    after = contents(root)
    assert patches.undo(root, dry_run=True) == ("launch-bounds",)
    assert contents(root) == after
    assert len(record(root)) == 1


# ---------------------------------------------------------------- others change the source too


def test_one_that_somebody_else_applied_is_neither_applied_again_nor_taken_back(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    patches.apply(root, [BOUNDS])
    (root / files.STATE_DIR / patches.RECORD).unlink()
    after = contents(root)
    assert patches.apply(root, [BOUNDS]) == ()
    assert patches.undo(root) == ()
    assert contents(root) == after


def test_the_half_that_is_missing_is_applied_and_only_that_is_taken_back(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    context, _ = sections(BOUNDS.diff)
    theirs = changed((root / CONTEXT).read_bytes(), context)
    (root / CONTEXT).write_bytes(theirs)
    assert patches.state(root, BOUNDS.diff) == "clean"
    assert patches.apply(root, [BOUNDS]) == ("launch-bounds",)
    assert patches.state(root, BOUNDS.diff) == "applied"
    patches.undo(root)
    assert (root / CONTEXT).read_bytes() == theirs
    assert b"= 1024;" in (root / KERNELS).read_bytes()


def test_an_edit_elsewhere_in_the_file_survives(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    patches.apply(root, [BOUNDS])
    edit(root, KERNELS, "#pragma once", "#pragma once\n// mine")
    assert patches.apply(root, [BOUNDS]) == ()
    assert patches.undo(root) == ("launch-bounds",)
    text = (root / KERNELS).read_text("utf-8")
    assert "// mine" in text
    assert "= 1024;" in text


def test_an_edit_of_the_same_line_is_not_undone(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    patches.apply(root, [BOUNDS])
    edit(root, KERNELS, "= 512;", "= 256;")
    after = contents(root)
    with pytest.raises(PatchRefused) as refused:
        patches.undo(root)
    assert KERNELS in refused.value.what
    assert KERNELS in refused.value.next_step
    assert contents(root) == after, "not even the other file"
    assert len(record(root)) == 1


def test_files_that_git_restored_are_patched_again(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    patches.apply(root, [BOUNDS])
    after, remembered = contents(root), record(root)
    (root / KERNELS).write_bytes(before[KERNELS])
    assert patches.apply(root, [BOUNDS]) == ("launch-bounds",)
    assert (contents(root), record(root)) == (after, remembered)


def test_files_that_git_restored_have_nothing_to_take_back(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    patches.apply(root, [BOUNDS])
    (root / CONTEXT).unlink()
    (root / KERNELS).write_bytes(before[KERNELS] + b"// newer\n")
    assert patches.undo(root) == ("launch-bounds",)
    assert (root / KERNELS).read_bytes() == before[KERNELS] + b"// newer\n"
    assert not (root / files.STATE_DIR / patches.RECORD).exists()


# ---------------------------------------------------------------- what does not fit


def test_one_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    edit(root, KERNELS, "= 1024;", "= 256;")
    before = contents(root)
    assert patches.state(root, BOUNDS.diff) == "refused"
    with pytest.raises(PatchRefused) as refused:
        patches.apply(root, [BOUNDS])
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
        patches.apply(root, [BOUNDS, wrong])
    assert contents(root) == before
    assert patches.recorded(root) == ()


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    root = lay_out(tmp_path, "1.13.0a0")
    assert patches.state(root, row_patch("launch-bounds-thcunn").diff) == "refused"
    with pytest.raises(PatchRefused, match=THCUNN):
        patches.apply(root, [row_patch("launch-bounds-thcunn")])


def test_no_fuzz(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    edit(root, KERNELS, "// Use 1024 threads per block", "// Use 1024 threads a block")
    assert patches.state(root, BOUNDS.diff) == "refused"


# ---------------------------------------------------------------- several, and other versions of one


def test_two_patches_of_one_file(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    assert patches.apply(root, [BOUNDS, BLOCKS]) == ("launch-bounds", "blocks")
    text = (root / KERNELS).read_text("utf-8")
    assert "= 512;" in text
    assert "// Blocks." in text
    assert patches.apply(root, [BOUNDS, BLOCKS]) == ()
    assert patches.undo(root, ["launch-bounds"]) == ("launch-bounds",)
    text = (root / KERNELS).read_text("utf-8")
    assert "= 1024;" in text
    assert "// Blocks." in text
    assert [entry["id"] for entry in record(root)] == ["blocks"]
    assert patches.undo(root) == ("blocks",)
    assert contents(root) == before


def test_what_the_plan_does_not_hold_any_more_is_stale(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    patches.apply(root, [BOUNDS, BLOCKS])
    assert patches.stale(root, [BOUNDS, BLOCKS]) == ()
    assert patches.stale(root, [BLOCKS]) == ("launch-bounds",)
    other = Patch(id="blocks", diff=BLOCKS.diff.replace("Blocks.", "Block."), because="newer")
    assert patches.stale(root, [BOUNDS, other]) == ("blocks",)


def test_an_older_tools_patch_is_taken_back_by_its_own_diff(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    old = Patch(id="blocks", diff=BLOCKS.diff.replace("Blocks.", "Old."), because="older")
    patches.apply(root, [old])
    patches.undo(root, patches.stale(root, [BLOCKS]))
    assert patches.apply(root, [BLOCKS]) == ("blocks",)
    assert "Old." not in (root / KERNELS).read_text("utf-8")


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
def test_a_killed_run_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    with monkeypatch.context() as patch:
        killed_after(patch, writes)
        with pytest.raises(Killed):
            patches.apply(root, [BOUNDS])
    assert patches.apply(root, [BOUNDS]) == ("launch-bounds",)
    assert patches.state(root, BOUNDS.diff) == "applied"
    assert patches.undo(root) == ("launch-bounds",)
    assert contents(root) == before


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_killed_run_can_be_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    with monkeypatch.context() as patch:
        killed_after(patch, writes)
        with pytest.raises(Killed):
            patches.apply(root, [BOUNDS])
    patches.undo(root)
    assert contents(root) == before


@pytest.mark.parametrize("writes", [0, 1])
def test_a_killed_undo_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    patches.apply(root, [BOUNDS])
    with monkeypatch.context() as patch:
        killed_after(patch, writes)
        with pytest.raises(Killed):
            patches.undo(root)
    assert patches.undo(root) == ("launch-bounds",)
    assert contents(root) == before


# ---------------------------------------------------------------- the record


@pytest.mark.parametrize("text", ["", "{", "[]", '{"patches": [{"id": 3}]}', '{"other": 1}'])
def test_a_record_that_cannot_be_read_is_said(tmp_path: Path, text: str) -> None:
    root = lay_out(tmp_path)
    patches.apply(root, [BOUNDS])
    path = root / files.STATE_DIR / patches.RECORD
    path.write_text(text, encoding="utf-8")
    after = contents(root)
    for planned in ([], [BLOCKS]):
        with pytest.raises(PatchRefused) as refused:
            patches.apply(root, planned) if planned else patches.undo(root)
        assert str(path) in refused.value.what
        assert refused.value.next_step
    assert contents(root) == after


def test_a_diff_in_the_record_that_was_edited_is_not_trusted(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    patches.apply(root, [BOUNDS])
    path = root / files.STATE_DIR / patches.RECORD
    path.write_text(path.read_text("utf-8").replace("= 512", "= 511"), encoding="utf-8")
    with pytest.raises(PatchRefused):
        patches.undo(root)


# ---------------------------------------------------------------- around git


def git(folder: Path, *words: str) -> bytes:
    return subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True).stdout


def test_inside_another_repository(tmp_path: Path) -> None:
    """git apply leaves out, without a word, what lies outside of the folder it was started in."""
    git(tmp_path, "init", "--quiet")
    root = lay_out(tmp_path / "work" / "pytorch")
    assert patches.apply(root, [BOUNDS]) == ("launch-bounds",)
    assert patches.state(root, BOUNDS.diff) == "applied"


def test_in_a_repository_only_the_files_change(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    git(root, "init", "--quiet")
    git(root, "add", "aten")
    index = (root / ".git/index").read_bytes()
    patches.apply(root, [BOUNDS])
    assert (root / ".git/index").read_bytes() == index
    assert git(root, "diff", "--name-only").split() == [CONTEXT.encode(), KERNELS.encode()]
    patches.undo(root)
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
    patches.apply(root, [BOUNDS])
    assert all(b"\r" not in data for data in contents(root).values())
    patches.undo(root)
    assert contents(root) == before
    edit(root, KERNELS, "constexpr int CUDA", "constexpr  int  CUDA")
    assert patches.state(root, BOUNDS.diff) == "refused", "no whitespace is ignored"


def test_a_temporary_folder_in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = tmp_path / "outer"
    (outer / "tmp").mkdir(parents=True)
    git(outer, "init", "--quiet")
    monkeypatch.setattr("tempfile.tempdir", str(outer / "tmp"))
    root = lay_out(tmp_path / "pytorch")
    assert patches.apply(root, [BOUNDS]) == ("launch-bounds",)
    assert list((outer / "tmp").iterdir()) == []


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = lay_out(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(PatchRefused, match="git") as refused:
        patches.apply(root, [BOUNDS])
    assert "Install git" in refused.value.next_step


def test_what_does_not_apply_says_why(tmp_path: Path) -> None:
    (section,) = sections(BLOCKS.diff)
    with pytest.raises(DoesNotApply, match=r"KernelUtils.h"):
        changed(b"something else\n", section)


# ---------------------------------------------------------------- files that are not like others


@needs_enforced_permissions
def test_a_read_only_file_is_refused_before_the_other_is_changed(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    before = contents(root)
    (root / KERNELS).chmod(stat.S_IREAD)
    with pytest.raises(PatchRefused, match="KernelUtils.h"):
        patches.apply(root, [BOUNDS])
    assert contents(root) == before
    assert patches.recorded(root) == ()


def test_a_file_that_may_not_be_written_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for root, whom no mode binds."""
    root = lay_out(tmp_path)
    before, real = contents(root), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != root / KERNELS and real(path, mode))
    with pytest.raises(PatchRefused, match="KernelUtils.h") as refused:
        patches.apply(root, [BOUNDS])
    assert "chmod u+w" in refused.value.next_step
    assert contents(root) == before
    assert patches.recorded(root) == ()


@needs_posix_permissions
def test_the_mode_stays(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    (root / KERNELS).chmod(0o640)
    patches.apply(root, [BOUNDS])
    assert stat.S_IMODE((root / KERNELS).stat().st_mode) == 0o640
    patches.undo(root)
    assert stat.S_IMODE((root / KERNELS).stat().st_mode) == 0o640


@needs_symlinks
def test_a_link_out_of_the_checkout_is_not_followed(tmp_path: Path) -> None:
    root, elsewhere = lay_out(tmp_path / "pytorch"), lay_out(tmp_path / "elsewhere")
    (root / KERNELS).unlink()
    (root / KERNELS).symlink_to(elsewhere / KERNELS)
    before = contents(elsewhere)
    with pytest.raises(PatchRefused):
        patches.apply(root, [BOUNDS])
    assert contents(elsewhere) == before


def test_lines_of_both_kinds_are_left_as_they_are(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    path = root / KERNELS
    path.write_bytes(path.read_bytes().replace(b"#pragma once\n", b"#pragma once\r\n"))
    before = contents(root)
    patches.apply(root, [BOUNDS])
    assert path.read_bytes().count(b"\r\n") == 1
    patches.undo(root)
    assert contents(root) == before

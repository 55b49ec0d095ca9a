"""The record of the files that a build wrote, and a clean that removes only these, on real trees."""

from __future__ import annotations

import _ctypes
import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git
from torchbuild_tasks.build.outputs import CHANGED, TRACKED, UNNAMED, Outputs, recordable_outputs
from torchbuild_tasks.build.ownership import (
    OWNED,
    Record,
    Removed,
    begin,
    find_claimed,
    owned,
    plan_removal,
    plan_stale,
    put_times_back,
    read_outputs,
    remove,
    renew,
)
from torchbuild_tasks.build.ownership import write as record
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import CleanRefused
from torchbuild_tasks.system import windows_holders
from torchbuild_tasks.system.left_running import ENDED
from torchbuild_tasks.system.log import last_write, open_log
from torchbuild_tasks.system.remove import snapshot
from torchbuild_tasks.values import replace

pytestmark = pytest.mark.integration  # git
OUTPUTS = Outputs(patterns=("build/**", "torch/lib/**", "torch/_C*.so", "torch/version.py"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with a source file and folders of the user's."""
    write(tmp_path / "pt", "torch/__init__.py", "torch/lib/libshm/shm.cpp", ".env", "torch/_Cmine.so")
    return tmp_path / "pt"


def write(root: Path, *paths: str, text: str = "x") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def build(root: Path, *paths: str, build_dir: str = "build", text: str = "x") -> None:
    """A build that writes these files and ends well."""
    claims = begin(root, root / build_dir, OUTPUTS, log_time=None)
    write(root, *paths, text=text)
    claims.finish()


def clean(root: Path, build_dir: str = "build", log_time: int | None = None) -> Removed:
    return remove(plan_removal(root, root / build_dir, OUTPUTS, log_time=log_time))


def link(path: Path, goal: Path) -> None:
    path.symlink_to(goal, target_is_directory=True)
    if not path.is_symlink():
        pytest.skip("needs symbolic links")


def files(root: Path) -> set[str]:
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}
    return {path for path in found if not path.startswith((".torchbuild/", ".git/"))}


def test_a_clean_removes_what_the_build_made_and_nothing_else(root: Path) -> None:
    before = files(root)
    build(root, "build/a/b.o", "build/CMakeCache.txt", "torch/lib/libtorch.so", "torch/_C.so", "torch/new.py")
    plan = plan_removal(root, root / "build", OUTPUTS)
    assert plan.files == ("build/CMakeCache.txt", "build/a/b.o", "torch/_C.so", "torch/lib/libtorch.so")
    assert plan.folders == ("build/a/", "build/")
    assert plan.kept == ()
    assert remove(plan) == Removed(count=4, bytes=4)
    assert files(root) == before | {"torch/new.py"}
    assert not (root / "build").exists()
    assert clean(root) == Removed(count=0, bytes=0)


def test_what_was_there_before_the_first_build_stays_even_if_overwritten(root: Path) -> None:
    write(root, "build/notes.txt", "torch/version.py")
    build(root, "build/notes.txt", "torch/version.py", "build/a.o", text="by the build")
    clean(root)
    assert {"build/notes.txt", "torch/version.py"} <= files(root)
    assert "build/a.o" not in files(root)


def test_a_second_build_does_not_forget_the_first(root: Path) -> None:
    build(root, "build/a.o", "build/b.o")
    write(root, "build/mine.txt")
    build(root, "build/b.o", "build/c.o", text="longer")
    assert clean(root).count == 3
    assert "build/mine.txt" in files(root)


def test_what_changed_since_the_build_stays_and_is_listed(root: Path) -> None:
    build(root, "torch/version.py", "build/a.o")
    write(root, "torch/version.py", text="mine now")
    build(root, "build/b.o")  # which must not make it the build's again
    plan = plan_removal(root, root / "build", OUTPUTS)
    assert plan.kept == (("torch/version.py", CHANGED),)
    remove(plan)
    assert (root / "torch/version.py").read_text() == "mine now"


def test_what_ninja_writes_at_every_build_goes_and_an_edit_from_before_stays(root: Path) -> None:
    write(root, "build/foreign.o")
    renew(root, 0)
    with pytest.raises(CleanRefused):  # no build is recorded by that alone
        clean(root)
    build(root, "torch/version.py", "build/.ninja_log", "build/edited.h")
    write(root, "build/edited.h", text="mine now")
    since = (root / "build/edited.h").stat().st_mtime_ns // 1000 * 1000 + 1_000_000  # Windows keeps 100 ns
    write(root, "torch/version.py", "build/.ninja_log", text="written again")
    for name in ("torch/version.py", "build/.ninja_log"):
        os.utime(root / name, ns=(since, since))
    renew(root, since)
    assert plan_removal(root, root / "build", OUTPUTS).kept == (("build/edited.h", CHANGED),)


@pytest.mark.parametrize(
    ("text", "outputs", "same"),
    [
        ("x", ("version.py",), True),
        ("x", ("../version.py",), True),
        ("y", ("version.py",), False),
        ("x", ("version.py", "new.py"), False),  # there is one more
        ("x", ("gen_version",), False),  # a step's name: what it writes is not said
        ("x", ("version.py", "folder"), False),
        ("x", ("version.py", "foreign.py"), False),  # not recorded, or not as it is
    ],
)
def test_what_a_step_wrote_again_as_it_was_keeps_its_times(
    root: Path, text: str, outputs: tuple[str, ...], same: bool
) -> None:
    file, foreign, build_dir = root / "version.py", root / "foreign.py", root
    for path in (file, foreign):
        path.write_text("x")
        os.utime(path, ns=(10**18, 10**18))
    if outputs[0].startswith(".."):
        build_dir = root / "build"
        build_dir.mkdir(exist_ok=True)
    (root / "folder").mkdir()
    (root / ".torchbuild").mkdir(exist_ok=True)
    record(root, OWNED, Record(paths={"version.py": (10**18, 1, 0), "foreign.py": (10**18 - 1, 1, 0)}))
    written = read_outputs(build_dir, outputs)
    for name in ("version.py", *(each for each in outputs if each == "new.py")):
        (root / name).write_text(text)
    assert put_times_back(root, written) is same
    assert (file.stat().st_mtime_ns == 10**18) is (same or "new.py" in outputs)


def test_what_a_step_says_that_it_writes_is_noted_and_nothing_else(root: Path) -> None:
    build(root, "build/x", "torch/lib/a.so", "torch/lib/b.so")
    before = owned(root).paths
    written = read_outputs(root / "build", ("../torch/lib/a.so", "gen_version"))
    for name in ("a.so", "b.so"):
        (root / "torch/lib" / name).write_text("other")
    renew(root, 0, written)
    after = owned(root).paths
    assert {name for name in before if before[name] != after[name]} == {"torch/lib/a.so"}
    renew(root, 0, read_outputs(root / "build", ("gen_version",)))  # it does not say what it writes
    assert owned(root).paths["torch/lib/b.so"] != before["torch/lib/b.so"]


def test_what_changes_after_the_plan_stays(root: Path) -> None:
    build(root, "build/a.o", "build/b.o")
    plan = plan_removal(root, root / "build", OUTPUTS)
    write(root, "build/a.o", text="mine now")
    done = remove(plan)
    assert (done.count, done.failed) == (1, (("build/a.o", "changed just now"),))
    assert (root / "build/a.o").read_text() == "mine now"
    assert clean(root).count == 0


def test_a_folder_that_became_a_link_is_not_entered(root: Path, tmp_path: Path) -> None:
    build(root, "build/sub/a.o")
    plan = plan_removal(root, root / "build", OUTPUTS)
    outside = tmp_path / "outside"
    (root / "build/sub").rename(outside)
    link(root / "build/sub", outside)
    done = remove(plan)
    assert done.count == 0
    assert done.failed[0][0] == "build/sub/a.o"
    assert (outside / "a.o").exists()


def test_links_are_removed_as_links_and_a_linked_build_folder_is_left_alone(
    root: Path, tmp_path: Path
) -> None:
    write(tmp_path, "outside/data")
    claims = begin(root, "build", OUTPUTS, log_time=None)
    (root / "build").mkdir()
    link(root / "build/link", tmp_path / "outside")
    claims.finish()
    assert clean(root).count == 1
    assert (tmp_path / "outside/data").exists()
    link(root / "build", tmp_path / "outside")
    build(root, "build/a.o")
    assert "symbolic link" in plan_removal(root, "build", OUTPUTS).kept[0][1]
    clean(root)
    assert (tmp_path / "outside/a.o").exists()


def test_hard_links_of_each_other_all_go(root: Path) -> None:
    claims = begin(root, "build", OUTPUTS, log_time=None)
    write(root, "build/a.so")
    os.link(root / "build/a.so", root / "build/b.so")
    claims.finish()
    assert clean(root) == Removed(count=2, bytes=2)


def test_a_repository_within_the_build_folder_is_foreign(root: Path) -> None:
    build(root, "build/a.o", "build/clone/.git/HEAD", "build/clone/src.cpp")
    assert clean(root).count == 1
    assert (root / "build/clone/src.cpp").exists()


# ---------------------------------------------------------------- kills, cleans within a build


def test_after_a_kill_only_what_is_older_than_the_last_word_is_claimed(root: Path) -> None:
    build(root, "build/a.o")
    begin(root, "build", OUTPUTS, log_time=None)
    write(root, "build/b.o")
    log_time = time.time_ns()
    time.sleep(0.02)
    write(root, "build/mine.txt", "build/mine/too.txt")
    os.utime(root / "build/mine.txt", (1, 1))  # as `cp -p` does
    if (root / "build/mine.txt").stat().st_ctime_ns < log_time:
        pytest.skip("needs times of creation or change that cannot be set")
    plan = plan_removal(root, "build", OUTPUTS, log_time=log_time)
    assert plan.files == ("build/a.o", "build/b.o")
    begin(root, "build", OUTPUTS, log_time=log_time).finish()  # the next build claims no more
    assert clean(root).count == 2
    assert {"build/mine.txt", "build/mine/too.txt"} <= files(root)


def test_a_later_run_that_builds_nothing_does_not_pass_for_the_killed_one(root: Path) -> None:
    """It fails at pip, say: its log is the newest then, and what is the user's is older than that."""
    logs = root / ".torchbuild/logs"
    with open_log(logs, "build") as log:
        begin(root, "build", OUTPUTS, log_time=log.previous_time)
        write(root, "build/b.o")
        time.sleep(0.02)
        log.write(b"the last word")
    time.sleep(0.02)
    write(root, "build/mine.txt")
    for number in range(6):
        with open_log(logs, "build") as log:
            log.write(b"no network")
        plan = plan_removal(root, "build", OUTPUTS, log_time=last_write(logs, "build"))
        # When the killed build's log is rotated away, nobody can say any more what it wrote.
        assert plan.files == (("build/b.o",) if number < 4 else ())


def test_after_a_build_that_ended_no_listing_is_left(root: Path) -> None:
    build(root, "build/a.o")
    assert not (root / ".torchbuild/before.json").exists()


def test_after_a_kill_without_a_log_nothing_new_is_claimed(root: Path) -> None:
    begin(root, "build", OUTPUTS, log_time=None)
    write(root, "build/b.o")
    begin(root, "build", OUTPUTS, log_time=None).finish()
    assert clean(root).count == 0


def test_a_clean_within_a_build_does_not_lose_what_is_made_again(root: Path) -> None:
    build(root, "build/a.o")
    claims = begin(root, "build", OUTPUTS, log_time=None)
    assert clean(root).count == 1
    write(root, "build/a.o")
    claims.finish()
    assert clean(root).count == 1


def test_a_record_that_cannot_be_read_claims_nothing(root: Path) -> None:
    build(root, "build/a.o")
    for text in ("{", "[]", "{}", '{"paths": {"build/a.o": 1}}'):
        (root / ".torchbuild/made.json").write_text(text)
        assert plan_removal(root, "build", OUTPUTS).files == ()


# ---------------------------------------------------------------- Windows


def test_read_only_outputs_go(root: Path) -> None:
    """CMake's configure_file keeps that attribute of a source file."""
    claims = begin(root, "build", OUTPUTS, log_time=None)
    write(root, "build/a.h")
    (root / "build/a.h").chmod(stat.S_IREAD)
    claims.finish()
    assert clean(root) == Removed(count=1, bytes=1)


@pytest.mark.skipif(sys.platform != "win32", reason="needs names whose case makes no difference")
def test_a_build_folder_in_another_case_is_the_same(root: Path) -> None:
    build(root, "build/a.o")
    build(root, "BUILD/b.o", build_dir="BUILD")
    assert clean(root, "Build").count == 2
    assert not (root / "build").exists()


def test_a_file_in_use_is_kept_and_the_program_is_named(root: Path) -> None:
    """All else goes; and once it is free, the next clean takes it too."""
    claims = begin(root, "build", OUTPUTS, log_time=None)
    write(root, "build/a.o", "build/z.o")
    with (root / "build/held.txt").open("w", encoding="utf-8") as held:
        held.write("x")
        held.flush()
        claims.finish()
        named = windows_holders.holders(root / "build/held.txt")
        done = clean(root)
    if not done.failed:
        pytest.skip("needs a system on which an open file cannot be removed")
    assert (done.count, [path for path, _ in done.failed]) == (2, ["build/held.txt"])
    assert not named or f"in use by {named[0]}" in done.failed[0][1]  # wine has no Restart Manager
    assert clean(root).count == 1
    assert not (root / "build").exists()


def test_a_library_that_runs_stays_and_all_else_goes(root: Path) -> None:
    claims = begin(root, "build", OUTPUTS, log_time=None)
    write(root, "build/a.o", "build/z.o")
    shutil.copyfile(_ctypes.__file__, root / "build/lib.so")
    loaded = ctypes.CDLL(str(root / "build/lib.so"))
    claims.finish()
    done = clean(root)
    if sys.platform == "win32":
        _ctypes.FreeLibrary(loaded._handle)
    if not done.failed:
        pytest.skip("needs a system on which a loaded library cannot be removed")
    assert (done.count, [path for path, _ in done.failed]) == (2, ["build/lib.so"])
    assert clean(root).count == 1


# ---------------------------------------------------------------- refusals


def test_without_a_record_a_clean_is_refused_when_there_is_something(root: Path) -> None:
    (root / "torch/_Cmine.so").unlink()
    (root / "torch/lib/libshm/shm.cpp").unlink()
    assert plan_removal(root, "build", OUTPUTS).files == ()
    write(root, "build/a.o")
    with pytest.raises(CleanRefused) as caught:
        plan_removal(root, "build", OUTPUTS)
    assert "build/a.o" in caught.value.looked
    assert "setup.py clean" in caught.value.next_step


def test_a_clean_from_inside_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(root, "build/sub/a.o")
    monkeypatch.chdir(root / "build/sub")
    with pytest.raises(CleanRefused, match="You are in"):
        plan_removal(root, "build", OUTPUTS)
    monkeypatch.chdir(root / "torch")
    assert clean(root).count == 1


@needs_git
def test_what_git_tracks_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(root, "build/a.o", "torch/version.py")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-f", "torch/version.py"], cwd=root, check=True)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    plan = plan_removal(root, "build", OUTPUTS)
    assert plan.kept == (("torch/version.py", TRACKED),)
    assert remove(plan).count == 1


@needs_git
def test_when_git_cannot_answer_nothing_is_removed(root: Path) -> None:
    build(root, "build/a.o")
    write(root, ".git", text="gitdir: /nowhere")
    with pytest.raises(CleanRefused, match="git cannot say") as caught:
        plan_removal(root, "build", OUTPUTS)
    assert "nowhere" in caught.value.looked[0]


# ---------------------------------------------------------------- where the build folder is


@pytest.mark.parametrize("build_dir", ["../outside", ".", "/", "build/../.."])
def test_a_build_folder_elsewhere_is_not_ours_to_clean(root: Path, tmp_path: Path, build_dir: str) -> None:
    claims = begin(root, root / build_dir, OUTPUTS, log_time=None)
    write(tmp_path, "outside/a.o")
    write(root, "src/new.cpp", "torch/version.py")
    claims.finish()
    assert plan_removal(root, root / build_dir, OUTPUTS).files == ("torch/version.py",)


def test_another_build_folder_in_the_checkout_counts(root: Path) -> None:
    build(root, "out/debug/a.o", build_dir="out/debug")
    assert clean(root, "out/debug").count == 1
    assert not (root / "out/debug").exists()


def test_the_walk_enters_only_what_can_match(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "third_party/deep/er/x.so", "torch/nn/modules/x.py", "build/x/y")
    entered = list[Path]()
    scan = os.scandir

    def watched(path: Path) -> object:
        entered.append(path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", watched)
    snapshot(root, OUTPUTS.below("build/"))
    folders = {Path(os.path.relpath(path, root)).as_posix() for path in entered}
    assert folders == {".", "build", "build/x", "torch", "torch/lib", "torch/lib/libshm"}


@pytest.mark.skipif(os.name != "posix", reason="needs file names of any bytes")
def test_names_that_are_no_text_survive_the_record(root: Path) -> None:
    claims = begin(root, "build", OUTPUTS, log_time=None)
    write(root, "build/a\nb", "build/\u00e9")
    (root / os.fsdecode(b"build/\xff")).write_text("x")
    claims.finish()
    assert len(json.loads((root / ".torchbuild/made.json").read_bytes())["paths"]) == 4
    assert clean(root).count == 3
    assert not (root / "build").exists()


# ---------------------------------------------------------------- what one build made and the next does not


def test_stale_files_go_by_the_record_and_their_folder_with_them(root: Path) -> None:
    build(root, "torch/lib/old/liba.so", "torch/lib/libb.so", "torch/lib/libc.so")
    write(root, "torch/lib/mine.so")
    write(root, "torch/lib/libc.so", text="changed since")
    listed = ("torch/lib/old/liba.so", "torch/lib/libc.so", "torch/lib/mine.so", "torch/lib/never.so")
    removal = plan_stale(root, root / "build", OUTPUTS, listed)
    assert removal.files == ("torch/lib/old/liba.so",)
    assert removal.kept == (("torch/lib/libc.so", CHANGED),)
    assert remove(removal).count == 1
    assert not (root / "torch/lib/old").exists()
    assert {"torch/lib/libb.so", "torch/lib/libc.so", "torch/lib/mine.so"} <= files(root)


@needs_git
def test_what_one_version_generates_and_the_next_tracks_stays(root: Path) -> None:
    build(root, "torch/version.py")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-f", "torch/version.py"], cwd=root, check=True)
    removal = plan_stale(root, root / "build", OUTPUTS, ("torch/version.py",))
    assert (removal.files, removal.kept) == ((), (("torch/version.py", TRACKED),))


# ---------------------------------------------------------------- what nothing names is somebody's

STRICT = replace(recordable_outputs(load_catalog(), "scikit-build-core"), others=())


def test_what_a_person_keeps_in_a_build_folder_meanwhile_stays_and_is_listed(root: Path) -> None:
    claims = begin(root, "build", STRICT, log_time=None)
    write(root, "build/a.o", "build/CMakeFiles/b.o", "build/notes.txt", "build/try/x.cpp")
    write(root, "build/build.ninja", text="build a.o: CXX x\n")
    claims.finish()
    plan = plan_removal(root, "build", STRICT)
    assert plan.files == ("build/CMakeFiles/b.o", "build/a.o", "build/build.ninja")
    assert plan.kept == (("build/notes.txt", UNNAMED), ("build/try/x.cpp", UNNAMED))
    remove(plan)
    assert {"build/notes.txt", "build/try/x.cpp"} <= files(root)
    begin(root, "build", STRICT, log_time=None).finish()
    assert plan_removal(root, "build", STRICT).kept == plan.kept


def test_what_a_killed_configure_left_is_claimed_once_a_build_names_it(root: Path) -> None:
    begin(root, "build", STRICT, log_time=None)
    write(root, "build/macros.h")
    claims = begin(root, "build", STRICT, log_time=time.time_ns())
    write(root, "build/build.ninja", text="build x: RERUN_CMAKE ../macros.h.in\n")
    claims.finish()
    assert clean(root).count == 2


def test_what_a_killed_builds_programs_wrote_until_they_were_ended_is_its_own(root: Path) -> None:
    """Ninja goes on without a log, and the next run ends it; what is a person's is named by nothing."""
    write(root, "build/build.ninja", text="build ../torch/version.py: CUSTOM_COMMAND\n")
    begin(root, "build", OUTPUTS, log_time=None)
    log_time = time.time_ns()
    time.sleep(0.05)
    write(root, "torch/version.py", "torch/lib/mine.so")
    (root / ".torchbuild" / ENDED).touch()
    claimed = find_claimed(root, "build", OUTPUTS, snapshot(root, OUTPUTS), log_time).paths
    assert "torch/version.py" in claimed and "torch/lib/mine.so" not in claimed
    (root / ".torchbuild" / ENDED).unlink()
    claimed = find_claimed(root, "build", OUTPUTS, snapshot(root, OUTPUTS), log_time).paths
    assert "torch/version.py" not in claimed

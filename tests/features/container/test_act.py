"""What the files of a container are laid over stays as it was."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.features.container.test_choose import contain, workstation
from tests.support.capabilities import needs_symlinks
from tests.support.for_each import each_case
from torchbuild_tasks.errors import ContainerError
from torchbuild_tasks.features.container import act
from torchbuild_tasks.features.container.act import write_files
from torchbuild_tasks.features.container.show import CONTAINERFILE, TOOL


def test_the_image_gets_every_file_that_the_tool_reads() -> None:
    """Of whatever kind: a list of endings had left out what --reproducible gives to CMake."""
    package = Path(act.__file__).resolve().parents[2]
    copied = {name for _, name in act._own_files()}
    files = [path for path in (package / "data").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert files and not {path.relative_to(package).as_posix() for path in files} - copied


def test_a_folder_of_the_users_keeps_its_files(tmp_path: Path) -> None:
    """`--out .` in a project: its .gitignore is not ours, and neither is its Containerfile."""
    for name in (".gitignore", CONTAINERFILE):
        (tmp_path / name).write_text("mine\n", "utf-8")
    written = write_files(contain(workstation()), tmp_path, "tests")
    assert written.kept == (CONTAINERFILE,)
    for name in (".gitignore", CONTAINERFILE):
        assert (tmp_path / name).read_text("utf-8") == "mine\n"


def test_a_folder_that_is_called_as_ours_is_refused_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (folder / TOOL).mkdir(parents=True)
    mine = folder / TOOL / "hammer.txt"
    mine.write_text("mine\n", "utf-8")
    with pytest.raises(ContainerError, match="contains files that torchbuild did not put there") as refused:
        write_files(contain(workstation()), folder, "tests")
    assert "--out FOLDER" in refused.value.next_step and mine.exists()
    assert [path.name for path in folder.iterdir()] == [TOOL]


@needs_symlinks
@pytest.mark.parametrize("link", [TOOL, f"{TOOL}/torchbuild_tasks"])
def test_nothing_behind_a_link_of_the_folder_is_touched(tmp_path: Path, link: str) -> None:
    """A checkout may bring the folder, with a note in it that says what of it is ours."""
    mine, folder = tmp_path / "mine", tmp_path / "co/container"
    mine.mkdir()
    (mine / "__init__.py").write_text("mine\n", "utf-8")
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(mine)
    (folder / act._WRITTEN).write_text(f'{{"{TOOL}/__init__.py": ""}}', "utf-8")
    with pytest.raises(ContainerError, match="leads to"):
        write_files(contain(workstation()), folder, "tests")
    assert (mine / "__init__.py").read_text("utf-8") == "mine\n"
    assert len(list(mine.iterdir())) == 1


def test_a_run_that_was_killed_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at each file in turn, the next run still recognises the files of the killed run as its own."""
    container, write, left = contain(workstation()), act._write, 0

    def written(path: Path, data: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        write(path, data)

    monkeypatch.setattr(act, "_own_files", lambda: iter([(Path(__file__), "one.py")]))
    monkeypatch.setattr(act, "_write", written)
    for number in range(9):
        folder = tmp_path / str(number)
        left = number
        with contextlib.suppress(KeyboardInterrupt):
            write_files(container, folder, "tests")
        left = 99
        assert write_files(container, folder, "tests").kept == ()
        assert write_files(container, folder, "another").kept == ()


def test_only_what_an_earlier_tool_wrote_goes(tmp_path: Path) -> None:
    container = contain(workstation())
    write_files(container, tmp_path, "tests")
    old = tmp_path / TOOL / "torchbuild_tasks/gone.py"
    record = tmp_path / ".written.json"
    old.write_text("", "utf-8")
    record.write_text(
        record.read_text("utf-8").replace("{", f'{{"{TOOL}/torchbuild_tasks/gone.py":"",', 1), "utf-8"
    )
    mine = tmp_path / TOOL / "mine.txt"
    mine.write_text("", "utf-8")
    write_files(container, tmp_path, "tests")
    assert mine.exists() and not old.exists()


@each_case(
    ("said", "advice"),
    [
        (
            "error running container: from /usr/bin/crun creating container for [/bin/sh]: no cgroup",
            "buildah",
        ),
        ("failed to create shim task: OCI runtime create failed: runc create failed", "buildah"),
        ("dial tcp: lookup registry-1.docker.io: no such host", "--registry"),
        ('Error: building at STEP "RUN false": while running runtime: exit status 1', "Its steps are in"),
    ],
)
def test_an_engine_that_starts_no_container_is_no_matter_of_the_steps(said: str, advice: str) -> None:
    assert advice in act._advice(said, contain(workstation()), offline=False)

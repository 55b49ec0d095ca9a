"""The files of earlier installs stay listed until each is settled, even over a removed tree or a kill."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from torchbuild_tasks.build.install import leftovers
from torchbuild_tasks.system.files import STATE_DIR


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "pt"
    (root / "build").mkdir(parents=True)
    return root


def install(root: Path, *names: str, elsewhere: str = "") -> None:
    """What CMake's install leaves: files and the list of them."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    lines = [*(f"{root.as_posix()}/{name}" for name in names), *filter(None, [elsewhere])]
    (root / "build/install_manifest.txt").write_text("\n".join(lines), "utf-8")


def test_what_the_next_install_leaves_out(root: Path) -> None:
    install(root, "torch/lib/a.so", "torch/lib/b.so", elsewhere="/usr/lib/c.so")
    leftovers.note_installed(root, root / "build")
    assert leftovers.find_left_out(root, root / "build") == ()
    install(root, "torch/lib/b.so")
    assert leftovers.find_left_out(root, root / "build") == ("torch/lib/a.so",)
    leftovers.forget_left_out(root, root / "build")
    assert leftovers.find_left_out(root, root / "build") == ()


def test_what_a_wheel_lists_next_to_installs_is_the_next_builds(root: Path) -> None:
    """Ninja and setup.py write it there, too; a script that found it as it should be left it untouched."""
    install(root, "torch/version.py", "torch/_C.so", "torch/testing/generated/x.py", "torch/lib/a.so")
    leftovers.note_installed(root, root / "build")
    install(root, "torch/lib/b.so")
    assert leftovers.find_left_out(root, root / "build") == ("torch/lib/a.so",)


def test_a_killed_build_loses_nothing(root: Path) -> None:
    install(root, "torch/lib/a.so")
    leftovers.note_installed(root, root / "build")
    install(root, "torch/lib/b.so")  # and here it ended; the next begins
    leftovers.note_installed(root, root / "build")
    install(root, "torch/lib/c.so")
    assert leftovers.find_left_out(root, root / "build") == ("torch/lib/a.so", "torch/lib/b.so")


def test_it_outlives_the_build_tree(root: Path) -> None:
    install(root, "torch/lib/a.so")
    leftovers.note_installed(root, root / "build")
    shutil.rmtree(root / "build")
    leftovers.note_installed(root, root / "build")
    assert leftovers.find_left_out(root, root / "build") == (), (
        "no install yet: nothing is known to be left out"
    )
    (root / "build").mkdir()
    install(root, "torch/lib/b.so")
    assert leftovers.find_left_out(root, root / "build") == ("torch/lib/a.so",)


def test_an_install_elsewhere_says_nothing_of_the_checkout(root: Path) -> None:
    install(root, "torch/lib/a.so")
    leftovers.note_installed(root, root / "build")
    install(root, elsewhere="/tmp/wheel/torch/lib/b.so")
    assert leftovers.find_left_out(root, root / "build") == ()
    leftovers.forget_left_out(root, root / "build")
    install(root, "torch/lib/b.so")
    assert leftovers.find_left_out(root, root / "build") == ("torch/lib/a.so",)


def test_what_is_gone_by_itself_is_not_listed(root: Path) -> None:
    install(root, "torch/lib/a.so")
    leftovers.note_installed(root, root / "build")
    (root / "torch/lib/a.so").unlink()
    install(root, "torch/lib/b.so")
    assert leftovers.find_left_out(root, root / "build") == ()


def test_a_list_that_cannot_be_read_is_none(root: Path) -> None:
    install(root, "torch/lib/a.so")
    (root / STATE_DIR).mkdir()
    (root / STATE_DIR / leftovers.INSTALLED).write_text("{", "utf-8")
    leftovers.note_installed(root, root / "build")
    install(root, "torch/lib/b.so")
    assert leftovers.find_left_out(root, root / "build") == ("torch/lib/a.so",)

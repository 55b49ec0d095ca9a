"""Snapshots of an editable install, of real files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchbuild_tasks.build.install import snapshot
from torchbuild_tasks.build.install.due import Snapshot
from torchbuild_tasks.build.install.snapshot import Places, forget, read, take, write

RULES = """\
file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/include" TYPE DIRECTORY FILES "{root}/c10/."
  FILES_MATCHING REGEX "/[^/]*\\\\.h$" REGEX "/hidden$" EXCLUDE)
file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/lib" TYPE SHARED_LIBRARY FILES "{root}/build/libc10.so")
file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/lib" TYPE FILE OPTIONAL FILES "{root}/build/none.pdb")
"""
FILES = (
    *("c10/a.cpp", "c10/core/a.h", "c10/core/b.txt", "c10/hidden/h.h", "c10/__pycache__/a.py"),
    *("torch/lib/libc10.so", "torch/x.py", "torch/_C.abi3.so", "functorch/functorch.so", "build/libc10.so"),
)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, "utf-8")
    build = tmp_path / "build"
    (build / "cmake_install.cmake").write_text(RULES.format(root=tmp_path.as_posix()), "utf-8")
    (build / "install_manifest.txt").write_text(f"{tmp_path / 'torch/lib/libc10.so'}\n", "utf-8")
    return Places(
        root=tmp_path,
        build_dir=build,
        generated=("torch/_C*.so",),
        copied=("functorch/functorch.so", "build/*.json"),
        sources=("c10", "torch", "none"),
        is_source=lambda name: name.endswith((".cpp", ".h", ".py")),
        is_output=lambda path: path.startswith("torch/lib/"),
    )


def relative(places: Places, paths: object) -> set[str]:
    assert isinstance(paths, dict)
    return {Path(path).relative_to(places.root).as_posix() for path in paths}


def test_one_look(places: Places) -> None:
    now = take(places)
    assert relative(places, now.installed) == {"torch/lib/libc10.so"}
    assert relative(places, now.sources) == {"c10/core/a.h", "build/libc10.so"}
    assert relative(places, now.generated) == {"torch/_C.abi3.so"}
    assert relative(places, now.copied) == {"functorch/functorch.so"}
    assert {path: (folder.names, folder.folders) for path, folder in now.folders.items()} == {
        "c10": (("a.cpp",), ("core", "hidden")),
        "c10/core": (("a.h",), ()),
        "c10/hidden": (("h.h",), ()),
        "torch": (("x.py",), ()),
    }


def test_an_edit_shows_and_a_folder_as_it_was_is_not_read_again(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = take(places)
    header = places.root / "c10/core/a.h"
    header.write_text("edited", "utf-8")
    (places.root / "functorch/functorch.so").write_text("another", "utf-8")
    read_again: list[str] = []
    folder_of = snapshot._folder

    def noted(places: Places, path: str, place: str, changed: int) -> object:
        read_again.append(path)
        return folder_of(places, path, place, changed)

    monkeypatch.setattr(snapshot, "_folder", noted)
    (places.root / "c10/core/new.cpp").write_text("", "utf-8")
    os.utime(places.root / "c10/core", ns=(1, before.folders["c10/core"].changed + 10**6))
    now = take(places, before)
    assert now.sources != before.sources
    assert now.copied != before.copied
    assert now.folders["c10/core"].names == ("a.h", "new.cpp")
    assert read_again == ["c10/core"]


def test_the_last_look_is_kept(places: Places) -> None:
    now = take(places)
    write(places.build_dir, now, {"version": "2.8"})
    assert read(places.build_dir) == now
    forget(places.build_dir)
    assert read(places.build_dir) is None
    forget(places.build_dir)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 9}', '{"schema": 1, "installed": 3}'])
def test_one_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / snapshot.SNAPSHOT_FILE).write_text(text, "utf-8")
    assert read(tmp_path) is None


def test_rules_that_cannot_be_read_are_reported(places: Places) -> None:
    (places.build_dir / "cmake_install.cmake").unlink()
    with pytest.raises(OSError, match="cmake_install"):
        take(places)


def test_nothing_in_place_is_a_look_too(places: Places) -> None:
    (places.build_dir / "install_manifest.txt").unlink()
    assert take(places).installed == {}
    assert isinstance(take(places), Snapshot)

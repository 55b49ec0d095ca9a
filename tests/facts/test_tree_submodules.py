from __future__ import annotations

from pathlib import Path

from tests.facts.fakes import link, machine
from tests.support.capabilities import needs_symlinks
from torchbuild_tasks.facts.tree import empty_submodules, submodule_paths

ROOT = "/src"


def modules(*paths: str) -> str:
    return "".join(
        f'[submodule "{p}"]\n    ignore = dirty\n\tpath = {p}\n\turl = https://x/{p}.git\n' for p in paths
    )


def empty(root: Path, files: dict[str, str]) -> tuple[str, ...]:
    return empty_submodules(
        machine(root, files={f"{ROOT}/{name}": text for name, text in files.items()}), ROOT
    )


def test_missing_empty_and_half_made_folders_hold_nothing(tmp_path: Path) -> None:
    files = {
        ".gitmodules": modules("third_party/sleef", "third_party/a", "third_party/fmt", "third_party/gone"),
        "third_party/fmt/CMakeLists.txt": "",
        "third_party/sleef/": "",
        "third_party/a/.git": "gitdir: ../../.git/modules/a",
        "third_party/not_a_module/": "",
    }
    assert empty(tmp_path, files) == ("third_party/a", "third_party/gone", "third_party/sleef")


def test_submodules_of_submodules_are_looked_at(tmp_path: Path) -> None:
    files = {
        ".gitmodules": modules("third_party/onnx", "third_party/empty"),
        "third_party/onnx/.gitmodules": modules("third_party/pybind11", "deep/er"),
        "third_party/onnx/deep/er/.gitmodules": modules("x"),
        "third_party/onnx/third_party/pybind11/": "",
    }
    assert empty(tmp_path, files) == (
        "third_party/empty",
        "third_party/onnx/deep/er/x",
        "third_party/onnx/third_party/pybind11",
    )


def test_modules_outside_third_party_are_not_needed(tmp_path: Path) -> None:
    files = {".gitmodules": modules("android/libs/fbjni", "third_party_other/x"), "third_party/": ""}
    assert empty(tmp_path, files) == ()


def test_without_gitmodules_the_folders_speak_for_themselves(tmp_path: Path) -> None:
    files = {
        "third_party/zlib/": "",
        "third_party/fmt/x.h": "",
        "third_party/README.md": "",
        "third_party/abc/": "",
    }
    assert empty(tmp_path, files) == ("third_party/abc", "third_party/zlib")
    assert empty(tmp_path / "other", {"version.txt": ""}) == ()


def test_paths_are_read_as_git_writes_them(tmp_path: Path) -> None:
    text = (
        '[submodule "a"]\npath=plain\n\tPATH = "quo ted"\n path = dir/\n path = ../up\n path =\n url = path\n'
    )
    door = machine(tmp_path, files={f"{ROOT}/.gitmodules": text})
    assert submodule_paths(door, ROOT) == ("plain", "quo ted", "dir")
    assert submodule_paths(door, "/none") == ()


@needs_symlinks
def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    door = machine(tmp_path, files={f"{ROOT}/third_party/a/.gitmodules": modules("b"), f"{ROOT}/x": ""})
    (tmp_path / "src/.gitmodules").write_text(modules("third_party/a"), "utf-8")
    link(tmp_path, f"{ROOT}/third_party/a/b", ".")
    assert empty_submodules(door, ROOT) == ()

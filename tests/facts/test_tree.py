from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.facts.fakes import link, machine, windows_machine, write
from tests.support.capabilities import needs_enforced_permissions, needs_symlinks
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import look_at_tree, look_at_version
from torchbuild_tasks.model.facts import LOCKED, NOT_CHECKED_OUT, SHUT
from torchbuild_tasks.plan.fit import EMPTY

ROOT = "/src/pytorch"
CHECKOUT = {
    "version.txt": "2.8.0a0\n",
    "CMakeLists.txt": "project(Torch)\n",
    "torch/__init__.py": "import os\n",
    "c10/": "",
    "setup.py": "setup()\n",
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n',
    ".gitmodules": '[submodule "fmt"]\n path = third_party/fmt\n',
    "third_party/fmt/README": "",
}


def checkout(root: str = ROOT, without: str = "", **files: str) -> dict[str, str]:
    """The files of a small checkout; keywords are more files, with __ for / and _dot_ for a dot."""
    kept = {name: text for name, text in CHECKOUT.items() if not without or not name.startswith(without)}
    more = {name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()}
    return {f"{root}/{name}": text for name, text in {**kept, **more}.items()}


def test_a_complete_checkout(tmp_path: Path) -> None:
    tree = look_at_tree(machine(tmp_path, files=checkout()), ROOT)
    assert tree.problem is None
    assert (tree.root, tree.version, tree.era) == (ROOT, "2.8.0a0", "setuptools")
    assert (tree.backend, tree.requires) == ("setuptools.build_meta", ("setuptools",))
    assert (tree.build_dir, tree.git, tree.commit, tree.dirty) == (f"{ROOT}/build", False, None, None)
    assert (tree.empty, tree.sample, tree.writable) == ((), False, True)
    assert (tree.cache, tree.previous) == (None, None)


@needs_symlinks
def test_a_version_behind_a_link_out_of_the_checkout_is_none(tmp_path: Path) -> None:
    """Facts are handed on, and a repository may bring a link to anything."""
    door = machine(tmp_path, files={**checkout(without="version.txt"), "/home/me/token": "abc\n"})
    link(tmp_path, f"{ROOT}/version.txt", "../../home/me/token")
    assert look_at_tree(door, ROOT).version is None


def test_digests_tell_contents_apart_and_leave_out_what_is_not_there(tmp_path: Path) -> None:
    digests = look_at_tree(machine(tmp_path, files=checkout()), ROOT).digests
    assert set(digests) == {"version.txt", "pyproject.toml", "setup.py", "CMakeLists.txt"}
    assert digests["setup.py"] == hashlib.sha256(b"setup()\n").hexdigest()[:16]
    assert len(set(digests.values())) == 4


def test_the_sample_says_that_it_is_one(tmp_path: Path) -> None:
    files = {**checkout(), f"{ROOT}/torch/__init__.py": "__sample__ = True\n"}
    assert look_at_tree(machine(tmp_path, files=files), ROOT).sample is True


def test_the_build_tree_is_read_where_the_era_puts_it(tmp_path: Path) -> None:
    files = {
        f"{ROOT}/build/CMakeCache.txt": "CMAKE_GENERATOR:INTERNAL=Ninja\n",
        f"{ROOT}/build/torchbuild-manifest.json": json.dumps({"result": "failed"}),
    }
    tree = look_at_tree(machine(tmp_path, files={**checkout(), **files}), ROOT)
    assert tree.cache is not None
    assert tree.cache.generator == "Ninja"
    assert tree.previous is not None
    assert tree.previous.result == "failed"


@needs_symlinks
def test_links_are_followed_once_so_that_all_names_of_a_checkout_are_one(tmp_path: Path) -> None:
    door = machine(tmp_path, files=checkout())
    link(tmp_path, "/home/torch", "../src/pytorch")
    tree = look_at_tree(door, "/home/torch/")
    assert (tree.root, tree.build_dir) == (ROOT, f"{ROOT}/build")


@pytest.mark.parametrize("version", ["", "\n\n"])
def test_an_empty_version_is_unknown(tmp_path: Path, version: str) -> None:
    tree = look_at_tree(machine(tmp_path, files={**checkout(), f"{ROOT}/version.txt": version}), ROOT)
    assert (tree.problem, tree.version) == (None, None)


def test_no_folder_and_a_file(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/src/file": ""})
    assert look_at_tree(door, "/none").problem == "no such folder"
    assert look_at_tree(door, "/src/file").problem == "a file, not a folder"
    assert look_at_tree(door, "/src/file/below").problem == "no such folder"


@pytest.mark.parametrize("missing", ["version.txt", "CMakeLists.txt", "torch/__init__.py", "c10"])
def test_what_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    tree = look_at_tree(machine(tmp_path, files=checkout(without=missing)), ROOT)
    assert tree.problem == f"not a PyTorch checkout: it has no {missing}"
    assert f"{ROOT}/{missing}" in tree.looked
    assert tree.version is None


def test_before_1_4_setup_py_says_the_version(tmp_path: Path) -> None:
    """Real checkouts of 1.0 to 1.3 have no version.txt."""
    text = "import os\nif True:\n    version = 'no'\nversion = '1.1.0a0'\nsetup(version=version)\n"
    door = machine(tmp_path, files={**checkout(without="version.txt"), f"{ROOT}/setup.py": text})
    tree = look_at_tree(door, ROOT)
    assert (tree.problem, tree.version, tree.era) == (None, "1.1.0a0", "setuptools")
    assert look_at_version(ROOT, door) == "1.1.0a0"
    assert (look_at_tree(door, "/src").problem or "").endswith("; its folder pytorch is one")


def test_the_checkout_is_found_one_folder_down_and_further_up(tmp_path: Path) -> None:
    door = machine(tmp_path, files=checkout())
    below = look_at_tree(door, "/src").problem or ""
    assert below.startswith("not a PyTorch checkout: it has no version.txt, no CMakeLists.txt")
    assert below.endswith("; its folder pytorch is one")
    above = look_at_tree(door, f"{ROOT}/third_party/fmt").problem or ""
    assert above.endswith(f"; the folder {ROOT} around it is one")


def test_an_empty_third_party_in_a_clone_is_listed_and_no_problem_here(tmp_path: Path) -> None:
    files = checkout(without="third_party", _dot_git__HEAD="ref: refs/heads/main")
    tree = look_at_tree(machine(tmp_path, files=files), ROOT)
    assert (tree.problem, tree.git, tree.empty) == (None, True, ("third_party/fmt",))


def test_an_unpacked_archive_is_read_completely_and_what_it_lacks_is_listed(tmp_path: Path) -> None:
    root = "/tmp/pytorch-2.8.0"
    files = {**checkout(root, without="third_party"), f"{root}/third_party/fmt/": ""}
    tree = look_at_tree(machine(tmp_path, files=files), root)
    assert (tree.problem, tree.version, tree.empty) == (None, "2.8.0a0", ("third_party/fmt",))


def test_a_release_archive_with_its_submodules_is_fine(tmp_path: Path) -> None:
    root = "/tmp/pytorch-v2.8.0"
    files = checkout(root) | {f"{root}/.gitmodules": "path = third_party/fmt\npath = third_party/x\n"}
    tree = look_at_tree(machine(tmp_path, files=files), root)
    assert (tree.problem, tree.empty) == (None, ("third_party/x",))


def test_a_broken_pyproject_is_a_problem(tmp_path: Path) -> None:
    tree = look_at_tree(machine(tmp_path, files={**checkout(), f"{ROOT}/pyproject.toml": "[oops\n"}), ROOT)
    assert (tree.problem or "").startswith("pyproject.toml cannot be read: ")
    assert (tree.version, tree.era, tree.broken) == ("2.8.0a0", None, "pyproject.toml")


def test_an_empty_file_of_cmake_is_named_as_what_is_broken(tmp_path: Path) -> None:
    tree = look_at_tree(machine(tmp_path, files={**checkout(), f"{ROOT}/CMakeLists.txt": ""}), ROOT)
    assert (tree.problem is None, tree.broken) == (False, "CMakeLists.txt")
    assert look_at_tree(machine(tmp_path, files=checkout()), ROOT).broken == ""


@needs_enforced_permissions
def test_a_tree_that_cannot_be_written(tmp_path: Path) -> None:
    door = machine(tmp_path, files=checkout())
    folder = door.at(ROOT)
    folder.chmod(0o555)
    try:
        assert look_at_tree(door, ROOT).writable is False
    finally:
        folder.chmod(0o755)


def test_our_own_sample_is_a_checkout_in_both_eras(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "samples" / "minitorch"
    copy = {
        p.relative_to(sample).as_posix(): p.read_text("utf-8")
        for p in sample.rglob("*")
        if p.is_file() and p.suffix in (".txt", ".toml", ".py", ".h")
    }
    write(tmp_path / "new", copy)
    old = {
        name.removeprefix("eras/setuptools/"): text
        for name, text in copy.items()
        if name.startswith("eras/setuptools/")
    }
    write(tmp_path / "old", {**copy, **old})
    eras = {}
    for name in ("new", "old"):
        tree = look_at_tree(machine(tmp_path), f"/{name}")
        assert (tree.problem, tree.sample) == (None, True)
        assert tree.version is not None
        eras[name] = tree.era
    assert eras == {"new": "scikit-build-core", "old": "setuptools"}


def test_a_checkout_on_windows_is_named_as_windows_does(tmp_path: Path) -> None:
    root = "C:\\src\\pytorch"
    files = checkout(root.replace("\\", "/"), without="third_party")
    tree = look_at_tree(windows_machine(tmp_path, files=files), "C:/src/pytorch/")
    assert (tree.problem, tree.root, tree.build_dir) == (None, root, f"{root}\\build")
    assert tree.looked[2] == f"{root}\\torch\\__init__.py"
    assert tree.empty == ("third_party/fmt",)
    assert tree.writable is None
    above = look_at_tree(windows_machine(tmp_path), f"{root}\\c10").problem or ""
    assert above.endswith(f"; the folder {root} around it is one")


def test_line_ends_of_windows_are_no_change(tmp_path: Path) -> None:
    crlf = {name: text.replace("\n", "\r\n") for name, text in checkout().items()}
    unix = look_at_tree(machine(tmp_path / "lf", files=checkout()), ROOT)
    assert look_at_tree(machine(tmp_path / "crlf", files=crlf), ROOT).digests == unix.digests


@needs_enforced_permissions
def test_a_build_folder_of_another_user_stands_in_the_way(tmp_path: Path) -> None:
    probe = machine(tmp_path, files=checkout(**{"build/x": ""}))
    folder = Path(probe.at(f"{ROOT}/build"))
    folder.chmod(0o555)
    assert look_at_tree(probe, ROOT).blocked == {f"{ROOT}/build": SHUT}
    folder.chmod(0o755)


@needs_enforced_permissions
def test_what_a_build_with_sudo_has_left_stands_in_the_way(tmp_path: Path) -> None:
    probe = machine(tmp_path, files=checkout(**{"torch/version.py": "", "env_set.sh": ""}))
    Path(probe.at(f"{ROOT}/torch/version.py")).chmod(0o444)
    Path(probe.at(f"{ROOT}/env_set.sh")).chmod(0o000)
    assert look_at_tree(probe, ROOT).blocked == {
        f"{ROOT}/torch/version.py": LOCKED,
        f"{ROOT}/env_set.sh": LOCKED,
    }


@pytest.mark.skipif(os.name == "nt", reason="Windows has no sudo")
def test_sudo_works_on_the_checkout_of_who_called_it(tmp_path: Path) -> None:
    def by_sudo(caller: str) -> bool:
        return look_at_tree(machine(tmp_path, files=checkout(), environ={"SUDO_UID": caller}), ROOT).by_sudo

    assert by_sudo(str(os.getuid())) is (os.getuid() != 0) and not by_sudo("54321")


@needs_symlinks
def test_what_stands_where_a_build_makes_its_folders(tmp_path: Path) -> None:
    probe = machine(tmp_path, files=checkout(**{".torchbuild": "a file"}))
    link(tmp_path, f"{ROOT}/build", "/not/there")
    assert look_at_tree(probe, ROOT).blocked == {
        f"{ROOT}/.torchbuild": "a file",
        f"{ROOT}/build": "a link to what is not there",
    }
    assert not look_at_tree(machine(tmp_path / "other", files=checkout()), ROOT).blocked


def test_an_empty_cmakelists_is_no_checkout(tmp_path: Path) -> None:
    probe = machine(tmp_path, files=checkout(**{"CMakeLists.txt": ""}))
    assert "CMakeLists.txt is empty" in (look_at_tree(probe, ROOT).problem or "")


def test_an_empty_setup_py_is_seen_by_its_digest(tmp_path: Path) -> None:
    probe = machine(tmp_path, files=checkout(**{"setup.py": ""}))
    assert look_at_tree(probe, ROOT).digests["setup.py"] == EMPTY


def test_all_words_of_version_txt_are_the_version(tmp_path: Path) -> None:
    probe = machine(tmp_path, files=checkout(**{"version.txt": "2.6.0a0\n2.7.0\n"}))
    assert look_at_version(ROOT, probe) == "2.6.0a0 2.7.0"


@needs_symlinks
def test_a_link_says_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to("loop")
    problems = [look_at_tree(Probe(), str(tmp_path / name)).problem for name in ("gone", "loop", "none")]
    assert problems == [
        f"a symbolic link that leads to {tmp_path / 'nowhere'}, which is not there",
        "a symbolic link that leads to itself",
        "no such folder",
    ]


def test_a_clone_without_its_files(tmp_path: Path) -> None:
    write(tmp_path / "clone", {".git/HEAD": "ref: refs/heads/main"})
    assert look_at_tree(Probe(), str(tmp_path / "clone")).problem == NOT_CHECKED_OUT

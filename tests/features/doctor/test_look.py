"""What the doctor looks at on a machine, Linux and Windows."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.facts.fakes import FakeProbe, machine, windows_machine
from tests.support.machines import linux_facts, python, with_tree
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.features.doctor.look import look_at_health, temporary_folder
from torchbuild_tasks.model import Facts, Health
from torchbuild_tasks.values import replace

MOUNTS = (
    "1 0 8:1 / / rw,relatime - ext4 /dev/a rw\n"
    "2 1 8:2 / /src rw,noexec,relatime - xfs /dev/b rw\n"
    "3 1 0:9 / /net rw - nfs4 server:/x rw\n"
)
CACHE = "CMAKE_HOME_DIRECTORY:INTERNAL=/gone/pytorch\n"


def look(probe: FakeProbe, facts: Facts | None = None, places: dict[str, str] | None = None) -> Health:
    return look_at_health(
        probe, facts or with_tree(linux_facts(), root="/src"), places or {}, ("USE_CUDA",), "/src/build"
    )


def test_rooms_know_their_file_system(tmp_path: Path) -> None:
    probe = machine(tmp_path, files={"/proc/self/mountinfo": MOUNTS, "/src/a": "", "/net/cache/b": ""})
    build, cache, store = look(
        probe, places={"build": "/src/build", "cache": "/net/cache", "store": "/home/me/.cache/x"}
    ).rooms
    assert (build.mount, build.kind, build.noexec, build.free) == ("/src", "xfs", True, 400)
    assert (cache.mount, cache.kind, cache.noexec) == ("/net", "nfs4", False)
    assert (store.mount, store.kind) == ("/", "ext4")


def test_a_windows_volume_says_its_file_system(tmp_path: Path) -> None:
    probe = windows_machine(tmp_path, files={"C:\\src\\a": ""})
    (room,) = look(probe, places={"build": "C:\\src\\build"}).rooms
    assert room.kind == "NTFS"
    assert room.noexec is None


def test_where_temporary_files_go(tmp_path: Path) -> None:
    assert temporary_folder(machine(tmp_path / "a", environ={"TMPDIR": "/big"})) == "/big"
    assert temporary_folder(machine(tmp_path / "b")) == "/tmp"
    assert temporary_folder(windows_machine(tmp_path / "c", environ={"TEMP": "D:\\t"})) == "D:\\t"


def test_names_without_values_and_only_like_a_builds(tmp_path: Path) -> None:
    environ = {"USE_CUDA": "0", "USE_TOKEN": "secret", "NO_CUDA": "1", "MY_PASSWORD": "secret"}
    health = look(machine(tmp_path, environ={**environ, "LD_LIBRARY_PATH": "/opt/lib"}))
    assert health.strangers == ("NO_CUDA", "USE_TOKEN")
    assert health.environ == {"LD_LIBRARY_PATH": "/opt/lib"}
    assert "secret" not in repr(health)


def test_the_locale_is_looked_up(tmp_path: Path) -> None:
    programs = {"/usr/bin/locale": Output(0, "C\nC.utf8\nPOSIX\n", "")}
    here = machine(tmp_path / "a", programs=programs, environ={"LANG": "C.UTF-8"})
    gone = machine(tmp_path / "b", programs=programs, environ={"LANG": "C.UTF-8", "LC_ALL": "de_DE.UTF-8"})
    assert (look(here).locale, look(here).locale_known) == ("C.UTF-8", True)
    assert (look(gone).locale, look(gone).locale_known) == ("de_DE.UTF-8", False)
    assert look(machine(tmp_path / "c", environ={"LANG": "C"})).locale_known is None


def test_gits_settings_and_its_refusal(tmp_path: Path) -> None:
    ask = "/usr/bin/git -C /src"
    settings = (
        f"{ask} config --get-regexp ^(core\\.autocrlf|core\\.longpaths|core\\.symlinks|http\\.sslverify)$"
    )
    probe = machine(
        tmp_path,
        files={"/src/.git/": ""},
        programs={"/usr/bin/git": Output(0, "", "")},
    )
    probe.outputs[settings] = Output(0, "core.autocrlf input\ncore.autocrlf TRUE\ncore.symlinks\n", "")
    probe.outputs[f"{ask} rev-parse --git-dir"] = Output(128, "", "fatal: detected dubious ownership in …")
    facts = with_tree(linux_facts(), root="/src", commit=None)
    health = look(probe, facts)
    assert health.git == {"core.autocrlf": "true", "core.symlinks": "true"}
    assert health.git_refuses
    assert not look(probe, with_tree(facts, commit="abc")).git_refuses


def test_condas_linkers(tmp_path: Path) -> None:
    probe = machine(tmp_path, files={"/conda/compiler_compat/ld": ""}, environ={"CONDA_PREFIX": "/conda"})
    own = python(environment="conda", prefix="/conda")
    assert look(probe, with_tree(linux_facts(pythons=(own,)), root="/src")).conda_linkers == (
        "/conda/compiler_compat/ld",
    )


def test_a_torch_in_the_way(tmp_path: Path) -> None:
    files = {"/here/torch.py": "", "/lib/torch/__init__.py": ""}
    health = look(machine(tmp_path, files=files, environ={"PYTHONPATH": ":/lib:/none"}))
    assert health.shadows == ("/here/torch.py", "/lib/torch/__init__.py")


def test_other_trees_and_files_of_the_future(tmp_path: Path) -> None:
    files = {"/src/build/CMakeCache.txt": CACHE, "/src/build_2/CMakeCache.txt": CACHE, "/src/builder/x": ""}
    probe = machine(tmp_path, files=files)
    later = time.time() + 500
    os.utime(tmp_path / "src/build/CMakeCache.txt", (later, later))
    health = look(probe)
    assert [(tree.path, tree.home) for tree in health.others] == [("/src/build_2", "/gone/pytorch")]
    assert health.newest == "/src/build/CMakeCache.txt"
    assert health.ahead is not None and 400 < health.ahead <= 500


def test_limits(tmp_path: Path) -> None:
    health = look(machine(tmp_path))
    assert (health.open_files, health.open_files_most, health.administrator) == (1024, 4096, False)
    none = replace(machine(tmp_path), files=None)
    assert look(none).open_files is None

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.facts.fakes import GCC, FakeProbe, machine
from tests.support.capabilities import needs_symlinks
from torchbuild_tasks.facts import names_posix, names_windows
from torchbuild_tasks.facts.gather import gather
from torchbuild_tasks.facts.names import Names
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.model import Facts
from torchbuild_tasks.values import from_json, to_json

ROOT = "/src/pytorch"
FILES = {
    "/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 8:2 / /src rw - xfs /dev/sdb rw\n",
    "/proc/meminfo": "MemTotal: 1024 kB\n",
    f"{ROOT}/version.txt": "2.8.0\n",
    f"{ROOT}/CMakeLists.txt": "project(Torch)\n",
    f"{ROOT}/torch/__init__.py": "",
    f"{ROOT}/c10/": "",
    f"{ROOT}/setup.py": "",
}


def test_everything_is_looked_at_once(tmp_path: Path) -> None:
    python = json.dumps({"executable": "/v/bin/python", "version": "3.12.1", "prefix": "/v"})
    door = machine(
        tmp_path,
        files=FILES,
        programs={
            "/usr/bin/g++": GCC.format(name="g++"),
            "/usr/bin/cmake": "cmake version 3.28.1",
            "/v/bin/python": python,
        },
        environ={"VIRTUAL_ENV": "/v", "USE_CUDA": "0", "AWS_SECRET_ACCESS_KEY": "x"},
    )
    facts = gather(source=ROOT, python=None, patterns=["USE_*", "CXX"], probe=door)
    assert facts.tree.version == "2.8.0"
    assert (facts.disk.path, facts.disk.mount) == (f"{ROOT}/build", "/src")
    assert facts.memory.total == 1024**2
    assert facts.compilers[0].version == "12.2.0"
    assert next(tool for tool in facts.tools if tool.name == "cmake").version == "3.28.1"
    assert [p.version for p in facts.pythons] == ["3.12.1"]
    assert facts.environ == {"USE_CUDA": "0"}
    assert len(door.asked) == len(set(door.asked))


@pytest.mark.one_system
@needs_symlinks
def test_records_name_the_interpreter_as_it_is_named_now(tmp_path: Path) -> None:
    python = json.dumps({"executable": "/v/bin/python", "version": "3.12.1", "prefix": "/v"})
    inputs = {"inputs": {"python": "/link/bin/python3 3.12", "era": "setuptools"}}
    records = {
        f"{ROOT}/build/CMakeCache.txt": "Python_EXECUTABLE:FILEPATH=/x/../link/bin/python3\n",
        f"{ROOT}/build/torchbuild-manifest.json": json.dumps({"result": "ok", **inputs}),
        f"{ROOT}/build/torchbuild-install.json": json.dumps(inputs),
        "/x/": "",
    }
    door = machine(
        tmp_path,
        files={**FILES, **records},
        programs={"/v/bin/python": python},
        environ={"VIRTUAL_ENV": "/v"},
    )
    (tmp_path / "link").symlink_to("v")
    (tmp_path / "v/bin/python3").symlink_to("python")
    tree = gather(source=ROOT, python=None, patterns=[], probe=door).tree
    assert tree.recorded is False
    assert tree.cache is not None
    assert tree.previous is not None
    assert tree.cache.python == "/v/bin/python"
    assert tree.previous.inputs == tree.installed == {"python": "/v/bin/python 3.12", "era": "setuptools"}


def test_two_pythons_of_one_folder_stay_two(tmp_path: Path) -> None:
    python = json.dumps({"executable": "/usr/bin/python3.11", "version": "3.11.2", "prefix": "/usr"})
    cache = "Python_EXECUTABLE:FILEPATH=/usr/bin/python3.12\n"
    door = machine(
        tmp_path,
        files={**FILES, f"{ROOT}/build/CMakeCache.txt": cache, "/usr/bin/python3.12": ""},
        programs={"/usr/bin/python3.11": python},
    )
    facts = gather(source=ROOT, python="/usr/bin/python3.11", patterns=[], probe=door)
    assert [each.executable for each in facts.pythons] == ["/usr/bin/python3.11"]
    assert facts.tree.cache is not None
    assert facts.tree.cache.python == "/usr/bin/python3.12"


def test_submodules_are_searched_for_what_the_user_said_and_not_for_a_preset(
    tmp_path: Path,
) -> None:
    door = machine(
        tmp_path,
        files={
            **FILES,
            f"{ROOT}/CMakeLists.txt": 'option(USE_CUDA "" ON)',
            f"{ROOT}/third_party/gloo/CMakeLists.txt": "if(USE_REDIS OR USE_OLD)\nendif()",
        },
    )
    around: tuple[dict[str, str], dict[str, str]] = ({}, {"USE_OLD": "0", "USE_REDIS": "1"})
    preset = gather(source=ROOT, python=None, patterns=[], probe=door, around=around).tree.reads
    said = gather(source=ROOT, python=None, patterns=[], probe=door, around=around, asked=["USE_REDIS"])
    assert preset is not None
    assert said.tree.reads is not None
    assert (preset.names, said.tree.reads.names) == (("USE_CUDA",), ("USE_CUDA", "USE_REDIS"))


def test_an_empty_machine_is_full_of_unknowns_and_no_crash(tmp_path: Path) -> None:
    facts = gather(source="/none", python="3.12", patterns=[], probe=machine(tmp_path))
    assert facts.tree.problem == "no such folder"
    assert (facts.disk.path, facts.disk.mount) == ("/none", None)
    assert [p.problem for p in facts.pythons] == ["not found in /usr/bin"]
    assert not any(tool.path for tool in (*facts.tools, *facts.compilers))


def test_facts_survive_json(tmp_path: Path) -> None:
    facts = gather(source=ROOT, python=None, patterns=["P*"], probe=machine(tmp_path, files=FILES))
    text = json.dumps(to_json(facts))
    assert from_json(Facts, json.loads(text), "facts") == facts


class Rubbish(FakeProbe, frozen=True, kw_only=True):
    """Every file and every program says the same."""

    said: str

    def run(self, argv: object, *, timeout: float = 10.0) -> Output | None:
        return Output(0, self.said, self.said)

    def read_bytes(self, path: str) -> bytes | None:
        if path.endswith("torchbuild.lock"):  # the one file of which rubbish is told as an error
            return None
        return self.said.encode("utf-8", "surrogatepass")

    def exists(self, path: str) -> bool:
        return not path.endswith("torchbuild.lock")

    is_file = is_program = exists

    def is_dir(self, path: str) -> bool:
        return "bin" not in path

    def children(self, path: str) -> tuple[str, ...]:
        return ("1.2", "g++-12", "venv-3.12", "14.44.35207", "10.0.1.2")

    def file_version(self, path: str) -> str | None:
        return self.said or None

    def registry_value(self, key: str, name: str = "") -> str | int | None:
        return self.said if len(name) % 2 else len(self.said)

    def registry_keys(self, key: str) -> tuple[str, ...]:
        return ("", "3.12", self.said)


ODD_LINES = (
    "path = third_party/x",
    '[build-system]\nbuild-backend = "setuptools.build_meta"',
    "0::/a/../b",
    "4:memory,cpu:/x",
    "1 0 8:1 / /m rw - cgroup2 x rw",
    "1 0 8:1 / /m rw - cgroup x rw,memory,cpu",
    "100000 0",
    "MemTotal: -1 kB",
    "hierarchical_memory_limit 1",
    '{"executable": "/x", "version": "3.x", "prefix": "", "packages": []}',
    '{"result": "ok", "verify": [], "inputs": {}}',
    '[{"installationPath": "C:x", "catalog": 3}]',
    " -V:3.12 *   C:\\x.exe",
    "19.x",
    "PRETTY_NAME=",
    "A:B=",
    "1.2.3",
    "(((",
)


@given(
    st.lists(st.one_of(st.sampled_from(ODD_LINES), st.text()), max_size=8),
    st.none() | st.text(max_size=8),
    st.sampled_from([names_posix, names_windows]),
)
def test_no_rubbish_makes_it_raise(lines: list[str], python: str | None, names: Names) -> None:
    environ = {"PATH": "/bin", "CC": lines[0] if lines else "", "VIRTUAL_ENV": "/v"}
    facts = gather(
        source="/src",
        python=python,
        patterns=["*"],
        probe=Rubbish(environ=environ, said="\n".join(lines), names=names),
    )
    assert from_json(Facts, json.loads(json.dumps(to_json(facts))), "facts") == facts


@pytest.mark.integration
def test_the_real_machine(tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    facts = gather(source=str(tmp_path), python=sys.executable, patterns=["PATH"])
    assert facts.host.os == ("windows" if sys.platform == "win32" else sys.platform)
    assert (facts.windows is None) == (facts.host.os != "windows")
    assert facts.environ == {"PATH": os.environ["PATH"]}
    assert facts.pythons[0].problem is None
    assert facts.tree.problem is not None
    assert (facts.memory.total or 0) >= (facts.memory.available or 0) > 0
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.integration
def test_a_start_without_looking_loads_no_thread_pool() -> None:
    code = "import sys, torchbuild_tasks.facts.gather; print('concurrent.futures' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"


@pytest.mark.integration
def test_a_build_for_the_cpu_imports_nothing_about_cuda(tmp_path: Path) -> None:
    code = (
        "import sys; from torchbuild_tasks.facts.gather import gather\n"
        "from torchbuild_tasks.facts.probe import Probe\n"
        f"gather(source={str(tmp_path)!r}, python=sys.executable, patterns=(), cuda=False, "
        "probe=Probe(environ={}))\n"
        "print([name for name in sys.modules if name.startswith('torchbuild_tasks.facts.cuda')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"

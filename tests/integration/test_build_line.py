"""All steps on the sample, in both eras, as a user takes them: plan, build, change, fail, clean."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.capabilities import needs_linux_compiler
from tests.support.driver import TORCHBUILD, Run, environment, torchbuild
from tests.support.sample import ERAS, Era, in_one_era, materialise
from tests.support.waiting import until

# Under Windows test_windows_line.py goes this way, with what stands in for Visual Studio there.
pytestmark = [pytest.mark.integration, needs_linux_compiler]


class Line:
    """One copy of the sample and the Python that gets its torch."""

    def __init__(self, tree: Path, python: Path) -> None:
        self.tree, self.python = tree, python

    def __call__(self, verb: str, *words: str | Path) -> Run:
        return torchbuild(verb, "--source", self.tree, "--python", self.python, *words, environ=self.state)

    @property
    def state(self) -> dict[str, str]:
        """Where it is remembered what builds wrote; each test has a home of its own."""
        return {"TORCHBUILD_STATE": str(self.tree.parent / "state")}

    def torch(self, expression: str) -> str:
        """Return the value of an expression on the built torch, evaluated in another folder."""
        code = f"import torch; print({expression})"
        argv = [str(self.python), "-I", "-c", code]
        done = subprocess.run(argv, cwd=self.tree.parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    @property
    def record(self) -> Any:
        return json.loads((self.tree / "build/torchbuild-manifest.json").read_text("utf-8"))


@pytest.fixture(scope="module", params=ERAS)
def line(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, target: Path
) -> Iterator[Line]:
    """The sample, built once an era; the tests of this module go on from there in their order."""
    era = cast(Era, request.param)
    tree = materialise(tmp_path_factory.mktemp(era) / "minitorch", era=era)
    line = Line(tree, target)
    done = line("build", "--yes")
    assert done.code == 0, done.out + done.err
    assert "0 failed" in done.out
    yield line
    subprocess.run([str(target), "-m", "pip", "uninstall", "-q", "-y", "torch"], check=True)


def test_the_build_is_recorded(line: Line) -> None:
    record = line.record
    assert record["result"] == "ok"
    assert "verify" in [stage["stage"] for stage in record["stages"]]
    assert all(stage["result"] == "ok" for stage in record["stages"])
    assert {check["outcome"] for check in record["verify"]["checks"]} == {"passed", "not possible"}
    assert Path(record["verify"]["torch"]["file"]).is_relative_to(line.tree)


def test_an_unchanged_tree_is_up_to_date(line: Line) -> None:
    before = (line.tree / "build/torchbuild-manifest.json").read_bytes()
    done = line("build")
    assert done.code == 0, done.err
    assert "Up to date" in done.err
    assert (line.tree / "build/torchbuild-manifest.json").read_bytes() == before


@in_one_era("line")
def test_a_check_that_fails_for_a_flag_that_was_not_repeated_says_so(line: Line) -> None:
    failed = line("verify", "--build-type", "Debug")
    assert (failed.code, "had other inputs (" in failed.err) == (7, True), failed.out + failed.err
    assert "other inputs" not in line("verify").err


@in_one_era("line")
def test_a_replay_gives_the_same_env_file_byte_for_byte(line: Line) -> None:
    """The environment of the replay has other variables, which are ignored."""
    manifest, env = line.tree / "build/torchbuild-manifest.json", (line.tree / "env_set.sh").read_bytes()
    otherwise = {**line.state, "USE_KINETO": "1", "MAX_JOBS": "1"}
    done = torchbuild("replay", manifest, "--json", environ=otherwise)
    assert done.code == 0, done.out + done.err
    replay = done.json["replay"]
    assert replay["differences"] == []
    assert replay["plan"]["env_files"][0]["text"].encode() == env
    done = torchbuild("replay", manifest, "--yes", environ={**line.state, "USE_KINETO": "1"})
    assert done.code == 0, done.err
    assert "Up to date" in done.err
    assert (line.tree / "env_set.sh").read_bytes() == env


def test_the_manifest_says_what_was_built_and_how(line: Line) -> None:
    manifest = line.record
    assert manifest["schema"] == 2
    assert manifest["result"] == "ok"
    assert manifest["source_problem"].startswith("no git")
    assert [ran["argv"] for ran in manifest["commands"]][-1] == manifest["argv"]
    programs = {program["name"]: program for program in manifest["programs"]}
    assert {"CXX", "CC", "cmake", "ninja"} <= set(programs)
    assert Path(programs["ninja"]["path"]).is_relative_to(line.python.parent)
    assert len(programs["CXX"]["sha256"]) == 64
    packages = {package["name"]: package for package in manifest["requirements"]}
    assert "pip keeps no hash" in packages["numpy"]["unknown"]
    assert packages["torch"]["origin"].startswith("editable file:") or packages["torch"]["record"] is None


@in_one_era("line")
def test_a_tree_of_0_1_0_is_not_built_anew_and_its_record_is_replaced(line: Line) -> None:
    """Version 0.1.0 kept the fingerprint in a separate file, and its manifest had none."""
    manifest, record = (line.tree / f"build/torchbuild-{name}.json" for name in ("manifest", "record"))
    record.write_text(json.dumps({**line.record, "schema": 1}), "utf-8")
    shutil.copy(Path(__file__).parents[1] / "features/manifest/schema-1.json", manifest)
    done = line("build")
    assert done.code == 0, done.err
    assert "Up to date" in done.err
    assert record.exists()
    assert line.record["schema"] == 1
    (line.tree / "aten/src/ATen/mul.cpp").touch()
    done = line("build", "--verbose")
    assert done.code == 0, done.err
    assert "matmul.cpp.o" not in done.err
    assert not record.exists()
    assert line.record["schema"] == 2


def test_an_edited_source_is_compiled(line: Line) -> None:
    source = line.tree / "aten/src/ATen/relu.cpp"
    source.write_text(source.read_text("utf-8") + "\n// edited\n", "utf-8")
    done = line("build", "--verbose")
    assert done.code == 0, done.err
    assert "relu.cpp" in done.err
    assert "matmul.cpp.o" not in done.err


def _set_variable(line: Line, name: str, before: str, value: str, after: str) -> None:
    assert f"{name}={before}" in line.torch("torch.__config__.show()")
    plan = line("plan", "--set", f"{name}={value}", "--json").json
    assert plan["freshness"]["needs"] == "reconfigure"
    assert [(c["name"], c["after"]) for c in plan["freshness"]["changes"]] == [(name, value)]
    assert line("build", "--set", f"{name}={value}").code == 0
    assert re.search(f"{name}={after}", line.torch("torch.__config__.show()"))


def test_a_changed_variable_reaches_cmake(line: Line) -> None:
    """PyTorch's own build would go on with the cached value in both eras."""
    # The sample only records this one: a single file is compiled again.
    _set_variable(line, "USE_MKLDNN", "OFF", "1", "(ON|1)")


@in_one_era("line")
def test_a_failed_build_names_the_cause_and_what_to_do_here(line: Line) -> None:
    # Where there is a linker to try, that would end it before the compile.
    done = line("build", "--set", "CXXFLAGS=-fno-such-flag", "--no-preflight", "--json")
    assert done.code == 6
    told = json.loads(done.out)["diagnoses"]
    assert told[0]["id"] == "unknown-flag"
    assert "-fno-such-flag" in told[0]["cause"]
    assert told[0]["see"].endswith("failures.md#unknown-flag")
    log = line("diagnose", str(line.tree / ".torchbuild/logs/build.log"), "--json")
    assert log.code == 0
    reading = json.loads(log.out)
    assert [each["id"] for each in reading["diagnoses"]] == [each["id"] for each in told]
    assert reading["error_line"] in (line.tree / ".torchbuild/logs/build.log").read_text("utf-8")


@in_one_era("line")
def test_a_variable_that_is_set_no_longer_goes_back_to_the_default(line: Line) -> None:
    assert line("build").code == 0
    assert "USE_MKLDNN=OFF" in line.torch("torch.__config__.show()")


@pytest.mark.slow
def test_a_changed_switch_reaches_cmake_and_goes_back(line: Line) -> None:
    _set_variable(line, "USE_OPENMP", "ON", "0", "(OFF|0)")
    assert line("build").code == 0
    assert "USE_OPENMP=ON" in line.torch("torch.__config__.show()")


@pytest.mark.slow
def test_the_build_type_reaches_cmake(line: Line) -> None:
    assert line("build", "--build-type", "Debug").code == 0
    assert "BUILD_TYPE=Debug" in line.torch("torch.__config__.show()")
    assert line.torch("torch.version.debug") == "True"
    assert line("build").code == 0
    assert line.torch("torch.version.debug") == "False"


def test_a_failed_build_shows_its_first_error(line: Line) -> None:
    source = line.tree / "aten/src/ATen/matmul.cpp"
    whole = source.read_text("utf-8")
    source.write_text(f"{whole}\nint broken = undeclared;\n", "utf-8")
    done = line("build")
    assert done.code == 6
    assert "matmul.cpp" in done.err
    assert "was not declared" in done.err
    assert ".torchbuild/logs/build.log" in done.err
    assert "Traceback" not in done.err
    assert line.record["result"] == "failed"
    source.write_text(whole, "utf-8")
    assert line("build").code == 0


def test_the_env_file_is_what_the_build_ran_in(line: Line) -> None:
    """Sourcing it by hand and asking Ninja finds nothing left to compile."""
    script = f'. "{line.tree}/env_set.sh" && ninja -C "{line.tree}/build"'
    done = subprocess.run(
        ["sh", "-c", script], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"Building|Linking|CMake", done.stdout)


@pytest.mark.parametrize(
    "numbers",  # one in each era, with --slow both in both
    [(signal.SIGTERM, signal.SIGINT), pytest.param((signal.SIGINT, signal.SIGTERM), marks=pytest.mark.slow)],
)
def test_a_second_build_names_the_run_that_holds_the_tree_and_an_interrupted_one_goes_on(
    line: Line, numbers: tuple[int, int]
) -> None:
    number = numbers[(line.tree / "setup.py").exists()]
    source = line.tree / "aten/src/ATen/matmul.cpp"
    whole = source.read_text("utf-8")
    _slow_to_compile(source, number)
    argv = [*TORCHBUILD, "build", "--source", str(line.tree), "--python", str(line.python)]
    build = subprocess.Popen(
        argv, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    until(lambda: bool(_compiling("matmul.cpp", line.tree)))
    compilers = _compiling("matmul.cpp", line.tree)
    _send(compilers, signal.SIGSTOP)  # a wait that takes no time of a core
    second = line("build")
    assert second.code == 8
    assert str(build.pid) in second.err
    assert build.poll() is None
    _send(compilers, signal.SIGCONT)
    start = time.monotonic()
    build.send_signal(number)
    _, err = build.communicate(timeout=60)
    assert time.monotonic() - start < 30  # a loaded machine; tests/integration/test_interrupt.py is strict
    assert build.returncode == 130
    assert "Traceback" not in err
    assert not _processes_in(line.tree)
    assert line.record["result"] == "interrupted"
    source.write_text(whole, "utf-8")  # its object is older all the same
    assert line("build").code == 0


@in_one_era("line")
def test_a_wheel_is_built_installed_and_verified(line: Line) -> None:
    done = line("build", "--mode", "wheel", "--yes", "--json")
    assert done.code == 0, done.err
    assert list((line.tree / "dist").glob("torch-*.whl"))
    assert not line.torch("torch.__file__").startswith(str(line.tree))
    assert {check["outcome"] for check in done.json["verify"]["checks"]} == {"passed", "not possible"}
    assert line("build", "--yes").code == 0


def test_clean_leaves_the_tree_as_it_was(line: Line) -> None:
    mine = line.tree / "build/notes of mine.txt"
    mine.write_text("keep", "utf-8")
    listed = line("clean", "--dry-run")
    assert listed.code == 0
    assert "build/" in listed.out and "build/" not in listed.err
    assert (line.tree / "build/build.ninja").exists()
    assert line("clean").code == 9
    assert line("clean", "--yes").code == 0
    assert [path.name for path in (line.tree / "build").iterdir()] == [mine.name]
    assert not (line.tree / "torch/lib").exists()
    assert not list((line.tree / "torch").glob("_C*.so"))
    assert mine.read_text("utf-8") == "keep"
    argv = [str(line.python), "-I", "-c", "import torch"]
    assert subprocess.run(argv, cwd=line.tree.parent, capture_output=True, check=False).returncode == 1
    mine.unlink()
    mine.parent.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a b é & %PATH% späce 'quote'", "a b é & %PATH%", "späce 'quote'"])
def test_paths_that_are_hard_on_shells_and_a_moved_tree(tmp_path: Path, target: Path, name: str) -> None:
    line = Line(materialise(tmp_path / name / "minitorch", era="scikit-build-core"), target)
    done = line("build", "--yes")
    assert done.code == 0, done.err
    moved = Line(Path(shutil.move(line.tree, tmp_path / "there")), target)
    done = moved("build")
    assert done.code == 9
    assert str(line.tree) in done.err
    assert moved("build", "--clean").code == 0
    subprocess.run([str(target), "-m", "pip", "uninstall", "-q", "-y", "torch"], check=True)


def _slow_to_compile(source: Path, salt: int) -> None:
    """Give a source a second of work at compile time, which no compiler cache has seen with this salt."""
    text = source.read_text("utf-8")
    loops = "for (int i = 0; i < 2; ++i) for (int j = 0; j < 200000; ++j) n += j;"
    spin = f"constexpr unsigned spin() {{ unsigned n = 0; {loops} return n; }}"
    source.write_text(f'{text}\n{spin}\nstatic_assert(spin() != {salt}, "");\n', "utf-8")


def _compiling(name: str, folder: Path) -> list[int]:
    """Processes with a file in their command, in a folder."""
    return [pid for pid, command in _processes_in(folder).items() if name in command]


def _send(processes: list[int], number: signal.Signals) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _processes_in(folder: Path) -> dict[int, str]:
    """Commands of processes that still work in a folder, by their numbers."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if (process / "cwd").readlink().is_relative_to(folder):
                    found[int(process.name)] = command
            except OSError:
                continue
    return found


def test_a_compile_that_memory_ends_is_made_again_with_fewer_jobs(tmp_path: Path, target: Path) -> None:
    """The compiler is refused memory for real, in its first two runs of one file; the others are cached."""
    tree = materialise(tmp_path / "minitorch", era="setuptools")
    source = tree / "aten/src/ATen/matmul.cpp"
    source.write_text("#include <regex>\n" + source.read_text("utf-8"), "utf-8")  # more than it is given
    launcher = tmp_path / "launcher"
    launcher.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *-c*matmul.cpp*) echo x >> {tmp_path}/runs\n'
        f'if [ "$(wc -l < {tmp_path}/runs)" -le "${{STARVED:-2}}" ]\n'
        'then ulimit -v 60000; exec "$@"; fi;; esac\n'
        'command -v ccache >/dev/null || exec "$@"\n'
        'exec ccache "$@"\n',
        "utf-8",
    )
    launcher.chmod(0o755)
    words: list[str | Path] = ["build", "--source", tree, "--python", target, "--yes", "--jobs", "4"]
    for setting in (
        f"CMAKE_CXX_COMPILER_LAUNCHER={launcher}",
        f"CCACHE_BASEDIR={tree}",  # as for every other build here
        "CCACHE_NOHASHDIR=true",
    ):
        words += ["--set", setting]
    done = torchbuild(*words)
    assert done.code == 0, done.out + done.err
    assert "with 2 jobs, not 4" in done.err
    assert "with 1 jobs, not 2" in done.err
    # A third time it is a failure.
    (tmp_path / "runs").unlink()
    source.write_text(source.read_text("utf-8") + "\n[[maybe_unused]] static const int again = 1;\n", "utf-8")
    done = torchbuild(*words, environ={"STARVED": "9"})
    assert done.code == 6, done.err
    assert "out of memory" in done.err

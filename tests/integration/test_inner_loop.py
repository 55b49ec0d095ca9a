"""The way from an edit to an importable torch, in both eras: the shortest, and never another result.

What the front end would have made is the measure: it is run by hand in the sourced env file, at the
end over all edits, with --slow after each.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.support import sample
from tests.support.capabilities import needs, needs_cmake, needs_linux_compiler
from tests.support.driver import TORCHBUILD, Run, environment, torchbuild
from tests.support.sample import ERAS, Era, materialise
from torchbuild_tasks.build.install.due import Snapshot
from torchbuild_tasks.build.install.inner_loop import wait_for_next_second

pytestmark = [pytest.mark.integration, needs_linux_compiler]

FRONT_END = {
    "setuptools": "python setup.py develop",
    "scikit-build-core": "python -m pip install --no-build-isolation -e .",
}
ROUND, FRONT, NOTHING = "by Ninja and install:", "by setup.py or pip:", "Up to date:"


in_one_era = sample.in_one_era("loop")


def old_ninja() -> str | None:
    """Return the machine's Ninja where it writes another log than the one that a venv gets from PyPI."""
    found = shutil.which("ninja", path=environment()["PATH"])
    said = (
        subprocess.run([found, "--version"], capture_output=True, text=True, check=False) if found else None
    )
    return found if said and said.stdout.startswith(("1.8", "1.9", "1.10", "1.11")) else None


OLD_NINJA = old_ninja()


class Loop:
    """A copy of the sample that was built, and the Python that has its torch."""

    def __init__(self, tree: Path, python: Path, era: Era, *, strict: bool) -> None:
        self.tree, self.python, self.era, self.strict = tree, python, era, strict

    def __call__(self, *words: str) -> Run:
        return torchbuild("build", "--source", self.tree, "--python", self.python, "--yes", *words)

    def way(self, *words: str) -> str:
        """Build; the line that says the way."""
        done = self(*words)
        assert done.code == 0, done.out + done.err
        (said,) = re.findall(r"^   ((?:by |Up to date).*)$", done.err, re.MULTILINE)
        if self.strict:
            self.same_as_front_end()
        return str(said)

    def append(self, name: str, text: str) -> None:
        with (self.tree / name).open("a", encoding="utf-8") as file:
            file.write(text)

    @property
    def place(self) -> Path:
        """Where CMake installs."""
        return self.tree / ("torch" if self.era == "setuptools" else "build/editable/torch")

    def module(self) -> Path:
        (module,) = self.place.glob("_C.*.so")
        return module

    def torch(self, expression: str) -> str:
        code = f"import torch; print({expression})"
        argv = [str(self.python), "-I", "-c", code]
        done = subprocess.run(argv, cwd=self.tree.parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def result(self) -> dict[str, str]:
        """Everything that an install leaves, by its content, and what pip says of it."""
        patterns = ("lib/**/*", "include/**/*", "share/**/*", "bin/*", "_C*.so")
        files = [path for pattern in patterns for path in self.place.glob(pattern) if path.is_file()]
        files.append(self.tree / "torch/version.py")
        found = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        shown = subprocess.run(
            [self.python, "-m", "pip", "show", "-f", "torch"], capture_output=True, text=True, check=True
        )
        return {**found, "pip": shown.stdout}

    def same_as_front_end(self) -> None:
        before = self.result()
        script = f". ./env_set.sh && {FRONT_END[self.era]}"
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=self.tree,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert self.result() == before
        assert self().code == 0  # which notes what the front end has written again by hand


@pytest.fixture(scope="module", params=ERAS)
def loop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, target: Path
) -> Iterator[Loop]:
    """The sample with globs and a copied Python file, as PyTorch has them, built once an era."""
    era = cast(Era, request.param)
    tree = materialise(tmp_path_factory.mktemp(era) / "minitorch", era=era)
    aten = tree / "aten/CMakeLists.txt"
    globbed, count = re.subn(
        r"(torch_add_library\(torch_cpu \w+)(?:\s+src/ATen/\w+\.cpp)+",
        r"file(GLOB SOURCES src/ATen/*.cpp)\n\1 ${SOURCES}",
        aten.read_text("utf-8"),
    )
    assert count == 1
    aten.write_text(globbed, "utf-8")
    loop = Loop(tree, target, era, strict=bool(request.config.getoption("--slow")))
    loop.append(
        "torch/CMakeLists.txt", "install(FILES utils/__init__.py DESTINATION share RENAME copied.py)\n"
    )
    assert loop.way().startswith(FRONT)
    yield loop
    subprocess.run([str(target), "-m", "pip", "uninstall", "-q", "-y", "torch"], check=True)


def test_nothing_to_do(loop: Loop) -> None:
    assert loop.way().startswith(NOTHING)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("aten/src/ATen/relu.cpp", "\nint edited_cpp() { return 1; }\n"),
        ("CMakeLists.txt", "\n# edited\n"),
        ("torch/utils/__init__.py", "\nCOPIED = 1\n"),
    ],
)
def test_what_ninja_and_install_do_alone(loop: Loop, name: str, text: str) -> None:
    loop.append(name, text)
    assert loop.way().startswith(ROUND)
    if name.endswith(".py"):
        assert "COPIED" in (loop.place / "share/copied.py").read_text("utf-8")
    if name.endswith(".cpp"):
        assert b"edited_cpp" in (loop.place / "lib/libtorch_cpu.so").read_bytes()
    assert loop.way().startswith(NOTHING)


@pytest.mark.parametrize(
    ("name", "text"),
    [("aten/src/ATen/Version.h", "\n// edited\n"), ("cmake/TorchConfig.cmake", "\n# edited\n")],
)
@in_one_era
def test_a_header_and_a_file_that_is_only_installed(loop: Loop, name: str, text: str) -> None:
    loop.append(name, text)
    assert loop.way().startswith(ROUND)
    assert loop.way().startswith(NOTHING)


@in_one_era
def test_a_status_of_the_users_own_takes_no_step_away(loop: Loop) -> None:
    """A dry run is read by Ninja's count: without it an edit would look like nothing to do."""
    loop.append("aten/src/ATen/relu.cpp", "\nint under_a_status() { return 2; }\n")
    words = ("build", "--source", loop.tree, "--python", loop.python, "--yes")
    done = torchbuild(*words, environ={"NINJA_STATUS": "mine %p: "})
    assert done.code == 0, done.out + done.err
    assert f"   {ROUND}" in done.err
    log = (loop.tree / ".torchbuild/logs/build.log").read_text("utf-8")
    assert re.search(r"^\[\d+/\d+\] mine +\d+%: Building CXX object ", log, re.MULTILINE)


@in_one_era
def test_ninja_is_asked_once_before_the_plan_is_made(loop: Loop, tmp_path: Path) -> None:
    """That of an activated venv reads its graph while modules are imported and the machine is looked at."""
    ninja, asked = loop.python.with_name("ninja"), tmp_path / "asked"
    real = ninja.rename(ninja.with_name("ninja.real"))
    ninja.write_text(
        f'#!/bin/sh\necho "${{TORCHBUILD_RUN:+locked}} $*" >> "{asked}"\nexec "{real}" "$@"\n', "utf-8"
    )
    ninja.chmod(0o755)
    path = {"PATH": f"{ninja.parent}:{environment()['PATH']}"}
    words = ("build", "--source", loop.tree, "--python", loop.python, "--yes")
    try:
        assert f"   {NOTHING}" in torchbuild(*words, environ=path).err
        said = [line for line in asked.read_text("utf-8").splitlines() if line.endswith("-n")]
        assert said == [f" -C {loop.tree / 'build'} -d explain -n"]
        loop.append("aten/src/ATen/relu.cpp", "\nint edited_under_a_venv() { return 1; }\n")
        assert f"   {ROUND}" in torchbuild(*words, environ=path).err
    finally:
        real.rename(ninja)


@in_one_era
@pytest.mark.slow
def test_a_file_of_the_future_is_named_since_it_is_compiled_each_time(loop: Loop) -> None:
    source = loop.tree / "aten/src/ATen/relu.cpp"
    os.utime(source, (time.time() + 9999,) * 2)
    assert loop.way().startswith(ROUND)
    again = loop()
    assert f"   {ROUND}" in again.err
    assert f"Warning: {source} is dated in the future" in again.err
    assert f"touch {source}" in again.err
    source.touch()
    assert "dated in the future" not in loop().err
    assert loop.way().startswith(NOTHING)


def test_a_python_file_that_is_not_copied_needs_nothing(loop: Loop) -> None:
    loop.append("torch/serialization.py", "\nLIVE = 7\n")
    assert loop.way().startswith(NOTHING)
    assert loop.torch("torch.serialization.LIVE") == "7"


@in_one_era
def test_a_new_source_is_found_and_a_removed_one_forgotten(loop: Loop) -> None:
    source = loop.tree / "aten/src/ATen/fresh.cpp"
    source.write_text("extern int at_fresh() { return 1; }\n", "utf-8")
    assert loop.way().startswith("by CMake, Ninja and install: aten/src/ATen/fresh.cpp is new")
    assert b"at_fresh" in (loop.place / "lib/libtorch_cpu.so").read_bytes()
    source.unlink()
    assert loop.way().startswith("by CMake, Ninja and install:")
    assert b"at_fresh" not in (loop.place / "lib/libtorch_cpu.so").read_bytes()


@needs_cmake
def test_nothing_is_of_the_second_of_the_last_install(tmp_path: Path) -> None:
    """For CMake would take it for the same, and leave the old one where it is."""
    source, place = tmp_path / "libtorch.so", tmp_path / "place"
    script = tmp_path / "install.cmake"
    script.write_text(f'file(INSTALL DESTINATION "{place}" TYPE FILE FILES "{source}")\n', "utf-8")
    for text in ("old", "newer"):
        source.write_text(text, "utf-8")
        subprocess.run(["cmake", "-P", script], check=True)
        seen = source.stat()
        wait_for_next_second(Snapshot(sources={str(source): (seen.st_size, seen.st_mtime_ns)}))
    assert (place / source.name).read_text("utf-8") == "newer"


def test_a_time_in_the_future_is_not_waited_for() -> None:
    began = time.monotonic()
    wait_for_next_second(Snapshot(sources={"x": (1, time.time_ns() + 60 * 10**9)}))
    wait_for_next_second(None)
    assert time.monotonic() - began < 30


@in_one_era
def test_what_code_is_generated_from(loop: Loop) -> None:
    """setup.py copies this file in PyTorch, so there it is the front end's, too."""
    loop.append("aten/src/ATen/native/native_functions.yaml", "# edited\n")
    said = loop.way()
    assert said.startswith(FRONT if loop.era == "setuptools" else ROUND)
    assert loop.way().startswith(NOTHING)


@in_one_era
def test_what_the_front_end_reads(loop: Loop) -> None:
    name = "setup.py" if loop.era == "setuptools" else "pyproject.toml"
    loop.append(name, "\n# edited\n")
    loop.append("README.md", "\nedited\n")
    way, _, changed = loop.way().partition(" changed since the last install: ")
    assert (way, set(changed.split(", "))) == (FRONT, {name, "README.md"})


@in_one_era
@pytest.mark.slow
def test_a_step_that_always_runs_is_run_without_ninja(loop: Loop) -> None:
    """PyTorch writes torch/version.py at each build: Ninja reads its graph once for that, not twice."""
    loop = Loop(loop.tree, loop.python, loop.era, strict=False)  # the front end runs the step, too
    name, runs = "tools/generate_torch_version.py", loop.tree / "build/runs"
    before = (loop.tree / name).read_text("utf-8")
    loop.append(name, f"\nopen({str(runs)!r}, 'a').write('x')\n")
    loop.way()
    count, log = len(runs.read_text("utf-8")), loop.tree / "build/.ninja_log"
    logged = log.read_bytes()
    assert loop.way().startswith(NOTHING)
    assert len(runs.read_text("utf-8")) == count + 1
    assert log.read_bytes() == logged
    (loop.tree / name).write_text(before, "utf-8")  # which the next build finds


@in_one_era
@pytest.mark.slow
def test_the_version(loop: Loop) -> None:
    version = loop.tree / "version.txt"
    before = version.read_text("utf-8")
    version.write_text(before.replace("a0", "a1"), "utf-8")
    assert loop.way().startswith(FRONT)
    assert loop.torch("torch.__version__").endswith("a1")


@in_one_era
def test_a_library_that_is_gone_or_another_comes_back(loop: Loop) -> None:
    library = loop.place / "lib/libc10.so"
    good = library.read_bytes()
    library.unlink()
    assert loop.way() == f"{ROUND} {library} is gone"
    library.write_bytes(b"not a library")
    assert loop.way() == f"{ROUND} {library} is not as it was installed"
    assert library.read_bytes() == good


def test_an_extension_module_that_is_gone_comes_back(loop: Loop) -> None:
    module = loop.module()
    module.unlink()
    assert loop.way().startswith(FRONT if loop.era == "setuptools" else ROUND)
    assert module.exists()


@pytest.mark.slow
def test_a_module_that_is_gone(loop: Loop) -> None:
    """scikit-build-core's editable install lists the modules, setuptools' does not."""
    loop.append("torch/extra.py", "X = 1\n")
    assert loop.way().startswith(NOTHING)
    assert loop.torch("__import__('torch.extra').extra.X") == "1"
    if loop.era == "scikit-build-core":
        loop.append("pyproject.toml", "\n# so that it is listed\n")
        assert loop.way().startswith(FRONT)
    (loop.tree / "torch/extra.py").unlink()
    assert loop.way().startswith(FRONT if loop.era == "scikit-build-core" else NOTHING)


@in_one_era
@pytest.mark.slow
def test_a_torch_from_elsewhere(loop: Loop, tmp_path: Path) -> None:
    wheel = tmp_path / "torch-9.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("torch/__init__.py", "")
        archive.writestr("torch-9.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 9.0\n")
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr("torch-9.0.dist-info/WHEEL", tags)
        archive.writestr("torch-9.0.dist-info/RECORD", "")
    options = ("-q", "--no-index", "--no-deps", "--force-reinstall", str(wheel))
    argv = [str(loop.python), "-m", "pip", "install", *options]
    subprocess.run(argv, check=True)
    assert loop.way().startswith(FRONT)
    assert loop.torch("torch.__file__").startswith(str(loop.tree))


@in_one_era
def test_a_failed_build_is_made_good_on_the_same_way(loop: Loop) -> None:
    source = loop.tree / "aten/src/ATen/mul.cpp"
    before = source.read_text("utf-8")
    source.write_text(f"{before}\nbroken\n", "utf-8")
    failed = loop()
    assert failed.code == 6
    assert "broken" in failed.err
    source.write_text(f"{before}\n// fixed\n", "utf-8")
    assert loop.way().startswith(ROUND)


@in_one_era
@pytest.mark.slow
def test_the_front_end_is_not_forgotten_over_a_failed_build(loop: Loop) -> None:
    source = loop.tree / "aten/src/ATen/mul.cpp"
    before = source.read_text("utf-8")
    loop.append("README.md", "\nagain\n")
    source.write_text(f"{before}\nbroken\n", "utf-8")
    assert loop().code == 6
    source.write_text(before, "utf-8")
    assert loop.way().startswith(FRONT)


@in_one_era
def test_one_target_is_built_and_not_installed(loop: Loop) -> None:
    loop.append("c10/core/Threads.cpp", "\nint only_target() { return 1; }\n")
    done = loop("--target", "c10")
    assert done.code == 0, done.err
    assert "Not importable yet" in done.err
    assert b"only_target" not in (loop.place / "lib/libc10.so").read_bytes()
    assert loop.way().startswith(ROUND)
    assert b"only_target" in (loop.place / "lib/libc10.so").read_bytes()
    assert "it is as torch reads it" in loop("--target", "c10").err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--target", "torch_pyton"), "torch_python"),
        (("--target", "install"), "install is what `build` makes anyway"),
        (("--target", "c10", "--mode", "wheel"), "--mode wheel packs all of torch"),
        (("--target", "c10", "--clean"), "--clean removes"),
        (("--target", "c10", "--set", "USE_OPENMP=0"), "has to be made first"),
        (("--watch", "--json"), "--json"),
        (("--watch", "--mode", "wheel"), "--watch keeps an editable install up to date"),
    ],
)
@in_one_era
def test_what_cannot_be_requested(loop: Loop, words: tuple[str, ...], told: str) -> None:
    if "USE_OPENMP=0" in words and loop.era == "setuptools":
        pytest.skip("setup.py configures for one target, too")
    done = loop(*words)
    assert done.code in (2, 3)
    assert told in done.out + done.err
    assert "Traceback" not in done.err


class Watching:
    """`build --watch` in a process of its own, and what it has said so far."""

    def __init__(self, loop: Loop, log: Path) -> None:
        self._log = log
        argv = [*TORCHBUILD, "build", "--source", str(loop.tree), "--python", str(loop.python), "--watch"]
        with log.open("wb") as file:
            self.process = subprocess.Popen(argv, env=environment(), stdout=file, stderr=file)

    def said(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    def rounds(self) -> int:
        return self.said().count("Waiting for a save")

    def until(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + 120
        while not happened():
            assert time.monotonic() < end and self.process.poll() is None, self.said()
            time.sleep(0.05)


@in_one_era
def test_watching(loop: Loop, tmp_path: Path) -> None:
    watching = Watching(loop, tmp_path / "log")
    source = loop.tree / "aten/src/ATen/add.cpp"
    before = source.read_text("utf-8")
    try:
        watching.until(lambda: watching.rounds() == 1)
        source.write_text(f"{before}\nbroken\n", "utf-8")
        watching.until(lambda: watching.rounds() == 2)
        assert "broken" in watching.said()
        (loop.tree / "aten/src/ATen/.add.cpp.swp").write_text("an editor's", "utf-8")
        source.write_text(f"{before}\n// fixed\n", "utf-8")
        watching.until(lambda: watching.said().count(ROUND) == 2)
        loop.append("aten/src/ATen/mul.cpp", "\nint while_building() { return 1; }\n")  # during that build
        watching.until(lambda: watching.said().count("   saved: ") == 3 and watching.rounds() == 4)
        assert b"while_building" in (loop.place / "lib/libtorch_cpu.so").read_bytes()
        assert ".swp" not in watching.said()
        loop.append("README.md", "\nwatched\n")
        watching.until(lambda: watching.rounds() == 5)
        assert f"{FRONT} changed since the last install: README.md" in watching.said()
    finally:
        watching.process.send_signal(signal.SIGINT)
        code = watching.process.wait(timeout=60)
    assert code == 0
    assert "Traceback" not in watching.said()


def test_a_clean_would_remove_what_was_placed_on_every_way(loop: Loop) -> None:
    assert "Up to date" in loop().err  # Ninja writes its log and, as PyTorch's does, the version all the same
    done = torchbuild("clean", "--source", loop.tree, "--python", loop.python, "--dry-run", "--json")
    assert done.code == 0, done.err
    going = {str(loop.tree / name) for name in done.json["files"]}
    placed = [path for path in loop.place.glob("[li]*/**/*") if path.is_file()]
    assert placed and not [each for each in done.json["kept"] if "changed since" in str(each)]
    assert not {str(path) for path in (*placed, *loop.tree.glob("build/torchbuild-*.json"))} - going


@in_one_era
def test_all_of_it_is_what_the_front_end_makes(loop: Loop) -> None:
    loop.append("aten/src/ATen/sum.cpp", "\n// edited\n")
    assert loop.way().startswith(ROUND)
    loop.same_as_front_end()


@needs(OLD_NINJA is not None, "a Ninja before 1.12 on PATH, whose log newer ones do not read")
@pytest.mark.parametrize("era", [pytest.param(ERAS[0], marks=pytest.mark.slow), ERAS[1]])
@pytest.mark.slow
def test_another_ninja_that_came_into_the_python_compiles_nothing_again(
    era: Era, tmp_path: Path, target: Path
) -> None:
    loop = Loop(materialise(tmp_path / "minitorch", era=era), target, era, strict=False)
    before = dict[Path, int]()
    old = ("--set", f"CMAKE_MAKE_PROGRAM={OLD_NINJA}")
    for words in (old, ("--set", "BUILD_TEST=1"), ("--mode", "wheel"), ()):
        done = loop(*words)
        assert done.code == 0, done.out + done.err
        objects = {path: path.stat().st_mtime_ns for path in loop.tree.glob("build/**/*.o")}
        assert before.items() <= objects.items(), words
        before = before or objects
    assert before and loop("--clean").code == 0  # from here on by the Python's own
    assert (loop.tree / "build/.ninja_log").read_text("utf-8").startswith("# ninja log v7")
    subprocess.run([str(target), "-m", "pip", "uninstall", "-q", "-y", "torch"], check=True)

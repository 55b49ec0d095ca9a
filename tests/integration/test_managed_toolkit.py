"""Toolkits of real parts: CMake finds them, nvcc compiles with them, a kill leaves nothing half."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support import nvcc12
from tests.support.capabilities import needs, needs_cmake, needs_linux_compiler
from tests.support.driver import environment
from tests.support.machines import ask, linux_facts, plan_of, tree
from tests.support.windows import ROOT as WINDOWS_ROOT
from tests.support.windows import windows_facts
from torchbuild_tasks.build.ledger import Ledger
from torchbuild_tasks.build.work import Fetching, Reporter, Work
from torchbuild_tasks.catalog import Catalog, load_catalog
from torchbuild_tasks.errors import ArchiveRefused, DownloadFailed, HashRefused
from torchbuild_tasks.features.helpers.fetch import obtain
from torchbuild_tasks.features.helpers.store import read_toolkit_marker
from torchbuild_tasks.features.toolkit.act import assemble_toolkit
from torchbuild_tasks.model import Artifact, Facts, Host, ManagedToolkit, Store
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.cuda.managed import ManagedChoice, managed_toolkit
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.values import replace

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).parents[2]
SAMPLE = REPOSITORY / "samples" / "minitorch"
TINYFMT = SAMPLE / "third_party" / "tinyfmt"
HEADERS = (
    SAMPLE,
    SAMPLE / "aten" / "src",
    TINYFMT / "include",
    TINYFMT / "third_party" / "tinyassert" / "include",
)
# NVIDIA's wheels of 12.4, as the index has them.
NVCC_WHEEL = "e4c9a35435c3b0e36c6397c5696334c9ea6650e524736cbd1c5d345ea099bb04"
RUNTIME_WHEEL = "64403288fa2136ee8e467cdc9c9427e0434110899d07c779f25b5c068934faa5"
NVIDIA = "https://developer.download.nvidia.com/"
on_linux = needs(sys.platform == "linux", "Linux")
on_windows = needs(sys.platform == "win32", "Windows")


class RecordingReporter:
    """A reporter that records its messages."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str, *, alone: bool = False) -> None:
        self.notes.append(text)

    def transfer(self, name: str, done: int, total: int | None) -> None:
        pass


def facts(store: Path) -> Facts:
    """This machine's system, with the sample and that store."""
    kept = Store(folder=str(store))
    if sys.platform == "win32":
        return windows_facts(store=kept, tree=tree(root=WINDOWS_ROOT, sample=True))
    return linux_facts(store=kept, host=Host(os="linux", arch="x86_64"), tree=tree(sample=True))


def chosen(store: Path, version: str, catalog: Catalog | None = None) -> ManagedChoice:
    question = replace(ask(facts(store)), catalog=catalog or load_catalog())
    return managed_toolkit(question, version)


def put_together(
    store: Path, made: ManagedChoice, catalog: Catalog | None = None, **net: Any
) -> tuple[Path, list[str]]:
    """Run the stage for a plan with this toolkit; return the toolkit's folder and the reporter."""
    assert made.toolkit is not None, made.problem
    plan = replace(plan_of(), toolkit=made.toolkit, artifacts=made.artifacts)
    said = RecordingReporter()
    work = Work(
        question=Question(BuildRequest(), facts(store), catalog or load_catalog()),
        plan=plan,
        report=cast(Reporter, said),
        ledger=cast(Ledger, None),
        fetching=Fetching(
            store=store, lock_file=store.parent / "torchbuild.lock", net=Net(**net), require_hashes=True
        ),
    )
    assert assemble_toolkit(work) is work
    return Path(made.toolkit.folder), said.notes


def cmake(folder: Path, text: str, *words: str) -> dict[str, str]:
    """Configure a project; what it printed as `name=value`."""
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.18)\n{text}", "utf-8")
    done = subprocess.run(
        ["cmake", "-S", str(folder), "-B", str(folder / "build"), *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (line.removeprefix("-- ").partition("=") for line in done.stdout.splitlines())
    return {name: value for name, _, value in lines if value}


FIND = """
project(find CXX)
find_package(CUDAToolkit REQUIRED)
message(STATUS "version=${CUDAToolkit_VERSION}")
message(STATUS "include=${CUDAToolkit_INCLUDE_DIRS}")
foreach(name cudart cudart_static cuda_driver culibos)
  if(TARGET CUDA::${name})
    get_target_property(place CUDA::${name} IMPORTED_LOCATION)
    message(STATUS "${name}=${place}")
  endif()
endforeach()
"""


def holds(toolkit: Path, object_file: Path) -> tuple[list[str], list[str]]:
    """The architectures of the machine code and of the PTX in an object, as cuobjdump lists them."""

    def listed(what: str) -> list[str]:
        words = [str(toolkit / "bin" / "cuobjdump"), what, str(object_file)]
        out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return [line.split(".")[-2] for line in out.splitlines() if line.startswith(("ELF", "PTX"))]

    return listed("--list-elf"), listed("--list-ptx")


def compile_kernel(toolkit: Path, out: Path) -> None:
    """The sample's kernel by nvcc itself, for sm_80 and as PTX for 9.0."""
    words = [
        str(toolkit / "bin" / "nvcc"),
        "-std=c++17",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=compute_90",
        *(f"-I{folder}" for folder in HEADERS),
        "-c",
        str(SAMPLE / "aten/src/ATen/cuda/add.cu"),
        "-o",
        str(out),
    ]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- real parts


@pytest.fixture(scope="module")
def thirteen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CUDA 13.0 for this system, of what the package index has (105 MB)."""
    store = tmp_path_factory.mktemp("cuda13") / "store"
    try:
        folder, _ = put_together(store, chosen(store, "13.0"))
    except DownloadFailed as error:
        pytest.skip(f"no network to the package index: {error.what}")
    return folder


@pytest.mark.slow
@on_linux
@needs_cmake
@needs_linux_compiler
def test_cmake_finds_13_and_links_with_the_driver(thirteen: Path, tmp_path: Path) -> None:
    found = cmake(tmp_path / "find", FIND, f"-DCUDAToolkit_ROOT={thirteen}")
    assert found["version"].startswith("13.0.")
    assert found["include"] == str(thirteen / "include")
    for name, place in (
        ("cudart", "lib/libcudart.so"),
        ("cudart_static", "lib/libcudart_static.a"),
        ("cuda_driver", "lib/stubs/libcuda.so"),
        ("culibos", "lib/libculibos.a"),
    ):
        assert found[name] == str(thirteen / place)


BUILD = f"""
project(kernel CXX)
find_package(CUDAToolkit REQUIRED)
enable_language(CUDA)
add_library(kernel OBJECT "{SAMPLE.as_posix()}/aten/src/ATen/cuda/add.cu")
target_include_directories(kernel PRIVATE {" ".join(f'"{folder.as_posix()}"' for folder in HEADERS)})
target_compile_features(kernel PRIVATE cxx_std_17)
file(WRITE "${{CMAKE_BINARY_DIR}}/main.cpp" "#include <cuda.h>\\nint main() {{ return cuInit(0); }}\\n")
add_executable(driver "${{CMAKE_BINARY_DIR}}/main.cpp")
target_link_libraries(driver CUDA::cuda_driver CUDA::cudart)
"""


@pytest.mark.slow
@on_linux
@needs_cmake
@needs_linux_compiler
def test_cmake_compiles_the_samples_kernel_with_13(thirteen: Path, tmp_path: Path) -> None:
    project = tmp_path / "kernel"
    words = (
        f"-DCUDAToolkit_ROOT={thirteen}",
        f"-DCMAKE_CUDA_COMPILER={thirteen / 'bin' / 'nvcc'}",
        "-DCMAKE_CUDA_ARCHITECTURES=80-real;90-virtual",
    )
    cmake(project, BUILD, *words)
    subprocess.run(["cmake", "--build", str(project / "build")], env=environment(), check=True)
    (made,) = project.rglob("add.cu.o")
    assert holds(thirteen, made) == (["sm_80"], ["sm_90"])
    assert b"libcuda.so.1\0" in (project / "build" / "driver").read_bytes()


@pytest.mark.slow
@on_linux
@needs_cmake
@needs_linux_compiler
def test_12_compiles_the_samples_kernel(tmp_path: Path) -> None:
    """With rows whose archives are ours, for NVIDIA's are not everywhere to be had; all else is as it is."""
    store = tmp_path / "store"
    real = chosen(store, "12.4")
    urls = {artifact.name: artifact.urls[0] for artifact in real.artifacts if artifact.urls}
    made = nvcc12.archives(tmp_path / "mirror", urls, *wheels_of_12(tmp_path / "wheels"))
    catalog = with_files(load_catalog(), made)
    choice = chosen(store, "12.4", catalog)
    mirror = ((NVIDIA, f"{(tmp_path / 'mirror').as_uri()}/"),)
    folder, _ = put_together(store, choice, catalog, mirrors=mirror)

    found = cmake(tmp_path / "find", FIND, f"-DCUDAToolkit_ROOT={folder}")
    assert found["version"].startswith("12.4.")
    assert found["cudart"] == str(folder / "lib/libcudart.so")
    assert found["cuda_driver"] == str(folder / "lib/stubs/libcuda.so")
    compile_kernel(folder, tmp_path / "add.o")
    assert holds(folder, tmp_path / "add.o") == (["sm_80"], ["sm_90"])
    # The rows as they are: what was made here is not what NVIDIA published, and is refused.
    with pytest.raises((HashRefused, DownloadFailed)):
        put_together(
            tmp_path / "other" / "store", chosen(tmp_path / "other" / "store", "12.4"), mirrors=mirror
        )


def wheels_of_12(store: Path) -> tuple[Path, Path]:
    """The folders of NVIDIA's wheels that hold the headers of nvcc and of the runtime."""
    wheels = [
        Artifact(
            id=project,
            name=project,
            version=version,
            project=project,
            tag="manylinux2014_x86_64",
            sha256=sha256,
            unpack="zip",
        )
        for project, version, sha256 in (
            ("nvidia-cuda-nvcc-cu12", "12.4.131", NVCC_WHEEL),
            ("nvidia-cuda-runtime-cu12", "12.4.127", RUNTIME_WHEEL),
        )
    ]
    try:
        folders = obtain(
            wheels,
            store,
            net=Net(),
            lock_file=store / "lock",
            require_hashes=True,
            tell=lambda *now: None,
            note=lambda text: None,
        )
    except DownloadFailed as error:
        pytest.skip(f"no network to the package index: {error.what}")
    return (
        folders["nvidia-cuda-nvcc-cu12"] / "nvidia" / "cuda_nvcc",
        folders["nvidia-cuda-runtime-cu12"] / "nvidia" / "cuda_runtime",
    )


def with_files(catalog: Catalog, made: Mapping[str, tuple[str, int]]) -> Catalog:
    """The rows of 12.4 for this machine with other archives behind the same addresses."""
    rows = [
        replace(row, sha256=made[row.name][0], size=made[row.name][1])
        if (row.cuda, row.os, row.arch) == ("12.4.1", "linux", "x86_64") and row.urls
        else row
        for row in catalog.part
    ]
    return Catalog(part=tuple(rows))


@pytest.mark.slow
@on_windows
def test_nvcc_for_windows_says_its_version(thirteen: Path) -> None:
    for name in (
        "bin/nvcc.exe",
        "nvvm/bin/cicc.exe",
        "include/cuda_runtime.h",
        "lib/x64/cudart.lib",
        "lib/x64/cuda.lib",
    ):
        assert (thirteen / name).is_file(), name
    done = subprocess.run(
        [str(thirteen / "bin" / "nvcc.exe"), "--version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "release 13.0" in done.stdout


@on_linux
def test_without_network_every_part_is_named(tmp_path: Path) -> None:
    made = chosen(tmp_path / "store", "12.4")
    with pytest.raises(DownloadFailed, match="With --offline nothing is downloaded") as error:
        put_together(tmp_path / "store", made, offline=True)
    looked = "\n".join(error.value.looked)
    for artifact in made.artifacts:
        assert artifact.id in looked
    assert "cuda_nvcc-linux-x86_64-12.4.131-archive.tar.xz" in looked


@on_linux
def test_nothing_is_done_without_a_toolkit_or_when_it_is_here(tmp_path: Path) -> None:
    store = tmp_path / "store"
    made = chosen(store, "13.0")
    assert made.toolkit is not None
    here = replace(made.toolkit, here=True)
    put_together(store, replace(made, toolkit=here), offline=True)
    assert not store.exists()


# ---------------------------------------------------------------- trouble

# A run that stops for good before its step number `stop`: a file laid, a file or the folder renamed.
CHILD = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from torchbuild_tasks.system import files
from torchbuild_tasks.features.toolkit import act as merge
from torchbuild_tasks.features.toolkit.act import assemble
job = json.loads(sys.argv[2])
say = lambda text: print(text, flush=True)
steps = 0
def counted(act):
    def step(*given):
        global steps
        if steps == job["stop"]:
            say("stopped")
            time.sleep(600)
        steps += 1
        return act(*given)
    return step
merge.Merged._lay = counted(merge.Merged._lay)
files.replace = counted(files.replace)
add = merge.Merged.add
merge.Merged.add = lambda self, *part: (say("adding"), add(self, *part))
these = [(Path(part), inside) for part, inside in job["parts"]]
assemble(these, Path(job["folder"]), version="13.0.2", note=say)
say("done")
"""
NAME = "cuda-13.0.2-linux-x86_64-12345678"


def parts(store: Path, count: int = 100) -> list[tuple[str, str]]:
    """Three parts of many files."""
    made = []
    for number in range(3):
        inside = store / "unpacked" / f"part-{number}" / "a" / f"include{number}"
        inside.mkdir(parents=True)
        for file in range(count):
            (inside / f"f{file}.h").write_bytes(b"%d" % file)
        made.append((str(inside.parents[1]), "a"))
    return made


def child(store: Path, these: list[tuple[str, str]], stop: int = -1) -> subprocess.Popen[str]:
    job = json.dumps({"parts": these, "folder": str(store / "toolkits" / NAME), "stop": stop})
    argv = [sys.executable, "-c", CHILD, str(REPOSITORY), job]
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    )


def whole(store: Path, count: int = 100) -> bool:
    """Whether the toolkit is there with every file; False when it is not there at all."""
    folder = store / "toolkits" / NAME
    if not folder.exists():
        return False
    mark = read_toolkit_marker(folder)
    assert mark is not None
    assert mark.finished
    assert sum(1 for path in folder.rglob("*.h")) == 3 * count
    assert (folder / "version.json").is_file()
    return True


# 300 files are laid, then the mark gets its name, then the folder.
@pytest.mark.parametrize(
    "stop", [0, 150, 300, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 299, 301))]
)
def test_a_kill_at_any_step_leaves_nothing_half(stop: int, tmp_path: Path) -> None:
    these = parts(tmp_path)
    with child(tmp_path, these, stop) as killed:
        assert killed.stdout is not None
        assert "stopped\n" in iter(killed.stdout.readline, "")
        killed.kill()
    assert not whole(tmp_path)
    assert len(list((tmp_path / "toolkits").iterdir())) == 1, "it grew under a hidden name"
    with child(tmp_path, these) as last:
        assert last.stdout is not None
        assert last.stdout.read().endswith("done\n")
    assert whole(tmp_path)
    assert [path.name for path in (tmp_path / "toolkits").iterdir()] == [NAME]


def test_of_two_at_once_one_does_it(tmp_path: Path) -> None:
    these = parts(tmp_path)
    both = [child(tmp_path, these) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum(text.count("adding\n") for text in said) == 3, "each of the three parts once"
    assert whole(tmp_path)
    assert [path.name for path in (tmp_path / "toolkits").iterdir()] == [NAME]


def test_a_broken_part_is_refused_and_nothing_is_there(tmp_path: Path) -> None:
    """An archive that was cut short never becomes a part, so no toolkit is made of it."""
    store, broken = tmp_path / "store", tmp_path / "nvcc-1.tar.xz"
    broken.write_bytes(b"\xfd7zXZ\0 and no more")
    part = Artifact(
        id="cuda-nvcc-1", name="nvcc", version="1", urls=("https://x.invalid/nvcc-1.tar.xz",), unpack="tar.xz"
    )
    folder = store / "toolkits" / NAME
    toolkit = ManagedToolkit(folder=str(folder), version="13.0.2", parts=(part.id,))
    part = replace(part, sha256=hashlib.sha256(broken.read_bytes()).hexdigest())
    made = ManagedChoice(toolkit=toolkit, artifacts=(part,))
    with pytest.raises(ArchiveRefused, match="broken, or cut short"):
        put_together(store, made, mirrors=(("https://x.invalid/", f"{tmp_path.as_uri()}/"),))
    assert not folder.exists()

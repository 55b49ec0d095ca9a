"""A helper is built from source: a tiny library with the same contract as MAGMA's git tree, by real tools."""

from __future__ import annotations

import shutil
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.git_servers import git
from tests.support.machines import ask, plan_of_question, settings, tree
from tests.support.sources import RecordingReporter
from torchbuild_tasks.build.work import Fetching
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.rows import HelperRow
from torchbuild_tasks.errors import BuildFailed, PatchRefused
from torchbuild_tasks.facts.cuda.libraries import look_for_libraries
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.features.helpers.store import prune
from torchbuild_tasks.features.recipes import act
from torchbuild_tasks.features.recipes.choose import Order, make_order
from torchbuild_tasks.model import Choice, Store
from torchbuild_tasks.model.plan import BuildPlan
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.reading import hash_file
from torchbuild_tasks.values import from_json, replace

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not all(map(shutil.which, ("cmake", "ninja", "make", "g++", "git"))),
        reason="no cmake, ninja, make, g++ or git",
    ),
]

FILES = {
    "CMakeLists.txt": """\
cmake_minimum_required( VERSION 3.18 )
project( MAGMA LANGUAGES CXX )
message( STATUS "for ${CMAKE_CUDA_ARCHITECTURES}" )
include( CMake.src.cuda )
set( CMAKE_ARCHIVE_OUTPUT_DIRECTORY lib )
file( WRITE "${CMAKE_BINARY_DIR}/include/magma_config.h" "#define MAGMA_HAVE_CUDA\\n" )
add_library( magma interface_cuda/interface.cpp ${sources} )
target_include_directories( magma PRIVATE include )
add_executable( tester testing/broken.cpp )
""",
    "Makefile": """\
include make.inc
generate: CMake.src.cuda
src/sfoo.cpp: src/zfoo.cpp
	sed s/zfoo/sfoo/ $< > $@
CMake.src.cuda: src/sfoo.cpp
	echo 'set( sources src/zfoo.cpp src/sfoo.cpp )' > $@
""",
    "testing/broken.cpp": "not C++, and no part of the library\n",
    "COPYRIGHT": "as you like\n",
    "src/zfoo.cpp": "int magma_zfoo() { return 1; }\n",
    "include/magma.h": "int magma_zfoo();\n",
    "include/magma_types.h": """\
#define MAGMA_VERSION_MAJOR 2
#define MAGMA_VERSION_MINOR 9
#define MAGMA_VERSION_MICRO 0
""",
    "interface_cuda/interface.cpp": """\
#include <cstdio>
struct Prop { const char *name; long totalGlobalMem; };  // without clockRate, as in CUDA 13
enum { cudaDevAttrClockRate };
static void cudaDeviceGetAttribute( int *khz, int, int ) { *khz = 1000; }
void magma_print( Prop prop, int dev ) {
        printf( "%d %s %g %g",
                dev,
                prop.name,
                prop.clockRate / 1000.,
                prop.totalGlobalMem / (1024.*1024.),
                0 );
}
""",
}


@dataclass
class Heard(RecordingReporter):
    """A reporter that keeps what the programs print, too."""

    text: str = ""

    def block(self, block: bytes) -> None:
        self.text += block.decode()


def source(tmp_path: Path, **changes: str) -> Path:
    folder = tmp_path / "magma"
    for name, text in (FILES | changes).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def order(folder: Path, cuda: str = "13.0") -> Order:
    facts = cuda_facts(toolkit(cuda), gpus=(gpu(),), tree=tree(version="2.9.0"))
    return make_order(ask(facts, cuda=True, arch="8.6", jobs=2), f"magma={folder}")


def fetching(tmp_path: Path, offline: bool = True) -> Fetching:
    return Fetching(
        store=tmp_path / "store",
        lock_file=tmp_path / "torchbuild.lock",
        net=Net(offline=offline),
        require_hashes=True,
    )


def prepare(tmp_path: Path, what: Order, said: RecordingReporter, offline: bool = True) -> act.Job:
    return act.prepare(what, load_catalog(), fetching(tmp_path, offline), None, said)


def test_it_is_generated_patched_compiled_and_packed(tmp_path: Path) -> None:
    folder, said = source(tmp_path), RecordingReporter()
    job = prepare(tmp_path, order(folder), said)
    made = act.build(job, None, said)
    archive = Path(made.archive)
    assert archive.name == "magma-cuda130-2.9.0-1.tar.bz2"
    with tarfile.open(archive) as opened:
        names = set(opened.getnames())
    assert {
        "include/magma.h",
        "include/magma_config.h",
        "lib/libmagma.a",
        "info/licenses/COPYRIGHT",
        "info/recipe/magma-clock-rate.diff",
        "info/torchbuild.json",
    } <= names
    assert any("source patched (magma-clock-rate)" in note for note in said.notes)
    assert not (folder / "CMake.src.cuda").exists() and not (folder / "make.inc").exists()  # a copy was built
    assert not job.folder.exists()
    again = RecordingReporter()
    assert act.build(prepare(tmp_path, order(folder), again), None, again) == made
    assert any("exists already, built for exactly this" in note for note in again.notes)


def test_the_row_has_the_plan_take_it_and_refuse_it_for_another_gpu(tmp_path: Path) -> None:
    """A wrong architecture and a wrong CUDA are errors of the plan, not of the linker."""
    said = RecordingReporter()
    made = act.build(prepare(tmp_path, order(source(tmp_path)), said), None, said)
    (item,) = tomllib.loads(made.row)["helper"]
    own = replace(settings(), helpers=(from_json(HelperRow, item, "row"),))

    def plan(cuda: str = "13.0", arch: str = "8.6", **flags: object) -> BuildPlan:
        facts = cuda_facts(toolkit(cuda), gpus=(gpu(),), tree=tree(version="2.9.0"))
        facts = replace(facts, store=Store(folder=str(tmp_path / "store")))
        return plan_of_question(ask(facts, own, cuda=True, arch=arch, **flags))

    def magma(plan: BuildPlan) -> dict[str, Choice]:
        return {each.name: each for each in plan.choices if each.name in ("USE_MAGMA", "MAGMA_HOME")}

    assert list(magma(plan())) == ["MAGMA_HOME"]
    (artifact,) = [each for each in plan().artifacts if each.name == "magma"]
    assert artifact.sha256 == item["sha256"]
    other = magma(plan(arch="9.0"))["USE_MAGMA"]
    assert other.value == "0" and "holds code for 8.6, and none that runs on 9.0" in other.because
    assert "no MAGMA archive exists for CUDA 12.6" in magma(plan("12.6"))["USE_MAGMA"].because
    asked = plan(arch="9.0", set=("USE_MAGMA=1",))
    assert [each.id for each in asked.findings if each.status == "error"] == ["magma"]

    from torchbuild_tasks.features.helpers.act import fetch

    taken = fetch((artifact,), fetching(tmp_path), said)[artifact.id]
    (library,) = look_for_libraries(Probe(environ={"MAGMA_HOME": str(taken)}), ())
    assert library.built_for is not None
    assert (library.built_for.cuda, library.built_for.archs) == ("13.0", ("8.6",))


def test_its_source_comes_as_a_release_or_from_git(tmp_path: Path) -> None:
    """The release has all precisions, so no make is needed; a git tree is cloned, and gone afterwards."""
    folder, said = source(tmp_path, **{"CMake.src.cuda": "set( sources src/zfoo.cpp )"}), RecordingReporter()
    (folder / "Makefile").unlink()
    with tarfile.open(tmp_path / "magma-2.9.0.tar.gz", "w:gz") as archive:
        archive.add(folder, "magma-2.9.0")
    what = order(folder)
    packed = tmp_path / "magma-2.9.0.tar.gz"
    row = replace(what.row, urls=(packed.as_uri(),), sha256=hash_file(packed))
    release = replace(what, path="", row=row)
    assert act.name_missing(release, fetching(tmp_path)) == packed.as_uri()
    job = prepare(tmp_path, release, said)
    assert not act.name_missing(release, fetching(tmp_path)) and not act.name_missing(
        what, fetching(tmp_path)
    )
    assert Path(act.build(job, None, said).archive).is_file()

    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "one")):
        git(folder, *words)
    clone = replace(what, path="", url=folder.as_uri(), ref="main")
    assert act.name_missing(clone, fetching(tmp_path)) == f"{folder.as_uri()} at main"
    job = prepare(tmp_path, clone, said, offline=False)
    assert not act.name_missing(clone, fetching(tmp_path))
    assert job.source.is_dir() and job.source != folder
    assert Path(act.build(job, None, said).archive).is_file()
    assert not list((tmp_path / "store" / "building").iterdir())


def test_a_killed_run_is_gone_on_with(tmp_path: Path) -> None:
    """What was compiled is not compiled again, and a copy that was cut off is not taken for a source."""
    folder, said = source(tmp_path, **{"src/zfoo.cpp": "broken\n"}), Heard()
    job = prepare(tmp_path, order(folder), said)
    (job.folder / ".source.999999999.unpacking").mkdir(parents=True)
    with pytest.raises(BuildFailed) as failed:
        act.build(job, None, said)
    assert "magma could not be built: cmake --build" in failed.value.what
    assert any("zfoo.cpp" in line for line in failed.value.looked)
    assert not job.archive.exists() and not (job.folder / ".source.999999999.unpacking").exists()
    assert "interface.cpp" in said.text
    assert str(job.folder) in prune(tmp_path / "store", (), dry_run=True).paths
    for name in ("zfoo.cpp", "sfoo.cpp"):
        (job.tree / "src" / name).write_text("int magma_foo();\n", "utf-8")
    again = Heard()
    assert Path(act.build(job, None, again).archive).is_file()
    assert "zfoo.cpp" in again.text and "interface.cpp" not in again.text
    assert not any("generate" in note or "patched" in note for note in again.notes)


def test_a_source_that_the_patch_does_not_fit_is_not_compiled(tmp_path: Path) -> None:
    folder = source(tmp_path, **{"interface_cuda/interface.cpp": "int clockRate;\n"})
    said = RecordingReporter()
    with pytest.raises(PatchRefused):
        act.build(prepare(tmp_path, order(folder), said), None, said)
    assert not list((tmp_path / "store" / "built").rglob("*.bz2"))

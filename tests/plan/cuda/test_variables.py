"""The variables of a CUDA build in both eras and on both systems."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.machines import ask, found, modern_tree, plan_of, plan_of_question, tree
from torchbuild_tasks.catalog import GIB, load_catalog
from torchbuild_tasks.model import BuildPlan, Facts, Library, Memory, Toolkit
from torchbuild_tasks.model.cuda import BuiltFor
from torchbuild_tasks.values import replace


def env(plan: BuildPlan) -> dict[str, str]:
    return {op.name: op.value for op in plan.env if op.op == "set"}


def plan(facts: Facts | None = None, **flags: Any) -> BuildPlan:
    return plan_of(facts or cuda_facts(toolkit(), gpus=(gpu(),)), cuda=True, **flags)


def plan_of_dump(facts: Facts, **flags: Any) -> BuildPlan:
    """The same by a file of facts: `plan --facts`."""
    question = ask(facts, cuda=True, **flags)
    return plan_of_question(replace(question, request=replace(question.request, facts="machine.json")))


def test_everything_that_asks_finds_the_same_toolkit() -> None:
    values = env(plan())
    root = "/usr/local/cuda-13.0"
    assert [values[name] for name in ("CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT")] == [root] * 3
    assert values["CUDACXX"] == f"{root}/bin/nvcc"
    assert values["USE_CUDA"] == "1"
    assert f"{root}/bin" in [op.value for op in plan().env if (op.op, op.name) == ("prepend", "PATH")]


def test_a_cpu_build_has_nothing_of_it() -> None:
    values = env(plan_of(cuda_facts(toolkit(), gpus=(gpu(),))))
    assert values["USE_CUDA"] == "0"
    assert not {"CUDA_HOME", "CUDACXX", "TORCH_CUDA_ARCH_LIST", "USE_CUDNN"} & set(values)


def test_an_nvcc_of_the_users_own_stays() -> None:
    values = env(plan(set=("CUDA_NVCC_EXECUTABLE=/opt/wrapped/nvcc",)))
    assert values["CUDA_NVCC_EXECUTABLE"] == "/opt/wrapped/nvcc"
    assert "CUDACXX" not in values


def test_without_cudnn_it_is_switched_off_with_the_reason() -> None:
    made = plan()
    (choice,) = [choice for choice in made.choices if choice.name == "USE_CUDNN"]
    assert choice.value == "0"
    assert "no cuDNN was found" in choice.because
    assert "USE_CUDNN" not in [
        c.name for c in plan(set=("CUDNN_ROOT=/opt/cudnn", "USE_CUDNN=1")).choices if c.value == "0"
    ]


def test_cudnn_outside_of_the_toolkit() -> None:
    library = Library(
        name="cudnn",
        version="9.20.0",
        include="/usr/include",
        library="/usr/lib/x86_64-linux-gnu",
        found_via="/usr/include",
    )
    values = env(plan(cuda_facts(toolkit(), gpus=(gpu(),), libraries=(library,))))
    assert values["CUDNN_INCLUDE_DIR"] == "/usr/include"
    assert values["CUDNN_LIBRARY"] == "/usr/lib/x86_64-linux-gnu"
    assert "USE_CUDNN" not in values


def test_cudnn_inside_the_toolkit() -> None:
    values = env(plan(cuda_facts(toolkit(cudnn="9.20.0"), gpus=(gpu(),))))
    assert values["CUDNN_ROOT"] == "/usr/local/cuda-13.0"
    assert "USE_CUDNN" not in values


def test_magma_on_linux() -> None:
    """The reason names the command that makes one."""
    (choice,) = [choice for choice in plan().choices if choice.name == "USE_MAGMA"]
    assert choice.value == "0"
    assert "helpers build magma" in choice.because
    here = Library(
        name="magma",
        version="2.6.1",
        include="/opt/conda/include",
        library="/opt/conda/lib",
        found_via="CONDA_PREFIX",
    )
    values = env(plan(cuda_facts(toolkit(), gpus=(gpu(),), libraries=(here,))))
    assert values["MAGMA_HOME"] == "/opt/conda"
    assert "USE_MAGMA" not in values


def own_magma(cuda: str = "13.0", archs: tuple[str, ...] = ("8.6",), **changes: Any) -> Facts:
    """A machine with a MAGMA that says what it was built for."""
    note = BuiltFor(
        helper="magma",
        version="2.9.0",
        cuda=cuda,
        archs=archs,
        configuration="release",
        system="linux x86_64",
    )
    library = Library(
        name="magma",
        include="/opt/magma/include",
        library="/opt/magma/lib",
        found_via="MAGMA_HOME",
        built_for=note,
    )
    return cuda_facts(toolkit("13.0"), gpus=(gpu("8.6"),), libraries=(library,), **changes)


@pytest.mark.parametrize(
    ("cuda", "archs", "why"),
    [
        ("12.6", ("8.6",), "was built for CUDA 12.6, which does not link with CUDA 13.0"),
        ("13.2", ("8.6",), "was built for CUDA 13.2"),
        ("13.0", ("9.0",), "holds code for 9.0, and none that runs on 8.6"),
    ],
)
def test_a_magma_that_was_built_for_something_else_is_refused_when_it_is_planned(
    cuda: str, archs: tuple[str, ...], why: str
) -> None:
    """One that is only found is left out; one that is asked for is a reason not to build."""
    made = plan(own_magma(cuda, archs))
    (choice,) = [choice for choice in made.choices if choice.name == "USE_MAGMA"]
    assert choice.value == "0" and why in choice.because
    assert "magma" not in [each.id for each in made.findings]
    for flags in ({"set": ("USE_MAGMA=1",)}, {"set": ("MAGMA_HOME=/opt/magma",)}):
        refused = plan(own_magma(cuda, archs), **flags)
        (error,) = [each for each in refused.findings if each.id == "magma"]
        assert error.status == "error" and why in error.text and "helpers build magma" in error.fix


@pytest.mark.parametrize(("cuda", "archs"), [("13.0", ("8.0", "9.0")), ("13.0", ("7.5+PTX",)), ("13.0", ())])
def test_a_magma_that_serves_is_taken(cuda: str, archs: tuple[str, ...]) -> None:
    assert env(plan(own_magma(cuda, archs)))["MAGMA_HOME"] == "/opt/magma"


def test_many_architectures_are_compressed() -> None:
    assert env(plan(arch="8.0;8.6;9.0;12.0"))["TORCH_NVCC_FLAGS"] == "-Xfatbin -compress-all"
    assert "TORCH_NVCC_FLAGS" not in env(plan(arch="8.6"))
    own = env(plan(arch="8.0;8.6;9.0;12.0", set=("TORCH_NVCC_FLAGS=--threads 2",)))
    assert own["TORCH_NVCC_FLAGS"] == "--threads 2"


def test_a_wheel_is_packed_as_small_as_its_cuda_allows() -> None:
    """Before CUDA 13, -compress-mode=size would raise the least driver."""
    flags = env(plan(arch="8.6", mode="wheel"))["TORCH_NVCC_FLAGS"]
    assert flags == "-Xfatbin -compress-all -compress-mode=size"
    rows = [row for row in load_catalog().compress if "13" not in row.cuda.partition(",")[0]]
    assert rows and not any("-compress-mode" in row.flags for row in rows)


def modern(memory: float) -> Facts:
    facts = cuda_facts(toolkit(), gpus=(gpu(),), tree=modern_tree())
    return replace(facts, memory=Memory(total=64 * GIB, available=int(memory * GIB)))


def test_the_heavy_kernels_have_a_number_of_their_own_where_the_era_reads_it() -> None:
    """25 GiB less 1 GiB kept back: 8 jobs of 3 GiB (nvcc), 6 heavy kernels of 4 GiB."""
    values = env(plan(modern(25)))
    assert (values["MAX_JOBS"], values["FLASH_ATTENTION_MAX_JOBS"]) == ("8", "6")


def test_memory_that_is_free_just_now_reconfigures_nothing() -> None:
    """Neither the inputs nor the env file follow it, but for the numbers themselves."""
    more, less = plan(modern(25)), plan(modern(17))
    assert (env(more)["FLASH_ATTENTION_MAX_JOBS"], env(less)["FLASH_ATTENTION_MAX_JOBS"]) == ("6", "4")
    assert more.inputs == less.inputs
    reasons = [{op.name: op.because for op in made.env} for made in (more, less)]
    assert reasons[0] == reasons[1]
    assert "variable FLASH_ATTENTION_MAX_JOBS" in plan(set=("FLASH_ATTENTION_MAX_JOBS=1",)).inputs


def test_each_thread_of_nvcc_counts() -> None:
    made = plan(modern(25), set=("TORCH_NVCC_FLAGS=--threads 2",))
    assert (env(made)["MAX_JOBS"], env(made)["FLASH_ATTENTION_MAX_JOBS"]) == ("4", "3")
    (choice,) = [choice for choice in made.choices if choice.name == "FLASH_ATTENTION_MAX_JOBS"]
    assert "8 GiB a heavy kernel of 2 threads = 3" in choice.because


def test_without_a_pool_every_job_may_be_heavy() -> None:
    facts = cuda_facts(toolkit(), gpus=(gpu(),), tree=tree(version="2.8.0"))
    facts = replace(facts, memory=Memory(total=64 * GIB, available=25 * GIB))
    values = env(plan(facts))
    assert values["MAX_JOBS"] == "6"
    assert "FLASH_ATTENTION_MAX_JOBS" not in values


def test_the_users_own_numbers_stay() -> None:
    values = env(plan(modern(25), jobs=5, set=("FLASH_ATTENTION_MAX_JOBS=1",)))
    assert (values["MAX_JOBS"], values["FLASH_ATTENTION_MAX_JOBS"]) == ("5", "1")


def test_the_preflight_is_planned_from_the_same_values() -> None:
    made = plan(arch="8.6;9.0+PTX")
    assert made.preflight is not None
    words = [word for trial in made.preflight.trials for word in trial.argv]
    assert "/usr/local/cuda-13.0/bin/nvcc" in words
    assert "arch=compute_86,code=sm_86" in " ".join(words)
    assert plan(no_preflight=True).preflight is None
    assert plan_of(cuda_facts(toolkit())).preflight is None


def test_the_preflight_reads_objects_with_the_toolkits_own_program_else_a_helper_else_anothers() -> None:
    def reader(*toolkits: Toolkit, **flags: Any) -> str:
        made = plan(cuda_facts(*toolkits, gpus=(gpu("8.6"),)), cuda_toolkit="12.4", **flags).preflight
        assert made is not None
        return made.cuobjdump

    whole, other = toolkit("12.4"), toolkit("13.0")
    bare = replace(whole, cuobjdump=None)
    assert reader(whole, other, with_helper=("cuobjdump",)) == "/usr/local/cuda-12.4/bin/cuobjdump"
    helper = reader(bare, other, with_helper=("magma", "cuobjdump"))
    assert helper.startswith("/unpacked/cuobjdump-") and helper.endswith("/bin/cuobjdump")
    assert reader(bare, other) == "/usr/local/cuda-13.0/bin/cuobjdump"
    assert reader(bare) == ""


@pytest.mark.parametrize("value", ["g++ -m64", "ccache g++ -m64", "/usr/bin/sccache g++ -m64"])
def test_the_preflight_reads_cxx_as_the_build_does(value: str) -> None:
    """A launcher in CXX is tried as a launcher only when it is planned as one."""
    made = plan(arch="8.6", set=(f"CXX={value}",))
    assert made.preflight is not None
    assert made.preflight.trials[0].argv[:2] == ("g++", "-m64")


def findings(name: str, made: BuildPlan) -> list[str]:
    return [f"{f.status}: {f.text}" for f in made.findings if f.id == name]


def test_cuda_without_cudnn_is_reported() -> None:
    """The advice that is printed changes the verdict: a folder, or saying that none is wanted."""
    assert "no cuDNN was found" in findings("cudnn", plan())[0]
    assert not findings("cudnn", plan(set=("USE_CUDNN=0",)))
    half = Library(name="cudnn", version="9.13.0", include="/c/include", found_via="CUDNN_ROOT")
    facts = cuda_facts(toolkit(), gpus=(gpu(),), libraries=(half,))
    assert "headers alone" in findings("cudnn", plan(facts, set=("CUDNN_ROOT=/c",)))[0]
    facts = cuda_facts(toolkit(), gpus=(gpu(),), libraries=(replace(half, library="/c/lib"),))
    assert not findings("cudnn", plan(facts, set=("CUDNN_ROOT=/c",)))


def test_a_named_folder_without_the_library_is_refused() -> None:
    (text,) = findings("library", plan(set=("MAGMA_HOME=/nothing",)))
    assert text.startswith("error: MAGMA_HOME=/nothing (--set on the command line) holds no magma")
    made = plan(set=("NCCL_ROOT=/nothing", "USE_SYSTEM_NCCL=1"))
    assert found(made.findings, "library").fix.endswith("or drop NCCL_ROOT and USE_SYSTEM_NCCL.")
    # Of another machine: it looked where its own variables lead, and not where a flag of this plan does.
    facts = cuda_facts(toolkit(), environ={"CUDNN_ROOT": "/empty"})
    (text,) = findings("library", plan_of_dump(facts))
    assert text.startswith("warn: CUDNN_ROOT=/empty") and "holds no cudnn" in text
    (text,) = findings("library", plan_of_dump(cuda_facts(toolkit()), set=("MAGMA_HOME=/nothing",)))
    assert text.startswith("unknown: ") and "was not looked into" in text
    named = Library(name="magma", include="/m/include", found_via="CONDA_PREFIX")
    assert not findings("library", plan(cuda_facts(toolkit(), libraries=(named,)), set=("MAGMA_HOME=/m/",)))


def test_the_flags_that_cmake_gives_nvcc_are_tried_beforehand() -> None:
    made = plan(arch="8.6", set=("CUDAFLAGS=--nosuchflag", "TORCH_NVCC_FLAGS=-lineinfo"))
    assert made.preflight is not None
    words = made.preflight.trials[1].argv
    assert words.index("--nosuchflag") < words.index("-lineinfo")


def test_the_cudnn_that_is_asked_for_fits_torch_and_toolkit() -> None:
    here = Library(
        name="cudnn", version="9.10.2", include="/usr/include", library="/usr/lib", found_via="system"
    )
    facts = cuda_facts(toolkit("12.1"), libraries=(here,), gpus=(gpu("8.6"),), tree=tree(version="2.3.1"))
    fix = found(plan_of(facts, cuda=True).findings, "cudnn").fix
    assert ">=8.5,<9 (for this torch), >=8.8,<9 (for CUDA 12.1 and the GPUs here)" in fix


# ---------------- which cuDNN


@pytest.mark.parametrize("system", ["9.1.0", "9.17.1"])
def test_a_toolkit_from_wheels_has_its_own_cudnn(system: str) -> None:
    other = Library(
        name="cudnn", version=system, include="/usr/include", library="/usr/lib", found_via="system"
    )
    facts = cuda_facts(toolkit("12.8"), gpus=(gpu("7.0"),), libraries=(other,), tree=tree(version="2.11.0"))
    made = plan(facts, cuda_toolkit="pypi:12.6")
    assert not [finding for finding in made.findings if finding.id == "cudnn"]
    assert "USE_CUDNN" not in env(made) and env(made)["CUDNN_ROOT"] == env(made)["CUDA_HOME"]


def test_ranges_of_cudnn_that_touch_are_one() -> None:
    old = toolkit("12.4", cudnn="8.2.4")
    facts = cuda_facts(old, gpus=(gpu("8.6"),), tree=tree(version="2.6.0"))
    assert ">=8.8 (for CUDA 12.4" in found(plan(facts).findings, "cudnn").fix


def test_where_no_cudnn_has_code_for_the_gpu_none_is_advised() -> None:
    facts = cuda_facts(toolkit("13.0", cudnn="9.17.1"), gpus=(gpu("7.0"),), tree=tree(version="2.11.0"))
    finding = found(plan(facts).findings, "cudnn")
    assert "and CUDA 13.0 holds any for it" in finding.text
    assert "CUDNN_ROOT" not in finding.fix


@pytest.mark.parametrize(
    ("cudnn", "newer", "known"),
    [("8.9.7", "12.0", "9.0"), ("8.9.7", "10.0", "9.0"), ("9.1.0", "12.0", ""), ("8.9.7", "8.9", "")],
)
def test_a_cudnn_before_9_has_no_code_for_a_newer_generation(cudnn: str, newer: str, known: str) -> None:
    facts = cuda_facts(toolkit("12.8", cudnn=cudnn), gpus=(gpu(newer),), tree=tree(version="2.3.1"))
    told = [each for each in plan(facts).findings if each.id == "cudnn" and "holds no code" in each.text]
    assert [f"up to {known}" in each.text for each in told] == [True] * bool(known)
    assert not any("CUDNN_ROOT" in each.fix for each in told)  # for this torch there is no newer one


def test_a_cudnn_in_the_folder_of_another_major_is_not_taken() -> None:
    other = toolkit("13.0")
    library = Library(
        name="cudnn",
        include=f"{other.path}/include",
        library=f"{other.path}/lib64",
        found_via="x",
        version="9.14.0",
    )
    kits = (toolkit("12.8", found_via="PATH"), other)
    facts = cuda_facts(*kits, gpus=(gpu("8.9"),), libraries=(library,), tree=tree(version="2.9.1"))
    finding = found(plan_of(facts, cuda=True).findings, "cudnn")
    assert finding.status == "warn" and "is that of CUDA 13.0" in finding.text
    assert not [
        each for each in plan_of(facts, cuda=True, cuda_toolkit="13.0").findings if each.id == "cudnn"
    ]

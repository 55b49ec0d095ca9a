"""What needs a compile, which wheel fits, which of its files are taken, and what is promised then."""

from __future__ import annotations

import re
from typing import Any

from tests.support.for_each import each_case
from tests.support.jetsons import orin_nano, thor
from tests.support.machines import ask, linux_facts, plan_of, plan_of_question, with_tree
from torchbuild_tasks.build.outputs import patterns
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import INSTALL_GIT
from torchbuild_tasks.features.wheel_overlay.choose import (
    COMPILED,
    built_from_changes,
    choose_members,
    describe_reach,
    find_reached,
    find_row,
    is_commit,
    release_tags,
    select_blocking,
    suggest_target,
    wheel_expectations,
    wheel_inputs,
    why_other_cuda,
    why_unsuitable,
)
from torchbuild_tasks.features.wheel_overlay.preview import preview
from torchbuild_tasks.model import Brought, Expectation, Facts, Host, TreeReads
from torchbuild_tasks.model.wheel import Member, Wheel
from torchbuild_tasks.plan.wheel_tags import python_tags
from torchbuild_tasks.text.show import commands
from torchbuild_tasks.values import replace

ROWS = load_catalog().wheel_input
# Of what Ninja's graph and its list of headers name in a real build of 2.6.0, one of each kind and place; and
# what CMake, setup.py and the code generation of v1.13.1, v2.0.0 and v2.6.0 read besides.
READ = [
    ".ci/docker/ci_commit_pins/nccl-cu12.txt",
    "CMakeLists.txt",
    "MANIFEST.in",
    "aten/CMakeLists.txt",
    "aten/src/ATen/Config.h.in",
    "aten/src/ATen/core/Tensor.cpp",
    "aten/src/ATen/cuda/CUDAContext.cpp",
    "aten/src/ATen/native/cuda/Loops.cuh",
    "aten/src/ATen/native/mps/kernels/Indexing.metal",
    "aten/src/ATen/native/native_functions.yaml",
    "aten/src/ATen/native/tags.yaml",
    "aten/src/ATen/native/quantized/cpu/qnnpack/src/q8gemm/4x8-neon.c",
    "aten/src/ATen/native/vulkan/glsl/add.glsl",
    "aten/src/ATen/nnapi/codegen.py",
    "aten/src/ATen/templates/Functions.h",
    "aten/src/ATen/ufunc/add.h",
    "benchmarks/static_runtime/test_static_runtime.cc",
    "binaries/benchmark_helper.cc",
    "build_variables.bzl",
    "c10/core/TensorImpl.cpp",
    "c10/cuda/impl/CUDAGuardImpl.h",
    "c10/macros/cmake_macros.h.in",
    "caffe2/core/common.cc",
    "caffe2/proto/caffe2.proto",
    "caffe2/python/core.py",
    "cmake/Codegen.cmake",
    "cmake/TorchConfig.cmake.in",
    "cmake/VulkanCodegen.cmake",
    "functorch/CMakeLists.txt",
    "functorch/csrc/dim/dim.cpp",
    "modules/module_test/module_test_dynamic.cc",
    "nvfuser/csrc/python_frontend/python_bindings.cpp",
    "pyproject.toml",
    "setup.py",
    "test/cpp/api/tensor.cpp",
    "test/cpp/aoti_inference/test.py",
    "test/edge/CMakeLists.txt",
    "test/edge/selected_operators.yaml",
    "third_party/fmt",
    "third_party/xnnpack.buck.bzl",
    "tools/amd_build/build_amd.py",
    "tools/autograd/derivatives.yaml",
    "tools/autograd/gen_autograd.py",
    "tools/build_pytorch_libs.py",
    "tools/generate_torch_version.py",
    "tools/gen_vulkan_spv.py",
    "tools/jit/gen_unboxing.py",
    "tools/nvcc_fix_deps.py",
    "tools/onnx/gen_diagnostics.py",
    "tools/pyi/gen_pyi.py",
    "tools/setup_helpers/cmake.py",
    "tools/setup_helpers/generate_code.py",
    "tools/shared/__init__.py",
    "torch/CMakeLists.txt",
    "torch/_C/__init__.pyi.in",
    "torch/_C/_VariableFunctions.pyi.in",
    "torch/_C/return_types.pyi.in",
    "torch/_torch_docs.py",
    "torch/_utils_internal.py",
    "torch/csrc/Module.cpp",
    "torch/csrc/api/include/torch/version.h.in",
    "torch/csrc/deploy/interpreter/builtin_registry.cpp",
    "torch/csrc/jit/codegen/cuda/tools/stringify_file.py",
    "torch/csrc/lazy/ts_backend/ts_native_functions.cpp",
    "torch/headeronly/macros/Export.h",
    "torch/lib/libshm/core.cpp",
    "torch/nn/functional.pyi.in",
    "torch/utils/data/datapipes/datapipe.pyi.in",
    "torch/utils/data/datapipes/iter/callable.py",
    "torch/utils/hipify/hipify_python.py",
    "torchgen/gen.py",
    "torchgen/packaged/ATen/native/tags.yaml",
    "torchgen/static_runtime/gen_static_runtime_ops.py",
    "torchgen/aoti/fallback_ops.py",
    "ufunc_defs.bzl",
    "version.txt",
    "torch/csrc/stub.c",
]
NOT_READ = [
    ".github/workflows/trunk.yml",
    ".ci/pytorch/test.sh",
    "README.md",
    "docs/source/torch.rst",
    "requirements.txt",
    "benchmarks/dynamo/common.py",
    "functorch/_src/vmap.py",
    "scripts/release/cut-release-branch.sh",
    "test/expect/TestJit.test_cpp.expect",
    "test/test_torch.py",
    "tools/linter/adapters/clangformat_linter.py",
    "tools/stats/upload_stats_lib.py",
    "torch/_C/_dynamo/eval_frame.pyi",
    "torch/_dynamo/convert_frame.py",
    "torch/_inductor/ir.py",
    "torch/_inductor/kernel/flex/templates/flex_attention.py.jinja",
    "torch/distributed/fsdp/api.py",
    "torch/nn/functional.py",
    "torch/onnx/symbolic_opset9.py",
    "torch/testing/_internal/common_utils.py",
]


@each_case("path", READ)
def test_what_the_build_reads_needs_a_compile(path: str) -> None:
    row = find_row(path, ROWS)
    assert row is None or row.kind in COMPILED
    assert len(find_reached([path], [], ROWS)) == 1


@each_case("path", NOT_READ)
def test_what_the_build_does_not_read_needs_none(path: str) -> None:
    assert find_reached([path], [], ROWS) == ()


def test_a_file_that_no_row_knows_counts_when_git_tracks_it() -> None:
    assert find_row("strange/thing.xyz", ROWS) is None
    (reached,) = find_reached(["strange/thing.xyz"], [], ROWS)
    assert reached.kind == "native"
    assert find_reached([], ["notes.xyz", "my/venv/x"], ROWS) == ()
    assert len(find_reached([], ["aten/src/ATen/native/new.cpp"], ROWS)) == 1


def test_a_refusal_names_files_parts_and_targets() -> None:
    reached = find_reached(["c10/core/a.cpp", "c10/core/b.cpp", "torch/csrc/Module.cpp"], [], ROWS)
    first, second = describe_reach(reached, {"c10/core/a.cpp": ("c10/CMakeFiles/c10.dir/core/a.cpp.o",)})
    assert first.text == (
        "native, reaches c10, by Ninja's graph c10/CMakeFiles/c10.dir/core/a.cpp.o: "
        "c10/core/a.cpp, c10/core/b.cpp"
    )
    assert second.text == "native, reaches torch_python: torch/csrc/Module.cpp"
    assert (first.fix, second.fix) == ("", "")


def test_a_refusal_offers_to_compile_what_can_be_compiled_against_a_wheel() -> None:
    reached = find_reached(["c10/core/a.cpp", "torch/csrc/Module.cpp"], [], ROWS)
    generated = find_reached(["aten/src/ATen/native/native_functions.yaml"], [], ROWS)
    older = with_tree(mixable(), reads=None)
    assert suggest_target(mixable(), reached[1:]) == "torch_python"
    assert suggest_target(older, reached[1:]) == suggest_target(mixable(), reached) == "changed"
    assert suggest_target(mixable(), (*reached, *generated)) == ""
    (finding,) = describe_reach(reached[:1], {}, offer="changed")
    assert "--target changed compiles the libraries that this reaches" in finding.fix


# Of 2.6.0, by the ninja file with BUILD_LIBTORCHLESS, and by what the other libraries' sources include.
OF_TORCH_PYTHON = [
    "tools/autograd/templates/python_variable_methods.cpp",
    "torch/csrc/Module.cpp",
    "torch/csrc/autograd/init.cpp",
    "torch/csrc/autograd/python_engine.h",
    "torch/csrc/cuda/Module.cpp",
    "torch/csrc/cuda/python_nccl.cpp",
    "torch/csrc/distributed/c10d/init.cpp",
    "torch/csrc/dynamo/guards.cpp",
    "torch/csrc/jit/passes/onnx/naming.cpp",
    "torch/csrc/jit/python/python_ir.cpp",
    "torch/csrc/utils/tensor_new.cpp",
]
OF_OTHERS_TOO = [
    "tools/autograd/templates/VariableType.cpp",
    "torch/csrc/CudaIPCTypes.cpp",
    "torch/csrc/api/src/nn/init.cpp",
    "torch/csrc/autograd/engine.cpp",
    "torch/csrc/autograd/python_variable.h",
    "torch/csrc/distributed/rpc/python_call.cpp",
    "torch/csrc/dynamo/compiled_autograd.h",
    "torch/csrc/jit/ir/ir.cpp",
    "torch/csrc/jit/python/update_graph_executor_opt.cpp",
    "torch/csrc/jit/serialization/python_print.cpp",
    "torch/csrc/profiler/orchestration/python_tracer.cpp",
    "torch/csrc/stable/library.h",
    "torch/csrc/utils/pybind.h",
    "torch/csrc/utils/tensor_flatten.cpp",
    "torch/lib/libshm/core.cpp",
    "functorch/csrc/dim/dim.cpp",
]


def test_only_what_is_of_torch_python_alone_is_compiled_against_a_wheel() -> None:
    plan = plan_of(mixable(), from_wheel="auto", target="torch_python")
    assert select_blocking(plan.way.target, find_reached(OF_TORCH_PYTHON, [], ROWS)) == ()
    assert [
        each.path for each in select_blocking(plan.way.target, find_reached(OF_OTHERS_TOO, [], ROWS))
    ] == OF_OTHERS_TOO
    reaching = plan_of(mixable(), from_wheel="auto", target="changed")
    kinds = {
        each.kind for each in select_blocking(reaching.way.target, find_reached(OF_OTHERS_TOO, [], ROWS))
    }
    assert kinds == {"generated"}
    plain = plan_of(mixable(), from_wheel="auto")
    assert len(select_blocking(plain.way.target, find_reached(OF_TORCH_PYTHON, [], ROWS))) == len(
        OF_TORCH_PYTHON
    )


@each_case(
    ("theirs", "toolkit", "said"),
    [
        ("", "", ""),
        ("12.4", "/usr/local/cuda 12.4.131", ""),
        ("12.4", "", "it has CUDA 12.4, and torch_python would be compiled with no CUDA; use --cuda"),
        ("12.4", "/opt/cuda-12.6 12.6", "with CUDA 12.6; use --cuda --cuda-toolkit 12.4"),
        (
            "",
            "/usr/local/cuda 12.4",
            "it has no CUDA, and torch_python would be compiled with CUDA 12.4; use --cpu",
        ),
    ],
)
def test_another_cuda_is_refused_before_anything_is_laid(theirs: str, toolkit: str, said: str) -> None:
    plan = plan_of(mixable(), from_wheel="auto", target="torch_python")
    plan = replace(plan, inputs={**plan.inputs, "cuda toolkit": toolkit})
    wheel = Wheel(path="x.whl", cuda=theirs)
    found = why_other_cuda(wheel, plan, ())
    assert (said in found) if said else not found
    assert not why_other_cuda(wheel, plan_of(mixable(), from_wheel="auto"), ())


def test_c10_alone_needs_no_cuda_of_a_wheel() -> None:
    plan = plan_of(mixable(), from_wheel="auto", target="changed")
    wheel = Wheel(path="x.whl", cuda="12.4")
    assert not why_other_cuda(wheel, plan, find_reached(["c10/core/Device.cpp"], [], ROWS))
    for path in ("c10/cuda/CUDAStream.cpp", "aten/src/ATen/native/Cross.cpp", "c10/core/Device.h"):
        found = why_other_cuda(wheel, plan, find_reached(["c10/core/Device.cpp", path], [], ROWS))
        assert "what has changed would be compiled with no CUDA" in found


def mixable() -> Facts:
    reads = TreeReads(names=("BUILD_LIBTORCHLESS",), direct=("LIBTORCH_LIB_PATH",))
    return with_tree(linux_facts(), commit="a" * 40, version="2.6.0a0", reads=reads)


def test_the_plan_compiles_torch_python_against_the_wheel() -> None:
    plan = plan_of(mixable(), from_wheel="auto", target="torch_python")
    assert plan.verdict != "refuse", plan.findings
    values = {each.name: each.value for each in plan.choices}
    assert (values["BUILD_LIBTORCHLESS"], values["preset"]) == ("1", "full")
    assert values["LIBTORCH_LIB_PATH"] == f"{plan.source}/torch/lib"
    assert [each.argv[-1] for each in commands(plan)][-1] == "--cmake-only"
    assert plan.env_files and ("config", "USE_CUDA") not in [(e.check, e.key) for e in plan.expectations]


@each_case("era", ["setuptools", "scikit-build-core"])
def test_what_changed_is_compiled_as_for_all_of_torch(era: str) -> None:
    plan = plan_of(with_tree(mixable(), era=era, reads=None), from_wheel="auto", target="changed")
    assert plan.verdict != "refuse", plan.findings
    values = {each.name: each.value for each in plan.choices}
    assert "BUILD_LIBTORCHLESS" not in values and values["preset"] == "full"
    assert (plan.way.target, plan.way.configure is not None) == ("changed", True)


@each_case(
    ("change", "said"),
    [
        ({"reads": None}, "know no BUILD_LIBTORCHLESS"),
        ({"era": "scikit-build-core"}, "this is done up to torch 2.13, by setup.py"),
    ],
)
def test_where_torch_python_cannot_be_compiled_alone_the_plan_says_why(
    change: dict[str, Any], said: str
) -> None:
    plan = plan_of(with_tree(mixable(), **change), from_wheel="auto", target="torch_python")
    assert plan.verdict == "refuse"
    assert any(said in each.text for each in plan.findings)


LINUX = Host(os="linux", arch="x86_64", libc="glibc 2.31")
WINDOWS = Host(os="windows", arch="x86_64")


@each_case(
    ("file", "host", "said"),
    [
        ("torch-2.0.0-cp311-cp311-manylinux1_x86_64.whl", LINUX, ""),
        ("torch-2.0.0+cpu-cp311-cp311-linux_x86_64.whl", LINUX, ""),
        ("torch-2.5.1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", LINUX, ""),
        ("torch-2.7.0-cp311-cp311-manylinux_2_34_x86_64.whl", LINUX, "it needs glibc 2.34"),
        ("torch-2.7.0-cp311-cp311-manylinux_2_28_aarch64.whl", LINUX, "it is for manylinux_2_28_aarch64"),
        ("torch-2.7.0-cp311-cp311-win_amd64.whl", LINUX, "it is for win_amd64"),
        ("torch-2.7.0-cp312-cp312-manylinux_2_28_x86_64.whl", LINUX, "it is for cp312"),
        ("torch-2.7.0-cp311-cp311d-manylinux_2_28_x86_64.whl", LINUX, "it is for the ABI cp311d"),
        ("torch-2.7.0-cp311-none-macosx_11_0_arm64.whl", LINUX, "it is for macosx_11_0_arm64"),
        ("torch-2.7.0-cp311-cp311-win_amd64.whl", WINDOWS, ""),
        ("torch-2.7.0-cp311-cp311-manylinux_2_28_x86_64.whl", WINDOWS, "it is for manylinux_2_28_x86_64"),
        ("torchvision-0.22.0-cp311-cp311-win_amd64.whl", WINDOWS, "a wheel of torchvision"),
        ("torch.whl", WINDOWS, "its name is none of a wheel"),
    ],
)
def test_a_wheel_fits_by_its_tags(file: str, host: Host, said: str) -> None:
    wheel = Wheel(path=f"/wheels/{file}", version=file.partition("-")[2].partition("-")[0])
    found = why_unsuitable(wheel, "3.11.7", "cpython-311-x86_64-linux-gnu", host)
    assert (said in found) if said else not found


@each_case(
    ("modules", "fits"),
    [
        (("cpython-311-x86_64-linux-gnu.so",), True),
        (("abi3.so",), True),
        (("so",), True),
        ((), True),  # that it cannot be imported is seen when it is verified
        (("cpython-312-x86_64-linux-gnu.so", "cpython-311-x86_64-linux-gnu.so"), True),
        (("cpython-312-x86_64-linux-gnu.so",), False),
        (("cpython-311-aarch64-linux-gnu.so",), False),
        (("cp311-win_amd64.pyd",), False),
    ],
)
def test_a_wheel_that_was_given_another_name_is_refused(modules: tuple[str, ...], fits: bool) -> None:
    members = tuple(Member(name=f"torch/_C.{each}", size=1) for each in modules)
    wheel = Wheel(path="torch-2.0.0-cp311-cp311-linux_x86_64.whl", version="2.0.0", members=members)
    said = why_unsuitable(wheel, "3.11.7", "cpython-311-x86_64-linux-gnu", LINUX)
    assert bool(said) != fits and ("than its name says" in said) != fits


@each_case("version", ["2.0.1", "", "../../2.0.0"])
def test_a_name_and_its_metadata_say_the_same_version(version: str) -> None:
    wheel = Wheel(path="torch-2.0.0-cp311-cp311-linux_x86_64.whl", version=version)
    assert "by its METADATA" in why_unsuitable(wheel, "3.11.7", None, LINUX)


@each_case("word", ["", "a" * 39, "A" * 40, "HEAD", "--output=x", "a" * 40 + "\n"])
def test_only_the_whole_name_of_a_commit_is_given_to_git(word: str) -> None:
    assert not is_commit(word)
    assert is_commit("a" * 40)


def test_a_free_threaded_python_has_an_abi_of_its_own() -> None:
    assert python_tags("3.13.1", "cpython-313t-x86_64-linux-gnu") == ("cp313", "cp313t")
    assert python_tags("3.13.1", "cp313t-win_amd64") == ("cp313", "cp313t")
    assert python_tags("3.13.1", None) == ("cp313", "cp313")
    wheel = Wheel(path="torch-2.7.0-cp313-cp313-manylinux_2_28_x86_64.whl")
    assert "cp313t" in why_unsuitable(wheel, "3.13.1", "cpython-313t-x86_64-linux-gnu", LINUX)


def test_what_git_tracks_and_what_is_gone_is_not_taken() -> None:
    names = (
        *("torch/lib/libtorch.so", "torch/_C.cpython-311-x86_64-linux-gnu.so", "torch/version.py"),
        *("torch/functional.py", "torch/gone.py", "torch-2.0.0.dist-info/METADATA", "torch-2.0.0.data/x"),
    )
    members = tuple(Member(name=name, size=1) for name in names)
    wheel = Wheel(path="x", dist_info="torch-2.0.0.dist-info", members=members)
    outputs = patterns(load_catalog(), "setuptools")
    taken, left = choose_members(wheel, {"torch/functional.py"}, outputs.matches)
    assert [each.name for each in taken] == list(names[:3])
    assert left == ("torch/gone.py",)


@each_case(
    ("repository", "said"),
    [
        ({"path": "", "commit": "a" * 40, "diff_sha256": ""}, ""),
        (
            {
                "path": "",
                "commit": "a" * 40,
                "diff_sha256": "1",
                "diff": "diff --git a/torch/x.py b/torch/x.py",
            },
            "",
        ),
        (
            {"path": "", "commit": "a" * 40, "diff_sha256": "1", "diff": "diff --git a/c10/x.h b/c10/x.h"},
            "c10/x.h",
        ),
        ({"path": "", "commit": "a" * 40, "diff_sha256": "1", "diff": None}, "CMakeLists.txt"),
        ({"path": "third_party/fmt", "commit": "c" * 40, "diff_sha256": "1", "diff": "x"}, "third_party/fmt"),
        ({"path": "", "commit": "b" * 40, "diff_sha256": "1", "diff": None}, ""),
    ],
)
def test_a_wheel_built_here_from_changed_files_is_none_of_its_commit(
    repository: dict[str, Any], said: str
) -> None:
    changed = {"path": "", "commit": "a" * 40, "diff_sha256": "1", **repository}
    manifest = {"choices": [{"name": "mode", "value": "wheel"}], "repositories": [changed]}
    found = built_from_changes(manifest, "a" * 40, ROWS)
    assert (said in found) if said else not found


def test_only_finished_releases_count_the_newest_first() -> None:
    tags = ["v1.13.1", "v2.0.0-rc1", "v2.0.0", "ciflow/trunk/1", "v1.9.0", "v2.10.0"]
    assert [version for _, version in release_tags(tags)] == ["2.10.0", "2.0.0", "1.13.1", "1.9.0"]


def test_what_the_wheels_builder_decided_is_not_promised() -> None:
    asked = [
        Expectation(check="import"),
        Expectation(check="import", key="version", wanted="2.0.0a0"),
        Expectation(check="import", key="distribution", wanted="2.0.0a0"),
        Expectation(check="import", key="git_version", wanted="a" * 40),
        Expectation(check="config", key="USE_CUDA", wanted="OFF"),
        Expectation(check="rpath"),
        Expectation(check="cmake_consumer"),
        Expectation(check="matmul"),
    ]
    wheel = Wheel(path="w.whl", version="2.0.0", torch_version="2.0.0", commit="b" * 40)
    made = wheel_expectations(ask(), asked, wheel_inputs(wheel, "1"))
    assert not [each.check for each in made if each.skip]
    assert [(each.check, each.key, each.wanted) for each in made if not each.skip] == [
        ("import", "", ""),
        ("import", "version", "2.0.0"),
        ("import", "distribution", "2.0.0"),
        ("import", "git_version", "b" * 40),
        ("cmake_consumer", "", ""),
        ("matmul", "", ""),
    ]


def test_a_wheel_with_cuda_must_compute_on_the_gpus_that_are_here() -> None:
    """The plan may say nothing of CUDA: what is laid has it all the same."""
    asked = [Expectation(check="import"), Expectation(check="cmake_consumer"), Expectation(check="cuda_op")]
    own = Wheel(path="w.whl", version="2.6.0", torch_version="2.6.0", commit="b" * 40, cuda="12.4")
    pypi = replace(own, torch_version="2.0.0+cu117", cuda="")
    for wheel in (own, pypi):
        made = wheel_expectations(ask(), asked, wheel_inputs(wheel, "1"))
        assert [each.check for each in made if each.skip] == ["cmake_consumer"]
        checks = [each.check for each in made if not each.key]
        assert {"cuda_available", "cuda_arch_list", "cuda_linalg", "nccl"} <= set(checks)
        assert checks.count("cuda_op") == 1 and "torchvision_cuda" not in checks
        cuda = [each.wanted for each in made if each.key == "cuda"]
        assert cuda == ([wheel.cuda] if wheel.cuda else [])
    beside = [*asked, Expectation(check="torchvision")]
    assert "torchvision_cuda" in {
        each.check for each in wheel_expectations(ask(), beside, wheel_inputs(own, "1"))
    }
    of_sample = ask(with_tree(linux_facts(), sample=True))
    sample = wheel_expectations(of_sample, asked[:2], wheel_inputs(own, "1"))
    assert "the sample's tensors are on no device" in [e.skip for e in sample if e.check == "cuda_op"]


def test_the_plan_compiles_nothing() -> None:
    """A machine without a compiler, and a checkout without its submodules, are no reason against it."""
    facts = with_tree(linux_facts(), commit="a" * 40, empty=("third_party/fmt",))
    plan = plan_of(facts, from_wheel="auto")
    assert plan.verdict != "refuse"
    assert plan.env_files == () and plan.artifacts == () and plan.environment.install is None
    created = [command.argv[1:3] for command in commands(plan)]
    assert created in ([], [("-m", "venv")]), "no command of a compile is shown"
    shown = [(each.check, each.key) for each in plan.expectations]
    assert ("config", "USE_CUDA") not in shown and ("matmul", "") in shown


def test_what_is_built_with_torch_is_built_against_the_wheels() -> None:
    """Its build imports setuptools and NumPy, within the bounds of this torch; the rest is not installed."""
    facts = with_tree(linux_facts(), commit="a" * 40, version="2.0.0a0")
    facts = replace(facts, pythons=tuple(replace(each, packages={"pip": "24.0"}) for each in facts.pythons))
    plan = plan_of(facts, from_wheel="auto", with_=("torchaudio",))
    assert plan.verdict != "refuse"
    assert [each.name for each in plan.companions] == ["torchaudio"]
    install = plan.environment.install
    assert install and {"numpy<2", "setuptools<70"} <= set(install.argv)  # the CMake of the machine fits
    assert "pyyaml" not in install.argv
    assert list(commands(plan))[-1].argv == plan.companions[0].argv


@each_case(
    ("flags", "said"),
    [
        ({"mode": "wheel"}, "--mode wheel"),
        ({"target": "c10"}, "nothing but torch_python, or what has changed, and --target c10 does"),
        ({"target": "torch_python", "with_": ("torchaudio",)}, "or what has changed, and --with does"),
        ({"watch": True}, "--watch"),
    ],
)
def test_what_compiles_is_refused_beside_it(flags: dict[str, Any], said: str) -> None:
    plan = plan_of(with_tree(linux_facts(), commit="a" * 40), from_wheel="auto", **flags)
    assert plan.verdict == "refuse"
    assert any(said in each.text for each in plan.findings)


def test_without_git_nobody_knows_what_was_changed() -> None:
    plan = plan_of(with_tree(linux_facts(), commit=None, git=False), from_wheel="auto")
    assert plan.verdict == "refuse"
    assert "not a git checkout" in plan.findings[-1].text
    assert re.search(r"torchbuild source get \S+ --source \S+-git", str(plan.findings[-1].fix))


def test_a_repository_that_git_cannot_read_needs_no_other_checkout() -> None:
    problem = "detected dubious ownership in repository at '/src'"
    facts = with_tree(linux_facts(), commit=None, git=True, git_problem=problem)
    found = [each for each in plan_of(facts, from_wheel="auto").findings if each.status == "error"]
    assert [(problem in each.text, "safe.directory" in each.fix) for each in found] == [(True, True)]
    silent = with_tree(linux_facts(), commit=None, git=True)
    assert plan_of(silent, from_wheel="auto").findings[-1].fix == INSTALL_GIT


def test_a_flag_of_compiles_is_told_where_nothing_is_compiled() -> None:
    plan = plan_of(mixable(), from_wheel="auto", build_type="Debug")
    told = [each for each in plan.findings if each.status == "warn" and "--build-type Debug" in each.text]
    assert len(told) == 1 and "--from-wheel compiles nothing" in told[0].text


def test_a_wheel_for_another_kind_of_device_is_refused() -> None:
    address = "https://example.org/torch-2.6.0%2Bxpu-cp312-cp312-linux_x86_64.whl"
    for word, kind in (("2.6.0+rocm6.4", "ROCm"), (address, "XPU"), ("2.6.0+cpu", ""), ("auto", "")):
        plan = plan_of(linux_facts(), from_wheel=word)
        told = [each.text for each in plan.findings if "only wheels for CPUs and CUDA" in each.text]
        assert len(told) == bool(kind) and all(f"is for {kind}, " in text for text in told)


@each_case(
    ("flags", "brought", "warned"),
    [
        ({"from_wheel": "2.6.0", "offline": True}, (), True),
        ({"from_wheel": "2.6.0", "offline": True}, ("torch-2.6.0-cp312-cp312-linux_x86_64.whl",), False),
        ({"from_wheel": "https://example.org/torch.whl", "offline": True}, (), True),
        ({"from_wheel": "file:///w/torch.whl", "offline": True}, (), False),
        ({"from_wheel": "2.6.0", "offline": True, "mirror": "file:///mirror"}, (), False),
        ({"from_wheel": "2.6.0"}, (), False),
    ],
)
def test_a_wheel_that_would_be_downloaded_is_told_of_offline(
    flags: dict[str, Any], brought: tuple[str, ...], warned: bool
) -> None:
    question = ask(replace(linux_facts(), brought=Brought(wheels=brought)), **flags)
    plan = plan_of_question(question)
    told = [each for each in preview(question, plan).findings if "would be downloaded" in each.text]
    assert [each.status for each in told] == ["warn"] * warned


def test_a_wheel_of_another_device_contradicts_the_flag() -> None:
    pairs: list[tuple[dict[str, Any], str]] = [({"cpu": True}, "+cu126"), ({"cuda": True}, "+cpu")]
    for flags, said in pairs:
        for word, wrong in ((f"2.8.0{said}", 1), ("2.8.0", 0)):
            plan = plan_of(with_tree(linux_facts(), version="2.8.0"), from_wheel=word, **flags)
            assert len([each for each in plan.findings if "contradict" in each.text]) == wrong, (flags, word)


@each_case(
    ("libc", "arch", "version", "word", "status"),
    [
        ("musl 1.2.5", "x86_64", "2.8.0", "auto", ["warn"]),
        ("musl 1.2.5", "x86_64", "2.8.0", "2.8.0", ["error"]),
        ("musl 1.2.5", "x86_64", "2.8.0", "https://host/x.whl", []),
        ("glibc 2.17", "x86_64", "2.8.0", "2.8.0", ["error"]),
        ("glibc 2.17", "x86_64", "2.5.1", "2.5.1", []),
        ("glibc 2.39", "aarch64", "2.8.0", "auto", []),
        ("2.39", "x86_64", "2.8.0", "2.8.0", []),
        ("glibc 2.39", "ppc64le", "2.8.0", "2.8.0", ["error"]),
    ],
)
def test_a_machine_that_no_wheel_of_the_index_fits(
    libc: str, arch: str, version: str, word: str, status: list[str]
) -> None:
    host = Host(os="linux", arch=arch, libc=libc)
    plan = plan_of(with_tree(linux_facts(host=host), version=version), from_wheel=word)
    told = [each for each in plan.findings if each.id == "from-wheel" and "own wheels" in each.text]
    assert [each.status for each in told] == status


def test_a_wheel_with_cuda_for_arm_servers_is_none_for_a_board_before_thor() -> None:
    for facts, wrong in ((orin_nano(), 1), (thor(), 0)):
        plan = plan_of(with_tree(facts, version="2.8.0"), from_wheel="auto", cuda=True)
        assert len([each for each in plan.findings if "made for Arm servers" in each.text]) == wrong

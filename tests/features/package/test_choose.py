"""What a package brings, expects and is called, decided from values alone."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.support.closures import lib
from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.package.choose import (
    CondaPackage,
    Wanted,
    conda_package,
    cuda_folders,
    edit_metadata,
    edit_version,
    local_version,
    mislabelled,
    outside,
    refusals,
    report_size,
    requirements,
    rpath_of,
    source_version,
)
from torchbuild_tasks.model.wheel import Member

CATALOG = load_catalog()
LIBC = frozenset(("libc.so.6", "libstdc++.so.6"))


def wanted(
    cuda: str = "", how: str = "depend", *, windows: bool = False, graft: tuple[str, ...] = ()
) -> Wanted:
    provided = LIBC | ({"kernel32.dll", "api-*"} if windows else set())
    return Wanted(
        windows=windows, provided=provided, shared=CATALOG.shared, cuda=cuda, cuda_libraries=how, graft=graft
    )


def ways(*needed: str, want: Wanted) -> dict[str, str]:
    image = lib("torch/lib/libtorch_cpu.so", *needed)
    return {each.name: each.way for each in outside({image.real: image}, want)}


def test_what_every_machine_has_is_expected_and_libgomp_is_brought() -> None:
    needed = ("libc.so.6", "ld-linux-x86-64.so.2", "libgomp.so.1", "libcuda.so.1", "libown.so.3")
    assert ways(*needed, want=wanted()) == {
        "libc.so.6": "target",
        "ld-linux-x86-64.so.2": "target",
        "libgomp.so.1": "graft",
        "libcuda.so.1": "target",
        "libown.so.3": "refused",
    }


def test_a_library_of_the_wheel_is_not_outside_by_its_file_or_its_soname() -> None:
    images = [
        lib("torch/lib/libtorch_cpu.so", "libc10.so", "libshm.so.1"),
        lib("torch/lib/libc10.so"),
        lib("torch/lib/libshm.so", name="libshm.so.1"),
    ]
    assert outside({image.real: image for image in images}, wanted()) == ()


@each_case(("how", "way"), [("depend", "depend"), ("bundle", "graft"), ("system", "system")])
def test_nvidias_libraries_are_treated_as_requested(how: str, way: str) -> None:
    names = ("libcudart.so.12", "libcudnn.so.9", "libnccl.so.2")
    assert set(ways(*names, want=wanted("12", how)).values()) == {way}


def test_a_library_of_another_cuda_is_refused() -> None:
    assert ways("libcudart.so.11", "libcudart.so.12", want=wanted("13")) == {
        "libcudart.so.11": "refused",
        "libcudart.so.12": "refused",
    }


def test_what_is_named_is_brought_and_what_is_not_is_refused_with_where_it_is_here() -> None:
    image = lib("torch/lib/libtorch_cpu.so", "libown.so.3", "libother.so.1")
    found = outside({image.real: image}, wanted(graft=("libown*",)))
    assert [each.way for each in found] == ["graft", "refused"]
    (line,) = refusals(found, {"libother.so.1": "/opt/x/libother.so.1"})
    assert line == "libother.so.1 (/opt/x/libother.so.1), which torch/lib/libtorch_cpu.so needs"


def test_dlls_are_compared_in_small_letters() -> None:
    want = wanted("12", "bundle", windows=True)
    needed = ("KERNEL32.dll", "api-ms-win-crt-heap-l1-1-0.dll", "MSVCP140.dll", "cudart64_12.dll", "Own.dll")
    assert ways(*needed, want=want) == {
        "kernel32.dll": "target",
        "api-ms-win-crt-heap-l1-1-0.dll": "target",
        "msvcp140.dll": "target",
        "cudart64_12.dll": "graft",
        "own.dll": "refused",
    }


@each_case(
    ("path", "folders"),
    [
        ("torch/_C.cpython-311-x86_64-linux-gnu.so", ("$ORIGIN", "$ORIGIN/lib")),
        ("torch/lib/libtorch_cpu.so", ("$ORIGIN",)),
        ("torch/bin/torch_shm_manager", ("$ORIGIN", "$ORIGIN/../lib")),
        ("functorch/_C.so", ("$ORIGIN", "$ORIGIN/../torch/lib")),
        ("top.so", ("$ORIGIN", "$ORIGIN/torch/lib")),
    ],
)
def test_every_file_finds_torch_lib(path: str, folders: tuple[str, ...]) -> None:
    assert rpath_of(path, ()) == folders


def test_nvidias_wheels_are_looked_for_next_to_torch_first() -> None:
    thirteen = cuda_folders(CATALOG.rpath, "13")
    assert rpath_of("torch/lib/libc10_cuda.so", thirteen)[-2:] == ("$ORIGIN/../../nvidia/cu13/lib", "$ORIGIN")
    assert rpath_of("torch/_C.so", thirteen)[0] == "$ORIGIN/../nvidia/cudnn/lib"
    assert "nvidia/cuda_runtime/lib" in cuda_folders(CATALOG.rpath, "12")
    assert cuda_folders(CATALOG.rpath, "99") == ()


def test_every_requirement_has_a_folder_to_be_found_in_and_every_row_a_project() -> None:
    for row in CATALOG.shared:
        assert not row.cuda or (row.way == "cuda" and row.project)
    for cuda in ("12", "13"):
        names = [name for row in CATALOG.shared if row.cuda == cuda for name in row.files if "*" not in name]
        image = lib("torch/lib/libtorch_cuda.so", *names)
        found = outside({image.real: image}, wanted(cuda))
        asked = [Requirement(text) for text in requirements(found, CATALOG.part, f"{cuda}.0", "x86_64")]
        assert {each.name for each in asked} <= {row.project for row in CATALOG.shared if row.cuda == cuda}
        assert all(str(each.marker) == 'platform_system == "Linux"' for each in asked)


def test_a_requirement_is_of_the_toolkits_version() -> None:
    image = lib("torch/lib/libtorch_cuda.so", "libcublas.so.13")
    found = outside({image.real: image}, wanted("13"))
    (text,) = requirements(found, CATALOG.part, "13.0", "x86_64")
    assert text.startswith("nvidia-cublas==13.")


@each_case(
    ("local", "cuda", "made"),
    [
        (None, "", "2.6.0+git1234567"),
        ("auto", "", "2.6.0+cpu"),
        ("auto", "12.6", "2.6.0+cu126"),
        ("none", "", "2.6.0"),
        ("mine.1", "12.6", "2.6.0+mine.1"),
    ],
)
def test_the_local_part(local: str | None, cuda: str, made: str) -> None:
    assert local_version("2.6.0+git1234567", local, cuda) == made


def test_a_local_part_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="not a local part"):
        local_version("2.6.0", "mine/1", "")


@each_case(
    ("version", "cuda", "says"),
    [
        ("2.6.0+cpu", "12.6", True),
        ("2.6.0+cu126", "", True),
        ("2.6.0+cu126", "12.6", False),
        ("2.6.0+mine", "12.6", False),
        ("2.6.0+cpu", "", False),
    ],
)
def test_a_wrong_label_is_reported(version: str, cuda: str, says: bool) -> None:
    assert bool(mislabelled(version, cuda)) is says


METADATA = """\
Metadata-Version: 2.1
Name: torch
Version: 2.6.0
Requires-Dist: filelock
Requires-Dist: nvidia-cublas-cu12==12.6.4.1; platform_system == "Linux"

Version: a line of the description
"""


def test_metadata_gets_its_version_and_requirements_and_keeps_its_description() -> None:
    new = 'nvidia-cudnn-cu12==9.5; platform_system == "Linux"'
    add = [new, "nvidia-cublas-cu12==1"]
    text = edit_metadata(METADATA, "2.6.0+mine", add, CATALOG.shared, keep=True)
    assert text.count("Version: 2.6.0+mine") == 1
    assert text.endswith("\n\nVersion: a line of the description\n")
    assert text.partition("\n\n")[0].splitlines()[3:] == [
        "Requires-Dist: filelock",
        'Requires-Dist: nvidia-cublas-cu12==12.6.4.1; platform_system == "Linux"',
        f"Requires-Dist: {new}",
    ]


@each_case(
    ("environ", "local", "changed", "version"),
    [
        ({}, None, False, "2.9.0a0+git1234567"),
        ({}, None, True, "2.9.0a0+git1234567.dirty"),
        ({}, "none", True, "2.9.0a0"),
        ({}, "mine.1", False, "2.9.0a0+mine.1"),
        ({"PYTORCH_BUILD_VERSION": "2.9.1", "PYTORCH_BUILD_NUMBER": "1"}, None, False, "2.9.1"),
        ({"PYTORCH_BUILD_VERSION": "2.9.1", "PYTORCH_BUILD_NUMBER": "2"}, "auto", True, "2.9.1.post2"),
    ],
)
def test_a_source_distribution_has_the_version_of_a_build_in_git(
    environ: dict[str, str], local: str | None, changed: bool, version: str
) -> None:
    commit = "1234567" + "0" * 33
    assert source_version("2.9.0a0", commit, environ, local, changed=changed) == version


def test_what_is_no_version_is_no_source_distribution() -> None:
    with pytest.raises(UsageError, match=r"mine\+git1111111") as error:
        source_version("mine", "1" * 40, {}, None, changed=False)
    assert "version.txt" in (error.value.next_step or "")


def test_nvidias_requirements_go_where_nothing_looks_into_those_wheels() -> None:
    text = edit_metadata(METADATA, "2.6.0", [], CATALOG.shared, keep=False)
    assert "nvidia" not in text
    assert "Requires-Dist: filelock" in text


@each_case("line", ["__version__ = '2.6.0'", '__version__: str = "2.6.0"'])
def test_version_py_is_edited_too(line: str) -> None:
    text = edit_version(f"{line}\ndebug = False\n", "2.6.0+mine")
    assert "2.6.0+mine" in text.splitlines()[0]
    assert text.splitlines()[1] == "debug = False"


def test_the_report_says_what_makes_it_smaller() -> None:
    members = [
        Member(name="torch/lib/libtorch_cuda.so", size=9_000, packed=900),
        Member(name="torch/bin/test_api", size=900, packed=90),
    ]
    made = report_size(1000, members, CATALOG.smaller, CATALOG.index_limit, cuda=True, debug=5)
    assert [each.name for each in made.largest] == ["torch/lib/libtorch_cuda.so", "torch/bin/test_api"]
    assert ["debug information" in made.advice[0], "BUILD_TEST=0" in made.advice[1]] == [True, True]
    assert "--arch" in made.advice[2]
    without = report_size(1000, members, CATALOG.smaller, CATALOG.index_limit, cuda=False)
    assert len(without.advice) == 1
    assert made.too_large_for == ()
    large = report_size(200 << 20, members, (), CATALOG.index_limit, cuda=False)
    assert large.too_large_for == ("PyPI, unless it was asked for more",)


# ---------------- conda


def conda(version: str = "2.9.1", **changes: Any) -> CondaPackage:
    values: dict[str, Any] = {
        "version": version,
        "cuda": "",
        "tags": ("cp312", "cp312"),
        "machine": "x86_64",
        "platform": "manylinux_2_28_x86_64",
        "requires": (),
        "rows": CATALOG.conda_name,
    }
    return conda_package(**{**values, **changes})


@each_case(
    ("version", "cuda", "build"),
    [
        ("2.9.1", "", "cpu_py312_0"),
        ("2.9.1+cpu", "", "cpu_py312_0"),
        ("2.9.1+cu126", "12.6", "cuda126_py312_0"),
        ("2.9.1+mine-1", "12.6", "cuda126_py312_mine.1_0"),
        ("2.14.0a0+gitabc1234", "", "cpu_py312_gitabc1234_0"),
    ],
)
def test_the_local_part_stands_in_condas_build_string(version: str, cuda: str, build: str) -> None:
    made = conda(version, cuda=cuda)
    assert (made.build, made.version) == (build, version.partition("+")[0])


def test_conda_gets_the_requirements_of_the_wheel() -> None:
    """Markers are evaluated for the target, names are conda-forge's, what conda cannot express is named."""
    requires = (
        "typing-extensions>=4.10.0",
        'colorama; platform_system == "Windows"',
        'setuptools<82; python_version >= "3.12"',
        'opt-einsum>=3.3; extra == "opt-einsum"',
        "own @ https://example.org/own.whl",
        "fsspec[http]",
    )
    made = conda(cuda="12.6", requires=requires)
    assert made.depends == (
        "python >=3.12,<3.13.0a0",
        "python_abi 3.12.* *_cp312",
        "__glibc >=2.28,<3.0a0",
        "__cuda >=12",
        "setuptools <82",
        "typing_extensions >=4.10.0",
    )
    assert made.left_out == ("own @ https://example.org/own.whl", "fsspec[http]")
    assert "colorama" in conda(platform="win_amd64", requires=requires).depends
    assert made.name != "pytorch"


@each_case(
    ("machine", "platform", "subdir"),
    [
        ("x86_64", "manylinux_2_28_x86_64", "linux-64"),
        ("aarch64", "manylinux_2_28_aarch64", "linux-aarch64"),
        ("x86_64", "win_amd64", "win-64"),
        ("aarch64", "win_arm64", "win-arm64"),
    ],
)
def test_the_folder_of_a_channel(machine: str, platform: str, subdir: str) -> None:
    assert conda(machine=machine, platform=platform).subdir == subdir


def test_free_threaded_and_abi3() -> None:
    assert "python_abi 3.13.* *_cp313t" in conda(tags=("cp313", "cp313t")).depends
    with pytest.raises(UsageError, match="one version of CPython"):
        conda(tags=("cp39", "abi3"))

"""Keys and variables that an untrusted settings file may set."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.plan.settings import check_settings
from torchbuild_tasks.plan.trust import check_trust, is_harmless_variable, withhold, without_given

CATALOG = load_catalog()


def keys(data: dict[str, Any]) -> list[str]:
    return [each.key for each in withhold(check_settings("/src/torchbuild.toml", data, {}), CATALOG)[1]]


HARMLESS = {
    "python": "3.12",
    "cuda": True,
    "cuda-toolkit": "pypi:13.0",
    "arch": "8.6;9.0+PTX",
    "preset": "minimal",
    "jobs": 4,
    "cache": "sccache",
    "linker": "mold",
    "torch": "release/2.9",
    "patch-dir": "my/patches",
    "source": "/home/me/pytorch",
    "with": ["torchvision"],
    "with-helper": ["mkl"],
    "set": {"USE_MKLDNN": 0, "CXXFLAGS": "-O2 -march=native -fno-omit-frame-pointer", "FORCE_CUDA": "1"},
    "builds": {"debug": {"build-type": "Debug", "ref": "v2.9.1", "folder": "debug"}},
}


def test_a_file_of_plain_values_needs_no_trust() -> None:
    settings = check_settings("/src/torchbuild.toml", HARMLESS, {})
    assert withhold(settings, CATALOG) == (settings, ())


@each_case(
    ("key", "value"),
    [
        *(("python", value) for value in ("x/evil", "/abs/evil", "python-of-mine", "..\\evil.cmd")),
        *(("cuda-toolkit", value) for value in ("./tk", "/opt/cuda", "C:tk")),
        *(("cache", value) for value in ("redis://host", "http://host")),
        *(("patch-dir", value) for value in ("../other", "/other", "~/x", "C:\\x")),
        *(("torch", value) for value in ("--upload-pack=x", "-x")),
        *(("source", value) for value in ("-x", "//host/x", "\\\\host\\x", "/\\host/x")),
        ("linker", "x/ld"),
        ("notify", "x/evil"),
        ("url", "https://host/x"),
        ("mirror", "https://host"),
        ("distribute", "host"),
        ("wheels", "wheels"),
        ("patch-dir", "../x"),
        ("cache-dir", "/tmp/x"),
        ("with", ["torchvision=../x"]),
        ("with", ["torchvision=https://host/x@main"]),
        ("toolset", "x/evil"),
    ],
)
def test_a_key_that_names_a_program_a_server_or_an_outside_place_is_withheld(key: str, value: object) -> None:
    assert keys({key: value}) == [key]
    assert keys({"builds": {"one": {key: value}}}) == [f"builds.one.{key}"]
    clean, _ = withhold(check_settings("/src/torchbuild.toml", {key: value, "jobs": 2}, {}), CATALOG)
    assert dict(clean.values) == {"jobs": 2}


def test_tables_that_name_servers_are_withheld() -> None:
    row = {
        "name": "x",
        "version": "1",
        "os": "linux",
        "needed": "asked",
        "unpack": "zip",
        "source": "a",
        "urls": ["https://host/x.zip"],
        "check": ["bin/x"],
    }
    data = {"helper": [row], "mirrors": {"https://github.com/": "https://host/"}}
    clean, withheld = withhold(check_settings("/src/torchbuild.toml", data, {}), CATALOG)
    assert len(withheld) == 2
    assert (clean.helpers, clean.mirrors) == ((), ())


PLAIN = ("jobs", "cache_size", "source")


def test_every_key_of_the_file_is_looked_at() -> None:
    """A new flag is withheld until it is listed as harmless."""
    fields = [field for field in dataclasses.fields(BuildRequest) if field.metadata["in_file"]]
    for field in fields:
        if field.default is None and not field.metadata["choices"] and field.name not in PLAIN:
            assert keys({field.name: "../../evil://x"}) == [flag_name(field.name)[2:]]


@each_case(
    "name",
    [
        *(
            "LD_PRELOAD",
            "PYTHONSTARTUP",
            "PYTHONPATH",
            "BASH_ENV",
            "ENV",
            "PATH",
            "GIT_SSH",
            "GIT_CONFIG_COUNT",
        ),
        *(
            "CC",
            "CXX",
            "CUDACXX",
            "CMAKE_CXX_COMPILER",
            "CMAKE_CXX_COMPILER_LAUNCHER",
            "CMAKE_TOOLCHAIN_FILE",
        ),
        *("CMAKE_PROJECT_Torch_INCLUDE", "CMAKE_PROJECT_TOP_LEVEL_INCLUDES", "CMAKE_MAKE_PROGRAM", "NINJA"),
        *("OPENSSL_CONF", "OPENSSL_ENGINES", "VK_DRIVER_FILES", "OCL_ICD_FILENAMES", "RSYNC_RSH", "WGETRC"),
        *("CUDA_HOME", "CUDA_NVCC_EXECUTABLE", "PERL5OPT", "NODE_OPTIONS", "RUSTC_WRAPPER", "cxx", "Path"),
        *(
            "CMAKE_PREFIX_PATH",
            "MKLROOT",
            "SCCACHE_REDIS_ENDPOINT",
            "HTTPS_PROXY",
            "PIP_INDEX_URL",
            "MAKEFLAGS",
        ),
        *("CMAKE_C_LINKER_LAUNCHER", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LD_LIBRARY_PATH", "DYLD_X", "CL"),
        *(
            "PYTORCH_EXTRA_INSTALL_REQUIREMENTS",
            "NVCC_PREPEND_FLAGS_",
            "VCToolsInstallDir",
            "SKBUILD_CMAKE_ARGS",
        ),
    ],
)
def test_a_variable_that_makes_something_run_is_no_value(name: str) -> None:
    assert not is_harmless_variable(name, "x", CATALOG)


@each_case(
    ("name", "value", "harmless"),
    [
        ("MAX_JOBS", "4", True),
        ("TORCH_CUDA_ARCH_LIST", "8.6;9.0+PTX", True),
        ("PYTORCH_BUILD_VERSION", "2.9.0+mine", True),
        ("USE_CUDA", "../x", False),
        ("NOTE", "1", False),
        ("FORCE_CUDA", "1", True),
        ("BLAS", "MKL", True),
        ("BLAS", "/x", False),
        ("BLAS", "x\\y", False),
        ("BLAS", "-x", False),
        ("BLAS", "MKL -x", False),
        ("BLAS", "..", False),
        ("TORCH_CUDA_ARCH_LIST", "a" * 5000 + "\n", False),
        ("MAKEFLAGS", "-fevil", False),
        ("SOME_ONES_FLAGS", "-O2", False),
        ("CMAKE_CXX_FLAGS_DEBUG", "-O0", True),
        ("blas", "MKL", False),
        ("PYTHONHASHSEED", "0", True),
        ("CMAKE_GENERATOR", "Ninja", True),
        ("CFLAGS", "-O3 -g -DX=1", True),
        ("CFLAGS", "-fplugin=evil.so", False),
        ("CFLAGS", "-B.", False),
        ("CFLAGS", "-specs=evil", False),
        ("CFLAGS", "-wrapper evil", False),
        ("CFLAGS", "-fuse-ld=evil", False),
        ("CFLAGS", "@file", False),
        ("LDFLAGS", "-Wl,-plugin,x", False),
        ("CFLAGS", "-Xclang -load", False),
        ("CMAKE_ARGS", "-DUSE_X=ON -DBUILD_Y:BOOL=OFF", True),
        ("CMAKE_ARGS", "-DCMAKE_CXX_COMPILER=evil", False),
        ("CMAKE_ARGS", "-P evil.cmake", False),
        ("CMAKE_ARGS", "-DCMAKE_PROJECT_INCLUDE=x", False),
    ],
)
def test_values_of_variables(name: str, value: str, harmless: bool) -> None:
    assert is_harmless_variable(name, value, CATALOG) is harmless


def test_the_finding_names_file_keys_and_command() -> None:
    clean, withheld = withhold(check_settings("/s p/torchbuild.toml", {"python": "x/y"}, {}), CATALOG)
    from torchbuild_tasks.values import replace

    (finding,) = check_trust(replace(clean, withheld={"/s p": withheld}))
    assert finding.status == "error"
    assert "python (names a program)" in finding.text
    assert 'torchbuild trust "/s p".' in finding.fix
    assert finding.fix.endswith("--python …")


def test_what_a_flag_says_instead_needs_no_trust() -> None:
    data = {"cuda-toolkit": "/opt/cuda", "python": "x/y", "set": {"CXX": "/x/g++"}}
    withheld = withhold(check_settings("/s/torchbuild.toml", data, {}), CATALOG)[1]

    def left(**flags: Any) -> set[str]:
        return {each.key for each in without_given(BuildRequest(**flags), withheld)}

    assert left() == {"cuda-toolkit", "python", "set.CXX"}
    assert left(cuda_toolkit="12.8", set=("CXX=g++",)) == {"python"}

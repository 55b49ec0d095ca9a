"""Which saved files start a build."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.build.outputs import patterns, starts_build
from torchbuild_tasks.catalog import load_catalog

OUTPUTS = patterns(load_catalog(), "setuptools").below("build/")


@each_case(
    "path",
    [
        *("aten/src/ATen/add.cpp", "CMakeLists.txt", "version.txt", "torch/nn/modules/linear.py"),
        *("torchbuild.toml", "tools/autograd/derivatives.yaml", "torch/csrc/cuda/a b.cu", "torch/build/x.py"),
    ],
)
def test_sources(path: str) -> None:
    assert starts_build(path, OUTPUTS)


@each_case(
    "path",
    [
        *("build/aten/x.o", "build/CMakeCache.txt", ".git/index", ".torchbuild/lock", "env_set.sh"),
        *("torch/lib/libc10.so", "torch/version.py", "torch/_C.cpython-311-x86_64-linux-gnu.so"),
        *("torch.egg-info/PKG-INFO", "torch/nn/__pycache__/a.cpython-311.pyc", "dist/torch.whl"),
        *("aten/src/ATen/.add.cpp.swp", "aten/add.cpp~", "aten/.#add.cpp", "aten/#add.cpp#", "aten/4913"),
        *("aten/add.cpp___jb_tmp___", ".vscode/settings.json", "aten/e123.TMP", ".goutputstream-AB12"),
        ".env_set.sh.9326.torchbuild-partial",
    ],
)
def test_what_is_none(path: str) -> None:
    assert not starts_build(path, OUTPUTS)

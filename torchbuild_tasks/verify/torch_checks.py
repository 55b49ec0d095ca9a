"""The checks of a torch on the CPU: compare each result with plain Python or with a second result.

`torch_probe.py` loads this file and runs it in the Python that holds the torch, so it
keeps to the standard library and to Python 3.7, and imports nothing of this package.

A check returns its detail and its values (texts). It raises NotPossible when this
machine lacks something, and anything else when torch is wrong.
"""

from __future__ import annotations

import importlib
import itertools
import math
import operator
import os
import random
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Answer = tuple[str, dict[str, str]]


class NotPossible(Exception):
    """The check needs something that this machine lacks; `values` are reported all the same."""


class Wrong(Exception):
    """Torch returned a wrong result; `values` are reported all the same."""


# ---------------------------------------------------------------- numbers to compare with


def numbers(*sizes: int, seed: int = 1) -> Any:
    """Return nested lists of random numbers in [-1, 1], the same at every run."""
    source = random.Random(f"{sizes} {seed}")

    def fill(rest: tuple[int, ...]) -> Any:
        return [fill(rest[1:]) for _ in range(rest[0])] if rest else source.uniform(-1, 1)

    return fill(sizes)


def transpose(matrix: Any) -> Any:
    return [list(column) for column in zip(*matrix)]  # noqa: B905 - Python 3.7 knows no strict


def product(left: Any, right: Any) -> Any:
    """Return the matrix product by its definition, in double precision."""
    return [[math.fsum(map(operator.mul, row, column)) for column in transpose(right)] for row in left]


def convolve(image: Any, kernel: Any, bias: Any, stride: int, padding: int) -> Any:
    """Return the 2-d convolution of one image [channel][y][x] by its definition, in double precision."""
    high = len(image[0])
    wide = len(image[0][0])
    taps = list(itertools.product(range(len(image)), range(len(kernel[0][0])), range(len(kernel[0][0][0]))))

    def at(channel: int, y: int, x: int) -> float:
        return float(image[channel][y][x]) if 0 <= y < high and 0 <= x < wide else 0.0

    def pixel(out: int, y: int, x: int) -> float:
        return float(bias[out]) + math.fsum(kernel[out][c][i][j] * at(c, y + i, x + j) for c, i, j in taps)

    rows = range(-padding, high + padding - len(kernel[0][0]) + 1, stride)
    columns = range(-padding, wide + padding - len(kernel[0][0][0]) + 1, stride)
    return [[[pixel(out, y, x) for x in columns] for y in rows] for out in range(len(kernel))]


def distance_of(seen: Any, wanted: Any) -> float:
    """Return the largest difference between two nestings of numbers; infinite if their shapes differ."""
    if not isinstance(wanted, list):
        distance: float = abs(seen - wanted)
        return math.inf if math.isnan(distance) else distance
    if not isinstance(seen, list) or len(seen) != len(wanted):
        return math.inf
    return max(map(distance_of, seen, wanted), default=0.0)


def compare(what: str, seen: Any, wanted: Any, allowed: float) -> str:
    """Return the distance of a tensor from the expected values; raise Wrong if it exceeds the tolerance."""
    distance = distance_of(seen.tolist(), wanted)
    text = f"{what} off by {distance:.1e}, allowed {allowed:.0e}"
    if not distance <= allowed:
        raise Wrong(text)
    return text


# ---------------------------------------------------------------- the checks


def check_matmul(torch: Any) -> Answer:
    left = numbers(37, 53)
    right = numbers(53, 41)
    wanted = product(left, right)
    details = []
    for name, allowed in (("float32", 2e-5), ("float64", 1e-12)):
        if not hasattr(torch, name):
            continue
        dtype = getattr(torch, name)
        a = torch.tensor(left, dtype=dtype)
        b = torch.tensor(right, dtype=dtype)
        details.append(compare(name, torch.matmul(a, b), wanted, allowed))
        compare(f"{name} @", a @ b, wanted, allowed)
        if hasattr(a, "stride"):  # the same numbers, not contiguous
            a = torch.tensor(transpose(left), dtype=dtype).t()
            spread = [[x for value in row for x in (value, 7.0)] for row in right]
            b = torch.tensor(spread, dtype=dtype)[:, ::2]
            compare(f"{name} with strides", torch.matmul(a, b), wanted, allowed)
    return "; ".join(details), {}


def check_threads(torch: Any) -> Answer:
    before = torch.get_num_threads()
    if before < 1:
        raise Wrong(f"torch.get_num_threads() is {before}")
    a = torch.tensor(numbers(192, 192))
    results = []
    try:
        for count in (1, max(before, 2)):
            torch.set_num_threads(count)
            results.append((torch.matmul(a, a), a + a))
    finally:
        torch.set_num_threads(before)
    details = compare("1 thread and several: matmul", results[1][0], results[0][0].tolist(), 1e-4)
    compare("1 thread and several: addition", results[1][1], results[0][1].tolist(), 0.0)
    return f"{before} threads; {details}", {"threads": str(before)}


def check_autograd(torch: Any) -> Answer:
    x = torch.tensor(numbers(7), dtype=torch.float64, requires_grad=True)
    (x**3 - 2 * x).sum().backward()
    details = compare("polynomial", x.grad, [3 * value**2 - 2 for value in x.tolist()], 1e-12)
    first = numbers(4, 5)
    last = numbers(5, 3)
    source = numbers(6, 4)
    inner, outer = (torch.tensor(side, dtype=torch.float64) for side in (source, last))

    def loss(weights: Any) -> Any:
        return (torch.tanh(inner @ weights) @ outer).pow(2).sum()

    weights = torch.tensor(first, dtype=torch.float64, requires_grad=True)
    loss(weights).backward()
    step = 1e-5 * torch.eye(20, dtype=torch.float64).reshape(20, 4, 5)
    with torch.no_grad():
        slopes = [float(loss(weights + one) - loss(weights - one)) / 2e-5 for one in step]
    return f"{details}; {compare('network', weights.grad.reshape(20), slopes, 1e-7)}", {}


def check_linalg(torch: Any) -> Answer:
    products = linalg_products(torch, "cpu")
    return "; ".join(compare(name, run(), wanted, allowed) for name, run, wanted, allowed in products), {}


def linalg_products(torch: Any, device: str) -> Iterator[tuple[str, Any, Any, float]]:
    """Yield functions that multiply a result of torch.linalg again, each with what comes out of it."""

    def matrix(*sizes: int) -> Any:
        return torch.tensor(numbers(*sizes), dtype=torch.float64)

    def put(tensor: Any) -> Any:
        return tensor if device == "cpu" else tensor.to(device)

    right = matrix(6, 2)
    square = put(matrix(6, 6))
    yield "solve", lambda: square @ torch.linalg.solve(square, put(right)), right.tolist(), 1e-10
    tall = matrix(7, 5)
    even = tall.t() @ tall
    t = put(tall)

    def multiply_svd() -> Any:
        u, s, vh = torch.linalg.svd(t, full_matrices=False)
        return (u * s) @ vh

    def multiply_eigh() -> Any:
        w, v = torch.linalg.eigh(t.t() @ t)
        return (v * w) @ v.t()

    yield "svd", multiply_svd, tall.tolist(), 1e-12
    yield "eigh", multiply_eigh, even.tolist(), 1e-12


def check_conv(torch: Any) -> Answer:
    images = numbers(2, 4, 13, 11)
    kernel = numbers(6, 4, 3, 3)
    bias = numbers(6)
    details = []
    x = torch.tensor(images)
    w = torch.tensor(kernel)
    b = torch.tensor(bias)
    for stride, padding in ((1, 0), (2, 1)):
        wanted = [convolve(image, kernel, bias, stride, padding) for image in images]
        seen = torch.nn.functional.conv2d(x, w, b, stride=stride, padding=padding)
        details.append(compare(f"stride {stride}", seen, wanted, 1e-4))
    return "; ".join(details), {}


def check_save_load(torch: Any) -> Answer:
    state = {"weight": torch.tensor(numbers(5, 3)), "bias": torch.tensor(numbers(5))}
    with tempfile.TemporaryDirectory(dir=os.curdir) as folder:
        path = str(Path(folder, "state.pt"))
        torch.save(state, path)
        try:
            back = torch.load(path, weights_only=True)
        except TypeError:  # before torch 1.13
            back = torch.load(path)
    if hasattr(torch, "nn"):
        model = torch.nn.Linear(3, 5)
        model.load_state_dict(back)
        back = model.state_dict()
    return "; ".join(compare(key, back[key], state[key].tolist(), 0.0) for key in state), {}


def check_numpy(torch: Any) -> Answer:
    try:
        numpy = importlib.import_module("numpy")
    except ImportError as error:
        raise NotPossible(f"numpy cannot be imported by this Python: {error}") from error
    array = numpy.array(numbers(4), dtype="float64")
    try:
        tensor = torch.from_numpy(array)
    except RuntimeError as error:
        if "without NumPy" in str(error):
            raise NotPossible(str(error), {"built_with": "OFF"}) from error
        raise
    array[1] = 5.0
    tensor.numpy()[2] = 6.0
    details = compare("shared memory", tensor, array.tolist(), 0.0)
    compare("shared memory", tensor, [*numbers(4)[:1], 5.0, 6.0, *numbers(4)[3:]], 0.0)
    return f"{details}, numpy {numpy.__version__}", {"built_with": "ON", "numpy": numpy.__version__}


def check_cpp_extension(torch: Any) -> Answer:
    compiler = os.environ.get("CXX") or ("cl" if os.name == "nt" else "c++")
    headers = Path(sysconfig.get_paths()["include"], "Python.h")
    if not shutil.which(compiler) and not shutil.which(compiler.split()[0]):
        raise NotPossible(f"no C++ compiler: {compiler} is not on PATH")
    if not shutil.which("ninja"):
        raise NotPossible("ninja is not on PATH")
    if not headers.exists():
        raise NotPossible(f"the headers of this Python are not installed: no {headers}")
    source = "torch::Tensor scaled(torch::Tensor x, double by) { return x * by; }"
    extension = extension_builder().load_inline(
        name="torchbuild_extension",
        cpp_sources=[source],
        functions=["scaled"],
        extra_cflags=["/Od" if os.name == "nt" else "-O0"],
        build_directory=tempfile.mkdtemp(dir=str(Path.cwd())),
        with_cuda=False,
    )
    x = torch.tensor(numbers(5))
    return compare(f"built with {compiler}: result", extension.scaled(x, 3.0), (x * 3.0).tolist(), 1e-6), {}


CONSUMER = """cmake_minimum_required(VERSION 3.13)
project(consumer CXX)
find_package(Torch REQUIRED)
add_executable(consumer main.cpp)
target_link_libraries(consumer ${TORCH_LIBRARIES})
target_compile_features(consumer PRIVATE cxx_std_%s)
"""
CALLS = """#include <ATen/ATen.h>
#include <cstdio>
int main() {
  at::Tensor x = at::ones({2, 3}) * 2.0;
  std::printf("sum %.1f\\n", x.sum().item<double>());
}
"""


def check_cmake_consumer(torch: Any) -> Answer:
    """Build a program by find_package(Torch), as C++ users of torch do, and run it."""
    cmake = shutil.which("cmake")
    ninja = shutil.which("ninja")
    compiler = os.environ.get("CXX") or ("cl" if os.name == "nt" else "c++")
    for name, program in (("cmake", cmake), ("ninja", ninja), (compiler, shutil.which(compiler.split()[0]))):
        if not program:
            raise NotPossible(f"{name} is not on PATH")
    if getattr(torch.version, "cuda", None) and not (os.environ.get("CUDA_HOME") or shutil.which("nvcc")):
        raise NotPossible("find_package(Torch) of a CUDA torch needs a CUDA toolkit, and none is on PATH")
    own_toolkit = os.environ.get("CUDA_HOME") or not getattr(torch.version, "cuda", None)
    package = Path(torch.__file__).parent
    config = Path(getattr(torch.utils, "cmake_prefix_path", "") or package / "share" / "cmake")
    if not (config / "Torch" / "TorchConfig.cmake").exists():
        raise Wrong(f"no TorchConfig.cmake in {config / 'Torch'}")
    try:
        return f"built by CMake with {compiler}: {consume(str(cmake), config, package)}", {}
    except Wrong as error:
        if own_toolkit or "cannot find the CUDA" not in str(error):  # cmake/Caffe2Config.cmake.in, since 1.0
            raise
        nvcc = shutil.which("nvcc")
        raise NotPossible(f"find_package(Torch) of a CUDA torch finds no whole toolkit at {nvcc}") from None


def consume(cmake: str, config: Path, package: Path) -> str:
    """Configure, build and run the program; return what it printed."""
    folder = Path(tempfile.mkdtemp(dir=str(Path.cwd())))
    words = (config / "Torch" / "TorchConfig.cmake").read_text(errors="replace")
    standard = re.search(r"CXX_STANDARD (\d\d)", words)
    (folder / "CMakeLists.txt").write_text(CONSUMER % (standard.group(1) if standard else "17"))
    (folder / "main.cpp").write_text(CALLS)
    build = folder / "build"
    run([cmake, "-S", str(folder), "-B", str(build), "-GNinja", f"-DCMAKE_PREFIX_PATH={config}"], "configure")
    run([cmake, "--build", str(build)], "build")
    env = {**os.environ, "PATH": os.pathsep.join([str(package / "lib"), os.environ.get("PATH", os.defpath)])}
    program = build / ("consumer.exe" if os.name == "nt" else "consumer")
    printed = run([str(program)], "run", env)
    if printed.strip() != "sum 12.0":
        raise Wrong(f"the program printed {printed!r} and not 'sum 12.0'")
    return printed.strip()


def run(argv: list[str], what: str, env: dict[str, str] | None = None) -> str:
    """Return a program's output; raise Wrong with its last lines if it fails."""
    try:
        result = subprocess.run(  # noqa: TID251 - this file runs in the Python of torch
            argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=500
        )
    except subprocess.TimeoutExpired:
        raise NotPossible(f"{what} took longer than 500 seconds") from None
    if result.returncode:
        lines = result.stdout.strip().splitlines()
        raise Wrong(f"{what} ended with {result.returncode}:\n" + "\n".join(lines[-15:]))
    return result.stdout


def extension_builder() -> Any:
    try:
        return importlib.import_module("torch.utils.cpp_extension")
    except ModuleNotFoundError as error:  # setuptools, packaging: optional for torch itself
        if str(error.name).startswith("torch"):
            raise
        raise NotPossible(f"torch.utils.cpp_extension needs {error.name}, which is not installed") from error

"""Write data/torch_names.tsv again: the modules, names and headers of torch that came or went with a release.

    pip download --no-deps --platform macosx_11_0_arm64 --only-binary :all: -d WHEELS torch==2.6.0 ...
    python bin/read_torch_names.py WHEELS

The wheels for macOS are small and have the same Python files and headers, those of CUDA's own parts left
out: what is missing in all of them is not known. Headers that only a build with CUDA generates are no news.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from packaging.version import Version

DATA: Final = Path(__file__).parents[1] / "torchbuild_tasks/data/torch_names.tsv"
HEAD: Final = """\
# What came or went with a release of torch: a module (torch.func), a name in one (torch.nn:RMSNorm) or a
# header, then the first and the last series that has it, of {releases}; "" is before or after these.
# Written by bin/read_torch_names.py.
"""
# Whose names others hardly import: what is private, with some that are, and what is large and of one use.
_INNER: Final = re.compile(
    r".*\._(?!C\b|utils\b|pytree\b)|torchgen|torch\.(?:testing|quantization|package|jit\.|return_types|mtia|fx\.passes"
    r"|onnx\.(?:symbolic|verification|utils)|ao\.|fx\.experimental|utils\.(?:benchmark|viz|hipify|data\.datapipes)"
    r"|distributed\.(?:elastic|pipelin|rpc|checkpoint\.))"
)


def list_modules(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the modules among a wheel's files, each with its file."""
    for name in names:
        if name.startswith(("torch/", "functorch/", "torchgen/")) and name.endswith((".py", ".pyi")):
            parts = name.rpartition(".")[0].split("/")
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), name


def list_names(text: str) -> Iterator[str]:
    """Yield what a module has at its top: functions, classes, values and what it imports from others."""
    body = list(ast.parse(text).body)
    while body:
        node = body.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Assign(targets=targets):
                yield from (each.id for each in targets if isinstance(each, ast.Name))
                if any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
                    yield from (
                        each.value
                        for each in ast.walk(node.value)
                        if isinstance(each, ast.Constant) and isinstance(each.value, str)
                    )
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.ImportFrom(module=module, level=level) if level or str(module).startswith("torch"):
                yield from (each.asname or each.name for each in node.names)
            case ast.If() | ast.Try():
                body.extend((*node.body, *node.orelse, *getattr(node, "finalbody", ())))
                body.extend(inner for handler in getattr(node, "handlers", ()) for inner in handler.body)
            case _:
                pass


def read_wheel(path: Path) -> set[str]:
    """Return the modules, names and headers of a wheel."""
    seen: set[str] = set()
    with zipfile.ZipFile(path) as wheel:
        for module, name in list_modules(wheel.namelist()):
            seen.add(module)
            if _INNER.match(module):
                continue
            seen.update(
                f"{module}:{each}"
                for each in list_names(wheel.read(name).decode("utf-8", "replace"))
                if re.fullmatch(r"[A-Za-z]\w*", each)
            )
        headers = (
            name.removeprefix("torch/include/")
            for name in wheel.namelist()
            if name.startswith("torch/include/")
        )
        seen.update(
            name.removeprefix("torch/csrc/api/include/")
            for name in headers
            if re.match(r"(?:ATen|c10|torch|caffe2)/.*\.(?:h|cuh|hpp)$", name)
            and not re.match(r"ATen/ops/|.*/(?:CUDAConfig|cuda_cmake_macros)\.h$", name)
        )
    return seen


def main() -> None:
    """Write the table."""
    wheels = {Version(path.name.split("-")[1]): path for path in Path(sys.argv[1]).glob("torch-*.whl")}
    releases = sorted(wheels)
    had = {release: read_wheel(wheels[release]) for release in releases}
    short = {release: f"{release.major}.{release.minor}" for release in releases}
    lines = []
    for name in sorted(set().union(*had.values())):
        at = [release for release in releases if name in had[release]]
        first = "" if at[0] == releases[0] else short[at[0]]
        last = "" if at[-1] == releases[-1] else short[at[-1]]
        if first or last:
            lines.append(f"{name}\t{first}\t{last}".rstrip("\t"))
    lines = [line for line in lines if not is_told(line, set(lines))]
    DATA.write_text(
        HEAD.format(releases=f"{releases[0]} to {releases[-1]}") + "\n".join(lines) + "\n", "utf-8"
    )


def is_told(line: str, lines: set[str]) -> bool:
    """Say whether the module of a name, or the package of a module, came and went with it."""
    name, _, at = line.partition("\t")
    above = name.rpartition(":")[0] or (name.rpartition(".")[0] if "/" not in name else "")
    return bool(above) and f"{above}\t{at}" in lines


if __name__ == "__main__":
    main()

"""Write data/torch_names.tsv again: the modules, names and headers of torch that came or went with a release.

    pip download --no-deps --platform macosx_11_0_arm64 --only-binary :all: -d WHEELS torch==2.6.0 ...
    python bin/read_torch_names.py WHEELS

The wheels for macOS (before 1.9 those of macosx_10_9_x86_64) are small and have the same Python files and
headers, those of CUDA's own parts left out: what is missing in all of them is not known. Headers that only a
build with CUDA generates are no news.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from packaging.version import Version

DATA: Final = Path(__file__).parents[1] / "torchbuild_tasks/data/torch_names.tsv"
HEAD: Final = """\
# What came or went with a release of torch: a module (torch.func), a name in one (torch.nn:RMSNorm), a
# header, or a name that headers declare (::symeig), then the first and the last series that has it, of
# {releases} (what headers declare of 1.4.0 and newer); "" is before or after these.
# The fourth column is the header for CUDA that declares a name from 1.13 on.
# Written by bin/read_torch_names.py.
"""
# Whose names others hardly import: what is private, with some that are, and what is large and of one use.
_INNER: Final = re.compile(
    r".*\._(?!C\b|utils\b|pytree\b)|torchgen|torch\.(?:testing|quantization|package|jit\.|return_types|mtia|fx\.passes"
    r"|onnx\.(?:symbolic|verification|utils)|ao\.|fx\.experimental|utils\.(?:benchmark|viz|hipify|data\.datapipes)"
    r"|distributed\.(?:elastic|pipelin|rpc|checkpoint\.))"
)

_OF_PYTHON: Final = Version("1.8")  # names of Python are of this series and newer
# Headers whose names other sources use, and those of them that only other headers use.
_OF_OTHERS: Final = re.compile(
    r"torch/include/(?:torch/csrc/api/include/)?(?:ATen/(?:core/|cuda/|cpu/|ops/)?[\w-]+\.h$|c10/"
    r"|torch/(?:[a-z]+\.h$|nn/|data/|optim/|csrc/(?:utils|autograd)/[a-z_]+\.h$|csrc/\w+\.h$))"
)
_OF_THEIR_OWN: Final = re.compile(
    r"ATen/ops/\w+_(?:native|dispatch|ops|meta)\.h|/(?:impl|detail|internal)/"
    r"|ATen/(?:Redispatch|Native\w*|Operators|\w*Functions_inl)\.h"
)
# Headers of which a source includes those for CUDA by itself: torch/extension.h brings the others.
_INCLUDED: Final = re.compile(r"torch/include/((?:ATen|ATen/cuda|c10/(?:cuda|util|core|macros))/[\w-]+\.h)$")
_PLACED: Final = re.compile(r"(?:AT|C10|TORCH)_[A-Z0-9_]+")
_PLACED_OF_CUDA: Final = re.compile(r"[A-Z]\w+|\w*CUDA\w*")
_PLACES_SINCE: Final = Version("1.13")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w{3,}")
# Macros, types and functions.
_DECLARED: Final = re.compile(
    r"#\s*define\s+([A-Z]\w{3,})"
    r"|\b(?:class|struct|enum class|enum|union)\s+(?:[A-Z0-9_]+_API\s+|alignas\(\w+\)\s*)?"
    r"([A-Za-z]\w{3,})\s*(?:final\s*)?[:{]"
    r"|\busing\s+([A-Za-z]\w{3,})\s*="
    r"|^[^#\n(=;]*?[\w>&*]\s[*&]?([A-Za-z]\w{3,})\s*\(",
    re.MULTILINE,
)
_GENERATED: Final = re.compile(
    r".*(?:_generated_plumbing|_outf|_strong_compilation_ref|_(?:INC|H|H_))$|_?Py[A-Z]"
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


def read_headers(path: Path) -> tuple[set[str], set[str]]:
    """Return the identifiers of a wheel's headers, and those of them that they declare for others."""
    seen: set[str] = set()
    declared: set[str] = set()
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if not re.match(r"torch/include/.*\.(?:h|cuh|hpp)$", name):
                continue
            text = _COMMENT.sub(" ", wheel.read(name).decode("utf-8", "replace"))
            seen.update(f"::{each}" for each in _IDENTIFIER.findall(text))
            if _OF_OTHERS.match(name) and not _OF_THEIR_OWN.search(name):
                found = (each for groups in _DECLARED.findall(text) for each in groups if each)
                declared.update(f"::{each}" for each in found if not _GENERATED.match(each))
    return seen, declared


def read_places(path: Path) -> dict[str, set[str]]:
    """Return the headers of a wheel that declare each name, of those that are included for it."""
    places: dict[str, set[str]] = {}
    with zipfile.ZipFile(path) as wheel:
        headers = [(name, found[1]) for name in wheel.namelist() if (found := _INCLUDED.match(name))]
        for name, header in headers:
            text = _COMMENT.sub(" ", wheel.read(name).decode("utf-8", "replace"))
            for each in (each for groups in _DECLARED.findall(text) for each in groups if each):
                form = _PLACED_OF_CUDA if "/cuda/" in header else _PLACED
                if form.fullmatch(each) and not _GENERATED.match(each):
                    places.setdefault(each, set()).add(header)
    return places


def list_places(wheels: Iterable[Path], news: Iterable[str]) -> Iterator[str]:
    """Yield these lines with the header that alone declares a name in all wheels, and those of more names."""
    first, *others = (read_places(path) for path in wheels)
    placed = {
        f"::{name}": min(headers)
        for name, headers in first.items()
        if len(headers) == 1
        and "/cuda/" in min(headers)
        and all(other.get(name) == headers for other in others)
    }
    for line in news:
        name, since, last = [*line.split("\t"), ""][:3]
        yield line if last or name not in placed else f"{name}\t{since}\t\t{placed.pop(name)}"
    yield from (f"{name}\t\t\t{header}" for name, header in placed.items())


def list_news(had: Mapping[Version, set[str]], names: Iterable[str]) -> Iterator[str]:
    """Yield the line of each of these names that came or went; of one that also came back there is none."""
    releases = sorted(had)
    short = {release: f"{release.major}.{release.minor}" for release in releases}
    for name in sorted(names):
        at = [index for index, release in enumerate(releases) if name in had[release]]
        first = "" if at[0] == 0 else short[releases[at[0]]]
        last = "" if at[-1] == len(releases) - 1 else short[releases[at[-1]]]
        if (first or last) and (not name.startswith("::") or len(at) == at[-1] - at[0] + 1):
            yield f"{name}\t{first}\t{last}".rstrip("\t")


def main() -> None:
    """Write the table."""
    wheels = {Version(path.name.split("-")[1]): path for path in Path(sys.argv[1]).glob("torch-*.whl")}
    had = {release: read_wheel(path) for release, path in wheels.items() if release >= _OF_PYTHON}
    headers = {release: read_headers(path) for release, path in wheels.items()}
    declared = set[str]().union(*(names for _, names in headers.values()))
    lines = list(list_news({release: seen for release, (seen, _) in headers.items()}, declared))
    newer = (path for release, path in wheels.items() if release >= _PLACES_SINCE)
    lines = [
        *sorted(list_places(newer, lines)),
        *list_news(had, set().union(*had.values())),
    ]
    lines = [line for line in lines if not is_told(line, set(lines))]
    DATA.write_text(HEAD.format(releases=f"{min(had)} to {max(had)}") + "\n".join(lines) + "\n", "utf-8")


def is_told(line: str, lines: set[str]) -> bool:
    """Say whether the module of a name, or the package of a module, came and went with it."""
    name, _, at = line.partition("\t")
    above = name.rpartition(":")[0] or (name.rpartition(".")[0] if "/" not in name else "")
    return bool(above) and f"{above}\t{at}" in lines


if __name__ == "__main__":
    main()

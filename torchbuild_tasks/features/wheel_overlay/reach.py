"""Decide which libraries a change is compiled into; the other libraries are taken from the wheel.

Ninja's graph gives the sources of each library. Includes are read from the text of the files: a compiler's
own dependency files exist only for sources that were compiled here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

import msgspec

from torchbuild_tasks.features.wheel_overlay.choose import obstacle
from torchbuild_tasks.model import Finding
from torchbuild_tasks.ninja.build_file import BuildFile, Edge
from torchbuild_tasks.text.words import first_few

HEADERS: Final = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".def")
SOURCES: Final = (".c", ".cc", ".cpp", ".cxx", ".cu", ".S", ".s", ".asm", ".m", ".mm")
_CUDA: Final = ".cu"
_TEST: Final = re.compile(
    r"(?:^|/)(?:tests?|bench\w*)/|[_./](?:test|bench)\.\w+$|\.mm?$"
)  # not part of a wheel for these systems
_OBJECTS: Final = (".o", ".obj")
INCLUDE: Final = re.compile(rb'#[ \t]*include[ \t]*\\?[<"]([^<>"\n]+?)\\?[>"]')


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One library that is in the wheel and in Ninja's graph.

    `files` maps Ninja's outputs to names in the wheel; `sources` are its own and those of the static
    libraries linked into it, relative to the checkout.
    """

    name: str
    files: Mapping[str, str]
    sources: frozenset[str]


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The libraries to compile (`due`), those of the wheel (`kept`), and what rules this out (`findings`)."""

    due: tuple[Part, ...] = ()
    kept: tuple[Part, ...] = ()
    findings: tuple[Finding, ...] = ()


def list_includes(text: bytes) -> tuple[str, ...]:
    """Return the includes in a text, under any condition; also those in strings of a generator."""
    return tuple(dict.fromkeys(word.decode("utf-8", "replace") for word in INCLUDE.findall(text)))


def find_readers(changed: Iterable[str], includes: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Map the changed files, and every file that includes one directly or not, to the changed file.

    An include matches every path that ends with it, so files may be found in excess, but none is missed.

    Args:
        changed: paths relative to the checkout.
        includes: the includes of each file, by its path.
    """
    by_name: dict[str, list[tuple[str, str]]] = {}
    for path, words in includes.items():
        for word in words:
            plain = _normalize(word)
            by_name.setdefault(plain.rpartition("/")[2], []).append((path, plain))
    found = {path: path for path in changed}
    todo = list(found)
    while todo:
        path = todo.pop()
        for reader, word in by_name.get(path.rpartition("/")[2], ()):
            if reader not in found and _matches_include(path, word):
                found[reader] = found[path]
                todo.append(reader)
    return found


def find_included(sources: Iterable[str], includes: Mapping[str, Iterable[str]]) -> set[str]:
    """Return these files and every file of the checkout that they include, directly or not."""
    by_name: dict[str, list[str]] = {}
    for path in includes:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    found = set(sources)
    todo = list(found)
    while todo:
        for word in map(_normalize, includes.get(todo.pop(), ())):
            fitting = by_name.get(word.rpartition("/")[2], ())
            fresh = [path for path in fitting if path not in found and _matches_include(path, word)]
            found.update(fresh)
            todo += fresh
    return found


def _normalize(word: str) -> str:
    """Return a path with / and without . and .., so that its end can be compared."""
    parts: list[str] = []
    for part in word.replace("\\", "/").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _matches_include(path: str, word: str) -> bool:
    """Say whether an include may mean a path: one is the end of the other, since includes can be absolute."""
    return f"/{path}".endswith(f"/{word}") or f"/{word}".endswith(f"/{path}")


def find_parts(
    build_file: BuildFile, members: Iterable[str], place: Callable[[str], str]
) -> tuple[Part, ...]:
    """Return the libraries that are in the graph and in the wheel; each has only its own sources.

    Args:
        members: the names in the wheel.
        place: converts a path of Ninja's into one relative to the checkout.
    """
    names = {member.rpartition("/")[2]: member for member in members}
    producers = {output: edge for edge in build_file.edges for output in edge.outputs}
    linked = [edge for edge in build_file.edges if edge.inputs and edge.inputs[0].endswith(_OBJECTS)]
    files = [{each: names[_name(each)] for each in edge.outputs if _name(each) in names} for edge in linked]
    libraries = [(edge, own) for edge, own in zip(linked, files, strict=True) if own]
    ends = {output for edge, _ in libraries for output in edge.outputs}
    return tuple(
        Part(
            name=_name(edge.outputs[0]),
            files=own,
            sources=frozenset(place(each) for each in _sources(edge, producers, ends)),
        )
        for edge, own in libraries
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _sources(library: Edge, producers: Mapping[str, Edge], ends: Set[str]) -> Iterator[str]:
    """Yield the sources of a library, without those of other libraries; order-only inputs do not count."""
    seen: set[str] = set()
    todo = list(library.inputs[: library.needed])
    while todo:
        path = todo.pop()
        if path in seen or path in ends:
            continue
        seen.add(path)
        edge = producers.get(path)
        if edge is None:
            continue
        if path.endswith(_OBJECTS):  # CUDA's device link makes an object of objects
            yield from (each for each in edge.inputs[: edge.explicit] if not each.endswith(_OBJECTS))
        else:
            todo += edge.inputs[: edge.needed]


def spread_change(
    parts: Sequence[Part],
    changed: Iterable[str],
    readers: Mapping[str, str],
    generators: Collection[str],
    covered: Set[str],
) -> Spread:
    """Return the libraries that a change is compiled into, with findings if these alone cannot be compiled.

    Args:
        readers: from `find_readers`, for these files.
        generators: files that sources are generated from, for libraries that are not known.
        covered: the sources of all parts and the files that they include.
    """
    due = tuple(part for part in parts if not part.sources.isdisjoint(readers))
    compiled = {readers[source] for part in due for source in part.sources if source in readers}
    lost = [path for path in changed if not path.endswith(HEADERS) and path not in compiled]
    findings = []
    if lost:
        findings.append(obstacle(f"no step of this configuration compiles it: {first_few(lost)}"))
    for path, others in _group(readers, [each for each in generators if readers.get(each, each) != each]):
        text = f"{path} is included by what {first_few(others)} generates; of which libraries, is not known"
        findings.append(obstacle(text))
    outside = [path for path in readers if path.endswith(SOURCES) and path not in covered]
    for path, others in _group(readers, [each for each in outside if not _TEST.search(each)]):
        if others != [path]:
            text = f"{path} is included by {first_few(others)}, of which this configuration makes no library"
            findings.append(obstacle(f"{text}, and the wheel may have one"))
    for part in due:
        if kernels := sorted(each for each in part.sources if each.endswith(_CUDA)):
            through = sorted(each for each in part.sources if each in readers)
            by = "" if readers[through[0]] == through[0] else f", by {first_few(through)}"
            text = (
                f"{readers[through[0]]} reaches {part.name}{by}; of its sources {len(kernels)} are CUDA's, "
                "so that it is taken from the wheel as it is, or built with all of torch"
            )
            findings.append(obstacle(text))
    kept = tuple(part for part in parts if part not in due)
    return Spread(due=due, kept=kept, findings=tuple(findings))


def _group(readers: Mapping[str, str], paths: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Group these paths by the changed file that they include."""
    groups: dict[str, list[str]] = {}
    for path in sorted(paths):
        groups.setdefault(readers[path], []).append(path)
    return sorted(groups.items())


def describe_spread(spread: Spread) -> str:
    """Return the line for the user on what is compiled."""
    sources = sum(len(part.sources) for part in spread.due)
    due = ", ".join(sorted(part.name for part in spread.due))
    return f"to compile: {due}, of {sources} sources; {len(spread.kept)} other libraries are the wheel's"


# ---------------- a build file that uses the wheel's libraries


def take_from_wheel(text: str, files: Mapping[str, str], build_dir: str, root: str) -> str:
    """Return build.ninja with these outputs replaced by the wheel's files, without their build statements.

    So Ninja can neither compile nor link them, whatever they depend on.

    Args:
        files: outputs relative to the build tree, mapped to the wheel's files relative to the checkout.
        build_dir: the build tree, as in absolute paths of the file.
    """
    if not files:
        return text
    up = posixpath.relpath(root, build_dir)
    places = {name: f"{up}/{where}" for name, where in files.items()}
    places |= {f"{build_dir}/{name}": f"{root}/{where}" for name, where in files.items()}
    words = sorted(places, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w./+-])(?:{'|'.join(map(re.escape, words))})(?![\w./+-])")
    kept = "".join(each for each in re.split(r"(?m)^(?=\S)", text) if not _writes_one_of(each, files))
    return pattern.sub(lambda match: places[match[0]], kept)


def _writes_one_of(statement: str, files: Collection[str]) -> bool:
    outputs, _, _ = statement.replace("$\n", "").partition(": ")
    words = outputs.split()
    return words[:1] == ["build"] and any(word.replace("\\", "/") in files for word in words[1:])

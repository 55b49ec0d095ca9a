"""Decide what of torch a change reaches: which libraries are compiled again, and which a wheel's serve for.

Ninja's graph says what each library is made of. Who includes a changed file is followed as text, because a
compiler has told that only of what it has compiled here, and the rest is to be left alone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

import msgspec

from torchbuild_tasks.model import Finding
from torchbuild_tasks.ninja.build_file import BuildFile, Edge
from torchbuild_tasks.text.words import first_few

HEADERS: Final = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".def")
SOURCES: Final = (".c", ".cc", ".cpp", ".cxx", ".cu", ".S", ".s", ".asm", ".m", ".mm")
_CUDA: Final = ".cu"
_TEST: Final = re.compile(r"(?:^|/)(?:tests?|bench\w*)/|[_./](?:test|bench)\.\w+$|\.mm?$")  # in no wheel here
_OBJECTS: Final = (".o", ".obj")
INCLUDE: Final = re.compile(rb'#[ \t]*include[ \t]*\\?[<"]([^<>"\n]+?)\\?[>"]')


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One library that a wheel has and Ninja can make: its files there, with their names in the wheel.

    `sources` are those of its own and of what is linked into it, below the checkout.
    """

    name: str
    files: Mapping[str, str]
    sources: frozenset[str]


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How far a change goes: which libraries are `due`, which are `kept`, and what stands against it."""

    due: tuple[Part, ...] = ()
    kept: tuple[Part, ...] = ()
    findings: tuple[Finding, ...] = ()


def list_includes(text: bytes) -> tuple[str, ...]:
    """Return what a file includes, under any condition; also what a generator writes out of a string."""
    return tuple(dict.fromkeys(word.decode("utf-8", "replace") for word in INCLUDE.findall(text)))


def find_readers(changed: Iterable[str], includes: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the changed files and all that include one, over any number of files, with the one that it is.

    An include fits every path that ends with it: one too many may be found, and never one too few.

    Args:
        changed: paths below the checkout.
        includes: by path, the words of its includes.
    """
    by_name: dict[str, list[tuple[str, str]]] = {}
    for path, words in includes.items():
        for word in words:
            plain = _plain(word)
            by_name.setdefault(plain.rpartition("/")[2], []).append((path, plain))
    found = {path: path for path in changed}
    todo = list(found)
    while todo:
        path = todo.pop()
        for reader, word in by_name.get(path.rpartition("/")[2], ()):
            if reader not in found and _ends_alike(path, word):
                found[reader] = found[path]
                todo.append(reader)
    return found


def find_included(sources: Iterable[str], includes: Mapping[str, Iterable[str]]) -> set[str]:
    """Return these files and all that they include of the checkout, over any number of files."""
    by_name: dict[str, list[str]] = {}
    for path in includes:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    found = set(sources)
    todo = list(found)
    while todo:
        for word in map(_plain, includes.get(todo.pop(), ())):
            fitting = by_name.get(word.rpartition("/")[2], ())
            fresh = [path for path in fitting if path not in found and _ends_alike(path, word)]
            found.update(fresh)
            todo += fresh
    return found


def _plain(word: str) -> str:
    """Return a path without . and .., so that its end can be compared."""
    parts: list[str] = []
    for part in word.replace("\\", "/").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _ends_alike(path: str, word: str) -> bool:
    """Say whether the shorter of two paths is the end of the other: an include may be absolute."""
    return f"/{path}".endswith(f"/{word}") or f"/{word}".endswith(f"/{path}")


def find_parts(
    build_file: BuildFile, members: Iterable[str], place: Callable[[str], str]
) -> tuple[Part, ...]:
    """Return the libraries that both have; what one takes from another of them is not its own.

    Args:
        build_file: Ninja's graph of the whole torch.
        members: the names in the wheel.
        place: gives a path of Ninja's as one below the checkout.
    """
    names = {member.rpartition("/")[2]: member for member in members}
    producers = {output: edge for edge in build_file.edges for output in edge.outputs}
    libraries = [
        edge
        for edge in build_file.edges
        if edge.inputs[:1]
        and edge.inputs[0].endswith(_OBJECTS)
        and any(_name(output) in names for output in edge.outputs)
    ]
    ends = {output for edge in libraries for output in edge.outputs}
    return tuple(
        Part(
            name=_name(edge.outputs[0]),
            files={
                output: names[_name(output)]
                for output in dict.fromkeys(edge.outputs)
                if _name(output) in names
            },
            sources=frozenset(place(each) for each in _sources(edge, producers, ends)),
        )
        for edge in libraries
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _sources(library: Edge, producers: Mapping[str, Edge], ends: Set[str]) -> Iterator[str]:
    """Yield the sources of a library, down to other libraries; what only has to be there before is none."""
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
        if path.endswith(_OBJECTS):  # what CUDA's link makes of objects is one, too
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
    """Return which libraries a change reaches, and what speaks against compiling these alone.

    Args:
        parts: of `find_parts`.
        changed: the changed files that are compiled, or included by what is.
        readers: of `find_readers`, for them.
        generators: files that sources are generated from; which library these are of is not known.
        covered: the sources of all parts, and what these include.
    """
    due = tuple(part for part in parts if not part.sources.isdisjoint(readers))
    compiled = {readers[source] for part in due for source in part.sources if source in readers}
    lost = [path for path in changed if not path.endswith(HEADERS) and path not in compiled]
    findings = []
    if lost:
        findings.append(_finding(f"no step of this configuration compiles it: {first_few(lost)}"))
    for path, others in _group(readers, [each for each in generators if readers.get(each, each) != each]):
        text = f"{path} is included by what {first_few(others)} generates; of which libraries, is not known"
        findings.append(_finding(text))
    outside = [path for path in readers if path.endswith(SOURCES) and path not in covered]
    for path, others in _group(readers, [each for each in outside if not _TEST.search(each)]):
        if others != [path]:
            text = f"{path} is included by {first_few(others)}, of which this configuration makes no library"
            findings.append(_finding(f"{text}, and the wheel may have one"))
    for part in due:
        if kernels := sorted(each for each in part.sources if each.endswith(_CUDA)):
            through = sorted(each for each in part.sources if each in readers)
            by = "" if readers[through[0]] == through[0] else f", by {first_few(through)}"
            text = (
                f"{readers[through[0]]} reaches {part.name}{by}; of its sources {len(kernels)} are CUDA's, "
                "so that it is taken from the wheel as it is, or built with all of torch"
            )
            findings.append(_finding(text))
    kept = tuple(part for part in parts if part not in due)
    return Spread(due=due, kept=kept, findings=tuple(findings))


def _group(readers: Mapping[str, str], paths: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return the changed files with those of these paths that read them."""
    groups: dict[str, list[str]] = {}
    for path in sorted(paths):
        groups.setdefault(readers[path], []).append(path)
    return sorted(groups.items())


def _finding(text: str) -> Finding:
    return Finding(id="from-wheel", status="error", text=text)


def describe_spread(spread: Spread) -> str:
    """Return what is compiled, in one line."""
    sources = sum(len(part.sources) for part in spread.due)
    due = ", ".join(sorted(part.name for part in spread.due))
    return f"to compile: {due}, of {sources} sources; {len(spread.kept)} other libraries are the wheel's"


# ---------------- the build file in which what is kept is the wheel's


def take_from_wheel(text: str, files: Mapping[str, str], build_dir: str, root: str) -> str:
    """Return build.ninja with these files as they lie in the checkout, and without the steps that make them.

    So Ninja can neither compile nor link what is kept, whatever it depends on.

    Args:
        text: of build.ninja.
        files: outputs, relative to the build tree, with where the wheel's lies, relative to the checkout.
        build_dir: as absolute paths in the file have it.
        root: the checkout.
    """
    if not files:
        return text
    up = posixpath.relpath(root, build_dir)
    places = {name: f"{up}/{where}" for name, where in files.items()}
    places |= {f"{build_dir}/{name}": f"{root}/{where}" for name, where in files.items()}
    words = sorted(places, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w./+-])(?:{'|'.join(map(re.escape, words))})(?![\w./+-])")
    kept = "".join(each for each in re.split(r"(?m)^(?=\S)", text) if not _makes(each, files))
    return pattern.sub(lambda match: places[match[0]], kept)


def _makes(statement: str, files: Collection[str]) -> bool:
    outputs, _, _ = statement.replace("$\n", "").partition(": ")
    words = outputs.split()
    return words[:1] == ["build"] and any(word.replace("\\", "/") in files for word in words[1:])

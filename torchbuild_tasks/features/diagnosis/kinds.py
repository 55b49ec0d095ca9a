"""Find the kind of an error, from the program that reports it and the form of its message.

`read_kind` takes a block of lines as the scanner found it; `components` looks its subject up.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.diagnosis import KindRow, StdNameRow
from torchbuild_tasks.catalog.failures import LazyPattern, TextIndex
from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.features.diagnosis import patterns
from torchbuild_tasks.features.diagnosis.block import ErrorBlock, Line

QUOTES: Final = str.maketrans(dict.fromkeys("‘’`„«»‹›「」", "'") | dict.fromkeys("“”", '"'))
_LEVELS: Final = ("cause", "general", "consequence")
# The program that reports the error, at the start of the line; the longest names first.
PROGRAM: Final = re.compile(
    r"(?:\S*[/\\])?(nvcc|ptxas|cicc|cudafe\+\+|fatbinary|nvlink|cc1plus|cc1|f951|gfortran|clang\+\+|clang-cl|clang"
    r"|x86_64[\w.-]*?-(?:g\+\+|gcc|ld|as)|aarch64[\w.-]*?-(?:g\+\+|gcc|ld|as)|g\+\+|gcc|c\+\+|cc|collect2|lto1|lto-wrapper"
    r"|ld\.lld|ld\.gold|ld\.bfd|lld-link|ld|mold|gold|as|ar|ranlib|icpx|icx|hipcc|rustc|cargo|protoc|swig|flatc"
    r"|cmake|ninja|g?make|pip|uv|git|patch|auditwheel|delvewheel|twine|sccache|ccache|cl|link|rc|bash|sh|python[\d.]*)"
    r"(?:-[\d.]+)?(?:\.exe)?(?:\[\d+\])?(?: (?:fatal|error))? ?:"
)
_NAMES_ITSELF: Final = re.compile(r"((?:python[\d.]{0,5} -m )?[a-z][\w+-]{1,30}): (?:fatal )?error: ")
_CODED: Final = re.compile(r"\b(?:(LNK\d{4})|(C\d{4}|D[89]0\d\d)|(MSB\d{4})|(NVCC_ERROR))\b")
_DRIVE: Final = 2  # characters of C:, which looks like the name of an exception
# A compiler's error at a line of a file.
COMPILED: Final = re.compile(
    r"(?P<file>(?:[A-Za-z]:)?[^\s:(|'\"][^:|'\"]{0,400}?)(?::\d+(?::\d+)?|\(\d+(?:,\d+){0,3}\))"
    r" ?:? ?(?:fatal |catastrophic )?#?error\b"
)
# A module of CMake's own that looks for a package, and asks pkg-config only as one of its ways.
_OF_CMAKE: Final = re.compile(
    r"Could NOT find .*[/\\]cmake(?:-[\d.]{1,9})?[/\\]Modules[/\\]Find(?!PackageHandle)\w{1,60}\.cmake:\d"
)
_MESON: Final = re.compile(r"\S*meson\.build:\d")
# A header of GCC's own, or of its C++ library; lines of an error in a template that the source instantiates.
_OF_HOST: Final = re.compile(
    r"\S{0,200}(?:/include/c\+\+/|/lib\d*/gcc/[\w.-]{1,40}/)\d|/usr/include/(?:[\w-]{1,40}/)?bits/floatn"
)
# A header of GCC's own, and its line in round brackets: so speaks the front end of nvcc, and not GCC.
_OF_NVCC: Final = re.compile(r"\S{0,200}/lib\d*/gcc/[\w.-]{1,40}/\d\S{0,80}\(\d{1,6}\): error")
_INSTANTIATED: Final = re.compile(r"required (?:from|by)|[Ii]nstantiation|static assertion")
# The frame in which Python starts a program: the file that is missing then is the program.
_EXECUTES: Final = re.compile(r'subprocess\.py", line \d+, in _execute_child')
# None of these names a line of a source before its message.
_NO_COMPILERS: Final = (
    "cmake",
    "crash",
    "git",
    "loader",
    "nccl",
    "network",
    "patch",
    "pip",
    "test",
    "torch",
    "wheel",
)
# What a package may say itself of a part of it that was not loaded.
_OF_UNLOADED: Final = ("missing-feature", "no-kernel", "script-fault")
# The same of what a file of that very package lacks.
_OF_ITS_FILE: Final = ("undefined-symbol", "undefined-at-load")
# A variable of CMake in whose place a path should stand: what find_path or find_library found none for.
_UNFOUND: Final = re.compile(
    r"(?:\S{0,200}/)?(?P<name>([A-Za-z]\w{0,60}?)(?:_(?:INCLUDES?|LIBRAR(?:Y|IES)|LIB|DIRS?|ROOT|HOME|PATH|EXECUTABLE"
    r"|PROGRAM|COMMAND|CORE|RELEASE|DEBUG))*)-NOTFOUND(?:/\S{0,200})?"
)
# What Windows says of a file, although nothing is wrong but the length of its path.
_FILES: Final = ("missing-file", "missing-source", "missing-header", "build-graph")
_PATH_OF_WINDOWS: Final = re.compile(r"(?:['\"“(]|: )([A-Za-z]:[/\\][^'\"”):\n]{1,2000})")
_DEEP: Final = 248  # characters of a path, from which on Windows makes no folder; a file's may have 259
# The start of a line that gives the reason for the line above it.
_GIVES_REASON: Final = re.compile(r"(?:╰─▶ )?(?:[Cc]aused? ?b?y?:(?: |$)|Because )")
# What C++ prints of an exception that nothing caught: its text may be any program's.
_THROWN: Final = re.compile(r"what\(\): +(.+)")
# A call of a script, as a traceback quotes it, and the program that it starts.
_STARTS: Final = re.compile(
    r"(?:subprocess\.|\b)(?:check_output|check_call|run|call|Popen)\(\[?.{0,60}?[\"'/\\]([A-Za-z][\w+.-]{1,30})[\"']"
)
_NAMED: Final[Mapping[str, str]] = {
    "cmake": "CMake",
    "compiler": "the compiler",
    "linker": "the linker",
    "loader": "the loader",
    "python": "Python",
    "driver": "the compiler",
    "test": "the test",
    "system": "the program",
    "crash": "the program",
    "generator": "the generator",
    "command": "the command",
    "as": "the assembler",
}


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of an error: its row, the program that reports it, its line, its pattern's named groups."""

    row: KindRow
    program: str
    line: Line
    groups: Mapping[str, str]

    @property
    def subject(self) -> str:
        """Return what it is about: a header, a symbol, an option ...; "" if it names nothing."""
        return self.groups.get("subject") or self.groups.get("what") or self.groups.get("scope") or ""

    @property
    def looked_up(self) -> str:
        """Return the name that is looked up in the components."""
        return self.groups.get("scope") or self.subject


class KindBook:
    """The kinds with their shapes; `kind_book` reads those of a catalog once."""

    def __init__(self, catalog: Catalog) -> None:
        self._rows = {row.id: row for row in catalog.kind}
        self._shapes = [
            (self._rows[shape.kind], shape, LazyPattern(pattern))
            for shape in catalog.shape
            for pattern in shape.patterns
        ]
        self._index = TextIndex(pattern.texts for *_, pattern in self._shapes)
        self._std = catalog.std_name

    def read_line(self, line: Line, text: str, *, tested: bool = True) -> Kind | None:
        """Return the kind of the first shape that fits; shapes of tests only for a `tested` program."""
        text = " ".join(text.translate(QUOTES).replace("：", ": ").split()).replace(" : ", ": ")
        text = text.replace("nrecognised", "nrecognized")
        compiled = COMPILED.match(text)
        raised = patterns.EXCEPTION_LINE.match(text)
        for row, shape, pattern in map(self._shapes.__getitem__, self._index.find(text)):
            program = shape.program
            if (program == "test" and not tested) or (raised and program == "cmake"):
                continue
            if compiled and program in _NO_COMPILERS:  # the message is of a compiler
                continue
            if match := pattern.search(text):
                if raised and len(raised[0]) > _DRIVE and row.id == "compile-error":
                    continue
                groups = {name: _bare(value) for name, value in match.groupdict().items() if value}
                if shape.std and not (groups := _std_groups(groups, shape.std, self._std)):
                    continue
                if compiled and compiled["file"].endswith(".c") and "std header" in groups:
                    groups["std header"] = f"{groups['std header'].removeprefix('c')}.h"
                if compiled and (row.level == "general" or shape.std):  # the file is looked up
                    groups.setdefault("scope", compiled["file"])
                return Kind(row=row, program=_find_program(text, program), line=line, groups=groups)
        return None

    def replace(self, kind: Kind, name: str, groups: Mapping[str, str]) -> Kind:
        """Return the same error as one of another kind."""
        return msgspec.structs.replace(kind, row=self._rows[name], groups=groups)


def _std_groups(groups: Mapping[str, str], standards: str, rows: Sequence[StdNameRow]) -> dict[str, str]:
    """Return the groups with the header and standard of a name of the C++ library; empty for another name."""
    name = groups["subject"].removeprefix("::").removeprefix("std::")
    qualified = "std" in groups or name != groups["subject"].removeprefix("::")
    row = next((row for row in rows if name in row.names.split() and (row.of_c or qualified)), None)
    if row is None or not admits(standards, str(row.since)):
        return {}
    return {**groups, "std header": row.header, "std since": str(row.since)}


@functools.cache
def kind_book(catalog: Catalog) -> KindBook:
    """Return the kinds of this catalog."""
    return KindBook(catalog)


def _bare(value: str) -> str:
    """Return what a pattern took, without its quotes; those inside, as in `'x' is not a type`, stay."""
    value = value.strip(" :,")
    for quote in "'\"":
        inner = value.strip(quote)
        if quote not in inner:
            value = inner
    return value.strip(" :,")


def _find_program(text: str, program: str) -> str:
    if _MESON.match(text):
        return "Meson"
    text = text.removeprefix("E ")  # as pytest quotes a line
    if named := PROGRAM.match(text) or _NAMES_ITSELF.match(text):
        return named[1]
    if coded := _CODED.search(text):
        return ("link.exe", "cl.exe", "MSBuild", "nvcc")[(coded.lastindex or 1) - 1]
    return _NAMED.get(program, program)


def read_kind(
    block: ErrorBlock, book: KindBook, *, uses_nvcc: bool = False, unloaded: str = ""
) -> Kind | None:
    """Return the kind of a block's error; a consequence of another error counts last.

    Args:
        block: the error.
        book: the kinds.
        uses_nvcc: whether CUDA is compiled, with a host compiler that it may not take.
        unloaded: the package that raised it, where that had warned that something was not loaded, or lacks.
    """
    kind = _read_kind(block, book)
    if kind is None:
        return None
    its_file = kind.row.id in _OF_ITS_FILE and unloaded in kind.line.text
    if unloaded and (kind.row.level == "general" or kind.row.id in _OF_UNLOADED or its_file):
        return book.replace(kind, "not-loaded", kind.groups)
    unread = kind.row.level == "general" or kind.row.id == "missing-intrinsic"
    uses_nvcc = uses_nvcc or _OF_NVCC.match(kind.line.text) is not None
    if unread and uses_nvcc and (header := _header_of_host(block)):
        return book.replace(kind, "host-compiler", header)
    if kind.row.id == "missing-module" and (dotted := _imported(kind.subject, block)):
        return msgspec.structs.replace(kind, groups={**kind.groups, "scope": dotted})
    started = any(_EXECUTES.search(line.text) for line in block.lines)
    if kind.row.id == "missing-file" and (started or PROGRAM.fullmatch(f"{kind.subject}:")):
        return book.replace(kind, "missing-tool", kind.groups)
    if unfound := _UNFOUND.fullmatch(kind.subject):
        return book.replace(kind, "missing-package", {"subject": unfound[2], "unfound": unfound["name"]})
    if deep := _deep_path(kind):
        return book.replace(kind, "path-too-long", {"subject": deep})
    return kind


def _deep_path(kind: Kind) -> str:
    """Return the path that is too long for Windows, of an error that only tells what comes of it."""
    if kind.row.id not in _FILES and kind.row.level != "general":
        return ""
    paths = _PATH_OF_WINDOWS.findall(f"{kind.line.text}\n'{kind.subject}'")
    return next((path for path in paths if len(path.replace("\\\\", "\\")) >= _DEEP), "")


def _imported(package: str, block: ErrorBlock) -> str:
    """Return the part of a missing package that the import asks for: Python names only the first that lacks.

    google is in many packages of PyPI, google.protobuf in one.
    """
    asked = re.compile(rf"\s*(?:from|import) ({re.escape(package)}\.[\w.]+)")
    return next((found[1] for line in reversed(block.lines) if (found := asked.match(line.text))), "")


def _header_of_host(block: ErrorBlock) -> Mapping[str, str]:
    """Return the header of the host compiler or its library that does not compile; none in a template."""
    texts = [line.text.strip() for line in block.lines]
    compiled = next((match for text in texts if (match := COMPILED.match(text))), None)
    own = compiled["file"] if compiled is not None and _OF_HOST.match(compiled["file"]) else ""
    if not own or any(_INSTANTIATED.search(text) for text in texts):
        return {}
    return {"unread" if "/gcc/" in own else "unread std": own.rpartition("/")[2]}


def _read_kind(block: ErrorBlock, book: KindBook) -> Kind | None:
    best: Kind | None = None
    tested = _is_tested(block)
    for line, text in _list_statements(block):
        kind = book.read_line(line, text, tested=tested)
        if kind is None:
            continue
        if kind.row.level == "cause":
            return kind if kind.subject or kind.row.look != "tool" else _with_program(kind, block)
        if best is None or _LEVELS.index(kind.row.level) < _LEVELS.index(best.row.level):
            best = kind
    return best


def _with_program(kind: Kind, block: ErrorBlock) -> Kind:
    """Return a missing tool with its name, which only the source lines of the traceback have."""
    started = [name for line in block.lines for name in _STARTS.findall(line.text)]
    return msgspec.structs.replace(kind, groups={**kind.groups, "subject": started[-1]}) if started else kind


def _is_tested(block: ErrorBlock) -> bool:
    """Return whether a failed assertion is that of a test, and not of a script that the build runs."""
    return not block.lines[0].text.startswith("FAILED: ") or any("test" in line.text for line in block.lines)


def _list_statements(block: ErrorBlock) -> Iterator[tuple[Line, str]]:
    """Yield the messages of a block, the likeliest first: its error, a paragraph, later and earlier lines."""
    own = block.error
    messages = [line for line in block.lines if line is own or _is_own_message(line.text.strip())]
    at = next((index for index, line in enumerate(messages) if line is block.error), len(messages))
    after, before = messages[at + 1 :], messages[:at]
    paragraph = " ".join(line.text.strip() for line in (block.error, *after))
    if _OF_CMAKE.search(paragraph) is None:
        yield from ((line, line.text.strip()) for line in before if patterns.REASON.match(line.text.strip()))
    if block.kind == "cmake" or (after and _GIVES_REASON.match(after[0].text.strip())):
        yield block.error, paragraph
    if thrown := _THROWN.match(block.error.text.strip()):
        yield block.error, thrown[1]
    yield block.error, block.error.text.strip()
    if block.kind in ("python", "words"):
        yield block.error, paragraph
    yield from ((line, line.text.strip()) for line in _order_lines(block, after, before))


def _is_own_message(text: str) -> bool:
    """Return whether a line is a message, no consequence of another error and no status line of CMake."""
    reason = patterns.REASON.match(text) is not None
    return is_message(text) and (reason or not text.startswith(("ninja: error: ", "-- ")))


def _order_lines(block: ErrorBlock, after: Sequence[Line], before: Sequence[Line]) -> Sequence[Line]:
    return (*reversed(before), *after) if block.weak else (*after, *reversed(before))


def is_message(text: str) -> bool:
    """Return whether a line of a block is a message: no command, warning or quoted source."""
    return not (patterns.is_command(text) or patterns.is_harmless(text) or patterns.WARNED.search(text))

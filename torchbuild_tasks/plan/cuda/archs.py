"""Choose the GPU architectures to compile for: those asked for, else those of the GPUs that are here.

Each one more makes every kernel file cost more, and one that is missing shows only when
torch runs ("no kernel image"), so both directions are checked before anything is built.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.cuda import FamilyRow
from torchbuild_tasks.catalog.match import admits, applies
from torchbuild_tasks.model import Choice, Source
from torchbuild_tasks.plan.cuda.devices import served_devices, visible_devices
from torchbuild_tasks.plan.cuda.toolkit import cuda_row
from torchbuild_tasks.plan.cuda.values import Arch, Capability, ChosenArchs, ChosenToolkit, Device
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.words import did_you_mean
from torchbuild_tasks.values import replace

NAME = "TORCH_CUDA_ARCH_LIST"
# What each further architecture adds to the cost of compiling a kernel file for one:
# `python -m benchmarks archs`, see docs/speed.md.
COST = 0.4
WORDS = ("auto", "native", "common", "all")  # what else may stand for a list
_SHORT = re.compile(r"(?:sm_|compute_)?(\d{1,3})([af]?)")  # nvcc's spelling, or no minor number
_ENTRY = re.compile(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?", re.IGNORECASE)


class UnknownArch(ValueError):
    """A word that is not an entry of an architecture list; the text proposes the nearest."""


@functools.lru_cache(maxsize=4096)
def capability(text: str) -> Capability:
    """Read "8.6" or "9.0a".

    Raises:
        UnknownArch: it is not a capability.
    """
    entry = _ENTRY.fullmatch(text.strip())
    if entry is None or entry[4]:
        raise UnknownArch(f"{text!r} is not a compute capability")
    return Capability(int(entry[1]), int(entry[2]), entry[3].lower())


def read_archs(question: Question, text: str) -> tuple[Arch, ...]:
    """Read a list: names of families are expanded, each capability stands once, in numeric order.

    Raises:
        UnknownArch: a word is neither a number nor a family that a row names.
    """
    words = [word for word in re.split(r"[;,\s]+", text) if word]
    if not words:
        raise UnknownArch("the list of architectures is empty")
    if re.fullmatch(r"\d{1,2},\d", text.strip()):
        raise UnknownArch(f"a comma is between two architectures; write {text.strip().replace(',', '.')}")
    return sort_archs(arch for word in words for arch in _meaning(question, word))


def sort_archs(archs: Iterable[Arch]) -> tuple[Arch, ...]:
    """Return each capability once, +PTX where any entry says it, in numeric order."""
    ptx: dict[Capability, bool] = {}
    for arch in archs:
        ptx[arch.capability] = ptx.get(arch.capability, False) or arch.ptx
    return tuple(Arch(capability=each, ptx=ptx[each]) for each in sorted(ptx))


def arch_list(archs: Sequence[Arch]) -> str:
    """Return the list as TORCH_CUDA_ARCH_LIST has it."""
    return ";".join(map(str, archs))


def families(question: Question) -> tuple[FamilyRow, ...]:
    """Return the names that the torch of the checkout knows; else, all of them."""
    here = ("", question.facts.host.arch)
    known = (row for row in question.catalog.family if row.arch in here)
    return tuple(row for row in known if applies(row.torch, question.version))


def _meaning(question: Question, word: str) -> tuple[Arch, ...]:
    if entry := _ENTRY.fullmatch(word):
        kind = entry[3].lower()
        return (Arch(capability=Capability(int(entry[1]), int(entry[2]), kind), ptx=bool(entry[4])),)
    if (row := _family(question, word)) is not None:
        return _plain(row.archs)
    if word.lower().endswith("+ptx") and (row := _family(question, word[:-4])) is not None:
        return (*_plain(row.archs), *(replace(arch, ptx=True) for arch in _plain(row.ptx)))
    if short := _SHORT.fullmatch(word):
        raise UnknownArch(f"{word!r} is another spelling; write {_in_full(question, short[1])}{short[2]}")
    hint = did_you_mean(word, sorted({row.name for row in question.catalog.family}))
    raise UnknownArch(f"{word!r} is not an architecture{hint}")


def _in_full(question: Question, digits: str) -> str:
    """Return what digits stand for: 86 is 8.6, and 12 is 12.0, since nothing is 1.2."""
    known = {text for row in question.catalog.cuda for text in row.archs}
    split = f"{digits[:-1]}.{digits[-1]}"
    return split if split in known or len(digits) > 2 else f"{digits}.0"


def _family(question: Question, name: str) -> FamilyRow | None:
    """Return the row of a name, as the torch of the checkout reads it, else as any does."""
    rows = (*families(question), *question.catalog.family)
    return next((row for row in rows if row.name.lower() == name.lower()), None)


def _plain(numbers: str) -> tuple[Arch, ...]:
    return tuple(Arch(capability=capability(number)) for number in numbers.split(";"))


# ---------------- the list of a build


def choose_archs(question: Question, chosen: ChosenToolkit, gpus: tuple[Device, ...]) -> ChosenArchs:
    """Decide the architectures of a CUDA build for a machine with these GPUs."""
    asked, because, source = _read_request(question)
    try:
        if chosen.choice is None:
            if are_named(question):
                read_archs(question, asked)  # a word that nobody knows needs no toolkit to be refused
            return ChosenArchs()
        return _decide_archs(question, chosen, gpus, asked, because, source)
    except UnknownArch as error:
        return ChosenArchs(problem=f"{asked} ({because}): {error}")


def known_archs(question: Question, chosen: ChosenToolkit) -> tuple[Capability, ...]:
    """Return what the toolkit compiles for, in numeric order: as nvcc lists it, else by its version's row."""
    row = cuda_row(question, chosen.version)
    listed = chosen.toolkit.archs if chosen.toolkit and chosen.toolkit.archs else row.archs if row else ()
    return _in_order(listed)


@functools.lru_cache(maxsize=256)
def _in_order(archs: tuple[str, ...]) -> tuple[Capability, ...]:
    return tuple(sorted({capability(text).plain for text in archs}))


def capability_for(question: Question, wanted: Capability, cuda: Version | None) -> Capability:
    """Return a toolkit's number of a capability: Thor is 10.1 before CUDA 13.0 and 11.0 from it on."""
    return _capability_for(question.catalog, wanted, cuda)


@functools.lru_cache(maxsize=4096)
def _capability_for(catalog: Catalog, wanted: Capability, cuda: Version | None) -> Capability:
    for row in catalog.arch:
        if row.renamed and row.capability == str(wanted.plain) and cuda and admits(row.cuda, cuda):
            return capability(row.renamed)._replace(kind=wanted.kind)
    return wanted


def without_own_code(question: Question, cuda: Version, gpus: Iterable[Device]) -> tuple[Device, ...]:
    """Return the GPUs for which this release makes no code of their own, or this torch reads none."""
    known = known_archs(question, ChosenToolkit(version=cuda))
    able = [each for each in known if is_known(question, each, "build")]
    wanted = [(device, capability(device.capability)) for device in gpus if device.capability]
    return tuple(device for device, code in wanted if capability_for(question, code, cuda).plain not in able)


def runs_on(question: Question, archs: tuple[Arch, ...], device: Capability) -> bool:
    """Say whether a device has code in the list: a cubin of its major that is not newer, or older PTX.

    Cubins of Jetson's GPUs and of others do not run on each other (CUDA C++ Programming Guide, binary
    compatibility; torch.cuda holds devices to the same).
    """
    for arch in archs:
        code = arch.capability
        if code.kind:  # arch-specific code runs on that one, family-specific on its family
            if code.plain == device or (
                code.kind == "f" and code.major == device.major and code.plain <= device
            ):
                return True
            continue
        apart = code != device and (is_tegra(question, code) or is_tegra(question, device))
        if (code.major == device.major and code <= device and not apart) or (arch.ptx and code <= device):
            return True
    return False


def _read_request(question: Question) -> tuple[str, str, Source]:
    if asked := question.asked("arch", NAME):
        return asked.value.strip(), asked.because, asked.source
    return "auto", "no architecture was named", "default"


def asked_archs(question: Question) -> str:
    """Return the list as it was requested, with the names of families; "auto" without a request."""
    return _read_request(question)[0]


def are_named(question: Question) -> bool:
    """Say whether capabilities or families were requested, which do not depend on the GPUs here."""
    return asked_archs(question).lower() not in WORDS


def _decide_archs(
    question: Question,
    chosen: ChosenToolkit,
    gpus: tuple[Device, ...],
    asked: str,
    because: str,
    source: Source,
) -> ChosenArchs:
    word = asked.lower()
    if word not in WORDS:
        read = read_archs(question, asked)
        archs = tuple(
            Arch(capability=capability_for(question, arch.capability, chosen.version), ptx=arch.ptx)
            for arch in read
        )
        for arch, own in zip(read, archs, strict=True):
            if arch != own:
                because += f"; {arch.capability} is {own.capability} in {chosen.name}"
        return _choice_of(archs, because, source)
    if word in ("common", "all"):
        archs = _common(question, chosen, every=word == "all")
        return _choice_of(archs, f"{because}: {word} of {chosen.name} that this torch knows", source)
    seen = visible_devices(question, gpus)
    hidden = "" if seen else f", though CUDA_VISIBLE_DEVICES={question.cuda.visible} hides them"
    present = [device for device in seen or served_devices(question, gpus) if device.capability]
    if present:
        archs = _of_devices(question, chosen, present)
        here = ", ".join(dict.fromkeys(f"{d.name} ({d.capability})" for d in present))
        return _choice_of(archs, f"the GPUs that are here: {here}{hidden}", source)
    if word == "native":
        return ChosenArchs(problem=f"native ({because}): no GPU is known here")
    common = _choice_of(_common(question, chosen), "no GPU is known here, so all common ones", source)
    return ChosenArchs(choice=common.choice, archs=common.archs, guessed=True)


def _choice_of(archs: tuple[Arch, ...], because: str, source: Source) -> ChosenArchs:
    number = len(archs)  # PTX is made on the way to the cubin and costs nothing
    if number > 1:
        cost = 1 + COST * (number - 1)
        because += f"; {number} architectures cost about {cost:.1f} times one"
    return ChosenArchs(
        choice=Choice(name=NAME, value=arch_list(archs), because=because, source=source), archs=archs
    )


def _of_devices(question: Question, chosen: ChosenToolkit, present: list[Device]) -> tuple[Arch, ...]:
    """Return each device's capability; for one newer than toolkit or torch, the nearest below with PTX."""
    known = [each for each in known_archs(question, chosen) if is_known(question, each, "build")]
    found = []
    for device in present:
        wanted = capability_for(question, capability(str(device.capability)), chosen.version)
        below = [each for each in known if each < wanted and not is_tegra(question, each)]
        if wanted in known or not below:
            found.append(Arch(capability=wanted))
        else:
            tegra = is_tegra(question, wanted)
            same = [each for each in below if each.major == wanted.major and not tegra]
            found.append(Arch(capability=(same or below)[-1], ptx=True))
    return sort_archs(found)


def _common(question: Question, chosen: ChosenToolkit, *, every: bool = False) -> tuple[Arch, ...]:
    """Return what upstream's own binaries have, as far as this toolkit compiles it without a warning.

    With `every` all that it compiles but for Jetson boards, as "All" in torch's select_compute_arch.cmake.
    """
    row = cuda_row(question, chosen.version)
    known = known_archs(question, chosen)
    deprecated = set(row.deprecated if row else ())
    usual = {arch.capability for arch in read_archs(question, "common")}
    archs = [
        each
        for each in known
        if (not is_tegra(question, each) if every else each in usual and str(each) not in deprecated)
        and is_known(question, each, "torch")
    ]
    if not archs:
        raise UnknownArch(f"{chosen.name} and torch {question.row.version} have none in common")
    return tuple(Arch(capability=each, ptx=each == archs[-1]) for each in archs)


def is_known(question: Question, code: Capability, column: Literal["torch", "build"]) -> bool:
    """Say whether the checkout's extensions (`torch`) or its CMake (`build`) know a capability."""
    return _is_known(question.catalog, code, column, question.version)


@functools.lru_cache(maxsize=4096)
def _is_known(catalog: Catalog, code: Capability, column: str, version: Version | None) -> bool:
    for wanted in dict.fromkeys((str(code), str(code.plain))):
        rows = [row for row in catalog.arch if row.capability == wanted and not row.renamed]
        if rows:
            return any(applies(getattr(row, column), version) for row in rows)
    return True


def is_tegra(question: Question, wanted: Capability) -> bool:
    """Say whether only Jetson boards have a capability, under any of its names."""
    return _is_tegra(question.catalog, str(wanted))


@functools.lru_cache(maxsize=1024)
def _is_tegra(catalog: Catalog, word: str) -> bool:
    boards = {row.capability for row in catalog.board}
    names = {row.renamed for row in catalog.arch if row.capability == word}
    return bool({word, *names} & boards)


def wanted_devices(question: Question, cuda: Version | None, seen: tuple[Device, ...]) -> tuple[Device, ...]:
    """Return the GPUs that the build is for: without those that a named list leaves out, if it has any."""
    if not are_named(question):
        return seen
    try:
        archs = read_archs(question, asked_archs(question))
    except UnknownArch:
        return seen
    missing = tuple(missing_devices(question, archs, cuda, seen))
    served = tuple(device for device in seen if device not in missing)
    return served if any(device.capability for device in served) else seen


def missing_devices(
    question: Question, archs: tuple[Arch, ...], cuda: Version | None, gpus: tuple[Device, ...]
) -> Iterator[Device]:
    """Yield the GPUs for which the list has no code."""
    for device in gpus:
        if not device.capability:
            continue
        if not runs_on(question, archs, capability_for(question, capability(device.capability), cuda)):
            yield device

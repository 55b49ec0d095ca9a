"""The GPUs of this machine, merged from the answers of all probes, and their checks.

Answers are about the same GPU by its address on the PCI bus, else by its UUID, else by order: what a probe
names third is the third GPU. Two answers of one probe are two GPUs unless their addresses or UUIDs are equal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.cuda import DriverBranchRow, GpuRow
from torchbuild_tasks.catalog.match import admits, parse_version
from torchbuild_tasks.model import Cuda, Driver, Finding, GpuSeen
from torchbuild_tasks.model.cuda import pci_address
from torchbuild_tasks.plan.cuda.values import Device
from torchbuild_tasks.plan.jetson import board
from torchbuild_tasks.plan.question import Question

ID = "gpu"
TREE = "device tree"
VISIBLE = "CUDA_VISIBLE_DEVICES"
NVIDIA = "10de"
_NUMBER = re.compile(r"\d+\.\d+")  # nvidia-smi writes [N/A] for what it does not know
# The letters behind a chip's name in pci.ids tell its use: GA102GL is a GA102 for workstations.
_USE = re.compile(r"B?(GL)?M?")
_PARENT = re.compile(r"MIG-(GPU-[^/]+)/", re.IGNORECASE)
# Probes in the order of trust; one that is not named comes last.
PROBES = ("nvml", "nvidia-smi", "device tree", "proc", "pci")


class _Claim(NamedTuple):
    """A capability that an answer gives for a GPU, with its source and how that was derived."""

    capability: str
    who: str
    via: str


def devices(question: Question) -> tuple[Device, ...]:
    """Return every GPU of the machine once, in the order of the PCI bus, hidden ones too."""
    cuda = question.cuda
    tree = [seen for seen in cuda.gpus if seen.probe == TREE]
    groups = group_answers(seen for seen in cuda.gpus if seen.probe != TREE)
    if cuda.tegra is None:
        groups += [[seen] for seen in tree]
        return tuple(_device(question, group, _claims(question, group)) for group in groups)
    return _with_board(question, cuda, groups, tree)


def visible_devices(question: Question, found: tuple[Device, ...]) -> tuple[Device, ...]:
    """Return those that a program sees: served by the driver, left by CUDA_VISIBLE_DEVICES, in its order."""
    served = served_devices(question, found)
    visible = question.cuda.visible
    return served if visible is None else tuple(served[place] for place in _visible(served, visible))


def served_devices(question: Question, found: tuple[Device, ...]) -> tuple[Device, ...]:
    """Return those that the driver serves, such as a new card beside an old one; all if it serves none."""
    driver = parse_version(driver_version(question))
    last = (branch_of(question, device) for device in found)
    served = tuple(
        device
        for device, row in zip(found, last, strict=True)
        if not (driver and row and driver >= Version(row.without))
    )
    return served or found


def driver_version(question: Question) -> str | None:
    """Return the version of the driver, by its own answer, else of its kernel module or library."""
    driver = question.cuda.driver or Driver()
    versions = (driver.version, driver.module, driver.library)
    return next((text for text in versions if text and parse_version(text)), None)


def branch_of(question: Question, device: Device) -> DriverBranchRow | None:
    """Return the row of the first driver branch that leaves out a GPU."""
    return _branch_of(question.catalog, device.capability)


@functools.lru_cache(maxsize=1024)
def _branch_of(catalog: Catalog, code: str | None) -> DriverBranchRow | None:
    rows = sorted(catalog.driver_branch, key=lambda row: Version(row.last))
    return next((row for row in rows if code and Version(code) < Version(row.below)), None)


def check_devices(
    question: Question, found: tuple[Device, ...], *, named: bool = False
) -> tuple[Finding, ...]:
    """Report one finding a GPU, and those that are hidden, unknown or missing.

    Where architectures are `named`, none says to name them.
    """
    if not found:
        return (_none(question.cuda, named=named),)
    checked = (_check_one(device, _not_in_wheels(question, device), named=named) for device in found)
    return (*checked, *_check_hidden(question.cuda, served_devices(question, found)))


def _with_board(
    question: Question, cuda: Cuda, groups: list[list[GpuSeen]], tree: list[GpuSeen]
) -> tuple[Device, ...]:
    """Return a Jetson's own GPU as one device with the answers about it; a further card is another."""
    row, tegra = board(question), cuda.tegra
    own: list[_Claim] = []
    if row is not None:
        model = tegra.model if tegra else ""
        own = [_Claim(row.capability, TREE, f"{TREE} {model!r} -> {row.name} (rows)")]
    joined = next((group for group in groups if _is_of_board(question, group, own)), [])
    rest = [group for group in groups if group is not joined]
    answers = [*joined, *tree]
    named = (tegra.model if tegra else "") or (row.name if row else "a Jetson board")
    device = _device(question, answers, [*_claims(question, joined), *own], named)
    return (device, *(_device(question, group, _claims(question, group)) for group in rest))


def _is_of_board(question: Question, group: list[GpuSeen], own: list[_Claim]) -> bool:
    claims = [_one_name(question, claim.capability) for claim in _claims(question, group)]
    if own and claims:
        return _one_name(question, own[0].capability) in claims
    return not any(seen.pci_id for seen in group)


def _device(question: Question, answers: list[GpuSeen], claims: list[_Claim], name: str = "") -> Device:
    rows = _rows_of(question, answers)
    names = [seen.name for seen in answers if seen.name]
    chips = [*(row.chip for row in rows), *(seen.chip for seen in answers if seen.chip)]
    ids = next((seen.pci_id for seen in answers if seen.pci_id), None)
    return Device(
        name=name or next(iter(names), "") or next(iter(chips), "") or ids or "a GPU without a name",
        capability=claims[0].capability if claims else None,
        via=claims[0].via if claims else "",
        bus=next((address(seen.bus) for seen in answers if seen.bus), None),
        uuid=next((seen.uuid for seen in answers if seen.uuid), None),
        mig=any(seen.mig for seen in answers),
        datacenter=_is_datacenter(rows, answers),
        answers=tuple(answers),
        disagreement=_disagreement(question, claims),
    )


def _claims(question: Question, answers: list[GpuSeen]) -> list[_Claim]:
    """Return every claim about the capability, the most trusted first."""
    claims = [_Claim(seen.capability, seen.probe, seen.probe) for seen in answers if seen.capability]
    claims = [claim for claim in claims if _NUMBER.fullmatch(claim.capability)]
    for seen in answers:
        if row := _by_id(question, seen.pci_id):
            via = f"{seen.probe} {seen.pci_id} -> {row.chip} (rows)"
            claims.append(_Claim(row.capability, f"{seen.pci_id} ({row.chip})", via))
    for seen in answers:
        if row := _by_chip(question, seen.chip):
            claims.append(_Claim(row.capability, f"chip {seen.chip}", f"chip {seen.chip} (rows)"))
    return claims or _by_name(question, answers)


def _by_name(question: Question, answers: list[GpuSeen]) -> list[_Claim]:
    """Find the capability by the product's name (a vGPU's profile follows it)."""
    for seen in answers:
        for row in question.catalog.gpu_name:
            if any(re.search(rf"\b(?:{name})\b", seen.name or "", re.IGNORECASE) for name in row.names):
                return [_Claim(row.capability, f"the name {seen.name}", f"its name, {seen.name} (rows)")]
    return []


def _rows_of(question: Question, answers: list[GpuSeen]) -> list[GpuRow]:
    by_id = (_by_id(question, seen.pci_id) for seen in answers)
    by_chip = (_by_chip(question, seen.chip) for seen in answers)
    return [row for row in (*by_id, *by_chip) if row]


def _by_id(question: Question, pci_id: str | None) -> GpuRow | None:
    number = _number(pci_id)
    if number is None:
        return None
    return _row_of_id(question.catalog, number)


@functools.lru_cache(maxsize=256)
def _row_of_id(catalog: Catalog, number: int) -> GpuRow | None:
    return next((row for row in catalog.gpu if within(row.ids, number)), None)


def _number(pci_id: str | None) -> int | None:
    """Return the device id of NVIDIA's cards as a number: 8708 for "10de:2204"; None for other text."""
    vendor, _, device = (pci_id or "").casefold().removeprefix("0x").partition(":")
    device = device.removeprefix("0x")
    return int(device, 16) if vendor == NVIDIA and re.fullmatch("[0-9a-f]{1,4}", device) else None


def within(ranges: Iterable[str], number: int) -> bool:
    """Say whether a device id is in one of the ranges of a row ("2204" or "2200-223f")."""
    for text in ranges:
        first, _, last = text.partition("-")
        if int(first, 16) <= number <= int(last or first, 16):
            return True
    return False


def _by_chip(question: Question, chip: str | None) -> GpuRow | None:
    name = (chip or "").upper()
    fitting = (row for row in question.catalog.gpu if name.startswith(row.chip))
    return next((row for row in fitting if _USE.fullmatch(name.removeprefix(row.chip))), None)


def _is_datacenter(rows: list[GpuRow], answers: list[GpuSeen]) -> bool | None:
    numbers = [number for seen in answers if (number := _number(seen.pci_id)) is not None]
    if not rows or not numbers:
        return None
    return any(within(row.datacenter, number) for row in rows for number in numbers)


def _one_name(question: Question, capability: str) -> str:
    """Return the greater of a chip's two numbers: Thor is 10.1 to old toolkits and 11.0 to later ones."""
    pairs = [(row.capability, row.renamed) for row in question.catalog.arch if row.renamed]
    names = [capability, *(other for own, other in pairs if own == capability)]
    return max(names, key=lambda text: float(re.sub("[a-z]", "", text)))


def _disagreement(question: Question, claims: list[_Claim]) -> str:
    by_capability: dict[str, _Claim] = {}
    for claim in claims:
        by_capability.setdefault(_one_name(question, claim.capability), claim)
    if len(by_capability) < 2:
        return ""
    return ", ".join(f"{claim.who} says {claim.capability}" for claim in by_capability.values())


def _visible(found: tuple[Device, ...], text: str) -> list[int]:
    """Return the places of the devices that the variable names; like CUDA, end at an unknown word."""
    places: list[int] = []
    for word in text.split(","):
        place = _place(found, word.strip())
        if place is None:
            break
        if place not in places:
            places.append(place)
    return places


def _place(found: tuple[Device, ...], word: str) -> int | None:
    """Say which device a word means: an index, or the beginning of one UUID."""
    if word.isascii() and word.isdigit():
        return int(word) if int(word) < len(found) else None
    if parent := _PARENT.match(word):
        word = parent[1]
    elif word.upper().startswith("MIG-"):
        # The UUID of an instance does not tell whose it is; that is clear only where one GPU is split.
        return _only(place for place, device in enumerate(found) if device.mig)
    if not word.upper().startswith("GPU-"):
        return None
    start = word.casefold()
    return _only(place for place, each in enumerate(found) if (each.uuid or "").casefold().startswith(start))


def _only(places: Iterable[int]) -> int | None:
    first, *others = (*places, None)
    return first if len(others) <= 1 else None


def _not_in_wheels(question: Question, device: Device) -> str:
    """Return the note that upstream's binaries of this torch leave a GPU out; "" where no row has one."""
    own = [int(number) for number in re.findall(r"\d+", device.capability or "")]
    for row in question.catalog.cuda_wheel:
        oldest = [int(number) for number in row.oldest.split(".")]
        if own and own < oldest and question.version and admits(row.torch, question.version):
            return f"; {row.because}"
    return ""


def _check_one(device: Device, note: str, *, named: bool) -> Finding:
    place = f" ({device.bus})" if device.bus else ""
    split = ", split into MIG instances" if device.mig else ""
    if device.capability is None:
        ids = next((seen.pci_id for seen in device.answers if seen.pci_id), "")
        text = f"{device.name}{place}{f' [{ids}]' if ids else ''}: its compute capability is not known"
        fix = "" if named else "Look it up at developer.nvidia.com/cuda-gpus and name it: --arch 8.6"
        return Finding.unknown(ID, text, fix)
    text = f"{device.name}{place}{split}: compute capability {device.capability}, by {device.via}{note}"
    if not device.disagreement:
        return Finding.ok(ID, text)
    fix = f"If {device.capability} is wrong, name the right one: --arch X.Y"
    return Finding.warn(ID, f"{text}; but {device.disagreement}", fix)


def _none(cuda: Cuda, *, named: bool) -> Finding:
    ends = "; ".join(f"{name}: {answer}" for name, answer in cuda.probes.items())
    text = f"no GPU was found ({ends or 'nothing was asked'}); the build works without one"
    fix = "" if named else "Name the architectures that it shall run on: --arch 8.6"
    return Finding.unknown(ID, text, fix)


def _check_hidden(cuda: Cuda, found: tuple[Device, ...]) -> tuple[Finding, ...]:
    if cuda.visible is None:
        return ()
    places = _visible(found, cuda.visible)
    hidden = [device.name for place, device in enumerate(found) if place not in places]
    if not hidden:
        return ()
    which = ", ".join(hidden) if places else "every GPU"
    text = f"{VISIBLE}={cuda.visible} hides {which}: torch would not see it"
    if (
        any(word.strip().isdigit() for word in cuda.visible.split(","))
        and len({device.capability for device in found}) > 1
    ):
        text += (
            "; the numbers are counted along the PCI bus here, and CUDA counts the fastest GPU first "
            "unless CUDA_DEVICE_ORDER=PCI_BUS_ID is set"
        )
    if places:  # whoever hides some has a reason, such as one that no toolkit here compiles for
        return (Finding.ok(ID, text),)
    return (Finding.warn(ID, text, f"Unset {VISIBLE} to use them."),)


# ---------------- which answers are about the same GPU


def address(bus: str | None) -> str:
    """Return one spelling of a PCI address: 0000:01:00.0 for 00000000:01:00.0 and 01:00.0; "" for none."""
    return pci_address(bus) or (bus or "").strip().casefold()


def trust_rank(seen: GpuSeen) -> int:
    """Return the place of an answer's probe in the order of trust."""
    return PROBES.index(seen.probe) if seen.probe in PROBES else len(PROBES)


def group_answers(answers: Iterable[GpuSeen]) -> list[list[GpuSeen]]:
    """Return the answers about each GPU, the most trusted first; every answer is in exactly one list."""
    groups: list[list[GpuSeen]] = []
    ordered = sorted(answers, key=trust_rank)
    # Who knows the address comes first: the others are found in what that has made.
    for seen in sorted(ordered, key=lambda each: (not address(each.bus), not each.uuid)):
        group = _by(groups, _bus, seen) or _by(groups, _uuid, seen) or _by_order(groups, seen)
        if group is None:
            groups.append([seen])
        else:
            group.append(seen)
    for group in groups:
        group.sort(key=trust_rank)
    return sorted(groups, key=lambda group: _say_known(_bus, group) or "~")


def _bus(seen: GpuSeen) -> str:
    return address(seen.bus)


def _uuid(seen: GpuSeen) -> str:
    return (seen.uuid or "").casefold()


def _say_known(key: Callable[[GpuSeen], str], group: Iterable[GpuSeen]) -> str:
    return next(filter(None, map(key, group)), "")


def _by(groups: list[list[GpuSeen]], key: Callable[[GpuSeen], str], seen: GpuSeen) -> list[GpuSeen] | None:
    wanted = key(seen)
    if not wanted:
        return None
    return next(
        (group for group in groups if _say_known(key, group) == wanted and _agrees(group, seen)), None
    )


def _by_order(groups: list[list[GpuSeen]], seen: GpuSeen) -> list[GpuSeen] | None:
    """Return the first GPU without an answer of this probe that is not certainly another one."""
    free = (group for group in groups if all(each.probe != seen.probe for each in group))
    return next((group for group in free if _agrees(group, seen)), None)


def _agrees(group: list[GpuSeen], seen: GpuSeen) -> bool:
    """Say whether an answer may be about the same GPU; the address counts more than the UUID."""
    for key in (_bus, _uuid):
        known = _say_known(key, group)
        wanted = key(seen)
        if known and wanted:
            return known == wanted
    ids = {each.pci_id for each in (*group, seen) if each.pci_id}
    return len(ids) < 2

"""Jetson boards: which one this is, what its builds leave out, and what its owner should know before.

The plan's own choices (architectures, jobs, cuDNN) are made where every machine's are; here
stands only what a Tegra has apart from other machines.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Final

from packaging.version import Version

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.catalog.cuda import BoardRow, JetpackRow
from torchbuild_tasks.catalog.match import admits, series
from torchbuild_tasks.catalog.rows import TorchRow
from torchbuild_tasks.model import Choice, Finding, Tegra
from torchbuild_tasks.plan.cuda.toolkit import is_outside
from torchbuild_tasks.plan.cuda.values import ChosenToolkit
from torchbuild_tasks.plan.jobs import usable_memory
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_cuda, is_helper

PRESET: Final = "jetson"
# Memory and swap together: NVIDIA's recipe (forums.developer.nvidia.com, topic 72048) adds 4 GB of
# swap to the 4 GB of a Nano.
WANTED: Final = 8 * GIB
SWAP_FILE: Final = "/mnt/8GB.swap"
JETPACK_ID: Final = "jetpack-cuda"
COMPAT: Final = "cuda-compat"  # NVIDIA's package with which an older driver runs a newer CUDA


def board(question: Question) -> BoardRow | None:
    """Return this board's row, by a name of its device tree or by its model; None on other machines."""
    tegra = question.cuda.tegra
    return next((row for row in question.catalog.board if tegra and _fits(row, tegra)), None)


def jetpack(question: Question) -> JetpackRow | None:
    """Return the JetPack that the board's L4T release belongs to."""
    tegra = question.cuda.tegra
    l4t = tegra.l4t if tegra else None
    return next((row for row in question.catalog.jetpack if admits(row.l4t, l4t)), None)


def later_jetpack(question: Question) -> JetpackRow | None:
    """Return the JetPack with the newest CUDA that builds this torch, where that is newer than its own."""
    known = board(question)
    now = jetpack(question)
    of_board = [row for row in question.catalog.jetpack if known and known.name in row.boards]
    known_to = [row for row in of_board if not is_outside(question, Version(row.cuda))]
    fitting = known_to or [row for row in of_board if _builds_with(question, question.row, row.cuda)]
    best = max(fitting, key=lambda row: Version(row.cuda), default=None)
    return best if best and now and Version(best.cuda) > Version(now.cuda) else None


def jetson_variables(question: Question, toolkit: ChosenToolkit) -> tuple[Choice, ...]:
    """Return what a CUDA build for a Jetson switches off, where no other layer has decided it."""
    if not is_cuda(question) or not (question.cuda.tegra or question.preset.value == PRESET):
        return ()
    wanted = (_nccl(question, toolkit), _magma(question))
    return tuple(choice for choice in wanted if choice and decide(question, choice.name) is None)


def check_jetson(question: Question, toolkit: ChosenToolkit) -> tuple[Finding, ...]:
    """Report board, JetPack and their problems; nothing on other machines."""
    if not (tegra := question.cuda.tegra):
        return _check_no_board(question)
    return (
        _check_board(question, tegra),
        _check_jetpack(question, tegra),
        *_check_toolkit(question, toolkit),
        *_check_wheels(question, toolkit),
        *_check_memory(question),
        *_check_preset(question),
        _power(),
    )


def _fits(row: BoardRow, tegra: Tegra) -> bool:
    model = " ".join(tegra.model.casefold().replace("_", " ").replace("-", " ").split())
    named = any(fnmatch.fnmatchcase(name, text) for name in tegra.compatible for text in row.compatible)
    return named or any(text in model for text in row.models)


def _nccl(question: Question, toolkit: ChosenToolkit) -> Choice | None:
    """Switch NCCL off where there is none: PyTorch would compile its own copy, for a single GPU."""
    known = board(question)
    here = any(library.name == "nccl" for library in question.cuda.libraries)
    if here or _brings_nccl(toolkit) or (known and known.sbsa):
        return None
    because = f"no NCCL was found, and NVIDIA has none for {known.name if known else 'this board'}"
    return Choice(name="USE_NCCL", value="0", because=because)


def _brings_nccl(chosen: ChosenToolkit) -> bool:
    if chosen.toolkit is not None:
        return chosen.toolkit.nccl is not None
    return any(artifact.name == "nccl" for artifact in chosen.artifacts)


def _magma(question: Question) -> Choice | None:
    if decide(question, "MAGMA_HOME") or is_helper(question, "magma"):
        return None
    because = "MAGMA is not built for aarch64, upstream's own torch has none either: cuSOLVER does its work"
    return Choice(name="USE_MAGMA", value="0", because=because)


def _check_board(question: Question, tegra: Tegra) -> Finding:
    known = board(question)
    if known is None:
        names = ", ".join(tegra.compatible) or "no names"
        text = f"{tegra.model or 'a Tegra'} is a board that torchbuild does not know ({names})"
        fix = "Say its compute capability: --arch 8.7"
        return Finding.unknown("jetson", text, fix)
    note = f" ({known.note})" if known.note else ""
    text = f"{tegra.model or known.name}: {known.name}, compute capability {known.capability}{note}"
    return Finding.ok("jetson", text)


def _check_jetpack(question: Question, tegra: Tegra) -> Finding:
    row = jetpack(question)
    known = board(question)
    if tegra.l4t is None:
        text = (
            "the L4T release is not known (/etc/nv_tegra_release cannot be read), so its CUDA is not either"
        )
        return Finding.unknown("jetpack", text)
    if row is None:
        return Finding.unknown("jetpack", f"L4T {tegra.l4t} belongs to no JetPack we know")
    text = f"L4T {tegra.l4t} is JetPack {row.name}, which has CUDA {row.cuda}"
    # A chip's own row is not a board that a JetPack could name.
    boards = {name for pack in question.catalog.jetpack for name in pack.boards}
    if known and known.name in boards and known.name not in row.boards:
        return Finding.unknown("jetpack", f"{text}; it is not known to run on {known.name}")
    return Finding.ok("jetpack", text)


def _check_wheels(question: Question, toolkit: ChosenToolkit) -> Iterator[Finding]:
    """Warn of NVIDIA's wheels for aarch64 on a board before Thor: they are made for servers."""
    known = board(question)
    of_wheels = toolkit.managed is not None or (toolkit.toolkit is not None and toolkit.toolkit.managed)
    if not of_wheels or known is None or known.sbsa:
        return
    text = f"NVIDIA's wheels for aarch64 are made for Arm servers, not for {known.name}"
    fix = "Use the toolkit that JetPack installs: sudo apt-get install nvidia-jetpack"
    yield Finding.warn("jetson-wheels", text, fix)


def _check_toolkit(question: Question, toolkit: ChosenToolkit) -> Iterator[Finding]:
    """Warn of another CUDA than JetPack's: L4T's driver runs it with cuda-compat or not at all."""
    row = jetpack(question)
    version = toolkit.version
    if row is None or version is None or version == Version(row.cuda):
        return
    text = f"CUDA {version} is planned, but the driver of JetPack {row.name} is that of CUDA {row.cuda}"
    if row.guessed:
        text = f"CUDA {version} is planned; which one JetPack {row.name} has for this release is not known"
        yield Finding.unknown(JETPACK_ID, text)
        return
    here = any(series(each.version) == row.cuda for each in question.cuda.toolkits)
    install = "" if here else "sudo apt-get install nvidia-jetpack, then "
    fix = f"Use JetPack's own: {install}--cuda-toolkit {row.cuda}"
    if nearest := _nearest_torch(question, row.cuda):
        fix += f", and torch {nearest}, the nearest that builds with it"
    if row.newer_cuda and version > Version(row.cuda):
        compat = f"nstall NVIDIA's package {COMPAT}-{version.major}-{version.minor}"
        only = is_outside(question, Version(row.cuda)) and not is_outside(question, version)
        fix = f"I{compat}." if only else f"{fix}, or i{compat}"
    yield Finding.warn(JETPACK_ID, text, fix)


def _nearest_torch(question: Question, cuda: str) -> str:
    """Return the nearest series that builds with a CUDA; "" where this one does."""
    known = question.catalog.torch
    here = known.index(question.row)
    away = sorted(range(len(known)), key=lambda each: abs(each - here))
    able = [known[each] for each in away if _builds_with(question, known[each], cuda)]
    if not able or able[0] is question.row:
        return ""
    sure = (row for row in able if _builds_with(question, row, cuda, known=True))
    return next(sure, able[0]).version


def _builds_with(question: Question, torch: TorchRow, cuda: str, *, known: bool = False) -> bool:
    """Say whether no row says that a torch does not build with a CUDA; with `known`, nor leaves it out."""
    rows = (row for row in question.catalog.cuda_torch if row.os in ("", question.facts.host.os))
    told = (row for row in rows if (known or row.refuse) and admits(row.torch, torch.latest))
    return all(admits(row.cuda, cuda) for row in told)


def _check_memory(question: Question) -> Iterator[Finding]:
    """Check that one CUDA file and the linker fit into memory and swap at all."""
    usable, swap = usable_memory(question.facts.memory), question.facts.memory.swap_free or 0
    if usable is None:
        return
    room, why = usable
    # Swap helps against a full memory, not against the limit of a container.
    limited = question.facts.memory.available is None or room < question.facts.memory.available
    total = room if limited else room + swap
    if total >= WANTED:
        return
    with_swap = "" if limited else f" and {swap / GIB:.1f} GiB of swap"
    text = (
        f"{room / GIB:.1f} GiB {why}{with_swap}; a CUDA build on a Jetson needs {WANTED // GIB} GiB together"
    )
    fix = f"Raise that limit to {WANTED // GIB} GiB." if limited else _swap_commands()
    yield Finding.warn("swap", text, fix)


def _swap_commands() -> str:
    size = f"{WANTED // GIB}G"
    make = f"sudo fallocate -l {size} {SWAP_FILE} && sudo chmod 600 {SWAP_FILE} && "
    make += f"sudo mkswap {SWAP_FILE} && sudo swapon {SWAP_FILE}"
    return f"{make} (zram takes its swap out of memory: sudo systemctl disable nvzramconfig, and restart)"


def _check_no_board(question: Question) -> tuple[Finding, ...]:
    """Report the boards' preset on a machine that can be none."""
    if question.preset.value != PRESET or question.facts.host.arch != "x86_64":
        return ()
    text = f"preset {PRESET} is for Jetson boards, and this is none: "
    text += "NCCL and FBGEMM, which this machine has a use for, are left out"
    return (Finding.warn("preset", text, "--preset dev leaves out less."),)


def _check_preset(question: Question) -> Iterator[Finding]:
    chosen = question.preset
    if chosen.value == PRESET:
        return
    text = f"preset {chosen.value}; there is one for boards like this"
    fix = f"--preset {PRESET} leaves out what NVIDIA's own recipe leaves out"
    yield Finding.ok("preset", f"{text}: {fix}")


def _power() -> Finding:
    text = "the build is faster with all cores at full clock; the power mode: sudo nvpmodel -q; "
    return Finding.ok("power", text + "to change it: sudo nvpmodel -m; sudo jetson_clocks")

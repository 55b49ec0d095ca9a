"""Values as text for a person: the plan, the findings, the facts, and what a verb did.

Plain text in aligned columns, the same on a terminal, in a file and under CI. Nothing
is printed here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.model import (
    BuildPlan,
    Command,
    Cuda,
    Driver,
    Facts,
    Finding,
    GpuSeen,
    Tool,
    Toolkit,
    Windows,
)
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.text.words import shell_line

MARK = {"ok": "ok     ", "warn": "warning", "error": "error  ", "unknown": "unknown", "skipped": "skipped"}
WAYS = {
    "front end": "by the Python front end",
    "install": "by Ninja and install, unless a file that lies in place says otherwise",
}
OUTCOME = {"passed": "passed      ", "failed": "FAILED      ", "not possible": "not possible"}
_OF_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|.*\.(?:exe|bat|cmd)$", re.IGNORECASE)


def shell_text(argv: Sequence[str]) -> str:
    """Return a command as it could be typed into a shell of the system that its program is of."""
    return shell_line(argv, windows=bool(argv and _OF_WINDOWS.match(argv[0])))


def finding_text(finding: Finding) -> str:
    """Return one finding with its mark; what to do stands under it."""
    fix = f"           -> {finding.fix}\n" if finding.fix else ""
    return f"  {MARK[finding.status]}  {finding.text}\n{fix}"


class Removable(Protocol):
    """What `flow.clean` lists: paths below `root`, and those kept with the reason."""

    @property
    def root(self) -> str: ...
    @property
    def files(self) -> tuple[str, ...]: ...
    @property
    def kept(self) -> tuple[tuple[str, str], ...]: ...


def columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Return rows as aligned columns; the last one runs free."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1] if rows else []
    lines = (
        indent + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def plan_text(plan: BuildPlan, *, verbose: bool = False) -> str:
    """Return the whole plan: choices with value, source and reason, then what would be done."""
    parts = [
        "Choices (value, decided by, because)\n",
        columns([(c.name, c.value, c.source, c.because) for c in plan.choices]),
        f"\nBuild tree: {plan.build_dir}\n  needs {plan.freshness.needs}: {plan.freshness.because}\n",
        columns(
            [
                (c.name, f"{c.before} -> {c.after}", f"needs {c.needs}", c.because)
                for c in plan.freshness.changes
            ],
            "    ",
        ),
        f"  way: {WAYS[plan.way.name]}: {plan.way.because}\n",
        "\nCommands\n",
        *(command_text(command) for command in commands(plan)),
        "\nEnv files\n",
        *(f"  {env_file.path}\n" for env_file in plan.env_files),
        "\nVerification\n",
        columns([(e.check, _expected(e.key, e.wanted), e.skip or e.because) for e in plan.expectations]),
    ]
    if verbose:
        parts += (
            f"\n{env_file.path}\n{textwrap.indent(env_file.text, '  | ')}" for env_file in plan.env_files
        )
    return "".join(parts) + findings_text(plan.findings) + f"\nVerdict: {plan.verdict}\n"


def _expected(key: str, wanted: str) -> str:
    return f"{key} = {wanted}" if key else "passes"


def commands(plan: BuildPlan) -> Iterable[Command]:
    """Return the commands of a plan in their order."""
    environment = plan.environment
    compiling = plan.way.configure or plan.compile
    steps = (
        environment.create,
        environment.remove,
        environment.install,
        environment.better,
        plan.way.ninja,
        compiling,
    )
    return (step for step in steps if step is not None)


def command_text(command: Command) -> str:
    """Return a command as it could be typed, with its reason under it."""
    return f"  $ {shell_text(command.argv)}\n      {command.because}\n"


def findings_text(findings: Sequence[Finding]) -> str:
    """Return every finding with its mark; what to do stands under it."""
    if not findings:
        return ""
    return "\nFindings\n" + "".join(map(finding_text, findings))


def facts_text(facts: Facts, *, verbose: bool = False) -> str:
    """Return the facts as a page; with `verbose` also where missing tools were looked for."""
    host, cpu, tree = facts.host, facts.cpu, facts.tree
    rows = [
        (
            "system",
            ", ".join(
                filter(None, (host.distribution or host.os, host.arch, _kernel(host.kernel), host.libc))
            ),
        ),
        ("cores", _cores(cpu.cores, cpu.affinity, cpu.quota, cpu.quota_via)),
        ("memory", _memory(facts)),
        ("disk", f"{_gib(facts.disk.free)} free of {_gib(facts.disk.total)} on {facts.disk.mount}"),
    ]
    if facts.windows:
        rows += _windows(facts.windows, verbose)
    rows += [(tool.name, _tool(tool, verbose)) for tool in (*facts.compilers, *facts.tools)]
    rows += cuda_rows(facts.cuda, verbose) if facts.cuda else ()
    rows += [("python", _python(p.executable, p.version, p.found_via, p.problem)) for p in facts.pythons]
    rows.append(("source", f"{tree.root}: {tree.problem or f'torch {tree.version}, {tree.era}'}"))
    if tree.commit:
        rows.append(("commit", tree.commit + (" with uncommitted changes" if tree.dirty else "")))
    if facts.store:
        rows.append(("helpers", f"{len(facts.store.unpacked)} in {facts.store.folder}"))
    rows += [(name, value) for name, value in facts.environ.items()]
    return "Facts\n" + columns(rows)


def _windows(windows: Windows, verbose: bool) -> Iterator[tuple[str, str]]:
    for studio in windows.visual_studios:
        name = " ".join(filter(None, (studio.product, studio.release or studio.version)))
        lacks = "" if studio.vcvarsall else ", without the C++ workload"
        yield "Visual Studio", f"{name}  {studio.path} ({studio.found_via}){lacks}"
    if not windows.visual_studios:
        yield "Visual Studio", "not found" + (f" in {', '.join(windows.looked)}" if verbose else "")
    for toolset in windows.toolsets:
        active = ", active in this shell" if toolset.version == windows.active else ""
        yield "toolset", f"{toolset.version}  {toolset.cl or 'without a compiler for 64 bits'}{active}"
    yield "Windows SDK", ", ".join(windows.sdks) or "not found"
    yield "long paths", f"{_switch(windows.long_paths)}, in git {_switch(windows.git_long_paths)}"
    yield "Developer Mode", _switch(windows.developer_mode)
    yield "shell", windows.shell or "unknown"


def _switch(on: bool | None) -> str:
    return "unknown" if on is None else "on" if on else "off"


def _kernel(kernel: str | None) -> str | None:
    return kernel and f"kernel {kernel}"


def _gib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / GIB:.1f} GiB"


def _cores(cores: int, affinity: int | None, quota: float | None, via: str | None) -> str:
    limits = [f"{affinity} by affinity"] if affinity is not None and affinity != cores else []
    limits += [f"{quota:g} by cgroup quota ({via})"] if quota is not None else []
    return f"{cores}" + (f" ({', '.join(limits)})" if limits else "")


def _memory(facts: Facts) -> str:
    memory = facts.memory
    text = f"{_gib(memory.available)} free of {_gib(memory.total)}"
    if memory.limit is not None:
        text += (
            f", limit {_gib(memory.limit)} of which {_gib(memory.used_in_limit)} used ({memory.limit_via})"
        )
    return text


def _tool(tool: Tool, verbose: bool) -> str:
    if tool.path is None:
        return "not found" + (f" in {', '.join(tool.looked)}" if verbose else "")
    return f"{tool.version or 'version unknown'}  {tool.path} ({tool.found_via})"


def _python(executable: str, version: str | None, via: str, problem: str | None) -> str:
    return f"{version or problem}  {executable} ({via})"


def cuda_rows(cuda: Cuda, verbose: bool) -> Iterator[tuple[str, str]]:
    """Go through name and text of each line; with `verbose` also where toolkits were looked for."""
    for toolkit in cuda.toolkits:
        yield "CUDA toolkit", _toolkit(toolkit)
    if not cuda.toolkits:
        yield "CUDA toolkit", "not found" + (f" in {', '.join(cuda.looked)}" if verbose else "")
    for library in cuda.libraries:
        where = library.include or library.library
        yield library.name, f"{library.version or 'version unknown'}  {where} ({library.found_via})"
    if cuda.tegra:
        l4t = f", L4T {cuda.tegra.l4t}" if cuda.tegra.l4t else ""
        yield "board", f"{cuda.tegra.model}{l4t}"
    for gpu in cuda.gpus:
        yield "GPU", _gpu(gpu)
    if cuda.driver:
        yield "NVIDIA driver", _driver(cuda.driver)
    if cuda.visible is not None:
        yield "CUDA_VISIBLE_DEVICES", cuda.visible or "(empty: hides every GPU)"
    if verbose or cuda.gpus:
        for probe, said in cuda.probes.items():
            yield f"probe {probe}", said


def _toolkit(toolkit: Toolkit) -> str:
    said = f"{toolkit.version or 'version unknown'}  {toolkit.path} ({toolkit.found_via})"
    if toolkit.problem:
        return f"{said}: {toolkit.problem}"
    lacks = [name for name, there in (("nvcc", toolkit.nvcc), ("headers", toolkit.headers)) if not there]
    lacks += ["libraries"] if not toolkit.libraries else []
    has = [
        f"{name} {version}" for name, version in (("cuDNN", toolkit.cudnn), ("NCCL", toolkit.nccl)) if version
    ]
    said += f", without {' and '.join(lacks)}" if lacks else ""
    return said + (f", with {' and '.join(has)}" if has else "")


def _gpu(gpu: GpuSeen) -> str:
    parts = [gpu.name or gpu.chip or gpu.pci_id or "unnamed"]
    if gpu.capability:
        parts.append(f"compute capability {gpu.capability}")
    if gpu.memory:
        parts.append(f"{gpu.memory / GIB:.0f} GiB")
    parts += ["split by MIG"] if gpu.mig else []
    at = f" at {gpu.bus}" if gpu.bus else ""
    return f"{', '.join(parts)}{at} ({gpu.probe})"


def _driver(driver: Driver) -> str:
    said = f"{driver.version or 'version unknown'} ({driver.found_via})"
    if driver.cuda:
        said += f", runs CUDA up to {driver.cuda}"
    if driver.module and driver.library and driver.module != driver.library:
        said += f", kernel module {driver.module}, library {driver.library}"
    return said + (f": {driver.problem}" if driver.problem else "")


def env_text(plan: BuildPlan, dry_run: bool) -> str:
    """Return what `env` wrote, or would write."""
    if dry_run:
        return "".join(f"# {env_file.path}\n{env_file.text}\n" for env_file in plan.env_files)
    return "".join(f"wrote {env_file.path}\n" for env_file in plan.env_files)


def report_text(report: VerifyReport) -> str:
    """Return the verification's result, a line a check."""
    version = report.torch.get("version", "torch")
    rows = [(OUTCOME[check.outcome], check.check, check.detail) for check in report.checks]
    failed = sum(check.outcome == "failed" for check in report.checks)
    skipped = sum(check.outcome == "not possible" for check in report.checks)
    passed = len(report.checks) - failed - skipped
    total = f"{passed} passed, {failed} failed, {skipped} not possible here"
    return f"Verification of {version} by {report.python}\n{columns(rows)}{total}\n"


def removal_text(removal: Removable, uninstall: Command | None) -> str:
    """Return what a clean would remove, by folder, and what it keeps with the reason."""
    counts: dict[str, int] = {}
    for path in removal.files:
        top = "/".join(path.split("/")[:2]) + "/" if path.count("/") > 1 else path
        counts[top] = counts.get(top, 0) + 1
    rows = [(top, f"{number} file{'s' if number > 1 else ''}") for top, number in counts.items()]
    parts = [f"To be removed from {removal.root}: {len(removal.files)} files\n", columns(rows)]
    if uninstall:
        parts.append(f"  {uninstall.because}\n")
    if removal.kept:
        parts += ["Kept\n", columns(removal.kept)]
    return "".join(parts)


def size_text(count: int) -> str:
    """Return bytes in decimal units, as disks and networks are sold."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"

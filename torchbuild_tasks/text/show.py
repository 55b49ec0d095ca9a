"""Format values as text: the plan, the findings, the facts, and the results of verbs.

Text in aligned columns, with marks (page.py) where a terminal has colours. Nothing is printed here.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.model import (
    BuildPlan,
    CacheReport,
    Choice,
    Command,
    Cpu,
    Cuda,
    Driver,
    Facts,
    Finding,
    GpuSeen,
    Tool,
    Toolkit,
    Windows,
)
from torchbuild_tasks.model.record import Built, Removal, VerifyReport
from torchbuild_tasks.text.page import Style, styled
from torchbuild_tasks.text.words import DRIVE, counted, shell_line

MARK = {"ok": "ok     ", "warn": "warning", "error": "error  ", "unknown": "unknown", "skipped": "skipped"}
WAYS = {
    "front end": "the whole build, by setup.py or pip",
    "install": "by Ninja and install, unless an installed file was changed or lost",
    "from-wheel": "the libraries of a wheel are laid over the checkout",
}
NEEDS: dict[str, str] = {
    "first": "a first build",
    "nothing": "goes on as it is",
    "build": "goes on with another build",
    "reconfigure": "CMake has to run again",
    "clean": "has to be made anew (--clean)",
}
VERDICT_STYLE: dict[str, Style] = {"ok": "good", "warn": "warning", "refuse": "error"}
OUTCOME = {"passed": "passed      ", "failed": "FAILED      ", "not possible": "not possible"}
STYLE_OF: dict[str, Style] = {"ok": "good", "warn": "warning", "error": "error", "unknown": "warning"}
# The groups of a plan's decisions in order; all others are build variables.
GROUPS = (
    ("What is built", ("source", "torch", "era", "preset", "build type", "mode")),
    ("Where it goes", ("python", "from PyPI", "env shell")),
    (
        "With what",
        (
            *("wheel", "toolset", "CXX", "CC", "CUDA toolkit", "GPU architectures"),
            *("BLAS library", "linker", "compiler cache"),
        ),
    ),
    ("How fast", ("jobs", "jobserver", "distribute")),
)
_ORDER = ("error", "warn", "unknown")
_WIDEST = 20  # cells of a value up to which others are aligned
_PROGRAM_OF_WINDOWS = re.compile(r"(?:winget|.*\.(?:exe|bat|cmd))$", re.IGNORECASE)


def shell_text(argv: Sequence[str]) -> str:
    """Return a command line for a shell of the system that its program and its paths are of."""
    windows = any(map(DRIVE.match, argv)) or any(map(_PROGRAM_OF_WINDOWS.match, argv[:1]))
    return shell_line(argv, windows=windows)


def finding_text(finding: Finding) -> str:
    """Return one finding with its mark, and its fix below."""
    fix = f"           -> {finding.fix}\n" if finding.fix else ""
    mark = MARK[finding.status]
    style = STYLE_OF.get(finding.status)
    return f"  {styled(style, mark) if style else mark}  {finding.text}\n{fix}"


def columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Return rows as aligned columns, the last one unpadded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1] if rows else []
    lines = (
        indent + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def plan_text(plan: BuildPlan, *, verbose: bool = False) -> str:
    """Return the plan: choices in groups with value and reason, then the commands."""
    verdict = f"\nVerdict: {styled(VERDICT_STYLE[plan.verdict], plan.verdict)}\n"
    if any(finding.id == "source" and finding.status == "error" for finding in plan.findings):
        return f"Nothing is planned: there is no checkout to build.\n{findings_text(plan.findings)}{verdict}"
    parts = [
        *_choices(plan),
        f"{styled('strong', 'Build tree')}: {plan.build_dir}\n",
        f"  {NEEDS[plan.freshness.needs]}: {plan.freshness.because}\n",
        columns(
            [
                (c.name, f"{c.before} -> {c.after}", f"needs {c.needs}", c.because)
                for c in plan.freshness.changes
            ],
            "    ",
        ),
        f"  {WAYS[plan.way.name]}: {plan.way.because}\n",
        f"\n{styled('strong', 'Commands')}\n",
        *(command_text(command) for command in commands(plan)),
        f"\n{styled('strong', 'Env files')}\n",
        *(f"  {env_file.path}\n" for env_file in plan.env_files),
        f"\n{styled('strong', 'Verification')}\n" if plan.expectations else "",
        columns(
            [
                (e.check, f"{e.key} = {e.wanted}" if e.key else "passes", e.skip or e.because)
                for e in plan.expectations
            ]
        ),
    ]
    if verbose:
        parts += (
            f"\n{env_file.path}\n{textwrap.indent(env_file.text, '  | ')}" for env_file in plan.env_files
        )
    return "".join(parts) + findings_text(plan.findings) + verdict


def _choices(plan: BuildPlan) -> Iterator[str]:
    """Yield the decisions by group; a star marks changes since the last build."""
    before = {change.name.removeprefix("variable "): change.before for change in plan.freshness.changes}
    rest = list(plan.choices)
    for title, names in (*GROUPS, ("Build variables", ())):
        group = [c for c in rest if c.name in names or not names]
        rest = [c for c in rest if c not in group]
        if group:
            yield f"{styled('strong', title)}\n"
            yield from _group(group, before)
            yield "\n"


def _group(group: Sequence[Choice], before: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each decision: value, source if not the default, and reason."""
    widest = max(len(choice.name) for choice in group)
    values = max((len(c.value) for c in group if len(c.value) <= _WIDEST), default=0)
    for choice in group:
        changed = choice.name in before
        line = f"{'*' if changed else ' '} {choice.name:<{widest}}  {choice.value:<{values}}  "
        line += f"[{choice.source}] " if choice.source != "default" else ""
        line += f"{choice.because} ({_was(before[choice.name])})" if changed else choice.because
        style: Style | None = "changed" if changed else "dim" if choice.source == "default" else None
        yield (styled(style, line) if style else line) + "\n"


def _was(before: str) -> str:
    return "was not set" if before == "(not set)" else f"was {before}"


def commands(plan: BuildPlan) -> Iterable[Command]:
    """Return the commands of a plan in their order; of a plan without its own build, the ones before it."""
    environment = plan.environment
    alone = plan.way.name == "from-wheel" or plan.way.target
    steps = (
        environment.create,
        environment.remove,
        environment.install,
        environment.better,
        plan.way.configure,
        plan.way.ninja,
        None if alone else plan.compile,
        *(Command(argv=each.argv, cwd=plan.source, because=each.because) for each in plan.companions),
    )
    return (step for step in steps if step is not None and step.argv)


def command_text(command: Command) -> str:
    """Return a command line with its reason below."""
    return f"  $ {shell_text(command.argv)}\n      {command.because}\n"


def findings_text(findings: Sequence[Finding]) -> str:
    """Return every finding with its mark, and its fix below."""
    if not findings:
        return ""
    return f"\n{styled('strong', 'Findings')}\n" + "".join(map(finding_text, findings))


def doctor_text(plan: BuildPlan, facts: Facts, *, verbose: bool = False) -> str:
    """Return the doctor's report: the verdict, the problems with fixes, then the facts."""
    bad = [each for each in plan.findings if each.status not in ("ok", "skipped")]
    fine = [each for each in plan.findings if each.status in ("ok", "skipped")]
    counts = [
        f"{number} {word}{'s' if number > 1 and word in ('error', 'warning') else ''}"
        for status, word in (("error", "error"), ("warn", "warning"), ("unknown", "unknown"), ("ok", "ok"))
        if (number := sum(each.status == status for each in plan.findings))
    ]
    words = {"refuse": "this cannot be built", "warn": "this can be built", "ok": "all is well"}[plan.verdict]
    head = styled(VERDICT_STYLE[plan.verdict], f"Verdict: {plan.verdict}") + f", {words}"
    text = f"{head} ({', '.join(counts)})\n" if counts else f"{head}\n"
    text += "".join(map(finding_text, sorted(bad, key=lambda each: _ORDER.index(each.status))))
    return text + f"\n{facts_text(facts, verbose=verbose)}" + findings_text(fine)


def facts_text(facts: Facts, *, verbose: bool = False) -> str:
    """Return the facts as a page; with `verbose` also the places searched for missing tools."""
    host = facts.host
    tree = facts.tree
    disk = facts.disk
    kernel = host.kernel and f"kernel {host.kernel}"
    rows = [
        ("system", ", ".join(filter(None, (host.distribution or host.os, host.arch, kernel, host.libc)))),
        ("cores", _cores(facts.cpu)),
        ("memory", _memory(facts)),
        ("disk", f"{_gib(disk.free)} free of {_gib(disk.total)} on {disk.mount or disk.path}"),
    ]
    if facts.windows:
        rows += _windows(facts.windows, verbose)
    rows += [(tool.name, _tool(tool, verbose)) for tool in (*facts.compilers, *facts.tools)]
    rows += cuda_rows(facts.cuda, verbose) if facts.cuda else ()
    rows += [("python", f"{p.version or p.problem}  {p.executable} ({p.found_via})") for p in facts.pythons]
    rows.append(("source", f"{tree.root}: {tree.problem or f'torch {tree.version}, {tree.era}'}"))
    if tree.commit:
        rows.append(("commit", tree.commit + (" with uncommitted changes" if tree.dirty else "")))
    if facts.store:
        rows.append(("helpers", f"{len(facts.store.unpacked)} in {facts.store.folder}"))
    rows += [(name, value) for name, value in facts.environ.items()]
    return f"{styled('strong', 'Facts')}\n" + columns(rows)


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


def _gib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / GIB:.1f} GiB"


def _cores(cpu: Cpu) -> str:
    limits = [f"{cpu.affinity} by affinity"] if cpu.affinity not in (None, cpu.cores) else []
    limits += [f"{cpu.quota:g} by cgroup quota ({cpu.quota_via})"] if cpu.quota is not None else []
    return f"{cpu.cores}" + (f" ({', '.join(limits)})" if limits else "")


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


def cuda_rows(cuda: Cuda, verbose: bool) -> Iterator[tuple[str, str]]:
    """Yield name and text of each line; with `verbose` also the places searched for toolkits."""
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
        for probe, answer in cuda.probes.items():
            yield f"probe {probe}", answer


def _toolkit(toolkit: Toolkit) -> str:
    text = f"{toolkit.version or 'version unknown'}  {toolkit.path} ({toolkit.found_via})"
    if toolkit.problem:
        return f"{text}: {toolkit.problem}"
    lacks = [name for name, there in (("nvcc", toolkit.nvcc), ("headers", toolkit.headers)) if not there]
    lacks += ["libraries"] if not toolkit.libraries else []
    has = [
        f"{name} {version}" for name, version in (("cuDNN", toolkit.cudnn), ("NCCL", toolkit.nccl)) if version
    ]
    text += f", without {' and '.join(lacks)}" if lacks else ""
    return text + (f", with {' and '.join(has)}" if has else "")


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
    text = driver.version or "version unknown"
    text += f" ({driver.found_via})" if driver.found_via else ""  # one that gave no answer was not found
    if driver.cuda:
        text += f", runs CUDA up to {driver.cuda}"
    if driver.module and driver.library and driver.module != driver.library:
        text += f", kernel module {driver.module}, library {driver.library}"
    return text + (f": {driver.problem}" if driver.problem else "")


def env_text(plan: BuildPlan, dry_run: bool) -> str:
    """Return the text of `env`: the files that it wrote, or would write."""
    if dry_run:
        return "".join(f"# {env_file.path}\n{env_file.text}\n" for env_file in plan.env_files)
    return "".join(f"wrote {env_file.path}\n" for env_file in plan.env_files)


def report_text(report: VerifyReport) -> str:
    """Return the verification's result, one line for each check."""
    rows = [(OUTCOME[check.outcome], check.check, check.detail) for check in report.checks]
    head = f"Verification of {report.torch.get('version', 'torch')} by {report.python}"
    return f"{head}\n{columns(rows)}{_counts(report)}\n"


def _counts(report: VerifyReport) -> str:
    failed = len(report.failed)
    skipped = sum(check.outcome == "not possible" for check in report.checks)
    passed = len(report.checks) - failed - skipped
    return f"{passed} passed, {failed} failed, {skipped} not possible here"


def built_text(
    built: Built, seconds: float, *, windows: bool, verbose: bool = False, target: str | None = None
) -> str:
    """Return the summary of a build: its version and place, the times, and how to use it."""
    verified = built.verified
    plan = built.plan
    values = plan.decided
    if built.up_to_date and verified is None:
        return f"torch {values.get('torch', '')} in {plan.source} is up to date ({took(seconds)})\n"
    text = ""
    if verified and (verbose or verified.failed):
        text = f"{report_text(verified)}\n"
    elif verified:
        text = f"Verification: {_counts(verified)}\n"
    device = "CUDA" if values.get("USE_CUDA", "0") not in ("0", "OFF") else "CPU"
    compiled = plan.way.name != "from-wheel"
    parts = ", ".join((device, values.get("build type", ""), plan.mode) if compiled else ("from a wheel",))
    what = f"{target} of torch" if target else "torch"
    stages = sorted(built.stages, key=lambda each: -each.seconds)
    rows = [
        ("in", plan.build_dir if target else plan.source),
        ("wheel", built.wheel),
        ("with", ", ".join(f"{each.name} {each.version}".rstrip() for each in plan.companions)),
        ("time", ", ".join(f"{each.stage} {took(each.seconds)}" for each in stages if each.seconds >= 1)),
        *(("cache", _hits(report)) for report in built.caches if report.looked),
        *(("warning", each.text) for each in plan.told),
        ("log", built.log),
        ("report", "torchbuild report" if built.log else ""),
    ]
    # The version that torch reports, which PYTORCH_BUILD_VERSION may have changed.
    version = (verified.torch.get("version") if verified else "") or values.get("torch", "")
    head = styled("good", f"Built {what}") + f" {version} ({parts}) in {took(seconds)}\n"
    # A command on a line of its own is wrapped so that it can be copied.
    argv = (plan.environment.python, "-c", "import torch; print(torch.__version__)")
    use = "" if target else f"  use it\n  $ {shell_line(argv, windows=windows)}\n"
    return text + head + columns([row for row in rows if row[1]]) + use


def took(seconds: float) -> str:
    """Return a duration as text for a person."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _hits(report: CacheReport) -> str:
    share = report.found / report.looked
    return f"{report.tool}: {report.found} of {report.looked} compiles found ({share:.0%})"


def removal_text(removal: Removal) -> str:
    """Return the files that a clean would remove, by folder, and those it keeps, or the patches it undoes."""
    if removal.patches:
        return "".join(f"source patch {id}: would be undone\n" for id in removal.patches)
    if not (removal.files or removal.uninstall or removal.kept):
        return f"Nothing to remove: no build is recorded in {removal.root}.\n"
    tops = ("/".join(path.split("/")[:2]) + "/" if path.count("/") > 1 else path for path in removal.files)
    counts = Counter(tops)
    rows = [(top, counted(number, "file")) for top, number in counts.items()]
    parts = [f"To be removed from {removal.root}: {counted(len(removal.files), 'file')}\n", columns(rows)]
    if removal.uninstall:
        parts.append(f"  {removal.uninstall.because}\n")
    if removal.kept:
        parts += ["Kept\n", columns(removal.kept)]
    return "".join(parts)


def size_text(count: int) -> str:
    """Return bytes in decimal units, as for disks and networks."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"

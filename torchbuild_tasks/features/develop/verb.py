"""`debug-config`, `test` and `bench`: work on torch with a debugger, upstream's tests and benchmarks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.features.develop.act import DebugConfig

import json

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.features.develop.choose import Debugging
from torchbuild_tasks.features.develop.look import look_at_debugging
from torchbuild_tasks.plan.packages import how_to_install
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.text.show import findings_text
from torchbuild_tasks.values import replace


def debug_text(config: DebugConfig, *, dry_run: bool) -> str:
    """Return the names of the written files, and the entries for files that were not changed."""
    lines = []
    for file in config.files:
        if file.problem:
            lines.append(f"{file.path} was left as it is: {file.problem}. Put this into it yourself:")
            lines.append(json.dumps(file.entries, indent=4))
        else:
            lines.append(f"{file.path} {'would get' if dry_run else 'has'} the entries `torchbuild: ...`")
    return "\n".join((*lines, config.commands, "")) + findings_text(config.findings)


def debugging(question: Question, python: str) -> Debugging:
    """Look at the debugger, the right to attach, and the debug information of this Python's torch."""
    tree = question.facts.tree
    probe = Probe()
    known = question.facts.python_at(python)
    packages = tuple(known.packages) if known else ()
    debugging = look_at_debugging(tree.root, question.build_dir, python, packages, probe)
    return replace(debugging, install_gdb=how_to_install(question.facts, question.catalog, "gdb"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpstreamRequest(BuildRequest):
    """The words of `test` and `bench`."""

    trailing = True


def debug_config(request: BuildRequest, report: Reporter) -> Outcome:
    """Write entries for VS Code's debuggers, link compile_commands.json, and check."""
    config = write_entries(request)
    bad = any(file.problem for file in config.files)
    return Outcome(config, debug_text(config, dry_run=request.dry_run), UsageError.exit_code if bad else 0)


def write_entries(request: BuildRequest) -> DebugConfig:
    """Write the entries for a debugger, and check what is missing for one."""
    from torchbuild_tasks.context import decide, look, require_checkout
    from torchbuild_tasks.features.develop.act import write_debug_config

    question = look(request)
    root = require_checkout(question)
    python = decide(question).environment.python
    return write_debug_config(root, debugging(question, python), dry_run=request.dry_run)


def test(request: UpstreamRequest, report: Reporter) -> Outcome:
    """Run upstream's tests with the built torch; words after -- are passed on."""
    from torchbuild_tasks.features.develop.act import run_tests

    code = run_upstream(request, report, run_tests)
    return Outcome({"exit_code": code}, exit_code=code)


def bench(request: UpstreamRequest, report: Reporter) -> Outcome:
    """Run upstream's operator benchmarks with the built torch; words after -- are passed on."""
    from torchbuild_tasks.features.develop.act import run_benchmarks

    code = run_upstream(request, report, run_benchmarks)
    return Outcome({"exit_code": code}, exit_code=code)


def run_upstream(request: UpstreamRequest, report: Reporter, program: Callable[..., int]) -> int:
    """Run a program of the checkout with the Python that got torch; return its exit code."""
    from torchbuild_tasks.context import decide, look, require_checkout

    question = look(request)
    with interruptible():
        root = require_checkout(question)
        python = decide(question).environment.python
        return program(root, python, request.only, request.words, report.stream(), report.note)

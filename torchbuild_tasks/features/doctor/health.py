"""The looks of the doctor, bootstrap and support that no build needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.context import fetching_of
from torchbuild_tasks.facts.gather import gather
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import layers_around_environment
from torchbuild_tasks.values import replace

# Seconds that the doctor waits for a program. Compilers and the like print their version in hundredths;
# a build, which has to be right about a machine that just woke up, waits for longer.
PATIENCE: Final = 5.0


def examine(question: Question, made_plan: BuildPlan) -> Question:
    """Return the same with the build's surroundings, and how the hosts that the plan needs answer."""
    from concurrent.futures import ThreadPoolExecutor

    from torchbuild_tasks.features.doctor.act import ask_hosts, written_folders
    from torchbuild_tasks.features.doctor.check_network import proxy_problems
    from torchbuild_tasks.features.doctor.look import look_at_health, temporary_folder

    facts, net = question.facts, fetching_of(question).net
    around = layers_around_environment(
        question.request, question.settings, question.catalog, windows=facts.host.os == "windows"
    )
    probe = Probe(environ=dict(os.environ), patience=PATIENCE).with_settings(*around)
    patterns = tuple(row.name for row in question.catalog.variable)
    with ThreadPoolExecutor(max_workers=1) as pool:
        answers = pool.submit(ask_hosts, made_plan, facts, net)
        folders = written_folders(made_plan, facts, temporary_folder(probe))
        health = look_at_health(probe, facts, folders, patterns, made_plan.build_dir)
        health = replace(
            health, reached=answers.result(), offline=net.offline, proxies=proxy_problems(os.environ)
        )
    cut = tuple(sorted({*facts.cut, *probe.cut}))
    return replace(question, facts=replace(facts, cut=cut, health=health))


def look_without_settings(request: BuildRequest) -> Question:
    """Look at the machine and the checkout alone, where settings or flags cannot be understood."""
    root = str(Path(request.source or ".").expanduser().resolve())
    catalog = load_catalog()
    patterns = tuple(row.name for row in catalog.variable)
    probe = Probe(environ=dict(os.environ), patience=PATIENCE)
    facts = gather(source=root, python=None, patterns=patterns, probe=probe)
    return Question(BuildRequest(source=request.source, out=request.out, offline=True), facts, catalog)

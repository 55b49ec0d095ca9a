"""Gather facts for doctor, bootstrap and support that builds do not need."""

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

# Seconds that the doctor waits for a program. Compilers print their version within hundredths; a build
# waits for longer, since a machine may have just been resumed.
PATIENCE: Final = 5.0


def examine(question: Question, made_plan: BuildPlan) -> Question:
    """Return the question with facts of the surroundings, and of the hosts that the plan needs."""
    from concurrent.futures import ThreadPoolExecutor

    from torchbuild_tasks.features.doctor.act import ask_hosts, written_folders
    from torchbuild_tasks.features.doctor.check_network import proxy_problems
    from torchbuild_tasks.features.doctor.look import look_at_health, temporary_folder

    facts = question.facts
    net = fetching_of(question).net
    around = layers_around_environment(
        question.request, question.settings, question.catalog, windows=facts.host.os == "windows"
    )
    probe = Probe(patience=PATIENCE).with_settings(*around)
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
    """Gather the facts of machine and checkout without settings, if these or the flags are invalid."""
    root = str(Path(request.source or ".").expanduser().resolve())
    catalog = load_catalog()
    patterns = tuple(row.name for row in catalog.variable)
    probe = Probe(patience=PATIENCE)
    facts = gather(source=root, python=None, patterns=patterns, probe=probe)
    return Question(BuildRequest(source=request.source, out=request.out, offline=True), facts, catalog)

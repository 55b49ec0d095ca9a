"""Write the manifest of a build: start it, record the source, complete it at the end."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torchbuild_tasks.build.ledger import now
from torchbuild_tasks.build.work import Work
from torchbuild_tasks.errors import BuildFailed, SourceError
from torchbuild_tasks.facts.answers import Answers
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import BuildPlan, Facts
from torchbuild_tasks.model.record import EnvText, HelperUsed, Installed, Manifest, Program
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan import env_files
from torchbuild_tasks.plan.jobs import decisive_peaks
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.settings import Settings
from torchbuild_tasks.values import replace, to_json

# Every build imports this module. Modules that query git and programs, or redact credentials, are imported
# where they are used, so that a no-op build starts fast.


def start_manifest(
    question: Question, plan: BuildPlan, tool: str, *, started: str, result: str = "running"
) -> Manifest:
    """Return the manifest of a new build by `tool`, without data of the one before."""
    return Manifest(
        tool=tool,
        result=result,
        started=started,
        root=plan.source,
        build_dir=plan.build_dir,
        era=plan.era,
        request=flags_set(question.request),
        settings=_settings(question.settings),
        facts=_facts_to_record(question.facts, plan),
        python=plan.environment.python,
        python_version=plan.environment.version,
        choices=plan.choices,
        inputs=plan.inputs,
        env=plan.env,
        env_files=tuple(
            EnvText(
                shell=file.shell,
                path=file.path,
                text=file.text,
                sha256=_sha(env_files.encode(file.shell, file.text)),
            )
            for file in plan.env_files
        ),
        argv=plan.compile.argv,
        patches={each.id: _sha(each.diff.encode()) for each in plan.patches},
    )


def note_source(work: Work) -> None:
    """Record the checkout's state before the first command, since it may be edited during the build."""
    _add_source(work)
    work.ledger.save()


def _add_source(work: Work) -> None:
    noted = work.ledger.manifest
    if not noted.repositories and not noted.source_problem:
        work.ledger.note(**_source(work.facts, work.plan))


def complete_manifest(work: Work) -> None:
    """Add the data that is known at the end; report a failure in one line, since torch is built."""
    from torchbuild_tasks.build.answers import keep_answers

    probe = Probe()
    answers = Answers(probe.state_folder())
    probe = replace(probe, answers=answers)
    try:
        _add_source(work)  # of a build that was ended before its first command
        work.ledger.note(**_tools_used(probe, work.facts, work.plan, work.ledger.environ or os.environ))
        work.ledger.save()
        keep_answers(answers)
    except BuildFailed as problem:
        work.report.note(f"The manifest of this build is not complete: {problem.what}")


def plan_manifest(question: Question, plan: BuildPlan, tool: str) -> Manifest:
    """Return the manifest that a build of this plan would have, as far as it is known before."""
    folders = [op.value for op in plan.env if (op.op, op.name) == ("prepend", "PATH")]
    path = os.pathsep.join((*reversed(folders), os.environ.get("PATH", "")))
    source = _source(question.facts, plan)
    used = _tools_used(Probe(), question.facts, plan, {"PATH": path})
    planned = start_manifest(question, plan, tool, started=now(), result="planned")
    return redact(replace(planned, **source, **used))


def redact(manifest: Manifest) -> Manifest:
    """Return the manifest without secrets."""
    from torchbuild_tasks.features.manifest.choose import without_secrets

    return without_secrets(manifest)


def _source(facts: Facts, plan: BuildPlan) -> dict[str, Any]:
    """Return git's data, or why there is none, as fields of a manifest."""
    from torchbuild_tasks.features.manifest.state import look_at_repositories

    root = Path(plan.source)
    if not facts.tree.git:
        return {"source_problem": "no git repository: an archive or a plain folder"}
    env_files = (Path(each.path) for each in plan.env_files)
    ours = {path.relative_to(root).as_posix() for path in env_files if path.is_relative_to(root)}
    try:
        return {"repositories": look_at_repositories(root, frozenset(ours | {"torchbuild.lock"}))}
    except SourceError as error:
        return {"source_problem": " ".join((error.what, *error.looked[-1:]))}


def _tools_used(probe: Probe, facts: Facts, plan: BuildPlan, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the programs, helpers and packages of a build in `environ`, as fields of a manifest."""
    from torchbuild_tasks.features.manifest.state import list_installed

    packages = list_installed(probe, plan.environment.python)
    store = facts.store
    return {
        "programs": tuple(_programs(facts, plan, environ, packages)),
        "helpers": tuple(_helpers(plan, Path(store.folder))) if store else (),
        "requirements": packages,
    }


def flags_set(request: BuildRequest) -> Mapping[str, object]:
    """Return the flags of a request that were set, by name."""
    flags = {name: value for name, value in to_json(request).items() if value not in (None, False, [], ())}
    origins = ("from_environment", "denied_by_environment")
    return {name: value for name, value in flags.items() if name not in origins}


def _facts_to_record(facts: Facts, plan: BuildPlan) -> Facts:
    """Return the facts without the build before, and without the peak memory of other builds."""
    tree = replace(facts.tree, previous=None, installed=None, running=None)
    store = facts.store
    if store is not None:
        peaks = decisive_peaks(store.peaks, plan.source, plan.decided.get("build type", ""))
        store = replace(store, peaks=peaks)
    return replace(facts, tree=tree, store=store)


def _settings(settings: Settings) -> Mapping[str, object]:
    """Return torchbuild.toml without rows about failures, which do not affect a build."""
    path = settings.path or next(iter(settings.places.values()), None)
    if path is None:
        return {}
    parts = ("values", "variables", "helpers")
    return {"path": path, **{part: to_json(getattr(settings, part)) for part in parts}}


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _programs(
    facts: Facts, plan: BuildPlan, environ: Mapping[str, str], packages: tuple[Installed, ...]
) -> Iterator[Program]:
    """Yield compilers, CMake and Ninja on the build's PATH, the cache, the linker, git."""
    from torchbuild_tasks.features.manifest.state import program

    chosen = plan.decided
    tools = {tool.name: tool for tool in (*facts.compilers, *facts.tools)}
    versions = {tool.path: tool.version for tool in tools.values() if tool.path}
    of_packages = {each.name.lower(): each.version for each in packages}
    scripts = Path(plan.environment.python).parent
    for name in ("CXX", "CC", "CUDAHOSTCXX", "CMAKE_CUDA_COMPILER"):
        if value := chosen.get(name):
            path = _cl(facts, chosen) or value if value == "cl" else value
            path = path if Path(path).exists() else path.split()[0]
            yield program(name, path, versions.get(path), environ)
    for name in ("cmake", "ninja", "git"):
        seen = program(name, name, None, environ)
        if seen.sha256:
            version = of_packages.get(name) if Path(seen.path).parent == scripts else versions.get(seen.path)
            yield program(name, name, version, environ)
    if plan.cache:
        yield from (program(each.name, each.program, each.version, environ) for each in plan.cache.tools)
    if plan.linker:
        tool = tools.get(plan.linker.tool)
        yield program("linker", plan.linker.program, tool.version if tool else None, environ)
    root, _, version = plan.inputs.get("cuda toolkit", "").rpartition(" ")
    if root:
        yield program("nvcc", str(Path(root) / "bin" / "nvcc"), version, environ)


def _cl(facts: Facts, chosen: Mapping[str, str]) -> str | None:
    """Return MSVC's compiler by its toolset: it is on PATH only after vcvarsall.bat."""
    toolsets = facts.windows.toolsets if facts.windows else ()
    return next((each.cl for each in toolsets if each.version == chosen.get("toolset")), None)


def _helpers(plan: BuildPlan, store: Path) -> Iterator[HelperUsed]:
    """Yield the helpers of the plan and the parts of a toolkit, each with its archive's hash."""
    from torchbuild_tasks.features.helpers.store import folder_of
    from torchbuild_tasks.system.mark import read_marker

    used = [id for name, id in plan.inputs.items() if name.startswith("helper ")]
    for id in sorted({*used, *(plan.toolkit.parts if plan.toolkit else ())}):
        artifact = next((each for each in plan.artifacts if each.id == id), None)
        marker = read_marker(folder_of(store, artifact.stored_as if artifact else id))
        version = artifact.version if artifact else ""
        yield HelperUsed(id=id, version=version, sha256=marker.sha256 if marker else None)

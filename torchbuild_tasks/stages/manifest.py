"""Writes the manifest of a build beside its record, and says what one would be before it is made.

Everything here is looked at only when something is built: a build that finds nothing to do leaves the last
one's manifest as it is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from torchbuild_tasks.core import env_files
from torchbuild_tasks.core.manifest.secrets import without_secrets
from torchbuild_tasks.core.settings import Settings
from torchbuild_tasks.core.sizes import decisive
from torchbuild_tasks.effects import files
from torchbuild_tasks.effects.helpers.marker import read_marker
from torchbuild_tasks.effects.helpers.store import folder_of
from torchbuild_tasks.effects.ledger import now
from torchbuild_tasks.effects.source_state import look_at_repositories
from torchbuild_tasks.effects.toolchain import installed, program
from torchbuild_tasks.errors import BuildFailed, SourceError
from torchbuild_tasks.manifest import (
    MANIFEST_FILE,
    EnvText,
    HelperUsed,
    Installed,
    Manifest,
    Program,
    Ran,
    Repository,
)
from torchbuild_tasks.model import BuildPlan, Command, Facts
from torchbuild_tasks.record import BuildRecord
from torchbuild_tasks.request import BuildRequest
from torchbuild_tasks.stages.work import Work
from torchbuild_tasks.values import dumps, to_json


class Asked(msgspec.Struct, frozen=True):
    """What a build is made of: the flags (without passwords), torchbuild.toml, the machine and the plan."""

    tool: str
    request: BuildRequest
    settings: Settings
    facts: Facts
    plan: BuildPlan


def note_source(work: Work) -> None:
    """Look at the checkout before the first command of the build, since it may be edited meanwhile."""
    if work.ledger.repositories is None:
        work.ledger.repositories = _repositories(work.facts, work.plan)


def write_manifest(
    work: Work, told: BuildRequest, settings: Settings, record: BuildRecord, tool: str
) -> None:
    """Write it; that it cannot be written is one line, for torch is built all the same."""
    asked = Asked(tool, told, settings, work.facts, work.plan)
    environ = work.ledger.environ or os.environ
    note_source(work)  # a build that was ended before its first command
    manifest = _manifest(asked, work.ledger.repositories, environ, work.ledger.commands, record)
    path = work.build_dir / MANIFEST_FILE
    try:
        files.write_atomic(path, dumps(without_secrets(manifest)).encode(), error=BuildFailed)
    except BuildFailed as problem:
        work.report.note(f"There is no manifest of this build: {problem.what}")


def prospect(asked: Asked) -> Manifest:
    """The manifest that a build of this plan would have, as far as that is known before it."""
    folders = [op.value for op in asked.plan.env if (op.op, op.name) == ("prepend", "PATH")]
    path = os.pathsep.join((*reversed(folders), os.environ.get("PATH", "")))
    repositories = _repositories(asked.facts, asked.plan)
    return without_secrets(_manifest(asked, repositories, {"PATH": path}, (), None))


def _repositories(facts: Facts, plan: BuildPlan) -> tuple[Repository, ...] | str:
    """What git says, or why it says nothing."""
    root = Path(plan.source)
    if not facts.tree.git:
        return "no git repository: an archive or a plain folder"
    env_files = (Path(each.path) for each in plan.env_files)
    ours = {path.relative_to(root).as_posix() for path in env_files if path.is_relative_to(root)}
    try:
        return look_at_repositories(root, frozenset(ours | {"torchbuild.lock"}))
    except SourceError as error:
        return " ".join((error.what, *error.looked[-1:]))


def _manifest(
    asked: Asked,
    repositories: tuple[Repository, ...] | str | None,
    environ: Mapping[str, str],
    commands: tuple[Command, ...],
    record: BuildRecord | None,
) -> Manifest:
    facts, plan, store = asked.facts, asked.plan, asked.facts.store
    known, chosen = isinstance(repositories, tuple), {each.name: each.value for each in plan.choices}
    python = plan.environment.python
    packages = installed(python)
    done: dict[str, Any] = {"result": "planned", "started": now()}
    if record is not None:
        names = ("result", "started", "finished", "caches", "stages", "verify")
        done = {name: getattr(record, name) for name in names}
    return Manifest(
        tool=asked.tool,
        root=plan.source,
        build_dir=plan.build_dir,
        store=store.folder if store else "",
        torch=str(facts.tree.version),
        era=plan.era,
        repositories=repositories if isinstance(repositories, tuple) else (),
        source_problem="" if known else str(repositories),
        request=said(asked.request),
        settings=_settings(asked.settings),
        environ=facts.environ,
        host=facts.host,
        cpu=facts.cpu,
        memory=facts.memory,
        peaks=decisive(store.peaks, plan.source, chosen.get("build type", "")) if store else (),
        python=python,
        python_version=plan.environment.version,
        choices=plan.choices,
        env=plan.env,
        env_files=tuple(_env_text(each.shell, each.path, each.text) for each in plan.env_files),
        commands=tuple(Ran(argv=each.argv, cwd=each.cwd) for each in commands),
        programs=tuple(_programs(facts, plan, environ, packages)),
        helpers=tuple(_helpers(plan, Path(store.folder))) if store else (),
        patches={each.id: _sha(each.diff.encode()) for each in plan.patches},
        requirements=packages,
        **done,
    )


def said(request: BuildRequest) -> Mapping[str, object]:
    """The flags that were given."""
    return {name: value for name, value in to_json(request).items() if value not in (None, False, [], ())}


def _settings(settings: Settings) -> Mapping[str, object]:
    """torchbuild.toml without rows about failures, which decide nothing of a build."""
    if settings.path is None:
        return {}
    parts = ("path", "values", "variables", "helpers")
    return {part: to_json(getattr(settings, part)) for part in parts}


def _env_text(shell: str, path: str, text: str) -> EnvText:
    return EnvText(shell=shell, path=path, sha256=_sha(env_files.encode(shell, text)), text=text)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _programs(
    facts: Facts, plan: BuildPlan, environ: Mapping[str, str], packages: tuple[Installed, ...]
) -> Iterator[Program]:
    """Compilers, CMake and Ninja as the build's PATH has them, the cache, the linker, git."""
    chosen = {choice.name: choice.value for choice in plan.choices}
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
            here = of_packages.get(name) if Path(seen.path).parent == scripts else versions.get(seen.path)
            yield program(name, name, here, environ)
    if plan.cache:
        yield from (program(each.name, each.program, each.version, environ) for each in plan.cache.tools)
    if plan.linker:
        tool = tools.get(plan.linker.tool)
        yield program("linker", plan.linker.program, tool.version if tool else None, environ)
    root, _, version = plan.inputs.get("cuda toolkit", "").rpartition(" ")
    if root:
        yield program("nvcc", str(Path(root) / "bin" / "nvcc"), version, environ)


def _cl(facts: Facts, chosen: Mapping[str, str]) -> str | None:
    """MSVC's compiler by its toolset: on PATH it is only where vcvarsall.bat has been."""
    toolsets = facts.windows.toolsets if facts.windows else ()
    return next((each.cl for each in toolsets if each.version == chosen.get("toolset")), None)


def _helpers(plan: BuildPlan, store: Path) -> Iterator[HelperUsed]:
    """The helpers of the plan and the parts of a toolkit, each with the hash of what was unpacked."""
    used = [id for name, id in plan.inputs.items() if name.startswith("helper ")]
    for id in sorted({*used, *(plan.toolkit.parts if plan.toolkit else ())}):
        marker = read_marker(folder_of(store, id))
        version = next((each.version for each in plan.artifacts if each.id == id), "")
        yield HelperUsed(id=id, version=version, sha256=marker.sha256 if marker else None)

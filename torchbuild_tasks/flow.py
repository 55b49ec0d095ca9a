"""The whole tool on one page: every verb as the steps it takes. Read this first.

    request + facts + catalog -> plan -> stages -> record -> report

A verb returns a value and prints nothing; the fronts print it. What a verb says while
it works goes through the reporter that the front hands in.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from torchbuild_tasks import codec, version
from torchbuild_tasks.catalog import Catalog, load_catalog
from torchbuild_tasks.core.cleaning import uninstall_command
from torchbuild_tasks.core.cuda.check_toolkit import check_toolkit
from torchbuild_tasks.core.cuda.toolkit import choose_toolkit
from torchbuild_tasks.core.decisions import choose_build_type
from torchbuild_tasks.core.env_files import encode
from torchbuild_tasks.core.helper_lines import HelperReport, check_helpers, helper_lines, part_lines
from torchbuild_tasks.core.helpers import choose_helpers
from torchbuild_tasks.core.outputs import patterns
from torchbuild_tasks.core.plan import make_plan
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.settings import Settings, check_settings, check_value, split_assignment
from torchbuild_tasks.core.table import VersionLine, version_lines
from torchbuild_tasks.effects import files, lock, made, process
from torchbuild_tasks.effects.fetch.net import Net, read_mirrors
from torchbuild_tasks.effects.ledger import LOG, LOGS
from torchbuild_tasks.effects.log import last_write
from torchbuild_tasks.effects.signals import interruptible
from torchbuild_tasks.errors import CleanRefused, EnvFileError, PlanRefused, UsageError
from torchbuild_tasks.facts.gather import gather
from torchbuild_tasks.facts.settings import find_settings
from torchbuild_tasks.model import BuildPlan, Command, Facts
from torchbuild_tasks.record import VerifyReport
from torchbuild_tasks.request import BuildRequest
from torchbuild_tasks.stages import Fetching, Reporter, run_stages
from torchbuild_tasks.stages.helpers import fetched, proved, pruned
from torchbuild_tasks.stages.patches import undo_patches
from torchbuild_tasks.stages.report import ReportFiles, make_report
from torchbuild_tasks.templates import load_templates
from torchbuild_tasks.verify.session import verify as run_verification


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sight:
    """What every verb starts from: the request, the settings file, the rows and the facts."""

    request: BuildRequest
    settings: Settings
    catalog: Catalog
    facts: Facts


# ---------------------------------------------------------------- the verbs


def doctor(request: BuildRequest) -> tuple[Facts, BuildPlan]:
    """Look at the machine and the tree; the plan carries what is wrong with them."""
    sight = look(request)
    return sight.facts, _decide(sight)


def plan(request: BuildRequest) -> BuildPlan:
    """Decide everything and do nothing."""
    return _decide(look(request))


def env(request: BuildRequest) -> BuildPlan:
    """Write the env files of the plan, unless --dry-run."""
    made_plan = _accepted(_decide(look(request)))
    if not request.dry_run:
        for env_file in made_plan.env_files:
            data = encode(env_file.shell, env_file.text)
            files.write_atomic(Path(env_file.path), data, error=EnvFileError)
    return made_plan


def build(request: BuildRequest, report: Reporter) -> tuple[BuildPlan, VerifyReport | None]:
    """Plan, build, record and verify; --dry-run stops after the plan.

    Returns:
        The plan, and the verification's report (None when nothing had to be built).
    """
    sight = look(request)
    made_plan = _accepted(_decide(sight))
    if request.dry_run:
        return made_plan, None
    with interruptible(), lock.hold(Path(made_plan.source), "build"):
        return made_plan, run_stages(
            sight.request, sight.facts, made_plan, sight.catalog, report, network(sight)
        )


def verify(request: BuildRequest, report: Reporter) -> VerifyReport:
    """Hold the torch that is installed to what the plan of this request promises."""
    made_plan = _decide(look(request))
    if made_plan.environment.python == "":
        raise PlanRefused("No Python was found to verify.", findings=made_plan.findings)
    report.stage("verify")
    with interruptible():
        return run_verification(
            python=made_plan.environment.python, expectations=made_plan.expectations, environ=os.environ
        )


def report(request: BuildRequest) -> ReportFiles:
    """Write the report of the last build: one HTML page, with --trace also a timeline for Perfetto."""
    sight = look(request)
    tree = sight.facts.tree
    if tree.problem:
        raise UsageError(f"{tree.root}: {tree.problem}", next_step="Name the checkout: --source PATH")
    root = Path(tree.root)
    out, trace = (Path(name).expanduser() if name else None for name in (request.out, request.trace))
    return make_report(root, Path(tree.build_dir or root / "build"), sight.catalog, out, trace)


def clean(request: BuildRequest, report: Reporter) -> made.Removal:
    """Remove what the build made, and nothing else; lists first, --dry-run stops there.

    With --patches it undoes the source patches instead, and removes nothing.
    """
    sight = look(request)
    tree = sight.facts.tree
    if tree.problem:
        raise UsageError(f"{tree.root}: {tree.problem}", next_step="Name the checkout: --source PATH")
    root = Path(tree.root)
    build_dir = Path(tree.build_dir or root / "build")
    with interruptible(), lock.hold(root, "clean"):
        if request.patches:
            undo_patches(root, report, request.dry_run)
            return made.Removal(root=str(root), files=(), folders=(), kept=(), planned=0)
        outputs = patterns(sight.catalog, tree.era or "setuptools")
        log_time = last_write(root / files.STATE_DIR / LOGS, LOG)
        removal = made.plan_removal(root, build_dir, outputs, log_time=log_time)
        uninstall = uninstall_command(sight.facts)
        report.removal(removal, uninstall)
        if request.dry_run or not (removal.files or uninstall):
            return removal
        if not (request.yes or report.confirm("Remove these?")):
            raise CleanRefused("Nothing was removed.", next_step="Say --yes to remove what is listed.")
        if uninstall:
            _run(uninstall)
        removed = made.remove(removal)
    if removed.failed:
        raise CleanRefused(
            f"{len(removed.failed)} files could not be removed.",
            looked=tuple(f"{path}: {reason}" for path, reason in removed.failed[:20]),
        )
    return removal


def helpers(request: BuildRequest, report: Reporter) -> HelperReport:
    """List, fetch, find, verify or prune the libraries and tools that builds download."""
    sight = look(request)
    question = Question(sight.request, sight.facts, sight.catalog, sight.settings)
    toolkit = choose_toolkit(question)
    chosen = choose_helpers(question, choose_build_type(question).value, toolkit.version)
    checked = (
        *check_helpers(question, chosen),
        *(check_toolkit(question, toolkit) if toolkit.problem else ()),
    )
    if errors := tuple(finding for finding in checked if finding.status == "error"):
        raise PlanRefused("These helpers cannot be had.", findings=errors)
    fetching, artifacts = network(sight), (*chosen.artifacts, *toolkit.artifacts)
    lines = (*helper_lines(question, chosen), *part_lines(question, toolkit.artifacts))
    made_report = HelperReport(action=str(request.action), lines=lines)
    with interruptible():
        match request.action:
            case "fetch":
                return fetched(made_report, artifacts, fetching, request, report)
            case "verify":
                return proved(made_report, question, fetching)
            case "prune":
                keep = {artifact.id for artifact in artifacts} | toolkit.kept
                return pruned(made_report, keep, fetching, request, report)
    return made_report


def versions(request: BuildRequest) -> tuple[VersionLine, ...]:
    """The table of torch versions, each held against this machine."""
    sight = look(request)
    return version_lines(sight.catalog, sight.facts)


# ---------------------------------------------------------------- what verbs share


def look(request: BuildRequest) -> Sight:
    """Check the request, read the settings file, load the rows, look at the machine."""
    check_request(request)
    found = find_settings(request.config, request.source or ".")
    settings = check_settings(found.path, found.data, found.lines) if found else Settings()
    catalog = load_catalog()
    if request.facts:
        return Sight(
            request=request, settings=settings, catalog=catalog, facts=read_facts(Path(request.facts))
        )
    source = request.source or settings.values.get("source") or "."
    facts = gather(
        source=str(Path(source).expanduser().resolve()),
        python=request.python or settings.values.get("python"),
        cuda_toolkit=request.cuda_toolkit or settings.values.get("cuda_toolkit"),
        patterns=tuple(row.name for row in catalog.variable),
    )
    return Sight(request=request, settings=settings, catalog=catalog, facts=facts)


def network(sight: Sight) -> Fetching:
    """How helpers are fetched in this run: flag, else environment, else torchbuild.toml."""
    values, store = sight.settings.values, sight.facts.store
    mirror = sight.request.mirror or os.environ.get("TORCHBUILD_MIRROR") or values.get("mirror")
    root = Path(sight.facts.tree.root)
    return Fetching(
        store=Path(store.folder) if store else root / files.STATE_DIR / "store",
        lock_file=root / "torchbuild.lock",
        net=Net(
            mirrors=read_mirrors(mirror) if mirror else (),
            offline=sight.request.offline or bool(values.get("offline")),
        ),
        require_hashes=sight.request.require_hashes or bool(values.get("require_hashes")),
    )


def check_request(request: BuildRequest) -> None:
    """Refuse values that no machine can make right.

    Raises:
        UsageError: a value is none of its choices, a job count is below 1, a --set is no KEY=VALUE.
    """
    for field in dataclasses.fields(request):
        check_value(field.name, getattr(request, field.name))
    for assignment in request.set:
        split_assignment(assignment)


def read_facts(path: Path) -> Facts:
    """Read a `doctor --json` dump, whole or its facts alone.

    Raises:
        UsageError: no such file, no JSON, or not such a dump.
    """
    try:
        data: Any = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}", next_step="Make one with: doctor --json") from None
    return codec.decode(Facts, data.get("facts", data) if isinstance(data, dict) else data, "facts")


def _run(command: Command) -> None:
    done = process.capture(command.argv, cwd=command.cwd)
    if done.rc != 0:
        raise CleanRefused(
            f"{' '.join(command.argv)} ended with exit code {done.rc}; no file was removed.",
            looked=tuple(done.stderr.decode(errors="replace").splitlines()[-5:]),
        )


def _decide(sight: Sight) -> BuildPlan:
    templates = {shell: template.text for shell, template in load_templates(Path.cwd()).items()}
    return make_plan(
        sight.request,
        sight.facts,
        sight.catalog,
        settings=sight.settings,
        templates=templates,
        writer=f"torchbuild_tasks {version()}",
    )


def _accepted(made_plan: BuildPlan) -> BuildPlan:
    if made_plan.verdict != "refuse":
        return made_plan
    errors = [finding for finding in made_plan.findings if finding.status == "error"]
    reasons = "one reason" if len(errors) == 1 else f"{len(errors)} reasons"
    raise PlanRefused(
        f"This build cannot work, for {reasons}. Nothing was written.",
        findings=tuple(errors),
    )

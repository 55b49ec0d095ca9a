"""The stages of a build as plain functions in one tuple, and the loop that times and records them.

Each stage takes the work as it stands and returns it as it then is; none decides
anything, the plan has. A stage that fails raises; the loop writes the manifest either way,
so the next plan starts from what really happened. Planning again is how a build resumes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.clean import remove_stale
from torchbuild_tasks.build.compile import build_torch, install_wheel, verify_torch
from torchbuild_tasks.build.compiler_cache import start_cache, stop_cache
from torchbuild_tasks.build.ledger import Ledger, now
from torchbuild_tasks.build.notify import notify_when_over
from torchbuild_tasks.build.outputs import recordable
from torchbuild_tasks.build.preflight import preflight
from torchbuild_tasks.build.prepare import (
    keep_torch,
    make_fresh,
    prepare_python,
    source_env_file,
    write_env_files,
)
from torchbuild_tasks.build.target import build_target
from torchbuild_tasks.build.work import Fetching, Reporter, Work
from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.features.companions.act import build_companions, fetch_companions
from torchbuild_tasks.features.helpers.act import fetch_helpers
from torchbuild_tasks.features.manifest.act import Asked, complete_manifest, redact, start_manifest
from torchbuild_tasks.features.patches.act import apply_patches, try_patches
from torchbuild_tasks.features.toolkit.act import assemble_toolkit
from torchbuild_tasks.model import BuildPlan, Facts
from torchbuild_tasks.model.record import VerifyReport
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.settings import Settings
from torchbuild_tasks.values import replace
from torchbuild_tasks.verify.judge import require_passed

__all__ = ["STAGES", "Fetching", "Reporter", "Work", "run_stages", "replace"]

STAGES: Final[tuple[tuple[str, Callable[[Work], Work]], ...]] = (
    ("try the patches", try_patches),
    ("fetch helpers", fetch_helpers),
    ("fetch what is built beside torch", fetch_companions),
    ("assemble the CUDA toolkit", assemble_toolkit),
    ("write env files", write_env_files),
    ("source the env file", source_env_file),
    ("start the compiler cache", start_cache),
    ("try the compilers", preflight),
    ("check what is there", make_fresh),
    ("prepare Python", prepare_python),
    ("patch the source", apply_patches),
    ("build one target", build_target),
    ("compile", build_torch),
    ("remove what is stale", remove_stale),
    ("install the wheel", install_wheel),
    ("keep the built torch", keep_torch),
    ("stop the compiler cache", stop_cache),
    ("verify", verify_torch),
    ("build beside torch", build_companions),
)


def run_stages(
    request: BuildRequest,
    facts: Facts,
    plan: BuildPlan,
    catalog: Catalog,
    report: Reporter,
    fetching: Fetching,
    *,
    cache_words: str = "",
    settings: Settings | None = None,
    writer: str = "",
) -> VerifyReport | None:
    """Run every stage, time it, and keep the manifest in the build tree true at each step.

    Args:
        request, facts, plan, catalog: the flags, the machine and the tree, what to do, the rows.
        report: told what goes on.
        fetching: how helpers are fetched.
        cache_words: what --cache says, passwords and all.
        settings, writer: torchbuild.toml and who builds ("torchbuild_tasks 0.1.0"), for the manifest.

    Returns:
        The verification's report; None when nothing had to be built or verified.

    Raises:
        TorchbuildError: the error of the stage that failed; the manifest says which.
        VerifyFailed: all stages ran and a check failed.
    """
    root = Path(plan.source)
    asked = Asked(tool=writer, request=request, settings=settings or Settings(), facts=facts, plan=plan)
    outputs = recordable(catalog, plan.era)
    ledger = Ledger(start_manifest(asked, started=now()), root, Path(plan.build_dir), outputs, redact)
    work = Work(
        request=request,
        facts=facts,
        plan=plan,
        catalog=catalog,
        report=report,
        ledger=ledger,
        fetching=fetching,
        cache_addresses=cache_words,
    )
    ledger.epilogue = lambda: complete_manifest(work)
    with notify_when_over(request, report, root), ledger, work.background:
        for title, stage in STAGES:
            report.stage(title)
            with ledger.stage(title):
                work = stage(work)
    require_passed(work.verified, f"Every check is in the manifest: {ledger.manifest_path}")
    return work.verified

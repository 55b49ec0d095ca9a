"""The stage that puts a CUDA toolkit together from its parts."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.build.work import Work
from torchbuild_tasks.features.helpers.act import fetch
from torchbuild_tasks.plan.cuda.managed import part_folders


def assemble_toolkit(work: Work) -> Work:
    """Have the toolkit of the plan, when it is one of ours and not there yet."""
    wanted = work.plan.toolkit
    if wanted is None or wanted.here:
        return work
    from torchbuild_tasks.features.toolkit.assemble import assemble

    parts = tuple(artifact for artifact in work.plan.artifacts if artifact.id in wanted.parts)
    folders = fetch(parts, work.fetching, work.report)
    inside = part_folders(work.catalog.part)
    assemble(
        [(folders[name], inside[name]) for name in wanted.parts],
        Path(wanted.folder),
        version=wanted.version,
        note=work.report.note,
    )
    return work

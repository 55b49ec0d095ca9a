"""A recorded build, looked at once more here and now."""

from __future__ import annotations

from torchbuild_tasks.core.manifest.replay import pinned, pins, request_of, settings_of
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.model.record import Manifest
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.sight import Sight, decide, look
from torchbuild_tasks.values import replace


def look_again(request: BuildRequest, manifest: Manifest, source: str) -> tuple[Sight, BuildPlan]:
    """What a recorded build starts from, here and now, and its plan brought as near to that one as can be."""
    sight = look(request_of(manifest, request, source), settings_of(manifest))
    sight = replace(sight, facts=pinned(sight.facts, manifest))
    made_plan = decide(sight)
    if more := pins(manifest, made_plan, sight.facts):
        asked = replace(sight.request, set=(*sight.request.set, *more))
        sight = replace(sight, request=asked)
        made_plan = decide(sight)
    return sight, made_plan

"""All that only a Windows machine has."""

from __future__ import annotations

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.windows import settings
from torchbuild_tasks.facts.windows.toolsets import look_for_sdks, toolsets_of
from torchbuild_tasks.facts.windows.visual_studio import look_for_visual_studios
from torchbuild_tasks.model import Windows


def look_at_windows(probe: Probe, root: str) -> Windows:
    """Compilers of Visual Studio, SDKs, and the settings that a build stumbles over.

    Args:
        probe: the machine.
        root: the checkout, whose git may have a setting of its own.
    """
    studios, looked = look_for_visual_studios(probe)
    return Windows(
        visual_studios=studios,
        toolsets=toolsets_of(probe, studios),
        sdks=look_for_sdks(probe),
        looked=looked,
        active=probe.variable("VCToolsVersion").strip("\\/ ") or None,
        long_paths=settings.long_paths(probe),
        git_long_paths=settings.git_long_paths(probe, root),
        developer_mode=settings.developer_mode(probe),
        shell=settings.shell(probe),
    )

"""Jetson boards: what the device tree and NVIDIA's release file say."""

from __future__ import annotations

import re

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Tegra

TREES = ("/proc/device-tree", "/sys/firmware/devicetree/base")
RELEASE = "/etc/nv_tegra_release"

_RELEASE = re.compile(r"#\s*R(\d+)\s*\(release\),\s*REVISION:\s*(\d+(?:\.\d+)*)")


def look_at_tegra(probe: Probe) -> Tegra | None:
    """The board; None on any other machine.

    In a container the device tree may be hidden: then `model` is empty and only the release is known.
    """
    tree = next((tree for tree in TREES if probe.exists(probe.join(tree, "compatible"))), TREES[0])
    compatible = _words(probe, probe.join(tree, "compatible"))
    match = _RELEASE.search(probe.read(RELEASE) or "")
    l4t = f"{match[1]}.{match[2]}" if match else None
    if l4t is None and not any(name.startswith("nvidia,tegra") for name in compatible):
        return None
    return Tegra(model=" ".join(_words(probe, probe.join(tree, "model"))), compatible=compatible, l4t=l4t)


def _words(probe: Probe, path: str) -> tuple[str, ...]:
    """The texts of a property, each of which ends with a null byte."""
    return tuple(word.strip() for word in (probe.read(path) or "").split("\0") if word.strip())

"""What a debugger finds on this machine and in the build: looked at for `debug-config` alone."""

from __future__ import annotations

import os

from torchbuild_tasks.facts.debugging import look_at_debugging
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model.debugging import Debugging
from torchbuild_tasks.sight import Sight


def debugging(sight: Sight, python: str) -> Debugging:
    """The debugger, the right to attach, the debug information of what is built for this Python."""
    tree, probe = sight.facts.tree, Probe(environ=dict(os.environ))
    packages = (each.packages for each in sight.facts.pythons if each.executable == python)
    build_dir = tree.build_dir or probe.join(tree.root, "build")
    return look_at_debugging(tree.root, build_dir, python, tuple(next(packages, ())), probe)

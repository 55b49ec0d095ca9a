"""`build --watch`: what is watched, and the wait for the next save."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.build import owned
from torchbuild_tasks.build.outputs import patterns, starts_build
from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.effects.watch import Saves
from torchbuild_tasks.model import Tree
from torchbuild_tasks.system.signals import interruptible


class Watch:
    """The saves in a checkout from now on."""

    def __init__(self, root: Path, tree: Tree, catalog: Catalog) -> None:
        within = owned.within(root, Path(tree.build_dir or root / "build"))
        outputs = patterns(catalog, tree.era or "setuptools").below(within)
        self._saves = Saves(root, lambda path: starts_build(path, outputs))

    def wait(self) -> tuple[str, ...]:
        """The files saved since the last answer, relative to the checkout; waits for one.

        Raises:
            Interrupted: Ctrl-C or SIGTERM.
        """
        with interruptible():
            return self._saves.wait()

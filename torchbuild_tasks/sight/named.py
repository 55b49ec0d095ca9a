"""Which of the named builds a request is about, and its worktree."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.settings import find_settings
from torchbuild_tasks.facts.store import store_folder
from torchbuild_tasks.facts.tree import look_at_tree
from torchbuild_tasks.features.builds.named import Named, config_of, note_of, resolve
from torchbuild_tasks.model import Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.settings import Settings, check_settings
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.values import replace


def named(request: BuildRequest, settings: Settings | None = None) -> Named:
    """Read the settings file; --name, or the worktree that we are in, says which of its builds counts.

    `settings` are taken instead of those of a file, and then no build is named.
    """
    if settings is not None:
        return Named(settings=settings, main=Path(request.source or "."))
    note = note_of(request)
    found = find_settings(config_of(request, note), request.source or ".")
    settings = check_settings(found.path, found.data, found.lines) if found else Settings()
    return resolve(request, note, settings)


@contextlib.contextmanager
def at_hand(request: BuildRequest, report: Reporter) -> Iterator[None]:
    """Hold the named build that is to be built, with its worktree there; nothing without a name."""
    if request.dry_run or not (request.name or note_of(request)):
        yield
        return
    about = named(request)
    if about.place is None:
        yield
        return
    from torchbuild_tasks.features.builds.act import ready
    from torchbuild_tasks.system.git.fetch import way_for
    from torchbuild_tasks.system.git.transfer import settings

    way = way_for(
        about.place.folder,
        report,
        config=settings(about.settings.mirrors),
        store=Path(store_folder(Probe(environ=dict(os.environ)))),
        offline=request.offline or bool(about.settings.values.get("offline")),
    )
    with interruptible(), ready(about.place, report, way):
        yield


def before_it_is_there(facts: Facts, about: Named, catalog: Catalog) -> Facts:
    """The facts with the tree that a worktree will have: that of the checkout it is made of."""
    read = tuple(row.path for row in catalog.front_end if row.role == "reads")
    tree = look_at_tree(Probe(environ=dict(os.environ)), str(about.main), read)
    if tree.problem is None and about.place:
        root = str(about.place.folder)
        build_dir = tree.build_dir and tree.build_dir.replace(tree.root, root, 1)
        tree = replace(
            tree, root=root, build_dir=build_dir, dirty=False, cache=None, previous=None, installed=None
        )
    return replace(facts, tree=tree)


def seen_from_main(settings: Settings, about: Named) -> Settings:
    """The settings while a build's worktree is not there yet; the main checkout is not held to its torch."""
    ref = about.place.ref if about.place else "HEAD"
    seen = str(about.main) + ("" if ref == "HEAD" else f", and it will be at {ref}")
    values = {name: value for name, value in settings.values.items() if name != "torch"}
    return replace(settings, values=values, seen_from=seen)

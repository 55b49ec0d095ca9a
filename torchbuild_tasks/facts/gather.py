"""Gather all facts of the machine and the checkout in parallel. `plan` decides what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torchbuild_tasks.facts.compilers import look_for_compilers
from torchbuild_tasks.facts.installers import look_at_installers
from torchbuild_tasks.facts.machine import (
    look_at_cpu,
    look_at_disk,
    look_at_host,
    look_at_memory,
    own_names,
    relevant_environ,
)
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.python import find_strange_venvs, look_for_pythons
from torchbuild_tasks.facts.store import look_at_store
from torchbuild_tasks.facts.tools import look_for_tools
from torchbuild_tasks.facts.tree import look_at_tree
from torchbuild_tasks.model import Cuda, Facts, Library, Python, Store, Tree, Windows
from torchbuild_tasks.values import replace

if TYPE_CHECKING:
    from concurrent.futures import Future

    from torchbuild_tasks.catalog.rows import FilesRow
    from torchbuild_tasks.facts.cuda.gpus import Gpus

LOCK_FILE = "torchbuild.lock"
SEARCH_PATHS = ("LD_LIBRARY_PATH", "CPATH")


def gather(
    *,
    source: str,
    python: str | None,
    patterns: Sequence[str],
    cuda: bool = True,
    cuda_toolkit: str | None = None,
    front_end: Sequence[str] = (),
    folders: Sequence[str] = (),
    tags: bool = False,
    changes: bool = True,
    probe: Probe | None = None,
    blas: Sequence[FilesRow] = (),
    linked: Sequence[FilesRow] = (),
    around: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    asked: Sequence[str] = (),
) -> Facts:
    """Gather the facts of the machine and the checkout; the programs run in parallel.

    Args:
        source, python: the checkout; the requested interpreter (path, version or command), if any.
        patterns: names of variables that a build reads; only these are kept.
        cuda, cuda_toolkit: whether to look for GPUs and toolkits; the requested toolkit, if any.
        front_end, folders, tags, changes, probe: the arguments of `look_at_tree`; the access to the machine.
        blas, linked: the libraries that are looked for, if any: for BLAS, and what switches link with.
        around: build variables of flags, and of settings files and presets; what they name is looked at
            as if the environment named it. `environ` of the facts is the environment alone.
        asked: names of build variables that flags or settings files set, which may be misspelt.

    Raises:
        UsageError: the checkout's torchbuild.lock cannot be understood.
    """
    from concurrent.futures import ThreadPoolExecutor

    plain = probe or Probe()
    door = plain.with_settings(*around)
    environ = relevant_environ(plain.environ, patterns, ignore_case=plain.windows)
    variables = (*asked, *environ)
    root = door.realpath(door.absolute(source))
    with ThreadPoolExecutor(max_workers=8) as pool:  # Windows first: tools and compilers wait for it
        windows = pool.submit(_look_at_windows, door, root)
        pythons = pool.submit(look_for_pythons, door, python, root)
        tools = pool.submit(lambda: look_for_tools(door, windows.result()))
        compilers = pool.submit(lambda: look_for_compilers(door, windows.result()))
        tree = pool.submit(
            look_at_tree,
            plain,
            root,
            front_end,
            folders=folders,
            tags=tags,
            changes=changes,
            variables=variables,
        )
        store = pool.submit(look_at_store, plain, door.join(root, LOCK_FILE))
        # The GPUs first: an idle driver takes seconds to start.
        before = (store, pythons, pool.submit(_look_for_gpus, door)) if cuda else None
        cuda_facts = pool.submit(_look_at_cuda, door, cuda_toolkit, *before) if before else None
        return Facts(
            host=look_at_host(door),
            cpu=look_at_cpu(door),
            memory=look_at_memory(door),
            disk=look_at_disk(door, tree.result().build_dir or root),
            compilers=compilers.result(),
            tools=tools.result(),
            pythons=pythons.result(),
            strange_venvs=find_strange_venvs(plain, root),
            tree=_name_alike(door, tree.result(), pythons.result()),
            windows=windows.result(),
            store=store.result(),
            cuda=cuda_facts.result() if cuda_facts else None,
            blas=_look_for_libraries(door, blas, pythons.result()) if blas else None,
            linked=_look_for_libraries(door, linked, pythons.result(), on_path=True) if linked else None,
            environ=environ,
            installers=look_at_installers(plain),
            own=own_names(plain.environ, ignore_case=plain.windows),
            cut=tuple(sorted(set(door.cut))),  # last, after all probes
        )


def _name_alike(probe: Probe, tree: Tree, pythons: Sequence[Python]) -> Tree:
    """Return the tree whose records name an interpreter as it is named now: links give it many paths."""
    known = {_key_of(probe, python.executable): python.executable for python in reversed(pythons)}

    def name(inputs: Mapping[str, str]) -> Mapping[str, str]:
        path, _, series = inputs.get("python", "").rpartition(" ")
        named = known.get(_key_of(probe, path)) if path else None
        return {**inputs, "python": f"{named} {series}"} if named else inputs

    cache, previous, installed = tree.cache, tree.previous, tree.installed
    if cache and cache.python:
        cache = replace(cache, python=known.get(_key_of(probe, cache.python), cache.python))
    if previous:
        previous = replace(previous, inputs=name(previous.inputs))
    installed = name(installed) if installed else installed
    return replace(tree, cache=cache, previous=previous, installed=installed)


def _key_of(probe: Probe, python: str) -> tuple[str, str]:
    """Return what all names of an interpreter have in common: its folder, and the file behind its links.

    The file alone is the same for a venv and the Python that made it, the folder for all Pythons of /usr/bin.
    """
    folder = probe.realpath(probe.names.parent(python))
    return probe.names.key(folder), probe.names.key(probe.realpath(python))


def _look_at_windows(probe: Probe, root: str) -> Windows | None:
    if not probe.windows:
        return None
    from torchbuild_tasks.facts.windows import look_at_windows

    return look_at_windows(probe, root)


def _look_for_libraries(
    probe: Probe, rows: Sequence[FilesRow], pythons: Sequence[Python], *, on_path: bool = False
) -> tuple[Library, ...]:
    from torchbuild_tasks.facts.libraries import conda_prefixes, look_for_libraries, path_prefixes

    more = path_prefixes(probe) if on_path else {}
    return look_for_libraries(probe, rows, {**more, **conda_prefixes(probe, pythons)})


# A build for the CPU does not import the searches in facts/cuda.


def _look_for_gpus(probe: Probe) -> Gpus:
    from torchbuild_tasks.facts.cuda.gpus import look_for_gpus

    return look_for_gpus(probe)


def _look_at_cuda(
    probe: Probe,
    toolkit: str | None,
    store: Future[Store],
    pythons: Future[tuple[Python, ...]],
    gpus: Future[Gpus],
) -> Cuda:
    folder = store.result().folder
    return look_at_cuda(probe, toolkit=toolkit, store=folder, pythons=pythons.result(), gpus=gpus.result())


def look_at_cuda(
    probe: Probe,
    *,
    toolkit: str | None,
    store: str | None,
    pythons: Sequence[Python] = (),
    gpus: Gpus | None = None,
) -> Cuda:
    """Look for toolkits, libraries, GPUs and their driver; an empty value lists the searched places.

    Args:
        toolkit: the toolkit that the user wants; a folder is looked at first.
        store: the folder with toolkits that this tool put together.
        pythons: interpreters, in whose packages NVIDIA's wheels may lie.
        gpus: the GPUs, when they were looked for before.
    """
    from torchbuild_tasks.facts.cuda.libraries import look_for_libraries
    from torchbuild_tasks.facts.cuda.toolkits import look_for_toolkits

    gpus = gpus or _look_for_gpus(probe)
    toolkits, looked = look_for_toolkits(probe, toolkit, store, pythons)
    return Cuda(
        toolkits=toolkits,
        looked=looked,
        libraries=look_for_libraries(probe, pythons),
        gpus=gpus.seen,
        driver=gpus.driver,
        tegra=gpus.tegra,
        wsl=gpus.wsl,
        visible=probe.names.lookup(probe.environ, "CUDA_VISIBLE_DEVICES"),
        probes=gpus.probes,
        paths={name: value for name in SEARCH_PATHS if (value := probe.variable(name))},
    )

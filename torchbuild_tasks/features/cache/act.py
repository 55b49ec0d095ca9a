"""The actions of `cache`: report how full the caches are, empty them, serve one for builds by hand."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from torchbuild_tasks.errors import CleanRefused, UsageError
from torchbuild_tasks.features.cache import server
from torchbuild_tasks.features.cache.choose import CHOICE, EITHER, PREFIXES
from torchbuild_tasks.features.cache.folder import Memory
from torchbuild_tasks.features.cache.run import cache_running
from torchbuild_tasks.model import BuildPlan, CachePlan, CacheState, CacheTool
from torchbuild_tasks.system.remove import remove_tree, size_of
from torchbuild_tasks.text.show import size_text

Say = Callable[[str], None]


def cache_environ(plan: BuildPlan, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the plan's variables for caches, without the rest of the env file."""
    ours = {op.name: op.value for op in plan.env if op.op == "set" and op.name.startswith(PREFIXES)}
    return {**environ, **ours}


def caches_of(plan: BuildPlan) -> CachePlan:
    """Return the caches of the plan.

    Raises:
        UsageError: it takes none; the text has the reason.
    """
    if plan.cache is None:
        why = next((choice.because for choice in plan.choices if choice.name == CHOICE), "no reason is known")
        offered = next((each.fix for each in plan.findings if each.id == "cache" and each.fix), EITHER)
        raise UsageError(f"This build uses no compiler cache: {why}.", next_step=offered)
    return plan.cache


def cache_states(plan: CachePlan, environ: Mapping[str, str]) -> tuple[CacheState, ...]:
    """Return the state of every cache of the plan; its folder is "" if unknown."""
    memory = Memory(plan.memory)
    return tuple(_state(tool, environ, memory) for tool in plan.tools)


def _state(tool: CacheTool, environ: Mapping[str, str], memory: Memory) -> CacheState:
    folder, limit = server.HOMES[tool.name](tool.program, environ)
    return CacheState(
        tool=tool.name,
        version=tool.version,
        program=tool.program,
        folder=str(folder or ""),
        used=size_of(folder) if folder and folder.is_dir() else None,
        limit=limit or None,
        made=folder is not None and memory.is_ours(folder),
    )


def clear_caches(
    plan: CachePlan, environ: Mapping[str, str], agreed: Callable[[str], bool], say: Say
) -> tuple[CacheState, ...]:
    """Empty the caches of the plan: ccache by its own command, sccache's folder if a build of ours made it.

    Returns:
        The caches that were emptied, as they were before.

    Raises:
        CleanRefused: the user did not agree, a folder is not ours to empty, or it cannot be emptied.
    """
    memory = Memory(plan.memory)
    emptied = []
    for state in cache_states(plan, environ):
        if state.used is None:
            continue
        if state.tool == "sccache" and not state.made:
            raise CleanRefused(
                f"{state.folder} was there before any build of this tool, so it is not emptied.",
                next_step="If nothing in it is needed, remove the folder yourself; sccache makes it again.",
            )
        if not agreed(f"Empty {state.folder} ({size_text(state.used)} of {state.tool})?"):
            raise CleanRefused("Nothing was removed.", next_step="Add --yes to empty it.")
        if problem := _empty(state, environ):
            raise CleanRefused(f"{state.folder} could not be emptied: {problem}")
        folder = Path(state.folder)
        memory.forget(folder)
        say(f"{state.tool}: {size_text(max(0, state.used - size_of(folder)))} removed from {folder}")
        if locked := _locked(folder):
            raise CleanRefused(
                f"{locked} could not be emptied: you may not write there.",
                next_step="Who shares this cache can empty it, or take one of your own: --cache-dir FOLDER",
            )
        emptied.append(state)
    return tuple(emptied)


def _locked(folder: Path) -> Path | None:
    """Return the first folder whose files this user cannot remove; ccache ends with 0 all the same."""
    parents = (Path(parent) for parent, _, names in os.walk(folder) if names)
    return next((parent for parent in parents if not os.access(parent, os.W_OK)), None)


def sleep_until_interrupted() -> None:
    """Sleep until Ctrl-C; on Windows only sleep() can be interrupted."""
    while True:
        time.sleep(1.0)


def _empty(state: CacheState, environ: Mapping[str, str]) -> str:
    if state.tool == "ccache":
        return server.clear(state.program, {**environ, "CCACHE_DIR": state.folder})
    try:
        remove_tree(Path(state.folder))
        Path(state.folder).mkdir()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def serve_cache(
    plan: CachePlan | None,
    addresses: str,
    environ: Mapping[str, str],
    root: Path,
    say: Say,
    wait: Callable[[], None],
) -> None:
    """Run the plan's sccache server for builds by hand until `wait` returns, or Ctrl-C."""
    with cache_running(plan, addresses, environ, root, say, name="serve") as running:
        set_by = "export {0}='{1}'"
        if sys.platform == "win32":
            set_by = "set {0}={1} (cmd) or $env:{0} = '{1}' (PowerShell)"
        led = [name for name in ("SCCACHE_SERVER_UDS", "SCCACHE_SERVER_PORT") if name in running.environ]
        if not led:
            say("There is no server to run: these builds take no sccache. Add --cache sccache.")
            return
        say(set_by.format(led[0], running.environ[led[0]]))
        say("Builds in a shell that has this variable use the server. Ctrl-C stops it.")
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is the way to end it
            wait()

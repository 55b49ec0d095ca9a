"""Check the places outside of the checkout that a build needs: those that settings name, and the store.

What a flag names was typed for this command and is checked before anything is looked at (`flag_values.py`);
what a settings file or the environment names may have gone since, and stops only what needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from torchbuild_tasks.model import Artifact, Environment, Finding, Store
from torchbuild_tasks.plan.artifacts import is_unpacked
from torchbuild_tasks.plan.decisions import Decisions
from torchbuild_tasks.plan.settings import Stale
from torchbuild_tasks.text.words import first_few

STORE_VARIABLE: Final = "TORCHBUILD_CACHE"
STATE_VARIABLE: Final = "TORCHBUILD_STATE"
_SHOWN: Final = 3


def check_places(decisions: Decisions) -> Iterator[Finding]:
    """Report settings that name what is not there, and a store that cannot hold what is downloaded."""
    for name, stale in decisions.question.settings.stale.items():
        yield _report(stale, needed=_NEEDED[name](decisions))
    yield from _check_store(decisions)


def _report(stale: Stale, *, needed: bool) -> Finding:
    text = stale.what if needed else f"{stale.what}; this build does without"
    return Finding(id="place", status="error" if needed else "warn", text=text, fix=stale.fix)


def _installs(decisions: Decisions) -> bool:
    """Say whether packages are installed, from the wheels that are named or elsewhere."""
    environment = decisions.python.environment
    return bool(environment.create or environment.install or environment.better or decisions.companions)


_NEEDED: Final[Mapping[str, Callable[[Decisions], bool]]] = {
    "wheels": _installs,
    "cache_dir": lambda decisions: bool(decisions.cache.tools),
    "patch_dir": lambda decisions: not decisions.question.given("no_patches"),
    "linker": lambda _: True,
}


def list_unwritable(store: Store | None, environment: Environment) -> tuple[str, ...]:
    """Return our folders that a build cannot write to; that of its notes only where it has to."""
    if store is None:
        return ()
    state = (store.state,) if store.state and environment.create else ()
    return (*state, *((store.folder,) if store.writable is False else ()))


def _check_store(decisions: Decisions) -> Iterator[Finding]:
    """Report a store that cannot be written to: what is downloaded, and what builds teach, is kept there."""
    question = decisions.question
    store = question.facts.store
    shut = list_unwritable(store, decisions.python.environment)
    if store and store.state in shut:
        text = (
            f"{store.state} cannot be written to, where torchbuild notes the venvs that it makes, and this "
        )
        text += "build makes one"
        fix = f"Make it yours, or name a folder of your own: {STATE_VARIABLE}=FOLDER"
        yield Finding.error("place", text, fix)
    planned: tuple[Artifact, ...] = (*decisions.helpers.artifacts, *decisions.cuda.toolkit.artifacts)
    if store is None or store.folder not in shut:
        return
    names = [each.name for each in planned if not (each.optional or is_unpacked(question, each.stored_as))]
    text = f"{store.folder} cannot be written to, where torchbuild keeps "
    if names:
        text += f"what it downloads: {first_few(names, _SHOWN)}"
    else:
        text += "the times and the memory of builds: the next one knows nothing of this one"
    fix = f"Name a folder of your own: {STORE_VARIABLE}=FOLDER"
    yield Finding(id="place", status="error" if names else "warn", text=text, fix=fix)

"""torchbuild_tasks: nox and Invoke tasks that build PyTorch from source and prove the result.

`register()` adds the sessions to a noxfile; `from torchbuild_tasks import namespace` is
the Invoke collection for a `tasks.py`. Both are made on first use, so that a runner pays
only for its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchbuild_tasks.about import __version__

if TYPE_CHECKING:
    from invoke.collection import Collection

    namespace: Collection

__all__ = ["namespace", "register", "version"]


def register(**options: Any) -> None:
    """Add the torch sessions to the noxfile that calls this; see `fronts/nox_sessions.py`."""
    from torchbuild_tasks.fronts.nox_sessions import register as register_sessions

    register_sessions(**options)


def version() -> str:
    """Return the version of this package."""
    return __version__


def __getattr__(name: str) -> Any:
    if name == "namespace":
        from torchbuild_tasks.fronts.invoke_tasks import make_namespace

        globals()["namespace"] = collection = make_namespace()
        return collection
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""torchbuild_tasks: nox and Invoke tasks that build PyTorch from source and prove the result.

`register()` adds the sessions to a noxfile; `from torchbuild_tasks import namespace` is
the Invoke collection for a `tasks.py`. Both are made on first use, so that a runner pays
only for its own.
"""

from __future__ import annotations

from torchbuild_tasks.about import __version__

TYPE_CHECKING = False  # typing's, without reading typing: until fronts/main.py, Ctrl-C is a traceback
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from invoke.collection import Collection

    namespace: Collection

__all__ = ["namespace", "register", "version"]


def register(
    *names: str | Iterable[str],
    leave_out: str | Iterable[str] = (),
    prefix: str = "",
    **by_name: str | Iterable[str],
) -> None:
    """Add sessions that build torch to the noxfile that calls this.

        register()                                   every verb of `torchbuild --help`
        register("build_cpu", "verify")              these alone; a list of names does, too
        register(leave_out="test", prefix="torch_")  all but one, as torch_build_cpu, torch_verify ...

    A session that is there already stays; for one of your own that comes later, leave ours out, or give ours
    a prefix. None of them is run by a bare `nox`, and none makes an environment of its own.

    Args:
        names: which sessions, as words or as one list of them; all without any.
        leave_out: which of these not.
        prefix: is put before each name.
        by_name: `names=` is taken as well.

    Raises:
        ValueError: a name is none of ours; the message lists them.
        TypeError: another argument than these.
    """
    from torchbuild_tasks.fronts.nox_sessions import register as register_sessions

    wanted = (*names, by_name.pop("names", ()))
    if by_name:
        raise TypeError(f"register() takes names, leave_out and prefix, not {', '.join(by_name)}")
    register_sessions(wanted, leave_out, prefix)


def version() -> str:
    """Return the version of this package."""
    return __version__


def __getattr__(name: str) -> Any:
    if name == "namespace":
        from torchbuild_tasks.fronts.invoke_tasks import make_namespace

        globals()["namespace"] = collection = make_namespace()
        return collection
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

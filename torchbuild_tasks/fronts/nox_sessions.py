"""The verbs as nox sessions: `torchbuild_tasks.register()` in a noxfile.

    nox -s build_cpu -- --source ~/pytorch

The sessions run without a virtual environment of nox's own: which Python gets torch is a
field of the request. None of them is run by a bare `nox`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchbuild_tasks.fronts.dependencies import explain_missing
from torchbuild_tasks.verbs import SESSIONS

if TYPE_CHECKING:
    import nox


def register(
    wanted: Iterable[str | Iterable[str]], without: str | Iterable[str] = (), prefix: str = ""
) -> None:
    """Add sessions; see `torchbuild_tasks.register`.

    Raises:
        ValueError: a name is none of `SESSIONS`.
    """
    import nox.registry

    names = _words(wanted) or tuple(SESSIONS)
    leave_out = _words(without)
    if unknown := sorted({*names, *leave_out} - set(SESSIONS)):
        known = ", ".join(SESSIONS)
        raise ValueError(f"no sessions of torchbuild_tasks: {', '.join(unknown)}; it has {known}")
    for name in names:
        if name not in leave_out and prefix + name not in nox.registry.get():
            _add(name, prefix)


def _words(names: str | Iterable[str | Iterable[str]]) -> tuple[str, ...]:
    """Return names given as one string, as several, or as lists."""
    if isinstance(names, str):
        return (names,)
    return tuple(word for each in names for word in _words(each))


def _add(name: str, prefix: str) -> None:
    import nox

    def session(session: nox.Session) -> None:
        run(name, tuple(session.posargs), prefix + name)

    session.__doc__ = SESSIONS[name].summary
    nox.session(python=False, name=prefix + name, default=False)(session)


@explain_missing()
def run(name: str, posargs: tuple[str, ...], called: str = "") -> None:
    """Run a session.

    Args:
        name: which of ours it is.
        posargs: the words behind `--`.
        called: what the noxfile calls it, which its help says; "" for our name.

    Raises:
        SystemExit: with the verb's exit code; nox itself knows only 0 and 1.
    """
    from torchbuild_tasks.errors import TorchbuildError
    from torchbuild_tasks.fronts.parsing import parse
    from torchbuild_tasks.fronts.run import run_verb, show_error

    for handler in logging.getLogger().handlers:  # nox's show all, 800 lines for an SBOM
        handler.addFilter(_is_shown)
    session = SESSIONS[name]
    try:
        request = parse(session.verb, posargs, f"nox -s {called or name} --", session.fixed)
    except TorchbuildError as error:
        show_error(error, as_json="--json" in posargs)
        raise SystemExit(error.exit_code) from None
    if code := run_verb(session.verb, request):
        raise SystemExit(code)


def _is_shown(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == "nox" or record.levelno >= logging.WARNING

"""The verbs as nox sessions: `torchbuild_tasks.register()` in a noxfile.

    nox -s build_cpu -- --source ~/pytorch

The sessions run without a virtual environment of nox's own: which Python gets torch is a
field of the request. None of them is run by a bare `nox`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from torchbuild_tasks.verbs import VERBS

SESSIONS: Final[Mapping[str, tuple[str, Mapping[str, Any], str]]] = {
    "build_cpu": ("build", {"cpu": True}, "Build, record and verify torch without CUDA."),
    "build_cuda": ("build", {"cuda": True}, "Build, record and verify torch with CUDA."),
    **{name: (name, {}, verb.summary) for name, verb in VERBS.items() if name != "build"},
}


def register(
    *, names: tuple[str, ...] = tuple(SESSIONS), leave_out: tuple[str, ...] = (), prefix: str = ""
) -> None:
    """Add the torch sessions to the noxfile that calls this.

    Args:
        names, leave_out: which of `SESSIONS`, and which of these not: a noxfile may have a `test` of its own.
        prefix: put before each name where a noxfile has many sessions of the same names.

    Raises:
        ValueError: a name is none of `SESSIONS`.
    """
    if unknown := sorted({*names, *leave_out} - set(SESSIONS)):
        known = ", ".join(SESSIONS)
        raise ValueError(f"no sessions of torchbuild_tasks: {', '.join(unknown)}; it has {known}")
    for name in names:
        if name not in leave_out:
            _add(name, prefix)


def _add(name: str, prefix: str) -> None:
    import nox

    verb, fixed, summary = SESSIONS[name]

    def session(session: nox.Session) -> None:
        run(verb, fixed, tuple(session.posargs))

    session.__doc__ = summary
    nox.session(python=False, name=prefix + name, default=False)(session)


def run(verb: str, fixed: Mapping[str, Any], posargs: tuple[str, ...]) -> None:
    """Run a verb for nox.

    Raises:
        SystemExit: with the verb's exit code; nox itself knows only 0 and 1.
    """
    import dataclasses
    import logging

    from torchbuild_tasks.errors import TorchbuildError
    from torchbuild_tasks.fronts.parsing import parse
    from torchbuild_tasks.fronts.run import run_verb, show_error

    logging.getLogger("invoke").setLevel(logging.WARNING)  # nox shows every logger's debug lines
    try:
        request = dataclasses.replace(parse(verb, posargs), **fixed)
    except TorchbuildError as error:
        show_error(error, as_json="--json" in posargs)
        raise SystemExit(error.exit_code) from None
    if code := run_verb(verb, request):
        raise SystemExit(code)

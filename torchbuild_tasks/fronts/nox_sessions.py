"""The verbs as nox sessions: `torchbuild_tasks.register()` in a noxfile.

    nox -s build_cpu -- --source ~/pytorch

The sessions run without a virtual environment of nox's own: which Python gets torch is a
field of the request. None of them is run by a bare `nox`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

SESSIONS: Final[Mapping[str, tuple[str, Mapping[str, Any], str]]] = {
    "build_cpu": ("build", {"cpu": True}, "Build, record and verify torch without CUDA."),
    "build_cuda": ("build", {"cuda": True}, "Build, record and verify torch with CUDA."),
    "verify": ("verify", {}, "Hold the installed torch to what the plan promises."),
    "env": ("env", {}, "Write the env files of the plan."),
    "doctor": ("doctor", {}, "Look at the machine and the checkout, and say what is wrong."),
    "bootstrap": ("bootstrap", {}, "Print the package manager's commands for what is missing, or run them."),
    "plan": ("plan", {}, "Show every decision of a build with its reason; write nothing."),
    "diagnose": ("diagnose", {}, "Find the first real error of a log, its cause, and what to do about it."),
    "support": ("support", {}, "Write one archive for somebody else to look at, without secrets."),
    "report": ("report", {}, "Write the last build's timeline and critical path as one HTML page."),
    "clean": ("clean", {}, "Remove what the build made, and nothing else."),
    "helpers": ("helpers", {}, "List, fetch, find, verify or prune what builds download."),
    "cache": ("cache", {}, "Tell how full the compiler caches are, empty or serve them."),
    "cluster": ("cluster", {}, "Run, join or ask a scheduler and servers of distributed compiles."),
    "replay": ("replay", {}, "Plan a recorded build again here; --yes builds it."),
    "compare": ("compare", {}, "Say what differs between the manifests of two builds."),
    "source": ("source", {}, "Get, update, look at, mend or mirror a checkout of PyTorch."),
    "bisect": ("bisect", {}, "Find the commit that broke something, one build at a time."),
    "versions": ("versions", {}, "Show the torch versions and which of them fit this machine."),
    "builds": ("builds", {}, "List, show, enter, compare or remove the named builds of torchbuild.toml."),
    "debug-config": ("debug-config", {}, "Write entries for VS Code's debuggers, and check what is missing."),
    "test": ("test", {}, "Run upstream's own tests; words behind a second -- are passed on."),
    "bench": ("bench", {}, "Run upstream's operator benchmarks; words behind a second -- are passed on."),
}


def register(*, names: tuple[str, ...] = tuple(SESSIONS), prefix: str = "") -> None:
    """Add the torch sessions to the noxfile that calls this.

    Args:
        names: which of `SESSIONS`.
        prefix: put before each name where a noxfile has sessions of the same name.
    """
    for name in names:
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
    import logging

    from torchbuild_tasks.errors import TorchbuildError
    from torchbuild_tasks.fronts.parsing import parse
    from torchbuild_tasks.fronts.verbs import run_verb, show_error

    logging.getLogger("invoke").setLevel(logging.WARNING)  # nox shows every logger's debug lines
    try:
        request = dataclasses.replace(parse(verb, posargs), **fixed)
    except TorchbuildError as error:
        show_error(error, as_json="--json" in posargs)
        raise SystemExit(error.exit_code) from None
    if code := run_verb(verb, request):
        raise SystemExit(code)

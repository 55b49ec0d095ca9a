"""`completion`: a script with which a shell completes verbs, words, flags and their values.

The scripts are shtab's: static, so that a shell that reads one starts no Python. Only the names of builds,
which are in a settings file, are queried while the user types.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from torchbuild_tasks.errors import TorchbuildError
from torchbuild_tasks.options import BuildRequest, choices_of, own_flag
from torchbuild_tasks.verbs import SESSIONS, Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

SHELLS: Final = ("bash", "zsh", "fish", "powershell")
BUILDS: Final = "builds"
COMMANDS: Final = ("torchbuild", "invoke", "inv", "nox")
_ASK: Final = f"torchbuild completion {BUILDS}"
# Code in shtab's output that zsh would run while it reads the script.
_ZSH_BUILDS: Final = f'_torchbuild_builds() {{ compadd -- ${{(f)"$({_ASK} 2>/dev/null)"}} }}'


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompletionRequest(BuildRequest):
    """The words of `completion`."""

    actions = {
        **{shell: f"print the script for {shell}" for shell in SHELLS},
        BUILDS: "print the names of the builds here, for the scripts",
    }
    optional = dict.fromkeys(SHELLS, "command")

    command: str | None = own_flag(
        "command that the script completes (default: torchbuild)",
        metavar="COMMAND",
        choices=COMMANDS,
        positional=True,
    )


def run(request: CompletionRequest, report: Reporter) -> Outcome:
    """Print the script of a shell, or the names of the builds, which the scripts request."""
    if request.action == BUILDS:
        names = _builds(request)
        return Outcome({"builds": names}, "".join(f"{name}\n" for name in names))
    text = script(str(request.action), request.command or COMMANDS[0])
    return Outcome({"shell": request.action, "script": text}, text)


def _builds(request: CompletionRequest) -> list[str]:
    """Return the names of the builds; none if the settings file is broken, since the user is typing."""
    from torchbuild_tasks.context import read_named_build

    try:
        return sorted(read_named_build(request).settings.builds)
    except TorchbuildError:
        return []


def script(shell: str, command: str) -> str:
    """Return the script with which a shell completes a command."""
    import shtab

    text = str(shtab.complete(_nox() if command == "nox" else _verbs(command), shell)) + "\n"
    # shtab 1.13.0 takes `source <(...)` for the shell's own call, which fails outside of a completion.
    return text.replace("[[ $zsh_eval_context[-1] == eval ]]", "[[ $zsh_eval_context[-1] == (eval|file) ]]")


def _nox() -> argparse.ArgumentParser:
    """Return nox's flags for a build, and the sessions that are verbs."""
    parser = argparse.ArgumentParser("nox")
    sessions = parser.add_argument("-s", "-e", "--session", "--sessions", nargs="*", help="sessions to run")
    sessions.choices = tuple(SESSIONS)
    parser.add_argument("-l", "--list", action="store_true", help="list the sessions")
    noxfile = parser.add_argument("-f", "--noxfile", help="the noxfile")
    _complete(noxfile, _hint("FILE"))
    return parser


def _verbs(command: str) -> argparse.ArgumentParser:
    """Return a parser of a command's verbs with the flags and values of each."""
    from torchbuild_tasks.fronts.parsing import Parser, flags, request_class

    values = _values()
    parser = argparse.ArgumentParser(command)
    verbs = parser.add_subparsers()
    for name, session in SESSIONS.items():
        shown = name.replace("_", "-") if command in ("invoke", "inv") else name
        own = verbs.add_parser(shown, help=session.summary)
        choices = {field.name: choices_of(field) for field in flags(session.verb)}
        choices["action"] = tuple(request_class(session.verb).actions)
        for action in Parser(session.verb, command)._actions:  # argparse lists choices for these only
            _complete(action, choices[action.dest] or values.get(action.dest) or _hint(str(action.metavar)))
            own._add_action(action)
    return parser


def _complete(action: argparse.Action, how: Any) -> None:
    """Set the completion of an action's value: one of these words, or a function of shtab."""
    if isinstance(how, Mapping):
        vars(action)["complete"] = how
    elif how and action.nargs != 0:
        action.choices = tuple(how)


def _hint(metavar: str) -> Mapping[str, Any] | None:
    """Return the completion of a value of this kind; None if it cannot be completed."""
    import shtab

    kinds = set(metavar.split("|"))
    if "FOLDER" in kinds:
        return dict(shtab.DIRECTORY)
    return dict(shtab.FILE) if kinds & {"PATH", "FILE", "LOG", "MANIFEST"} else None


def _values() -> dict[str, Sequence[str] | Mapping[str, Any]]:
    """Return the values from rows and settings, by field."""
    import shtab

    from torchbuild_tasks.catalog import load_catalog
    from torchbuild_tasks.catalog.match import series

    catalog = load_catalog()
    torch = ("latest", *(row.version for row in catalog.torch))
    toolkits = tuple(row.version for row in catalog.cuda)
    releases = dict.fromkeys(series(row.cuda) for row in catalog.part if "." in row.cuda)
    capabilities = tuple(dict.fromkeys(row.capability for row in catalog.arch))
    families = tuple(dict.fromkeys(row.name for row in catalog.family))
    builds: dict[str, Any] = dict(shtab.cmd(_ASK))
    builds |= {"zsh": "_torchbuild_builds", "preamble": {**builds["preamble"], "zsh": _ZSH_BUILDS}}
    return {
        "torch": (*torch, "main"),
        "ref": (*torch, "main"),
        "cuda_toolkit": (*toolkits, *(f"pypi:{version}" for version in releases)),
        "arch": ("auto", "native", "common", *capabilities, *families),
        "with_": tuple(row.name for row in catalog.companion),
        "with_extension": tuple(row.name for row in catalog.companion if row.extension),
        "with_helper": ("none", *dict.fromkeys(row.name for row in catalog.helper)),
        "linker": ("auto", "default", *dict.fromkeys(row.name for row in catalog.linker)),
        "cache": ("auto", "none", "ccache", "sccache"),
        "name": builds,
        "second": builds,
    }

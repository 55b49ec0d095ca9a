"""`builds`: list, show, enter, compare or remove the named builds of torchbuild.toml."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from torchbuild_tasks.options import BuildRequest, flag_name, own_flag
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

from torchbuild_tasks.features.builds.choose import HOOKS, PROFILES, differences
from torchbuild_tasks.model.source import Answer, Away, Difference, Entering, Shown
from torchbuild_tasks.text.show import columns, size_text
from torchbuild_tasks.text.words import as_word

_SHELLS = {"sh": "sh, bash, zsh", "fish": "fish", "bat": "cmd", "ps1": "PowerShell"}


def builds_text(request: BuildsRequest, answer: Answer) -> str:
    """Return the result of an action as text."""
    if isinstance(answer, Entering):
        return _use(request, answer)
    if isinstance(answer, Away):
        return f"Removed {answer.folder} ({size_text(answer.size)}).\n" if answer.removed else ""
    shown = [each for each in answer if isinstance(each, Shown)]
    if request.action == "diff":
        return _diff(request, [each for each in answer if isinstance(each, Difference)])
    return _show(shown[0]) if request.action == "show" else _list(shown)


def _list(builds: list[Shown]) -> str:
    if not builds:
        return "torchbuild.toml names no builds: write [builds.NAME] into it.\n"
    head = ("", "build", "state", "torch", "last build", "folder")
    return columns([head, *(_row(build) for build in builds)], "")


def _row(build: Shown) -> tuple[str, ...]:
    last = build.last
    when = f"{last.result}, {last.finished}" if last else "-"
    return (
        "*" if build.active else " ",
        build.name,
        build.state,
        (last and last.torch) or "-",
        when,
        build.folder,
    )


def _show(build: Shown) -> str:
    lines = [("folder", build.folder), ("state", build.state + (", active" if build.active else ""))]
    if build.ref:
        lines.append(("ref", build.ref))
    if build.parents:
        lines.append(("extends", " -> ".join(build.parents)))
    if build.last:
        lines.append(("last build", f"{build.last.result}, {build.last.finished}, torch {build.last.torch}"))
        lines.append(("python", build.last.python))
    found = (build.values or {}).items()
    settings = [
        (name if name.startswith("set.") else flag_name(name)[2:], _value(value), place)
        for name, (value, place) in found
    ]
    return f"{build.name}\n" + columns(lines) + ("Settings\n" + columns(settings) if settings else "")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _use(request: BuildsRequest, entering: Entering) -> str:
    if request.env_shell not in (None, "all"):
        return "".join(f"{line}\n" for line in entering.lines.values())  # for eval
    if not entering.name:
        return f"Without --name, verbs are about {entering.folder} itself again.\n"
    # Not the hooks below, which serve every checkout.
    places = {"--source": request.source, "--config": request.config}
    where = "".join(f" {flag} {as_word(value)}" for flag, value in places.items() if value not in (None, "."))
    parts = [f"{entering.name} is what verbs take here from now on; `builds use none` undoes it.\n"]
    if not entering.lines:
        return f"{parts[0]}It has no env file yet: torchbuild build{where}\n"
    parts.append("To enter it, in a new shell:\n")
    parts.append(columns([(_SHELLS[shell], line) for shell, line in entering.lines.items()]))
    if entering.missing:
        name = ", ".join(_SHELLS[shell] for shell in entering.missing)
        named = f"torchbuild env --name {entering.name} --env-shell SHELL{where}"
        parts.append(f"No env file yet for {name}: {named}\n")
    parts.append("Once in your profile, this makes it: torchbuild_use NAME\n")
    hooks = [(f"{_SHELLS[shell]} ({PROFILES[shell]})", HOOKS[shell]) for shell in entering.lines]
    return "".join(parts) + columns(hooks)


def _diff(request: BuildsRequest, differing: list[Difference]) -> str:
    if not differing:
        return f"{request.name} and {request.second} are planned alike.\n"
    head = ("", str(request.name), str(request.second))
    return columns([head, *((each.name, *each.values) for each in differing)], "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildsRequest(BuildRequest):
    """The words of `builds`."""

    actions = {
        "list": "show all named builds, and how far each is",
        "show": "show one build, and which table sets what",
        "use": "make one the default, and print how a shell enters it; none undoes it",
        "remove": "remove one; lists first, asks",
        "diff": "show how two builds are planned differently",
    }
    objects = {"show": ("name",), "use": ("name",), "remove": ("name",), "diff": ("name", "second")}

    second: str | None = own_flag(
        "the build to compare it with", metavar="NAME", positional=True, sample=("other build", "OTHER")
    )


def run(request: BuildsRequest, report: Reporter) -> Outcome:
    """List the named builds, show or enter one, compare two, or remove one."""
    answer = run_action(request, report)
    return Outcome({"action": request.action, "answer": answer}, builds_text(request, answer))


def run_action(request: BuildsRequest, report: Reporter) -> Answer:
    """Run the requested action."""
    from torchbuild_tasks.context import decide, look, read_named_build
    from torchbuild_tasks.features.builds import act
    from torchbuild_tasks.system.signals import interruptible

    about = read_named_build(dataclasses.replace(request, name=None))
    match request.action:
        case "show":
            return act.show_build(about.settings, str(request.name), about.main)
        case "use":
            return act.use_build(about.settings, request, about.main)
        case "remove":
            with interruptible():
                return act.remove_build(about.settings, request, about.main, report)
        case "diff":
            one = decide(look(request))
            other = decide(look(dataclasses.replace(request, name=request.second)))
            return tuple(differences(one, other))
    return act.list_builds(about.settings, about.main)

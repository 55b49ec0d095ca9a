"""Compare the plans of two named builds, and format the lines by which a shell enters one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.model.source import Difference
from torchbuild_tasks.plan.env_files import file_name
from torchbuild_tasks.plan.env_lines import quote_fish, quote_ps1, quote_sh

CHECKOUT: Final = "<checkout>"
NOTHING: Final = "-"


def differences(one: BuildPlan, other: BuildPlan) -> Iterator[Difference]:
    """Yield the differences of the second plan: choices, the environment, the command."""
    choices = [{choice.name: choice for choice in plan.choices} for plan in (one, other)]
    reasons = [{name: choice.because for name, choice in side.items()} for side in choices]
    values = [
        {name: _without_checkout(choice.value, plan) for name, choice in side.items()}
        for side, plan in zip(choices, (one, other), strict=True)
    ]
    yield from _pairs(values, reasons)
    named = {*choices[0], *choices[1]}
    yield from _pairs([_rest(plan, named) for plan in (one, other)], [{}, {}])


def _rest(plan: BuildPlan, named: set[str]) -> dict[str, str]:
    """Return variables of the env file that are no choices, the command, helpers, patches and the verdict."""
    operations: dict[str, list[str]] = {}
    for op in plan.env:
        if op.name not in named:
            operations.setdefault(op.name, []).append(_without_checkout(f"{op.op} {op.value}".strip(), plan))
    return {
        **{name: "; ".join(ops) for name, ops in operations.items()},
        "command": _without_checkout(" ".join(plan.compile.argv), plan),
        "helpers": " ".join(sorted(artifact.id for artifact in plan.artifacts)),
        "patches": " ".join(sorted(patch.id for patch in plan.patches)),
        "verdict": plan.verdict,
    }


def _pairs(values: list[dict[str, str]], reasons: list[dict[str, str]]) -> Iterator[Difference]:
    one, other = values
    for name in dict.fromkeys((*one, *other)):
        pair = (one.get(name, NOTHING), other.get(name, NOTHING))
        if pair[0] != pair[1]:
            yield Difference(
                name=name, values=pair, reasons=(reasons[0].get(name, ""), reasons[1].get(name, ""))
            )


def _without_checkout(text: str, plan: BuildPlan) -> str:
    return text.replace(plan.source, CHECKOUT)


# ---------------- the lines that enter a build


ACTIVE: Final = "TORCHBUILD_NAME"
UV: Final = "UV_CONSTRAINT"

# Functions for the user's profile, so that `torchbuild_use NAME` enters a build.
HOOKS: Final[Mapping[str, str]] = {
    "sh": 'torchbuild_use() { eval "$(torchbuild builds use "$@" --env-shell sh)"; }',
    "fish": "function torchbuild_use; torchbuild builds use $argv --env-shell fish | source; end",
    "ps1": "function torchbuild_use { torchbuild builds use @args --env-shell ps1 | Out-String | iex }",
    "bat": "doskey torchbuild_use="
    "for /f \"delims=\" %i in ('torchbuild builds use $* --env-shell bat') do @%i",
}
PROFILES: Final[Mapping[str, str]] = {
    "sh": "~/.bashrc or ~/.zshrc",
    "fish": "~/.config/fish/config.fish",
    "ps1": "$PROFILE",
    "bat": 'a file that HKCU\\Software\\Microsoft\\Command Processor names as "AutoRun"',
}


def entry_line(shell: str, folder: str, name: str, constraints: str = "") -> str:
    """Return the line that enters the build in this shell.

    uv does not read the pip.conf of a venv, so the file of `constraints` is named to it, too.
    """
    file = file_name(shell)
    named = {ACTIVE: name, **({UV: constraints} if constraints and " " not in constraints else {})}
    match shell:
        case "sh":
            exported = " ".join(f"{key}={quote_sh(value)}" for key, value in named.items())
            return f"cd {quote_sh(folder)} && . ./{file} && export {exported}"
        case "fish":
            exported = "; ".join(f"and set -gx {key} {quote_fish(value)}" for key, value in named.items())
            return f"cd {quote_fish(folder)}; and source ./{file}; {exported}"
        case "ps1":
            exported = "; ".join(f"$env:{key} = {quote_ps1(value)}" for key, value in named.items())
            return f"Set-Location -LiteralPath {quote_ps1(folder)}; . ./{file}; {exported}"
    exported = " && ".join(f'set "{key}={value}"' for key, value in named.items())
    return f'cd /d "{folder}" && call .\\{file} && {exported}'

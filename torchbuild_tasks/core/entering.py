"""How a shell enters a named build: its folder, its env file, and its name for those who ask later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.plan.env_files import file_name
from torchbuild_tasks.plan.env_lines import quote_fish, quote_ps1, quote_sh

ACTIVE: Final = "TORCHBUILD_NAME"
UV: Final = "UV_CONSTRAINT"

# What a user puts into their profile once, so that `torchbuild_use NAME` enters a build.
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


def enter(shell: str, folder: str, name: str, constraints: str = "") -> str:
    """The line that enters the build in this shell.

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

"""How a shell enters a named build: its folder, its env file, and its name for those who ask later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.core.env_files import file_name
from torchbuild_tasks.core.quoting import quote_fish, quote_ps1, quote_sh

ACTIVE: Final = "TORCHBUILD_NAME"

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


def enter(shell: str, folder: str, name: str) -> str:
    """The line that enters the build in this shell."""
    file = file_name(shell)
    match shell:
        case "sh":
            return f"cd {quote_sh(folder)} && . ./{file} && export {ACTIVE}={name}"
        case "fish":
            return f"cd {quote_fish(folder)}; and source ./{file}; and set -gx {ACTIVE} {name}"
        case "ps1":
            return f"Set-Location -LiteralPath {quote_ps1(folder)}; . ./{file}; $env:{ACTIVE} = '{name}'"
    return f'cd /d "{folder}" && call .\\{file} && set "{ACTIVE}={name}"'

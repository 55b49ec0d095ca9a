"""The lines of an env file for PowerShell: 5.1, which is part of Windows, and newer ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from torchbuild_tasks.core.bat import call_text
from torchbuild_tasks.core.quoting import quote_ps1
from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.templates import fill


def lines(op: EnvOp) -> Iterable[str]:
    """The lines of one operation."""
    name, value = op.name, quote_ps1(op.value)
    match op.op:
        case "set":
            return (f"$env:{name} = {value}",)
        case "unset":
            return (f"Remove-Item -LiteralPath 'Env:{name}' -ErrorAction Ignore",)
        case "prepend":
            rest = f"$env:{name} -split [IO.Path]::PathSeparator"
            return (
                f"$env:{name} = (@({value}) + @({rest} | Where-Object {{ $_ -cne '' -and $_ -cne {value} }}))"
                " -join [IO.Path]::PathSeparator",
            )
        case "load":
            return _load(op)


def _load(op: EnvOp) -> Iterable[str]:
    fields = {
        "name": op.name,
        "text": quote_ps1(call_text(op)),
        "file": quote_ps1(f'"{op.value}"'),
        "call": " ".join(("call %TORCHBUILD__FILE%", *op.arguments)),
    }
    return fill(_LOAD, fields).splitlines()


# cmd runs the batch file and lists its environment; every line that is new is taken over.
# The command holds no quotes, since each PowerShell hands them on in a way of its own: they
# come inside the variables. The list goes through a file in UTF-16 (cmd /u), which no code
# page touches. `call` reads its line twice, so refusal.py lets no % and no ^ into it. The
# inner braces keep the variables of this block to itself.
_LOAD: Final = r"""
if (-not ($env:VSCMD_VER -and $env:VCToolsVersion -and $env:@{name} -ceq @{text})) { & {
    $list = [IO.Path]::GetTempFileName()
    $env:TORCHBUILD__FILE = @{file}
    $env:TORCHBUILD__LIST = '"' + $list + '"'
    try {
        Remove-Item -LiteralPath 'Env:@{name}' -ErrorAction Ignore
        $before = Get-ChildItem Env: | ForEach-Object { "$($_.Name)=$($_.Value)" -split '\r\n|\r|\n' }
        & "$env:SystemRoot\System32\cmd.exe" /d /v:off /c '@{call} 1>&2 && %SystemRoot%\System32\cmd.exe /d /u /c set >%TORCHBUILD__LIST%'
        if ($LASTEXITCODE -ne 0) { throw "$env:TORCHBUILD__FILE failed with exit code $LASTEXITCODE" }
        # PROMPT is what cmd itself adds.
        $after = [IO.File]::ReadAllLines($list, [Text.Encoding]::Unicode) -notlike 'PROMPT=*'
        $names = @('PROMPT') + @($after | ForEach-Object { ($_ -split '=', 2)[0] })
        Get-ChildItem Env: | Where-Object { $names -notcontains $_.Name } | Remove-Item
        foreach ($line in $after | Where-Object { $_ -like '?*=*' -and $before -cnotcontains $_ }) {
            $variable, $value = $line -split '=', 2
            [Environment]::SetEnvironmentVariable($variable, $value)
        }
        if (-not $env:VCToolsVersion) { throw "$env:TORCHBUILD__FILE has set no VCToolsVersion" }
        $env:@{name} = @{text}
    } finally {
        Remove-Item -LiteralPath $list
        Remove-Item -LiteralPath 'Env:TORCHBUILD__FILE', 'Env:TORCHBUILD__LIST' -ErrorAction Ignore
    }
} }
""".strip()  # noqa: E501 - a command of cmd's cannot be broken

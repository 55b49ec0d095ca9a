# The environment of a PyTorch build, for PowerShell. Load it with: . .\env_set.ps1
# Written by torchbuild_tasks 0.1.0
# for the checkout /src/pytorch
#
# Changes made here are lost: the next `env` or `build` writes this file anew. To change a
# value use a flag, --set NAME=VALUE or torchbuild.toml. To change the form of the file put
# a template of your own in .\env_templates\env_set.ps1.in.

# USE_NIGHTLY: with it the build is refused (2.14)
Remove-Item -LiteralPath 'Env:USE_NIGHTLY' -ErrorAction Ignore
# PATH: the Python that gets torch
$env:PATH = (@('/opt/py 3.12 (x86)/bin') + @($env:PATH -split [IO.Path]::PathSeparator | Where-Object { $_ -cne '' -and $_ -cne '/opt/py 3.12 (x86)/bin' })) -join [IO.Path]::PathSeparator
# CMAKE_PREFIX_PATH: helper magma
$env:CMAKE_PREFIX_PATH = (@('/opt/it''s 100% ours') + @($env:CMAKE_PREFIX_PATH -split [IO.Path]::PathSeparator | Where-Object { $_ -cne '' -and $_ -cne '/opt/it''s 100% ours' })) -join [IO.Path]::PathSeparator
# CXX: GCC 12.2 is the newest that CUDA 12.4 takes
$env:CXX = '/usr/bin/g++'
# CXXFLAGS: --set
$env:CXXFLAGS = '-O2 -DNAME="a b & c" -DCOST=$5!'
# GREETING: torchbuild.toml
$env:GREETING = 'Grüße, 世界 🔥 ‘‘quoted’’'
# ODD: 50% & /? ^
$env:ODD = ('  ~ %PATH% `id` $(id) \ ^ | < > * ? # ; -x' + [char]0x09)
# MAX_JOBS: line one rm -rf / line\u2028three
$env:MAX_JOBS = '7'
$env:USE_CUDA = '0'
# TORCHBUILD_VCVARS: the newest toolset that CUDA 12.1 takes
if (-not ($env:VSCMD_VER -and $env:VCToolsVersion -and $env:TORCHBUILD_VCVARS -ceq 'C:\Program Files (x86)\Visual Studio\VC\Auxiliary\Build\vcvarsall.bat x64 -vcvars_ver=14.38')) { & {
    $list = [IO.Path]::GetTempFileName()
    $env:TORCHBUILD__FILE = '"C:\Program Files (x86)\Visual Studio\VC\Auxiliary\Build\vcvarsall.bat"'
    $env:TORCHBUILD__LIST = '"' + $list + '"'
    try {
        Remove-Item -LiteralPath 'Env:TORCHBUILD_VCVARS' -ErrorAction Ignore
        $before = Get-ChildItem Env: | ForEach-Object { "$($_.Name)=$($_.Value)" -split '\r\n|\r|\n' }
        & "$env:SystemRoot\System32\cmd.exe" /d /v:off /c 'call %TORCHBUILD__FILE% x64 -vcvars_ver=14.38 1>&2 && %SystemRoot%\System32\cmd.exe /d /u /c set >%TORCHBUILD__LIST%'
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
        $env:TORCHBUILD_VCVARS = 'C:\Program Files (x86)\Visual Studio\VC\Auxiliary\Build\vcvarsall.bat x64 -vcvars_ver=14.38'
    } finally {
        Remove-Item -LiteralPath $list
        Remove-Item -LiteralPath 'Env:TORCHBUILD__FILE', 'Env:TORCHBUILD__LIST' -ErrorAction Ignore
    }
} }

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
# MAX_JOBS: line one rm -rf / line three
$env:MAX_JOBS = '7'
$env:USE_CUDA = '0'

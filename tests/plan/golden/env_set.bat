@echo off
rem The environment of a PyTorch build, for cmd. Load it with: call env_set.bat
rem Written by torchbuild_tasks 0.1.0
rem for the checkout /src/pytorch
rem
rem Changes made here are lost: the next `env` or `build` writes this file anew. To change a
rem value use a flag, --set NAME=VALUE or torchbuild.toml. To change the form of the file put
rem a template of your own in .\env_templates\env_set.bat.in.

rem Where delayed expansion is on, cmd eats exclamation marks: of values, and of a PATH in place.
if "!!"=="" (
  echo %~nx0: nothing was set, for delayed expansion is on; call this before setlocal, or in cmd /v:off 1>&2
  exit /b 1
)

rem Values below are not ASCII: cmd reads this file as UTF-8 from here on.
for /f "tokens=2 delims=:." %%c in ('%SystemRoot%\System32\chcp.com') do set "TORCHBUILD__PAGE=%%c"
%SystemRoot%\System32\chcp.com 65001 >nul 2>&1
set "TORCHBUILD__PROBE=€€"
if not "%TORCHBUILD__PROBE:~0,2%"=="%TORCHBUILD__PROBE%" (
  echo %~nx0: nothing was set, for cmd cannot read UTF-8 here ^(chcp 65001 fails without a console^) 1>&2
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  set "TORCHBUILD__PROBE="
  exit /b 1
)
set "TORCHBUILD__PROBE="
rem USE_NIGHTLY: with it the build is refused (2.14)
set "USE_NIGHTLY="
rem PATH: the Python that gets torch
setlocal EnableDelayedExpansion
set "TORCHBUILD__REST="
if "!PATH!"=="" set "TORCHBUILD__REST=;"
if defined PATH if "!PATH:~0,-7998!"=="" set "TORCHBUILD__REST=;!PATH!;"
if not defined TORCHBUILD__REST (
  echo %~nx0: PATH is too long for cmd 1>&2
  endlocal
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  exit /b 1
)
set "TORCHBUILD__REST=!TORCHBUILD__REST:;/opt/py 3.12 (x86)/bin;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;/opt/py 3.12 (x86)/bin;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;/opt/py 3.12 (x86)/bin;=;!"
for /f "delims=" %%p in ("/opt/py 3.12 (x86)/bin!TORCHBUILD__REST:~0,-1!") do endlocal & set "PATH=%%p"
rem CMAKE_PREFIX_PATH: helper magma
setlocal EnableDelayedExpansion
set "TORCHBUILD__REST="
if "!CMAKE_PREFIX_PATH!"=="" set "TORCHBUILD__REST=;"
if defined CMAKE_PREFIX_PATH if "!CMAKE_PREFIX_PATH:~0,-7987!"=="" set "TORCHBUILD__REST=;!CMAKE_PREFIX_PATH!;"
if not defined TORCHBUILD__REST (
  echo %~nx0: CMAKE_PREFIX_PATH is too long for cmd 1>&2
  endlocal
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  exit /b 1
)
set "TORCHBUILD__REST=!TORCHBUILD__REST:;/opt/it's 100%% ours;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;/opt/it's 100%% ours;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;/opt/it's 100%% ours;=;!"
for /f "delims=" %%p in ("/opt/it's 100%% ours!TORCHBUILD__REST:~0,-1!") do endlocal & set "CMAKE_PREFIX_PATH=%%p"
rem CXX: GCC 12.2 is the newest that CUDA 12.4 takes
set "CXX=/usr/bin/g++"
rem CXXFLAGS: --set
set "CXXFLAGS=-O2 -DNAME="a b ^& c" -DCOST=$5!"
rem GREETING: torchbuild.toml
set "GREETING=Grüße, 世界 🔥 ‘quoted’"
rem ODD: 50%% & / ?
set "ODD=  ~ %%PATH%% `id` $(id) \ ^ | < > * ? # ; -x	"
rem MAX_JOBS: line one rm -rf / line\u2028three
set "MAX_JOBS=7"
set "USE_CUDA=0"
rem TORCHBUILD_VCVARS: the newest toolset that CUDA 12.1 takes
set "TORCHBUILD__FILE=C:\Program Files (x86)\Visual Studio\VC\Auxiliary\Build\vcvarsall.bat"
set "TORCHBUILD__CALL=C:\Program Files (x86)\Visual Studio\VC\Auxiliary\Build\vcvarsall.bat x64 -vcvars_ver=14.38"
set "TORCHBUILD__CODE="
setlocal EnableDelayedExpansion
if defined VSCMD_VER if defined VCToolsVersion if "!TORCHBUILD_VCVARS!"=="!TORCHBUILD__CALL!" (endlocal & set "TORCHBUILD__CODE=0")
if not defined TORCHBUILD__CODE endlocal
if not defined TORCHBUILD__CODE set "TORCHBUILD_VCVARS="
ver >nul
pushd .
if not defined TORCHBUILD__CODE call "%%TORCHBUILD__FILE%%" x64 -vcvars_ver=14.38 1>&2
if not defined TORCHBUILD__CODE set "TORCHBUILD__CODE=%ERRORLEVEL%"
popd
if not "%TORCHBUILD__CODE%"=="0" (
  echo %~nx0: "%TORCHBUILD__FILE%" failed with exit code %TORCHBUILD__CODE% 1>&2
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  set "TORCHBUILD__FILE="
  set "TORCHBUILD__CALL="
  set "TORCHBUILD__CODE="
  exit /b %TORCHBUILD__CODE%
)
if not defined VCToolsVersion (
  echo %~nx0: "%TORCHBUILD__FILE%" has set no VCToolsVersion 1>&2
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  set "TORCHBUILD__FILE="
  set "TORCHBUILD__CALL="
  set "TORCHBUILD__CODE="
  exit /b 1
)
set "TORCHBUILD_VCVARS=%TORCHBUILD__CALL%"
set "TORCHBUILD__FILE="
set "TORCHBUILD__CALL="
set "TORCHBUILD__CODE="
rem Back to the code page that was.
if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="

exit /b 0

@echo off
rem The environment of a PyTorch build, for cmd. Load it with: call env_set.bat
rem Written by torchbuild_tasks 0.1.0
rem for the checkout C:\src\pytorch
rem
rem Changes made here are lost: the next `env` or `build` writes this file anew. To change a
rem value use a flag, --set NAME=VALUE or torchbuild.toml. To change the form of the file put
rem a template of your own in .\env_templates\env_set.bat.in.

rem Where delayed expansion is on, cmd eats exclamation marks: of values, and of a PATH in place.
if "!!"=="" (
  echo %~nx0: nothing was set, for delayed expansion is on; call this before setlocal, or in cmd /v:off 1>&2
  exit /b 1
)

rem PATH: the Python that gets torch, and its tools
setlocal EnableDelayedExpansion
set "TORCHBUILD__REST="
if "!PATH!"=="" set "TORCHBUILD__REST=;"
if defined PATH if "!PATH:~0,-8005!"=="" set "TORCHBUILD__REST=;!PATH!;"
if not defined TORCHBUILD__REST (
  echo %~nx0: PATH is too long for cmd 1>&2
  endlocal
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  exit /b 1
)
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\venv\Scripts;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\venv\Scripts;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\venv\Scripts;=;!"
for /f "delims=" %%p in ("C:\venv\Scripts!TORCHBUILD__REST:~0,-1!") do endlocal & set "PATH=%%p"
rem PATH: nvcc of CUDA 12.4
setlocal EnableDelayedExpansion
set "TORCHBUILD__REST="
if "!PATH!"=="" set "TORCHBUILD__REST=;"
if defined PATH if "!PATH:~0,-7960!"=="" set "TORCHBUILD__REST=;!PATH!;"
if not defined TORCHBUILD__REST (
  echo %~nx0: PATH is too long for cmd 1>&2
  endlocal
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  exit /b 1
)
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4\bin;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4\bin;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4\bin;=;!"
for /f "delims=" %%p in ("C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4\bin!TORCHBUILD__REST:~0,-1!") do endlocal & set "PATH=%%p"
rem CMAKE_PREFIX_PATH: MKL, the BLAS and LAPACK of a fast CPU build, to be linked in
setlocal EnableDelayedExpansion
set "TORCHBUILD__REST="
if "!CMAKE_PREFIX_PATH!"=="" set "TORCHBUILD__REST=;"
if defined CMAKE_PREFIX_PATH if "!CMAKE_PREFIX_PATH:~0,-7881!"=="" set "TORCHBUILD__REST=;!CMAKE_PREFIX_PATH!;"
if not defined TORCHBUILD__REST (
  echo %~nx0: CMAKE_PREFIX_PATH is too long for cmd 1>&2
  endlocal
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  exit /b 1
)
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-static-2024.2.0-win_amd64\mkl_static-2024.2.0.data\data\Library;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-static-2024.2.0-win_amd64\mkl_static-2024.2.0.data\data\Library;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-static-2024.2.0-win_amd64\mkl_static-2024.2.0.data\data\Library;=;!"
for /f "delims=" %%p in ("C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-static-2024.2.0-win_amd64\mkl_static-2024.2.0.data\data\Library!TORCHBUILD__REST:~0,-1!") do endlocal & set "CMAKE_PREFIX_PATH=%%p"
rem CMAKE_PREFIX_PATH: the headers of MKL
setlocal EnableDelayedExpansion
set "TORCHBUILD__REST="
if "!CMAKE_PREFIX_PATH!"=="" set "TORCHBUILD__REST=;"
if defined CMAKE_PREFIX_PATH if "!CMAKE_PREFIX_PATH:~0,-7879!"=="" set "TORCHBUILD__REST=;!CMAKE_PREFIX_PATH!;"
if not defined TORCHBUILD__REST (
  echo %~nx0: CMAKE_PREFIX_PATH is too long for cmd 1>&2
  endlocal
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  exit /b 1
)
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-include-2024.2.0-win_amd64\mkl_include-2024.2.0.data\data\Library;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-include-2024.2.0-win_amd64\mkl_include-2024.2.0.data\data\Library;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-include-2024.2.0-win_amd64\mkl_include-2024.2.0.data\data\Library;=;!"
for /f "delims=" %%p in ("C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-include-2024.2.0-win_amd64\mkl_include-2024.2.0.data\data\Library!TORCHBUILD__REST:~0,-1!") do endlocal & set "CMAKE_PREFIX_PATH=%%p"
rem CMAKE_PREFIX_PATH: Intel's OpenMP, with which MKL uses several threads
setlocal EnableDelayedExpansion
set "TORCHBUILD__REST="
if "!CMAKE_PREFIX_PATH!"=="" set "TORCHBUILD__REST=;"
if defined CMAKE_PREFIX_PATH if "!CMAKE_PREFIX_PATH:~0,-7879!"=="" set "TORCHBUILD__REST=;!CMAKE_PREFIX_PATH!;"
if not defined TORCHBUILD__REST (
  echo %~nx0: CMAKE_PREFIX_PATH is too long for cmd 1>&2
  endlocal
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  exit /b 1
)
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-openmp-2024.2.0-win_amd64\intel_openmp-2024.2.0.data\data\Library;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-openmp-2024.2.0-win_amd64\intel_openmp-2024.2.0.data\data\Library;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-openmp-2024.2.0-win_amd64\intel_openmp-2024.2.0.data\data\Library;=;!"
for /f "delims=" %%p in ("C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-openmp-2024.2.0-win_amd64\intel_openmp-2024.2.0.data\data\Library!TORCHBUILD__REST:~0,-1!") do endlocal & set "CMAKE_PREFIX_PATH=%%p"
rem PATH: Intel's OpenMP, with which MKL uses several threads
setlocal EnableDelayedExpansion
set "TORCHBUILD__REST="
if "!PATH!"=="" set "TORCHBUILD__REST=;"
if defined PATH if "!PATH:~0,-7888!"=="" set "TORCHBUILD__REST=;!PATH!;"
if not defined TORCHBUILD__REST (
  echo %~nx0: PATH is too long for cmd 1>&2
  endlocal
  if defined TORCHBUILD__PAGE %SystemRoot%\System32\chcp.com %TORCHBUILD__PAGE% >nul 2>&1 & set "TORCHBUILD__PAGE="
  exit /b 1
)
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-openmp-2024.2.0-win_amd64\intel_openmp-2024.2.0.data\data\Library\bin;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-openmp-2024.2.0-win_amd64\intel_openmp-2024.2.0.data\data\Library\bin;=;!"
set "TORCHBUILD__REST=!TORCHBUILD__REST:;C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-openmp-2024.2.0-win_amd64\intel_openmp-2024.2.0.data\data\Library\bin;=;!"
for /f "delims=" %%p in ("C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\mkl-openmp-2024.2.0-win_amd64\intel_openmp-2024.2.0.data\data\Library\bin!TORCHBUILD__REST:~0,-1!") do endlocal & set "PATH=%%p"
rem CC: the same program compiles C
set "CC=cl"
rem CXX: MSVC 14.44.35207, C:\Program Files\Microsoft Visual Studio\2022\Community\VC\Tools\MSVC\14.44.35207\bin\Hostx64\x64\cl.exe
set "CXX=cl"
rem CMAKE_GENERATOR: the generator that PyTorch is built with
set "CMAKE_GENERATOR=Ninja"
rem CMAKE_BUILD_TYPE: preset dev
set "CMAKE_BUILD_TYPE=Release"
rem MAX_JOBS: parallel compile jobs; `plan` shows the calculation
set "MAX_JOBS=6"
rem BUILD_TEST: preset dev; C++ test programs and GoogleTest: saves 278 of 6,135 compiles, 32.6 %% of their CPU time in a CPU build of 1.13.1
set "BUILD_TEST=0"
rem CUDACXX: CUDA 12.4, the toolkit of this build
set "CUDACXX=C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4\bin\nvcc.exe"
rem CUDAHOSTCXX: nvcc's host compiler, from the same toolset
set "CUDAHOSTCXX=C:\Program Files\Microsoft Visual Studio\2022\Community\VC\Tools\MSVC\14.44.35207\bin\Hostx64\x64\cl.exe"
rem CUDAToolkit_ROOT: CUDA 12.4, the toolkit of this build
set "CUDAToolkit_ROOT=C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4"
rem CUDA_HOME: CUDA 12.4, the toolkit of this build
set "CUDA_HOME=C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4"
rem CUDA_PATH: CUDA 12.4, the toolkit of this build
set "CUDA_PATH=C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4"
rem DISTUTILS_USE_SDK: MSVC 14.44.35207 is activated by the env file; setuptools would look for one of its own
set "DISTUTILS_USE_SDK=1"
rem MAGMA_HOME: MAGMA, linear algebra on the GPU, for CUDA 12.4, built in release mode
set "MAGMA_HOME=C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\magma-2.5.4-cuda124-release"
rem TORCH_CUDA_ARCH_LIST: the GPUs that are here: GPU of 8.6 (8.6)
set "TORCH_CUDA_ARCH_LIST=8.6"
rem USE_CUDA: --cuda on the command line
set "USE_CUDA=1"
rem USE_CUDNN: no cuDNN was found, in the toolkit or elsewhere
set "USE_CUDNN=0"
rem USE_KINETO: preset dev; the profiler's Kineto back end: saves 18 of 6,135 compiles, 0.4 %% of their CPU time in a CPU build of 1.13.1
set "USE_KINETO=0"
rem USE_NNPACK: preset dev; NNPACK, convolutions for phones: saves 33 of 6,135 compiles in a CPU build of 1.13.1
set "USE_NNPACK=0"
rem USE_PER_OPERATOR_HEADERS: preset dev; a file includes the headers of its own operators, so an edited operator recompiles fewer
set "USE_PER_OPERATOR_HEADERS=1"
rem USE_PYTORCH_QNNPACK: preset dev; PyTorch's own copy of QNNPACK, the quantized engine qnnpack: saves 56 of 6,135 compiles, 0.1 %% of their CPU time in a CPU build of 1.13.1
set "USE_PYTORCH_QNNPACK=0"
rem USE_XNNPACK: preset dev; XNNPACK, kernels for phones, a file for each variant: saves 3,455 of 6,135 compiles, 7 %% of their CPU time in a CPU build of 1.13.1
set "USE_XNNPACK=0"
rem libuv_ROOT: libuv, through which the processes of torch.distributed talk on Windows
set "libuv_ROOT=C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache\unpacked\libuv-1.40.0\Library"
rem TORCHBUILD_VCVARS: MSVC 14.44.35207, its headers, libraries and the Windows SDK
set "TORCHBUILD__FILE=C:\Program Files\Microsoft Visual Studio\2022\Community\VC\Auxiliary\Build\vcvarsall.bat"
set "TORCHBUILD__CALL=C:\Program Files\Microsoft Visual Studio\2022\Community\VC\Auxiliary\Build\vcvarsall.bat x64 -vcvars_ver=14.44.35207"
set "TORCHBUILD__CODE="
setlocal EnableDelayedExpansion
if defined VSCMD_VER if defined VCToolsVersion if "!TORCHBUILD_VCVARS!"=="!TORCHBUILD__CALL!" (endlocal & set "TORCHBUILD__CODE=0")
if not defined TORCHBUILD__CODE endlocal
if not defined TORCHBUILD__CODE set "TORCHBUILD_VCVARS="
ver >nul
pushd .
if not defined TORCHBUILD__CODE call "%%TORCHBUILD__FILE%%" x64 -vcvars_ver=14.44.35207 1>&2
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

exit /b 0

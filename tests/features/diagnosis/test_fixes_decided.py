"""A fix is chosen by what the log shows: who speaks, what it names, what was built; both sides of each choice."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.for_each import each_case

FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.12 GiB is free."
OWN = " Including non-PyTorch memory, this process has {} GiB memory in use."
RESERVED = " Of the allocated memory 9.00 GiB is allocated by PyTorch, and {} is reserved by PyTorch but unallocated."
FLASH = "ImportError: {}/a.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2Ev"
HOST = "/usr/local/cuda/include/crt/host_config.h:132:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not supported!"
EXTENSION = "g++ -DTORCH_EXTENSION_NAME=_C -c a.cpp\n"
BOUNDS = "RuntimeError: The current installed version of g++ (14.2.0) is greater than the maximum required version by CUDA 12.4. Please make sure to use an adequate version of g++ (>=6.0.0, {})."
LINKS = "g++ -I/v/site-packages/torch/include {} k.cpp -lc10\n/usr/bin/ld: k.o: in function `main':\nk.cpp:(.text+0x83): undefined reference to `at::Tensor::item() const'"
ABI = "c++ -c a.cpp -o a.o {} -DTORCH_EXTENSION_NAME=e\nImportError: /x/e.so: undefined symbol: _ZNK2at10TensorBase8toStringEv"
NVCC_STUB = "ImportError: /v/site-packages/{}: undefined symbol: {}"
NAMES = 'CMake Error in CMakeLists.txt:\n  {} target "{}" {}\n\n    "{}"\n\n  but this file does not exist.'
DYLIB = "ImportError: dlopen(/v/torchaudio/lib/a.so, 0x0006): Library not loaded: @rpath/{}"
HALF = (
    'h.cu(2): error: {} operator "*" matches these operands{}\n            operand types are: __half * __half'
)
PYTHON_H = "x.cpp:1:10: fatal error: Python.h: No such file or directory\n    1 | #include <Python.h>"
TWICE = (
    'h.cu(2): error: more than one operator "!=" matches these operands:\n'
    '            function "operator!=(const __half &, const __half &)"\n'
    '            function "operator!=(half, half)"\n'
    "            operand types are: {}"
)
WHOLE = 'a.cu(2): error: no suitable conversion function from "__half" to "int" exists'
GLIBC = "{}ld: /t/libgomp.so.1: undefined reference to `clock_gettime@GLIBC_2.17'\ncollect2: error: ld returned 1 exit status"
NEWER = "{}:2:12: warning: nested namespace definition is a C++17 extension [-Wc++17-extensions]\nf.cpp:4:2: error: a b c"
LINK = (
    "FAILED: t\n: && /usr/bin/c++ CMakeFiles/t.dir/a.o -o t  {}aten/libtorch_cpu.so && :\n"
    "/usr/bin/ld: a.o: undefined reference to `at::relu(at::Tensor const&)'"
)
OMP_H = "x.cpp:3:10: fatal error: {}\n    3 | #include <omp.h>"
STDLIB = "/usr/include/c++/12/cstdlib:75:15: fatal error: stdlib.h: No such file or directory\n   75 | #{} <stdlib.h>"
STD = "FAILED: a.o\n/usr/bin/c++ -O2 -std={} -c a.cpp -o a.o\na.cpp:4:9: error: '{}' is not a member of 'std'"
NVCC = "/usr/local/cuda-12.1/bin/nvcc -c a.cu -o a.o\n"
SITE = """Fatal Python error: init_import_site: Failed to import the site module
Traceback (most recent call last):
  File "<frozen importlib._bootstrap>", line 1176, in _find_and_load
  File "<frozen site>", line 179, in addpackage
  File "/usr/lib/python3.11/x.py", line 26, in decode
{}"""
CAPABILITY = "GPU with CUDA capability {} is not compatible with the current PyTorch installation."


@each_case(
    ("log", "said", "not_said"),
    [
        # Who holds the GPU's memory: another process, this one in pieces, or this one.
        (FULL + " Process 7 has 21.00 GiB memory in use." + OWN.format(1.2), "the process that holds 21.00 GiB", ""),
        (FULL + " Process 7 has 1.00 GiB memory in use." + OWN.format(22), "smaller batches", "the process that holds"),
        (FULL + OWN.format(22) + RESERVED.format("8.50 GiB"), "expandable_segments", ""),
        (FULL + OWN.format(22) + RESERVED.format("50.00 MiB"), "smaller batches", "expandable_segments"),
        # What the driver runs, where it is told.
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", "install a torch of CUDA 11,", ""),
        ("CUDA error 35 (cudaErrorInsufficientDriver)", "Where it fails, no driver is here", "torch of CUDA 11"),
        ("RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.", "TORCH_CUDA_ARCH_LIST=8.6", ""),
        # Which CUDA has the GPU.
        (CAPABILITY.format("sm_120"), "CUDA has it from 12.8 on", ""),
        (CAPABILITY.format("sm_61"), "CUDA has it up to 12.9", "from 12.8"),
        # Numbers of the driver.
        ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment", "modprobe nvidia_uvm", ""),
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 304: OS call failed", "ulimit -v", "modprobe"),
        # Why Python does not start.
        (SITE.format("UnicodeDecodeError: 'ascii' codec can't decode byte 0xc3 in position 48: ordinal not in range(128)"), "LC_ALL=C.UTF-8", "PYTHONHOME"),
        (SITE.format("ImportError: cannot import name 'hook' from 'early'"), "python -S", "PYTHONHOME"),
        ("Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding\nModuleNotFoundError: No module named 'encodings'", "PYTHONHOME", "LC_ALL"),
        # A torch for CPUs is replaced by a wheel, where none is built.
        ("AssertionError: Torch not compiled with CUDA enabled", "--force-reinstall torch==VERSION", "torchbuild build"),
        ("Traceback (most recent call last):\n  File \"/Users/me/a.py\", line 1, in <module>\n    x\nAssertionError: Torch not compiled with CUDA enabled", "mps", "--index-url"),
        # A module that was installed, or that lies in a checkout.
        (FLASH.format("/v/lib/python3.11/site-packages"), "it came for another torch", ""),
        (FLASH.format("/src/mine"), "build it again with the torch that is installed", "it came for"),
        # What an extension's nvcc reads, and any other.
        (EXTENSION + HOST, "CC=/usr/bin/g++-11 CXX=/usr/bin/g++-11", "CUDAHOSTCXX"),
        (HOST, "CUDAHOSTCXX=/usr/bin/g++-11", "-ccbin"),
        (BOUNDS.format("<13.0"), "g++-12", "g++-13"),
        (BOUNDS.format("<=11.0.0"), "g++-11", "g++-10"),
        # The names of half types are CUDA's, and torch's flags take their operators away; two that fit are another thing.
        (HALF.format("no", ""), "-U__CUDA_NO_HALF_OPERATORS__", ""),
        (HALF.format("more than one", ":"), "", "-U__CUDA_NO"),
        (TWICE.format("half != half"), "with -D__CUDA_NO_HALF_OPERATORS__", "-U__CUDA"),
        (TWICE.format("c10::Half != c10::Half"), "with -D__CUDA_NO_HALF_OPERATORS__", "-U__CUDA"),
        (TWICE.format("half != float"), "", "-D__CUDA_NO"),
        # A half where a whole number is wanted: an architecture has no __hadd for halves, or a conversion is forbidden.
        (WHOLE, "TORCH_CUDA_ARCH_LIST (a build that sees no GPU", "Give nvcc"),
        ("FAILED: a.o\nnvcc -gencode arch=compute_52,code=sm_52 -c a.cu -o a.o\n" + WHOLE, "The command names compute_52", "-U__CUDA"),
        ("FAILED: a.o\nnvcc -D__CUDA_NO_HALF_CONVERSIONS__ -gencode arch=compute_86,code=sm_86 -c a.cu -o a.o\n" + WHOLE, "-U__CUDA_NO_HALF_CONVERSIONS__", "The command names"),
        (WHOLE.replace('"int"', '"float"'), "Give nvcc the opposite", "__hadd"),
        # Fermi is in old lists, and no sign of a GPU of 12.1.
        ("nvcc fatal   : Unsupported gpu architecture 'compute_20'", "TORCH_CUDA_ARCH_LIST=All", "TORCH_CUDA_ARCH_LIST=12.1"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_35'", "compute_35", "Fermi"),
        # A processor that a source of C knows nothing of, and an architecture that nvcc does not know.
        ('../third_party/QNNPACK/src/init.c:240:4: error: #error "Unsupported architecture"', "USE_QNNPACK=0", "TORCH_CUDA_ARCH_LIST"),
        ('a.cu:240:4: error: #error "Unsupported architecture"', "TORCH_CUDA_ARCH_LIST", "USE_QNNPACK"),
        # What a linker wants: clang's library, an object of this processor, a symbol that this build left out.
        ("FAILED: t\n/usr/bin/clang++ -stdlib=libc++ a.o -o t\n/usr/bin/ld: cannot find -lc++: No such file or directory", "libc++-dev", "install g++"),
        ("/usr/bin/ld: cannot find -lstdc++: No such file or directory", "g++", "libc++-dev"),
        ("mold: fatal: a.o: incompatible file type: x86_64 is expected but got arm64\ncollect2: error: ld returned 1 exit status", "uname -m", "stands above"),
        (LINK.format(""), "makes aten/libtorch_cpu.so itself", "--as-needed"),
        (LINK.format("/opt/v/"), "--as-needed", "itself, and left"),
        (GLIBC.format("/c/bin/../x86_64-conda-linux-gnu/bin/"), "sysroot_linux-64>=2.17", "LD_LIBRARY_PATH"),
        (GLIBC.format("/usr/bin/"), "ldd --version", "sysroot_linux"),
        # A program, an extension; whose flag of the ABI; what nvcc writes; what the header already shows.
        (LINKS.format("-o k"), "Behind the source: -L$TORCH/lib", "What is built is an extension"),
        (LINKS.format("-o k.so -shared"), "What is built is an extension", "Behind the source"),
        (ABI.format("-D_GLIBCXX_USE_CXX11_ABI=0 -DTORCH_API_INCLUDE_EXTENSION_H"), "take it out", "import torch before"),
        (ABI.format("-DTORCH_API_INCLUDE_EXTENSION_H -D_GLIBCXX_USE_CXX11_ABI=0"), "import torch before", "take it out"),
        (ABI.format("-D_GLIBCXX_USE_CXX11_ABI=0 -DTORCH_API_INCLUDE_EXTENSION_H -D_GLIBCXX_USE_CXX11_ABI=1"), "import torch before", "take it out"),
        (NVCC_STUB.format("mmdet/a.so", "__cudaPopCallConfiguration"), "nvcc writes it", "LD_LIBRARY_PATH"),
        (NVCC_STUB.format("mmdet/a.so", "__cudaRegisterFatBinaryEnd"), "nvcc writes it", "LD_LIBRARY_PATH"),
        (NVCC_STUB.format("mmdet/a.so", "cudaGraphAddNode"), "LD_LIBRARY_PATH", "nvcc writes it"),
        (NVCC_STUB.format("torch/lib/libtorch_cuda.so", "__cudaPopCallConfiguration"), "LD_LIBRARY_PATH", "nvcc writes it"),
        ("my_lib.obj : error LNK2001: unresolved external symbol __imp_THFloatTensor_fill", "import libraries", "taken out"),
        ("my_lib.obj : error LNK2001: unresolved external symbol THFloatTensor_fill", "taken out", "import libraries"),
        # Of what a package of CMake names: a folder of who built it, the system's, another package's.
        (NAMES.format("Imported", "torch", "includes non-existent path", "/pytorch/torch/lib"), "Your source lacks nothing", "git submodule"),
        (NAMES.format("The imported", "c10", "references the file", "C:/actions-runner/w/c10.lib"), "Your source lacks nothing", "git submodule"),
        (NAMES.format("Imported", "x", "includes non-existent path", "/usr/include/x"), "is not whole", "git submodule"),
        ("CMake Error at CMakeLists.txt:3 (add_library):\n  Cannot find source file:\n\n    /pytorch/a.cpp", "git submodule", "Your source lacks nothing"),
        # What no wheel brings along, and what came with one.
        (DYLIB.format("libsox.dylib"), "brew install sox", "install both again"),
        (DYLIB.format("libavutil.59.dylib"), "brew install ffmpeg", "install both again"),
        (DYLIB.format("libjpeg.9.dylib"), "install both again", "brew install"),
        ("/v/lib/python3.14/site-packages/nvidia/cu13/lib/libnvrtc.so.13\nImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory", "release for CUDA 13", "pip check"),
        ("/v/lib/python3.14/site-packages/nvidia/cu13/lib/libcudart.so.13\nImportError: libcudart.so.13: cannot open shared object file: No such file or directory", "pip install", "release for CUDA 13"),
        # A cache has a variable for its folder.
        ("PermissionError: [Errno 13] Permission denied: '/tmp/torch_extensions/fused'", "TORCH_EXTENSIONS_DIR=", "findmnt"),
        ("PermissionError: [Errno 13] Permission denied: '/home/u/.triton/cache'", "TRITON_CACHE_DIR=", "findmnt"),
        ("PermissionError: [Errno 13] Permission denied: '/tmp/torch_files/fused'", "findmnt", "_DIR="),
        ("C:\\t\\torch/nn/pimpl.h(123): error C2872: 'std': ambiguous symbol", "/permissive-", "C++14"),
        ("g++: fatal error: Killed signal terminated program cc1plus", "ulimit -t", ""),
        # Compilers that are not found.
        ("Traceback (most recent call last):\n  File \"C:\\s\\setup.py\", line 431, in get_xpu_compliers\n    raise RuntimeError(\"x\")\nRuntimeError: Failed to find compiler path from OS PATH", "setvars.bat", "Build Tools"),
        ("RuntimeError: Failed to find compiler path from OS PATH", "Install one", "setvars"),
        ("RuntimeError: Could not locate a supported Microsoft Visual C++ installation", "Build Tools", "traceback"),
        # A file of a newer standard than it is compiled as; another file's warning says nothing of it.
        (NEWER.format("f.cpp"), "-std=c++17", ""),
        (NEWER.format("g.cpp"), "git diff", "-std=c++17"),
        ("v.cpp:31:23: error: expected constructor, destructor, or type conversion before ‘(’ token", "release that belongs to the torch", "newer release of it"),
        ("v.cpp:31:23: error: expected constructor, destructor, or type conversion before ‘;’ token", "newer release of it", "macro"),
        ("a.h:3626:7: error: reference to __host__ function '__glibcxx_assert_fail' in __host__ __device__ function", "-D_GLIBCXX_ASSERTIONS", "__device__ (or"),
        ("a.h:3626:7: error: reference to __host__ function 'mine' in __host__ __device__ function", "mark it __device__", "ASSERTIONS"),
        # Which Python it is, where a command names its headers.
        ("gcc -I/usr/include/python3.12 -c x.cpp\n" + PYTHON_H, "python3.12-dev", ""),
        ("gcc -I/usr/include -c x.cpp\n" + PYTHON_H, "python3.X-dev", "python3.12"),
        # Who looks for omp.h.
        (OMP_H.format("omp.h: No such file or directory"), "GCC brings omp.h itself", "brew"),
        (OMP_H.format("'omp.h' file not found"), "libomp-N-dev", "brew"),
        ("/Users/me/" + OMP_H.format("'omp.h' file not found"), "brew install libomp", "apt"),
        # A header of C that is there, and one that is not.
        (STDLIB.format("include_next"), "-isystem /usr/include", ""),
        (STDLIB.format("include"), "libc6-dev", "-isystem"),
        ("/usr/include/stdio.h:27:10: fatal error: bits/libc-header-start.h: No such file or directory", "-m32", "submodule"),
        # Of a full disk the folder that is written to, and pip's.
        ("a.cpp:1:1: fatal error: error writing to /tmp/cc1.s: No space left on device", "df -h /tmp/ shows", "pip"),
        ("/usr/bin/ld: final link failed: No space left on device", "df -h in the build folder", "df -h /usr"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "pip cache purge", ""),
        # A program of Python takes no jobs.
        ("./t.sh: line 12: 12345 Killed                  python train.py", "It was a Python program", "fewer jobs"),
        ("./t.sh: line 12: 12345 Killed                  python setup.py install", "fewer jobs", "It was a Python"),
        ("OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 64: Resource temporarily unavailable", "OPENBLAS_NUM_THREADS=1", ""),
        ("RuntimeError: can't start new thread", "MAX_JOBS", "OPENBLAS"),
        ("OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 4: Operation not permitted", "seccomp=unconfined", "chown"),
        # A warning as an error: of cl, of nvcc by its number, of gcc.
        ("C:\\a.cpp(5): error C2220: the following warning is treated as an error", "_CL_=/WX-", "-Wno-error"),
        ("a.cpp(7): error C4996: 'strcpy': This function or variable may be unsafe.", "_CRT_SECURE_NO_WARNINGS", "/WX-"),
        ('k.cu(1): error #177-D: variable "x" was declared but never referenced', "-diag-suppress 177", ""),
        ("a.c:4:9: error: unused variable 'x' [-Werror=unused-variable]", "-Wno-error=unused-variable", "/WX-"),
        ("a.cpp(1): fatal error C1128: number of sections exceeded object file format limit", "/bigobj", "architectures"),
        # What ptxas says is no matter of binutils.
        ("ptxas error   : Entry function '_Z3foo' with max regcount of 32 calls function '_Z3bar'", "-maxrregcount", "newer binutils"),
        ("/tmp/c.s:1: Error: selected processor does not support `sdot v0.4s,v1.16b'", "-march=armv8.2-a+dotprod", "mavx2"),
        ("/tmp/c.s:1: Error: selected processor does not support `smmla v0.4s,v1.16b'", "+i8mm", "dotprod"),
        ("clang++: error: invalid target ID 'gfx1200'; format is a name", "PYTORCH_ROCM_ARCH", "TORCH_CUDA"),
        # A library behind what uses it.
        ("/usr/bin/ld: a.o: undefined reference to `shm_open'", "-Wl,--no-as-needed -lrt", ""),
        ("/usr/bin/ld: a.o: undefined reference to `pthread_create'", "-pthread", "-lrt"),
        ("/opt/x.so: undefined reference to `pthread_join@GLIBC_2.34'", "older wheel", "-pthread"),
        ("ld: x.a(a.o): undefined reference to `__isoc23_strtol'", "glibc 2.38", "-lpthread"),
        ("ld: error: version script assignment of VERS to symbol foo failed: symbol not defined", "--undefined-version", ""),
        ("ld: a.o: plugin needed to handle lto object", "gcc-ar", "Delete it"),
        ("foo.obj : error LNK2038: mismatch detected for '_ITERATOR_DEBUG_LEVEL': value '0' doesn't match value '2'", "--config Release", "torchbuild"),
        ("x.obj : fatal error LNK1112: module machine type 'x86' conflicts with target machine type 'x64'", "x64 Native Tools", "uname"),
        ("LINK : fatal error LNK1181: cannot open input file 'cudart.lib'", "lib\\x64", "lib64"),
        # The loader.
        ("ImportError: /x/y.so: failed to map segment from shared object", "noexec", "chown"),
        ("ImportError: a.so: cannot enable executable stack as shared object requires: Invalid argument", "--clear-execstack", "gdb"),
        ("OSError: /x/y.so: invalid ELF header", "Install the package", "build on"),
        ("ImportError: libGL.so.1: cannot open shared object file: No such file or directory", "opencv-python-headless", "-dev"),
        ("ImportError: libcrypt.so.1: cannot open shared object file: No such file or directory", "libxcrypt-compat", "libc6-dev"),
        ("RuntimeError: nvrtc: error: failed to open libnvrtc-builtins.so.11.7.", "beside the libnvrtc", "apt-file"),
        ("OSError: libcudnn.so.9: cannot open shared object file: No such file or directory", "Its number is its own", "CUDA 9"),
        ("OSError: libcupti.so.12: cannot open shared object file: No such file or directory", "is of CUDA 12", "Its number"),
        ("ImportError: Error loading shared library ld-linux-x86-64.so.2: No such file or directory", "python:3.12-slim", "git status"),
        ("ImportError: Error relocating /v/torch/lib/libtorch_cpu.so: __register_atfork: symbol not found", "python:3.12-slim", ""),
        ("ImportError: DLL load failed while importing _C: The specified module could not be found.", "add_dll_directory", "on PATH"),
        ("ImportError: DLL load failed while importing _C: The specified procedure could not be found.", "built for another torch", ""),
        ("OSError: [WinError 127] The specified procedure could not be found. Error loading \"C:\\v\\torch\\lib\\shm.dll\"", "Install torch again", "built for another"),
        # GPUs of AMD and Apple; limits of time and of a kernel's start.
        ("RuntimeError: No HIP GPUs are available", "rocminfo", "nvidia-smi"),
        ("RuntimeError: No CUDA GPUs are available", "nvidia-smi -L", "rocminfo"),
        ("Unable to open /dev/kfd read-write: Permission denied", "usermod -aG render,video", "chown"),
        ("RuntimeError: MPS backend out of memory (MPS allocated: 17.9 GB)", "Activity Monitor", "nvidia-smi"),
        ("RuntimeError: CUDA error: the launch timed out and was terminated", "without a screen", "Xid"),
        ("RuntimeError: CUDA error: invalid configuration argument", "a tensor is empty", "__launch_bounds__"),
        # Fortran, and a system's own limits.
        ("CMake Error: No CMAKE_Fortran_COMPILER could be found.", "apt install gfortran", "build-essential"),
        ("Error: Line truncated at (1) [-Werror=line-truncation]", "-ffree-line-length-none", "CXXFLAGS"),
        ("Fatal Error: Cannot read module file 'mpi.mod' opened at (1), because it was created by a different version of GNU Fortran", "mpif90", "MODULE"),
        ("/Users/x/a.cpp:3:10: error: 'path' is unavailable: introduced in macOS 10.15", "MACOSX_DEPLOYMENT_TARGET=10.15", ""),
        ("a.cpp(3): error C3861: 'popen': identifier not found", "_MSC_VER", "git diff"),
        # A copy of CUB beside the toolkit's.
        ("C:/x/cub-2.1.0/cub\\util.cuh(42): fatal error C1083: Cannot open include file: 'nv/target': No such file or directory", "a copy beside the toolkit", ""),
        ("a.cu(3): fatal error: nv/target: No such file or directory", "Let CUDA_HOME", "a copy beside"),
        # The standard that the command asks for, against that of the name.
        (STD.format("gnu++14", "optional"), "The command has -std=gnu++14: ask for C++17", ""),
        (STD.format("c++17", "optional"), "#include <optional>", "ask for C++17"),
        ("a.cpp:4:9: error: 'optional' is not a member of 'std'", "-std=c++17 in CXXFLAGS", "The command has"),
        # A library's release that is found first, or that a symbol names.
        ("ImportError: /l/libssl.so.3: version `OPENSSL_3.2.0' not found (required by /v/a.so)", "leads to /l/libssl.so.3", "GCC"),
        ("ld: /o/libfoo.so: undefined reference to `ZSTD_compress2@ZSTD_1.4'", "ZSTD_1.4 is the release", "grep -rn"),
        ("ld: a.o: undefined reference to `foo_bar'", "grep -rn", "is the release"),
        # What nvcc cannot read of the host's headers is no missing instruction.
        (NVCC + "/usr/lib/gcc/x86_64-linux-gnu/13/include/amxtileintrin.h(42): error: identifier \"__builtin_ia32_x\" is undefined", "CUDA 12.1 supports g++ up to 12", ""),
        (NVCC + "/usr/include/x86_64-linux-gnu/bits/floatn.h(74): error: identifier \"_Float32\" is undefined", "The newest g++ of each", "gcc-toolset"),
        (NVCC + "nvcc fatal   : Value 'c++17' is not defined for option 'std'", "which -a nvcc", ""),
        # What a sanitizer finds is no crash of the build; a cache is left out by what the build reads.
        ("==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6020000000f4", "A sanitizer has found", "gdb"),
        ("Fatal Python error: Segmentation fault", "gdb -batch", "A sanitizer has"),
        ("sccache: error: Server startup failed: Address in use", "unset CMAKE_C_COMPILER_LAUNCHER", "--cache none"),
        # A quoted line of the source is no error; another program's is.
        ("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    \"Cannot re-initialize CUDA in forked subprocess. To use CUDA with \"\nAssertionError: Torch not compiled with CUDA enabled", "--force-reinstall", "spawn"),
        # Which program crashed.
        ("nvcc error   : 'cudafe++' died due to signal 11 (Invalid memory reference)", "another toolkit", "-O1"),
        ("a.cpp:1:1: internal compiler error: in f, at g.cc:12", "-O1", "toolkit"),
        ("c++: fatal error: Illegal instruction signal terminated program cc1plus", "It is the compiler itself", "faulthandler"),
        ("Illegal instruction (core dumped)", "x/i $pc", "the compiler itself"),
        ("$ python a.py\nFatal Python error: Illegal instruction", "faulthandler", "Jetson"),
        # Compilers of a range, and processors.
        ("CMake Error at C.txt:1 (message):\n  GCC version must be at least 9.3!", "any from 9 on does", ""),
        ("cc1plus: error: bad value (‘armv8.6-a’) for ‘-march=’ switch", "no processor or extension armv8.6-a", "USE_FLAGS"),
        ("gcc: error trying to exec 'cc1plus': execvp: No such file or directory", "build-essential", "git status"),
        ("error: command '/usr/bin/gcc' failed: Permission denied", "conda install -c conda-forge cxx-compiler", "venv"),
        ("a.cpp:1:1: error: 'class at::Tensor' has no member named 'foo'", "torch.__file__", "Thrust"),
    ],
)  # fmt: skip
def test_the_fix_is_that_of_what_the_log_shows(log: str, said: str, not_said: str) -> None:
    fix = elsewhere(log).fix
    assert said in fix
    assert not not_said or not_said not in fix

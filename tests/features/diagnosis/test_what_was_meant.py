"""What is missing, or is there twice, is told from the words around it: each form on its smallest log."""

# ruff: noqa: E501  (a log in one line)

from __future__ import annotations

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case

_CMAKE = "CMake Error at {} ({}):\n{}\n\n-- Configuring incomplete, errors occurred!"
_LINK = "/usr/bin/ld: a.o: in function `main':\na.cpp:(.text+0x9): undefined reference to `{}'\ncollect2: error: ld returned 1 exit status"
_DYLD = "ImportError: dlopen(/env/torch/_C.cpython-39-darwin.so, 2): Library not loaded: @rpath/libomp.dylib\n  Referenced from: {}/lib/libtorch_cpu.dylib\n  Reason: {}"
_BUILT = "no suitable image found.  Did find:\n\t/env/libomp.dylib: cannot load 'libomp.dylib' (load command 0x80000034 is unknown)"


@each_case(
    "log, said, unsaid",
    [
        # A variable of CMake's that ends in NOTFOUND stands for a package, whatever wants it.
        ('CMake Error in src/CMakeLists.txt:\n  Imported target "torch" includes non-existent path\n\n    "MKL_INCLUDE_DIR-NOTFOUND"\n\n  in its INTERFACE_INCLUDE_DIRECTORIES.', "mkl-devel", "submodule"),
        ("ninja: error: 'GFLAGS_LIBRARY-NOTFOUND', needed by 'a.so', missing and no known rule to make it", "libgflags-dev", "submodule"),
        ("make[2]: *** No rule to make target 'ZLIB_LIBRARY_RELEASE-NOTFOUND', needed by 'a'.  Stop.", "zlib1g-dev", "submodule"),
        # A configuration file that includes what is not beside it.
        (_CMAKE.format("/s/pytorch/build/Caffe2Config.cmake:14", "include", "  include could not find load file:\n\n    /s/pytorch/build/public/utils.cmake"), "of a build folder", "submodule"),
        (_CMAKE.format("/usr/lib/cmake/Foo/FooConfig.cmake:14", "include", "  include could not find load file:\n\n    /usr/lib/cmake/Foo/more.cmake"), "that package is not whole", "submodule"),
        (_CMAKE.format("CMakeLists.txt:14", "include", "  include could not find load file:\n\n    cmake/more.cmake"), "submodule", "that package is not whole"),
        # A Visual Studio that CMake remembers, and none at all.
        (_CMAKE.format("CMakeLists.txt:11", "PROJECT", "  Generator\n\n    Visual Studio 16 2019\n\n  could not find specified instance of Visual Studio:\n\n    E:/visual 3"), "E:/visual 3", "Install Visual"),
        (_CMAKE.format("CMakeLists.txt:11", "PROJECT", "  Generator\n\n    Visual Studio 16 2019\n\n  could not find any instance of Visual Studio."), "Install Visual", "remembers"),
        (_CMAKE.format("CMakeLists.txt:2", "PROJECT", "  Generator\n\n    Visual Studio 17 2022\n\n  could not find specified instance of Visual Studio:\n\n    C:/BuildTools\n\n  The directory exists, but the instance is not known to the Visual Studio\n  Installer, and no 'version=' field was given."), "C:/BuildTools,version=", "remembers"),
        (_CMAKE.format("CMakeLists.txt:3", "project", "  The CMAKE_CXX_COMPILER:\n\n    C:/Program Files/VC/14.29/bin/cl.exe\n\n  is not a full path to an existing compiler tool."), "an update replaces", "Build Tools with the workload"),
        ('CMake Error: CMake was unable to find a build program corresponding to "Ninja".  CMAKE_MAKE_PROGRAM is set to "/tmp/pip-build-env-x/overlay/bin/ninja".', "so that the paths stay", "build tool."),
        (_CMAKE.format("C:/p/CMakeLists.txt:3", "project", "  Running\n\n   'C:/old/ninja.exe' '--version'\n\n  failed with:\n\n   The system cannot find the file specified"), "Find what names C:/old/ninja.exe", "git status"),
        # A message that is cut off in a word, and one without its quotation marks.
        (_CMAKE.format("/t/share/cmake/Caffe2/Caffe2Config.cmake:100", "message", "  Your installed Caffe2 version uses cuDNN but I cannot find the cuD").partition("\n\n--")[0], "CUDNN_LIBRARY_PATH", "switch off"),
        ("ImportError: /c/lib/libstdc++.so.6: version GLIBCXX_3.4.29 not found (required by /c/a.so)", "libstdcxx-ng", "traceback"),
        ("ImportError: /lib64/libc.so.6: version GLIBC_2.34 not found (required by /c/a.so)", "older", "traceback"),
        # What switches a check off is no way out.
        ("C:/c/thrust/config.h(79): fatal error C1189: #error:  The version of CUB in your include path is not compatible with this release of Thrust. Define THRUST_IGNORE_CUB_VERSION_CHECK to ignore this.", "CUB_HOME", "Define THRUST"),
        ("a.h:3:2: error: #error This is old. Define X_OK to override this check. Please use C++17.", "Please use C++17", "X_OK"),
        ("error: Internal check failed. Please report this bug to the maintainers.", "", "says what to do"),
        # A file of torch's own lacks a name, or an extension's does.
        ("ImportError: /v/torch/lib/libtorch.so: undefined symbol: nvtxMarkA", "is of torch itself", "setup.py"),
        ("ImportError: /v/zork/_C.so: undefined symbol: nvtxMarkA", "linked without it", "is of torch itself"),
        ("ImportError: dlopen(/v/lltm_cpp.cpython-36m-darwin.so, 2): Symbol not found: _THPVariableClass", "import torch before it", "grep"),
        # Strings of the old ABI in the name of a library that has the new one.
        (_LINK.format("cv::imread(std::string const&, int)"), "libtorch-cxx11-abi", "missing from the link"),
        (_LINK.format("cv::imread(std::__cxx11::basic_string<char> const&, int)"), "OpenCV", "libtorch-cxx11-abi"),
        # A library for another device, one that is not brought along, and one that is too new.
        ("OSError: libtorch_hip.so: cannot open shared object file: No such file or directory", "torch for ROCm alone", "import torch before"),
        ("OSError: libc10_cuda.so: cannot open shared object file: No such file or directory", "one for CPUs", "ROCm"),
        (_DYLD.format("/Users/a/libtorch", "tried: '/x'"), "/Users/a/libtorch/lib", "install both again"),
        (_DYLD.format("/env/torch", "tried: '/x'"), "install both again", "ln -s"),
        ("ImportError: dlopen(/Users/me/a/_C.so, 0x0002): Library not loaded: @rpath/libc10.dylib\n  Referenced from: /Users/me/a/_C.so\n  Reason: tried: '/x'", "import torch before the extension", "install both again"),
        ("ImportError: dlopen(/v/torch/_C.so, 2): Library not loaded: @rpath/libc10.dylib\n  Referenced from: /v/torch/_C.so\n  Reason: tried: '/x'", "install both again", "import torch before"),
        (_DYLD.format("/env/torch", _BUILT), "newer one", "install both again"),
        ("CUDA SETUP: Loading binary C:\\k\\venv\\lib\\bitsandbytes\\libbitsandbytes_cuda118.so...\nargument of type 'WindowsPath' is not iterable", '"bitsandbytes>=0.43"', "LD_LIBRARY_PATH variable"),
        ("Traceback (most recent call last):\n  File \"/w/tools/a.py\", line 8, in <module>\n    X = re.compile(\nAttributeError: module 're' has no attribute 'compile'", "in /w/tools, the folder of the script", "in the same folder"),
        # The log shows which of two compilers ran, and which prompt is typed at.
        ("FAILED: a.obj\nC:\\VC\\bin\\HostX86\\x64\\cl.exe /c a.cpp\nD:\\a.cpp(9): fatal error C1060: compiler is out of heap space", "runs the compiler for 32 bits", "at once:"),
        ("FAILED: a.obj\nC:\\VC\\bin\\HostX64\\x64\\cl.exe /c a.cpp\nD:\\a.cpp(9): fatal error C1060: compiler is out of heap space", "page file", "runs the compiler for 32 bits"),
        ('CMake Error at /c/CMakeTestCXXCompiler.cmake:60 (message):\n  The C++ compiler\n\n    "D:/VS/cl.exe"\n\n  is not able to compile a simple test program.\n\n  It fails with the following output:\n\n    Change Dir: D:/b\n', "echo %ERRORLEVEL%", "-fPIC"),
        # The system's own name for a package, where it has one for libraries at all.
        ("fetch https://dl-cdn.alpinelinux.org/alpine/v3.19/main\nmake: g++: No such file or directory", "apk add build-base", "sanitizer"),
        ("yum -y install gcc-c++\n/usr/bin/ld: cannot find -lz\ncollect2: error: ld returned 1 exit status", "dnf install zlib-devel", "apt"),
        ("PS C:\\p> python setup.py install\nfatal error C1083: Cannot open include file: 'zlib.h': No such file or directory", "conda install -c conda-forge zlib", "winget"),
        ("apk add x\na.cpp:3:10: fatal error: execinfo.h: No such file or directory", "musl, the C library", "-lpthread"),
        ("apk add x\na.cpp:3:10: fatal error: pthread.h: No such file or directory", "apk add musl-dev", "has no such"),
        ("apt-get install x\na.cpp:3:10: fatal error: execinfo.h: No such file or directory", "apt install libc6-dev", "musl"),
        ("PS C:\\p> bash build.sh\nbuild.sh: line 3: nproc: command not found", "%NUMBER_OF_PROCESSORS%", "sysctl"),
        # A traceback whose head is not in the log; what a submodule stops at.
        ("1.181   File \"/c/torch/utils/cpp_extension.py\", line 1606, in _get_cuda_arch_flags\n1.181     arch_list[-1] += '+PTX'\n1.181 IndexError: list index out of range", "TORCH_CUDA_ARCH_LIST", "traceback"),
        ('third_party/ideep/mkl-dnn/include/dnnl_config.h:81:2: #error "BOTH must be defined"\nthird_party/ideep/mkl-dnn/a.hpp:115:12:  error: ‘X’ was not declared', "submodule update", "stops there by itself"),
    ],
)  # fmt: skip
def test_the_words_around_it_tell(log: str, said: str, unsaid: str) -> None:
    told = " ".join(each.fix for each in read(log).diagnoses)
    assert said in told
    assert unsaid not in told


@each_case(
    "log",
    [
        "BUG REPORT\nPlease run x\n and submit this information together with your error trace to: https://x.org/issues\nCUDA SETUP: Loading binary /x.so...",
        "$ pip list\nPackage Version\ntorch   2.0\nERROR: Pipe to stdout was broken",
        "a\nls: write error: Broken pipe",
        "a\nxz: (stdout): Write error: Broken pipe",
        "If you run into errors, see docs/faq.md",
        "Welcome.\nIn case of problems, please report a bug at https://x.org",
    ],
)
def test_what_is_said_for_the_case_of_an_error_is_none(log: str) -> None:
    assert read(log).status == "clean"


def test_the_error_of_each_typed_command_is_told() -> None:
    first = "$ pip install torch==1.9.0\nERROR: Could not find a version that satisfies the requirement torch==1.9.0 (from versions: 2.0.0)\n"
    second = "{}python a.py\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import zork\nModuleNotFoundError: No module named 'zork'"
    for prompt in ("$ ", "ada@box:~/src$ ", "(venv) ada@box:/src# ", "PS C:\\src> ", "C:\\src>"):
        told = read(first + second.format(prompt))
        assert [each.cause for each in told.also] == ["This Python has no module zork."], prompt
        assert told.also[0].line_number == 7
    assert read(first + "$ echo done\ndone").also == ()

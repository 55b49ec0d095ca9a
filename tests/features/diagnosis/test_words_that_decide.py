"""A word of a message decides: with it one thing is said, without it another, or nothing."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

import pytest

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case
from torchbuild_tasks.model import Reading

_UNKNOWN_FLAG = "c++: error: unrecognized command line option ‘-mfpu=neon’\n"
_STEP = "[ 36%] Building CXX object a/CMakeFiles/a.dir/b.cc.o\n"
_INSTALLED = 'File "/home/ada/.local/lib/python3.8/site-packages/{0}", line 9, in f\n    g()'
_TRACE = "Traceback (most recent call last):\n"


def _said(reading: Reading) -> str:
    return " ".join(f"{each.cause} {each.fix} {each.command}" for each in reading.diagnoses)


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (f"{_STEP}{_UNKNOWN_FLAG}{_STEP}", 2),
        (f"**{_UNKNOWN_FLAG}{_STEP}{_UNKNOWN_FLAG}{_STEP}", 1),  # pasted in bold
        ("error: something of a tool\n" + _STEP + _UNKNOWN_FLAG + _STEP, 3),
    ],
)
def test_an_error_of_a_compiler_is_never_clean(log: str, line: int) -> None:
    assert read(log).line_number == line


def test_an_error_of_a_compiler_in_a_trial_is() -> None:
    trial = "Run Build Command(s): ninja cmTC_1a\ncc -o cmTC_1a.o -c x.c\n" + _UNKNOWN_FLAG
    assert read(f"{trial}-- Configuring done\n-- Build files have been written to: /b\n").status == "clean"


def test_what_a_script_lets_fail_is_no_error() -> None:
    failed = "++ tool --stop\nerror: couldn't connect to server\n"
    assert read(f"{failed}++ true\n++ LOG=tool::server=error\n++ tool --start\n").status == "clean"
    assert read(f"{failed}++ other --start\n").status != "clean"


def test_the_last_try_of_pip_is_the_error() -> None:
    tried = (
        "WARNING: Retrying (Retry(total={})) after connection broken by 'E: Connection refused': /simple/x/"
    )
    none = "ERROR: No matching distribution found for x"
    for left, line, told in ((0, 2, "--index-url"), (4, 3, "")):
        reading = read("\n".join(("Looking in indexes: http://h/simple", tried.format(left), none)))
        assert reading.line_number == line
        assert told in reading.diagnoses[0].fix
        assert len({each.fix for each in reading.diagnoses}) == len(reading.diagnoses)


_BOTH = "Because only a==1 is available and a==1 depends on numpy<2, we can conclude that all versions of a depend on numpy<2.\nAnd because b==1 depends on numpy>=2.1, we can conclude that your requirements are unsatisfiable."
_NONE = "Because only a<=1 is available and you require a>1, we can conclude that your requirements are unsatisfiable."


def test_what_excludes_each_other_and_what_is_not_there() -> None:
    head = "error: No solution found when resolving dependencies\n  cause: "
    both, none = read(head + _BOTH), read(head + _NONE)
    assert both.kind == "package-conflict"
    assert "a==1 depends on numpy<2; b==1 depends on numpy>=2.1" in _said(both)
    assert none.kind == "package-not-found"
    assert "fits this Python" not in none.diagnoses[0].cause


# A log, what is said of it, and what must not be.
_CASES = [
    (
        'CMake Error at a.cmake:2 (message):\n  Failed to resolve tool2.\n\n  The binary "/t" reports version "1", but\n  P needs version "2".  Ensure\n  that the correct version is installed.\n',
        "Ensure that the correct version is installed",
        "cannot be looked up",
    ),
    (
        "curl: (6) Could not resolve host: files.example.org",
        "cannot be looked up",
        "another name",
    ),
    (
        "fatal: unable to access 'https://h.org/x.git/': SSL: no alternative certificate subject name matches target host name 'h.org'",
        "another name",
        "reachable from here",
    ),
    (
        "/usr/bin/ld: plugin framework: out of file descriptors. Try using fewer objects/archives\n/usr/bin/ld: cannot find -lgcc_s: Too many open files\ncollect2: error: ld returned 1 exit status",
        "ulimit -n",
        "apt install",
    ),
    ("/usr/bin/ld: cannot find -lgcc_s\ncollect2: error: ld returned 1 exit status", "libgcc_s", "ulimit"),
    ("make: ./configure: Permission denied", "chmod +x ./configure", "chown"),
    ("make: open: /b/x.d: Permission denied", "ls -ld", "chmod +x /b"),
    (
        f"{_TRACE}  {_INSTALLED.format('dataclasses.py')}\nAttributeError: module 'typing' has no attribute '_ClassVar'",
        "pip uninstall dataclasses",
        "tells which file",
    ),
    (
        f"{_TRACE}  {_INSTALLED.format('dataclasses.py').replace('3.8', '3.6')}\nAttributeError: module 'typing' has no attribute '_ClassVar'",
        "typing",
        "pip uninstall dataclasses",
    ),
    (
        f"{_TRACE}  {_INSTALLED.format('numpy/core/_methods.py')}\nAttributeError: type object 'numpy.ndarray' has no attribute '__array_function__'",
        "two releases of numpy",
        "is not there",
    ),
    (
        f"{_TRACE}  {_INSTALLED.format('other/core.py')}\nAttributeError: type object 'numpy.ndarray' has no attribute '__array_function__'",
        "numpy",
        "two releases of numpy",
    ),
    (
        f"{_TRACE}  {_INSTALLED.format('torch/functional.py').replace('3.8', '2.7')}\nImportError: No module named typing",
        "python2.7 -m pip install typing",
        "take another Python",
    ),
    (
        f"{_TRACE}  {_INSTALLED.format('torchgen/utils.py')}\nModuleNotFoundError: No module named 'yaml'",
        "pip install pyyaml",
        "pip install yaml",
    ),
    (
        "  error: backend-unavailable\n  \n  × Cannot import build backend 'hatchling.build'.\n  ╰─> ModuleNotFoundError: No module named 'hatchling'\n",
        "hatchling",
        "No row",
    ),
    (
        "error: Failed to build `/p`\n  cause: Invalid `pyproject.toml`\n  cause: TOML parse error at line 7, column 23\n",
        "TOML parse error at line 7, column 23",
        "A command failed",
    ),
    (
        'Could not find "protoc" executable!\nerror: command failed',
        "protobuf-compiler",
        "pip install protobuf",
    ),
    (
        "CMake Error at CMakeLists.txt:303 (message):\n  Protobuf compiler not found\n",
        "protobuf-compiler",
        "meet that",
    ),
    (
        f"{_TRACE}  File \"setup.py\", line 1, in f\n    g()\nFileNotFoundError: [Errno 2] No such file or directory: '/x/third_party/flash/a'",
        "git submodule update --init --recursive",
        "Else the path is wrong",
    ),
    (
        f"{_TRACE}  File \"setup.py\", line 1, in f\n    g()\nFileNotFoundError: [Errno 2] No such file or directory: '/x/gen/flash/a'",
        "A file is wanted",
        "submodule",
    ),
    (
        "CMake Error at a.cmake:59 (message):\n  FindCUDA says CUDA version is (usually determined by nvcc), but the CUDA\n  headers say the version is 9.0.",
        "learnt no version",
        "different toolkits",
    ),
    (
        "CMake Error at a.cmake:59 (message):\n  FindCUDA says CUDA version is 8.0 (usually determined by nvcc), but the CUDA\n  headers say the version is 9.0.",
        "different toolkits",
        "learnt no version",
    ),
    ("nvcc fatal   : Unsupported gpu architecture 'compute_native'", "cmake>=3.24", "TORCH_CUDA_ARCH_LIST"),
    ("nvcc fatal   : Unsupported gpu architecture 'compute_20'", "compute_20", "cmake>=3.24"),
    (
        '/p/torch/lib/tmp_install/include/ATen/Tensor.h(248): error: class "at::TensorImpl" has no member "set_data"',
        "git clean -fdx",
        "CPATH",
    ),
    (
        '/opt/torch/include/ATen/Tensor.h(248): error: class "at::TensorImpl" has no member "set_data"',
        "set_data",
        "git clean",
    ),
    ("a.c:1:10: fatal error: sleef.h: No such file or directory", "libsleef-dev", "is not known here"),
    (
        'CMake Error at /home/conda/feedstock_root/h/share/cmake/Caffe2/public/cuda.cmake:162 (set_property):\n  The link interface of target "torch::nvtoolsext" contains:\n\n    CUDA::nvToolsExt\n\n  but the target was not found.',
        "cuda-nvtx-dev",
        "NVTOOLSEXT_PATH",
    ),
    (
        'CMake Error at /opt/t/share/cmake/Caffe2/public/cuda.cmake:162 (set_property):\n  The link interface of target "torch::nvtoolsext" contains:\n\n    CUDA::nvToolsExt\n\n  but the target was not found.',
        "nvToolsExt",
        "cuda-nvtx-dev",
    ),
    # Strings of the old C++ ABI, in a library that is not torch's: https://github.com/pytorch/pytorch/issues/22197
    (
        "a.cc:(.text+0x1): undefined reference to `ros::init(int&, char**, std::string const&, unsigned int)'",
        "cxx11-abi",
        "grep -rn",
    ),
    ("a.o: undefined reference to `YAML::LoadFile(std::string const&)'", "old C++ ABI", "Find what should"),
    (
        "ld.lld: error: undefined reference to `pcl::io::f(std::vector<std::string, std::allocator<std::string> >)'",
        "old C++ ABI",
        "grep -rn",
    ),
    ("a.o: undefined reference to `mine::f(int)'", "grep -rn", "cxx11-abi"),
    (
        "a.o: undefined reference to `cv::imread(std::__cxx11::basic_string<char> const&, int)'",
        "OpenCV",
        "cxx11-abi",
    ),
    # On macOS, of GCC or of clang: https://github.com/pytorch/pytorch/issues/143571
    (
        'Undefined symbols for architecture arm64:\n  "at::f(std::optional<c10::Device>)", referenced from:\n      _main in a.o',
        "CXX=/usr/bin/clang++",
        "-ltorch_cpu",
    ),
    (
        'Undefined symbols for architecture x86_64:\n  "cv::imread(std::__cxx11::basic_string<char> const&, int)", referenced from:\n      _main in a.o',
        "CXX=/usr/bin/clang++",
        "target_link",
    ),
    (
        'Undefined symbols for architecture arm64:\n  "at::f(std::__1::unique_ptr<c10::A>)", referenced from:\n      _main in a.o',
        "-ltorch_cpu",
        "clang++",
    ),
    # What an installed package's CMake files name.
    (
        'CMake Error at /l/site-packages/torch/share/cmake/Caffe2/Caffe2Targets.cmake:124 (message):\n  The imported target "c10" references the file\n\n     "/l/site-packages/torch/lib/libc10.dll.a"\n\n  but this file does not exist.  Possible reasons include:',
        "not whole",
        "--no-build-isolation",
    ),
    (
        'CMake Error at /l/torch/share/cmake/Caffe2/public/mkl.cmake:8 (target_include_directories):\n  Cannot specify include directories for imported target "caffe2::mkl".',
        "CMake before 3.11",
        "a variable that it needs",
    ),
    (
        'CMake Error at a.cmake:8 (target_link_libraries):\n  Cannot specify link libraries for target "fmt::fmt" which is not built\n  by this project.',
        "no target fmt::fmt",
        "a variable that it needs",
    ),
    (
        'CMake Error at a.cmake:8 (target_link_libraries):\n  Cannot specify link libraries for target "mine" which is not built\n  by this project.',
        "cannot be run",
        "CMake before 3.11",
    ),
    (
        'CMake Error:\n  Error evaluating generator expression:\n\n    $<TARGET_PROPERTY:caffe2,INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>\n\n  Target "caffe2" not found.',
        "find_package(Torch)",
        "a variable that it needs",
    ),
    # What nvcc cannot read, and who says so.
    (
        '/usr/lib/gcc/aarch64-linux-gnu/9/include/arm_neon.h(38): error: identifier "__Int8x8_t" is undefined',
        "__CUDACC__",
        "CUDAHOSTCXX",
    ),
    (
        '/usr/lib/gcc/aarch64-linux-gnu/11/include/arm_bf16.h(9): error: identifier "__bf16" is undefined',
        "__CUDACC__",
        "newer compiler",
    ),
    # The crash of MSVC's compiler, and what it read.
    ("sleefsimddp.c(77) : fatal error C1001: Internal compiler error.", "14.51", "update Visual Studio"),
    (
        "a.h(9,1): fatal error C1001: Internal compiler error.\nd:\\src\\CxxFE\\sl\\p1\\c\\module\\reader.cpp:66: sorry: not yet implemented",
        "header unit",
        "/INCREMENTAL",
    ),
    ("a.cpp(9): fatal error C1001: Internal compiler error.", "/INCREMENTAL", "header unit"),
    # Loaders.
    (
        "dyld[2]: Library not loaded: @rpath/libomp.dylib\n  Referenced from: <A> /x/libtorch/lib/libtorch_cpu.dylib\n  Reason: tried: '/b/libomp.dylib' (no such file)",
        "brew install libomp",
        "install both again",
    ),
    (
        "dyld[2]: Library not loaded: @rpath/libfoo.dylib\n  Referenced from: <A> /x/lib/libbar.dylib\n  Reason: tried: '/b/libfoo.dylib' (no such file)",
        "install both again",
        "brew install libomp",
    ),
    (
        "The thread 10248 has exited with code -1073741515 (0xc0000135).",
        "Microsoft.VCRedist",
        "install vc redistributable",
    ),
    (
        "The procedure entry point f could not be located in the dynamic link library c10.dll.",
        "Run it by hand",
        "clean environment",
    ),
    # macOS: frameworks, its SDK, and a libtorch for the other processor.
    (
        'Undefined symbols for architecture arm64:\n  "_OBJC_CLASS_$_MPSGraph", referenced from:\n      a in b.o',
        "-framework Metal",
        "grep -rn",
    ),
    (
        '"at::print(std::ostream&, at::Tensor const&)", referenced from:\n    f in a.o\nld: symbol(s) not found for architecture arm64',
        "lipo -archs",
        "A command failed",
    ),
    ("a.mm:9:3: error: unknown type name 'MTLCompileThing'", "xcrun --show-sdk-version", "git diff"),
    ("a.mm:9:3: error: unknown type name 'MyThing'", "git diff", "xcrun"),
    # A torch from before NVIDIA's packages of PyPI has none of them.
    (
        f'{_TRACE}  File "/usr/local/lib/python3.6/dist-packages/torch/__init__.py", line 149, in f\n    g()\nOSError: libcurand.so.10: cannot open shared object file: No such file or directory',
        "JetPack",
        "nvidia-cublas-cu12",
    ),
    (
        f'{_TRACE}  File "/v/lib/python3.8/site-packages/torch/__init__.py", line 81, in f\n    g()\nImportError: libcufft.so.9.0: cannot open shared object file: No such file or directory',
        "No package of PyPI",
        "nvidia-cublas-cu12",
    ),
    (
        f'{_TRACE}  File "/v/lib/python3.11/site-packages/torch/__init__.py", line 81, in f\n    g()\nImportError: libcurand.so.10: cannot open shared object file: No such file or directory',
        "nvidia-cublas-cu12",
        "No package of PyPI",
    ),
    # conda's compilers of old are conda's, too.
    (
        "/e/bin/../x86_64-conda_cos6-linux-gnu/bin/ld: /t/libtorch.so: undefined reference to `memcpy@GLIBC_2.14'",
        "sysroot_linux-64",
        "manylinux",
    ),
    # What packages ask of the same, together.
    (
        "a 1.0 requires torch>=2.4.0, but you have torch 2.2.0 which is incompatible.\nb 1.0 requires torch==2.4.0, but you have torch 2.2.0 which is incompatible.",
        "pip install 'torch>=2.4.0,==2.4.0'",
        "pip install 'torch>=2.4.0',",
    ),
    (
        "a 1.0 requires torch==2.0.1, but you have torch 2.2.0 which is incompatible.\nb 1.0 requires torch==2.1.0, but you have torch 2.2.0 which is incompatible.",
        "no release of it suits all",
        "pip install 'torch",
    ),
    (
        "a 1.0 requires torch==2.0.1, but you have torch 2.2.0 which is incompatible.\nb 1.0 requires numpy<2, but you have numpy 2.1 which is incompatible.",
        "pip install 'torch==2.0.1',",
        "together",
    ),
    # What a source brings along, and what a build makes in it.
    (
        "Failed to stat `/p/submodules/a/buck-out/v2`: ENOENT: No such file or directory",
        "buck2 killall",
        "git submodule",
    ),
    (
        "error: [Errno 2] No such file or directory: '/p/third_party/fmt/CMakeLists.txt'",
        "git submodule update",
        "killall",
    ),
    # Compiled parts that are left out unless they are asked for.
    ("ModuleNotFoundError: No module named 'fused_layer_norm_cuda'", "APEX_CUDA_EXT=1", "not known here"),
    ("ModuleNotFoundError: No module named 'amp_C'", "APEX_CUDA_EXT=1", "not known here"),
    # One that ended, and one that goes on with torch.
    (
        "OSError: /v/torchtext/lib/libtorchtext.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs",
        "torchtext has ended",
        "pip install --upgrade",
    ),
    (
        "OSError: /v/torchvision/_C.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs",
        "torchvision comes for one release",
        "has ended",
    ),
    # Why xFormers has no operator.
    (
        "NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:\n`cutlassF` is not supported because:\n    xFormers wasn't build with CUDA support\n    requires device with capability <= (9, 0) but your GPU has capability (12, 0) (too new)",
        "compiled part is not loaded",
        "newer than the kernels",
    ),
    (
        "NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:\n`cutlassF` is not supported because:\n    requires device with capability <= (9, 0) but your GPU has capability (12, 0) (too new)",
        "newer than the kernels",
        "compiled part is not loaded",
    ),
    # A file that was named with its path, and one that the loader searches.
    (
        "OSError: /v/b/libb_cpu.so: cannot open shared object file: No such file or directory",
        "itself is not there",
        "LD_LIBRARY_PATH",
    ),
    (
        "OSError: /v/b/libm_x.so.1: cannot open shared object file: No such file or directory",
        "does not find libm_x.so.1",
        "itself is not there",
    ),
    # TorchCodec: FFmpeg, or torch.
    (
        "RuntimeError: Could not load libtorchcodec. Likely causes:\n[start of libtorchcodec loading traceback]\nFFmpeg version 6: libavutil.so.58: cannot open shared object file: No such file or directory",
        "this FFmpeg is not here",
        "The undefined symbol says",
    ),
    (
        "RuntimeError: Could not load libtorchcodec. Likely causes:\n[start of libtorchcodec loading traceback]\nFFmpeg version 6: /v/torchcodec/libtorchcodec_core6.so: undefined symbol: _ZN3c1013MessageLogger6streamB5cxx11Ev",
        "The undefined symbol says",
        "this FFmpeg is not here",
    ),
    # uv's sentences are none of CMake's.
    (
        "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of a{platform_machine == 'x86_64'}==1.0 and b==2.0 depends on a{platform_machine == 'x86_64'}==1.0, we can conclude that b==2.0 cannot be used.\n      And because only b==2.0 is available and you require b, we can conclude that your requirements are unsatisfiable.",
        "is there where uv looked",
        "CMake script",
    ),
    (
        "CMake Error at CMakeLists.txt:5 (add_library):\n  add_library cannot be used on an alias target.",
        "CMake script cannot be run",
        "No version of",
    ),
    # Whose header is missing, and whose name went.
    (
        'a.cu(96): error: namespace "thrust" has no member "device"',
        "thrust/execution_policy.h",
        "newer source. Where another",
    ),
    (
        'a.cu(96): error: namespace "cub" has no member "Zork"',
        "of the CUDA toolkit itself",
        "execution_policy.h",
    ),
    # What is said of a GPU beside what fails.
    (
        '  Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.\n  warnings.warn(\nTraceback (most recent call last):\n  File "/s/setup.py", line 70, in <module>\nRuntimeError: Unsupported GPU',
        "It is raised at /s/setup.py",
        "no code for the GPU",
    ),
    (
        "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'",
        "could not compile its operator",
        "Find",
    ),
    (
        "AttributeError: 'NoneType' object has no attribute 'cget_managed_ptr'",
        "bitsandbytes has no library",
        "without a check",
    ),
    ("AttributeError: 'NoneType' object has no attribute 'cursor'", "without a check", "bitsandbytes"),
    (
        "RuntimeError: Cannot find CUDA_HOME. CUDA must be available to build the package.",
        "no CUDA toolkit",
        "A file is wanted",
    ),
    # Two headers of graphics.
    ("a.h:36:10: fatal error: EGL/egl.h: No such file or directory", "libegl-dev", "libx11-dev"),
    ("a.h:36:10: fatal error: GL/gl.h: No such file or directory", "libgl1-mesa-dev", "libegl-dev"),
    # A static libtorch names its parts one by one.
    (
        "ld: /t/lib/libtorch_cpu.a(a.cc.o): in function `f':\na.cc:(.text+0x5a): undefined reference to `caffe2::g(long)'",
        "--whole-archive",
        "cmake_prefix_path",
    ),
    ("a.cc:(.text+0x5a): undefined reference to `caffe2::g(long)'", "libtorch", "--whole-archive"),
    # Two of one name: another installation's header, or one of another commit.
    (
        "/p/src/init.c:22:18: error: conflicting types for ‘cpuinfo_initialize’\n/c/include/cpuinfo.h:491:18: note: previous declaration of ‘cpuinfo_initialize’ was here",
        "older installation",
        "git diff",
    ),
    (
        '/p/include/ATen/T.h(120): error: function "at::Tensor::gather" has already been defined',
        "defines it twice",
        "does not fit what",
    ),
    # Qt's macros, in whosever header: https://github.com/pytorch/pytorch/issues/138981
    (
        "/u/object.h:190:23: error: expected unqualified-id before ‘;’ token\n  190 |     PyType_Slot *slots;",
        "QT_NO_KEYWORDS",
        "git diff",
    ),
    (
        "D:\\libtorch\\include\\ATen\\core\\ivalue_inl.h(1567,35): error C2059: syntax error: '<parameter-list>'",
        "QT_NO_KEYWORDS",
        "does not fit what",
    ),
    (
        "/u/a.h:190:23: error: expected unqualified-id before ‘;’ token\n  190 |     Thing *timeslots;",
        "git diff",
        "QT_NO_KEYWORDS",
    ),
    ("a.cpp:159:3: error: ‘PyArrayObject’ was not declared in this scope", "numpy.get_include", "Cython"),
    (
        "a.cpp:159:3: error: ‘PyUnicode_AS_UNICODE’ was not declared in this scope",
        "Python",
        "numpy.get_include",
    ),
]


@each_case(("log", "told", "untold"), _CASES)
def test_what_is_said(log: str, told: str, untold: str) -> None:
    said = _said(read(log))
    assert told in said
    assert untold not in said

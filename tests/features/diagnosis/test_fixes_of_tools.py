"""A fix of what packaging, fetching and testing tools say fits what the log shows, and is not told where it does not."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.for_each import each_case

ISOLATED = "  Installing build dependencies: finished with status 'done'\n"
OLD_CMAKE = "CMake Error at CMakeLists.txt:1 (cmake_minimum_required):\n  CMake 3.26 or higher is required.  You are running version 3.22.1\n\n-- Configuring incomplete, errors occurred!"
TOO_NEW = "CMake Error at CMakeLists.txt:1 (cmake_minimum_required):\n  Compatibility with CMake < 3.5 has been removed from CMake.\n\n-- Configuring incomplete, errors occurred!"
LICENSE = "configuration error: `project.license` must be valid exactly by one definition (0 matches found):"
NO_MODULE = "Traceback (most recent call last):\n  File \"/w/setup.py\", line 3, in <module>\n    import {0}\nModuleNotFoundError: No module named '{0}'"
FIND = 'CMake Error at CMakeLists.txt:9 (find_package):\n  By not providing "Find{0}.cmake" in CMAKE_MODULE_PATH this project has\n  asked CMake to find a package configuration file provided by "{0}", but\n  CMake did not find one.\n\n-- Configuring incomplete, errors occurred!'
SYNTAX = '  File "{0}", line 3\n    {1}\n    ^\nSyntaxError: invalid syntax'
UV_INDEX = "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of numpy==1.26.4 and you require numpy==1.26.4, we can conclude that your requirements are unsatisfiable."
NO_VERSION = "ERROR: Could not find a version that satisfies the requirement zq==9 (from versions: {0})\nERROR: No matching distribution found for zq==9"
ACCESS = "fatal: unable to access 'https://github.com/x/y.git/': {0}"
REPAIR = 'ValueError: Cannot repair wheel, because required library "{0}" could not be located'
UPLOAD = "ERROR    HTTPError: 400 Bad Request from https://upload.pypi.org/legacy/\n         {0}"
PIP_READ = "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='files.pythonhosted.org', port=443): Read timed out."


@each_case(
    ("log", "said", "unsaid"),
    [
        # What pip installed outside does not count in an isolated build; followed with pip 23.2 and 26.3, CMake 3.31 and 4.
        (ISOLATED + OLD_CMAKE, "build with --no-build-isolation", "is found first"),
        (OLD_CMAKE, "is found first", "environment of its own"),
        (ISOLATED + "Successfully installed a-1\n" + OLD_CMAKE, "is found first", "environment of its own"),
        (ISOLATED + "Successfully installed a\n" + NO_MODULE.format("yaml"), "-m pip install pyyaml", "whatever is installed outside"),
        (ISOLATED + TOO_NEW, "PIP_CONSTRAINT (from pip 25.3 on in PIP_BUILD_CONSTRAINT): cmake<4", "into the Python"),
        (TOO_NEW, "CMAKE_POLICY_VERSION_MINIMUM=3.5 in the environment", "PIP_CONSTRAINT"),
        (ISOLATED + LICENSE, "PIP_BUILD_CONSTRAINT): setuptools>=77", "install it within"),
        (LICENSE, "with --no-build-isolation): setuptools>=77", "PIP_BUILD"),
        (ISOLATED + NO_MODULE.format("cmake"), "whatever is installed outside", "apt install"),
        (NO_MODULE.format("cmake"), "-m pip install cmake", "apt install"),  # Debian's has none for this Python
        (NO_MODULE.format("maturin"), "-m pip install maturin", "rustc"),
        # A module that CMake lost with a policy is no package; the policy in a file, followed with CMake 3.31.
        (FIND.format("CUDA"), "cmake_policy(SET CMP0146 OLD)", "cuda-nvcc"),
        (FIND.format("PythonInterp"), "cmake_policy(SET CMP0148 OLD)", "python3-dev"),
        (FIND.format("pybind11"), "pybind11 --cmakedir", "cmake_policy"),
        # A source line tells the Python that it is for, unless the one that reads it is newer.
        (SYNTAX.format("/w/a.py", "match x:"), "a Python from 3.10 on", "where it was edited"),
        (SYNTAX.format("/v/lib/python3.12/site-packages/a.py", "match x:"), "where it was edited", "from 3.10"),
        (SYNTAX.format("/w/a.py", "if (n := 1):"), "a Python from 3.8 on", "3.10"),
        (SYNTAX.format("/w/a.py", "x = = 1"), "where it was edited", "a Python from"),
        # What pip and uv found says what can be asked for.
        (UV_INDEX + "\n\n      hint: `numpy` was found on https://i.org/whl, but not at the requested version (numpy==1.26.4).", "--index-strategy unsafe-best-match", "Look at the name"),
        (UV_INDEX, "lists what there is", "index-strategy"),
        (NO_VERSION.format("1.0, 1.1"), "pip found 1.0, 1.1 of it", "its spelling"),
        (NO_VERSION.format("none"), "its spelling", "pip found 1"),
        ("Please use pip<24.1 if you need to use this version.\n" + NO_VERSION.format("1.0"), "'pip<24.1'", "pip found 1.0"),
        (NO_VERSION.format("1.0").replace("ERROR", "ERROR: Ignored the following versions that require a different python version: 9 Requires-Python >=3.13\nERROR", 1), "9 wants Python >=3.13", "its spelling"),
        (NO_VERSION.format("1.0").replace("ERROR", "ERROR: Ignored the following versions that require a different python version: 0.1 Requires-Python <3.8\nERROR", 1), "none that is asked for", "wants Python"),
        (NO_VERSION.format("none").replace("zq==9", "torch"), "64 bits alone", "its spelling"),
        (NO_VERSION.format("none").replace("zq==9", "setuptools>=40"), "--extra-index-url", "its spelling"),
        ("ERROR: Invalid requirement: 'torch>=2;' (from line 3 of requirements.txt)", "Correct that line", "setup.py"),
        ('CMake Error at /m/FindPackageHandleStandardArgs.cmake:230 (message):\n  Could NOT find Python3: Found unsuitable version "3.8.10", but required is\n  at least "3.9" (found /usr/bin/python3.8)\n\n-- Configuring incomplete, errors occurred!', "found Python 3.8.10 first, and what is built wants 3.9", "PYTHON_LIBRARY"),
        ("AttributeError: 'str' object has no attribute 'items'", "names the variable", "Take the version of one"),
        ("AttributeError: 'Foo' object has no attribute 'items'", "Take the version of one", "names the variable"),
        # The tools of its time, all three: followed with pip 23.2, setuptools 65 and wheel 0.38.
        ("error in sz setup command: 'install_requires' must be a string or list of strings containing valid project/version requirement specifiers", "wheel<0.40", "Correct pyproject"),
        ("error in sz setup command: package_dir must be a dictionary", "Correct pyproject", "wheel<0.40"),
        # uv's environments have no pip.
        ("error: Failed to spawn: `pytest`\n  Caused by: No such file or directory (os error 2)", "Run: uv pip install pytest", "apt"),
        (NO_MODULE.format("hypothesis"), "-m pip install hypothesis", "uv pip"),
        # Who fetched, and why it did not come.
        (ACCESS.format("Could not resolve host: github.com"), "git is told by: git config --global http.proxy", "breaks off"),
        (ACCESS.format("Could not resolve host: git.corp.example"), "getent hosts git.corp.example", "NAME"),
        ("C:\\w> git pull\n" + ACCESS.format("Could not resolve host: git.corp.example"), "nslookup git.corp.example", "getent"),
        ("E: Failed to fetch http://a.org/x  Temporary failure resolving 'a.org'\ndpkg: x", "getent hosts a.org", "nslookup"),
        # The lines around an error say which of two reasons it has.
        ("./l.sh: line 5: ./b.sh: cannot execute: required file not found\nb.sh: line 3: cd: $'x\\r': No such file or directory", "dos2unix ./b.sh", "Alpine"),
        ("./l.sh: line 5: ./b.sh: cannot execute: required file not found", "Alpine", "was saved with"),
        ("CMake Error at /e/torch/share/cmake/Caffe2/Caffe2Config.cmake:91 (message):\n  Your installed Caffe2 version uses CUDA but I cannot find the CUDA\n  libraries.  Please set the proper CUDA prefixes and / or install CUDA.", "a torch for the CPU", "USE_CUDA=0"),
        (ACCESS.format("Failed to connect to 127.0.0.1 port 7890: Connection refused"), "A proxy on this very machine", "getent"),
        (ACCESS.format("The requested URL returned error: 503"), "nothing here is wrong", "proxy"),
        ("error: RPC failed; curl 92 HTTP/2 stream 5 was not closed cleanly: CANCEL (err 8)", "http.version HTTP/1.1", "getent"),
        (PIP_READ, "--timeout 120", "git config"),
        (ACCESS.format("SSL certificate problem: unable to get local issuer certificate"), "http.sslCAInfo FILE", "PIP_CERT"),
        ("curl: (60) SSL certificate problem: certificate has expired", "First the clock", "--cacert"),
        ("curl: (60) SSL certificate problem: unable to get local issuer certificate", "--cacert FILE", "clock"),
        ("curl: (60) SSL certificate problem: self-signed certificate in certificate chain", "--cacert FILE", "ca-certificates"),
        # Whose library a wheel lacks.
        (REPAIR.format("libtorch.so"), "--exclude 'libtorch*'", "--add-path"),
        (REPAIR.format("libfoo.so.1"), "LD_LIBRARY_PATH=FOLDER", "libtorch*"),
        (UPLOAD.format("File already exists ('x-1.0-py3-none-any.whl')."), "raise the version", "auditwheel"),
        (UPLOAD.format("Binary wheel 'x.whl' has an unsupported platform tag 'linux_x86_64'."), "auditwheel repair", "raise the version"),
        # A name that Cython 3 took away; followed with Cython 0.29 and 3.
        (ISOLATED + "pkg/x.pyx:12:5: undeclared name not builtin: long", "PIP_BUILD_CONSTRAINT): cython<3", "git checkout"),
        ("pkg/x.pyx:12:5: undeclared name not builtin: lnog", "git checkout", "cython<3"),
        # Whose login, and whose flag.
        ("HTTPError: 403 Forbidden from https://upload.pypi.org/legacy/", "__token__", "docker login"),
        (ACCESS.format("The requested URL returned error: 403"), "git config --show-origin", "__token__"),
        ("sccache: error: no such option here", "CMAKE_CXX_COMPILER_LAUNCHER", "--cache none"),
        # Who wants what, whose lock, and whose time.
        ("error    libmamba Could not solve for environment specs\n    The following packages are incompatible\n    └─ pytorch 2.1** is not installable because it requires\n       └─ python >=3.8,<3.12, which conflicts.", "conda search", "pip index"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1234 (unattended-upgr)", "DPkg::Lock::Timeout", "virus scanner"),
        ("OSError: [WinError 32] The process cannot access the file because it is being used by another process: 'a'", "virus scanner", "DPkg"),
        ("ERROR: Job failed: execution took longer than 1h0m0s seconds", "a new run begins from nothing", "goes on where it stopped"),
        ("subprocess.TimeoutExpired: Command 'x' timed out after 60 seconds", "goes on where it stopped", "Slurm"),
        # Whose disk, whose job, and whose login helper.
        ("##[error]No space left on device : '/home/vsts/agents/_diag/x.log'", "The disk of the CI's machine", "TMPDIR"),
        ("OSError: [Errno 28] No space left on device: '/tmp/x'", "TMPDIR", "CI's machine"),
        ("##[error]The operation was canceled.", "fail-fast", "goes on where it stopped"),
        ("ninja: build stopped: interrupted by user.", "goes on where it stopped", "fail-fast"),
        ('docker: Error response from daemon: OCI runtime create failed: runc create failed: exec: "bash": executable file not found in $PATH: unknown.', "sh in place of bash", "credsStore"),
        ('error getting credentials - err: exec: "docker-credential-desktop": executable file not found in $PATH, out: ``', "credsStore", "sh in place of bash"),
        ("ERROR: failed to solve: nvidia/cuda:12.1-devel-ubuntu22.04: docker.io/nvidia/cuda:12.1-devel-ubuntu22.04: not found", "12.4.1-devel", "git ls-remote"),
        ("curl: (22) The requested URL returned error: 404", "git ls-remote", "12.4.1-devel"),
        # What a shell of Windows does not know is no package of Debian.
        ("'export' is not recognized as an internal or external command,\noperable program or batch file.", "set NAME=value", "apt"),
        ("'MAX_JOBS' is not recognized as an internal or external command,\noperable program or batch file.", "set NAME=value", "apt"),
        ("'rc' is not recognized as an internal or external command,\noperable program or batch file.", "", "set NAME=value"),
        ("./i.sh: line 4: sudo: command not found", "Leave sudo out", "apt-file"),
        ("bash: pip: command not found", "python3 -m pip", "apt-file"),
        # git, by what stands in its way; torch's own command only for torch.
        ("error: invalid path 'test/data/aux.txt'\nfatal: unable to checkout working tree", "sparse-checkout", "torchbuild"),
        ("fatal: destination path 'x' already exists and is not an empty directory.", "git -C x pull", "torchbuild"),
        ("fatal: bad revision 'HEAD~9'", "git status, in that folder", "torchbuild"),
        # pytest before a test runs.
        ("E       fixture 'mocker' not found", "pytest-mock", "Run that test alone"),
        ("FAILED tests/test_a.py::test_b - assert 1 == 2", "Run that test alone", "pytest-mock"),
        # A command of CMake: too old a CMake, or what brings it was not read.
        ('CMake Error at CMakeLists.txt:2 (cmake_path):\n  Unknown CMake command "cmake_path".\n\n-- Configuring incomplete, errors occurred!', "'cmake>=3.20'", "was found"),
        ('CMake Error at CMakeLists.txt:2 (pybind11_add_module):\n  Unknown CMake command "pybind11_add_module".\n\n-- Configuring incomplete, errors occurred!', "find_package(pybind11)", "cmake>="),
    ],
)  # fmt: skip
def test_a_fix_fits_what_the_log_shows(log: str, said: str, unsaid: str) -> None:
    told = elsewhere(log)
    assert said in told.fix
    assert unsaid not in f"{told.fix} {told.command}"

"""minitorch's build in the setuptools era, with the ways of PyTorch's setup.py up to 2.13.

    python setup.py build | develop | install | bdist_wheel | clean [--cmake] [--cmake-only]

    DEBUG, REL_WITH_DEB_INFO, CMAKE_BUILD_TYPE    the build type; the last one wins
    MAX_JOBS                                      compile jobs
    USE_NINJA=0, CMAKE_GENERATOR                  the generator; Ninja unless refused
    CMAKE_FRESH=1, CMAKE_ONLY=1                   as --cmake, --cmake-only
    PYTORCH_BUILD_VERSION, PYTORCH_BUILD_NUMBER   the version; both or neither

USE_*, BUILD_*, CMAKE_* and a few more (tools/forwarded_env.py) go to CMake with -D, but only when
CMake runs: with build/CMakeCache.txt in place it does not, and a changed variable changes nothing.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Command, Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build"
CACHE = BUILD / "CMakeCache.txt"
WINDOWS = sys.platform == "win32"
sys.path.insert(0, str(ROOT))  # PEP 517 front ends leave it out

from tools.forwarded_env import forwarded_env  # noqa: E402
from tools.generate_torch_version import torch_version  # noqa: E402

BUILDS = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install", "rebuild"}
OURS = {"CMAKE_FRESH", "CMAKE_ONLY"}  # named like CMake's, but meant for this file
REDIRECTED = {"develop": ["-e", "."], "install": ["."]}  # by PyTorch 2.9 and later


def flag(name: str) -> bool:
    return os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE", "Y"}


def refused(name: str) -> bool:
    return os.environ.get(name, "").upper() in {"0", "OFF", "NO", "FALSE", "N"}


def build_type() -> str:
    if asked := os.environ.get("CMAKE_BUILD_TYPE"):
        return asked
    if flag("DEBUG"):
        return "Debug"
    return "RelWithDebInfo" if flag("REL_WITH_DEB_INFO") else "Release"


def use_ninja() -> bool:
    asked = os.environ.get("CMAKE_GENERATOR", "Ninja")
    return asked == "Ninja" and not refused("USE_NINJA") and shutil.which("ninja") is not None


def check_submodules() -> None:
    if flag("USE_SYSTEM_LIBS"):
        return
    for folder in ("third_party/tinyfmt", "third_party/tinyfmt/third_party/tinyassert"):
        if not (ROOT / folder / "CMakeLists.txt").exists():
            sys.exit(
                f"Could not find CMakeLists.txt in {ROOT / folder}\n"
                "Did you run 'git submodule update --init --recursive'?"
            )


def configure(*, again: bool) -> None:
    if "CMAKE_INSTALL_PREFIX" in os.environ:
        sys.exit(
            "CMAKE_INSTALL_PREFIX should not be specified in the environment variable. "
            "They are directly set by PyTorch build script."
        )
    if again:
        CACHE.unlink(missing_ok=True)
    if CACHE.exists() and (not use_ninja() or (BUILD / "build.ninja").exists()):
        return  # and so the environment is not looked at
    defines = {
        **{name: value for name, value in forwarded_env().items() if name not in OURS},
        "CMAKE_BUILD_TYPE": build_type(),
        "CMAKE_INSTALL_PREFIX": (ROOT / "torch").as_posix(),
        "Python_EXECUTABLE": Path(sys.executable).as_posix(),
    }
    generator = "Ninja" if use_ninja() else os.environ.get("CMAKE_GENERATOR", "")
    command = ["cmake", "-S", str(ROOT), "-B", str(BUILD)]
    command += ["-G", generator] if generator else []
    command += [f"-D{name}={value}" for name, value in sorted(defines.items())]
    if WINDOWS and use_ninja():  # else CMake takes any gcc that it finds on PATH
        os.environ.setdefault("CC", "cl")
        os.environ.setdefault("CXX", "cl")
    run(command)


def compile_and_install() -> None:
    jobs = os.environ.get("MAX_JOBS") or ("" if use_ninja() else str(os.cpu_count()))
    command = ["cmake", "--build", str(BUILD), "--target", "install", "--config", build_type()]
    run([*command, *(["--", "-j", jobs] if jobs else [])])


def run(command: list[str]) -> None:
    print(" ".join(command), flush=True)
    if code := subprocess.call(command):
        sys.exit(code)


def redirect(commands: set[str]) -> None:
    """Leave `develop` and `install` to pip when this version of PyTorch does."""
    major, minor = (ROOT / "version.txt").read_text(encoding="utf-8").split(".")[:2]
    command = next(iter(commands & REDIRECTED.keys()), "")
    if not command or (int(major), int(minor)) < (2, 9):
        return
    arguments = ["pip", "install", *REDIRECTED[command], "-v", "--no-build-isolation"]
    print(
        f"WARNING: Redirecting 'python setup.py {command}' to '{' '.join(arguments)}'",
        file=sys.stderr,
        flush=True,
    )
    sys.exit(subprocess.call([sys.executable, "-m", *arguments], cwd=ROOT))


class Clean(Command):
    """Delete what .gitignore lists above its NOT-CLEAN-FILES line."""

    user_options = [("all", "a", "as PyTorch's: no difference")]
    boolean_options = ["all"]

    def initialize_options(self) -> None:
        self.all = False

    def finalize_options(self) -> None:
        pass

    def run(self) -> None:
        for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines():
            if line.startswith("# BEGIN NOT-CLEAN-FILES"):
                break
            if line and not line.startswith("#"):
                for path in list(ROOT.glob(line)):
                    print(f"removing {path.relative_to(ROOT)}")
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def cached(name: str) -> str:
    """What CMake remembers under this name."""
    text = CACHE.read_text(encoding="utf-8") if CACHE.exists() else ""
    found = re.search(rf"^{name}:\w+=(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def has_headers() -> bool:
    """Whether Python.h is used; cmake/PythonHeaders.cmake decides the same way."""
    include = Path(sysconfig.get_path("include")) / "Python.h"
    own = not WINDOWS and not sysconfig.get_config_var("Py_GIL_DISABLED")
    return include.exists() and not refused("USE_PYTHON_HEADERS") and (not own or flag("USE_PYTHON_HEADERS"))


def stub() -> Extension:
    """torch._C; CMake built all the rest."""
    origin = "@loader_path" if sys.platform == "darwin" else "$ORIGIN"
    return Extension(
        "torch._C",
        ["torch/csrc/stub.c"],
        include_dirs=[] if has_headers() else [str(ROOT / "torch" / "csrc" / "abi3")],
        libraries=["torch_python", "python3"] if WINDOWS else ["torch_python"],
        library_dirs=[str(ROOT / "torch" / "lib")],
        extra_compile_args=(["-O0", "-g"] if build_type() == "Debug" else []) if not WINDOWS else [],
        extra_link_args=[f"-Wl,-rpath,{origin}/lib"] if not WINDOWS else [],
    )


class BuildStub(build_ext):
    """As setuptools has it, but on Windows, where it knows MSVC alone, with CMake's compiler."""

    def build_extension(self, ext: Extension) -> None:
        compiler = cached("TORCH_STUB_COMPILER")
        if not compiler:
            super().build_extension(ext)
            return
        output = Path(self.get_ext_fullpath(ext.name))
        output.parent.mkdir(parents=True, exist_ok=True)
        headers = [*ext.include_dirs, *self.compiler.include_dirs]
        folders = [*ext.library_dirs, *self.compiler.library_dirs]
        run(
            [compiler, "-shared", "-static", "-O2", *ext.sources, "-o", str(output)]
            + [f"-I{folder}" for folder in headers]
            + [f"-L{folder}" for folder in folders]
            + [f"-l{name}" for name in ext.libraries]
        )


def main() -> None:
    for option, variable in (("--cmake", "CMAKE_FRESH"), ("--cmake-only", "CMAKE_ONLY")):
        if option in sys.argv:
            sys.argv.remove(option)
            os.environ[variable] = "1"
    commands = BUILDS & set(sys.argv)
    redirect(commands)
    if commands:
        check_submodules()
        only = flag("CMAKE_ONLY")
        configure(again=only or flag("CMAKE_FRESH"))
        if only:
            sys.exit(0)
        compile_and_install()
    sys.argv[1:] = ["build" if each == "rebuild" else each for each in sys.argv[1:]]
    setup(
        version=torch_version(),
        packages=find_packages(include=["torch", "torch.*"]),
        package_data={"torch": ["bin/*", "include/**/*.h", "lib/*", "share/cmake/Torch/*"]},
        ext_modules=[stub()],
        cmdclass={"build_ext": BuildStub, "clean": Clean},
        include_package_data=False,  # it would add torch/csrc
        zip_safe=False,
    )


if __name__ == "__main__":
    main()

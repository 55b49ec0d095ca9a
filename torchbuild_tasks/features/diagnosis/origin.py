"""Read off a whole log where it comes from: of which system, toolkit, Python and build it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from packaging.utils import canonicalize_name

# In the commands and tracebacks of an extension's build, and not in torch's own.
_OF_EXTENSION: Final = (
    *(b"-DTORCH_EXTENSION_NAME", b"/nvcc' failed", b"nvcc.exe' failed"),
    *(b"-packages/torch/include", b"-packages/torch/lib/include", b"-packages\\torch\\include"),
    *(b"--compiler-options '-fPIC'", b"--compiler-options ''\"'\"'-fPIC"),  # as cpp_extension tells nvcc
    *(b"-packages/torch/share", b"-packages\\torch\\share"),
    *(b"-packages/torch/utils/cpp_ext", b"-packages\\torch\\utils\\cpp_ext"),
)
# A program that is linked with the torch of a Python: a command that makes neither an object nor a library.
_OF_PROGRAM: Final = re.compile(
    rb"(?m)^(?=[^\n]*-packages/torch/(?:include|lib))(?=[^\n]*\s-o\s?(?!\S*\.(?:so|o|a|dylib|bc|s|i)\b)\w)"
    rb"(?![^\n]*\s-(?:shared|dynamiclib|bundle|c|E|S)\s)[^\n]*\+\+[\w.-]*\s"
)
# A source that pip has fetched, which fetches none of torch; a package that did not build, and is another.
_FETCHED: Final = re.compile(
    rb"pip-install-\w{1,20}[/\\]\w"
    rb"|Failed (?:to build|building (?:wheel|editable) for) [`']?(?!torch\b(?![-_]))[\w.-]{1,80}"
    rb"(?:[`'=]|\s*(?m:$))"
)
# apt, dnf, and apk or pacman.
_HAS: Final = re.compile(
    rb"Setting up ([\w.+-]{2,80})(?::\w{2,10})? \(|\b([\w.+-]{2,80}) is already the newest version"
    rb"|Package ([\w+-]{2,80}?)-\d[^ \n]{0,80} is already installed"
)
_HAS_SIGNS: Final = (b" is already the newest", b"Setting up ", b" already installed")
# What begins a command of the person, whose options and settings then were given; a message may quote one.
_COMMANDS: Final = (
    *(b"pip install ", b"pip3 install ", b"pip wheel ", b"uv sync ", b"uv add ", b"setup.py ", b"cmake -D"),
    *(b"cmake -B", b"cmake -S", b"cmake -G", b"cmake ."),
    *(b"git clone ", b"git submodule update", b"export ", b"ENV "),
)
_QUOTES: Final = re.compile(
    rb"`|pip subprocess|(?i:\b(?:hint|try|tried to|please|should|consider|instead|recommend\w*|suggest\w*"
    rb"|you (?:can|may|must|need)|did you|make sure|deprecated|for example|e\.g\.)\b)"
)
# Words of prose before a command: it is told how it is typed, and was not typed.
_TOLD: Final = re.compile(
    rb"(?i)\b(?:(?:re)?run(?:ning)?|us(?:e|es|ing)|by|with|via|execut(?:e|ing)|call|typ(?:e|ing)|or|to|after|before"
    rb"|first|forg[eo]t|needs?|missing|requires?|through|command(?: is)?:?) ['\"]?"
    rb"(?:sudo |python\d? (?:-m )?)?$"
)
_WORD: Final = re.compile(rb"[^\s'\"]{2,120}")
_MOST_WORDS: Final = 400
_DONE: Final = b"Successfully installed"
# What pip and collect_env say of a version that is installed; the last one counts.
_INSTALLED: Final = re.compile(
    rb"Successfully installed ([^\n]{1,6000})"
    rb"|Requirement already satisfied: ([A-Za-z][\w.-]{0,80})[^\n]{0,300}? in [^\n(]{1,300}"
    rb"\((?:from [^)\n]{1,200}\) \()?(\d[\w.+]{0,40})\)"
    rb"|\[(?:pip3?|conda)\] ([A-Za-z][\w.-]{0,80})(?:==| +)(\d[\w.+]{0,40})"
)
_INSTALLED_SIGNS: Final = (_DONE, b"already satisfied: ", b"[pip3] ", b"[conda] ", b"[pip] ")
_NAME_VERSION: Final = re.compile(rb"([A-Za-z][\w.]*(?:-[A-Za-z_]\w*)*)-(\d[\w.+]*)")
# pip's first step of a build in an environment of its own, and the end of all such.
_ISOLATED: Final = (b"Installing build dependencies", b"pip-build-env-")
# What pip says of a package before its error: an index that did not answer, and releases that it left out.
_OF_PIP: Final = re.compile(
    rb"Retrying \(Retry\(total=0[^\n]{0,400}|Please use pip<24\.1|[^ \n]{1,40} Requires-Python [^;\n]{1,60}"
)
_OF_PIP_SIGNS: Final = (b"Retry(total=0", b"use pip<24", b"Requires-Python")
# What clang and GCC say of a file that is of a newer standard than it is compiled as.
_NEWER: Final = re.compile(
    rb"(?m)^([^\s:]{1,300}):\d+:\d+: warning: [^\n]{1,300}\[-Wc\+\+(\d\d)-extensions\]"
)
# A step of docker build, whose disk and files are those of the daemon.
_IMAGE: Final = re.compile(
    rb"failed to solve: |(?m:^(?:[\d.]+ )?(?:Step \d+/\d+ : |#\d+ \[| [=>]{1,2} \[)|executor failed running)"
)
# A generator of CMake that has its own ways to take a compiler and a kind of build.
_MSBUILD: Final = (b".vcxproj", b"MSBuild version", b"Building for: Visual Studio", b"MSBUILD : error")
# What a program said before its error, and the error's own lines do not: a mark, and the words, whose groups
# are names for sentences. The first of each counts.
_SAID: Final = (
    # The tag of a 64-bit Python for Windows, in the names of what is built or fetched for it.
    (b"win_amd64", re.compile(rb"\bcp3\d{1,2}-(?P<wide_python>win_amd64)\b")),
    # The architectures that a command of nvcc's names.
    (b"arch=compute_", re.compile(rb"(?P<arch_flags>\barch=compute_\d[^\n]{0,4000})")),
    # A type that went with NumPy 2, in the source that Cython quotes above its message.
    (b"int_t", re.compile(rb"\b(?:c?np|c?numpy)\.(?P<lost_type>u?int_t)\b")),
    # NCCL, at a level that NCCL_DEBUG sets.
    (b"NCCL INFO ", re.compile(rb"(?P<nccl_speaks>NCCL INFO) ")),
    (b"NCCL WARN ", re.compile(rb"NCCL WARN (?P<nccl_warned>[^\n]{3,300})")),
    # torch.distributed, whose error later is that of a time limit.
    (
        b"cannot be retrieved (gai error",
        re.compile(rb"network addresses of \((?P<unresolved_host>[^\s,)]{1,200}), \d{1,6}\) cannot be"),
    ),
    # A build that fetches a tool itself, as there is none.
    (
        b" not found, ",
        re.compile(
            rb"\b(?P<wanted_tool>[A-Za-z][\w+]{1,20}) (?:was )?not found, (?:so )?(?:\w+ ){0,2}?"
            rb"(?:install|download|fetch)ing\b"
        ),
    ),
    # A package whose compiled part does not fit the torch that is here, and that is used all the same.
    (
        b" was built for:",
        re.compile(
            rb"\b(?P<unloaded>[\w.-]{2,40}) was built for:\s[^\n]{0,60}?"
            rb"PyTorch (?P<unloaded_for>\d[\w.+]{1,40})"
            rb"[^\n]{0,60}\(you have (?P<unloaded_with>\d[\w.+]{1,40})\)"
        ),
    ),
    (
        b"Skipping import of cpp extensions",
        re.compile(
            rb"due to incompatible torch version (?P<unloaded_with>\d[\w.+]{1,40})"
            rb" for (?P<unloaded>[\w.-]{2,40})"
        ),
    ),
    # Triton, in whose traceback its own ptxas speaks.
    (b"PTXASError: ", re.compile(rb"(?P<ptxas_of_triton>PTXASError): ")),
    # Inductor, which reads what the compiler says of itself.
    (
        b"UnicodeDecodeError",
        re.compile(
            rb"(?P<inductor_decodes>(?:InductorError: |='inductor' raised:\s{1,4})UnicodeDecodeError)"
        ),
    ),
    # ar and its like, whose list of names then lacks what was compiled with -flto.
    (b"needed to handle lto object", re.compile(rb"(?P<lto_plugin>plugin) needed to handle lto object")),
    # The C++ ABI that a command compiles for.
    (b"-D_GLIBCXX_USE_CXX11_ABI=", re.compile(rb"-D(?P<abi_flag>_GLIBCXX_USE_CXX11_ABI=[01])\b")),
    # One that the project sets: torch's own flags begin with the other, and its own for the ABI is the last.
    (
        b" -DTORCH_API_INCLUDE_EXTENSION_H",
        re.compile(
            rb"-D(?P<own_abi_flag>_GLIBCXX_USE_CXX11_ABI=[01]) [^\n]{0,4000}?-DTORCH_API_INCLUDE_EXTENSION_H"
            rb"(?![^\n]{0,4000}_GLIBCXX_USE_CXX11_ABI)"
        ),
    ),
    # NVIDIA's packages from CUDA 13 on, which share a folder.
    (b"nvidia/cu1", re.compile(rb"-packages/nvidia/cu(?P<cuda_of_packages>1[3-9])/lib/")),
    # Poetry, which builds in an environment of its own.
    (b"ChefBuildError", re.compile(rb"(?P<by_poetry>ChefBuildError)\b")),
    (b"problem with poetry", re.compile(rb"problem with (?P<by_poetry>poetry)\b")),
    # uv, which builds a package.
    (b"The build backend returned an error", re.compile(rb"(?P<by_uv>The build backend) returned an error")),
    # uv and Poetry, of a project that admits Pythons for which a dependency has no release.
    (
        b"more restrictive ",
        re.compile(rb"more restrictive `?requires-python`? value \(like (?P<narrower_python>[^)\s]{1,40})\)"),
    ),
    (
        b"so it will not be installable for Python",
        re.compile(
            rb"supported Python range \((?P<project_range>[^)\n]{1,60})\)[^\n]{0,200}\n"
            rb"[^\n]{0,80} requires Python (?P<range_wanted>[^\n]{1,60}?), so it will not be"
        ),
    ),
    # Meson, of a source that is not whole.
    (
        b"without subprojects directory",
        re.compile(rb"without (?P<no_subprojects>subprojects) directory present"),
    ),
    # What PyPI has under the name of another project. Sources: the pages of apex and clip on PyPI.
    (b"Collecting apex\n", re.compile(rb"Collecting (?P<other_project>apex)\n")),
    (b"Collecting clip\n", re.compile(rb"Collecting (?P<other_project>clip)\n")),
    # torch's own setup.py.
    (
        b"Building wheel torch-",
        re.compile(rb"Building wheel torch-(?P<built_torch>\d{1,2}\.\d{1,2}[\w.]{0,20})"),
    ),
    # What pip builds from its source, as it has no wheel.
    (b"Building wheel for ", re.compile(rb"Building wheel for (?P<built_package>[\w.-]{2,60}) \(")),
    # A machine of many users, who install no packages. Sources: documentation of Slurm, Lmod and CernVM-FS.
    *(
        (mark, re.compile(rb"(?P<cluster>" + re.escape(mark) + rb")"))
        for mark in (
            b"slurmstepd: ",
            b"srun: ",
            b"SLURM_JOB",
            b"/cvmfs/",
            b"\nmodule load ",
            b"$ module load ",
            b"Lmod ",
        )
    ),
    # An image of NVIDIA's for a Jetson, or made from one.
    (b"l4t", re.compile(rb"(?<![a-z0-9])(?P<jetson>(?P<own_container>l4t))(?![a-z0-9])")),
    *(
        (mark, re.compile(rb"(?P<jetson>" + mark + rb"\b)"))
        for mark in (b"tegra-ubuntu", b"aarch64-linux-gnu/tegra", b"nvidia-l4t", b"JetPack", b"Jetson")
    ),
    (b"linux_aarch64.whl", re.compile(rb"\.(?P<jetson>nv\d\d\.\d{1,2})-cp\d+-cp\d+-linux_aarch64\.whl")),
)
# The file of a compiled module, whose name tells the one series of CPython that loads it.
_MODULES: Final = re.compile(rb"(?<![\w.-])(\w{1,80})\.(?:cpython-|cp)3(\d{1,2}t?)-[\w-]{3,40}\.(?:so|pyd)\b")
_MODULE_SIGNS: Final = (b".cpython-3", b".cp3")
# What CMake says of a package that it found.
_FOUND: Final = re.compile(rb"-- Found (\w{1,60}): ")
# What a package, or a logger of it, warned of that it could not load or use.
_WARNED: Final = re.compile(
    rb"(?m)^[^\n]{0,40}?-packages[/\\](?:[^/\\\n]{1,100}\.egg[/\\])?(?P<package>[\w-]{1,60})[/\\]"
    rb"[^\n:]{1,300}:\d{1,6}: "
    rb"(?!Deprecation|Future|PendingDep)\w{0,30}Warning: (?P<text>[^\n]{10,400})"
    rb"|(?m:^)[^\n:]{0,40}\bWARN(?:ING)?\b[^\n]{0,40}?[:\]] ?(?P<logged>[^\n]{10,400})"
)
_LACKS: Final = re.compile(
    rb"(?i)\bfail\w*|could(?: not|n't)|can(?:not|'t)|unable to|\bno such|no module"
    rb"|not (?:be |been )?(?:\w+ly )?(?:load|found|available|compiled|installed|enabled|supported)|without"
    rb"|incompatible|mismatch|undefined symbol|\bbuilt (?:for|with|against)|missing"
)
_WARN_SIGNS: Final = (b"Warning: ", b"WARN")
_MOST_WARNED: Final = 50
# Of which system a log is, for an error whose own lines do not show it.
_WINDOWS: Final = re.compile(rb"(?<![\w/\\])[A-Za-z]:\\(?!n\b|t\b)\w")
# What MSBuild, and CMake on Windows, say of themselves, whatever paths the log has.
_WINDOWS_SIGNS: Final = (
    b"MSBuild version ",
    b"Building for: Visual Studio",
    b"compiler identification is MSVC",
)
_MAC_SIGNS: Final = (b"/Users/", b"/opt/homebrew", b"-apple-darwin", b"/Library/Developer/")
_LINUX_SIGNS: Final = (b" /usr/", b" /home/", b"'/usr/", b'"/home/', b'"/usr/', b"-linux-gnu", b"=/usr/")
_NVCC: Final = (b"nvcc", b"NVCC", b".cu.o", b".cu ")
# The CUDA toolkit of a log: of its path, or as nvcc and CMake print it.
_CUDA: Final = re.compile(
    rb"[/\\\\](?:cuda-|CUDA[/\\\\]v)(\d{1,2}\.\d)\b|Cuda compilation tools, release (\d{1,2}\.\d)"
    rb"|CUDA compiler identification is NVIDIA (\d{1,2}\.\d)"
    rb"|Found CUDA(?:Toolkit)?: [^\n]{0,200}?version:? ?\"?(\d{1,2}\.\d)"
)
# The series of Python whose headers a command names.
_PYTHON: Final = re.compile(rb"-I\S{1,200}/include/python(3\.\d{1,2}t?)\b")
# The package manager of the system that wrote a log, by text that only that has; the first counts.
_MANAGERS: Final = (
    ("nix", (b"/nix/store/", b"nix-build")),
    ("conda-build", (b"/conda-bld/", b"feedstock_root", b"conda-build ", b"/conda_build/", b"rattler-build")),
    ("portage", (b"/var/tmp/portage/", b">>> Emerging", b"::gentoo")),
    ("rpmbuild", (b"rpmbuild", b"/usr/lib/rpm/", b"RPM build errors")),
    ("guix", (b"/gnu/store/",)),
    ("spack", (b"/spack/opt/", b"spack-stage", b"/spack/lib/spack/")),
    ("easybuild", (b"== building and installing ", b"/easybuild/", b"EasyBuild")),
    ("bitbake", (b"/recipe-sysroot", b"ERROR: Task (/", b" do_compile")),
    ("conda", (b"-conda-linux-gnu", b"compiler_compat")),
    ("brew", (b"-apple-darwin", b"Apple clang", b".dylib", b"/opt/homebrew")),
    ("zypper", (b"-suse-linux", b"zypper ", b"(SUSE Linux)")),
    ("apk", (b"-alpine-linux-musl", b"apk add ", b"apk --", b"(Alpine ", b".alpinelinux.org/")),
    ("pacman", (b"pacman -S", b"makepkg", b"==> Starting build()", b"==> ERROR: A failure occurred in ")),
    (
        "dnf",
        (
            *(b"-redhat-linux", b"/opt/rh/", b"gcc-toolset-", b"/usr/lib64/", b"dnf install", b"yum install"),
            *(b"dnf -y", b"yum -y", b"microdnf ", b".fedoraproject.org/"),
            *(b"(Red Hat ", b".el7.", b".el8", b".el9"),
        ),
    ),
    (
        "apt",
        (
            *(b"/x86_64-linux-gnu", b"/aarch64-linux-gnu", b"apt-get ", b"apt install", b"dpkg: "),
            *(b"archive.ubuntu.com/", b"deb.debian.org/"),
            *(b"(Debian ", b"(Ubuntu "),
        ),
    ),
)


class Origin:
    """What the blocks of a log show of where it was written.

    `given` are the words of commands that the log has, `versions` the packages of Python that are installed.
    `of_extension`: an extension of torch is built, and not torch; `of_program`: a program is; `is_here`: the
    log is of this machine; `isolated`: pip builds in an environment of its own; `in_image`: a step of docker
    build; `uses_nvcc`: CUDA is compiled; `of_pip` is what pip said of a package before its error, `newer` the
    standards that files are of, where they are compiled as older ones; `msbuild`: Visual Studio's generator
    builds;
    `said` is what programs said before the error, by its names in sentences; `warned` what was lacking by a
    warning, with the package that gave it ("" for a logger); `installed` the system's packages that the log
    shows as installed, `found` those that CMake found; `modules` the series of Python for which the log has a
    compiled file of each module.

    Args:
        places: folders of this machine, which show that the log is of it.
    """

    def __init__(self, places: Sequence[str] = ()) -> None:
        self.of_extension = False
        self.of_program = False
        self.is_here = False
        self.isolated = False
        self.uses_nvcc = False
        self.in_image = False
        self.msbuild = False
        self.said: dict[str, str] = {}
        self.warned: dict[str, str] = {}
        self.of_pip: dict[str, None] = {}
        self.newer: dict[str, str] = {}
        self.installed: set[str] = set()
        self.given: set[str] = set()
        self.versions: dict[str, str] = {}
        self.found: set[str] = set()
        self.modules: dict[str, dict[str, None]] = {}
        self._places = tuple(place.encode() for place in places)
        self._cuda: set[str] = set()
        self._pythons: set[str] = set()
        self._managers: set[str] = set()
        self._systems: set[str] = set()

    @property
    def system(self) -> str:
        """Return windows, mac or linux, where the log has signs of one alone; "" where not."""
        return next(iter(self._systems)) if len(self._systems) == 1 else ""

    @property
    def cuda(self) -> str:
        """Return the version of the CUDA toolkit in this log; "" where it shows none, or several."""
        return next(iter(self._cuda)) if len(self._cuda) == 1 else ""

    @property
    def python(self) -> str:
        """Return the series of Python that is built for; "" where the log shows none, or several."""
        return next(iter(self._pythons)) if len(self._pythons) == 1 else ""

    def manager_on(self, system: str) -> str:
        """Return the package manager of this system that the log shows; "" where it does not show which."""
        other = {"brew"} if system == "linux" else set()
        return next((name for name, _ in _MANAGERS if name in self._managers - other), "")

    def feed_block(self, block: bytes, *, at_first: bool) -> None:
        """Look at many lines at once; what is of the whole log shows in the first of it."""
        self.of_extension = self.of_extension or _has(block, _OF_EXTENSION) or bool(_FETCHED.search(block))
        if b"-extensions]" in block:
            self.newer |= {
                file.decode("utf-8", "replace"): year.decode() for file, year in _NEWER.findall(block)
            }
        if not at_first:
            return
        self.is_here = self.is_here or _has(block, self._places)
        self._systems |= set(_systems(block))
        self.uses_nvcc = self.uses_nvcc or _has(block, _NVCC)
        self.in_image = self.in_image or (b"RUN " in block and _IMAGE.search(block) is not None)
        begun = max(map(block.rfind, _ISOLATED))
        done = block.rfind(_DONE)
        self.isolated = begun > done if max(begun, done) >= 0 else self.isolated
        self.msbuild = self.msbuild or _has(block, _MSBUILD)
        self.of_program = self.of_program or (
            b"-DTORCH_EXTENSION_NAME" not in block and _OF_PROGRAM.search(block) is not None
        )
        self._feed_said(block)
        if b"-- Found " in block:
            self.found |= {found.decode("utf-8", "replace") for found in _FOUND.findall(block)}
        self._feed_modules(block)
        if _has(block, _WARN_SIGNS) and len(self.warned) < _MOST_WARNED:
            self.warned |= _warnings(block)
        if _has(block, _OF_PIP_SIGNS):
            self.of_pip |= dict.fromkeys(each.decode("utf-8", "replace") for each in _OF_PIP.findall(block))
        if len(self.given) < _MOST_WORDS:
            self.given |= {word for line in _lines_with(block, _COMMANDS) for word in _words(line)}
        if _has(block, _INSTALLED_SIGNS):
            self.versions |= _versions(block)
        if _has(block, _HAS_SIGNS):
            self.installed |= _names(_HAS, block)
        self._cuda |= _names(_CUDA, block)
        self._pythons |= {found.decode() for found in _PYTHON.findall(block)}
        self._managers |= {name for name, marks in _MANAGERS if _has(block, marks)}

    def _feed_modules(self, block: bytes) -> None:
        for name, minor in _MODULES.findall(block) if _has(block, _MODULE_SIGNS) else ():
            self.modules.setdefault(name.decode(), {})[f"3.{minor.decode()}"] = None

    def _feed_said(self, block: bytes) -> None:
        for mark, words in _SAID:
            if mark in block and (found := words.search(block)):
                for name, value in found.groupdict().items():
                    self.said.setdefault(name.replace("_", " "), value.decode("utf-8", "replace").strip())


def _warnings(block: bytes) -> dict[str, str]:
    """Return what warnings tell that is lacking, with the package that gave each."""
    found = (match.groupdict(b"") for match in _WARNED.finditer(block))
    told = ((each["text"] or each["logged"], each["package"]) for each in found)
    return {
        text.decode("utf-8", "replace").strip(): package.decode("utf-8", "replace")
        for text, package in told
        if _LACKS.search(text)
    }


def _has(block: bytes, marks: Iterable[bytes]) -> bool:
    return any(mark in block for mark in marks)


def _names(pattern: re.Pattern[bytes], block: bytes) -> set[str]:
    """Return what any group of the pattern finds."""
    return {found.decode() for each in pattern.findall(block) for found in each if found}


def _systems(block: bytes) -> Iterator[str]:
    if _has(block, _WINDOWS_SIGNS):
        yield "windows"
        return
    if b":\\" in block and _WINDOWS.search(block):
        yield "windows"
    if _has(block, _MAC_SIGNS):
        yield "mac"
    elif _has(block, _LINUX_SIGNS):
        yield "linux"


def _lines_with(block: bytes, marks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines that have one of these marks, but not those that only quote or advise a command."""
    for mark in marks:
        at = block.find(mark)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            begins = block.rfind(b"\n", 0, at) + 1
            line = block[begins:end]
            if not (_QUOTES.search(line) or _TOLD.search(block[begins:at])):
                yield line
            at = block.find(mark, end)


def _words(line: bytes) -> Iterator[str]:
    """Yield the options, settings and bounds of a command; a definition of CMake also as a setting."""
    for word in _WORD.findall(line[:4000]):
        text = word.decode("utf-8", "replace")
        if text.startswith("-D") and "=" in text:
            name, _, value = text.removeprefix("-D").partition("=")
            yield f"{name.partition(':')[0]}={value}"
        elif text.startswith("--"):
            yield text.partition("=")[0]
        elif any(sign in text for sign in "=<>"):
            yield text


def _versions(block: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for listed, *pairs in _INSTALLED.findall(block):
        rows = _NAME_VERSION.findall(listed) if listed else [tuple(filter(None, pairs))]
        for name, version in rows:
            found[canonicalize_name(name.decode("utf-8", "replace"))] = version.decode("utf-8", "replace")
    return found

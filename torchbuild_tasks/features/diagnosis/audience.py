"""Find out for whom a fix is: what was built where the log was written, and on which system.

A sentence of a row that begins with `[torch]`, `[extension]`, `[program]` or `[import]` is only for that,
one with `[linux]`, `[windows]` or `[mac]` for that system; `[windows mac]` for either. Only this
module decides it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from torchbuild_tasks.features.diagnosis.block import ErrorBlock
from torchbuild_tasks.features.diagnosis.origin import Origin

_WHO: Final = r"(?:torch|extension|program|import|linux|windows|mac)"
_MARK: Final = re.compile(rf"\[({_WHO}(?: {_WHO}){{0,6}})\] ")
# The package that a frame of a traceback lies in.
_IMPORTER: Final = re.compile(r'File ".{0,300}-packages[/\\](?:[^/\\]{1,100}\.egg[/\\])?([\w-]{1,60})[/\\]')
_MISSING: Final = re.compile(r"No module named ['\"]?(\w{1,60})")
# What a build of torch runs itself.
_NO_IMPORTER: Final = ("torch", "pip", "setuptools", "wheel", "cmake", "ninja", "numpy", "yaml", "_pytest")
# What a warning tells of how its package was built.
_LEFT_OUT: Final = re.compile(r"(?:compiled|built) without|not (?:been )?(?:compiled|built) with\b")
# What a logger writes before its message: times, and the place in the source.
_LOGGED: Final = re.compile(r"^[\s:\d.-]*(?:[\w.]{1,40}:\d{1,5}\])?[\s:]*")
_FRAME: Final = re.compile(r'File "([^"\n]{1,400})", line')
# Where torch imports its own compiled part.
_OWN_IMPORT: Final = re.compile(r"[/\\]torch[/\\](?:__init__|__config__)\.py$")
# Another driver than those of torch, or a program that is linked against a libtorch.
_PROGRAM: Final = re.compile(
    r"""[ "']-l"?(?:torch|torch_cpu|c10)\b|[/\\]libtorch[^/\\\s]{0,40}[/\\]|TorchConfig\.cmake"""
    r"|\(Exit \d{1,3}\): |--sandbox_debug|error: could not compile `|error: linking with `"
    r"|failed to run custom build command"
)
_TORCH: Final = re.compile(
    r"[/\\](?:torch_cpu|torch_cuda|torch_python|torch_hip|torch|c10|caffe2\w{0,20}|ATen|TH\w{0,6})\.dir[/\\]"
    r"|\b(?:lib|bin)[/\\](?:lib)?(?:torch\w{0,12}|c10\w{0,6}|caffe2\w{0,8})\.(?:so|dll|lib|dylib)\b"
    r"|(?<!include[/\\])\bc10[/\\](?:core|util|macros|cuda)[/\\]|\baten[/\\]src[/\\]|\bcaffe2[/\\]"
    r"|\btorch[/\\]csrc[/\\]|\b(?:c10|caffe2|aten)/CMakeLists\.txt:\d|setup_helpers|'torch\._C' extension"
)
# Where a torch that runs says that an error or a warning of it came up: in sources that are not built here.
_RAISED_AT: Final = re.compile(
    r"\(Triggered internally at [^)\n]{1,200}\)|(?m:^Exception raised from .*|^frame #\d+: .*)"
)
_SYSTEMS: Final = (
    (
        "windows",
        re.compile(
            r"-w64-mingw32-|libiomp5md\.dll|\b[A-Za-z]:\\\w|(?<![\w/])[A-Z]:/\w|WinError|DLL load failed"
            r"|\bLNK\d{4}\b|error C\d{4}|Microsoft Visual C\+\+|vcvarsall|\bcl(?:\.exe| :)"
            r"|is not recognized as (?:an internal|the name of|a name of)"
            r"|You're on Windows|\bPSSecurity|CategoryInfo|Microsoft Store|/win-(?:64|arm64)\b"
        ),
    ),
    (
        "mac",
        re.compile(
            r"Apple clang|\.dylib\b|-apple-darwin|/opt/homebrew/|/Library/Developer/"
            r"|/Applications/\w|for architecture (?:arm64|x86_64)|/Users/\w"
            r"|(?<!`)macosx|You're on macOS"
            r"|\bxcrun\b|\bdyld\b|ld: library (?:not found for -l|'\S{1,80}' not found)"
            r"|framework '?\w{1,60}'? not found|/osx-(?:arm)?64\b"
        ),
    ),
    (
        "linux",
        re.compile(
            r"(?:^|[\s\"'(=:])/(?:usr|home|opt|root|tmp|lib\d{0,2}|mnt)/|\.so\b|-linux-gnu|/linux-(?:64|aarch64)\b",
            re.M,
        ),
    ),
)
# uv's own words, and the environment that it builds in.
_UV: Final = re.compile(
    r"[/\\]uv[/\\]|\buv (?:pip|sync|run|add|lock|venv)\b|╰─▶|\bUV_[A-Z]"
    r"|^error: (?:Failed to (?:spawn|fetch|prepare)|Distribution `|The interpreter at )",
    re.MULTILINE,
)
_UV_BUILDS: Final = re.compile(r"[/\\](?:uv[/\\](?:cache[/\\])?)?builds-v\d|extra-build-dependencies")


class Audience(msgspec.Struct, frozen=True):
    """For whom a fix is: `doing` is torch, extension, program or import, `system` linux, windows or mac.

    What is not known is "". `manager` is the package manager of the log's system, `text` the lines of its
    error, `installed` the system's packages that the log shows as installed, `found` those that CMake found,
    `cuda` the version of its CUDA toolkit, `python` the series of Python that is built for; `here` means
    that the log is of this machine, `of_pip` is what pip said of a package before; `isolated` is the tool
    (pip or uv) that builds in an environment of its own, `uv` that uv speaks, `in_image` that a step of
    docker build does, `msbuild` that Visual Studio's generator builds; `said` is what was said before the
    error, by its names in sentences. `given` are the words of the commands in the log, `versions` the
    packages of Python that it shows, `modules` the series of Python that it shows compiled files for.
    `warner` is the package in whose code the error is raised, where that had warned before that something
    was lacking, `warned` that warning.
    `newer_std` is the standard of C++ that the file is of, where it is compiled as an older one;
    `importer` is the package whose import failed, `own` the one that lacks a part of its own; `itself` means
    that torch could not be imported.
    """

    doing: str = ""
    system: str = ""
    manager: str = ""
    text: str = ""
    cuda: str = ""
    python: str = ""
    here: bool = False
    of_pip: str = ""
    isolated: str = ""
    uv: bool = False
    in_image: bool = False
    msbuild: bool = False
    said: Mapping[str, str] = msgspec.field(default_factory=dict)
    installed: frozenset[str] = frozenset()
    found: frozenset[str] = frozenset()
    modules: Mapping[str, Collection[str]] = msgspec.field(default_factory=dict)
    given: frozenset[str] = frozenset()
    versions: Mapping[str, str] = msgspec.field(default_factory=dict)
    newer_std: str = ""
    warner: str = ""
    warned: str = ""
    importer: str = ""
    own: str = ""
    itself: bool = False

    @property
    def values(self) -> Mapping[str, str]:
        """Return names for sentences: the extension, the importing package, the one that lacks a part."""
        extension = "an extension of torch" if self.doing == "extension" else ""
        itself = "torch itself" if self.itself else ""
        values = {"extension": extension, "importer": self.importer, "own": self.own, "torch itself": itself}
        values["imported"] = "from a DLL" if re.search(r"dllimport|\b__imp_", self.text) else ""
        values["mingw"] = "MinGW" if self.mingw else ""
        values["newer std"] = self.newer_std
        values["uv"] = "uv" if self.uv else ""
        values |= self.said
        values["unloaded"] = self._unloaded()
        left_out = _LEFT_OUT.search(self.warned)
        values |= {"warner": self.warner, "warned": self.warned, "left out": left_out[0] if left_out else ""}
        values["image build"] = "docker build" if self.in_image else ""
        return {**values, "unreachable": "it was tried to the end" if "Retry(total=0" in self.of_pip else ""}

    def _unloaded(self) -> str:
        """Return the package whose compiled part was not loaded, where the error is raised in it."""
        name = self.said.get("unloaded", "")
        return self.importer if name.lower() == self.importer.lower() else ""

    @property
    def mingw(self) -> bool:
        """Return whether the compiler is MinGW's, which uses no headers and libraries of MSVC."""
        return "mingw" in self.text.lower()

    @property
    def has_no_flags(self) -> bool:
        """Return whether what failed is no build of torch: neither our commands nor our flags help it."""
        return self.doing in ("extension", "program")

    def select(self, sentences: tuple[str, ...]) -> tuple[str, ...]:
        """Return the sentences for this audience, without their marks."""
        kept = ((_MARK.match(each), each) for each in sentences)
        return tuple(each[match.end() :] if match else each for match, each in kept if self._is_meant(match))

    def _is_meant(self, mark: re.Match[str] | None) -> bool:
        return mark is None or bool({self.doing, self.system} & set(mark[1].split()))


def read_audience(block: ErrorBlock, origin: Origin) -> Audience:
    """Return for whom the fixes of this error are."""
    text = "\n".join(line.text for line in block.lines)
    importers = [name for name in _IMPORTER.findall(text) if name not in _NO_IMPORTER]
    frames = [name for name in _FRAME.findall(text) if not re.search(r"[/\\]ctypes[/\\]", name)]
    missing = _MISSING.search(text)
    system = next((name for name, marks in _SYSTEMS if marks.search(text)), origin.system)
    warner, warned = _find_warning(importers, origin)
    in_env = origin.isolated or "pip-build-env-" in text
    own = missing is not None and re.search(rf'File "[^"\n]{{1,400}}[/\\]{missing[1]}[/\\]', text)
    return Audience(
        doing="program" if origin.of_program else _doing(block, text, of_extension=origin.of_extension),
        system=system,
        manager="brew" if system == "mac" else "" if system == "windows" else origin.manager_on(system),
        text=text,
        cuda=origin.cuda,
        python=origin.python,
        here=origin.is_here,
        of_pip="\n".join(origin.of_pip),
        in_image=origin.in_image,
        msbuild=origin.msbuild,
        said=origin.said,
        isolated="uv" if _UV_BUILDS.search(text) else "pip" if in_env else "",
        uv=_UV.search(text) is not None or "by uv" in origin.said,
        installed=frozenset(origin.installed),
        found=frozenset(origin.found),
        modules=origin.modules,
        given=frozenset(origin.given),
        versions=origin.versions,
        newer_std=origin.newer.get(block.error.text.strip().partition(":")[0], ""),
        warner=warner,
        warned=warned,
        importer=importers[-1] if importers else "",
        itself=bool(frames) and _OWN_IMPORT.search(frames[-1]) is not None,
        own=missing[1] if missing and own else "",
    )


def _find_warning(packages: Sequence[str], origin: Origin) -> tuple[str, str]:
    """Return the package of these, the last first, that had warned of what it lacks, and its warning."""
    for package in dict.fromkeys(reversed(packages)):
        named = re.compile(rf"(?i)(?<![\w-]){re.escape(package)}(?![\w-])")
        for text, by in origin.warned.items():
            if by == package or (not by and named.search(text)):
                return package, _LOGGED.sub("", text)
    return "", ""


def _doing(block: ErrorBlock, text: str, *, of_extension: bool) -> str:
    if of_extension:
        return "extension"
    if block.kind == "python" and "ImportError" in block.error.text:
        return "import"
    if _PROGRAM.search(text):
        return "program"
    return "torch" if _TORCH.search(_RAISED_AT.sub("", text)) else ""


def plain(sentence: str) -> str:
    """Return a sentence as a page shows it, its mark and its conditions in words."""
    sentence = re.sub(r"\{!([^{}]+)\}", r"(\1) ", sentence)
    mark = _MARK.match(sentence)
    return f"({', '.join(mark[1].split())}) {sentence[mark.end() :]}" if mark else sentence

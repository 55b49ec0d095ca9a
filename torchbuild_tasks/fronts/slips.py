"""Say what was meant by a word that no verb takes: another tool's flag, a switch, a letter of print.

A nearest word by letters may mean the contrary (`--no-cuda` is near `--cuda`), so what has a known meaning
is answered by that, and a near flag is proposed only where it does not deny what was said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.text.letters import DASHES, QUOTES, plain_word, say_odd_letters
from torchbuild_tasks.text.words import as_word

_UNSUPPORTED: Final = ["rocm", "hip", "xpu", "mps", "metal", "tpu", "npu", "sycl", "opencl", "vulkan"]
# What is a flag here, and its names in other tools and older build scripts, without dashes. A value that
# follows takes the place of the last word in capitals, and the name itself that of {}.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "--cpu": ("nocuda", "no-gpu", "nogpu", "cpu-only", "cpuonly", "no-nvidia", "only-cpu"),
    "--cuda": ("gpu", "use-gpu", "gpus", "nvidia", "with-gpu", "enable-gpu", "cuda-on"),
    "--jobs N": ("cpus", "cores", "threads", "parallel", "max-jobs", "nproc", "workers", "num-jobs"),
    "--cuda-toolkit VALUE": ("cuda-version", "cuda-home", "cuda-path", "cuda-root", "cuda-dir"),
    "--arch LIST": (
        *("archs", "gpu-arch", "gpu-archs", "cuda-arch", "cuda-archs", "arch-list", "target-arch"),
        *("sm", "gencode", "compute-capability"),
    ),
    "--source PATH": ("src", "source-dir", "src-dir", "checkout", "repo", "pytorch", "path", "dir", "S", "C"),
    "--python PATH": ("interpreter", "venv", "env", "python-version", "py", "with-python", "virtualenv"),
    "--build-type Debug": ("debug",),
    "--build-type Release": ("release",),
    "--clean": ("force", "rebuild", "fresh", "clean-first", "clean-build"),
    "--dry-run": ("check", "simulate", "just-print", "dry", "n"),
    "--cache {}": ("ccache", "sccache"),
    "--cache none": ("disable-cache", "nocache"),
    "--wheels FOLDER": ("find-links", "f"),
    "--offline": ("no-index", "no-network", "no-download", "no-downloads", "no-internet"),
    "--mirror URL": ("index-url", "extra-index-url", "i", "proxy"),
    "--torch VERSION": ("torch-version", "pytorch-version", "tag"),
    "--set CMAKE_GENERATOR=NAME": ("G", "generator"),
    "--set CXX=NAME": ("cxx", "compiler", "host-compiler"),
    "--set CC=NAME": ("cc",),
    "--set CXXFLAGS=-march=NAME": ("march",),
    "--set BUILD_TEST=1": ("tests", "build-tests", "with-tests"),
    "--set BUILD_TEST=0": ("no-tests", "skip-tests", "without-tests"),
    "--set KEY=VALUE": ("D",),
    "--mode wheel": ("wheel", "bdist-wheel"),
    "--mode develop": ("editable", "e"),
}
_SAME: Final = {name: flag for flag, names in _NAMES.items() for name in names}
# What turns a flag off that has a value for it.
_OFF: Final[Mapping[str, str]] = {
    "cuda": "--cpu",
    "gpu": "--cpu",
    "cpu": "--cuda",
    "cache": "--cache none",
    "ccache": "--cache none",
    "sccache": "--cache none",
    "jobserver": "--jobserver off",
    "helper": "--with-helper none",
    "helpers": "--with-helper none",
    "with-helper": "--with-helper none",
    "linker": "--linker default",
}
_DENIES: Final = re.compile(r"(?:no|non|not|without|disable|skip|dont|exclude)[-_]")
_GRANTS: Final = re.compile(r"(?:with|enable|use|build)[-_]")
_BACKSLASH: Final = "\\"
_DRIVE: Final = r"[A-Za-z]:\\?"
_TYPED_QUOTES: Final = ('"', "'")
_RELEASE: Final = re.compile(r"(\d+)\.\d+(?:\.\d+)?")
_FIRST_CUDA: Final = 8  # torch's own versions are below
_PLACE: Final = re.compile(r"(?:KEY=VALUE|[A-Z]+)$")
_NAME: Final = r"[A-Za-z_]\w*"
# Of CMake (-DX=1, -DX:BOOL=ON), of make (X=1), and of no tool (--USE_X=1).
_DEFINED: Final = re.compile(rf"-D({_NAME})(?::[A-Za-z]+)?(?:=(.*))?", re.DOTALL)
_CAPITALS: Final = re.compile(
    r"(?:--?)?([A-Z][A-Z0-9]*_[A-Z0-9_]+|CC|CXX|BLAS|DEBUG)(?::[A-Z]+)?(?:=(.*))?", re.DOTALL
)


def check_dashes(words: Sequence[str], known: Collection[str]) -> None:
    """Refuse flags whose hyphens a word processor or a web page made dashes of.

    Raises:
        UsageError: a word is a known flag but for its dash.
    """
    for word in words:
        begin = word[:2].removeprefix("-")[:1]
        is_flag = begin in tuple(DASHES) and plain_word(word).partition("=")[0] in known
        if is_flag and (error := letters_error(word)):
            raise error


def letters_error(word: str, *, begins: bool = False) -> UsageError | None:
    """Return the error about a word with a letter that only looks like one of a command, if it has one.

    Args:
        word: what was typed.
        begins: only a dash counts that the word begins with, since the rest may be a name.
    """
    if begins and word[:1] not in tuple(DASHES):
        return None
    odd = say_odd_letters(word)
    return UsageError(f"{word!r}: {odd}", next_step=f"Write it as: {plain_word(word)}") if odd else None


def check_quotes(flag: str, text: str) -> None:
    """Refuse a value in the quotes of a printed text, which no shell takes off.

    Raises:
        UsageError: it begins or ends with one; what lies between may be a name.
    """
    ends = (text[:1], text[-1:], text.partition("=")[2][:1])
    if any(end and end in QUOTES for end in ends):
        raise UsageError(
            f"{flag} {text}: {say_odd_letters(text)}",
            next_step="Type the quotes anew, as the straight ones of the keyboard, or leave them out.",
        )


def check_path_quotes(name: str, text: str) -> None:
    """Refuse a path with a quote that the shell left in it.

    cmd takes off double quotes alone, and those of `set X="..."` never; behind a backslash one is a part of
    the word, which goes on from there (learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments).

    Args:
        name: the flag, the word or the variable that has the path.
        text: the path.

    Raises:
        UsageError: it has a quote, and there is no such file.
    """
    quote = next((each for each in text if each in _TYPED_QUOTES), "")
    if not quote or (quote == "'" and not text.startswith(quote)) or _exists(text):
        return
    path, _, behind = text.strip(quote).partition(quote)
    path = f"{path.rstrip(_BACKSLASH)}{_BACKSLASH if re.fullmatch(_DRIVE, path) else ''}"
    typed = f"{name} {as_word(path)}" if name.startswith("-") else as_word(path)
    if not text.startswith(quote):
        why = f"no path has a {quote} in it; behind a backslash it does not end a word, but is a part of it"
        fix = f"Leave the backslash before it out: {typed}{behind}"
    elif name.startswith("TORCHBUILD_"):
        why = f'the quotes are a part of it, as those of set {name}="..." are in cmd'
        fix = f'Leave them out; in cmd: set "{name}={path}"'
    elif text.endswith(quote):
        why = "the quotes are a part of it: a shell takes off one pair, and cmd no single ones"
        fix = f"Leave them out: {typed}"
    else:
        why = "it begins with a quote that does not end; in cmd only double ones hold words together"
        fix = f'Write it in double quotes: {typed.removesuffix(path)}"{path} ..."'
    raise UsageError(f"{name} {text}: {why}.", next_step=fix)


def _exists(text: str) -> bool:
    try:
        return Path(text).expanduser().exists()
    except (OSError, RuntimeError, ValueError):  # no home, or a name that no file has
        return False


def torn_assignment(assignments: Sequence[str], words: Sequence[str]) -> str:
    """Return the --set that was typed with blanks in it (X = 0, X 0); "" where it was not.

    Args:
        assignments: the values of --set.
        words: what no flag and no word of the verb took.
    """
    last = assignments[-1] if assignments else ""
    name, equals, value = last.partition("=")
    rest = "".join(words[:2] if words[0] == "=" else words[:1]).removeprefix("" if equals else "=")
    return f"--set {as_word(f'{name}={rest}')}" if name and not value and rest else ""


def what_was_meant(words: Sequence[str], known: Collection[str], switches: Collection[str]) -> str:
    """Return what to write instead of the first of some words; "" where that is not known.

    Args:
        words: a word that is no flag of the verb, and what follows it.
        known: the verb's flags, with their dashes.
        switches: the names of build variables that are told from a flag in small letters.
    """
    word = words[0]
    if say_odd_letters(word):
        return plain_word(word)
    following = words[1] if len(words) > 1 and not words[1].startswith("-") else ""
    said = _as_setting(word, following) if "--set" in known else ""
    said = said or _as_flag(word, following, known)
    return said or (_as_switch(word, switches) if "--set" in known else "")


def _as_flag(word: str, following: str, known: Collection[str]) -> str:
    """Return the flag of ours that another tool's flag means, or a bare number of a release; else ""."""
    if number := _RELEASE.fullmatch(word):
        flag = "--cuda-toolkit" if int(number[1]) >= _FIRST_CUDA else "--torch"
        return f"{flag} {word}" if flag in known else ""
    name, _, value = word.partition("=")
    bare = name.lstrip("-") if name.startswith("-") else ""
    if not bare:
        return ""
    plain = bare.casefold().replace("_", "-") if len(bare) > 1 else bare
    instead = _OFF.get(_DENIES.sub("", plain, count=1)) if _DENIES.match(plain) else None
    instead = instead or _SAME.get(plain, "") or _granted(plain)
    if instead.partition(" ")[0] in known:
        return _with_value(instead, value or following, plain)
    return ""


def _granted(plain: str) -> str:
    """Return the device that a word such as with-cuda names."""
    rest = _GRANTS.sub("", plain, count=1)
    return f"--{rest}" if rest != plain and rest in ("cuda", "cpu") else ""


def _with_value(instead: str, value: str, plain: str) -> str:
    """Return words with the value that was given, in the place that they have for one."""
    flag, _, rest = instead.partition(" ")
    if not rest:
        return flag
    if rest == "{}":
        return f"{flag} {plain}"
    place = _PLACE.search(rest)
    return f"{flag} {as_word(rest[: place.start()] + value)}" if value and place else instead


def _as_setting(word: str, following: str) -> str:
    """Return a build variable in capitals as --set has it; "" for any other word."""
    if word == "-D" and (found := _DEFINED.fullmatch(f"-D{following}")):
        following = ""
    else:
        found = _DEFINED.fullmatch(word) or _CAPITALS.fullmatch(word)
    if found and (word.startswith("-") or "=" in word):
        value = found[2] if found[2] is not None else following or "1"
        return f"--set {as_word(f'{found[1]}={value}')}"
    return ""


def _as_switch(word: str, switches: Collection[str]) -> str:
    """Return a switch in small letters (--no-distributed, --asan) as --set has it; "" for any other word."""
    name, _, value = word.removeprefix("--").partition("=")
    if not word.startswith("--"):
        return ""
    plain = name.casefold().replace("_", "-")
    off = _DENIES.match(plain)
    rest = (_DENIES if off else _GRANTS).sub("", plain, count=1)
    rest = _GRANTS.sub("", rest, count=1)
    if rest in ("cuda", *_UNSUPPORTED):
        return ""
    bare = rest.upper().replace("-", "_")
    first = "BUILD" if plain.startswith("build") else "USE"
    for switch in (f"{first}_{bare}", f"USE_{bare}", f"BUILD_{bare}") if rest != plain else (f"USE_{bare}",):
        if switch in switches:
            return f"--set {switch}={value or ('0' if off else '1')}"
    return ""


def why_nothing_near(word: str, known: Collection[str]) -> str:
    """Say of a flag that denies or repeats another one how that is said here; "" for any other word."""
    plain = word.partition("=")[0].lstrip("-").casefold().replace("_", "-")
    if plain in _UNSUPPORTED or _GRANTS.sub("", plain, count=1) in _UNSUPPORTED:
        return "Builds are for CPUs and for CUDA; ROCm, XPU and macOS are not supported: --cpu or --cuda"
    rest = _DENIES.sub("", plain, count=1)
    if plain in ("online", "network"):
        rest = "offline"
    if rest != plain and f"--{rest}" in known:
        return f"Leave out --{rest}: it counts only where it is given."
    if f"--no-{plain}" in known:
        return f"Leave it out: that is done unless --no-{plain} is given."
    return ""


def near_flag(word: str, known: Collection[str]) -> str:
    """Return the end of a sentence with the flag nearest by letters, unless it means the contrary.

    Flags are short, and a word of another tool is no slip of one: --lto is far from --url.
    """
    import difflib

    bare = word.lstrip("-").casefold().replace("_", "-")
    denies = bool(_DENIES.match(bare))
    alike = {each.lstrip("-"): each for each in known if bool(_DENIES.match(each.lstrip("-"))) == denies}
    near = difflib.get_close_matches(bare, alike, n=1, cutoff=0.75)
    return f"; did you mean {alike[near[0]]}?" if near else ""

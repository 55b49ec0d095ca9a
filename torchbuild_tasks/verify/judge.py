"""Compare the plan's promises with the answers of the probe. Pure.

Each expectation becomes one row. A row is "passed" only when the probe reported that: what was
not asked, not reported or could not be tried is "not possible", with the reason.

Libraries must come from where the plan says, as a process loaded them and as RPATHs name them: a torch that
finds its own in the build tree works until that tree is cleaned, and then fails, or silently runs what the
next build put there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Final

import msgspec
from packaging.version import Version

from torchbuild_tasks.errors import VerifyFailed
from torchbuild_tasks.model import Expectation
from torchbuild_tasks.model.record import CheckResult, Outcome, VerifyReport
from torchbuild_tasks.text.words import counted

# Keys that compare the folder of a reported file, not a text.
FOLDERS: Final = {"inside": "file", "extension_inside": "extension"}

SETS: Final = frozenset({"arch_list"})  # keys whose words may come in any order
SERIES: Final = frozenset({"cuda"})  # keys whose version may go on: 10.0.130 is 10.0

_YES: Final = frozenset({"1", "on", "true", "yes", "y", "enabled"})
_NO: Final = frozenset({"0", "off", "false", "no", "n", "none", "disabled", ""})


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The probe's answer to one check."""

    outcome: Outcome
    detail: str = ""
    values: Mapping[str, str] = msgspec.field(default_factory=dict)


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """All answers of the probe; `real` maps their paths, and the expected ones, to paths without links."""

    checks: Mapping[str, Seen]
    real: Mapping[str, str] = msgspec.field(default_factory=dict)


def judge(expectations: Sequence[Expectation], observed: Observed) -> tuple[CheckResult, ...]:
    """Return one result per expectation, in their order: "matmul", "config: USE_OPENMP" ..."""
    return tuple(_row(each, observed) for each in expectations)


def _row(expectation: Expectation, observed: Observed) -> CheckResult:
    name = f"{expectation.check}: {expectation.key}" if expectation.key else expectation.check
    outcome, detail = _verdict(expectation, observed)
    if outcome == "failed" and expectation.because:
        detail = f"{detail} (wanted because {expectation.because})"
    return CheckResult(check=name, outcome=outcome, detail=detail)


def _verdict(expectation: Expectation, observed: Observed) -> tuple[Outcome, str]:
    if expectation.skip:
        return "not possible", expectation.skip
    seen = observed.checks.get(expectation.check)
    if seen is None:
        return "not possible", _no_answer(observed)
    if not expectation.key:
        return seen.outcome, seen.detail
    return _compare(expectation, seen, observed.real)


def _no_answer(observed: Observed) -> str:
    imported = observed.checks.get("import")
    if imported is not None and imported.outcome == "failed":
        return "torch could not be imported"
    return "the probe did not report this check"


def _compare(expectation: Expectation, seen: Seen, real: Mapping[str, str]) -> tuple[Outcome, str]:
    key = expectation.key
    wanted = expectation.wanted
    value = seen.values.get(FOLDERS.get(key, key))
    if value is None:
        return "not possible", _missing_value(expectation, seen)
    verb = "wanted"
    if key in FOLDERS:
        good = lies_in(real.get(value, value), real.get(wanted, wanted))
        verb = "wanted it inside"
    elif key in SETS:
        good = set(value.split()) == set(wanted.split())
    elif key in SERIES:
        good = is_of_series(value, wanted)
    else:
        good = means_same(value, wanted, real)
    if good:
        return "passed", value
    led_by = seen.values.get("led_by") if key in FOLDERS else ""
    more = f"; {led_by} names its folder: take that out" if led_by else _difference(key, value, wanted)
    return "failed", f"{value or 'nothing'}, {verb} {wanted or 'nothing'}{more}"


def _difference(key: str, value: str, wanted: str) -> str:
    """Return which words of a list are missing and which are too many."""
    if key not in SETS:
        return ""
    has = set(value.split())
    wants = set(wanted.split())
    lists = {"without": wants - has, "with": has - wants}
    return "".join(f"; {word} {' '.join(sorted(words))}" for word, words in lists.items() if words)


def is_of_series(value: str, wanted: str) -> bool:
    """Say whether a version begins with the numbers of the wanted one: "10.0.130" does with "10.0"."""
    try:
        numbers = Version(wanted).release
        return Version(value).release[: len(numbers)] == numbers
    except ValueError:
        return False


def _missing_value(expectation: Expectation, seen: Seen) -> str:
    if seen.outcome == "passed":
        return f"this torch does not say {expectation.key}, wanted {expectation.wanted}"
    return f"{expectation.check} {seen.outcome}: {seen.detail}".partition("\n")[0]


def means_same(value: str, wanted: str, real: Mapping[str, str] | None = None) -> bool:
    """Say whether two texts mean the same: as text, switch, path or version.

    A version wanted without its local part ("2.13.0") is met by any local part
    ("2.13.0+cpu"); an alpha is never met by the release, since pip tells them apart.
    """
    if value.strip().casefold() == wanted.strip().casefold():
        return True
    paths = real or {}
    if value in paths and wanted in paths:
        return _path(paths[value]) == _path(paths[wanted])
    switches = _switch(value), _switch(wanted)
    if None not in switches:
        return switches[0] == switches[1]
    return _same_version(value, wanted)


def _switch(text: str) -> bool | None:
    word = text.strip().casefold()
    return True if word in _YES else False if word in _NO else None


def _same_version(value: str, wanted: str) -> bool:
    try:
        one = Version(value)
        other = Version(wanted)
    except ValueError:
        return False
    return one == other or (other.local is None and Version(one.public) == other)


def lies_in(file: str, folder: str) -> bool:
    """Say whether a path is a folder or inside it, as their system compares paths."""
    return _path(file).is_relative_to(_path(folder)) if folder else False


def _path(text: str) -> PurePath:
    """Return a path as its system compares it: Windows ignores case and the kind of slash."""
    windows = text[1:2] == ":" or text.startswith("\\\\")
    return PureWindowsPath(text) if windows else PurePosixPath(text)


def require_passed(report: VerifyReport | None, next_step: str = "") -> None:
    """Raise the error that names the failed checks of a report.

    Raises:
        VerifyFailed: a check failed.
    """
    if report and report.failed:
        raise VerifyFailed(
            f"This torch is not what the plan promised: {counted(len(report.failed), 'check')} failed.",
            looked=tuple(f"{check.check}: {check.detail}" for check in report.failed),
            next_step=next_step,
        )


# Torch's own libraries, which must come from its package.
_OWN: Final = re.compile(r"(?:lib)?(?:c10|torch|caffe2|shm)(?:_\w+)?\.(?:so|dll)\b", re.IGNORECASE)
# CUDA's libraries, from the toolkit, the wheels or the system; the driver (libcuda) is always the system's.
_CUDA: Final = re.compile(
    r"(?:lib)?(?:cudart|cudnn|cublas|cufft|curand|cusolver|cusparse|nccl|nvrtc|nvjitlink|cupti|nvtoolsext)",
    re.IGNORECASE,
)
_SYSTEM: Final = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "C:\\Windows")


def misplaced(
    loaded: Sequence[str], package: Sequence[str], places: Sequence[str], built: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return the problem with the folders that libraries were loaded from, and the libraries concerned.

    Args:
        loaded: the files, without links.
        package: the folders of torch.
        places: the folders that the plan and its Python bring libraries from.
        built: those of `loaded` that lie in a tree that CMake builds in.
    """
    wrong = []
    elsewhere = []
    for file in loaded:
        name = re.split(r"[/\\]", file)[-1]
        if _inside(file, package):
            continue
        if _OWN.match(name):
            wrong.append(f"{file} was loaded, and torch's own libraries are in {' and '.join(package)}")
        elif file in built:
            wrong.append(f"{file} was loaded, which is in a build tree")
        elif not _inside(file, (*places, *_SYSTEM)):
            if _CUDA.match(name):
                wrong.append(f"{file} was loaded, which is not of the CUDA that was planned")
            elsewhere.append(file)
    return wrong, elsewhere


def stray_folders(
    rpaths: Mapping[str, Sequence[str]], package: Sequence[str], checkout: str, built: Collection[str]
) -> Iterator[str]:
    """Yield the RPATH entries that point from the package into a build tree, or to the current folder.

    Args:
        rpaths: what each library has in RPATH and RUNPATH.
        package: the folders of torch.
        checkout: the checkout that it was built in.
        built: the folders among them, without `$ORIGIN`, that lie in a tree that CMake builds in.
    """
    for file, folders in rpaths.items():
        for text in folders:
            folder = expand(text, file)
            if not folder.startswith("/"):
                yield f"{file} has {text!r} in its RPATH, which is looked for in the current folder"
            elif not _inside(folder, package) and (folder in built or lies_in(folder, checkout)):
                yield f"{file} has {text!r} in its RPATH, which is in a build tree and not in the package"


def expand(text: str, file: str) -> str:
    """Return the folder of an RPATH entry of a file."""
    folder = re.sub(r"\$(?:ORIGIN\b|\{ORIGIN\})", lambda _: posixpath.dirname(file), text)
    return posixpath.normpath(folder) if folder.startswith("/") else folder


def _inside(file: str, folders: Sequence[str]) -> bool:
    return any(lies_in(file, folder) for folder in folders)

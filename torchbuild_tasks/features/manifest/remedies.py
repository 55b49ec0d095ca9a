"""Names for each difference between a recorded build and its replay the command or step that removes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from torchbuild_tasks.features.manifest.compare import ABSENT, Difference
from torchbuild_tasks.model.record import Manifest, Program
from torchbuild_tasks.values import replace

# What a plan can know before the build: not what it ran, and how that ended.
KNOWN_BEFORE: Final = (
    *("source", "machine", "toolchain", "python", "requirements", "helpers"),
    *("decided", "environment", "env file"),
)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a replay: the checkout, the Python, the manifest's file, how a package is installed."""

    root: str
    python: str
    manifest: str
    install: Callable[[str], str]


def with_remedies(found: tuple[Difference, ...], manifest: Manifest, place: Place) -> tuple[Difference, ...]:
    """Return the differences, each with what would remove it, where something does."""
    makers = {
        "source": _source_remedy,
        "toolchain": _toolchain,
        "python": _python_remedy,
        "requirements": _requirement,
        "helpers": _helper,
        "decided": _decision_remedies,
        "environment": _variable,
    }
    return tuple(
        replace(each, remedy=makers[each.group](each, manifest, place)) if each.group in makers else each
        for each in found
    )


def _source_remedy(found: Difference, manifest: Manifest, place: Place) -> str:
    if manifest.source_problem and found.there == ABSENT:
        return ""  # it does not know what was there
    kind, _, path = found.name.partition(" ")
    if found.name == "commit":
        url = next((each.url for each in manifest.repositories if not each.path), "") or "origin"
        return _checkout(place.root, url, found.there) + (
            f" && git -C {_quoted(place.root)} submodule update --init --recursive"
        )
    if kind == "submodule":
        return _submodule(found, path, place)
    if kind == "changes":
        return _changes(found, path.removeprefix("in "), place)
    if kind == "untracked":
        gone = "a manifest holds its hash, not its content: copy it from there"
        return gone if found.there != ABSENT else "it was not there: move it away"
    return ""


def _checkout(folder: str, url: str, commit: str) -> str:
    git = f"git -C {_quoted(folder)}"
    return f"{git} fetch {_quoted(url)} {commit} && {git} checkout --detach {commit}"


def _submodule(found: Difference, path: str, place: Place) -> str:
    if found.there == ABSENT or " " in found.there:
        return ""
    if found.here == ABSENT or " " in found.here:
        return f"git -C {_quoted(place.root)} submodule update --init --recursive"
    return _checkout(f"{place.root}/{path}", "origin", found.there)


def _changes(found: Difference, path: str, place: Place) -> str:
    git = f"git -C {_quoted(f'{place.root}/{path}'.rstrip('/'))}"
    away = f"{git} stash" if found.here != ABSENT else ""
    if found.there == ABSENT:
        return away
    folder = f"{place.root}/.torchbuild/diffs"  # a whole path: git -C would take another from there
    taken = f"torchbuild replay {_quoted(place.manifest)} --out {_quoted(folder)}"
    applied = f"{git} apply {_quoted(f'{folder}/{diff_name(path)}')}"
    return " && ".join(filter(None, (away, taken, applied)))


def diff_name(path: str) -> str:
    """Return the file name of the diff of a submodule; "" is torch itself."""
    return f"{path.replace('/', '-') or 'torch'}.diff"


def _toolchain(found: Difference, manifest: Manifest, place: Place) -> str:
    program = next((each for each in manifest.programs if each.name == found.name), None)
    if program is None or not program.version or program.version == found.here.partition("  ")[0]:
        return ""
    if found.name in ("CXX", "CC", "CUDAHOSTCXX"):
        return _compiler(program, place)
    if found.name in ("cmake", "ninja"):
        return f"{_quoted(place.python)} -m pip install {found.name}=={program.version}"
    if found.name == "nvcc":
        series = ".".join(program.version.split(".")[:2])
        return f"install CUDA {series}, or let it be put together: build --cuda-toolkit pypi:{series}"
    return ""


def _compiler(program: Program, place: Place) -> str:
    major = str(program.version).partition(".")[0]
    name = program.path.replace("\\", "/").rpartition("/")[2]
    if "clang" in name:
        return place.install(f"clang-{major}")
    if name.startswith(("g++", "gcc", "c++", "cc")):
        return f"{place.install(f'g++-{major}')}, then --set CXX=g++-{major}"
    return f"install {name} {program.version}"


def _python_remedy(found: Difference, manifest: Manifest, place: Place) -> str:
    if found.name != "version" or manifest.python_version is None:
        return ""
    return f"install Python {manifest.python_version} and name it: --python PATH"


def _requirement(found: Difference, manifest: Manifest, place: Place) -> str:
    package = next((each for each in manifest.requirements if each.name == found.name), None)
    if package is None:
        return f"{_quoted(place.python)} -m pip uninstall {found.name}"
    if found.name == "torch" or package.origin.startswith(("editable", "file:")):
        return ""
    return f"{_quoted(place.python)} -m pip install {package.name}=={package.version}"


def _helper(found: Difference, manifest: Manifest, place: Place) -> str:
    return "torchbuild helpers fetch" if found.there != ABSENT else ""


def _decision_remedies(found: Difference, manifest: Manifest, place: Place) -> str:
    if found.name != "tool":
        return ""
    name, _, version = manifest.tool.partition(" ")
    return f"pip install {name.replace('_', '-')}=={version}"


def _variable(found: Difference, manifest: Manifest, place: Place) -> str:
    if found.there == ABSENT or " " in found.name:
        return ""
    return f"--set {found.name}={_quoted(found.there)}" if "<checkout>" not in found.there else ""


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text else text

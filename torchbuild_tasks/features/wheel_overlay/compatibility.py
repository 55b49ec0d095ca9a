"""Decide whether code can be compiled against a wheel's libraries, by how the wheel was built."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from torchbuild_tasks.catalog.match import series
from torchbuild_tasks.features.wheel_overlay.choose import obstacle
from torchbuild_tasks.model import Finding

# The settings that change how torch_python is compiled and which symbols the libraries have, by their names
# in torch.__config__ and in the header that CMake writes for it (caffe2/core/macros.h.in of 2.6.0).
_SHARED: Final = (
    *("CUDA_VERSION", "USE_CUDA", "USE_CUDNN", "USE_CUSPARSELT", "USE_DISTRIBUTED", "USE_GLOO", "USE_MPI"),
    *("USE_NCCL", "USE_NUMPY", "USE_ROCM"),
)
_FLAGS: Final = "CXX_FLAGS"
_COMPILER: Final = "compiler"
_SETTING: Final = re.compile(r'\{"(\w+)", (?:R"cmake\(|")(.*?)(?:\)cmake)?"\}', re.DOTALL)
_DEFINED: Final = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+(?:\(\))?)[ \t]*(.*?)[ \t\r]*$")
_ABI_FLAG: Final = re.compile(r"(?<!\S)(?:[-/]D|-fabi-version=)\S+")
_ON: Final = ("1", "ON", "TRUE", "YES")
# CMake's name: torch's name
_FAMILIES: Final = {"GNU": "GCC", "Clang": "clang", "AppleClang": "clang", "MSVC": "MSVC"}


def read_settings(header: str) -> dict[str, str]:
    """Return the build settings, by name, of the header that CMake writes for torch.__config__."""
    return dict(_SETTING.findall(header))


def shared_settings(reported: Mapping[str, str]) -> dict[str, str]:
    """Return those of the settings that a torch reports which torch_python must share."""
    return {name: reported[name] for name in (_COMPILER, _FLAGS, *_SHARED) if name in reported}


def find_differences(
    wheel: Mapping[str, str],
    here: Mapping[str, str],
    compiler: tuple[str, str],
    *,
    reads: Callable[[str], bool] | None = None,
) -> tuple[Finding, ...]:
    """Compare how the wheel was built with this configuration; each finding has the flag that adapts it.

    Args:
        wheel: `shared_settings` of the wheel's torch.
        here: `read_settings` of the build tree.
        compiler: CMake's name for the compiler, and its version.
        reads: says whether the compiled code uses a definition; given for c10, which uses none of torch.
    """
    findings = list(_compare_compilers(wheel.get(_COMPILER, ""), compiler))
    for name in _SHARED if reads is None else ():
        theirs = wheel.get(name, "")
        ours = here.get(name)
        if ours is not None and (_is_on(theirs), _series(theirs)) != (_is_on(ours), _series(ours)):
            text = f"{name}: the wheel has {theirs or 'nothing'}, and this configuration {ours or 'nothing'}"
            findings.append(obstacle(text, _matching_flag(name, theirs)))
    flags = set(_ABI_FLAG.findall(wheel.get(_FLAGS, "")))
    for flag in sorted(flags ^ set(_ABI_FLAG.findall(here.get(_FLAGS, "")))):
        name, _, value = flag[2:].partition("=")
        if reads is not None and not reads(name):
            continue
        which, wanted = ("the wheel", value or "1") if flag in flags else ("this configuration", "")
        text = f"{flag}: only {which} is compiled with it"
        findings.append(obstacle(text, _matching_flag(name, wanted)))
    return tuple(findings)


def find_header_differences(name: str, wheel: str, here: str) -> tuple[Finding, ...]:
    """Compare the definitions in a header that CMake writes.

    Args:
        name: the name of the header in the wheel.
        wheel: its text in the wheel.
        here: its text in the build tree.
    """
    theirs = dict(_DEFINED.findall(wheel))
    ours = dict(_DEFINED.findall(here))
    differing = sorted(key for key in theirs.keys() | ours if theirs.get(key) != ours.get(key))
    return tuple(
        obstacle(
            f"{key} of {name}: the wheel has {_shown(theirs.get(key))}, and this configuration "
            f"{_shown(ours.get(key))}",
            _matching_flag(key, ""),
        )
        for key in differing
    )


def _shown(value: str | None) -> str:
    return "nothing" if value is None else value or "it defined"


def _is_on(value: str) -> bool | None:
    """Say whether a switch is on; None for a value that is no switch, such as a version."""
    return None if re.match(r"\d+\.", value) else value.upper() in _ON


def _series(value: str) -> str:
    return series(value) if _is_on(value) is None else ""


def _matching_flag(name: str, wanted: str) -> str:
    """Return the flag that makes this configuration like the wheel's; "" if none is known."""
    if name == "CUDA_VERSION":
        return f"--cuda --cuda-toolkit {_series(wanted)}" if wanted else "--cpu"
    if name == "USE_CUDA":
        return "--cuda" if _is_on(wanted) else "--cpu"
    if name == "NDEBUG":
        return f"--build-type {'Release' if wanted else 'Debug'}"
    if name in _SHARED or name.startswith("USE_"):
        return f"--set {name}={int(bool(_is_on(wanted)))}"
    return f"--set {name}={wanted}" if name == "_GLIBCXX_USE_CXX11_ABI" and wanted else ""


def _compare_compilers(theirs: str, ours: tuple[str, str]) -> Iterator[Finding]:
    """Yield a finding if the compiler here is another, or older than the wheel's."""
    family, _, version = theirs.partition(" ")
    here = f"{_FAMILIES.get(ours[0], ours[0])} {ours[1]}"
    other = family != here.partition(" ")[0]
    if theirs and (other or (family != "MSVC" and _major(version) > _major(ours[1]))):
        text = f"compiler: the wheel was built by {theirs}, and this is {here}"
        yield obstacle(text, f"--set CXX= and CC= of {family} {version}")


def _major(version: str) -> int:
    return int(version.partition(".")[0]) if version.partition(".")[0].isdecimal() else 0

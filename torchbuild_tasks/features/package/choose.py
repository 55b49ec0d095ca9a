"""Decide the bundled and external libraries of a package, its metadata, and the report of its size."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchbuild_tasks.catalog.cuda import PartRow
from torchbuild_tasks.catalog.match import parse_requirement
from torchbuild_tasks.catalog.packaging import CondaNameRow, IndexLimitRow, RpathRow, SharedRow, SmallerRow
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model.closure import Image
from torchbuild_tasks.model.wheel import Member
from torchbuild_tasks.text.show import size_text
from torchbuild_tasks.text.words import first_few
from torchbuild_tasks.values import toml_value

CUDA_LIBRARIES: Final = ("depend", "bundle", "system")
LIB: Final = "torch/lib"
_LARGEST: Final = 8  # files that the report of the size names

Way = Literal["target", "graft", "depend", "system", "refused"]


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """A library outside of the wheel: the libraries that need it, what is done about it, and its row."""

    name: str
    users: tuple[str, ...]
    way: Way
    row: SharedRow | None = None


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The wanted package.

    `provided` are patterns of what every machine of the platform has, `graft` of what is copied beside the
    rows. `cuda` is the major of the wheel's CUDA, "" without, `cuda_libraries` what happens to NVIDIA's.
    """

    windows: bool
    provided: frozenset[str]
    shared: tuple[SharedRow, ...]
    cuda: str = ""
    cuda_libraries: str = "system"
    graft: tuple[str, ...] = ()


# ---------------- libraries


def outside(images: Mapping[str, Image], wanted: Wanted) -> tuple[Outside, ...]:
    """Return every library that files of the wheel need and that is not in it, with its treatment.

    Args:
        images: what each library of the wheel says, by its path in there.
        wanted: what the package is to be.
    """
    inside = {_key(posixpath.basename(path), wanted) for path in images}
    inside |= {_key(image.name, wanted) for image in images.values()}
    users: dict[str, list[str]] = {}
    for path, image in sorted(images.items()):
        for name in (*image.needed, *image.delayed):
            if _key(name, wanted) not in inside:
                users.setdefault(_key(name, wanted), []).append(path)
    return tuple(
        Outside(name=name, users=tuple(paths), way=_way(name, wanted), row=row_for(name, wanted))
        for name, paths in users.items()
    )


def _key(name: str, wanted: Wanted) -> str:
    return name.lower() if wanted.windows else name


def row_for(name: str, wanted: Wanted) -> SharedRow | None:
    """Return the first row for the library, of this CUDA or of any."""
    rows = (row for row in wanted.shared if row.cuda in ("", wanted.cuda))
    return next((row for row in rows if fits(name, row.files)), None)


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a name matches one of these patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _way(name: str, wanted: Wanted) -> Way:
    if re.search(
        r"[/\\:]", name
    ):  # a path in the wheel could lead elsewhere, and a copy would be written there
        return "refused"
    if fits(name, (_key(pattern, wanted) for pattern in wanted.graft)):
        return "graft"
    if fits(name, wanted.provided):
        return "target"
    row = row_for(name, wanted)
    if row is None:
        return "refused"
    if row.way != "cuda":
        return row.way
    if wanted.cuda_libraries == "bundle":
        return "graft"
    return "depend" if wanted.cuda_libraries == "depend" and row.project else "system"


def refusals(libraries: Sequence[Outside], places: Mapping[str, str]) -> tuple[str, ...]:
    """Return messages about libraries that only this machine has, with their users and paths."""
    return tuple(
        f"{each.name} ({places.get(each.name) or 'not found here either'}), which "
        f"{first_few(each.users, 3)} {'needs' if len(each.users) == 1 else 'need'}"
        for each in libraries
        if each.way == "refused"
    )


def rpath_of(path: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the RPATH of a library of the wheel: NVIDIA's wheels, its folder, torch/lib.

    Args:
        path: its place in the wheel; `folders` are below site-packages, where the wheel goes.
        folders: those of NVIDIA's wheels, () without.
    """
    here = posixpath.dirname(path)
    up = "/".join([".."] * (here.count("/") + 1)) if here else "."
    own = () if here == LIB else (f"$ORIGIN/{posixpath.relpath(LIB, here or '.')}",)
    return (*(f"$ORIGIN/{up}/{folder}" for folder in folders), "$ORIGIN", *own)


def cuda_folders(rows: Sequence[RpathRow], cuda: str) -> tuple[str, ...]:
    """Return upstream's RPATH folders of NVIDIA's wheels for a major; empty without a row."""
    return next((row.folders for row in rows if row.cuda == cuda), ())


# ---------------- metadata


def local_version(version: str, local: str | None, cuda: str) -> str:
    """Return the version with the requested local part.

    Args:
        version: as the wheel has it.
        local: auto (cpu, cu126), none, or one's own; None leaves it.
        cuda: the CUDA release that torch was built with, "" for none.

    Raises:
        UsageError: it is not a local part of a version (PEP 440).
    """
    public = version.partition("+")[0]
    if local is None:
        return version
    label = {"none": "", "auto": f"cu{cuda.replace('.', '')}" if cuda else "cpu"}.get(local, local)
    labelled = f"{public}+{label}" if label else public
    try:
        Version(labelled)
    except InvalidVersion:
        raise UsageError(
            f"--local {local} is not a local part of a version",
            next_step="It is letters, digits and dots (PEP 440): cu126, mine.1; or none, or auto.",
        ) from None
    return labelled


def source_version(
    text: str, commit: str, variables: Mapping[str, str], local: str | None, *, changed: bool
) -> str:
    """Return the version of a source distribution: the one of upstream's build in git.

    Args:
        text: what version.txt says.
        commit: what is checked out.
        variables: PYTORCH_BUILD_VERSION and PYTORCH_BUILD_NUMBER go before version.txt.
        local: none, or one's own local part; None and auto leave upstream's.
        changed: files differ from the commit, which the version then says.

    Raises:
        UsageError: it is not a version (PEP 440).
    """
    if own := variables.get("PYTORCH_BUILD_VERSION"):
        number = variables.get("PYTORCH_BUILD_NUMBER") or "1"
        version = f"{own}.post{number}" if number.isdigit() and int(number) > 1 else own
    else:
        version = f"{text}+git{commit[:7]}{'.dirty' if changed else ''}"
    if local not in (None, "auto"):
        version = local_version(version, local, "")
    try:
        return str(Version(version))
    except InvalidVersion:
        raise UsageError(
            f"{version!r} is not a version, so no source distribution can have it.",
            next_step="It comes from PYTORCH_BUILD_VERSION or version.txt; PEP 440 describes its form.",
        ) from None


def mislabelled(version: str, cuda: str) -> str:
    """Return the warning that the local part names another CUDA than torch's; "" for none."""
    label = version.partition("+")[2]
    match = re.fullmatch(r"(cpu|cu(\d{2,4}))(\..*)?", label)
    real = f"cu{cuda.replace('.', '')}" if cuda else "cpu"
    if match is None or match[1] == real:
        return ""
    return f"The version says {match[1]} and torch was built with {f'CUDA {cuda}' if cuda else 'no CUDA'}."


def requirements(
    libraries: Sequence[Outside], parts: Sequence[PartRow], cuda: str, machine: str
) -> tuple[str, ...]:
    """Return the NVIDIA wheels that a wheel depends on, in the toolkit's versions if a row has them."""
    named: dict[str, str] = {}
    for each in libraries:
        if each.way == "depend" and each.row is not None:
            named[each.row.project] = _version_of(each.row, parts, cuda, machine)
    return tuple(
        f'{project}{f"=={version}" if version else ""}; platform_system == "Linux"'
        for project, version in named.items()
    )


def _version_of(row: SharedRow, parts: Sequence[PartRow], cuda: str, machine: str) -> str:
    wanted = ("linux", machine, row.part)
    versions = (
        part.version
        for part in parts
        if (part.os, part.arch, part.name) == wanted and part.cuda.startswith(f"{cuda}.") and part.project
    )
    return next(versions, "")


def edit_metadata(
    text: str, version: str, add: Sequence[str], shared: Sequence[SharedRow], keep: bool
) -> str:
    """Return METADATA with another version and other requirements of NVIDIA's libraries.

    Args:
        text: the present METADATA; the description below the first empty line is kept.
        version: what it says then.
        add: requirements to add; an existing requirement of a project is kept.
        shared: the rows, which name NVIDIA's projects.
        keep: NVIDIA's requirements stay; else they go, since nothing is looked for in those wheels.
    """
    head, gap, body = text.partition("\n\n")
    projects = {canonicalize_name(row.project) for row in shared if row.project} | {"cuda-toolkit"}
    lines = []
    present = set[str]()
    for line in head.split("\n"):
        name, _, value = line.partition(":")
        if name.lower() == "version":
            line = f"Version: {version}"
        elif name.lower() == "requires-dist" and (project := _project(value)):
            if project in projects and not keep:
                continue
            present.add(project)
        lines.append(line)
    lines += [f"Requires-Dist: {each}" for each in add if _project(each) not in present]
    return "\n".join(lines) + gap + body


def _project(requirement: str) -> str:
    parsed = parse_requirement(requirement.strip())
    return canonicalize_name(parsed.name) if parsed else ""


def edit_version(text: str, version: str) -> str:
    """Return torch/version.py with another `__version__`."""
    return re.sub(
        r"""(?m)^(__version__\s*(?::\s*\w+\s*)?=\s*)(['"]).*?\2""", rf"\g<1>\g<2>{version}\g<2>", text
    )


def uv_settings(path: str) -> str:
    """Return the lines of pyproject.toml by which uv installs torch from this wheel.

    Without the override a dependency that pins another torch ends in a conflict; a source alone counts for
    the project's own dependencies only. Tried with uv 0.13.9;
    https://docs.astral.sh/uv/concepts/resolution/#dependency-overrides
    """
    return (
        '[tool.uv]\noverride-dependencies = ["torch"]\n\n'
        f"[tool.uv.sources]\ntorch = {{ path = {toml_value(path)} }}\n"
    )


# ---------------- size


class SizeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a package, installed and packed, its largest files, and ways to reduce it."""

    packed: int
    size: int
    largest: tuple[Member, ...]
    too_large_for: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def report_size(
    packed: int,
    members: Sequence[Member],
    rows: Sequence[SmallerRow],
    limits: Sequence[IndexLimitRow],
    *,
    cuda: bool,
    debug: int = 0,
) -> SizeReport:
    """Return the report of the size of a package.

    Args:
        packed: the bytes of the file.
        rows, limits: what makes a wheel smaller; how large a file may be where.
        cuda: it was built with CUDA.
        debug: bytes of debug information that are still in it.
    """
    advice = []
    if debug:
        advice.append(
            f"{size_text(debug)} of debug information: leave --keep-debug out, or have strip installed"
        )
    for row in rows:
        share = sum(member.packed for member in members if fits(member.name.removeprefix("lib"), row.files))
        if share >= max(1, row.share * sum(member.packed for member in members)) and (
            row.device != "cuda" or cuda
        ):
            advice.append(f"{size_text(share)} are {row.what}: {row.advice}")
    return SizeReport(
        packed=packed,
        size=sum(member.size for member in members),
        largest=tuple(sorted(members, key=lambda each: -each.packed)[:_LARGEST]),
        too_large_for=tuple(limit.place for limit in limits if packed > limit.size),
        advice=tuple(advice),
    )


# ---------------- conda


class CondaPackage(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a conda package; `left_out` are requirements that conda cannot express."""

    name: str
    version: str
    build: str
    subdir: str
    python: str
    depends: tuple[str, ...]
    constrains: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def conda_package(
    *,
    version: str,
    cuda: str,
    tags: tuple[str, str],
    machine: str,
    platform: str,
    requires: Sequence[str],
    rows: Sequence[CondaNameRow],
) -> CondaPackage:
    """Return the name, build and requirements of a wheel's conda package.

    It is not called pytorch, because it is not a build of conda-forge's: its libraries are its own, and who
    depends on that one's would get other symbols. It keeps that one out of its environment, since both are
    the same folder there. The local part of the version stands in the build string, as upstream's did.

    Args:
        version: torch's, with its local part.
        cuda: the CUDA that it was built with, "" for none.
        tags: the wheel's for Python and its ABI ("cp311", "cp311").
        machine: x86_64 or aarch64.
        platform: the tag that its libraries allow.
        requires: the requirements in its METADATA.
        rows: where conda's name is another than the package index's.
    """
    number = re.fullmatch(r"cp(\d)(\d+)", tags[0])
    if number is None or not tags[1].startswith(tags[0]):
        raise UsageError(
            f"The wheel is for {'-'.join(tags)}; a conda package is made for one version of CPython."
        )
    major, minor = number.groups()
    python = f"{major}.{minor}"
    parsed = Version(version)
    device = f"cuda{cuda.replace('.', '')}" if cuda else "cpu"
    local = re.sub(r"[^a-z0-9.]", ".", parsed.local or "")
    own = f"_{local}" if local and local not in (device, device.replace("cuda", "cu")) else ""
    needed, left_out = _conda_requirements(requires, rows, python, platform)
    depends = [
        f"python >={python},<{major}.{int(minor) + 1}.0a0",
        f"python_abi {python}.* *_{tags[1]}",
        *([f"__cuda >={cuda.partition('.')[0]}"] if cuda else ()),
        *needed,
    ]
    if glibc := re.match(r"manylinux_(\d+)_(\d+)_", platform):
        depends.insert(2, f"__glibc >={glibc[1]}.{glibc[2]},<3.0a0")
    systems = {"x86_64": "64", "aarch64": "arm64" if platform.startswith("win") else "aarch64"}
    return CondaPackage(
        name="pytorch-local",
        version=parsed.public,
        build=f"{device}_py{major}{minor}{own}_0",
        subdir=f"{'win' if platform.startswith('win') else 'linux'}-{systems[machine]}",
        python=python,
        depends=tuple(depends),
        constrains=("pytorch <0a0", "libtorch <0a0"),
        left_out=left_out,
    )


def _conda_requirements(
    requires: Sequence[str], rows: Sequence[CondaNameRow], python: str, platform: str
) -> tuple[list[str], tuple[str, ...]]:
    """Return requirements in conda's form, and those left out: of extras, and by URL."""
    windows = platform.startswith("win")
    where = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "win32" if windows else "linux",
        "platform_system": "Windows" if windows else "Linux",
        "platform_machine": "aarch64" if platform.endswith(("aarch64", "arm64")) else "x86_64",
        "os_name": "nt" if windows else "posix",
        "extra": "",
    }
    needed = []
    left_out = []
    for text in requires:
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate(where):
            continue
        if requirement.url or requirement.extras:
            left_out.append(text)
            continue
        name = canonicalize_name(requirement.name)
        row = next((row for row in rows if row.project == name), None)
        needed.append(f"{row.name if row else name} {requirement.specifier}".strip())
    return sorted(needed), tuple(left_out)

"""The names of packages by package manager, and the command that installs one on this system."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Sequence
from itertools import chain
from typing import Final

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.catalog.packaging import InstallerRow, PackageRow
from torchbuild_tasks.model import Facts, Tool
from torchbuild_tasks.values import replace

# The oldest GCC of conda-forge's gxx_linux-*, and the processors that it is built for: UNCONFIRMED.
CONDA_GCC: Final = 7
_CONDA_ARCHS: Final = ("x86_64", "aarch64", "ppc64le")
_MAJORS: Final = 40  # the newest major of a compiler that is compared with a specifier
# Where compilers lie that come with an assembler of their own.
OWN_BINUTILS: Final = ("/opt/rh/", "/nix/store/", "/home/linuxbrew/")
INSTALLABLE: Final = "installable"  # how a compiler was "found" that is not here and can be installed
MINIFORGE: Final = "https://conda-forge.org/download"


def _installer_row(facts: Facts, catalog: Catalog) -> InstallerRow | None:
    if facts.host.os not in ("linux", "windows"):
        return None
    named = facts.host.distribution or ""
    known = (row for row in catalog.installer if named.startswith(row.distributions))
    made_from = (row for each in facts.host.like for row in catalog.installer if each in row.like)
    row = next(chain(known, made_from), None)
    return _as_root(row) if row and facts.host.root else row


def _as_root(row: InstallerRow) -> InstallerRow:
    """Return a row for root, who needs no sudo, which an image of a container has not."""
    return replace(
        row,
        command=without_sudo(row.command),
        before=without_sudo(row.before),
        more={major: without_sudo(line) for major, line in row.more.items()},
        repositories={name: without_sudo(line) for name, line in row.repositories.items()},
    )


def without_sudo(text: str) -> str:
    """Return a command as root types it."""
    return text.replace("sudo ", "")


def installer(facts: Facts, catalog: Catalog) -> str:
    """Say how this system's package manager is called, with `{package}`; "" where no row knows it."""
    row = _installer_row(facts, catalog)
    return f"{row.before} && {row.command}" if row and row.before else row.command if row else ""


def system_manager(facts: Facts, catalog: Catalog) -> str:
    """Return the name of that package manager: apt, dnf ...; "" where no row knows it."""
    row = _installer_row(facts, catalog)
    return row.command.removeprefix("sudo ").partition(" ")[0] if row else ""


def package_row(catalog: Catalog, package: str) -> tuple[PackageRow | None, str]:
    """Return the row of a thing such as "g++" or "g++-12", and the version in it ("12", else "")."""
    stem, _, version = package.rpartition("-")
    for row in catalog.package:
        if row.name == package:
            return row, ""
        if row.name == f"{stem}-*":
            return row, version
    return None, ""


def package_name(catalog: Catalog, manager: str, package: str) -> str:
    """Return a package manager's name of it; "" where no row has one. yum's names are those of dnf."""
    row, version = package_row(catalog, package)
    return row.names.get(manager.replace("yum", "dnf"), "").replace("*", version) if row else ""


def name_here(facts: Facts, catalog: Catalog, package: str) -> str:
    """Return what this system calls it; "" where it has none, or no row knows."""
    system = _installer_row(facts, catalog)
    row, version = package_row(catalog, package)
    if system and row and row.name in system.names:
        return system.names[row.name].replace("*", version)
    return package_name(catalog, system_manager(facts, catalog), package)


def repository_line(facts: Facts, catalog: Catalog, package: str) -> str:
    """Return the command that turns on the repository which has it; "" where it is on, or no row knows."""
    system = _installer_row(facts, catalog)
    row = package_row(catalog, package)[0]
    line = system.repositories.get(row.repository, "") if system and row else ""
    return line.replace("{arch}", facts.host.arch)


def install_line(facts: Facts, catalog: Catalog, package: str) -> str:
    """Return the command that installs it, as one would type it; "" where no row has it."""
    name = name_here(facts, catalog, package)
    system = _installer_row(facts, catalog)
    if not name or system is None:
        return ""
    command = system.command.format(package=shlex.quote(name))
    return " && ".join(filter(None, (system.before, repository_line(facts, catalog, package), command)))


def how_to_install(facts: Facts, catalog: Catalog, package: str) -> str:
    """Return that command, or in words what to install where no row has a name for it."""
    return install_line(facts, catalog, package) or _in_words(package)


def _in_words(package: str) -> str:
    return f"the package of this system for {package}"


def offers_gcc(facts: Facts, catalog: Catalog, major: str) -> bool:
    """Say whether this system has a package of a GCC, as far as its row knows."""
    row = _installer_row(facts, catalog)
    return row is None or not row.gcc or bool(admits(row.gcc, major))


@functools.lru_cache(maxsize=256)
def gcc_majors(figure: str, newest: int | None) -> tuple[int, ...]:
    """Return the majors of a compiler that a figure of a row admits, up to the newest."""
    span = f"{figure},<{newest + 1}" if newest else figure
    return tuple(major for major in range(4, _MAJORS) if admits(span.strip(","), f"{major}.0"))


def gcc_release(facts: Facts, catalog: Catalog, major: int) -> str:
    """Return the release of a GCC that a package here brings: the last of its major if no row knows."""
    row = _installer_row(facts, catalog)
    return row.releases.get(str(major), f"{major}.9") if row else f"{major}.9"


def installable_gccs(facts: Facts, catalog: Catalog, majors: Sequence[int]) -> list[int]:
    """Return those of these majors that can be installed: what this system has a package of comes first."""
    row = _installer_row(facts, catalog)
    known = [major for major in majors if offers_gcc(facts, catalog, str(major))]
    conda = _has_conda_gcc(facts)
    more = [m for m in majors if (row and str(m) in row.more) or (conda and m >= CONDA_GCC)]
    return list(dict.fromkeys([*known, *more]))


def how_to_install_gcc(facts: Facts, catalog: Catalog, majors: Sequence[int]) -> str:
    """Return how to install a GCC of these majors, the best first; what this system has comes before."""
    known = [major for major in majors if offers_gcc(facts, catalog, str(major))]
    if known:
        return how_to_install(facts, catalog, f"g++-{known[0]}")
    row = _installer_row(facts, catalog)
    more = [row.more[str(major)] for major in majors if row and str(major) in row.more]
    more = [command.replace("{before}", row.before) for command in more] if row else []
    return next(iter(more), "") or conda_gcc(facts, majors[0]) or _in_words(f"g++-{majors[0]}")


def conda_gcc(facts: Facts, major: int) -> str:
    """Return the command that installs conda-forge's GCC of a major, and names it by CC and CXX.

    "" where it has none here.
    """
    if major < CONDA_GCC or not _has_conda_gcc(facts):
        return ""
    arch = facts.host.arch.replace("x86_64", "64")
    return with_conda(
        facts, f"conda create -n gxx -c conda-forge gxx_linux-{arch}={major} && conda activate gxx"
    )


def _has_conda_gcc(facts: Facts) -> bool:
    """Say whether conda-forge has compilers for this machine: it has none for musl."""
    host = facts.host
    return host.arch in _CONDA_ARCHS and not (host.libc or "").startswith("musl")


def with_conda(facts: Facts, line: str) -> str:
    """Return a command of conda, and where that is from if none is known to be here."""
    here = any(python.environment == "conda" for python in facts.pythons)
    return line if here else f"{line}, with conda from {MINIFORGE}"


def is_assembled_so(facts: Facts, binutils: str, tool: Tool) -> bool:
    """Say whether a compiler's assembler is of these releases, which ld beside it tells; "" is any.

    Toolsets and the compilers of conda, Nix and Homebrew bring one along, whose release is not looked at, and
    what is yet to be installed has one that fits.
    """
    path = str(tool.path)
    linker = facts.tool("ld")
    own = path.startswith(OWN_BINUTILS) or "-conda-" in path or tool.found_via == INSTALLABLE
    return not binutils or (not own and linker is not None and bool(admits(binutils, linker.version)))

"""The errors of this tool: one class has one exit code and prints one paragraph.

The fronts hold the only `except TorchbuildError`. Exit code 1 is left to bugs, so a
script can tell "the tool is broken" from each of the situations below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from torchbuild_tasks.model import Diagnosis, Finding


INSTALL_GIT = "Install git: apt, dnf, zypper, pacman and apk call it git, winget calls it Git.Git."


class TorchbuildError(Exception):
    """Base class of all errors that are shown to the user.

    Args:
        what: what happened, as a sentence.
        looked: what was looked for and where, one line each.
        next_step: what to do now, as a sentence or several lines.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, looked: tuple[str, ...] = (), next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.looked = looked
        self.next_step = next_step


class UsageError(TorchbuildError):
    """A flag, a value or a settings file that cannot be understood."""

    exit_code = 2


class PlanRefused(TorchbuildError):
    """The plan found that the build cannot work; nothing was written."""

    exit_code = 3

    def __init__(self, what: str, *, findings: tuple[Finding, ...] = (), next_step: str = "") -> None:
        super().__init__(what, next_step=next_step)
        self.findings = findings


class EnvFileError(TorchbuildError):
    """An env file cannot be written, cannot carry a value, or does not load in its shell."""

    exit_code = 4


class RequirementsError(TorchbuildError):
    """The Python environment of the build, or packages of the system, could not be installed."""

    exit_code = 5


class BuildFailed(TorchbuildError):
    """A command of the build failed; the first error block is in `looked`."""

    exit_code = 6

    def __init__(
        self,
        what: str,
        *,
        looked: tuple[str, ...] = (),
        diagnoses: tuple[Diagnosis, ...] = (),
        next_step: str = "",
    ) -> None:
        super().__init__(what, looked=looked, next_step=next_step)
        self.diagnoses = diagnoses


class VerifyFailed(TorchbuildError):
    """The built torch is not what the plan promised."""

    exit_code = 7


class TreeBusy(TorchbuildError):
    """Another run holds this checkout."""

    exit_code = 8


class CleanRefused(TorchbuildError):
    """A file that must be kept, or whose removal the user declined, would be deleted."""

    exit_code = 9


class DownloadFailed(TorchbuildError):
    """A helper could not be fetched: no network, no such file, or --offline and not in the store."""

    exit_code = 10


class HashRefused(TorchbuildError):
    """A downloaded file does not have the hash that is pinned, published or recorded."""

    exit_code = 11


class ArchiveRefused(TorchbuildError):
    """An archive is broken, or has members that must not be unpacked (paths out of its folder ...)."""

    exit_code = 12


class PreflightFailed(TorchbuildError):
    """The planned compilers or linker failed with a few small files."""

    exit_code = 13


class PatchRefused(TorchbuildError):
    """A patch cannot be applied to the source, or cannot be undone."""

    exit_code = 14


class ClusterError(TorchbuildError):
    """A scheduler or server of distributed compiles cannot be started, reached or joined."""

    exit_code = 15


class SourceError(TorchbuildError):
    """A checkout, a ref or a submodule cannot be fetched, updated or switched, or git is missing."""

    exit_code = 16


class ManifestError(TorchbuildError):
    """A file is no manifest, is damaged, or has a newer schema."""

    exit_code = 17


class Untrusted(TorchbuildError):
    """A file that came with a checkout names programs or servers, and is not trusted."""

    exit_code = 18


class PackageRefused(TorchbuildError):
    """A package would not work elsewhere, is of another build, or is refused by its index."""

    exit_code = 19


class ContainerError(TorchbuildError):
    """A container image cannot be built, pulled or run here."""

    exit_code = 20


class NotBuilt(TorchbuildError):
    """A verb needs what a build leaves here, and nothing was built yet."""

    exit_code = 21


class Interrupted(TorchbuildError):
    """Ctrl-C or SIGTERM; 130 is what shells report for an interrupted command."""

    exit_code = 130


# Who asks whether a run was interrupted asks for both: `interruptible` makes the second the first, outside.
INTERRUPTIONS: Final = (Interrupted, KeyboardInterrupt)

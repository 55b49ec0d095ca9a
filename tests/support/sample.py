"""minitorch, the embedded sample, laid out where a build may dirty it."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Literal, get_args

import pytest

from tests.support.capabilities import has, skip_without

Era = Literal["setuptools", "scikit-build-core"]
ERAS: tuple[Era, ...] = get_args(Era)


def in_one_era(fixture: str) -> pytest.MarkDecorator:
    """Mark a test that goes the same way through our code in both eras: a quick run has it in the newer one.

    `fixture` has one of ERAS as its parameter. In that order, or what it made would be made twice.
    """
    older, newer = ERAS
    return pytest.mark.parametrize(
        fixture, [pytest.param(older, marks=pytest.mark.slow), newer], indirect=True
    )


SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "minitorch"

# From the root inwards: each is a submodule of the one before it.
_SUBMODULES = ("third_party/tinyfmt", "third_party/tinyassert")

# Nothing of the user's configuration, the same commits at every call, and leave to clone from a
# folder, which git refuses to submodules otherwise.
_GIT_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "minitorch",
    "GIT_AUTHOR_EMAIL": "minitorch@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "minitorch",
    "GIT_COMMITTER_EMAIL": "minitorch@example.invalid",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}
_GIT = ("git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")


def materialise(
    dest: Path,
    *,
    era: Era = "scikit-build-core",
    git: bool = False,
    version: str | None = None,
) -> Path:
    """Lay out the sample of an era in dest, which must be absent or empty.

    With git, dest becomes a clone-like repository with a commit, a tag v<version> and its nested
    submodules checked out. What it and they were "cloned" from lies beside it: <dest name>.git,
    tinyfmt.git, tinyassert.git. To clone from there again, allow git the file protocol.
    """
    # Forty runs of git make such a repository; another of the same name is a copy with other addresses.
    if git and not _origins(dest) and all(map(_PLAIN.fullmatch, (str(dest.parent), tempfile.gettempdir()))):
        return _copy_repository(_repository(dest.name, era, version), dest)
    return _make(dest, era=era, git=git, version=version)


def _make(dest: Path, *, era: Era, git: bool, version: str | None) -> Path:
    _copy(dest)
    if era == "setuptools":
        shutil.copytree(SAMPLE / "eras" / era, dest, dirs_exist_ok=True)
    if version is not None:
        (dest / "version.txt").write_text(f"{version}\n", encoding="utf-8", newline="\n")
    if git:
        _publish(dest, dest.parent / f"{dest.name}.git", _SUBMODULES)
        tag = "v" + (dest / "version.txt").read_text(encoding="utf-8").strip()
        run_git(dest, "tag", tag)
        run_git(dest, "push", "--quiet", "--force", "origin", tag)
    return dest


_PLAIN = re.compile(r"[\w./-]+")  # what stands in git's configuration as it is


def _origins(dest: Path) -> list[Path]:
    names = (dest.name, *(Path(path).name for path in _SUBMODULES))
    return [path for name in names if (path := dest.parent / f"{name}.git").exists()]


@functools.cache
def _folder_of_repositories() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="minitorch-")


@functools.cache
def _repository(name: str, era: Era, version: str | None) -> Path:
    folder = Path(tempfile.mkdtemp(dir=_folder_of_repositories().name))
    made = _make(folder / name, era=era, git=True, version=version)
    for hook in folder.rglob("*.sample"):  # a third of all files
        hook.unlink()
    return made


def _copy_repository(model: Path, dest: Path) -> Path:
    """Copy a repository and its origins, with the addresses that it would have there."""
    for origin in _origins(model):
        shutil.copytree(origin, dest.parent / origin.name)
    shutil.copytree(model, dest, symlinks=True, dirs_exist_ok=True)
    for config in dest.glob(".git/**/config"):
        config.write_text(config.read_text("utf-8").replace(str(model.parent), str(dest.parent)), "utf-8")
    checkout = dest
    for submodule in ("", *_SUBMODULES):
        checkout /= submodule
        run_git(checkout, "update-index", "-q", "--refresh")  # that of the model knows its files
    return dest


def _copy(dest: Path) -> None:
    skipped = _ignored() | {SAMPLE / "eras"}

    def skip(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if Path(folder, name) in skipped}

    shutil.copytree(SAMPLE, dest, ignore=skip, dirs_exist_ok=True)


def _ignored() -> set[Path]:
    """What builds and editors have left in the sample itself."""
    lines = (SAMPLE / ".gitignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    return {path for pattern in patterns for path in SAMPLE.glob(pattern)}


def _publish(folder: Path, origin: Path, submodules: tuple[str, ...]) -> None:
    """Commit the folder and push it to origin, the innermost submodule first."""
    origins = origin.parent
    run_git(origins, "init", "--quiet", "--bare", str(origin))
    run_git(folder, "init", "--quiet")
    run_git(folder, "remote", "add", "origin", str(origin))
    if submodules:
        path, *deeper = submodules
        bare = origins / f"{Path(path).name}.git"
        _publish(folder / path, bare, tuple(deeper))
        _remove(folder / path)
        run_git(folder, "submodule", "--quiet", "add", f"../{bare.name}", path)
        run_git(folder, "submodule", "--quiet", "update", "--init", "--recursive")
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--message", f"{folder.name}, as the sample has it")
    run_git(folder, "push", "--quiet", "--force", "--set-upstream", "origin", "HEAD")


def _remove(repository: Path) -> None:
    """Remove it with its objects, which git makes read-only and Windows then keeps."""
    for path in repository.rglob("*"):
        path.chmod(0o700)
    shutil.rmtree(repository)


def commit(folder: Path, message: str | None) -> str:
    """Commit all that is in a repository of the sample; without a message only say what its head is."""
    if message is not None:
        run_git(folder, "add", "--all")
        run_git(folder, "commit", "--quiet", "--message", message)
    return run_git(folder, "rev-parse", "HEAD")


def run_git(folder: Path, *args: str) -> str:
    """Run git there as the sample's author; what it says.

    Without git the test is skipped, also one whose file has no mark for it.
    """
    if not has("git"):
        skip_without("git")
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        [*_GIT, *args], cwd=folder, env=env | _GIT_ENV, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()

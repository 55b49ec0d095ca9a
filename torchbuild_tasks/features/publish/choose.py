"""Decide which packages to send to an index, and format the pages of a folder index."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import quote, unquote, urlsplit

import msgspec
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from torchbuild_tasks.catalog.packaging import IndexLimitRow
from torchbuild_tasks.errors import PackageRefused, UsageError
from torchbuild_tasks.text.show import size_text
from torchbuild_tasks.values import parse_json

PYPI: Final = ("upload.pypi.org", "test.pypi.org")
CONDA: Final = ".conda"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_HREF: Final = re.compile(r"""<a\b[^>]*?\bhref\s*=\s*(["'])(.*?)\1""", re.IGNORECASE | re.DOTALL)


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A package: its name, the project that it is of, its version, hash and size; METADATA of a wheel.

    The `project` of a conda package is its folder in a channel, such as linux-64.
    """

    name: str
    project: str
    version: str
    sha256: str
    size: int
    metadata: bytes = b""

    @property
    def is_conda(self) -> bool:
        """Say whether it is for a channel of conda's."""
        return self.name.endswith(CONDA)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step: a file is sent, or is there already with the same bytes."""

    file: File
    what: Literal["send", "there"]


def project_of(name: str) -> tuple[str, str]:
    """Return the project and the version in the name of a wheel or a source distribution.

    Raises:
        PackageRefused: it is neither.
    """
    try:
        if name.endswith(".whl"):
            project, version = parse_wheel_filename(name)[:2]
        elif name.endswith(".tar.gz"):
            project, version = parse_sdist_filename(name)
        else:
            raise ValueError("it is neither a wheel nor a .tar.gz")
    except ValueError as error:
        raise PackageRefused(f"{name} is not a package for an index: {error}.") from None
    return str(project), str(version)


def steps(files: Sequence[File], there: Mapping[str, str], place: str) -> tuple[Step, ...]:
    """Return the step for each file.

    Args:
        files: what is to be published.
        there: what the index has: hash by name, "" where it says none.
        place: the index, for the error.

    Raises:
        PackageRefused: the index has a file of a name with other bytes; nothing is ever overwritten. Or two
            of the files have one name.
    """
    hashes: dict[str, str] = {}
    if twice := [file.name for file in files if hashes.setdefault(file.name, file.sha256) != file.sha256]:
        raise PackageRefused(
            f"Two different files are called {' and '.join(twice)}. Nothing was sent.",
            next_step="Name the one that is meant: --file FILE",
        )
    other = [file for file in files if there.get(file.name, file.sha256) != file.sha256]
    if other:
        raise PackageRefused(
            f"{place} has other files with these names, and nothing is overwritten. Nothing was sent.",
            looked=tuple(
                f"{file.name}: here {file.sha256[:12]}, there {there[file.name][:12] or 'of unknown hash'}"
                for file in other
            ),
            next_step=f"Give yours another version: {' and '.join(dict.fromkeys(map(_made_again, other)))}",
        )
    return tuple(Step(file=file, what="there" if file.name in there else "send") for file in files)


def _made_again(file: File) -> str:
    """Return the command that makes a package of this kind with another version."""
    kind = "conda" if file.is_conda else "wheel" if file.name.endswith(".whl") else "sdist"
    return f"torchbuild package {kind} --local mine.2"


def check_address(url: str, files: Sequence[File]) -> None:
    """Refuse an address with a login or without encryption, and one that PyPI refuses.

    Raises:
        UsageError: the address.
        PackageRefused: PyPI takes no local versions.
    """
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise UsageError(
            "A login in the address would appear in process lists and logs.",
            next_step="Leave it out: TWINE_USERNAME and TWINE_PASSWORD, or `keyring set ADDRESS USER`.",
        )
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise UsageError(
            f"{url} is not https: anybody on the network could read the login and replace the packages."
        )
    if conda := [file.name for file in files if file.is_conda]:
        raise PackageRefused(
            f"An index for pip accepts no conda packages: {', '.join(conda)}. Nothing was sent.",
            next_step="Publish them to a folder, which becomes a channel: torchbuild publish FOLDER",
        )
    local = [file.name for file in files if Version(file.version).local]
    if parts.hostname in PYPI and local:
        raise PackageRefused(
            f"PyPI accepts no version with a local part: {', '.join(local)}. Nothing was sent.",
            next_step="package wheel --local none makes one without; an index of your own takes both.",
        )


def too_large(url: str, files: Sequence[File], limits: Sequence[IndexLimitRow]) -> tuple[str, ...]:
    """Return the files above the known limit of the index at an address, which may have been raised."""
    host = urlsplit(url).hostname
    return tuple(
        f"{file.name} is {size_text(file.size)}, more than the {size_text(limit.size)} of {limit.place}"
        for limit in limits
        for file in files
        if host in limit.hosts and file.size > limit.size
    )


def index_address(url: str) -> str:
    """Return the index for reading files sent to an address: PyPI's two hosts, else simple/ below it."""
    host = urlsplit(url).hostname
    if host in PYPI:
        return f"https://{'pypi.org' if host == PYPI[0] else host}/simple/"
    return f"{url.rstrip('/')}/simple/"


LOGIN: Final = "The login is that of TWINE_USERNAME and TWINE_PASSWORD, or of the keyring."


def unread_advice(*, lost: bool, status: int) -> str:
    """Return what to do about an index that did not say which files it has.

    Args:
        lost: whether no answer came at all.
        status: the answer's, 0 without one.
    """
    if lost:
        return "No server answers there: check the network and the address (to read: --index URL)."
    if status in (401, 403):
        return f"It asks for a login that it accepts. {LOGIN} To read, only the first two are used."
    return "Name the address that pip would read: --index URL"


def read_page(text: str) -> dict[str, str]:
    """Return the files of a project's page, JSON (PEP 691) or HTML (PEP 503), with their hashes."""
    if text.lstrip().startswith("{"):
        data = parse_json(text)
        return {str(each["filename"]): str(each["hashes"].get("sha256", "")) for each in data["files"]}
    hashes = {}
    for _, href in _HREF.findall(text):
        path, _, fragment = html.unescape(href).partition("#")
        hashes[unquote(path.rstrip("/").rpartition("/")[2])] = (
            fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
        )
    return hashes


# ---------------- the pages of a folder


def project_page(project: str, files: Sequence[File]) -> str:
    """Return the page of a project: its files with their hashes and those of their METADATA.

    The format: https://packaging.python.org/specifications/simple-repository-api/ (PEP 503, 714).
    """
    return _page(f"Links for {project}", (_link(file) for file in sorted(files, key=lambda each: each.name)))


def _link(file: File) -> str:
    metadata = (
        f' data-core-metadata="sha256={hashlib.sha256(file.metadata).hexdigest()}"' if file.metadata else ""
    )
    return f'<a href="{quote(file.name)}#sha256={file.sha256}"{metadata}>{html.escape(file.name)}</a>'


def root_page(projects: Sequence[str]) -> str:
    """Return the page that names the projects."""
    names = sorted({canonicalize_name(project) for project in projects})
    return _page("Simple index", (f'<a href="{name}/">{name}</a>' for name in names))


def _page(title: str, links: Any) -> str:
    body = "".join(f"    {link}<br/>\n" for link in links)
    return (
        '<!DOCTYPE html>\n<html>\n  <head>\n    <meta charset="utf-8"/>\n'
        '    <meta name="pypi:repository-version" content="1.0"/>\n'
        f"    <title>{html.escape(title)}</title>\n  </head>\n  <body>\n{body}  </body>\n</html>\n"
    )

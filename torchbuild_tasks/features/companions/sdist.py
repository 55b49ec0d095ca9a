"""Download a project's sdist from pip's indexes: pip itself would also prepare its metadata.

`pip download` prepares the metadata of an sdist, for which most extensions import torch, and that is to be
built only later. So the page of the index is read here (PEP 503, which every index serves).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import Version

from torchbuild_tasks.errors import DownloadFailed, SourceError
from torchbuild_tasks.model import Companion
from torchbuild_tasks.system import files
from torchbuild_tasks.system.archive.unpack import unpack
from torchbuild_tasks.system.net.client import Net, redact
from torchbuild_tasks.system.net.download import fetch
from torchbuild_tasks.system.net.pip import read_settings
from torchbuild_tasks.system.net.transfer import Remote
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.system.remove import unfinished_folder

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

# Allowed links by the page's scheme: none from a server to a local file, none from https to http.
_LEADS: Final = {"file": ("file", "http", "https"), "http": ("http", "https"), "https": ("https",)}
_KINDS: Final = {".tar.gz": "tar.gz", ".zip": "zip"}


class Sdist(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an index or a folder; a `yanked` one is used only if its version is requested."""

    file: str
    url: str
    version: Version
    sha256: str = ""
    python: str = ""
    yanked: bool = False


def fetch_sdist(companion: Companion, python: str, net: Net, report: Reporter) -> None:
    """Unpack the newest matching sdist into the companion's folder; keep an existing folder.

    Args:
        companion: what is wanted, and where it is to lie.
        python: the version of the Python that it is built for.
        net: how the network is reached.

    Raises:
        SourceError: no index and no folder has one that fits.
        DownloadFailed: it is not available from where it is.
    """
    folder = Path(companion.folder)
    wanted = Requirement(companion.requirement)
    if folder.is_dir():
        report.note(
            f"{wanted}: its source in {folder} is used as it is; remove that folder to fetch it again"
        )
        return
    with files.translate_errors(SourceError, folder.parent):
        folder.parent.mkdir(exist_ok=True)
    offered, looked = _search(wanted, net, folder)
    best = choose_sdist(offered, wanted, python)
    if best is None:
        others = sorted({each.version for each in offered}, reverse=True)[:8]
        has = (f"the index has sdists of {', '.join(map(str, others))}",) if others else ()
        raise SourceError(
            f"No sdist of {wanted} was found: without its source nothing can be built against this torch.",
            looked=(*looked, *has),
            next_step=f"Name a repository or a folder of it: --with-extension {companion.name}=URL@REF or "
            f"{companion.name}=PATH; or put its sdist into a folder and use --wheels FOLDER.",
        )
    report.note(f"{best.file} is fetched from {redact(best.url).partition('#')[0]}")
    archive = folder.with_name(best.file)
    kind = next(kind for end, kind in _KINDS.items() if best.file.endswith(end))
    fetch(Remote(name=best.file, urls=(best.url,), sha256=best.sha256 or None), archive, net, report.transfer)
    try:
        with unfinished_folder(folder, SourceError) as place:
            part = place / "sdist"
            unpack(archive, kind, part, tell=report.transfer, name=best.file, dangling=True)
            (top,) = [each for each in part.iterdir() if each.is_dir()]
            with files.translate_errors(SourceError, folder):
                files.replace(top, folder)
    except ValueError:
        raise SourceError(
            f"{best.file} is not an sdist: it holds not one folder.", next_step="Name another version of it."
        ) from None
    finally:
        archive.unlink(missing_ok=True)


def choose_sdist(offered: Iterable[Sdist], wanted: Requirement, python: str) -> Sdist | None:
    """Return the newest requested sdist for this Python; releases before pre-releases."""
    exact = any(each.operator in ("==", "===") for each in wanted.specifier)
    fits = [
        each
        for each in offered
        if wanted.specifier.contains(each.version, prereleases=True)
        and (exact or not each.yanked)
        and _for_python(each.python, python)
    ]
    releases = [each for each in fits if not each.version.is_prerelease]
    return max(releases or fits, key=lambda each: each.version, default=None)


def _for_python(specifier: str, python: str) -> bool:
    try:
        return not specifier or not python or SpecifierSet(specifier).contains(python, prereleases=True)
    except InvalidSpecifier:
        return True


def _search(wanted: Requirement, net: Net, target: Path) -> tuple[list[Sdist], tuple[str, ...]]:
    """Return all sdists of a project, and the searched places: --wheels, find-links, each index."""
    settings = read_settings(os.environ)
    name = canonicalize_name(wanted.name)
    offered: list[Sdist] = []
    looked: list[str] = []
    for place in (net.wheels, *settings.find_links):
        if place and (folder := _folder(place)) and folder.is_dir():
            urls = [path.as_uri() for path in sorted(folder.iterdir())]
            offered += (each for url in urls if (each := _sdist(url, name)))
            looked.append(str(folder))
    page = target.with_name(f"{name}.html")
    for index in settings.index_urls:
        url = f"{index.rstrip('/')}/{name}/"
        looked.append(redact(url))
        try:
            page.unlink(missing_ok=True)
            fetch(Remote(name=f"index of {name}", urls=(_page(url),)), page, net, lambda *progress: None)
        except DownloadFailed as error:
            looked.append(f"  {error.looked[0] if error.looked else error.what}")
            continue
        offered += read_page(read_bytes(page).decode("utf-8", "replace"), url, name)
    page.unlink(missing_ok=True)
    return offered, tuple(looked)


def _folder(place: str) -> Path | None:
    if place.lower().startswith("file:"):
        return Path(url2pathname(urlsplit(place).path))
    return None if "://" in place else Path(place).expanduser()


def _page(url: str) -> str:
    """Return the address of a project's page; a local index has it as a file (PEP 503)."""
    return f"{url}index.html" if url.lower().startswith("file:") else url


class _Links(HTMLParser):
    """The anchors of a page, each with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append({name: value or "" for name, value in attrs})


def read_page(text: str, base: str, name: str) -> Iterator[Sdist]:
    """Yield the sdists of a project on the page of an index."""
    reader = _Links()
    reader.feed(text)
    for link in reader.links:
        url = urljoin(base, link.get("href", ""))
        sdist = _sdist(url, name)
        if sdist is not None and urlsplit(url).scheme in _LEADS.get(urlsplit(base).scheme, ()):
            python = link.get("data-requires-python", "")
            yanked = "data-yanked" in link
            yield msgspec.structs.replace(sdist, python=python, yanked=yanked)


def _sdist(url: str, name: str) -> Sdist | None:
    parts = urlsplit(url)
    file = unquote(parts.path.rpartition("/")[2])
    try:
        project, version = parse_sdist_filename(file)
    except InvalidSdistFilename:
        return None
    sha256 = re.search(r"sha256=([0-9a-f]{64})", parts.fragment)
    plain = url.partition("#")[0]
    return (
        Sdist(file=file, url=plain, version=version, sha256=sha256[1] if sha256 else "")
        if project == name
        else None
    )

"""What a place of pip's lists: a page of an index, JSON or HTML, or a folder."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import msgspec

from torchbuild_tasks.effects.fetch.asking import ask
from torchbuild_tasks.effects.fetch.net import Net, shown
from torchbuild_tasks.effects.fetch.pip_settings import is_web
from torchbuild_tasks.effects.fetch.reasons import in_words
from torchbuild_tasks.effects.fetch.tries import Again, Halt, Refused, Tries

if TYPE_CHECKING:
    import requests

JSON: Final = "application/vnd.pypi.simple.v1+json"
HEADERS: Final = {
    # PEP 691: JSON carries sizes; every index can do the last one.
    "Accept": f"{JSON}, application/vnd.pypi.simple.v1+html; q=0.2, text/html; q=0.01",
    "Accept-Encoding": "identity",  # what `ask` takes
    "Cache-Control": "max-age=0",  # a proxy's old page does not know the newest files
}


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a place lists, whatever it is."""

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None
    yanked: bool = False


def list_place(place: str, session: requests.Session, net: Net) -> list[Listed]:
    """Everything that a page, a folder or a file lists.

    Args:
        place: an address of any kind, or a path.
        session: for what is on the network.
        net: its mirrors, its patience, --offline.

    Raises:
        Refused, OSError, ValueError: it is not there, cannot be read, or is no index page;
            the text says why.
    """
    place = net.address(place) if is_web(place) else place
    return list(_page(place, session, net) if is_web(place) else _folder(_local(place)))


def _page(url: str, session: requests.Session, net: Net) -> Iterator[Listed]:
    if net.offline:
        raise Refused("not asked, --offline")
    content, kind, base = _read(url, session, net)
    if kind.split(";")[0].strip().lower() == JSON:
        listed = _from_json(json.loads(content), base)
    else:
        listed = _from_html(content, base)
    # A page on the network says nothing about files on this machine.
    return (one for one in listed if is_web(one.url))


def _read(url: str, session: requests.Session, net: Net) -> tuple[bytes, str, str]:
    """A page, its content type, and where it was found in the end."""
    tries = Tries(shown(url), net, Halt())
    while True:
        try:
            with ask(session, net, url, HEADERS) as answer, in_words():
                return answer.content, answer.headers.get("Content-Type", ""), answer.url
        except Again as trouble:
            tries.wait(trouble, 0)


def _folder(path: Path) -> Iterator[Listed]:
    """The wheels in a folder, and what its index.html says; or one page, or one wheel."""
    if path.is_dir():
        yield from map(_file, sorted(path.glob("*.whl")))
        path = path / "index.html"
        if not path.exists():
            return
    if path.suffix == ".whl":
        yield _file(path)
    elif path.is_file():
        yield from _from_html(path.read_bytes(), path.as_uri())
    else:
        raise FileNotFoundError("not there")


def _file(path: Path) -> Listed:
    return Listed(name=path.name, url=path.as_uri(), size=path.stat().st_size)


def _local(place: str) -> Path:
    """The path of a `file:` address, which may name a Windows share, or of a path."""
    if not place.lower().startswith("file:"):
        return Path(place).expanduser().absolute()
    from urllib.request import url2pathname  # brings all of http.client

    parts = urlsplit(place)
    share = f"//{parts.netloc}" if parts.netloc not in ("", "localhost") else ""
    return Path(url2pathname(share + parts.path)).absolute()


def _from_json(page: Any, base: str) -> Iterator[Listed]:
    version = page["meta"]["api-version"] if _is(page, "meta") and _is(page["meta"], "api-version") else ""
    if not str(version).startswith("1.") or not isinstance(page.get("files"), list):
        raise ValueError(f"no index page of version 1, but {str(page)[:60]}")
    for file in page["files"]:
        if not (_is(file, "filename") and _is(file, "url")):
            raise ValueError(f"an index page with a file that has no name or address: {str(file)[:60]}")
        size, hashes = file.get("size"), file.get("hashes")
        yield Listed(
            name=str(file["filename"]),
            url=_joined(base, str(file["url"])),
            sha256=_sha256(hashes.get("sha256")) if isinstance(hashes, dict) else None,
            size=size if isinstance(size, int) else None,
            yanked=bool(file.get("yanked")),
        )


def _is(value: Any, key: str) -> bool:
    return isinstance(value, dict) and key in value


def _from_html(page: bytes, base: str) -> Iterator[Listed]:
    from torchbuild_tasks.effects.fetch.anchors import Anchors

    parser = Anchors()
    parser.feed(page.decode("utf-8", errors="replace"))
    parser.close()
    for attributes in parser.anchors:
        url, fragment = urldefrag(_joined(urljoin(base, parser.base), attributes.get("href") or ""))
        yield Listed(
            name=posixpath.basename(unquote(urlsplit(url).path)),
            url=url,
            sha256=_sha256(fragment.removeprefix("sha256=")),
            yanked="data-yanked" in attributes,
        )


def _joined(base: str, href: str) -> str:
    """An absolute address; on the index's own host it takes over the login, as pip does."""
    url = urljoin(base, href)
    login, at, host = urlsplit(base).netloc.rpartition("@")
    parts = urlsplit(url)
    return parts._replace(netloc=f"{login}@{host}").geturl() if at and parts.netloc == host else url


def _sha256(text: Any) -> str | None:
    return text.lower() if isinstance(text, str) and re.fullmatch(r"[0-9A-Fa-f]{64}", text) else None

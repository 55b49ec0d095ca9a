"""Finding a wheel: pages of both kinds from a canned server, folders, and what is said when it is nowhere."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import BaseAdapter

from torchbuild_tasks.effects.fetch.index import PipSettings, Wheel, find_wheel
from torchbuild_tasks.effects.fetch.net import Net
from torchbuild_tasks.errors import DownloadFailed

JSON = "application/vnd.pypi.simple.v1+json"
INDEX = "https://index.test/simple"
PAGE = f"{INDEX}/mkl-static/"
WIN = "mkl_static-2024.2.0-py2.py3-none-win_amd64.whl"
HASH = "ab" * 32
QUICK = Net(sleep=lambda seconds: None)


class Server(BaseAdapter):
    """Answers every address from a table; whatever is not in it is a 404."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, tuple[int, Mapping[str, str], bytes]] = {}
        self.asked: list[requests.PreparedRequest] = []
        self.verified: list[Any] = []
        self.failures = 0

    def put(self, url: str, body: str, kind: str = "text/html", status: int = 200, **headers: str) -> None:
        self.pages[url] = (status, {"Content-Type": kind, **headers}, body.encode())

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        self.asked.append(request)
        self.verified.append(kwargs["verify"])
        if self.failures:
            self.failures -= 1
            raise requests.ConnectionError("https://user:secret@index.test/ hung up")
        assert request.url is not None
        status, headers, body = self.pages.get(request.url, (404, {}, b"no"))
        response = requests.Response()
        response.status_code, response.url, response.request = status, request.url, request
        response.headers.update(headers)
        response.raw = io.BytesIO(body)
        return response

    def close(self) -> None:
        pass


@pytest.fixture
def server() -> Server:
    return Server()


def find(
    server: Server, settings: PipSettings | None = None, version: str = "2024.2.0", tag: str = "win_amd64"
) -> Wheel:
    session = requests.Session()
    session.mount("https://", server)
    session.mount("http://", server)
    return find_wheel(
        "MKL.static", version, tag, settings or PipSettings(index_urls=(INDEX,)), session, QUICK
    )


def link(name: str, fragment: str = f"#sha256={HASH}", attributes: str = "") -> str:
    return f'<a href="../../files/{name}{fragment}" {attributes}>{name}</a><br/>\n'


def page(*files: dict[str, Any]) -> str:
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "mkl-static", "files": list(files)})


def file(name: str, **more: Any) -> dict[str, Any]:
    return {"filename": name, "url": f"https://files.test/{name}", "hashes": {"sha256": HASH}, **more}


def test_html(server: Server) -> None:
    server.put(PAGE, f"<!DOCTYPE html><body>{link(WIN.replace('win_', 'mac_'))}{link(WIN)}")
    assert find(server) == Wheel(name=WIN, url=f"https://index.test/files/{WIN}", sha256=HASH, size=None)
    assert JSON in str(server.asked[0].headers["Accept"])


def test_json(server: Server) -> None:
    server.put(PAGE, page(file(WIN, size=7)), f"{JSON}; charset=utf-8")
    assert find(server) == Wheel(name=WIN, url=f"https://files.test/{WIN}", sha256=HASH, size=7)


@pytest.mark.parametrize("fragment", ["", "#md5=0123", "#sha256=beef", "#egg=mkl"])
def test_no_sha256_is_none(server: Server, fragment: str) -> None:
    server.put(PAGE, link(WIN, fragment))
    assert find(server).sha256 is None


def test_a_base_in_the_page(server: Server) -> None:
    server.put(PAGE, f'<head><base href="https://cdn.test/a/b/c/"></head>{link(WIN)}')
    assert find(server).url == f"https://cdn.test/a/files/{WIN}"


def test_an_escaped_address_has_a_plain_name(server: Server) -> None:
    name = "mkl_static-2024.2.0+cpu-py3-none-win_amd64.whl"
    server.put(PAGE, link(name.replace("+", "%2B"), ""))
    assert find(server, version="2024.2.0+cpu").name == name


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("manylinux2014_x86_64", "mkl_static-1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
        ("manylinux_2_17_x86_64", "mkl_static-1-py3-none-manylinux_2_17_x86_64.whl"),
        ("x86_64", "mkl_static-1-py3-none-manylinux1_x86_64.whl"),
        ("any", "mkl_static-1-py3-none-any.whl"),
        ("", "mkl_static-1-py3-none-win32.whl"),
        ("win_amd64", "mkl_static-1.0-1-py2.py3-none-win_amd64.whl"),
    ],
)
def test_fitting_names(server: Server, tag: str, name: str) -> None:
    server.put(PAGE, link(name))
    assert find(server, version="1", tag=tag).name == name


@pytest.mark.parametrize(
    "name",
    [
        "mkl_static-1-py3-none-win32.whl",
        "mkl_static-1-py3-none-xwin_amd64.whl",
        "mkl_static-1-cp311-cp311-win_amd64.whl",
        "mkl_static-1-cp311-none-win_amd64.whl",
        "mkl_static-1-py2-none-win_amd64.whl",
        "mkl_static-1-py3-cp311-win_amd64.whl",
        "mkl_static-1.post1-py3-none-win_amd64.whl",
        "mkl_static-1rc1-py3-none-win_amd64.whl",
        "mkl-1-py3-none-win_amd64.whl",
        "mkl_static-1.tar.gz",
        "mkl_static-1-win_amd64.whl",
        "mkl_static-1-py3-none-..%5C..%5Cwin_amd64.whl",
        "mkl_static-1-py3-none-a:win_amd64.whl",
    ],
)
def test_names_that_do_not_fit(server: Server, name: str) -> None:
    server.put(PAGE, link(name))
    with pytest.raises(DownloadFailed):
        find(server, version="1")


def test_the_highest_build_number_of_one_version_wins(server: Server) -> None:
    names = [f"mkl_static-1-{build}-py3-none-win_amd64.whl" for build in ("2", "10", "9")]
    server.put(PAGE, "".join(map(link, names)))
    assert find(server, version="1").name == names[1]


def test_a_yanked_file_is_passed_over_for_a_later_place(server: Server) -> None:
    server.put(PAGE, link(WIN, attributes='data-yanked=""'))
    server.put("https://other.test/mkl-static/", page(file(WIN, yanked=False)), JSON)
    settings = PipSettings(index_urls=(INDEX, "https://other.test/"))
    assert find(server, settings).url == f"https://files.test/{WIN}"


@pytest.mark.parametrize("reason", [True, "broken"])
def test_a_yanked_file_is_taken_when_it_is_the_only_one(server: Server, reason: object) -> None:
    server.put(PAGE, page(file(WIN, yanked=reason), file(WIN.replace("2024.2.0", "2025"))), JSON)
    assert find(server).name == WIN


def test_a_folder_comes_before_an_index(server: Server, tmp_path: Path) -> None:
    (tmp_path / WIN).write_bytes(b"12345")
    settings = PipSettings(index_urls=(INDEX,), find_links=(str(tmp_path / "missing"), str(tmp_path)))
    wheel = find(server, settings)
    assert wheel == Wheel(name=WIN, url=(tmp_path / WIN).as_uri(), sha256=None, size=5)
    assert server.asked == []


def test_one_wheel_and_one_page_as_find_links(server: Server, tmp_path: Path) -> None:
    (tmp_path / WIN).write_bytes(b"12345")
    assert find(server, PipSettings(find_links=(str(tmp_path / WIN),))).size == 5
    (tmp_path / "links.html").write_text(f'<a href="sub/{WIN}#sha256={HASH}">x</a>', "ascii")
    found = find(server, PipSettings(find_links=((tmp_path / "links.html").as_uri(),)))
    assert (found.url, found.sha256) == ((tmp_path / "sub" / WIN).as_uri(), HASH)


def test_indexes_in_folders(server: Server, tmp_path: Path) -> None:
    bare, listed = tmp_path / "bare index" / "mkl-static", tmp_path / "listed" / "simple" / "mkl-static"
    for folder in (bare, listed):
        folder.mkdir(parents=True)
    (bare / WIN).write_bytes(b"")
    (listed / "index.html").write_text(link(WIN), "ascii")
    urls = ("file:///nowhere/simple", bare.parent.as_uri(), listed.parent.as_uri() + "/")
    assert find(server, PipSettings(index_urls=urls[:2])).url == (bare / WIN).as_uri()
    found = find(server, PipSettings(index_urls=urls[::2]))
    assert (found.url, found.sha256) == ((tmp_path / "listed" / "files" / WIN).as_uri(), HASH)


def test_a_page_on_the_network_cannot_name_a_local_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / WIN).write_bytes(b"")
    server.put(PAGE, f'<a href="{(tmp_path / WIN).as_uri()}">x</a>')
    with pytest.raises(DownloadFailed):
        find(server)


def test_a_login_goes_to_its_own_host_only(server: Server) -> None:
    urls = [f"https://index.test/f/{WIN}", f"https://elsewhere.test/f/{WIN}"]
    found = []
    for url in urls:
        server.put("https://me:secret@index.test/simple/mkl-static/", f'<a href="{url}">x</a>')
        server.put(PAGE, f'<a href="{url}">x</a>')
        found.append(find(server, PipSettings(index_urls=("https://me:secret@index.test/simple",))).url)
    assert found == [f"https://me:secret@index.test/f/{WIN}", urls[1]]
    assert "Authorization" in server.asked[0].headers


def test_certificates_of_pip_are_believed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests would let these win
        monkeypatch.delenv(name, raising=False)
    server.put(PAGE, link(WIN))
    find(server, PipSettings(index_urls=(INDEX,), cert="/etc/ssl/company.pem"))
    find(server)
    assert server.verified == ["/etc/ssl/company.pem", True]


def test_a_redirect_is_followed_but_not_to_http(server: Server) -> None:
    server.put(PAGE, "", status=301, Location="https://moved.test/x/mkl-static/")
    server.put("https://moved.test/x/mkl-static/", link(WIN))
    assert find(server).url == f"https://moved.test/files/{WIN}"
    server.put(PAGE, "", status=301, Location="http://moved.test/x/mkl-static/")
    server.put("http://moved.test/x/mkl-static/", link(WIN))
    with pytest.raises(DownloadFailed) as caught:
        find(server)
    assert any("not secure" in line for line in caught.value.looked)


def test_a_connection_that_fails_is_tried_again(server: Server) -> None:
    server.put(PAGE, link(WIN))
    server.failures = 2
    assert find(server).name == WIN


def test_nowhere_names_every_place_without_secrets(server: Server, tmp_path: Path) -> None:
    server.put(PAGE, link(WIN.replace("2024.2.0", "2023.1")) + link(WIN.replace("win_amd64", "win32")))
    indexes = ("https://me:secret@index.test/private", INDEX, (tmp_path / "gone").as_uri())
    settings = PipSettings(index_urls=indexes, find_links=(str(tmp_path),))
    with pytest.raises(DownloadFailed) as caught:
        find(server, settings)
    error = caught.value
    assert "MKL.static 2024.2.0 for win_amd64" in error.what
    for place in (str(tmp_path), "https://index.test/private/mkl-static/", PAGE, indexes[2]):
        assert [line for line in error.looked if line.startswith(place)], place
    assert f"{PAGE}: for win_amd64 it has 2023.1" in error.looked
    assert "of that version there is mkl_static-2024.2.0-py2.py3-none-win32.whl" in error.looked
    assert "PIP_INDEX_URL" in error.next_step
    assert "PIP_FIND_LINKS" in error.next_step
    assert "secret" not in "".join((error.what, *error.looked))


def test_a_server_that_stays_away_is_named_and_the_next_place_asked(server: Server, tmp_path: Path) -> None:
    server.failures = 99
    (tmp_path / "mkl-static").mkdir()
    with pytest.raises(DownloadFailed) as caught:
        find(server)
    assert "failed" in caught.value.looked[0]
    assert "secret" not in "".join(caught.value.looked)
    (tmp_path / "mkl-static" / WIN).write_bytes(b"")
    assert find(server, PipSettings(index_urls=(INDEX, tmp_path.as_uri()))).name == WIN


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        '{"files": []}',
        '{"meta": {"api-version": "2.0"}, "files": []}',
        '{"meta": {"api-version": "1.0"}, "files": [{"filename": "x"}]}',
        '{"meta": {"api-version": "1.0"}, "files": {}}',
    ],
)
def test_a_page_that_makes_no_sense_is_told_not_trusted(server: Server, body: str) -> None:
    server.put(PAGE, body, JSON)
    with pytest.raises(DownloadFailed) as caught:
        find(server)
    assert caught.value.looked[0].startswith(f"{PAGE}: ")
    assert "no wheel of it" not in caught.value.looked[0]


def test_offline_asks_no_server_and_a_mirror_is_asked_instead(server: Server, tmp_path: Path) -> None:
    settings, session = PipSettings(index_urls=(INDEX,)), requests.Session()
    session.mount("https://", server)
    with pytest.raises(DownloadFailed) as caught:
        find_wheel("mkl-static", "2024.2.0", "win_amd64", settings, session, Net(offline=True))
    assert "--offline" in caught.value.looked[0]
    assert server.asked == []
    (tmp_path / "simple" / "mkl-static").mkdir(parents=True)
    (tmp_path / "simple" / "mkl-static" / WIN).write_bytes(b"")
    net = Net(offline=True, mirrors=(("https://index.test/", tmp_path.as_uri() + "/"),))
    assert find_wheel("mkl-static", "2024.2.0", "win_amd64", settings, session, net).name == WIN


def test_no_index_leaves_the_folders(server: Server) -> None:
    server.put(PAGE, link(WIN))
    with pytest.raises(DownloadFailed) as caught:
        find(server, PipSettings(index_urls=(INDEX,), no_index=True))
    assert caught.value.looked == ("pip is configured for no index and no folder",)

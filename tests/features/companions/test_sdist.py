"""The page of an index, and which of its sdists is taken."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.for_each import each_case
from tests.support.preflight import RecordingReporter
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.companions import sdist
from torchbuild_tasks.features.companions.sdist import choose_sdist, fetch_sdist, read_page
from torchbuild_tasks.model import Companion
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.net.pip import PipSettings

HASH = "a" * 64
PAGE = f"""<!DOCTYPE html><html><body>
<a href="../../files/my_ext-1.0.tar.gz#sha256={HASH}" data-requires-python="&gt;=3.8">my_ext-1.0.tar.gz</a>
<a href="../../files/my_ext-1.0-cp311-cp311-linux_x86_64.whl">wheel</a>
<a href="../../files/my_ext-2.0.tar.gz" data-requires-python="&gt;=3.14">my_ext-2.0.tar.gz</a>
<a href="../../files/my_ext-1.5.tar.gz" data-yanked="broken">my_ext-1.5.tar.gz</a>
<a href="../../files/my_ext-1.6rc1.tar.gz">my_ext-1.6rc1.tar.gz</a>
<a href="../../files/my_ext_more-9.tar.gz">another project</a>
</body></html>"""


@each_case(
    ("wanted", "version"),
    [("my-ext", "1.0"), ("my-ext==1.5", "1.5"), ("my-ext>=1.1", "1.6rc1"), ("my-ext==2.0", None)],
)
def test_the_newest_release_for_this_python_is_taken(wanted: str, version: str | None) -> None:
    files = list(read_page(PAGE, "https://host/simple/my-ext/", "my-ext"))
    best = choose_sdist(files, Requirement(wanted), "3.11.7")
    assert (best and str(best.version)) == version


def test_a_file_has_its_address_and_its_hash() -> None:
    first = next(read_page(PAGE, "https://host/simple/my-ext/", "my-ext"))
    assert (first.url, first.sha256) == ("https://host/files/my_ext-1.0.tar.gz", HASH)


@each_case(
    ("page", "link", "taken"),
    [
        ("https://host/simple/x/", "file:///home/me/x-1.0.tar.gz", False),
        ("https://host/simple/x/", "file://server/share/x-1.0.tar.gz", False),
        ("https://host/simple/x/", "http://host/x-1.0.tar.gz", False),
        ("https://host/simple/x/", "https://other/x-1.0.tar.gz", True),
        ("http://host/simple/x/", "http://other/x-1.0.tar.gz", True),
        ("http://host/simple/x/", "file:///home/me/x-1.0.tar.gz", False),
        ("file:///wheels/x/", "x-1.0.tar.gz", True),
    ],
)
def test_an_index_leads_to_no_file_of_this_machine_and_not_out_of_https(
    page: str, link: str, taken: bool
) -> None:
    assert bool(list(read_page(f'<a href="{link}">x</a>', page, "x"))) is taken


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdist, "read_settings", lambda environ: PipSettings(index_urls=()))


def lay_sdist(folder: Path) -> None:
    (folder / "my_ext-1.0").mkdir(parents=True)
    (folder / "my_ext-1.0/setup.py").write_text("", "utf-8")
    with tarfile.open(folder / "my_ext-1.0.tar.gz", "w:gz") as archive:
        archive.add(folder / "my_ext-1.0", "my_ext-1.0")


def companion(root: Path, requirement: str) -> Companion:
    return Companion(name="my-ext", version="", folder=str(root / "my-ext"), requirement=requirement, argv=())


class Reporter(RecordingReporter):
    def transfer(self, name: str, done: int, total: int | None) -> None: ...


def test_a_folder_serves_without_a_network(tmp_path: Path, settings: None) -> None:
    lay_sdist(tmp_path / "files")
    net = Net(offline=True, wheels=str(tmp_path / "files"))
    fetch_sdist(companion(tmp_path, "my-ext"), "3.11.7", net, Reporter())
    assert (tmp_path / "my-ext/setup.py").is_file()
    assert {path.name for path in tmp_path.iterdir()} - {"home"} == {"files", "my-ext"}


def test_where_none_fits_what_is_there_is_reported_and_nothing_is_left(
    tmp_path: Path, settings: None
) -> None:
    lay_sdist(tmp_path / "files")
    net = Net(offline=True, wheels=str(tmp_path / "files"))
    with pytest.raises(SourceError) as missing:
        fetch_sdist(companion(tmp_path, "my-ext>=2"), "3.11.7", net, Reporter())
    assert str(tmp_path / "files") in missing.value.looked
    assert "the index has sdists of 1.0" in missing.value.looked
    assert {path.name for path in tmp_path.iterdir()} - {"home"} == {"files"}

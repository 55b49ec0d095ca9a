"""Where pip would look: its files and variables, in its order of precedence."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from torchbuild_tasks.effects import process
from torchbuild_tasks.effects.fetch.pip_settings import (
    DEFAULT_INDEX,
    PipSettings,
    has_default_index,
    pip_settings,
)
from torchbuild_tasks.effects.process import Captured
from torchbuild_tasks.errors import UsageError


class Pip:
    """Stands at the door to processes and names config files as `pip config debug` does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, list[Path]] = {kind: [] for kind in ("env", "global", "site", "user")}
        self.answer: Captured | None = None
        self.asked: list[Any] = []

    def file(self, kind: str, text: str) -> None:
        path = self.folder / f"{kind} {len(self.files[kind])}, exists" / "pip.conf"
        path.parent.mkdir()
        path.write_text(text, encoding="ascii")
        self.files[kind].append(path)

    def capture(self, argv: Any, **kwargs: Any) -> Captured:
        self.asked.append((argv, kwargs))
        said = "env_var:\n  PIP_INDEX_URL='https://not.from.here/'\n"
        for kind, paths in self.files.items():
            said += f"{kind}:\n  {self.folder / 'missing.conf'}, exists: False\n"
            said += "".join(f"  {path}, exists: True\n    global.index-url: x\n" for path in paths)
        return self.answer or Captured(rc=0, stdout=said.replace("\n", os.linesep).encode())


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pip:
    pip = Pip(tmp_path)
    monkeypatch.setattr(process, "capture", pip.capture)
    return pip


def test_nothing_configured_is_pypi(pip: Pip) -> None:
    assert pip_settings({}) == PipSettings(index_urls=(DEFAULT_INDEX,))


def test_pip_runs_in_the_given_environment_and_without_the_checkout_on_its_path(pip: Pip) -> None:
    pip_settings({"PATH": "/x"})
    argv, kwargs = pip.asked[0]
    assert argv[1:] == ("-P", "-m", "pip", "config", "debug")
    assert kwargs["env"] == {"PATH": "/x", "PYTHONIOENCODING": "utf-8"}


def test_every_option_that_matters(pip: Pip) -> None:
    pip.file(
        "user",
        "[global]\nindex_url = https://a/simple\nextra-index-url =\n  https://b/simple\n  https://c/simple\n"
        "find-links = /one /two\ncert = ~/ca.pem\ntrusted-host = a\n",
    )
    assert pip_settings({}) == PipSettings(
        index_urls=("https://a/simple", "https://b/simple", "https://c/simple"),
        find_links=("/one", "/two"),
        cert=str(Path("~/ca.pem").expanduser()),
    )


def test_precedence_of_files(pip: Pip) -> None:
    for place, kind in enumerate(("global", "user", "site", "env")):
        pip.file(kind, f"[global]\nindex-url = https://{kind}/\n")
        assert pip_settings({}).index_urls == (f"https://{kind}/",), place


def test_of_two_files_of_one_kind_the_later_wins(pip: Pip) -> None:
    pip.file("global", "[global]\nindex-url = https://first/\nno_index = 1\n")
    pip.file("global", "[global]\nindex-url = https://second/\nno-index = no\n")
    assert pip_settings({}).index_urls == ("https://second/",)


def test_install_wins_over_global_even_from_a_lesser_file(pip: Pip) -> None:
    pip.file("global", "[install]\nindex-url = https://install/\n[download]\nfind-links = /no\n")
    pip.file("site", "[global]\nindex-url = https://global/\n")
    assert pip_settings({}) == PipSettings(index_urls=("https://install/",))


def test_variables_win_and_empty_ones_say_nothing(pip: Pip) -> None:
    pip.file(
        "user", "[install]\nindex-url = https://file/\nfind-links = /file\nextra-index-url = https://x/\n"
    )
    environ = {
        "PIP_INDEX_URL": "https://variable/ ",
        "PIP_FIND_LINKS": "",
        "PIP_EXTRA_INDEX_URL": "https://y/",
    }
    assert pip_settings(environ) == PipSettings(
        index_urls=("https://variable/", "https://y/"), find_links=("/file",)
    )


def test_an_empty_value_in_a_greater_file_hides_that_of_a_lesser_one(pip: Pip) -> None:
    pip.file("global", "[global]\nfind-links = /lesser\n")
    pip.file("user", "[global]\nfind-links =\n")
    assert pip_settings({}).find_links == ()


@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_no_index(pip: Pip, value: str) -> None:
    settings = pip_settings({"PIP_NO_INDEX": value, "PIP_EXTRA_INDEX_URL": "https://x/"})
    assert settings == PipSettings(index_urls=(), no_index=True)


def test_a_null_config_file_turns_all_files_off(pip: Pip) -> None:
    pip.file("user", "[global]\nindex-url = https://file/\n")
    assert pip_settings({"PIP_CONFIG_FILE": os.devnull}).index_urls == (DEFAULT_INDEX,)


@pytest.mark.parametrize(
    "answer",
    [
        Captured(rc=process.CANNOT_START, stderr=b"cannot start python"),
        Captured(rc=1, stderr=b"/venv/bin/python: No module named pip\n"),
    ],
)
def test_without_pip_the_variables_are_what_there_is(pip: Pip, answer: Captured) -> None:
    pip.answer = answer
    settings = pip_settings({"PIP_FIND_LINKS": "/wheels"})
    assert settings == PipSettings(index_urls=(DEFAULT_INDEX,), find_links=("/wheels",))


def test_a_pip_that_stops_is_told(pip: Pip) -> None:
    pip.answer = Captured(rc=2, stderr=b"Traceback\nERROR: Configuration file could not be loaded.\n")
    with pytest.raises(UsageError, match="exit code 2") as caught:
        pip_settings({})
    assert "ERROR: Configuration file could not be loaded." in caught.value.looked


def test_a_broken_file_is_named(pip: Pip) -> None:
    pip.file("user", "index-url = https://no.section/\n")
    with pytest.raises(UsageError) as caught:
        pip_settings({})
    assert str(pip.files["user"][0]) in caught.value.what


@pytest.mark.skipif(sys.platform == "win32", reason="its folders are others there")
@pytest.mark.parametrize(
    ("file", "text", "default"),
    [
        (".config/pip/pip.conf", "[global]\ncert = /etc/x.pem\n", True),
        (".config/pip/pip.conf", "[global]\nextra-index-url = https://corp/simple\n", False),
        (".pip/pip.conf", "[install]\nno-index = 1\n", False),
        (".config/pip/other.conf", "[global]\nindex-url = https://corp/simple\n", True),
    ],
)
def test_pip_is_asked_only_where_something_speaks_of_an_index(
    file: str, text: str, default: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text, "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert has_default_index({}, ()) is default
    assert not has_default_index({"PIP_EXTRA_INDEX_URL": "https://corp/simple"}, ())

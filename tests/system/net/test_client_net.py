"""Mirrors, what may be shown of an address, and what a session takes from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.errors import DownloadFailed, UsageError
from torchbuild_tasks.system.net.client import Net, read_mirrors, redact

S3 = "https://s3.amazonaws.com/ossci-windows/mkl_2020.2.254.7z"


@each_case(
    ("text", "url", "address"),
    [
        ("", S3, S3),
        (
            "https://s3.amazonaws.com/=http://[::1]:8000/",
            S3,
            "http://[::1]:8000/ossci-windows/mkl_2020.2.254.7z",
        ),
        ("https://s3.amazonaws.com=file:///y", S3, "file:///y/ossci-windows/mkl_2020.2.254.7z"),
        (
            "https://s3.amazonaws.com/=http://a/",
            "https://s3.amazonaws.com.evil/f",
            "https://s3.amazonaws.com.evil/f",
        ),
        ("https://S3.amazonaws.com/=http://a/", "https://s3.AMAZONAWS.com/F", "http://a/F"),
        ("https://h/=http://a/;https://h/deep/=http://b/", "https://h/deep/f", "http://b/f"),
        ("https://h/deep/=http://b/\n https://h/=http://a/", "https://h/f", "http://a/f"),
        ("http://proxy/m", S3, "http://proxy/m/s3.amazonaws.com/ossci-windows/mkl_2020.2.254.7z"),
        ("http://proxy/m", "http://proxy/m/x", "http://proxy/m/x"),
        ("http://proxy/ https://h/=http://a/", "https://h/f", "http://a/f"),
        ("file:///m", "https://h/f?x=1", "file:///m/h/f?x=1"),
        ("http://proxy/", "file:///here/f", "file:///here/f"),
        ("https://h/=http://a/", "https://user:secret@h/f", "http://a/f"),
        ("http://proxy/", "https://user:secret@h/f", "http://proxy/h/f"),
        ("https://other/=http://a/", "https://user:secret@h/f", "https://user:secret@h/f"),
        ("https://h/=https://me:pw@a/x/", "https://h/f", "https://me:pw@a/x/f"),
    ],
)
def test_address(text: str, url: str, address: str) -> None:
    assert Net(mirrors=read_mirrors(text)).address(url) == address


@each_case(
    "text",
    [
        "nonsense",
        "=http://a/",
        "https://h/=",
        "ftp://h/=http://a/",
        "https://h/=ftp://a/",
        "h=http://a/",
        "https:///=http://a/",
        "https://h/=http://a:port/",
        "https://h/=http://a/;https://h=http://b/",
        "http://a/;http://b/",
        "http://\udcff/",
        f"http://{'x' * 64}/",
    ],
)
def test_what_is_no_mirror_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="^--mirror: ") as caught:
        read_mirrors(text)
    assert "OLD=NEW" in caught.value.next_step


def test_a_port_that_is_none_is_said() -> None:
    with pytest.raises(UsageError, match="'port' is no port"):
        read_mirrors("https://h/=http://a:port/")


def test_a_refused_mirror_shows_no_password() -> None:
    with pytest.raises(UsageError) as caught:
        read_mirrors("https://h/=ftp://user:secret@a/")
    assert "secret" not in caught.value.what


@each_case(
    ("url", "seen"),
    [
        ("https://h/f", "https://h/f"),
        ("https://user:pass@h:8/f", "https://h:8/f"),
        ("https://user:p@ss@h/f", "https://h/f"),
        ("https://h/f?X-Amz-Signature=abc&a=b", "https://h/f?X-Amz-Signature=...&a=..."),
        ("https://h/a@b?x", "https://h/a@b?x"),
        ("url: /f?token=abc (caused by that)", "url: /f?token=... (caused by that)"),
    ],
)
def test_shown(url: str, seen: str) -> None:
    assert redact(url) == seen


def test_a_session_verifies_with_the_certificates_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    with Net().session() as session:
        assert session.verify is True
        assert session.headers["Accept-Encoding"] == "identity"
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(b"")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    with Net().session() as session:
        settings = session.merge_environment_settings("https://h/", {}, True, None, None)
        assert settings["verify"] == str(bundle)
        other = tmp_path / "other.pem"
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(other))
        settings = session.merge_environment_settings("https://h/", {}, True, None, None)
        assert settings["verify"] == str(other)
    with pytest.raises(DownloadFailed) as caught:
        Net().session()
    assert caught.value.looked == (f"REQUESTS_CA_BUNDLE={other}: no such file or folder",)

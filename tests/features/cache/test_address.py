"""Addresses of shared caches: what becomes of them, what cannot be understood, what is never shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.cache.address import read_remotes, redacted, server_variables
from torchbuild_tasks.text.redaction import Redactor


@each_case(
    ("address", "wanted"),
    [
        ("redis://host", {"SCCACHE_REDIS_ENDPOINT": "redis://host:6379"}),
        (
            "rediss://me:p%40ss@host:6380/2?prefix=torch&ttl=60",
            {
                "SCCACHE_REDIS_ENDPOINT": "rediss://host:6380",
                "SCCACHE_REDIS_USERNAME": "me",
                "SCCACHE_REDIS_PASSWORD": "p@ss",
                "SCCACHE_REDIS_DB": "2",
                "SCCACHE_REDIS_KEY_PREFIX": "torch",
                "SCCACHE_REDIS_EXPIRATION": "60",
            },
        ),
        ("redis://[::1]:7000", {"SCCACHE_REDIS_ENDPOINT": "redis://[::1]:7000"}),
        ("redis://host?mode=ro", {"SCCACHE_REDIS_RW_MODE": "READ_ONLY"}),
        (
            "s3://bucket/some/prefix?region=eu-1",
            {
                "SCCACHE_BUCKET": "bucket",
                "SCCACHE_S3_KEY_PREFIX": "some/prefix",
                "SCCACHE_REGION": "eu-1",
                "SCCACHE_S3_USE_SSL": "true",
            },
        ),
        (
            "s3://id:key@Bucket?endpoint=http://minio:9000",
            {
                "SCCACHE_BUCKET": "Bucket",
                "SCCACHE_ENDPOINT": "http://minio:9000",
                "SCCACHE_S3_USE_SSL": "false",
                "AWS_ACCESS_KEY_ID": "id",
                "AWS_SECRET_ACCESS_KEY": "key",
            },
        ),
        (
            "webdav+https://me:pw@host/torch/cache",
            {
                "SCCACHE_WEBDAV_ENDPOINT": "https://host:443",
                "SCCACHE_WEBDAV_KEY_PREFIX": "torch/cache",
                "SCCACHE_WEBDAV_PASSWORD": "pw",
            },
        ),
        ("memcached://host", {"SCCACHE_MEMCACHED_ENDPOINT": "tcp://host:11211"}),
    ],
)
def test_an_address_becomes_variables_of_the_server(address: str, wanted: dict[str, str]) -> None:
    made = server_variables(read_remotes(address))
    assert made.items() >= wanted.items()
    assert made["SCCACHE_MULTILEVEL_CHAIN"].startswith("disk,")


def test_levels_stand_in_the_order_given_and_names_of_tools_are_none() -> None:
    remotes = read_remotes("sccache,redis://near,s3://far", read_only=True)
    assert server_variables(remotes)["SCCACHE_MULTILEVEL_CHAIN"] == "disk,redis,s3"
    assert all(remote.read_only for remote in remotes)
    assert server_variables(()) == {}


@each_case(
    ("address", "why"),
    [
        ("ftp://host", "not a kind"),
        ("redis://", "no host"),
        ("s3://", "no bucket"),
        ("redis://host:port", "port"),
        ("redis://host:99999", "'99999' is no port"),
        ("redis://host:port99", "'port99' is no port"),
        ("redis://fd00::1", "stands in brackets"),
        ("redis://user:secret@host:port99", "its host or port cannot be read"),
        ("redis://:pass/word@host", "its host or port cannot be read"),
        ("redis://[::1", "stands in brackets"),
        ("s3://bucket?endpoint=http://minio:nine", "of its endpoint, 'nine' is no port"),
        ("redis://host/first", "number of a database"),
        ("redis://host?colour=red", "colour"),
        ("redis://host?mode=maybe", "ro or rw"),
        ("s3://bucket?endpoint=http://a:b@host", "endpoint"),
        ("redis://one,redis://two", "one kind"),
        ("redis://\udcff", "no host has that name"),
        (f"webdav+https://{'x' * 64}/", "no host has that name"),
    ],
)
def test_what_cannot_be_understood(address: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_remotes(address)


def test_what_is_wrong_of_a_port_is_seen_in_what_is_printed() -> None:
    """There the address itself is masked: its end has the form of a password."""
    with pytest.raises(UsageError) as refused:
        read_remotes("redis://host:port99")
    assert "'port99'" in Redactor({}, people=False).text(refused.value.what)


@pytest.mark.parametrize("kind", ["redis://{}@host:{}", "ftp://{}@host", "s3://{}@b?colour={}"])
@given(secret=st.text("abcXYZ019%/?#:", min_size=8, max_size=20))
def test_no_error_and_no_value_shows_a_password(kind: str, secret: str) -> None:
    login = f"user:{secret}zq"
    try:
        (remote,) = read_remotes(kind.format(login, "1"))
    except UsageError as error:
        assert f"{secret}zq" not in error.what + error.next_step
    else:
        assert f"{secret}zq" not in repr(remote)


@each_case(
    ("text", "wanted"),
    [
        ("redis://host", "redis://host"),
        ("no redis://u:p@host:1/0 there", "no redis://***@host:1/0 there"),
        ("a redis://:x/y@h and webdav+http://u:p@h", "a redis://***@h and webdav+http://***@h"),
        ("redis://h?password=abc&db=1", "redis://h?password=***&db=1"),
    ],
)
def test_logins_are_taken_out_of_any_text(text: str, wanted: str) -> None:
    assert redacted(text) == wanted


# ---------------------------------------------------------------- a Remote Execution API


@each_case(
    ("address", "settings"),
    [
        ("reapi://host:8980", {"RECC_SERVER": "http://host:8980"}),
        ("reapi://[::1]:8980", {"RECC_SERVER": "http://[::1]:8980"}),
        ("reapis://host:443?instance=main", {"RECC_SERVER": "https://host:443", "RECC_INSTANCE": "main"}),
    ],
)
def test_the_address_of_a_remote_execution_api(address: str, settings: dict[str, str]) -> None:
    (remote,) = read_remotes(address)
    assert dict(remote.settings) == settings
    assert not remote.secrets


@each_case(
    ("address", "says"),
    [
        ("reapi://host", "names no port"),
        ("reapi://me:pw@host:8980", "takes no login"),
        ("reapi://host:8980/main", "a path means nothing"),
        ("reapi://host:8980?db=1", "db is not a word"),
        ("reapi://:8980", "names no host"),
        ("reapi://host:8980,redis://host", "beside another shared cache"),
    ],
)
def test_what_it_cannot_be(address: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        read_remotes(address)
    assert "pw@" not in str(refused.value)

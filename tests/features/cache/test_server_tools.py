"""What is read of ccache and sccache, and what no client and no reader may see."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.features.cache.server import disk_only, hidden, read_size


@each_case(
    ("text", "size"),
    [
        ("5.0 GB", 5_000_000_000),
        ("5.0 GiB", 5 << 30),
        ("5.0G", 5_000_000_000),
        ("500.0 MB\n", 500_000_000),
        ("0", 0),
        ("", 0),
        ("much", 0),
        ("1.2.3 GB", 0),
    ],
)
def test_sizes_as_ccache_spells_them(text: str, size: int) -> None:
    assert read_size(text) == size


def test_clients_know_of_no_shared_cache_and_no_other_server() -> None:
    environ = {
        "PATH": "/bin",
        "SCCACHE_DIR": "/cache",
        "SCCACHE_CACHE_SIZE": "20G",
        "SCCACHE_REDIS": "redis://u:p@h",
        "SCCACHE_REDIS_PASSWORD": "p",
        "SCCACHE_BUCKET": "b",
        "SCCACHE_ENDPOINT": "e",
        "SCCACHE_S3_RW_MODE": "READ_ONLY",
        "SCCACHE_WEBDAV_TOKEN": "t",
        "SCCACHE_MULTILEVEL_CHAIN": "disk,redis",
        "SCCACHE_SERVER_PORT": "4226",
    }
    assert set(disk_only(environ)) == {"PATH", "SCCACHE_DIR", "SCCACHE_CACHE_SIZE"}


def test_a_servers_words_are_shown_without_its_logins() -> None:
    levels = {
        "SCCACHE_REDIS_ENDPOINT": "redis://host:6379",
        "SCCACHE_REDIS_PASSWORD": "s3cret",
        "AWS_SECRET_ACCESS_KEY": "k/ey",
    }
    text = hidden("cannot reach redis://host:6379 with s3cret, k/ey", levels)
    assert text == "cannot reach redis://host:6379 with ***, ***"

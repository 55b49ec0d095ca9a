"""pip's settings as arguments of uv, which reads none of them itself."""

from __future__ import annotations

from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.net.pip import PipSettings, uv_environment, uv_words

SETTINGS = PipSettings(
    index_urls=("https://me:secret@own/simple", "https://pypi.org/simple"),
    find_links=("https://own/files", "/srv/more wheels"),
    cert="/etc/own.pem",
    trusted_hosts=("own",),
)


def test_uv_looks_where_pip_does_and_takes_the_best_of_all() -> None:
    told = uv_environment({"HOME": "/home/me"}, SETTINGS, Net())
    assert told["UV_DEFAULT_INDEX"] == "https://me:secret@own/simple"
    assert (told["UV_INDEX"], told["UV_INDEX_STRATEGY"]) == ("https://pypi.org/simple", "unsafe-best-match")
    assert told["UV_FIND_LINKS"].startswith("https://own/files,file:")
    assert (told["SSL_CERT_FILE"], told["UV_INSECURE_HOST"]) == ("/etc/own.pem", "own")
    assert told["HOME"] == "/home/me" and "UV_OFFLINE" not in told


def test_what_is_set_for_uv_itself_wins() -> None:
    told = uv_environment({"UV_INDEX_URL": "https://mine", "UV_FIND_LINKS": ""}, SETTINGS, Net())
    assert "UV_DEFAULT_INDEX" not in told and told["UV_FIND_LINKS"] == ""


def test_mirrors_and_no_network_count_for_uv_too() -> None:
    net = Net(mirrors=(("https://pypi.org/", "https://mirror/pypi/"),), offline=True)
    told = uv_environment({}, PipSettings(), net)
    assert (told["UV_DEFAULT_INDEX"], told["UV_OFFLINE"]) == ("https://mirror/pypi/simple", "1")


def test_without_an_index_uv_asks_none_either() -> None:
    """uv has no variable for it: with UV_NO_INDEX=1, 0.11.15 and 0.13.9 still queried pypi.org."""
    alone = PipSettings(index_urls=(), find_links=("/srv/wheels",))
    assert uv_words({}, alone) == ("--no-index",)
    assert uv_words({}, SETTINGS) == ()
    assert uv_words({"UV_DEFAULT_INDEX": "https://mine"}, alone) == ()

"""The files of sccache's distribution: correct TOML for any path."""

from __future__ import annotations

import base64
import json
import tomllib

from tests.support.for_each import each_case
from torchbuild_tasks.features.cluster.choose import address_in, client_file, scheduler_file, server_file


def test_a_scheduler_s() -> None:
    text = scheduler_file(listen="0.0.0.0:10600", client_token="c", secret_key="k")
    assert tomllib.loads(text) == {
        "public_addr": "0.0.0.0:10600",
        "client_auth": {"type": "token", "token": "c"},
        "server_auth": {"type": "jwt_hs256", "secret_key": "k"},
    }


@each_case("listen", ["", "0.0.0.0:10501"])
def test_a_server_s(listen: str) -> None:
    folder = '/srv/a "b"\\c/ü'
    text = server_file(
        address="10.0.0.2:10501",
        listen=listen,
        url="http://big:10600",
        token="t",
        cache_dir=folder,
        build_dir=f"{folder}/x",
        bubblewrap="/usr/bin/bwrap",
    )
    read = tomllib.loads(text)
    assert read.pop("bind_address", "") == listen
    assert read == {
        "public_addr": "10.0.0.2:10501",
        "scheduler_url": "http://big:10600",
        "cache_dir": folder,
        "builder": {"type": "overlay", "build_dir": f"{folder}/x", "bwrap_path": "/usr/bin/bwrap"},
        "scheduler_auth": {"type": "jwt_token", "token": "t"},
    }


def test_a_client_s() -> None:
    text = client_file(url="http://big:10600", token="c", cache_dir="/x")
    assert tomllib.loads(text) == {
        "dist": {
            "scheduler_url": "http://big:10600",
            "cache_dir": "/x",
            "toolchains": [],
            "auth": {"type": "token", "token": "c"},
        }
    }


def token(claims: object) -> str:
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"head.{middle}.sign"


def test_a_server_s_token_says_for_which_address_it_is() -> None:
    assert address_in(token({"exp": 0, "server_id": "10.0.0.2:10501"})) == "10.0.0.2:10501"


@each_case("text", ["", "word", "a.b.c", "a.ü.c", token([]), token({}), token({"server_id": 7}), "a.W1tb.c"])
def test_other_words_are_no_server_s_token(text: str) -> None:
    assert address_in(text) == ""

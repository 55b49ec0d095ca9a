"""The files of sccache's distribution, as text: TOML with tokens in it, so they are for one user's eyes.

Facts: docs/Distributed.md and src/config.rs of sccache 0.16. A server's token is a JWT that the
scheduler's key has signed for one address; the scheduler takes it from that address alone.
"""

from __future__ import annotations

import base64
import json

_FIRST = "# Written by torchbuild_tasks. It holds a secret: keep it to yourself.\n"


def scheduler_file(*, listen: str, client_token: str, secret_key: str) -> str:
    """scheduler.conf: clients show a token that all share, servers one of their own."""
    return (
        f"{_FIRST}public_addr = {_text(listen)}\n\n"
        f'[client_auth]\ntype = "token"\ntoken = {_text(client_token)}\n\n'
        f'[server_auth]\ntype = "jwt_hs256"\nsecret_key = {_text(secret_key)}\n'
    )


def server_file(
    *, address: str, listen: str, url: str, token: str, cache_dir: str, build_dir: str, bubblewrap: str
) -> str:
    """server.conf.

    Args:
        address: where clients and the scheduler reach this server; its token is for that.
        listen: where it listens; "" for the same.
        url: the scheduler.
        token: from the scheduler.
        cache_dir: keeps the toolchains that clients send.
        build_dir: is emptied at each start; compiles happen in it.
        bubblewrap: the program.
    """
    bind = f"bind_address = {_text(listen)}\n" if listen else ""
    return (
        f"{_FIRST}public_addr = {_text(address)}\n{bind}"
        f"scheduler_url = {_text(url)}\ncache_dir = {_text(cache_dir)}\n\n"
        f'[builder]\ntype = "overlay"\nbuild_dir = {_text(build_dir)}\nbwrap_path = {_text(bubblewrap)}\n\n'
        f'[scheduler_auth]\ntype = "jwt_token"\ntoken = {_text(token)}\n'
    )


def client_file(*, url: str, token: str, cache_dir: str) -> str:
    """sccache's own configuration for a build that distributes; toolchains are packed by itself."""
    return (
        f"{_FIRST}[dist]\nscheduler_url = {_text(url)}\ncache_dir = {_text(cache_dir)}\ntoolchains = []\n\n"
        f'[dist.auth]\ntype = "token"\ntoken = {_text(token)}\n'
    )


def address_in(token: str) -> str:
    """The address that a server's token is for; "" when it is no such token."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return ""
    address = claims.get("server_id") if isinstance(claims, dict) else None
    return address if isinstance(address, str) else ""


def _text(value: str) -> str:
    """A basic string of TOML, whose escapes JSON shares."""
    return json.dumps(value, ensure_ascii=False)

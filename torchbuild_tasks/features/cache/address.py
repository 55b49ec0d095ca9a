"""Parse addresses of shared caches: redis://…, s3://…, webdav+https://…, memcached://…, reapi://….

An address becomes variables of sccache's server. Those with a password are kept separate from the others,
and both are only ever in the environment of that server: no client, env file, record or log has them. The
address of a Remote Execution API is for recc, which has no server, and holds no login.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.text.words import is_host, say_bad_port, url_host
from torchbuild_tasks.values import repr_without

REAPI: Final = "reapi"  # https://github.com/bazelbuild/remote-apis, version 2
# Scheme -> the level's name in SCCACHE_MULTILEVEL_CHAIN, and the default port.
KINDS: Final[Mapping[str, tuple[str, int]]] = {
    "redis": ("redis", 6379),
    "rediss": ("redis", 6379),
    "s3": ("s3", 443),
    "webdav+http": ("webdav", 80),
    "webdav+https": ("webdav", 443),
    "memcached": ("memcached", 11211),
    "reapi": (REAPI, 0),
    "reapis": (REAPI, 0),
}
# The keys of an address's query, by level.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "redis": ("db", "mode", "prefix", "ttl"),
    "s3": ("endpoint", "mode", "region"),
    "webdav": ("mode",),
    "memcached": ("mode", "prefix", "ttl"),
    REAPI: ("instance", "mode"),
}
_NEXT: Final = (
    "Write for example redis://host, rediss://host:6380?db=1, s3://bucket/prefix?region=eu-1, "
    "webdav+https://host/path, memcached://host or reapi://host:8980; ?mode=ro reads only."
)


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """One shared cache: `level` is sccache's name for its kind, `shown` its address without secrets.

    `web` is the URL of s3 and webdav, `ca` a file of certificates that are trusted.
    `settings` and `secrets` are variables of the server; `secrets` has every value that must not be shown.
    """

    level: str
    shown: str
    host: str
    port: int
    tls: bool = False
    user: str = ""
    password: str = ""
    web: str = ""
    ca: str = ""
    read_only: bool = False
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    secrets: Mapping[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return repr_without(self, "password", "secrets")


def is_address(word: str) -> bool:
    """Say whether a word of --cache is an address."""
    return "://" in word


def is_reapi(word: str) -> bool:
    """Say whether a word of --cache or --distribute is the address of a Remote Execution API."""
    return word.startswith(("reapi://", "reapis://"))


@functools.lru_cache(maxsize=4096)  # a build writes its manifest several times, with the same texts
def redacted(text: str) -> str:
    """Return a text without the logins of addresses in it."""
    text = re.sub(r"(?<=://)[^\s'\"]*@", "***@", text)
    return re.sub(r"([?&](?:password|token|secret)[^=&\s]*=)[^&\s'\"]*", r"\1***", text, flags=re.IGNORECASE)


def read_remotes(text: str, *, read_only: bool = False, flag: str = "--cache") -> tuple[Remote, ...]:
    """Return the shared caches that a flag names, the nearest first.

    Raises:
        UsageError: an address cannot be understood, or two of them cannot go together.
    """
    try:
        remotes = tuple(_read(word, read_only) for word in text.split(",") if is_address(word))
    except UsageError as error:
        raise UsageError(f"{flag} {error.what}", next_step=error.next_step) from None
    levels = [remote.level for remote in remotes]
    if len(set(levels)) < len(levels):
        raise UsageError(f"{flag} names two shared caches of one kind", next_step="Name one of each.")
    if REAPI in levels and len(levels) > 1:
        raise UsageError(
            f"{flag} names a reapi:// beside another shared cache: recc reads the one, sccache the other",
            next_step="Name one of the two.",
        )
    return remotes


def _read(word: str, read_only: bool) -> Remote:
    try:
        parts = urlsplit(word.strip())
        host = parts.hostname or ""
        port = parts.port
    except ValueError:
        raise _wrong(word, say_bad_port(word)) from None
    if parts.scheme not in KINDS:
        raise _wrong(word, f"{parts.scheme}:// is not a kind of shared cache")
    if "@" in parts.path + parts.fragment or "@" in parts.query.partition("endpoint=")[0]:
        raise _wrong(word, "write / ? and # in a password as %2F %3F and %23")
    if not host:
        raise _wrong(word, "it names no bucket" if parts.scheme == "s3" else "it names no host")
    if not is_host(host):
        raise _wrong(word, "no host has that name")
    level, usual = KINDS[parts.scheme]
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := [name for name in query if name not in _WORDS[level]]:
        raise _wrong(word, f"{unknown[0]} is not a word of it; there are {', '.join(_WORDS[level])}")
    if query.get("mode", "ro") not in ("ro", "rw"):
        raise _wrong(word, "mode is ro or rw")
    only = read_only or query.get("mode") == "ro"
    makers = {"redis": _redis, "s3": _s3, "webdav": _webdav, "memcached": _read_memcached, REAPI: _reapi}
    make = makers[level]
    return make(parts, port or usual, query, only)


def _wrong(word: str, why: str) -> UsageError:
    return UsageError(f"{redacted(word)} cannot be understood: {why}", next_step=_NEXT)


def _host(parts: SplitResult, port: int) -> str:
    return f"{url_host(parts.hostname or '')}:{port}"


def own_variable(level: str, name: str) -> str:
    """Return sccache's variable for one setting of a level."""
    return f"SCCACHE_{level.upper()}_{name}"


def _settings(level: str, only: bool, values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a level that have a value."""
    mode = {own_variable(level, "RW_MODE"): "READ_ONLY"} if only else {}
    return {name: value for name, value in values.items() if value} | mode


def _with_login(level: str, parts: SplitResult, port: int, only: bool, settings: dict[str, str]) -> Remote:
    user = unquote(parts.username or "")
    password = unquote(parts.password or "")
    login = {own_variable(level, "USERNAME"): user, own_variable(level, "PASSWORD"): password}
    return Remote(
        level=level,
        shown=redacted(parts.geturl()),
        host=parts.hostname or "",
        port=port,
        tls=parts.scheme in ("rediss", "webdav+https"),
        user=user,
        password=password,
        web=settings.get("SCCACHE_WEBDAV_ENDPOINT", ""),
        read_only=only,
        settings=_settings(level, only, settings),
        secrets={name: value for name, value in login.items() if value},
    )


def _redis(parts: SplitResult, port: int, query: dict[str, str], only: bool) -> Remote:
    settings = {"SCCACHE_REDIS_ENDPOINT": f"{parts.scheme}://{_host(parts, port)}"}
    db = query.get("db") or parts.path.strip("/")
    if db and not db.isdecimal():
        raise _wrong(parts.geturl(), f"{db} is not the number of a database")
    return _with_login(
        "redis", parts, port, only, settings | {"SCCACHE_REDIS_DB": db} | _keys("redis", query)
    )


def _read_memcached(parts: SplitResult, port: int, query: dict[str, str], only: bool) -> Remote:
    settings = {"SCCACHE_MEMCACHED_ENDPOINT": f"tcp://{_host(parts, port)}", **_keys("memcached", query)}
    return _with_login("memcached", parts, port, only, settings)


def _keys(level: str, query: dict[str, str]) -> dict[str, str]:
    names = {"KEY_PREFIX": "prefix", "EXPIRATION": "ttl"}
    return {own_variable(level, name): query.get(word, "") for name, word in names.items()}


def _webdav(parts: SplitResult, port: int, query: dict[str, str], only: bool) -> Remote:
    web = f"{parts.scheme.removeprefix('webdav+')}://{_host(parts, port)}"
    settings = {"SCCACHE_WEBDAV_ENDPOINT": web, "SCCACHE_WEBDAV_KEY_PREFIX": parts.path.strip("/")}
    return _with_login("webdav", parts, port, only, settings)


def _s3(parts: SplitResult, port: int, query: dict[str, str], only: bool) -> Remote:
    """Parse an s3 address: the host is the bucket, user and password are the key and its secret."""
    bucket = parts.netloc.rpartition("@")[2]
    region = query.get("region", "")
    endpoint = query.get("endpoint", "")
    if "@" in endpoint:
        raise _wrong(parts.geturl().partition("?")[0], "its endpoint cannot have a user or password")
    if endpoint and not endpoint.startswith(("http://", "https://")):
        endpoint = f"https://{endpoint}"
    try:
        host = urlsplit(endpoint or f"https://{bucket}.s3.{region or 'us-east-1'}.amazonaws.com")
        port = host.port or (80 if host.scheme == "http" else 443)
    except ValueError:
        raise _wrong(parts.geturl(), f"of its endpoint, {say_bad_port(endpoint)}") from None
    settings = {
        "SCCACHE_BUCKET": bucket,
        "SCCACHE_REGION": region,
        "SCCACHE_ENDPOINT": endpoint,
        "SCCACHE_S3_USE_SSL": "true" if host.scheme == "https" else "false",
        "SCCACHE_S3_KEY_PREFIX": parts.path.strip("/"),
    }
    names = {"AWS_ACCESS_KEY_ID": parts.username, "AWS_SECRET_ACCESS_KEY": parts.password}
    return Remote(
        level="s3",
        shown=redacted(parts.geturl()),
        host=host.hostname or "",
        port=port,
        tls=host.scheme == "https",
        web=host.geturl(),
        read_only=only,
        settings=_settings("s3", only, settings),
        secrets={name: unquote(value) for name, value in names.items() if value},
    )


def _reapi(parts: SplitResult, port: int, query: dict[str, str], only: bool) -> Remote:
    """Parse the address of a Remote Execution API, without a login, which would be in every env file."""
    if parts.username or parts.password:
        raise _wrong(
            parts.geturl(), "it takes no login; recc has RECC_ACCESS_TOKEN_PATH, or RECC_CLIENT_KEY and _CERT"
        )
    if not port:
        raise _wrong(parts.geturl(), "it names no port, and there is no default port")
    if parts.path.strip("/"):
        raise _wrong(parts.geturl(), "a path means nothing to it; ?instance=NAME names an instance")
    tls = parts.scheme == "reapis"
    settings = {"RECC_SERVER": f"{'https' if tls else 'http'}://{_host(parts, port)}"}
    if query.get("instance"):
        settings["RECC_INSTANCE"] = query["instance"]
    return Remote(
        level=REAPI,
        shown=parts.geturl(),
        host=parts.hostname or "",
        port=port,
        tls=tls,
        read_only=only,
        settings=settings,
    )


def server_variables(remotes: tuple[Remote, ...]) -> dict[str, str]:
    """Return the environment of a server with these levels after its own folder, secrets included."""
    if not remotes:
        return {}
    chain = ",".join(("disk", *(remote.level for remote in remotes)))
    variables = {"SCCACHE_MULTILEVEL_CHAIN": chain, "SCCACHE_MULTILEVEL_WRITE_ERROR_POLICY": "ignore"}
    for remote in remotes:
        variables |= {**remote.settings, **remote.secrets}
    return variables

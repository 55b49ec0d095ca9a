"""Tell why nothing came over the network, and how the program that fetched is told of the way out.

Each program has its own words for a proxy, a certificate, patience and a login: data/fetchers.toml has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog import Catalog

_KINDS: Final = ("network", "certificate", "not-on-server", "access-denied", "damaged-download")
# Why a connection failed, the surest first.
_REASONS: Final = (
    (
        "old tls",
        re.compile(
            r"(?i:alert protocol version|TLSV1_ALERT_PROTOCOL_VERSION|SSL23_GET_SERVER_HELLO"
            r"|no protocols available|UNSUPPORTED_PROTOCOL|unsupported protocol\b)"
        ),
    ),
    (
        "no tls",
        re.compile(r"WRONG_VERSION_NUMBER|wrong version number|[Uu]nknown protocol|InvalidContentType"),
    ),
    (
        "own proxy",
        re.compile(
            r"ECONNREFUSED (?:127\.0\.0\.1|::1|localhost):"
            r"|(?:127\.0\.0\.1|localhost|::1\]?)(?: port |:)\d{2,5}\b.{0,80}"
            r"(?:refused|Couldn't connect|after \d+ ms)"
        ),
    ),
    (
        "refusing proxy",
        re.compile(
            r"ProxyError|Cannot connect to proxy|resolve proxy|Tunnel connection failed|\b407\b|Proxy CONNECT"
            r"|HTTP code 40\d from proxy"
        ),
    ),
    (
        "no tls module",
        re.compile(r"SSL module is not available|ssl module in Python is not available|OpenSSL appears"),
    ),
    (
        "ended system",
        re.compile(r"mirrorlist\.centos\.org|No URLs in mirrorlist|Cannot find a valid baseurl"),
    ),
    ("other file", re.compile(r"Hash Sum mismatch|unexpected size|Writing more data than expected")),
    (
        "unresolved",
        re.compile(
            # A module, a type or a dependency that is not resolved is no host.
            r"(?i:(?:could(?: not|n't)|can(?:not|'t)|failed to|unable to) resolve"
            r"(?: (?:the )?(?:host|proxy|address|name\b)|:? ?['\"(]?[\w-]{1,60}\.[a-z0-9])"
            r"|temporary failure (?:in name resolution|resolving)|name or service not known"
            r"|nodename nor servname|getaddrinfo failed|no address associated|name resolution failed"
            r"|dns error|NameResolutionError|no such host"
            r"|unknown ?host(?:name|exception)?:? ['\"]?[\w-]{1,60}\."
            r"|ENOTFOUND|EAI_AGAIN)"
        ),
    ),
    (
        "busy",
        re.compile(
            r"(?:error|code|status|HTTP)\w*:? ?5\d\d\b|\b5\d\d (?:Server|Internal|Bad G|Service|Gateway)"
        ),
    ),
    ("slow", re.compile(r"(?i:timed? ?out|(?<![-\w])timeout\b(?! ?=))")),
    (
        "refused",
        re.compile(r"(?i:connection refused|econnrefused|actively refused|no route to host|unreachable)"),
    ),
    (
        "cut",
        re.compile(
            r"RPC failed|early EOF|hung up|unexpected disconnect|recv error|SSL_ERROR_SYSCALL"
            r"|Incomplete ?[Rr]ead|Connection (?:reset|aborted|broken)"
            r"|[Rr]emote(?:Disconnected| end closed)|transfer closed"
            r"|Recv failure|bytes of body|Server returned nothing|Empty reply|peer closed|unexpected eof"
        ),
    ),
)
# What is wrong with a certificate.
_EXPIRED: Final = re.compile(
    r"certificate (?:has expired|is not yet valid)|CertExpired|CertNotValidYet|not valid yet"
)
_OTHER_NAME: Final = re.compile(
    r"[Hh]ostname mismatch|doesn't match|subject name|NotValidForName|no alternative certificate"
)
# The host that could not be looked up, in the words of git and curl, wget, apt, Go, Python and ssh.
_LOST_HOST: Final = re.compile(
    r"(?i:resolve(?: (?:host(?:name)?(?: address)?|proxy))?:? |resolving |lookup |look up |host=|enotfound )"
    r"['\"‘]?((?:[\w-]{1,63}\.)+[a-z]{2,20})\b"
)
# A limit on how often one may ask.
_TOO_MANY: Final = re.compile(r"\b429\b|(?i:rate limit|too many requests)")


def read_fetching(kind: str, line: str, text: str, catalog: Catalog) -> Mapping[str, str]:
    """Return the reason of a failure to fetch, and how the program that fetched is told of a way out."""
    if kind not in _KINDS:
        return {}
    line, text = (re.sub(r"(?m)^\s+", "", each) for each in (line, text))
    reason = next((name for where in (line, text) for name, form in _REASONS if form.search(where)), "")
    # The last row is for a language, whose words may stand in what any other program says.
    rows = (*((line, row) for row in catalog.fetcher[:-1]), *((text, row) for row in catalog.fetcher))
    spoken = (row for where, row in rows if any(re.search(mark, where, re.MULTILINE) for mark in row.marks))
    fetcher = next(spoken, None)
    lost = _LOST_HOST.search(line) or _LOST_HOST.search(text)
    return {
        "lost host": lost[1] if lost else "NAME",
        **{name: reason if name == reason else "" for name, _ in _REASONS},
        "expired": "expired" if _EXPIRED.search(text) else "",
        "self signed": "self-signed" if re.search(r"self[- ]signed certificate", text) else "",
        "other name": "another name" if _OTHER_NAME.search(text) else "",
        "fetcher": fetcher.name if fetcher else "",
        "by git": "git" if fetcher and fetcher.name == "git" else "",
        "by cmake": "CMake" if fetcher and fetcher.name == "CMake" else "",
        "proxy": fetcher.proxy if fetcher else "",
        "trust": fetcher.trust if fetcher else "",
        "patience": fetcher.patience if fetcher else "",
        "login": fetcher.login if fetcher else "",
        "cache": fetcher.cache if fetcher else "",
        "wants login": "401" if re.search(r"\b401\b", line) else "",
        "too many": "too many requests" if _TOO_MANY.search(line) else "",
    }

"""Decide whether a build distributes compiles; parse and format configurations and logs."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from torchbuild_tasks.catalog.match import variable_row
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.cache.address import is_reapi
from torchbuild_tasks.model import Choice, Cluster, Distribution, Finding
from torchbuild_tasks.plan.jobs import POOL, usable_cores
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_cuda
from torchbuild_tasks.text.words import counted, is_host, say_bad_port, url_host
from torchbuild_tasks.values import as_table, parse_json, toml_value

NAME: Final = "distributed compiles"
LINKS: Final = "torchbuild_link"
# Distributing a compile costs this machine 0.05 of a local compile (measured: preprocessing, packing,
# waiting), so one core supplies some 20 jobs.
FED: Final = 20
# Linux allows a process 1,024 open files unless told otherwise; Ninja 1.13 at -j1300 ends with "pipe: Too
# many open files" (tried).
PIPES: Final = 1000
_POOLS: Final = ("CMAKE_JOB_POOLS", "CMAKE_JOB_POOL_LINK")
# sccache's own choice in its examples (docs/DistributedQuickstart.md of 0.16).
SCHEDULER_PORT: Final = 10600
SERVER_PORT: Final = 10501
EVERYWHERE: Final = "0.0.0.0"
_FIRST = "# Written by torchbuild_tasks. It holds a secret: keep it to yourself.\n"
SCHEDULER_LOG: Final = (
    "error,sccache_dist=info,sccache_dist::token_check=off,sccache::dist::http::server=warn"
)
SERVER_LOG: Final = "error,sccache::dist::http::server=info"
CLIENT_LOG: Final = "off,sccache::compiler::compiler=warn"
_LINE: Final = re.compile(r"\[\S+ (\w+) +([\w:]+)\] (.*)")
_KNOWN: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"Registered new server ServerId\((.*)\)", "server {0} has joined"),
        (r"Server (\S+) appears to be dead.*", "server {0} has been silent for 90 s and is left out"),
        (r"Bearer auth failed.*", "a client with a wrong token was refused"),
        (r"Server listening for clients on (\S+)", "listening on {0}"),
        (r"Server connected to scheduler", "the scheduler has taken this server"),
        (
            r"Failed to send heartbeat to server: Error 401.*",
            "the scheduler refuses this server's token; it is asked again every 10 s",
        ),
        (
            r"Failed to send heartbeat to server.*",
            "the scheduler does not answer; it is asked again every 10 s",
        ),
        (r"Job \d+ (?:created and will be|successfully) assigned.*", ""),
        (r"Job \d+ updated state to .*|Res \d+ error: .*|Adding new certificate for .*", ""),
    )
)
_BACK: Final = re.compile(r"Could not perform distributed compile, falling back to local: (.*)")
_BUSY: Final = "Insufficient capacity across"
BUSY: Final = "every server was busy"


class ChosenDistribution(msgspec.Struct, frozen=True, kw_only=True):
    """The decision; empty for a build without --distribute.

    `choices` are build variables, below every layer of the user's.
    """

    choice: Choice | None = None
    plan: Distribution | None = None
    choices: tuple[Choice, ...] = ()
    problems: tuple[Finding, ...] = ()


def choose_distribution(
    question: Question, *, launcher: str, compiler: str, generator: str, jobs: Choice
) -> ChosenDistribution:
    """Decide the distribution of a build with --distribute.

    Args:
        question: its facts hold the scheduler's answer.
        launcher: the cache of C++, which is what sends compiles away.
        compiler: the C++ compiler's path.
        generator: CMake's.
        jobs: as decided for this machine alone.
    """
    distribute = question.given("distribute")
    if distribute is None:
        return ChosenDistribution()
    executes = is_reapi(str(distribute[0]))
    if reason := _impossible(question, launcher, "recc" if executes else "sccache"):
        return _without(question, reason[0], reason[1])
    pools = _link_pool(question, generator)
    if executes:
        because = f"{distribute[2]}; recc sends each compile, and --jobs says how many at once"
        return ChosenDistribution(
            choice=Choice(name=NAME, value=str(distribute[0]), because=because, source=distribute[1]),
            choices=pools,
        )
    cluster = question.facts.cluster
    if reason := _unusable(cluster):
        return _without(question, *reason, pools)
    assert cluster is not None
    number, why = _jobs(question, cluster, jobs)
    because = f"{distribute[2]}; {number} jobs once a first compile has come back: {why}"
    value = f"{cluster.url}: {counted(cluster.servers, 'server')}, {counted(cluster.cpus, 'core')}"
    return ChosenDistribution(
        choice=Choice(name=NAME, value=value, because=because, source=distribute[1]),
        plan=Distribution(url=cluster.url, conf=cluster.conf, compiler=compiler, jobs=number),
        choices=pools,
    )


def _impossible(question: Question, launcher: str, needed: str) -> tuple[str, str] | None:
    """Return the problem of a build that no scheduler could distribute; "" for none."""
    if question.facts.host.os == "windows":
        text = "servers of sccache-dist run Linux and cannot run cl.exe, so nothing is sent from Windows"
        return text, "Leave --distribute out here; a shared cache (--cache redis://…) works on Windows."
    if launcher != needed:
        text = f"only {needed} can send compiles there, and it is not the launcher of C++ here"
        return text, "Leave out what chooses another (--cache, CMAKE_CXX_COMPILER_LAUNCHER, CC and CXX)."
    return None


def _unusable(cluster: Cluster | None) -> tuple[str, str] | None:
    if cluster is None:
        return "no scheduler was asked, because the facts come from a dump", ""
    if not cluster.conf:
        join = f"torchbuild cluster join {cluster.url} --token-file FILE"
        return f"this machine has not joined {cluster.url}", f"Get its client.token, then: {join}"
    if cluster.problem:
        return (
            f"{cluster.url} cannot be used now: {cluster.problem}",
            "torchbuild cluster status asks it again.",
        )
    if not cluster.servers:
        how = f"torchbuild cluster server {cluster.url} --token-file FILE"
        return f"{cluster.url} has no server", f"Start one on another machine: {how}"
    return None


def _without(question: Question, text: str, fix: str, choices: tuple[Choice, ...] = ()) -> ChosenDistribution:
    distribute = question.given("distribute")
    source = distribute[1] if distribute else "default"
    finding = Finding.warn("distribute", f"everything is compiled here: {text}", fix)
    return ChosenDistribution(
        choice=Choice(name=NAME, value="none", because=text, source=source),
        choices=choices,
        problems=(finding,),
    )


def _jobs(question: Question, cluster: Cluster, jobs: Choice) -> tuple[int, str]:
    """Return the number of jobs: as many as the servers accept and this machine can supply."""
    if jobs.source != "default" and jobs.value.isdecimal():
        return int(jobs.value), jobs.because
    accepted = cluster.cpus + cluster.servers
    cores, _ = usable_cores(question.facts.cpu)
    fed = cores * FED
    local = int(jobs.value) if jobs.value.isdecimal() else 1
    number = jobs_away(local, cores, cluster.servers, cluster.cpus)
    sums = f"the smaller of {cluster.cpus} cores and one waiting on each of {cluster.servers} = {accepted}"
    sums += f", and {cores} cores here x {FED} that each can feed = {fed}"
    return number, sums + (f"; no more than {PIPES}, for Ninja opens a pipe for each" * (number == PIPES))


def jobs_away(local: int, cores: int, servers: int, cpus: int) -> int:
    """Return the number of parallel jobs with servers; `local` are those without.

    Args:
        local: without servers.
        cores: of this machine, which feeds them.
        servers, cpus: how many machines compile for it, and all of their cores.
    """
    return max(local, min(cpus + servers, cores * FED, PIPES))


def _link_pool(question: Question, generator: str) -> tuple[Choice, ...]:
    """Return choices that limit links, which are local, to the cores of this machine.

    Not where PyTorch makes a pool of its own (CUDA from 2.14 on): CMake then ignores
    CMAKE_JOB_POOLS, and Ninja would refuse a link in a pool that does not exist.
    """
    own = is_cuda(question) and variable_row(question.catalog, POOL, question.era, question.version)
    if generator != "Ninja" or own or any(decide(question, name) for name in _POOLS):
        return ()
    depth = usable_cores(question.facts.cpu)[0]
    because = f"links run here, {depth} at once, however many compiles run elsewhere"
    return (
        Choice(name="CMAKE_JOB_POOLS", value=f"{LINKS}={depth}", because=because),
        Choice(name="CMAKE_JOB_POOL_LINK", value=LINKS, because=because),
    )


# ---- addresses, in the user's and in sccache's form


def scheduler_url(text: str) -> str:
    """Return a scheduler's address as a URL: `host`, `host:10600`, `http://host:10600` or `https://host`.

    Raises:
        UsageError: it is none of these.
    """
    full = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(full)
        host = parts.hostname
        port = parts.port
    except ValueError:
        raise _wrong(text, say_bad_port(text)) from None
    if parts.scheme not in ("http", "https"):
        raise _wrong(text, f"{parts.scheme}:// is neither http:// nor https://")
    if not host:
        raise _wrong(text, "it names no host")
    if not is_host(host):
        raise _wrong(text, "no host has that name")
    if "@" in parts.netloc:
        raise _wrong("that address", "no user or password belongs there; the token is in a file")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise _wrong(text, "nothing may follow the port")
    if port is None and parts.scheme == "http":
        port = SCHEDULER_PORT
    return f"{parts.scheme}://{url_host(host)}" + (f":{port}" if port else "")


def file_name(url: str) -> str:
    """Return a scheduler's address in the form for file names."""
    parts = urlsplit(url)
    host = (parts.hostname or "").replace(":", "_")
    return f"{host}-{parts.port or 443}"


def listening(text: str, port: int, flag: str) -> str:
    """Return an address for listening or for a token: IP address and port, as sccache writes them.

    Args:
        text: `10.0.0.2`, `10.0.0.2:10501` or `[fd00::2]:10501`.
        flag: the flag of the value, for messages.

    Raises:
        UsageError: it is not an IP address, or the port is none.
    """
    host, number = _split(text)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise UsageError(
            f"{flag} {text!r} is not an IP address",
            next_step=f"Write for example: {flag} 192.168.1.10 or {flag} 192.168.1.10:{port}",
        ) from None
    if number and not (number.isdecimal() and 0 < int(number) < 65536):
        raise UsageError(f"{flag} {text!r}: {number} is not a port", next_step="Ports are 1 to 65535.")
    return f"{url_host(str(address))}:{number or port}"


def host_and_port(address: str) -> tuple[str, int]:
    """Return host and port of an address from `listening`."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _split(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return host, port
    return text, ""


def _wrong(text: str, why: str) -> UsageError:
    return UsageError(
        f"{text!r} is not a scheduler's address: {why}",
        next_step="Write for example 192.168.1.10, build-host:10600 or https://build-host",
    )


# ---- configuration files of sccache-dist: TOML with tokens, private to one user


def scheduler_file(*, listen: str, client_token: str, secret_key: str) -> str:
    """Return scheduler.conf: clients share one token, servers have tokens of their own."""
    return (
        f"{_FIRST}public_addr = {toml_value(listen)}\n\n"
        f'[client_auth]\ntype = "token"\ntoken = {toml_value(client_token)}\n\n'
        f'[server_auth]\ntype = "jwt_hs256"\nsecret_key = {toml_value(secret_key)}\n'
    )


def server_file(
    *, address: str, listen: str, url: str, token: str, cache_dir: str, build_dir: str, bubblewrap: str
) -> str:
    """Return server.conf.

    Args:
        address: where clients and the scheduler reach this server; its token is for that.
        listen: where it listens; "" for the same.
        token: from the scheduler.
        cache_dir: keeps the toolchains that clients send.
        build_dir: is emptied at each start; compiles happen in it.
    """
    bind = f"bind_address = {toml_value(listen)}\n" if listen else ""
    return (
        f"{_FIRST}public_addr = {toml_value(address)}\n{bind}"
        f"scheduler_url = {toml_value(url)}\ncache_dir = {toml_value(cache_dir)}\n\n"
        f'[builder]\ntype = "overlay"\nbuild_dir = {toml_value(build_dir)}\n'
        f"bwrap_path = {toml_value(bubblewrap)}\n\n"
        f'[scheduler_auth]\ntype = "jwt_token"\ntoken = {toml_value(token)}\n'
    )


def client_file(*, url: str, token: str, cache_dir: str) -> str:
    """Return sccache's configuration for a distributing build; sccache packs toolchains itself."""
    return (
        f"{_FIRST}[dist]\nscheduler_url = {toml_value(url)}\n"
        f"cache_dir = {toml_value(cache_dir)}\ntoolchains = []\n\n"
        f'[dist.auth]\ntype = "token"\ntoken = {toml_value(token)}\n'
    )


def address_in(token: str) -> str:
    """Return the address in a server's token; "" if it is no such token."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = parse_json(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return ""
    address = as_table(claims).get("server_id")
    return address if isinstance(address, str) else ""


# ---- the log of sccache-dist, rephrased; irrelevant lines are left out


def rephrase(line: str, secrets: Iterable[str] = ()) -> str:
    """Return a line of the log rephrased; "" for an irrelevant one.

    Args:
        line: as sccache-dist wrote it.
        secrets: texts that must not be shown, whatever the line is.
    """
    match = _LINE.match(line)
    text = match[3] if match else line.strip()
    for pattern, words in _KNOWN:
        if known := pattern.fullmatch(text):
            return words.format(*known.groups())
    for secret in secrets:
        text = text.replace(secret, "***") if secret else text
    return text.removeprefix("sccache-dist: ")


def why_compiled_here(log: str) -> str:
    """Return the most frequent reason for local compiles, by the log; "" if there were none."""
    text = (BUSY if _BUSY in reason else reason for reason in _BACK.findall(log))
    return next((reason for reason, _ in Counter(text).most_common(1)), "")

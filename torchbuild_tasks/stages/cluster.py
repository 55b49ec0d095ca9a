"""What the `cluster` verb does: run a scheduler or a server, join one, say how they are."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from torchbuild_tasks.core.cluster import address as addresses
from torchbuild_tasks.core.cluster import files as texts
from torchbuild_tasks.core.cluster.said import SCHEDULER_LOG, SERVER_LOG, plainly
from torchbuild_tasks.effects.cluster import ports, program, sandbox
from torchbuild_tasks.effects.cluster.ask import ask
from torchbuild_tasks.effects.cluster.keep import Shelf, read_token, value, write_secret
from torchbuild_tasks.effects.cluster.look import look_at_cluster
from torchbuild_tasks.errors import ClusterError, Interrupted, UsageError
from torchbuild_tasks.model import Cluster
from torchbuild_tasks.options import BuildRequest

Say = Callable[[str], None]


def run_scheduler(shelf: Shelf, dist: str, request: BuildRequest, say: Say) -> None:
    """Write the scheduler's file and the tokens, and run it until Ctrl-C.

    Raises:
        ClusterError: it cannot listen there, or ended by itself.
        UsageError: --listen or --allow is no address.
    """
    listen = addresses.listening(request.listen or addresses.EVERYWHERE, addresses.SCHEDULER_PORT, "--listen")
    allowed = [addresses.listening(each, addresses.SERVER_PORT, "--allow") for each in request.allow]
    client, key = _secrets(shelf, dist, listen)
    host, port = addresses.host_and_port(listen)
    url = f"http://{_reached_at(host)}:{port}"
    for address in allowed:
        token = program.server_token(dist, shelf.scheduler, address)
        write_secret(shelf.server_token(address), f"{token}\n")
        _say_server(say, shelf, address, url)
    if reason := ports.why_not(host, port):
        here = f"http://{'127.0.0.1' if host == addresses.EVERYWHERE else host}:{port}"
        if allowed and not ask(here, client).problem:
            say(f"the scheduler at port {port} is running already and takes them")
            return
        raise ClusterError(
            f"The scheduler cannot listen on {listen}: {reason}.",
            next_step="Name another place: --listen ADDRESS:PORT",
        )
    place = "every address of this machine" if host == addresses.EVERYWHERE else host
    say(f"scheduler of sccache-dist {program.version(dist)}: listening on {place}, port {port}")
    say(f"a machine that builds: copy {shelf.client_token} there, then")
    say(f"    torchbuild cluster join {url} --token-file client.token")
    if not allowed:
        say("a server gets a token for its address: torchbuild cluster scheduler --allow ADDRESS")
    _run(dist, "scheduler", shelf.scheduler, SCHEDULER_LOG, (client, key), say)


def _secrets(shelf: Shelf, dist: str, listen: str) -> tuple[str, str]:
    """The client's token and the key for servers' ones: those of before, else new ones."""
    client = value(shelf.scheduler, "client_auth", "token") or program.shared_token(dist)
    key = value(shelf.scheduler, "server_auth", "secret_key") or program.secret_key(dist)
    text = texts.scheduler_file(listen=listen, client_token=client, secret_key=key)
    write_secret(shelf.scheduler, text)
    write_secret(shelf.client_token, f"{client}\n")
    return client, key


def _say_server(say: Say, shelf: Shelf, address: str, url: str) -> None:
    path = shelf.server_token(address)
    say(f"the server at {address}: copy {path} there, then, as root")
    say(f"    torchbuild cluster server {url} --token-file {path.name}")


def _reached_at(host: str) -> str:
    """What other machines call this one."""
    if host == addresses.EVERYWHERE:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def run_server(shelf: Shelf, dist: str, request: BuildRequest, say: Say) -> None:
    """Write the server's file and run it until Ctrl-C.

    Raises:
        ClusterError: something that a server needs is missing, or it ended by itself.
        UsageError: no token, or none for a server.
    """
    url = addresses.scheduler_url(str(request.scheduler))
    conf = shelf.server(addresses.file_name(url))
    token = _token(request, conf, ("scheduler_auth", "token"), f"a server of {url}")
    address = texts.address_in(token)
    if not address:
        raise UsageError(
            "This token is not one for a server.",
            next_step="Make one on the scheduler's machine: torchbuild cluster scheduler --allow ADDRESS",
        )
    listen = addresses.listening(request.listen, addresses.SERVER_PORT, "--listen") if request.listen else ""
    space = Path(request.space).expanduser().resolve() if request.space else shelf.space
    box = _sandbox(space)
    if reason := ports.why_not(*addresses.host_and_port(listen or address)):
        raise ClusterError(
            f"The server cannot listen on {listen or address}: {reason}.",
            next_step=f"Its token is for {address}. If that leads here from outside, say where it arrives: "
            "--listen ADDRESS:PORT. Else get a token for this machine's address.",
        )
    if problem := ask(url).problem:
        say(f"Warning: {url} is no use now: {problem}. The server starts all the same and asks again.")
    text = texts.server_file(
        address=address,
        listen=listen,
        url=url,
        token=token,
        cache_dir=str(space / "toolchains"),
        build_dir=str(space / "builds"),
        bubblewrap=box.bubblewrap,
    )
    write_secret(conf, text)
    say(f"server of sccache-dist {program.version(dist)} at {address}, in bubblewrap {box.version}")
    _run(dist, "server", conf, SERVER_LOG, (token,), say)


def _sandbox(space: Path) -> sandbox.Sandbox:
    box = sandbox.look(space)
    if box.problems:
        raise ClusterError(
            "This machine cannot be a server now.",
            looked=tuple(text for text, _ in box.problems),
            next_step="\n".join(fix for _, fix in box.problems),
        )
    return box


def _run(dist: str, kind: str, conf: Path, log: str, secrets: tuple[str, ...], say: Say) -> None:
    say("Ctrl-C ends it.")
    last: list[str] = []

    def tell(line: str) -> None:
        if said := plainly(line, secrets):
            last[:] = [*last[-4:], said]
            say(said)

    try:
        rc = program.serve(dist, kind, conf, log, tell)
    except Interrupted:
        say(f"the {kind} is stopped")
        return
    raise ClusterError(f"The {kind} ended by itself, with exit code {rc}.", looked=tuple(last))


def join(shelf: Shelf, request: BuildRequest, say: Say) -> Cluster:
    """Write sccache's configuration for builds that use a scheduler, once it has taken the token.

    Raises:
        ClusterError: it does not answer, or refuses the token; nothing was written.
        UsageError: no token.
    """
    url = addresses.scheduler_url(str(request.scheduler))
    conf = shelf.client(addresses.file_name(url))
    token = _token(request, conf, ("dist", "auth", "token"), url)
    if problem := ask(url, token).problem:
        raise ClusterError(
            f"{url} was not joined: {problem}.",
            next_step="Is it running (cluster scheduler), and is the token a copy of its client.token?",
        )
    space = shelf.space / addresses.file_name(url)
    write_secret(conf, texts.client_file(url=url, token=token, cache_dir=str(space)))
    say(f"joined; builds use it with: torchbuild build --distribute {url}")
    return look_at_cluster(url, conf)


def states(shelf: Shelf, request: BuildRequest) -> tuple[Cluster, ...]:
    """The scheduler that is named, else every one that was joined, as it answers now."""
    if request.scheduler:
        url = addresses.scheduler_url(request.scheduler)
        return (look_at_cluster(url, shelf.client(addresses.file_name(url))),)
    return tuple(look_at_cluster(value(conf, "dist", "scheduler_url"), conf) for conf in shelf.joined())


def _token(request: BuildRequest, conf: Path, names: tuple[str, ...], what: str) -> str:
    """The token of --token-file, else the one that is known from before."""
    if request.token_file:
        return read_token(Path(request.token_file).expanduser())
    if known := value(conf, *names):
        return known
    raise UsageError(
        f"No token for {what} is known here.",
        next_step="Copy it from the scheduler's machine and name the file: --token-file FILE",
    )

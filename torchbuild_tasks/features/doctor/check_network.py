"""Checks of the network: the hosts that the plan needs, their reachability, and proxy variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from torchbuild_tasks.features.doctor.check import View
from torchbuild_tasks.model import BuildPlan, Facts, Finding, Reached

_GIT: Final = "https://github.com/"
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """An address whose host the plan needs, and its purpose."""

    url: str
    why: str


def needed_addresses(plan: BuildPlan, facts: Facts, indexes: Sequence[str]) -> tuple[Address, ...]:
    """Return one address for each host, for files that are not in the store yet.

    Args:
        plan: what will be fetched.
        facts: what the store has.
        indexes: the addresses of pip's indexes; local ones are left out.
    """
    stored = facts.store.unpacked if facts.store else {}
    missing = [artifact for artifact in plan.artifacts if artifact.stored_as not in stored]
    wanted = [Address(url=each.urls[0], why=each.name) for each in missing if each.urls]
    packages = [each.name for each in missing if each.project]
    if plan.environment.install is not None:
        packages.insert(0, "what the build imports")
    if packages:
        wanted += [Address(url=url, why=", ".join(packages[:3])) for url in indexes]
    if any(finding.id == "submodules" and finding.status == "error" for finding in plan.findings):
        wanted.append(Address(url=_GIT, why="submodules"))
    web = (address for address in reversed(wanted) if address.url.lower().startswith(("http://", "https://")))
    by_host = {urlsplit(address.url).netloc: address for address in web}
    return tuple(by_host[host] for host in sorted(by_host))


def proxy_problems(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return problems with proxy variables, without their values, which may hold a login."""
    problems = []
    for name in _PROXIES:
        lower = environ.get(name)
        upper = environ.get(name.upper())
        if lower and upper and lower != upper:
            problems.append(f"{name} and {name.upper()} differ: programs take one or the other")
        for value in filter(None, dict.fromkeys((lower, upper))):
            if "://" not in value:
                problems.append(f"{name} has no scheme (http://HOST:PORT): some programs refuse it")
    return tuple(problems)


def check_proxy(view: View) -> tuple[Finding, ...]:
    """Check the proxy variables."""
    if view.health.proxies is None:
        return (Finding.skipped("proxy", "it was not looked at"),)
    fix = "Set both spellings to http://HOST:PORT."
    findings = tuple(Finding.warn("proxy", problem, fix) for problem in view.health.proxies)
    proxies = sorted({host.proxy for host in view.health.reached or () if host.proxy})
    good = f"the network is reached through {', '.join(proxies)}" if proxies else "no proxy is in the way"
    return findings or (Finding.ok("proxy", good),)


def check_dns(view: View) -> tuple[Finding, ...]:
    """Check whether the names of the hosts that the plan needs can be resolved."""
    if why := _why_not_checked(view):
        return (Finding.skipped("dns", f"network: {why}"),)
    fix = "Try again on a machine at rest; if it stays so, ask the owner of the network, or use a proxy."
    return _judge_each(view, "dns", lambda host: host.dns, "host names resolve", fix)


def check_https(view: View) -> tuple[Finding, ...]:
    """Check whether the resolved hosts respond, with a trusted certificate."""
    fix = (
        "--mirror, --offline with a filled store, or HTTPS_PROXY; a company's own certificate: SSL_CERT_FILE"
    )
    if _why_not_checked(view):  # the check "dns" reports it
        return ()
    return _judge_each(view, "https", lambda host: host.https, "hosts answer", fix)


def _judge_each(
    view: View, id: str, problem: Callable[[Reached], str | None], good: str, fix: str
) -> tuple[Finding, ...]:
    probed = [host for host in view.health.reached or () if problem(host) is not None]
    bad = [host for host in probed if problem(host)]
    if not probed:
        return (Finding.skipped(id, "network: no host name resolves here, so no host was contacted"),)
    if not bad:
        return (Finding.ok(id, f"{good}: " + ", ".join(f"{host.host} ({host.why})" for host in probed)),)
    if len(bad) == len(probed) > 1 and len({problem(host) for host in bad}) == 1:  # offline: one finding
        names = ", ".join(host.host for host in bad)
        return (Finding.warn(id, f"no host was reached: {problem(bad[0])} ({names})", fix),)
    texts = (f"{host.host}, needed for {host.why}: {problem(host)}" for host in bad)
    return tuple(Finding.warn(id, text, fix) for text in texts)


def _why_not_checked(view: View) -> str:
    if view.health.offline:
        return "no host is asked (--offline)"
    if view.health.reached is None:
        return "no host was asked"
    return "" if view.health.reached else "the plan downloads nothing"

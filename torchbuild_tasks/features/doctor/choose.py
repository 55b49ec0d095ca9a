"""Which hosts the plan needs, and how they answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from torchbuild_tasks.features.doctor import machine, surroundings
from torchbuild_tasks.features.doctor.view import Said, View, said
from torchbuild_tasks.model import BuildPlan, Command, Facts, Finding, Reached
from torchbuild_tasks.plan.make import verdict
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

_GIT: Final = "https://github.com/"
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """An address whose host the plan needs, and for what."""

    url: str
    why: str


def needed_addresses(plan: BuildPlan, facts: Facts, indexes: Sequence[str]) -> tuple[Address, ...]:
    """One address a host, for what is not at hand yet.

    Args:
        plan: what will be fetched.
        facts: what is there already.
        indexes: the addresses of pip's indexes; those of the machine's own files are not asked for.
    """
    stored = facts.store.unpacked if facts.store else {}
    missing = [artifact for artifact in plan.artifacts if artifact.id not in stored]
    wanted = [Address(url=each.urls[0], why=each.name) for each in missing if each.urls]
    packages = [each.name for each in missing if each.project]
    if plan.environment.install is not None:
        packages.insert(0, "what the build imports")
    if packages:
        wanted += [Address(url=url, why=", ".join(packages[:3])) for url in indexes]
    if any(finding.id == "submodules" and finding.status == "error" for finding in plan.findings):
        wanted.append(Address(url=_GIT, why="submodules"))
    by_host = {urlsplit(address.url).netloc: address for address in reversed(wanted)}
    return tuple(by_host[host] for host in sorted(by_host) if _web(by_host[host].url))


def _web(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def proxy_problems(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What is wrong with the variables of proxies; no value is repeated, for it may hold a login."""
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


def check_proxy(view: View) -> Said:
    """The variables of proxies, and a proxy that does not let us through."""
    if view.health.proxies is None:
        return said("proxy", "skipped", "it was not looked at")
    found: list[Finding] = []
    for problem in view.health.proxies:
        found += said("proxy", "warn", problem, "Set both spellings to http://HOST:PORT.")
    return tuple(found) or said("proxy", "ok", _through(view))


def _through(view: View) -> str:
    proxies = sorted({host.proxy for host in view.health.reached or () if host.proxy})
    return f"the network is reached through {', '.join(proxies)}" if proxies else "no proxy is in the way"


def check_dns(view: View) -> Said:
    """Whether the names of the hosts that the plan needs are known."""
    if why := _not_asked(view):
        return said("dns", "skipped", f"network: {why}")
    fix = "Ask the owner of the network, or use a proxy."
    return _each(view, "dns", lambda host: host.dns, "known by name", fix)


def check_https(view: View) -> Said:
    """Whether those hosts answer, with a certificate that is trusted; asked where the name is known."""
    fix = (
        "--mirror, --offline with a filled store, or HTTPS_PROXY; a company's own certificate: SSL_CERT_FILE"
    )
    if _not_asked(view):  # dns says so
        return ()
    return _each(view, "https", lambda host: host.https, "answering", fix)


def _each(view: View, id: str, problem: Callable[[Reached], str | None], good: str, fix: str) -> Said:
    asked = [host for host in view.health.reached or () if problem(host) is not None]
    bad = [host for host in asked if problem(host)]
    if not asked:
        return said(id, "skipped", "network: no name of a host is known here, so none was asked")
    if not bad:
        return said(id, "ok", f"{good}: " + ", ".join(f"{host.host} ({host.why})" for host in asked))
    if len(bad) == len(asked) > 1 and len({problem(host) for host in bad}) == 1:  # offline: said once
        names = ", ".join(host.host for host in bad)
        return said(id, "warn", f"no host can be reached: {problem(bad[0])} ({names})", fix)
    texts = (f"{host.host}, needed for {host.why}: {problem(host)}" for host in bad)
    return tuple(finding for text in texts for finding in said(id, "warn", text, fix))


def _not_asked(view: View) -> str:
    if view.health.offline:
        return "no host is asked (--offline)"
    if view.health.reached is None:
        return "no host was asked"
    return "" if view.health.reached else "the plan downloads nothing"


# ---------------- every check of the doctor in one table: what it looks at, and the function that judges it


CHECKS: Final[Mapping[str, Callable[[View], Said]]] = {
    "disk": machine.check_disk,
    "places": machine.check_places,
    "memory": machine.check_memory,
    "open-files": machine.check_open_files,
    "locale": machine.check_locale,
    "clock": machine.check_clock,
    "dev-drive": surroundings.check_dev_drive,
    "git": surroundings.check_git,
    "conda": surroundings.check_conda,
    "names": surroundings.check_names,
    "shadow": surroundings.check_shadow,
    "cudas": surroundings.check_cudas,
    "trees": surroundings.check_trees,
    "proxy": check_proxy,
    "dns": check_dns,
    "https": check_https,
}
_OF_THE_PLAN: Final = ("disk",)
# Without a checkout there is no plan to hold the machine against.
_WITHOUT_TREE: Final = ("disk", "names", "trees", "shadow", "cudas")


def diagnosed(question: Question, plan: BuildPlan) -> BuildPlan:
    """The plan with the findings of the doctor, and the verdict on them all."""
    if question.facts.health is None:  # a dump that no doctor made
        return plan
    findings = _examine(View(question, plan, question.facts.health))
    return replace(plan, findings=findings, verdict=verdict(findings))


def _examine(view: View) -> tuple[Finding, ...]:
    """All findings: those of the plan, then those of the doctor."""
    own = tuple(finding for finding in view.plan.findings if finding.id not in _OF_THE_PLAN)
    left = _WITHOUT_TREE if view.facts.tree.problem else ()
    checks = (check for id, check in CHECKS.items() if id not in left)
    return (*own, *(finding for check in checks for finding in check(view)))


# ----------------
# what `doctor --fix` may do: commands that harm nothing, in the checkout that the user named


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """A command that puts a finding right; `id` is the finding's."""

    id: str
    command: Command


def _git(question: Question, *words: str, because: str) -> Command:
    root = question.facts.tree.root
    return Command(argv=("git", "-C", root, *words), cwd=root, because=because)


def _submodules(question: Question) -> Command | None:
    """Fills the checkout's own that are empty; the others, which may be on commits of the user's, stay."""
    empty = [path for path in question.facts.tree.empty if path.count("/") == 1]
    if not question.facts.tree.git or not empty:
        return None
    words = ("submodule", "update", "--init", "--recursive", "--jobs", "8", "--", *empty)
    return _git(question, *words, because="fills the folders that are empty, and touches no other")


def _autocrlf(question: Question) -> Command:
    return _git(
        question, "config", "core.autocrlf", "input", because="of this checkout; the global one stays"
    )


def _long_paths(question: Question) -> Command:
    return _git(
        question, "config", "core.longpaths", "true", because="of this checkout; the global one stays"
    )


REPAIRS: Final[Mapping[str, Callable[[Question], Command | None]]] = {
    "submodules": _submodules,
    "git-autocrlf": _autocrlf,
    "git-long-paths": _long_paths,
}


def repairs(question: Question, plan: BuildPlan) -> tuple[Repair, ...]:
    """What can be put right of the findings, each once."""
    wrong = dict.fromkeys(finding.id for finding in plan.findings if finding.status in ("warn", "error"))
    found = ((id, REPAIRS[id](question)) for id in wrong if id in REPAIRS)
    return tuple(Repair(id=id, command=command) for id, command in found if command is not None)

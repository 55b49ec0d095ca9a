"""The tested hosts, and the findings about their answers."""

from __future__ import annotations

from tests.features.doctor.views import check, checks, health
from tests.support.machines import linux_facts, plan_of, python, with_tree
from torchbuild_tasks.features.doctor.check_network import needed_addresses, proxy_problems
from torchbuild_tasks.model import Reached

INDEX = ("https://pypi.org/simple",)


def reached(host: str, dns: str | None = "", https: str | None = "") -> Reached:
    return Reached(host=host, why="a helper", dns=dns, https=https)


def test_a_complete_machine_needs_no_host() -> None:
    facts = linux_facts()
    whole = python(packages={**python().packages, **dict.fromkeys(installs(), "999")})
    assert needed_addresses(plan_of(linux_facts(pythons=(whole,))), facts, INDEX) == ()
    assert checks("https") == ()
    assert "downloads nothing" in check("dns").text


def installs() -> list[str]:
    install = plan_of().environment.install
    words = install.argv[6:] if install else ()
    return [word.partition(">")[0].partition("<")[0].partition("=")[0] for word in words]


def test_only_what_is_missing_is_requested() -> None:
    facts = linux_facts(pythons=(python(packages={"pip": "24.0"}),))
    (address,) = needed_addresses(plan_of(facts), facts, INDEX)
    assert address.url == INDEX[0]
    assert needed_addresses(plan_of(facts), facts, ("file:///wheels",)) == ()
    empty = with_tree(facts, empty=("third_party/fmt",))
    hosts = [address.url for address in needed_addresses(plan_of(empty), empty, INDEX)]
    assert hosts == ["https://github.com/", INDEX[0]]


def test_names_and_servers_are_distinct() -> None:
    seen = health(reached=(reached("a"), reached("b", dns="its name does not resolve", https=None)))
    assert [finding.status for finding in checks("dns", seen=seen)] == ["warn"]
    assert check("https", seen=seen).status == "ok"
    late = health(reached=(reached("a", https="the proxy answered 407"), reached("b")))
    assert check("dns", seen=late).status == "ok"
    assert "a, needed for a helper: the proxy" in check("https", seen=late).text


def test_offline_is_reported_once() -> None:
    gone = tuple(reached(host, dns="its name does not resolve", https=None) for host in ("a", "b", "c"))
    found = check("dns", seen=health(reached=gone))
    assert found.text == "no host was reached: its name does not resolve (a, b, c)"
    assert check("https", seen=health(reached=gone)).status == "skipped"
    assert "--offline" in check("dns", seen=health(reached=None, offline=True)).text


def test_no_value_of_a_proxy_is_repeated() -> None:
    secret = "http://me:hunter2@proxy:3128"
    problems = proxy_problems({"http_proxy": secret, "HTTP_PROXY": "proxy:3128", "https_proxy": secret})
    assert len(problems) == 2
    assert not any("hunter2" in problem for problem in problems)
    assert check("proxy", seen=health(proxies=problems[:1])).status == "warn"
    through = Reached(host="a", why="b", dns="", https="", proxy="proxy")
    assert "through proxy" in check("proxy", seen=health(reached=(through,))).text

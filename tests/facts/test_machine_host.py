from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine
from tests.facts.windows_11 import windows_11
from torchbuild_tasks.facts.machine import look_at_host
from torchbuild_tasks.facts.probe import Output, Uname
from torchbuild_tasks.values import replace


def test_names_of_a_debian(tmp_path: Path) -> None:
    release = 'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
    host = look_at_host(machine(tmp_path, files={"/etc/os-release": release}))
    assert (host.os, host.arch, host.kernel, host.libc) == ("linux", "x86_64", "6.1.0", "glibc 2.36")
    assert host.distribution == "Debian GNU/Linux 12 (bookworm)"


def test_what_a_system_is_made_from(tmp_path: Path) -> None:
    release = 'PRETTY_NAME="Zorin OS 17.2"\nID=zorin\nID_LIKE="ubuntu debian"\n'
    host = look_at_host(machine(tmp_path, files={"/etc/os-release": release}))
    assert host.like == ("zorin", "ubuntu", "debian")
    assert look_at_host(machine(tmp_path, files={"/etc/os-release": "ID=arch\n"})).like == ("arch",)


@pytest.mark.parametrize("text", ["NAME=x\n", "PRETTY_NAME=\n", ""])
def test_a_nameless_system(tmp_path: Path, text: str) -> None:
    assert look_at_host(machine(tmp_path, files={"/etc/os-release": text})).distribution is None


def test_the_vendor_copy_is_read_when_etc_has_none(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/usr/lib/os-release": "PRETTY_NAME='Chimera'\n"})
    assert look_at_host(door).distribution == "Chimera"


def test_musl_is_known_by_its_ldd_which_fails(tmp_path: Path) -> None:
    said = Output(1, "", "musl libc (x86_64)\nVersion 1.2.4\nDynamic Program Loader\n")
    door = replace(machine(tmp_path, programs={"/usr/bin/ldd": said}), c_library=None)
    assert look_at_host(door).libc == "musl 1.2.4"


@pytest.mark.parametrize("said", [Output(0, "ldd (other) 1.0"), None])
def test_an_unknown_c_library_is_none(tmp_path: Path, said: Output | None) -> None:
    door = replace(machine(tmp_path, programs={"/usr/bin/ldd": said}), c_library=None)
    assert look_at_host(door).libc is None


@pytest.mark.parametrize(
    ("system", "arch", "expected"),
    [
        ("win32", "AMD64", ("windows", "x86_64")),
        ("linux", "arm64", ("linux", "aarch64")),
        ("linux", None, ("linux", "unknown")),
    ],
)
def test_one_name_for_each_system_and_processor(
    tmp_path: Path, system: str, arch: str | None, expected: tuple[str, str]
) -> None:
    door = replace(machine(tmp_path), kernel=Uname(system=system, machine=arch))
    host = look_at_host(door)
    assert (host.os, host.arch) == expected


def test_a_forced_locale_is_told(tmp_path: Path) -> None:
    forced = {"LC_ALL": "C"}
    assert look_at_host(replace(machine(tmp_path), environ=forced)).lc_all == "C"
    assert look_at_host(replace(machine(tmp_path), environ={"LC_ALL": ""})).lc_all is None
    assert look_at_host(replace(windows_11(tmp_path), environ=forced)).lc_all is None


def test_names_of_a_windows_11(tmp_path: Path) -> None:
    host = look_at_host(windows_11(tmp_path))
    assert (host.os, host.arch, host.kernel, host.libc) == ("windows", "x86_64", "10.0.26100", None)
    assert host.distribution == "Windows 11 Pro 24H2 (build 26100.4349)"


def test_root_is_told_from_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = machine(tmp_path, files={})
    assert not look_at_host(probe).root
    monkeypatch.setattr(type(probe), "administrator", lambda self: True)
    assert look_at_host(probe).root

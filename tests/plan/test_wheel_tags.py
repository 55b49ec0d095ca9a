"""Which files of a folder of wheels a Python takes."""

from __future__ import annotations

from tests.support.for_each import each_case
from tests.support.machines import python
from torchbuild_tasks.model import Host
from torchbuild_tasks.plan.wheel_tags import takes

DEBIAN = Host(os="linux", arch="x86_64", libc="glibc 2.36")
ALPINE = Host(os="linux", arch="x86_64", libc="musl 1.2.5")
WINDOWS = Host(os="windows", arch="x86_64")


@each_case(
    ("tags", "host", "taken"),
    [
        ("py3-none-any", DEBIAN, True),
        ("py2.py3-none-any", DEBIAN, True),
        ("py2-none-any", DEBIAN, False),
        ("py310-none-any", DEBIAN, True),
        ("py312-none-any", DEBIAN, False),
        ("cp311-cp311-manylinux_2_28_x86_64", DEBIAN, True),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", DEBIAN, True),
        ("cp312-cp312-manylinux_2_28_x86_64", DEBIAN, False),
        ("cp311-cp311t-manylinux_2_28_x86_64", DEBIAN, False),
        ("cp38-abi3-manylinux_2_28_x86_64", DEBIAN, True),
        ("cp312-abi3-manylinux_2_28_x86_64", DEBIAN, False),
        ("cp311-cp311-manylinux_2_39_x86_64", DEBIAN, False),
        ("cp311-cp311-manylinux_2_28_aarch64", DEBIAN, False),
        ("cp311-cp311-win_amd64", DEBIAN, False),
        ("cp311-cp311-win_amd64", WINDOWS, True),
        ("cp311-none-win_amd64", WINDOWS, True),
        ("cp311-cp311-musllinux_1_2_x86_64", ALPINE, True),
        ("cp311-cp311-musllinux_1_2_x86_64", DEBIAN, False),
        ("pp310-pypy310_pp73-manylinux_2_28_x86_64", DEBIAN, False),
    ],
)
def test_tags_are_held_against_the_python_and_the_machine(tags: str, host: Host, taken: bool) -> None:
    assert takes(f"numpy-2.0.0-{tags}.whl", python(), host) is taken


def test_what_is_no_wheel_is_for_every_python() -> None:
    assert takes("six-1.17.0.tar.gz", python(), DEBIAN)
    assert takes("notes.txt", python(), DEBIAN)


def test_a_free_threaded_python_takes_its_own_and_no_stable_abi() -> None:
    threaded = python(version="3.13.1", abi="cpython-313t-x86_64-linux-gnu")
    assert takes("x-1-cp313-cp313t-manylinux_2_28_x86_64.whl", threaded, DEBIAN)
    assert not takes("x-1-cp313-cp313-manylinux_2_28_x86_64.whl", threaded, DEBIAN)
    assert not takes("x-1-cp38-abi3-manylinux_2_28_x86_64.whl", threaded, DEBIAN)


def test_a_python_whose_version_is_not_known_is_given_the_benefit() -> None:
    assert takes("x-1-cp38-cp38-manylinux_2_28_x86_64.whl", python(version=None), DEBIAN)

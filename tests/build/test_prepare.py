"""The ways in which a venv is made: where uv cannot, Python's own module."""

from __future__ import annotations

from torchbuild_tasks.build.prepare import uses_uv, ways_to_make
from torchbuild_tasks.model import Command


def test_behind_uv_stands_the_module_of_python_for_the_same_folder() -> None:
    argv = (
        "/bin/uv",
        "venv",
        "--seed",
        "--no-project",
        "--python",
        "/bin/python3.11",
        "/src/.torchbuild/venv",
    )
    by_uv, by_module = ways_to_make(Command(argv=argv, cwd="/src", because="a test"))
    assert by_uv.argv == argv and uses_uv(argv)
    assert by_module.argv == ("/bin/python3.11", "-m", "venv", "/src/.torchbuild/venv")


def test_pythons_own_module_stands_alone() -> None:
    create = Command(argv=("/bin/python3", "-m", "venv", "/v"), cwd="/src", because="a test")
    assert ways_to_make(create) == (create,) and not uses_uv(create.argv)

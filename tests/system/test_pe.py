"""DLLs and programs of Windows, as small as pip's own launchers; read on any system."""

from __future__ import annotations

import random
from pathlib import Path

import distlib  # type: ignore[import-untyped]

from tests.support.examples import examples
from tests.support.for_each import each_case
from torchbuild_tasks.features.closure.act import Files

LAUNCHERS = Path(distlib.__file__).parent  # real programs, linked by MSVC


def copied(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "x.dll"
    path.write_bytes(data)
    return str(path)


@each_case(("name", "machine"), [("t64.exe", "x86_64"), ("t32.exe", "x86"), ("t64-arm.exe", "aarch64")])
def test_what_a_program_says_of_itself(name: str, machine: str) -> None:
    path = str(LAUNCHERS / name)
    files = Files()
    image = files.image(path)
    assert image is not None
    assert (image.machine, image.damage) == (machine, "")
    assert "kernel32.dll" in {needed.lower() for needed in image.needed}
    assert image.linker[0] >= 10
    assert "GetModuleFileNameW" in {symbol.name for symbol in files.wanted(path)}


def test_a_dll_that_was_cut_short_says_so(tmp_path: Path) -> None:
    data = (LAUNCHERS / "t64.exe").read_bytes()
    image = Files().image(copied(tmp_path, data[: len(data) // 2]))
    assert image is not None
    assert image.damage.startswith(f"cut short: {len(data) // 2:,} of ")


def test_damage_is_a_finding_and_never_an_exception(tmp_path: Path) -> None:
    data = (LAUNCHERS / "w64.exe").read_bytes()
    chance = random.Random(7)
    for number in range(examples(6, 60)):
        spoiled = bytearray(data)
        for _ in range(8):
            spoiled[chance.randrange(2, 1024)] = chance.randrange(256)
        path = copied(tmp_path, bytes(spoiled[: chance.randrange(2, 4096)] if number % 2 else spoiled))
        files = Files()
        assert files.image(path) is not None
        assert not files.exported(path, [])

"""Small real libraries from the machine's compiler, and the fields that are read from them."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.capabilities import needs_linux_compiler
from torchbuild_tasks.features.closure.act import Files
from torchbuild_tasks.model.closure import Image, Symbol
from torchbuild_tasks.system.elf import read_cache

pytestmark = [pytest.mark.integration, needs_linux_compiler]


def library(path: Path, source: str, *flags: str) -> Path:
    """Compile a library of C."""
    argv = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(path), "-", *flags]
    subprocess.run(argv, input=source, text=True, check=True)
    return path


def image_of(path: Path) -> Image:
    image = Files().image(str(path))
    assert image is not None
    return image


@pytest.fixture(params=["gnu", "sysv"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """Compile a library of two versions, and one that needs both and a function that is nowhere."""
    script = tmp_path / "versions"
    script.write_text("ONE { global: first; local: *; };\nTWO { global: second; } ONE;\n")
    style = f"-Wl,--hash-style={request.param}"
    giver = library(
        tmp_path / "libgiver.so",
        "int first(void){return 1;} int second(void){return 2;} int hidden(void){return 3;}",
        *("-Wl,-soname,libgiver.so", f"-Wl,--version-script={script}", style),
    )
    taker = library(
        tmp_path / "libtaker.so",
        "int first(void); int second(void); int nobody(void); int __attribute__((weak)) perhaps(void);"
        "int all(void){return first() + second() + nobody() + (perhaps ? perhaps() : 0);}",
        *(f"-L{tmp_path}", "-lgiver", "-Wl,-rpath,$ORIGIN:/opt/x", "-Wl,--enable-new-dtags", style),
    )
    return giver, taker


def test_what_libraries_say_of_themselves(pair: tuple[Path, Path]) -> None:
    giver, taker = map(image_of, pair)
    assert (giver.name, giver.damage, giver.machine == taker.machine) == ("libgiver.so", "", True)
    assert {"ONE", "TWO"} <= giver.versions
    assert taker.needed[0] == "libgiver.so"
    assert set(taker.wants["libgiver.so"]) == {"ONE", "TWO"}
    assert (taker.rpath, taker.runpath) == ((), ("$ORIGIN", "/opt/x"))


def test_what_one_takes_and_the_other_gives(pair: tuple[Path, Path]) -> None:
    giver, taker = pair
    files = Files()
    wanted = {symbol.name: symbol for symbol in files.wanted(str(taker))}
    assert wanted["second"] == Symbol("second", "TWO", "libgiver.so")
    assert "nobody" in wanted
    assert "perhaps" not in wanted
    assert "all" not in wanted
    given = {symbol.name for symbol in files.exported(str(giver), list(wanted.values()))}
    assert given == {"first", "second"}


def test_a_function_in_another_version_is_another_function(tmp_path: Path) -> None:
    script = tmp_path / "versions"
    script.write_text("ONE { global: first; local: *; };\n")
    giver = library(tmp_path / "libg.so", "int first(void){return 1;}", f"-Wl,--version-script={script}")
    asked = [Symbol("first", "ONE"), Symbol("first", "TWO"), Symbol("first")]
    assert set(Files().exported(str(giver), asked)) == {asked[0], asked[2]}


def test_a_cut_library_says_how_much_is_there(pair: tuple[Path, Path], tmp_path: Path) -> None:
    data = pair[0].read_bytes()
    half = tmp_path / "half.so"
    half.write_bytes(data[: len(data) // 4])
    assert image_of(half).damage == f"cut short: {len(data) // 4:,} of {len(data):,} bytes are there"
    half.write_bytes(data[:-1])
    assert (image_of(half).damage, image_of(half).cut_off) == ("", True)


@pytest.mark.parametrize(
    ("data", "damage"),
    [
        (b"", "empty"),
        (b"GROUP ( libc.so.6 )", "a text: a linker script, or what Git LFS left in its place"),
        (b"\0\1\2\3" * 9, "no library"),
        (b"\x7fELF", "cut short: 4 bytes are not a library"),
    ],
)
def test_what_is_no_library(tmp_path: Path, data: bytes, damage: str) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(data)
    assert image_of(path).damage == damage


def test_a_folder_and_nothing(tmp_path: Path) -> None:
    assert image_of(tmp_path).damage == "a folder"
    assert Files().image(str(tmp_path / "none")) is None


def test_another_machine_is_reported_before_all_else(pair: tuple[Path, Path], tmp_path: Path) -> None:
    data = bytearray(pair[0].read_bytes())
    data[4] = 1
    strange = tmp_path / "strange.so"
    strange.write_bytes(data)
    assert image_of(strange).machine.endswith(" of 32 bits")


def test_damage_is_a_finding_and_never_an_exception(pair: tuple[Path, Path], tmp_path: Path) -> None:
    data = pair[1].read_bytes()
    chance = random.Random(7)
    path = tmp_path / "spoiled.so"
    began = time.monotonic()
    for number in range(120):
        spoiled = bytearray(data)
        for _ in range(6):
            spoiled[chance.randrange(4, 1024 if number % 2 else len(data))] = chance.randrange(256)
        path.write_bytes(spoiled[: chance.randrange(5, len(data))] if number % 3 == 0 else spoiled)
        files = Files()
        image = files.image(str(path))
        assert image is not None
        files.exported(str(path), files.wanted(str(path)))
    assert time.monotonic() - began < 120  # a hang


def test_the_cache_of_this_system() -> None:
    machine = image_of(Path("/bin/sh").resolve()).machine
    cache = read_cache(Path("/etc/ld.so.cache"), machine)
    assert all(Path(path).name == name for name, paths in cache.items() for path in paths)
    assert "libc.so.6" in cache


@pytest.mark.parametrize("data", [b"", b"glibc-ld.so.cache1.1", b"glibc-ld.so.cache1.1" + b"\xff" * 30])
def test_a_broken_cache_is_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "cache"
    path.write_bytes(data)
    assert read_cache(path, "x86_64") == {}

"""The parts of the bench that need no wine: paths, the environment, steps, the archive of wine 10."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tests.support.capabilities import needs_posix_paths
from tests.windows import prefix
from tests.windows.wine import Bench, BenchError, missing_packages, wine_major


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@needs_posix_paths
def test_paths_there_and_back(bench: Bench) -> None:
    inside = bench.drive / "cc" / "clang.exe"
    assert bench.windows_path(inside) == r"C:\cc\clang.exe"
    assert bench.windows_path(Path("/usr/lib")) == r"Z:\usr\lib"
    assert bench.linux_path(r"C:\cc\clang.exe") == inside
    assert bench.linux_path("z:\\usr\\lib\\") == Path("/usr/lib")
    assert bench.linux_path(r"D:\x") is None
    assert bench.linux_path("clang") is None


@needs_posix_paths
def test_only_what_is_named_is_handed_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = bench.root / "ca.crt"
    certificates.touch()
    monkeypatch.setenv("PYTHONHOME", "/usr")
    monkeypatch.setenv("TEMP", "/tmp")
    monkeypatch.setenv("CI", "1")
    monkeypatch.setenv("PIP_CERT", str(certificates))
    monkeypatch.setenv("SSL_CERT_FILE", str(bench.root / "absent.crt"))
    seen = bench.environment([r"C:\cc"], {"MAX_JOBS": "1"})
    assert {"PYTHONHOME", "TEMP", "SSL_CERT_FILE"}.isdisjoint(seen)
    assert seen["CI"] == "1"
    assert seen["MAX_JOBS"] == "1"
    assert seen["PIP_CERT"] == bench.windows_path(certificates)
    assert seen["WINEPATH"].startswith(r"C:\cc;C:\Python311;")
    assert seen["HOME"] == str(bench.home)


def test_a_step_is_made_once_for_the_same_inputs(bench: Bench) -> None:
    made: list[str] = []
    first = bench.step("thing", "inputs", lambda _: made.append("first"))
    assert bench.step("thing", "inputs", lambda _: made.append("again")) == first
    assert bench.step("thing", "other", lambda _: made.append("other")) != first
    assert made == ["first", "other"]


def test_a_step_that_broke_is_made_again(bench: Bench) -> None:
    def breaks(bench: Bench) -> None:
        raise BenchError("broken")

    made: list[str] = []
    bench.step("thing", "old", lambda _: made.append("old"))
    with pytest.raises(BenchError):
        bench.step("thing", "new", breaks)
    bench.step("thing", "old", lambda _: made.append("old again"))
    assert made == ["old", "old again"]


@pytest.mark.parametrize(("said", "major"), [("wine-8.0", 8), ("wine-10.0-rc2", 10), ("wine-9.22", 9)])
def test_the_version(said: str, major: int) -> None:
    assert wine_major(said) == major


def test_a_version_that_is_none() -> None:
    with pytest.raises(BenchError, match="names no version"):
        wine_major("command not found")


def test_missing_packages_are_named_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_packages() == ["g++-mingw-w64-x86-64-win32", "wine", "wine64"]


def program(name: str) -> bytes:
    """A program as wine marks its own."""
    return b"MZ".ljust(prefix.BUILTIN_AT, b"\0") + prefix.BUILTIN + name.encode()


def archive(names: tuple[str, ...]) -> io.BytesIO:
    """A .deb that holds these programs, for both of wine's architectures."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as tar:
        for folder in ("i386-windows", "x86_64-windows"):
            for name in names:
                content = program(name + folder)
                member = tarfile.TarInfo(f"./usr/lib/wine/{folder}/{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    parts = [("debian-binary", b"2.0"), ("control.tar.xz", b"x" * 5), ("data.tar.xz", data.getvalue())]
    ar = b"!<arch>\n"
    for name, content in parts:
        ar += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        ar += content + b"\n" * (len(content) % 2)
    return io.BytesIO(ar)


def test_the_64_bit_programs_are_taken_out(tmp_path: Path) -> None:
    wanted = (*prefix.PROGRAMS, *prefix.LIBRARIES)
    prefix.extract(archive(("aclui.dll", *wanted)), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(wanted)
    assert (tmp_path / "out/cmd.exe").read_bytes().endswith(b"cmd.exex86_64-windows")


def test_an_archive_without_them(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"has no .*cmd\.exe"):
        prefix.extract(archive(("aclui.dll",)), tmp_path)


def test_the_mark_and_only_the_mark_is_taken_off() -> None:
    before, after = program("cmd"), prefix.unmarked(program("cmd"), "cmd")
    changed = [at for at in range(len(before)) if before[at] != after[at]]
    assert changed == list(range(prefix.BUILTIN_AT, prefix.BUILTIN_AT + len(prefix.BUILTIN)))
    with pytest.raises(BenchError, match=r"cmd\.exe is not one"):
        prefix.unmarked(after, "cmd.exe")

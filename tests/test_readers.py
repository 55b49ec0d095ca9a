"""Any content of a file that is read gives one error message, or no facts; never a traceback."""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import os
import random
import signal
import string
import sys
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torchbuild_tasks
from tests.support.examples import examples
from tests.support.for_each import each_case
from torchbuild_tasks.build import history, ownership
from torchbuild_tasks.build.install import leftovers, snapshot
from torchbuild_tasks.build.install.rules import read_manifest as read_installed
from torchbuild_tasks.build.install.rules import read_rules
from torchbuild_tasks.build.named_files import find_named
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.failures import FailureBook
from torchbuild_tasks.catalog.templates import load_templates
from torchbuild_tasks.context import read_facts
from torchbuild_tasks.errors import TorchbuildError, UsageError
from torchbuild_tasks.facts import requirements, submodules, tree
from torchbuild_tasks.facts import store as store_facts
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.settings import read_settings
from torchbuild_tasks.facts.wheel import look_at_wheel
from torchbuild_tasks.features.bisect.choose import Bisection, read_bisection
from torchbuild_tasks.features.builds import named_build
from torchbuild_tasks.features.develop import jsonc
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.features.helpers.store import TOOLKIT_MARKER, read_toolkit_marker
from torchbuild_tasks.features.manifest.read import read_manifest
from torchbuild_tasks.features.package.graft import read_image
from torchbuild_tasks.features.patches import act as patches
from torchbuild_tasks.features.patches.choose import PATCH_RECORD
from torchbuild_tasks.features.publish.act import look_at_file
from torchbuild_tasks.features.source import places
from torchbuild_tasks.model import Facts
from torchbuild_tasks.model.history import PEAKS
from torchbuild_tasks.model.record import MANIFEST_FILE, RECORD_FILE, Manifest
from torchbuild_tasks.ninja.build_file import parse_build_file
from torchbuild_tasks.ninja.log import parse_ninja_log
from torchbuild_tasks.ninja.progress import ProgressParser
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.pins import LOCK_FILE
from torchbuild_tasks.plan.settings import check_settings
from torchbuild_tasks.system.archive.members import check_wheel_names
from torchbuild_tasks.system.elf import read_cache
from torchbuild_tasks.system.files import STATE_DIR
from torchbuild_tasks.system.mark import MARKER, read_marker
from torchbuild_tasks.system.reading import read_bytes, read_json, read_text
from torchbuild_tasks.text import diffs
from torchbuild_tasks.text.visible import UNSEEN, output, visible
from torchbuild_tasks.values import Malformed, parse_json, parse_toml

PACKAGE = Path(torchbuild_tasks.__file__).parent
# The door itself, rows of our own, and a program that runs in another Python.
MAY_DECODE = ("values.py", "catalog/__init__.py", "facts/python_report.py")
DECODERS = {
    *("json.load", "json.loads", "tomllib.load", "tomllib.loads", "json.JSONDecoder"),
    *("msgspec.json.decode", "msgspec.toml.decode", "msgspec.json.Decoder"),
}
LAST = {name.rpartition(".")[2] for name in DECODERS}


def test_only_one_module_decodes() -> None:
    """A reader of its own would have no limits."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        text = path.read_text("utf-8")
        if name in MAY_DECODE or not any(word in text for word in ("json", "tomllib", "msgspec.toml")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and node.attr in LAST and ast.unparse(node) in DECODERS:
                found.append(f"{name}:{node.lineno}")
            if isinstance(node, ast.ImportFrom) and node.module in ("json", "tomllib", "msgspec.json"):
                found.append(f"{name}:{node.lineno}")
    assert found == []


NINES = "9" * 5000


@each_case(
    ("text", "said"),
    [
        ("[" * 100_000, "deep"),
        ('{"a":' * 100_000, "deep"),
        ("[" * 100 + "]" * 100, "deep"),
        (f'{{"a": {{"jobs": {NINES}}}}}', r"5000 digits.*key jobs"),
        (f'{{"jobs": -{NINES}}}', "key jobs"),
        ('{"size": 18446744073709551616}', "18446744073709551616 is not a number of 64 bits .key size"),
        ('{"a": NaN}', "NaN"),
        ('{"a": [-Infinity]}', "-Infinity"),
        ('{"a": 1e999}', "1e999"),
        (f'{{"a": {NINES}.5}}', "key a"),
        ("", "Expecting value"),
        ("[1,]", "column"),
        (b"\xff\xff{}", "not UTF-8"),
        ("[" + "1," * 5_000_000 + "1]", "values"),
    ],
    ids=lambda text: str(text[:12]),
)
def test_absurd_json_is_refused(text: str | bytes, said: str) -> None:
    began = time.process_time()
    with pytest.raises(Malformed, match=said) as refused:
        parse_json(text)
    assert len(str(refused.value)) < 300
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "value",
    [{"a": [1, -1.5, True, None, "NaN 1e999 " + NINES]}, {"size": 2**64 - 1}, {"e": 1e300}, "\udcff", []],
)
def test_json_that_is_fine(value: object) -> None:
    text = json.dumps(value)
    assert parse_json(text) == parse_json(text.encode()) == value
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):  # what PowerShell makes of a redirected answer
        assert parse_json(text.encode(encoding)) == value


@each_case(
    ("text", "said"),
    [
        ("x = " + "[" * 100_000, "deep"),
        ("x = " + "{a=" * 50_000, "deep"),
        (".".join("a" * 5000) + " = 1", "line 1"),
        ("[" + ".".join("a" * 100) + "]\nx = 1", "deep"),
        ("[" + ".".join("a" * 400_000) + "]\nx = 1", "line 1"),
        (f"a = 1\njobs = {NINES}", r"5000 digits.*line 2"),
        ("[t]\njobs = 99999999999999999999", "key t.jobs"),
        ("a = 0x1ffffffffffffffffff", "key a"),
        ("[[h]]\nx = nan", "key h.x"),
        ("x = -inf", "key x"),
        ('x = ["a\\u0000b"]', "key x: .*NUL"),
        ('"a\\u0000" = 1', "NUL"),
        ("x = \0", "line 1"),
        ("# " + "x" * (1 << 20), "MiB"),
    ],
    ids=lambda text: str(text[:12]),
)
def test_absurd_toml_is_refused(text: str, said: str) -> None:
    began = time.process_time()
    with pytest.raises(Malformed, match=said) as refused:
        parse_toml(text)
    assert len(str(refused.value)) < 300
    assert time.process_time() - began < 5


def test_a_settings_file_is_refused_with_its_name_and_key(tmp_path: Path) -> None:
    path = tmp_path / "torchbuild.toml"
    for data, said in (
        (f"[set]\nX = {NINES}".encode(), "line 2, key X: .*5000 digits"),
        (b"x = " + b"[" * 100_000, "deep"),
        (b"\xff\xfex\0=\0001\0\0", "not UTF-8 text"),
        (b"x" * (2 << 20), "longer than 1024 KiB"),
        (b"jobs = [[[[[1]]]]]", "jobs"),
        (b"preset = 2020-01-01", "preset"),
        (
            b'[[helper]]\nname="a"\nversion="1"\nos=""\nneeded="asked"\nunpack="zip"\nsource=""\ntorch=">>1"',
            "line 8",
        ),
        (b'[[failure]]\nid="x"\nphase="link"\ncause="c"\nsource=""\ntorch="?"', "failure.0.torch"),
    ):
        path.write_bytes(data)
        with pytest.raises(UsageError, match=said) as refused:
            found = read_settings(path)
            check_settings(found.path, found.data, found.lines)
        assert str(path) in refused.value.what
    path.write_bytes(b"\xef\xbb\xbfjobs = 3\r\n")
    assert read_settings(path).data == {"jobs": 3}


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs and no /dev/zero")
def test_what_is_no_file_is_no_file_at_once(tmp_path: Path) -> None:
    fifo, loop, folder = tmp_path / "fifo", tmp_path / "loop", tmp_path / "folder"
    os.mkfifo(fifo)
    loop.symlink_to(loop)
    folder.mkdir()
    for path, said in (
        (fifo, "pipe or a device"),
        (Path("/dev/zero"), "pipe or a device"),
        (loop, "symbolic"),
        (folder, "directory"),
        (tmp_path / "none", "No such"),
        (Path("a\0b"), "no file has such a name"),
    ):
        for read in (read_bytes, read_text, read_json, read_settings):
            with pytest.raises((OSError, UsageError)) as refused:
                read(path)
            assert said in str(refused.value)
        assert Probe(environ={}).read(str(path)) is None


def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a" * 2048)
    assert read_bytes(path, most=2048) == b"a" * 2048
    with pytest.raises(OSError, match="longer than 1 KiB"):
        read_bytes(path, most=2047)


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="no /proc")
def test_a_file_without_a_size_is_read() -> None:
    assert b"MemTotal" in read_bytes(Path("/proc/meminfo"))


# ---------------- every reader, with what no writer wrote

Reader = Callable[[Path, bytes], object]


def _below(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return folder


def _settings(folder: Path, data: bytes) -> object:
    found = read_settings(_below(folder, "torchbuild.toml", data) / "torchbuild.toml")
    return check_settings(found.path, found.data, found.lines)


def _probed(name: str, read: Callable[[Probe, str], object]) -> Reader:
    return lambda folder, data: read(Probe(environ={}), str(_below(folder, name, data)))


def _path(name: str, read: Callable[[Path], object]) -> Reader:
    return lambda folder, data: read(_below(folder, name, data))


def _said_of_log(data: bytes) -> None:
    """Read it as a build's output: all that is shown of it goes through the door for text."""
    scanner = LogScanner(BOOK)
    scanner.feed_block(data + b"\nFAILED: x\n" + data + b"\nx.cpp:1:1: error: " + data + b"\n")
    progress = ProgressParser().feed_block(data)
    shown = [*scanner.last, *(scanner.found.text if scanner.found else ()), progress.what if progress else ""]
    assert not UNSEEN.search(visible("".join(shown)))
    assert not UNSEEN.search(output(data.decode(errors="replace"), colours=False))


def _jsonc(data: bytes) -> None:
    with contextlib.suppress(jsonc.NotEditable):  # such a file is left alone
        jsonc.read(data.decode(errors="replace"))


def _read_graph(data: bytes) -> None:
    """Read it as build.ninja, which may be damaged or include itself."""
    with contextlib.suppress(ValueError, RecursionError):
        parse_build_file(lambda name: data.decode(errors="replace"))


def _look_at_wheel(folder: Path, data: bytes) -> None:
    """Make the texts of a wheel of it, and break such a wheel by it."""
    path = folder / "torch-2.6.0-cp311-cp311-linux_x86_64.whl"
    kind = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)[len(data) % 4]
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, begin in (
            ("torch/version.py", b"__version__ = '2.6.0'\n"),
            ("torch-2.6.0.dist-info/METADATA", b"Version: 2.6.0\nRequires-Dist: "),
            ("torch-2.6.0.dist-info/entry_points.txt", b"[console_scripts]\n"),
        ):
            archive.writestr(name, begin + data)
        archive.writestr("x" + data.decode("latin-1")[:60], data)
    found = look_at_wheel(path)
    assert not UNSEEN.search(visible(found.problem))
    check_wheel_names(found)
    whole = path.read_bytes()
    at = sum(data) * 7919 % len(whole)
    path.write_bytes(whole[:at] + data[:3] + whole[at + len(data[:3]) :])
    look_at_wheel(path)
    look_at_file(path)


BOOK = FailureBook(load_catalog().failure)
READERS: dict[str, Reader] = {
    "torchbuild.toml": _settings,
    LOCK_FILE: _probed(LOCK_FILE, lambda probe, folder: store_facts._pins(probe, f"{folder}/{LOCK_FILE}")),
    "pyproject.toml": _probed("pyproject.toml", tree.look_at_pyproject),
    "version.txt": _probed("version.txt", lambda probe, root: tree.look_at_version(root, probe)),
    "record": _probed(RECORD_FILE, tree.look_at_manifest),
    "install": _probed(tree.INSTALL_FILE, tree.look_at_install),
    "manifest": lambda folder, data: read_manifest(data, "x"),
    "bisection": lambda folder, data: read_bisection(data, "x"),
    "facts": _path("facts.json", lambda folder: read_facts(folder / "facts.json")),
    "mark": _path(MARKER, read_marker),
    "toolkit mark": _path(TOOLKIT_MARKER, read_toolkit_marker),
    "made": _path(f"{STATE_DIR}/made.json", lambda folder: ownership._read(folder, "made.json")),
    "installed": _path(f"{STATE_DIR}/{leftovers.INSTALLED}", leftovers._read),
    "snapshot": _path(snapshot.SNAPSHOT_FILE, snapshot.read),
    "peaks": _path(PEAKS, history.read_peaks),
    "place": _path(f"{STATE_DIR}/{places.NOTE}", places.read_note),
    "build": _path(f"{STATE_DIR}/{named_build.NOTE}", named_build.read_note),
    "last build": _path(f"build/{MANIFEST_FILE}", named_build.last_build),
    ".gitmodules": _probed(".gitmodules", submodules.empty_submodules),
    "CMakeCache.txt": _probed("CMakeCache.txt", tree.look_at_cache),
    "setup.py": _probed("setup.py", lambda probe, folder: requirements.build_requirements(probe, folder, {})),
    "requirements.txt": _probed(
        "requirements.txt", lambda probe, folder: requirements.install_requirements(probe, folder, {})
    ),
    "build.ninja": _path("build.ninja", lambda folder: find_named(folder, folder, {"a", "torch/lib/x"})),
    ".ninja_deps": _path(".ninja_deps", lambda folder: find_named(folder, folder, {"a", "torch/lib/x"})),
    "cmake_install.cmake": _path("cmake_install.cmake", read_rules),
    "install_manifest.txt": _path("install_manifest.txt", read_installed),
    ".ninja_log": lambda folder, data: parse_ninja_log(data.decode(errors="replace")),
    "graph": lambda folder, data: _read_graph(data),
    "launch.json": lambda folder, data: _jsonc(data),
    "diff": lambda folder, data: diffs.problem(data.decode(errors="replace")),
    "env template": _path("env_templates/env_set.sh.in", load_templates),
    "log": lambda folder, data: _said_of_log(data),
    "wheel": lambda folder, data: _look_at_wheel(folder, data),
    "no wheel": _path(
        "torch-1-py3-none-any.whl", lambda folder: look_at_wheel(folder / "torch-1-py3-none-any.whl")
    ),
    "library": lambda folder, data: read_image(_below(folder, "x.so", b"\x7fELF\2\1" + data) / "x.so"),
    "dll": lambda folder, data: read_image(_below(folder, "x.dll", b"MZ" + data) / "x.dll"),
    "ld.so.cache": _path("ld.so.cache", lambda folder: read_cache(folder / "ld.so.cache", "x86_64")),
    "patches": _path(f"{STATE_DIR}/{PATCH_RECORD}", patches.read_record),
}


@functools.cache
def _names() -> list[str]:
    """Return the names of all fields that a file can have, so that generated data resembles a real one."""
    found = {"paths", "log", "inputs", "set", "helper", "failure", "builds", "mirrors", "sha256", "schema"}
    todo: list[Any] = [Manifest, Facts, Bisection]
    while todo:
        kind = msgspec.inspect.type_info(todo.pop())
        found |= {field.name for field in getattr(kind, "fields", ())}
    found |= {field.replace("_", "-") for field in BuildRequest.__dataclass_fields__}
    return sorted(found)


keys = st.sampled_from(_names()) | st.text(string.ascii_letters + ".\0\n\x1b", max_size=5)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from((2**63, 2**64, -(2**70), 10**20, -1, 0, 1)),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(("\0", "\ud800", "..", "../../x", "/", "ok", "1.2", "9" * 5000, "\x1b]0;x\x07")),
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=12,
)


def _toml(value: object) -> str:
    """Write TOML in inline tables; what it lacks is written all the same, for nobody must fall over it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value)


# What files of builds are made of, so that what is thrown together comes near to one.
PIECES = [
    piece.encode().decode("unicode_escape").encode("latin-1")
    for line in (
        r'path = |[submodule "x"]\n|X:STRING=|CMAKE_HOME_DIRECTORY:INTERNAL=|build a: b c\n|# ninja log v5\n',
        r'0\t5\t0\ta.o\t1\n|"0x1" -> "0x2"\n|"0x1" [label="a"]\n|file(INSTALL DESTINATION "|" FILES "|@{ops}',
        r"install_requires = [|'x',|]\n|// x\n|/* |*/|diff --git a/x b/x\n|@@ -1 +1 @@\n|--- a/x\n|+++ b/x\n",
        r"[1/2] |FAILED: |error: |undefined reference to |\x1b]52;c;eA==\x07|\x1b[31m|\xe2\x80\xae|\r|\n|=|{",
        r"[console_scripts]\n|x = a:b\n|Requires-Dist: |x @ https://y\n|../|C:|\0|\xff\xfe|[failure]\n|(a+)+",
    )
    for piece in line.split("|")
]
documents = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=12).map(b"".join),
    values.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
    st.dictionaries(keys, values, max_size=5).map(
        lambda table: "".join(f"{json.dumps(key)} = {_toml(item)}\n" for key, item in table.items()).encode(
            "utf-8", "surrogatepass"
        )
    ),
)


def _read_by(names: Iterable[str], folder: Path, data: bytes) -> None:
    for name in names:
        try:
            READERS[name](folder, data)
        except TorchbuildError as error:
            assert error.exit_code > 1, name
            assert len(error.what) < 2000, name
            assert not UNSEEN.search(visible(error.what)), name


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs")
@pytest.mark.parametrize("name", sorted(set(READERS) - {"wheel"}))
def test_no_reader_waits_for_what_is_no_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it read /dev/zero to its end: a clone can bring a link to it."""

    def lay(folder: Path, name: str, data: bytes) -> Path:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        os.mkfifo(path)
        return folder

    def end(*_: object) -> None:
        raise AssertionError(f"{name} waits")

    monkeypatch.setattr(sys.modules[__name__], "_below", lay)
    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(30)
    try:
        with contextlib.suppress(OSError, TorchbuildError):
            READERS[name](tmp_path, b"")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# Texts of our own or of the system, and files that were looked at before.
MAY_READ = {
    *("catalog/__init__.py", "features/report/verb.py", "build/monitor.py"),
    *("build/jobserver/posix.py", "features/cache/run.py"),
    *("features/cluster/act.py", "build/preflight.py", "build/prepare.py"),
    *("features/bisect/act.py", "features/closure/act.py"),
    *("features/container/act.py", "features/reproducible/act.py", "features/reproducible/bits.py"),
    *("features/package/act.py", "features/package/sdist.py", "features/develop/act.py"),
    *("features/wheel_overlay/act.py", "features/patches/act.py", "system/git/checkout.py"),
    "system/git/fetch.py",
}


def test_only_one_module_reads_complete_files() -> None:
    """`system/reading.py` neither waits for a pipe nor reads a device to its end."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf-8")
        if path.parent.name == "verify":  # reads the torch that was built, in its own Python
            continue
        if ".read_text" not in text and ".read_bytes" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in ("read_text", "read_bytes"):
                continue
            if ast.unparse(node.func.value) not in ("probe", "self", "reading", "one"):
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found == MAY_READ


def test_a_script_that_includes_itself_has_an_end(tmp_path: Path) -> None:
    script = tmp_path / "cmake_install.cmake"
    script.write_text(
        f'include("{script}")\nfile(INSTALL DESTINATION "x" FILES "/")\ninclude("{script}")\n', "utf-8"
    )
    (rule,) = read_rules(tmp_path)
    assert rule.sources == ("/",)
    assert find_named(tmp_path, tmp_path, {"torch/lib/x"}) == frozenset()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readers")


@settings(max_examples=examples(60, 500))
@given(documents)
def test_no_reader_falls_over_what_it_reads(folder: Path, data: bytes) -> None:
    _read_by(READERS, folder, data)


# ---------------- what writers wrote, changed by chance

INPUTS: Final = 100_000
ROOT = PACKAGE.parent
# By reader, files that have what it looks for; where a reader is not named, those of ITS are near enough.
REAL: dict[str, tuple[str, ...]] = {
    "facts": ("tests/snapshots/debian-bare.json",),
    "log": ("tests/logs/clean_with_noise.log", "tests/logs/gcc_header_ja.log", "tests/ninja/logs/link.log"),
    "pyproject.toml": ("samples/minitorch/pyproject.toml", "pyproject.toml"),
    "version.txt": ("samples/minitorch/version.txt",),
    "requirements.txt": (".ci/requirements.txt",),
    "setup.py": ("samples/minitorch/eras/setuptools/setup.py",),
    "env template": ("env_templates/env_set.sh.in",),
    "launch.json": ("docs/torchbuild.schema.json",),
    "diff": ("torchbuild_tasks/data/patches/launch-bounds.diff",),
}
TEXTS: dict[str, bytes] = {
    "torchbuild.toml": b"""jobs = 2
preset = "minimal"
[set]
USE_CUDA = "0"
[mirrors]
"https://github.com/" = "https://mirror.example/"
[builds.debug]
preset = "debug"
[[helper]]
name = "tool"
version = "1"
os = "linux"
needed = "asked"
unpack = "zip"
source = "t"
urls = ["https://example.org/tool.zip"]
[[failure]]
id = "mine"
phase = "link"
patterns = ['undefined reference to .(\\w+)']
cause = "c"
source = "s"
""",
    "lock": b"""version = 1
[[helper]]
id = "mkl-2025"
sha256 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
size = 12
url = "https://example.org/a.zip"
""",
    "json": b"""{"schema": 1, "tool": "0.2", "result": "ok", "root": "/x",
"paths": {"build/a.o": [1, 2, 3], "b/": [1]}, "inputs": {"CC": "gcc"}, "log": [], "id": "x", "sha256": "",
"url": "u", "size": 1, "files": ["a"], "facts": {"tree": {"version": "2.6.0"}}, "choices": [], "env": [],
"folders": {"a": [1, 2]}, "peaks": {}}""",
    ".gitmodules": b'[submodule "third_party/a"]\n\tpath = third_party/a\n\turl = ../a.git\n',
    "CMakeCache.txt": b"CMAKE_HOME_DIRECTORY:INTERNAL=/x\nCMAKE_GENERATOR:INTERNAL=Ninja\nUSE_CUDA:BOOL=ON\n",
    "build.ninja": b"rule cc\n  command = g++ -c $in\nbuild a.o: cc ../a.cpp | b$ c || d\n  depfile = a.d\n",
    ".ninja_log": b"# ninja log v5\n0\t7\t1700000000\ta.o\tdeadbeef\n7\t9\t1700000001\tlib/x.so\tc0ffee\n",
    "graph": b'digraph ninja {\n"0x1" [label="a.o"]\n"0x2" -> "0x1" [label=" cc"]\n}\n',
    "cmake_install.cmake": b'file(INSTALL DESTINATION "${X}/lib" TYPE FILE FILES "/x/a.so")\n',
    ".ninja_deps": b"# ninjadeps\n\4\0\0\0\x0c\0\0\0a.o\0\0\0\0\0\xff\xff\xff\xff\4\0\0\x80\0\0\0\0",
    "install_manifest.txt": b"/x/torch/lib/libc10.so\n/x/torch/./bin/y\n",
}
JSON_READERS: Final = (
    *("record", "install", "manifest", "bisection", "mark", "toolkit mark", "made", "installed"),
    *("snapshot", "peaks", "place", "build", "last build", "patches"),
)
# What breaks readers more than chance does: ends, depths, numbers, escapes, other files' words.
SHARP: Final = (
    *(b"", b"\0", b"\n", b"[" * 70, b"{", b"}", b'"', b"9" * 400, b"-1", b"1e999", b"\xff", b"..", b"/"),
    *(b"\xe2\x80\xae", b"\x1b]52;c;eA==\x07", b"\r", b"null", b"{}", b"[]", b"true"),
    *PIECES,
)


def samples_of(name: str) -> list[bytes]:
    """Return what a writer of this kind of file writes."""
    if name in REAL:
        return [(ROOT / path).read_bytes()[:6000] for path in REAL[name]]
    if name in JSON_READERS:
        return [TEXTS["json"]]
    if name == LOCK_FILE:
        return [TEXTS["lock"]]
    if name in ("library", "ld.so.cache"):
        return [Path(sys.executable).read_bytes()[6:4000]]
    return [TEXTS.get(name, b"")]


def changed(chance: random.Random, data: bytes) -> bytes:
    """Return the data with some bytes turned, parts cut, doubled or put elsewhere, and sharp words put in."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        at, end = sorted(chance.randrange(len(made) + 1) for _ in range(2))
        end = min(end, at + 40)
        match chance.randrange(6):
            case 0 if made:
                made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
            case 1:
                del made[at:end]
            case 2:
                made[at:at] = made[at:end] * chance.choice((1, 2, 50))
            case 3:
                made[at:end] = chance.choice(SHARP)
            case 4:
                del made[chance.randrange(len(made) + 1) :]
            case _:
                made[at:at] = chance.choice(SHARP)
    return bytes(made)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_reader_falls_over_a_hundred_thousand(folder: Path) -> None:
    """Every reader in turn; pefile takes 40 ms for a file, so a DLL is every hundredth of its turns.

    Cheaper by a hundred times than hypothesis, which finds a smaller input and took hours. The same inputs
    every time: what is found is found again.
    """
    chance = random.Random(16)
    samples = {name: samples_of(name) for name in READERS}
    for number in range(INPUTS):
        name = sorted(READERS)[number % len(READERS)]
        if name == "dll" and number // len(READERS) % 100:
            name = "torchbuild.toml"
        data = changed(chance, chance.choice(samples[name]))
        try:
            _read_by((name,), folder, data)
        except Exception as error:
            raise AssertionError(f"{name}, input {number}: {data!r}") from error


BOMBS = {
    "deep": b"[" * 50_000,
    "deep objects": b'{"a":' * 50_000,
    "deep toml": b"a = " + b"[" * 50_000,
    "digits": f'{{"schema": {NINES}, "result": {NINES}}}'.encode(),
    "digits toml": f"jobs = {NINES}".encode(),
    "number": b'{"schema": 1e999, "paths": {"a": [NaN, 1e999, 1]}}',
    "a list": b"[1]",
    "a word": b'"x"',
    "utf-16": "{}".encode("utf-16"),
    "mark": b"\xef\xbb\xbf{}",
    "zeros": bytes(100),
    "all bytes": bytes(range(256)),
    "digits alone": b"9" * 250_000,
    "wrong": b'{"schema": 1, "env": 5, "inputs": [], "paths": {"a": 5}, "result": 3, "helper": 4}',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_no_reader_falls_over_a_bomb(folder: Path, bomb: str) -> None:
    began = time.process_time()
    _read_by(READERS, folder, BOMBS[bomb])
    assert time.process_time() - began < 30

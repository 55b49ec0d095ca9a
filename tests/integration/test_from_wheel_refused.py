"""A wheel that cannot serve is refused, and the checkout is as it was; one that can is laid and taken back.

The wheel is written here and nothing of it is run, so this needs neither a compiler nor a network.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.support.capabilities import needs_git
from tests.support.driver import Run, torchbuild
from tests.support.sample import Era, in_one_era, materialise, run_git
from tests.support.webserver import WebServer

pytestmark = [pytest.mark.integration, needs_git]

VERSION = "2.6.0"
PYTHON = f"cp{sys.version_info[0]}{sys.version_info[1]}"
PLATFORM = sysconfig.get_platform().replace("-", "_").replace(".", "_")
LIBRARY = "torch/lib/torch.dll" if sys.platform == "win32" else "torch/lib/libtorch.so"

Files = dict[str, bytes]


def wheel_files(commit: str, version: str = VERSION) -> Files:
    """What a small wheel of this commit holds."""
    info = f"torch-{version}.dist-info"
    return {
        "torch/__init__.py": b"# another one: git tracks that of the checkout\n",
        "torch/version.py": f"__version__ = '{version}'\ngit_version = '{commit}'\n".encode(),
        LIBRARY: b"library " * 4000,
        "torch/include/torch/script.h": b"// a header\n",
        "torch/gone_since.py": b"",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\n",
    }


def write_wheel(
    folder: Path, files: Files, *, tags: str = f"{PYTHON}-{PYTHON}-{PLATFORM}", version: str = VERSION
) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"torch-{version}-{tags}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo("x")
            info.filename = name  # as it stands, also a backslash on Windows
            archive.writestr(info, data)
    return path


@pytest.fixture(scope="module", params=["setuptools", "scikit-build-core"])
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which nothing was built; every test leaves it as it was."""
    era: Era = request.param
    return materialise(tmp_path_factory.mktemp("checkout") / "minitorch", era=era, git=True)


@pytest.fixture(scope="module")
def old_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return materialise(tmp_path_factory.mktemp("old") / "minitorch", era="setuptools", git=True)


def build(tree: Path, target: Path, word: str | Path, *more: str, verb: str = "build") -> Run:
    wanted = ("--source", str(tree), "--python", str(target), "--from-wheel", str(word))
    return torchbuild(verb, *wanted, *(("--yes", "--offline") if verb == "build" else ()), *more)


def state(tree: Path) -> dict[str, bytes | None]:
    """Every file and folder but the tool's own state, and byte code."""
    skipped = {".git", ".torchbuild", "__pycache__"}
    return {
        path.relative_to(tree).as_posix(): path.read_bytes() if path.is_file() else None
        for path in tree.rglob("*")
        if not skipped & set(path.parts)
    }


def head(tree: Path) -> str:
    return run_git(tree, "rev-parse", "HEAD")


# ---------------- wheels that are no good


def damaged(tree: Path, folder: Path) -> Path:
    """One byte of the library is another."""
    path = write_wheel(folder, wheel_files(head(tree)))
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(LIBRARY)
    data = bytearray(path.read_bytes())
    data[info.header_offset + 30 + len(LIBRARY) + info.compress_size // 2] ^= 0xFF
    path.write_bytes(data)
    return path


DOWNLOADS = "https://download.pytorch.org/"


class Indexes:
    """The download index behind a mirror, and pip's own, with these wheels by folder."""

    def __init__(self, folder: Path, wheels: Mapping[str, Sequence[tuple[str, str]]], *, parts: bool) -> None:
        self._files: dict[str, bytes] = {}
        for place, held in wheels.items():
            names = []
            for version, commit in held:
                files = wheel_files(commit, version) | {"torch/lib/large.so": os.urandom(6_000_000)}
                path = write_wheel(folder / place.replace("/", "-"), files, version=version)
                names.append(path.name)
                self._files[f"{place}/{path.name}"] = path.read_bytes()
            links = (f'<a href="/{place}/{name}">{name}</a>' for name in names)
            self._files[f"{place}/torch/"] = "\n".join(links).encode()
        self.server = WebServer(self._files, parts=parts)

    def build(self, tree: Path, target: Path, *words: str) -> Run:
        """Build from the wheel that is found there."""
        own = {"TORCHBUILD_MIRROR": f"{DOWNLOADS}={self.server.url('')}", "PIP_FIND_LINKS": ""}
        own |= {"PIP_INDEX_URL": self.server.url("simple"), "PIP_CONFIG_FILE": os.devnull}
        place = ("--source", tree, "--python", target, "--yes", "--from-wheel", "auto")
        return torchbuild("build", *place, *words, environ=own)

    def sent(self) -> int:
        """Return how many bytes of wheels were requested."""
        total = 0
        for name, headers in self.server.state.seen:
            if name.endswith(".whl"):
                first, _, last = headers.get("Range", "").removeprefix("bytes=").partition("-")
                total += int(last) - int(first) + 1 if last else len(self._files[unquote(name[1:])])
        return total


@pytest.fixture
def untagged(tmp_path: Path) -> Path:
    """A checkout on the way to 2.8.0, whose release it has not."""
    tree = materialise(tmp_path / "minitorch", era="setuptools", git=True)
    run_git(tree, "tag", "--delete", "v2.8.0a0")
    return tree


OTHER = "a" * 40


@pytest.mark.parametrize("parts", [pytest.param(True, marks=pytest.mark.slow), False])
def test_auto_refuses_what_is_on_indexes_before_it_is_downloaded(
    untagged: Path, target: Path, tmp_path: Path, parts: bool
) -> None:
    """One wheel is no ancestor's, one is for CUDA, one of another release."""
    before = state(untagged)
    held = {"whl/cpu": [("2.8.0+cpu", OTHER), ("2.7.1+cpu", head(untagged))], "simple": [], "whl": []}
    held["whl"] = [("2.8.0+cu126", head(untagged)), ("2.8.0+rocm6.4", head(untagged))]
    indexes = Indexes(tmp_path, held, parts=parts)
    with indexes.server:
        done = indexes.build(untagged, target)
    assert done.code == 3, done.out + done.err
    assert f"{DOWNLOADS}whl/cpu: 2.8.0+cpu" in done.err
    assert f"{DOWNLOADS}whl/: no 2.8.0 that fits" in done.err
    assert ("from aaaaaaaaaa" if parts else "--from-wheel 2.8.0+cpu downloads it") in done.err
    assert state(untagged) == before
    assert indexes.sent() < 3_000_000


@pytest.mark.parametrize(
    ("tags", "words", "code", "said"),
    [
        (f"{PYTHON}-{PYTHON}-{PLATFORM}", ("--allow-http",), 3, "from aaaaaaaaaa"),
        (f"cp38-cp38-{PLATFORM}", ("--allow-http",), 3, "it is for cp38"),
        (f"{PYTHON}-{PYTHON}-{PLATFORM}", (), 11, "over plain http, and its hash is not known"),
    ],
)
def test_an_address_is_refused_before_it_is_downloaded(
    old_tree: Path, target: Path, tmp_path: Path, tags: str, words: tuple[str, ...], code: int, said: str
) -> None:
    files = wheel_files(OTHER) | {"torch/lib/large.so": os.urandom(6_000_000)}
    path = write_wheel(tmp_path / "bad", files, tags=tags)
    before = state(old_tree)
    with WebServer({path.name: path.read_bytes()}) as server:
        place = ("--source", old_tree, "--python", target, "--yes")
        done = torchbuild("build", *place, "--from-wheel", server.url(path.name), *words)
        assert all("Range" in headers for _, headers in server.state.seen)
    assert done.code == code, done.out + done.err
    assert said in done.err
    assert state(old_tree) == before


def test_auto_takes_the_night_before_a_commit(untagged: Path, target: Path, tmp_path: Path) -> None:
    """Its commit is one of the branch nightly, whose subject names the one that was built."""
    own = head(untagged)
    subject = f"2025-12-31 nightly release ({own})"
    night = run_git(untagged, "commit-tree", f"{own}^{{tree}}", "-m", subject)
    days = ("20260102", "20251230", "20251231")  # the commit is of 2026-01-01
    held = [(f"2.8.0.dev{day}+cpu", night if day == days[2] else OTHER) for day in days]
    indexes = Indexes(tmp_path, {"whl/nightly/cpu": held}, parts=True)
    with indexes.server:
        done = indexes.build(untagged, target)
    assert "2.8.0.dev20251231+cpu" in done.err and "built from this commit" in done.err
    assert "20260102" not in done.err
    assert done.code == 7, done.out + done.err  # this library is none


@pytest.mark.slow
def test_a_wheel_of_before_a_native_change_does_not_hide_a_later_one(
    untagged: Path, target: Path, tmp_path: Path
) -> None:
    """One of a worktree serves where that in dist/ does not."""
    before = head(untagged)
    source = untagged / run_git(untagged, "ls-files", "c10/*.cpp").splitlines()[0]
    source.write_text(f"{source.read_text('utf-8')}// changed\n", "utf-8")
    run_git(untagged, "commit", "-qam", "changed")
    run_git(untagged, "worktree", "add", "--detach", str(tmp_path / "other"))
    write_wheel(untagged / "dist", wheel_files(before))
    later = write_wheel(tmp_path / "other" / "dist", wheel_files(head(untagged)))
    done = build(untagged, target, "auto")
    assert f"wheel: {later}" in done.err, done.err
    later.unlink()
    refused = build(untagged, target, "auto")
    assert refused.code == 3 and "reaches c10" in refused.err
    assert "not asked, by --offline" in refused.err


def of_another_commit(tree: Path, folder: Path) -> Path:
    return write_wheel(folder, wheel_files("a" * 40))


def of_no_commit(tree: Path, folder: Path) -> Path:
    return write_wheel(folder, wheel_files("--output=outside.txt"))


def for_another_platform(tree: Path, folder: Path) -> Path:
    return write_wheel(folder, wheel_files(head(tree)), tags=f"{PYTHON}-{PYTHON}-macosx_11_0_arm64")


def without_a_wheel(tree: Path, folder: Path) -> Path:
    return folder / "torch-9.9.9-cp311-cp311-linux_x86_64.whl"


def an_empty_folder(tree: Path, folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("words", [(), ("--cpu",)])
def test_auto_asks_for_the_variant_of_the_plans_device(
    old_tree: Path, target: Path, words: tuple[str, ...]
) -> None:
    done = build(old_tree, target, "auto", "--json", *words, verb="plan")
    assert done.code == 0, done.out + done.err
    (wheel,) = [each["value"] for each in done.json["choices"] if each["name"] == "wheel"]
    assert wheel == "2.8.0+cpu"


@pytest.mark.parametrize("parts", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_wheel_of_another_commit_is_reported_before_it_is_downloaded(
    old_tree: Path, target: Path, tmp_path: Path, parts: bool
) -> None:
    """From a server with range requests some of 6 MB are fetched; from another one the whole wheel."""
    files = wheel_files("a" * 40) | {"torch/lib/large.so": os.urandom(6_000_000)}
    path = write_wheel(tmp_path / "bad", files)
    before = state(old_tree)
    page = f'<a href="../{path.name}">{path.name}</a>'.encode()
    with WebServer({"torch/": page, path.name: path.read_bytes()}, parts=parts) as server:
        words = ("--source", old_tree, "--python", target, "--yes", "--from-wheel", VERSION)
        done = torchbuild("build", *words, environ={"PIP_INDEX_URL": server.url(""), "PIP_FIND_LINKS": ""})
    assert done.code == 3, done.out + done.err
    assert f"{path.name}: it was built from aaaaaaaaaa, which is not in this checkout's history" in done.err
    assert state(old_tree) == before
    asked = [headers.get("Range") for name, headers in server.state.seen if name.endswith(".whl")]
    spans = [span.removeprefix("bytes=").split("-") for span in asked if span]
    assert sum(int(last) - int(first) for first, last in spans) < 3_000_000
    assert (None in asked) is not parts


@pytest.mark.parametrize(
    ("make", "code", "said"),
    [
        (damaged, 12, "is broken"),
        (of_another_commit, 3, "not in this checkout's history"),
        (of_no_commit, 12, "its commit is none"),
        (for_another_platform, 3, "macosx_11_0_arm64"),
        (without_a_wheel, 2, "neither a file, a folder"),
        (an_empty_folder, 3, "no wheel of torch is in"),
    ],
)
def test_a_wheel_that_cannot_serve_leaves_the_checkout_as_it_was(
    old_tree: Path,
    target: Path,
    tmp_path: Path,
    make: Callable[[Path, Path], Path],
    code: int,
    said: str,
) -> None:
    before = state(old_tree)
    done = build(old_tree, target, make(old_tree, tmp_path / "bad"))
    assert done.code == code, done.out + done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert state(old_tree) == before
    assert not [*tmp_path.rglob("outside.txt"), *old_tree.parent.rglob("outside.txt")]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch/lib/../../../outside.txt", "leaves the folder with '..'"),
        ("torch\\lib\\outside.so", "is not written as a wheel's are"),
    ],
)
def test_names_that_leave_the_wheel_are_refused(
    old_tree: Path, target: Path, tmp_path: Path, name: str, said: str
) -> None:
    before = state(old_tree)
    files = {**wheel_files(head(old_tree)), name: b"out"}
    done = build(old_tree, target, write_wheel(tmp_path / "bad", files))
    assert done.code == 12, done.out + done.err
    assert said in done.err
    assert state(old_tree) == before
    assert not list(old_tree.parent.rglob("outside*"))


# ---------------- one that is


@in_one_era("tree")
def test_what_is_laid_is_taken_back_to_the_last_file(tree: Path, target: Path, tmp_path: Path) -> None:
    """It is verified as well, and fails: this library is none."""
    before = state(tree)
    wheel = write_wheel(tmp_path / "wheels", wheel_files(head(tree)))
    done = build(tree, target, wheel)
    assert done.code == 7, done.out + done.err
    assert "were copied over the checkout" in done.err
    assert "torch/gone_since.py" in done.err
    laid = state(tree)
    added = {name for name in laid if name not in before and laid[name] is not None}
    assert {LIBRARY, "torch/version.py", "torch/include/torch/script.h"} <= added
    assert {name: laid[name] for name in before} == before
    assert run_git(tree, "status", "--porcelain") == ""
    gone = torchbuild("clean", "--source", tree, "--python", target, "--yes")
    assert gone.code == 0, gone.out + gone.err
    assert state(tree) == before
    listed = subprocess.run([str(target), "-m", "pip", "list"], capture_output=True, text=True, check=True)
    assert "torch " not in listed.stdout

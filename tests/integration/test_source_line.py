"""`source`, and a build of a torch that is not here, through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import git_servers
from tests.support.capabilities import needs_git
from tests.support.driver import torchbuild
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A store of the test's own, and leave for git to fetch from a folder."""
    return {"TORCHBUILD_CACHE": str(tmp_path / "store")}


def test_a_build_outside_of_a_checkout_gets_the_one_that_it_names(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    materialise(tmp_path / "minitorch", git=True, version="2.14.0")
    here = tmp_path / "here"
    here.mkdir()
    words = ("--torch", "2.14.0", "--url", tmp_path / "minitorch.git")
    planned = torchbuild("plan", *words, cwd=here, environ=environ)
    assert planned.code == 3 and "torchbuild source get" in planned.out
    # It is got, and then cannot be built: there is no such Python.
    built = torchbuild("build", *words, "--python", "/no/such/python", cwd=here, environ=environ)
    assert built.code == 3 and "/no/such/python" in built.err
    (checkout,) = (tmp_path / "store/sources").iterdir()
    assert (checkout / "third_party/tinyfmt/third_party/tinyassert").is_dir()
    again = torchbuild("plan", *words, cwd=here, environ=environ)
    assert str(checkout) in again.out and "our checkout of the torch that is asked for" in again.out
    assert not list(here.iterdir())


@pytest.mark.slow
def test_the_words_of_the_command_line(tmp_path: Path, environ: dict[str, str]) -> None:
    git_servers.publish(tmp_path / "published")
    url, root = str(tmp_path / "published/pytorch.git"), tmp_path / "pt"
    got = torchbuild("source", "get", "v2.14.0", "--url", url, "--source", root, "--json", environ=environ)
    assert got.code == 0 and got.json["checkouts"][0]["version"] == "2.14.0"
    moved = torchbuild("source", "update", "2.15.0", cwd=root, environ=environ)
    assert moved.out == f"{root}: PyTorch 2.15.0 (v2.15.0)\n"
    assert torchbuild("source", "update", cwd=root, environ=environ).code == 0
    (root / "third_party/one/text.txt").write_text("mine\n")
    told = torchbuild("source", "status", cwd=root, environ=environ)
    assert "third_party/one: text.txt" in told.out
    reset = torchbuild("source", "reset", "--third-party", "--dry-run", cwd=root, environ=environ)
    assert "kept, because it has changes: third_party/one: text.txt" in reset.out
    missing = torchbuild("source", "get", "2.99.0", "--url", url, environ=environ)
    assert missing.code == 16 and "nearest: v2.14.0, v2.15.0" in missing.err
    assert torchbuild("source", "update", cwd=tmp_path, environ=environ).code == 16
    assert torchbuild("source", "updat", environ=environ).code == 2

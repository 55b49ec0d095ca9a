"""What is typed needs something to be so; a fix says it only where the log does not show the opposite."""

from __future__ import annotations

from tests.features.diagnosis.test_premises import read, reader
from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.diagnosis.audience import Audience
from torchbuild_tasks.features.diagnosis.wording import entitle, list_done

_GIT = "The file is gone. git status tells whether it was removed: bring it back. Or take another release."
_ROOT = "Run: sudo apt install g++-12. Then configure anew."


@each_case(
    "fix, known, said",
    [
        (_GIT, {}, _GIT),
        (
            _GIT,
            {"unpacked source": "pip"},
            "The file is gone. Or take another release. The source lies where pip unpacked it for this build"
            " alone, so that nothing is typed there: take a release of it that is whole or newer, or clone"
            " its repository (git clone --recursive) and build that.",
        ),
        (_ROOT, {"image build": "docker build"}, "Run: apt install g++-12. Then configure anew."),
        (_ROOT, {"no sudo": "sudo: not found"}, "Run: apt install g++-12. Then configure anew."),
    ],
)
def test_a_fix_says_what_the_log_allows(fix: str, known: dict[str, str], said: str) -> None:
    assert entitle(fix, reader(), known) == said


@each_case(
    "name, fix, said",
    [
        ("cluster", _ROOT, "conda install -c conda-forge"),
        ("no wheels of torch", "Run: python -m pip install torch==2.6.0.", "has wheels for cluster"),
        ("in a container", "systemctl start nvidia-fabricmanager.", "on the machine that runs the container"),
    ],
)
def test_what_holds_is_said_in_its_place(name: str, fix: str, said: str) -> None:
    assert said in entitle(fix, reader(), {name: "cluster"})


@each_case(
    "log, name",
    [
        ("-- /cvmfs/x/x86_64-linux-gnu/gcc\na.c:1:10: {}", "cluster"),
        ("  /tmp/pip-install-ab12cd34/x_0/a.c:1:10: {}", "unpacked"),
    ],
)
def test_a_log_shows_its_surroundings(log: str, name: str) -> None:
    fix = read(log.format("fatal error: zlib.h: No such file or directory")).diagnoses[0].fix
    assert ("module avail" in fix) is (name == "cluster")
    assert ("git submodule" in fix) is (name == "cluster")


def test_each_premise_has_something_to_speak_against_it() -> None:
    signs = {row.name for row in load_catalog().sign}
    said = {"image build", "cluster"}
    for row in load_catalog().premise:
        assert set(row.against) <= signs | said, row.typed
        assert not (row.instead and row.also), row.typed


@each_case(
    "fix, done",
    [
        ("Take torch 2.4 or newer.", ["The torch of this log is 2.6.0 already."]),
        ("Take torch 2.7 or newer.", []),
        ("Run: sudo apt install libfoo-dev ninja-build.", ["This log shows libfoo-dev as installed."]),
        ("In torch 2.4 and older it was so.", []),
    ],
)
def test_what_is_here_already_is_said(fix: str, done: list[str]) -> None:
    audience = Audience(versions={"torch": "2.6.0"}, installed=frozenset({"libfoo-dev"}))
    assert list(list_done(fix, audience)) == done

"""A wheel and its statement: right, tampered with, missing, signed by this one and by another."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import has, needs
from tests.support.wheels import make_wheel
from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.features.provenance.act import SIGNATURE, rewrite, sign, write_package_statement
from torchbuild_tasks.features.provenance.choose import PREDICATE, STATEMENT, SUFFIX
from torchbuild_tasks.features.provenance.sbom import SBOM, edit_sbom
from torchbuild_tasks.features.provenance.verb import check_wheel
from torchbuild_tasks.system.reading import hash_file

needs_ssh = needs(has("ssh-keygen"), "ssh-keygen")
COMMIT = "abc1234"  # of tests/support/wheels.py
INNER = "b" * 40
INFO = "torch-2.6.0+cpu.dist-info"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with a bill of materials, and its statement in the same folder."""
    made = make_wheel(tmp_path / "dist", {"torch/lib/x.so": b"x"})
    own = {
        "bom-ref": "torch",
        "name": "torch",
        "properties": [{"name": "torchbuild:commit", "value": COMMIT}],
    }
    bom = {
        "metadata": {"component": own},
        "components": [{"name": "third_party/fmt", "version": INNER}],
        "dependencies": [{"ref": "torch", "dependsOn": ["third_party/fmt"]}],
    }
    rewrite(made, {f"{INFO}/{SBOM}": json.dumps(bom).encode()}, None)
    say(made)
    return made


def say(wheel: Path, **changes: Any) -> None:
    depends = [
        {"name": "torch", "digest": {"gitCommit": COMMIT}},
        {"name": "third_party/fmt", "digest": {"gitCommit": INNER}},
    ]
    said = {
        "_type": STATEMENT,
        "predicateType": PREDICATE,
        "subject": [{"name": wheel.name, "digest": {"sha256": hash_file(wheel)}}],
        "predicate": {"buildDefinition": {"externalParameters": {}, "resolvedDependencies": depends}},
    }
    beside(wheel).write_text(json.dumps({**said, **changes}), "utf-8")


def beside(wheel: Path) -> Path:
    return wheel.with_name(wheel.name + SUFFIX)


def outcomes(wheel: Path, signers: Path | None = None) -> dict[str, str]:
    return {each.check: each.outcome for each in check_wheel(wheel, signers)}


def key(folder: Path, name: str) -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)
    return path


def test_a_wheel_as_it_was_built(wheel: Path) -> None:
    assert outcomes(wheel) == {
        **dict.fromkeys(("hash", "contents", "commit", "bill of materials"), "passed"),
        "signed": "not possible",
    }


def test_a_wheel_that_was_changed_is_recognised_by_hash_and_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("torch/evil.py", b"")
    found = {each.check: each for each in check_wheel(wheel, None)}
    assert (found["hash"].outcome, found["contents"].outcome) == ("failed", "failed")
    assert "torch/evil.py" in found["contents"].detail


def test_one_that_was_packed_again_with_its_record_is_recognised_by_its_hash(wheel: Path) -> None:
    rewrite(wheel, {"torch/evil.py": b""}, None)
    found = outcomes(wheel)
    assert (found["hash"], found["contents"]) == ("failed", "passed")


def test_another_commit_is_reported(wheel: Path) -> None:
    other = [{"name": "torch", "digest": {"gitCommit": "f" * 40}}]
    say(wheel, predicate={"buildDefinition": {"resolvedDependencies": other}})
    found = outcomes(wheel)
    assert (found["commit"], found["bill of materials"]) == ("failed", "failed")


@pytest.mark.parametrize("text", ["{", "[]", '{"_type": "x"}'])
def test_what_is_no_statement_is_refused(wheel: Path, text: str) -> None:
    beside(wheel).write_text(text, "utf-8")
    with pytest.raises(PackageRefused, match="not a statement"):
        check_wheel(wheel, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"predicate": None},
        {"subject": [1]},
        {"predicate": {"buildDefinition": {"resolvedDependencies": [1]}}},
    ],
    ids=["no predicate", "a subject that is none", "dependencies that are none"],
)
def test_a_statement_of_another_form_is_refused(wheel: Path, changes: dict[str, Any]) -> None:
    say(wheel, **changes)
    with pytest.raises(PackageRefused, match="is not as this tool writes it"):
        check_wheel(wheel, None)


def test_what_is_missing_is_named(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(PackageRefused, match="its file of signers is missing"):
        check_wheel(wheel, tmp_path / "none")
    beside(wheel).unlink()
    with pytest.raises(PackageRefused, match="its statement is missing"):
        check_wheel(wheel, None)
    with pytest.raises(PackageRefused, match="its wheel is missing"):
        check_wheel(tmp_path / "none.whl", None)


def test_a_file_that_is_cut_off_fails(wheel: Path) -> None:
    wheel.write_bytes(wheel.read_bytes()[:-30])
    assert outcomes(wheel)["contents"] == "failed"


@pytest.mark.parametrize("record", ["x\n", '"', "a" * 200_000, "torch/version.py\n", "\0,\0,\n"])
def test_a_record_that_is_none_fails(wheel: Path, record: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in {**held, f"{INFO}/RECORD": record.encode()}.items():
            archive.writestr(name, data)
    say(wheel)
    assert outcomes(wheel)["contents"] == "failed"


@pytest.mark.parametrize(("at", "value"), [(8, 1), (10, 12), (10, 99)])
def test_a_file_that_is_locked_or_packed_otherwise_fails(wheel: Path, at: int, value: int) -> None:
    data = bytearray(wheel.read_bytes())
    place = data.find(b"PK\1\2") + at
    data[place : place + 2] = value.to_bytes(2, "little")
    wheel.write_bytes(data)
    say(wheel)
    assert outcomes(wheel)["contents"] == "failed"


def test_a_file_that_is_there_twice_fails(wheel: Path) -> None:
    """Which of the two is installed is the installer's choice."""
    with zipfile.ZipFile(wheel, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("torch/lib/x.so", archive.read("torch/lib/x.so"))
    say(wheel)
    assert outcomes(wheel)["contents"] == "failed"


@needs_ssh
@pytest.mark.integration
def test_signatures_count_for_whom_the_user_names(wheel: Path, tmp_path: Path) -> None:
    mine, other = key(tmp_path, "mine"), key(tmp_path, "other")
    assert outcomes(wheel, mine.with_suffix(".pub"))["signed"] == "failed"  # there is none yet
    sign(beside(wheel), mine)
    found = {each.check: each for each in check_wheel(wheel, None)}["signed"]
    assert (found.outcome, "SHA256:" in found.detail) == ("not possible", True)
    assert outcomes(wheel, mine.with_suffix(".pub"))["signed"] == "passed"
    assert outcomes(wheel, other.with_suffix(".pub"))["signed"] == "failed"
    allowed = tmp_path / "allowed"
    allowed.write_text(f"me@example.org {mine.with_suffix('.pub').read_text('utf-8')}", "utf-8")
    found = {each.check: each for each in check_wheel(wheel, allowed)}["signed"]
    assert found.outcome == "passed" and "me@example.org" in found.detail


@needs_ssh
@pytest.mark.integration
def test_a_statement_that_was_changed_after_it_was_signed_fails(wheel: Path, tmp_path: Path) -> None:
    mine = key(tmp_path, "mine")
    sign(beside(wheel), mine)
    beside(wheel).write_text(beside(wheel).read_text("utf-8") + " ", "utf-8")
    for signers in (None, mine.with_suffix(".pub")):
        assert outcomes(wheel, signers)["signed"] == "failed"
    beside(wheel).with_name(beside(wheel).name + SIGNATURE).write_text("rubbish", "utf-8")
    assert outcomes(wheel)["signed"] == "failed"


@needs_ssh
@pytest.mark.integration
def test_a_key_that_signs_nothing_says_what_to_do(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "rubbish").write_text("no key", "utf-8")
    with pytest.raises(PackageRefused, match="is not signed") as refused:
        sign(beside(wheel), tmp_path / "rubbish")
    assert "ssh-add" in refused.value.next_step


def package(wheel: Path, **changes: Any) -> tuple[Path, str]:
    """A package of the wheel, as `package wheel` leaves it, and why it got no statement."""
    made = make_wheel(wheel.parent / "packages", {"torch/lib/x.so": b"x"})
    with zipfile.ZipFile(wheel) as archive:
        old = archive.read(f"{INFO}/{SBOM}").decode()
    rewrite(made, {f"{INFO}/{SBOM}": edit_sbom(old, "2.6.0+mine", ["libgomp.so.1"]).encode()}, None)
    return made, write_package_statement(wheel, made, {"local": "mine", **changes}, None)


def test_a_package_has_the_statement_of_its_wheel_and_how_it_was_made(wheel: Path) -> None:
    made, why = package(wheel)
    assert why == ""
    assert outcomes(made) == {
        **dict.fromkeys(("hash", "contents", "commit", "bill of materials"), "passed"),
        "signed": "not possible",
    }
    definition = json.loads(beside(made).read_text("utf-8"))["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["package"] == {"local": "mine"}
    assert definition["resolvedDependencies"][0]["digest"] == {"sha256": hash_file(wheel)}


def test_the_bill_of_a_package_has_its_version_and_what_was_brought(wheel: Path) -> None:
    made, _ = package(wheel)
    with zipfile.ZipFile(made) as archive:
        bom = json.loads(archive.read(f"{INFO}/{SBOM}"))
    assert bom["metadata"]["component"]["version"] == "2.6.0+mine"
    assert bom["metadata"]["component"]["purl"] == "pkg:pypi/torch@2.6.0%2Bmine"
    assert [each["name"] for each in bom["components"]] == ["third_party/fmt", "libgomp.so.1"]
    assert bom["dependencies"] == [
        {"ref": "torch", "dependsOn": ["third_party/fmt", "file:libgomp.so.1"]},
        {"ref": "file:libgomp.so.1"},
    ]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda wheel: beside(wheel).unlink(), "has none beside it"),
        (lambda wheel: wheel.write_bytes(b"another"), "of another file"),
        (lambda wheel: say(wheel, predicate={}), "not as this tool writes it"),
        (lambda wheel: say(wheel, subject=[7]), "not as this tool writes it"),
    ],
)
def test_a_wheel_without_its_statement_gives_a_package_without_one(
    wheel: Path, spoil: Callable[[Path], object], says: str
) -> None:
    made, _ = package(wheel)
    spoil(wheel)
    assert says in write_package_statement(wheel, made, {}, None)
    assert not beside(made).exists()  # nor an old one

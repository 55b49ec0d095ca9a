"""`verify --provenance`: check a wheel against its statement: hash, content, commit, signature."""

from __future__ import annotations

import csv
import hashlib
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.errors import PackageRefused, VerifyFailed
from torchbuild_tasks.facts.wheel import BROKEN, info_folder, look_at_wheel, read_member, recorded_hash
from torchbuild_tasks.features.provenance.act import NAMESPACE, SIGNATURE
from torchbuild_tasks.features.provenance.choose import SUFFIX
from torchbuild_tasks.features.provenance.look import read_statement
from torchbuild_tasks.features.provenance.sbom import COMMIT, SBOM
from torchbuild_tasks.model.record import CheckResult
from torchbuild_tasks.system import process
from torchbuild_tasks.system.reading import hash_file, read_bytes
from torchbuild_tasks.text.show import columns
from torchbuild_tasks.text.words import counted, first_few, in_short
from torchbuild_tasks.values import parse_json
from torchbuild_tasks.verbs import Outcome

_KEY: Final = re.compile(r"(?:sk-)?(?:ssh|ecdsa)-\S+ \S+")  # a .pub file, not one of allowed signers
_SIGNED: Final = re.compile(r'^Good "[^"]*" signature (?:for (?P<who>.*) )?with \S+ key (?P<key>\S+)')


def verify_provenance(wheel: str, signers: str | None) -> Outcome:
    """Check a wheel against its statement."""
    path = Path(wheel).expanduser().absolute()
    checks = check_wheel(path, Path(signers).expanduser() if signers else None)
    failed = sum(each.outcome == "failed" for each in checks)
    rows = [(each.outcome, f"{each.check}: {each.detail}") for each in checks]
    count = counted(len(checks), "check")
    text = f"Provenance of {path.name}: {count}, {failed} failed\n{columns(rows)}"
    return Outcome({"wheel": str(path), "checks": checks}, text, VerifyFailed.exit_code if failed else 0)


def check_wheel(wheel: Path, signers: Path | None) -> tuple[CheckResult, ...]:
    """Return the result of each check of a wheel and its statement.

    Args:
        wheel: its file; the statement is next to it.
        signers: whose signature counts: a public key, or ssh-keygen's file of allowed signers.

    Raises:
        PackageRefused: there is no wheel, no statement, or one that says nothing of wheels.
    """
    path = wheel.with_name(wheel.name + SUFFIX)
    for file, what, next_step in (
        (wheel, "wheel", "Name the file: verify --provenance dist/torch-….whl"),
        (
            path,
            "statement",
            "It is made with the wheel: torchbuild build --mode wheel. Keep the two together.",
        ),
        *((each, "file of signers", "Name a public key, or allowed signers.") for each in (signers,) if each),
    ):
        if not file.is_file():
            raise PackageRefused(
                f"{wheel.name} cannot be checked: its {what} is missing.",
                looked=(f"looked for: {file}",),
                next_step=next_step,
            )
    statement = read_statement(path)
    try:
        checks = tuple(_checks(wheel, statement))
    except (*BROKEN, AttributeError, TypeError) as error:  # of another form than ours
        raise PackageRefused(
            f"{path.name}, or the bill of materials in the wheel, is not as this tool writes it "
            f"({type(error).__name__}: {in_short(error)}).",
            next_step="Get the two as they were built.",
        ) from None
    return (*checks, _signature(path, signers))


def _checks(wheel: Path, statement: Any) -> Iterator[CheckResult]:
    digest = hash_file(wheel)
    subjects = {
        each.get("name"): each.get("digest", {}).get("sha256") for each in statement.get("subject", ())
    }
    same = subjects.get(wheel.name) == digest
    other = f"the statement is of {', '.join(map(str, subjects.values()))} ({', '.join(map(str, subjects))})"
    yield _result("hash", same, f"sha256 {digest}", f"sha256 {digest}; {other}")
    try:
        wrong = _wrong_members(wheel)
    except BROKEN as error:
        yield _result("contents", False, "", f"it cannot be read as a wheel: {in_short(error)}")
        return
    yield _result("contents", not wrong, "every file is as RECORD has it", f"not as RECORD has it: {wrong}")
    yield from _sources(wheel, statement)


def _result(check: str, passed: bool, detail: str, problem: str) -> CheckResult:
    outcome: Any = "passed" if passed else "failed"
    return CheckResult(check=check, outcome=outcome, detail=detail if passed else problem)


def _wrong_members(wheel: Path) -> str:
    """Return the files that differ from RECORD, or are in only one of the two."""
    with zipfile.ZipFile(wheel) as archive:
        record = f"{info_folder(archive)}/RECORD"
        lines = read_member(archive, record).decode().splitlines()
        rows = {row[0]: row[1] for row in csv.reader(lines) if row}
        listed = [info.filename for info in archive.infolist() if not info.is_dir()]
        names = set(listed)
        twice = {name for name, count in Counter(listed).items() if count > 1}
        wrong = sorted((names ^ rows.keys()) | twice)
        for name in sorted(names & rows.keys() - {record}):
            hashed = hashlib.sha256()
            with archive.open(name) as file:
                while block := file.read(1 << 20):
                    hashed.update(block)
            if rows[name] != recorded_hash(hashed.digest()):
                wrong.append(name)
    return first_few(wrong, 5)


def _sources(wheel: Path, statement: Any) -> Iterator[CheckResult]:
    """Compare the commits of the statement with those in the wheel and its bill of materials."""
    depends = statement["predicate"].get("buildDefinition", {}).get("resolvedDependencies", ())
    commits = {
        each.get("name"): each["digest"]["gitCommit"]
        for each in depends
        if "gitCommit" in each.get("digest", {})
    }
    seen = look_at_wheel(wheel)
    wanted = commits.get("torch", "")
    detail = f"{wanted}, as torch.version.git_version says"
    other = f"the statement says {wanted or 'none'}, torch.version.git_version {seen.commit or 'none'}"
    if not wanted and seen.commit in ("", "Unknown"):
        yield CheckResult(check="commit", outcome="not possible", detail="it was built outside of git")
    else:
        yield _result("commit", bool(wanted) and seen.commit == wanted, detail, other)
    with zipfile.ZipFile(wheel) as archive:
        name = f"{seen.dist_info}/{SBOM}"
        if name not in archive.namelist():
            yield _result("bill of materials", False, "", f"{name} is not in it")
            return
        bom = parse_json(read_member(archive, name))
    parts = {each["name"]: each.get("version") for each in bom.get("components", ())}
    own = bom["metadata"]["component"].get("properties", ())
    parts["torch"] = next((each["value"] for each in own if each["name"] == COMMIT), None)
    differ = sorted(name for name in {*parts, *commits} if parts.get(name) != commits.get(name))
    detail = f"{counted(len(parts), 'commit')}, as in the statement"
    yield _result("bill of materials", not differ, detail, f"another commit than the statement: {differ[:5]}")


def _signature(path: Path, signers: Path | None) -> CheckResult:
    """Return who signed the statement, and whether the signature is valid."""
    signature = path.with_name(path.name + SIGNATURE)
    if not signature.is_file():
        if signers:
            return _result("signed", False, "", f"{signers} was given, and there is no {signature.name}")
        return CheckResult(check="signed", outcome="not possible", detail="it is not signed")
    if signers is None:
        argv = ("ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature))
        captured = process.capture(argv, stdin=path, timeout=60.0)
        match = _SIGNED.match(captured.text)
        if captured.rc != 0 or not match:
            return _result("signed", False, "", f"{signature.name}: {_last(captured)}")
        detail = f"by the key {match['key']}; whose that is can be said by --signers FILE"
        return CheckResult(check="signed", outcome="not possible", detail=detail)
    with tempfile.TemporaryDirectory(prefix="torchbuild-signers-") as scratch:
        allowed = Path(scratch) / "allowed"
        text = read_bytes(signers).decode("utf-8", "replace")
        keys = [f"* {line}" if _KEY.match(line) else line for line in text.splitlines()]
        allowed.write_text("\n".join(keys) + "\n", "utf-8", newline="\n")
        files = ("-f", str(allowed), "-n", NAMESPACE, "-s", str(signature))
        who = process.capture(("ssh-keygen", "-Y", "find-principals", *files), timeout=60.0)
        names = who.text.split()
        if who.rc != 0 or not names:
            return _result("signed", False, "", f"it is by no signer that {signers} names")
        identity = "signer" if names[0] == "*" else names[0]
        words = ("ssh-keygen", "-Y", "verify", "-I", identity, *files)
        captured = process.capture(words, stdin=path, timeout=60.0)
    match = _SIGNED.match(captured.text)
    key = match["key"] if match else ""
    by = f"by {key}" if names[0] == "*" else f"by {identity}, {key}"
    return _result("signed", captured.rc == 0 and bool(key), by, f"{signature.name}: {_last(captured)}")


def _last(captured: process.Captured) -> str:
    if not captured.started:
        return "ssh-keygen is missing (OpenSSH)"
    lines = (captured.stderr or captured.stdout).decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "ssh-keygen refused it")

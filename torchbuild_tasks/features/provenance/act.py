"""Finish a built wheel: add its bill of materials, and write its statement of provenance."""

from __future__ import annotations

import csv
import hashlib
import os
import stat
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.build.work import Work, built_wheel
from torchbuild_tasks.errors import BuildFailed, PackageRefused, UsageError
from torchbuild_tasks.facts.wheel import info_folder, record_row, record_text
from torchbuild_tasks.features.provenance.choose import SUFFIX, package_statement, statement
from torchbuild_tasks.features.provenance.look import look_at_licences, read_statement
from torchbuild_tasks.features.provenance.sbom import SBOM, make_sbom
from torchbuild_tasks.features.reproducible.choose import is_reproducible, lead_from_here
from torchbuild_tasks.system import files, process
from torchbuild_tasks.system.reading import hash_file
from torchbuild_tasks.system.remove import unfinished_folder
from torchbuild_tasks.text.words import shell_line

NAMESPACE: Final = "torchbuild-provenance"  # of ssh-keygen: a signature for this counts for nothing else
SIGNATURE: Final = ".sig"
_BLOCK: Final = 1 << 20


# ---------------- in the wheel


def finish_wheel(work: Work) -> Work:
    """Add the bill of materials to the built wheel; if requested, normalise it to reproducible bytes.

    Raises:
        BuildFailed: the wheel is none, or the disk is full.
    """
    wheel = built_wheel(work.root)
    if wheel is None:
        return work
    epoch = int(work.env["SOURCE_DATE_EPOCH"]) if is_reproducible(work.plan) else None
    manifest = work.ledger.manifest
    rows = work.catalog.licence
    licences = {
        each.path: look_at_licences(work.root, each.path, rows)
        for each in manifest.repositories
        if each.commit
    }
    licences.setdefault("", look_at_licences(work.root, "", rows))
    with files.translate_errors(BuildFailed, wheel), zipfile.ZipFile(wheel) as archive:
        info = info_folder(archive)
        moved = _lead_from_here(archive, work.plan.source) if epoch is not None else {}
        own = f"{info}/RECORD"
        record = _record(archive.read(own).decode("utf-8"), moved, own, sort=True)
    text = make_sbom(
        version=info.removesuffix(".dist-info").partition("-")[2],
        repositories=manifest.repositories,
        licences=licences,
        content=hashlib.sha256(record.encode()).hexdigest(),
        time=datetime.fromtimestamp(epoch, UTC) if epoch else datetime.now(UTC).replace(microsecond=0),
    )
    with files.translate_errors(BuildFailed, wheel):
        rewrite(wheel, {**moved, f"{info}/{SBOM}": text.encode()}, epoch)
    return work


def _lead_from_here(archive: zipfile.ZipFile, root: str) -> dict[str, bytes]:
    """Return the CMake files of a wheel that name the checkout, with relative paths instead."""
    texts = {name: archive.read(name) for name in archive.namelist() if name.endswith(".cmake")}
    moved = {name: lead_from_here(name, text, root) for name, text in texts.items()}
    return {name: text for name, text in moved.items() if text != texts[name]}


def rewrite(wheel: Path, added: Mapping[str, bytes], epoch: int | None) -> None:
    """Write a wheel again with these files added, and its RECORD.

    Args:
        wheel, added: its file; what comes into it, by name.
        epoch: write order, times and modes that hang on nothing but the content; seconds since 1970.
    """
    with unfinished_folder(wheel.parent / "wheel", BuildFailed, private=True) as place:
        partial = place / wheel.name
        with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as new:
            record = f"{info_folder(old)}/RECORD"
            members = [each for each in old.infolist() if each.filename not in (*added, record)]
            if epoch is not None:  # metadata last, as the specification of wheels recommends
                members.sort(key=lambda each: (".dist-info/" in each.filename, each.filename))
            for each in members:
                if not each.is_dir():
                    _copy(old, new, each, epoch)
            for path, data in sorted(added.items()):
                new.writestr(_member(path, _time(epoch)), data)
            lines = _record(old.read(record).decode("utf-8"), added, record, sort=epoch is not None)
            new.writestr(_member(record, _time(epoch)), lines)
        mode = stat.S_IMODE(wheel.stat().st_mode)
        partial.chmod(mode)
        files.replace(partial, wheel)


def _copy(old: zipfile.ZipFile, new: zipfile.ZipFile, each: zipfile.ZipInfo, epoch: int | None) -> None:
    time = each.date_time if epoch is None else _time(epoch)
    info = _member(each.filename, time, executable=bool(each.external_attr >> 16 & 0o100))
    if epoch is None:
        info.external_attr = each.external_attr
    info.file_size = each.file_size
    with old.open(each) as source, new.open(info, "w", force_zip64=each.file_size >= 1 << 31) as target:
        while block := source.read(_BLOCK):
            target.write(block)


def _member(
    name: str, time: tuple[int, int, int, int, int, int], *, executable: bool = False
) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, time)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3  # Unix, on every system
    info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    return info


def _time(epoch: int | None) -> tuple[int, int, int, int, int, int]:
    time = datetime.now(UTC) if epoch is None else datetime.fromtimestamp(epoch, UTC)
    return (max(time.year, 1980), time.month, time.day, time.hour, time.minute, time.second)


def _record(text: str, added: Mapping[str, bytes], own: str, *, sort: bool) -> str:
    """Return RECORD with the added files; its own line is the last."""
    rows = [row for row in csv.reader(text.splitlines()) if row and row[0] not in (*added, own)]
    rows += [list(record_row(name, data)) for name, data in sorted(added.items())]
    return record_text([*(sorted(rows) if sort else rows), [own, "", ""]])


# ---------------- statements


def write_statement(root: Path, work: Work) -> None:
    """Write the statement of the wheel's provenance next to it, signed if a key is given.

    Raises:
        PackageRefused: it cannot be written, or the key signs nothing.
    """
    wheel = built_wheel(root)
    if wheel is None:
        return
    from torchbuild_tasks.features.manifest.act import redact

    manifest = redact(work.ledger.manifest)
    path = wheel.with_name(wheel.name + SUFFIX)
    text = statement(manifest, wheel.name, hash_file(wheel), hash_file(work.ledger.manifest_path))
    files.write_atomic(path, text.encode(), error=PackageRefused)
    signature = path.with_name(path.name + SIGNATURE)
    files.unlink(signature, missing_ok=True)
    if work.request.sign:
        sign(path, Path(work.request.sign).expanduser())


def write_package_statement(wheel: Path, package: Path, order: Mapping[str, Any], key: str | None) -> str:
    """Write the statement of a package from a wheel, if that wheel has one; sign it with a key.

    Returns:
        why there is none, "" where it was written.

    Raises:
        PackageRefused: the wheel's is not a statement, it cannot be written, or the key signs nothing.
    """
    path, origin = (each.with_name(each.name + SUFFIX) for each in (package, wheel))
    signature = path.with_name(path.name + SIGNATURE)
    digest = hash_file(wheel)
    for old in (path, signature):  # of an earlier package of this name
        files.unlink(old, missing_ok=True)
    if not origin.is_file():
        return f"No statement of provenance was written: {wheel.name} has none beside it."
    built = read_statement(origin)
    try:
        if digest not in {each["digest"]["sha256"] for each in built["subject"]}:
            return f"No statement of provenance was written: {origin.name} is of another file."
        text = package_statement(built, package.name, hash_file(package), (wheel.name, digest), order)
    except (KeyError, TypeError, AttributeError, ValueError):
        return f"No statement of provenance was written: {origin.name} is not as this tool writes it."
    files.write_atomic(path, text.encode(), error=PackageRefused)
    if key:
        sign(path, Path(key).expanduser())
    return ""


def sign(path: Path, key: Path) -> None:
    """Sign a file with an SSH key, by ssh-agent if it has the key, into FILE.sig.

    Raises:
        PackageRefused: ssh-keygen is missing or could not.
    """
    argv = ("ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(path))
    captured = process.capture(argv, timeout=120.0)
    if captured.rc != 0 or not path.with_name(path.name + SIGNATURE).is_file():
        raise PackageRefused(
            f"The wheel is built, and {path.name} beside it is not signed: ssh-keygen could not use {key}.",
            looked=tuple(captured.error_text.splitlines()[-3:]),
            next_step="A key with a passphrase: ssh-add it first, and name its .pub file.\nThen by hand: "
            + shell_line(argv, windows=os.name == "nt"),
        )


def require_key(text: str, product: str, instead: str) -> None:
    """Check that there will be something to sign, and that the key exists, before the build.

    Args:
        text: what --sign says.
        product: what will be made; only the statement of a wheel is signed.
        instead: what to say so that a wheel is made.

    Raises:
        UsageError: one of them is not.
    """
    if product != "wheel":
        raise UsageError(f"--sign {text}: only a wheel's provenance can be signed.", next_step=instead)
    if not Path(text).expanduser().is_file():
        raise UsageError(
            f"--sign {text}: there is no such file.",
            next_step="Name an SSH key, such as ~/.ssh/id_ed25519, or make one: ssh-keygen -t ed25519",
        )

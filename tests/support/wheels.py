"""Small wheels of a torch that is none, with what packages look at."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

PLATFORM = "linux_x86_64"


def make_wheel(
    folder: Path,
    files: Mapping[str, bytes] | None = None,
    *,
    version: str = "2.6.0+cpu",
    cuda: str | None = None,
    platform: str = PLATFORM,
    requires: tuple[str, ...] = (),
) -> Path:
    """Write a wheel of torch with torch/version.py and these files, and return its path."""
    tag = f"cp311-cp311-{platform}"
    path = folder / f"torch-{version}-{tag}.whl"
    own = f"__version__ = {version!r}\ndebug = False\ncuda = {cuda!r}\ngit_version = 'abc1234'\n"
    head = ["Metadata-Version: 2.1", "Name: torch", f"Version: {version}"]
    head += [f"Requires-Dist: {each}" for each in requires]
    info = f"torch-{version}.dist-info"
    held = {
        "torch/version.py": own.encode(),
        **(files or {}),
        f"{info}/METADATA": "\n".join([*head, "", "Version: of nothing\n"]).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    }
    record = [f"{name},{_hash(data)},{len(data)}" for name, data in held.items()]
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in held.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]))
    return path


def _hash(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def wrong_members(wheel: Path) -> list[str]:
    """Return what of a wheel is not as its RECORD and its local headers say."""
    wrong = []
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        lines = archive.read(record).decode().splitlines()
        listed = {line.rsplit(",", 2)[0]: line.rsplit(",", 2)[1:] for line in lines}
        for info in archive.infolist():
            if info.is_dir() or info.filename == record:
                continue
            data = archive.read(info)
            if listed.get(info.filename) != [_hash(data), str(len(data))]:
                wrong.append(f"{info.filename}: RECORD")
            if not _local_header_fits(wheel, info):
                wrong.append(f"{info.filename}: local header")
    return wrong


def _local_header_fits(wheel: Path, info: zipfile.ZipInfo) -> bool:
    """Whether the header before a file says its sizes, in ZIP64's extra field where they stand there.

    In the broken ones both sizes are 0xFFFFFFFF and that field is missing (pypa/wheel#692).
    """
    with wheel.open("rb") as file:
        file.seek(info.header_offset)
        head = file.read(30)
        sizes = (int.from_bytes(head[18:22], "little"), int.from_bytes(head[22:26], "little"))
        file.seek(int.from_bytes(head[26:28], "little"), 1)
        extra = file.read(int.from_bytes(head[28:30], "little"))
    if 0xFFFFFFFF not in sizes:
        return sizes == (info.compress_size, info.file_size)
    wide = (int.from_bytes(extra[12:20], "little"), int.from_bytes(extra[4:12], "little"))
    return extra[:2] == b"\x01\x00" and wide == (info.compress_size, info.file_size)

"""Facts of a wheel of torch, from its file: its content, its origin and its target."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["file", "folder", "link"]


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One member as its archive lists it: `size` in bytes, `crc` the CRC-32 of its content.

    `packed` is what it takes there; in a wheel `kind` is link for all that is not a plain file.
    """

    name: str
    size: int = 0
    packed: int = 0
    crc: int = 0
    executable: bool = False
    kind: Kind = "file"


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """One wheel. `problem` says why it cannot be used ("" if it is readable); then few other fields are set.

    `version` is that of its metadata, `torch_version` what its torch.__version__ will be (2.0.0, 2.0.0+cu117
    of the wheel on PyPI), `commit` its torch.version.git_version, `cuda` its torch.version.cuda,
    "" for none.
    """

    path: str
    problem: str = ""
    version: str = ""
    torch_version: str = ""
    commit: str = ""
    cuda: str = ""
    dist_info: str = ""
    members: tuple[Member, ...] = ()

    @property
    def file(self) -> str:
        return self.path.replace("\\", "/").rpartition("/")[2]

"""The words and flags of `cluster`."""

from __future__ import annotations

import dataclasses

from torchbuild_tasks.options import BuildRequest, own_flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterRequest(BuildRequest):
    """The request of `cluster`."""

    actions = {
        "scheduler": "run the scheduler; --allow makes a token for a server",
        "server": "run a server, as root",
        "join": "let builds of this machine use a scheduler",
        "status": "show the servers and cores of the schedulers",
    }
    objects = {"server": ("scheduler",), "join": ("scheduler",)}

    scheduler: str | None = own_flag(
        "address of the scheduler (status: default all that you joined)",
        metavar="URL",
        positional=True,
        sample=("scheduler", "http://HOST:10600"),
    )
    listen: str | None = own_flag(
        "address to listen on (default: a scheduler everywhere, a server at its token's address)",
        metavar="ADDRESS[:PORT]",
    )
    allow: tuple[str, ...] = own_flag(
        "make a token for a server at this address; may be repeated", metavar="ADDRESS[:PORT]", default=()
    )
    token_file: str | None = own_flag("token file, copied from the scheduler's machine", metavar="FILE")
    space: str | None = own_flag(
        "folder for a server's toolchains and compiles (default: beside the helpers)", metavar="FOLDER"
    )

"""A scheduler as a fact that a plan is made from."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.effects.cluster.ask import ask
from torchbuild_tasks.effects.cluster.keep import value
from torchbuild_tasks.model import Cluster


def look_at_cluster(url: str, conf: Path) -> Cluster:
    """Ask a scheduler, with the token of the file that `cluster join` wrote.

    Args:
        url: as `core.cluster.address.scheduler_url` gives it.
        conf: that file, which need not exist.
    """
    token = value(conf, "dist", "auth", "token")
    answer = ask(url, token)
    return Cluster(
        url=url,
        conf=str(conf) if token else "",
        servers=answer.servers,
        cpus=answer.cpus,
        busy=answer.busy,
        problem=answer.problem,
    )

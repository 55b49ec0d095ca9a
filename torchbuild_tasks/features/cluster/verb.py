"""Schedulers of distributed compiles, as text for a person."""

from __future__ import annotations

from torchbuild_tasks.model import Cluster
from torchbuild_tasks.text.show import columns


def clusters_text(clusters: tuple[Cluster, ...]) -> str:
    """One line a scheduler: what it has, or why it is no use now."""
    if not clusters:
        return "No scheduler was joined: torchbuild cluster join URL --token-file FILE\n"
    head = ("scheduler", "servers", "cores", "jobs", "")
    return columns([head, *map(_row, clusters)], "")


def _row(cluster: Cluster) -> tuple[str, ...]:
    if cluster.problem:
        return cluster.url, "-", "-", "-", cluster.problem
    joined = "" if cluster.conf else "not joined from here"
    return cluster.url, str(cluster.servers), str(cluster.cpus), str(cluster.busy), joined

"""`cluster`: run a scheduler or a server of distributed compiles, join one, or show their state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchbuild_tasks.errors import ClusterError
from torchbuild_tasks.features.cluster.flags import ClusterRequest
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

from torchbuild_tasks.model import Cluster
from torchbuild_tasks.text.show import columns


def clusters_text(clusters: tuple[Cluster, ...]) -> str:
    """Return one line for each scheduler: its state, or why it cannot be used."""
    if not clusters:
        return "No scheduler was joined: torchbuild cluster join URL --token-file FILE\n"
    head = ("scheduler", "servers", "cores", "jobs", "")
    return columns([head, *map(_row, clusters)], "")


def _row(cluster: Cluster) -> tuple[str, ...]:
    if cluster.problem:
        return cluster.url, "-", "-", "-", cluster.problem
    joined = "" if cluster.conf else "not joined from here"
    return cluster.url, str(cluster.servers), str(cluster.cpus), str(cluster.busy), joined


def run(request: ClusterRequest, report: Reporter) -> Outcome:
    """Run a scheduler or a server of distributed compiles, join one, or show their state."""
    clusters = run_action(request, report)
    text = clusters_text(clusters) if request.action in ("join", "status") else ""
    unusable = any(cluster.problem for cluster in clusters)
    value = {"action": request.action, "clusters": clusters}
    return Outcome(value, text, ClusterError.exit_code if unusable else 0)


def run_action(request: ClusterRequest, report: Reporter) -> tuple[Cluster, ...]:
    """Run the requested action; a scheduler or a server until Ctrl-C."""
    from torchbuild_tasks.context import cluster_files, fetching_of, look
    from torchbuild_tasks.features.cluster import act
    from torchbuild_tasks.system.signals import interruptible

    act.read_flags(request)
    question = look(request)
    folder = cluster_files(question.facts)
    if request.action == "status":
        return act.states(folder, request)
    act.refuse_windows(question.facts)
    if request.action == "join":
        return (act.join(folder, request, report.note),)
    with interruptible():
        run_it = act.run_scheduler if request.action == "scheduler" else act.run_server
        run_it(folder, lambda: act.have_dist(question, fetching_of(question), report), request, report.note)
    return ()

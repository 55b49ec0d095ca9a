"""`bisect`: find the commit that broke something, one build and one command at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchbuild_tasks.errors import BuildFailed, UsageError, VerifyFailed
from torchbuild_tasks.features.bisect.flags import BisectRequest
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.text.words import counted
from torchbuild_tasks.values import replace
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.features.bisect.act import BisectResult, Built


def bisect_text(result: BisectResult) -> str:
    """Return the first bad commit, or the candidates if some were skipped; each step was shown before."""
    if len(result.first_bad) == 1:
        head = f"{result.first_bad[0]} is the first bad commit\n"
    else:
        head = f"Commits were skipped, so the first bad one is any of these {len(result.first_bad)}:\n"
    tried = f"{counted(len(result.steps), 'commit was', 'commits were')} tried"
    return f"{head}\n" + "\n\n".join(result.messages) + f"\n\n{tried}; each with its log: {result.log}\n"


def run(request: BisectRequest, report: Reporter) -> Outcome:
    """Find the commit that broke something: bisect --good REF --bad REF -- COMMAND."""
    result = find_first_bad(request, report)
    hidden = result is not None and len(result.first_bad) != 1
    text = bisect_text(result) if result else ""
    return Outcome({"bisect": result}, text, BuildFailed.exit_code if hidden else 0)


def find_first_bad(request: BisectRequest, report: Reporter) -> BisectResult | None:
    """Build and test one commit after the other in a worktree; return None after --reset."""
    from torchbuild_tasks.context import fetching_of, look, needed_submodules, require_checkout
    from torchbuild_tasks.features.bisect import act
    from torchbuild_tasks.system import lock
    from torchbuild_tasks.system.git.fetch import access_for
    from torchbuild_tasks.system.git.transfer import git_settings
    from torchbuild_tasks.system.signals import interruptible

    question = look(request)
    fetching = fetching_of(question)
    config = git_settings(fetching.git_mirrors)
    offline = fetching.net.offline
    session = act.open_session(require_checkout(question), config)
    way = access_for(session.tree.folder, report, config=config, store=fetching.store, offline=offline)
    with interruptible(), lock.hold(session.folder, "bisect"):
        if request.reset:
            act.reset(session, report)
            return None
        memory = act.memory_of(session, request)
        if memory.first_bad:
            report.note("this was found before; to search once more, first: torchbuild bisect --reset")
        elif memory.builds and not memory.steps and (missing := act.missing_program(memory)):
            report.note(f"{missing}. If a build does not bring it, the bisect stops after the first one.")
        flags = act.flags_of(memory, request, session, question.settings.path)
        way = replace(way, needed=lambda root: needed_submodules(look(flags, everything=False)))
        if not memory.builds:
            files = act.Built(source=str(session.tree.folder), imports=False)
            return act.run(session, memory, lambda _: files, report, way)
        return act.run(session, memory, lambda inner: _try_build(flags, request.yes, inner), report, way)


def _try_build(flags: BuildRequest, agreed: bool, report: Reporter) -> Built:
    """Build the checked-out commit; the bisect's command decides, not the verification.

    Raises:
        BuildFailed: it cannot be built, or has no such target.
    """
    from torchbuild_tasks import flow
    from torchbuild_tasks.context import accept, decide, look
    from torchbuild_tasks.features.bisect.act import Built, require_own_python

    question = look(flags)
    plan = accept(decide(question))
    require_own_python(plan, agreed)
    try:
        flow.build_plan(question, plan, report)
    except VerifyFailed as error:
        report.note(f"{error.what} The command decides.")
    except UsageError as error:
        if flags.target is None:
            raise
        raise BuildFailed(error.what) from None  # another commit may have the target
    return Built(
        source=plan.source,
        python=plan.environment.python,
        env_file=plan.env_files[0].path,
        build_dir=plan.build_dir,
        imports=flags.target is None,
    )

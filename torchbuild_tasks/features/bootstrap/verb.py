"""`bootstrap`: list missing packages and the commands that install them; --yes runs them."""

from __future__ import annotations

from typing import Final

from torchbuild_tasks.build.work import Reporter, run_shown
from torchbuild_tasks.errors import RequirementsError
from torchbuild_tasks.features.bootstrap.choose import (
    BECOME,
    Bootstrap,
    Missing,
    plan_bootstrap,
    require_commands,
    typed,
)
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.values import replace
from torchbuild_tasks.verbs import Outcome

_OF_WINDOWS: Final = ("winget", "choco")


def bootstrap_text(plan: Bootstrap) -> str:
    """Return the missing packages, then the commands, run or not."""
    if not plan.missing:
        return "Nothing is missing.\n"
    lines = ["Missing", *map(_line, plan.missing)]
    if plan.ran:
        lines += ["Still missing", *map(_line, plan.left)] if plan.left else ["All of it was installed."]
        return "\n".join([*lines, *_new_prompt(plan), *_elsewhere(plan)]) + "\n"
    if commands := (*plan.commands, *plan.faster):
        how = "which only root may call (su - makes you root):" if plan.rootless else "--yes runs this:"
        lines += ["", f"With {plan.manager}{',' if plan.rootless else ';'} {how}"]
        lines += [f"  $ {typed(command)}" for command in commands]
        lines += _new_prompt(plan)
    lines += _elsewhere(plan)
    nameless = [each.package for each in plan.missing if not each.name]
    if nameless:
        who = plan.manager or "no package manager that is known here"
        lines.append(f"By hand, for {who} has no known name for it: {', '.join(nameless)}")
    return "\n".join(lines) + "\n"


def _new_prompt(plan: Bootstrap) -> list[str]:
    """Return a line about PATH, which Windows gives to new processes alone."""
    if plan.manager not in _OF_WINDOWS:
        return []
    return [f"What {plan.manager} installs is found in a new prompt, not in this one."]


def _elsewhere(plan: Bootstrap) -> list[str]:
    if not plan.elsewhere:
        return []
    head = "From repositories that are off by default, which --yes does not turn on; a build works without:"
    return ["", head, *(f"  $ {line}" for line in plan.elsewhere)]


def _line(each: Missing) -> str:
    return f"  {each.kind}  {each.package}: {each.because}"


def run(request: BuildRequest, report: Reporter) -> Outcome:
    """List missing packages and the commands that install them; --yes runs these and checks again."""
    bootstrap = install_missing(request, report)
    lacks = any(each.kind == "needed" for each in bootstrap.left)
    return Outcome(bootstrap, bootstrap_text(bootstrap), RequirementsError.exit_code if lacks else 0)


def install_missing(request: BuildRequest, report: Reporter) -> Bootstrap:
    """Plan the commands; with --yes run them, and report what is still missing."""

    bootstrap = _plan(request)
    if not request.yes or not bootstrap.missing or request.facts:
        return bootstrap
    require_commands(bootstrap)
    with interruptible():
        install(bootstrap, report)
    return replace(bootstrap, ran=True, left=_plan(request).missing)


def _plan(request: BuildRequest) -> Bootstrap:
    from torchbuild_tasks.context import look
    from torchbuild_tasks.facts.probe import Probe

    probe = Probe()
    can = (words for words in BECOME if probe.which(words[0]))
    become = () if probe.administrator() is True else next(can, None)
    return plan_bootstrap(look(request), become=become)


def install(plan: Bootstrap, report: Reporter) -> None:
    """Run the commands, one after the other; what is only faster may fail, and is then still missing.

    Raises:
        RequirementsError: a needed one ended with an error; the message has the last lines that it printed.
    """
    for command in plan.commands:
        rc, lines = run_shown(command, report)
        if rc != 0:
            from torchbuild_tasks.text.show import shell_text

            raise RequirementsError(
                f"{shell_text(command.argv)} ended with exit code {rc}.",
                looked=lines,
                next_step=f"Run it in a shell of your own, where it may ask for a password: {typed(command)}",
            )
    for command in plan.faster:
        run_shown(command, report)

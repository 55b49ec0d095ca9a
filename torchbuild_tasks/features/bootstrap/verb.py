"""What a build misses and the commands for it, as text for a person."""

from __future__ import annotations

from torchbuild_tasks.features.bootstrap.choose import Bootstrap, Missing
from torchbuild_tasks.text.show import typed


def bootstrap_text(plan: Bootstrap) -> str:
    """What is missing, then what was or could be run."""
    if not plan.missing:
        return "Nothing is missing.\n"
    lines = ["Missing", *map(_line, plan.missing)]
    if plan.ran:
        lines += ["Still missing", *map(_line, plan.left)] if plan.left else ["All of it was installed."]
        return "\n".join(lines) + "\n"
    if plan.commands:
        lines += ["", f"With {plan.manager}; --yes runs this:"]
        lines += [f"  $ {typed(command.argv).replace('sudo -n ', 'sudo ')}" for command in plan.commands]
    nameless = [each.package for each in plan.missing if not each.name]
    if nameless:
        who = plan.manager or "no package manager that is known here"
        lines.append(f"By hand, for {who} has no known name for it: {', '.join(nameless)}")
    return "\n".join(lines) + "\n"


def _line(each: Missing) -> str:
    return f"  {each.kind}  {each.package}: {each.because}"

"""The stages after a compile: install the wheel, and verify the torch that was built."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from torchbuild_tasks.build.installed import find_missing, read_requirements
from torchbuild_tasks.build.prepare import install
from torchbuild_tasks.build.work import Work, built_wheel, where_to_read
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.model import Command
from torchbuild_tasks.values import replace

_ALL_CHECKS: Final = "`verify` runs all checks."


def install_wheel(work: Work) -> Work:
    """Install the new wheel of a build in wheel mode where it is verified, missing dependencies after it."""
    wheel = require_wheel(work)
    environment = work.plan.environment
    pip = (environment.python, "-m", "pip", "install", "--disable-pip-version-check")
    because = "the wheel is verified as installed"
    alone = (*pip, "--force-reinstall", "--no-deps", str(wheel))
    install(work, Command(argv=alone, cwd=work.plan.source, because=because))
    if find_missing(environment.python, environment.version or "", read_requirements(wheel)):
        install(work, Command(argv=(*pip, str(wheel)), cwd=work.plan.source, because=because))
    return work


def require_wheel(work: Work) -> Path:
    """Return the wheel that the build made, and report its path.

    Raises:
        BuildFailed: there is none.
    """
    wheel = built_wheel(work.root)
    if wheel is None:
        raise BuildFailed(
            "The build succeeded but left no wheel in dist/.", next_step=where_to_read(work, None)
        )
    work.report.note(f"wheel: {wheel}")
    return wheel


def verify_torch(work: Work) -> Work:
    """Compare the built torch with the plan's promises, unless nothing was built since it last passed.

    After an edit that did not need the front end, only the import and the identity of torch are checked:
    all checks take many times longer than the edit's build. A note names the checks left out.
    """
    if work.request.target:
        return work
    previous = work.facts.tree.previous
    if work.up_to_date and previous is not None and previous.verified:
        since = f"after the build of {previous.finished}; nothing was built since."
        text = f"Verified {since}" if not previous.left_out else f"Imported {since} {_ALL_CHECKS}"
        work.report.note(text, alone=True)
        return work
    from torchbuild_tasks.verify.session import ALWAYS, verify
    from torchbuild_tasks.verify.torch_probe import COMPANION_CHECKS

    expectations = tuple(each for each in work.plan.expectations if each.check not in COMPANION_CHECKS)
    checked = expectations
    if work.front_end_skipped:
        checked = tuple(each for each in expectations if each.check in ALWAYS)
    report = verify(python=work.plan.environment.python, expectations=checked, environ=work.env)
    left_out = tuple(dict.fromkeys(each.check for each in expectations if each not in checked))
    if left_out:
        names = ", ".join(left_out)
        work.report.note(f"torch was imported; the checks that compute were left out: {names}. {_ALL_CHECKS}")
    work.ledger.open()
    report = replace(report, left_out=left_out)
    work.ledger.note(verify=report)
    return replace(work, verified=report)

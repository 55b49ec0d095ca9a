"""Write what programs have answered during a build, for the next one."""

from __future__ import annotations

import contextlib

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.answers import Answers
from torchbuild_tasks.system import files
from torchbuild_tasks.system.trust import make_state


def keep_answers(answers: Answers) -> None:
    """Write what programs have answered; where it cannot be written, they are asked again."""
    if (kept := answers.changed) is None:
        return
    with contextlib.suppress(OSError, UsageError):
        make_state(answers.path.parent)
        files.write_json(answers.path, kept, error=UsageError, private=True)

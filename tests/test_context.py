"""What every verb starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.machines import ask, linux_facts, settings, with_tree
from torchbuild_tasks.context import require_checkout
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.plan.settings import NamedBuild
from torchbuild_tasks.values import replace


def test_a_verb_that_needs_a_checkout_gets_its_folder_or_says_why_not() -> None:
    question = ask()
    assert require_checkout(question) == Path(question.facts.tree.root)
    to_come = replace(settings(), build=NamedBuild(name="one", line=1), seen_from="/src/pytorch")
    with pytest.raises(UsageError, match="The build one is not there yet"):
        require_checkout(ask(said=to_come))
    with pytest.raises(UsageError, match="/src/pytorch: no such folder"):
        require_checkout(ask(with_tree(linux_facts(), root="/src/pytorch", problem="no such folder")))

"""What a clean does besides removing files: the editable install that points at the checkout."""

from __future__ import annotations

from torchbuild_tasks.model import Command, Facts


def uninstall_command(facts: Facts) -> Command | None:
    """The pip call that takes the editable install of this checkout away, if one is there."""
    for python in facts.pythons:
        if python.torch_from and python.torch_from.rstrip("/") == facts.tree.root.rstrip("/"):
            argv = (python.executable, "-m", "pip", "uninstall", "--yes", "torch")
            because = f"the editable install of torch in {python.prefix}"
            return Command(argv=argv, cwd=facts.tree.root, because=because)
    return None

"""Listing our tasks against the same runner listing one trivial task: CPU, user + system."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Command, pairs, show

TRIVIAL_TASKS = "from invoke import task\n\n@task\ndef hello(context):\n    'Say hello.'\n"
OUR_TASKS = "from torchbuild_tasks import namespace\n"
TRIVIAL_NOXFILE = "import nox\n\n@nox.session(python=False)\ndef hello(session):\n    'Say hello.'\n"
OUR_NOXFILE = "import torchbuild_tasks\n\ntorchbuild_tasks.register()\n"


def main(runs: int = 15) -> None:
    """Measure both runners."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _compare(
            folder, "invoke --list", "tasks.py", OUR_TASKS, TRIVIAL_TASKS, ("-m", "invoke", "--list"), runs
        )
        _compare(folder, "nox -l", "noxfile.py", OUR_NOXFILE, TRIVIAL_NOXFILE, ("-m", "nox", "-l"), runs)


def _compare(
    folder: Path, title: str, file: str, ours: str, trivial: str, argv: tuple[str, ...], runs: int
) -> None:
    made = {}
    for name, text in (("ours", ours), ("trivial", trivial)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / file).write_text(text, "utf-8")
        made[name] = Command(argv=(sys.executable, *argv), cwd=folder / name)
    costs = pairs(made["ours"], made["trivial"], runs)
    show(
        f"start-up, {title}, CPU", made["ours"], made["trivial"], [a.cpu / b.cpu for a, b in costs], "<= 1.15"
    )

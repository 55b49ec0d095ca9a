"""`nox -s diagnosis_score`: of how many labelled logs the first error and its cause are found.

Folders have logs and a labels.toml as `tests/logs` has; without one it is that. Several count together.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.diagnosis import FOLDERS, Label, book, labels, read_file
from torchbuild_tasks.model import Reading


def main(*folders: Path) -> None:
    """Print the figures, and the logs that were misread."""
    read = [
        (label, read_file(_path(folder, label)))
        for folder in folders or FOLDERS[:1]
        for label in labels(folder)
    ]
    failed = [each for each in read if each[0].line]
    known = [each for each in failed if each[0].cause]
    clean = [each for each in read if not each[0].line]
    missed = [label for label, got in failed if got.line_number not in (label.line, *label.also)]
    _say("right first error line", failed, missed)
    _say("right cause", known, [label for label, got in known if _cause(got) != label.cause])
    unknown = [each for each in failed if not each[0].cause]
    rows = {row.id for row in book().rows}
    _say("no cause invented", unknown, [label for label, got in unknown if _cause(got) in rows - {got.kind}])
    kinds = [each for each in read if each[0].kind]
    _say("right kind", kinds, [label for label, got in kinds if got.kind != label.kind])
    parts = [each for each in read if each[0].component]
    _say("right component", parts, [label for label, got in parts if got.component != label.component])
    _say("clean logs without an alarm", clean, [label for label, got in clean if got.status != "clean"])


def _path(folder: Path, label: Label) -> Path:
    own = folder / f"{label.name}.log"
    return own if own.exists() else label.path


def _cause(reading: Reading) -> str:
    return reading.diagnoses[0].id if reading.diagnoses else ""


def _say(what: str, of: Sequence[object], wrong: Sequence[Label]) -> None:
    right = len(of) - len(wrong)
    share = f"{100 * right / len(of):.0f} %" if of else "-"
    print(f"{what}: {right} of {len(of)} ({share})" + "".join(f"\n  not {label.name}" for label in wrong))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

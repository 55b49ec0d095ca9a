"""What a plan downloads: rows as artifacts, and where the store has them once they are unpacked."""

from __future__ import annotations

from torchbuild_tasks.catalog import HelperRow, PartRow
from torchbuild_tasks.model import Artifact
from torchbuild_tasks.plan.question import Question


def artifact_of(question: Question, row: HelperRow | PartRow, name: str, because: str) -> Artifact:
    """Return a row as something to download; its hash is the row's, else the one in torchbuild.lock.

    Args:
        name: what it is called for good.
    """
    store = question.facts.store
    return Artifact(
        id=name,
        name=row.name,
        version=row.version,
        urls=row.urls,
        project=row.project,
        tag=row.tag,
        sha256=row.sha256 or (store.pins.get(name) if store else None) or None,
        size=row.size or None,
        unpack=row.unpack,
        holds=row.holds,
        because=because,
    )


def in_store(question: Question, *parts: str) -> str:
    """Return a path inside the store."""
    store = question.facts.store
    return question.separator.join(((store.folder if store else "").rstrip("/\\"), *parts))


def unpacked_folder(question: Question, name: str) -> str:
    """Return the folder of an artifact in the store, which need not be there yet."""
    return in_store(question, "unpacked", name)


def is_unpacked(question: Question, name: str) -> bool:
    """Say whether the store has it now."""
    store = question.facts.store
    return bool(store and name in store.unpacked)

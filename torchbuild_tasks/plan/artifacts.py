"""List what a plan downloads: rows as artifacts, and where the store has them once they are unpacked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from torchbuild_tasks.catalog.cuda import PartRow
from torchbuild_tasks.catalog.match import applies
from torchbuild_tasks.catalog.rows import HelperRow
from torchbuild_tasks.model import Artifact
from torchbuild_tasks.plan.question import Question


def helper_rows(question: Question) -> tuple[HelperRow, ...]:
    """Return the rows of what is fetched for this machine; ours for Linux are built for glibc."""
    host = question.facts.host
    ours = () if (host.libc or "").startswith("musl") else question.catalog.helper
    rows = (*question.settings.helpers, *ours)
    return tuple(row for row in rows if row.os == host.os and row.arch in ("", host.arch))


def starts_others(question: Question) -> bool:
    """Say whether this system starts programs that were made for others, as those in wheels are."""
    named = question.facts.host.distribution or ""
    rows = (row for row in question.catalog.platform if row.only_own)
    return not any(named.startswith(row.distribution) for row in rows)


def is_called(row: HelperRow, name: str) -> bool:
    """Say whether --with-helper selects this row: `mkl` selects all its parts, mkl-static and mkl-include."""
    return row.name == name or row.name.startswith(f"{name}-")


def offers_helper(question: Question, name: str) -> bool:
    """Say whether --with-helper brings something of this name here, so that it may be advised."""
    rows = (row for row in helper_rows(question) if is_called(row, name) and not row.refused)
    able = starts_others(question)
    return any(applies(row.torch, question.version) and (able or not row.check) for row in rows)


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
        place=_place(question, row, name) if isinstance(row, HelperRow) else "",
    )


def _place(question: Question, row: HelperRow, name: str) -> str:
    """Return what the folder of a helper is called; "" for its id.

    The store is shared by all checkouts. An id says what our own rows fetch: their address, or their hash.
    Two checkouts may call different things the same, so a row of theirs stands for its hash, or else for
    where it comes from, and so does what a mirror gives and no hash holds.
    """
    own = row in question.settings.helpers
    mirror = question.value("mirror", "")
    text = row.sha256 if own else ""
    if not row.sha256 and (own or mirror):
        text = "\n".join((mirror, row.project, *row.urls))
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}" if text else ""


def download_size(artifacts: Iterable[Artifact]) -> str:
    """Return how much these are to download, as far as their sizes are known; "" where none is."""
    sizes = [artifact.size for artifact in artifacts]
    known = sum(size for size in sizes if size)
    return f"{known / 1e6:.0f} MB{' and more' if None in sizes else ''}" if known else ""


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

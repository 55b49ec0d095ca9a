"""What a check of the doctor is given, of machines that do not exist."""

from __future__ import annotations

from typing import Any

from tests.support.machines import ask, linux_facts, plan_of
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.features.doctor.check import View
from torchbuild_tasks.features.doctor.choose import CHECKS
from torchbuild_tasks.model import Facts, Finding, Health, Room


def room(purpose: str, free: float = 100, mount: str = "/", **changes: Any) -> Room:
    """A folder on a file system with `free` GiB."""
    values: dict[str, Any] = {
        "purpose": purpose,
        "path": f"/{purpose}",
        "mount": mount,
        "free": int(free * GIB),
        "kind": "ext4",
        "noexec": False,
        "writable": True,
    }
    return Room(**{**values, **changes})


def health(**changes: Any) -> Health:
    """A sound machine's."""
    values: dict[str, Any] = {
        "rooms": tuple(map(room, ("source", "build", "store", "tmp"))),
        "open_files": 1024,
        "open_files_most": 4096,
        "locale": "C.UTF-8",
        "locale_known": True,
        "reached": (),
        "proxies": (),
    }
    return Health(**{**values, **changes})


def view(facts: Facts | None = None, seen: Health | None = None, **flags: Any) -> View:
    """The doctor's look at it."""
    facts = facts or linux_facts()
    return View(ask(facts, **flags), plan_of(facts, **flags), seen or health())


def check(id: str, facts: Facts | None = None, seen: Health | None = None, **flags: Any) -> Finding:
    """The only finding of one check."""
    (finding,) = checks(id, facts, seen, **flags)
    return finding


def checks(
    id: str, facts: Facts | None = None, seen: Health | None = None, **flags: Any
) -> tuple[Finding, ...]:
    """The findings of one check."""
    return CHECKS[id](view(facts, seen, **flags))

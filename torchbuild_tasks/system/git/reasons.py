"""Reads from git's last words why a transfer failed, whether another try may help, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

Kind = Literal["unreachable", "stalled", "missing", "denied", "full", "long", "owner", "yours", "other"]


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of a failure, and git's line that shows it."""

    kind: Kind
    line: str

    @property
    def again(self) -> bool:
        """Say whether another try may go better."""
        return self.kind in ("unreachable", "stalled", "other")


# The first that fits counts. git 2.39's words and curl's, read off real failures.
_PATTERNS: Final[tuple[tuple[Kind, str], ...]] = (
    ("full", r"No space left on device|Out of diskspace|[Dd]isk quota"),
    ("long", r"Filename too long|File name too long"),
    ("owner", r"dubious ownership"),
    (
        "missing",
        r"couldn't find remote ref|not our ref|unadvertised object|[Rr]epository .*not (?:found|exported)",
    ),
    ("missing", r"does not appear to be a git repository|returned error: 404"),
    ("denied", r"could not read Username|Authentication failed|Permission denied|returned error: 40[13]"),
    (
        "unreachable",
        r"Could not resolve|unable to look up|Connection refused|Failed to connect|Connection timed out",
    ),
    ("unreachable", r"unable to connect|No route to host|Network is unreachable|Could not connect|--offline"),
    ("stalled", r"nothing was heard for|Operation too slow"),
)


def find_reason(words: Sequence[str]) -> Reason:
    """Return what kind of failure the last lines of a git that failed describe."""
    for kind, pattern in _PATTERNS:
        for line in words:
            if re.search(pattern, line):
                return Reason(kind=kind, line=line)
    fatal = [line for line in words if line.startswith(("fatal:", "error:"))]
    line = (fatal or list(words) or ["git said nothing"])[0]
    return Reason(kind="other", line=line)


def advice(reasons: Sequence[Reason], url: str) -> str:
    """Return what to do next, for all failures of a run together."""
    kinds = {each.kind for each in reasons}
    host = re.match(r"[a-z+]+://[^/]+/", url)
    lines = []
    if kinds & {"unreachable", "stalled"}:
        lines.append(
            "If that host cannot be reached from here, name a mirror of it in torchbuild.toml:\n"
            f'[mirrors]\n"{host[0] if host else url}" = "https://MIRROR/"'
        )
    if "denied" in kinds:
        lines.append(
            "The server wants to know who asks: see whether the address is right, or log in with git."
        )
    if "full" in kinds:
        lines.append("Make room on the disk.")
    if "long" in kinds:
        lines.append("Use a shorter folder, such as C:\\pt.")
    if "owner" in kinds:
        lines.append("The checkout belongs to another user: git config --global --add safe.directory FOLDER")
    if "missing" in kinds:
        lines.append("If the submodule's address has changed: source reset --third-party")
    if "yours" in kinds:
        lines.append(
            "Commit or stash them in there (git stash push -u), or undo them with git restore .; "
            "source reset --third-party --yes throws away all such changes."
        )
    return "\n".join((*lines, "Run the same command again: what was fetched stays."))

"""`trust`: permit the files of a checkout to name programs and servers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrustRequest(BuildRequest):
    """The words of `trust`."""

    optional = {"": "path"}

    path: str | None = own_flag(
        "folder with a torchbuild.toml, or the file (default: the one that applies here)", metavar="PATH"
    )
    list: bool = own_flag("list what is trusted, and whether it has changed", default=False)
    revoke: bool = own_flag("no longer trust it", default=False)


def run(request: TrustRequest, report: Reporter) -> Outcome:
    """Trust the present files of a checkout; any change to them revokes it."""
    return Outcome(*answer(request))


def answer(request: TrustRequest) -> tuple[dict[str, object], str]:
    """Add, remove or list trust; return the result as value and as text."""
    from torchbuild_tasks.features.trust import act

    if request.list:
        trusted = act.listed()
        lines = (f"{one.place}{'' if one.holds else '  (changed since: not trusted)'}\n" for one in trusted)
        return {"trusted": trusted}, "".join(lines) or "Nothing is trusted.\n"
    path = request.path or _default(request)
    if request.revoke:
        place, known = act.revoke(path)
        return {"revoked": known}, f"{place} {'is not trusted any more' if known else 'was not trusted'}.\n"
    remembered = act.trust_place(path)
    what = "".join(f"  {each}\n" for each in (*remembered.files, *remembered.venvs))
    return {"trusted": remembered}, f"Trusted as they are now; a change takes it back:\n{what}"


def _default(request: BuildRequest) -> str:
    from pathlib import Path

    from torchbuild_tasks.facts.settings import find_settings

    settings = find_settings(request.config, request.source or ".")
    return str(Path(settings.path)) if settings else request.source or "."

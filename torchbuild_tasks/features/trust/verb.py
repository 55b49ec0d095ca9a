"""`trust`: permit the files of a checkout to name programs and servers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.errors import Untrusted, UsageError
from torchbuild_tasks.options import BuildRequest, flag
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.verbs import LOOKS, Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrustRequest(BuildRequest):
    """The words of `trust`."""

    optional = {"": "path"}

    path: str | None = flag(
        "folder with a torchbuild.toml, or the file (default: the one that applies here)",
        metavar="PATH",
        in_file=False,
    )
    list: bool = flag("list what is trusted, and whether it has changed", default=False, in_file=False)
    revoke: bool = flag("no longer trust it", default=False, in_file=False)


# Verbs that show untrusted files among their findings.
_SHOWING: Final = ("plan", "doctor", "support", "bootstrap")


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
        known = act.revoke(path)
        return {"revoked": known}, f"{path} {'is not trusted any more' if known else 'was not trusted'}.\n"
    remembered = act.say(path)
    what = "".join(f"  {each}\n" for each in (*remembered.files, *remembered.venvs))
    return {"trusted": remembered}, f"Trusted as they are now; a change takes it back:\n{what}"


def _default(request: BuildRequest) -> str:
    from pathlib import Path

    from torchbuild_tasks.facts.settings import find_settings

    settings = find_settings(request.config, request.source or ".")
    return str(Path(settings.path)) if settings else request.source or "."


def settle(verb: str, request: BuildRequest, report: Reporter) -> None:
    """Ask at a terminal, before a verb acts, whether found files are trusted; --yes is no answer to that.

    Raises:
        Untrusted: there is no terminal, or the answer was no.
    """
    if verb == "trust":
        return
    from torchbuild_tasks.context import read_trusted_settings, with_templates
    from torchbuild_tasks.plan.trust import withheld_text

    try:
        settings = with_templates(read_trusted_settings(request))
    except UsageError:  # reported by the code that needs the file
        return
    lines = tuple(f"{place}: {withheld_text(names)}" for place, names in settings.withheld.items())
    commands = "\n".join(f"torchbuild trust {as_word(place)}" for place in settings.withheld)
    if not lines:
        return
    if looks(verb, request):
        if verb not in _SHOWING:
            for line in lines:
                report.note(f"Ignored, because it is not trusted: {line}")
        return
    if not request.json and report.confirm(f"{' '.join(lines)}. Do you trust what these files say?"):
        from torchbuild_tasks.features.trust.act import trust_all

        trust_all(settings.withheld)
        return
    raise Untrusted(
        "Settings that came with this checkout name programs, servers or remote places. They are not trusted."
        " Nothing was done.",
        looked=lines,
        next_step=f"Read the files. To trust them as they are now:\n{commands}\n"
        "Or use your own settings, which need no trust: --config FILE",
    )


def looks(verb: str, request: BuildRequest) -> bool:
    """Say whether this run only reads."""
    return verb in LOOKS or f"{verb} {request.action}" in LOOKS or request.dry_run

"""A torch that calls itself an alpha: pip sorts it below the release, and would replace it."""

from __future__ import annotations

from torchbuild_tasks.catalog.match import admits, parse_version
from torchbuild_tasks.core.companion_rows import newest_release
from torchbuild_tasks.core.companions import wanted_companions
from torchbuild_tasks.model import Finding
from torchbuild_tasks.plan.question import Question

NAME = "torchvision"


def check_development(question: Question, called: str) -> tuple[Finding, ...]:
    """What the version of a development build means for pip and torchvision; nothing for a release.

    Args:
        question: what is decided from.
        called: what the built torch will say its version is, without what its commit adds.
    """
    version = parse_version(called)
    if version is None or not version.is_prerelease:
        return ()
    release = version.base_version
    text = f"this torch will call itself {version}, which pip sorts below {release}"
    return (Finding(id="development-version", status="ok", text=f"{text}: {_means(question, called)}"),)


def _means(question: Question, called: str) -> str:
    if any(wanted.row.name == NAME for wanted in wanted_companions(question)):
        return f"the {NAME} that is built beside it asks for exactly this torch, so pip leaves both alone"
    row = newest_release(question.catalog, NAME, question.version)
    if row is None or not row.wheel:
        return "pip would replace it where a package asks for the release"
    if admits(row.wheel, called):
        return f"the wheel of {NAME} {row.version} asks for torch{row.wheel}, which it is"
    return (
        f"the wheel of {NAME} {row.version} asks for torch{row.wheel}, so `pip install {NAME}` would put "
        f"another torch in its place; --with {NAME} builds it against this one"
    )

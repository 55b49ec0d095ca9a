"""The documentation says what the code does: generated pages are current, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchbuild_tasks import errors
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.core.diagnosis.judge import PAGE
from torchbuild_tasks.core.redaction import OWN_RULES, RULES
from torchbuild_tasks.fronts.failures_page import failures_page
from torchbuild_tasks.fronts.nox_sessions import SESSIONS
from torchbuild_tasks.fronts.reference import flags_page
from torchbuild_tasks.request import VERBS

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def test_the_flags_page_is_current() -> None:
    assert (ROOT / "docs/flags.md").read_text("utf-8") == flags_page(), "run: nox -s docs"


def test_the_failures_page_is_current_and_has_a_place_for_every_row() -> None:
    page = (ROOT / "docs/failures.md").read_text("utf-8")
    assert page == failures_page(), "run: nox -s docs"
    places = re.findall(r'<a id="([^"]+)"></a>', page)
    assert sorted(places) == sorted(row.id for row in load_catalog().failure)
    assert PAGE.endswith("docs/failures.md")


def test_every_rule_of_redaction_is_told_of() -> None:
    page = (ROOT / "docs/support.md").read_text("utf-8")
    told = re.findall(r"^\| `([a-z-]+)` \|", page.partition("## What is taken out")[2], re.MULTILINE)
    assert told == [rule.id for rule in RULES] + list(OWN_RULES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_exit_code_is_explained() -> None:
    page = (ROOT / "docs/errors.md").read_text("utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    classes = [
        c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.TorchbuildError)
    ]
    assert listed == {0, *(c.exit_code for c in classes)}
    own = [c.exit_code for c in classes if c is not errors.TorchbuildError]
    assert len(own) == len(set(own))


def test_the_readme_names_every_verb() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE) == list(VERBS)
    assert {verb for verb, _, _ in SESSIONS.values()} == set(VERBS)

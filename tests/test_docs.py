"""The documentation says what the code does: generated pages are current, links lead somewhere."""

from __future__ import annotations

import ast
import functools
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from bin import draw_rooms, write_pages
from tests.support.for_each import each_case
from tests.support.pages import COMMANDS, NEEDS, OTHERS, PAGES, ROOT, blocks
from torchbuild_tasks import errors
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.diagnosis.choose import PAGE
from torchbuild_tasks.features.doctor.choose import CHECKS
from torchbuild_tasks.fronts.parsing import parse
from torchbuild_tasks.text.redaction import OWN_RULES, rules
from torchbuild_tasks.verbs import SESSIONS, VERBS

pytestmark = pytest.mark.one_system


@pytest.mark.parametrize("name", ["flags", "verbs", "switches"])
def test_a_page_that_is_generated_is_current(name: str) -> None:
    page = getattr(write_pages, f"{name}_page")()
    assert (ROOT / f"docs/{name}.md").read_text("utf-8") == page, "run: nox -s docs"


def test_the_failures_page_is_current_and_has_a_place_for_every_row() -> None:
    page = (ROOT / "docs/failures.md").read_text("utf-8")
    assert page == write_pages.failures_page(), "run: nox -s docs"
    places = re.findall(r'<a id="([^"]+)"></a>', page)
    assert sorted(places) == sorted(row.id for row in load_catalog().failure)
    assert PAGE.endswith("docs/failures.md")


def test_the_picture_of_the_rooms_is_current_and_shows_each() -> None:
    picture = (ROOT / "docs/img/rooms.svg").read_text("utf-8")
    rooms = draw_rooms.read_rooms()
    assert picture == draw_rooms.draw(rooms), "run: nox -s docs"
    assert set(re.findall(r'class="name"[^>]*>([^<]+)<', picture)) == set(rooms.modules)
    assert sum(rooms.modules.values()) == picture_modules(picture)
    assert f'stroke="{draw_rooms.UPWARDS}"' not in picture, "an import goes up"


def picture_modules(picture: str) -> int:
    """The sum of the boxes, without the last line, which holds the total."""
    counts = [int(each) for each in re.findall(r">(\d+) modules\b", picture)]
    assert counts[-1] == sum(counts[:-1])
    return counts[-1]


def finding_ids() -> set[str]:
    """The ids in the code that decides: of every Finding that is made, and of the doctor's checks.

    What `debug-config` finds is its own: a build does not depend on it.
    """
    found = set()
    for path in (ROOT / "torchbuild_tasks").rglob("*.py"):
        if path.parent.name == "develop":
            continue
        text = path.read_text("utf-8")
        if "ID = " not in text and "Finding" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                if re.fullmatch(r"(?:[A-Z]+_)?ID", ast.unparse(target)):
                    found.add(ast.literal_eval(node.value))
            if isinstance(node, ast.Call) and ast.unparse(node.func).partition(".")[0] == "Finding":
                ids = [word.value for word in node.keywords if word.arg == "id"] + node.args[:1]
                found |= {each.value for each in ids if isinstance(each, ast.Constant)}
    return found


def test_every_finding_is_in_the_doctors_table() -> None:
    page = (ROOT / "docs/doctor.md").read_text("utf-8").partition("## The checks")[2]
    of_plan, own = page.split("The doctor's own:")
    ids = [re.findall(r"`([a-z-]+)`", row) for row in re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE)]
    listed = [id for row in ids for id in row]
    assert len(listed) == len(set(listed))
    assert set(listed) == finding_ids() | set(CHECKS)
    assert [id for id in re.findall(r"^\| `([a-z-]+)` \|", own, re.MULTILINE) if id in CHECKS] == list(CHECKS)


def test_every_check_and_every_helper_is_documented() -> None:
    rows = load_catalog()
    for page, names in (
        ("verify", [row.check for row in rows.check if not row.companion]),
        ("helpers", [row.name.split("-")[0] for row in rows.helper]),
        ("plan", [row.name for row in rows.preset]),
    ):
        words = set(re.findall(r"[\w-]+", (ROOT / f"docs/{page}.md").read_text("utf-8")))
        assert [name for name in names if name not in words] == [], page


def test_every_rule_of_redaction_is_documented() -> None:
    page = (ROOT / "docs/support.md").read_text("utf-8")
    told = re.findall(r"^\| `([a-z-]+)` \|", page.partition("## What is taken out")[2], re.MULTILINE)
    assert told == [rule.id for rule in rules()] + list(OWN_RULES)


@each_case("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if target.startswith("http"):
            continue
        there = page.parent / target if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


@functools.cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page: of its headings as GitHub makes them, and those that stand in it."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)
    return {*slugs, *re.findall(r'<a id="([^"]+)"', text)}


def test_the_site_has_every_page() -> None:
    folder = ROOT / "docs"
    index = (folder / "index.md").read_text("utf-8")
    listed = [line for block in re.findall(r"```\{toctree\}(.*?)```", index, re.S) for line in block.split()]
    found = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md")}
    assert set(listed) >= found - {"index"}


def test_the_design_has_ten_files_to_read_and_few_words_of_our_own() -> None:
    page = (ROOT / "docs/design.md").read_text("utf-8")
    words = page.partition("## Words of our own")[2].partition("\n## ")[0].split("| --- | --- |")[1]
    assert 0 < len(re.findall(r"^\| ", words, re.MULTILINE)) <= 25
    files = page.partition("## Read these ten files first")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\d+\. ", files, re.MULTILINE)) == 10


def test_files_that_the_docs_tell_to_edit_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## To add")[2]
    folder, missing = ROOT, []
    for named in re.findall(r"`([\w/.-]+\.(?:py|toml))`", page):
        found = [each for each in (ROOT, ROOT / "torchbuild_tasks", folder) if (each / named).exists()]
        if found:
            folder = (found[0] / named).parent
        else:
            missing.append(named)
    assert missing == []


def test_every_exit_code_is_explained() -> None:
    page = (ROOT / "docs/errors.md").read_text("utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    classes = [
        c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.TorchbuildError)
    ]
    assert listed == {0, *(c.exit_code for c in classes)}
    own = [c.exit_code for c in classes if c is not errors.TorchbuildError]
    assert len(own) == len(set(own))


def test_the_readme_is_short_and_every_verb_has_a_session() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 80
    assert {verb for verb, _, _ in SESSIONS.values()} == set(VERBS)


# ---------------- the commands in the pages

# `nox -s bench` is this repository's own.
OURS = re.compile(
    r"(?:\S*/)?(?:(?P<nox>nox) -s (?P<session>(?!bench)\S+)"
    r"|(?:torchbuild|invoke|inv|python -m torchbuild_tasks) (?P<verb>\S+))(?P<words>[^>]*)(?:> .*)?"
)
IN_TEXT = re.compile(r"`((?:torchbuild|nox -s|invoke) [a-z][^`]*)`")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|[…|{]")


def commands(page: Path) -> list[tuple[str, str]]:
    """The commands of this tool in the blocks and in the sentences of a page: the session, and its words."""
    lines = [line for each in blocks(page) if each.language in COMMANDS for line in each.text.splitlines()]
    lines += (line for line in IN_TEXT.findall(page.read_text("utf-8")) if not PLACEHOLDER.search(line))
    found = []
    for line in lines:
        command = re.split(r"\s+#", line)[0]
        if (our := OURS.fullmatch(command.rpartition(" && ")[2])) is None:
            continue
        name = (our["session"] or our["verb"]).replace("build-c", "build_c")
        words = our["words"].partition(" -- ")[2] if our["nox"] else our["words"]
        if name in SESSIONS:
            found.append((name, words))
    return found


@each_case("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_the_pages_is_understood(page: Path) -> None:
    for name, words in commands(page):
        session = SESSIONS[name]
        try:
            parse(session.verb, shlex.split(re.sub(r"[\[\]…]", "", words)), name, session.fixed)
        except SystemExit as printed:  # --help
            assert printed.code == 0


def test_commands_are_found_in_most_pages() -> None:
    assert sum(map(len, map(commands, PAGES))) > 250


@each_case("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_run_or_says_what_it_needs(page: Path) -> None:
    """What is run is run by tests/integration/test_pages.py; settings and Python are read here."""
    text = page.read_text("utf-8")
    found = list(blocks(page))
    assert len(re.findall(r"<!-- (?!http)", text)) - text.count("<!-- bench") == sum(
        len(each.marks) for each in found
    ), "a comment before a block is needs:, first:, ends: or slow"
    for block in found:
        assert block.language in (*COMMANDS, *OTHERS), block
        assert block.marks.get("needs", NEEDS[0]) in NEEDS, block
        if block.language == "toml" and "…" not in block.text:
            tomllib.loads(block.text)
        elif block.language == "python":
            ast.parse(block.text)

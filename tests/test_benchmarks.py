"""What the benchmarks make of their figures: the spread, whether a goal is met, and the table of a page."""

from __future__ import annotations

from benchmarks.markdown import put, table
from benchmarks.measure import Figure
from tests.support.for_each import each_case

FIGURE = Figure(title="start-up", values=[1.0, 1.3, 1.1], unit="x", goal="<= 1.15")


@each_case(
    ("goal", "met"),
    [
        ("<= 1.15", True),
        ("<= 1.1", True),
        ("< 1.1", False),
        (">= 3", False),
        ("> 1", True),
        ("<= 0.5 without a driver", False),
        ("none", None),
        ("none: see the seconds", None),
    ],
)
def test_a_goal_is_compared_with_the_median(goal: str, met: bool | None) -> None:
    assert Figure(title="", values=[1.0, 1.3, 1.1], unit="x", goal=goal).met is met


def test_the_spread_is_shown_and_a_single_value_alone() -> None:
    assert str(FIGURE) == "1.00 - 1.10 - 1.30 x"
    assert str(Figure(title="", values=[14.2], unit="%", goal="none")) == "14.20 %"
    assert str(Figure(title="", values=[0.0041, 0.0052], unit="x", goal="none")) == "0.004 - 0.005 - 0.005 x"


def test_the_table_of_a_topic_takes_its_place_on_the_page() -> None:
    lines = table([FIGURE, Figure(title="slow", values=[9.0], unit="s", goal="< 1")], "2 cores")
    assert "| start-up | 1.00 – 1.10 – 1.30 × | ≤ 1.15 |" in lines
    assert "| slow | 9.00 s | **< 1, not met** |" in lines
    assert lines.endswith("|\n\n2 cores")
    first, empty = "<!-- bench one -->\nold\n<!-- bench end -->", "<!-- bench two -->\n<!-- bench end -->"
    page = f"# Speed\n\n{first}\nwords\n\n{empty}\n"
    page = put(put(page, "one", lines), "two", "second")
    assert "old" not in page and page.count("start-up") == 1 and "words" in page
    assert put(put(page, "new", "a"), "new", r"\1 b").endswith(
        "<!-- bench new -->\n\\1 b\n<!-- bench end -->\n"
    )

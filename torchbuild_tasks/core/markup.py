"""Small pieces of HTML: tables, sections, figures. Every word that comes in is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence


def embed(value: object) -> str:
    """JSON that may stand in a script element: nothing in it can end the element or begin markup."""
    data = json.dumps(value, separators=(",", ":"))
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def took(seconds_cell: float) -> str:
    """Seconds as a person reads them: 0.12 s, 12.3 s, 4:05 min, 1:02:03 h."""
    if seconds_cell < 9.95:
        return f"{seconds_cell:.2f} s"
    if seconds_cell < 99.95:
        return f"{seconds_cell:.1f} s"
    minutes, rest = divmod(round(seconds_cell), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def clock(seconds_cell: float) -> str:
    """A moment of the build: 4:05, 1:02:03."""
    minutes, rest = divmod(round(seconds_cell), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def text(words: str) -> str:
    """Words as HTML, in an element or an attribute."""
    return html.escape(words, quote=True)


def section(name_cell: str, title: str, inside: str, beside: str = "") -> str:
    """A section with its head; `inside` and `beside` (to the right of the head) are HTML already."""
    head = f'<h2 id="h-{name_cell}">{text(title)}</h2>'
    head = f'<div class="bar">{head}{beside}</div>' if beside else head
    return f'<section aria-labelledby="h-{name_cell}">\n{head}\n{inside}\n</section>'


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, sorts: str = "", by: int = -1) -> str:
    """A table of cells.

    Args:
        heads: words; one that begins with # is of a column of numbers.
        rows: cells, made by the functions below.
        sorts: the table's id when its heads sort it; "" when they do not.
        by: the column that it is sorted by as it comes, downwards.
    """
    cells = "".join(_head(each, column == by) for column, each in enumerate(heads))
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    kind = f' id="{sorts}" class="sorts"' if sorts else ""
    head = f"<thead><tr>{cells}</tr></thead>"
    return f'<div class="scroll"><table{kind}>{head}\n<tbody>\n{body}\n</tbody></table></div>'


def paragraph(words: str) -> str:
    """A soft paragraph; nothing for no words."""
    return f'<p class="note">{text(words)}</p>' if words else ""


def cell(words: str, kind: str = "") -> str:
    """A cell of words."""
    return f'<td class="{kind}">{text(words)}</td>' if kind else f"<td>{text(words)}</td>"


def name_cell(path: str) -> str:
    """A cell with a path: its folder is soft, the file's name is not."""
    folder, slash, file = path.rpartition("/")
    return f'<td class="name"><span>{text(folder + slash)}</span><b>{text(file)}</b></td>'


def number(words: str, value: object, kind: str = "") -> str:
    """A cell with a number: how it reads, and the value that sorts it."""
    return f'<td class="{f"num {kind}".strip()}" data-value="{text(str(value))}">{text(words)}</td>'


def seconds_cell(value: float | None) -> str:
    """A cell with a time, the same unit in all rows; empty for None."""
    return number("", -1) if value is None else number(f"{value:,.2f} s", round(value, 3))


def share(part: float) -> str:
    """A cell with a bar: 1 is all of it."""
    return f'<td class="share"><span style="width:{100 * part:.1f}%"></span></td>'


def _head(head: str, is_sorted: bool) -> str:
    kind = ' class="num"' if head.startswith("#") else ""
    order = ' aria-sort="descending"' if is_sorted else ""
    return f'<th scope="col"{kind}{order}>{text(head.lstrip("#"))}</th>'

"""Draw who imports whom, from the code: the rooms as boxes by floor, an arrow for each pair, with its count.

python bin/draw_rooms.py                  writes docs/img/rooms.svg

The roles are those of tests/test_layers.py, read from there. A capability's folder is shown in three parts by
role: what decides, what looks and acts, and the verb.
"""

from __future__ import annotations

import ast
import fnmatch
import html
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "torchbuild_tasks"
PICTURE: Final = ROOT / "docs/img/rooms.svg"


class Box(NamedTuple):
    """A room of the picture: where it stands, in pixels, and what it is for in a few words."""

    x: int
    y: int
    width: int
    words: str

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


WIDTH: Final = 1000
DEPTH: Final = 840
HEIGHT: Final = 62  # of a box
FAR: Final = 400  # between the middles of two boxes of a floor with another between them
# From the top floor down. A room that the code has and these tables lack is an error.
BOXES: Final = {
    "fronts": Box(370, 20, 220, "nox, Invoke, the console"),
    "verbs": Box(620, 130, 240, "features/*/verb: flags, text"),
    "flow": Box(250, 240, 240, "a build on one page"),
    "build": Box(60, 390, 230, "the stages of a build"),
    "features: act": Box(375, 390, 250, "what each looks at and does"),
    "verify": Box(720, 390, 200, "the proof, in the new Python"),
    "plan": Box(40, 570, 190, "the one decision"),
    "features: choose": Box(290, 570, 230, "what each decides"),
    "system": Box(580, 570, 180, "one door an effect"),
    "facts": Box(820, 570, 150, "what is there"),
}
# Imported by nearly all: the ground floor, with a sum instead of arrows.
GROUND: Final = {
    "text": Box(30, 730, 150, "tables, redaction"),
    "ninja": Box(200, 730, 150, "its logs"),
    "catalog": Box(370, 730, 190, "rows of data/*.toml"),
    "model": Box(580, 730, 190, "facts, plan, record"),
    "values": Box(790, 730, 180, "JSON, errors, options"),
}
COLOURS: Final = {
    "front": "#8250df",
    "verb": "#8250df",
    "flow": "#bf3989",
    "act": "#bc4c00",
    "alone": "#bc4c00",
    "door": "#9a6700",
    "look": "#1a7f37",
    "choose": "#0969da",
    "value": "#57606a",
}
UPWARDS: Final = "#cf222e"  # against the order of the floors: there should be none


def roles() -> tuple[tuple[str, str], ...]:
    """Return the table of roles of tests/test_layers.py: a role and its patterns of files."""
    tree = ast.parse((ROOT / "tests/test_layers.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "ROLES" and node.value:
            return tuple(ast.literal_eval(node.value))
    raise LookupError("tests/test_layers.py has no ROLES")


def role_of(name: str, table: tuple[tuple[str, str], ...]) -> str:
    """Return the role of a file, named relative to the package."""
    fits = (role for role, words in table for each in words.split() if fnmatch.fnmatch(name, each))
    return next(fits)


def room_of(name: str, role: str) -> str:
    """Return the box that a file is part of."""
    room, slash, _ = name.partition("/")
    if room == "features":
        parts = {"verb": "verbs", "flow": "flow", "choose": "features: choose", "value": "values"}
        return parts.get(role, "features: act")
    if slash:
        return "values" if room == "data" else room
    return "flow" if role == "flow" else "values"


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield every imported name, dotted, also those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


class Rooms(NamedTuple):
    """What the code says: the modules of each room, its role, and who imports whom how often.

    No lines are counted: the picture is of who needs whom, and would be out of date with every edit.
    """

    modules: Counter[str]
    role: dict[str, str]
    arrows: Counter[tuple[str, str]]


def read_rooms() -> Rooms:
    """Read the package; an arrow counts pairs of files, and a module has more than three lines."""
    table, package = roles(), ROOT / PACKAGE
    paths = {
        path.relative_to(package).as_posix(): path
        for path in sorted(package.rglob("*.py"), key=lambda path: path.as_posix())
    }
    dotted = {}
    for name in paths:
        dotted[f"{PACKAGE}.{name.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")] = name
    del dotted[PACKAGE]  # asked for the version alone
    room = {name: room_of(name, role_of(name, table)) for name in paths}
    found = Rooms(Counter(), {}, Counter())
    for name, path in paths.items():
        text = path.read_text("utf-8")
        lines = text.count("\n")
        found.modules[room[name]] += lines > 3
        if name == "__init__.py":
            continue  # the fronts, on first use
        if lines:
            found.role.setdefault(room[name], role_of(name, table))
        others = {dotted.get(each, dotted.get(each.rpartition(".")[0])) for each in imported(ast.parse(text))}
        for other in others:
            if other is not None and room[other] != room[name]:
                found.arrows[room[name], room[other]] += 1
    return found


def box_lines(name: str, box: Box, rooms: Rooms) -> Iterator[str]:
    """Yield a box: its name, what it is for, its size."""
    colour = COLOURS[rooms.role[name]]
    size = f"{rooms.modules[name]} modules"
    yield (
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{HEIGHT}" rx="7" fill="#ffffff" '
        f'stroke="{colour}" stroke-width="2"/>'
    )
    rows = ((name, 20, "name"), (box.words, 37, "words"), (size, 53, "size"))
    for words, down, kind in rows:
        fill = f' fill="{colour}"' if kind == "name" else ""
        yield (
            f'<text class="{kind}" x="{box.middle:g}" y="{box.y + down}"{fill}>{html.escape(words)}</text>'
        )


def ports(arrows: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return where on its boxes each arrow begins and ends, from left to right as its other ends stand."""
    places: dict[tuple[str, str], list[float]] = {each: [0.0, 0.0] for each in arrows}
    for end in (0, 1):
        for name, box in BOXES.items():
            mine = [each for each in arrows if each[end] == name]
            mine.sort(key=lambda each: (BOXES[each[1 - end]].middle, BOXES[each[1 - end]].y))
            for index, each in enumerate(mine):
                places[each][end] = box.x + box.width * (index + 1) / (len(mine) + 1)
    return {each: (begin, stop) for each, (begin, stop) in places.items()}


def arrow_lines(path: str, count: int, colour: str, x: float, y: float) -> tuple[str, str]:
    """Return an arrow, thicker where it stands for more, and its number."""
    thick = 1 + min(count, 100) ** 0.5 / 3
    line = (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{thick:.1f}" stroke-opacity="0.55" '
        f'marker-end="url(#{colour.lstrip("#")})"/>'
    )
    return line, f'<text class="count" x="{x:.0f}" y="{y + 4:.0f}" fill="{colour}">{count}</text>'


def bow_below(begin: Box, end: Box, count: int, colour: str) -> tuple[str, str]:
    """Return an arrow below the boxes between two of one floor."""
    y = begin.y + HEIGHT
    left, right = f"{begin.middle:g}", f"{end.middle:g}"
    path = f"M{left} {y}C{left} {y + 90} {right} {y + 90} {right} {y + 9}"
    return arrow_lines(path, count, colour, (begin.middle + end.middle) / 2, y + 69)


def level_arrow(begin: Box, end: Box, count: int, colour: str, *, both: bool) -> tuple[str, str]:
    """Return an arrow between two boxes of one floor; one of two stands above the other."""
    right = begin.x < end.x
    if abs(begin.middle - end.middle) > FAR:
        return bow_below(begin, end, count, colour)
    y = begin.y + HEIGHT / 2 + (0 if not both else -13 if right else 13)
    start, stop = (begin.x + begin.width, end.x - 9) if right else (begin.x, end.x + end.width + 9)
    return arrow_lines(f"M{start} {y:g}L{stop} {y:g}", count, colour, (start + stop) / 2, y - 9)


def falling_arrow(begin: Box, end: Box, count: int, colour: str, at: tuple[float, float]) -> tuple[str, str]:
    """Return an arrow from one floor to another, bent so that it leaves and arrives upright."""
    down = begin.y < end.y
    top, bottom = (begin.y + HEIGHT, end.y - 9) if down else (begin.y, end.y + HEIGHT + 9)
    left, right, half = at[0], at[1], (top + bottom) / 2
    path = f"M{left:.0f} {top}C{left:.0f} {half:.0f} {right:.0f} {half:.0f} {right:.0f} {bottom}"
    # The number stands near the head: the point of this Bezier curve at 0.86 of its parameter.
    part, rest = 0.86, 0.14
    early, late = rest**3 + 3 * rest**2 * part, part**3 + 3 * rest * part**2
    bend = 3 * rest * part
    return arrow_lines(
        path, count, colour, left * early + right * late, rest**3 * top + bend * half + part**3 * bottom
    )


def draw(rooms: Rooms) -> str:
    """Return the picture as SVG."""
    if unknown := {*rooms.modules} - {*BOXES, *GROUND}:
        raise LookupError(f"bin/draw_rooms.py has no box for {', '.join(sorted(unknown))}")
    between = {each: count for each, count in sorted(rooms.arrows.items()) if {*each} <= {*BOXES}}
    falling = [each for each in between if BOXES[each[0]].y != BOXES[each[1]].y]
    at = ports(falling)
    drawn = []
    for (first, second), count in between.items():
        begin, end = BOXES[first], BOXES[second]
        colour = COLOURS[rooms.role[first]] if begin.y <= end.y else UPWARDS
        if (first, second) in at:
            drawn.append(falling_arrow(begin, end, count, colour, at[first, second]))
        else:
            both = (second, first) in between
            drawn.append(level_arrow(begin, end, count, colour, both=both))
    lines = [line for line, _ in drawn]
    for name, box in BOXES.items():
        lines += box_lines(name, box, rooms)
    for name, box in GROUND.items():
        into = sum(count for (_, other), count in rooms.arrows.items() if other == name)
        lines += box_lines(name, box, rooms)
        lines.append(f'<text class="size" x="{box.middle:g}" y="{box.y - 8}">imported {into} times</text>')
    lines += [number for _, number in drawn]
    markers = "".join(marker(colour) for colour in sorted({*COLOURS.values(), UPWARDS}))
    total = f"{sum(rooms.modules.values())} modules"
    lines.append(
        f'<text class="size" x="{WIDTH / 2:g}" y="{DEPTH - 16}">{total}; a number on an arrow: so '
        "many imports of one file by another</text>"
    )
    return HEAD.format(width=WIDTH, depth=DEPTH, markers=markers) + "\n".join(lines) + "\n</svg>\n"


def marker(colour: str) -> str:
    """Return the head of the arrows of a colour."""
    return (
        f'<marker id="{colour.lstrip("#")}" markerUnits="userSpaceOnUse" markerWidth="11" markerHeight="11" '
        f'refX="3" refY="5" orient="auto"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    )


HEAD: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {depth}" role="img" aria-label="rooms">
<style>
text {{ font-family: ui-sans-serif, system-ui, "DejaVu Sans", Arial, sans-serif; text-anchor: middle }}
.name {{ font-size: 15px; font-weight: 600 }}
.words {{ font-size: 12px; fill: #24292f }}
.size {{ font-size: 11px; fill: #57606a }}
.count {{ font-size: 11px; font-weight: 600; paint-order: stroke; stroke: #fff; stroke-width: 4px }}
</style>
<defs>{markers}</defs>
<rect width="100%" height="100%" fill="#fff"/>
"""


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(read_rooms()), "utf-8", newline="\n")

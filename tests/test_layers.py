"""The import table of docs/design.md, kept: who may import whom, and who may print or run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import torchbuild_tasks

PACKAGE = Path(torchbuild_tasks.__file__).parent
LEAVES = {
    "errors",
    "request",
    "model",
    "record",
    "values",
    "catalog",
    "templates",
    "pins",
    "manifest",
    "diffs",
}

# The door to programs, and to the memory of Windows: leaves that `facts` looks through as well, though
# they lie in `effects`.
DOOR = {
    f"effects.{name}" for name in ("blocks", "job", "process", "reading", "signals", "tree", "windows_memory")
}

# Room or module of the package -> what of ours it may import.
TABLE: dict[str, set[str]] = {
    "errors": {"model"},
    "request": {"request"},
    "model": {"model"},
    "record": {"values", "model", "request"},
    "manifest": {"model", "record"},
    "values": {"errors"},
    "catalog": {"catalog", "errors", "model", "values"},
    "templates": {"errors"},
    "pins": {"errors"},
    "diffs": set(),
    "core": LEAVES | {"core"},
    "door": {"door", "errors"},
    "facts": LEAVES | {"door", "facts"},
    "effects": LEAVES | {"door", "effects"},
    "verify": LEAVES | {"core", "effects", "verify", "door"},
    "stages": LEAVES | {"core", "effects", "verify", "stages", "door"},
    "sight": LEAVES | {"core", "facts", "effects", "stages", "sight", "", "door"},
    "flow": LEAVES | {"core", "effects", "verify", "stages", "sight", "door"},
    "beside": LEAVES | {"core", "effects", "verify", "stages", "sight", "flow", "door"},
    "fronts": LEAVES | {"core", "flow", "beside", "fronts", ""},
    "data": set(),
    "": {"fronts"},
}
PURE = ("os", "subprocess", "time", "datetime", "pathlib", "shutil", "socket", "tempfile", "platform")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if ".".join(parts) in DOOR:
        return "door"
    return "" if parts == ("__init__",) else parts[0]


def imports(path: Path) -> list[str]:
    """Every imported module by its dotted name, also inside functions."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def our_room(name: str) -> str | None:
    if not name.startswith("torchbuild_tasks"):
        return None
    if any(f"{name}.".startswith(f"torchbuild_tasks.{each}.") for each in DOOR):
        return "door"
    second = name.split(".")[1] if "." in name else ""
    return second if second in TABLE else ""


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_only_what_its_room_may(path: Path) -> None:
    """core, facts and effects never import each other; only fronts stand above flow."""
    if room(path) not in TABLE:
        return  # a room that capabilities move into: judged by role when all are there
    allowed = TABLE[room(path)]
    bad = [name for name in imports(path) if (target := our_room(name)) is not None and target not in allowed]
    assert not bad, f"{room(path)} may import only {sorted(allowed)}, see docs/design.md"


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").rglob("*.py")), ids=lambda p: p.name)
def test_core_is_pure(path: Path) -> None:
    """core decides from values alone: no environment, process, clock or file system."""
    bad = [name for name in imports(path) if name.split(".")[0] in PURE]
    assert not bad


def test_only_fronts_catch_our_errors() -> None:
    """`except TorchbuildError` stands in the fronts alone; others catch what they mean."""
    for path in modules():
        if room(path) == "fronts":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ExceptHandler) and node.type is not None:
                assert "TorchbuildError" not in ast.unparse(node.type), path

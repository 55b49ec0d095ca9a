"""Which files of tests say the same on every system, so that Windows' Python need not run them, too.

There are two kinds. What is tested only decides: its module is one of values or decisions (`ROLES` of
tests/test_layers.py) and imports nothing that could ask the system. Or the tests read files of the checkout
and nothing else; these are marked `one_system`. A file with an integration test is never among them.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]
PACKAGE: Final = TESTS.parent / "torchbuild_tasks"
MARKED: Final = "pytestmark = pytest.mark.one_system\n"
SYSTEM: Final = (
    "os",
    "sys",
    "pathlib",
    "subprocess",
    "time",
    "shutil",
    "socket",
    "tempfile",
    "platform",
    "ctypes",
)


def is_same_everywhere(file: Path) -> bool:
    """Say whether a file of tests is of one of the two kinds."""
    text = file.read_text("utf-8")
    if "pytest.mark.integration" in text:
        return False
    return MARKED in text or _is_of_decisions(file)


def _is_of_decisions(file: Path) -> bool:
    folder = PACKAGE / file.parent.relative_to(TESTS)
    words = file.stem.removeprefix("test_").split("_")
    names = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    twin = next((found for name in names if (found := folder / f"{name}.py").is_file()), None)
    if twin:
        return _decides(twin)
    modules = [each for each in folder.glob("*.py") if each.name != "__init__.py"]
    return bool(modules) and all(map(_decides, modules))


@functools.cache
def _decides(module: Path) -> bool:
    """Say whether a module only holds values or decides: by its role, and by what it imports."""
    place = module.relative_to(PACKAGE).as_posix()
    patterns = next(((role, each) for role, each in _roles() if _fits(place, each)), ("", ""))
    return patterns[0] in ("value", "choose") and not _asks_the_system(module)


def _fits(place: str, patterns: str) -> bool:
    return any(fnmatch.fnmatchcase(place, pattern) for pattern in patterns.split())


def _asks_the_system(module: Path) -> bool:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [] if all(alias.name.startswith("Pure") for alias in node.names) else [node.module or ""]
        else:
            continue
        if any(name.partition(".")[0] in SYSTEM for name in names):
            return True
    return False


@functools.cache
def _roles() -> tuple[tuple[str, str], ...]:
    for node in ast.parse((TESTS / "test_layers.py").read_text("utf-8")).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "ROLES" and node.value:
            return tuple(ast.literal_eval(node.value))
    raise LookupError("tests/test_layers.py has no ROLES")

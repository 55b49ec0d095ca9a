"""Every message of the product with an example, to be read aloud: `nox -s messages`.

python -m tests.support.messages OUT [pytest's arguments]

The tests are run with each place watched that makes a message: an error, a finding, the reason of a choice, a
note. What a place said first is its example; one that no test comes by is listed by its source.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = "torchbuild_tasks"
_FOLDER: Final = "TORCHBUILD_TESTS_MESSAGES"  # where each process of the tests leaves what it met
_WITH_WORDS: Final = ("Choice", "note", "say")  # others hand on what was worded elsewhere
_met: dict[str, str] = {}


def sites(tree: ast.AST, errors: frozenset[str]) -> Iterator[ast.Call]:
    """Return the calls that make a message."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = name_of(node)
        if name in errors or name == "Finding" or (name in _WITH_WORDS and texts(node)):
            yield node


def name_of(call: ast.Call) -> str:
    """Return the last name of the called function; a finding is called by its status (`Finding.warn`)."""
    function = call.func
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "Finding":
        return "Finding"
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def texts(call: ast.Call) -> list[ast.expr]:
    """Return the arguments with literal text; others pass on text from elsewhere."""
    given = [*call.args, *(each.value for each in call.keywords)]
    return [each for each in given if any(_is_words(part) for part in ast.walk(each))]


def _is_words(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and " " in node.value
    return isinstance(node, ast.JoinedStr)


def error_classes() -> frozenset[str]:
    """Return the names of the errors that are shown to users."""
    tree = ast.parse((ROOT / PACKAGE / "errors.py").read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.ClassDef))


def shown(value: Any) -> str:
    """Return a message as a person reads it."""
    if isinstance(value, tuple):
        return "\n".join(map(shown, value))
    if hasattr(value, "what"):
        looked = [f"looked: {each}" for each in value.looked]
        return "\n".join([value.what, *looked, *([f"-> {value.next_step}"] if value.next_step else [])])
    if hasattr(value, "because"):
        return f"{value.name} {value.value!r}: {value.because}"
    if hasattr(value, "status"):
        return f"{value.status}: {value.text}" + (f"\n-> {value.fix}" if value.fix else "")
    return str(value)


# ---------------------------------------------------------------- in the processes of the tests


class _Watched(ast.NodeTransformer):
    """Wrap the text of each place in `__met__`, which records and returns it."""

    def __init__(self, path: str, errors: frozenset[str]) -> None:
        self._path, self._errors = path, errors

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if node not in self._places:
            return self.generic_visit(node)
        self.generic_visit(node)
        site = ast.Constant(f"{self._path}:{node.lineno}")
        watcher = ast.Name("__met__", ast.Load())
        if name_of(node) in ("note", "say") and node.args:
            node.args[0] = ast.copy_location(ast.Call(watcher, [site, node.args[0]], []), node.args[0])
            return ast.fix_missing_locations(node)
        return ast.fix_missing_locations(ast.copy_location(ast.Call(watcher, [site, node], []), node))

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self._places = frozenset(sites(node, self._errors))
        return self.generic_visit(node)


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        watched = _Watched(Path(path).relative_to(ROOT).as_posix(), error_classes())
        return compile(watched.visit(ast.parse(self.get_data(path))), path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(PACKAGE):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def _meet(site: str, value: Any) -> Any:
    if site not in _met:
        _met[site] = shown(value)
    return value


if folder := os.environ.get(_FOLDER):
    builtins.__met__ = _meet  # type: ignore[attr-defined]
    sys.meta_path.insert(0, _Finder())


def pytest_sessionfinish() -> None:
    """Write the texts that this process recorded."""
    if folder := os.environ.get(_FOLDER):
        Path(folder, f"{os.getpid()}.json").write_text(json.dumps(_met), "utf-8")


# ---------------------------------------------------------------- the page


def page(met: dict[str, str]) -> str:
    """Return the list as Markdown, file by file."""
    errors, lines = error_classes(), ["# Messages\n"]
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        found = sorted(sites(ast.parse(path.read_text("utf-8")), errors), key=lambda call: call.lineno)
        if found:
            lines.append(f"\n## {name}\n")
        for call in found:
            example = met.get(f"{name}:{call.lineno}")
            source = " ".join(" | ".join(ast.unparse(each) for each in texts(call)).split())
            body = example if example is not None else f"(no test comes by) {source}"
            lines.append(f"* {call.lineno} {name_of(call)}: " + body.replace("\n", "\n  "))
    return "\n".join(lines) + "\n"


def main(out: str, *words: str) -> None:
    """Run the tests, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, _FOLDER: folder, "PYTHONPATH": str(ROOT)}
        command = (sys.executable, "-m", "pytest", "-p", "tests.support.messages", "-q", *words)
        subprocess.run(command, cwd=ROOT, env=environ, check=False)
        met: dict[str, str] = {}
        for each in Path(folder).iterdir():
            met = {**json.loads(each.read_text("utf-8")), **met}
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(page(met), "utf-8")
    print(f"{out}: {len(met)} places met")


if __name__ == "__main__":
    main(*sys.argv[1:])

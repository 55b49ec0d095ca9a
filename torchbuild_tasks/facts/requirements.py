"""Read a checkout's requirements: those of its build, and those of the installed package.

Nothing of it is run: TOML and pip's format are read as such, setup.py and a metadata provider as syntax.
"""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.values import as_table

# ---------------- build requirements: the group `dev` (from 2.9), else requirements.txt

REQUIREMENTS_GROUP: Final = "dev"
REQUIREMENTS_FILE: Final = "requirements.txt"
_INCLUDES: Final = re.compile(r"(?:-r|--requirement)[\s=]*(\S.*)")


def build_requirements(probe: Probe, root: str, pyproject: Mapping[str, object]) -> tuple[str, ...]:
    """Return the build requirements (PEP 508) in their order, each once."""
    groups = pyproject.get("dependency-groups")
    if isinstance(groups, dict) and REQUIREMENTS_GROUP in groups:
        return tuple(dict.fromkeys(_requirements_of_group(groups, REQUIREMENTS_GROUP, ())))
    return tuple(dict.fromkeys(requirements_of_file(probe, root, REQUIREMENTS_FILE, ())))


def _requirements_of_group(groups: Mapping[str, object], name: str, above: tuple[str, ...]) -> list[str]:
    """Read a group of PEP 735; a group that includes itself is not followed."""
    items = groups.get(name)
    requirements: list[str] = []
    for item in items if isinstance(items, list) and name not in above else ():
        if isinstance(item, str):
            requirements.append(item.strip())
        elif isinstance(item, dict) and isinstance(other := item.get("include-group"), str):
            requirements += _requirements_of_group(groups, other, (*above, name))
    return requirements


def requirements_of_file(probe: Probe, root: str, name: str, above: tuple[str, ...] = ()) -> list[str]:
    """Return what a requirements file asks for; of pip's options only `-r FILE` adds requirements."""
    requirements: list[str] = []
    text = "" if name in above else probe.read(probe.join(root, name)) or ""
    for line in text.splitlines():
        words = re.sub(r"(^|\s)#.*", "", line).strip()
        if included := _INCLUDES.fullmatch(words):
            requirements += requirements_of_file(probe, root, included[1], (*above, name))
        elif words and not words.startswith("-"):
            requirements.append(words.partition(" --")[0].strip())
    return requirements


# ---------------- requirements of the package: [project], a provider of dynamic metadata, or setup.py

DEPENDENCIES: Final = "dependencies"
_IN_SETUP: Final = "install_requires"
_LISTED: Final = re.compile(r"(?i).*(dependenc|requires)")
_OTHERWISE: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SIGNS: Final = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.LtE: "<="}
# Conditions in setup.py, and the equivalent PEP 508 markers.
_MARKERS: Final = {
    "sys.platform": "sys_platform",
    "os.name": "os_name",
    "platform.system()": "platform_system",
    "platform.machine()": "platform_machine",
}


def install_requirements(probe: Probe, root: str, pyproject: Mapping[str, object]) -> tuple[str, ...] | None:
    """Return the requirements (PEP 508) of the built package, as its files write them.

    Returns:
        Each once; None where they are made by code that has to run.
    """
    project = as_table(pyproject.get("project"))
    if isinstance(written := project.get(DEPENDENCIES), list):
        return tuple(dict.fromkeys(text.strip() for text in written if isinstance(text, str)))
    dynamic = project.get("dynamic")
    if project and not (isinstance(dynamic, list) and DEPENDENCIES in dynamic):
        return ()
    lists = [_lists_of(one.module) for path in _providers(pyproject) if (one := _parse(probe, root, path))]
    if texts := tuple(dict.fromkeys(text for texts in lists for text in texts)):
        return texts
    setup = _parse(probe, root, "setup.py")
    return _parse_setup(setup) if setup else None


def _providers(pyproject: Mapping[str, object]) -> Iterator[str]:
    """Yield the files of a checkout's own providers of dynamic metadata.

    Both ways of scikit-build-core: `[tool.scikit-build.metadata.dependencies]`, and from 1.0 on
    `[[tool.dynamic-metadata]]`.
    """
    tool = as_table(pyproject.get("tool"))
    old = as_table(as_table(tool.get("scikit-build")).get("metadata")).get(DEPENDENCIES)
    new = tool.get("dynamic-metadata")
    for entry in map(as_table, (old, *(new if isinstance(new, list) else ()))):
        module = provider = entry.get("provider")
        folder = entry.get("provider-path", ".")
        if isinstance(provider, dict):
            folder = provider.get("path", ".")
            module = provider.get("module")
        if isinstance(folder, str) and isinstance(module, str):
            yield f"{folder}/{module.partition(':')[0].replace('.', '/')}.py"


def _parse(probe: Probe, root: str, name: str) -> Syntax | None:
    return parse_python(probe.read(probe.join(root, *name.split("/"))) or "")


class Syntax(NamedTuple):
    """The syntax of a Python file: the whole, and of what is asked for anywhere in it every node."""

    module: ast.Module
    calls: tuple[ast.Call, ...]
    functions: tuple[ast.FunctionDef, ...]


@functools.lru_cache(maxsize=2)  # setup.py is asked for what it requires, and for the folders it looks into
def parse_python(text: str) -> Syntax | None:
    """Return the syntax of a text that is Python 3; None for any other."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in the strings of old ones
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    nodes = list(ast.walk(module))
    return Syntax(
        module,
        tuple(node for node in nodes if isinstance(node, ast.Call)),
        tuple(node for node in nodes if isinstance(node, ast.FunctionDef)),
    )


def _lists_of(module: ast.Module) -> list[str]:
    """Return a module's dependency lists by their names."""
    texts: list[str] = []
    for node in module.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and _LISTED.match(target.id) and isinstance(value, ast.expr):
            texts += _texts_of(value, {}, frozenset())
    return texts


def _parse_setup(setup: Syntax) -> tuple[str, ...] | None:
    """Return the requirements passed to setup(), including changes of a list variable."""
    calls = [call for call in setup.calls if _is_setup(call.func)]
    if not calls or any(word.arg is None for call in calls for word in call.keywords):
        return None  # no call, or **options
    arguments = [word.value for call in calls for word in call.keywords if word.arg == _IN_SETUP]
    lists: dict[str, list[tuple[ast.expr, str]]] = {}
    _collect(setup.module.body, "", lists)
    if any(isinstance(value, ast.Name) and value.id not in lists for value in arguments):
        return None
    texts = [text for value in arguments for text in _texts_of(value, lists, frozenset())]
    if any(not isinstance(value, ast.Name | ast.List | ast.Tuple | ast.BinOp) for value in arguments):
        return None
    return tuple(dict.fromkeys(texts))


def _is_setup(function: ast.expr) -> bool:
    """Say whether this is `setup` or `setuptools.setup`."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return (function.value.id, function.attr) == ("setuptools", "setup")
    return isinstance(function, ast.Name) and function.id == "setup"


def _collect(body: list[ast.stmt], marker: str, lists: dict[str, list[tuple[ast.expr, str]]]) -> None:
    """Collect additions to lists by variable, with the marker of the surrounding `if`s.

    Additions under a condition that no marker expresses are left out, because only a run can evaluate it.
    """
    for node in body:
        if isinstance(node, ast.If):
            for branch, otherwise in ((node.body, False), (node.orelse, True)):
                condition = _marker(node.test, otherwise=otherwise)
                if condition is not None:
                    _collect(branch, " and ".join(filter(None, (marker, condition))), lists)
        elif isinstance(node, ast.FunctionDef | ast.With | ast.Try):
            _collect(node.body, marker, lists)
        elif added := _read_addition(node):
            lists.setdefault(added[0], []).append((added[1], marker))


def _read_addition(node: ast.stmt) -> tuple[str, ast.expr] | None:
    """Return the name of a list and what this statement adds to it."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AugAssign | ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        return node.target.id, node.value
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) == 1:
        owner = call.func.value
        value = call.args[0]
        if isinstance(owner, ast.Name) and call.func.attr == "append":
            return owner.id, ast.List(elts=[value])
        if isinstance(owner, ast.Name) and call.func.attr == "extend":
            return owner.id, value
    return None


def _texts_of(
    value: ast.expr, lists: Mapping[str, list[tuple[ast.expr, str]]], above: frozenset[str]
) -> Iterator[str]:
    """Yield the strings in an expression and in the lists that it names."""
    if isinstance(value, ast.List | ast.Tuple):
        for item in value.elts:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                yield item.value.strip()
    elif isinstance(value, ast.BinOp):
        yield from _texts_of(value.left, lists, above)
        yield from _texts_of(value.right, lists, above)
    elif isinstance(value, ast.Name) and value.id not in above:
        for added, marker in lists.get(value.id, ()):
            for text in _texts_of(added, lists, above | {value.id}):
                yield _with_marker(text, marker)


def _with_marker(text: str, marker: str) -> str:
    if not marker:
        return text
    requirement, semicolon, own = text.partition(";")
    return f"{requirement.strip()} ; {marker}" + (f" and ({own.strip()})" if semicolon else "")


def _marker(test: ast.expr, *, otherwise: bool) -> str | None:
    """Return the PEP 508 marker equivalent to a condition, or its negation; None if there is none."""
    if ast.unparse(test) == "__name__ == '__main__'":
        return None if otherwise else ""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        sign = _SIGNS.get(type(test.ops[0]), "")
        sign = _OTHERWISE.get(sign, "") if otherwise else sign
        left = ast.unparse(test.left)
        right = test.comparators[0]
        if sign and left.startswith("sys.version_info"):
            return _version_marker(sign, right)
        if sign and left in _MARKERS and isinstance(right, ast.Constant):
            return f"{_MARKERS[left]} {sign} {ast.unparse(right)}"
    return None


def _version_marker(sign: str, right: ast.expr) -> str | None:
    """Return a marker for `sys.version_info < (3, 8)` and `sys.version_info[0] == 2`."""
    numbers = right.elts if isinstance(right, ast.Tuple) else [right]
    version = ".".join(ast.unparse(number) for number in numbers if isinstance(number, ast.Constant))
    if len(numbers) == 1 and sign in ("==", "!="):
        version += ".*"
    return f'python_version {sign} "{version}"' if version else None

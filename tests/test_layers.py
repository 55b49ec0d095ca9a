"""The rules of the rooms, kept: who may import whom, which capability may ask which, who may print.

A role is what a file does: hold values, decide, look, act, speak. Rooms have one role; in a capability's
folder the file's name says it. docs/design.md has the same in words.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import graphlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import torchbuild_tasks
from torchbuild_tasks.flow import STAGES, WHEEL_STAGES, load_stage
from torchbuild_tasks.fronts.parsing import load, request_class
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.verbs import VERBS

pytestmark = pytest.mark.one_system

PACKAGE = Path(torchbuild_tasks.__file__).parent
PACKAGE_NAME = "torchbuild_tasks"

# Patterns of files, the first that fits counts.
ROLES: tuple[tuple[str, str], ...] = (
    # run by another interpreter, or started as a program: imports nothing of ours
    (
        "alone",
        "verify/*_probe.py verify/*_checks.py verify/cuda_*.py facts/python_report.py "
        "facts/cuda/nvml_probe.py",
    ),
    ("value", "__init__.py */__init__.py */*/__init__.py verbs.py errors.py values.py options.py about.py"),
    ("value", "model/*.py catalog/*.py features/*/flags.py"),
    ("value", "text/visible.py text/words.py"),  # needed wherever a text leaves: by values, doors and fronts
    ("choose", "text/*.py plan/*.py plan/cuda/*.py ninja/*.py"),
    ("door", "system/*.py system/*/*.py"),
    ("choose", "build/hints.py build/out_of_memory.py build/outputs.py"),
    ("choose", "build/install/due.py build/jobserver/tokens.py verify/judge.py"),
    ("choose", "features/*/choose.py features/*/show.py"),
    ("choose", "features/cache/address.py features/cache/drift.py features/cache/stats.py"),
    ("choose", "features/closure/graph.py features/closure/linux.py features/closure/windows.py"),
    ("act", "features/diagnosis/act.py"),
    ("verb", "features/diagnosis/verb.py"),
    ("choose", "features/diagnosis/*.py features/develop/jsonc.py"),
    ("choose", "features/doctor/check_*.py features/doctor/check.py"),
    (
        "choose",
        "features/manifest/compare.py features/report/page.py features/wheel_overlay/compatibility.py "
        "features/wheel_overlay/cheapest.py features/wheel_overlay/reach.py "
        "features/wheel_overlay/variants.py",
    ),
    ("look", "facts/*.py facts/cuda/*.py features/*/look.py"),
    ("verb", "features/*/verb.py"),
    ("front", "fronts/*.py __main__.py"),
    ("flow", "flow.py context.py checkout.py flag_values.py features/doctor/health.py"),
    ("act", "build/*.py build/*/*.py features/*/*.py verify/session.py"),
)
EVERYTHING = {"value", "choose", "door", "look", "act", "flow", "verb", "front"}
MAY: dict[str, set[str]] = {
    "alone": set(),
    "value": {"value"},
    "choose": {"value", "choose"},
    "door": {"value", "door"},
    "look": {"value", "choose", "look"},
    "act": (EVERYTHING - {"flow", "verb", "front"}) | {"alone"},
    "flow": EVERYTHING - {"verb", "front"},
    "verb": EVERYTHING - {"verb", "front"},  # its line in verbs.py names it
    "front": EVERYTHING,
}
# The doors that a look may use: each only reads, and a program that is looked at ends as a whole.
LOOKS_THROUGH = {
    "system.reading",
    "system.elf",
    "system.git.guard",
    "system.trust",  # of it the half that reads
    "system.process",
    "system.process_tree",
    "system.windows_job",
    "system.windows_memory",
    "system.left_running",
    "system.signals",
}
# Values that need a reader of their own, or the package itself for its version.
EXCEPT: dict[str, set[str]] = {
    "catalog/templates.py": {"system.reading"},
    "text/show.py": set(),
}
HARMLESS = {
    *(f"pathlib.{kind}" for kind in ("PurePath", "PurePosixPath", "PureWindowsPath")),
    "subprocess.list2cmdline",
}
PURE = ("os", "subprocess", "time", "datetime", "pathlib", "shutil", "socket", "tempfile", "platform")

# Which capability may ask which others; it should only get shorter.
ASKS: dict[str, set[str]] = {
    "bisect": {"manifest", "patches"},
    "cache": {"cluster", "helpers"},  # `cache serve` also serves those that compile away
    "cluster": {"cache", "helpers"},
    "companions": {"closure"},  # the symbols of what is built beside torch
    "doctor": {"cache"},
    "enter": {"builds"},  # the last build of a checkout
    "helpers": {"recipes", "toolkit"},  # `helpers build`
    "manifest": {"builds", "cache", "diagnosis", "helpers", "reproducible"},
    "package": {"manifest", "provenance"},  # the last build's manifest, what is in it
    "provenance": {"manifest", "reproducible"},  # what is handed on, and whether times count
    "recipes": {"companions", "helpers", "patches"},  # a source by address, by its archive, and what it lacks
    "report": {"manifest"},
    "support": {"diagnosis", "doctor"},
    "toolkit": {"helpers"},
    "whatif": {"cluster"},  # what a compile that is sent away costs
}
# What of a capability the stages of a build call themselves, and what of one is part of every plan.
BUILD_ASKS = {"cache", "cluster", "diagnosis", "manifest", "patches"}
PLAN_ASKS = {"cache", "cluster", "companions", "helpers", "patches", "reproducible", "wheel_overlay"}


@functools.cache
def files() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


@functools.cache
def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@functools.cache
def role(name: str) -> str:
    """The role of a file by its place."""
    for found, patterns in ROLES:
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns.split()):
            return found
    raise AssertionError(
        f"{name} has no role: add it to a row of ROLES, and to docs/design.md where it is a new one"
    )


def feature(name: str) -> str | None:
    parts = name.split("/")
    return parts[1] if parts[0] == "features" and len(parts) > 2 else None


@functools.cache
def modules() -> dict[str, str]:
    """Dotted name -> place."""
    found = {}
    for path in files():
        dotted = ".".join((PACKAGE_NAME, *path.relative_to(PACKAGE).with_suffix("").parts))
        found[dotted.removesuffix(".__init__")] = place(path)
    return found


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def names_in(tree: ast.AST, *, types: bool = True) -> Iterator[str]:
    """Every imported name, dotted, also inside functions; without `types` not what only types need."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.expr) and (types or not is_type_checking(node)):
            yield from names_in(node, types=types)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module: to walk once is half of what six tests cost."""
    return tuple(ast.walk(parsed(path)))


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Half a million nodes are 100 MB, through which every later garbage collection would go."""
    yield
    parsed.cache_clear()
    nodes.cache_clear()


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    return tuple(names_in(parsed(path)))


def ours(names: tuple[str, ...]) -> set[str]:
    """Return the modules of this package among imported names; the package itself gives only its version."""
    found = set()
    for name in names:
        for dotted in (name, name.rpartition(".")[0]):
            if dotted in modules():
                found.add(modules()[dotted])
                break
    return found - {"__init__.py"}


def test_imports_only_what_its_role_may() -> None:
    """What decides imports no door; what looks changes nothing; only the fronts stand above the verbs."""
    bad = []
    for path in files():
        name, own = place(path), role(place(path))
        if name == "__init__.py":
            continue  # the fronts, on first use
        for other in sorted(ours(imports(path))):
            dotted = other.removesuffix(".py").replace("/", ".")
            if own == "look" and dotted in LOOKS_THROUGH or dotted in EXCEPT.get(name, ()):
                continue
            if role(other) not in MAY[own]:
                bad.append(f"{name} ({own}) imports {other} ({role(other)})")
    assert not bad, "a role may import only what MAY says, see docs/design.md"


def test_capabilities_ask_only_whom_the_table_names() -> None:
    """A capability can be deleted with the lines of the table that name it: no other import is left."""
    bad = []
    for path in files():
        name = place(path)
        own = feature(name)
        asked = {each for other in ours(imports(path)) if (each := feature(other)) and each != own}
        room = name.partition("/")[0]
        allowed = {"build": BUILD_ASKS, "plan": PLAN_ASKS}.get(room, set())
        if own is not None:
            allowed = ASKS.get(own, set())
        elif role(name) in ("flow", "front", "verb") or room == "verify":
            continue
        bad += [f"{name} ({own or room}) asks {each}" for each in sorted(asked - allowed)]
    assert not bad, "a new arrow: see docs/design.md"


def test_the_table_of_capabilities_holds_no_arrow_that_is_gone() -> None:
    seen: dict[str, set[str]] = {}
    for path in files():
        own = feature(place(path))
        for other in ours(imports(path)):
            asked = feature(other)
            if own and asked and own != asked:
                seen.setdefault(own, set()).add(asked)
    assert {own: asked for own, asked in ASKS.items() if seen.get(own, set()) != asked} == {}


def test_what_decides_is_pure() -> None:
    """From values alone: no environment, process, clock or file system."""
    bad = [
        (place(path), name)
        for path in files()
        if role(place(path)) == "choose"
        for name in imports(path)
        if name.split(".")[0] in PURE and name not in HARMLESS
    ]
    assert not bad


def test_no_circle_of_files() -> None:
    graph = {}
    for path in files():
        guarded = "TYPE_CHECKING" in path.read_text("utf-8")
        names = tuple(names_in(parsed(path), types=False)) if guarded else imports(path)
        graph[place(path)] = ours(names) - {place(path)}
    del graph["__init__.py"]
    graphlib.TopologicalSorter(graph).prepare()


def test_only_fronts_catch_our_errors() -> None:
    """`except TorchbuildError` stands in the fronts alone; others catch what they mean."""
    for path in files():
        if role(place(path)) == "front" or "TorchbuildError" not in path.read_text("utf-8"):
            continue
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler) and node.type is not None:
                assert "TorchbuildError" not in ast.unparse(node.type), path


def test_no_module_is_above_600_lines() -> None:
    assert [place(path) for path in files() if path.read_text("utf-8").count("\n") > 600] == []


def test_a_finding_is_made_by_its_status() -> None:
    """`Finding.warn` and `.error` ask for a fix, and `.ok` takes none: beside "ok" it would contradict it."""
    bad = []
    for path in files():
        for node in nodes(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
                given = {each.arg: each.value for each in node.keywords}
                if isinstance(given.get("status"), ast.Constant):
                    bad.append(f"{place(path)}:{node.lineno}")
    assert bad == []


def test_a_check_returns_a_tuple_or_yields() -> None:
    """So that every caller can write `*check(...)`: None would need a filter, and a list may be changed."""
    bad = []
    for path in files():
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                shape = ast.unparse(node.returns)
                bad += [f"{place(path)}:{node.name}"] * (shape in ("Finding | None", "list[Finding]"))
    assert bad == []


QUESTIONS = ("What", "Which", "Whether", "Why", "How", "Where", "When")


def test_docstrings_of_functions_and_modules_say_what_they_do() -> None:
    """An imperative ("Return ...", "Say whether ..."), as PEP 257 wants it; of values a noun."""
    bad = []
    for path in files():
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
                words = (ast.get_docstring(node) or "").split()
                name = f"{place(path)}:{getattr(node, 'name', '')}"
                bad += [name for word in words[:1] if word in QUESTIONS]
    assert bad == []


def parameters(node: ast.FunctionDef) -> set[str]:
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return {each.arg for each in (*every, node.args.vararg, node.args.kwarg) if each}


def named_in_args(docstring: str) -> list[str]:
    """The names of a docstring's section "Args:"; a line that is indented deeper goes on with a text."""
    _, _, section = docstring.partition("\nArgs:\n")
    names = re.findall(r"^    ([a-z]\w*(?:, \w+)*): ", section.partition("\n\n")[0], re.MULTILINE)
    return [name for each in names for name in each.split(", ")]


def test_a_docstring_names_only_parameters_that_are_there() -> None:
    bad = []
    for path in files():
        for node in nodes(path):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            has = parameters(node) if isinstance(node, ast.FunctionDef) else set()
            if isinstance(node, ast.ClassDef):
                made = [each for each in node.body if isinstance(each, ast.FunctionDef)]
                has = {name for each in made if each.name == "__init__" for name in parameters(each)}
                fields = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
                has |= {each.id for each in fields if isinstance(each, ast.Name)}
            named = named_in_args(ast.get_docstring(node) or "")
            bad += [f"{place(path)}:{node.name}: {name}" for name in named if name not in has]
    assert bad == []


def test_no_two_calls_that_have_nothing_to_do_with_each_other_share_a_line() -> None:
    """`a, b = f(), f()` may be a pair; `a, b = f(), g()` are two statements."""
    bad = []
    for path in files():
        for node in nodes(path):
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
                continue
            if isinstance(node.value, ast.Tuple):
                calls = [each for each in node.value.elts if isinstance(each, ast.Call)]
                if len({ast.unparse(each.func) for each in calls}) > 1:
                    bad.append(f"{place(path)}:{node.lineno} {ast.unparse(node)}")
    assert bad == []


def test_few_files_share_a_name() -> None:
    """In a traceback or an editor's tab a name says which file it is, but for roles and systems."""
    known = (*BY_ROLE, "choose.py", "__init__.py", "windows.py", "posix.py", "linux.py")
    names = Counter(path.name for path in files() if path.name not in known)
    assert {name: count for name, count in names.items() if count > 3} == {}


# Files whose name is their reason, and those that something else than an import leads to.
BY_ROLE = ("look.py", "act.py", "verb.py", "flags.py", "show.py")
BY_NAME = ("fronts/main.py", "__main__.py")  # the entry points


def test_a_small_module_has_two_importers_or_a_reason() -> None:
    """Under 60 lines: two importers, a role in its capability's folder, or a twin for another system."""
    importers: dict[str, set[str]] = {}
    for path in files():
        for other in ours(imports(path)):
            importers.setdefault(other, set()).add(place(path))
    small = [place(path) for path in files() if 3 < path.read_text("utf-8").count("\n") < 60]
    alone = [
        name
        for name in small
        if len(importers.get(name, ())) < 2
        and not name.endswith(BY_ROLE)
        and name not in BY_NAME
        and name != "__init__.py"
        and not name.startswith("model/")  # the package hands its values on
        and role(name) != "alone"
        and not any(name.endswith(f"_{twin}.py") for twin in ("posix", "windows", "sh", "cmd"))
    ]
    assert alone == []


def test_every_verb_is_where_its_line_says() -> None:
    """A verb's function takes a request and a reporter; the class of its request declares its flags."""
    for verb in VERBS:
        assert issubclass(request_class(verb), BuildRequest)
        assert list(inspect.signature(load(verb)).parameters) == ["request", "report"]


def test_every_stage_is_where_its_line_says() -> None:
    for stage in (*STAGES, *WHEEL_STAGES):
        assert list(inspect.signature(load_stage(stage)).parameters) == ["work"], stage

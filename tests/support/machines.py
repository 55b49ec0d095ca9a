"""Facts of imaginary machines, for tests of decisions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from torchbuild_tasks.catalog import GIB, load_catalog
from torchbuild_tasks.fronts.parsing import request_class
from torchbuild_tasks.model import (
    BuildPlan,
    CMakeCache,
    Cpu,
    Disk,
    Facts,
    Finding,
    Host,
    Memory,
    Previous,
    Python,
    Tool,
    Tree,
)
from torchbuild_tasks.options import SHELLS, BuildRequest, choices_of, flag_name
from torchbuild_tasks.plan.make import make_plan
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.settings import Settings
from torchbuild_tasks.values import replace

ROOT = "/src/pytorch"


def python(**changes: Any) -> Python:
    """A complete Python 3.11 in a venv of the user's."""
    values: dict[str, Any] = {
        "executable": "/venv/bin/python",
        "found_via": "environment VIRTUAL_ENV",
        "version": "3.11.7",
        "implementation": "CPython",
        "abi": "cpython-311-x86_64-linux-gnu",
        "bits": 64,
        "environment": "venv",
        "prefix": "/venv",
        "include": "/usr/include/python3.11",
        "headers": True,
        "venv": True,
        "packages": {"pip": "24.0", "setuptools": "69.5", "wheel": "0.43", "numpy": "1.26.4"},
    }
    return Python(**{**values, **changes})


def base_python(**changes: Any) -> Python:
    """The machine's own Python 3.11, which is never changed."""
    own = {"executable": "/usr/bin/python3", "found_via": "PATH", "environment": "base", "prefix": "/usr"}
    return python(**{**own, "externally_managed": True, **changes})


def tool(name: str, version: str, path: str = "") -> Tool:
    """A tool found on PATH."""
    return Tool(name=name, path=path or f"/usr/bin/{name}", version=version, found_via="PATH")


def tree(**changes: Any) -> Tree:
    """A complete checkout of 2.8, the setuptools era, never built."""
    values: dict[str, Any] = {
        "root": ROOT,
        "version": "2.8.0a0",
        "era": "setuptools",
        "build_dir": f"{ROOT}/build",
        "git": True,
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "writable": True,
        "digests": {"version.txt": "aa", "setup.py": "bb"},
    }
    return Tree(**{**values, **changes})


def modern_tree(**changes: Any) -> Tree:
    """A complete checkout of 2.14, the scikit-build-core era."""
    own = {"version": "2.14.0a0", "era": "scikit-build-core", "requires": ("scikit-build-core>=1.0",)}
    return tree(**{**own, "backend": "pytorch_build_backend", **changes})


def linux_facts(**changes: Any) -> Facts:
    """A sound Linux workstation with everything a CPU build needs."""
    values: dict[str, Any] = {
        "host": Host(os="linux", arch="x86_64", distribution="Debian GNU/Linux 12", libc="glibc 2.36"),
        "cpu": Cpu(cores=8),
        "memory": Memory(total=32 * GIB, available=30 * GIB),
        "disk": Disk(path=ROOT, mount="/", free=100 * GIB, total=200 * GIB),
        "compilers": (tool("g++", "12.2.0"), tool("gcc", "12.2.0")),
        "tools": (tool("cmake", "3.28.1"), tool("ninja", "1.11.1")),
        "pythons": (python(),),
        "tree": tree(),
    }
    return Facts(**{**values, **changes})


def with_tree(facts: Facts, **changes: Any) -> Facts:
    """The same machine with another state of the checkout."""
    return replace(facts, tree=replace(facts.tree, **changes))


TEMPLATES: Mapping[str, str] = dict.fromkeys(SHELLS, "@{ops}\n")


def settings(values: Mapping[str, Any] | None = None, variables: Mapping[str, str] | None = None) -> Settings:
    """A settings file that says this."""
    return Settings(path="/src/torchbuild.toml", values=values or {}, variables=variables or {})


def ask(facts: Facts | None = None, said: Settings | None = None, **flags: Any) -> Question:
    """Return a question of these facts (else the workstation), settings and flags."""
    return Question(BuildRequest(**flags), facts or linux_facts(), load_catalog(), said or Settings())


def plan_of(facts: Facts | None = None, said: Settings | None = None, **flags: Any) -> BuildPlan:
    """The plan of the same, with templates that hold nothing but the operations."""
    return plan_of_question(ask(facts, said, **flags))


def plan_of_question(question: Question) -> BuildPlan:
    """The plan that a question is answered with, with the same templates."""
    plan = make_plan(question, templates=TEMPLATES, writer="tests")
    assert not [each for each in plan.findings if each.fix and each.status in ("ok", "skipped")]
    return plan


def built(facts: Facts | None = None, result: str = "ok", **flags: Any) -> Facts:
    """Return the machine after a build with these flags, installed in its first Python."""
    facts = facts or linux_facts()
    inputs = dict(plan_of(facts, **flags).inputs)
    first = replace(facts.pythons[0], torch_from=facts.tree.root)
    facts = replace(facts, pythons=(first, *facts.pythons[1:]))
    prefix = "torch" if facts.tree.era == "setuptools" else "build/editable/torch"
    cache = CMakeCache(
        home=facts.tree.root,
        generator="Ninja",
        python=first.executable,
        prefix=f"{facts.tree.root}/{prefix}",
    )
    previous = Previous(
        result=result, inputs=inputs, finished="2026-11-01T10:00:00Z", verified=result == "ok"
    )
    return with_tree(facts, cache=cache, previous=previous, installed=inputs if result == "ok" else None)


def found(findings: tuple[Finding, ...], id: str) -> Finding:
    """The one finding of this name."""
    (finding,) = [finding for finding in findings if finding.id == id]
    return finding


def statuses(findings: tuple[Finding, ...], id: str) -> list[str]:
    """The statuses of all findings of this name, in their order."""
    return [finding.status for finding in findings if finding.id == id]


def request_of(verb: str, **values: Any) -> BuildRequest:
    """The request of a verb with these flags."""
    return request_class(verb)(**values)


def example(name: str, verb: str = "build") -> Any:
    """Return a value that the flag accepts; actions depend on the verb."""
    if name == "action":
        return next(iter(request_class(verb).actions))
    (flag,) = [flag for flag in dataclasses.fields(request_class(verb)) if flag.name == name]
    if flag.default is False:
        return True
    if flag.default == ():
        return ("USE_MKLDNN=0", "CFLAGS=-O0 -g")
    return 3 if name == "jobs" else next(iter(choices_of(flag)), f"some {name}")


def spelled(name: str, value: Any, verb: str = "build") -> list[str]:
    """Return the arguments that set a field: a flag with its value, or a positional argument."""
    if name == "action" or name in request_class(verb).positionals:
        return [str(value)]
    word = flag_name(name)
    if value is True:
        return [word]
    values = value if isinstance(value, tuple) else (value,)
    return [part for one in values for part in (word, str(one))]


def actions(verb: str) -> dict[str, Any]:
    """Return the required fields of a verb, with a value for each."""
    asked = request_class(verb)
    if asked.positionals:
        return {field: f"some.{field}" for field in asked.positionals}
    return {"action": next(iter(asked.actions))} if asked.actions else {}

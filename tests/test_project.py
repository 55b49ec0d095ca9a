"""The files around the package say the same: pyproject.toml, the licence, workflows, pre-commit, README."""

from __future__ import annotations

import ast
import fnmatch
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from tests.support import capabilities
from tests.support.everywhere import is_same_everywhere

pytestmark = pytest.mark.one_system

ROOT: Final = Path(__file__).parent.parent
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS: Final = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED: Final = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
LOCK: Final = ROOT / ".ci/requirements.txt"
INSTALLED: Final = {canonicalize_name(one.name) for one in metadata.distributions()}
# What a job may beyond reading, and for what: to sign, to be a trusted publisher.
MAY: Final = {
    ("release.yml", "build"): {"contents": "read", "id-token": "write", "attestations": "write"},
    ("release.yml", "publish"): {"id-token": "write"},
}


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def steps(workflow: Any) -> list[Any]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_there_are_workflows() -> None:
    assert WORKFLOWS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_little_and_ends(path: Path) -> None:
    workflow = read_yaml(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for name, job in workflow["jobs"].items():
        assert 0 < job["timeout-minutes"] <= 90, name
        assert job.get("permissions") == MAY.get((path.name, name)), name
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_hash(path: Path) -> None:
    """A tag can be moved, a commit cannot; the comment says which release it is."""
    uses = [
        line.strip().removeprefix("- ") for line in path.read_text("utf-8").splitlines() if "uses:" in line
    ]
    assert uses
    assert [line for line in uses if not PINNED.fullmatch(line)] == []


def locked() -> dict[str, tuple[Requirement, list[str]]]:
    """Return the lock: by name each requirement and the hashes of its files."""
    found: dict[str, tuple[Requirement, list[str]]] = {}
    for entry in (
        re.sub(r"^#.*\n", "", LOCK.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", "").splitlines()
    ):
        line, *hashes = entry.split(" --hash=")
        requirement = Requirement(line.strip())
        found[canonicalize_name(requirement.name)] = (requirement, [value.strip() for value in hashes])
    return found


def test_the_lock_has_each_dependency_in_a_version_that_fits_and_its_hashes() -> None:
    """`nox -s lock` writes it; what only one session needs that nothing depends on is not in it."""
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["nox"]]
    wanted += [text for name, group in groups.items() if name not in ("workflows", "docs") for text in group]
    pins = locked()
    for requirement in map(Requirement, wanted):
        pin, hashes = pins[canonicalize_name(requirement.name)]
        (only,) = pin.specifier
        assert only.operator == "=="
        assert requirement.specifier.contains(only.version), requirement
        assert hashes, requirement
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for _, hashes in pins.values() for value in hashes)


BEGINS: Final = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)


def imports(path: Path, wanted: set[str]) -> bool:
    """Say whether a Python file imports one of these; a string in it may hold another file."""
    text = path.read_text("utf-8")
    if wanted.isdisjoint(BEGINS.findall(text)):
        return False  # to parse 900 files takes 3 seconds
    nodes = list(ast.walk(ast.parse(text)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return not wanted.isdisjoint(name.partition(".")[0] for name in names)


def with_what_they_need(names: set[NormalizedName]) -> set[NormalizedName]:
    """Return these packages and, as far as they are installed here, what they depend on, at any depth."""
    found: set[NormalizedName] = set()
    while names:
        found |= names
        lines = [line for name in names if name in INSTALLED for line in metadata.requires(name) or ()]
        needed = [Requirement(line) for line in lines if "extra ==" not in line]
        names = {canonicalize_name(one.name) for one in needed} - found
    return found


def test_the_session_of_types_installs_what_mypy_is_to_read() -> None:
    """A developer's venv has everything, so only a machine where each session has its own shows a gap.

    From Python 3.12 on, the packages that are there have our own, too: its templates stand in its record.
    """
    mypy, groups = PROJECT["tool"]["mypy"], PROJECT["dependency-groups"]
    texts = (PROJECT["project"]["name"], *PROJECT["project"]["dependencies"], *groups["types"])
    asked = [Requirement(text).name for text in texts]
    there = with_what_they_need({canonicalize_name(name.removeprefix("types-")) for name in asked})
    left_out = {name.removesuffix(".*") for entry in mypy["overrides"] for name in entry["module"]} | {"pip"}
    folders = [name for name in mypy["files"] if not name.endswith(".py")]
    missing = {
        module
        for module, packages in metadata.packages_distributions().items()
        if not there & {canonicalize_name(name) for name in packages}
    } - {*sys.stdlib_module_names, *left_out}
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert [path for path in files if imports(path, missing)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_what_there_is(path: Path) -> None:
    sessions = re.findall(
        r"^@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text("utf-8"), re.MULTILINE
    )
    for step in steps(read_yaml(path)):
        words = step.get("run", "").split()
        if "nox" in words and "-s" in words:
            before, _, after = " ".join(words[words.index("-s") + 1 :]).partition(" -- ")
            assert set(before.split()) <= set(sessions)
            assert all((ROOT / word).is_file() or word == "--slow" for word in after.split())
        if words and words[0].startswith(".ci/"):
            assert (ROOT / words[0]).is_file()


def test_every_python_of_the_classifiers_is_tried() -> None:
    prefix = "Programming Language :: Python :: 3."
    classified = [
        text[len(prefix) - 2 :] for text in PROJECT["project"]["classifiers"] if text.startswith(prefix)
    ]
    jobs = read_yaml(ROOT / ".github/workflows/tests.yml")["jobs"]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == classified
    assert set(jobs["windows"]["strategy"]["matrix"]["python"]) <= set(classified)
    assert PROJECT["project"]["requires-python"] == f">={classified[0]}"


def test_what_a_job_must_have_is_a_capability() -> None:
    jobs = read_yaml(ROOT / ".github/workflows/tests.yml")["jobs"]
    needed = {
        name for job in jobs.values() for name in job.get("env", {}).get(capabilities.NEED, "").split(";")
    }
    text = "".join(
        path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)
    )
    assert {name for name in needed - {""} if f'"{name}"' not in text} == set()


def test_a_machine_that_must_have_something_skips_nothing_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(capabilities.NEED, "a thing;another")
    with pytest.raises(RuntimeError, match="no another here"):
        capabilities.needs(False, "another")
    assert capabilities.needs(True, "another").args == (False,)
    assert capabilities.needs(False, "a third").args == (True,)


def test_pre_commit_has_the_versions_of_the_groups() -> None:
    hooks = [hook for repo in read_yaml(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert {hook["entry"].split(" --")[0] for hook in hooks} == {"ruff check", "ruff format"}
    for hook in hooks:
        assert hook["additional_dependencies"] == PROJECT["dependency-groups"]["lint"]


def test_the_readme_has_the_two_commands_that_ci_runs() -> None:
    """`.ci/readme` runs each line that begins so."""
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    commands = [line for line in lines if line.startswith("    python3 -m venv ")]
    assert len(commands) == 2
    assert commands[0].endswith("nox -s build_cpu -- --source samples/minitorch")
    assert commands[1].endswith("nox -s tests")


def test_the_licence_is_the_one_that_the_package_names() -> None:
    (file,) = PROJECT["project"]["license-files"]
    text = (ROOT / file).read_text("utf-8")
    assert (PROJECT["project"]["license"], text.splitlines()[0]) == ("BSD-3-Clause", "BSD 3-Clause License")
    assert "the torchbuild_tasks developers" in text


def test_a_vulnerability_is_reported_where_the_source_is() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    assert f"({PROJECT['project']['urls']['Source']}/security/advisories/new)" in text


def test_git_for_windows_changes_no_line_end() -> None:
    """By default it writes CRLF into a clone; the attribute had been for a folder that was moved."""
    assert "* -text" in (ROOT / ".gitattributes").read_text("utf-8").splitlines()


def test_no_folder_of_tests_is_left_out(pytestconfig: pytest.Config) -> None:
    """By default pytest skips folders called build."""
    patterns = pytestconfig.getini("norecursedirs")
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    parts = {part for folder in folders for part in folder.relative_to(ROOT).parts}
    assert [part for part in sorted(parts) if any(fnmatch.fnmatch(part, each) for each in patterns)] == []


def test_under_windows_what_only_decides_is_left_out_and_nothing_else() -> None:
    """The files that are left out come from the roles of what they test, not from a list."""
    tests = Path(__file__).parent
    files = sorted(tests.rglob("test_*.py"))
    left_out = {file.relative_to(tests).as_posix() for file in files if is_same_everywhere(file)}
    rooms = {name.partition("/")[0] for name in left_out if "/" in name}
    assert not rooms & {"system", "facts", "integration"}
    assert {"plan/test_make.py", "text/test_show.py", "catalog/test_rows.py", "test_layers.py"} <= left_out
    # An act, and decisions with a test that starts a program.
    assert not left_out & {"features/builds/test_named.py", "text/test_words.py"}

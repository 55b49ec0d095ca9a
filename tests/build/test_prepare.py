"""The commands that make a venv: uv's, and that of Python's own module for when uv fails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import linux_facts, plan_of
from tests.support.preflight import RecordingReporter, ledger_of
from torchbuild_tasks.build import prepare
from torchbuild_tasks.build.prepare import (
    agreeing_flags,
    install,
    list_venv_commands,
    prepare_python,
    uses_uv,
    write_envs,
)
from torchbuild_tasks.build.work import Fetching, Work
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import EnvFileError, RequirementsError
from torchbuild_tasks.model import BuildPlan, Command, Environment, Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system import process
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.values import replace


def test_behind_uv_stands_the_module_of_python_for_the_same_folder() -> None:
    argv = (
        "/bin/uv",
        "venv",
        "--seed",
        "--no-project",
        "--python",
        "/bin/python3.11",
        "/src/.torchbuild/venv",
    )
    by_uv, by_module = list_venv_commands(Command(argv=argv, cwd="/src", because="a test"))
    assert by_uv.argv == argv and uses_uv(argv)
    assert by_module.argv == ("/bin/python3.11", "-m", "venv", "/src/.torchbuild/venv")


def test_pythons_own_module_stands_alone() -> None:
    create = Command(argv=("/bin/python3", "-m", "venv", "/v"), cwd="/src", because="a test")
    assert list_venv_commands(create) == (create,) and not uses_uv(create.argv)


def work_of(facts: Facts, plan: BuildPlan, folder: Path) -> Work:
    request = BuildRequest()
    return Work(
        question=Question(request, facts, load_catalog()),
        plan=plan,
        report=RecordingReporter(),
        ledger=ledger_of(request, facts, plan, folder),
        fetching=Fetching(store=folder, lock_file=folder / "lock", net=Net(), require_hashes=False),
    )


@pytest.mark.parametrize("mode", ["develop", "wheel"])
def test_what_a_killed_install_left_is_moved_out_of_the_way_of_a_checkout(tmp_path: Path, mode: Any) -> None:
    half = tmp_path / "site-packages/torch"
    half.mkdir(parents=True)
    (half / "__init__.py").write_text("", "utf-8")
    facts = linux_facts()
    facts = replace(facts, pythons=(replace(facts.pythons[0], half_torch=str(half)),))
    environment = Environment(python=facts.pythons[0].executable, version="3.11.7")
    plan = replace(plan_of(facts), environment=environment, mode=mode)
    work = work_of(facts, plan, tmp_path)
    prepare_python(work)
    assert half.exists() is (mode == "wheel")
    assert half.with_name("torch.kept-1").exists() is (mode == "develop")


@pytest.mark.parametrize("name", ["CMAKE_MAKE_PROGRAM:FILEPATH", "CMAKE_COMMAND:INTERNAL"])
@pytest.mark.parametrize("kept", [True, False])
def test_cmake_runs_again_where_the_venv_before_had_its_ninja(
    name: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / ".torchbuild/venv-3.11/bin/python"
    create = Command(argv=("/bin/python3", "-m", "venv", str(python.parents[1])), cwd="/", because="a test")
    plan = plan_of(linux_facts())
    environment = Environment(python=str(python), version="3.11.7", create=create)
    plan = replace(plan, environment=environment, build_dir=str(tmp_path))
    program = python.with_name("ninja")
    (tmp_path / "CMakeCache.txt").write_text(f"{name}={program}\n", "utf-8")

    def makes_a_venv(work: Work, command: Command) -> None:
        python.parent.mkdir(parents=True)
        if kept:
            program.touch()

    monkeypatch.setattr(prepare, "install", makes_a_venv)
    work = work_of(linux_facts(), plan, tmp_path)
    with work.ledger:
        prepare_python(work)
    assert (tmp_path / "CMakeCache.txt").exists() is kept


@pytest.mark.parametrize(
    ("line", "start", "offers"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full", False),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "", True),
        ("ERROR: something new", "Without network", True),
    ],
)
def test_a_failed_pip_is_explained_by_its_output(
    line: str, start: str, offers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of wheels is offered unless the failure is of this machine alone."""

    def stream(argv: tuple[str, ...], *, on_block: Any, **_: object) -> int:
        on_block(f"ERROR: Could not install packages: {line}\n".encode())
        return 1

    monkeypatch.setattr(process, "stream", stream)
    facts = linux_facts()
    work = work_of(facts, plan_of(facts), tmp_path)
    with work.ledger, pytest.raises(RequirementsError) as raised:
        install(work, Command(argv=("pip", "install", "numpy"), cwd=str(tmp_path), because=""))
    assert raised.value.next_step.startswith(start)
    assert ("--offline --wheels" in raised.value.next_step) is offers


def env_plan(folder: Path, text: str) -> BuildPlan:
    plan = plan_of(linux_facts())
    return replace(plan, env_files=(replace(plan.env_files[0], path=str(folder / "env_set.sh"), text=text),))


def test_an_env_file_that_another_wrote_is_kept(tmp_path: Path) -> None:
    plan = env_plan(tmp_path, "# Written by torchbuild_tasks\n")
    (tmp_path / "env_set.sh").write_text("# mine\n", "utf-8")
    with pytest.raises(EnvFileError, match="did not write it"):
        write_envs(plan)
    assert (tmp_path / "env_set.sh").read_text("utf-8") == "# mine\n"


def test_an_env_file_by_a_template_that_does_not_name_this_tool_is_written_again(tmp_path: Path) -> None:
    for line in ("# a\n", "# b\n"):
        write_envs(env_plan(tmp_path, line))
    assert (tmp_path / "env_set.sh").read_text("utf-8") == "# b\n"


@each_case("target", [None, "c10"])
def test_the_flags_that_agree_to_a_clean_are_ones_that_the_plan_takes(target: str | None) -> None:
    for name in re.findall(r"--(\w+)", agreeing_flags(BuildRequest(target=target))):
        flags: dict[str, Any] = {"target": target, name: True}
        assert plan_of(linux_facts(), **flags).verdict != "refuse"

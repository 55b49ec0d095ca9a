"""What every verb starts from."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs_posix_paths
from tests.support.machines import ask, linux_facts, settings, with_tree
from torchbuild_tasks import context
from torchbuild_tasks.context import require_checkout
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.answers import KEPT_FILE
from torchbuild_tasks.features.builds.named_build import Named, Place
from torchbuild_tasks.model import Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.names import check_own
from torchbuild_tasks.plan.settings import NamedBuild
from torchbuild_tasks.values import dumps, replace


def test_a_verb_that_needs_a_checkout_gets_its_folder_or_says_why_not() -> None:
    question = ask()
    assert require_checkout(question) == Path(question.facts.tree.root)
    to_come = replace(settings(), build=NamedBuild(name="one", line=1), seen_from="/src/pytorch")
    with pytest.raises(UsageError, match="The build one is not there yet"):
        require_checkout(ask(said=to_come))
    with pytest.raises(UsageError, match="/src/pytorch: no such folder"):
        require_checkout(ask(with_tree(linux_facts(), root="/src/pytorch", problem="no such folder")))


@needs_posix_paths
def test_a_build_keeps_answers_a_plan_takes_them_and_a_doctor_asks_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHBUILD_STATE", str(tmp_path / "new/state"))
    command = (os.path.realpath(sys.executable), "--version")
    found = []

    def gather(*, probe: Any, **_: object) -> Facts:
        if probe.answers:
            probe.answers.keep(command, probe.environ, (0, "", ""), asked=time.time() + 60)
        found.append(bool(probe.answers and probe.answers.find(command, probe.environ)))
        return linux_facts()

    monkeypatch.setattr(context, "gather", gather)
    request = BuildRequest(source=str(tmp_path))
    context.look(request, everything=False)
    assert not (tmp_path / "new").exists(), "a plan writes nothing"
    context.look(request, everything=False, keeps=True)
    assert (tmp_path / "new/state" / KEPT_FILE).stat().st_mode & 0o77 == 0
    context.look(request, everything=False)
    context.look(request)
    assert found == [False, False, True, False]
    (tmp_path / "new/state" / KEPT_FILE).unlink()
    (tmp_path / "new/state" / KEPT_FILE).mkdir()
    context.look(request, everything=False, keeps=True)  # it cannot be written: they are asked again


def test_a_described_machine_plans_a_named_build_whose_worktree_is_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, dump = tmp_path / "pytorch", tmp_path / "machine.json"
    texts = {"setup.py": "", "version.txt": "2.6.0a0\n", "CMakeLists.txt": "#", "torch/__init__.py": ""}
    for name, text in texts.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
    (checkout / "c10").mkdir()
    dump.write_text(dumps(linux_facts()))
    build = NamedBuild(name="debug", line=1)
    place = Place(build=build, config="", main=checkout, folder=tmp_path / "pytorch-debug", worktree=True)
    about = Named(settings=settings(), main=checkout, place=place)
    monkeypatch.setattr(context, "read_named_build", lambda *_: about)
    question = context.look(BuildRequest(source=str(checkout), name="debug", facts=str(dump)))
    tree = question.facts.tree
    assert (tree.problem, tree.version, tree.root) == (None, "2.6.0a0", str(place.folder))
    assert question.settings.seen_from == str(checkout)
    monkeypatch.setenv("TORCHBUILD_JBOS", "4")
    described = context.look(BuildRequest(name="debug", facts=str(dump)))
    assert described.facts.tree == linux_facts().tree
    assert "Did you mean TORCHBUILD_JOBS?" in [each.fix for each in check_own(described)]


@needs_posix_paths
def test_a_setting_that_is_not_trusted_is_said_to_name_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trust alone would lead to the next error; a flag that says something else needs no trust."""
    monkeypatch.setenv("TORCHBUILD_STATE", str(tmp_path / "state"))
    gone = tmp_path / "cuda-12.8"
    (tmp_path / "torchbuild.toml").write_text(f'cuda-toolkit = "{gone}"\n', "utf-8")
    request = BuildRequest(source=str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (told,) = context.read_trusted_settings(request).withheld.values()
    assert told[0].why == f"names a folder of programs; {gone} is not there"
    assert not context.read_trusted_settings(dataclasses.replace(request, cuda_toolkit="12.8")).withheld
    gone.mkdir()
    (told,) = context.read_trusted_settings(request).withheld.values()
    assert told[0].why == "names a folder of programs"

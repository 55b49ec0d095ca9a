"""Places of settings that are gone, and a store that takes no files: they stop only what needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cuda import cuda_facts, gpu
from tests.support.machines import base_python, found, linux_facts, plan_of, settings, statuses
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.flag_values import refuse_stale, set_stale_aside
from torchbuild_tasks.model import Facts, Store
from torchbuild_tasks.options import BuildRequest, flag_name, variable_name
from torchbuild_tasks.plan.settings import Settings, Stale
from torchbuild_tasks.values import replace

PLACES = ("wheels", "cache_dir", "patch_dir", "linker")


def stale(name: str) -> Settings:
    return replace(settings(), stale={name: Stale(what=f"{name} is gone", fix="Name another.")})


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("own", [True, False], ids=["of the environment", "of a file"])
def test_a_place_that_is_gone_is_set_aside_with_where_it_was_named(
    name: str, own: bool, tmp_path: Path
) -> None:
    wrong = str(tmp_path if name == "linker" else tmp_path / "file")
    (tmp_path / "file").touch()
    given: dict[str, Any] = {name: wrong, "from_environment": (name,)} if own else {}
    request = BuildRequest(**given)
    said = Settings() if own else settings({name: wrong})
    request, said = set_stale_aside(request, said)
    assert getattr(request, name) is None and name not in said.values
    place = variable_name(name) if own else f"{flag_name(name)[2:]} in /src/torchbuild.toml"
    assert said.stale[name].what.startswith(f"{place}: ")
    assert said.stale[name].fix.endswith(
        f"Or unset {place}." if own else "Or take it out of /src/torchbuild.toml."
    )
    with pytest.raises(UsageError, match=place):
        refuse_stale(said, name)


def test_what_is_there_stays_and_that_of_another_machine_too(tmp_path: Path) -> None:
    for given, said in (
        (BuildRequest(), settings({"wheels": str(tmp_path)})),
        (BuildRequest(facts="machine.json"), settings({"wheels": "/none"})),
        (BuildRequest(wheels="/none"), Settings()),  # a flag, which was checked before
    ):
        assert set_stale_aside(given, said) == (given, said)


@pytest.mark.parametrize(
    ("name", "flags", "status"),
    [
        ("wheels", {}, "error"),
        ("cache_dir", {"cache": "none"}, "warn"),
        ("patch_dir", {}, "error"),
        ("patch_dir", {"no_patches": True}, "warn"),
        ("linker", {}, "error"),
    ],
)
def test_only_a_build_that_needs_it_is_refused(name: str, flags: dict[str, Any], status: str) -> None:
    finding = found(plan_of(said=stale(name), **flags).findings, "place")
    assert (finding.status, finding.fix) == (status, "Name another.")
    assert ("does without" in finding.text) is (status == "warn")


def store(*unpacked: str, writable: bool | None = False) -> Store:
    return Store(folder="/proc/x", writable=writable, unpacked=dict.fromkeys(unpacked, "aa"))


def with_toolkit_to_fetch(held: Store) -> Facts:
    return cuda_facts(gpus=(gpu("8.6"),), store=held)


def test_a_store_that_takes_no_files_stops_what_is_downloaded_into_it() -> None:
    facts = with_toolkit_to_fetch(store())
    plan = plan_of(facts, cuda=True, cuda_toolkit="pypi:12.8")
    finding = found(plan.findings, "place")
    assert finding.status == "error" and "/proc/x cannot be written to" in finding.text
    assert finding.fix == "Name a folder of your own: TORCHBUILD_CACHE=FOLDER"
    held = store(*(each.stored_as for each in plan.artifacts))
    for other, said in ((held, ["warn"]), (store(writable=True), []), (store(writable=None), [])):
        after = plan_of(with_toolkit_to_fetch(other), cuda=True, cuda_toolkit="pypi:12.8")
        assert statuses(after.findings, "place") == said


def test_where_nothing_has_to_be_downloaded_only_what_builds_teach_is_lost() -> None:
    finding = found(plan_of(linux_facts(store=store())).findings, "place")
    assert (finding.status, "the next one knows nothing" in finding.text) == ("warn", True)
    assert statuses(plan_of(linux_facts(store=store(writable=None))).findings, "place") == []


def test_notes_of_venvs_that_cannot_be_made_stop_a_build_that_makes_one() -> None:
    held = replace(store(writable=True), state="/home/me/.local/state/torchbuild-tasks")
    finding = found(plan_of(linux_facts(store=held, pythons=(base_python(),))).findings, "place")
    assert finding.status == "error" and "TORCHBUILD_STATE=FOLDER" in finding.fix
    assert statuses(plan_of(linux_facts(store=held)).findings, "place") == []  # a venv of the user's

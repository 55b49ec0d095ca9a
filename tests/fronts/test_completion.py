"""`completion`: what the scripts offer, by verb and flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.for_each import each_case
from tests.support.powershell import strings
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.fronts import completion
from torchbuild_tasks.fronts.parsing import parse
from torchbuild_tasks.fronts.reporter import ConsoleReporter
from torchbuild_tasks.verbs import SESSIONS


@pytest.mark.parametrize("command", completion.COMMANDS)
@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_shell_has_a_script_of_every_command(shell: str, command: str) -> None:
    text = completion.script(shell, command)
    assert command in text
    assert all(name in text or name.replace("_", "-") in text for name in SESSIONS)


@each_case("command", completion.COMMANDS)
def test_powershell_can_read_its_script(command: str) -> None:
    assert "--help" in strings(completion.script("powershell", command))


def test_values_are_those_of_the_declarations_and_rows() -> None:
    text = completion.script("bash", "torchbuild")
    assert (
        f"_shtab_torchbuild_plan___preset_choices=({' '.join(row.name for row in load_catalog().preset)})"
        in text
    )
    for value in ("latest", "2.9", "pypi:13.0", "8.6", "torchvision", "mold"):
        assert value in text


@pytest.mark.parametrize(
    ("written", "names"),
    [("[builds.beta]\n[builds.alpha]\n", "alpha\nbeta\n"), ("", ""), ("[builds.", "")],
)
def test_the_names_of_builds_come_from_the_settings(
    written: str, names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torchbuild.toml").write_text(written, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    request = parse("completion", ["builds"])
    assert isinstance(request, completion.CompletionRequest)
    assert completion.run(request, ConsoleReporter(quiet=True)).text == names

"""Which template is found, and which is not accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbuild_tasks.catalog import templates
from torchbuild_tasks.catalog.templates import fill, load_templates
from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.options import SHELLS

ROOT = Path(templates.__file__).resolve().parent.parent


def user_template(cwd: Path, text: str, shell: str = "sh") -> Path:
    path = cwd / "env_templates" / f"env_set.{shell}.in"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_templates_load_for_every_shell() -> None:
    found = load_templates()
    assert tuple(found) == SHELLS
    for shell, template in found.items():
        assert {"@{ops}", "@{writer}", "@{checkout}"} <= set(template.split()), shell


def test_the_checkout_of_this_project_is_no_special_folder() -> None:
    assert load_templates(ROOT) == load_templates()


def test_a_folder_without_templates_changes_nothing(tmp_path: Path) -> None:
    assert load_templates(tmp_path) == load_templates()


def test_a_users_template_wins_for_its_shell_alone(tmp_path: Path) -> None:
    user_template(tmp_path, "# mine\n@{ops}\n")
    found = load_templates(tmp_path)
    assert found["sh"] == "# mine\n@{ops}\n"
    assert found["fish"] == load_templates()["fish"]


@pytest.mark.parametrize("text", ["@{ops}\n@{chekout}\n", "@{ops} @{chekout}"])
def test_a_misspelt_name_is_named_with_its_file(tmp_path: Path, text: str) -> None:
    path = user_template(tmp_path, text)
    with pytest.raises(EnvFileError) as caught:
        load_templates(tmp_path)
    assert str(path) in caught.value.what
    assert "@{chekout}" in caught.value.what
    assert "@{checkout}" in caught.value.looked


@pytest.mark.parametrize("text", ["", "echo @ops\n", "@@{ops}\n"])
def test_a_template_that_would_set_nothing_is_refused(tmp_path: Path, text: str) -> None:
    path = user_template(tmp_path, text)
    with pytest.raises(EnvFileError, match="would set nothing") as caught:
        load_templates(tmp_path)
    assert str(path) in caught.value.what


@pytest.mark.parametrize("text", ["@{ops}\n$x = @{ a = 1 }\n", "@{ops\n", "@{}@{ops}"])
def test_an_open_brace_without_a_name_is_refused(tmp_path: Path, text: str) -> None:
    user_template(tmp_path, text, "ps1")
    with pytest.raises(EnvFileError, match="env_set.ps1.in"):
        load_templates(tmp_path)


def test_a_template_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    user_template(tmp_path, "").write_bytes(b"# caf\xe9\n@{ops}\n")
    with pytest.raises(EnvFileError, match="cannot be read"):
        load_templates(tmp_path)


def test_marks_and_line_ends_of_windows_editors_do_not_matter(tmp_path: Path) -> None:
    user_template(tmp_path, "").write_bytes(b"\xef\xbb\xbf# x\r\n@{ops}\r\n")
    assert load_templates(tmp_path)["sh"] == "# x\n@{ops}\n"


def test_a_missing_template_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "__file__", str(tmp_path / "site" / "package" / "catalog/templates.py"))
    with pytest.raises(EnvFileError, match=r"env_set\.sh\.in is missing") as caught:
        load_templates(tmp_path)
    assert len(caught.value.looked) == 3


def test_the_wheels_copy_comes_before_a_neighbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for shell in SHELLS:
        user_template(package, "# wheel\n@{ops}\n", shell)
        user_template(tmp_path, "# neighbour\n@{ops}\n", shell)
    monkeypatch.setattr(templates, "__file__", str(package / "catalog/templates.py"))
    assert load_templates()["sh"].startswith("# wheel")


def test_only_braces_make_a_field() -> None:
    text = '@echo off\n"$@" a@ops.org @(1) @@{ops} @{ops}'
    assert fill(text, {"ops": "@{writer} $x @@"}) == '@echo off\n"$@" a@ops.org @(1) @{ops} @{writer} $x @@'


def test_filling_an_unknown_name_raises() -> None:
    with pytest.raises(EnvFileError, match="@{oops}"):
        fill("@{oops}", {"ops": ""})
    with pytest.raises(EnvFileError):
        fill("@{ ops}", {"ops": ""})

"""Loading an env file with sh: what comes back, what stays out, and what a broken file says."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from torchbuild_tasks.errors import EnvFileError
from torchbuild_tasks.system import shell as module
from torchbuild_tasks.system import shell_sh
from torchbuild_tasks.system.process import Captured
from torchbuild_tasks.system.shell import activate

if sys.platform == "win32":
    pytest.skip("needs sh", allow_module_level=True)
ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "KEPT": "as it was"}


def env_file(folder: Path, text: str) -> Path:
    path = folder / "env_set.sh"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.integration
def test_what_the_file_does_is_what_comes_back(tmp_path: Path) -> None:
    path = env_file(tmp_path, "export NEW='a\nb'\nexport PATH=\"/opt:$PATH\"\nunset GONE\nLOCAL=1\n")
    after = activate(path, environ={**ENVIRON, "GONE": "1"})
    assert after == {**ENVIRON, "NEW": "a\nb", "PATH": "/opt:/usr/bin:/bin"}


@pytest.mark.integration
def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    """Python's own os.environ would have LC_CTYPE here, which the shell did not set."""
    assert activate(env_file(tmp_path, ""), environ=ENVIRON) == ENVIRON
    assert activate(env_file(tmp_path, ""), environ={}) == {}


@pytest.mark.integration
def test_what_a_shell_counts_stays_as_it_was(tmp_path: Path) -> None:
    before = {**ENVIRON, "SHLVL": "7", "PWD": "/elsewhere", "_": "/bin/x", "OLDPWD": "/old"}
    assert activate(env_file(tmp_path, "cd /\n"), environ=before) == before


@pytest.mark.integration
def test_names_that_sh_cannot_spell_stay(tmp_path: Path) -> None:
    before = {**ENVIRON, "BASH_FUNC_module%%": "() { :; }", "a.b-c": "1"}
    assert activate(env_file(tmp_path, "export X=1\n"), environ=before) == {**before, "X": "1"}


@pytest.mark.integration
def test_bytes_that_are_no_text_come_back(tmp_path: Path) -> None:
    before = {**ENVIRON, "LATIN": os.fsdecode(b"caf\xe9"), "TEXT": "caf\u00e9 \U0001f525"}
    assert activate(env_file(tmp_path, ""), environ=before) == before


@pytest.mark.integration
def test_what_the_file_prints_is_not_taken_for_the_environment(tmp_path: Path) -> None:
    path = env_file(tmp_path, "echo '[]'\nenv\nexport X=1\necho done >&2\n")
    assert activate(path, environ=ENVIRON) == {**ENVIRON, "X": "1"}


@pytest.mark.integration
def test_no_rc_file_is_read(tmp_path: Path) -> None:
    rc = tmp_path / "rc"
    rc.write_text("export RC=read\n", encoding="utf-8")
    for name in (".profile", ".bashrc", ".shrc"):
        (tmp_path / name).write_text("export RC=read\n", encoding="utf-8")
    before = {"HOME": str(tmp_path), "ENV": str(rc), "BASH_ENV": str(rc)}
    assert activate(env_file(tmp_path, ""), environ=before) == before


@pytest.mark.integration
def test_variables_that_change_python_do_not_change_the_dump(tmp_path: Path) -> None:
    text = "export PYTHONHOME=/nowhere PYTHONPATH=/nowhere LC_ALL=nothing.such PYTHONIOENCODING=utf-16"
    after = activate(env_file(tmp_path, text + "\nexport X=é\n"), environ=ENVIRON)
    assert (after["PYTHONHOME"], after["LC_ALL"], after["X"]) == ("/nowhere", "nothing.such", "é")


@pytest.mark.integration
def test_a_path_with_blanks_and_quotes_relative_to_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'it\'s $HOME "here"'
    folder.mkdir()
    env_file(folder, "export X=1\n")
    monkeypatch.chdir(folder)
    assert activate(Path("env_set.sh"), environ=ENVIRON)["X"] == "1"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("export X='1\n", "[12]", "nterminated|unexpected EOF"),
        ("fi\n", "[12]", "fi"),
        ("echo broken >&2\nexit 9\n", "9", "broken"),
        ("echo to stdout\nfalse\n", "1", "to stdout"),
        ("set -e\nfalse\nexport X=1\n", "1", ""),
        ("nosuchcommand_\n", "127", "nosuchcommand_"),
        (None, "[1-9]", "env_set.sh"),
    ],
)
def test_a_file_that_fails_is_an_error_with_the_shells_words(
    tmp_path: Path, text: str | None, status: str, said: str
) -> None:
    path = tmp_path / "env_set.sh" if text is None else env_file(tmp_path, text)
    with pytest.raises(EnvFileError, match=rf"env_set\.sh did not load .*exit status {status}") as caught:
        activate(path, environ=ENVIRON)
    assert caught.value.exit_code == 4
    looked = "\n".join(caught.value.looked)
    assert any(word in looked for word in said.split("|"))
    assert str(path) in caught.value.next_step


@pytest.mark.integration
def test_a_file_that_ends_the_shell_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EnvFileError, match="before its environment could be read"):
        activate(env_file(tmp_path, "export X=1\nexit 0\n"), environ=ENVIRON)


@pytest.mark.integration
def test_an_environment_too_large_for_programs_is_an_error(tmp_path: Path) -> None:
    path = env_file(tmp_path, f"export X={'x' * 140_000}\n")
    with pytest.raises(EnvFileError, match="exit status 126"):
        activate(path, environ=ENVIRON)


@pytest.mark.integration
def test_a_file_that_waits_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    begin = time.monotonic()
    with pytest.raises(EnvFileError, match="within 0 seconds"):
        activate(env_file(tmp_path, "sleep 60\n"), environ=ENVIRON)
    assert time.monotonic() - begin < 20


def test_a_long_complaint_is_cut_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, environ: Mapping[str, str], seconds: float) -> Captured:
        return Captured(rc=3, stderr=b"".join(b"line %d \xff\n" % n for n in range(500)))

    monkeypatch.setattr(shell_sh, "load", fails)
    with pytest.raises(EnvFileError, match="exit status 3") as caught:
        activate(Path("/x/env_set.sh"), environ={})
    assert len(caught.value.looked) == 20
    assert caught.value.looked[-1] == "line 499 \ufffd"

from __future__ import annotations

from pathlib import Path

import pytest

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.settings import find_settings, read_settings

TEXT = '''# comment = 1
jobs = 4
"quoted" = true
text = """
cuda = "inside"
"""
[set]
USE_CUDA = 0   # why
dotted.inner = 1
inline = { A = 1, B = { C = 2 } }
list = [
  [1],
  "jobs = 9",
  [2]
]
after = 1

[[failure]]
id = "one"
[failure.more]
deep = 1
[[failure]]
id = "two"
[ table . 'sub' ]
key = 1
'''


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_every_key_has_its_line(tmp_path: Path) -> None:
    found = read_settings(write(tmp_path / "x.toml", TEXT))
    where = {line: number for number, line in enumerate(TEXT.splitlines(), 1)}
    assert found.path == str(tmp_path / "x.toml")
    assert found.data["jobs"] == 4
    assert dict(found.lines) == {
        "jobs": 2,
        "quoted": 3,
        "text": 4,
        "set": 7,
        "set.USE_CUDA": 8,
        "set.dotted": where["dotted.inner = 1"],
        "set.dotted.inner": where["dotted.inner = 1"],
        "set.inline": 10,
        "set.inline.A": 10,
        "set.inline.B": 10,
        "set.inline.B.C": 10,
        "set.list": 11,
        "set.after": 16,
        "failure": 18,
        "failure.0": 18,
        "failure.0.id": where['id = "one"'],
        "failure.0.more": where["[failure.more]"],
        "failure.0.more.deep": where["deep = 1"],
        "failure.1": 22,
        "failure.1.id": where['id = "two"'],
        "table": where["[ table . 'sub' ]"],
        "table.sub": where["[ table . 'sub' ]"],
        "table.sub.key": where["key = 1"],
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\npreset = dev\n", "line 2, key preset: "),
        ("a = 1\n\n[set\n", "line 3: "),
        ("a = 1\na = 2\n", "line 2, key a: "),
        ('a = """\nnever ends\n', "line 2: "),
        ("a =", "line 1, key a: "),
    ],
)
def test_a_syntax_error_names_file_line_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path / "x.toml", text)
    with pytest.raises(UsageError) as caught:
        read_settings(path)
    assert caught.value.what.startswith(f"{path}, {words}")
    assert "(at " not in caught.value.what
    assert caught.value.next_step


def test_other_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'a = "\xe9"')
    for path, word, fix in (
        (tmp_path, "directory", "your user"),
        (tmp_path / "latin.toml", "UTF-8", "Save it as UTF-8"),
        (tmp_path / "no", "No such", "your user"),
    ):
        with pytest.raises(UsageError, match=word) as caught:
            read_settings(path)
        assert fix in caught.value.next_step


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_what_powershell_and_notepad_write_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.toml").write_bytes("jobs = 1\r\npreset = 'ü'\r\n".encode(encoding))
    assert read_settings(tmp_path / "x.toml").data == {"jobs": 1, "preset": "ü"}


def test_a_byte_order_mark_and_an_empty_file_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xef\xbb\xbfjobs = 1\r\n")
    assert read_settings(tmp_path / "x.toml").lines == {"jobs": 1}
    assert read_settings(write(tmp_path / "y.toml", "")).data == {}


def test_the_named_file_then_here_then_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, source = tmp_path / "here", tmp_path / "source"
    here.mkdir()
    monkeypatch.chdir(here)
    assert find_settings(None, str(source)) is None
    write(source / "torchbuild.toml", "a = 'source'")
    assert (find_settings(None, str(source)) or pytest.fail()).data == {"a": "source"}
    write(here / "torchbuild.toml", "a = 'here'")
    found = find_settings(None, str(source))
    assert found is not None
    assert (found.data, found.path) == ({"a": "here"}, str(here / "torchbuild.toml"))
    write(tmp_path / "named.toml", "a = 'named'")
    assert (find_settings("../named.toml", str(source)) or pytest.fail()).data == {"a": "named"}


def test_a_named_file_that_is_missing_is_an_error_and_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "torchbuild.toml", "a = 1")
    with pytest.raises(UsageError) as caught:
        find_settings("other.toml", ".")
    assert "other.toml" in caught.value.what
    assert caught.value.looked == (str(tmp_path / "other.toml"),)


def test_home_may_be_written_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    write(tmp_path / "mine.toml", "a = 1")
    assert (find_settings("~/mine.toml", ".") or pytest.fail()).data == {"a": 1}


def test_a_quote_of_print_is_named(tmp_path: Path) -> None:
    (tmp_path / "torchbuild.toml").write_text("preset = \u201cdev\u201d\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_settings(tmp_path / "torchbuild.toml")
    assert "U+201C" in caught.value.what
    assert caught.value.next_step == 'Write it as: preset = "dev"'


def test_a_build_type_is_no_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        find_settings("Release", ".")
    assert caught.value.next_step == "For a build type write: --build-type Release"


@pytest.mark.parametrize(
    "text", ["jobs = 1\njobs = 2\n", "[set]\nA = 1\nA = 2\n", "[set]\nA = 1\n[set]\nB = 1\n"]
)
def test_what_is_there_twice_is_called_so(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(write(tmp_path / "x.toml", text))
    assert "is there twice" in caught.value.what and "Drop one" in caught.value.next_step


@pytest.mark.parametrize(
    "line", [r'source = "C:\Users\me"', r'source = "C:\src\pytorch"', r'cache-dir = "D:\new\x"']
)
def test_a_backslash_in_double_quotes_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "x.toml", line)
    try:
        read_settings(path)
    except UsageError as error:
        assert "a backslash begins an escape" in error.next_step
        assert error.next_step.endswith(line.replace('"', "'"))
    else:
        pytest.fail(line)

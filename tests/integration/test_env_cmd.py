"""Windows' own cmd: every value comes back equal or is refused, and nothing runs that should not.

One env file carries many values and is called once, so 200 cases cost about a dozen starts
of cmd. Batch files to load have tests/integration/test_env_cmd_load.py.
"""

from __future__ import annotations

import os
import re
import string
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support import cmd
from tests.support.capabilities import needs_cmd
from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.plan.env_files import refusal
from torchbuild_tasks.plan.env_lines import LINE_BYTES, line_bytes, list_room

pytestmark = [pytest.mark.integration, needs_cmd]

BATCH: Final = 40
QUICK: Final = 200
SLOW: Final = 5_000


@pytest.fixture(scope="module")
def reads_utf8(tmp_path_factory: pytest.TempPathFactory) -> bool:
    return cmd.reads_utf8(tmp_path_factory.mktemp("utf8"))


@pytest.fixture
def needs_utf8(reads_utf8: bool) -> None:
    if not reads_utf8:
        pytest.skip("no cmd that reads UTF-8 here")


# ---------------------------------------------------------------- generated values

SIGNS: Final = "\"'%!^&|<>()=;,`~@*?#$:/\\[]{}+- \t"
# Pieces with two spaces between them, characters with one.
PIECES: Final = r"""
""  %%  %PATH%  %PATH:~0,3%  %1  %*  %~dp0  %~f0  %%n  %n  %p  %~nx0  %=x%  %COMSPEC%  %ERRORLEVEL%  !!
!PATH!  !PATH:~0,1!  ^^  ^&  ^  ^%PATH^%  &&  ||  /?  a /? b  a & echo x  ) else (  (x86)  " & echo x & "
2>&1  rem  ::  goto :eof  C:\Program Files (x86)\  \\server\x  -DA="b c"  \"  in (*) do  @echo on
"""
HARD: Final = re.split("  |\n", PIECES.strip())
LETTERS: Final = "é e\u0301 ß 世界 \U0001f525 \U0010ffff \u00a0 \u2028 \ufeff \u0085"
BEYOND: Final = LETTERS.split(" ")
TYPED: Final = st.text(string.ascii_letters + string.digits + string.punctuation + " \t", max_size=12)
CONTROL: Final = st.sampled_from("\x01\x07\n\r\x1a\x1b\x7f")
ASCII: Final = st.one_of(st.sampled_from(SIGNS), st.sampled_from(HARD), TYPED)
WIDE: Final = st.one_of(
    ASCII, st.sampled_from(BEYOND), st.text(st.characters(min_codepoint=0xA0), max_size=6)
)
# A value is drawn as (text, times), so that a failure can be shown in a few words.
LONG: Final = st.tuples(
    st.sampled_from(("x", "%", "a b", '"&" ', "C:\\x;")),
    st.one_of(st.integers(1_000, 9_000), st.integers(LINE_BYTES - 60, LINE_BYTES)),
).map(lambda drawn: (drawn[0], drawn[1] // len(drawn[0])))
REFUSED: Final = st.one_of(
    st.sampled_from((("", 1), ("\0", 1), ("\ud800", 1), ('a"^"', 1), ('" /? ', 1), ("%", 4_096))),
    st.tuples(TYPED, CONTROL, TYPED).map(lambda some: ("".join(some), 1)),
)
NAMES: Final = (
    st.one_of(
        st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=20),
        st.text(string.ascii_uppercase + "_", max_size=8).map("{}PATH".format),
        st.sampled_from(("PATH", "INCLUDE", "LIB", "CMAKE_PREFIX_PATH", "CL", "ERRORLEVEL", "RANDOM")),
    )
    .map(str.upper)
    .filter(lambda name: not name[0].isdigit())
    # Without these no program starts.
    .filter(lambda name: name not in ("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT"))
)
Drawn = list[tuple[str, tuple[str, int]]]


def generated(examples: int) -> settings:
    """No shrinking: the failing operation is named, and each try costs a start of cmd."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=examples < 50,  # a quick run is repeatable, --slow tries others each time
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


def named(values: st.SearchStrategy[tuple[str, int]], size: int) -> st.SearchStrategy[Drawn]:
    return st.lists(st.tuples(NAMES, values), min_size=size, max_size=size, unique_by=lambda pair: pair[0])


def batches(pieces: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[Drawn, ...]]:
    values = st.lists(pieces, min_size=1, max_size=8).map(lambda some: ("".join(some), 1))
    return st.tuples(named(values, BATCH - 5), named(LONG, 3), named(REFUSED, 2))


def operations(drawn: tuple[Drawn, ...]) -> list[EnvOp]:
    """One operation for each name; what was drawn twice counts once."""
    values = {name: unit * times for part in drawn for name, (unit, times) in part}
    return [EnvOp(op="set", name=name, value=value, because=value) for name, value in values.items()]


def is_refusable(op: EnvOp) -> bool:
    """Independent of env_limits.py: what this test lets cmd's file refuse."""
    if not op.value or refusal("bat", EnvOp(op="unset", name=op.name)):
        return True
    if re.search("[\0-\x08\n-\x1f\x7f\ud800-\udfff]", op.value):
        return True
    bare = re.sub(r'^[^"]*"?|"[^"]*("|$)', '"', op.value)  # what follows an odd number of quotes
    if "^" in bare or "/?" in bare:
        return True
    escapes = op.value.count("%") + len(re.findall("[&|<>]", bare))
    return len(op.value.encode()) + escapes + len(op.name) + len('set "="') > LINE_BYTES


def check_batches(pieces: st.SearchStrategy[str], folder: Path, wanted: int) -> tuple[int, int]:
    """Round-trip `wanted` operations and more; how many were carried and how many refused."""
    carried = refused = 0

    @generated(wanted // (BATCH - 20) + 1)
    @given(drawn=batches(pieces))
    def check(drawn: tuple[Drawn, ...]) -> None:
        nonlocal carried, refused
        if carried >= wanted:
            return
        ops = operations(drawn)
        for op in ops:
            assert bool(refusal("bat", op)) == is_refusable(op), (op.name, op.value[:500])
        takes = [op for op in ops if not refusal("bat", op)]
        cmd.write(folder, takes)
        environ = cmd.after(folder).environ
        for op in takes:
            assert environ.get(op.name) == op.value, op.name
        carried, refused = carried + len(takes), refused + len(ops) - len(takes)

    check()
    print(f"{carried} carried, {refused} refused")
    assert refused
    return carried, refused


def test_values_come_back_equal_or_are_refused(tmp_path: Path) -> None:
    carried, _ = check_batches(ASCII, tmp_path, QUICK)
    assert carried >= QUICK


def test_unicode_comes_back_equal_or_is_refused(needs_utf8: None, tmp_path: Path) -> None:
    carried, _ = check_batches(WIDE, tmp_path, QUICK)
    assert carried >= QUICK


@pytest.mark.slow
def test_many_values_come_back_equal_or_are_refused(reads_utf8: bool, tmp_path: Path) -> None:
    carried, _ = check_batches(WIDE if reads_utf8 else ASCII, tmp_path, SLOW)
    assert carried >= SLOW


def test_the_longest_line_is_read(tmp_path: Path) -> None:
    op = EnvOp(op="set", name="NAME", value="x" * (LINE_BYTES - len('set "NAME="')))
    assert line_bytes(op) == LINE_BYTES
    cmd.write(tmp_path, [op])
    assert cmd.after(tmp_path).environ["NAME"] == op.value


# ---------------------------------------------------------------- prepend and unset

ENTRIES: Final = (
    ASCII.map(lambda text: re.sub(r'[;"!^=\0-\x1f\x7f]', "", text))
    .filter(bool)
    .filter(lambda text: refusal("bat", EnvOp(op="prepend", name="X", value=text)) is None)
)
LISTS: Final = st.lists(ASCII.map(lambda text: re.sub(r"[;\0-\x08\n-\x1f\x7f]", "", text)), max_size=4).map(
    ";".join
)


def prepended(value: str, there: str) -> str:
    """What a list should be: the entry, then all the others as they were; case means nothing."""
    others = [entry for entry in there.split(";") if entry.lower() != value.lower()]
    return ";".join([value, *others]) if there else value


def test_prepend_and_unset_for_generated_lists(tmp_path: Path) -> None:
    cases = 0

    @generated(12)
    @given(drawn=st.lists(st.tuples(ENTRIES, LISTS), min_size=10, max_size=10))
    def check(drawn: list[tuple[str, str]]) -> None:
        nonlocal cases
        ops, before, wanted = [], {}, {}
        for at, (value, there) in enumerate(drawn):
            for name, old in (
                (f"L{at}_PATH", there),
                (f"L{at}_DIRS", f"{there};{value};{value};z;{value.upper()}"),
            ):
                ops.append(EnvOp(op="prepend", name=name, value=value, because=value))
                before[name] = old
                wanted[name] = prepended(value, old)
            before[f"GONE{at}"] = there
            ops.append(EnvOp(op="unset", name=f"GONE{at}", because=value))
        cmd.write(tmp_path, ops)
        for times in (1, 2):
            environ = cmd.after(tmp_path, times=times, environ=before).environ
            assert {name: environ.get(name) for name in wanted} == wanted
            assert not [name for name in environ if name.startswith("GONE")]
        cases += len(ops)

    check()
    assert cases >= QUICK


PREPENDS: Final = (
    (None, r"C:\new"),
    ("", r"C:\new"),
    (r"C:\a", r"C:\new;C:\a"),
    (r"C:\a;C:\NEW;C:\newer", r"C:\new;C:\a;C:\newer"),
    (r"C:\new;C:\new;c:\new;C:\new;C:\NEW;C:\new;C:\new;C:\a;C:\new", r"C:\new;C:\a"),
    (r"C:\a;;C:\b;", r"C:\new;C:\a;;C:\b;"),
    (r'"C:\Program Files (x86)\a & b";C:\(c', r'C:\new;"C:\Program Files (x86)\a & b";C:\(c'),
    (r'C:\a" & exit 9 & "C:\b', r'C:\new;C:\a" & exit 9 & "C:\b'),
    (r"C:\100%PATH%\!PATH!\^a;%n;%%p", r"C:\new;C:\100%PATH%\!PATH!\^a;%n;%%p"),
)


def test_prepend(tmp_path: Path) -> None:
    names = [f"LIST{at}" for at in range(len(PREPENDS))]
    cmd.write(tmp_path, [EnvOp(op="prepend", name=name, value=r"C:\new") for name in names])
    before = dict(zip(names, (there for there, _ in PREPENDS), strict=True))
    for times in (1, 2, 3):
        environ = cmd.after(tmp_path, times=times, environ=before).environ
        assert [environ[name] for name in names] == [wanted for _, wanted in PREPENDS]


def test_the_users_path_may_hold_quotes_and_parentheses(tmp_path: Path) -> None:
    users = os.environ["PATH"] + r';"C:\Program Files (x86)\a;b & c";C:\) & exit 9 & (d'
    cmd.write(tmp_path, [EnvOp(op="prepend", name="PATH", value=r"C:\Program Files (x86)\py & co, 100%")])
    done = cmd.after(tmp_path, times=2, environ={"PATH": users})
    assert done.environ["PATH"] == rf"C:\Program Files (x86)\py & co, 100%;{users}"


def test_a_list_that_is_too_long_stays_and_the_file_says_so(tmp_path: Path) -> None:
    op = EnvOp(op="prepend", name="LONG_PATH", value=r"C:\new")
    cmd.write(tmp_path, [op])
    fits = ("C:\\x;" * LINE_BYTES)[: list_room(op)]
    assert cmd.after(tmp_path, environ={op.name: fits}).environ[op.name] == f"{op.value};{fits}"
    done = cmd.run(tmp_path, 'call "%~dp0env_set.bat"', "set RC=%ERRORLEVEL%", environ={op.name: fits + "x"})
    assert (done.environ["RC"], done.environ[op.name]) == ("1", fits + "x")
    assert done.err == "env_set.bat: LONG_PATH is too long for cmd \n"
    assert cmd.helpers(done) == []


def test_operations_happen_in_their_order(tmp_path: Path) -> None:
    ops = [
        EnvOp(op="set", name="X_PATH", value="C:\\one"),
        EnvOp(op="prepend", name="X_PATH", value="C:\\two"),
        EnvOp(op="set", name="Y", value="1"),
        EnvOp(op="unset", name="Y"),
        EnvOp(op="unset", name="NOT_THERE"),
    ]
    cmd.write(tmp_path, ops)
    environ = cmd.after(tmp_path, times=2).environ
    assert (environ["X_PATH"], environ.get("Y")) == ("C:\\two;C:\\one", None)


# ---------------------------------------------------------------- good manners

KINDS: Final = (
    EnvOp(op="unset", name="NOT_THERE"),
    EnvOp(op="prepend", name="NEW_LIST", value=r"C:\Program Files (x86)\a"),
    EnvOp(op="prepend", name="PATH", value=r"C:\b"),
    EnvOp(op="set", name="X", value='1 "a & b" (c) !'),
)


def test_it_succeeds_silently_and_leaves_no_helpers(tmp_path: Path) -> None:
    cmd.write(tmp_path, KINDS)
    done = cmd.after(tmp_path, "cmd /d /c exit 3")
    assert (done.out, done.err) == ("", "")
    assert cmd.helpers(done) == []


@pytest.mark.parametrize(
    "around", ["if 1==1 (\n{}\n)", "for %%n in (1 2) do {}", "for %%e in (1) do (\n{}\n)"]
)
def test_it_may_be_called_inside_a_block(tmp_path: Path, around: str) -> None:
    cmd.write(tmp_path, KINDS)
    done = cmd.run(tmp_path, *around.format('call "%~dp0env_set.bat"').splitlines())
    assert (done.out, done.err, done.environ["X"]) == ("", "", KINDS[-1].value)
    assert done.environ["NEW_LIST"] == KINDS[1].value


def test_it_sets_nothing_where_delayed_expansion_is_on(tmp_path: Path) -> None:
    cmd.write(tmp_path, KINDS)
    done = cmd.run(
        tmp_path, "setlocal EnableDelayedExpansion", 'call "%~dp0env_set.bat"', 'set "RC=!ERRORLEVEL!"'
    )
    assert (done.environ["RC"], done.environ.get("X")) == ("1", None)
    assert "delayed expansion is on" in done.err


def test_nothing_in_the_file_runs(tmp_path: Path) -> None:
    around = (
        "& {} &",
        "| {}",
        '" & {} & "',
        ") & {} & (",
        "\n{}\n",
        "%COMSPEC% /c {}",
        "' & {} '",
        "^& {}",
        "&& {} ||",
    )
    tries = [text.format(r'type nul >"%~dp0canary"') for text in around]
    ops = [
        EnvOp(op=op, name=f"{op.upper()}{at}", value=text, because=text)
        for at, text in enumerate(tries)
        for op in ("set", "prepend", "unset")
    ]
    takes = [op for op in ops if not refusal("bat", op)]
    assert len(takes) > len(tries)
    cmd.write(tmp_path, takes, checkout=tries[4])
    environ = cmd.after(
        tmp_path, times=2, environ={f"PREPEND{at}": text for at, text in enumerate(tries)}
    ).environ
    for op in takes:
        assert op.op != "set" or environ[op.name] == op.value
    assert not (tmp_path / "canary").exists()


# ---------------------------------------------------------------- code pages

WORDS: Final = EnvOp(op="set", name="WORDS", value="Grüße, 世界 \U0001f525 100% & (x86)")
PAGE: Final = r"""for /f "tokens=2 delims=:." %%c in ('%SystemRoot%\System32\chcp.com') do set PAGE{}=%%c"""


def test_text_that_is_not_ascii_is_read_or_nothing_is_set(reads_utf8: bool, tmp_path: Path) -> None:
    cmd.write(tmp_path, [EnvOp(op="set", name="FIRST", value="1"), WORDS])
    done = cmd.run(tmp_path, 'call "%~dp0env_set.bat"', 'set "RC=%ERRORLEVEL%"', flags=cmd.hidden())
    assert cmd.helpers(done) == []
    if reads_utf8:
        assert (done.environ["RC"], done.environ["WORDS"], done.err) == ("0", WORDS.value, "")
    else:
        assert (done.environ["RC"], "FIRST" in done.environ) == ("1", False)
        assert "nothing was set, for cmd cannot read UTF-8 here" in done.err


def test_the_code_page_is_put_back(tmp_path: Path) -> None:
    """In a hidden console of its own: the code page is restored after success and after a failure."""
    cmd.write(tmp_path, [WORDS])
    lines = (
        r"%SystemRoot%\System32\chcp.com 850 >nul",
        PAGE.format(1),
        'call "%~dp0env_set.bat"',
        PAGE.format(2),
    )
    done = cmd.run(tmp_path, *lines, flags=cmd.hidden())
    assert (done.environ["PAGE1"].strip(), done.environ["PAGE2"].strip()) == ("850", "850")

"""Real shells: every generated value comes back equal or is refused by name.

One env file carries many values and is sourced once, so 200 cases cost about a dozen
shells. What the environment holds afterwards is read by the kernel's own account.
"""

from __future__ import annotations

import shutil
import string
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.capabilities import skip_without
from torchbuild_tasks.catalog.templates import load_templates
from torchbuild_tasks.model import EnvOp
from torchbuild_tasks.plan.env_files import LINUX_BYTES, encode, file_name, refusal, render

pytestmark = pytest.mark.integration

TEMPLATES: Final = load_templates()
BATCH: Final = 25
QUICK: Final = 200
SLOW: Final = 5_000


class Shell(NamedTuple):
    """How to start a real shell without its rc files, and which env file is for it."""

    argv: tuple[str, ...]
    kind: str
    locale: str = "C.UTF-8"


SHELLS: Final = {
    "bash": Shell(("bash", "--noprofile", "--norc", "-c"), "sh"),
    "dash": Shell(("dash", "-c"), "sh"),
    "fish": Shell(("fish", "--no-config", "-c"), "fish"),
    "fish in the C locale": Shell(("fish", "--no-config", "-c"), "fish", locale="C"),
    "zsh": Shell(("zsh", "-f", "-c"), "sh"),
    "busybox": Shell(("busybox", "sh", "-c"), "sh"),
}
# The env file's name comes as $1 ($argv[1]); what follows the sourcing is the reader.
READ: Final = "exec /bin/cat /proc/self/environ"
SOURCE: Final = {"sh": '. "$1"', "fish": "source $argv[1]"}


@pytest.fixture(params=list(SHELLS))
def shell(request: pytest.FixtureRequest) -> Shell:
    found: Shell = SHELLS[request.param]
    if shutil.which(found.argv[0]) is None:
        skip_without(found.argv[0])
    return found


def write(folder: Path, kind: str, ops: Sequence[EnvOp], *, checkout: str = "/src/pytorch") -> Path:
    path = folder / file_name(kind)
    text = render(kind, TEMPLATES[kind], ops, checkout=checkout, writer="the tests")
    path.write_bytes(encode(kind, text))
    return path


def run(
    shell: Shell, script: str, path: Path, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    argv = [shutil.which(shell.argv[0]) or "", *shell.argv[1:], script]
    argv += ["sh", str(path)] if shell.kind == "sh" else [str(path)]
    base = {"PATH": "/usr/bin:/bin", "HOME": str(path.parent), "LC_ALL": shell.locale}
    return subprocess.run(
        argv, env={**base, **(environ or {})}, cwd=path.parent, capture_output=True, timeout=60, check=False
    )


def after(
    shell: Shell, path: Path, environ: Mapping[str, str] | None = None, *, times: int = 1, before: str = ""
) -> dict[str, str]:
    """The environment that programs get once `path` was sourced, `times` times."""
    done = run(shell, "\n".join([before, *[SOURCE[shell.kind]] * times, READ]), path, environ)
    assert done.returncode == 0, done.stderr[-2_000:]
    entries = (entry.decode() for entry in done.stdout.split(b"\0") if entry)
    return dict(entry.split("=", 1) for entry in entries)


def generated(examples: int) -> settings:
    """No shrinking: the failing operation is named, and each try costs a shell."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


# ---------------------------------------------------------------- generated values

HARD: Final = (
    *"'\"$`%!&^|<>()[]{}*?~#;=-+,:/\\@ \t\n\r",
    *(
        "\r\n",
        "\\\n",
        "''",
        "\\'",
        "'\\''",
        '"$"',
        "$(",
        "${",
        "$((",
        "`id`",
        "%PATH%",
        "!!",
        "^^",
        "&&",
        "||",
    ),
    *("~root", "-n", "--", "$'\\n'", "<(id)", "\\x41", "\\u00e9", "%%", "*/", "EOF", "\n# ", "\nexit 3\n"),
    *("\x01", "\x07", "\x08", "\x0b", "\x0c", "\x1a", "\x1b[31m", "\x1e", "\x1f", "\x7f", "\x85", "\x9b"),
    *(
        "é",
        "e\u0301",
        "\u0301",
        "ß",
        "ﬁ",
        "İ",
        "世界",
        "\U0001f525",
        "\U0001f468\u200d\U0001f469",
        "\U0010ffff",
    ),
    *(
        "\u00a0",
        "\u2028",
        "\u202e",
        "\ufeff",
        "\ufdd0",
        "\ufffe",
        "\ufffd",
        "\ue000",
        "\uf600",
        "\uf6ff",
        "\uf8ff",
    ),
    *("\u0081", "\u0083", "\u0088", "\u008f", "\u00ff", "\u0141", "\u20ac", "‘", "’"),
)
PIECES: Final = st.one_of(
    st.sampled_from(HARD),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
    st.text(string.printable, max_size=12),
)
ONCE: Final = st.one_of(
    st.lists(PIECES, max_size=8).map("".join),
    st.builds(
        "{0}{1}{0}".format, st.sampled_from([" ", "\t", "\n", "-", "~", "'", '"', "\\", ":", ""]), PIECES
    ),
)
# A value is drawn as (unit, times, end), so that a failure can be shown in a few words.
VALUES: Final = st.tuples(ONCE, st.just(1), st.just(""))
# Rare on purpose: nothing but NUL, lone surrogates and length may be refused below.
REFUSED: Final = st.tuples(PIECES, st.just(1), st.sampled_from(["\0", "\ud800", "\udce9", "a\0b"]))
SIZES: Final = (4_096, 65_536, LINUX_BYTES - 64, LINUX_BYTES, LINUX_BYTES + 9)
LONG: Final = st.sampled_from(["x", "' ", "\\", "é", "\U0001f525", "$(id)\n", "a:b"]).flatmap(
    lambda unit: st.tuples(
        st.just(unit), st.sampled_from([size // len(unit.encode()) for size in SIZES]), PIECES
    )
)
SPECIAL: Final = (
    "PATH",
    "HOME",
    "IFS",
    "LC_ALL",
    "LANG",
    "CMAKE_PREFIX_PATH",
    "LD_LIBRARY_PATH",
    "FPATH",
    "PS4",
)
NAMES: Final = st.one_of(
    st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=20),
    st.text(string.ascii_uppercase + "_", max_size=8).map("{}PATH".format),
    st.sampled_from(SPECIAL),
).filter(lambda name: not name[0].isdigit())


Drawn = tuple[str, tuple[str, int, str]]


def named(values: st.SearchStrategy[tuple[str, int, str]], size: int) -> st.SearchStrategy[list[Drawn]]:
    return st.lists(st.tuples(NAMES, values), min_size=size, max_size=size, unique_by=lambda pair: pair[0])


# Few long ones in a batch: all the environment together has a limit, too (a quarter of the stack).
BATCHES: Final = st.tuples(named(VALUES, BATCH - 3), named(LONG, 2), named(REFUSED, 1))


def operations(drawn: tuple[list[Drawn], ...]) -> list[EnvOp]:
    """One operation for each name; what was drawn twice counts once."""
    values = {name: unit * times + end for part in drawn for name, (unit, times, end) in part}
    return [EnvOp(op="set", name=name, value=value, because=value) for name, value in values.items()]


def is_refusable(shell: Shell, op: EnvOp) -> bool:
    """Independent of env_limits.py: what this test lets a shell refuse."""
    no_text = "\0" in op.value or not op.value.isascii() and any(0xD800 <= ord(c) <= 0xDFFF for c in op.value)
    if no_text or refusal(shell.kind, EnvOp(op="unset", name=op.name)):
        return True
    if shell.kind == "fish" and op.name in ("PATH", "MANPATH", "CDPATH") and "" in op.value.split(":"):
        return True
    return len(op.name) + len(op.value.encode()) + 2 > LINUX_BYTES


def check_batches(shell: Shell, folder: Path, wanted: int) -> tuple[int, int]:
    """Round-trip `wanted` operations and more; how many were carried and how many refused."""
    carried = refused = 0

    @generated(wanted // (BATCH - 5) + 1)
    @given(drawn=BATCHES)
    def check(drawn: tuple[list[Drawn], ...]) -> None:
        nonlocal carried, refused
        ops = operations(drawn)
        for op in ops:
            assert bool(refusal(shell.kind, op)) == is_refusable(shell, op), op.name
        takes = [op for op in ops if not refusal(shell.kind, op)]
        environ = after(shell, write(folder, shell.kind, takes))
        for op in takes:
            assert environ.get(op.name) == op.value, op.name
        carried, refused = carried + len(takes), refused + len(ops) - len(takes)

    check()
    return carried, refused


def test_values_come_back_equal_or_are_refused(shell: Shell, tmp_path: Path) -> None:
    carried, refused = check_batches(shell, tmp_path, QUICK)
    print(f"{carried} carried, {refused} refused")
    assert carried >= QUICK
    assert refused


@pytest.mark.slow
def test_many_values_come_back_equal_or_are_refused(shell: Shell, tmp_path: Path) -> None:
    carried, refused = check_batches(shell, tmp_path, SLOW)
    print(f"{carried} carried, {refused} refused")
    assert carried >= SLOW


def test_the_limit_is_where_the_kernel_has_it(shell: Shell, tmp_path: Path) -> None:
    room = LINUX_BYTES - len("NAME=\0")
    op = EnvOp(op="set", name="NAME", value="x" * room)
    assert after(shell, write(tmp_path, shell.kind, [op]))["NAME"] == op.value
    longer = EnvOp(op="set", name="NAME", value="x" * (room + 1))
    assert refusal(shell.kind, longer)
    path = write(tmp_path, shell.kind, [op])
    path.write_bytes(path.read_bytes().replace(b"xx", b"xxx", 1))
    assert run(shell, f"{SOURCE[shell.kind]}\n{READ}", path).returncode != 0


# ---------------------------------------------------------------- prepend and unset

ENTRIES: Final = PIECES.filter(lambda text: ":" not in text and "\0" not in text)
LISTS: Final = st.lists(ENTRIES, max_size=4).map(":".join)


def prepended(value: str, there: str) -> str:
    """What a list should be: the entry, then all the others as they were."""
    return ":".join([value, *[entry for entry in there.split(":") if there and entry != value]])


def inherited(shell: Shell, text: str) -> str:
    """Return a value as the shell inherits it: fish garbles it in the C locale, before it reads a file."""
    return text.encode("ascii", "ignore").decode() if shell.locale == "C" else text


def test_prepend_and_unset_for_generated_lists(shell: Shell, tmp_path: Path) -> None:
    cases = 0

    @generated(20)
    @given(drawn=st.lists(st.tuples(ENTRIES.filter(bool), LISTS), min_size=10, max_size=10))
    def check(drawn: list[tuple[str, str]]) -> None:
        nonlocal cases
        ops, before, wanted = [], {}, {}
        for at, (value, there) in enumerate(drawn):
            for name, old in ((f"L{at}_PATH", there), (f"L{at}_DIRS", f"{there}:{value}:/z:{value}")):
                ops.append(EnvOp(op="prepend", name=name, value=value, because=value))
                before[name] = inherited(shell, old)
                wanted[name] = prepended(value, before[name])
            before[f"GONE{at}"] = there
            ops.append(EnvOp(op="unset", name=f"GONE{at}", because=value))
        path = write(tmp_path, shell.kind, ops)
        for times in (1, 2):
            environ = after(shell, path, before, times=times)
            assert {name: environ.get(name) for name in wanted} == wanted
            assert not [name for name in environ if name.startswith("GONE")]
        cases += len(ops)

    check()
    assert cases >= QUICK


@pytest.mark.parametrize("name", ["PATH", "CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "XDG_DATA_DIRS"])
@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        (None, "/opt/new:/opt/it's $HOME"),
        ("", "/opt/new:/opt/it's $HOME"),
        ("/usr/bin:/bin", "/opt/new:/opt/it's $HOME:/usr/bin:/bin"),
        ("/a b:/*:/?x:~:$HOME", "/opt/new:/opt/it's $HOME:/a b:/*:/?x:~:$HOME"),
        ("/bin:/opt/new:/opt/newer", "/opt/new:/opt/it's $HOME:/bin:/opt/newer"),
        ("/opt/new:/opt/new:/opt/new", "/opt/new:/opt/it's $HOME"),
    ],
)
def test_prepend(shell: Shell, tmp_path: Path, name: str, there: str | None, wanted: str) -> None:
    ops = [EnvOp(op="prepend", name=name, value=value) for value in ("/opt/it's $HOME", "/opt/new")]
    path = write(tmp_path, shell.kind, ops)
    # Unset or empty by the shell's own hand: from an environment zsh and fish fill an empty PATH.
    starts = {None: ("unset {}", "set -e {}"), "": ("export {}=", "set -gx {}")}
    start = starts.get(there, ("", ""))[shell.kind == "fish"].format(name)
    environ = {name: there} if there else {}
    for times in (1, 2, 3):
        assert after(shell, path, environ, times=times, before=start)[name] == wanted


def test_unset_takes_out_what_is_there_and_minds_nothing_that_is_not(shell: Shell, tmp_path: Path) -> None:
    ops = [EnvOp(op="unset", name=name) for name in ("THERE", "EMPTY", "NOT_THERE", "SOME_PATH")]
    path = write(tmp_path, shell.kind, ops)
    environ = after(shell, path, {"THERE": "1", "EMPTY": "", "SOME_PATH": "a:b"}, times=2)
    assert not {op.name for op in ops} & set(environ)


def test_operations_happen_in_their_order(shell: Shell, tmp_path: Path) -> None:
    ops = [
        EnvOp(op="set", name="X_PATH", value="/one"),
        EnvOp(op="prepend", name="X_PATH", value="/two"),
        EnvOp(op="set", name="Y", value="1"),
        EnvOp(op="unset", name="Y"),
        EnvOp(op="set", name="Z", value=""),
    ]
    environ = after(shell, write(tmp_path, shell.kind, ops), times=2)
    assert (environ["X_PATH"], environ.get("Y"), environ["Z"]) == ("/two:/one", None, "")


def test_fish_says_so_when_a_universal_variable_would_stay(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        skip_without("fish")
    with_config = Shell(("fish", "-c"), "fish")
    path = write(tmp_path, "fish", [EnvOp(op="unset", name="EVERYWHERE")])
    run(with_config, "set -Ux EVERYWHERE 1", path)
    done = run(with_config, "source $argv[1]", path)
    assert done.returncode == 1
    assert b"set -e -U EVERYWHERE" in done.stderr
    assert run(with_config, "echo $EVERYWHERE", path).stdout == b"1\n"


# ---------------------------------------------------------------- good manners

KINDS: Final = (
    EnvOp(op="unset", name="NOT_THERE"),
    EnvOp(op="prepend", name="NEW_LIST", value="/opt/a"),
    EnvOp(op="prepend", name="PATH", value="/opt/b"),
    EnvOp(op="set", name="X", value="1"),
)


def test_strict_callers_survive(shell: Shell, tmp_path: Path) -> None:
    strict = "" if shell.kind == "fish" else "set -eu"
    environ = after(shell, write(tmp_path, shell.kind, KINDS), times=2, before=strict)
    assert (environ["X"], environ["NEW_LIST"]) == ("1", "/opt/a")


def test_it_succeeds_silently_and_leaves_no_helpers(shell: Shell, tmp_path: Path) -> None:
    path = write(tmp_path, shell.kind, KINDS)
    listing = "set --names; functions --names" if shell.kind == "fish" else "set"
    fails_before = (
        f"false; {SOURCE[shell.kind]}; or echo FAILED"
        if shell.kind == "fish"
        else (f"false; {SOURCE[shell.kind]} || echo FAILED")
    )
    done = run(shell, f"{fails_before}\n{listing}", path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"torchbuild__" not in done.stdout
    assert b"FAILED\n" not in done.stdout


def test_nothing_in_the_file_runs(shell: Shell, tmp_path: Path) -> None:
    touch = f"/usr/bin/touch {tmp_path}/canary"
    around = (
        *("$({})", "`{}`", "({})", "'; {}; '", '"; {}; "', "\n{}\n", "\r\n{}\r\n", "\\'; {}; #", "& {} &"),
        *("| {}", "${{x:=$({})}}", "$'\\n'{}", "x\\\n{}\n", "<({})", "!{}", "a[$({})]"),
    )
    tries = [text.format(touch) for text in around]
    ops = [
        EnvOp(op=op, name=f"{op.upper()}{at}_PATH", value=text, because=text)
        for at, text in enumerate(tries)
        for op in ("set", "prepend", "unset")
        if ":" not in text or op != "prepend"
    ]
    path = write(tmp_path, shell.kind, ops, checkout=tries[5])
    environ = after(shell, path, {f"PREPEND{at}_PATH": text for at, text in enumerate(tries)}, times=2)
    assert [environ[f"SET{at}_PATH"] for at in range(len(tries))] == tries
    assert not (tmp_path / "canary").exists()

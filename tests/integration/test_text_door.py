"""Every verb over a tree that acts on terminals and holds secrets, wherever it can: neither gets out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs, needs_posix_paths, takes_odd_names
from tests.support.sample import materialise
from torchbuild_tasks.fronts.parsing import parse
from torchbuild_tasks.fronts.run import run_verb
from torchbuild_tasks.system import process
from torchbuild_tasks.text.visible import UNSEEN
from torchbuild_tasks.verbs import VERBS

# What is escaped is the same everywhere (tests/text); Windows refuses most of these names and variables.
pytestmark = [pytest.mark.integration, needs_posix_paths]

POISON = "\x1b]52;c;Y3VybA==\x07\x1b[2J\x9b31m\u202eevil\u2066\x7f"
TOML_POISON = json.dumps(POISON)[1:-1]
SECRET = "Zq9xK3vT7Zq9xK3v"
NAMED = "hunter2hunter2"
LOG = f"""[1/2] Building CXX object a{POISON}.o
FAILED: a{POISON}.o
g++ -DTOKEN={SECRET} -c x{POISON}
/src/a{POISON}.cpp:1:2: error: expected {POISON} here
ninja: build stopped: subcommand failed.
"""
# The words of each verb; what cannot work here has an error to show.
WORDS = {
    "doctor": (),
    "bootstrap": (),
    "plan": ("--verbose",),
    "env": (),
    "build": ("--dry-run",),
    "diagnose": ("log.txt",),
    "support": ("--out", "support.zip"),
    "report": ("--out", "report.html", "--trace", "trace.json"),
    "clean": ("--dry-run",),
    "verify": (),
    "trust": ("--list",),
    "helpers": ("list",),
    "cache": ("stats",),
    "cluster": ("status",),
    "versions": (),
    "builds": ("list",),
    "replay": ("build/torchbuild-manifest.json",),
    "compare": ("build/torchbuild-manifest.json", "build/torchbuild-manifest.json"),
    "source": ("status",),
    "debug-config": ("--dry-run",),
    "test": ("--dry-run",),
    "bench": ("--dry-run",),
    "run": ("--", "true"),
    "shell": (),
    "python": ("--", "-c", "1"),
    "container": ("write",),
    "package": ("wheel",),
    "config": (),
    "publish": (f"folder{POISON}", "--dry-run"),
    "completion": ("bash",),
    "bisect": ("--good", f"a{POISON}", "--bad", "b", "--", "true"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("door")
    root = materialise(folder / f"tree{POISON if takes_odd_names(folder) else ''}", git=True)
    (root / "version.txt").write_text(f"2.14.0a0{POISON}\n", "utf-8")
    (root / "torchbuild.toml").write_text(
        f'[set]\nUSE_FOO = "x{TOML_POISON}"\nDEPLOY_TOKEN = "{SECRET}"\n'
        f'[mirrors]\n"https://github.com/" = "https://ada:{SECRET}@mirror.invalid/"\n'
        f'[builds.one]\nref = "{TOML_POISON}"\n',
        "utf-8",
    )
    (root / ".gitmodules").write_text(
        f'[submodule "a{POISON}"]\n\tpath = third_party/x{POISON}\n\turl = https://ada:{SECRET}@x.invalid/y\n',
        "utf-8",
    )
    if takes_odd_names(folder):
        (root / "torch" / f"a{POISON}.py").write_text("x", "utf-8")
    build = root / "build"
    build.mkdir()
    manifest = {
        "schema": 3,
        "env": {},
        "result": f"failed{POISON}",
        "inputs": {"CC": POISON, "variable DEPLOY_TOKEN": SECRET},
        "finished": POISON,
        "repositories": POISON,
    }
    for name in ("torchbuild-record.json", "torchbuild-manifest.json"):
        (build / name).write_text(json.dumps(manifest), "utf-8")
    (build / "CMakeCache.txt").write_text(
        f"CMAKE_HOME_DIRECTORY:INTERNAL={root}\nCMAKE_GENERATOR:INTERNAL=N{POISON}\nCMAKE_BUILD_TYPE:STRING={POISON}\n",
        "utf-8",
    )
    (build / ".ninja_log").write_text(f"# ninja log v5\n0\t900\t1\ta{POISON}.o\t1f\n", "utf-8")
    (root / "log.txt").write_text(LOG, "utf-8")
    logs = root / ".torchbuild" / "logs"
    logs.mkdir(parents=True)
    (logs / "build.log").write_text(LOG, "utf-8")
    return root


def environ(tree: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    home = str(tree.parent)
    own = {"HOME": home, "USERPROFILE": home, "TORCHBUILD_CACHE": f"{home}/cache", "PYTHONUTF8": "1"}
    return {
        **kept,
        **own,
        "MY_PASS": NAMED,
        "USE_BAR": f"1{POISON}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


def argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "torchbuild_tasks.fronts.console", *words]


def run(tree: Path, verb: str, *more: str) -> str:
    done = subprocess.run(
        argv(verb, *WORDS[verb][: (None if "--" not in WORDS[verb] else 4)], *more, "--source", "."),
        cwd=tree,
        env=environ(tree),
        capture_output=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    text = (done.stdout + done.stderr).decode("utf-8").replace("\r\n", "\n")
    assert "Traceback" not in text
    return text


def check(text: str) -> None:
    assert not UNSEEN.search(text), UNSEEN.findall(text)
    assert SECRET not in text and NAMED not in text


PRINTS = ("doctor", "diagnose", "env", "source")


def test_every_verb_has_words() -> None:
    assert set(WORDS) == set(VERBS)


# Those that a quick run tries: a plan, a log, names of files, what a build left.
QUICK = ("plan", "diagnose", "source", "compare")


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=() if verb in QUICK else pytest.mark.slow) for verb in WORDS]
)
def test_nothing_that_acts_and_no_secret_is_printed(tree: Path, verb: str) -> None:
    text = run(tree, verb)
    assert text
    check(text)


@pytest.mark.parametrize("verb", ["plan", *(pytest.param(each, marks=pytest.mark.slow) for each in PRINTS)])
def test_json_says_the_same_to_a_program(tree: Path, verb: str) -> None:
    text = run(tree, verb, "--json")
    check(text)
    assert "\\u001b" in text or verb == "env"
    json.loads(text[: text.rindex("}") + 1])


def test_what_is_written_holds_neither(tree: Path) -> None:
    run(tree, "report")
    run(tree, "support")
    for name in ("report.html", "trace.json"):
        check((tree / name).read_text("utf-8"))
    with zipfile.ZipFile(tree / "support.zip") as archive:
        for name in archive.namelist():
            text = archive.read(name).decode("utf-8")
            check(text)
            if name.endswith(".json"):
                json.loads(text)
    if sys.platform != "win32":  # where the rights of the user's profile say who may read it
        for name in ("report.html", "support.zip"):
            assert (tree / name).stat().st_mode & 0o077 == 0, name


def test_an_env_file_holds_the_values_for_one_users_eyes(tree: Path, tmp_path: Path) -> None:
    root = materialise(tmp_path / "plain")
    run(root, "env", "--env-shell", "sh", "--config", str(tree / "torchbuild.toml"))
    file = root / "env_set.sh"
    lines = file.read_text("utf-8").splitlines()
    assert any(f"x{POISON}" in line for line in lines) and any(SECRET in line for line in lines)
    check("\n".join(line for line in lines if line.startswith("#")))
    assert sys.platform == "win32" or file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "verb", ["plan", *(pytest.param(one, marks=pytest.mark.slow) for one in ("doctor", "env", "source"))]
)
def test_no_secret_is_in_the_command_line_of_a_program(
    tree: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody on the machine can list them."""
    seen: list[str] = []
    door = process._open

    def start(argv: Sequence[str], *how: Any, **more: Any) -> Any:
        seen.extend([argv] if isinstance(argv, str) else argv)
        return door(argv, *how, **more)

    monkeypatch.setattr(process, "_open", start)
    monkeypatch.chdir(tree)
    for name, value in environ(tree).items():
        monkeypatch.setenv(name, value)
    run_verb(verb, parse(verb, (*WORDS[verb], "--source", ".", "--set", f"MY_TOKEN={SECRET}")))
    assert len(seen) > 5
    assert not [word for word in seen if SECRET in word or NAMED in word]


@needs(sys.platform != "win32", "pty")
@pytest.mark.parametrize("verb", ["diagnose", *(pytest.param(one, marks=pytest.mark.slow) for one in PRINTS)])
def test_a_terminal_gets_our_own_colours_alone(tree: Path, verb: str) -> None:
    import pty

    parent, child = pty.openpty()
    words = argv(verb, *WORDS[verb], "--source", ".")
    with subprocess.Popen(
        words, cwd=tree, env=environ(tree), stdin=child, stdout=child, stderr=child
    ) as process:
        os.close(child)
        said = b""
        try:
            while data := os.read(parent, 1 << 16):
                said += data
        except OSError:  # Linux: the other end was closed
            pass
        process.wait()
    os.close(parent)
    text = said.decode("utf-8").replace("\r\n", "\n")
    # What rich draws a live line with: colours, the cursor hidden and shown, lines erased and gone back over.
    check(re.sub(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[12]?K|\x1b\[1A|\r", "", text))
    assert "evil" in text

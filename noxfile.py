"""This repository's own sessions, and the torch sessions that anyone's noxfile can have.

nox -s build_cpu -- --source samples/minitorch      build and verify torch
nox -s tests                                        this project's tests
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

sys.path.insert(0, str(Path(__file__).parent))  # nox does not put the repository on the path

import torchbuild_tasks

nox.options.sessions = ["tests", "lint", "types"]
nox.options.default_venv_backend = "venv"

LOCK = Path(".ci/requirements.txt")  # every dependency of development in one version, with its hashes
LOCKED = (
    *("--universal", "--generate-hashes", "--no-annotate", "--python-version", "3.11", "--extra", "nox"),
    *("--group", "test", "--group", "lint", "--group", "types", "--group", "release", "pyproject.toml"),
)


# ---------------------------------------------------------------- building torch

torchbuild_tasks.register(leave_out=("bench",))  # the name is this project's own, below


# ---------------------------------------------------------------- this project

# Images of containers set it, and each program that the tests start would compile the package again.
KEEP_BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": ""}

PIP_OR_MAKE_IT = """
try:
    import pip._internal.cli.main
except ImportError:
    import ensurepip
    ensurepip.bootstrap(upgrade=True)
"""


def install(session: nox.Session, group: str) -> None:
    """Install the package as a user would have it, and a dependency group of pyproject.toml.

    With TORCHBUILD_LOCKED=1 in the environment, what the lock holds and nothing else. A venv whose making was
    killed has no pip yet, and nox takes it as it is.
    """
    session.run_install("python", "-c", PIP_OR_MAKE_IT, silent=True, log=False)
    if os.environ.get("TORCHBUILD_LOCKED") == "1":
        session.install("--require-hashes", "-r", str(LOCK))
        session.install("--no-deps", "--no-build-isolation", "-e", ".")
        return
    project = nox.project.load_toml("pyproject.toml")
    session.install("-e", ".", *nox.project.dependency_groups(project, group))


@nox.session(reuse_venv=True)
def tests(session: nox.Session) -> None:
    """Run the tests on every core; `-- --slow` adds the long ones, `-- -n0` runs one after the other.

    The venv of the run before is brought up to date: a new one costs 16 seconds of a core.
    """
    install(session, "test")
    # Two more at once than there are cores: a third of the time integration tests wait for a program or a
    # clock. The others hardly wait, and each process reads all files for itself: five seconds of a core.
    more = 0 if "not integration" in session.posargs else 2
    words = (*several(session, (os.cpu_count() or 1) + more), *session.posargs)
    session.run("python", "-m", "pytest", *words, env=KEEP_BYTE_CODE)


def several(session: nox.Session, workers: int) -> tuple[str, ...]:
    """Let pytest run so many tests at once, unless `-- -p no:xdist` says otherwise.

    A file stays together: some build once, and their tests go on from there in their order. The files come in
    the order of tests/conftest.py, the long ones first, and not as they have many tests or few.
    """
    if "no:xdist" in session.posargs or "-pno:xdist" in session.posargs:
        return ()
    return ("-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder")


@nox.session(reuse_venv=True)
def tests_windows(session: nox.Session) -> None:
    """Run the tests under Windows Python, in wine; `tests/windows/bench.py` makes that machine.

    What it cannot do is skipped by name. The arguments after `--` are pytest's.
    """
    # To try the bench itself, before it is believed.
    session.install("pytest", "pytest-timeout", "hypothesis", "psutil")
    bench = ("python", "-m", "tests.windows.bench")
    for step in ("setup", "compiler"):
        session.run(*bench, step)
    own = ("tests/windows/test_relay.py", "tests/windows/test_watch.py")
    try:
        session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *own)
    except CommandFailed:  # seen once on a loaded machine: a program in a new wine that ended without a word
        session.warn("the bench failed in its own tests; once more")
        session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *own)
    # Byte code goes elsewhere: Linux's Python takes the same files for its own.
    options = ("--seconds", "2700", "--path", r"C:\cc", "--set", r"PYTHONPYCACHEPREFIX=C:\pycache")
    ours = ("python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "-e", ".")
    session.run(*bench, "run", *options, "--", *ours)
    # Not `run`: whoever ends the processes of the bench ends the tests without a word and with exit code 0,
    # and wine stood still for good in a test once.
    words = ("-p", "no:cacheprovider", "--durations=25", *several(session, 2), *session.posargs)
    session.run(*bench, "tests", *options, "--", *words)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and the banned calls."""
    install(session, "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def workflows(session: nox.Session) -> None:
    """Check the workflows of GitHub Actions; needs GitHub, where actionlint's package gets its program."""
    install(session, "workflows")
    session.run("actionlint")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    install(session, "types")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Write what is generated of docs/, and its site to build/site; `-- --terminal` draws a build again."""
    project = nox.project.load_toml("pyproject.toml")
    session.install("-e", ".", *nox.project.dependency_groups(project, "docs"))
    session.run("python", "bin/write_pages.py")
    session.run("python", "bin/draw_rooms.py")
    if "--terminal" in session.posargs:
        session.run("python", "bin/draw_terminal.py")
    session.run("sphinx-build", "--fail-on-warning", "--keep-going", "-q", "-b", "html", "docs", "build/site")


@nox.session
def messages(session: nox.Session) -> None:
    """Write every message with an example to build/messages.md, to be read aloud."""
    install(session, "test")
    words = ("-p", "no:cacheprovider", "-m", "not integration", "-n", "logical", *session.posargs)
    session.run("python", "-m", "tests.support.messages", "build/messages.md", *words)


@nox.session
def update_rows(session: nox.Session) -> None:
    """Say what rows of data/*.toml lack of what the package index has; `-- --write` edits them."""
    session.install("packaging", "requests")
    session.run("python", "bin/update_rows.py", *session.posargs)


@nox.session
def lock(session: nox.Session) -> None:
    """Write the lock of the dependencies of development again; `-- --upgrade` takes the newest of each."""
    session.install("uv>=0.8")
    session.run("uv", "pip", "compile", *LOCKED, "--output-file", str(LOCK), "--quiet", *session.posargs)


@nox.session
def audit(session: nox.Session) -> None:
    """Ask the Open Source Vulnerabilities database about every package of the lock."""
    session.install("pip-audit>=2.9")
    if not reaches(session, "https://api.osv.dev"):
        session.skip("api.osv.dev cannot be reached from here")
    session.run(
        "pip-audit", "-r", str(LOCK), "--require-hashes", "--disable-pip", "--vulnerability-service", "osv"
    )


def reaches(session: nox.Session, address: str) -> bool:
    """Say whether an address answers at all."""
    script = f"import requests; requests.head({address!r}, timeout=20)"
    return session.run("python", "-c", script, success_codes=[0, 1], silent=True) == ""


@nox.session
def release(session: nox.Session) -> None:
    """Build the sdist and the wheel twice, in two folders, and require the same bytes; they are in dist/."""
    session.install("--require-hashes", "-r", str(LOCK))
    # Of the commit, not of the clock: https://reproducible-builds.org/specs/source-date-epoch/
    committed = session.run("git", "log", "-1", "--format=%ct", external=True, silent=True)
    env = {"SOURCE_DATE_EPOCH": str(committed).strip()}
    first, second = Path("dist"), Path(session.create_tmp())
    for folder in (first, second):
        for file in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
            file.unlink()
    session.run("python", "-m", "build", "--no-isolation", "--outdir", str(first), env=env)
    clone = second / "clone"
    session.run("git", "clone", "--quiet", "--no-local", ".", str(clone), external=True)
    session.run("python", "-m", "build", "--no-isolation", "--outdir", str(second), str(clone), env=env)
    sums = [
        {file.name: digest(file) for file in folder.iterdir() if file.is_file()} for folder in (first, second)
    ]
    if sums[0] != sums[1]:
        session.error(f"two builds of one commit differ: {sums[0]} and {sums[1]}")
    session.log("\n".join(f"{value}  {name}" for name, value in sorted(sums[0].items())))


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


@nox.session
def diagnosis_score(session: nox.Session) -> None:
    """Say of how many labelled logs the error and its cause are found; `-- FOLDER…` for your own."""
    install(session, "test")
    words = [word for word in session.posargs if word != "--break"]
    module = "tests.diagnosis_score" if words == session.posargs else "tests.breakage"
    session.run("python", "-m", module, *words)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure ratios and print each with the command that gave it."""
    install(session, "test")
    session.run("python", "-m", "benchmarks", *session.posargs, env=KEEP_BYTE_CODE)

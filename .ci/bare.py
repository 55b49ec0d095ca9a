#!/usr/bin/env python3
"""Run the README's two commands, as they stand there, on a bare Debian 12.

.ci/bare.py FOLDER --only-make        make the Debian
.ci/bare.py FOLDER [--record FILE]    make it unless it is there, and run the commands in it

The README promises that python3 (with venv), git and g++ are enough. So FOLDER becomes a Debian with these
and nothing else (mmdebstrap makes it, in a minute or two), with a copy of this checkout in the home of an
ordinary user, who runs the commands. pip's settings come along, and what
they name: a mirror of the index, certificates. Needs root and mmdebstrap. --record keeps how each test
ended (see tests/support/runs.py), so that those which that machine skips can be run on this one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "git", "g++", "ca-certificates")  # the last for https
USER = "builder"
HOME = f"/home/{USER}"
CHECKOUT = f"{HOME}/torchbuild-tasks"

# Where pip looks for settings, and which variables of ours say where packages come from.
PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf")
PIP_USER_FILES = (".pip/pip.conf", ".config/pip/pip.conf")
HANDED_ON = re.compile(r"PIP_.*|(https?|no)_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CI", re.IGNORECASE)

# Mounts of its own, which end with the last program in it: nothing of them is left to be removed by mistake.
# The first words are the tree and the folders to show in it, then -- and the command.
ENTER = """
tree=$1; shift
mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"
mount --rbind /dev "$tree/dev"
while [ "$1" != -- ]; do
  mkdir -p "$tree$1"
  mount --bind -o ro "$1" "$tree$1"
  shift
done
shift
exec chroot --userspec="$USER_OF_TREE" "$tree" env -i "$@"
"""


def say(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"=== {time.strftime('%T')}: bare Debian 12: {text}\n")
    sys.stdout.flush()


def readme_commands() -> list[str]:
    """Return the commands of the README that make a venv and run a session in it."""
    text = (ROOT / "README.md").read_text("utf-8")
    found = re.findall(r"^    (python3 -m venv .*/nox -s .*)$", text, re.MULTILINE)
    if [" -s build_cpu " in found[0], found[-1].endswith(" -s tests"), len(found)] != [True, True, 2]:
        sys.exit("README.md does not give two commands: build_cpu, then tests")
    return found


def run(*argv: str, **options: object) -> None:
    """Run a command of ours that must succeed."""
    subprocess.run(argv, check=True, **options)  # type: ignore[call-overload]


def make_tree(tree: Path) -> None:
    """Make the Debian, its user and the copy of the checkout: what git tracks, and what it would take."""
    log = tree.with_suffix(".log")
    with log.open("w") as out:
        argv = ["mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(tree)]
        if subprocess.run(argv, stdout=out, stderr=out, check=False).returncode:
            sys.exit(f"mmdebstrap could not make a Debian here:\n{log.read_text()[-3000:]}")
    run("chroot", str(tree), "useradd", "--create-home", "--shell", "/bin/bash", USER)
    for file in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copyfile(file, f"{tree}{file}")
    listed = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "-co", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    for name in map(os.fsdecode, filter(None, names)):
        if (ROOT / name).is_file():
            there = Path(f"{tree}{CHECKOUT}", name)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, there)


def hand_on_pip(tree: Path) -> tuple[dict[str, str], list[str]]:
    """Give pip its settings there.

    Returns:
        The variables for it, and the folders of this machine that it must see.
    """
    environ = {name: value for name, value in os.environ.items() if HANDED_ON.fullmatch(name)}
    environ.pop("PIP_CONFIG_FILE", None)
    own = [(Path.home() / name, f"{HOME}/{name}") for name in PIP_USER_FILES]
    texts = list(environ.values())
    for file, there in [*((Path(name), name) for name in PIP_FILES), *own]:
        if file.is_file():
            texts.append(file.read_text("utf-8"))
            Path(f"{tree}{there}").parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, f"{tree}{there}")
    folders = set()
    for name in re.findall(r"(?:^|[\s=]|file://)(/[^\s,]+)", "\n".join(texts)):
        path = Path(name)
        if path.is_file():  # certificates
            Path(f"{tree}{name}").parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, f"{tree}{name}")
        elif path.is_dir() and len(path.parts) > 2:  # an index's pages lead to its files, elsewhere in it
            folders.add(str(Path(*path.parts[:3])))
    return environ, sorted(folders)


def enter(tree: Path, command: str, environ: dict[str, str], folders: list[str]) -> int:
    """Run a command there as its user, in the checkout, and return its exit code."""
    own = {"HOME": HOME, "USER": USER, "LOGNAME": USER, "SHELL": "/bin/bash"}
    own |= {"PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb", "LANG": "C.UTF-8"}
    words = [f"{name}={value}" for name, value in {**environ, **own}.items()]
    words += ["bash", "-euo", "pipefail", "-c", f"cd {CHECKOUT}\n{command}"]
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-eu", "-c", ENTER, "enter"]
    done = subprocess.run(
        [*argv, str(tree), *folders, "--", *words], env={**os.environ, "USER_OF_TREE": USER}, check=False
    )
    return done.returncode


def main() -> int:
    """Make the tree, run the commands, and return the first exit code that is not 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", type=Path)
    parser.add_argument("--record", type=Path, help="a file for how each test ended")
    parser.add_argument("--only-make", action="store_true", help="run nothing in it")
    said = parser.parse_args()
    tree: Path = said.tree.absolute()
    commands = readme_commands()
    if not tree.exists():
        say(f"made in {tree}")
        make_tree(tree)
        say("made")
    if said.only_make:
        return 0
    environ, folders = hand_on_pip(tree)
    environ["TORCHBUILD_TESTS_RECORD"] = f"{HOME}/record"
    run("chroot", str(tree), "chown", "-R", f"{USER}:", HOME)
    for command in commands:
        say(command)
        code = enter(tree, command, environ, folders)
        if code:
            say(f"exit code {code}")
            return code
    if said.record:
        shutil.copyfile(f"{tree}{HOME}/record", said.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())

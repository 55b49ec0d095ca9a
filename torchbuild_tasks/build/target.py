"""The stage of `build --target`: build one target of Ninja, and report which of its files torch reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.compile import run_build
from torchbuild_tasks.build.compiler_cache import begin_cache
from torchbuild_tasks.build.history import LONGEST_GRAPH
from torchbuild_tasks.build.install.rules import Rule, read_rules
from torchbuild_tasks.build.work import Work
from torchbuild_tasks.errors import BuildFailed, UsageError
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import look_at_cache
from torchbuild_tasks.model import Command, Finding
from torchbuild_tasks.system import process
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.values import replace

_UNKNOWN: Final = re.compile(r"unknown target '|\bunknown path\b", re.IGNORECASE)
_TARGET: Final = re.compile(r"^(.+?): (\S+)$", re.MULTILINE)
_PHONY: Final = re.compile(r"^build ([^\s:|$]+): phony", re.MULTILINE)
_SHOWN: Final = 8


def build_target(work: Work) -> Work:
    """Build the target of --target, if there is one; install nothing.

    Raises:
        UsageError: the build tree has no such target; the text lists those with a like name.
        BuildFailed: it cannot be built.
    """
    target = work.request.target
    if not target:
        return work
    ninja = Command(argv=work.ninja, cwd=work.plan.source, because=f"--target {target}")
    if work.plan.way.configure:
        work.ledger.open()
        work = run_build(work, work.plan.way.configure)
    _refuse_unknown(work, ninja, target)
    if work.plan.way.name == "install":
        work = begin_cache(work)
    if not (work.build_dir / "CMakeCache.txt").exists():
        raise BuildFailed(
            "CMake has to be run again, which builds more than one target.",
            next_step="Use `build` without --target.",
        )
    work.ledger.open()
    work = run_build(work, replace(ninja, argv=(*ninja.argv, target)))
    for line in _describe_files(work, ninja, target):
        work.report.note(line)
    if work.plan.way.name == "front end":
        work.report.note(
            f"setup.py or pip still has to run before torch can be imported: {work.plan.way.because}"
        )
    return work


def _refuse_unknown(work: Work, ninja: Command, target: str) -> None:
    dry = process.capture((*ninja.argv, "-n", target), env=work.environ, cwd=ninja.cwd)
    if dry.rc == 0 or not is_unknown(dry.output):
        return
    listed = process.capture((*ninja.argv, "-t", "targets", "all"), env=work.environ, cwd=ninja.cwd)
    names = nearest_targets(target, listed.text)
    raise UsageError(
        f"The build tree has no target {target}.",
        looked=(f"targets of {work.build_dir / 'build.ninja'} with a similar name:", *names) if names else (),
        next_step=f"All of them: ninja -C {as_word(work.build_dir)} -t targets all",
    )


def check_target(build_dir: Path, target: str) -> Iterator[Finding]:
    """Report a target that a configured tree has not, as far as its file of Ninja tells.

    Names of files, and what ninja itself makes of a name (FILE^), are left to Ninja.
    """
    try:
        text = read_bytes(build_dir / "build.ninja", most=LONGEST_GRAPH).decode("utf-8", "replace")
    except OSError:
        return
    names = set(_PHONY.findall(text))
    if not names or "/" in target or "^" in target or target in names:
        return
    if re.search(rf"^build (?:[^:\n]* )?{re.escape(target)}(?: [^:\n]*)?:", text, re.MULTILINE):
        return
    near = nearest_targets(target, "\n".join(f"{name}: phony" for name in sorted(names)))
    said = f"the build tree has no target {target}"
    said += f"; names like it: {', '.join(near)}" if near else ""
    yield Finding.error("target", said, f"All of them: ninja -C {as_word(build_dir)} -t targets all")


def _describe_files(work: Work, ninja: Command, target: str) -> list[str]:
    """Return a line for each library of the target: its path, and the file that torch reads."""
    captured = process.capture((*ninja.argv, "-t", "query", target), env=work.environ, cwd=ninja.cwd)
    files = [work.build_dir / name for name in files_of(target, captured.text)]
    try:
        rules = read_rules(work.build_dir)
    except OSError:
        rules = []
    cache = look_at_cache(Probe(), str(work.build_dir))  # of the configure just run
    prefix = (cache.prefix if cache else None) or ""
    lines = []
    for file in files:
        if not file.is_file():
            continue
        installed = next((_installed_path(prefix, rule, file) for rule in rules if _copies(rule, file)), None)
        lines.append(f"{file} is built. {_describe_use(file, installed)}")
    return lines or [f"{target} is built. Nothing was installed: `build` does that."]


def _describe_use(file: Path, installed: Path | None) -> str:
    """Say whether torch reads the new file; CMake's install keeps the time of a file, in seconds."""
    if installed is None:
        return "No install rule copies it: torch reads it from there, or not at all."
    if installed.is_file() and int(installed.stat().st_mtime) == int(file.stat().st_mtime):
        return f"In {installed} it is as torch reads it."
    return f"Not importable yet: torch reads {installed}; `build` puts it there."


def _copies(rule: Rule, file: Path) -> bool:
    name = os.path.normcase(file)
    return any(os.path.normcase(source) == name for source in rule.sources)


def _installed_path(prefix: str, rule: Rule, file: Path) -> Path:
    return Path(rule.destination.replace("${CMAKE_INSTALL_PREFIX}", prefix)) / file.name


# ---------------- what Ninja answers about its targets


def is_unknown(output: str) -> bool:
    """Say whether Ninja's output means that there is no such target."""
    return _UNKNOWN.search(output) is not None


def nearest_targets(target: str, listed: str) -> tuple[str, ...]:
    """Return the names in `ninja -t targets all` that are nearest to a mistyped one, the likeliest first.

    Objects and CMake's own steps are left out.
    """
    names = [
        name
        for name, rule in _TARGET.findall(listed)
        if not rule.startswith("CXX_COMPILER") and "CMakeFiles/" not in name and not name.startswith("/")
    ]
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(name.rpartition("/")[2].casefold(), name)
        folded.setdefault(name.casefold(), name)
    import difflib  # only for a mistyped name

    word = target.casefold()
    close = difflib.get_close_matches(word, folded, n=_SHOWN, cutoff=0.6)
    within = sorted((name for name in folded if word in name), key=len)
    return tuple(dict.fromkeys(folded[name] for name in (*close, *within)))[:_SHOWN]


def files_of(target: str, output: str) -> tuple[str, ...]:
    """Return the files of a target from `ninja -t query`: the inputs of a phony one, else itself."""
    inputs: list[str] = []
    phony = section = False
    for line in output.splitlines():
        text = line.strip()
        if text.startswith("input:"):
            section = True
            phony = text == "input: phony"
        elif text.startswith(("outputs:", "validations:")):
            section = False
        elif section and phony and text and not text.startswith("|"):
            inputs.append(text)
    return tuple(inputs) if phony else (target,)

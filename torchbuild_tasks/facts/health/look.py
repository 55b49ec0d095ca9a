"""What the doctor looks at beside the machine and the tree; no other verb pays for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from torchbuild_tasks.facts.health.conda import conda_linkers
from torchbuild_tasks.facts.health.git_settings import git_refuses, git_settings
from torchbuild_tasks.facts.health.rooms import look_at_rooms
from torchbuild_tasks.facts.health.tree import newest, other_trees, shadows
from torchbuild_tasks.facts.machine import relevant_environ
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Facts, Health

# What changes which compilers, headers and libraries are found. No row of data/variables.toml
# needs to know them, and none of them holds a login.
ENVIRON: Final = (
    *("CONDA_PREFIX", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"),
    *("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"),
    *("CMAKE_PREFIX_PATH", "CUDA_HOME", "CUDA_PATH"),
)
# How the names of build variables begin; most others belong to other programs.
_BUILD_LIKE: Final = ("USE_", "BUILD_", "NO_", "WITH_", "CMAKE_", "TORCH_CUDA_", "PYTORCH_BUILD_")


def look_at_health(
    probe: Probe, facts: Facts, places: Mapping[str, str], patterns: Sequence[str], build_dir: str
) -> Health:
    """Look at the surroundings of a build.

    Args:
        probe: the machine.
        facts: what was seen before.
        places: what is written where, by purpose.
        patterns: names of the variables that a build reads.
        build_dir: the build tree of the plan.
    """
    tree, limit = facts.tree, probe.open_files()
    with ThreadPoolExecutor(max_workers=4) as pool:
        settings = pool.submit(git_settings, probe, tree.root)
        refuses = pool.submit(git_refuses, probe, tree)
        known = pool.submit(_known_locale, probe)
        ahead = newest(probe, tree.root, build_dir)
        return Health(
            rooms=look_at_rooms(probe, places),
            open_files=limit[0] if limit else None,
            open_files_most=limit[1] if limit else None,
            locale=_locale(probe) or None,
            newest=ahead[0] if ahead else None,
            ahead=ahead[1] if ahead else None,
            environ=relevant_environ(probe.environ, ENVIRON, ignore_case=probe.windows),
            strangers=_strangers(probe, patterns),
            conda_linkers=conda_linkers(probe, facts),
            shadows=shadows(probe),
            others=other_trees(probe, tree.root, build_dir),
            administrator=probe.administrator(),
            git=settings.result(),
            git_refuses=refuses.result(),
            locale_known=known.result(),
        )


def _strangers(probe: Probe, patterns: Sequence[str]) -> tuple[str, ...]:
    known = relevant_environ(probe.environ, patterns, ignore_case=probe.windows)
    names = sorted(name.upper() if probe.windows else name for name in probe.environ)
    return tuple(name for name in names if name.startswith(_BUILD_LIKE) and name not in known)


def _locale(probe: Probe) -> str:
    """What decides about characters, by POSIX's precedence; "" on Windows."""
    names = () if probe.windows else ("LC_ALL", "LC_CTYPE", "LANG")
    return next((value for name in names if (value := probe.variable(name))), "")


def _known_locale(probe: Probe) -> bool | None:
    """Whether the system has that locale, by `locale -a`; it spells UTF-8 as utf8."""
    wanted = _locale(probe)
    program = probe.which("locale")
    said = probe.run((program, "-a")) if wanted and program else None
    if said is None or said.rc != 0:
        return None
    return _plain(wanted) in {_plain(line) for line in said.stdout.splitlines()}


def _plain(locale: str) -> str:
    return locale.lower().replace("utf-8", "utf8").strip()

"""Checks of the surroundings that can affect a build: conda, variables, other torches and CUDAs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from torchbuild_tasks.catalog.match import parse_version
from torchbuild_tasks.features.doctor.check import View
from torchbuild_tasks.model import Finding
from torchbuild_tasks.plan.names import unread
from torchbuild_tasks.text.paths import is_inside, names_same
from torchbuild_tasks.text.words import as_word, in_turn, remove_line, unset_line

# From these Pythons on setup.py does not need compiler_compat (README of 1.8.1).
_NEEDED_COMPAT: Final = parse_version("3.8.1")
# conda's named environments are in its installation folder.
_NAMED: Final = re.compile(r"(.+)[\\/]envs[\\/][^\\/]+")
# Where its installers put it, so that a path tells of one that is neither active nor on PATH.
_USUAL: Final = re.compile(
    r"(.*[\\/](?:(?:ana|mini)?conda\d?|mini(?:forge|mamba)\d?|mambaforge|micromamba))(?:[\\/]|$)",
    re.IGNORECASE,
)
_SEARCHED: Final = ("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")


def check_conda(view: View) -> tuple[Finding, ...]:
    """Find compilers, linkers and libraries of a conda environment other than the build's."""
    findings = [*_conda_compilers(view), *_conda_paths(view), *_conda_linker(view)]
    if findings:
        return tuple(findings)
    prefix = view.health.environ.get("CONDA_PREFIX")
    if prefix is None:
        return (Finding.ok("conda", "no conda environment is active"),)
    return (Finding.ok("conda", f"conda's {prefix} leaks neither compilers nor libraries into the build"),)


def _conda_prefixes(view: View) -> dict[str, bool]:
    """Return conda's folders, including its base, and whether each is the environment that gets torch."""
    own = view.python.prefix if view.python and view.python.environment == "conda" else None
    folders = [python.prefix for python in view.facts.pythons if python.environment == "conda"]
    folders.append(view.health.environ.get("CONDA_PREFIX"))
    entries = (entry for name in _SEARCHED for entry in _entries(view, name))
    folders += [usual[1] for entry in entries if (usual := _USUAL.match(entry))]
    folders += [named[1] for folder in folders if folder and (named := _NAMED.fullmatch(folder))]
    return {folder: folder == own for folder in folders if folder}


def _conda_of(path: str, prefixes: Iterable[str]) -> str:
    """Return the innermost of conda's folders that holds a path; "" for none."""
    return max((prefix for prefix in prefixes if is_inside(path, prefix)), key=len, default="")


def _conda_compilers(view: View) -> Iterator[Finding]:
    """Find a mix of compilers: conda's have their own C library, so all must be conda's, or none."""
    compiler = view.choice("CXX")
    found = view.facts.tool("ld")
    linker = str(found.path) if found else ""
    prefixes = _conda_prefixes(view)
    compilers = _conda_of(compiler, prefixes)
    linked = _conda_of(linker, prefixes)
    if compilers and not prefixes[compilers]:
        text = f"{compiler} is of the conda environment {compilers}, and torch is built for another Python"
        fix = "conda deactivate, or name a compiler: --set CC=/usr/bin/gcc --set CXX=/usr/bin/g++"
        yield Finding.warn("conda", text, fix)
    if linked and compiler and linked != compilers:
        text = f"ld on PATH is conda's ({linker}), and {compiler} is not: the link would mix two C libraries"
        yield Finding.warn("conda", text, "conda deactivate, or conda install gxx_linux-64")


def _conda_paths(view: View) -> Iterator[Finding]:
    """Find search paths that lead into a conda environment."""
    prefixes = _conda_prefixes(view)
    for name in (*_SEARCHED, "CMAKE_PREFIX_PATH"):
        for prefix in dict.fromkeys(_conda_of(entry, prefixes) for entry in _entries(view, name)):
            if not prefix or (prefixes[prefix] and name == "CMAKE_PREFIX_PATH"):
                continue
            what = "headers" if "INCLUDE" in name or name == "CPATH" else "libraries"
            text = f"{name} leads into conda's {prefix}: its {what} come before those of the system"
            yield Finding.warn(
                "conda", text, f"{unset_line(name, windows=view.windows)}, or remove that entry from it"
            )


def _conda_linker(view: View) -> tuple[Finding, ...]:
    """Find compiler_compat/ld, which conda's Python uses to link extensions."""
    python = view.python
    version = parse_version(python.version) if python else None
    linkers = [ld for ld in view.health.conda_linkers if python and is_inside(ld, python.prefix or "\0")]
    if not linkers or version is None:
        return ()
    old = _NEEDED_COMPAT is not None and version < _NEEDED_COMPAT
    text = f"{linkers[0]} is conda's own ld, with which this Python links what it builds"
    if not old:
        return (Finding.ok("conda", f"{text}; Python {python.version if python else ''} does without it"),)
    return (Finding.warn("conda", text, f"mv {as_word(linkers[0])} {as_word(f'{linkers[0]}.off')}"),)


def check_names(view: View) -> tuple[Finding, ...]:
    """Find environment variables with names like build variables that this era does not read."""
    question = view.question
    findings = list[Finding]()
    plain = [row.name for row in question.catalog.variable if "*" not in row.name]
    for name in (*view.facts.environ, *view.health.strangers):
        problem = unread(question, name)
        if problem and problem[1] and name in view.facts.environ:  # the plan's finding `variable` reports it
            continue
        if problem and (problem[1] or name in plain):  # any other name belongs to another program
            findings.append(
                Finding.warn("names", problem[0], problem[1] or unset_line(name, windows=view.windows))
            )
    if findings:
        return tuple(findings)
    return (Finding.ok("names", "no variable of the environment is misspelt or of another era"),)


def check_shadow(view: View) -> tuple[Finding, ...]:
    """Find a torch that `import torch` would find before the built one."""
    root = view.facts.tree.root
    editable = view.plan.mode == "develop"
    others = [file for file in view.health.shadows if not (editable and is_inside(file, root))]
    if not others:
        return (
            Finding.ok("shadow", "nothing comes before the installed torch: neither here nor on PYTHONPATH"),
        )
    on_path = any(is_inside(others[0], entry) for entry in _entries(view, "PYTHONPATH"))
    where = "PYTHONPATH" if on_path else "the current folder"
    fix = "Start Python in another folder, or with -P."
    if on_path:
        fix = unset_line("PYTHONPATH", windows=view.windows)
    text = f"{others[0]} is found by `import torch` before the torch that is installed ({where})"
    return (Finding.warn("shadow", text, fix),)


def check_stubs(view: View) -> tuple[Finding, ...]:
    """Find stubs of the driver in folders that programs search at run time."""
    stubs = [entry for entry in _entries(view, "LD_LIBRARY_PATH") if entry.rstrip("/").endswith("/stubs")]
    if not stubs:
        return (Finding.ok("stubs", "LD_LIBRARY_PATH has no stub of the CUDA driver"),)
    text = (
        f"LD_LIBRARY_PATH has {stubs[0]}, whose libcuda.so is for linking only: torch would say "
        '"CUDA driver is a stub library" (error 34)'
    )
    fix = "Remove it from LD_LIBRARY_PATH; for linking, LIBRARY_PATH is enough."
    return (Finding.warn("stubs", text, fix),)


def check_cudas(view: View) -> tuple[Finding, ...]:
    """Check whether all settings that name a CUDA toolkit name the planned one."""
    if not view.cuda:
        return (Finding.skipped("cudas", "other CUDAs: this is a CPU build"),)
    toolkits = view.question.cuda.toolkits
    used = next((t for t in toolkits if view.choice("CUDA toolkit") in (t.path, *t.aliases)), None)
    findings: list[Finding] = []
    for name in ("CUDA_HOME", "CUDA_PATH", *_SEARCHED[1:]):  # the plan reports the first one
        for entry in _entries(view, name):
            other = next(
                (t for t in toolkits if any(is_inside(entry, p) for p in (t.path, *t.aliases))), None
            )
            if used and other and other.version != used.version:
                text = f"{name} leads to {other.name} ({entry}), and the build uses {used.name}"
                fix = f"{unset_line(name, windows=view.windows)}, or --cuda-toolkit {as_word(other.path)}"
                findings.append(Finding.warn("cudas", text, fix))
    if findings:
        return tuple(findings)
    count = sum(toolkit.nvcc is not None for toolkit in toolkits)
    return (Finding.ok("cudas", f"{count} CUDA toolkits are here, and no variable names an unused one"),)


def _entries(view: View, name: str) -> list[str]:
    """Return the folders in a path variable."""
    value = {**view.facts.environ, **view.health.environ}.get(name, "")
    return [entry for entry in value.split(";" if view.windows else ":") if entry]


def check_trees(view: View) -> tuple[Finding, ...]:
    """Find build trees that were moved or copied, or are not the planned one."""
    findings: list[Finding] = []
    cache = view.facts.tree.cache
    root = view.facts.tree.root
    if cache is not None and cache.home and not names_same(cache.home, root):
        text = f"{view.plan.build_dir} was configured for {cache.home}, not for {root}"
        # `build --clean` keeps files changed since a build, so all files of a copy with new times.
        remove = remove_line(str(view.plan.build_dir), windows=view.windows)
        fix = f"If nothing in it is yours: {in_turn(remove, 'torchbuild build', windows=view.windows)}"
        findings.append(Finding.warn("trees", text, fix))
    for other in view.health.others:
        if other.home and not names_same(other.home, root):
            text = f"{other.path} was configured for {other.home}: it was copied or moved"
            findings.append(Finding.warn("trees", text, "Remove it if you do not need it."))
        else:
            text = f"{other.path} is a further build tree; this plan builds in {view.plan.build_dir}"
            findings.append(Finding.ok("trees", text))
    text = f"{view.plan.build_dir}: {view.plan.freshness.because}"
    return tuple(findings) or (Finding.ok("trees", text),)


def check_git(view: View) -> tuple[Finding, ...]:
    """Find git settings that change the files of a checkout."""
    git = view.health.git
    if not view.facts.tool("git"):
        text = "git is not installed: no submodules, no commit in the version, no patches"
        return (Finding.warn("git", text, "How to install it: torchbuild bootstrap"),)
    root = view.facts.tree.root
    findings = list[Finding]()
    place = as_word(root)
    if view.health.git_refuses and not view.facts.tree.git_problem:  # the plan tells of that
        text = f"{root} belongs to another user, and git refuses to answer about it"
        findings.append(Finding.warn("git", text, f"git config --global --add safe.directory {place}"))
    if git.get("core.autocrlf") == "true" and not view.windows:
        text = (
            "core.autocrlf is true: git writes CRLF into sources, and scripts with it do not start on Linux"
        )
        findings.append(Finding.warn("git-autocrlf", text, f"git -C {place} config core.autocrlf input"))
    if git.get("core.symlinks") == "false" and not view.windows:
        text = "core.symlinks is false: links of the checkout become small text files"
        findings.append(
            Finding.warn("git", text, f"git -C {place} config core.symlinks true, then check out again")
        )
    if git.get("http.sslverify") in ("false", "0", "no", "off"):
        text = "http.sslVerify is off: git does not verify the servers of submodules"
        findings.append(Finding.warn("git", text, "git config --global --unset http.sslVerify"))
    return tuple(findings) or (Finding.ok("git", "git's settings do not change the sources"),)


def check_dev_drive(view: View) -> tuple[Finding, ...]:
    """Advise a Dev Drive (ReFS) on Windows 11, which is faster with many small files."""
    if not view.windows:
        return (Finding.skipped("dev-drive", "Dev Drive: only Windows has them"),)
    kinds = {room.kind for room in view.health.rooms if room.purpose == "build"}
    if "ReFS" in kinds:
        return (Finding.ok("dev-drive", "the build tree is on ReFS, as a Dev Drive is"),)
    text = f"the build tree is on {', '.join(filter(None, kinds)) or 'an unknown file system'}"
    text += "; a Dev Drive (Windows 11: Settings, Storage) is checked by the antivirus later, and is quicker"
    return (Finding.ok("dev-drive", text),)

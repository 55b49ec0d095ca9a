"""Values of this machine for the names in sentences of rows ({python}, {package:ninja}, {1})."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog import GIB, Catalog
from torchbuild_tasks.catalog.diagnosis import ComponentRow
from torchbuild_tasks.catalog.match import admits, parse_version
from torchbuild_tasks.features.diagnosis.audience import Audience
from torchbuild_tasks.features.diagnosis.components import Components
from torchbuild_tasks.model import BuildPlan, Facts
from torchbuild_tasks.plan.jobs import usable_memory
from torchbuild_tasks.plan.packages import (
    how_to_install_gcc,
    install_line,
    installer,
    offers_gcc,
    package_name,
    package_row,
    system_manager,
)
from torchbuild_tasks.plan.submodules import can_fetch, fetched_word, sibling_folder

_GROUP: Final = re.compile(r"\{(\d)\}")
# A name may hold a group itself: {package:g++-{1}}.
_NAME: Final = re.compile(r"\{((?:[^{}]|\{\d\})+)\}")
_INSTALLED: Final = re.compile(r"(g\+\+|clang\+\+|toolset)(<=?)([\d.]+)")
_NONE: Final[Mapping[str, str]] = {}
# A build that is not of this tool, or of an extension, has no flags of ours: what it reads instead.
_READ_BY: Final = (
    (re.compile(r"--set (?=\w+=)"), ""),
    (re.compile(r"--cuda-toolkit(?! pypi)(?: PATH| VERSION)?(?: or VERSION)?"), "CUDA_HOME"),
    (re.compile(r"--arch native"), "TORCH_CUDA_ARCH_LIST, with what your GPUs have"),
    (re.compile(r"--arch (?=[\d.;]+)"), "TORCH_CUDA_ARCH_LIST="),
    (re.compile(r"--arch\b"), "TORCH_CUDA_ARCH_LIST"),
    (re.compile(r"--toolset (?=[\d.]+)"), "vcvarsall x64 -vcvars_ver="),
    (re.compile(r"--toolset\b"), "vcvarsall x64 -vcvars_ver=…"),
    (re.compile(r"--jobs (?=\d)"), "MAX_JOBS="),
    (re.compile(r"--jobs\b"), "MAX_JOBS"),
    (re.compile(r"with --clean\b"), "with its build folder deleted"),
    (re.compile(r"--build-type (?=\w)"), "CMAKE_BUILD_TYPE="),
    (re.compile(r", or less of it \(--preset minimal\)"), ""),
    (re.compile(r"; a mirror: \[mirrors\][^;)]*; without network: --offline after a fetch"), ""),
    (
        re.compile(r"--cache none builds without it"),
        "a build without its launcher (CMAKE_CXX_COMPILER_LAUNCHER) does without it",
    ),
    (re.compile(r" \(--python\)|: --python (?:PATH|[\w./\\:-]*\w)"), ""),
)
# The command that installs a package, and the one that searches for the package with a file.
_TYPED: Final = {
    "apt": ("apt", "install"),
    "dnf": ("dnf", "install"),
    "zypper": ("zypper", "install"),
    "pacman": ("pacman", "-S"),
    "apk": ("apk", "add"),
    "conda": ("conda", "install", "-c", "conda-forge"),
    "brew": ("brew", "install"),
    "winget": ("winget", "install", "--id"),
}
# Systems that build packages by a recipe, and where a recipe names what the build needs.
_RECIPES: Final = {
    "nix": "nativeBuildInputs or buildInputs (build-system for Python's back ends) of its derivation",
    "conda-build": "requirements: host (build for programs) of its meta.yaml or recipe.yaml",
    "portage": "BDEPEND or DEPEND of its ebuild",
    "rpmbuild": "BuildRequires of its spec file",
    "guix": "inputs or native-inputs of its package definition",
    "spack": "depends_on of its package.py",
    "easybuild": "dependencies or builddependencies of its easyconfig",
    "bitbake": "DEPENDS of its recipe",
}
_SEARCHES: Final[Mapping[str, Mapping[str, str]]] = {
    "apt": {
        "header": "apt-file search /{name}",
        "library": "apt-file search /lib{name}.so",
        "package": "apt-file search -x '/{name}(Config|-config)\\.cmake|/Find{name}\\.cmake'",
        "pc": "apt-file search /{name}.pc",
        "tool": "apt-file search -x 'bin/{name}$'",
    },
    "dnf": {
        "header": "dnf provides '*/{name}'",
        "library": "dnf provides '*/lib{name}.so'",
        "package": "dnf provides 'cmake({name})'",
        "pc": "dnf provides 'pkgconfig({name})'",
        "tool": "dnf provides '*bin/{name}'",
    },
    "zypper": {
        "package": "zypper search --provides 'cmake({name})'",
        "pc": "zypper search --provides 'pkgconfig({name})'",
        "tool": "zypper search --provides --file-list /usr/bin/{name}",
    },
    "pacman": {
        "header": "pacman -F {name}",
        "library": "pacman -F lib{name}.so",
        "pc": "pacman -F {name}.pc",
        "tool": "pacman -F {name}",
    },
    "apk": {"library": "apk search so:lib{name}.so", "tool": "apk search cmd:{name}"},
}
# What a package manager types for the files of a package, and for the package of a file; "" for any other.
_BY_MANAGER: Final[Mapping[str, Mapping[str, str]]] = {
    "lists files": {
        "apt": "dpkg -L",
        "dnf": "rpm -ql",
        "zypper": "rpm -ql",
        "apk": "apk info -L",
        "pacman": "pacman -Ql",
        "brew": "brew list",
        "": "dpkg -L (rpm -ql)",
    },
    "of musl": {"apk": "musl", "": ""},
    "tells package": {
        "apt": "dpkg -S",
        "dnf": "rpm -qf",
        "zypper": "rpm -qf",
        "apk": "apk info -W",
        "pacman": "pacman -Qo",
        "": "dpkg -S (rpm -qf)",
    },
}
# What such a search needs first: the list of all files, and a program of its own.
_BEFORE_SEARCH: Final = {
    "apt": "sudo apt install apt-file && sudo apt-file update",
    "pacman": "sudo pacman -Fy",
}
# What uv does as well: an environment that it made has no pip.
_BY_PIP: Final = re.compile(r"\S*python[\d.]*(?:\.exe)? -m pip (?=(?:install|uninstall|check|list|show)\b)")
# What needs a checkout of torch, or its build.
_OF_TORCH: Final = tuple(
    f"torchbuild {verb}" for verb in ("build", "source", "verify", "plan", "env", "bootstrap")
)
_COMPILER: Final = re.compile(r"g(?:cc|\+\+)-(\d{1,2})")
# What is known of this machine alone, and not of that of a log.
_OF_MACHINE: Final = ("libc", "gpus", "driver cuda", "cuda toolkit", "toolset")
# A word without special characters of any shell.
_PLAIN: Final = re.compile(r"[\w.+:/\\@%=,-]+")


@functools.cache
def _package_names(catalog: Catalog) -> str:
    """Return the package names of all rows: most words that an error is about are part of none."""
    rows = (*catalog.component, *catalog.packaged)
    return "\n".join(name for row in rows for name in row.names.values())


@functools.cache
def _components(catalog: Catalog) -> Components:
    return Components(catalog.component)


@functools.cache
def _packaged(catalog: Catalog) -> Components:
    return Components(catalog.packaged)


class Machine:
    """The names that rows may use, with their values here; a name that is not known has none.

    A sentence is printed only where all of its names are known; `{!name}` is a condition that is not printed.

    Args:
        facts: the machine and the tree.
        plan: what this build was to do, or what one here would do.
        catalog: the rows of packages.
        built: whether the log is of that very build; else its jobs and architectures are not known.
    """

    def __init__(self, facts: Facts, plan: BuildPlan, catalog: Catalog, *, built: bool) -> None:
        self._facts, self.catalog, self.audience = facts, catalog, Audience()
        self._built = built
        self._values = {**_values(facts, plan, catalog), **(_of_the_build(facts, plan) if built else {})}

    def for_audience(self, audience: Audience) -> Machine:
        """Return this machine with what the log shows of its audience."""
        other = copy.copy(self)
        other.audience = audience
        other._values = {**self._values, **audience.values}
        return other

    def value(self, name: str) -> str:
        """Return what a name stands for on this machine; empty when that is not known."""
        if name in _OF_MACHINE and not self.is_here:
            return ""
        if name == "not torch":
            return "" if self.builds_torch else "another build"
        if typed := _BY_MANAGER.get(name):
            return typed.get(self.manager.replace("yum", "dnf"), typed[""])
        if name.startswith("package:"):
            return self._install(name.removeprefix("package:"))
        if compiler := _COMPILER.fullmatch(name.removeprefix("offered:")):
            return f"/usr/bin/{compiler[0]}" if self._offers(compiler[1]) else ""
        if (installed := _INSTALLED.fullmatch(name)) and self.is_here:
            return self._newest(*installed.groups())
        return self._values.get(name, "")

    def fill(self, sentences: Sequence[str], groups: Sequence[str], known: Mapping[str, str] = _NONE) -> str:
        """Return the first of these sentences whose names are all known, filled in; "" for none.

        Args:
            sentences: of a row.
            groups: what the pattern's groups hold, for {1}, {2} ...
            known: further names; one that begins with `?` may be empty.
        """
        selected = self.audience.select(tuple(sentences))
        filled = (self._fill_names(each, groups, _as_it_is, known) for each in selected)
        text = next(filter(None, filled), "")
        for flag, read in () if self.has_flags else _READ_BY:
            text = flag.sub(read, text)
        return _BY_PIP.sub("uv pip ", text) if self.audience.uv else text

    def fill_command(
        self, commands: Sequence[str], groups: Sequence[str], known: Mapping[str, str] = _NONE
    ) -> str:
        """Return the first command whose names are all known, paths quoted; text of a log must be plain."""
        if not commands:
            return ""
        plain = [group if _PLAIN.fullmatch(group) else "" for group in groups]
        words = {name: value for name, value in known.items() if _PLAIN.fullmatch(value)}
        selected = self.audience.select(tuple(commands))
        return next(filter(None, (self._fill_names(each, plain, _word, words) for each in selected)), "")

    @property
    def is_here(self) -> bool:
        """Return whether the log is known to be of this machine, whose compilers and GPUs then count."""
        return self._built or self.audience.here

    @property
    def system(self) -> str:
        """Return the system that the log is of: that of this machine, where the log does not show it."""
        return self.audience.system or self._facts.host.os

    @property
    def places(self) -> Sequence[str]:
        """Return how paths in this folder begin: a log with such a path is of this machine."""
        root = self._facts.tree.root
        return (f"{root}/", f"{root}\\") if root.replace("\\", "/").count("/") > 1 else ()

    @property
    def builds_torch(self) -> bool:
        """Return whether a build of torch failed, or may have: only that takes our flags and commands."""
        return self.audience.doing == "torch" or (self.has_tree and not self.audience.has_no_flags)

    @property
    def has_flags(self) -> bool:
        """Return whether our flags are typed where the log was written: on a checkout of torch here."""
        return self.has_tree and not self.audience.has_no_flags

    @property
    def has_tree(self) -> bool:
        """Return whether there is a checkout of torch here, on which our commands work."""
        return self._built or self._facts.tree.problem is None

    def helpful(self, commands: Sequence[str]) -> Sequence[str]:
        """Return those of these commands that help what failed, which may be another package than torch."""
        if self.has_flags and not self.audience.importer:
            return commands
        return [each for each in commands if not any(verb in each for verb in _OF_TORCH)]

    def component(self, look: str, subject: str) -> ComponentRow | None:
        """Return the part of a build that a header, library, symbol ... belongs to."""
        looks = ("package", "library") if look == "package" else (look,)  # configure names libraries as well
        if look == "package" and subject.endswith((".h", ".hpp", ".hh", ".cuh")):  # find_path
            looks = ("header",)
        found = (self._component(each, subject) for each in looks if each)
        return next(filter(None, found), None)

    def _component(self, look: str, subject: str) -> ComponentRow | None:
        return _components(self.catalog).find(look, subject) or self.packaged(look, subject)

    def packaged(self, look: str, subject: str) -> ComponentRow | None:
        """Return the package of Debian that has a header, library, package of CMake or program."""
        known = look in ("header", "library", "package", "tool")
        return _packaged(self.catalog).find(look, subject) if known else None

    def submodule_state(self, path: str) -> str:
        """Say how a submodule's folder is here: "empty", "here", or "" outside of a checkout."""
        tree = self._facts.tree
        if tree.problem is not None or tree.sample:
            return ""
        void = (*tree.empty, *tree.absent)
        return "empty" if any(f"{path}/".startswith(f"{each}/") for each in void) else "here"

    def brings(self, row: ComponentRow) -> str:
        """Return the command that installs a part where the log was written; "" where no row has one."""
        name = row.names.get(self.manager.replace("yum", "dnf"), "") if not self.recipe else ""
        return self._how_to_call(self.manager).format(package=name) if name else ""

    @property
    def manager(self) -> str:
        """Return the package manager of the log's system, which may be another one; "" if unknown."""
        here = system_manager(self._facts, self.catalog) if self._is_here else ""
        named = self.audience.manager if not self._built or self.audience.manager == "conda" else ""
        if self.audience.system == "windows" and not self._is_here:
            return "winget"
        return here if here.replace("yum", "dnf") == named else named or here

    @property
    def recipe(self) -> str:
        """Return where the recipe of this build names what it needs; "" where there is no recipe."""
        return _RECIPES.get(self.manager, "")

    def renamed(self, package: str) -> str:
        """Return the command that installs what is called so elsewhere; "" where no row knows it."""
        manager = self.manager.replace("yum", "dnf")
        stem = re.sub(r"^lib|-dev(?:el)?$", "", package)
        if not stem or stem not in _package_names(self.catalog):
            return ""
        alike = {package, *(f"{lib}{stem}-{end}" for lib in ("", "lib") for end in ("dev", "devel"))}
        for row in (*self.catalog.component, *self.catalog.packaged):
            name = row.names.get(manager, "")
            if not name or stem not in name and not any(stem in each for each in row.names.values()):
                continue
            here = name.split()
            others = " ".join(row.names.values()).split()
            if package not in here and (package in others or alike & {*here}):
                return self.brings(row)
        return ""

    def _how_to_call(self, manager: str) -> str:
        if manager == system_manager(self._facts, self.catalog):
            return installer(self._facts, self.catalog)
        row = next((each for each in self.catalog.manager if each.name == manager), None)
        argv = ("sudo", *_TYPED[manager]) if row and row.root else _TYPED[manager]
        return " ".join((*argv, "{package}"))

    def finds(self, look: str, name: str) -> str:
        """Return the command that names the package which has a file, where no row knows it; "" for none."""
        search = _SEARCHES.get(self.manager.replace("yum", "dnf"), {}).get(look, "")
        before = _BEFORE_SEARCH.get(self.manager, "")
        after = f" (after {before})" if before else ""
        return f"{search.format(name=name)}{after}" if search and _PLAIN.fullmatch(name) else ""

    @property
    def _is_here(self) -> bool:
        """Return whether a package manager of this machine can help where the log was written."""
        return self.audience.system in ("", self._facts.host.os)

    def fix_of(self, row: ComponentRow) -> str:
        """Return the fix of a component's row."""
        like = next((each for each in self.catalog.component if each.name == row.like), row)
        return self.fill(like.fix, (), {"cuda packages": self.cuda_packages(row)})

    def cuda_packages(self, row: ComponentRow | None) -> str:
        """Return the packages of a CUDA toolkit that hold a part of it, of the log's release if known."""
        if row is None or not row.toolkit:
            return "cuda-libraries-dev, cuda-nvcc, cuda-cccl, cuda-profiler-api of that release"
        release = self.audience.cuda.replace(".", "-") or "X-Y, of release X.Y"
        return f"{row.toolkit}-{release}; conda: {row.toolkit}"

    def _fill_names(
        self, sentence: str, groups: Sequence[str], write: Callable[[str], str], known: Mapping[str, str]
    ) -> str:
        """Fill the names in, in one pass, so that text of a log is never read as a name."""
        values: dict[str, str] = {}
        for name in _NAME.findall(sentence):
            if name.isdecimal():
                values[name] = _group(name, groups)
            else:
                inner = _GROUP.sub(lambda match: _group(match[1], groups), name.removeprefix("!"))
                values[name] = known[inner] if inner in known else write(self.value(inner))
        if any(not value and not name.startswith("?") for name, value in values.items()):
            return ""
        return _NAME.sub(lambda match: "" if match[1].startswith("!") else values[match[1]], sentence)

    def _install(self, package: str) -> str:
        """Return the command that installs a package; without a package manager, a sentence that names it."""
        row, _ = package_row(self.catalog, package)
        of_windows = row is not None and [*row.names] == ["winget"]  # whatever system the log does not show
        manager = "winget" if of_windows else self.manager
        if manager != system_manager(self._facts, self.catalog):
            name = package_name(self.catalog, manager, package)
            return self._how_to_call(manager).format(package=name) if name else f"install {package}"
        if (compiler := _COMPILER.fullmatch(package)) and not self._offers(compiler[1]):
            return how_to_install_gcc(self._facts, self.catalog, [int(compiler[1])])
        return install_line(self._facts, self.catalog, package) or f"install {package}"

    def _offers(self, major: str) -> bool:
        here = self.manager == system_manager(self._facts, self.catalog)
        return here and offers_gcc(self._facts, self.catalog, major)

    def _newest(self, name: str, below: str, limit: str) -> str:
        """Return the path of the newest installed compiler up to this version, or a toolset's number."""
        if name == "toolset":
            toolsets = self._facts.windows.toolsets if self._facts.windows else ()
            named = [(each.version, each.version) for each in toolsets if each.cl]
        else:
            compilers = [tool for tool in self._facts.compilers if tool.name == name]
            named = [(tool.version or "", tool.path or "") for tool in compilers]
        precision = limit.count(".") + 1
        most = parse_version(limit)
        found = [(version, value) for text, value in named if value and (version := parse_version(text))]
        fitting = [
            (version, value)
            for version, value in found
            if most and (version < most or (below == "<=" and version.release[:precision] == most.release))
        ]
        return max(fitting)[1] if fitting else ""


def _as_it_is(value: str) -> str:
    return value


def _word(value: str) -> str:
    """Return a value as one word of sh, cmd and PowerShell alike; "" where it cannot be one."""
    if _PLAIN.fullmatch(value) or not value:
        return value
    return "" if any(each in value for each in '"$`') else f'"{value}"'


def _group(number: str, groups: Sequence[str]) -> str:
    return groups[int(number) - 1] if int(number) <= len(groups) else ""


def _values(facts: Facts, plan: BuildPlan, catalog: Catalog) -> Mapping[str, str]:
    choices = {choice.name: choice.value for choice in plan.choices}
    here = facts.tree.problem is None
    values = {
        "source": plan.source if here else ".",
        "build": plan.build_dir if here else "build",
        "python": plan.environment.python if here and plan.environment.python else "python",
        "toolset": choices.get("toolset", ""),
        "libc": facts.host.libc or "",
    }
    if choices.get("jobs", "").isdecimal():
        values["jobs"] = str(max(1, int(choices["jobs"]) // 2))
    values |= _of_the_tree(facts, catalog) if here else {}
    values |= {f"built {name.removeprefix('variable ')}": value for name, value in _inputs(facts).items()}
    if facts.cuda is not None:
        usable = [each for each in facts.cuda.toolkits if each.nvcc and not each.problem]
        values["cuda toolkit"] = choices.get("CUDA toolkit", "") or next((each.path for each in usable), "")
        values["gpus"] = ";".join(sorted({gpu.capability for gpu in facts.cuda.gpus if gpu.capability}))
        values["driver cuda"] = (facts.cuda.driver.cuda or "") if facts.cuda.driver else ""
    return values


def _of_the_tree(facts: Facts, catalog: Catalog) -> Mapping[str, str]:
    """Return what depends on what this folder is: `checkout` only where git can fetch its submodules."""
    tree, version = facts.tree, parse_version(facts.tree.version)
    best = [row.best for row in catalog.cuda_torch if row.best and version and admits(row.torch, version)]
    values = {"torch cuda": best[-1]} if best else {}
    if can_fetch(tree, tree.linkless):
        return {**values, "checkout": tree.root}
    return {**values, "release": fetched_word(tree, catalog), "beside": sibling_folder(tree)}


def _inputs(facts: Facts) -> Mapping[str, str]:
    """Return the inputs of the last good build: a symptom at run time goes back to a choice of then."""
    previous = facts.tree.previous
    return previous.inputs if previous is not None and previous.result == "ok" else {}


def _of_the_build(facts: Facts, plan: BuildPlan) -> Mapping[str, str]:
    choices = {choice.name: choice.value for choice in plan.choices}
    room = usable_memory(facts.memory)
    return {
        "planned jobs": choices.get("jobs", ""),
        "free memory": f"{room[0] / GIB:.1f} GiB" if room else "",
        "archs": choices.get("TORCH_CUDA_ARCH_LIST", ""),
    }

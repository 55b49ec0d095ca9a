"""Compare two recorded builds, group by group, and find remedies for differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from torchbuild_tasks.catalog.match import series
from torchbuild_tasks.model.record import EnvText, Installed, Manifest, Program, Repository
from torchbuild_tasks.text.paths import file_name
from torchbuild_tasks.text.words import as_program, as_word, in_turn
from torchbuild_tasks.values import replace

ABSENT: Final = "-"
# In the order of display. The last ones differ between any two builds.
GROUPS: Final = (
    *("source", "machine", "toolchain", "python", "requirements", "helpers", "asked for", "decided"),
    *("environment", "env file", "commands", "result", "cache", "times"),
)
# Recorded at the end: a killed build, or a record of 0.1.0, lacks them.
_LATE: Final = ("toolchain", "requirements", "env file", "commands")
_NOT_THERE: Final = "not checked out"  # that is a state, which is compared
_HASH: Final = 12  # hex digits that are shown


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference; `remedy` is the command or the step that would remove it ("" for none)."""

    group: str
    name: str
    there: str
    here: str
    remedy: str = ""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two builds, and groups that cannot be compared, each with the reason."""

    differences: tuple[Difference, ...]
    not_compared: tuple[str, ...] = ()


def differences(there: Manifest, here: Manifest, groups: Iterable[str] = GROUPS) -> tuple[Difference, ...]:
    """Return the differences between two builds, group by group.

    The checkout's own place does not count, nor a group of which one of them knows nothing.
    """
    one = _lines(there, here)
    other = _lines(here, there)
    return tuple(
        Difference(
            group=group, name=name, there=one[group].get(name, ABSENT), here=other[group].get(name, ABSENT)
        )
        for group in groups
        if group not in _LATE or (one[group] and other[group])
        for name in {**one[group], **other[group]}
        if one[group].get(name) != other[group].get(name)
    )


def not_compared(there: Manifest, here: Manifest, groups: Iterable[str] = GROUPS) -> tuple[str, ...]:
    """Return the groups that cannot be compared, each with the reason: one manifest lacks them."""
    reasons: dict[str, None] = {}
    for manifest, other in ((there, here), (here, there)):
        lines = _lines(manifest, other)
        if not manifest.repositories:
            reasons[f"source: {manifest.source_problem or 'its state was not recorded'}"] = None
        for each in manifest.repositories:
            called = f"submodule {each.path}" if each.path else "source"
            unknown = each.commit is None and each.problem != _NOT_THERE
            if each.problem and (unknown or each.problem.endswith("not listed")):
                reasons[f"{called}: {each.problem}"] = None
            large = (file.path for file in each.untracked if not file.sha256)
            reasons.update({f"{called}: {path} by its size alone": None for path in large})
        for group in (group for group in _LATE if group in groups and not lines[group]):
            reasons[f"{group}: not known of one of them, as of a build that was cut off"] = None
    return tuple(reasons)


def short(digest: str | None) -> str:
    """Return the first digits of a hash."""
    return (digest or "")[:_HASH]


def _lines(manifest: Manifest, counterpart: Manifest) -> Mapping[str, Mapping[str, str]]:
    """Return every group as names with their texts, with `<checkout>` and `<store>` for those folders."""
    raw = {
        "source": _source(manifest),
        "machine": _machine(manifest),
        "toolchain": {program.name: _program(program) for program in manifest.programs},
        "python": {"python": manifest.python, "version": manifest.python_version or "unknown"},
        "requirements": {each.name: _installed(each) for each in manifest.requirements},
        "helpers": {each.id: short(each.sha256) or "hash unknown" for each in manifest.helpers},
        "asked for": _requested(manifest),
        "decided": _decided(manifest),
        "environment": _environment(manifest),
        "env file": {each.shell: _env_file(each, counterpart) for each in manifest.env_files},
        "commands": {str(n): " ".join(each.argv) for n, each in enumerate(manifest.commands, 1)},
        "result": _result(manifest),
        "cache": _cache(manifest),
        "times": {each.stage: f"{each.seconds:.1f} s" for each in manifest.stages},
    }
    return {group: {name: _portable(manifest, text) for name, text in raw[group].items()} for group in GROUPS}


def _portable(manifest: Manifest, text: str) -> str:
    for place, word in ((manifest.root, "<checkout>"), (manifest.store, "<store>")):
        text = text.replace(place, word) if place else text
    return text


def _source(manifest: Manifest) -> dict[str, str]:
    lines = {"torch": manifest.torch}
    if manifest.source_problem:
        lines["git"] = manifest.source_problem
    for repository in manifest.repositories:
        lines |= _repository(repository)
    return lines | {f"patch {id}": short(digest) for id, digest in manifest.patches.items()}


def _repository(repository: Repository) -> dict[str, str]:
    path = repository.path
    lines = {f"submodule {path}" if path else "commit": repository.commit or "not checked out"}
    if repository.diff_sha256:
        lines[f"changes in {path}" if path else "changes"] = f"diff {short(repository.diff_sha256)}"
    prefix = f"{path}/" if path else ""
    seen = {
        f"untracked {prefix}{file.path}": short(file.sha256) or f"{file.size} bytes"
        for file in repository.untracked
    }
    return lines | seen


def _machine(manifest: Manifest) -> dict[str, str]:
    host = manifest.facts.host
    cpu = manifest.facts.cpu
    memory = manifest.facts.memory.total
    texts = {"system": host.os, "arch": host.arch, "distribution": host.distribution, "libc": host.libc}
    texts |= {"kernel": host.kernel, "cores": str(cpu.affinity or cpu.cores)}
    texts["memory"] = f"{memory / (1 << 30):.1f} GiB" if memory else None
    return {name: text for name, text in texts.items() if text}


def _program(program: Program) -> str:
    digest = f"sha256 {short(program.sha256)}" if program.sha256 else ""
    return "  ".join(filter(None, (program.version or "version unknown", program.path, digest)))


def _installed(installed: Installed) -> str:
    """Return version, origin and the archive's hash if known.

    The hash of a RECORD does not count, for it also differs by the folder of the scripts.
    """
    digest = f"sha256 {short(installed.archive)}" if installed.archive else ""
    return "  ".join(filter(None, (installed.version, installed.origin, digest)))


def _requested(manifest: Manifest) -> dict[str, str]:
    lines = {name: _flat(value) for name, value in manifest.request.items()}
    values = manifest.settings.get("values")
    variables = manifest.settings.get("variables")
    for prefix, table in (("toml", values), ("toml [set]", variables)):
        if isinstance(table, Mapping):
            lines |= {f"{prefix} {name}": _flat(value) for name, value in table.items()}
    return lines | {f"environment {name}": value for name, value in manifest.facts.environ.items()}


def _flat(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _decided(manifest: Manifest) -> dict[str, str]:
    """Return the choices that are not environment variables, which have a group of their own."""
    variables = {op.name for op in manifest.env}
    lines = {choice.name: choice.value for choice in manifest.choices if choice.name not in variables}
    if "linker" in lines:  # its version stands among the programs, and in a choice only before the first link
        lines["linker"] = lines["linker"].partition(" ")[0]
    return {"tool": manifest.tool, **lines}


def _environment(manifest: Manifest) -> dict[str, str]:
    lines: dict[str, str] = {}
    for op in manifest.env:
        text = " ".join(filter(None, (op.value, *op.arguments)))
        name = op.name if op.op == "set" else f"{op.op} {op.name}"
        lines[name] = f"{lines[name]}, {text}" if name in lines else text or "unset"
    return lines


def _env_file(file: EnvText, counterpart: Manifest) -> str:
    """Return an env file's hash, and its first line that differs in the other."""
    other = next((each for each in counterpart.env_files if each.shell == file.shell), None)
    if other is None or other.sha256 == file.sha256:
        return short(file.sha256)
    theirs = set(other.text.splitlines())
    line = next((line for line in file.text.splitlines() if line not in theirs), "")
    return f"{short(file.sha256)}  {line}".rstrip()


def _result(manifest: Manifest) -> dict[str, str]:
    lines = {"result": manifest.result}
    for check in manifest.verify.checks if manifest.verify else ():
        lines[f"check {check.check}"] = check.outcome
    return lines


def _cache(manifest: Manifest) -> dict[str, str]:
    return {
        each.tool: f"{each.found} hits, {each.looked - each.found} misses, {each.errors} errors"
        for each in manifest.caches
    }


# Groups known before the build: not the commands that ran, and their end.
KNOWN_BEFORE: Final = (
    *("source", "machine", "toolchain", "python", "requirements", "helpers"),
    *("decided", "environment", "env file"),
)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a replay: the checkout, the Python, the manifest's file, how a package is installed."""

    root: str
    python: str
    manifest: str
    install: Callable[[str], str]
    windows: bool = False


def with_remedies(items: tuple[Difference, ...], manifest: Manifest, place: Place) -> tuple[Difference, ...]:
    """Return the differences with their remedies."""
    makers = {
        "source": _source_remedy,
        "toolchain": _toolchain,
        "python": _python_remedy,
        "requirements": _requirement,
        "helpers": _helper,
        "decided": _decision_remedies,
        "environment": _variable,
    }
    return tuple(
        replace(each, remedy=makers[each.group](each, manifest, place)) if each.group in makers else each
        for each in items
    )


def _source_remedy(difference: Difference, manifest: Manifest, place: Place) -> str:
    if manifest.source_problem and difference.there == ABSENT:
        return ""  # it does not know what was there
    kind, _, path = difference.name.partition(" ")
    if difference.name == "commit":
        url = next((each.url for each in manifest.repositories if not each.path), "") or "origin"
        update = f"git -C {as_word(place.root)} submodule update --init --recursive"
        return in_turn(*_checkout(place.root, url, difference.there), update, windows=place.windows)
    if kind == "submodule":
        return _submodule(difference, path, place)
    if kind == "changes":
        return _changes(difference, path.removeprefix("in "), place)
    if kind == "untracked":
        lost = "a manifest holds its hash, not its content: copy it from there"
        return lost if difference.there != ABSENT else "it was not there: move it away"
    return ""


def _checkout(folder: str, url: str, commit: str) -> tuple[str, str]:
    git = f"git -C {as_word(folder)}"
    return f"{git} fetch {as_word(url)} {commit}", f"{git} checkout --detach {commit}"


def _submodule(difference: Difference, path: str, place: Place) -> str:
    if difference.there == ABSENT or " " in difference.there:
        return ""
    if difference.here == ABSENT or " " in difference.here:
        return f"git -C {as_word(place.root)} submodule update --init --recursive"
    return in_turn(*_checkout(f"{place.root}/{path}", "origin", difference.there), windows=place.windows)


def _changes(difference: Difference, path: str, place: Place) -> str:
    git = f"git -C {as_word(f'{place.root}/{path}'.rstrip('/'))}"
    away = f"{git} stash" if difference.here != ABSENT else ""
    if difference.there == ABSENT:
        return away
    folder = f"{place.root}/.torchbuild/diffs"  # a whole path: git -C would take another from there
    extracted = f"torchbuild replay {as_word(place.manifest)} --out {as_word(folder)}"
    applied = f"{git} apply {as_word(f'{folder}/{diff_name(path)}')}"
    return in_turn(away, extracted, applied, windows=place.windows)


def diff_name(path: str) -> str:
    """Return the file name of the diff of a submodule; "" is torch itself."""
    return f"{path.replace('/', '-') or 'torch'}.diff"


def _toolchain(difference: Difference, manifest: Manifest, place: Place) -> str:
    program = next((each for each in manifest.programs if each.name == difference.name), None)
    if program is None or not program.version or program.version == difference.here.partition("  ")[0]:
        return ""
    if difference.name in ("CXX", "CC", "CUDAHOSTCXX"):
        return _compiler(program, place)
    if difference.name in ("cmake", "ninja"):
        return f"{as_program(place.python)} -m pip install {difference.name}=={program.version}"
    if difference.name == "nvcc":
        release = series(program.version)
        made = f"torchbuild build --cuda-toolkit pypi:{release}"
        return f"install CUDA {release}, or let it be put together: {made}"
    return ""


def _compiler(program: Program, place: Place) -> str:
    major = str(program.version).partition(".")[0]
    name = file_name(program.path)
    if "clang" in name:
        return place.install(f"clang-{major}")
    if name.startswith(("g++", "gcc", "c++", "cc")):
        return f"{place.install(f'g++-{major}')}, then --set CXX=g++-{major}"
    return f"install {name} {program.version}"


def _python_remedy(difference: Difference, manifest: Manifest, place: Place) -> str:
    if difference.name != "version" or manifest.python_version is None:
        return ""
    return f"install Python {manifest.python_version} and name it: --python PATH"


def _requirement(difference: Difference, manifest: Manifest, place: Place) -> str:
    package = next((each for each in manifest.requirements if each.name == difference.name), None)
    if package is None:
        return f"{as_program(place.python)} -m pip uninstall {difference.name}"
    if difference.name == "torch" or package.origin.startswith(("editable", "file:")):
        return ""
    return f"{as_word(place.python)} -m pip install {package.name}=={package.version}"


def _helper(difference: Difference, manifest: Manifest, place: Place) -> str:
    return "torchbuild helpers fetch" if difference.there != ABSENT else ""


def _decision_remedies(difference: Difference, manifest: Manifest, place: Place) -> str:
    if difference.name != "tool":
        return ""
    name, _, version = manifest.tool.partition(" ")
    return f"pip install {name.replace('_', '-')}=={version}"


def _variable(difference: Difference, manifest: Manifest, place: Place) -> str:
    if difference.there == ABSENT or " " in difference.name or "<checkout>" in difference.there:
        return ""
    return f"--set {difference.name}={as_word(difference.there)}"

"""Decide whether a wheel's libraries suit a checkout, which files are used, and what is verified."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from torchbuild_tasks.catalog.match import parse_version, series
from torchbuild_tasks.catalog.packaging import WheelInputRow
from torchbuild_tasks.catalog.rows import CheckRow
from torchbuild_tasks.errors import INSTALL_GIT
from torchbuild_tasks.features.wheel_overlay.variants import planned_cuda
from torchbuild_tasks.model import BuildPlan, Expectation, Facts, Finding, Freshness, Host, Way, verdict
from torchbuild_tasks.model.wheel import Member, Wheel
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.fit import check_repository
from torchbuild_tasks.plan.install import LIBTORCHLESS, configure_command
from torchbuild_tasks.plan.jetson import board
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.submodules import fetched_word, sibling_folder
from torchbuild_tasks.plan.variables import is_cuda
from torchbuild_tasks.plan.wheel_tags import python_tags, why_other_platform
from torchbuild_tasks.text.words import as_word, first_few
from torchbuild_tasks.values import replace

COMPILED: Final = ("native", "generated", "build")
_UNNAMED: Final = ("native", "a part that no row names")
PYTHON_PART: Final = "torch_python"  # the one library that upstream can compile against existing ones
CHANGED: Final = "changed"  # --target changed: every library that a changed file is compiled into
# Libraries that are the same with and without CUDA: c10 "should not depend on any library that is …
# backend specific" (c10/CMakeLists.txt)
PLAIN: Final = ("c10",)
# The ids of findings that matter where nothing is compiled.
_CHECKED_WITHOUT_COMPILE: Final = frozenset(
    ("source", "era", "arch", "writable", "facts", "flags", "running", "torch-version")
    + ("python", "python-bits", "python-venv", "python-pip", "requirements")
)
# The checks whose result the builder of the wheel decided, so that our plan cannot expect a value.
_DECIDED_BY_BUILDER: Final = frozenset(
    ("config", "cuda_arch_list", "rpath")
)  # an RPATH leads to wheels beside torch
# Caffe2Config.cmake of a CUDA wheel asks for the toolkit that it was built with.
_NEEDS_TOOLKIT: Final = "cmake_consumer"
# Keys of the check "import" that the builder of the wheel decided.
_REPORTED: Final = ("version", "git_version", "distribution", "debug")
_OF_WHEEL: Final = "of the wheel whose libraries these are"
_DIFFED: Final = re.compile(r"^diff --git a/(.+) b/", re.MULTILINE)
# The files on PyPI and download.pytorch.org: manylinux_2_28 from 2.7 on, in part from 2.6; before, manylinux1
# and manylinux2014; for these two processors, and none for musl (release notes of 2.6; pypi.org, torch).
_NEWER_GLIBC: Final = Version("2.7a0")
_OF_INDEX: Final = ("x86_64", "aarch64")
_OTHER_DEVICES: Final = re.compile(r"(?:\+|%2B)(rocm|xpu)", re.IGNORECASE)  # as in torch-2.9.1+rocm6.4-...
_RELEASE_TAG: Final = re.compile(r"v(\d+(?:\.\d+){1,3})")
_MODULE: Final = re.compile(r"torch/_C\.(?:([^/.]+)\.)?(?:so|pyd)")


def obstacle(text: str, fix: str = "") -> Finding:
    """Return the finding that a wheel cannot be used."""
    return Finding.error("from-wheel", text, fix)


# ---------------- what has changed since the wheel was built


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """A changed file that needs a compile: the kind and the part of its row in wheel_inputs.toml."""

    path: str
    kind: str
    part: str


def find_row(path: str, rows: Iterable[WheelInputRow]) -> WheelInputRow | None:
    """Return the first row with a pattern that matches this path; None if there is none."""
    return next((row for row in rows if any(fnmatch.fnmatchcase(path, each) for each in row.paths)), None)


def find_reached(
    changed: Iterable[str], untracked: Iterable[str], rows: Sequence[WheelInputRow]
) -> tuple[Reached, ...]:
    """Return the files that are an input of a compile.

    Args:
        changed: tracked files that differ; one without a row counts as native code.
        untracked: untracked files; one without a row is the user's own and is left out.
        rows: the rows of wheel_inputs.toml.
    """
    found = [(path, find_row(path, rows)) for path in changed]
    found += [(path, row) for path in untracked if (row := find_row(path, rows))]
    kinds = [(path, *((row.kind, row.part) if row else _UNNAMED)) for path, row in found]
    return tuple(Reached(path=path, kind=kind, part=part) for path, kind, part in kinds if kind in COMPILED)


def select_blocking(target: str, reached: Iterable[Reached]) -> tuple[Reached, ...]:
    """Return the files that rule a wheel out: all except those that this --target compiles against it."""
    if target == CHANGED:
        return tuple(each for each in reached if each.kind != "native")
    return tuple(each for each in reached if target != PYTHON_PART or each.part != PYTHON_PART)


def why_other_cuda(wheel: Wheel, plan: BuildPlan, reached: Iterable[Reached]) -> str:
    """Say that the plan's CUDA is not the wheel's, where code is compiled against it; "" if they agree."""
    theirs = series(wheel.cuda)
    ours = planned_cuda(plan.inputs)
    # A header of c10 may be included by code that exists in a build with CUDA only; a .cpp cannot.
    plain = all(each.part in PLAIN and each.path.endswith(".cpp") for each in reached)
    needs_none = plan.way.target == CHANGED and plain
    if not plan.way.target or theirs == ours or needs_none:
        return ""
    fix = f"--cuda --cuda-toolkit {theirs}" if theirs else "--cpu"
    what = PYTHON_PART if plan.way.target == PYTHON_PART else "what has changed"
    return f"it has {_cuda(theirs)}, and {what} would be compiled with {_cuda(ours)}; use {fix}"


def _cuda(version: str) -> str:
    return f"CUDA {version}" if version else "no CUDA"


def why_no_mixed_build(facts: Facts) -> str:
    """Say why this checkout cannot compile torch_python alone; "" if it can."""
    tree = facts.tree
    if LIBTORCHLESS not in (tree.reads.names if tree.reads else ()):
        return f"its CMake files know no {LIBTORCHLESS}, which PyTorch has from 2.5 on"
    if tree.era != "setuptools":
        return "this is done up to torch 2.13, by setup.py"
    return ""


def suggest_target(facts: Facts, reached: Sequence[Reached]) -> str:
    """Return the --target that compiles these files against a wheel's libraries; "" if there is none."""
    if all(each.part == PYTHON_PART for each in reached) and not why_no_mixed_build(facts):
        return PYTHON_PART
    return CHANGED if all(each.kind == "native" for each in reached) else ""


def describe_reach(
    reached: Sequence[Reached], targets: Mapping[str, Sequence[str]], *, offer: str = ""
) -> tuple[Finding, ...]:
    """Return one finding a part, with its files and, if known, the Ninja targets that use them.

    `offer`: the --target that compiles these files against the wheel's libraries; "" if none does.
    """
    what = "that alone" if offer == PYTHON_PART else "the libraries that this reaches"
    fix = f"The same command with --target {offer} compiles {what}, against the wheel's libraries."
    parts: dict[tuple[str, str], list[str]] = {}
    for each in reached:
        parts.setdefault((each.part, each.kind), []).append(each.path)
    findings = []
    for (part, kind), paths in sorted(parts.items()):
        led = sorted({target for path in paths for target in targets.get(path, ())})
        to = f"{part}, by Ninja's graph {first_few(led)}" if led else part
        findings.append(obstacle(f"{kind}, reaches {to}: {first_few(paths)}", fix if offer else ""))
    return tuple(findings)


def built_from_changes(manifest: Mapping[str, Any], commit: str, rows: Sequence[WheelInputRow]) -> str:
    """Say that a wheel was built from changed files, by the manifest of its build; "" if it was not.

    Args:
        manifest: the manifest of the last build in the checkout that built the wheel, as JSON.
        commit: the commit that the wheel reports.
        rows: the rows of wheel_inputs.toml.
    """
    modes = [each.get("value") for each in manifest.get("choices", ()) if each.get("name") == "mode"]
    if modes != ["wheel"]:
        return ""
    paths: list[str] = []
    for repository in manifest.get("repositories", ()):
        name = repository.get("path", "")
        changed = repository.get("diff_sha256")
        if changed and (name or repository.get("commit") == commit):
            listed = _DIFFED.findall(repository.get("diff") or "") if not name else []
            paths += listed or [name or "CMakeLists.txt"]  # a diff that was not kept may hold anything
    reached = find_reached(paths, (), rows)
    names = first_few([each.path for each in reached])
    return f"it was built here from files that its commit does not have so: {names}" if reached else ""


def release_tags(tags: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the tags of final releases with their versions, newest first."""
    releases = [(tag, match[1]) for tag in tags if (match := _RELEASE_TAG.fullmatch(tag))]
    return tuple(sorted(releases, key=lambda pair: Version(pair[1]), reverse=True))


def is_commit(word: str) -> bool:
    """Say whether this is a full commit hash, and so cannot be an option of git."""
    return re.fullmatch(r"[0-9a-f]{40}", word) is not None


# ---------------- whether a wheel is for this Python and this machine


def why_unsuitable(wheel: Wheel, version: str | None, abi: str | None, host: Host) -> str:
    """Say why a wheel does not fit this Python or this machine, by its tags; "" if it fits.

    Args:
        version: the version of the Python that torch is installed into.
        abi: the ABI of that Python (SOABI); None if unknown.
    """
    try:
        name, named, _, tags = parse_wheel_filename(wheel.file)
    except InvalidWheelFilename as error:
        return f"its name is none of a wheel: {error}"
    if name != "torch":
        return f"it is a wheel of {name}, not of torch"
    python, abi_tag = python_tags(version, abi)
    fits = [tag for tag in tags if tag.interpreter in (python, "py3")]
    if not fits:
        return f"it is for {_join_sorted(tag.interpreter for tag in tags)}, and the Python here is {python}"
    fits = [tag for tag in fits if tag.abi in (abi_tag, "none") or (tag.abi == "abi3" and abi_tag[-1] != "t")]
    if not fits:
        return f"it is for the ABI {_join_sorted(tag.abi for tag in tags)}, and the Python here has {abi_tag}"
    reasons = [why_other_platform(tag.platform, host) for tag in fits]
    if "" not in reasons:
        return reasons[0]
    if parse_version(wheel.version) != named:
        return f"it is version {named} by its name and {wheel.version!r} by its METADATA"
    return _why_other_module(wheel, abi)


def _why_other_module(wheel: Wheel, abi: str | None) -> str:
    """Say that torch._C is for another Python or machine than the file name says, as in a renamed wheel."""
    modules = [match for each in wheel.members if (match := _MODULE.fullmatch(each.name))]
    if not abi or not modules or any(match[1] in (None, "abi3", abi) for match in modules):
        return ""
    return f"its {modules[0][0]} is for another Python or machine than its name says; here it is {abi}"


def _join_sorted(words: Iterable[str]) -> str:
    return ", ".join(sorted(set(words)))


# ---------------- which files are taken


def choose_members(
    wheel: Wheel, tracked: Collection[str], outputs: Callable[[str], bool]
) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    """Return the files to copy over the checkout, and the names of the files that are not used.

    Used are the outputs of a build, and no file that git tracks, so edited files stay. A file that is
    neither was tracked when the wheel was built and has been removed from the checkout since.
    """
    members, unused = [], []
    own = (f"{wheel.dist_info}/", wheel.dist_info.replace(".dist-info", ".data/"))
    for member in wheel.members:
        if member.name.startswith(own) or member.name in tracked:
            continue
        if outputs(member.name):
            members.append(member)
        else:
            unused.append(member.name)
    return tuple(members), tuple(unused)


# ---------------- the plan of it


def plan_overlay(question: Question, plan: BuildPlan, companions: Set[str]) -> BuildPlan:
    """Return the plan without the parts that compile torch; `companions` are built against the wheel's torch.

    For a mixed build the settings of the compile stay.
    """
    mixed = question.request.mixed
    own_findings = (
        each for each in plan.findings if mixed or each.id in _CHECKED_WITHOUT_COMPILE | companions
    )
    findings = (*own_findings, *_check_flags(question))
    overlay = replace(
        plan,
        verdict=verdict(findings),
        findings=findings,
        environment=replace(plan.environment, remove=None),
        patches=(),
        way=_way(question, plan),
        expectations=tuple(
            _defer_to_wheel(each) for each in _independent_of_wheel(question.catalog.check, plan.expectations)
        ),
    )
    if mixed:
        return overlay
    names = {"source", "torch", "python", "mode", "version", *companions}
    return replace(
        overlay,
        choices=tuple(each for each in plan.choices if each.name in names),
        environment=replace(overlay.environment, better=None),
        artifacts=(),
        toolkit=None,
        preflight=None,
        cache=None,
        jobserver=None,
        freshness=Freshness(needs="nothing", because="what an earlier wheel, or a build, left goes first"),
        linker=None,
        env=(),
        env_files=(),
        compile=replace(plan.compile, argv=()),
    )


def _way(question: Question, plan: BuildPlan) -> Way:
    if not question.request.mixed:
        return Way(name="from-wheel", because="nothing is compiled")
    target = str(question.request.target)
    alone = target == PYTHON_PART
    what = f"{PYTHON_PART} alone is compiled" if alone else "the libraries that a change reaches are compiled"
    configure = configure_command(question, plan.environment.python)
    return Way(name="from-wheel", because=f"{what}, against them", configure=configure, target=target)


def _independent_of_wheel(
    rows: Iterable[CheckRow], expectations: Iterable[Expectation]
) -> Iterator[Expectation]:
    """Yield the expectations that hold for any wheel, however it was built."""
    variables = {(row.check, row.key) for row in rows if row.variable}
    for each in expectations:
        own = each.check in _DECIDED_BY_BUILDER or each.key in ("cuda", "built_with")
        if not own and (each.check, each.key) not in variables:
            yield each


def _defer_to_wheel(expectation: Expectation) -> Expectation:
    """Return the expectation for a wheel that is not known yet."""
    if expectation.check == "import" and expectation.key in _REPORTED:
        return replace(expectation, wanted="as the wheel says", because=_OF_WHEEL)
    return expectation


def _check_index(question: Question) -> Iterator[Finding]:
    """Report a machine for which torch's indexes have no wheel: its C library or its processor is another."""
    word, host = question.request.from_wheel or "", question.facts.host
    version = parse_version(word) or question.version
    if host.os != "linux" or version is None or question.facts.tree.sample:
        return
    glibc = "2_28" if version >= _NEWER_GLIBC else "2_17"
    arch = host.arch if host.arch in _OF_INDEX else "x86_64"
    reason = why_other_platform(f"manylinux_{glibc}_{arch}", host)
    known = board(question)
    if not reason and known and not known.sbsa and is_cuda(question):
        reason = f"those with CUDA are made for Arm servers, and this is a {known.name}"
    if reason and (word == "auto" or parse_version(word)):
        text = f"torch's own wheels do not fit this machine: {reason}"
        fix = "Leave out --from-wheel, and compile; or name a wheel that was built for it: --from-wheel FILE."
        own = Finding.warn("from-wheel", f"{text}; only one that was built in this checkout does", fix)
        yield own if word == "auto" else obstacle(text, fix)


def _check_device(request: BuildRequest) -> Iterator[Finding]:
    """Report a wheel, by its local version, of a device that is not known, or that a flag contradicts."""
    if other := _OTHER_DEVICES.search(request.from_wheel or ""):
        text = f"--from-wheel {request.from_wheel} is for {other[1].upper().replace('ROCM', 'ROCm')}, "
        yield obstacle(
            f"{text}and only wheels for CPUs and CUDA are known here", "Name one of these, or auto."
        )
    of_wheel = re.search(r"\+(cu\d{2,3}|cpu)\b", request.from_wheel or "")
    if of_wheel and (request.cpu if of_wheel[1] != "cpu" else request.cuda):
        device = "--cuda" if request.cuda else "--cpu"
        text = f"{device} and --from-wheel {request.from_wheel} contradict each other"
        yield obstacle(text, "Give one of them.")


def _check_flags(question: Question) -> Iterable[Finding]:
    request, tree = question.request, question.facts.tree
    conflicts = {
        "--watch": request.watch,
        f"--target {request.target}": request.mixed and request.target not in (PYTHON_PART, CHANGED),
        "--mode wheel": question.value("mode", "develop") == "wheel",
        "--with": request.mixed and (request.with_ or request.with_extension),
    }
    wrong = [flag for flag, is_given in conflicts.items() if is_given]
    if wrong:
        nothing = f"nothing but {PYTHON_PART}, or what has {CHANGED}" if request.mixed else "nothing"
        text = f"--from-wheel compiles {nothing}, and {' and '.join(wrong)} does"
        yield obstacle(text, f"Leave out --from-wheel, or {wrong[0]}.")
    elif request.target == PYTHON_PART and not tree.problem and (lack := why_no_mixed_build(question.facts)):
        text = f"{PYTHON_PART} cannot be compiled against a wheel's libraries here: {lack}"
        fix = (
            f"--target {CHANGED} instead also does without that switch; without --from-wheel all is compiled."
        )
        yield obstacle(text, fix)
    wheel, own = parse_version(request.from_wheel or ""), question.read_version
    if wheel and own and not tree.sample and wheel.release[:2] != own.release[:2]:
        text = f"--from-wheel {request.from_wheel} is of another series than this checkout ({tree.version}): "
        text += "what is compiled differs between the two"
        fix = f"Name a wheel of {own.major}.{own.minor}, or auto. Without --from-wheel all is compiled."
        yield obstacle(text, fix)
    yield from _check_index(question)
    yield from _check_device(request)
    if request.set and not request.mixed:
        text = f"--from-wheel compiles nothing, so {' and '.join(f'--set {each}' for each in request.set)} "
        text += "has no effect" if len(request.set) == 1 else "have no effect"
        yield Finding.warn("from-wheel", text, "Drop it, or leave out --from-wheel.")
    if unread := next(check_repository(question), None):
        text = f"git cannot read the repository of {tree.root}, so what was changed cannot be told: "
        yield obstacle(f"{text}{tree.git_problem}", unread.fix)
    elif tree.git and not tree.commit:
        yield obstacle(f"git is not here, and tells of which commit {tree.root} is", INSTALL_GIT)
    elif not tree.problem and not tree.commit:
        text = (
            f"{tree.root} is not a git checkout: of which commit it is, and what was changed, cannot be told"
        )
        beside = as_word(sibling_folder(tree))
        word = fetched_word(tree, question.catalog)
        fix = (
            f"Get a checkout: torchbuild source get {word} --source {beside}; then give the same command "
            f"--source {beside}. Or leave out --from-wheel, which compiles."
        )
        yield obstacle(text, fix)


def wheel_inputs(wheel: Wheel, identity: str) -> dict[str, str]:
    """Return the inputs that the manifest records for a wheel."""
    versions = f"{wheel.version} {wheel.torch_version} {wheel.commit} {wheel.cuda}".rstrip()
    return {"wheel": f"{wheel.file} {identity}", "wheel versions": versions}


def wheel_expectations(
    question: Question, expectations: Iterable[Expectation], inputs: Mapping[str, str]
) -> tuple[Expectation, ...]:
    """Return the checks for a checkout with a wheel's libraries: it computes, and it is that wheel's torch.

    A wheel with CUDA must also compute on the GPUs of this machine, even if the plan is without CUDA.
    `inputs` are those of `wheel_inputs`, from the manifest.
    """
    rows = question.catalog.check
    version, torch, commit, cuda = (*inputs.get("wheel versions", "").split(), "", "", "", "")[:4]
    with_cuda = bool(cuda) or "+cu" in torch
    by_key = dict(zip(_REPORTED, (torch, commit, version, ""), strict=True))
    promised = []
    for each in _independent_of_wheel(rows, expectations):
        wanted = by_key.get(each.key) if each.check == "import" else None
        if wanted:
            each = replace(each, wanted=wanted, because=_OF_WHEEL)
        if each.check == _NEEDS_TOOLKIT and with_cuda:
            each = replace(each, skip="it takes the CUDA toolkit that the wheel was built with")
        if wanted != "":
            promised.append(each)
    if cuda:
        promised.append(Expectation(check="import", key="cuda", wanted=cuda, because=_OF_WHEEL))
    if with_cuda:
        known = {each.check for each in promised if not each.key}
        promised += _cuda_expectations(rows, known, question.facts.tree.sample)
    return tuple(promised)


def _cuda_expectations(rows: Sequence[CheckRow], known: Set[str], sample: bool) -> Iterator[Expectation]:
    """Yield the checks for CUDA, of torch and of the companions checked so far, that `known` lacks."""
    beside = {"", *(row.companion for row in rows if row.check in known)}
    for row in rows:
        if row.when == "USE_CUDA" and not row.key and row.companion in beside and row.check not in known:
            yield Expectation(check=row.check, because=row.because, skip=row.sample if sample else "")


def describe_distance(ahead: int) -> str:
    """Return how many commits ago this is, in words."""
    if ahead < 2:
        return "the commit before this one" if ahead else "this commit"
    return f"{ahead} commits ago"


def describe_overlay(count: int, wheel: Wheel, ahead: int) -> str:
    """Return the line for the user after the files were copied."""
    at = f"{describe_distance(ahead)} ({wheel.commit[:10]})"
    return f"{count} files of {wheel.file}, built from {at}, were copied over the checkout"

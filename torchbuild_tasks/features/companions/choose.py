"""Decide the companions of --with and --with-extension: release, source, and whether it fits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import admits, applies, counts_for, parse_requirement, parse_version
from torchbuild_tasks.catalog.source import BuilderSettingRow, CompanionReleaseRow, CompanionRow
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Choice, Companion, CompanionSource, Finding
from torchbuild_tasks.plan.environment import first_python
from torchbuild_tasks.plan.idle import against_cuda
from torchbuild_tasks.plan.jobs import choose_jobs
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_cuda, is_off
from torchbuild_tasks.text.words import as_word, did_you_mean
from torchbuild_tasks.values import replace

FOLDER = (".torchbuild", "companions")
_URL = re.compile(r"[a-z+]+://|[\w.-]+@[\w.-]+:")
_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(?!=)(.*)")
_PATH = re.compile(r"[.~]|.*[/\\]")
NAME = "torchvision"
# Build requirements if a project declares none (PEP 518 defines the first two; without ninja
# torch.utils.cpp_extension compiles one file at a time).
BUILDS_WITH = ("setuptools", "wheel", "ninja", "packaging")
# What reads `license = "MIT"` in pyproject.toml, which older ones know as a table only (changes of 77.0.0).
STRING_LICENCE = "setuptools>=77.0"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One word of --with: NAME, NAME=PATH, NAME=URL or NAME=URL@REF.

    One of --with-extension may leave out the name, or be a requirement (PEP 508) whose sdist is on an index.
    """

    row: CompanionRow
    path: str = ""
    url: str = ""
    ref: str = ""
    requirement: str = ""


def read_with(words: tuple[str, ...], catalog: Catalog) -> tuple[Wanted, ...]:
    """Parse the words of --with; of one project the last word counts.

    Raises:
        UsageError: a word names no project that is known, or has nothing after its =.
    """
    rows = {row.name: row for row in catalog.companion}
    wanted = {}
    for word in words:
        name, equals, place = word.partition("=")
        if name not in rows:
            hint = did_you_mean(name, rows)
            next_step = f"Known are {', '.join(rows)}, each also as NAME=PATH or NAME=URL@REF."
            raise UsageError(f"--with '{word}': no project of that name is known{hint}", next_step=next_step)
        if equals and not place:
            raise UsageError(
                f"--with '{word}' has nothing after its =", next_step=f"Write --with {name}=PATH"
            )
        wanted[name] = _read(rows[name], place)
    return tuple(wanted.values())


def read_extensions(words: tuple[str, ...], catalog: Catalog) -> tuple[Wanted, ...]:
    """Parse the words of --with-extension: NAME, NAME==VERSION, PATH, URL@REF, or the latter two by a name.

    Raises:
        UsageError: a word is none of these.
    """
    return tuple({(each := _read_extension(word, catalog)).row.name: each for word in words}.values())


def _read_extension(word: str, catalog: Catalog) -> Wanted:
    ways = "Write NAME, NAME==VERSION, PATH, URL@REF, NAME=PATH or NAME=URL@REF."
    if named := _NAMED.fullmatch(word):
        if not named[2]:
            raise UsageError(f"--with-extension '{word}' has nothing after its =", next_step=ways)
        return _read(_row_of(named[1], catalog), named[2])
    if _URL.match(word):
        wanted = _read(_row_of("", catalog), word)
        called = re.split(r"[/:\\]", wanted.url.rstrip("/"))[-1].removesuffix(".git")
        return replace(wanted, row=_row_of(called, catalog))
    if _PATH.match(word):
        called = re.split(r"[/\\]", word.rstrip("/\\"))[-1]
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", called):
            raise UsageError(f"--with-extension '{word}': the folder has no name of its own", next_step=ways)
        return Wanted(row=_row_of(called, catalog), path=word)
    if (requirement := parse_requirement(word)) is None:
        raise UsageError(f"--with-extension '{word}' is neither a name nor a place", next_step=ways)
    if requirement.url or requirement.marker or requirement.extras:
        raise UsageError(f"--with-extension '{word}': a name and a version are enough", next_step=ways)
    row = _row_of(requirement.name, catalog)
    if row.extension and (row.sdist or not row.url):
        return Wanted(row=row, requirement=f"{row.sdist or row.name}{requirement.specifier}")
    if requirement.specifier:
        text = f"--with-extension '{word}': the source of {row.name} is a repository"
        raise UsageError(text, next_step=f"Name a tag of it: --with-extension {row.name}={row.url}@REF")
    return Wanted(row=row)


def _row_of(name: str, catalog: Catalog) -> CompanionRow:
    """Return the row of a project, by any spelling of its name (PEP 503), or an empty one."""
    called = canonicalize_name(name)
    rows = (row for row in catalog.companion if called in (canonicalize_name(row.name), row.sdist))
    return next(rows, CompanionRow(name=name, url="", source="", extension=True))


def _read(row: CompanionRow, place: str) -> Wanted:
    path, url, ref = read_place(place)
    return Wanted(row=row, path=path, url=url, ref=ref)


def read_place(place: str) -> tuple[str, str, str]:
    """Return the path of a source, or its address and ref: PATH, URL or URL@REF."""
    if not _URL.match(place):
        return place, "", ""
    head, slash, last = place.rpartition("/")
    name, _, ref = last.partition("@")
    return "", f"{head}{slash}{name}", ref


def wanted_companions(question: Question) -> tuple[Wanted, ...]:
    """Return the companions of --with and --with-extension, else of torchbuild.toml.

    Of one target nothing is installed, so there are none.
    """
    if question.request.target:
        return ()
    fields = (question.given("with_"), question.given("with_extension"))
    words, extensions = (tuple(field[0]) if field else () for field in fields)
    return read_wanted(words, extensions, question.catalog)


def read_wanted(words: tuple[str, ...], extensions: tuple[str, ...], catalog: Catalog) -> tuple[Wanted, ...]:
    """Return the projects of both flags; raises UsageError for a word that cannot be read."""
    wanted = (*read_with(words, catalog), *read_extensions(extensions, catalog))
    return tuple({each.row.name: each for each in wanted}.values())


def companion_requires(question: Question) -> tuple[str, ...]:
    """Return the requirements of the companions' builds and imports (PEP 508)."""
    texts: list[str] = []
    for wanted in wanted_companions(question):
        source = source_of(question, wanted.row.name)
        own = BUILDS_WITH if wanted.row.extension else ()
        needs = without_torch(source.builds_with, wanted.row.without) if source else ()
        texts += (*wanted.row.requires, *own, *needs)
    return without_torch(tuple(dict.fromkeys(texts)))


def without_torch(texts: tuple[str, ...], others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return requirements (PEP 508) without torch and without unreadable ones.

    `others` are projects that are left out, too.
    """
    gone = {"torch", *others}
    parsed = ((text, parse_requirement(text)) for text in texts)
    return tuple(text for text, each in parsed if each and canonicalize_name(each.name) not in gone)


def find_other_torch(texts: tuple[str, ...], torch: str, python: str = "") -> str:
    """Return the first requirement that excludes this version of torch; "" for none."""
    for text in texts:
        each = parse_requirement(text)
        if each is None or canonicalize_name(each.name) != "torch":
            continue
        if counts_for(each, python) and not each.specifier.contains(torch, prereleases=True):
            return text
    return ""


def choose_companions(question: Question, python: str) -> tuple[Companion, ...]:
    """Return the companions that `python` will build; findings name those that cannot be built."""
    chosen = (_choose_one(question, wanted, python) for wanted in wanted_companions(question))
    return tuple(companion for companion in chosen if companion)


def companion_choices(question: Question, companions: tuple[Companion, ...]) -> tuple[Choice, ...]:
    """Return the projects that are built with torch, for the list of choices."""
    requested = question.given("with_extension") or question.given("with_")
    source = requested[1] if requested else "default"
    return tuple(
        Choice(
            name=each.name,
            value=each.version or each.ref or each.requirement or each.folder,
            because=each.because,
            source=source,
        )
        for each in companions
    )


def _flag(wanted: Wanted) -> str:
    """Return the flag that takes a project: --with knows only those with a row."""
    return "--with-extension" if wanted.row.extension else "--with"


def _choose_one(question: Question, wanted: Wanted, python: str) -> Companion | None:
    name = wanted.row.name
    if wanted.path:
        source = source_of(question, name)
        if source is None or source.problem:
            return None
        state = source.commit if source.commit and source.dirty is False else ""
        because = f"the folder that {_flag(wanted)} names, for torch {question.version}"
        companion = _companion(question, wanted, python, source.path, state, because)
        return replace(companion, version=source.version or "")
    if wanted.requirement:
        folder = question.join(*FOLDER, re.sub(r"[^A-Za-z0-9_.]+", "-", wanted.requirement).strip("-"))
        because = "its sdist, as the package index has it"
        companion = _companion(question, wanted, python, folder, wanted.requirement, because)
        return replace(companion, requirement=wanted.requirement)
    if wanted.row.extension and not wanted.ref:  # without a row about matching versions of torch
        wanted = replace(wanted, ref="HEAD")
    release = newest_release(question.catalog, name, question.version)
    if not (wanted.ref or release):
        return None
    ref = wanted.ref or (f"v{release.version}" if release else "")
    folder = question.join(*FOLDER, f"{name}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', ref)}")
    newest = f"the newest that builds with torch {question.version}"
    because = f"{ref}, which {_flag(wanted)} names" if wanted.ref else newest
    companion = _companion(question, wanted, python, folder, ref, because)
    version = "" if wanted.ref or release is None else release.version
    return replace(companion, version=version, url=wanted.url or wanted.row.url, ref=ref)


def _companion(
    question: Question, wanted: Wanted, python: str, folder: str, state: str, because: str
) -> Companion:
    """Return a companion, built without isolation and dependencies: either would install another torch.

    Nor with pip's cache: from a folder called name-version it gives the wheel that was built there for the
    torch before (pip's should_cache).
    """
    pip = (python, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-input", "--no-cache-dir")
    cuda = is_cuda(question)
    known = {"{cuda}": str(int(cuda)), "{device}": "cuda" if cuda else "cpu"}
    values = {key: _value(question, key, value) for key, value in wanted.row.set.items()}
    for word, meaning in known.items():
        values = {key: value.replace(word, meaning) for key, value in values.items()}
    wheels = question.join(*FOLDER, "wheels", wanted.row.name)
    fetched = bool(wanted.requirement or wanted.url or not wanted.path)
    return Companion(
        name=wanted.row.name,
        version="",
        folder=folder,
        wheels=wheels,
        argv=(*pip, "-v", "--no-build-isolation", "--no-deps", "--wheel-dir", wheels, folder),
        before=wanted.row.before if fetched else (),
        extension=wanted.row.extension,
        module=wanted.row.module,
        set={**_jobs(question, wanted.row), **_builder(question), **values},
        state=state,
        because=because,
    )


def _jobs(question: Question, row: CompanionRow) -> dict[str, str]:
    """Return the variables with the jobs of setuptools and CMake, limited by the memory of its compiles."""
    if not row.extension:
        return {}
    kind = row.job if row.job and is_cuda(question) else "nvcc" if is_cuda(question) else "c++"
    jobs = choose_jobs(question, "Release", kind).value
    # Most that have kernels compile four architectures of one file at once, on top of their jobs.
    threads = {"NVCC_THREADS": _value(question, "NVCC_THREADS", "1")} if is_cuda(question) else {}
    return {"MAX_JOBS": jobs, "CMAKE_BUILD_PARALLEL_LEVEL": jobs, **threads}


def _builder(question: Question) -> dict[str, str]:
    """Return the variables with which this torch's own builder of extensions does not stop for nothing."""
    rows = _builder_rows(question)
    return {name: _value(question, name, value) for row in rows for name, value in row.set.items()}


def _builder_rows(question: Question) -> list[BuilderSettingRow]:
    return [
        row
        for row in question.catalog.builder_setting
        if row.os in ("", question.facts.host.os)
        and (is_cuda(question) or not row.cuda)
        and applies(row.torch, question.version)
    ]


def _value(question: Question, name: str, value: str) -> str:
    """Return a row's variable; the user's value wins unless the row's depends on the build."""
    own = decide(question, name) if "{" not in value else None
    return own.value if own else value


def source_of(question: Question, name: str) -> CompanionSource | None:
    """Return the source in the folder that --with names for a project."""
    return next((each for each in question.facts.companions if each.name == name), None)


# ---- findings


def check_companions(
    question: Question, gpus: tuple[tuple[int, int], ...] = (), cuda: Version | None = None
) -> tuple[Finding, ...]:
    """Return a finding for each companion, whether it fits the torch of this build, and what else is known.

    `gpus` are the compute capabilities that are compiled for, `cuda` is the toolkit's version.
    """
    companions = wanted_companions(question)
    return (
        *(_check_folder(question, one) if one.path else _check_release(question, one) for one in companions),
        *(finding for one in companions for finding in _check_builders(question, one)),
        *(finding for one in companions for finding in _check_machine(question, one, gpus, cuda)),
        *_check_blank(question),
        *(_show_builder(row, companions[0]) for row in _builder_rows(question) if companions),
    )


def _show_builder(row: BuilderSettingRow, wanted: Wanted) -> Finding:
    said = " ".join(f"{name}={value}" for name, value in row.set.items())
    return Finding.ok(wanted.row.name, f"its build gets {said}, for {row.because}")


def _check_machine(
    question: Question, wanted: Wanted, gpus: tuple[tuple[int, int], ...], cuda: Version | None
) -> Iterator[Finding]:
    """Report a project that is for other GPUs, another toolkit or another system than this build's."""
    row, fix = wanted.row, f"Leave it out: drop {_flag(wanted)} {wanted.row.name}."
    if row.os not in ("", question.facts.host.os):
        text = f"{row.name} is for {row.os.capitalize()} only, by its own documentation"
        yield Finding.warn(row.name, text, f"{fix} Or build in WSL.")
    if cuda and row.toolkit and not admits(row.toolkit, cuda):
        text = f"{row.name} builds with CUDA {row.toolkit}, and this is {cuda}"
        yield Finding.warn(row.name, text, fix)
    for name in row.switches:
        chosen = decide(question, name)
        if chosen and is_off(chosen.value):
            text = f"{row.name} needs a torch with {name}, and this one has {name}={chosen.value} "
            text += f"({chosen.because}): it may be compiled for hours, and then cannot be imported"
            yield Finding.warn(row.name, text, f"Build torch with it: --set {name}=1; or l{fix[1:]}")
    oldest = parse_version(row.oldest)
    weak = [f"{major}.{minor}" for major, minor in gpus if oldest and (major, minor) < oldest.release[:2]]
    if weak and len(weak) < len(gpus):
        text = f"{row.name}'s kernels run on GPUs from {row.oldest} on: not on {', '.join(weak)}"
        yield Finding.ok(row.name, text)
    if oldest and gpus and max(gpus) < oldest.release[:2]:
        named = ", ".join(f"{major}.{minor}" for major, minor in gpus)
        text = (
            f"{row.name}'s kernels run on GPUs from {row.oldest} on, and torch is built for {named}: it may "
        )
        text += "be compiled for hours, and then refuses to run"
        yield Finding.warn(row.name, text, fix)


def _check_blank(question: Question) -> Iterator[Finding]:
    """Report a blank in the path of Python's headers, at which torchvision's build on Windows splits it."""
    python = first_python(question)
    include = python.include or "" if python else ""
    named = any(wanted.row.name == NAME for wanted in wanted_companions(question))
    if named and question.facts.host.os == "windows" and " " in include:
        text = f"{include}: {NAME}'s build misreads the blank as the end of the path (pytorch/vision 9165)"
        fix = "Install Python in a folder without blanks, such as C:\\Python311, and name it: --python PATH"
        yield Finding.warn(NAME, text, fix)


def _check_release(question: Question, wanted: Wanted) -> Finding:
    name = wanted.row.name
    torch = question.version
    if wanted.row.cuda and not (is_cuda(question) or question.request.from_wheel):
        text = f"{name} supports only NVIDIA GPUs, and this torch is built without CUDA"
        against = against_cuda(question)
        way = f"Put --cuda in the place of {against}" if against else "Add --cuda"
        return Finding.error(name, text, f"{way}, or leave out {name}.")
    if wanted.row.extension:
        text = f"whether {name} builds with torch {torch} is not known before; a failure changes nothing else"
        return Finding.ok(name, text)
    if wanted.ref:
        text = f"whether {name} {wanted.ref} builds with torch {torch} is not known"
        return Finding.unknown(name, text)
    release = newest_release(question.catalog, name, torch)
    if release:
        why = "uses the stable ABI only, and " if release.stable else ""
        text = f"{name} {release.version} {why}builds with torch {release.torch}, and this is {torch}"
        return Finding.ok(name, text)
    text = f"no release of {name} is known that builds with torch {torch}"
    flag = _flag(wanted)
    fix = f"Name a source that does: {flag} {name}=PATH, or {flag} {name}={wanted.row.url}@main"
    return Finding.error(name, text, fix)


def _check_folder(question: Question, wanted: Wanted) -> Finding:
    name = wanted.row.name
    torch = question.version
    source = source_of(question, wanted.row.name)
    if source is None:
        return Finding.unknown(name, f"{wanted.path} was not inspected on that machine")
    if source.problem:
        fix = f"Name the folder of {name}'s source: {_flag(wanted)} {name}=PATH"
        return Finding.error(name, f"{source.path}: {source.problem}", fix)
    if wanted.row.extension:
        return _check_extension(question, wanted, source)
    version = parse_version(source.version)
    rows = [
        row
        for row in releases_of(question.catalog, name)
        if version and Version(row.version).release[:2] == version.release[:2]
    ]
    called = f"{source.path} is {name} {source.version or 'of unknown version'}"
    if not rows:
        text = f"{called}, and it is not known which torch that builds with"
        return Finding.unknown(name, text)
    if any(admits(row.torch, torch) is not False for row in rows):
        return Finding.ok(name, f"{called}, which builds with torch {torch}")
    right = newest_release(question.catalog, name, torch)
    fix = f"Its release for this torch is {right.version}" if right else ""
    if right and source.commit:
        fix += f": git -C {as_word(source.path)} switch --detach v{right.version}"
    return Finding.error(
        name, f"{called}, which builds with torch {rows[-1].torch}, and this is {torch}", fix
    )


def _check_extension(question: Question, wanted: Wanted, source: CompanionSource) -> Finding:
    """Check the torch requirement in an extension's pyproject.toml; the build checks its metadata."""
    name = wanted.row.name
    version = question.read_version
    called = f"{source.path} is {name} {source.version or ''}".rstrip()
    own = (str(version), version.base_version) if version else ()
    pins = [find_other_torch(source.asks, each) for each in own]
    if pins and all(pins):
        text = f"{called}, which asks for {pins[0]}, and this is torch {version}"
        fix = "Take a release of it for this torch, or change that line of its pyproject.toml."
        return Finding.error(name, text, fix)
    return Finding.ok(name, f"{called}, an extension that is built against this torch")


def _check_builders(question: Question, wanted: Wanted) -> Iterator[Finding]:
    """Report what a project's build asks for and torch's own excludes: one Python cannot have both."""
    source = source_of(question, wanted.row.name)
    python, row = first_python(question), question.row
    version = (python.version if python else None) or ""
    ours = [each for text in (*row.requires, f"cmake{row.cmake}") if (each := parse_requirement(text))]
    for text in without_torch(source.builds_with, wanted.row.without) if source else ():
        asked = parse_requirement(text)
        if source is None or asked is None or not counts_for(asked, version):
            continue
        own = next((each for each in ours if counts_for(each, version) and _excludes(each, asked)), None)
        if own is None:
            continue
        said = f"its build asks for {text}"
        fix = "Take a release of it for this torch, or change that line of its pyproject.toml."
        if source.text_licence and text == STRING_LICENCE:
            said = "its licence in pyproject.toml is a string, which setuptools reads from 77 on"
            fix = 'Write it there as a table, which all releases read: license = {text = "…"}.'
        text = f"{source.path}: {said}, and torch {row.version} is built with {own}, in the same Python"
        yield Finding.error(wanted.row.name, text, fix)


def _excludes(one: Requirement, other: Requirement) -> bool:
    """Say whether no version of a package fits both: none of their bounds, and of those next to them."""
    if canonicalize_name(one.name) != canonicalize_name(other.name):
        return False
    named = (parse_version(each.version.removesuffix(".*")) for each in (*one.specifier, *other.specifier))
    bounds = [each for each in named if each]
    near = {Version("0"), *bounds}
    for each in bounds:
        later = (f"{each.base_version}.0.1", f"{each.major}.{each.minor + 1}", f"{each.major + 1}")
        near |= set(map(Version, later))
    return not any(admits(f"{one.specifier}", each) and admits(f"{other.specifier}", each) for each in near)


def newest_release(catalog: Catalog, name: str, torch: Version | None) -> CompanionReleaseRow | None:
    """Return the newest release of a project for this torch; None if none is known."""
    return next((row for row in reversed(releases_of(catalog, name)) if admits(row.torch, torch)), None)


def releases_of(catalog: Catalog, name: str) -> list[CompanionReleaseRow]:
    """Return the releases of a project, ascending."""
    rows = [row for row in catalog.companion_release if row.name == name]
    return sorted(rows, key=lambda row: Version(row.version))


# ---- a torch with an alpha version: pip sorts it below the release, and would replace it


def check_development(question: Question, called: str) -> tuple[Finding, ...]:
    """Return the effects of a development version on pip and torchvision; empty for a release.

    Args:
        question: what is decided from.
        called: what the built torch will say its version is, without what its commit adds.
    """
    version = parse_version(called)
    if version is None or not version.is_prerelease:
        return ()
    release = version.base_version
    text = f"the version of this torch is {version}, which pip sorts below {release}"
    return (Finding.ok("development-version", f"{text}: {_means(question, called)}"),)


def _means(question: Question, called: str) -> str:
    if any(wanted.row.name == NAME for wanted in wanted_companions(question)):
        return f"the {NAME} that is built with it asks for exactly this torch, so pip leaves both alone"
    row = newest_release(question.catalog, NAME, question.version)
    if row is None or not row.wheel:
        return "pip would replace it where a package asks for the release"
    if admits(row.wheel, called):
        return f"the wheel of {NAME} {row.version} asks for torch{row.wheel}, which it is"
    return (
        f"the wheel of {NAME} {row.version} asks for torch{row.wheel}, so `pip install {NAME}` would "
        f"replace this torch; --with {NAME} builds it against this one"
    )

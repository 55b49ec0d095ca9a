"""Decide what --with builds with torch: which release, from where, by which command, and if it fits."""

from __future__ import annotations

import re

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog, CompanionReleaseRow, CompanionRow
from torchbuild_tasks.catalog.match import admits, parse_version
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Choice, Companion, CompanionSource, Finding
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_cuda
from torchbuild_tasks.text.words import did_you_mean
from torchbuild_tasks.values import replace

FOLDER = (".torchbuild", "companions")
_URL = re.compile(r"[a-z+]+://|[\w.-]+@[\w.-]+:")
NAME = "torchvision"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One word of --with: NAME, NAME=PATH, NAME=URL or NAME=URL@REF."""

    row: CompanionRow
    path: str = ""
    url: str = ""
    ref: str = ""


def read_with(words: tuple[str, ...], catalog: Catalog) -> tuple[Wanted, ...]:
    """Read the words of --with; of one project the last word counts.

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
            raise UsageError(f"--with {word!r}: no project of that name is known{hint}", next_step=next_step)
        if equals and not place:
            raise UsageError(f"--with {word!r} has nothing after its =", next_step=f"Say --with {name}=PATH")
        wanted[name] = _read(rows[name], place)
    return tuple(wanted.values())


def _read(row: CompanionRow, place: str) -> Wanted:
    if not _URL.match(place):
        return Wanted(row=row, path=place)
    head, slash, last = place.rpartition("/")
    name, _, ref = last.partition("@")
    return Wanted(row=row, url=f"{head}{slash}{name}", ref=ref)


def wanted_companions(question: Question) -> tuple[Wanted, ...]:
    """Return what --with, else torchbuild.toml, asks for."""
    given = question.given("with_")
    return read_with(tuple(given[0]), question.catalog) if given else ()


def companion_requires(question: Question) -> tuple[str, ...]:
    """Return what their builds and imports need in the Python that gets torch (PEP 508)."""
    texts = (text for wanted in wanted_companions(question) for text in wanted.row.requires)
    return tuple(dict.fromkeys(texts))


def choose_companions(question: Question, python: str) -> tuple[Companion, ...]:
    """Return what `python` will build against this torch; a finding names what cannot be and is left out."""
    chosen = (_chosen(question, wanted, python) for wanted in wanted_companions(question))
    return tuple(companion for companion in chosen if companion)


def companion_choices(question: Question, companions: tuple[Companion, ...]) -> tuple[Choice, ...]:
    """Return the projects that are built with torch, for the list of choices."""
    given = question.given("with_")
    source = given[1] if given else "default"
    return tuple(
        Choice(
            name=each.name, value=each.version or each.ref or each.folder, because=each.because, source=source
        )
        for each in companions
    )


def _chosen(question: Question, wanted: Wanted, python: str) -> Companion | None:
    name = wanted.row.name
    if wanted.path:
        source = source_of(question, name)
        if source is None or source.problem:
            return None
        state = source.commit if source.commit and source.dirty is False else ""
        because = f"the folder that --with names, for torch {question.version}"
        made = _made(question, wanted, python, source.path, state, because)
        return replace(made, version=source.version or "")
    release = newest_release(question.catalog, name, question.version)
    if not (wanted.ref or release):
        return None
    ref = wanted.ref or (f"v{release.version}" if release else "")
    folder = question.join(*FOLDER, f"{name}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', ref)}")
    newest = f"the newest that builds with torch {question.version}"
    because = f"{ref}, which --with names" if wanted.ref else newest
    made = _made(question, wanted, python, folder, ref, because)
    version = "" if wanted.ref or release is None else release.version
    return replace(made, version=version, url=wanted.url or wanted.row.url, ref=ref)


def _made(
    question: Question, wanted: Wanted, python: str, folder: str, state: str, because: str
) -> Companion:
    """Never with build isolation or dependencies: either would bring another torch.

    Nor with pip's cache: from a folder called name-version it gives the wheel that was built there for the
    torch before (pip's should_cache).
    """
    pip = (python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-cache-dir")
    cuda = "1" if is_cuda(question) else "0"
    return Companion(
        name=wanted.row.name,
        version="",
        folder=folder,
        argv=(*pip, "-v", "--no-build-isolation", "--no-deps", "--force-reinstall", folder),
        set={
            key: _value(question, key, value).replace("{cuda}", cuda) for key, value in wanted.row.set.items()
        },
        state=state,
        because=because,
    )


def _value(question: Question, name: str, value: str) -> str:
    """Return a row's variable; where nothing of it follows from the build, the user's own value wins."""
    own = decide(question, name) if "{" not in value else None
    return own.value if own else value


def source_of(question: Question, name: str) -> CompanionSource | None:
    """Return what is in the folder that --with names for a project."""
    return next((each for each in question.facts.companions if each.name == name), None)


# ---- findings


def check_companions(question: Question) -> tuple[Finding, ...]:
    """Return whether each belongs to the torch that is built, one finding each."""
    return tuple(
        _of_folder(question, wanted) if wanted.path else _of_release(question, wanted)
        for wanted in wanted_companions(question)
    )


def _of_release(question: Question, wanted: Wanted) -> Finding:
    name, torch = wanted.row.name, question.version
    if wanted.ref:
        text = f"whether {name} {wanted.ref} builds with torch {torch} is not known"
        return Finding(id=name, status="unknown", text=text)
    release = newest_release(question.catalog, name, torch)
    if release:
        why = "uses the stable ABI only, and " if release.stable else ""
        text = f"{name} {release.version} {why}builds with torch {release.torch}, and this is {torch}"
        return Finding(id=name, status="ok", text=text)
    text = f"no release of {name} is known that builds with torch {torch}"
    fix = f"Name a source that does: --with {name}=PATH, or --with {name}={wanted.row.url}@main"
    return Finding(id=name, status="error", text=text, fix=fix)


def _of_folder(question: Question, wanted: Wanted) -> Finding:
    name, torch, source = wanted.row.name, question.version, source_of(question, wanted.row.name)
    if source is None:
        return Finding(id=name, status="unknown", text=f"{wanted.path} was not looked at on that machine")
    if source.problem:
        fix = f"Name the folder of {name}'s source: --with {name}=PATH"
        return Finding(id=name, status="error", text=f"{source.path}: {source.problem}", fix=fix)
    version = parse_version(source.version)
    rows = [row for row in releases_of(question.catalog, name) if version and _same_series(row, version)]
    called = f"{source.path} is {name} {source.version or 'of unknown version'}"
    if not rows:
        text = f"{called}, and no row says which torch that builds with"
        return Finding(id=name, status="unknown", text=text)
    if any(admits(row.torch, torch) is not False for row in rows):
        return Finding(id=name, status="ok", text=f"{called}, which builds with torch {torch}")
    right = newest_release(question.catalog, name, torch)
    fix = f"Its release for this torch is {right.version}" if right else ""
    if right and source.commit:
        fix += f": git -C {source.path} switch --detach v{right.version}"
    return Finding(
        id=name,
        status="error",
        text=f"{called}, which builds with torch {rows[-1].torch}, and this is {torch}",
        fix=fix,
    )


def _same_series(row: CompanionReleaseRow, version: Version) -> bool:
    return Version(row.version).release[:2] == version.release[:2]


def newest_release(catalog: Catalog, name: str, torch: Version | None) -> CompanionReleaseRow | None:
    """Return the newest release of a project that builds against this torch; None when none is known to."""
    return next((row for row in reversed(releases_of(catalog, name)) if admits(row.torch, torch)), None)


def releases_of(catalog: Catalog, name: str) -> list[CompanionReleaseRow]:
    """Return the releases of a project, ascending."""
    rows = [row for row in catalog.companion_release if row.name == name]
    return sorted(rows, key=lambda row: Version(row.version))


# ---- a torch that calls itself an alpha: pip sorts it below the release, and would replace it


def check_development(question: Question, called: str) -> tuple[Finding, ...]:
    """Return what the version of a development build means for pip and torchvision; nothing for a release.

    Args:
        question: what is decided from.
        called: what the built torch will say its version is, without what its commit adds.
    """
    version = parse_version(called)
    if version is None or not version.is_prerelease:
        return ()
    release = version.base_version
    text = f"this torch will call itself {version}, which pip sorts below {release}"
    return (Finding(id="development-version", status="ok", text=f"{text}: {_means(question, called)}"),)


def _means(question: Question, called: str) -> str:
    if any(wanted.row.name == NAME for wanted in wanted_companions(question)):
        return f"the {NAME} that is built with it asks for exactly this torch, so pip leaves both alone"
    row = newest_release(question.catalog, NAME, question.version)
    if row is None or not row.wheel:
        return "pip would replace it where a package asks for the release"
    if admits(row.wheel, called):
        return f"the wheel of {NAME} {row.version} asks for torch{row.wheel}, which it is"
    return (
        f"the wheel of {NAME} {row.version} asks for torch{row.wheel}, so `pip install {NAME}` would put "
        f"another torch in its place; --with {NAME} builds it against this one"
    )

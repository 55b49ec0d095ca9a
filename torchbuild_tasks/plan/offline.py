"""Tell what a build without a network lacks besides Python packages: files of the store, and sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.model import Artifact, Brought, Companion, Finding
from torchbuild_tasks.plan.artifacts import download_size, in_store, is_unpacked
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.requirements import missing_from_files
from torchbuild_tasks.text.paths import file_name

if TYPE_CHECKING:
    from torchbuild_tasks.plan.decisions import Decisions

ID: Final = "offline"
_COMMIT: Final = re.compile("[0-9a-f]{7,40}")


def check_parts(decisions: Decisions) -> tuple[Finding, ...]:
    """Report the helpers, parts of a toolkit and sources that --offline prevents from being downloaded.

    A mirror on this machine may have any of the files, so with one that is left to the build.
    """
    question, brought = decisions.question, decisions.question.facts.brought
    if brought is None:
        return ()
    lacking: tuple[Artifact, ...] = ()
    if "file:" not in question.value("mirror", ""):
        lacking = tuple(each for each in _wanted(decisions) if not _is_brought(question, brought, each))
    return (*_of_files(question, lacking), *_of_sources(question, brought, decisions.companions))


def _wanted(decisions: Decisions) -> Iterator[Artifact]:
    """Yield what has to be unpacked before the build, and is not."""
    toolkit = decisions.cuda.toolkit
    parts = () if toolkit.managed and toolkit.managed.here else toolkit.artifacts
    coming = (helper.artifact for helper in decisions.helpers.chosen if not helper.here)
    for artifact in (*coming, *parts):
        if not artifact.optional and not is_unpacked(decisions.question, artifact.stored_as):
            yield artifact


def _is_brought(question: Question, brought: Brought, artifact: Artifact) -> bool:
    """Say whether its file waits in the store, or lies in the folder of --wheels, where pip finds it."""
    if artifact.sha256 in brought.archives:
        return True
    if artifact.project:
        wheel = (f"{artifact.project}=={artifact.version}",)
        names = (*brought.archives, *(brought.wheels if question.value("wheels", "") else ()))
        return not missing_from_files((name for name in names if artifact.tag in name), wheel)
    return any(file_name(url.partition("#")[0]) in brought.archives for url in artifact.urls)


def _of_files(question: Question, lacking: tuple[Artifact, ...]) -> Iterator[Finding]:
    if not lacking:
        return
    size = download_size(lacking)
    text = f"--offline, and the build needs {', '.join(each.id for each in lacking)}"
    text += f" ({size})" if size else ""
    ways = []
    for tag in dict.fromkeys(each.tag for each in lacking if each.project):
        wheels = [each for each in lacking if each.project and each.tag == tag]
        ways.append(_download(question, tag, wheels))
    if files := [each.urls[0] for each in lacking if not each.project and each.urls]:
        ways.append(f"download {' '.join(files)} and put them into {in_store(question, 'incoming')} here")
    fix = f"Where there is a network: {'; and '.join(ways)}."
    if any(each.project for each in lacking):
        fix += f" Use --wheels {question.value('wheels', '') or 'wheels'} here."
    yield Finding.error(ID, text, fix)


def _download(question: Question, tag: str, wheels: Iterable[Artifact]) -> str:
    """Return the command that downloads wheels for the machine that is planned for."""
    named = (f"{each.project}=={each.version}" for each in wheels)
    platform = ("--platform", tag) if tag else ()
    return question.line(
        *("pip", "download", "--dest", "wheels", "--no-deps", "--only-binary=:all:"), *platform, *named
    )


def _clone(question: Question, companion: Companion) -> str:
    """Return the commands that fetch a source; `--branch` takes tags and branches, and no commit."""
    named = () if companion.ref == "HEAD" or _COMMIT.fullmatch(companion.ref) else ("--branch", companion.ref)
    line = question.line("git", "clone", "--recursive", *named, companion.url, companion.name)
    if named or companion.ref == "HEAD":
        return line
    return f"{line} && {question.line('git', '-C', companion.name, 'checkout', companion.ref)}"


def _of_sources(question: Question, brought: Brought, companions: tuple[Companion, ...]) -> Iterator[Finding]:
    for each in companions:
        if file_name(each.folder) in brought.sources or not (each.url or each.requirement):
            continue
        if each.requirement and not missing_from_files(brought.wheels, (each.requirement,)):
            continue
        text = f"--offline, and the source of {each.name} is not here ({each.folder})"
        get = f"pip download --no-deps --no-binary :all: {each.requirement}"
        if each.url:
            get = _clone(question, each)
        flag = "--with-extension" if each.extension else "--with"
        fix = f"Where there is a network: {get}; bring it, and name its folder: {flag} {each.name}=PATH"
        # By its name, as what else is said of it: also where no torch is compiled.
        yield Finding.error(each.name, text, fix)

"""`support`: write one archive for another person to examine, without secrets.

It is written most of all when something is broken, so what fails on the way is noted in it.
"""

from __future__ import annotations

import io
import os
import platform
import socket
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from torchbuild_tasks.build.ledger import LOG, LOGS, last_manifest
from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.catalog import Catalog, load_catalog
from torchbuild_tasks.context import decide, look, writer
from torchbuild_tasks.errors import Interrupted, UsageError
from torchbuild_tasks.features.doctor import health
from torchbuild_tasks.model import BuildPlan, Facts
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system.files import STATE_DIR, translate_errors, write_atomic
from torchbuild_tasks.system.log import log_ends
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.text.redaction import OWN_RULES, Redactor, rules
from torchbuild_tasks.text.visible import visible, visible_json
from torchbuild_tasks.values import Malformed, dumps, parse_json, to_json
from torchbuild_tasks.verbs import Outcome

R = TypeVar("R")

# Read by the programs around a build, in addition to the variables of data/variables.toml.
SHOWN: Final = (
    *("PATH", "PATHEXT", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "SHELL", "COMSPEC"),
    *("TMPDIR", "TEMP", "TMP", "HOME", "USERPROFILE", "PWD", "CI", "VIRTUAL_ENV", "CONDA_PREFIX"),
    *("CONDA_DEFAULT_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "LD_LIBRARY_PATH", "LIBRARY_PATH"),
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "INCLUDE", "LIB", "LIBPATH", "VCToolsVersion"),
    *("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CCACHE_DIR", "SCCACHE_DIR", "TORCHBUILD_CACHE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    *("no_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"),
)
_LINE: Final = 2000  # characters of a line of the log that are kept
_USERS: Final = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOMES: Final = ("HOME", "USERPROFILE")


def support_text(archive: SupportFile) -> str:
    """Return the archive's path, its members, the redactions, and the failures."""
    redacted = ", ".join(f"{rule} ({count})" for rule, count in archive.redacted.items()) or "nothing"
    lines = [f"wrote {archive.path}", f"  in it: {', '.join(archive.members)}", f"  taken out: {redacted}"]
    lines += [f"  could not be fetched: {problem}" for problem in archive.problems]
    return "\n".join(lines) + "\n  Look through it before you hand it on.\n"


def run(request: BuildRequest, report: Reporter) -> Outcome:
    """Write one archive for another person to examine."""
    written = write_archive(request)
    return Outcome(written, support_text(written))


def write_archive(request: BuildRequest) -> SupportFile:
    """Write the archive; it lists what is not available."""
    attempts = Attempts()
    question = attempts("look", lambda: look(request, patience=health.PATIENCE))
    question = question or attempts(
        "look without flags and settings", lambda: health.look_without_settings(request)
    )
    if question is None:
        return make_support(request, None, None, load_catalog(), attempts, writer=writer())
    seen = question
    plan = attempts("plan", lambda: decide(seen))
    if plan is not None:
        seen = attempts("doctor", lambda: health.examine(question, plan)) or question
    return make_support(request, seen.facts, plan, seen.catalog, attempts, writer=writer())


class SupportFile(msgspec.Struct, frozen=True, kw_only=True):
    """The archive, its members, the number of redactions by rule, and failures."""

    path: str
    members: tuple[str, ...]
    redacted: Mapping[str, int]
    problems: tuple[str, ...] = ()


@dataclass
class Attempts:
    """Runs functions one after another; failures are collected."""

    problems: list[str] = field(default_factory=list)

    def __call__(self, what: str, make: Callable[[], R]) -> R | None:
        """Return what `make` returns, or None if it fails."""
        try:
            return make()
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the archive is there to hold it
            looked = getattr(error, "looked", ())
            self.problems.append("\n  ".join((f"{what}: {type(error).__name__}: {error}", *looked)))
            return None


def make_support(
    request: BuildRequest,
    facts: Facts | None,
    plan: BuildPlan | None,
    catalog: Catalog,
    attempts: Attempts,
    *,
    writer: str,
) -> SupportFile:
    """Write the archive.

    Raises:
        UsageError: there is such a file already, or it cannot be written.
    """
    path = _archive_path(request)
    host = socket.gethostname()
    redactor = Redactor(os.environ, _users(), (host, host.partition(".")[0]))
    members = _members(request, facts, plan, catalog, attempts, redactor)
    if attempts.problems:
        members["problems.txt"] = redactor.text("\n".join(attempts.problems)) + "\n"
    counts = {rule: count for rule, count in sorted(redactor.counts.items()) if count}
    members = {"about.txt": _about(writer, counts, tuple(members)), **members}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            shown = visible(text) if name.endswith(".txt") else visible_json(text)
            archive.writestr(name, shown.encode("utf-8", "backslashreplace"))
    write_atomic(path, data.getvalue(), error=UsageError, private=True)
    problems = tuple(map(redactor.text, attempts.problems))
    return SupportFile(path=str(path), members=tuple(members), redacted=counts, problems=problems)


def _archive_path(request: BuildRequest) -> Path:
    name = f"torchbuild-support-{datetime.now(UTC):%Y%m%d-%H%M%S}.zip"
    path = Path(request.out).expanduser() if request.out else Path.cwd() / name
    if path.is_dir():
        path = path / name
    if path.exists():
        raise UsageError(f"{path} is there already.", next_step="Name another file: --out FILE")
    with translate_errors(UsageError, path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _users() -> set[str]:
    names = {os.environ[name] for name in _USERS if os.environ.get(name)}
    return names | {Path(os.environ[name]).name for name in _HOMES if os.environ.get(name)}


def _members(
    request: BuildRequest,
    facts: Facts | None,
    plan: BuildPlan | None,
    catalog: Catalog,
    attempts: Attempts,
    redactor: Redactor,
) -> dict[str, str]:
    """Return the files of the archive, without secrets."""
    root = Path(facts.tree.root if facts else request.source or ".").expanduser()
    build_dir = Path(plan.build_dir) if plan else root / "build"
    log = root / STATE_DIR / LOGS / f"{LOG}.log"
    values: dict[str, Any] = {
        "facts.json": facts,
        "plan.json": plan,
        "request.json": {"argv": sys.argv, "flags": request},
        "diagnosis.json": attempts(
            "diagnose", lambda: _diagnose(_own(log, root, build_dir), facts, plan, catalog)
        ),
    }
    encoded = {name: to_json(value) for name, value in values.items() if value is not None}
    redactor.learn(encoded)
    encoded["environ.json"] = _environ(catalog, redactor)
    members = {name: dumps(redactor.value(value)) for name, value in encoded.items()}
    members |= attempts("log", lambda: _log(_own(log, root, build_dir), redactor)) or {}
    files = {"manifest.json": last_manifest(build_dir), "torchbuild.toml": _settings(request, root)}
    for name, file in files.items():
        if (text := attempts(name, lambda file=file: _read(_own(file, root, build_dir)))) is not None:  # type: ignore[misc]
            members[name] = _redact_file(text, redactor)
    return members


def _redact_file(text: str, redactor: Redactor) -> str:
    """Return a redacted file; JSON stays valid."""
    try:
        return dumps(redactor.value(parse_json(text)))
    except Malformed:
        return redactor.text(text)


def _environ(catalog: Catalog, redactor: Redactor) -> dict[str, str]:
    """Return the names of all variables, and the values of those relevant to a failed build."""
    patterns = [row.name for row in catalog.variable]
    shown = {}
    for name, value in sorted(os.environ.items()):
        if name in SHOWN or any(fnmatchcase(name, pattern) for pattern in patterns):
            shown[name] = value
        else:
            shown[name] = "(set, not shown)"
            redactor.counts["environment"] += 1
    return shown


def _settings(request: BuildRequest, root: Path) -> Path:
    if request.config:
        return Path(request.config).expanduser()
    in_folder = Path("torchbuild.toml")
    return in_folder if in_folder.is_file() else root / "torchbuild.toml"


def _own(path: Path, root: Path, build_dir: Path) -> Path:
    """Return a file's content, unless it is a link: a checkout could contain links to private files.

    Raises:
        UsageError: it is a link, or its folder is one, except the build folder.
    """
    within = [path, *(each for each in path.parents if each.is_relative_to(root))]
    if any(each.is_symlink() for each in within if each not in (root, build_dir)):
        raise UsageError(f"{path} is a link or behind one, and was left out: its target may be private.")
    return path


def _read(path: Path) -> str | None:
    return read_bytes(path).decode("utf-8", "replace") if path.is_file() else None


def _log(path: Path, redactor: Redactor) -> dict[str, str]:
    if not path.is_file():
        return {}
    texts = zip(("log-head.txt", "log-tail.txt"), log_ends(path), strict=True)
    return {name: _shorten(redactor.text(text)) for name, text in texts if text}


def _shorten(text: str) -> str:
    return "".join(line[:_LINE].rstrip("\n") + "\n" for line in text.splitlines())


def _diagnose(log: Path, facts: Facts | None, plan: BuildPlan | None, catalog: Catalog) -> object:
    if facts is None or plan is None or not log.is_file():
        return None
    from torchbuild_tasks.catalog.failures import FailureBook
    from torchbuild_tasks.features.diagnosis.act import diagnose_log
    from torchbuild_tasks.features.diagnosis.machine import Machine

    machine = Machine(facts, plan, catalog, built=True)
    return diagnose_log(str(log), FailureBook(catalog.failure), machine)


def _about(writer: str, counts: Mapping[str, int], members: tuple[str, ...]) -> str:
    what = {**{rule.id: rule.what for rule in rules()}, **OWN_RULES}
    lines = [
        f"{writer}, Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "Look through it before you hand it on. To plan from it elsewhere: torchbuild plan --facts FILE.zip",
        "",
        "In it: " + ", ".join(members),
        "Taken out:",
        *(f"  {count:5}  {rule}: {what[rule]}" for rule, count in counts.items()),
    ]
    return "\n".join(lines) + "\n"

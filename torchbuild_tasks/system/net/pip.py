"""Download wheels by project name with pip, which also checks their hashes.

A helper that is a wheel comes from wherever the user's own packages come from. It is pip that
reads its files, variables, proxies, passwords and certificates, so nothing is set up twice.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from packaging.utils import canonicalize_name

from torchbuild_tasks.errors import DownloadFailed, HashRefused, UsageError
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import translate_errors
from torchbuild_tasks.system.net.client import Net, redact
from torchbuild_tasks.system.net.transfer import Tell
from torchbuild_tasks.system.reading import hash_file
from torchbuild_tasks.system.stall import Pace, Stalled
from torchbuild_tasks.text.words import as_program, as_word
from torchbuild_tasks.values import parse_json

DEFAULT_INDEX: Final = "https://pypi.org/simple"
SECONDS: Final = 60.0
_SHOWN: Final = 8  # lines of pip's output that an error quotes
# Messages of urllib3 2 and requests 2.32.
_REASON: Final = re.compile(
    r"""\[Errno -?\d+\] ([^'")]+)|(\d{3} \w+ Error: .+?) for url|((?:[Rr]ead|[Cc]onnect\w*) timed out)"""
)
_OS_ERROR: Final = re.compile(r"""\[Errno (\d+)\] ([^'":\n]+)""")
_OF_DISK: Final = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EROFS)
_CRASH: Final = "Traceback (most recent call last)"
_BRIEFLY: Final = ("--retries", "1", "--timeout", "15")
# A script that prints the settings of `pip install`, [install] over [global]: `pip download` does not read
# [install], and `pip config list` does not tell which of two files wins (pip 25). Tried with 21.3, 23 and 26.
# The command itself imports its resolver, which took more than half of the time.
_ASK: Final = """
import json
from pip._internal.cli import cmdoptions
from pip._internal.cli.parser import ConfigOptionParser
parser = ConfigOptionParser(prog="pip install", name="install", add_help_option=False)
for group in (cmdoptions.general_group, cmdoptions.index_group):
    parser.add_option_group(cmdoptions.make_option_group(group, parser))
given, _ = parser.parse_args([])
names = ("index_url", "extra_index_urls", "find_links", "no_index", "cert", "trusted_hosts")
print(json.dumps({name: getattr(given, name) for name in names}))
"""
# A script that prints one file of the wheel that `pip download` would take, read by ranges, as pip reads
# metadata with --use-feature=fast-deps; the ranges are larger, since torch's list of files has a megabyte.
# Tried with pip 21.3, 23.2 and 26.3; if a pip's internals differ, the wheel is downloaded.
_READ_AHEAD: Final = """
import json, sys, zipfile
from pip._internal.cli.cmdoptions import make_target_python
from pip._internal.commands import create_command
from pip._internal.models.link import Link
from pip._internal.network.lazy_wheel import LazyZipOverHTTP
from pip._vendor.packaging.specifiers import SpecifierSet
project, version, name, address, *words = sys.argv[1:]
command = create_command("download")
with command.main_context():
    given, _ = command.parse_args(words)
    session = command.get_default_session(given)
    target = make_target_python(given)
    finder = command._build_package_finder(options=given, session=session, target_python=target)
    if address:
        link = Link(address)
    else:
        link = finder.find_best_candidate(project, SpecifierSet(version)).best_candidate.link
    if not link.is_file:
        with LazyZipOverHTTP(link.url, session, chunk_size=1 << 20) as file, zipfile.ZipFile(file) as wheel:
            print(json.dumps([link.filename, wheel.read(name).decode()]))
"""
# A script that lists every wheel of a project that pip accepts, by place, with pip's message where a place
# cannot be read. One retry and 15 s, because a place may not exist.
_LIST: Final = """
import json, logging, sys
from pip._internal.cli.cmdoptions import make_target_python
from pip._internal.commands import create_command
project, places, *words = sys.argv[1:]
said = []
class Hear(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
log = logging.getLogger("pip._internal.index.collector")
command = create_command("download")
with command.main_context():
    given, _ = command.parse_args(words)
    session = command.get_default_session(given)
    log.addHandler(Hear())
    log.setLevel(logging.DEBUG)
    listed = []
    for is_page, address in json.loads(places):
        said.clear()
        given.index_url, given.extra_index_urls, given.no_index = address, [], is_page
        given.find_links = [address] if is_page else []
        target = make_target_python(given)
        finder = command._build_package_finder(options=given, session=session, target_python=target)
        links = [each.link for each in finder.find_all_candidates(project)]
        files = [each.filename for each in links if not each.is_yanked]
        listed.append([files, [each for each in said if each.startswith("Could not fetch")]])
    print(json.dumps(listed))
"""
_NOWHERE: Final = "http://127.0.0.1:9"  # the port of `discard`, RFC 863: a proxy that is not there


class PipSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The indexes and folders of pip's settings.

    `index_urls` is index-url, then extra-index-url, and may hold passwords; empty with
    no-index. `find_links` are folders, pages or files; `cert` is a file of certificates.
    """

    index_urls: tuple[str, ...] = (DEFAULT_INDEX,)
    find_links: tuple[str, ...] = ()
    cert: str = ""
    trusted_hosts: tuple[str, ...] = ()


class WheelWanted(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel to download: exactly this version, for the platform `tag` ("" for this machine's).

    `python` is the tag of the one Python that it is for ("cp311"), "" for every Python 3; `abi` its ABI's.
    `alone`: not the same version with a local part, which "==" admits (PEP 440).
    """

    project: str
    version: str
    tag: str
    sha256: str | None
    hash_source: str = ""
    size: int | None = None
    python: str = ""
    abi: str = ""
    alone: bool = False

    @property
    def specifier(self) -> str:
        """Return the version as pip is asked for it."""
        return f"{'===' if self.alone else '=='}{self.version}"

    @property
    def name(self) -> str:
        """Return the requirement as pip writes it."""
        return f"{self.project}=={self.version}"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where wheels are looked for: an index, or a page or folder with `links`, by the user's address."""

    address: str
    links: bool = False

    @property
    def settings(self) -> PipSettings:
        """Return settings of pip by which it looks there and nowhere else."""
        places = (self.address,)
        return PipSettings(index_urls=() if self.links else places, find_links=places if self.links else ())


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the wheels in one place, and why there may be none: pip's words; "" where it was read."""

    place: Place
    files: tuple[str, ...] = ()
    problem: str = ""


def read_settings(environ: Mapping[str, str]) -> PipSettings:
    """Return the settings that `pip install` would use in this environment.

    Raises:
        UsageError: pip cannot read its own settings.
        DownloadFailed: there is no pip.
    """
    # Only its output is UTF-8: UTF-8 mode would change how pip reads its files.
    env = {**environ, "PYTHONIOENCODING": "utf-8"}
    captured = process.capture((*python_with_pip(), "-P", "-c", _ASK), env=env, timeout=SECONDS)
    if captured.rc != 0:
        raise UsageError(
            f"pip cannot read its own settings (exit code {captured.rc}).",
            looked=tuple(captured.error_text.splitlines()[-3:]),
            next_step=f"Put right what pip names here: {as_program(sys.executable)} -m pip config debug",
        )
    settings = parse_json(captured.stdout)
    indexes = (settings["index_url"], *settings["extra_index_urls"])
    return PipSettings(
        index_urls=() if settings["no_index"] else tuple(url.strip() for url in indexes if url),
        find_links=tuple(settings["find_links"]),
        cert=settings["cert"] or "",
        trusted_hosts=tuple(settings["trusted_hosts"]),
    )


def uv_environment(environ: Mapping[str, str], settings: PipSettings, net: Net) -> dict[str, str]:
    """Return an environment that gives uv pip's indexes and folders; uv's own settings win.

    uv stops at the first index that has a name; pip takes the best version of all, and so does uv with
    `unsafe-best-match` (docs.astral.sh/uv/reference/environment, tried with 0.13.9).
    """
    indexes = [_address(url, net) for url in settings.index_urls]
    links = [_address(link, net) for link in settings.find_links]
    own = {
        "UV_DEFAULT_INDEX": indexes[0] if indexes else "",
        "UV_INDEX": " ".join(indexes[1:]),
        "UV_INDEX_STRATEGY": "unsafe-best-match" if indexes[1:] else "",
        "UV_FIND_LINKS": ",".join(links),
        "UV_INSECURE_HOST": " ".join(settings.trusted_hosts),
        "UV_OFFLINE": "1" if net.offline else "",
        "SSL_CERT_FILE": settings.cert,
    }
    if "UV_INDEX_URL" in environ:  # the older name of the first, which must not be set together with it
        own.pop("UV_DEFAULT_INDEX")
    added = {name: value for name, value in own.items() if value and name not in environ}
    return {**environ, **added}


def uv_words(environ: Mapping[str, str], settings: PipSettings) -> tuple[str, ...]:
    """Return uv's options for pip's no-index, for which it has no variable (as of 0.13.9)."""
    own = {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"} & environ.keys()
    return () if settings.index_urls or own else ("--no-index",)


def python_with_pip() -> tuple[str, ...]:
    """Return the command of a Python that has pip: our own, or one made by uv.

    Raises:
        DownloadFailed: there is neither.
    """
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable,)
    if uv := shutil.which("uv"):  # its venvs lack pip, and it has no `pip download`
        # Not in the current folder: a checkout's uv.toml may name an index, whose pip would run.
        run = (uv, "run", "--directory", Path(sys.executable).anchor, "--quiet", "--no-project")
        return (*run, "--python", sys.executable, "--with", "pip", "python")
    raise DownloadFailed(
        f"pip is needed to download a wheel, and {sys.executable} has no pip.",
        next_step=f"Install it there: {as_program(sys.executable)} -m ensurepip, or: uv pip install --python "
        f"{as_word(sys.executable)} pip; or put uv on PATH.",
    )


def download_wheel(
    wanted: WheelWanted, folder: Path, settings: PipSettings, net: Net, tell: Tell
) -> tuple[Path, str]:
    """Download a wheel by pip into `folder`, which is empty and private.

    Returns:
        The file and its sha256 in hex.

    Raises:
        DownloadFailed: pip did not bring it; its last lines are quoted.
        HashRefused: what it found is another file.
    """
    requirements = folder / "requirements.txt"
    hashed = f" --hash=sha256:{wanted.sha256}" if wanted.sha256 else ""
    with translate_errors(DownloadFailed, folder):
        requirements.write_text(f"{wanted.project}{wanted.specifier}{hashed}\n", "utf-8")
        (folder / "temporary").mkdir()
        (folder / "wheel").mkdir()
    words = [*python_with_pip(), "-P", "-m", "pip", "download", *_choosing(wanted)]
    words += ["--require-hashes"] if wanted.sha256 else []
    words += ["--dest", str(folder / "wheel"), "--requirement", str(requirements)]
    output = io.BytesIO()
    pace = Pace()

    def look(pid: int) -> None:
        tell(wanted.name, _bytes_in(folder), wanted.size)
        pace.look(pid)

    try:
        rc = process.stream(
            words,
            env=_environ(os.environ, wanted, settings, net, folder),
            cwd=folder,
            log=output,
            on_block=lambda block: None,
            on_idle=look,
        )
    except Stalled as stalled:
        output.write(f"\nERROR: {stalled}".encode())
        rc = process.TIMED_OUT
    if rc != 0:
        text = output.getvalue().decode("utf-8", errors="replace")
        with translate_errors(DownloadFailed, folder):
            _raise_of_disk(text)
        raise _failure(wanted, words, text)
    (path,) = (folder / "wheel").glob("*.whl")
    sha256 = _check(wanted, path)
    tell(wanted.name, path.stat().st_size, path.stat().st_size)
    return path, sha256


def read_ahead(
    wanted: WheelWanted, member: str, folder: Path, settings: PipSettings, net: Net, address: str = ""
) -> tuple[str, str] | None:
    """Return the name of the wheel that pip would download, and the text of one of its files.

    None if that needs the complete wheel: offline, in a folder, or where the server gives no
    parts of a file.

    Args:
        folder: it exists, is empty, and is used by nothing else.
        address: of the wheel; else pip looks for it.
    """
    if net.offline:
        return None
    with translate_errors(DownloadFailed, folder):
        (folder / "temporary").mkdir()
    program = (*python_with_pip(), "-P", "-c", _READ_AHEAD)
    words = (*program, wanted.project, wanted.specifier, member, net.address(address) if address else "")
    env = _environ(os.environ, wanted, settings, net, folder)
    captured = process.capture((*words, *_choosing(wanted)), env=env, cwd=folder, timeout=SECONDS)
    try:
        name, text = parse_json(captured.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return None
    return name, text


def list_wheels(
    wanted: WheelWanted, places: Sequence[Place], folder: Path, settings: PipSettings, net: Net
) -> tuple[Listed, ...]:
    """Return which wheels of a project each place has for a Python and this machine; of any version.

    Args:
        wanted: the project, the Python and its ABI.
        folder: it exists, is empty, and is used by nothing else.
        settings: what else pip goes by: certificates, hosts that are trusted.
        net: how the network is reached; offline, places on this machine alone are asked.
    """
    with translate_errors(DownloadFailed, folder):
        (folder / "temporary").mkdir()
    asked = [each for each in places if not (net.offline and _is_web(_address(each.address, net)))]
    named = json.dumps([(each.links, _address(each.address, net)) for each in asked])
    words = (*python_with_pip(), "-P", "-c", _LIST, wanted.project, named, *_BRIEFLY, *_choosing(wanted))
    env = _environ(os.environ, wanted, settings, net, folder)
    captured = process.capture(words, env=env, cwd=folder, timeout=SECONDS) if asked else None
    try:
        answers = parse_json(captured.stdout.splitlines()[-1]) if captured else []
        read = {
            each: (tuple(files), _in_words(said, files))
            for each, (files, said) in zip(asked, answers, strict=True)
        }
    except (ValueError, IndexError, TypeError):
        reason = "pip did not answer" if captured and captured.timed_out else "pip could not list it"
        read = dict.fromkeys(asked, ((), reason))
    unasked = ((), "not asked, by --offline")
    return tuple(
        Listed(place=each, files=files, problem=problem)
        for each in places
        for files, problem in [read.get(each, unasked)]
    )


def _in_words(said: Sequence[str], files: Sequence[str]) -> str:
    """Return why a place could not be read, by what pip says of its address; "" where it has wheels."""
    if files or not said:
        return ""
    reason = _REASON.search(said[0])
    return next(filter(None, reason.groups())) if reason else redact(said[0])[:120]


def _choosing(wanted: WheelWanted) -> list[str]:
    """Return the options by which pip selects among the wheels of a project."""
    words = ["--no-deps", "--only-binary=:all:"]
    if wanted.python:
        words += ["--implementation", "cp", "--python-version", wanted.python.removeprefix("cp")]
        words += ["--abi", wanted.abi or wanted.python]
    else:
        # The tags py3-none-<platform>, independent of the Python: the wheel is unpacked, never imported.
        words += ["--implementation", "py", "--abi", "none", "--ignore-requires-python"]
    return words + (["--platform", wanted.tag] if wanted.tag else [])


def _environ(
    environ: Mapping[str, str], wanted: WheelWanted, settings: PipSettings, net: Net, folder: Path
) -> dict[str, str]:
    """Return pip's variables, which override its files unless they are empty."""
    links = [
        *([_uri(net.wheels)] if net.wheels else []),
        *(_address(link, net) for link in settings.find_links),
    ]
    indexes = [_address(url, net) for url in settings.index_urls]
    plain = {urlsplit(url).hostname for url in (*links, *indexes) if url.lower().startswith("http:")}
    trusted = [host for host in settings.trusted_hosts if host.partition(":")[0] in plain]
    own = {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_REQUIRE_VIRTUALENV": "0",
        "PIP_REQUIRE_HASHES": "1" if wanted.sha256 else "0",
        # TLS is always verified; a trusted host is only accepted for plain HTTP.
        "PIP_TRUSTED_HOST": " ".join(trusted) or "none.invalid",
        "PYTHONIOENCODING": "utf-8",
        # A folder of ours for temporary files: the next run removes those of a killed pip.
        **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(folder / "temporary")),
    }
    if cert := settings.cert or environ.get("SSL_CERT_FILE"):
        own["PIP_CERT"] = cert
    dropped = {"PIP_CONSTRAINT", "PIP_REQUIREMENT"}
    if net.offline:
        # A local index is passed as a folder, because only --no-index disables the other indexes.
        links += [f"{url.rstrip('/')}/{canonicalize_name(wanted.project)}/" for url in indexes]
        links = [link for link in links if not _is_web(link)]
        own |= {"PIP_NO_INDEX": "1", "PIP_PROXY": _NOWHERE, "PIP_RETRIES": "0"}
        dropped |= {"NO_PROXY", "no_proxy"}
    elif indexes:
        own |= {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": indexes[0]}
        own |= {"PIP_EXTRA_INDEX_URL": " ".join(indexes[1:])} if indexes[1:] else {}
    else:
        own["PIP_NO_INDEX"] = "1"
    # An empty value would be ignored.
    own["PIP_FIND_LINKS"] = " ".join(links) or (folder / "temporary").as_uri()
    return {**{name: value for name, value in environ.items() if name not in dropped}, **own}


def _address(place: str, net: Net) -> str:
    """Return the address for pip: through the mirrors; a path becomes a `file:` address."""
    if _is_web(place):
        return net.address(place)
    return place if place.lower().startswith("file:") else _uri(place)


def _uri(path: str) -> str:
    return Path(path).expanduser().absolute().as_uri()


def is_far(place: str, net: Net) -> bool:
    """Say whether a place is reached by the network: neither a folder nor a mirror that is one."""
    return _is_web(_address(place, net))


def _is_web(place: str) -> bool:
    return place.lower().startswith(("http://", "https://"))


def _bytes_in(folder: Path) -> int:
    """Return pip's progress: the size of the growing file in its temporary folder."""
    size = 0
    # os.walk skips a folder that pip has just removed; Path.rglob (3.11) raises.
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(OSError):  # moved in between
                    size = max(size, Path(parent, name).stat().st_size)
    return size


def _raise_of_disk(output: str) -> None:
    """Raise the error of this machine's disk that pip ended with; another index would not help."""
    for number, reason in _OS_ERROR.findall(output):
        if int(number) in _OF_DISK:
            raise OSError(int(number), reason)


def _failure(wanted: WheelWanted, words: list[str], output: str) -> DownloadFailed | HashRefused:
    lines = [redact(line.rstrip()) for line in output.splitlines() if line.strip()]
    named = f"{wanted.project} {wanted.version}{f' for {wanted.tag}' if wanted.tag else ''}"
    command = f"{' '.join(words[: words.index('-P')])} -m pip {' '.join(words[words.index('download') :])}"
    if "DO NOT MATCH THE HASHES" in output:
        expected = f"expected sha256 {wanted.sha256}, by {wanted.hash_source}" if wanted.sha256 else ""
        return HashRefused(
            f"pip found another file than the one that was expected for {named}.",
            looked=(*filter(None, (expected,)), *lines[-_SHOWN:]),
            next_step="Nothing of it was kept. Compare with the project's page on pypi.org: "
            "a file that was published there never changes.",
        )
    problems = [line for line in lines if line.lstrip().startswith(("ERROR:", "WARNING:"))]
    if _CRASH in output:  # pip's own words are then "ERROR: Exception:"
        problems = [*(line for line in problems if lines[-1] not in line), lines[-1]]
    return DownloadFailed(
        f"pip could not download a wheel of {named}.",
        looked=(*(problems or lines)[-_SHOWN:], f"by {command}"),
        next_step="Name an index that has it with PIP_INDEX_URL, or download the wheel elsewhere,\n"
        "put it into a folder, and name that folder with PIP_FIND_LINKS.",
    )


def _check(wanted: WheelWanted, path: Path) -> str:
    """Check the hash again ourselves: the stored file is trusted from now on."""
    with translate_errors(DownloadFailed, path):
        got = hash_file(path)
    if wanted.sha256 not in (None, got):
        expected = f"expected sha256 {wanted.sha256}, by {wanted.hash_source}"
        raise HashRefused(
            f"{path.name} is not the file that was expected.",
            looked=(expected, f"got      sha256 {got}, by pip"),
            next_step="Nothing of it was kept. Compare with the project's page on pypi.org.",
        )
    return got

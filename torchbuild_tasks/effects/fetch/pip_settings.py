"""Where pip looks for packages: its indexes, its folders of wheels, its certificates.

A helper that is a wheel comes from wherever the user's own packages come from, so a
company's index or an offline folder that pip knows of needs no second configuration.
"""

from __future__ import annotations

import configparser
import locale
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.effects import process
from torchbuild_tasks.errors import UsageError

DEFAULT_INDEX: Final = "https://pypi.org/simple"
SECONDS: Final = 60.0
SYSTEM: Final = (Path(sys.prefix), Path("/etc"), Path("/etc/xdg/pip"))
# In the order in which pip lets a later one win; before it, all of them, come the PIP_* variables.
KINDS: Final = ("global", "user", "site", "env")
SECTIONS: Final = ("global", "install")


class PipSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where pip looks. Trusted hosts are left out on purpose: TLS is always verified.

    `index_urls` is index-url, then extra-index-url, in pip's order, and may hold passwords;
    empty with `no_index`. `find_links` are folders, pages or files. `cert` is a file or a
    folder of certificates, None for the usual ones.
    """

    index_urls: tuple[str, ...] = (DEFAULT_INDEX,)
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    cert: str | None = None


def pip_settings(environ: Mapping[str, str]) -> PipSettings:
    """What `pip install` would use with these variables.

    The PIP_* variables win over pip's files, and there [install] over [global].

    Args:
        environ: the whole environment; pip itself runs in it.

    Raises:
        UsageError: pip, or one of its files, cannot be read.
    """
    files = [_read(path) for path in _config_files(environ)]
    values: dict[str, str] = {}
    for section in SECTIONS:
        merged: dict[str, str] = {}
        for file in files:
            merged |= file.get(section, {})
        values |= _filled(merged)
    given = ((name[4:], value) for name, value in environ.items() if name.startswith("PIP_"))
    return _settings(values | _filled(_named(given)))


def has_default_index(environ: Mapping[str, str], system: Iterable[Path] = SYSTEM) -> bool:
    """Whether nothing speaks of an index where pip's documentation says that it looks.

    Asking pip itself takes half a second of CPU, which a look at the machine does not have.

    Args:
        environ: the whole environment.
        system: folders of files that are not the user's.
    """
    names = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_CONFIG_FILE")
    if any(environ.get(name) for name in names):
        return False
    file = "pip.ini" if os.name == "nt" else "pip.conf"
    home = Path.home()
    folders = [home / ".pip", home / "pip", home / ".config" / "pip", *system]
    bases = ("XDG_CONFIG_HOME", "APPDATA", "PROGRAMDATA")
    folders += [Path(environ[name]) / "pip" for name in bases if environ.get(name)]
    return not any(_speaks_of_index(folder / file) for folder in folders)


def _speaks_of_index(path: Path) -> bool:
    try:
        return b"index" in path.read_bytes().lower()
    except FileNotFoundError:
        return False
    except OSError:  # pip would stop at it: let it say so
        return True


def is_web(location: str) -> bool:
    """Whether a place is asked for over the network."""
    return location.lower().startswith(("http://", "https://"))


def _settings(values: Mapping[str, str]) -> PipSettings:
    no_index = values.get("no-index", "").lower() in ("y", "yes", "t", "true", "on", "1")
    indexes = (values.get("index-url", DEFAULT_INDEX).strip(), *values.get("extra-index-url", "").split())
    cert = values.get("cert")
    return PipSettings(
        index_urls=() if no_index else indexes,
        find_links=tuple(values.get("find-links", "").split()),
        no_index=no_index,
        cert=str(Path(cert).expanduser()) if cert else None,
    )


def _named(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    """pip's one spelling of each name."""
    return {name.lower().replace("_", "-").removeprefix("--"): value for name, value in items}


def _filled(values: Mapping[str, str]) -> dict[str, str]:
    """pip takes an empty value for none."""
    return {name: value for name, value in values.items() if value}


def _config_files(environ: Mapping[str, str]) -> list[Path]:
    """The files that pip reads, a later one winning; none when it is not installed (uv makes such venvs).

    pip is asked for their names only: which folders it searches depends on system, version
    and venv. Its `config list` would give the values too, but from pip 25 on it prints a
    name once for every file that has it, sorted by path, so that the winner is lost.
    """
    if environ.get("PIP_CONFIG_FILE") == os.devnull:  # pip's own way to say: no file at all
        return []
    # Only its output is put into UTF-8: UTF-8 mode would change how pip reads its files.
    said = process.capture(
        (sys.executable, "-P", "-m", "pip", "config", "debug"),
        env={**environ, "PYTHONIOENCODING": "utf-8"},
        timeout=SECONDS,
    )
    if said.rc == 0:
        return _files_named(said.stdout.decode("utf-8", errors="replace"))
    if said.rc == process.CANNOT_START or b"No module named pip" in said.stderr:
        return []
    raise UsageError(
        f"pip cannot read its own settings (exit code {said.rc}).",
        looked=tuple(said.stderr.decode("utf-8", errors="replace").strip().splitlines()[-3:]),
        next_step=f"Put right what pip names here: {sys.executable} -m pip config debug",
    )


def _files_named(said: str) -> list[Path]:
    """The existing files in what `pip config debug` says: `kind:`, then `  path, exists: True`."""
    files: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    kind = ""
    for line in said.splitlines():
        if not line.startswith(" "):
            kind = line.strip().removesuffix(":")
        elif line.endswith(", exists: True") and kind in files:
            files[kind].append(Path(line.strip().removesuffix(", exists: True")))
    return [path for kind in KINDS for path in files[kind]]


def _read(path: Path) -> dict[str, dict[str, str]]:
    """One file of pip's, by section; in the encoding in which pip reads it."""
    parser = configparser.RawConfigParser()
    try:
        with path.open(encoding=locale.getpreferredencoding(False)) as file:
            parser.read_file(file)
    except (OSError, ValueError, configparser.Error) as error:
        raise UsageError(
            f"A settings file of pip cannot be read: {path}",
            looked=(str(error),),
            next_step="Repair or remove it; pip itself would stop at it as well.",
        ) from None
    return {section: _named(parser.items(section)) for section in parser.sections()}

"""Look at the container engines, and at the facts of the machine for a container."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.catalog.packaging import EngineRow
from torchbuild_tasks.facts.installers import places_of_pip
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.trust import common_git_folder
from torchbuild_tasks.features.container.choose import Engine, Host
from torchbuild_tasks.system.reading import read_text

_SECONDS: Final = 30.0
_PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_CERTIFICATES: Final = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
# https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
_CDI: Final = ("/etc/cdi", "/var/run/cdi")


def look_at_engines(rows: Iterable[EngineRow], probe: Probe) -> tuple[Engine, ...]:
    """Return the state of each engine."""
    return tuple(_engine(row, probe) for row in rows)


def _engine(row: EngineRow, probe: Probe) -> Engine:
    path = probe.which(row.name)
    if path is None:
        return Engine(row=row)
    answer = probe.run((path, *row.answer), timeout=_SECONDS)
    if answer is None or answer.rc != 0:
        lines = (answer.stderr or answer.stdout).strip().splitlines() if answer else []
        return Engine(row=row, path=path, problem=lines[-1] if lines else f"{path} does not answer")
    rootless = row.rootless in answer.stdout if row.rootless else os.name != "nt" and os.geteuid() != 0
    return Engine(row=row, path=path, rootless=rootless, subids=not rootless or has_subids())


def has_subids(root: Path = Path("/")) -> bool:
    """Say whether the user has subordinate ids (subuid(5)); True if unknown."""
    if os.name == "nt":
        return True
    import pwd

    uid = os.getuid()
    try:
        names = {str(uid), pwd.getpwuid(uid).pw_name}
    except KeyError:
        names = {str(uid)}
    for name in ("etc/subuid", "etc/subgid"):
        try:
            lines = read_text(root / name).splitlines()
        except FileNotFoundError:
            return False
        except (OSError, UnicodeDecodeError):
            return True
        if not any(line.partition(":")[0] in names for line in lines):
            return False
    return True


def look_at_host(source: str, environ: Mapping[str, str], root: Path = Path("/")) -> Host:
    """Return the facts of this machine for a container; `root` replaces the file system's root in tests."""
    windows = os.name == "nt"
    return Host(
        uid=None if windows else os.getuid(),
        gid=None if windows else os.getgid(),
        certificates=next(
            (p for name in _CERTIFICATES if (p := environ.get(name)) and Path(p).is_file()), ""
        ),
        pip=_pip_settings(Probe(environ=environ)),
        proxies=tuple(name for name in _PROXIES if environ.get(name)),
        common=common_git_folder(Path(source)),
        cdi=any(path.suffix in (".yaml", ".json") for each in _CDI for path in _files(root / each[1:])),
    )


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _pip_settings(probe: Probe) -> str:
    """Return the strongest of pip's settings files, which stands in for all of them; "" for none."""
    places = (probe.absolute(path) for path in places_of_pip(probe))
    return next((path for path in places if probe.is_file(path)), "")

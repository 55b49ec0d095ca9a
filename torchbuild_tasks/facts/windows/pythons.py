"""The interpreters that Windows has a list of: the py launcher's, and the registry's (PEP 514)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.python_places import Place, inside

REGISTRY = ("HKCU\\Software\\Python", "HKLM\\Software\\Python")
NO_COMPANY = ("PyLauncher",)  # PEP 514 keeps this name for the launcher's own settings

# " -V:3.12 *        C:\\Python312\\python.exe", before 3.11 " -3.9-64        C:\\..."
_LINE = re.compile(r"\s*-(?:V:)?(\S+)[\s*]+([A-Za-z]:\\.+\.exe)\s*")
_TAG_VERSION = re.compile(r"(?:^|\D)(\d+\.\d+(?:\.\d+)?)(t?)")


def installed_pythons(probe: Probe) -> Iterator[tuple[Place, str | None]]:
    """Each with the version that its entry speaks of; the launcher's come first, once each."""
    seen = set()
    for place, tag in (*_launcher(probe), *_registry(probe)):
        key = probe.names.key(place.path)
        if key not in seen and probe.is_program(place.path):
            seen.add(key)
            version = _TAG_VERSION.search(tag)
            yield place, version[1] + version[2] if version else None


def _launcher(probe: Probe) -> Iterator[tuple[Place, str]]:
    """What `py -0p` lists, in its order: the newest first."""
    py = probe.which("py")
    output = probe.run((py, "-0p")) if py else None
    for line in output.stdout.splitlines() if output and output.rc == 0 else ():
        if match := _LINE.fullmatch(line):
            yield Place(path=match[2], found_via="py launcher"), match[1]


def _registry(probe: Probe) -> Iterator[tuple[Place, str]]:
    for hive in REGISTRY:
        for company in probe.registry_keys(hive):
            if company not in NO_COMPANY:
                yield from _company(probe, f"{hive}\\{company}", f"registry ({hive[:4]})")


def _company(probe: Probe, key: str, via: str) -> Iterator[tuple[Place, str]]:
    for tag in sorted(probe.registry_keys(key), key=_tag_numbers, reverse=True):
        folder = probe.registry_value(f"{key}\\{tag}\\InstallPath")
        path = probe.registry_value(f"{key}\\{tag}\\InstallPath", "ExecutablePath")
        if not isinstance(path, str) and isinstance(folder, str):
            path = inside(probe, folder)
        if isinstance(path, str):
            yield Place(path=path, found_via=via), tag


def _tag_numbers(tag: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", tag)]

"""Limit what an untrusted settings file may say: values, no programs, servers, remote places.

A file that came with a checkout may choose among what this tool and the machine have: a preset, a version, a
switch. What names something that is started, asked over a network or written to elsewhere is withheld until
the user trusts the file (`torchbuild trust`). A key that is not known to be harmless is withheld: one that
is added to the flags has to be put into `_HARMLESS` to count unasked.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import covers
from torchbuild_tasks.model import Finding
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.plan.settings import NamedBuild, Settings, Withheld, split_assignment
from torchbuild_tasks.text.words import as_word, first_few
from torchbuild_tasks.values import replace

_VERSION: Final = re.compile(r"(?:pypi:)?\d+(?:\.\d+)*[a-z]{0,2}\d*")
_NAME: Final = re.compile(r"[A-Za-z0-9][\w+-]*")
_LINKERS: Final = ("auto", "default", "bfd", "gold", "lld", "mold")
_CACHES: Final = ("auto", "none", "ccache", "sccache")
_AWAY: Final = re.compile(r"[/\\~$%]|^[A-Za-z]:|\.\.|://")  # a word that can lead to a file


def _any(value: Any) -> bool:
    return True


def _version(value: Any) -> bool:
    return _VERSION.fullmatch(str(value)) is not None


def _near(value: Any) -> bool:
    """Say whether a path stays below the folder of the file."""
    text = str(value).replace("\\", "/")
    return not (text.startswith(("/", "~", "-")) or ":" in text or ".." in PurePosixPath(text).parts)


def _ref(value: Any) -> bool:
    return re.fullmatch(r"[\w][\w./+-]*", str(value)) is not None


def _names(value: Any) -> bool:
    return all(_NAME.fullmatch(str(word)) for word in value)


def _one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: value in words


# The fields of a request whose value can do no harm, by a rule; what is not here can.
_HARMLESS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(
        (
            *("cpu", "cuda", "preset", "build_type", "mode", "env_shell", "no_preflight", "no_patches"),
            *("jobs", "jobserver", "cache_read_only", "cache_size", "offline", "require_hashes", "manager"),
        ),
        _any,  # a number, a switch, or one of a flag's own choices
    ),
    "arch": lambda value: _AWAY.search(str(value)) is None,
    "torch": _ref,
    "ref": _ref,
    "python": _version,
    "toolset": _version,
    "cuda_toolkit": _version,
    "linker": _one_of(*_LINKERS),
    "cache": _one_of(*_CACHES),
    "with_helper": _names,
    "with_": _names,
    # A look runs nothing of it; but Windows would log in at the server of a UNC path.
    "source": lambda value: not str(value).startswith(("-", "//", "\\\\", "/\\", "\\/")),
    **dict.fromkeys(("folder", "patch_dir", "cache_dir"), _near),
}
_WHY: Final = {
    "python": "names a program",
    "cuda_toolkit": "names a folder of programs",
    "linker": "names a program",
    "notify": "names a program",
    "wheels": "names packages to install",
    "with_": "names other sources",
    "with_extension": "names sources whose build is run",
    "url": "names a server",
    "mirror": "names a server",
    "registry": "names a server",
    "cache": "names a server",
    "distribute": "names a server",
}
_PLACE: Final = "names a place outside of its folder"

# ---------------- build variables

# One word or several, none of them an option or a way up.
_WORDS: Final = re.compile(r"(?:(?!\.\.)[\w.+][\w.+-]*(?:[;, ]+|$))*")
# Options of compilers that only say how code is made: -O2, -march=native, -fno-omit-frame-pointer, -DX=1.
_OPTION: Final = re.compile(
    r"-(?:O\w*|g[\w-]*|std=[\w+]+|pipe|pthread|w|m(?!llvm)[\w.+=-]+|[DU]\w+(?:=[\w.+-]*)?|W(?![alp],)[\w+=-]+|"
    r"f(?!plugin|pass-plugin|use-ld|profile|sanitize-\w*list|[a-z-]*path|uselinker)[\w.+=-]+)"
)
_DEFINE: Final = re.compile(r"-D(\w+)(?::\w+)?=([\w.+;-]*)")


def is_harmless_variable(name: str, value: str, catalog: Catalog) -> bool:
    """Say whether a build variable can only be a value: it leads to no program, no file and no server.

    Rows know which can, since any program may read what this tool does not know of. That the checkout reads
    a name says nothing: it may say so of LD_PRELOAD, too.
    """
    companions = {each for row in catalog.companion for each in row.set}
    rows = [row for row in catalog.variable if covers(row.name, name)]
    known = next((row for row in rows if row.kind or row.values), None)
    if known is None or known.kind != "flags":
        return (known is not None or name in companions) and _WORDS.fullmatch(value) is not None
    if name != "CMAKE_ARGS":
        return all(_OPTION.fullmatch(word) for word in value.split())
    found = [_DEFINE.fullmatch(word) for word in value.split()]
    return all(one is not None and is_harmless_variable(one[1], one[2], catalog) for one in found)


# ---------------- a settings file


def withhold(settings: Settings, catalog: Catalog) -> tuple[Settings, tuple[Withheld, ...]]:
    """Return the settings with harmless values alone, and what was taken out of them."""
    out = list(_dangers("", settings.values, settings.variables, catalog))
    for name, build in settings.builds.items():
        own = {"ref": build.ref, "folder": build.folder}
        given = {key: value for key, value in own.items() if value is not None}
        out += _dangers(f"builds.{name}.", {**build.values, **given}, build.variables, catalog)
    out += [
        Withheld(key=f"[[helper]] {row.name}", why="names a download and programs")
        for row in settings.helpers
    ]
    out += [Withheld(key=f"mirrors.{old}", why="names a server") for old, _ in settings.mirrors]
    if not out:
        return settings, ()
    builds = {name: _harmless_build(build, catalog) for name, build in settings.builds.items()}
    values, variables = _harmless(settings.values, settings.variables, catalog)
    clean = replace(settings, values=values, variables=variables, helpers=(), mirrors=(), builds=builds)
    return clean, tuple(dict.fromkeys(out))


def _dangers(
    above: str, values: Mapping[str, Any], variables: Mapping[str, str], catalog: Catalog
) -> Iterator[Withheld]:
    for name, value in values.items():
        if not is_harmless(name, value):
            key = flag_name(name)[2:]
            yield Withheld(key=f"{above}{key}", why=_WHY.get(name, _PLACE), value="" if above else str(value))
    for name, value in variables.items():
        if not is_harmless_variable(name, value, catalog):
            why = "is not known to be a mere value"
            yield Withheld(key=f"{above}set.{name}", why=why)


def is_harmless(name: str, value: Any) -> bool:
    """Say whether the value of a field of a request can do no harm."""
    rule = _HARMLESS.get(name)
    return rule is not None and (value is None or rule(value))


def _harmless(
    values: Mapping[str, Any], variables: Mapping[str, str], catalog: Catalog
) -> tuple[dict[str, Any], dict[str, str]]:
    return (
        {name: value for name, value in values.items() if is_harmless(name, value)},
        {name: value for name, value in variables.items() if is_harmless_variable(name, value, catalog)},
    )


def without_given(request: BuildRequest, withheld: tuple[Withheld, ...]) -> tuple[Withheld, ...]:
    """Return what counts where the file is trusted: not what a flag of this command line says instead."""
    fields = dataclasses.fields(request)
    given = {flag_name(f.name)[2:] for f in fields if getattr(request, f.name) not in (None, False, ())}
    given |= {f"set.{split_assignment(text)[0]}" for text in request.set}
    return tuple(each for each in withheld if each.key not in given)


def _harmless_build(build: NamedBuild, catalog: Catalog) -> NamedBuild:
    values, variables = _harmless(build.values, build.variables, catalog)
    ref = build.ref if build.ref is None or _ref(build.ref) else None
    folder = build.folder if build.folder is None or _near(build.folder) else None
    return replace(build, values=values, variables=variables, ref=ref, folder=folder)


def check_trust(settings: Settings) -> tuple[Finding, ...]:
    """Report settings that are ignored because their file is not trusted: the build would be another one."""
    return tuple(
        Finding.error(
            "trust",
            f"{place} is not trusted, so these of its settings are ignored: {withheld_text(withheld)}",
            f"Read it. If you trust it: torchbuild trust {as_word(place)}{_or_flags(withheld)}",
        )
        for place, withheld in settings.withheld.items()
    )


def _or_flags(withheld: tuple[Withheld, ...]) -> str:
    """Return the way without trust: flags that say something else; "" where not all of it has a flag."""
    if not all(each.value for each in withheld):
        return ""
    return f". Or say otherwise, and they are not needed: {' '.join(f'--{each.key} …' for each in withheld)}"


def withheld_text(withheld: tuple[Withheld, ...]) -> str:
    """Name the keys, with what each would do."""
    return first_few([f"{each.key} ({each.why})" for each in withheld], 30)

"""Format the provenance of a wheel as an in-toto statement with SLSA's predicate; identify licences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from torchbuild_tasks.about import __version__
from torchbuild_tasks.catalog.packaging import LicenceRow
from torchbuild_tasks.model.record import Manifest

HOME: Final = "https://github.com/torchbuild/torchbuild-tasks"
BUILD_TYPE: Final = f"{HOME}/blob/main/docs/provenance.md#build-type"
# The machine's user attests it, not a build service, so it is level 1 of SLSA's build track.
BUILDER: Final = f"{HOME}/blob/main/docs/provenance.md#builder"
STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"
SUFFIX: Final = ".provenance.json"  # behind the wheel's name


class Licence(msgspec.Struct, frozen=True, kw_only=True):
    """A licence file: its path in the checkout, and its SPDX identifier, "" if unknown."""

    file: str
    id: str = ""


def identify_licence(text: str, rows: Iterable[LicenceRow]) -> str:
    """Return the SPDX identifier of the first row whose words are all in the text, else ""."""
    plain = " ".join(text.lower().split())
    return next((row.id for row in rows if all(words in plain for words in row.says)), "")


# ---------------- the statement


def statement(manifest: Manifest, wheel: str, digest: str, manifest_digest: str) -> str:
    """Return the statement of a wheel's provenance, from the manifest of its build.

    Plain JSON: in-toto-attestation 0.9 wraps the same four keys in protobuf, which every build would import,
    and checks no more than that they are there.
    """
    data = {
        "_type": STATEMENT,
        "subject": [{"name": wheel, "digest": {"sha256": digest}}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"request": manifest.request, "settings": manifest.settings},
                "internalParameters": {
                    "choices": manifest.decided,
                    "commands": [list(each.argv) for each in manifest.commands],
                    "machine": {"os": manifest.facts.host.os, "arch": manifest.facts.host.arch},
                },
                "resolvedDependencies": list(_dependencies(manifest)),
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {"torchbuild_tasks": __version__}},
                "metadata": {"startedOn": _time(manifest.started), "finishedOn": _time(manifest.finished)},
                "byproducts": [{"name": "torchbuild-manifest.json", "digest": {"sha256": manifest_digest}}],
            },
        },
    }
    return json.dumps(data, indent=1, ensure_ascii=True, default=str) + "\n"


def package_statement(
    built: Any, wheel: str, digest: str, made_of: tuple[str, str], order: Mapping[str, Any]
) -> str:
    """Return the statement of a package: that of its wheel, and the step of packaging.

    Args:
        built: the statement of that wheel.
        wheel, digest: the package's file name and SHA-256.
        made_of: file name and SHA-256 of that wheel.
        order: the request for the package.
    """
    definition = built["predicate"]["buildDefinition"]
    origin = {"name": made_of[0], "digest": {"sha256": made_of[1]}}
    data = {
        **built,
        "subject": [{"name": wheel, "digest": {"sha256": digest}}],
        "predicate": {
            **built["predicate"],
            "buildDefinition": {
                **definition,
                "externalParameters": {**definition["externalParameters"], "package": dict(order)},
                "resolvedDependencies": [origin, *definition["resolvedDependencies"]],
            },
        },
    }
    return json.dumps(data, indent=1, ensure_ascii=True, default=str) + "\n"


def _time(text: str | None) -> str:
    return (text or "").replace("+00:00", "Z")


def _dependencies(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the inputs of the build as in-toto ResourceDescriptors."""
    for each in manifest.repositories:
        if each.commit:
            source: dict[str, Any] = {"name": each.path or "torch", "digest": {"gitCommit": each.commit}}
            if each.url:
                source["uri"] = f"git+{each.url}@{each.commit}"
            if each.diff_sha256:
                source["annotations"] = {"changed": f"diff, sha256 {each.diff_sha256}"}
            yield source
    for name, digest in manifest.patches.items():
        yield {"name": f"patch {name}", "digest": {"sha256": digest}}
    for helper in manifest.helpers:
        yield _describe(f"helper {helper.id}", helper.sha256)
    for program in manifest.programs:
        described = _describe(f"program {program.name}", program.sha256)
        yield described | {"annotations": {"version": program.version or "", "path": program.path}}
    for package in manifest.requirements:
        if package.name != "torch":
            uri = f"pkg:pypi/{package.name.lower()}@{package.version}"
            yield {"uri": uri, **({"digest": {"sha256": package.archive}} if package.archive else {})}


def _describe(name: str, sha256: str | None) -> dict[str, Any]:
    return {"name": name, **({"digest": {"sha256": sha256}} if sha256 else {})}

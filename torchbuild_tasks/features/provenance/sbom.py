"""Format a wheel's bill of materials as CycloneDX: torch, its submodules, their commits and licences."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from torchbuild_tasks.about import __version__
from torchbuild_tasks.features.provenance.choose import HOME, Licence
from torchbuild_tasks.model.record import Repository
from torchbuild_tasks.values import parse_json

SBOM: Final = "sboms/torchbuild.cdx.json"  # in .dist-info (PEP 770)
COMMIT: Final = "torchbuild:commit"
_GITHUB: Final = re.compile(r"(?:https?|ssh|git)://(?:[^@/]+@)?github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
_WEB: Final = re.compile(r"https?://[^@\s]+")


def make_sbom(
    *,
    version: str,
    repositories: Iterable[Repository],
    licences: Mapping[str, tuple[Licence, ...]],
    content: str,
    time: datetime,
) -> str:
    """Return the bill of materials of a wheel, as JSON of CycloneDX 1.6.

    Args:
        version: that of the wheel.
        repositories: torch itself and its submodules; those that are not checked out are in no wheel.
        licences: by the path of a repository.
        content: the hash of all else in the wheel, from which the serial number follows.
        time: what it says of itself.
    """
    there = [each for each in repositories if each.commit]
    own = next((each for each in there if not each.path), None)
    changed = Property(name="torchbuild:changed", value="tracked files differ from the commit")
    properties = [Property(name=COMMIT, value=str(own.commit))] if own else []
    properties += [changed] if own and own.diff_sha256 else []
    torch = Component(
        name="torch",
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref="torch",
        purl=PackageURL(type="pypi", name="torch", version=version),
        licenses=_licences(licences.get("", ())),
        properties=properties,
    )
    parts = [
        Component(
            name=each.path,
            version=each.commit,
            type=ComponentType.LIBRARY,
            bom_ref=each.path,
            purl=_purl(each),
            licenses=_licences(licences.get(each.path, ())),
            properties=[changed] if each.diff_sha256 else [],
        )
        for each in there
        if each.path
    ]
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{HOME}#{content}"),
        metadata=BomMetaData(
            component=torch,
            timestamp=time,
            tools=ToolRepository(components=[Component(name="torchbuild_tasks", version=__version__)]),
        ),
        components=parts,
    )
    bom.register_dependency(torch, parts)
    text: str = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    return text + "\n"


def edit_sbom(text: str, version: str, libraries: Iterable[str]) -> str:
    """Return the bill of materials for a package: its version, and the libraries that were copied into it.

    Args:
        text: that of the wheel which the package is made of.
        libraries: those, by file name.
    """
    bom: Any = parse_json(text)
    own = bom["metadata"]["component"]
    own |= {"version": version, "purl": str(PackageURL(type="pypi", name="torch", version=version))}
    names = sorted(libraries)
    more = [{"bom-ref": f"file:{name}", "name": name, "type": "library"} for name in names]
    bom["components"] = [*bom.get("components", ()), *more]
    refs = [each["bom-ref"] for each in more]
    for each in bom.get("dependencies", ()):
        if each["ref"] == own["bom-ref"]:
            each["dependsOn"] = [*each.get("dependsOn", ()), *refs]
    bom["dependencies"] = [*bom.get("dependencies", ()), *({"ref": ref} for ref in refs)]
    identity = f"{bom.get('serialNumber', '')}#{version}#{' '.join(names)}"
    bom["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, f"{HOME}#{identity}").urn
    return json.dumps(bom, indent=1) + "\n"


def _licences(licences: Iterable[Licence]) -> list[DisjunctiveLicense]:
    """Return each licence once, an unknown one by its file name."""
    known = dict.fromkeys(each.id or each.file for each in licences)
    ids = {each.id for each in licences}
    return [
        DisjunctiveLicense(id=name) if name in ids else DisjunctiveLicense(name=f"see {name}")
        for name in known
    ]


def _purl(each: Repository) -> PackageURL:
    """Return GitHub's form of package URL, else a plain one; no folder of this machine."""
    name = each.path.rpartition("/")[2]
    if match := _GITHUB.fullmatch(each.url):
        return PackageURL(
            type="github", namespace=match[1].lower(), name=match[2].lower(), version=each.commit
        )
    web = _WEB.fullmatch(each.url)
    where = {"vcs_url": f"git+{web[0]}@{each.commit}"} if web else {}
    return PackageURL(type="generic", name=name, version=each.commit, qualifiers=where)

"""The maintainer's script that brings rows up to date, over canned answers of an index."""

from __future__ import annotations

import difflib
import io
import json
import re
import shutil
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.version import Version

from bin import update_rows
from bin.update_rows import DATA, Index, update
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.rows import TorchRow
from torchbuild_tasks.catalog.source import CompanionReleaseRow

pytestmark = pytest.mark.one_system

CATALOG: Final = load_catalog()
URL: Final = "https://index.example/simple"
LINUX: Final = "manylinux_2_28_x86_64"
NEWEST: Final = Version(CATALOG.torch[-1].version)
NEXT: Final = f"{NEWEST.major}.{NEWEST.minor + 1}"  # the series after the newest, whichever that is


class Answers:
    """What an index would answer: pages of projects, METADATA and wheels by their address."""

    def __init__(self) -> None:
        self.files: dict[str, list[dict[str, Any]]] = {}
        self.others: dict[str, bytes] = {}

    def add(self, project: str, version: str, tags: str, *, requires: str | None = None, **file: Any) -> None:
        """Add a wheel; `requires` are the lines of its Requires-Dist."""
        name = f"{project.replace('-', '_')}-{version}-{tags}.whl"
        about = {"filename": name, "url": f"../../files/{name}", "size": 5, "yanked": False}
        about |= {
            "hashes": {"sha256": "0" * 64},
            "requires-python": ">=3.11",
            "upload-time": "2027-01-20T15:00:00Z",
        }
        self.files.setdefault(project, []).append(about | file)
        if requires is not None:
            self.others[f"https://index.example/files/{name}.metadata"] = f"Name: x\n{requires}\n".encode()

    def fetch(self, url: str) -> bytes | None:
        project = url.removeprefix(URL).strip("/")
        if project in self.files:
            return json.dumps({"files": self.files[project]}).encode()
        return self.others.get(url)

    def update(self, folder: Path, *, write: bool = True) -> list[str]:
        return update(folder, Index(self.fetch, URL), write=write)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in update_rows.SOURCES:
        shutil.copy(DATA / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def answers() -> Answers:
    """An index that has what the rows say, and nothing else."""
    known = Answers()
    for row in CATALOG.torch:
        for version in {row.version + ".0", row.latest}:
            below = re.search(r"<3\.(\d+)$", row.python)
            assert below
            tag = f"cp3{int(below[1]) - 1}"
            triton = f"Requires-Dist: triton{row.triton}; platform_system == 'Linux'" if row.triton else ""
            lowest = row.python.partition(",")[0]
            file = {"requires-python": lowest}
            known.add("torch", version, f"{tag}-{tag}-{LINUX}", requires=triton, **file)
    for release in CATALOG.companion_release:
        known.add(release.name, release.version, f"cp312-cp312-{LINUX}")
    data = tomllib.loads((DATA / "toolkits.toml").read_text("utf-8"))
    kinds = {(kind["cuda"], kind["name"]): kind for kind in data["part_kind"]}
    for toolkit in data["toolkit"]:
        if toolkit["cuda"].count(".") == 2:
            known.add("cuda-toolkit", toolkit["cuda"], "py3-none-any")
        for part in toolkit["parts"]:
            project = kinds[toolkit["cuda"].partition(".")[0], part["name"]].get("project")
            for file in part["files"] if project else ():
                known.add(
                    project, part["version"], f"py3-none-{file['tag']}", hashes={"sha256": file["sha256"]}
                )
    for gate in CATALOG.gate:
        for version in re.findall(r"!=([\d.]+)", gate.fits):
            known.add(gate.name, version, "py3-none-any")
    return known


def added(folder: Path, name: str) -> tuple[list[str], list[str]]:
    """The lines that are new in a file, and those that are gone."""
    old, new = ((path / name).read_text("utf-8").splitlines() for path in (DATA, folder))
    lines = [line for line in difflib.ndiff(old, new) if line[0] in "+-"]
    return [line[2:] for line in lines if line[0] == "+"], [line[2:] for line in lines if line[0] == "-"]


def test_with_nothing_new_every_file_stays_to_the_byte(answers: Answers, folder: Path) -> None:
    assert answers.update(folder) == []
    for name in update_rows.SOURCES:
        assert (folder / name).read_bytes() == (DATA / name).read_bytes()


def test_a_newer_release_changes_its_line_alone(answers: Answers, folder: Path) -> None:
    row = CATALOG.torch[-1]
    newer = f"{row.version}.{Version(row.latest).micro + 1}"
    tag = "cp3" + str(int(row.python.rpartition("3.")[2]) - 1)
    triton = f"Requires-Dist: triton {row.triton}"
    lowest = row.python.partition(",")[0] + ".0"  # the same, spelt otherwise
    answers.add("torch", newer, f"{tag}-{tag}-{LINUX}", requires=triton, **{"requires-python": lowest})
    answers.add("torch", f"{row.version}.99", f"{tag}-{tag}-{LINUX}", yanked=True)
    answers.add("torch", f"{row.version}.98rc1", f"{tag}-{tag}-{LINUX}")
    assert answers.update(folder, write=False) == [
        f"torch.toml: ~ [[torch]] {row.version}: latest = {row.latest} -> {newer}"
    ]
    assert added(folder, "torch.toml") == ([], [])
    answers.update(folder)
    assert added(folder, "torch.toml") == ([f'latest = "{newer}"'], [f'latest = "{row.latest}"'])


def test_a_new_series_is_appended_and_says_what_is_unconfirmed(answers: Answers, folder: Path) -> None:
    answers.add("torch", f"{NEXT}.0", f"cp315-cp315-{LINUX}", requires="Requires-Dist: triton~=4.0.0")
    answers.add("torch", f"{NEXT}.1", f"cp316-cp316-{LINUX}", requires="Requires-Dist: triton~=4.1.0")
    assert answers.update(folder) == [f"torch.toml: + [[torch]] {NEXT}.1"]
    text = (folder / "torch.toml").read_text("utf-8")
    assert text.startswith((DATA / "torch.toml").read_text("utf-8"))
    row = TorchRow(**tomllib.loads(text)["torch"][-1])
    assert (row.version, row.latest, row.released) == (NEXT, f"{NEXT}.1", "2027-01-20")
    assert (row.python, row.triton, row.note) == (">=3.11,<3.17", "~=4.1.0", "")
    assert row.source.startswith("the index; UNCONFIRMED")
    unknown = row.source.partition(": ")[2].split(", ")
    assert {"cxx", "gcc", "msvc", "cmake", "requires"} <= set(unknown)
    assert not {"version", "latest", "released", "python", "triton"} & set(unknown)
    assert answers.update(folder) == []


def test_a_companion_stands_behind_its_own(answers: Answers, folder: Path) -> None:
    answers.add("torchvision", "9.1.0", f"cp312-cp312-{LINUX}", requires=f"Requires-Dist: torch=={NEXT}.0")
    answers.add("torchaudio", "9.2.0", f"cp312-cp312-{LINUX}", requires="Requires-Dist: numpy")
    lines = answers.update(folder)
    assert [line.split(" for ")[0] for line in lines] == [
        "companions.toml: + [[companion_release]] torchvision 9.1.0",
        "companions.toml: + [[companion_release]] torchaudio 9.2.0",
    ]
    rows = tomllib.loads((folder / "companions.toml").read_text("utf-8"))["companion_release"]
    releases = [CompanionReleaseRow(**row) for row in rows]
    names = [row.name for row in releases]
    assert names == sorted(names, key=[row.name for row in CATALOG.companion].index)
    one, other = (row for row in releases if row.version.startswith("9."))
    minor = NEWEST.minor + 1
    assert one.torch == f">={NEWEST.major}.{minor}.0a0,<{NEWEST.major}.{minor + 1}.0a0"
    assert (one.wheel, other.wheel) == (f"=={NEXT}.0", "")
    assert "UNCONFIRMED" not in one.source
    assert other.source.endswith("torch UNCONFIRMED")
    assert added(folder, "companions.toml")[1] == []


@pytest.mark.parametrize("pep_658", [True, False], ids=["METADATA beside it", "in the wheel"])
def test_a_toolkit_is_made_of_what_cuda_toolkit_pins(answers: Answers, folder: Path, pep_658: bool) -> None:
    pins = "Requires-Dist: nvidia-cuda-nvcc==13.99.7.*; extra == 'nvcc'"
    answers.add("cuda-toolkit", "13.99.0", "py3-none-any", requires=pins if pep_658 else None)
    if not pep_658:
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("cuda_toolkit-13.99.0.dist-info/METADATA", f"{pins}\n")
        answers.others["https://index.example/files/cuda_toolkit-13.99.0-py3-none-any.whl"] = wheel.getvalue()
    for tag in (
        "win_arm64",
        "win_amd64",
        "manylinux2014_x86_64.manylinux_2_17_x86_64",
        "manylinux_2_17_aarch64",
    ):
        answers.add("nvidia-cuda-nvcc", "13.99.7", f"py3-none-{tag}", hashes={"sha256": "ab" * 32}, size=12)
    assert answers.update(folder) == [
        "toolkits.toml: + [[toolkit]] 13.99.0",
        "cuda.toml: + [[cuda]] 13.99 (from its headers, by hand)",
    ]
    new, gone = added(folder, "toolkits.toml")
    assert gone == []
    files = [
        f'        {{ tag = "{tag}", sha256 = "{"ab" * 32}", size = 12 }},'
        for tag in ("manylinux_2_17_x86_64", "manylinux_2_17_aarch64", "win_amd64")
    ]
    part = ['    { name = "nvcc", version = "13.99.7", files = [', *files, "    ] },"]
    assert "\n".join(part) in "\n".join(new)
    rows = [row["cuda"] for row in tomllib.loads((folder / "toolkits.toml").read_text("utf-8"))["toolkit"]]
    before = [row["cuda"] for row in tomllib.loads((DATA / "toolkits.toml").read_text("utf-8"))["toolkit"]]
    last = max(at for at, cuda in enumerate(before) if cuda.count(".") == 2)
    assert rows == [*before[: last + 1], "13.99.0", *before[last + 1 :]]


def test_what_only_a_person_can_do_is_named_and_not_written(answers: Answers, folder: Path) -> None:
    answers.add("cuda-toolkit", "13.99.0", "py3-none-any", size=10**9)  # nothing tells its parts
    gate = CATALOG.gate[0]
    answers.files[gate.name] = answers.files[gate.name][:1]
    project = next(project for project in answers.files if project.startswith("nvidia-cublas"))
    answers.files[project][0]["hashes"] = {"sha256": "f" * 64}
    said = "\n".join(answers.update(folder))
    assert "the index has no file of this hash" in said
    assert "[[toolkit]] 13.99.0 (the index does not tell its parts)" in said
    assert f"[[gate]] {gate.name}: the index has no " in said
    assert len(said.splitlines()) == 4
    for name in update_rows.SOURCES:
        assert (folder / name).read_bytes() == (DATA / name).read_bytes()


def test_an_index_without_json_is_refused(folder: Path) -> None:
    with pytest.raises(SystemExit, match="answers no JSON"):
        update(folder, Index(lambda url: b"<!DOCTYPE html>", URL), write=True)


def test_other_words_are_refused() -> None:
    with pytest.raises(SystemExit, match="not --wirte"):
        update_rows.main(["--wirte"])

"""The files of licences at the top of a repository, and nothing else."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.provenance.choose import Licence
from torchbuild_tasks.features.provenance.look import look_at_licences

MPL = "Mozilla Public License\nVersion 2.0\n"


def test_every_file_of_a_licence_counts_and_folders_do_not(tmp_path: Path) -> None:
    inner = tmp_path / "third_party/eigen"
    (inner / "licenses").mkdir(parents=True)
    (inner / "COPYING.MPL2").write_text(MPL, "utf-8")
    (inner / "LICENSE.md").write_bytes(b"\xff of our own")
    (inner / "README").write_text(MPL, "utf-8")
    assert look_at_licences(tmp_path, "third_party/eigen", load_catalog().licence) == (
        Licence(file="third_party/eigen/COPYING.MPL2", id="MPL-2.0"),
        Licence(file="third_party/eigen/LICENSE.md"),
    )
    assert look_at_licences(tmp_path, "", load_catalog().licence) == ()

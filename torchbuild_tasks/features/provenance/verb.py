"""`verify --provenance`: check a wheel against its statement, point by point."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.errors import VerifyFailed
from torchbuild_tasks.verbs import Outcome


def verify_provenance(wheel: str, signers: str | None, *, as_json: bool) -> Outcome:
    """Check a wheel against its statement."""
    from torchbuild_tasks.features.provenance.check import check_wheel
    from torchbuild_tasks.text.show import columns

    path = Path(wheel).expanduser().absolute()
    checks = check_wheel(path, Path(signers).expanduser() if signers else None)
    failed = sum(each.outcome == "failed" for each in checks)
    rows = [(each.outcome, f"{each.check}: {each.detail}") for each in checks]
    text = (
        ""
        if as_json
        else f"Provenance of {path.name}: {len(checks)} checks, {failed} failed\n{columns(rows)}"
    )
    return Outcome({"wheel": str(path), "checks": checks}, text, VerifyFailed.exit_code if failed else 0)

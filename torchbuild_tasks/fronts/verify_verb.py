"""`verify`: test the built torch, the libraries that it loads, or a wheel's provenance."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from torchbuild_tasks.errors import VerifyFailed
from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

# Imports for running the verb are inside it, because this module is also imported for the flags alone.
# Apart from the other verbs: making a class of all flags takes 4 ms (`python -X importtime`).


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifyRequest(BuildRequest):
    """The flags of `verify`."""

    closure: bool = own_flag(
        "only follow the libraries that `import torch` would load, and name what is missing", default=False
    )
    provenance: str | None = own_flag(
        "only check this wheel against its provenance statement: hash, contents, commits, signature",
        metavar="WHEEL",
    )
    signers: str | None = own_flag(
        "with --provenance: accepted signers, a public SSH key or a file of allowed signers", metavar="FILE"
    )


def verify(request: VerifyRequest, report: Reporter) -> Outcome:
    """Compare the installed torch with the plan's promises."""
    if request.closure:
        from torchbuild_tasks.features.closure.verb import list_libraries

        return list_libraries(request)
    if request.provenance:
        from torchbuild_tasks.features.provenance.verb import verify_provenance

        return verify_provenance(request.provenance, request.signers)
    from torchbuild_tasks import flow
    from torchbuild_tasks.text.show import report_text

    verified = flow.verify(request, report)
    return Outcome(verified, report_text(verified), VerifyFailed.exit_code if verified.failed else 0)

"""Plain text that tells where in a long log something may be said, so that the rest is not read."""

from __future__ import annotations

from typing import Final

from torchbuild_tasks.core.diagnosis import languages

# One of these is in what every failure of a build says somewhere; none is in a usual compile command.
SIGNS: Final = (
    *("rror:", "rror ", "ERROR", "FAIL", "ailed", "atal ", "Traceback", "egmentation fault", "core dumped"),
    *("Killed", "signal 9", "*** ", "build stopped", "of output", "-" * 20, "-- Configuring"),
    *("ndefined ", "nresolved", "/ld: ", "/ld\u00a0: ", "annot ", "ould not", "ot found", "No s"),
)
# One of these is in what a build says as soon as it has failed, while what runs beside it goes on.
PROOF_SIGNS: Final = (b"FAILED: ", b"CMake Error", b": *** [", b"ninja: error: ", b"ninja: fatal: ")
# Looked for at the start of a log only.
FIRST_SIGNS: Final = (
    *(
        "rror\t",
        "[error]",
        "atal:",
        "rreur",
        "ehler: ",
        "xception: ",
        "terminate called",
        "llegal instruction",
    ),
    *(
        "truncated to fit",
        "offset overflow",
        "DSO missing",
        "ot recognized",
        "nsupported",
        "is not ",
        "ould NOT",
    ),
    *("is unknown", "non-zero code"),
)


class Places:
    """Where the signs stand in a block; each is looked for again only where it was passed."""

    def __init__(self, block: bytes, signs: tuple[bytes, ...]) -> None:
        self._block = block
        if not block.isascii():
            signs += languages.TRANSLATED_SIGNS
        self._next = dict.fromkeys(signs, 0)

    def line_after(self, at: int) -> int:
        """The start of the first line from `at` on that holds a sign; the end when there is none."""
        block, end = self._block, len(self._block)
        for sign, place in self._next.items():
            if place < at or at == 0:
                found = block.find(sign, at)
                self._next[sign] = end if found < 0 else found
        first = min(self._next.values())
        return end if first == end else block.rfind(b"\n", 0, first) + 1

"""Find where in a block of a long log a line may be an error, by plain text; other lines are not read."""

from __future__ import annotations

import functools
from typing import Final

from torchbuild_tasks.features.diagnosis.translate import ASCII_SIGNS, TRANSLATED_SIGNS

# Every failed build has one of these in some message; no usual compile command has one.
SIGNS: Final = (
    *(
        "rror:",
        "rror ",
        "ERROR",
        "FAIL",
        "ailed",
        "atal ",
        "Traceback",
        "egmentation fault",
        "core dumped",
        "-Error-",
        "-Fatal-",
    ),
    *("Killed", "ignal 9", "*** ", "Assertion ", "Invalid __", "Uninitialized __", "ace reported"),
    *("Timeout +", "uncaught target", ": Failure", "!!!! ", "build stopped", "of output", "-" * 20),
    *("-- Configuring", "R_X86_64_", "R_AARCH64_", "yntax error", "rror[", "ndefined ", "nresolved"),
    *("/ld: ", "/ld\u00a0: ", "annot ", "ould not", "ot found", "No s"),
)
# One of these is in the log as soon as a build has failed, while other commands still run.
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
        "denied",
        "unning CTest",
        "bad interpreter",
        "multiple def",
        "uplicate symbol",
        ": Wrote only ",
        "was the direct cause",
        "such option",
        "option requires",
        "ous option",
        "CUDA initialization: ",
    ),
    *("xceptions.", ".exc.", "E: ", "curl: (", ".proto:", "Error:", ".pyx:", ".pxd:", ".pxi:"),
    *(
        "truncated to fit",
        "offset overflow",
        "DSO missing",
        "ot recognized",
        "nsupported",
        "is not ",
        "not look like",
        "ould NOT",
        "nknown command",
        "nhandled ",
        "exec user process",
        "othing provides",
        "tatus code: ",
        "url error (",
    ),
    *(
        "is invalid",
        "is unknown",
        "non-zero code",
        "FATAL",
        "CRITICAL",
        "LibMamba",
        *("ageNotFound", "o matching manifest"),
        "while solving",
        "nsatisfiable",
        "olution found",
        "No module",
    ),
)


@functools.lru_cache(maxsize=4)
def signs_of(anchors: frozenset[str]) -> tuple[bytes, ...]:
    """Return what a line holds that has to be read: the signs, and what the rows have beyond them."""
    known = (*SIGNS, *FIRST_SIGNS)
    more = (text for text in sorted(anchors) if not any(sign in text for sign in known))
    return (*(sign.encode() for sign in (*known, *more)), *ASCII_SIGNS)


class Places:
    """Where the signs stand in a block; each is looked for again only where it was passed."""

    def __init__(self, block: bytes, signs: tuple[bytes, ...]) -> None:
        self._block = block
        if not block.isascii():
            signs += TRANSLATED_SIGNS
        self._next = dict.fromkeys(signs, 0)

    def line_after(self, at: int) -> int:
        """Return the start of the first line from `at` on that holds a sign; the end when there is none."""
        block, end = self._block, len(self._block)
        for sign, place in self._next.items():
            if place < at or at == 0:
                found = block.find(sign, at)
                self._next[sign] = end if found < 0 else found
        first = min(self._next.values())
        return end if first == end else block.rfind(b"\n", 0, first) + 1

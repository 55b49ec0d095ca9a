"""Write the reading of a log as text for a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchbuild_tasks.model import Diagnosis, Reading

_UNKNOWN = "No row knows this error: its cause is not known.\n"
_CLEAN = "No failure in this log.\n"


def reading_text(reading: Reading) -> str:
    """Return the error with its line in the log, and its causes; or that there is none."""
    if reading.status == "clean":
        return _CLEAN + diagnoses_text(reading.notes, "Warning")
    block = "".join(f"  {line}\n" for line in reading.error_block)
    causes = diagnoses_text(reading.diagnoses) or _UNKNOWN
    return f"The first error, line {reading.line_number}:\n{block}{causes}"


def diagnoses_text(diagnoses: Sequence[Diagnosis], first: str = "Cause") -> str:
    """Return each cause with what to do about it, the likeliest first."""
    heads = (first, *("Or" for _ in diagnoses))
    return "".join(
        line for head, diagnosis in zip(heads, diagnoses, strict=False) for line in _lines(head, diagnosis)
    )


def _lines(head: str, diagnosis: Diagnosis) -> Iterable[str]:
    yield f"{head}: {diagnosis.cause}\n"
    if diagnosis.fix:
        yield f"  -> {diagnosis.fix}\n"
    if diagnosis.command:
        yield f"     $ {diagnosis.command}\n"
    yield f"     {diagnosis.see}\n"

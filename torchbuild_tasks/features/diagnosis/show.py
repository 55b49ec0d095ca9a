"""Write the reading of a log as text for a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchbuild_tasks.model import Diagnosis, OtherError, Reading, Tree

_UNKNOWN = "No row knows this error: its cause is not known.\n"
_CLEAN = "No failure in this log.\n"
# How a build ended, of which the log has no failure.
_ENDED = {
    "interrupted": "That build was interrupted. The same command goes on where it stopped.",
    "failed": (
        "That build failed all the same: at a step that writes no log (build again, and read what it prints),"
        " or the end of the log is missing, as after a full disk (df -h)."
    ),
    "running": (
        "That build was cut off while it ran, and the log with it: the machine was switched off, the disk is"
        " full (df -h), or it was ended by force. The same command goes on where it stopped."
    ),
}


def state_text(tree: Tree, *, clean: bool) -> str:
    """Say of the last build of a tree what its log does not: that it still runs, or did not end well."""
    if tree.running is not None:
        return (
            f"It may not be whole yet: {tree.running} works on this checkout. What is there so far was read."
        )
    result = tree.previous.result if tree.previous is not None else ""
    return _ENDED.get(result, "") if clean else ""


def reading_text(reading: Reading) -> str:
    """Return the error with its line in the log, and its causes; or that there is none."""
    state = f"{reading.state}\n" if reading.state else ""
    if reading.status == "clean":
        return _CLEAN + state + diagnoses_text(reading.notes, "Warning")
    block = "".join(f"  {line}\n" for line in reading.error_block)
    causes = diagnoses_text(reading.diagnoses) or _UNKNOWN + diagnoses_text(reading.notes, "Warning")
    also = "".join(_other_text(each) for each in reading.also)
    return f"{state}The first error, line {reading.line_number}:\n{block}{causes}{also}"


def _other_text(other: OtherError) -> str:
    cause = f"\n  {other.cause}" if other.cause else ""
    target = f" ({other.target})" if other.target else ""
    return f"Also failed, line {other.line_number}{target}: {other.error_line.strip()}{cause}\n"


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

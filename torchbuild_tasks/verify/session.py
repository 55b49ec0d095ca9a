"""Run the probe in the Python that has torch, and return a report even if it crashes or hangs.

A torch may take the interpreter down. The probe prints what it is about to do, so a crash
is blamed on one check, and the probe is started again for the checks that are left. It
runs in an empty temporary folder: in a checkout, `import torch` would find the
source tree instead of what was built.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from torchbuild_tasks.model import Expectation
from torchbuild_tasks.model.record import CheckResult, Outcome, VerifyReport
from torchbuild_tasks.system.process import Captured, capture, ending, is_hang, tail
from torchbuild_tasks.values import as_table, parse_json, replace
from torchbuild_tasks.verify.judge import Observed, Seen, expand, judge, misplaced, stray_folders
from torchbuild_tasks.verify.torch_probe import CHECKS, CUDA_CHECKS, GATES, LIMIT, MARK

PROBE: Final = Path(__file__).with_name("torch_probe.py")
ALWAYS: Final = frozenset({"import", "config"})
TORCH_VALUES: Final = (  # the checks whose values the report keeps; a later one wins
    *("import", "config", "cuda_available", "cuda_arch_list", "cuda_devices", "cudnn", "nccl", "cuda_linalg"),
)
# Explanations for a check that hangs: in these checks torch itself does almost nothing.
HANGS: Final[Mapping[str, str]] = {
    "cuda_available": "it is the driver that does not answer when CUDA is started; look for Xid in dmesg",
    "cuda_devices": "it is the driver that does not answer about its devices; look for Xid in dmesg",
    "cuda_driver": "the driver was at work alone, so it is no fault of torch; look for Xid in dmesg",
    "cuda_op": "a single addition hangs in the driver, which may be compiling PTX for a GPU that this torch "
    "has no machine code for; else look for Xid in dmesg",
}
NOT_TORCH: Final = frozenset({"cuda_driver"})  # a crash or hang in it fails no other check
_DROPPED: Final = frozenset({"PYTHONPATH", "PYTHONHOME"})  # -I ignores them, but not for its children
# Of a toolkit, below its folder.
_LIBRARY_FOLDERS: Final = ("lib", "lib64", "bin", "targets/*/lib")

Ask = Callable[[Sequence[str], float], Captured]


def verify(
    *,
    python: str,
    expectations: Sequence[Expectation],
    environ: Mapping[str, str],
    timeout: float = 600.0,
) -> VerifyReport:
    """Compare the torch of `python` (an absolute path) with the plan's promises.

    A bad torch is a report, not an error. Checks without an expectation are not run, but
    the report always says whether torch can be imported, and has a row "exit" when the
    interpreter dies after its last check.
    """
    expected = _with_import(expectations)
    requested = {*ALWAYS, *(each.check for each in expected if not each.skip)}
    env = {name: value for name, value in environ.items() if name.upper() not in _DROPPED}

    def ask(names: Sequence[str], seconds: float) -> Captured:
        import tempfile  # not imported by a build that verifies nothing

        argv = [python, "-I", str(PROBE), "--limit", str(min(LIMIT, timeout)), *names]
        with tempfile.TemporaryDirectory(prefix="torchbuild-verify-", ignore_cleanup_errors=True) as empty:
            return capture(argv, env=env, cwd=empty, timeout=seconds)

    start = time.monotonic()
    seen, exit_detail = observe(ask, [name for name in CHECKS if name in requested], timeout)
    # An interpreter that timed out would not list its libraries either.
    if seen["import"].outcome == "failed" and time.monotonic() - start < timeout:
        from torchbuild_tasks.features.closure.act import reason

        # The library that cannot be loaded goes before Python's message, which may name another.
        seen["import"] = replace(seen["import"], detail=reason(python, env, seen["import"].detail))
    for name, look in (("libraries", _trace), ("rpath", _read_rpaths)):
        wanted = next((each.wanted for each in expected if each.check == name), "")
        if name in seen and seen[name].outcome == "passed":
            seen[name] = look(seen[name], wanted.splitlines())
    rows = judge(expected, Observed(checks=seen, real=_real_paths(expected, seen)))
    if exit_detail:
        rows += (CheckResult(check="exit", outcome="failed", detail=exit_detail),)
    return VerifyReport(python=python, checks=rows, torch=_torch_values(seen))


def _trace(answer: Seen, places: Sequence[str]) -> Seen:
    """Check the folders of the process's libraries; the first of `places` is the checkout."""
    loaded, package, prefixes = (
        answer.values.get(key, "").splitlines() for key in ("loaded", "package", "prefixes")
    )
    known = [os.path.realpath(each) for each in places[1:] if each]
    built = [file for file in loaded if _in_build_tree(Path(file).parent)]
    linked = _linked_libraries(known) - set(built)
    loaded = [file for file in loaded if file not in linked]
    wrong, elsewhere = misplaced(loaded, package, (*prefixes, *known), built)
    if wrong:
        return Seen(outcome="failed", detail="\n".join(wrong))
    others = f"; from nowhere that was planned: {', '.join(elsewhere)}" if elsewhere else ""
    return Seen(outcome="passed", detail=f"{answer.detail}, each from where it should{others}")


def _linked_libraries(folders: Sequence[str]) -> set[str]:
    """Return the targets of a toolkit's links, such as those of one assembled from wheels."""
    places = (
        entry for folder in folders for at in _LIBRARY_FOLDERS for entry in Path(folder).glob(f"{at}/*")
    )
    return {os.path.realpath(entry) for entry in places if entry.is_symlink()}


def _read_rpaths(answer: Seen, places: Sequence[str]) -> Seen:
    """Check the folders in which the package's libraries look for others."""
    from torchbuild_tasks.features.closure.act import Files

    files = Files()
    rpaths = {}
    for file in answer.values.get("files", "").splitlines():
        image = files.image(file)
        rpaths[file] = (*image.rpath, *image.runpath) if image else ()
    package = answer.values.get("package", "").splitlines()
    folders = {expand(text, file) for file, texts in rpaths.items() for text in texts}
    built = {each for each in folders if each.startswith("/") and _in_build_tree(Path(each))}
    checkout = os.path.realpath(places[0]) if places and places[0] else ""
    wrong = list(stray_folders(rpaths, package, checkout, built))
    if wrong:
        return Seen(outcome="failed", detail="\n".join(wrong))
    return Seen(outcome="passed", detail=f"{len(rpaths)} libraries, none looks in a build tree")


def _in_build_tree(folder: Path) -> bool:
    return any((each / "CMakeCache.txt").exists() for each in (folder, *folder.parents))


def _with_import(expectations: Sequence[Expectation]) -> tuple[Expectation, ...]:
    if any(each.check == "import" and not each.key and not each.skip for each in expectations):
        return tuple(expectations)
    return (Expectation(check="import", because="every other check needs it"), *expectations)


def _real_paths(expectations: Sequence[Expectation], seen: Mapping[str, Seen]) -> dict[str, str]:
    texts = {each.wanted for each in expectations}
    texts.update(value for each in seen.values() for value in each.values.values())
    return {text: os.path.realpath(text) for text in texts if Path(text).is_absolute()}


def _torch_values(seen: Mapping[str, Seen]) -> dict[str, str]:
    return {key: text for name in TORCH_VALUES if name in seen for key, text in seen[name].values.items()}


# ---------------------------------------------------------------- running the probe


def observe(ask: Ask, names: Sequence[str], timeout: float) -> tuple[dict[str, Seen], str]:
    """Run the checks `names` until each has an answer, time is up, or torch cannot be imported.

    A check that took the interpreter down has "failed". Every round answers one check at
    least, so there are never more rounds than checks. The text is how the interpreter
    ended after its last answer, and empty when it ended well.
    """
    deadline = time.monotonic() + timeout
    seen: dict[str, Seen] = {}
    pending = list(names)
    while pending:
        captured = ask(pending, max(deadline - time.monotonic(), 1.0))
        run = read_run(captured.stdout)
        seen = {**run.seen, **seen}
        before, pending = pending, [name for name in pending if name not in seen]
        if run.ended or not pending:
            return _add_stderr(seen, captured), _exit_words(captured)
        blamed = "" if run.again and pending != before else run.at if run.at in pending else pending[0]
        if blamed:
            seen[blamed] = _blame(captured, blamed, run.at)
        pending = _still_possible(pending, seen, blamed)
        if captured.timed_out:
            late = Seen(outcome="not possible", detail="no time was left for this check")
            return {**dict.fromkeys(pending, late), **seen}, ""
        if blamed == "import":
            break
    return seen, ""


def _still_possible(pending: Sequence[str], seen: dict[str, Seen], blamed: str) -> list[str]:
    """Return the checks that can still succeed; after a failed gate, mark those behind it in `seen`."""
    closed = next((g for g in GATES if g == blamed or (g in seen and seen[g].outcome == "failed")), "")
    if closed:
        why = f"not tried, because of {closed}: {seen[closed].detail}".partition("\n")[0]
        for name in pending:
            if name in CUDA_CHECKS and name not in seen:
                seen[name] = Seen(outcome="not possible", detail=why)
    return [name for name in pending if name not in seen]


def _add_stderr(seen: Mapping[str, Seen], captured: Captured) -> dict[str, Seen]:
    """Add stderr to a failed import: it may hold the loader's message."""
    imported = seen.get("import")
    if imported is None or imported.outcome != "failed":
        return dict(seen)
    return {**seen, "import": replace(imported, detail=imported.detail + tail(captured.stderr))}


def _blame(captured: Captured, name: str, at: str) -> Seen:
    """Return the answer for the check that crashed the interpreter or took too long."""
    where = f" during {at}" if at else ", and printed nothing that can be read"
    hint = f": {HANGS[name]}" if name in HANGS and is_hang(captured) else ""
    shown = tail(captured.stderr if at else captured.stdout + captured.stderr)
    outcome: Outcome = "not possible" if name in NOT_TORCH else "failed"
    return Seen(outcome=outcome, detail=f"{ending(captured)}{where}{hint}{shown}")


def _exit_words(captured: Captured) -> str:
    return f"{ending(captured)} after the last check{tail(captured.stderr)}" if captured.rc else ""


# ---------------------------------------------------------------- reading the probe's lines


class ProbeRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the probe: its answers, its last check, and how it ended.

    `ended` is true if all checks ran, `again` if the rest needs a new process.
    """

    seen: Mapping[str, Seen]
    at: str = ""
    ended: bool = False
    again: bool = False


def read_run(stdout: bytes) -> ProbeRun:
    """Parse the probe's lines; ignore all other output."""
    seen: dict[str, Seen] = {}
    at = ""
    ended = False
    again = False
    for event in _events(stdout):
        if "check" in event:
            seen[str(event["check"])] = _answer(event)
        at = str(event.get("begin", at))
        ended = ended or "end" in event
        again = again or "again" in event
    return ProbeRun(seen=seen, at=at, ended=ended, again=again)


def _events(stdout: bytes) -> Iterator[dict[str, Any]]:
    for line in stdout.decode(errors="replace").splitlines():  # our own lines are ASCII
        with contextlib.suppress(ValueError):
            event = parse_json(line.partition(MARK)[2])
            if isinstance(event, dict):
                yield event


def _answer(event: Mapping[str, Any]) -> Seen:
    outcome: Outcome = event["outcome"] if event.get("outcome") in get_args(Outcome) else "failed"
    texts = {key: str(value) for key, value in as_table(event.get("values")).items()}
    return Seen(outcome=outcome, detail=str(event.get("detail", "")), values=texts)
